#include "models/cuda/matrix_products.h"

#include <algorithm>
#include <cstdint>

namespace domicile::models::cuda {
namespace {

constexpr std::size_t kWorkspace = std::size_t{32} << 20U;

std::string Said(cublasStatus_t status, const char* what) {
  return status == CUBLAS_STATUS_SUCCESS
             ? ""
             : std::string(what) + ": cuBLAS says " + cublasLtGetStatusString(status);
}

cublasComputeType_t ComputeType(Products products) {
  switch (products) {
    case Products::kFloat32:
      break;
    case Products::kTensorFloat32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Products::kBfloat16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    case Products::kFloat16:
      return CUBLAS_COMPUTE_32F_FAST_16F;
  }
  return CUBLAS_COMPUTE_32F;
}

// The largest power of two, at most 256, that divides the address and the distance between
// operands.
std::uint32_t AlignmentOf(const void* memory, std::size_t stride) {
  const auto bits = reinterpret_cast<std::uintptr_t>(memory) | (stride * sizeof(float)) | 256U;
  return static_cast<std::uint32_t>(bits & (~bits + 1));
}

cublasLtEpilogue_t EpilogueOf(const Product& p) {
  if (p.bias == nullptr) {
    return CUBLASLT_EPILOGUE_DEFAULT;
  }
  return p.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
}

template <typename T>
cublasStatus_t Set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t name, T value) {
  return cublasLtMatmulDescSetAttribute(description, name, &value, sizeof(value));
}

template <typename T>
cublasStatus_t Set(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t name,
                   T value) {
  return cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof(value));
}

cublasStatus_t MakeLayout(std::size_t rows, std::size_t columns, std::size_t ld, std::size_t batch,
                          std::size_t stride, cublasLtMatrixLayout_t& layout) {
  cublasStatus_t status =
      cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, columns, static_cast<std::int64_t>(ld));
  if (status == CUBLAS_STATUS_SUCCESS && batch > 1) {
    const auto count = static_cast<std::int32_t>(batch);
    const auto offset = static_cast<std::int64_t>(stride);
    status = cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                              sizeof(count));
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &offset, sizeof(offset));
    }
  }
  return status;
}

}  // namespace

struct MatrixProducts::Plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t first = nullptr;
  cublasLtMatrixLayout_t second = nullptr;
  cublasLtMatrixLayout_t result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (const cublasLtMatrixLayout_t layout : {first, second, result}) {
      if (layout != nullptr) {
        cublasLtMatrixLayoutDestroy(layout);
      }
    }
    if (description != nullptr) {
      cublasLtMatmulDescDestroy(description);
    }
  }

  cublasStatus_t Describe(const Product& p, cublasComputeType_t compute) {
    const ColumnProduct by = ByColumns(p);
    const auto how = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
    const auto stored = [&](bool transpose, std::size_t rows, std::size_t columns, std::size_t ld,
                            std::size_t stride, cublasLtMatrixLayout_t& layout) {
      return transpose ? MakeLayout(columns, rows, ld, p.batch, stride, layout)
                       : MakeLayout(rows, columns, ld, p.batch, stride, layout);
    };
    cublasStatus_t status = cublasLtMatmulDescCreate(&description, compute, CUDA_R_32F);
    const auto then = [&status](auto&& step) {
      status = status == CUBLAS_STATUS_SUCCESS ? step() : status;
    };
    then([&] { return Set(description, CUBLASLT_MATMUL_DESC_TRANSA, how(by.transpose_first)); });
    then([&] { return Set(description, CUBLASLT_MATMUL_DESC_TRANSB, how(by.transpose_second)); });
    then([&] { return Set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, EpilogueOf(p)); });
    if (p.bias != nullptr) {  // each call sets its own
      then([&] { return Set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias); });
    }
    then([&] {
      return stored(by.transpose_first, by.rows, by.inner, by.ld_first, by.stride_first, first);
    });
    then([&] {
      return stored(by.transpose_second, by.inner, by.columns, by.ld_second, by.stride_second,
                    second);
    });
    then([&] { return MakeLayout(by.rows, by.columns, p.ldc, p.batch, p.stride_c, result); });
    return status;
  }
};

MatrixProducts::MatrixProducts(Products products) : products_(products) {}

MatrixProducts::~MatrixProducts() {
  plans_.clear();
  if (handle_ != nullptr) {
    cublasLtDestroy(handle_);
  }
  cudaFree(workspace_);
}

std::string MatrixProducts::Open() {
  if (const cudaError_t error = cudaMalloc(&workspace_, kWorkspace); error != cudaSuccess) {
    return std::string("room for matrix products: ") + cudaGetErrorString(error);
  }
  return Said(cublasLtCreate(&handle_), "opening cuBLAS");
}

std::string MatrixProducts::Choose(const Product& p, Plan& plan) const {
  cublasStatus_t status = plan.Describe(p, ComputeType(products_));
  cublasLtMatmulPreference_t preference = nullptr;
  const auto then = [&status](auto&& step) {
    status = status == CUBLAS_STATUS_SUCCESS ? step() : status;
  };
  then([&] { return cublasLtMatmulPreferenceCreate(&preference); });
  then([&] { return Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace); });
  // Parts of a sum over the inner dimension are added up from the workspace, in their order.
  then([&] {
    return Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  });
  const ColumnProduct by = ByColumns(p);
  const std::uint32_t of_c = AlignmentOf(p.c, p.stride_c);
  then([&] {
    return Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
               AlignmentOf(by.first, by.stride_first));
  });
  then([&] {
    return Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
               AlignmentOf(by.second, by.stride_second));
  });
  then([&] { return Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_c); });
  then([&] { return Set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_c); });
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  then([&] {
    return cublasLtMatmulAlgoGetHeuristic(handle_, plan.description, plan.first, plan.second,
                                          plan.result, plan.result, preference, 1, &found, &count);
  });
  if (preference != nullptr) {
    cublasLtMatmulPreferenceDestroy(preference);
  }
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    return Said(status == CUBLAS_STATUS_SUCCESS ? CUBLAS_STATUS_NOT_SUPPORTED : status,
                "choosing how to compute a matrix product");
  }
  plan.algorithm = found.algo;
  return "";
}

std::string MatrixProducts::PlanFor(const Product& p, Plan*& plan) {
  const unsigned how = (p.transpose_a ? 1U : 0U) | (p.transpose_b ? 2U : 0U) |
                       (p.beta != 0.0F ? 4U : 0U) | static_cast<unsigned>(EpilogueOf(p)) << 3U;
  const unsigned alignment = AlignmentOf(p.a, p.stride_a) << 20U |
                             AlignmentOf(p.b, p.stride_b) << 10U | AlignmentOf(p.c, p.stride_c);
  const Key key(p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.batch, p.stride_a, p.stride_b, p.stride_c,
                how, alignment);
  std::unique_ptr<Plan>& place = plans_[key];
  if (place == nullptr) {
    auto made = std::make_unique<Plan>();
    if (std::string why = Choose(p, *made); !why.empty()) {
      plans_.erase(key);
      return why;
    }
    place = std::move(made);
  }
  plan = place.get();
  return "";
}

std::string MatrixProducts::Multiply(const Product& p, cudaStream_t stream) {
  Plan* plan = nullptr;
  if (std::string why = PlanFor(p, plan); !why.empty()) {
    return why;
  }
  if (p.bias != nullptr) {
    const cublasStatus_t status = Set(plan->description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    if (status != CUBLAS_STATUS_SUCCESS) {
      return Said(status, "the bias of a matrix product");
    }
  }
  const ColumnProduct by = ByColumns(p);
  return Said(cublasLtMatmul(handle_, plan->description, &p.alpha, by.first, plan->first, by.second,
                             plan->second, &p.beta, p.c, plan->result, p.c, plan->result,
                             &plan->algorithm, workspace_, kWorkspace, stream),
              "a matrix product");
}

}  // namespace domicile::models::cuda

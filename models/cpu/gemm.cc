// Which matrix product serves: chosen once, by what the processor has. Not a kernel file: compiled
// as the rest of the program.
#include "models/cpu/internal/gemm.h"

#include <algorithm>
#include <memory>
#include <new>

namespace domicile::models::kernels {
namespace {

using Function = void (*)(const Product&, const GemmScratch&);

struct Choice {
  const char* name;
  Function run;
};

Choice Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
      __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0) {
    return {"avx512", &GemmAvx512};
  }
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return {"avx2", &GemmAvx2};
  }
#endif
  return {"narrow", &GemmNarrow};
}

const Choice& Chosen() {
  static const Choice choice = Choose();
  return choice;
}

struct AlignedFree {
  void operator()(float* values) const { operator delete (values, std::align_val_t{64}); }
};

std::unique_ptr<float, AlignedFree> AlignedFloats(std::size_t size) {
  return std::unique_ptr<float, AlignedFree>(
      static_cast<float*>(operator new (size * sizeof(float), std::align_val_t{64})));
}

// One a thread, for as long as the thread lives: nothing in it survives a call.
const GemmScratch& Scratch() {
  thread_local const auto a = AlignedFloats(kGemmRows * kGemmDepth);
  thread_local const auto b = AlignedFloats(kGemmColumns * kGemmDepth);
  thread_local const GemmScratch scratch = {.a = a.get(), .b = b.get()};
  return scratch;
}

void ClearC(const Product& p) {
  for (std::size_t row = 0; row < p.m && !p.accumulate; ++row) {
    std::fill_n(p.c + row * p.ldc, p.n, 0.0F);
  }
}

}  // namespace

const char* GemmName() { return Chosen().name; }

void Gemm(const Product& product) {
  if (product.m == 0 || product.n == 0) {
    return;
  }
  if (product.k == 0) {
    ClearC(product);
  } else if (product.n == 1) {
    MultiplyColumn(product);
  } else {
    Chosen().run(product, Scratch());
  }
}

}  // namespace domicile::models::kernels

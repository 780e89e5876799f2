// The plug-in of the tests. It computes, but not on a GPU.
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>

#include "models/cuda/layer_operations.h"
#include "models/cuda/rehearsal_machine.h"
#include "models/cuda/table.h"

namespace domicile::models::cuda {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc gives

}  // namespace

Arena::Arena() {
  void* const memory =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::abort();
  }
  base_ = static_cast<char*>(memory);
}

Arena::~Arena() { munmap(base_, kBytes); }

void Arena::Open() {
  if (mprotect(base_, kBytes, PROT_READ | PROT_WRITE) != 0) {
    std::abort();
  }
}

void Arena::Close() {
  if (mprotect(base_, kBytes, PROT_NONE) != 0) {
    std::abort();
  }
}

void* Arena::Allocate(std::size_t bytes) {
  const std::size_t wanted = std::max<std::size_t>(Pieces(bytes, kAlignment), 1) * kAlignment;
  std::size_t place = 0;
  for (const auto& [offset, size] : used_) {
    if (offset - place >= wanted) {
      break;
    }
    place = offset + size;
  }
  if (wanted > kBytes || place > kBytes - wanted) {
    return nullptr;
  }
  used_[place] = wanted;
  return base_ + place;
}

void Arena::Release(void* memory) {
  used_.erase(static_cast<std::size_t>(static_cast<char*>(memory) - base_));
}

int RehearsalMachine::NumDevices(Why& /*why*/) { return kDevices; }

RehearsalMachine* RehearsalMachine::Open(int ordinal, Products /*products*/, Why& why) {
  if (ordinal < 0 || ordinal >= kDevices) {
    std::snprintf(why.text, sizeof(why.text), "there are %d devices, numbered from 0", kDevices);
    return nullptr;
  }
  return new RehearsalMachine;
}

void* RehearsalMachine::Allocate(std::size_t bytes) {
  void* const memory = failure_.empty() ? arena_.Allocate(bytes) : nullptr;
  if (memory == nullptr) {
    failure_ = failure_.empty() ? "out of memory" : failure_;
    return nullptr;
  }
  // Not a number as floats: what is read without having been written shows.
  Opened([&] { std::memset(memory, 0xFF, bytes); });
  return memory;
}

void RehearsalMachine::Release(void* memory) {
  if (memory != nullptr) {
    arena_.Release(memory);
  }
}

void RehearsalMachine::Move(void* to, const void* from, std::size_t bytes) {
  Opened([&] { std::memmove(to, from, bytes); });
}

void RehearsalMachine::Zero(void* memory, std::size_t bytes) {
  Opened([&] { std::memset(memory, 0, bytes); });
}

bool RehearsalMachine::CanFuseBias(const void* bias) const {
  return reinterpret_cast<std::uintptr_t>(bias) % 16 == 0;
}

// As cuBLAS documents cublasLtMatmul, by columns.
void RehearsalMachine::Multiply(const Product& p) {
  const ColumnProduct by = ByColumns(p);
  Opened([&] {
    for (std::size_t batch = 0; batch < p.batch; ++batch) {
      const float* const first = by.first + batch * by.stride_first;
      const float* const second = by.second + batch * by.stride_second;
      float* const d = p.c + batch * p.stride_c;
      for (std::size_t column = 0; column < by.columns; ++column) {
        for (std::size_t row = 0; row < by.rows; ++row) {
          double sum = 0;
          for (std::size_t i = 0; i < by.inner; ++i) {
            const float a =
                by.transpose_first ? first[row * by.ld_first + i] : first[i * by.ld_first + row];
            const float b = by.transpose_second ? second[i * by.ld_second + column]
                                                : second[column * by.ld_second + i];
            sum += static_cast<double>(a) * static_cast<double>(b);
          }
          float& element = d[column * p.ldc + row];
          const float kept = p.beta == 0.0F ? 0.0F : p.beta * element;
          element = p.alpha * static_cast<float>(sum) + kept;
          element += p.bias == nullptr ? 0.0F : p.bias[row];
          element = p.relu && !(element > 0.0F) ? 0.0F : element;
        }
      }
    }
  });
}

void* RehearsalMachine::Scratch(Place place, std::size_t bytes) {
  std::vector<char>& scratch = scratch_[static_cast<std::size_t>(place)];
  scratch.assign(bytes, '\xFF');
  return scratch.data();
}

RehearsalMachine::Group::Group(std::size_t count)
    : barrier_(static_cast<std::ptrdiff_t>(count)), values_(count) {}

RehearsalMachine::Group* RehearsalMachine::Group::Connect(void* const* devices, std::size_t count,
                                                          Why& /*why*/) {
  auto* const group = new Group(count);
  for (std::size_t rank = 0; rank < count; ++rank) {
    group->machines_.push_back(static_cast<RehearsalMachine*>(devices[rank]));
  }
  return group;
}

void RehearsalMachine::Group::BeginSum(std::size_t rank, float* values, std::size_t size) {
  values_[rank] = {values, size};
  barrier_.arrive_and_wait();
  if (rank == 0) {
    sum_.assign(size, 0.0F);
    for (std::size_t r = 0; r < values_.size(); ++r) {
      machines_[r]->Opened([&] {
        for (std::size_t i = 0; i < size; ++i) {
          sum_[i] += values_[r][i];
        }
      });
    }
    for (std::size_t r = 0; r < values_.size(); ++r) {
      machines_[r]->Upload(values_[r].data(), sum_.data(), size * sizeof(float));
    }
  }
  barrier_.arrive_and_wait();
}

}  // namespace domicile::models::cuda

extern "C" __attribute__((visibility("default"))) const domicile::models::cuda::Plugin*
domicile_cuda_plugin() {
  using domicile::models::cuda::RehearsalMachine;
  static const domicile::models::cuda::Plugin plugin = [] {
    auto table = domicile::models::cuda::TableWithoutOperations<RehearsalMachine>();
    domicile::models::cuda::FillVectorEntries<RehearsalMachine>(table);
    domicile::models::cuda::FillLayerEntries<RehearsalMachine>(table);
    return table;
  }();
  return &plugin;
}

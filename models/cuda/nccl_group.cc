#include "models/cuda/nccl_group.h"

#include <cstdio>
#include <memory>
#include <string>

#include <dlfcn.h>

namespace domicile::models::cuda {
namespace {

struct Nccl {
  decltype(&ncclCommInitAll) init_all = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  std::string why;  // it cannot be used
};

const Nccl& LoadNccl() {
  static const Nccl nccl = [] {
    Nccl found;
    void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps it by thread
      const char* const why = dlerror();
      found.why = std::string("several GPUs need NCCL 2: ") + (why == nullptr ? "" : why);
      return found;
    }
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      found.why = function == nullptr ? std::string("NCCL lacks ") + name : found.why;
    };
    find(found.init_all, "ncclCommInitAll");
    find(found.destroy, "ncclCommDestroy");
    find(found.all_reduce, "ncclAllReduce");
    find(found.error_string, "ncclGetErrorString");
    return found;
  }();
  return nccl;
}

}  // namespace

CudaMachine::Group* CudaMachine::Group::Connect(void* const* devices, std::size_t count, Why& why) {
  const auto fail = [&why](const std::string& text) -> Group* {
    std::snprintf(why.text, sizeof(why.text), "%s", text.c_str());
    return nullptr;
  };
  const Nccl& nccl = LoadNccl();
  if (!nccl.why.empty()) {
    return fail(nccl.why);
  }
  std::unique_ptr<Group> group(new Group);
  std::vector<int> ordinals;
  for (std::size_t rank = 0; rank < count; ++rank) {
    auto* const machine = static_cast<CudaMachine*>(devices[rank]);
    group->ranks_.push_back({.machine = machine});
    ordinals.push_back(machine->ordinal());
  }
  std::vector<ncclComm_t> communicators(count, nullptr);
  const ncclResult_t result =
      nccl.init_all(communicators.data(), static_cast<int>(count), ordinals.data());
  if (result != ncclSuccess) {
    return fail(std::string("connecting GPUs: NCCL says ") + nccl.error_string(result));
  }
  for (std::size_t i = 0; i < count; ++i) {
    Rank& rank = group->ranks_[i];
    rank.communicator = communicators[i];
    CudaMachine& machine = *rank.machine;
    const bool opened =
        machine.Select() &&
        machine.Require(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking),
                        "opening a stream") &&
        machine.Require(cudaEventCreateWithFlags(&rank.computed, cudaEventDisableTiming),
                        "opening an event") &&
        machine.Require(cudaEventCreateWithFlags(&rank.summed, cudaEventDisableTiming),
                        "opening an event");
    if (!opened) {
      return fail(machine.Failure());
    }
  }
  return group.release();
}

CudaMachine::Group::~Group() {
  for (const Rank& rank : ranks_) {
    cudaSetDevice(rank.machine->ordinal());
    if (rank.stream != nullptr) {
      cudaStreamSynchronize(rank.stream);
      cudaStreamDestroy(rank.stream);
    }
    for (const cudaEvent_t event : {rank.computed, rank.summed}) {
      if (event != nullptr) {
        cudaEventDestroy(event);
      }
    }
    if (rank.communicator != nullptr) {
      LoadNccl().destroy(rank.communicator);
    }
  }
}

void CudaMachine::Group::BeginSum(std::size_t rank, float* values, std::size_t size) {
  const Rank& own = ranks_[rank];
  CudaMachine& machine = *own.machine;
  if (!machine.Select() ||
      !machine.Require(cudaEventRecord(own.computed, machine.stream()), "adding up") ||
      !machine.Require(cudaStreamWaitEvent(own.stream, own.computed), "adding up")) {
    return;
  }
  const ncclResult_t result =
      LoadNccl().all_reduce(values, values, size, ncclFloat, ncclSum, own.communicator, own.stream);
  if (result != ncclSuccess) {
    machine.Fail(std::string("adding up over GPUs: NCCL says ") + LoadNccl().error_string(result));
  }
}

void CudaMachine::Group::FinishSums(std::size_t rank) {
  const Rank& own = ranks_[rank];
  CudaMachine& machine = *own.machine;
  if (machine.Select() && machine.Require(cudaEventRecord(own.summed, own.stream), "adding up")) {
    machine.Require(cudaStreamWaitEvent(machine.stream(), own.summed), "adding up");
  }
}

}  // namespace domicile::models::cuda

#include "models/cuda/cuda_machine.h"

#include <algorithm>
#include <cstdio>

#include "models/cuda/matrix_products.h"
#include "models/cuda/pinned_staging.h"

namespace domicile::models::cuda {
namespace {

void Say(Why& why, const std::string& text) {
  std::snprintf(why.text, sizeof(why.text), "%s", text.c_str());
}

// What to do about an error of the driver, where there is something.
std::string RemedyOf(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "no NVIDIA driver, or one older than the plug-in's CUDA needs (580 for CUDA 13)";
    case cudaErrorNoDevice:
      return "the NVIDIA driver finds no GPU; a container needs one passed to it, and "
             "CUDA_VISIBLE_DEVICES may hide all";
    default:
      return cudaGetErrorString(error);
  }
}

}  // namespace

int CudaMachine::NumDevices(Why& why) {
  int devices = -1;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) {
    Say(why, RemedyOf(error));
    return -1;
  }
  return devices;
}

CudaMachine* CudaMachine::Open(int ordinal, Products products, Why& why) {
  cudaDeviceProp properties{};
  const cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
  if (error != cudaSuccess) {
    Say(why, RemedyOf(error));
    return nullptr;
  }
  if (properties.major < 8) {
    Say(why, std::string(properties.name) + " is too old: compute capability 8.0 is needed");
    return nullptr;
  }
  std::unique_ptr<CudaMachine> machine(new CudaMachine(ordinal));
  if (machine->Select() &&
      machine->Require(cudaStreamCreateWithFlags(&machine->stream_, cudaStreamNonBlocking),
                       "opening a stream") &&
      machine->Require(machine->staging_->Open(), "room for copies")) {
    machine->products_ = std::make_unique<MatrixProducts>(products);
    machine->Fail(machine->products_->Open());
  }
  if (machine->Failure() != nullptr) {
    Say(why, machine->failure_);
    return nullptr;
  }
  return machine.release();
}

CudaMachine::CudaMachine(int ordinal)
    : ordinal_(ordinal), staging_(std::make_unique<PinnedStaging>()) {}

CudaMachine::~CudaMachine() {
  cudaSetDevice(ordinal_);
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
  }
  products_.reset();
  staging_.reset();
  for (const Room& room : scratch_) {
    cudaFree(room.memory);
  }
  if (stream_ != nullptr) {
    cudaStreamDestroy(stream_);
  }
}

bool CudaMachine::Select() {
  return failure_.empty() && Require(cudaSetDevice(ordinal_), "choosing the GPU");
}

bool CudaMachine::Require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    Fail(std::string(what) + ": " + cudaGetErrorString(error));
  }
  return error == cudaSuccess;
}

void CudaMachine::Fail(const std::string& why) {
  if (failure_.empty()) {
    failure_ = why;
  }
}

void* CudaMachine::Allocate(std::size_t bytes) {
  void* memory = nullptr;
  if (!Select() || !Require(cudaMalloc(&memory, bytes), "allocating memory")) {
    return nullptr;
  }
  return memory;
}

void CudaMachine::Release(void* memory) {
  cudaSetDevice(ordinal_);
  cudaFree(memory);  // waits for what still uses it
}

void CudaMachine::Upload(void* to, const void* from, std::size_t bytes) {
  if (Select()) {
    Require(staging_->Upload(to, from, bytes, stream_), "copying to the GPU");
  }
}

void CudaMachine::Download(void* to, const void* from, std::size_t bytes) {
  if (Select()) {
    Require(staging_->Download(to, from, bytes, stream_), "copying from the GPU");
  }
}

void CudaMachine::Copy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0 && Select()) {
    Require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copying");
  }
}

void CudaMachine::Zero(void* memory, std::size_t bytes) {
  if (bytes > 0 && Select()) {
    Require(cudaMemsetAsync(memory, 0, bytes, stream_), "clearing memory");
  }
}

void CudaMachine::Multiply(const Product& product) {
  const bool empty = product.m == 0 || product.n == 0 || product.batch == 0;
  if (empty || !Select()) {
    return;
  }
  if (product.k > 0) {
    Fail(products_->Multiply(product, stream_));
  } else if (product.beta == 0.0F) {  // the gradient of a weight over no rows
    Zero(product.c, product.m * product.n * sizeof(float));
  }
}

void* CudaMachine::Scratch(Place place, std::size_t bytes) {
  Room& room = scratch_[static_cast<std::size_t>(place)];
  if (bytes > room.bytes) {
    Release(room.memory);
    room.memory = Allocate(bytes);
    room.bytes = room.memory == nullptr ? 0 : bytes;
  }
  return room.memory;
}

}  // namespace domicile::models::cuda

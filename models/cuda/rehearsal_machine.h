// A machine without a GPU: the bodies run in a plain loop on the host, over memory that the rest of
// the program cannot touch. So the tests run all of the plug-in but the launches, cuBLAS and NCCL.
#pragma once

#include <array>
#include <barrier>
#include <cstddef>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "models/cuda/machine.h"
#include "models/cuda/plugin.h"
#include "models/cuda/product.h"

namespace domicile::models::cuda {

// A team of the thread that runs it.
struct TeamOfOne {
  std::size_t Rank() const { return 0; }
  std::size_t Size() const { return 1; }
  double Sum(double value) const { return value; }
  float Max(float value) const { return value; }
};

// A range of addresses that faults unless it is open.
class Arena {
 public:
  static constexpr std::size_t kBytes = std::size_t{256} << 20U;

  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void Open();
  void Close();
  // Null if it is full.
  void* Allocate(std::size_t bytes);
  void Release(void* memory);

 private:
  char* base_;
  std::map<std::size_t, std::size_t> used_;  // offset to size
};

class RehearsalMachine {
 public:
  class Group;

  static constexpr int kDevices = 4;

  static int NumDevices(Why& why);
  static RehearsalMachine* Open(int ordinal, Products products, Why& why);

  const char* Failure() const { return failure_.empty() ? nullptr : failure_.c_str(); }
  void* Allocate(std::size_t bytes);
  void Release(void* memory);
  void Upload(void* to, const void* from, std::size_t bytes) { Move(to, from, bytes); }
  void Download(void* to, const void* from, std::size_t bytes) { Move(to, from, bytes); }
  void Copy(void* to, const void* from, std::size_t bytes) { Move(to, from, bytes); }
  void Zero(void* memory, std::size_t bytes);

  template <typename Body>
  void Elements(std::size_t size, const Body& body) {
    Opened([&] {
      for (std::size_t i = 0; i < size; ++i) {
        body(i);
      }
    });
  }

  template <typename Body>
  void Teams(std::size_t count, std::size_t /*work*/, const Body& body) {
    Opened([&] {
      TeamOfOne team;
      for (std::size_t index = 0; index < count; ++index) {
        body(team, index);
      }
    });
  }

  // Little, so that tests see a batch cut up.
  std::size_t ColumnRoom() const { return 2048; }
  bool CanFuseBias(const void* bias) const;
  void Multiply(const Product& product);
  void* Scratch(Place place, std::size_t bytes);

 private:
  template <typename Work>
  void Opened(const Work& work) {
    if (failure_.empty()) {
      arena_.Open();
      work();
      arena_.Close();
    }
  }
  void Move(void* to, const void* from, std::size_t bytes);

  Arena arena_;
  std::string failure_;
  std::array<std::vector<char>, static_cast<std::size_t>(Place::kNumPlaces)> scratch_;
};

// The element-wise sum in rank order.
class RehearsalMachine::Group {
 public:
  static Group* Connect(void* const* devices, std::size_t count, Why& why);
  void BeginSum(std::size_t rank, float* values, std::size_t size);
  void FinishSums(std::size_t /*rank*/) {}  // nothing goes on behind the caller's back

 private:
  explicit Group(std::size_t count);

  std::barrier<> barrier_;
  std::vector<RehearsalMachine*> machines_;
  std::vector<std::span<float>> values_;
  std::vector<float> sum_;
};

}  // namespace domicile::models::cuda

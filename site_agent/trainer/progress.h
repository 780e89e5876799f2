// How a task goes, for the people of the site: the agent shows it, and passes none of it on
// (docs/formats/trainer-socket.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace domicile::site_agent {

inline constexpr std::size_t kMaxReplicaFigures = 1024;

struct ReplicaFigures {
  std::uint32_t communication_permille = 0;  // of its time, waiting for the others included
  std::uint64_t state_bytes = 0;             // parameters, gradients, moments
  friend bool operator==(const ReplicaFigures&, const ReplicaFigures&) = default;
};

// Of training since its start.
struct TrainFigures {
  std::uint64_t examples_per_second = 0;
  std::optional<std::int64_t> loss_micro;  // of the last step, a mean over its examples, in 1e-6
  std::uint32_t stall_permille = 0;        // of the time, waiting for input
  std::vector<ReplicaFigures> replicas{};
  std::optional<std::uint32_t> epochs{};           // made, where the plan counts in epochs
  std::optional<std::int64_t> validation_micro{};  // after the last of them, where it stops early
  friend bool operator==(const TrainFigures&, const TrainFigures&) = default;
};

struct TaskProgress {
  std::uint32_t percent = 0;  // 0 to 100, never falling
  std::optional<TrainFigures> figures{};
  friend bool operator==(const TaskProgress&, const TaskProgress&) = default;
};

// Called from any thread.
using ProgressSink = std::function<void(const TaskProgress&)>;

// "37 %, 52000 examples/s, loss 0.412345, after 3 epochs validation loss 0.423456, 1.2 % waiting
// for input, replica 0: 4.9 % adding up, 3 MB"
std::string ProgressText(const TaskProgress& progress);

}  // namespace domicile::site_agent

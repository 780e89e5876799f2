#include "models/strategy/parameter_servers.h"

#include <algorithm>
#include <utility>

#include "models/cpu/cpu_device.h"

namespace domicile::models {
namespace {

std::size_t TotalSize(std::span<const ParameterRange> ranges) {
  std::size_t total = 0;
  for (const ParameterRange& range : ranges) {
    total += range.size;
  }
  return total;
}

void CopyRanges(std::span<const ParameterRange> ranges, std::span<const float> from,
                std::span<float> to) {
  for (const ParameterRange& range : ranges) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(range.offset), range.size,
                to.begin() + static_cast<std::ptrdiff_t>(range.offset));
  }
}

std::vector<ParameterRange> StatisticsOf(const ParameterLayout& layout) {
  std::vector<ParameterRange> ranges;
  for (const ParameterView& view : layout.Views()) {
    if (view.role == ParameterRole::kStatistic) {
      ranges.push_back({.offset = view.offset, .size = view.size, .decays = false});
    }
  }
  return ranges;
}

}  // namespace

std::vector<std::vector<ParameterRange>> CutRanges(std::span<const ParameterRange> ranges,
                                                   std::size_t parts) {
  const std::size_t total = TotalSize(ranges);
  std::vector<std::vector<ParameterRange>> cut(parts);
  std::size_t part = 0;
  std::size_t done = 0;  // elements given away
  for (ParameterRange range : ranges) {
    while (range.size > 0) {
      while ((part + 1) * total / parts <= done) {
        ++part;
      }
      const std::size_t size = std::min(range.size, (part + 1) * total / parts - done);
      cut[part].push_back({.offset = range.offset, .size = size, .decays = range.decays});
      range.offset += size;
      range.size -= size;
      done += size;
    }
  }
  return cut;
}

ParameterServers::Server::Server(const TrainingSpec& training,
                                 std::vector<ParameterRange> its_ranges)
    : ranges(std::move(its_ranges)),
      device(MakeCpuDevice(1)),
      optimizer(training.optimizer, ranges, *device) {}

ParameterServers::ParameterServers(const TrainingSpec& training, std::size_t num_servers,
                                   std::span<const float> initial)
    : two_moments_(training.optimizer.kind != OptimizerKind::kSgd),
      device_(MakeCpuDevice(1)),
      model_(training.model, *device_),
      parameters_({initial.size()}) {
  model_.Freeze(training.frozen);
  rest_ = StatisticsOf(model_.layout());
  std::copy(initial.begin(), initial.end(), parameters_.Values().begin());
  for (std::vector<ParameterRange>& ranges : CutRanges(model_.TrainedRanges(), num_servers)) {
    servers_.push_back(std::make_unique<Server>(training, std::move(ranges)));
  }
}

void ParameterServers::Read(std::span<float> parameters) {
  const std::span<const float> here = std::as_const(parameters_).Values();
  for (const auto& server : servers_) {
    const MutexLock lock(server->mutex);
    CopyRanges(server->ranges, here, parameters);
  }
  const MutexLock lock(rest_mutex_);
  CopyRanges(rest_, here, parameters);
}

void ParameterServers::Update(std::span<const float> gradient, double rate_share,
                              std::size_t examples) {
  for (const auto& server : servers_) {
    const MutexLock lock(server->mutex);
    server->optimizer.Step(gradient, parameters_.Values(), rate_share);
  }
  const MutexLock lock(rest_mutex_);
  model_.UpdateStatistics(static_cast<double>(examples), gradient, parameters_.Values());
}

OptimizerState ParameterServers::State() const {
  OptimizerState all;
  for (const auto& server : servers_) {
    const OptimizerState part = server->optimizer.State();
    all.num_steps = part.num_steps;
    all.first.insert(all.first.end(), part.first.begin(), part.first.end());
    all.second.insert(all.second.end(), part.second.begin(), part.second.end());
  }
  return all;
}

Status ParameterServers::Restore(std::span<const float> parameters, const OptimizerState& state) {
  const std::size_t size = TotalSize(model_.TrainedRanges());
  if (state.first.size() != size || state.second.size() != (two_moments_ ? size : 0)) {
    return Error(StatusCode::kInvalidArgument,
                 "the moments are not those of this optimizer and these trained tensors");
  }
  std::size_t at = 0;
  for (const auto& server : servers_) {
    const std::size_t count = TotalSize(server->ranges);
    const auto part = [at, count](const std::vector<float>& moments) {
      return moments.empty()
                 ? std::vector<float>()
                 : std::vector<float>(moments.begin() + static_cast<std::ptrdiff_t>(at),
                                      moments.begin() + static_cast<std::ptrdiff_t>(at + count));
    };
    RETURN_IF_ERROR(server->optimizer.Restore(
        {.num_steps = state.num_steps, .first = part(state.first), .second = part(state.second)}));
    at += count;
  }
  std::copy(parameters.begin(), parameters.end(), parameters_.Values().begin());
  return OkStatus();
}

std::uint64_t ParameterServers::StateBytes() const {
  std::uint64_t bytes = parameters_.NumElements() * sizeof(float);
  for (const auto& server : servers_) {
    bytes += server->optimizer.StateBytes();
  }
  return bytes;
}

}  // namespace domicile::models

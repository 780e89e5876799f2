#include "site_agent/trainer/batch_statistics.h"

#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "models/cpu/cpu_device.h"
#include "models/model.h"

namespace domicile::site_agent {

namespace {

// A running mean keeps 0.9 of itself at each update: after so many the zeros it began with are
// below one part in five hundred.
constexpr int kUpdates = 60;

bool HasBatchNorm(const models::ModelSpec& spec) {
  const auto* network = std::get_if<models::ConvNetSpec>(&spec);
  return network != nullptr && std::any_of(network->blocks.begin(), network->blocks.end(),
                                           [](const models::ConvBlock& block) {
                                             return block.norm == models::ImageNorm::kBatch;
                                           });
}

}  // namespace

void FormStatistics(const Rows& training, PreparedModel& model) {
  if (!HasBatchNorm(model.spec) || training.NumRows() == 0) {
    return;
  }
  const std::unique_ptr<models::Device> device = models::MakeCpuDevice(1);
  models::Model network(model.spec, *device);
  std::vector<float> gradient(model.parameters.size(), 0);
  const std::size_t at_once = std::min(RowsAtOnce(model.spec), training.NumRows());
  std::size_t first = 0;
  for (int update = 0; update < kUpdates; ++update) {
    std::vector<std::size_t> indices(at_once);
    for (std::size_t& index : indices) {
      index = first;
      first = (first + 1) % training.NumRows();
    }
    const RowBatch batch = MakeBatch(model, training, std::move(indices));
    const auto count = static_cast<double>(at_once);
    network.LossAndGradient(model.parameters, batch.View(), {.divisor = count}, gradient);
    network.UpdateStatistics(count, gradient, model.parameters);
  }
}

}  // namespace domicile::site_agent

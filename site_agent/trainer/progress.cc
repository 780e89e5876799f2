#include "site_agent/trainer/progress.h"

#include <array>
#include <cstdio>

namespace domicile::site_agent {

namespace {

std::string Share(std::uint32_t permille) {
  return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

std::string Micro(std::int64_t value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.6g", static_cast<double>(value) * 1e-6);
  return text.data();
}

}  // namespace

std::string ProgressText(const TaskProgress& progress) {
  std::string text = std::to_string(progress.percent) + " %";
  if (!progress.figures) {
    return text;
  }
  const TrainFigures& figures = *progress.figures;
  text += ", " + std::to_string(figures.examples_per_second) + " examples/s";
  if (figures.loss_micro) {
    text += ", loss " + Micro(*figures.loss_micro);
  }
  if (figures.epochs) {
    text += ", after " + std::to_string(*figures.epochs) +
            (*figures.epochs == 1 ? " epoch" : " epochs");
    if (figures.validation_micro) {
      text += " validation loss " + Micro(*figures.validation_micro);
    }
  }
  text += ", " + Share(figures.stall_permille) + " waiting for input";
  for (std::size_t i = 0; i < figures.replicas.size(); ++i) {
    const ReplicaFigures& replica = figures.replicas[i];
    text += ", replica " + std::to_string(i) + ": " + Share(replica.communication_permille) +
            " adding up, " + std::to_string(replica.state_bytes / 1'000'000) + " MB";
  }
  return text;
}

}  // namespace domicile::site_agent

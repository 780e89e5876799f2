// What no single field of a plan can say: whether they fit together (docs/formats/job-and-plan.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "contracts/internal/fault.h"
#include "contracts/plan.h"

namespace domicile::contracts::internal {

// Ranges that readers of single fields share; ends are included.
inline constexpr std::int64_t kMaxHiddenWidth = 65'536;
inline constexpr std::int64_t kMaxChannels = 16;
inline constexpr std::int64_t kMaxSide = 4'096;
inline constexpr std::int64_t kMaxTextLength = 65'536;
inline constexpr std::int64_t kMaxFilters = 65'536;
inline constexpr std::int64_t kMaxVocabulary = std::int64_t{1} << 24U;
inline constexpr std::int64_t kMaxTypes = 1'024;
inline constexpr std::int64_t kMaxLayers = 100;
inline constexpr std::int64_t kMaxLocalEpochs = 10'000;
inline constexpr std::int64_t kMaxLocalSteps = 1'000'000;
inline constexpr std::int64_t kMaxBatch = (std::int64_t{1} << 31U) - 1;
inline constexpr std::int64_t kMaxWeight = (std::int64_t{1} << 31U) - 1;
inline constexpr std::int64_t kMaxTableRows = std::int64_t{1} << 40U;
inline constexpr std::int64_t kMaxDeadlineSeconds = std::int64_t{7} * 86'400;
inline constexpr std::int64_t kMaxStartAfterSeconds = std::int64_t{30} * 86'400;
inline constexpr std::int64_t kMaxAttempts = 100;
inline constexpr std::int64_t kMinBins = 10;
inline constexpr std::int64_t kMaxBins = 10'000;
inline constexpr double kMaxMinImprovement = 1e6;
inline constexpr double kMaxValidationShare = 0.5;
inline constexpr double kMaxLearningRate = 1e30;
inline constexpr double kMaxServerLearningRate = 10;
inline constexpr double kMaxL2 = 1e6;  // and of weight_decay
inline constexpr double kMaxClipNorm = 1e6;
inline constexpr double kMaxLoraAlpha = 1e6;
inline constexpr double kMaxClip = 1e6;
inline constexpr double kMaxDeviationFloor = 1e6;
inline constexpr double kMaxOffset = 1e12;
inline constexpr double kMaxRange = 1e12;

inline Fault At(std::string table, std::string key, std::string message) {
  return {std::move(table), std::nullopt, std::move(key), std::move(message)};
}

// The first fault, in the order of a job file.
std::optional<Fault> FindPlanFault(const Plan& plan);

}  // namespace domicile::contracts::internal

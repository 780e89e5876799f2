// The words of plan files for the enumerations of contracts/plan.h and dataset.h, at the index of
// their numbers; index 0, "none", has no word.
#pragma once

#include <array>
#include <string_view>

namespace domicile::contracts::internal {

inline constexpr std::array<std::string_view, 3> kFeatureWords = {"", "number", "category"};
inline constexpr std::array<std::string_view, 7> kModelWords = {
    "", "logistic", "mlp", "raw", "conv_net", "encoder", "linear"};
inline constexpr std::array<std::string_view, 4> kActivationWords = {"", "tanh", "relu", "sigmoid"};
inline constexpr std::array<std::string_view, 5> kNormWords = {"", "none", "group", "batch",
                                                               "frozen_batch"};
inline constexpr std::array<std::string_view, 3> kPoolingWords = {"", "mean", "first"};
inline constexpr std::array<std::string_view, 4> kOptimizerWords = {"", "sgd", "adam", "adamw"};
inline constexpr std::array<std::string_view, 3> kScheduleWords = {"", "constant", "cosine"};
inline constexpr std::array<std::string_view, 3> kLastBatchWords = {"", "keep", "drop"};
inline constexpr std::array<std::string_view, 4> kViewWords = {"", "sum_only", "masked", "plain"};
inline constexpr std::array<std::string_view, 3> kWeightWords = {"", "examples", "equal"};
inline constexpr std::array<std::string_view, 4> kPhaseWords = {"", "statistics", "train",
                                                                "evaluate"};

template <std::size_t N, typename Enum>
std::string_view WordOf(const std::array<std::string_view, N>& words, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? words[index] : std::string_view();
}

}  // namespace domicile::contracts::internal

#include "updates/exact_sum.h"

#include <bit>
#include <string>

#include "updates/internal/kernel.h"

namespace domicile::updates {
namespace {

// Products below this convert by the magic number (kernel.h).
constexpr std::int64_t kMagicLimit = std::int64_t{1} << 51U;

std::uint64_t AddendOf(const std::uint8_t* at, double factor) {
  const double product = static_cast<double>(internal::LoadFloat(at)) * factor;
  return std::bit_cast<std::uint64_t>(product + internal::kMagic);
}

// sum += (value * factor), where factor = weight * 2^scale_bits and |weight * level| < 2^51. Exact:
// the product is the integer weight * level, of at most 51 bits, so the multiplication rounds
// nothing and nor does the addition. Sums are added as unsigned numbers, which is the same on two's
// complement; INVARIANT: |sum| < 2^62 by GridPlan, so no signed result is lost.
void FoldSmall(const std::uint8_t* floats, double factor, std::span<std::int64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint64_t addend =
        AddendOf(floats + i * sizeof(float), factor) - internal::kMagicBits;
    sum[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[i]) + addend);
  }
}

void FoldSmallTwo(const std::uint8_t* first, double first_factor, const std::uint8_t* second,
                  double second_factor, std::span<std::int64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint64_t addend = AddendOf(first + i * sizeof(float), first_factor) +
                                 AddendOf(second + i * sizeof(float), second_factor) -
                                 2 * internal::kMagicBits;
    sum[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[i]) + addend);
  }
}

// The same for products up to 2^62: the level (at most 2^50) is converted, then multiplied as an
// integer.
void FoldLarge(const std::uint8_t* floats, double scale, std::int64_t weight,
               std::span<std::int64_t> sum) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint64_t level = AddendOf(floats + i * sizeof(float), scale) - internal::kMagicBits;
    sum[i] += weight * static_cast<std::int64_t>(level);
  }
}

bool IsSmall(const GridPlan& plan, std::int64_t weight) {
  return weight * plan.MaxLevel() < kMagicLimit;  // the plan bounds the product by 2^62
}

double FactorOf(const GridPlan& plan, std::int64_t weight) {
  // Exact for weights below 2^53. A larger one never gets here: times a level of at least 1 it
  // would not be small.
  return static_cast<double>(weight) * plan.Scale();
}

Status CheckFold(const GridPlan& plan, std::size_t count, std::int64_t weight, std::size_t size) {
  if (count != size) {
    return Error(StatusCode::kInvalidArgument, "an update of " + std::to_string(count) +
                                                   " numbers does not fit a sum of " +
                                                   std::to_string(size));
  }
  if (weight < 1 || weight > plan.MaxWeight()) {
    return Error(StatusCode::kInvalidArgument, "the weight must be 1 to " +
                                                   std::to_string(plan.MaxWeight()) + ", found " +
                                                   std::to_string(weight));
  }
  return OkStatus();
}

Status CheckFold(const GridPlan& plan, const GridFloats& update, std::int64_t weight,
                 std::size_t size) {
  if (update.Plan() != plan) {
    return Error(StatusCode::kInvalidArgument, "the update was checked against another grid");
  }
  return CheckFold(plan, update.Count(), weight, size);
}

}  // namespace

Status Fold(const GridPlan& plan, const GridFloats& update, std::int64_t weight,
            std::span<std::int64_t> sum) {
  RETURN_IF_ERROR(CheckFold(plan, update, weight, sum.size()));
  if (IsSmall(plan, weight)) {
    FoldSmall(update.Encoded().data(), FactorOf(plan, weight), sum);
  } else {
    FoldLarge(update.Encoded().data(), plan.Scale(), weight, sum);
  }
  return OkStatus();
}

Status FoldTwo(const GridPlan& plan, const GridFloats& first, std::int64_t first_weight,
               const GridFloats& second, std::int64_t second_weight, std::span<std::int64_t> sum) {
  RETURN_IF_ERROR(CheckFold(plan, first, first_weight, sum.size()));
  RETURN_IF_ERROR(CheckFold(plan, second, second_weight, sum.size()));
  if (IsSmall(plan, first_weight) && IsSmall(plan, second_weight)) {
    FoldSmallTwo(first.Encoded().data(), FactorOf(plan, first_weight), second.Encoded().data(),
                 FactorOf(plan, second_weight), sum);
    return OkStatus();
  }
  RETURN_IF_ERROR(Fold(plan, first, first_weight, sum));
  return Fold(plan, second, second_weight, sum);
}

Status FoldLevels(const GridPlan& plan, std::span<const std::int64_t> levels, std::int64_t weight,
                  std::span<std::int64_t> sum) {
  RETURN_IF_ERROR(CheckFold(plan, levels.size(), weight, sum.size()));
  for (std::size_t i = 0; i < levels.size(); ++i) {
    if (levels[i] > plan.MaxLevel() || levels[i] < -plan.MaxLevel()) {
      return Error(StatusCode::kOutOfRange,
                   "number " + std::to_string(i) + " is beyond the grid's largest level");
    }
  }
  for (std::size_t i = 0; i < levels.size(); ++i) {
    sum[i] += weight * levels[i];
  }
  return OkStatus();
}

Status ExactSum::Admit(std::int64_t more) const {
  if (contributors_ > plan_.MaxSites() - more) {
    return Error(StatusCode::kResourceExhausted,
                 "the sum has " + std::to_string(contributors_) + " contributors of at most " +
                     std::to_string(plan_.MaxSites()) + "; raise `max_sites` of the plan");
  }
  return OkStatus();
}

Status ExactSum::Add(const GridFloats& update, std::int64_t weight) {
  RETURN_IF_ERROR(Admit(1));
  RETURN_IF_ERROR(Fold(plan_, update, weight, levels_));
  ++contributors_;
  total_weight_ += weight;
  return OkStatus();
}

Status ExactSum::AddLevels(std::span<const std::int64_t> levels, std::int64_t weight) {
  RETURN_IF_ERROR(Admit(1));
  RETURN_IF_ERROR(FoldLevels(plan_, levels, weight, levels_));
  ++contributors_;
  total_weight_ += weight;
  return OkStatus();
}

Status ExactSum::AddTwo(const GridFloats& first, std::int64_t first_weight,
                        const GridFloats& second, std::int64_t second_weight) {
  RETURN_IF_ERROR(Admit(2));
  RETURN_IF_ERROR(FoldTwo(plan_, first, first_weight, second, second_weight, levels_));
  contributors_ += 2;
  total_weight_ += first_weight + second_weight;
  return OkStatus();
}

}  // namespace domicile::updates

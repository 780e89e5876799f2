// Property: an accepted plan is the text it prints, keeps every bound of its grids, and is the plan
// of any job file that gives it.
#include <cstddef>
#include <cstdint>
#include <string>

#include "contracts/plan.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name libFuzzer looks for
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace domicile;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const StatusOr<contracts::Plan> plan = contracts::PlanFromText(text);
  if (plan.ok()) {
    DOMICILE_CHECK(contracts::PlanText(*plan) == text);
    const std::int64_t weights = std::int64_t{plan->update.max_sites} * plan->update.max_weight;
    DOMICILE_CHECK(plan->DeltaMaxLevel() <= (contracts::kGridLimit - 1) / weights);
    DOMICILE_CHECK(plan->NumParameters() <= contracts::kMaxParameters);
    DOMICILE_CHECK(!plan->Phases(1).empty());
  }
  const StatusOr<contracts::Plan> from_job = contracts::PlanFromJobFile(text, "job.toml");
  if (from_job.ok()) {
    const StatusOr<contracts::Plan> again = contracts::PlanFromText(contracts::PlanText(*from_job));
    DOMICILE_CHECK(again.ok() && *again == *from_job);
  }
  return 0;
}

#include "site_agent/egress/statistics_release.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "crypto/sha256.h"
#include "updates/encoding.h"

namespace domicile::site_agent {

namespace {

Digest DigestOf(const Json& json) { return crypto::Sha256(AsBytes(PrintJson(json))); }

// Names alone: offsets, ranges, codes and the order are the aggregator's to choose, and none of
// them makes a new question of an old one.
Digest ColumnsOf(const contracts::Plan& plan) {
  std::vector<std::string> names;
  for (const contracts::Feature& feature : plan.schema.features) {
    names.push_back(feature.column);
  }
  std::sort(names.begin(), names.end());
  return DigestOf(Json(JsonArray(names.begin(), names.end())));
}

Digest WordingOf(const contracts::Plan& plan, const std::vector<SiteId>& participants) {
  JsonArray sites;
  for (const SiteId& site : participants) {
    sites.emplace_back(site.text());
  }
  JsonArray grid;
  for (std::size_t i = 0; i < plan.normalisation.offsets.size(); ++i) {
    grid.emplace_back(PrintDouble(plan.normalisation.offsets[i]));
    grid.emplace_back(PrintDouble(plan.normalisation.ranges[i]));
  }
  Json wording;
  wording.Set("participants", Json(std::move(sites)));
  wording.Set("schema", contracts::ToJson(plan.schema));
  wording.Set("scale_bits", plan.normalisation.scale_bits);
  wording.Set("offsets_and_ranges", Json(std::move(grid)));
  return DigestOf(wording);
}

Bytes Flat(const StatisticsNumbers& numbers) {
  Bytes flat = updates::EncodeI64(numbers.count);
  for (const std::vector<std::int64_t>* list : {&numbers.sum, &numbers.sum_squares}) {
    const Bytes more = updates::EncodeI64(*list);
    flat.insert(flat.end(), more.begin(), more.end());
  }
  return flat;
}

// A stored release as the trainer would have answered.
StatusOr<TaskResult> ResultOf(const StatisticsRow& row) {
  if (row.numbers.size() % (3 * sizeof(std::int64_t)) != 0) {
    return Error(StatusCode::kDataLoss, "the stored statistics are damaged");
  }
  const std::size_t inputs = row.numbers.size() / (3 * sizeof(std::int64_t));
  StatisticsNumbers numbers;
  ByteSpan rest = row.numbers;
  for (std::vector<std::int64_t>* list : {&numbers.count, &numbers.sum, &numbers.sum_squares}) {
    for (std::size_t i = 0; i < inputs; ++i) {
      list->push_back(static_cast<std::int64_t>(ReadU64(rest)));
      rest = rest.subspan(sizeof(std::int64_t));
    }
  }
  return TaskResult{.rows = row.rows, .numbers = std::move(numbers)};
}

}  // namespace

StatisticsQuestion QuestionOf(const contracts::Plan& plan, const Digest& commitment,
                              const std::vector<SiteId>& participants) {
  return {.commitment = commitment,
          .columns = ColumnsOf(plan),
          .wording = WordingOf(plan, participants)};
}

StatusOr<EarlierAnswer> FindAnswer(SiteStore& store, const StatisticsQuestion& question) {
  ASSIGN_OR_RETURN(const std::optional<StatisticsRow> before,
                   store.FindStatistics(question.commitment, question.columns));
  if (!before) {
    return EarlierAnswer(NotAskedBefore{});
  }
  if (before->question != question.wording) {
    return EarlierAnswer(policy::Reason::kStatDifference);
  }
  ASSIGN_OR_RETURN(TaskResult result, ResultOf(*before));
  return EarlierAnswer(std::move(result));
}

StatusOr<bool> KeepAnswer(SiteStore& store, const StatisticsQuestion& question,
                          const StatisticsNumbers& numbers, std::uint64_t rows) {
  const StatisticsRow row{.question = question.wording, .numbers = Flat(numbers), .rows = rows};
  ASSIGN_OR_RETURN(const std::optional<StatisticsRow> before,
                   store.FindStatistics(question.commitment, question.columns));
  if (!before) {
    RETURN_IF_ERROR(store.AddStatistics(question.commitment, question.columns, row));
    return true;
  }
  if (*before != row) {
    return Error(StatusCode::kFailedPrecondition,
                 "other statistics of these columns have left already");
  }
  return false;
}

bool IsTooClose(const StatisticsNumbers& numbers, std::uint64_t min_cohort) {
  return numbers.records_apart && *numbers.records_apart < min_cohort;
}

}  // namespace domicile::site_agent

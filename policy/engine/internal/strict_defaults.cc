#include "policy/engine/internal/strict_defaults.h"

#include <chrono>
#include <utility>

namespace domicile::policy::internal {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr std::uint64_t kMinContributors = 5;
constexpr std::uint64_t kMinCohort = 10;
constexpr std::uint64_t kMinBatch = 64;
constexpr std::uint64_t kMinLocalSteps = 5;
constexpr double kClipL2 = 1.0;
constexpr double kNumbersPerRecord = 0.33;
constexpr double kSecaggThreshold = 0.6667;
constexpr double kEpsilonTotal = 8.0;
constexpr double kEpsilonPerRun = 2.0;
constexpr double kDelta = 1e-5;
constexpr int kDay = 24;
constexpr int kYear = 366 * kDay;
constexpr Duration kApprovalMaxAge = hours(90 * kDay);
constexpr Duration kAuditMin = hours(6 * kYear);
constexpr Duration kUpdateMax = hours(30 * kDay);
constexpr Duration kModelReview = hours(kYear);
constexpr Duration kMaxUnwitnessedAge = hours(1);
constexpr Duration kMaxSkew = seconds(30);

class Filler {
 public:
  Filler(const Terms& every, Terms& terms, const Origin& origin)
      : every_(every), terms_(terms), origin_(origin) {}

  template <typename T>
  void Fill(Clauses<T> Terms::*key, T value) {
    if ((every_.*key).empty() && (terms_.*key).empty()) {
      (terms_.*key).Add(std::move(value), origin_);
    }
  }

  // Relays may be where the aggregator may be.
  void FillTransit() {
    if (every_.transit.empty() && terms_.transit.empty()) {
      terms_.transit.Join(every_.aggregator_locations);
      terms_.transit.Join(terms_.aggregator_locations);
    }
  }

 private:
  const Terms& every_;
  Terms& terms_;
  const Origin& origin_;
};

void FillPlaces(Filler& filler, const SiteSection& site) {
  // A country code of the official list always parses.
  const std::set<Area> own = {Area::Of(*Jurisdiction::Parse(site.jurisdiction.Country()))};
  filler.Fill(&Terms::aggregator_locations, own);
  filler.Fill(&Terms::aggregator_control, own);
  filler.Fill(&Terms::model_recipients, own);
  filler.FillTransit();
  filler.Fill(&Terms::evidence, LocationEvidence::kCertificate);
}

void FillContent(Filler& filler) {
  filler.Fill(&Terms::recipients, {});
  filler.Fill(&Terms::update_kinds, {UpdateKind::kDeltaMasked});
  filler.Fill(&Terms::aggregator_view, View::kAggregateOnly);
  filler.Fill(&Terms::derogations, false);
  const auto outputs = AllOf<Output>();
  filler.Fill(&Terms::deny_outputs, std::set<Output>(outputs.begin(), outputs.end()));
  const auto purposes = ProhibitedPurposes();
  filler.Fill(&Terms::deny_purposes, std::set<Purpose>(purposes.begin(), purposes.end()));
}

void FillPrivacy(Filler& filler, bool is_special) {
  filler.Fill(&Terms::min_contributors, kMinContributors);
  filler.Fill(&Terms::min_cohort, kMinCohort);
  filler.Fill(&Terms::min_batch, kMinBatch);
  filler.Fill(&Terms::min_local_steps, kMinLocalSteps);
  filler.Fill(&Terms::clip_l2, kClipL2);
  filler.Fill(&Terms::dp_mode, is_special ? DpMode::kEnforced : DpMode::kNone);
  filler.Fill(&Terms::require_secagg, true);
  filler.Fill(&Terms::secagg_threshold, kSecaggThreshold);
  filler.Fill(&Terms::dp_unit, DpUnit::kPerson);
  filler.Fill(&Terms::sampling, Sampling::kNoneAssumed);
  filler.Fill(&Terms::epsilon_total, kEpsilonTotal);
  filler.Fill(&Terms::epsilon_per_run, kEpsilonPerRun);
  filler.Fill(&Terms::delta, kDelta);
  filler.Fill(&Terms::budget_window, kLifeOfDataset);
}

void FillLimits(Filler& filler) {
  filler.Fill(&Terms::rounds, std::uint64_t{0});
  filler.Fill(&Terms::runs_per_day, std::uint64_t{0});
  filler.Fill(&Terms::update_bytes, std::uint64_t{0});
  filler.Fill(&Terms::released_numbers_per_record, kNumbersPerRecord);
  filler.Fill(&Terms::metrics, std::uint64_t{0});
  filler.Fill(&Terms::params_per_record, kNumbersPerRecord);
}

void FillSections(Filler& filler) {
  filler.Fill(&Terms::sandbox_network, SandboxNetwork::kNone);
  filler.Fill(&Terms::sandbox_profile, SandboxProfile::kNamespaces);
  filler.Fill(&Terms::weights, WeightRule::kEqual);
  filler.Fill(&Terms::approvals,
              {{ApprovalRole::kDpo, {.count = 1}}, {ApprovalRole::kOperator, {.count = 1}}});
  filler.Fill(&Terms::approval_max_age, kApprovalMaxAge);
  filler.Fill(&Terms::audit_min, kAuditMin);
  filler.Fill(&Terms::update_max, kUpdateMax);
  filler.Fill(&Terms::model_review, kModelReview);
  filler.Fill(&Terms::on_withdrawal, ErasureRule::kFlagModels);
  filler.Fill(&Terms::witnesses_min, std::uint64_t{1});
  filler.Fill(&Terms::max_unwitnessed_age, kMaxUnwitnessedAge);
  filler.Fill(&Terms::max_skew, kMaxSkew);
}

}  // namespace

void AddStrictDefaults(const Terms& every, const PolicyDataset& dataset, const SiteSection& site,
                       const Origin& origin, Terms& terms) {
  Filler filler(every, terms, origin);
  FillPlaces(filler, site);
  FillContent(filler);
  FillPrivacy(filler, dataset.IsSpecialCategory());
  FillLimits(filler);
  FillSections(filler);
}

}  // namespace domicile::policy::internal

// What the site itself must have in order, and what the two ends owe each other.
#include <algorithm>

#include "policy/engine/fold.h"
#include "policy/engine/internal/bounds.h"
#include "policy/engine/internal/standing.h"

namespace domicile::policy::internal {
namespace {

// How many persons of a role have approved, and of how many organisations.
struct Count {
  std::uint64_t persons = 0;
  std::set<std::string_view> organisations;
  bool Meets(const WantedApproval& wanted) const {
    return persons >= wanted.count &&
           (!wanted.distinct_org || organisations.size() >= wanted.count);
  }
};

}  // namespace

void Evaluation::CheckSandbox() {
  if (transfer_.sandbox_network) {
    WantAtMost(terms_.sandbox_network, *transfer_.sandbox_network, Reason::kSandboxMissing,
               "the trainer's sandbox has the network", "sandbox.network");
  } else if (transfer_.point != DecisionPoint::kOffer) {
    Deny(Reason::kSandboxMissing, {}, "the trainer has no sandbox",
         "run the trainer on a host that can give it one");
    return;
  }
  if (transfer_.sandbox_profile || transfer_.point != DecisionPoint::kOffer) {
    WantKnownAtLeast(terms_.sandbox_profile, transfer_.sandbox_profile, Reason::kSandboxMissing,
                     "the trainer's sandbox is", "sandbox.profile_min");
  }
}

// A limit on exports in a year is asked where bytes, or the model, leave the country.
void Evaluation::CheckExports() {
  if (terms_.export_subjects_per_year.empty()) {
    return;
  }
  const std::string_view home = std::string_view(transfer_.from.jurisdiction).substr(0, 2);
  const auto is_abroad = [home](const Party& party) {
    return std::string_view(party.jurisdiction).substr(0, 2) != home;
  };
  if (is_abroad(transfer_.to) ||
      std::any_of(transfer_.recipients.begin(), transfer_.recipients.end(), is_abroad)) {
    WantKnownAtMost(terms_.export_subjects_per_year, transfer_.subjects_exported,
                    Reason::kExportSubjects,
                    "persons exported this year, with this:", "limit.export_subjects_per_year");
  }
}

void Evaluation::CheckSite() {
  if (!IsSitePoint()) {
    return;
  }
  WantAtMost(terms_.runs_per_day, transfer_.runs_today, Reason::kLimitRuns,
             "runs on this dataset in 24 hours, with this:", "limit.runs_per_day");
  CheckSandbox();
  CheckExports();
  WantAtLeast(terms_.witnesses_min, std::uint64_t{transfer_.witnesses.value_or(0)},
              Reason::kWitnesses, "the witnesses of the site's log:", "audit.witnesses_min");
  // Without a witness there is no head of theirs whose age could count.
  if (Greatest(terms_.witnesses_min).value_or(0) > 0) {
    WantKnownAtMost(terms_.max_unwitnessed_age, transfer_.unwitnessed_age, Reason::kUnwitnessed,
                    "the age of the last head that was witnessed:", "audit.max_unwitnessed_age");
  }
}

void Evaluation::CheckRetention() {
  const RetentionPromise& promise = transfer_.retention;
  WantKnownAtLeast(terms_.audit_min, promise.audit, Reason::kRetention,
                   "how long the receiver keeps its log:", "retention.audit_min");
  WantKnownAtMost(terms_.update_max, promise.update, Reason::kRetention,
                  "how long the receiver keeps an update:", "retention.update_max");
  WantKnownAtMost(terms_.model_review, promise.model_review, Reason::kRetention,
                  "after how long the receiver reviews a model:", "retention.model_review");
}

void Evaluation::CheckPeer() {
  if (!IsContribution() && transfer_.point != DecisionPoint::kEnrolment &&
      transfer_.point != DecisionPoint::kParentSum) {
    return;
  }
  if (transfer_.point != DecisionPoint::kParentSum) {
    std::optional<Duration> skew;
    if (transfer_.clock_skew) {
      const auto size = std::chrono::abs(*transfer_.clock_skew);
      skew = std::chrono::ceil<std::chrono::seconds>(size);
    }
    WantKnownAtMost(terms_.max_skew, skew, Reason::kClock, "the clocks of the two ends differ by",
                    "time.max_skew");
  }
  CheckRetention();
}

std::vector<Finding> Evaluation::FindMissingApprovals() {
  const std::optional<Duration> max_age = Least(terms_.approval_max_age);
  const Duration skew = Least(terms_.max_skew).value_or(Duration::zero());
  std::map<ApprovalRole, Count> given;
  std::map<ApprovalRole, Count> in_date;
  for (const PresentApproval& approval : transfer_.approvals) {
    const auto count = [&approval](Count& all) {
      all.persons += approval.count;
      if (!approval.organisation.empty()) {
        all.organisations.insert(approval.organisation);
      }
    };
    count(given[approval.role]);
    // One from the future is as good as one whose time is not known.
    if (!max_age || (approval.signed_at && transfer_.now - *approval.signed_at <= *max_age &&
                     *approval.signed_at - transfer_.now <= skew)) {
      count(in_date[approval.role]);
    }
  }
  std::vector<Finding> missing;
  for (const auto& clause : terms_.approvals) {
    Bear(clause);
    for (const auto& [role, wanted] : clause.value) {
      if (in_date[role].Meets(wanted)) {
        continue;
      }
      const bool is_old = given[role].Meets(wanted);
      missing.push_back(
          {.reason = is_old ? Reason::kApprovalExpired : Reason::kApprovalMissing,
           .origin = clause.origin,
           .what = "approvals by `" + std::string(Code(role)) + "`: " +
                   std::to_string(in_date[role].persons) + " of " + std::to_string(wanted.count) +
                   (wanted.distinct_org ? ", each of another organisation" : "") +
                   (is_old ? ", not counting those older than approvals.max_age" : ""),
           .remedy = "have the job approved by that role",
           .hand = Hand::kSite});
    }
  }
  for (const auto& clause : terms_.approval_max_age) {
    Bear(clause);
  }
  return missing;
}

}  // namespace domicile::policy::internal

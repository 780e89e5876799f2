// What the numbers are, what for, who sees how much of them, and by which program they were made.
#include "policy/engine/fold.h"
#include "policy/engine/internal/bounds.h"

namespace domicile::policy::internal {

void Evaluation::CheckKinds() {
  for (const UpdateKind kind : transfer_.kinds) {
    for (const auto& clause : terms_.update_kinds) {
      Bear(clause);
      if (!clause.value.contains(kind)) {
        Deny(
            Reason::kUpdateKind, clause.origin,
            [&] { return Show(kind) + " is not in allow.update_kinds"; },
            [&] {
              return "leave it out of the plan, or add it to allow.update_kinds in " +
                     policy::Print(clause.origin);
            });
      }
    }
  }
}

// What is built anew from numbers on a declared grid holds none of these; what nobody says denies.
void Evaluation::CheckOutputs() {
  const bool is_wanted = IsContribution() || transfer_.point == DecisionPoint::kView ||
                         transfer_.point == DecisionPoint::kParentSum;
  if (!is_wanted) {
    return;
  }
  for (const auto& clause : terms_.deny_outputs) {
    Bear(clause);
    if (clause.value.empty()) {
      continue;
    }
    if (!transfer_.outputs) {
      Deny(Reason::kOutputForbidden, clause.origin,
           "nobody says which forms of output are among the numbers, and deny.outputs forbids some",
           "the gate must state them");
      continue;
    }
    for (const Output output : *transfer_.outputs) {
      if (clause.value.contains(output)) {
        Deny(
            Reason::kOutputForbidden, clause.origin,
            [&] { return Show(output) + " is denied by deny.outputs"; },
            [&] {
              return "only removing it from " + policy::Print(clause.origin) + " would allow it";
            });
      }
    }
  }
}

void Evaluation::CheckPurpose() {
  for (const auto& clause : terms_.purposes) {
    Bear(clause);
    if (!clause.value.contains(transfer_.purpose)) {
      Deny(
          Reason::kPurpose, clause.origin,
          [&] { return Show(transfer_.purpose) + " is not an allowed purpose"; },
          [&] {
            return "add it to the purposes in " + policy::Print(clause.origin) +
                   ", if the law and the consent allow";
          });
    }
  }
}

void Evaluation::CheckView() {
  if (IsModel()) {
    return;  // a model is an aggregate: CheckContributors sees to that
  }
  WantAtMost(terms_.aggregator_view, transfer_.view, Reason::kView, "the receiver would see",
             "allow.aggregator_view");
  const bool is_readable = transfer_.view == View::kPlaintextIndividual;
  for (const auto& clause : terms_.require_secagg) {
    Bear(clause);
    if (clause.value && is_readable) {
      Deny(Reason::kSecureAggregationRequired, clause.origin,
           "single contributions would be readable, and require_secagg is set", [&] {
             return "use secure aggregation, or write require_secagg = false in " +
                    policy::Print(clause.origin);
           });
    }
  }
  if (is_readable || !IsContribution() || !Greatest(terms_.require_secagg).value_or(false)) {
    return;
  }
  for (const auto& clause : terms_.secagg_threshold) {
    Bear(clause);
    // Of two thirds and more, any two groups that could open the sum share honest members.
    if (!(transfer_.plan.secagg_threshold.value_or(0) > clause.value)) {
      Deny(
          Reason::kSecureAggregationRequired, clause.origin,
          [&] {
            return "the share of contributors that can open the sum is " +
                   (transfer_.plan.secagg_threshold ? Show(*transfer_.plan.secagg_threshold)
                                                    : std::string("not known")) +
                   ", not more than require.privacy.secagg_threshold = " + Show(clause.value);
          },
          [&] {
            return "let only a larger share open it, or lower the threshold in " +
                   policy::Print(clause.origin);
          });
    }
  }
}

void Evaluation::CheckProgram() {
  if (!IsContribution()) {
    return;
  }
  const auto want = [this](const auto& clauses, const std::optional<Digest>& digest, Reason reason,
                           Reason by_grant, std::string_view key) {
    for (const auto& clause : clauses) {
      Bear(clause);
      if (!digest || !clause.value.contains(PrintHex(*digest))) {
        Deny(
            clause.origin.source == PolicySource::kGrant ? by_grant : reason, clause.origin,
            [&] {
              return digest ? "its digest is not in " + std::string(key)
                            : "its digest is not known, and " + std::string(key) + " asks for it";
            },
            [&] { return "approve this one in " + policy::Print(clause.origin); });
      }
    }
  };
  want(terms_.models, transfer_.plan_digest, Reason::kModelNotAllowed, Reason::kGrantPlan,
       "allow.models");
  if (IsSitePoint()) {  // what runs at the site, the aggregator has only the site's word for
    want(terms_.trainers, transfer_.trainer_digest, Reason::kTrainerNotAllowed,
         Reason::kGrantTrainer, "allow.trainers");
  }
}

void Evaluation::CheckContent() {
  CheckKinds();
  CheckOutputs();
  CheckPurpose();
  CheckView();
  CheckProgram();
}

}  // namespace domicile::policy::internal

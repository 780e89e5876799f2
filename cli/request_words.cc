#include "cli/request_words.h"

#include <ostream>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cli/plan_words.h"
#include "cli/proquint.h"

namespace domicile::cli {

namespace {

using contracts::GrantBody;

void PrintRequestWords(const GrantBody& body, bool plan_shown, std::ostream& out) {
  out << "approval for site " << body.site.text() << " of federation " << body.federation
      << "\n  job          " << body.job.text() << "\n  plan         " << GroupedHex(body.plan)
      << "\n  trainer      " << GroupedHex(body.trainer) << "\n  first model  "
      << GroupedHex(body.base_model) << "\n  dataset      " << body.dataset.text()
      << ", in the version " << GroupedHex(body.dataset_commitment) << "\n  policy       "
      << GroupedHex(body.effective_policy) << "\n  until        " << PrintTime(body.not_after)
      << "\n  in words     " << SpokenDigest(contracts::GrantDigest(body)) << "\n  at all sites "
      << SpokenDigest(contracts::SharedDigest(body)) << "\n";
  if (!plan_shown) {
    out << "the plan itself was not shown: only its digest is approved (--plan FILE shows it)\n";
  }
}

// What is not as it was when this family of jobs was approved last.
std::vector<std::string> Differences(const Shown& shown) {
  const LastApproved& last = *shown.last;
  const GrantBody& body = shown.body;
  std::vector<std::string> lines = PlanDifferences(last.plan, *shown.plan);
  const auto digest = [&](std::string_view what, const Digest& before, const Digest& now) {
    if (before != now) {
      lines.push_back(std::string(what) + ": another than was approved then");
    }
  };
  digest("trainer", last.body.trainer, body.trainer);
  digest("first model", last.body.base_model, body.base_model);
  digest("dataset version", last.body.dataset_commitment, body.dataset_commitment);
  digest("policy", last.body.effective_policy, body.effective_policy);
  return lines;
}

void PrintDifferences(const Shown& shown, std::ostream& out) {
  if (!shown.last) {
    out << "no job of this family was approved here before\n";
    return;
  }
  const std::vector<std::string> differences = Differences(shown);
  out << "compared with job " << shown.last->body.job.text() << ", approved last: "
      << (differences.empty() ? "all as it was" : "now, and in brackets then") << "\n";
  for (const std::string& line : differences) {
    out << "  " << line << "\n";
  }
}

}  // namespace

void PrintShown(const Shown& shown, std::ostream& out) {
  PrintRequestWords(shown.body, shown.plan.has_value(), out);
  if (shown.plan) {
    PrintPlanWords(*shown.plan, out);
    if (shown.by_folder) {
      PrintDifferences(shown, out);
    }
  }
}

Json ShownFacts(const Shown& shown) {
  const GrantBody& body = shown.body;
  Json facts;
  facts.Set("federation", body.federation);
  facts.Set("site", body.site.text());
  facts.Set("job", body.job.text());
  facts.Set("plan", PrintHex(body.plan));
  facts.Set("digest", PrintHex(contracts::GrantDigest(body)));
  facts.Set("words", SpokenDigest(contracts::GrantDigest(body)));
  facts.Set("words_at_all_sites", SpokenDigest(contracts::SharedDigest(body)));
  facts.Set("not_after", PrintTime(body.not_after));
  facts.Set("plan_shown", shown.plan.has_value());
  if (shown.plan) {
    facts.Set("purpose", shown.plan->purpose);
    facts.Set("leaves", LeavingFacts(*shown.plan));
  }
  if (shown.last) {
    facts.Set("last_approved", shown.last->body.job.text());
    const std::vector<std::string> differences = Differences(shown);
    facts.Set("differences", JsonArray(differences.begin(), differences.end()));
  }
  return facts;
}

}  // namespace domicile::cli

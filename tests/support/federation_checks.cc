// What must hold of a federation's logs, whatever was killed meanwhile.
#include <algorithm>
#include <set>

#include "audit/reconcile.h"
#include "audit/verify.h"
#include "base/file.h"
#include "crypto/note.h"
#include "tests/support/federation_processes.h"

namespace domicile::test {

namespace {

constexpr std::uint64_t kLargestKey = 4096;

Status Broken(const std::string& text) { return Error(StatusCode::kDataLoss, text); }

// The heads of the log `origin` that another party keeps.
StatusOr<std::vector<std::string>> KeptHeads(const std::string& database, std::string_view origin) {
  ASSIGN_OR_RETURN(Database db, Database::Open(database, Database::Mode::kReadOnly));
  ASSIGN_OR_RETURN(Statement rows, db.Prepare("SELECT note FROM log_peer_head WHERE origin = ?"));
  rows.Bind(1, origin);
  std::vector<std::string> notes;
  while (true) {
    ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) {
      return notes;
    }
    notes.push_back(rows.Text(0));
  }
}

Status CheckLog(const std::string& log, const std::string& key_file,
                const std::vector<std::string>& others) {
  ASSIGN_OR_RETURN(std::string key, ReadFile(key_file, kLargestKey));
  key.erase(key.find_last_not_of('\n') + 1);
  audit::VerifyOptions options;
  ASSIGN_OR_RETURN(options.key, crypto::NoteVerifier::Parse(key));
  for (const std::string& other : others) {
    ASSIGN_OR_RETURN(const std::vector<std::string> heads, KeptHeads(other, options.key->name()));
    options.outside_heads.insert(options.outside_heads.end(), heads.begin(), heads.end());
  }
  ASSIGN_OR_RETURN(const audit::VerifyReport report, audit::VerifyLogFile(log, options));
  if (!report.Intact() || report.heads_outside != others.size() || !report.signatures_checked) {
    return Broken("the log `" + log + "` with " + std::to_string(options.outside_heads.size()) +
                  " kept heads:\n" + audit::PrintReport(report));
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::vector<audit::PhaseCommitted>> FederationProcesses::Commits() const {
  ASSIGN_OR_RETURN(const std::vector<audit::Leaf> leaves, Leaves(kAggregator));
  std::vector<audit::PhaseCommitted> commits;
  for (const audit::Leaf& leaf : leaves) {
    if (leaf.event.type() == audit::EventType::kPhaseCommitted) {
      ASSIGN_OR_RETURN(commits.emplace_back(), audit::ReadPhaseCommitted(leaf.event));
    }
  }
  return commits;
}

Status FederationProcesses::CheckLogs(bool crossed) const {
  std::vector<std::string> sites;
  for (const cli::DemoSite& site : cli::HeartSites()) {
    sites.push_back(LogOf(site.name));
    RETURN_IF_ERROR(
        CheckLog(LogOf(site.name), folders_->LogKeyFile(site.name), {LogOf(kAggregator)}));
  }
  RETURN_IF_ERROR(
      CheckLog(LogOf(kAggregator), folders_->LogKeyFile(std::string(kAggregator)), sites));
  for (const cli::DemoSite& site : cli::HeartSites()) {
    ASSIGN_OR_RETURN(const audit::Reconciliation result,
                     audit::ReconcileFiles(LogOf(site.name), LogOf(kAggregator)));
    if (!result.Explained() || (result.Count(audit::MatchClass::kMatched) > 0) != crossed) {
      return Broken("`" + site.name + "`: " + audit::PrintReconciliation(result));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<audit::PhaseCommitted> commits, Commits());
  std::set<audit::PhaseKey> committed;
  for (const audit::PhaseCommitted& commit : commits) {
    audit::PhaseKey phase = commit.key;
    phase.epoch = {};
    std::set<SiteId> counted;
    for (const audit::Contributor& contributor : commit.contributors) {
      counted.insert(contributor.site);
    }
    if (!committed.insert(phase).second || counted.size() != commit.contributors.size()) {
      return Broken("round " + std::to_string(phase.round) + ", " + phase.phase +
                    ": committed twice, or with a site twice");
    }
  }
  return OkStatus();
}

}  // namespace domicile::test

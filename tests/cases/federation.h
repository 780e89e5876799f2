// A federation of the real programs over mutual TLS. Its trainers answer from a script, so that
// what goes into each sum is known to the test, or are the real ones over a few rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "audit/event.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/demo/child.h"
#include "policy/reason.h"
#include "wire/admin_client.h"

namespace domicile::test {

// The value, or the end of the test with what went wrong.
template <typename T>
T Must(StatusOr<T> value) {
  REQUIRE_MESSAGE(value.ok(), Message(value.status()));
  return *std::move(value);
}
inline void Must(const Status& status) { REQUIRE_MESSAGE(status.ok(), Message(status)); }

// With neither a script nor data no program is started: the test speaks for this site itself.
struct CaseSite {
  std::string name;
  std::string jurisdiction;  // in the EEA
  // The trainer's script: the list `tasks` of tests/support/scripted_trainer.cc.
  std::string tasks = {};
  // The real trainer instead, with these files beside its trainer.toml (`dataset.toml` of the alias
  // `numbers` is one), and these tables at the end of that.
  std::map<std::string, std::string> data = {};
  std::string tables = {};
  // What else its policy says than policies/site.policy.toml: each first is replaced.
  std::vector<std::pair<std::string, std::string>> policy = {};
};

// dataset.toml for this table, and the table itself. `more`: lines of `[dataset]` and what follows.
std::map<std::string, std::string> TableData(const std::string& csv, const std::string& more = "");

// What differs between the jobs of the cases: one tensor `w`, starting at zero.
struct CaseJob {
  std::uint64_t numbers = 2;
  std::uint32_t rounds = 1;
  std::uint32_t quorum = 3;
  std::string clip_l2 = "64.0";
  std::uint32_t scale_bits = 20;
};

// The job file: deltas weighted by examples, one attempt at each phase.
std::string JobFile(const CaseJob& job);

// Everything that was started is stopped, and its folder removed, when it is destroyed. One thread
// at a time.
class CaseFederation {
 public:
  // Makes the folders and starts every program; all agents are connected when it returns. `limits`:
  // lines of the aggregator's table `[limits]`.
  static StatusOr<std::unique_ptr<CaseFederation>> Start(std::vector<CaseSite> sites,
                                                         const std::string& limits = "");
  ~CaseFederation();
  CaseFederation(const CaseFederation&) = delete;
  CaseFederation& operator=(const CaseFederation&) = delete;

  // Submits a job and nothing else. Errors: those of the aggregator.
  StatusOr<JobId> Submit(const std::string& job_file);
  // Signs the job as the operator of each site that has an agent.
  Status Approve(const JobId& job);
  Status ApproveAt(const JobId& job, const std::string& site);
  // Ends a site's trainer and starts it again, as its configuration is now. Errors: it does not
  // become ready.
  Status RestartTrainer(const std::string& site);
  // Asks every program to end, agents first, and waits: the logs are whole then.
  void Stop();
  // Every party's log verifies by its key, and every agent's reconciles with the aggregator's, as
  // `domicile audit` says. After Stop. Errors: what it says otherwise.
  Status AuditLogs() const;

  wire::AdminClient& Admin() { return *admin_; }
  // Asks for the job again and again until `test` passes. Errors: kDeadlineExceeded with the last
  // state.
  using JobTest = std::function<bool(const v1::ShowJobResponse&)>;
  StatusOr<v1::ShowJobResponse> WaitUntil(const JobId& job, const JobTest& test);
  StatusOr<v1::ShowJobResponse> WaitForEnd(const JobId& job);
  // Every tensor after a round, as `domicile job model` fetches it; 0: the last committed one.
  using Tensors = std::map<std::string, std::vector<float>>;
  StatusOr<Tensors> AllTensors(const JobId& job, std::uint32_t round = 0);
  // The tensor `w` of a model that has no other.
  StatusOr<std::vector<float>> Model(const JobId& job, std::uint32_t round = 0);

  // The log of `aggregator` or of a site, as it is now.
  StatusOr<std::vector<audit::Leaf>> Leaves(std::string_view party) const;

  std::string LogOf(std::string_view party) const;
  std::string Path(std::string_view name) const;
  std::string TrainerFolder(std::string_view site) const;  // of a real one
  std::string IdentityOf(std::string_view party) const;    // folder
  std::string PolicyOf(std::string_view site) const;       // file
  const std::string& Address() const { return address_; }

 private:
  CaseFederation();
  Status MakeIdentities();
  Status WriteAggregator(const std::string& limits) const;
  Status WriteSite(const CaseSite& site) const;
  Status StartPrograms();
  StatusOr<cli::Child> StartTrainer(const CaseSite& site) const;

  const SystemClock clock_;
  SystemRandom random_;
  std::string folder_;
  std::string address_;
  std::vector<CaseSite> sites_;
  std::map<std::string, std::string> approver_keys_;  // public, by site
  std::unique_ptr<wire::AdminClient> admin_;
  std::optional<cli::Child> aggregator_;
  std::map<std::string, cli::Child> trainers_;  // by site
  std::vector<cli::Child> agents_;
};

// How many of the leaves are of this type, and say so in these text fields.
using Fields = std::map<std::string, std::string>;
std::size_t Count(const std::vector<audit::Leaf>& leaves, audit::EventType type,
                  const Fields& fields = {});

// What the job's state says about a site; kNone also where it is not in the job.
policy::Reason ReasonAt(const v1::ShowJobResponse& job, std::string_view site);

}  // namespace domicile::test

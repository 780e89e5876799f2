// A federation of the real programs over mutual TLS, whose trainers answer from a script: what goes
// into each sum is known to the test.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

struct CaseSite {
  std::string name;
  std::string jurisdiction;  // in the EEA
  // The trainer's script: the list `tasks` of tests/support/scripted_trainer.cc. Empty: neither
  // agent nor trainer is started, the test speaks for this site itself.
  std::string tasks;
};

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

  wire::AdminClient& Admin() { return *admin_; }
  // Asks for the job again and again until `test` passes. Errors: kDeadlineExceeded with the last
  // state.
  using JobTest = std::function<bool(const v1::ShowJobResponse&)>;
  StatusOr<v1::ShowJobResponse> WaitUntil(const JobId& job, const JobTest& test);
  StatusOr<v1::ShowJobResponse> WaitForEnd(const JobId& job);
  // The tensor `w` after a round, as `domicile job model` fetches it; 0: the last committed one.
  StatusOr<std::vector<float>> Model(const JobId& job, std::uint32_t round = 0);

  // The log of `aggregator` or of a site, as it is now.
  StatusOr<std::vector<audit::Leaf>> Leaves(std::string_view party) const;

  std::string Path(std::string_view name) const;
  std::string IdentityOf(std::string_view party) const;  // folder
  std::string PolicyOf(std::string_view site) const;     // file
  const std::string& Address() const { return address_; }

 private:
  CaseFederation();
  Status MakeIdentities();
  Status WriteAggregator(const std::string& limits) const;
  Status WriteSite(const CaseSite& site) const;
  Status StartPrograms();

  const SystemClock clock_;
  SystemRandom random_;
  std::string folder_;
  std::string address_;
  std::vector<CaseSite> sites_;
  std::map<std::string, std::string> approver_keys_;  // public, by site
  std::unique_ptr<wire::AdminClient> admin_;
  std::optional<cli::Child> aggregator_;
  std::vector<cli::Child> trainers_;
  std::vector<cli::Child> agents_;
};

// How many of the leaves are of this type, and say so in these text fields.
using Fields = std::map<std::string, std::string>;
std::size_t Count(const std::vector<audit::Leaf>& leaves, audit::EventType type,
                  const Fields& fields = {});

// What the job's state says about a site; kNone also where it is not in the job.
policy::Reason ReasonAt(const v1::ShowJobResponse& job, std::string_view site);

}  // namespace domicile::test

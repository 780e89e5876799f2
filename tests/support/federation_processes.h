// A whole federation of the real programs, over real mTLS on loopback: the heart example, each
// program started, killed and frozen by itself. The aggregator keeps its port over restarts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "audit/records.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/random.h"
#include "base/status.h"
#include "cli/demo/child.h"
#include "cli/demo/federation.h"
#include "tests/support/log_watch.h"
#include "wire/admin_client.h"

namespace domicile::test {

// What differs from the example's own job.
struct FederationJob {
  std::uint32_t rounds = 6;
  std::uint32_t quorum = 4;
  std::uint32_t deadline_seconds = 600;
  std::uint32_t attempts = 3;
};

// Where the programs under test are, and the files of the example.
std::string ProgramFolder();
std::string ExampleFolder();

// Names of programs: `aggregator`, `agent/cleveland`, `trainer/cleveland`.
inline constexpr std::string_view kAggregator = "aggregator";
std::string AgentOf(std::string_view site);
std::string TrainerOf(std::string_view site);

// A folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string In(std::string_view name) const;
  const std::string& Path() const { return path_; }

 private:
  std::string path_;
};

// Everything that was started is killed, and its folder removed, when it is destroyed. One thread
// at a time. What fails is an error that names the program and shows the end of its output.
class FederationProcesses {
 public:
  static StatusOr<std::unique_ptr<FederationProcesses>> Create(const FederationJob& job = {});
  ~FederationProcesses();
  FederationProcesses(const FederationProcesses&) = delete;
  FederationProcesses& operator=(const FederationProcesses&) = delete;

  // ---- programs ----
  // From now on `other` is started where the federation says `program` (`domicile-agent`).
  void Substitute(const std::string& program, const std::string& other) {
    others_[program] = other;
  }
  Status StartAll();                      // and waits until every agent is connected
  Status Start(const std::string& name);  // and waits until it is ready
  void Kill(const std::string& name);     // SIGKILL, and waits until it is gone
  // Starts it, and waits until it ends by itself. Returns its exit code. Errors: kDeadlineExceeded
  // if it goes on.
  StatusOr<int> RunToExit(const std::string& name);
  // What it has said on standard error, and the last line of it.
  std::string Output(const std::string& name) const;
  std::string LastLine(const std::string& name) const;
  void Reload(const std::string& name) const;  // SIGHUP
  void Freeze(const std::string& name) const;
  void Thaw(const std::string& name) const;
  // SIGTERM to all, agents first; then every database is as its program left it.
  void StopAll();

  // ---- the job ----
  StatusOr<JobId> Submit();
  // Submits the job, signs its grants as each site's operator, and returns when all have accepted.
  StatusOr<JobId> SubmitAndApprove();
  // Freezes a site's trainer when the site is done with a train phase of `round` or later (0: at
  // once), and waits until the agent has handed it the next task. Nothing ends that task until
  // Thaw. Returns its phase.
  StatusOr<audit::PhaseKey> HoldTraining(const std::string& site, std::uint32_t round);
  // Waits for `job.ended`.
  StatusOr<audit::Leaf> WaitForEnd(const JobId& job);
  // Waits until every site knows what became of its last update.
  Status WaitForOutcomes(const audit::PhaseKey& last);

  // ---- what they wrote ----
  const cli::DemoFederation& Folders() const { return *folders_; }
  // Where the aggregator listens, or whoever the test puts in its place.
  const std::string& Address() const { return address_; }
  std::string LogOf(std::string_view party) const;  // `aggregator`, or a site
  StatusOr<std::vector<audit::Leaf>> Leaves(std::string_view party) const;
  // Every log verifies with its key and the heads that the others keep of it, every site's log
  // reconciles with the aggregator's, and no commit counts a site twice or another job's. After
  // StopAll. `crossed`: whether anything did, so that an empty comparison proves nothing where
  // something should have. The Status says what does not hold.
  Status CheckLogs(bool crossed = true) const;
  StatusOr<std::vector<audit::PhaseCommitted>> Commits() const;

 private:
  FederationProcesses(const FederationJob& job) : job_(job) {}
  Status WriteJob() const;
  StatusOr<cli::Child> Launch(const std::string& name) const;
  std::string OutputOf(const std::string& name) const;

  const FederationJob job_;
  TemporaryFolder folder_;
  SystemClock clock_;
  SystemRandom random_;
  std::string address_;
  std::optional<cli::DemoFederation> folders_;
  std::map<std::string, std::string> others_;
  std::map<std::string, cli::Child> running_;
};

}  // namespace domicile::test

#include "tests/support/federation_processes.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/connect.h"

namespace domicile::test {

namespace {

using audit::EventType;

constexpr std::chrono::seconds kReady{60};
constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 20U;
// Below the ports that the kernel gives to clients: nobody takes it while the aggregator is down.
constexpr int kLowestPort = 20'000;
constexpr int kPorts = 12'000;
constexpr int kPortTries = 100;

StatusOr<int> FreePort(Random& random) {
  for (int i = 0; i < kPortTries; ++i) {
    std::array<std::uint8_t, 4> bytes{};
    random.Fill(bytes);
    const int port = kLowestPort + (bytes[0] << 16U | bytes[1] << 8U | bytes[2]) % kPorts;
    const FileHandle probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (bind(probe.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
        0) {
      return port;
    }
  }
  return Error(StatusCode::kUnavailable, "no free port");
}

Status Replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) {
    return Error(StatusCode::kInvalidArgument, "the example does not say `" + from + "`");
  }
  text.replace(at, from.size(), to);
  return OkStatus();
}

std::string EndOf(const std::string& file) {
  const StatusOr<std::string> text = ReadFile(file, kLargestFile);
  constexpr std::size_t kShown = 1500;
  return text.ok() ? "\n" + text->substr(text->size() - std::min(text->size(), kShown)) : "";
}

}  // namespace

std::string ProgramFolder() { return std::string(DOMICILE_BINARY_DIR) + "/bin"; }
std::string ExampleFolder() { return std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples/heart"; }
std::string AgentOf(std::string_view site) { return "agent/" + std::string(site); }
std::string TrainerOf(std::string_view site) { return "trainer/" + std::string(site); }

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  std::string pattern =
      (std::filesystem::temp_directory_path(error) / "domicile-test-XXXXXX").string();
  DOMICILE_CHECK(mkdtemp(pattern.data()) != nullptr);
  path_ = pattern;
}

// Kept where a person who looks into a failure asks for it.
TemporaryFolder::~TemporaryFolder() {
  if (std::getenv("DOMICILE_KEEP") == nullptr) {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
}

std::string TemporaryFolder::In(std::string_view name) const { return JoinPath(path_, name); }

StatusOr<std::unique_ptr<FederationProcesses>> FederationProcesses::Create(
    const FederationJob& job) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<FederationProcesses> made(new FederationProcesses(job));
  ASSIGN_OR_RETURN(const int port, FreePort(made->random_));
  made->address_ = "127.0.0.1:" + std::to_string(port);
  cli::CaseOptions options;
  options.examples = std::string(DOMICILE_SOURCE_DIR) + "/deploy/examples";
  options.rounds = job.rounds;
  ASSIGN_OR_RETURN(cli::DemoCase hearts, cli::HeartCase(options));
  ASSIGN_OR_RETURN(cli::DemoFederation folders,
                   cli::DemoFederation::Create(made->folder_.In("federation"), std::move(hearts),
                                               ProgramFolder(), made->clock_, made->random_));
  made->folders_.emplace(std::move(folders));
  const std::string config = made->folders_->Path("aggregator/aggregator.toml");
  ASSIGN_OR_RETURN(std::string text, ReadFile(config, kLargestFile));
  RETURN_IF_ERROR(Replace(text, "127.0.0.1:0", made->address_));
  RETURN_IF_ERROR(WriteFileDurably(config, AsBytes(text)));
  RETURN_IF_ERROR(made->folders_->WriteAgentConfigs(made->address_));
  RETURN_IF_ERROR(made->WriteJob());
  return made;
}

FederationProcesses::~FederationProcesses() {
  for (auto& [name, child] : running_) {
    kill(child.pid(), SIGKILL);  // also one that is frozen
  }
}

Status FederationProcesses::WriteJob() const {
  ASSIGN_OR_RETURN(std::string text, ReadFile(folders_->JobFile(), kLargestFile));
  RETURN_IF_ERROR(Replace(text, "quorum = 4", "quorum = " + std::to_string(job_.quorum)));
  RETURN_IF_ERROR(Replace(text, "deadline_seconds = 600",
                          "deadline_seconds = " + std::to_string(job_.deadline_seconds) +
                              "\nattempts = " + std::to_string(job_.attempts)));
  return WriteFileDurably(folders_->JobFile(), AsBytes(text));
}

std::string FederationProcesses::OutputOf(const std::string& name) const {
  const std::size_t slash = name.find('/');
  if (slash == std::string::npos) {
    return folders_->Path("aggregator/output.log");
  }
  const std::string site = "sites/" + name.substr(slash + 1);
  return folders_->Path(site + (name.starts_with("agent") ? "/output.log" : "/trainer/start.log"));
}

StatusOr<cli::Child> FederationProcesses::Launch(const std::string& name) const {
  const std::size_t slash = name.find('/');
  std::string program = "domicile-aggregator";
  std::string config = "aggregator/aggregator.toml";
  if (slash != std::string::npos) {
    const bool agent = name.starts_with("agent");
    program = agent ? "domicile-agent" : "domicile-trainer";
    config = "sites/" + name.substr(slash + 1) + (agent ? "/agent.toml" : "/trainer/trainer.toml");
  }
  if (const auto other = others_.find(program); other != others_.end()) {
    program = other->second;
  }
  return cli::Child::Start({folders_->Program(program), "--config", folders_->Path(config)},
                           OutputOf(name));
}

Status FederationProcesses::Start(const std::string& name) {
  ASSIGN_OR_RETURN(cli::Child child, Launch(name));
  const auto [place, fresh] = running_.insert_or_assign(name, std::move(child));
  const StatusOr<std::string> ready = place->second.WaitReady(kReady);
  if (!ready.ok()) {
    kill(place->second.pid(), SIGKILL);
    running_.erase(place);
  }
  return Annotate(ready.status(), "starting `" + name + "`");
}

StatusOr<int> FederationProcesses::RunToExit(const std::string& name) {
  ASSIGN_OR_RETURN(cli::Child child, Launch(name));
  const auto until = std::chrono::steady_clock::now() + kReady;
  siginfo_t state{};
  while (waitid(P_PID, static_cast<id_t>(child.pid()), &state, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      kill(child.pid(), SIGKILL);
      return Error(StatusCode::kDeadlineExceeded,
                   "`" + name + "` goes on:" + EndOf(OutputOf(name)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return child.Wait();
}

std::string FederationProcesses::Output(const std::string& name) const {
  return ReadFile(OutputOf(name), kLargestFile).value_or("");
}

std::string FederationProcesses::LastLine(const std::string& name) const {
  const std::string text = Output(name);
  const std::string lines = text.substr(0, text.find_last_not_of('\n') + 1);
  const std::size_t end = lines.rfind('\n');
  return end == std::string::npos ? lines : lines.substr(end + 1);
}

Status FederationProcesses::StartAll() {
  RETURN_IF_ERROR(Start(std::string(kAggregator)));
  for (const cli::DemoSite& site : cli::HeartSites()) {
    RETURN_IF_ERROR(Start(TrainerOf(site.name)));
    RETURN_IF_ERROR(Start(AgentOf(site.name)));
  }
  return OkStatus();
}

void FederationProcesses::Kill(const std::string& name) {
  cli::Child& child = running_.at(name);
  DOMICILE_CHECK(kill(child.pid(), SIGKILL) == 0);
  const int code = child.Wait();
  DOMICILE_CHECK(code == 128 + SIGKILL);  // else it had ended before: nothing was tested
  running_.erase(name);
}

void FederationProcesses::Reload(const std::string& name) const {
  DOMICILE_CHECK(kill(running_.at(name).pid(), SIGHUP) == 0);
}

void FederationProcesses::Freeze(const std::string& name) const {
  DOMICILE_CHECK(kill(running_.at(name).pid(), SIGSTOP) == 0);
}

void FederationProcesses::Thaw(const std::string& name) const {
  DOMICILE_CHECK(kill(running_.at(name).pid(), SIGCONT) == 0);
}

void FederationProcesses::StopAll() {
  for (const std::string_view kind : {"agent", "trainer", "aggregator"}) {
    for (auto entry = running_.begin(); entry != running_.end();) {
      if (entry->first.starts_with(kind)) {
        kill(entry->second.pid(), SIGCONT);  // a frozen program would not hear the request
        entry = running_.erase(entry);       // its destructor asks and waits
      } else {
        ++entry;
      }
    }
  }
}

StatusOr<JobId> FederationProcesses::Submit() {
  ASSIGN_OR_RETURN(const std::unique_ptr<wire::AdminClient> client,
                   cli::ConnectAsOperator(
                       {.aggregator = address_, .identity = folders_->OperatorIdentity()}, clock_));
  v1::SubmitJobRequest request;
  ASSIGN_OR_RETURN(*request.mutable_job_file(), ReadFile(folders_->JobFile(), kLargestFile));
  request.set_file_name("job.toml");
  ASSIGN_OR_RETURN(const v1::SubmitJobResponse submitted, client->SubmitJob(request));
  return JobId::Parse(submitted.job());
}

StatusOr<JobId> FederationProcesses::SubmitAndApprove() {
  ASSIGN_OR_RETURN(JobId job, Submit());
  for (const cli::DemoSite& site : cli::HeartSites()) {
    LogWatch log(LogOf(site.name));
    RETURN_IF_ERROR(log.WaitFor(IsEvent(EventType::kOfferHeld)).status());
    ASSIGN_OR_RETURN(const bool approved, folders_->Approve(site));
    if (!approved) {
      return Error(StatusCode::kInternal, "`" + site.name + "` holds and asks for nothing");
    }
    RETURN_IF_ERROR(log.WaitFor(IsEvent(EventType::kOfferAccepted)).status());
  }
  return job;
}

StatusOr<audit::PhaseKey> FederationProcesses::HoldTraining(const std::string& site,
                                                            std::uint32_t round) {
  LogWatch log(LogOf(site));
  if (round > 0) {
    RETURN_IF_ERROR(log.WaitFor([round](const audit::Leaf& leaf) {
                         const audit::PhaseKey key = leaf.event.Phase();
                         return leaf.event.type() == EventType::kTrainEnded &&
                                key.phase == "train" && key.round >= round;
                       })
                        .status());
  }
  Freeze(TrainerOf(site));
  // A task that is handed over from now on cannot end; one before may have.
  ASSIGN_OR_RETURN(const std::uint64_t now, log.Size());
  LogWatch later(LogOf(site), now);
  StatusOr<audit::Leaf> started = later.WaitFor(IsEvent(EventType::kTrainStarted));
  if (!started.ok()) {
    Thaw(TrainerOf(site));
    return Annotate(started.status(), "holding the trainer of `" + site + "`");
  }
  return started->event.Phase();
}

StatusOr<audit::Leaf> FederationProcesses::WaitForEnd(const JobId& job) {
  LogWatch log(LogOf(kAggregator));
  StatusOr<audit::Leaf> ended = log.WaitFor([&](const audit::Leaf& leaf) {
    return leaf.event.type() == EventType::kJobEnded && leaf.event.Text("job") == job.text();
  });
  if (ended.ok()) {
    return ended;
  }
  std::string outputs;
  for (const auto& [name, child] : running_) {
    outputs += "\n--- " + name + ":" + EndOf(OutputOf(name));
  }
  return Annotate(ended.status(), "the job did not end" + outputs);
}

Status FederationProcesses::WaitForOutcomes(const audit::PhaseKey& last) {
  for (const cli::DemoSite& site : cli::HeartSites()) {
    LogWatch log(LogOf(site.name));
    RETURN_IF_ERROR(
        Annotate(log.WaitFor(IsEvent(EventType::kUpdateCounted, last)).status(),
                 "the outcome at `" + site.name + "`" + EndOf(OutputOf(AgentOf(site.name)))));
  }
  return OkStatus();
}

std::string FederationProcesses::LogOf(std::string_view party) const {
  return party == kAggregator ? folders_->Path("aggregator/state/aggregator.db")
                              : folders_->Path("sites/" + std::string(party) + "/state/agent.db");
}

StatusOr<std::vector<audit::Leaf>> FederationProcesses::Leaves(std::string_view party) const {
  return ReadLeaves(LogOf(party));
}

}  // namespace domicile::test

#include "tests/cases/federation.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/authority.h"
#include "cli/connect.h"
#include "cli/demo/daemon_files.h"
#include "cli/demo/example_dates.h"
#include "models/safetensors.h"
#include "tests/support/log_watch.h"
#include "tests/support/run_command.h"

namespace domicile::test {

namespace {

using std::chrono::steady_clock;

constexpr std::string_view kFederation = "cases.example";
constexpr std::chrono::seconds kReady{60};
constexpr std::chrono::milliseconds kPoll{5};
constexpr std::uint64_t kLargestPolicy = std::uint64_t{1} << 20U;
constexpr int kCertificateDays = 30;

std::string Program(const std::string& name) {
  return std::string(DOMICILE_BINARY_DIR) + "/bin/" + name;
}

// In force today, whenever the test runs.
StatusOr<std::string> PolicyText(const std::string& file) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ReadFile(std::string(DOMICILE_SOURCE_DIR) + "/tests/cases/policies/" + file, kLargestPolicy));
  return cli::MoveExampleDates(text, SystemClock().Now());
}

Status Write(const std::string& path, const std::string& text) {
  return WriteFileDurably(path, AsBytes(text));
}

Status CopyPolicy(const std::string& file, const std::string& to) {
  ASSIGN_OR_RETURN(const std::string text, PolicyText(file));
  return Write(JoinPath(to, file), text);
}

void ReplaceAll(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
  }
}

// What a trainer says of itself. A script has no walls; it claims those that agents ask for.
std::string ScriptOf(const CaseSite& site) {
  return R"({"trainer":")" + std::string(64, 'a') + R"(","datasets":[{"alias":"numbers",)" +
         R"("commitment":")" + std::string(64, 'b') + R"("}],"sandbox":["network_namespace",)" +
         R"("no_new_privileges","landlock","system_calls","no_core_files"],"landlock_abi":3,)" +
         R"("tasks":)" + site.tasks + "}";
}

bool IsReal(const CaseSite& site) { return !site.data.empty(); }
bool HasAgent(const CaseSite& site) { return IsReal(site) || !site.tasks.empty(); }

}  // namespace

std::string JobFile(const CaseJob& job) {
  return "name = \"A case\"\n"
         "purpose = \"algorithm_testing\"\n"
         "dataset = \"numbers\"\n"
         "recipients = [\"sites\", \"operator\"]\n"
         "[model]\n"
         "kind = \"raw\"\n"
         "[[model.tensor]]\n"
         "name = \"w\"\n"
         "shape = [" +
         std::to_string(job.numbers) +
         "]\n"
         "[training]\n"
         "local_steps = 10\n"
         "batch = 0\n"
         "[rounds]\n"
         "count = " +
         std::to_string(job.rounds) + "\nquorum = " + std::to_string(job.quorum) +
         "\n"
         "deadline_seconds = 120\n"
         "attempts = 1\n"
         "[update]\n"
         "view = \"plain\"\n"
         "weight = \"examples\"\n"
         "max_weight = 1000\n"
         "max_sites = 8\n"
         "clip_l2 = " +
         job.clip_l2 + "\nscale_bits = " + std::to_string(job.scale_bits) + "\nvalue_bits = 32\n";
}

std::map<std::string, std::string> TableData(const std::string& csv, const std::string& more) {
  return {{"table.csv", csv},
          {"dataset.toml",
           "[dataset]\nalias = \"numbers\"\nversion = \"1\"\nfiles = [\"table.csv\"]\n" + more}};
}

CaseFederation::CaseFederation() {
  std::error_code error;
  std::string pattern =
      (std::filesystem::temp_directory_path(error) / "domicile-case-XXXXXX").string();
  DOMICILE_CHECK(mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
}

CaseFederation::~CaseFederation() {
  Stop();
  if (std::getenv("DOMICILE_KEEP") == nullptr) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
}

void CaseFederation::Stop() {
  agents_.clear();
  trainers_.clear();
  aggregator_.reset();
}

StatusOr<std::unique_ptr<CaseFederation>> CaseFederation::Start(std::vector<CaseSite> sites,
                                                                const std::string& limits) {
  // Not make_unique: the constructor is private.
  std::unique_ptr<CaseFederation> made(new CaseFederation());
  made->sites_ = std::move(sites);
  RETURN_IF_ERROR(made->MakeIdentities());
  RETURN_IF_ERROR(made->WriteAggregator(limits));
  RETURN_IF_ERROR(made->StartPrograms());
  ASSIGN_OR_RETURN(made->admin_, cli::ConnectAsOperator({.aggregator = made->address_,
                                                         .identity = made->IdentityOf("operator")},
                                                        made->clock_));
  return made;
}

std::string CaseFederation::Path(std::string_view name) const { return JoinPath(folder_, name); }

std::string CaseFederation::TrainerFolder(std::string_view site) const {
  return Path(std::string(site) + "/trainer");
}

std::string CaseFederation::IdentityOf(std::string_view party) const {
  return Path(std::string(party) + "/identity");
}

std::string CaseFederation::PolicyOf(std::string_view site) const {
  return Path(std::string(site) + "/site.policy.toml");
}

Status CaseFederation::MakeIdentities() {
  ASSIGN_OR_RETURN(cli::Authority authority,
                   cli::Authority::Create(Path("ca"), kFederation, std::chrono::days(60),
                                          clock_.Now(), random_));
  const auto issue = [&](cli::IssueRequest request, const std::string& party) -> Status {
    request.days = kCertificateDays;
    RETURN_IF_ERROR(CreateFolders(Path(party)));
    return authority.Issue(request, IdentityOf(party), clock_.Now(), random_).status();
  };
  cli::IssueRequest aggregator;
  aggregator.role = crypto::Role::kAggregator;
  aggregator.name = "main";
  aggregator.jurisdiction = "IE";
  aggregator.organisation = "federation-office";
  aggregator.hosts = {"127.0.0.1"};
  RETURN_IF_ERROR(issue(aggregator, "aggregator"));
  cli::IssueRequest person;
  person.role = crypto::Role::kOperator;
  person.name = "cases";
  RETURN_IF_ERROR(issue(person, "operator"));
  for (const CaseSite& site : sites_) {
    cli::IssueRequest request;
    request.role = crypto::Role::kSite;
    request.name = site.name;
    request.jurisdiction = site.jurisdiction;
    request.organisation = "laboratory-" + site.name;
    RETURN_IF_ERROR(issue(request, site.name));
    ASSIGN_OR_RETURN(
        const crypto::NoteVerifier key,
        cli::MakeApprover("operator-" + site.name, Path(site.name + "/operator.key"), random_));
    approver_keys_[site.name] = key.Print();
  }
  // Everybody gets the roster that lists everybody.
  std::vector<std::string> parties = {"aggregator", "operator"};
  for (const CaseSite& site : sites_) {
    parties.push_back(site.name);
  }
  for (const std::string& party : parties) {
    RETURN_IF_ERROR(Write(JoinPath(IdentityOf(party), "roster.note"), authority.RosterNote()));
  }
  return OkStatus();
}

Status CaseFederation::WriteAggregator(const std::string& limits) const {
  for (const char* file :
       {"federation.policy.toml", "aggregator.policy.toml", "legal-facts.toml"}) {
    RETURN_IF_ERROR(CopyPolicy(file, Path("aggregator")));
  }
  return Write(Path("aggregator/aggregator.toml"),
               cli::AggregatorTable() + "policy_signers = \"none\"\n" +
                   (limits.empty() ? "" : "[limits]\n" + limits + "\n"));
}

Status CaseFederation::WriteSite(const CaseSite& site) const {
  ASSIGN_OR_RETURN(std::string policy, PolicyText("site.policy.toml"));
  ReplaceAll(policy, "@SITE@", site.name);
  ReplaceAll(policy, "@PLACE@", site.jurisdiction);
  for (const auto& [from, to] : site.policy) {
    if (policy.find(from) == std::string::npos) {
      return Error(StatusCode::kInvalidArgument, "no policy says `" + from + "`");
    }
    ReplaceAll(policy, from, to);
  }
  RETURN_IF_ERROR(Write(PolicyOf(site.name), policy));
  for (const char* file : {"federation.policy.toml", "legal-facts.toml"}) {
    RETURN_IF_ERROR(CopyPolicy(file, Path(site.name)));
  }
  RETURN_IF_ERROR(CreateFolders(Path(site.name + "/grants")));
  RETURN_IF_ERROR(CreateFolders(Path(site.name + "/requests")));
  const std::string approver = cli::ApproverTable(approver_keys_.at(site.name));
  RETURN_IF_ERROR(
      Write(Path(site.name + "/agent.toml"),
            cli::AgentTable(address_, IsReal(site) ? "trainer/trainer.sock" : "trainer.sock") +
                "policy_signers = \"none\"\n\n" + approver));
  if (!IsReal(site)) {
    return Write(Path(site.name + "/script.json"), ScriptOf(site));
  }
  RETURN_IF_ERROR(CreateFolders(TrainerFolder(site.name)));
  for (const auto& [name, text] : site.data) {
    const std::string path = JoinPath(TrainerFolder(site.name), name);
    RETURN_IF_ERROR(CreateFolders(path.substr(0, path.rfind('/'))));
    RETURN_IF_ERROR(Write(path, text));
  }
  return Write(JoinPath(TrainerFolder(site.name), "trainer.toml"),
               "[trainer]\nfederation = \"" + std::string(kFederation) + "\"\nsite = \"" +
                   site.name +
                   "\"\nstate = \"state\"\nsocket = \"trainer.sock\"\n"
                   "datasets = [\"dataset.toml\"]\napprovals = 1\noutput = \"trainer.log\"\n\n" +
                   approver + site.tables);
}

StatusOr<cli::Child> CaseFederation::StartTrainer(const CaseSite& site) const {
  const std::string config = JoinPath(TrainerFolder(site.name), "trainer.toml");
  const std::vector<std::string> command =
      IsReal(site)
          ? std::vector<std::string>{Program("domicile-trainer"), "--config", config}
          : std::vector<std::string>{Program("scripted_trainer"), Path(site.name + "/trainer.sock"),
                                     Path(site.name + "/script.json")};
  ASSIGN_OR_RETURN(cli::Child trainer,
                   cli::Child::Start(command, Path(site.name + "/trainer-start.log")));
  RETURN_IF_ERROR(Annotate(trainer.WaitReady(kReady).status(), "the trainer of " + site.name));
  return trainer;
}

Status CaseFederation::RestartTrainer(const std::string& site) {
  trainers_.erase(site);  // asks, and waits
  for (const CaseSite& known : sites_) {
    if (known.name == site) {
      ASSIGN_OR_RETURN(cli::Child trainer, StartTrainer(known));
      trainers_.emplace(site, std::move(trainer));
      return OkStatus();
    }
  }
  return Error(StatusCode::kInvalidArgument, "there is no site `" + site + "`");
}

Status CaseFederation::StartPrograms() {
  ASSIGN_OR_RETURN(cli::Child aggregator,
                   cli::Child::Start({Program("domicile-aggregator"), "--config",
                                      Path("aggregator/aggregator.toml")},
                                     Path("aggregator/output.log")));
  aggregator_ = std::move(aggregator);
  ASSIGN_OR_RETURN(address_, aggregator_->WaitReady(kReady));
  for (const CaseSite& site : sites_) {
    RETURN_IF_ERROR(WriteSite(site));
    if (!HasAgent(site)) {
      continue;
    }
    ASSIGN_OR_RETURN(cli::Child trainer, StartTrainer(site));
    trainers_.emplace(site.name, std::move(trainer));
    ASSIGN_OR_RETURN(cli::Child agent, cli::Child::Start({Program("domicile-agent"), "--config",
                                                          Path(site.name + "/agent.toml")},
                                                         Path(site.name + "/output.log")));
    agents_.push_back(std::move(agent));
  }
  for (cli::Child& agent : agents_) {
    RETURN_IF_ERROR(Annotate(agent.WaitReady(kReady).status(), "an agent"));
  }
  return OkStatus();
}

StatusOr<JobId> CaseFederation::Submit(const std::string& job_file) {
  v1::SubmitJobRequest request;
  request.set_job_file(job_file);
  request.set_file_name("job.toml");
  ASSIGN_OR_RETURN(const v1::SubmitJobResponse submitted, admin_->SubmitJob(request));
  return JobId::Parse(submitted.job());
}

Status CaseFederation::Approve(const JobId& job) {
  for (const CaseSite& site : sites_) {
    if (HasAgent(site)) {
      RETURN_IF_ERROR(ApproveAt(job, site.name));
    }
  }
  return OkStatus();
}

Status CaseFederation::ApproveAt(const JobId& job, const std::string& site) {
  // The state says so only when the request, which is written first, is there.
  RETURN_IF_ERROR(Annotate(WaitUntil(job,
                                     [&](const v1::ShowJobResponse& shown) {
                                       return ReasonAt(shown, site) ==
                                              policy::Reason::kApprovalMissing;
                                     })
                               .status(),
                           "the request of " + site));
  const std::string request = Path(site + "/requests/" + job.text());
  return cli::RunToEnd({Program("domicile"), "job", "approve", "--request", request + ".request",
                        "--plan", request + ".plan.json", "--key", Path(site + "/operator.key"),
                        "-o", Path(site + "/grants/" + job.text() + ".grant")},
                       Path(site + "/approve.log"))
      .status();
}

StatusOr<v1::ShowJobResponse> CaseFederation::WaitUntil(const JobId& job, const JobTest& test) {
  const auto until = steady_clock::now() + kSoon;
  while (true) {
    ASSIGN_OR_RETURN(v1::ShowJobResponse shown, admin_->ShowJob(job.text()));
    if (test(shown)) {
      return shown;
    }
    if (steady_clock::now() >= until) {
      shown.clear_plan();
      return Error(StatusCode::kDeadlineExceeded, "still: " + shown.ShortDebugString());
    }
    std::this_thread::sleep_for(kPoll);
  }
}

StatusOr<v1::ShowJobResponse> CaseFederation::WaitForEnd(const JobId& job) {
  return WaitUntil(job, [](const v1::ShowJobResponse& shown) {
    return shown.summary().state() == v1::JOB_STATE_DONE ||
           shown.summary().state() == v1::JOB_STATE_FAILED ||
           shown.summary().state() == v1::JOB_STATE_CANCELLED;
  });
}

StatusOr<CaseFederation::Tensors> CaseFederation::AllTensors(const JobId& job,
                                                             std::uint32_t round) {
  Bytes bytes;
  const wire::ByteSink sink = [&bytes](ByteSpan data) {
    bytes.insert(bytes.end(), data.begin(), data.end());
    return OkStatus();
  };
  ASSIGN_OR_RETURN(const auto fetched,
                   admin_->FetchModel(job.text(), round, sink, {.timeout = kReady, .stop = {}}));
  if (const auto* refusal = std::get_if<v1::Refusal>(&fetched)) {
    return Error(StatusCode::kPermissionDenied, refusal->ShortDebugString());
  }
  ASSIGN_OR_RETURN(std::vector<models::NamedTensor> tensors, models::ParseSafetensors(bytes));
  Tensors named;
  for (models::NamedTensor& tensor : tensors) {
    named[tensor.name] = std::move(tensor.values);
  }
  return named;
}

StatusOr<std::vector<float>> CaseFederation::Model(const JobId& job, std::uint32_t round) {
  ASSIGN_OR_RETURN(Tensors tensors, AllTensors(job, round));
  if (tensors.size() != 1 || !tensors.contains("w")) {
    return Error(StatusCode::kDataLoss, "the model has other tensors than the plan");
  }
  return std::move(tensors["w"]);
}

StatusOr<std::vector<audit::Leaf>> CaseFederation::Leaves(std::string_view party) const {
  return ReadLeaves(LogOf(party));
}

std::string CaseFederation::LogOf(std::string_view party) const {
  return Path(party == "aggregator" ? "aggregator/state/aggregator.db"
                                    : std::string(party) + "/state/agent.db");
}

Status CaseFederation::AuditLogs() const {
  const auto audit = [this](std::vector<std::string> arguments) -> Status {
    arguments.insert(arguments.begin(), {Program("domicile"), "audit"});
    ASSIGN_OR_RETURN(const CommandResult result, RunCommand(arguments));
    return result.code == 0 ? OkStatus()
                            : Error(StatusCode::kDataLoss, result.out + "\n" + result.err);
  };
  const auto verify = [&](const std::string& party) {
    return audit({"verify", LogOf(party), "--key", IdentityOf(party) + "/log.pub"});
  };
  RETURN_IF_ERROR(verify("aggregator"));
  for (const CaseSite& site : sites_) {
    if (HasAgent(site)) {
      RETURN_IF_ERROR(verify(site.name));
      RETURN_IF_ERROR(audit({"reconcile", LogOf(site.name), LogOf("aggregator")}));
    }
  }
  return OkStatus();
}

std::size_t Count(const std::vector<audit::Leaf>& leaves, audit::EventType type,
                  const Fields& fields) {
  return CountLeaves(leaves, [&](const audit::Leaf& leaf) {
    return leaf.event.type() == type &&
           std::all_of(fields.begin(), fields.end(), [&](const auto& field) {
             return leaf.event.Text(field.first) == field.second;
           });
  });
}

policy::Reason ReasonAt(const v1::ShowJobResponse& job, std::string_view site) {
  for (const v1::SiteState& state : job.sites()) {
    if (state.site() == site) {
      return policy::ReasonFromNumber(state.reason()).value_or(policy::Reason::kMalformed);
    }
  }
  return policy::Reason::kNone;
}

}  // namespace domicile::test

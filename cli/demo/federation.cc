#include "cli/demo/federation.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cli/authority.h"
#include "cli/demo/daemon_files.h"
#include "cli/demo/example_dates.h"
#include "cli/policy_sign.h"
#include "contracts/plan.h"
#include "crypto/certificate.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestExample = std::uint64_t{4} << 20U;
constexpr std::chrono::seconds kReady{20};
constexpr int kCertificateDays = 30;

Status Write(const std::string& path, const std::string& text) {
  return WriteFileDurably(path, AsBytes(text));
}

std::string QuotedList(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) {
    quoted.push_back(Quoted(text));
  }
  return "[" + Join(quoted, ", ") + "]";
}

}  // namespace

StatusOr<DemoFederation> DemoFederation::Create(const std::string& folder, DemoCase demo_case,
                                                const std::string& programs, const Clock& clock,
                                                Random& random) {
  DemoFederation demo(folder, std::move(demo_case), programs, clock.Now());
  RETURN_IF_ERROR(CreateFolders(folder));
  RETURN_IF_ERROR(demo.MakeIdentities(clock, random));
  RETURN_IF_ERROR(demo.WriteAggregator());
  for (const DemoSite& site : demo.case_.sites) {
    RETURN_IF_ERROR(Annotate(demo.WriteSite(site), "site `" + site.name + "`"));
  }
  RETURN_IF_ERROR(contracts::PlanFromJobFile(demo.case_.job, demo.JobFile()).status());
  RETURN_IF_ERROR(Write(demo.JobFile(), demo.case_.job));
  return demo;
}

std::string DemoFederation::Path(const std::string& name) const { return JoinPath(folder_, name); }

std::string DemoFederation::SitePath(const DemoSite& site, const std::string& name) const {
  return JoinPath(Path("sites/" + site.name), name);
}

std::string DemoFederation::Program(const std::string& name) const {
  return JoinPath(programs_, name);
}

Status DemoFederation::MakeIdentities(const Clock& clock, Random& random) {
  ASSIGN_OR_RETURN(
      Authority authority,
      Authority::Create(Path("ca"), case_.federation, std::chrono::days(365), clock.Now(), random));
  const auto issue = [&](IssueRequest request, const std::string& out) {
    request.days = kCertificateDays;
    return authority.Issue(request, out, clock.Now(), random).status();
  };
  RETURN_IF_ERROR(CreateFolders(Path("aggregator")));
  RETURN_IF_ERROR(issue({.role = crypto::Role::kAggregator,
                         .name = "main",
                         .jurisdiction = "IE",
                         .organisation = "federation-office",
                         .control = {"IE"},
                         .hosts = {"127.0.0.1", "localhost"}},
                        Path("aggregator/identity")));
  RETURN_IF_ERROR(CreateFolders(Path("office")));
  ASSIGN_OR_RETURN(const crypto::NoteVerifier office,
                   MakeApprover("federation-office", Path("office/policies.key"), random));
  office_key_ = office.Print();
  IssueRequest person;
  person.role = crypto::Role::kOperator;
  person.name = "demo";
  RETURN_IF_ERROR(issue(person, OperatorIdentity()));
  for (const DemoSite& site : case_.sites) {
    RETURN_IF_ERROR(CreateFolders(Path("sites/" + site.name)));
    IssueRequest request;
    request.role = crypto::Role::kSite;
    request.name = site.name;
    request.jurisdiction = site.jurisdiction;
    request.organisation = site.organisation;
    request.control = {site.jurisdiction.substr(0, 2)};
    RETURN_IF_ERROR(issue(request, SitePath(site, "identity")));
    RETURN_IF_ERROR(CreateFolders(SitePath(site, "approver")));
    ASSIGN_OR_RETURN(
        const crypto::NoteVerifier key,
        MakeApprover("operator-" + site.name, SitePath(site, "approver/operator.key"), random));
    approver_keys_[site.name] = key.Print();
    ASSIGN_OR_RETURN(const crypto::NoteVerifier officer,
                     MakeApprover("dpo-" + site.name, SitePath(site, "approver/dpo.key"), random));
    officer_keys_[site.name] = officer.Print();
  }
  // Everybody gets the roster that lists everybody.
  const std::string& roster = authority.RosterNote();
  RETURN_IF_ERROR(Write(Path("aggregator/identity/roster.note"), roster));
  RETURN_IF_ERROR(Write(JoinPath(OperatorIdentity(), "roster.note"), roster));
  for (const DemoSite& site : case_.sites) {
    RETURN_IF_ERROR(Write(SitePath(site, "identity/roster.note"), roster));
  }
  return OkStatus();
}

Status DemoFederation::CopyPolicy(const std::string& name, const std::string& to) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadFile(JoinPath(case_.policies, name), kLargestExample));
  return Write(to, MoveExampleDates(text, now_));
}

Status DemoFederation::WriteAggregator() {
  RETURN_IF_ERROR(CreateFolders(Path("aggregator/audit")));
  for (const char* file :
       {"federation.policy.toml", "aggregator.policy.toml", "legal-facts.toml"}) {
    const std::string copy = JoinPath(Path("aggregator"), file);
    RETURN_IF_ERROR(CopyPolicy(file, copy));
    const std::vector<std::string> office = {Path("office/policies.key")};
    RETURN_IF_ERROR(SignPolicyFile(copy, office, now_).status());
  }
  return Write(Path("aggregator/aggregator.toml"), AggregatorTable() +
                                                       "\n"
                                                       "[policy_signers]\n"
                                                       "federation = [" +
                                                       Quoted(office_key_) + "]\naggregator = [" +
                                                       Quoted(office_key_) + "]\nfacts = [" +
                                                       Quoted(office_key_) + "]\n");
}

Status DemoFederation::SignPolicies(const DemoSite& site) const {
  const std::vector<std::string> office = {Path("office/policies.key")};
  const std::vector<std::string> own = {SitePath(site, "approver/dpo.key"),
                                        SitePath(site, "approver/operator.key")};
  RETURN_IF_ERROR(SignPolicyFile(SitePath(site, "site.policy.toml"), own, now_).status());
  for (const char* file : {"federation.policy.toml", "legal-facts.toml"}) {
    RETURN_IF_ERROR(SignPolicyFile(SitePath(site, file), office, now_).status());
  }
  return OkStatus();
}

Status DemoFederation::WriteSite(const DemoSite& site) {
  for (const char* part : {"audit", "grants", "requests", "data/data", "trainer"}) {
    RETURN_IF_ERROR(CreateFolders(SitePath(site, part)));
  }
  RETURN_IF_ERROR(Write(SitePath(site, "site.policy.toml"),
                        MoveExampleDates(case_.site_policies.at(site.name), now_)));
  for (const char* file : {"federation.policy.toml", "legal-facts.toml"}) {
    RETURN_IF_ERROR(CopyPolicy(file, SitePath(site, file)));
  }
  RETURN_IF_ERROR(SignPolicies(site));
  for (const auto& [name, bytes] : case_.files.at(site.name)) {
    RETURN_IF_ERROR(WriteFileDurably(SitePath(site, "data/" + name), bytes));
  }
  return Write(SitePath(site, "trainer/trainer.toml"),
               "[trainer]\n"
               "federation = " +
                   Quoted(case_.federation) +
                   "\n"
                   "site = " +
                   Quoted(site.name) +
                   "\n"
                   "state = \"state\"\n"
                   "socket = \"trainer.sock\"\n"
                   "datasets = [\"../data/dataset.toml\"]\n"
                   "approvals = 1\n"
                   "denials = \"../grants\"\n"
                   "output = \"output.log\"\n\n" +
                   ApproverTable(approver_keys_.at(site.name)) +
                   "[compute]\n"
                   "strategy = \"one_device\"\n"
                   "threads = 1\n"
                   "pretrained = " +
                   QuotedList(case_.pretrained) +
                   "\nvocabularies = " + QuotedList(case_.vocabularies) + "\n");
}

Status DemoFederation::WriteAgentConfig(const DemoSite& site) {
  return Write(SitePath(site, "agent.toml"), AgentTable(address_, "trainer/trainer.sock") +
                                                 "\n"
                                                 "[policy_signers]\n"
                                                 "site = [" +
                                                 Quoted(officer_keys_.at(site.name)) + ", " +
                                                 Quoted(approver_keys_.at(site.name)) +
                                                 "]\nfederation = [" + Quoted(office_key_) +
                                                 "]\nfacts = [" + Quoted(office_key_) + "]\n\n" +
                                                 ApproverTable(approver_keys_.at(site.name)));
}

Status DemoFederation::WriteAgentConfigs(const std::string& address) {
  address_ = address;
  for (const DemoSite& site : case_.sites) {
    RETURN_IF_ERROR(WriteAgentConfig(site));
  }
  return OkStatus();
}

Status DemoFederation::Start() {
  ASSIGN_OR_RETURN(Child aggregator, Child::Start({Program("domicile-aggregator"), "--config",
                                                   Path("aggregator/aggregator.toml")},
                                                  Path("aggregator/output.log")));
  aggregator_ = std::move(aggregator);
  for (const DemoSite& site : case_.sites) {
    ASSIGN_OR_RETURN(Child trainer, Child::Start({Program("domicile-trainer"), "--config",
                                                  SitePath(site, "trainer/trainer.toml")},
                                                 SitePath(site, "trainer/start.log")));
    trainers_.push_back(std::move(trainer));
  }
  ASSIGN_OR_RETURN(const std::string address, aggregator_->WaitReady(kReady));
  RETURN_IF_ERROR(WriteAgentConfigs(address));
  for (Child& trainer : trainers_) {
    RETURN_IF_ERROR(trainer.WaitReady(kReady).status());
  }
  for (const DemoSite& site : case_.sites) {
    ASSIGN_OR_RETURN(Child agent, Child::Start({Program("domicile-agent"), "--config",
                                                SitePath(site, "agent.toml")},
                                               SitePath(site, "output.log")));
    agents_.push_back(std::move(agent));
  }
  for (Child& agent : agents_) {
    RETURN_IF_ERROR(agent.WaitReady(kReady).status());
  }
  return OkStatus();
}

void DemoFederation::Stop() {
  agents_.clear();
  trainers_.clear();
  aggregator_.reset();
}

StatusOr<bool> DemoFederation::Approve(const DemoSite& site) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(SitePath(site, "requests")));
  bool any = false;
  for (const std::string& file : files) {
    if (!file.ends_with(".request")) {
      continue;
    }
    const std::string job = file.substr(0, file.size() - std::string_view(".request").size());
    const std::string grant = SitePath(site, "grants/" + job + ".grant");
    if (FileExists(grant)) {
      continue;
    }
    RETURN_IF_ERROR(RunToEnd({Program("domicile"), "job", "approve", job, "--dir",
                              SitePath(site, ""), "--key", SitePath(site, "approver/operator.key")},
                             SitePath(site, "approver/approve.log"))
                        .status());
    any = true;
  }
  return any;
}

std::vector<std::pair<std::string, std::string>> DemoFederation::Logs() const {
  std::vector<std::pair<std::string, std::string>> logs = {
      {"aggregator", Path("aggregator/state/aggregator.db")}};
  for (const DemoSite& site : case_.sites) {
    logs.emplace_back(site.name, SitePath(site, "state/agent.db"));
  }
  return logs;
}

std::string DemoFederation::LogKeyFile(const std::string& party) const {
  return party == "aggregator" ? Path("aggregator/identity/log.pub")
                               : Path("sites/" + party + "/identity/log.pub");
}

}  // namespace domicile::cli

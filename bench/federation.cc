#include "bench/federation.h"

#include <chrono>
#include <utility>

#include "base/file.h"
#include "cli/authority.h"
#include "cli/demo/daemon_files.h"
#include "crypto/certificate.h"

namespace domicile::bench {

namespace {

constexpr std::string_view kFederation = "bench.example";
constexpr std::chrono::seconds kReady{60};  // a trainer of a large model makes its delta first
constexpr int kCertificateDays = 2;

using cli::Quoted;

Status Write(const std::string& path, const std::string& text) {
  return WriteFileDurably(path, AsBytes(text));
}

std::string Day(WallTime time) { return PrintTime(time).substr(0, 10); }

std::string PolicyHead(const std::string& id, WallTime now) {
  return "[policy]\nschema = 1\nid = " + Quoted(id) +
         "\nversion = 1\nnot_before = " + Day(now - std::chrono::days(1)) +
         "\nexpires = " + Day(now + std::chrono::days(30)) +
         "\nissuer = \"bench\"\nsigners = [\"bench\"]\nthreshold = 1\n\n";
}

constexpr std::string_view kFederationRule = R"([model]
recipients = ["IE"]

[[rule]]
id = "F-1"
allow.aggregator_locations = ["IE"]
allow.aggregator_control = ["IE"]
allow.recipients = ["sites", "operator"]
allow.purposes = ["algorithm_testing"]
require.privacy.min_contributors = 3
)";

constexpr std::string_view kAggregatorRule = R"([retention]
audit_min = "6y"
update_max = "1d"
model_review = "1y"

[[rule]]
id = "A-1"
allow.aggregator_locations = ["IE"]
allow.aggregator_control = ["IE"]
allow.recipients = ["sites", "operator"]
allow.update_kinds = ["delta.plain", "metrics.aggregate", "model.final"]
)";

// Nothing at these sites can leave: their trainers hold no data.
constexpr std::string_view kSiteRule = R"([site]
jurisdiction = "IE"
control_jurisdictions = ["IE"]

[[dataset]]
alias = "bench"
name = "no data at all"
categories = ["none"]
subject_jurisdictions = ["IE"]
regimes = ["eu-gdpr"]
lawful_basis = "A6-1-e"
purpose = ["algorithm_testing"]

[model]
recipients = ["IE"]

[sandbox]
network = "none"

[audit]
witnesses_min = 0

[[rule]]
id = "S-1"
dataset = "bench"
allow.aggregator_locations = ["IE"]
allow.aggregator_control = ["IE"]
allow.recipients = ["sites", "operator"]
require.evidence = "declared"
allow.update_kinds = ["delta.plain", "metrics.aggregate", "model.final"]
allow.aggregator_view = "plaintext_individual"
require.privacy.require_secagg = false
require.privacy.min_contributors = 3
limit.rounds = 100000
limit.runs_per_day = 1
limit.update_bytes = 8589934592
limit.metrics = 4
limit.released_numbers_per_record = 1e12
limit.params_per_record = 1e12
)";

std::string LegalFacts(WallTime now) {
  return "[facts]\nid = \"facts/bench\"\nversion = 1\nexpires = " +
         Day(now + std::chrono::days(30)) +
         "\n\n[[fact]]\nid = \"territory-eu-gdpr\"\nkind = \"territory\"\nregime = \"eu-gdpr\"\n"
         "from = [\"IE\"]\nfrom_date = 2018-07-20\nsource = \"GDPR, Art. 3 and 44\"\n"
         "checked_by = \"bench\"\nchecked_on = " +
         Day(now) + "\n";
}

std::string JobText(const RoundShape& shape) {
  return "name = \"The cost of a round\"\n"
         "purpose = \"algorithm_testing\"\n"
         "dataset = \"bench\"\n"
         "recipients = [\"sites\", \"operator\"]\n\n"
         "[model]\nkind = \"raw\"\n\n"
         "[[model.tensor]]\nname = \"bench.weight\"\nshape = [" +
         std::to_string(shape.parameters) +
         "]\n\n"
         "[training]\nlocal_steps = 10\nbatch = 0\n\n"
         "[rounds]\ncount = " +
         std::to_string(shape.rounds + 1) + "\nquorum = " + std::to_string(shape.sites) +
         "\ndeadline_seconds = 600\n\n"
         "[update]\nview = \"plain\"\nclip_l2 = 1.0\nscale_bits = 24\nvalue_bits = 26\nweight = "
         "\"equal\"\n"
         "max_sites = 16\n";
}

}  // namespace

StatusOr<BenchFederation> BenchFederation::Create(const std::string& folder,
                                                  const std::string& programs,
                                                  const RoundShape& shape, const Clock& clock,
                                                  Random& random) {
  BenchFederation federation(folder, programs, shape);
  RETURN_IF_ERROR(federation.MakeIdentities(clock, random));
  const WallTime now = clock.Now();
  RETURN_IF_ERROR(federation.WritePolicies(federation.Path("aggregator"), now));
  RETURN_IF_ERROR(Write(federation.Path("aggregator/aggregator.toml"),
                        cli::AggregatorTable() + "policy_signers = \"none\"\n"));
  for (std::uint32_t site = 1; site <= shape.sites; ++site) {
    RETURN_IF_ERROR(federation.WriteSite(site, now));
  }
  RETURN_IF_ERROR(Write(federation.JobFile(), JobText(shape)));
  return federation;
}

std::string BenchFederation::Path(const std::string& name) const { return JoinPath(folder_, name); }

std::string BenchFederation::JobFile() const { return Path("operator/job.toml"); }

std::string BenchFederation::Site(std::uint32_t number) const {
  return "site-" + std::to_string(number);
}

std::string BenchFederation::SitePath(std::uint32_t number, const std::string& name) const {
  return JoinPath(Path("sites/" + Site(number)), name);
}

Status BenchFederation::MakeIdentities(const Clock& clock, Random& random) {
  ASSIGN_OR_RETURN(
      cli::Authority authority,
      cli::Authority::Create(Path("ca"), kFederation, std::chrono::days(30), clock.Now(), random));
  const auto issue = [&](cli::IssueRequest request, const std::string& out) {
    request.days = kCertificateDays;
    return authority.Issue(request, out, clock.Now(), random).status();
  };
  RETURN_IF_ERROR(CreateFolders(Path("aggregator")));
  cli::IssueRequest aggregator;
  aggregator.role = crypto::Role::kAggregator;
  aggregator.name = "main";
  aggregator.jurisdiction = "IE";
  aggregator.organisation = "bench-office";
  aggregator.hosts = {"127.0.0.1"};
  RETURN_IF_ERROR(issue(aggregator, Path("aggregator/identity")));
  cli::IssueRequest person;
  person.role = crypto::Role::kOperator;
  person.name = "bench";
  RETURN_IF_ERROR(issue(person, OperatorIdentity()));
  std::vector<std::string> folders = {Path("aggregator/identity"), OperatorIdentity()};
  for (std::uint32_t site = 1; site <= shape_.sites; ++site) {
    for (const char* part : {"trainer", "grants", "requests", "approver"}) {
      RETURN_IF_ERROR(CreateFolders(SitePath(site, part)));
    }
    cli::IssueRequest request;
    request.role = crypto::Role::kSite;
    request.name = Site(site);
    request.jurisdiction = "IE";
    request.organisation = "organisation-" + std::to_string(site);
    RETURN_IF_ERROR(issue(request, SitePath(site, "identity")));
    folders.push_back(SitePath(site, "identity"));
    ASSIGN_OR_RETURN(const crypto::NoteVerifier key,
                     cli::MakeApprover("operator-" + Site(site),
                                       SitePath(site, "approver/operator.key"), random));
    approver_keys_[site] = key.Print();
  }
  for (const std::string& folder : folders) {
    RETURN_IF_ERROR(Write(JoinPath(folder, "roster.note"), authority.RosterNote()));
  }
  return OkStatus();
}

Status BenchFederation::WritePolicies(const std::string& folder, WallTime now) const {
  RETURN_IF_ERROR(
      Write(JoinPath(folder, "federation.policy.toml"),
            PolicyHead("federation/bench-permissive", now) + std::string(kFederationRule)));
  RETURN_IF_ERROR(
      Write(JoinPath(folder, "aggregator.policy.toml"),
            PolicyHead("aggregator/bench-permissive", now) + std::string(kAggregatorRule)));
  return Write(JoinPath(folder, "legal-facts.toml"), LegalFacts(now));
}

Status BenchFederation::WriteSite(std::uint32_t number, WallTime now) const {
  RETURN_IF_ERROR(WritePolicies(SitePath(number, ""), now));
  return Write(SitePath(number, "site.policy.toml"),
               PolicyHead("site/" + Site(number) + "-bench-permissive", now) +
                   std::string(kSiteRule) +
                   "\n[approvals]\nrequired = [{ role = \"operator\", count = 1 }]\nkeys = [" +
                   Quoted("operator-" + Site(number)) + "]\n");
}

Status BenchFederation::WriteAgentConfig(std::uint32_t number) const {
  return Write(SitePath(number, "agent.toml"), cli::AgentTable(address_, "trainer/trainer.sock") +
                                                   "policy_signers = \"none\"\n\n" +
                                                   cli::ApproverTable(approver_keys_.at(number)));
}

Status BenchFederation::Start() {
  ASSIGN_OR_RETURN(cli::Child aggregator,
                   cli::Child::Start({JoinPath(programs_, "domicile-aggregator"), "--config",
                                      Path("aggregator/aggregator.toml")},
                                     Path("aggregator/output.log")));
  aggregator_ = std::move(aggregator);
  for (std::uint32_t site = 1; site <= shape_.sites; ++site) {
    ASSIGN_OR_RETURN(cli::Child trainer,
                     cli::Child::Start({JoinPath(programs_, "domicile-bench-trainer"),
                                        SitePath(site, "trainer/trainer.sock"),
                                        std::to_string(shape_.parameters), std::to_string(site)},
                                       SitePath(site, "trainer/output.log")));
    trainers_.push_back(std::move(trainer));
  }
  ASSIGN_OR_RETURN(address_, aggregator_->WaitReady(kReady));
  for (cli::Child& trainer : trainers_) {
    RETURN_IF_ERROR(trainer.WaitReady(kReady).status());
  }
  for (std::uint32_t site = 1; site <= shape_.sites; ++site) {
    RETURN_IF_ERROR(WriteAgentConfig(site));
    ASSIGN_OR_RETURN(cli::Child agent, cli::Child::Start({JoinPath(programs_, "domicile-agent"),
                                                          "--config", SitePath(site, "agent.toml")},
                                                         SitePath(site, "output.log")));
    agents_.push_back(std::move(agent));
  }
  for (cli::Child& agent : agents_) {
    RETURN_IF_ERROR(agent.WaitReady(kReady).status());
  }
  return OkStatus();
}

Status BenchFederation::Approve() {
  for (std::uint32_t site = 1; site <= shape_.sites; ++site) {
    ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(SitePath(site, "requests")));
    for (const std::string& file : files) {
      if (!file.ends_with(".request")) {
        continue;
      }
      const std::string job = file.substr(0, file.size() - std::string_view(".request").size());
      const std::string grant = SitePath(site, "grants/" + job + ".grant");
      if (FileExists(grant)) {
        continue;
      }
      RETURN_IF_ERROR(cli::RunToEnd({JoinPath(programs_, "domicile"), "job", "approve", "--request",
                                     SitePath(site, "requests/" + file), "--plan",
                                     SitePath(site, "requests/" + job + ".plan.json"), "--key",
                                     SitePath(site, "approver/operator.key"), "-o", grant},
                                    SitePath(site, "approver/approve.log"))
                          .status());
    }
  }
  return OkStatus();
}

void BenchFederation::Stop() {
  agents_.clear();
  trainers_.clear();
  aggregator_.reset();
}

std::vector<pid_t> BenchFederation::Agents() const {
  std::vector<pid_t> pids;
  for (const cli::Child& agent : agents_) {
    pids.push_back(agent.pid());
  }
  return pids;
}

std::vector<pid_t> BenchFederation::Trainers() const {
  std::vector<pid_t> pids;
  for (const cli::Child& trainer : trainers_) {
    pids.push_back(trainer.pid());
  }
  return pids;
}

}  // namespace domicile::bench

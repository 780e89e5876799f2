// `domicile ca`: the federation's authority.
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "cli/authority.h"
#include "cli/command.h"

namespace domicile::cli {

namespace {

using crypto::Role;

constexpr int kAuthorityDays = 3650;
constexpr int kLongestAuthority = 7300;
constexpr int kCertificateDays = 90;
constexpr unsigned kPublicMode = 0644;

// The party a command is about: exactly one of four options.
struct Party {
  std::string site;
  std::string aggregator;
  std::string operator_name;
  std::string auditor;

  void AddTo(CLI::App& command) {
    auto* const group = command.add_option_group("party", "exactly one of");
    group->add_option("--site", site, "a site's name");
    group->add_option("--aggregator", aggregator, "an aggregator's name");
    group->add_option("--operator", operator_name, "a federation operator's name");
    group->add_option("--auditor", auditor, "an auditor's name");
    group->require_option(1);
  }
  Role WhichRole() const {
    return !site.empty()            ? Role::kSite
           : !aggregator.empty()    ? Role::kAggregator
           : !operator_name.empty() ? Role::kOperator
           : !auditor.empty()       ? Role::kAuditor
                                    : Role::kNone;
  }
  std::string Name() const { return site + aggregator + operator_name + auditor; }
};

Json RosterFacts(const contracts::Roster& roster) {
  JsonArray entries;
  for (const contracts::RosterEntry& entry : roster.entries) {
    JsonObject facts;
    facts["role"] = crypto::RoleName(entry.role);
    facts["name"] = entry.name;
    if (!entry.jurisdiction.empty()) {
      facts["jurisdiction"] = entry.jurisdiction;
      facts["organisation"] = entry.organisation;
    }
    entries.emplace_back(std::move(facts));
  }
  JsonObject facts;
  facts["federation"] = roster.federation;
  facts["version"] = roster.version;
  facts["valid_until"] = PrintTime(roster.valid_until);
  facts["entries"] = std::move(entries);
  return facts;
}

void AddInit(CLI::App& ca, Context& context) {
  struct Options {
    std::string federation;
    std::string dir;
    int valid_days = kAuthorityDays;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(ca, "init", "Make a federation's root, issuing key, roster key and roster",
                 "domicile ca init --federation health.example --dir ca");
  command->add_option("--federation", options->federation, "a DNS name in lower case")->required();
  command->add_option("--dir", options->dir, "folder to make; must be absent or empty")->required();
  command->add_option("--valid-days", options->valid_days, "life of root and issuing certificate")
      ->capture_default_str()
      ->check(CLI::Range(1, kLongestAuthority));
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(
        const Authority authority,
        Authority::Create(options->dir, options->federation, std::chrono::days(options->valid_days),
                          context.clock.Now(), context.random));
    if (options->json) {
      PrintFacts(context, RosterFacts(authority.roster()));
    } else {
      context.out << "made the authority of " << options->federation << " in " << options->dir
                  << "\nkeep root.key and roster.key on a machine without a network\n";
    }
    return Exit::kDone;
  });
}

void PrintIssued(Context& context, const Issued& issued, const std::string& out, bool json) {
  if (json) {
    JsonObject facts;
    facts["name"] = PrintSpiffe(issued.name);
    facts["folder"] = out;
    facts["not_after"] = PrintTime(issued.not_after);
    facts["tls_key"] = PrintHex(issued.tls_key);
    facts["roster_version"] = issued.roster_version;
    PrintFacts(context, facts);
    return;
  }
  context.out << PrintSpiffe(issued.name) << "\n  folder " << out << ", until "
              << PrintTime(issued.not_after) << "\n  roster is now version "
              << issued.roster_version
              << "; give it to the others: domicile ca roster --dir DIR -o roster.note\n";
}

void AddIssue(CLI::App& ca, Context& context) {
  struct Options {
    std::string dir;
    std::string out;
    Party party;
    IssueRequest request;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  options->request.days = kCertificateDays;
  CLI::App* const command = AddCommand(
      ca, "issue", "Make a party's identity folder and enter it in the roster",
      "domicile ca issue --dir ca --site charite --jurisdiction DE --org charite -o charite-id\n"
      "  domicile ca issue --dir ca --aggregator main --jurisdiction IE --org fed \\\n"
      "      --host aggregator.health.example 192.0.2.7 -o aggregator-id\n"
      "  domicile ca issue --dir ca --operator alice -o alice-id");
  IssueRequest& request = options->request;
  command->add_option("--dir", options->dir, "the authority's folder")->required();
  options->party.AddTo(*command);
  command->add_option("--jurisdiction", request.jurisdiction, "ISO 3166 code of its place");
  command->add_option("--org", request.organisation, "the organisation that runs it");
  command
      ->add_option("--control", request.control,
                   "codes of owner, parent, key custodian (default: its jurisdiction)")
      ->delimiter(',');
  command->add_option("--host", request.hosts, "DNS names and addresses of an aggregator");
  command->add_option("--days", request.days, "life of the certificate, at most 90")
      ->capture_default_str();
  command->add_flag("--renew", request.renew,
                    "a new TLS key for a party in the roster; its log key stays where it is");
  command->add_option("-o,--out", options->out, "folder to make; must be absent or empty")
      ->required();
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    IssueRequest wanted = options->request;
    wanted.role = options->party.WhichRole();
    wanted.name = options->party.Name();
    ASSIGN_OR_RETURN(Authority authority, Authority::Open(options->dir));
    ASSIGN_OR_RETURN(const Issued issued,
                     authority.Issue(wanted, options->out, context.clock.Now(), context.random));
    PrintIssued(context, issued, options->out, options->json);
    return Exit::kDone;
  });
}

void AddRevoke(CLI::App& ca, Context& context) {
  struct Options {
    std::string dir;
    Party party;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* const command = AddCommand(ca, "revoke", "Remove a party from the roster",
                                       "domicile ca revoke --dir ca --site charite");
  command->add_option("--dir", options->dir, "the authority's folder")->required();
  options->party.AddTo(*command);
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(Authority authority, Authority::Open(options->dir));
    RETURN_IF_ERROR(
        authority.Revoke(options->party.WhichRole(), options->party.Name(), context.clock.Now()));
    if (options->json) {
      PrintFacts(context, RosterFacts(authority.roster()));
    } else {
      context.out << "roster is now version " << authority.roster().version
                  << "; give it to all parties\n";
    }
    return Exit::kDone;
  });
}

void PrintRoster(Context& context, const contracts::Roster& roster) {
  context.out << roster.federation << " version " << roster.version << ", valid until "
              << PrintTime(roster.valid_until) << "\n";
  for (const contracts::RosterEntry& entry : roster.entries) {
    context.out << "  " << crypto::RoleName(entry.role) << " " << entry.name;
    if (!entry.jurisdiction.empty()) {
      context.out << " in " << entry.jurisdiction << ", " << entry.organisation;
    }
    context.out << "\n";
  }
}

void AddRoster(CLI::App& ca, Context& context) {
  struct Options {
    std::string dir;
    std::string out;
    bool renew = false;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      AddCommand(ca, "roster", "Show the signed roster, or write it to a file",
                 "domicile ca roster --dir ca --renew -o roster.note");
  command->add_option("--dir", options->dir, "the authority's folder")->required();
  command->add_option("-o,--out", options->out, "file to write");
  command->add_flag("--renew", options->renew, "sign a new version, valid for 30 days");
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(Authority authority, Authority::Open(options->dir));
    if (options->renew) {
      RETURN_IF_ERROR(authority.RenewRoster(context.clock.Now()));
    }
    if (!options->out.empty()) {
      RETURN_IF_ERROR(WriteFileDurably(options->out, AsBytes(authority.RosterNote()), kPublicMode));
    }
    if (options->json) {
      PrintFacts(context, RosterFacts(authority.roster()));
    } else {
      PrintRoster(context, authority.roster());
    }
    return Exit::kDone;
  });
}

void AddApprover(CLI::App& ca, Context& context) {
  struct Options {
    std::string name;
    std::string out;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      AddCommand(ca, "approver", "Make a person's key for approving jobs at a site",
                 "domicile ca approver --name charite/dpo -o dpo.key");
  command->add_option("--name", options->name, "who it is, such as charite/dpo")->required();
  command->add_option("-o,--out", options->out, "key file to make; the public half goes beside it")
      ->required();
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context]() -> StatusOr<Exit> {
    ASSIGN_OR_RETURN(const crypto::NoteVerifier key,
                     MakeApprover(options->name, options->out, context.random));
    if (options->json) {
      JsonObject facts;
      facts["key_file"] = options->out;
      facts["public_key_file"] = PublicKeyPath(options->out);
      facts["public_key"] = key.Print();
      PrintFacts(context, facts);
    } else {
      context.out << "made " << options->out
                  << "; in agent.toml and in trainer.toml, with the person's role and house:\n"
                  << "  [[approver]]\n  role = \"dpo\"\n  organisation = \"charite\"\n  key = \""
                  << key.Print() << "\"\n";
    }
    return Exit::kDone;
  });
}

}  // namespace

void AddCa(CLI::App& program, Context& context) {
  CLI::App* const ca = AddGroup(program, "ca", "The federation's authority: keys and roster");
  AddInit(*ca, context);
  AddIssue(*ca, context);
  AddRevoke(*ca, context);
  AddRoster(*ca, context);
  AddApprover(*ca, context);
}

}  // namespace domicile::cli

#include "site_agent/egress/policy_keeper.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "audit/event.h"
#include "base/file.h"
#include "base/log.h"
#include "crypto/sha256.h"
#include "policy/analysis/diff.h"
#include "policy/language/facts.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"
#include "site_agent/egress/policy_store.h"

namespace domicile::site_agent {

namespace {

using contracts::PolicyLife;
using contracts::PolicyStep;
using contracts::PolicyVersion;
using policy::Reason;

constexpr std::uint64_t kLargestPolicy = std::uint64_t{1} << 20U;

Digest DigestOf(std::string_view text) { return crypto::Sha256(AsBytes(text)); }

}  // namespace

// One of the three files.
struct PolicyKeeper::Source {
  std::string_view name;
  policy::PolicySource kind = policy::PolicySource::kNone;  // kNone: legal facts
  std::string file;
  const std::vector<crypto::NoteVerifier>& keys;
};

// A file as it lies there, readable and for this place.
struct PolicyKeeper::Read {
  PolicyVersion version;
  policy::PolicyIdentity identity;
  Digest public_digest;  // for leaves: of what others may see of it
  std::optional<std::vector<std::string>> signers;
  Status signature;  // why there are none
};

namespace {

StatusOr<audit::Event> LoadedEvent(std::string_view source, policy::PolicySource kind,
                                   const OwnText& parsed) {
  audit::EventBuilder leaf(kind == policy::PolicySource::kNone ? audit::EventType::kFactsLoaded
                                                               : audit::EventType::kPolicyLoaded);
  if (kind != policy::PolicySource::kNone) {
    leaf.Set("source", source);
  }
  return leaf.Set("digest", parsed.public_digest).Set("version", parsed.identity.version).Build();
}

}  // namespace

StatusOr<PolicyKeeper::Read> PolicyKeeper::ReadFiles(const Source& source) const {
  Read read;
  ASSIGN_OR_RETURN(read.version.text, ReadFile(source.file, kLargestPolicy));
  OwnPolicies scratch;
  ASSIGN_OR_RETURN(const OwnText parsed, TakeOwnText(read.version.text, source.file, source.kind,
                                                     jurisdiction_, scratch));
  read.version.digest = DigestOf(read.version.text);
  read.version.version = parsed.identity.version;
  read.identity = parsed.identity;
  read.public_digest = parsed.public_digest;
  if (config_.policy_signers.none) {
    return read;
  }
  read.signers.emplace();
  const StatusOr<std::string> note = ReadFile(source.file + ".sig", kLargestPolicy);
  if (!note.ok()) {
    read.signature = note.status();
    return read;
  }
  StatusOr<std::vector<std::string>> signers =
      contracts::VerifyPolicySignature(read.version.text, *note, source.keys);
  if (signers.ok()) {
    read.signers = *std::move(signers);
  } else {
    read.signature = signers.status();
  }
  return read;
}

StatusOr<bool> PolicyKeeper::Loosens(const Source& source, const std::string& before,
                                     const std::string& after, const OwnPolicies& own) const {
  if (source.kind == policy::PolicySource::kNone) {
    return false;  // facts are dated statements about the law; their signer answers for them
  }
  ASSIGN_OR_RETURN(const policy::Policy was, policy::ParsePolicy(before, source.file, source.kind));
  ASSIGN_OR_RETURN(const policy::Policy is, policy::ParsePolicy(after, source.file, source.kind));
  std::vector<policy::Policy> others;
  if (source.kind != policy::PolicySource::kSite) {
    ASSIGN_OR_RETURN(const PolicyLife site, books_.With([](SiteStore& store) {
      return FindPolicyLife(store.Db(), "site");
    }));
    if (!site.in_force) {
      return true;
    }
    ASSIGN_OR_RETURN(policy::Policy parsed, policy::ParsePolicy(site.in_force->text, config_.policy,
                                                                policy::PolicySource::kSite));
    others.push_back(std::move(parsed));
  }
  return !policy::analysis::Diff(was, is, others, own.facts, {clock_.Now(), {}}).IsTightening();
}

// What becomes of the file, and of the life of its source.
struct PolicyKeeper::Weighed {
  PolicyLife life;
  contracts::PolicyVerdict verdict;
  Status refused;            // why, if it was
  bool withdrawn = false;    // a version that waited does so no more
  std::optional<Read> read;  // empty: it cannot be read
};

StatusOr<PolicyKeeper::Weighed> PolicyKeeper::Weigh(const Source& source, PolicyLife life,
                                                    const OwnPolicies& own) const {
  Weighed weighed{.life = std::move(life), .verdict = {}, .refused = {}, .read = {}};
  StatusOr<Read> read = ReadFiles(source);
  if (!read.ok()) {
    weighed.verdict.reason = Reason::kRuleInvalid;
    weighed.refused = read.status();
    return weighed;
  }
  bool loosens = true;
  std::optional<policy::PolicyIdentity> before;
  if (const auto& in_force = weighed.life.in_force) {
    OwnPolicies scratch;
    ASSIGN_OR_RETURN(const OwnText parsed,
                     TakeOwnText(in_force->text, source.file, source.kind, jurisdiction_, scratch));
    before = parsed.identity;
    if (read->version.version > in_force->version) {
      // What cannot be compared may allow anything.
      loosens = Loosens(source, in_force->text, read->version.text, own).value_or(true);
    }
  }
  const WallTime now = clock_.Now();
  weighed.verdict = contracts::WeighPolicy(
      weighed.life, read->version, read->signers, loosens,
      contracts::CeremonyOf(before ? &*before : nullptr, read->identity), now);
  if (weighed.verdict.step == PolicyStep::kRefuse) {
    const Reason reason = weighed.verdict.reason;
    const bool by_signature = reason == Reason::kPolicySignature;
    weighed.refused =
        Error(by_signature ? StatusCode::kUnauthenticated : StatusCode::kFailedPrecondition,
              "`" + source.file + "`: " +
                  std::string(by_signature && !read->signature.ok() ? Message(read->signature)
                                                                    : policy::Explain(reason)));
  }
  weighed.withdrawn = weighed.verdict.step == PolicyStep::kSame && weighed.life.waiting.has_value();
  weighed.life = contracts::After(std::move(weighed.life), read->version, weighed.verdict, now);
  weighed.read = *std::move(read);
  return weighed;
}

// The leaf of what happened, in one transaction with the life that follows from it.
Status PolicyKeeper::Keep(const Source& source, const Weighed& weighed,
                          const StatusOr<audit::Event>& loaded) {
  const contracts::PolicyVerdict& verdict = weighed.verdict;
  const std::string name(source.name);
  StatusOr<audit::Event> leaf = loaded;
  bool is_news = told_.insert(name).second;
  switch (verdict.step) {
    case PolicyStep::kRefuse:
      LogError("the file of the " + name + " policy was refused, the version in force stays: " +
               std::string(Message(weighed.refused)));
      RETURN_IF_ERROR(books_
                          .Append(audit::EventBuilder(audit::EventType::kPolicyRefused)
                                      .Set("source", name)
                                      .Set("reason", std::string(policy::Code(verdict.reason)))
                                      .Build())
                          .status());
      break;
    case PolicyStep::kSame:
      is_news = is_news || weighed.withdrawn;
      break;
    case PolicyStep::kAdopt:
      LogInfo("the " + name + " policy is in force from now on: version " +
              std::to_string(weighed.read->version.version));
      is_news = true;
      break;
    case PolicyStep::kWait:
      next_look_ = std::min(next_look_.value_or(verdict.effective_at), verdict.effective_at);
      if (verdict.is_first_sight) {
        LogWarning("the " + name + " policy in `" + source.file +
                   "` allows more than the one in force: it waits until " +
                   PrintTime(verdict.effective_at));
        RETURN_IF_ERROR(Record(source, weighed.life,
                               audit::EventBuilder(audit::EventType::kPolicyWaiting)
                                   .Set("source", name)
                                   .Set("digest", weighed.read->public_digest)
                                   .Set("version", weighed.read->version.version)
                                   .Set("effective_at", verdict.effective_at)
                                   .Build()));
      }
      break;
  }
  return is_news ? Record(source, weighed.life, leaf) : OkStatus();
}

Status PolicyKeeper::Record(const Source& source, const PolicyLife& life,
                            const StatusOr<audit::Event>& leaf) {
  return books_
      .Record([&](SiteStore& store, std::uint64_t) -> StatusOr<audit::Event> {
        RETURN_IF_ERROR(PutPolicyLife(store.Db(), source.name, life));
        return leaf;
      })
      .status();
}

Status PolicyKeeper::LookAt(const Source& source, OwnPolicies& own) {
  ASSIGN_OR_RETURN(PolicyLife life, books_.With([&](SiteStore& store) {
    return FindPolicyLife(store.Db(), source.name);
  }));
  ASSIGN_OR_RETURN(const Weighed weighed, Weigh(source, std::move(life), own));
  if (!weighed.life.in_force) {
    return weighed.refused;
  }
  ASSIGN_OR_RETURN(const OwnText in_force, TakeOwnText(weighed.life.in_force->text, source.file,
                                                       source.kind, jurisdiction_, own));
  return Keep(source, weighed, LoadedEvent(source.name, source.kind, in_force));
}

StatusOr<OwnPolicies> PolicyKeeper::Look() {
  next_look_.reset();
  OwnPolicies own;
  // The facts first: by them the others are compared.
  const Source sources[] = {
      {"facts", policy::PolicySource::kNone, config_.legal_facts, config_.policy_signers.facts},
      {"federation", policy::PolicySource::kFederation, config_.federation_policy,
       config_.policy_signers.federation},
      {"site", policy::PolicySource::kSite, config_.policy, config_.policy_signers.site}};
  for (const Source& source : sources) {
    RETURN_IF_ERROR(LookAt(source, own));
  }
  return own;
}

std::vector<std::string> PolicyFolders(const AgentConfig& config) {
  std::set<std::string> folders;
  for (const std::string& file : {config.policy, config.federation_policy, config.legal_facts}) {
    folders.insert(std::filesystem::path(file).parent_path().string());
  }
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file(error) || !(name.ends_with(".toml") || name.ends_with(".sig")) ||
          name == "agent.toml" || name == "trainer.toml") {
        return {};
      }
    }
    if (error) {
      return {};
    }
  }
  return {folders.begin(), folders.end()};
}

}  // namespace domicile::site_agent

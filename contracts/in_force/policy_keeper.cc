#include "contracts/in_force/policy_keeper.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "contracts/policy_signature.h"
#include "crypto/sha256.h"
#include "policy/analysis/diff.h"
#include "policy/language/facts.h"
#include "policy/language/parse.h"

namespace domicile::contracts {

namespace {

using policy::Reason;

constexpr std::chrono::hours kRenewed{24 * 365};

StatusOr<audit::Event> LoadedEvent(const PolicyFile& source, const PolicyTextFacts& facts) {
  const bool are_facts = source.kind == policy::PolicySource::kNone;
  audit::EventBuilder leaf(are_facts ? audit::EventType::kFactsLoaded
                                     : audit::EventType::kPolicyLoaded);
  if (!are_facts) {
    leaf.Set("source", source.name);
  }
  return leaf.Set("digest", facts.public_digest).Set("version", facts.identity.version).Build();
}

// These sites as if they were in force now, and under whatever facts: under policies that deny all
// for the moment, what allows more would look like what does not.
std::vector<policy::Policy> Standing(std::vector<policy::Policy> sites, WallTime now) {
  for (policy::Policy& site : sites) {
    site.identity.legal_facts.clear();
    site.identity.not_before = std::min(site.identity.not_before, now);
    site.identity.expires = std::max<WallTime>(site.identity.expires, now + kRenewed);
  }
  return sites;
}

// Whether other facts allow these sites anything more, whatever other policies say today.
StatusOr<bool> FactsLoosen(const std::string& file, const std::string& before,
                           const std::string& after, std::vector<policy::Policy> sites,
                           WallTime now) {
  policy::analysis::World old_world{std::move(sites), {}};
  ASSIGN_OR_RETURN(old_world.facts, policy::ParseFacts(before, file));
  policy::analysis::World new_world{old_world.policies, {}};
  ASSIGN_OR_RETURN(new_world.facts, policy::ParseFacts(after, file));
  // That somebody vouches for the same facts for longer allows nothing more, and facts that have
  // expired must not make everything look like news.
  old_world.facts.expires = new_world.facts.expires = WallTime::max();
  // Which file it is does not matter here: that is what the version says.
  old_world.facts.digest = new_world.facts.digest = {};
  return !policy::analysis::Diff(old_world, new_world, {now, {}}).IsTightening();
}

}  // namespace

// A file as it lies there, readable and for this place.
struct PolicyKeeper::Read {
  PolicyVersion version;
  policy::PolicyIdentity identity;
  Digest public_digest;  // for leaves: of what others may see of it
  std::optional<std::vector<std::string>> signers;
  Status signature;  // why there are none
};

StatusOr<std::string> PolicyKeeper::ReadText(const std::string& file) const {
  return options_.read ? options_.read(file) : ReadFile(file, kLargestPolicy);
}

StatusOr<PolicyKeeper::Read> PolicyKeeper::ReadFiles(const PolicyFile& source) const {
  Read read;
  ASSIGN_OR_RETURN(read.version.text, ReadText(source.file));
  PoliciesInForce scratch;
  ASSIGN_OR_RETURN(
      const PolicyTextFacts parsed,
      TakePolicyText(read.version.text, source.file, source.kind, options_.jurisdiction, scratch));
  read.version.digest = crypto::Sha256(AsBytes(read.version.text));
  read.version.version = parsed.identity.version;
  read.identity = parsed.identity;
  read.public_digest = parsed.public_digest;
  if (options_.are_unsigned) {
    return read;
  }
  read.signers.emplace();
  const StatusOr<std::string> note = ReadText(source.file + ".sig");
  if (!note.ok()) {
    read.signature = note.status();
    return read;
  }
  StatusOr<std::vector<std::string>> signers =
      VerifyPolicySignature(read.version.text, *note, source.keys);
  if (signers.ok()) {
    read.signers = *std::move(signers);
  } else {
    read.signature = signers.status();
  }
  return read;
}

StatusOr<bool> PolicyKeeper::Loosens(const PolicyFile& source, const std::string& before,
                                     const std::string& after,
                                     const PoliciesInForce& policies) const {
  const WallTime now = clock_.Now();
  std::vector<policy::Policy> sites;
  if (source.kind != policy::PolicySource::kSite) {
    ASSIGN_OR_RETURN(sites, books_.Sites());
    sites = Standing(std::move(sites), now);
  }
  if (source.kind == policy::PolicySource::kNone) {
    return FactsLoosen(source.file, before, after, std::move(sites), now);
  }
  ASSIGN_OR_RETURN(const policy::Policy was, policy::ParsePolicy(before, source.file, source.kind));
  ASSIGN_OR_RETURN(const policy::Policy is, policy::ParsePolicy(after, source.file, source.kind));
  return !policy::analysis::Diff(was, is, sites, policies.facts, {now, {}}).IsTightening();
}

// What becomes of the file, and of the life of its source.
struct PolicyKeeper::Weighed {
  PolicyLife life;
  PolicyVerdict verdict;
  Status refused;            // why, if it was
  bool withdrawn = false;    // a version that waited does so no more
  std::optional<Read> read;  // empty: it cannot be read
};

StatusOr<PolicyKeeper::Weighed> PolicyKeeper::Weigh(const PolicyFile& source, PolicyLife life,
                                                    const PoliciesInForce& policies) const {
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
    PoliciesInForce scratch;
    ASSIGN_OR_RETURN(
        const PolicyTextFacts parsed,
        TakePolicyText(in_force->text, source.file, source.kind, options_.jurisdiction, scratch));
    before = parsed.identity;
    if (read->version.version > in_force->version) {
      // What cannot be compared may allow anything.
      loosens = Loosens(source, in_force->text, read->version.text, policies).value_or(true);
    }
  }
  const WallTime now = clock_.Now();
  weighed.verdict = WeighPolicy(weighed.life, read->version, read->signers, loosens,
                                CeremonyOf(before ? &*before : nullptr, read->identity), now);
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
  weighed.life = After(std::move(weighed.life), read->version, weighed.verdict, now);
  weighed.read = *std::move(read);
  return weighed;
}

// The leaf of what happened, in one transaction with the life that follows from it.
Status PolicyKeeper::Keep(const PolicyFile& source, const Weighed& weighed,
                          const StatusOr<audit::Event>& loaded) {
  const PolicyVerdict& verdict = weighed.verdict;
  bool is_news = told_.insert(source.name).second;
  switch (verdict.step) {
    case PolicyStep::kRefuse:
      LogError("the file of the " + source.name +
               " policy was refused, the version in force stays: " +
               std::string(Message(weighed.refused)));
      RETURN_IF_ERROR(books_.Record(source.name, weighed.life,
                                    audit::EventBuilder(audit::EventType::kPolicyRefused)
                                        .Set("source", source.name)
                                        .Set("reason", std::string(policy::Code(verdict.reason)))
                                        .Build()));
      break;
    case PolicyStep::kSame:
      is_news = is_news || weighed.withdrawn;
      break;
    case PolicyStep::kAdopt:
      LogInfo("the " + source.name + " policy is in force from now on: version " +
              std::to_string(weighed.read->version.version));
      is_news = true;
      break;
    case PolicyStep::kWait:
      next_look_ = std::min(next_look_.value_or(verdict.effective_at), verdict.effective_at);
      if (verdict.is_first_sight) {
        LogWarning("the " + source.name + " policy in `" + source.file +
                   "` allows more than the one in force: it waits until " +
                   PrintTime(verdict.effective_at));
        RETURN_IF_ERROR(books_.Record(source.name, weighed.life,
                                      audit::EventBuilder(audit::EventType::kPolicyWaiting)
                                          .Set("source", source.name)
                                          .Set("digest", weighed.read->public_digest)
                                          .Set("version", weighed.read->version.version)
                                          .Set("effective_at", verdict.effective_at)
                                          .Build()));
      }
      break;
  }
  return is_news ? books_.Record(source.name, weighed.life, loaded) : OkStatus();
}

Status PolicyKeeper::LookAt(const PolicyFile& source, PoliciesInForce& policies) {
  ASSIGN_OR_RETURN(PolicyLife life, books_.Find(source.name));
  ASSIGN_OR_RETURN(const Weighed weighed, Weigh(source, std::move(life), policies));
  if (!weighed.life.in_force) {
    return weighed.refused;
  }
  ASSIGN_OR_RETURN(const PolicyTextFacts in_force,
                   TakePolicyText(weighed.life.in_force->text, source.file, source.kind,
                                  options_.jurisdiction, policies));
  return Keep(source, weighed, LoadedEvent(source, in_force));
}

StatusOr<PoliciesInForce> PolicyKeeper::Look() {
  next_look_.reset();
  PoliciesInForce policies;
  for (const PolicyFile& source : options_.files) {
    RETURN_IF_ERROR(LookAt(source, policies));
  }
  return policies;
}

}  // namespace domicile::contracts

#include "tests/cases/hostile_site.h"

#include <algorithm>
#include <array>
#include <utility>

#include "aggregator/coordinator/gate.h"
#include "audit/records.h"
#include "base/clock.h"
#include "base/file.h"
#include "contracts/plan.h"
#include "contracts/plan_facts.h"
#include "contracts/roster.h"
#include "crypto/sha256.h"
#include "crypto/tree_digest.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"
#include "tests/support/log_watch.h"
#include "updates/encoding.h"
#include "updates/metrics.h"
#include "updates/plan_sections.h"
#include "updates/update.h"
#include "wire/shared_bytes.h"

namespace domicile::test {

namespace {

constexpr std::uint64_t kLargestPolicy = std::uint64_t{1} << 20U;
constexpr std::chrono::seconds kCall{120};  // a busy machine is no failure

std::string Raw(const Digest& digest) { return {digest.bytes.begin(), digest.bytes.end()}; }

// The update file, as the manifest and the plan want it. A round that is none has no file of its
// own: the one of round 1 goes in its place.
StatusOr<Bytes> MakeUpdate(const contracts::Plan& plan, const Submission& submission,
                           const Digest& plan_digest, const Digest& policy) {
  ASSIGN_OR_RETURN(const std::vector<updates::SectionSpec> specs,
                   updates::SectionsOf(plan, contracts::PhaseKind::kTrain));
  updates::UpdateManifest manifest;
  ASSIGN_OR_RETURN(manifest.job, JobId::Parse(submission.phase.job()));
  ASSIGN_OR_RETURN(manifest.base_model, DigestFromBytes(AsBytes(submission.base_model)));
  manifest.plan = plan_digest;
  manifest.round = std::max(submission.phase.round(), 1U);
  manifest.phase = updates::UpdatePhase::kTrain;
  manifest.policy = policy;
  manifest.weight = submission.weight;
  ASSIGN_OR_RETURN(const updates::MetricSums metrics,
                   updates::SiteMetrics(submission.weight, std::nullopt, std::nullopt));
  const std::array<Bytes, 2> payloads = {updates::EncodeF32(submission.delta),
                                         updates::EncodeI64(updates::PrintMetrics(metrics))};
  for (const updates::SectionSpec& spec : specs) {
    manifest.sections.push_back(spec.info);
  }
  const std::vector<ByteSpan> spans(payloads.begin(), payloads.end());
  return updates::EncodeUpdate(manifest, spans);
}

}  // namespace

// What the aggregator says, kept until it is asked for. Thread-safe.
class HostileSite::Inbox final : public wire::ControlListener {
 public:
  void OnDirective(const v1::Directive& directive) override {
    const MutexLock lock(mutex_);
    directives_.push_back(directive);
    changed_.notify_all();
  }
  void OnClosed(const Status& /*why*/) override {}

  // The first that passes, taken out with those before it; empty if none comes in time.
  std::optional<v1::Directive> Take(const std::function<bool(const v1::Directive&)>& test) {
    const MutexLock lock(mutex_);
    std::optional<v1::Directive> found;
    changed_.wait_for(mutex_, kSoon, [&] {
      while (!found && !directives_.empty()) {
        if (test(directives_.front())) {
          found = directives_.front();
        }
        directives_.pop_front();
      }
      return found.has_value();
    });
    return found;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<v1::Directive> directives_;  // guarded by mutex_
};

HostileSite::HostileSite(contracts::Identity identity, std::string statement, Digest policy,
                         Database db)
    : identity_(std::move(identity)),
      statement_(std::move(statement)),
      policy_(policy),
      db_(std::move(db)),
      inbox_(std::make_unique<Inbox>()) {}

HostileSite::~HostileSite() = default;

StatusOr<std::unique_ptr<HostileSite>> HostileSite::Connect(const CaseFederation& federation,
                                                            const std::string& site) {
  const SystemClock clock;
  ASSIGN_OR_RETURN(
      contracts::Identity identity,
      contracts::LoadIdentity(federation.IdentityOf(site), crypto::Role::kSite, clock.Now()));
  const std::string file = federation.PolicyOf(site);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestPolicy));
  ASSIGN_OR_RETURN(const policy::Policy policy,
                   policy::ParsePolicy(text, file, policy::PolicySource::kSite));
  std::string statement = policy::StatementText(policy);
  aggregator::OwnPolicies theirs;
  for (const auto& [source, name] :
       {std::pair(policy::PolicySource::kNone, "legal-facts.toml"),
        {policy::PolicySource::kFederation, "federation.policy.toml"},
        {policy::PolicySource::kAggregator, "aggregator.policy.toml"}}) {
    const std::string path = federation.Path("aggregator/" + std::string(name));
    ASSIGN_OR_RETURN(const std::string one, ReadFile(path, kLargestPolicy));
    RETURN_IF_ERROR(contracts::TakePolicyText(one, path, source, {}, theirs).status());
  }
  ASSIGN_OR_RETURN(const aggregator::SitePolicy met,
                   aggregator::MeetStatement(theirs, statement, identity.entry));
  ASSIGN_OR_RETURN(Database db, Database::Open(":memory:", Database::Mode::kCreate));
  const std::array<std::string_view, 1> tables = {audit::kLogTables};
  RETURN_IF_ERROR(db.Migrate(1, tables));
  // Not make_unique: the constructor is private.
  std::unique_ptr<HostileSite> made(new HostileSite(std::move(identity), std::move(statement),
                                                    met.digests.effective, std::move(db)));
  ASSIGN_OR_RETURN(audit::Log log, audit::Log::Open(made->db_, *made->identity_.log_key,
                                                    made->clock_, made->random_));
  made->log_.emplace(std::move(log));

  wire::ClientOptions options;
  options.address = federation.Address();
  options.identity = {.key_pem = std::string(made->identity_.files.tls_key.Text()),
                      .chain_pem = made->identity_.files.tls_chain,
                      .roots_pem = made->identity_.files.root};
  options.peer.federation = made->identity_.Name().federation;
  options.peer.roles = {crypto::Role::kAggregator};
  options.peer.rule = [](const crypto::PeerIdentity&) { return OkStatus(); };
  options.clock = &made->clock_;
  ASSIGN_OR_RETURN(made->client_,
                   wire::FederationClient::Connect(options, {.timeout = kCall, .stop = {}}));
  return made;
}

StatusOr<v1::Directive> HostileSite::Greet(const std::string& statement,
                                           const std::function<void(v1::Hello&)>& change) {
  control_ = client_->OpenControl(*inbox_);
  v1::SiteMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_protocol_min(wire::kProtocolVersion);
  hello->set_protocol_max(wire::kProtocolVersion);
  hello->set_policy_schema_min(policy::kPolicySchema);
  hello->set_policy_schema_max(policy::kPolicySchema);
  hello->set_instance(1);
  hello->set_sent_unix_ms(contracts::UnixMilliseconds(SystemClock().Now()));
  hello->add_dataset_aliases("numbers");
  hello->set_policy_statement(statement);
  hello->set_roster(identity_.files.roster_note);
  ASSIGN_OR_RETURN(const audit::SignedHead head, log_->Head());
  hello->set_own_head(head.note);
  if (change) {
    change(*hello);
  }
  RETURN_IF_ERROR(control_->Send(message));
  return WaitFor([](const v1::Directive& directive) {
    return directive.has_welcome() || directive.has_goodbye();
  });
}

StatusOr<v1::Directive> HostileSite::WaitFor(
    const std::function<bool(const v1::Directive&)>& test) {
  std::optional<v1::Directive> found = inbox_->Take(test);
  if (!found) {
    return Error(StatusCode::kDeadlineExceeded, "the aggregator did not say what was waited for");
  }
  return *std::move(found);
}

Status HostileSite::AcceptOffer() {
  ASSIGN_OR_RETURN(const v1::Directive directive,
                   WaitFor([](const v1::Directive& said) { return said.has_job_offer(); }));
  plan_ = directive.job_offer().plan();
  v1::SiteMessage message;
  v1::OfferReply* reply = message.mutable_offer_reply();
  reply->set_job(directive.job_offer().job());
  reply->set_plan_digest(Raw(crypto::Sha256(AsBytes(plan_))));
  reply->set_answer(v1::ANSWER_ACCEPT);
  reply->set_min_contributors(3);
  reply->set_effective_policy_digest(Raw(policy_));
  return control_->Send(message);
}

StatusOr<v1::OpenPhase> HostileSite::WaitForRound(std::uint32_t round) {
  ASSIGN_OR_RETURN(const v1::Directive directive, WaitFor([round](const v1::Directive& said) {
                     return said.has_open_phase() && said.open_phase().phase().round() == round;
                   }));
  return directive.open_phase();
}

Submission HostileSite::Honest(const v1::OpenPhase& open, const std::vector<float>& delta,
                               std::int64_t weight) const {
  return {.phase = open.phase(),
          .epoch = open.epoch(),
          .base_model = open.model().digest(),
          .instance = 1,
          .delta = delta,
          .weight = weight,
          .party = "site/" + identity_.entry.name,
          .place = identity_.entry.jurisdiction};
}

StatusOr<HostileSite::Prepared> HostileSite::Prepare(const Submission& submission) {
  ASSIGN_OR_RETURN(const contracts::Plan plan, contracts::PlanFromText(plan_));
  Prepared prepared;
  ASSIGN_OR_RETURN(prepared.update,
                   MakeUpdate(plan, submission, crypto::Sha256(AsBytes(plan_)), policy_));
  const Digest digest = crypto::TreeDigest(prepared.update);
  audit::EgressDecided decided;
  ASSIGN_OR_RETURN(decided.key.job, JobId::Parse(submission.phase.job()));
  decided.key.round = std::max(submission.phase.round(), 1U);
  decided.key.phase = "train";
  decided.key.epoch = {.starts = submission.epoch.starts(), .attempt = submission.epoch.attempt()};
  decided.transfer = digest;
  decided.kinds = {"delta.plain"};
  decided.dataset = plan.dataset;
  decided.from = {.party = submission.party, .jurisdiction = submission.place};
  decided.to = {.party = "aggregator/main", .jurisdiction = "IE"};
  decided.decision.result = "allow";
  decided.decision.reasons = {"PERMITTED"};
  decided.decision.policies.effective = policy_;
  decided.bytes = prepared.update.size();
  decided.numbers = submission.delta.size();
  decided.capacity_bits = 1;
  decided.grant = digest;
  ASSIGN_OR_RETURN(const audit::Event event, ToEvent(decided));
  ASSIGN_OR_RETURN(const std::uint64_t index, log_->Append(event));
  ASSIGN_OR_RETURN(const audit::ProvenLeaf leaf, log_->LeafWithProof(index));

  v1::UpdateHeader& header = prepared.header;
  *header.mutable_phase() = submission.phase;
  *header.mutable_epoch() = submission.epoch;
  header.mutable_update()->set_digest(Raw(digest));
  header.mutable_update()->set_size_bytes(prepared.update.size());
  header.set_base_model(submission.base_model);
  header.set_effective_policy_digest(Raw(policy_));
  header.set_instance(submission.instance);
  header.mutable_decision()->set_index(leaf.index);
  header.mutable_decision()->set_leaf(leaf.leaf);
  for (const Digest& node : leaf.proof) {
    header.mutable_decision()->add_proof(Raw(node));
  }
  header.mutable_decision()->set_head(leaf.head.note);
  return prepared;
}

StatusOr<wire::SubmitAnswer> HostileSite::Send(const Prepared& prepared) {
  return client_->SubmitUpdate(prepared.header, wire::ShareBytes(prepared.update), {},
                               {.timeout = kCall, .stop = {}});
}

StatusOr<wire::SubmitAnswer> HostileSite::Submit(const Submission& submission) {
  ASSIGN_OR_RETURN(const Prepared prepared, Prepare(submission));
  return Send(prepared);
}

Status HostileSite::Fetch(const v1::BlobRef& model) {
  Bytes bytes(model.size_bytes());
  std::uint64_t have = 0;
  return client_->FetchBlob(model, bytes, have, {.timeout = kCall, .stop = {}});
}

}  // namespace domicile::test

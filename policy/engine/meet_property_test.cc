// The laws of the meet, on random policies and transfers from a small world.
#include <array>
#include <cstdint>
#include <memory>

#include <doctest/doctest.h>

#include "policy/engine/decide.h"
#include "policy/engine/random_policies.h"

namespace domicile::policy {
namespace {

using FactsPointer = std::shared_ptr<const Facts>;

// Each seed draws its own policies: a failure names the seed. In all the tests together, more than
// a million policies are drawn.
// A sanitizer makes each step many times slower, and looks for other faults: there, a share.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kShare = 50;
#else
constexpr std::uint64_t kShare = 1;
#endif
constexpr std::uint64_t kLawSeeds = 160'000 / kShare;       // 3 policies each
constexpr std::uint64_t kMonotoneSeeds = 140'000 / kShare;  // 4 policies each
static_assert(kShare > 1 || 3 * kLawSeeds + 4 * kMonotoneSeeds >= 1'000'000);
constexpr std::uint64_t kTextSeeds = 1'000 / kShare;
constexpr std::uint64_t kDenySeeds = 5'000 / kShare;

int Rank(Result result) { return static_cast<int>(result); }

PolicySource AnySource(Maker& maker) {
  return maker.Pick<PolicySource>(
      {PolicySource::kFederation, PolicySource::kAggregator, PolicySource::kSite});
}

// A request that a policy which allows anything is likely to allow.
Transfer Modest(Maker& maker) {
  Transfer transfer = maker.MakeTransfer();
  transfer.point = maker.Pick<DecisionPoint>({DecisionPoint::kIngress, DecisionPoint::kEgress});
  transfer.via.reset();
  transfer.transit.clear();
  transfer.to = {PartyRole::kAggregator,        "hub", "hub", "DE", {"DE"},
                 LocationEvidence::kCertificate};
  transfer.recipients = {};
  transfer.kinds = {UpdateKind::kDeltaMasked};
  transfer.view = View::kAggregateOnly;
  transfer.outputs = std::set<Output>{};
  transfer.plan.local_steps = 100;
  transfer.plan.max_sites = 10;
  transfer.plan.dp_mode = DpMode::kNone;
  transfer.plan.secagg_threshold = 0.9;
  transfer.clock_skew = std::chrono::milliseconds(0);
  transfer.retention = {.audit = std::chrono::hours(24 * 366 * 100),
                        .update = std::chrono::seconds(1),
                        .model_review = std::chrono::seconds(1)};
  return transfer;
}

// A site that allows the modest request, to meet the policies that cannot say yes alone.
Effective Generous(const FactsPointer& facts) {
  Maker maker(0);
  Policy site = maker.MakePolicy(PolicySource::kSite, 0);
  site.identity.not_before = kNow - std::chrono::hours(24);
  site.identity.expires = kNow + std::chrono::hours(24);
  Rule rule;
  rule.id = "all";
  rule.aggregator_locations = Areas({"DE"});
  rule.aggregator_control = Areas({"DE"});
  rule.min_contributors = 3;
  rule.min_batch = 1;
  rule.rounds = 10;
  rule.runs_per_day = 1;
  rule.update_bytes = 1000;
  rule.metrics = 5;
  rule.released_numbers_per_record = 10;
  site.rules = {rule};
  site.site->jurisdiction = *Jurisdiction::Parse("DE");
  site.datasets[0].alias = kAlias;
  site.datasets[0].subjects_count = SubjectsCount::kBelow100;
  site.approvals.reset();
  return FromPolicy(site, facts);
}

// Counts policies that allow something: alone, or, where only a site can say yes, with one that
// does. Every fourth policy is asked.
class Share {
 public:
  explicit Share(const FactsPointer& facts) : generous_(Generous(facts)) {}

  void Count(const Effective& one, PolicySource source, const Transfer& modest) {
    if (drawn_++ % kAskOneIn != 0) {
      return;
    }
    ++asked_;
    const Result result =
        source == PolicySource::kSite ? Answer(one, modest) : Answer(Meet(one, generous_), modest);
    allowing_ += result == Result::kAllow ? 1 : 0;
  }
  std::uint64_t drawn() const { return drawn_; }
  double share() const { return static_cast<double>(allowing_) / static_cast<double>(asked_); }

 private:
  static constexpr std::uint64_t kAskOneIn = 4;

  Effective generous_;
  std::uint64_t drawn_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t allowing_ = 0;
};

}  // namespace

TEST_CASE("Meet: commutative, associative and idempotent") {
  const FactsPointer facts = World();
  Share share(facts);
  std::uint64_t broken = 0;
  std::uint64_t first_broken = 0;
  for (std::uint64_t seed = 1; seed <= kLawSeeds; ++seed) {
    Maker maker(seed);
    const Transfer modest = Modest(maker);
    std::array<Effective, 3> made;
    for (int number = 0; number < 3; ++number) {
      const PolicySource source = AnySource(maker);
      made[static_cast<std::size_t>(number)] = FromPolicy(maker.MakePolicy(source, number), facts);
      share.Count(made[static_cast<std::size_t>(number)], source, modest);
    }
    const auto& [a, b, c] = made;
    const Effective ab = Meet(a, b);
    const bool holds = ab == Meet(b, a) && Meet(ab, c) == Meet(a, Meet(b, c)) && Meet(a, a) == a;
    broken += holds ? 0 : 1;
    first_broken = holds || first_broken != 0 ? first_broken : seed;
  }
  CAPTURE(first_broken);
  CHECK(broken == 0);
  CHECK(share.drawn() == 3 * kLawSeeds);
  CHECK(share.share() >= 0.2);
  MESSAGE("policies: " << share.drawn() << ", of which allow something: " << share.share());
}

TEST_CASE("Meet: one more policy never turns deny into hold or hold into allow") {
  const FactsPointer facts = World();
  Share share(facts);
  std::uint64_t broken = 0;
  std::uint64_t first_broken = 0;
  std::uint64_t tightened = 0;
  std::array<std::uint64_t, 3> count{};
  for (std::uint64_t seed = 1; seed <= kMonotoneSeeds; ++seed) {
    Maker maker(~seed);
    const Transfer modest = Modest(maker);
    const auto make = [&](PolicySource source, int number) {
      const Effective one = FromPolicy(maker.MakePolicy(source, number), facts);
      share.Count(one, source, modest);
      return one;
    };
    Effective base = make(PolicySource::kFederation, 1);
    base = Meet(base, make(PolicySource::kAggregator, 2));
    base = Meet(base, make(PolicySource::kSite, 3));
    const Effective more = Meet(base, make(AnySource(maker), 4));
    const Transfer transfer = maker.Chance(2) ? modest : maker.MakeTransfer();
    const Result before = Answer(base, transfer);
    const Result after = Answer(more, transfer);
    ++count[static_cast<std::size_t>(Rank(before))];
    tightened += Rank(after) < Rank(before) ? 1 : 0;
    const bool holds = Rank(after) <= Rank(before);
    broken += holds ? 0 : 1;
    first_broken = holds || first_broken != 0 ? first_broken : seed;
  }
  CAPTURE(first_broken);
  CHECK(broken == 0);
  CHECK(share.drawn() == 4 * kMonotoneSeeds);
  CHECK(share.share() >= 0.2);
  MESSAGE("deny " << count[0] << ", hold " << count[1] << ", allow " << count[2] << ", tightened "
                  << tightened << ", policies that allow something: " << share.share());
  // The generators reach every answer, and a tighter one after an extra policy.
  CHECK(count[0] > kMonotoneSeeds / 20);
  CHECK(count[1] > kMonotoneSeeds / 200);
  CHECK(count[2] > kMonotoneSeeds / 20);
  CHECK(tightened > kMonotoneSeeds / 50);
}

TEST_CASE("Meet: a grant only narrows, and only its own run is left") {
  const FactsPointer facts = World();
  std::uint64_t allowed = 0;
  for (std::uint64_t seed = 1; seed <= kDenySeeds; ++seed) {
    CAPTURE(seed);
    Maker maker(seed * 7919);
    const Effective base = FromPolicy(maker.MakePolicy(PolicySource::kSite, 1), facts);
    GrantFacts grant{.id = "g",
                     .dataset = kAlias,
                     .plan = std::string(64, '0'),
                     .trainer = std::string(64, '0'),
                     .not_after = kNow + std::chrono::hours(1)};
    Transfer transfer = maker.Chance(2) ? Modest(maker) : maker.MakeTransfer();
    const Result before = Answer(base, transfer);
    const Result with = Answer(WithGrant(base, grant), transfer);
    CHECK(with == before);  // it is for this very plan and trainer
    allowed += with == Result::kAllow ? 1 : 0;
    grant.plan = std::string(64, 'b');
    transfer.point = DecisionPoint::kIngress;
    CHECK(Answer(WithGrant(base, grant), transfer) == Result::kDeny);
    grant.not_after = kNow;
    CHECK(Answer(WithGrant(base, grant), transfer) == Result::kDeny);
  }
  CHECK(allowed > kDenySeeds / 20);
}

TEST_CASE("Meet: the text that both ends compare does not depend on the order") {
  const FactsPointer facts = World();
  for (std::uint64_t seed = 1; seed <= kTextSeeds; ++seed) {
    CAPTURE(seed);
    Maker maker(seed);
    const Effective a = FromPolicy(maker.MakePolicy(AnySource(maker), 1), facts);
    const Effective b = FromPolicy(maker.MakePolicy(AnySource(maker), 2), facts);
    const Effective c = FromPolicy(maker.MakePolicy(AnySource(maker), 3), facts);
    const std::string text = Meet(Meet(a, b), c).Text();
    REQUIRE(text == Meet(Meet(c, a), b).Text());
    REQUIRE(text == Meet(Meet(b, b), Meet(c, a)).Text());
  }
}

TEST_CASE("Answer: the same result as Decide, whatever is asked") {
  const FactsPointer facts = World();
  for (std::uint64_t seed = 1; seed <= kDenySeeds; ++seed) {
    CAPTURE(seed);
    Maker maker(seed);
    const Effective effective = Meet(FromPolicy(maker.MakePolicy(AnySource(maker), 1), facts),
                                     FromPolicy(maker.MakePolicy(PolicySource::kSite, 2), facts));
    const Transfer transfer = maker.MakeTransfer();
    REQUIRE(Answer(effective, transfer) == Decide(effective, transfer).result);
  }
}

TEST_CASE("Decide: never allows what a deny rule of any source matches") {
  const FactsPointer facts = World();
  for (std::uint64_t seed = 1; seed <= kDenySeeds; ++seed) {
    CAPTURE(seed);
    Maker maker(seed);
    std::array<Policy, 3> policies = {maker.MakePolicy(PolicySource::kFederation, 1),
                                      maker.MakePolicy(PolicySource::kAggregator, 2),
                                      maker.MakePolicy(PolicySource::kSite, 3)};
    const Transfer transfer = maker.Chance(2) ? Modest(maker) : maker.MakeTransfer();
    Rule deny;
    deny.id = "deny";
    switch (maker.Pick<int>({0, 1, 2, 3})) {
      case 0:
        deny.deny_update_kinds = {transfer.kinds[0]};
        break;
      case 1:
        deny.deny_control = {*Area::Parse("DE")};  // all parties are
        break;
      case 2:
        deny.deny_purposes = {{transfer.purpose}};
        break;
      default:
        deny.deny_locations = Areas({"DE", "IE", "CH", "US"});
        break;
    }
    policies[maker.Pick<std::size_t>({0, 1, 2})].rules.push_back(deny);
    const Decision decision = Decide(Meet(policies[0], policies[1], policies[2], *facts), transfer);
    REQUIRE(decision.result == Result::kDeny);
    REQUIRE_FALSE(decision.permit.has_value());
  }
}

TEST_CASE("Decide: without a site policy nothing is allowed, whatever the others say") {
  const FactsPointer facts = World();
  for (std::uint64_t seed = 1; seed <= kDenySeeds; ++seed) {
    CAPTURE(seed);
    Maker maker(seed);
    const Effective effective =
        Meet(FromPolicy(maker.MakePolicy(PolicySource::kFederation, 1), facts),
             FromPolicy(maker.MakePolicy(PolicySource::kAggregator, 2), facts));
    REQUIRE(Decide(effective, maker.MakeTransfer()).result == Result::kDeny);
    REQUIRE(Decide(effective, Modest(maker)).result == Result::kDeny);
    REQUIRE(Decide(Effective(), maker.MakeTransfer()).result == Result::kDeny);
  }
}

}  // namespace domicile::policy

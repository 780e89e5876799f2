// Sites whose logs were restored from an older copy.
#include "aggregator/coordinator/recovery.h"

#include <array>

#include <doctest/doctest.h>

#include "aggregator/coordinator/testing.h"
#include "audit/recovery.h"

namespace domicile::aggregator {
namespace {

audit::Event Started(const FakeSite& site, int instance) {
  return audit::EventBuilder(audit::EventType::kAgentStarted)
      .Set("site", Json(site.id.text()))
      .Set("jurisdiction", Json("US-OH"))
      .Set("instance", Json(instance))
      .Set("version", Json("test"))
      .Build()
      .value();
}

// The entry that names a head, in this log, as its site shows it.
audit::RecoveryClaim RecoverIn(audit::Log& log, const crypto::Checkpoint& remembered) {
  const std::uint64_t size = log.Size().value();
  const audit::LogRecovered record{.operator_name = "ada",
                                   .instance = 3,
                                   .size = size,
                                   .root = log.RootAt(size).value(),
                                   .kept = 0,
                                   .remembered_size = remembered.size,
                                   .remembered_root = remembered.root,
                                   .datasets = {}};
  const std::uint64_t index = log.Append(ToEvent(record).value()).value();
  const audit::ProvenLeaf leaf = log.LeafWithProof(index).value();
  audit::RecoveryClaim claim{.index = index,
                             .leaf = leaf.leaf,
                             .proof = leaf.proof,
                             .head_note = leaf.head.note,
                             .root_then = {},
                             .consistency = {}};
  if (index >= remembered.size) {
    claim.root_then = log.RootAt(remembered.size).value();
    claim.consistency = log.ConsistencyProof(remembered.size, leaf.head.checkpoint.size).value();
  }
  return claim;
}

// Another log of the same site and key.
struct Copy {
  Copy(FakeSite& site, const Clock& clock, Random& random)
      : db(Database::Open(":memory:", Database::Mode::kCreate).value()) {
    const std::array<std::string_view, 1> tables = {audit::kLogTables};
    REQUIRE(db.Migrate(1, tables).ok());
    log.emplace(audit::Log::Open(db, *site.identity.log_key, clock, random).value());
  }
  audit::RecoveryClaim Recover(const crypto::Checkpoint& remembered) {
    return RecoverIn(*log, remembered);
  }
  Database db;
  std::optional<audit::Log> log;
};

struct Restored {
  Restored() : site(*federation.sites[1]), copy(site, clock, random) {
    for (int i = 0; i < 3; ++i) {
      REQUIRE(site.log->Append(Started(site, 1)).ok());
    }
    federation.coordinator->WitnessHead(site.id, site.log->Head().value().note, {});
    remembered = site.log->Head().value().checkpoint;
    federation.coordinator->Disconnected(site.id, site.port.get());
    REQUIRE(copy.log->Append(Started(site, 2)).ok());
  }
  std::variant<Welcome, Refusal> Greet(std::uint64_t instance,
                                       const std::optional<audit::RecoveryClaim>& claim) {
    SiteHello hello = site.Hello(instance);
    hello.own_head = copy.log->Head().value().note;
    hello.recovery = claim;
    auto port = std::make_shared<FakePort>();
    auto answer = federation.coordinator->Connect(site.identity.certificate, hello, port);
    federation.coordinator->Disconnected(site.id, port.get());
    return answer;
  }
  Federation federation;
  SystemClock clock;
  SystemRandom random;
  FakeSite& site;
  Copy copy;
  crypto::Checkpoint remembered;
};

std::size_t Taken(const Restored& restored) {
  return LeavesOf(restored.federation, audit::EventType::kHeadRecovered).size();
}

policy::Reason ReasonOf(const std::variant<Welcome, Refusal>& answer) {
  const auto* refusal = std::get_if<Refusal>(&answer);
  return refusal == nullptr ? policy::Reason::kNone : refusal->reason;
}

}  // namespace

TEST_CASE("Coordinator: a restored copy is told the head that it is behind") {
  Restored restored;
  const std::string note = restored.site.log->Head().value().note;

  const auto older = restored.Greet(0, std::nullopt);
  CHECK(ReasonOf(older) == policy::Reason::kInstance);
  CHECK(std::get<Refusal>(older).witnessed_head == note);
  const auto same = restored.Greet(2, std::nullopt);
  REQUIRE(std::holds_alternative<Welcome>(same));
  CHECK(std::get<Welcome>(same).witnessed_head == note);
}

TEST_CASE("Coordinator: a recovery is taken once, and its repeat changes nothing") {
  Restored restored;
  const audit::RecoveryClaim claim = restored.copy.Recover(restored.remembered);

  const auto first = restored.Greet(3, claim);

  REQUIRE(std::holds_alternative<Welcome>(first));
  CHECK(std::get<Welcome>(first).witnessed_head == claim.head_note);
  CHECK(Taken(restored) == 1);
  // The welcome was lost: the same entry again, from a log that has grown.
  REQUIRE(restored.copy.log->Append(Started(restored.site, 4)).ok());
  const auto again = restored.Greet(4, claim);
  REQUIRE(std::holds_alternative<Welcome>(again));
  CHECK(std::get<Welcome>(again).witnessed_head == claim.head_note);
  CHECK(Taken(restored) == 1);
  // Another entry that names the head of before.
  const auto old = restored.Greet(5, restored.copy.Recover(restored.remembered));
  CHECK(ReasonOf(old) == policy::Reason::kLogHead);
  CHECK(std::get<Refusal>(old).witnessed_head == claim.head_note);
  CHECK(Taken(restored) == 1);
}

TEST_CASE("Coordinator: a recovery of a log that was not behind is refused") {
  Restored restored;
  // The site's own log, which contains the head.
  const auto answer = restored.Greet(3, RecoverIn(*restored.site.log, restored.remembered));

  CHECK(ReasonOf(answer) == policy::Reason::kLogHead);
  CHECK(Taken(restored) == 0);
}

TEST_CASE("Coordinator: what was taken is known after a restart") {
  Restored restored;
  const audit::RecoveryClaim claim = restored.copy.Recover(restored.remembered);
  REQUIRE(std::holds_alternative<Welcome>(restored.Greet(3, claim)));
  for (const auto& site : restored.federation.sites) {
    site->instance = 3;
  }
  restored.federation.Restart();
  restored.federation.coordinator->Disconnected(restored.site.id, restored.site.port.get());

  CHECK(std::holds_alternative<Welcome>(restored.Greet(4, claim)));
  CHECK(Taken(restored) == 1);
}

}  // namespace domicile::aggregator

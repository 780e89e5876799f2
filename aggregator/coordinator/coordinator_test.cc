// The coordinator with real keys, policies, store and log, and sites that are values.
#include "aggregator/coordinator/coordinator.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "aggregator/coordinator/testing.h"
#include "crypto/sha256.h"

namespace domicile::aggregator {
namespace {

TEST_CASE("Coordinator: the same submissions in any order give one model, byte for byte") {
  std::array<std::size_t, 4> order = {0, 1, 2, 3};
  std::string first;
  // Six of the 24 orders, each starting elsewhere.
  for (const int turn : {0, 5, 9, 14, 18, 23}) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (int i = 0; i < turn; ++i) {
      std::next_permutation(order.begin(), order.end());
    }
    Federation federation;
    federation.SubmitAndAccept();

    for (const std::size_t site : order) {
      const SentUpdate sent =
          federation.Update(*federation.sites[site], kDeltas[site], kWeights[site]);
      REQUIRE(federation.Send(federation.sites[site]->id, sent) == policy::Reason::kNone);
    }

    REQUIRE(federation.coordinator->Show("alice", federation.job)->rounds_committed == 1);
    const std::string model = federation.ModelBytes();
    if (first.empty()) {
      first = model;
    }
    CHECK(model == first);
  }
}

TEST_CASE("Coordinator: what does not fit is refused with its reason and changes nothing") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& a = *federation.sites[0];
  FakeSite& b = *federation.sites[1];
  const SentUpdate good = federation.Update(a, kDeltas[0], 10);
  Refusal refusal;

  SUBCASE("another site's decision and instance") {
    SentUpdate sent = good;
    sent.head.effective_policy = federation.PolicyOf(b);
    CHECK(federation.Send(b.id, sent) == policy::Reason::kLogHead);
  }
  SUBCASE("a job that is not there") {
    SentUpdate sent = good;
    sent.head.job = JobId::Parse("nowhere").value();
    CHECK(federation.Send(a.id, sent) == policy::Reason::kJobUnknown);
  }
  SUBCASE("an older instance") {
    SentUpdate sent = good;
    sent.head.instance = 0;
    CHECK(federation.Send(a.id, sent) == policy::Reason::kInstance);
  }
  SUBCASE("another policy") {
    SentUpdate sent = good;
    sent.head.effective_policy = crypto::Sha256(AsBytes("other"));
    CHECK(federation.Send(a.id, sent) == policy::Reason::kPolicyDigestMismatch);
  }
  SUBCASE("a round that is not open, with the one that is") {
    SentUpdate sent = good;
    const OpenMessage open = *a.port->Last<OpenMessage>();
    OpenMessage later = open;
    later.key.round = 2;
    federation.FillHead(a, later, sent);
    CHECK(federation.Send(a.id, sent, &refusal) == policy::Reason::kRoundNotOpen);
    CHECK(refusal.open_phase == open.key);
    CHECK(refusal.open_model == open.model.digest);
  }
  SUBCASE("longer than the plan allows") {
    SentUpdate sent = good;
    sent.bytes.resize(100'000);
    federation.FillHead(a, *a.port->Last<OpenMessage>(), sent);
    CHECK(federation.Send(a.id, sent, &refusal) == policy::Reason::kTooLarge);
    CHECK(refusal.found == 100'000);
  }
  SUBCASE("not finite: tensor and index are named") {
    std::vector<float> values(14, 0.25F);
    values[5] = std::numeric_limits<float>::quiet_NaN();
    CHECK(federation.Send(a.id, federation.Update(a, values, 10), &refusal) ==
          policy::Reason::kNotFinite);
    CHECK(refusal.tensor == "weight");
    CHECK(refusal.index == 5);
  }
  SUBCASE("beyond the grid") {
    CHECK(federation.Send(a.id, federation.Update(a, {5.0F, 0.0F}, 10)) ==
          policy::Reason::kOutOfRange);
  }
  SUBCASE("off the grid") {
    CHECK(federation.Send(a.id, federation.Update(a, {0x1p-40F}, 10)) ==
          policy::Reason::kWrongEncoding);
  }
  SUBCASE("over the norm") {
    CHECK(federation.Send(a.id, federation.Update(a, {2.0F}, 10)) == policy::Reason::kNorm);
  }
  SUBCASE("a weight over the cap") {
    CHECK(federation.Send(a.id, federation.Update(a, kDeltas[0], 10'001)) ==
          policy::Reason::kWeight);
  }

  // Whatever was refused: the site may still send the right one, and the round is as if nothing
  // was.
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *federation.sites[i];
    CHECK(federation.Send(site.id, i == 0 ? good : federation.Update(site, kDeltas[i], 10)) ==
          policy::Reason::kNone);
  }
  CHECK(federation.coordinator->Show("alice", federation.job)->rounds_committed == 1);
}

TEST_CASE(
    "Coordinator: one update of a site counts, its repeat gets the receipt, another is refused") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& site = *federation.sites[2];
  const SentUpdate first = federation.Update(site, kDeltas[2], 134);
  const SentUpdate other = federation.Update(site, kDeltas[3], 134);

  CHECK(federation.Send(site.id, first) == policy::Reason::kNone);
  CHECK(std::holds_alternative<UpdateReceipt>(
      federation.coordinator->BeginUpdate(site.id, first.head)));
  CHECK(federation.Send(site.id, other) == policy::Reason::kAlreadyReceived);
}

TEST_CASE("Coordinator: after a restart the same bytes give the same model as undisturbed") {
  Federation undisturbed;
  undisturbed.SubmitAndAccept();
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *undisturbed.sites[i];
    REQUIRE(undisturbed.Send(site.id, undisturbed.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
  }

  Federation federation;
  federation.SubmitAndAccept();
  for (const std::size_t i : {1, 3}) {
    FakeSite& site = *federation.sites[i];
    REQUIRE(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
            policy::Reason::kNone);
  }
  for (const auto& site : federation.sites) {
    ++site->instance;
  }
  federation.Restart();
  for (std::size_t i = 0; i < 4; ++i) {
    FakeSite& site = *federation.sites[i];
    REQUIRE(site.port->Last<OpenMessage>() != nullptr);
    CHECK(site.port->Last<OpenMessage>()->epoch.starts == 2);
    CHECK(federation.Send(site.id, federation.Update(site, kDeltas[i], kWeights[i])) ==
          policy::Reason::kNone);
  }

  CHECK(federation.coordinator->Show("alice", federation.job)->rounds_committed == 1);
  CHECK(federation.ModelBytes() == undisturbed.ModelBytes());
}

TEST_CASE(
    "Coordinator: a site that starts again while its old stream still hangs gets the open phase") {
  Federation federation;
  federation.SubmitAndAccept();
  FakeSite& site = *federation.sites[0];
  const std::shared_ptr<FakePort> old = site.port;
  site.port = std::make_shared<FakePort>();
  site.instance = 2;

  REQUIRE(std::holds_alternative<Welcome>(federation.coordinator->Connect(
      site.identity.certificate, site.Hello(site.instance), site.port)));
  federation.coordinator->Joined(site.id, {});
  federation.coordinator->Disconnected(site.id, old.get());

  CHECK(old->Ended() == policy::Reason::kSuperseded);
  REQUIRE(site.port->Last<OpenMessage>() != nullptr);
  CHECK(federation.Send(site.id, federation.Update(site, kDeltas[0], 196)) ==
        policy::Reason::kNone);
}

TEST_CASE("Coordinator: no number of an update can be read in its folder") {
  Federation federation;
  federation.SubmitAndAccept();
  const std::vector<float> canary = {0x1.234566p-4F, 0x1.654322p-5F};
  FakeSite& site = *federation.sites[0];
  REQUIRE(federation.Send(site.id, federation.Update(site, canary, 196)) == policy::Reason::kNone);
  const Bytes needle = updates::EncodeF32(canary);

  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(federation.Folder())) {
    if (entry.is_regular_file()) {
      ++files;
      CHECK(Read(entry.path().string()).find(AsText(needle)) == std::string::npos);
    }
  }
  CHECK(files > 10);
}

TEST_CASE("Coordinator: a copy, a restored copy and a policy for another place are turned away") {
  Federation federation;
  FakeSite& site = *federation.sites[1];
  const auto connect = [&](const SiteHello& hello) {
    const auto answer = federation.coordinator->Connect(site.identity.certificate, hello,
                                                        std::make_shared<FakePort>());
    const auto* refusal = std::get_if<Refusal>(&answer);
    return refusal == nullptr ? policy::Reason::kNone : refusal->reason;
  };

  CHECK(connect(site.Hello(1)) == policy::Reason::kAlreadyConnected);
  CHECK(connect(site.Hello(0)) == policy::Reason::kInstance);
  SiteHello elsewhere = site.Hello(2);
  elsewhere.policy_statement = federation.sites[0]->statement;
  CHECK(connect(elsewhere) == policy::Reason::kJurisdictionMismatch);
  SiteHello unsigned_head = site.Hello(2);
  unsigned_head.own_head = federation.sites[0]->Hello(2).own_head;
  CHECK(connect(unsigned_head) == policy::Reason::kLogHead);
  SiteHello garbled = site.Hello(2);
  garbled.policy_statement += " ";
  CHECK(connect(garbled) == policy::Reason::kMalformed);
  CHECK(connect(site.Hello(2)) == policy::Reason::kNone);
  CHECK(site.port->Ended() == policy::Reason::kSuperseded);
}

}  // namespace
}  // namespace domicile::aggregator

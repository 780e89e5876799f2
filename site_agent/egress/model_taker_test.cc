#include "site_agent/egress/model_taker.h"

#include <filesystem>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "site_agent/egress/outbox.h"
#include "site_agent/egress/testing.h"

namespace domicile::site_agent {
namespace {

using policy::Reason;

// An aggregator that has some models and is asked for them.
struct Shelf {
  std::map<Digest, Bytes> models;
  int fetched = 0;
  std::function<void()> meanwhile = [] {};

  Digest Put(const Model& model) {
    const Bytes bytes = models::PrintSafetensors(model);
    const Digest digest = crypto::TreeDigest(bytes);
    models[digest] = bytes;
    return digest;
  }
};

struct Taking {
  contracts::Plan plan = HeartPlan();
  Desk desk;
  Shelf shelf;
  Model base = ZeroModel(plan);
  Digest base_digest = shelf.Put(base);

  Taking() { desk.PutJob(plan, base); }

  std::variant<Bytes, Reason> Take(const Digest& model, std::uint64_t size) {
    ModelTaker taker(desk.Open(), plan, test::ExamplePhase(),
                     {.aggregator = test::kAggregator, .site = test::kSite},
                     [this](const Digest& digest, std::uint64_t) -> std::variant<Bytes, Reason> {
                       ++shelf.fetched;
                       shelf.meanwhile();
                       const auto found = shelf.models.find(digest);
                       return found == shelf.models.end()
                                  ? std::variant<Bytes, Reason>(Reason::kConnectionLost)
                                  : found->second;
                     });
    return taker.Take(model, size);
  }
  Reason Try(const Digest& model) {
    const auto taken = Take(model, 1000);
    if (const auto* reason = std::get_if<Reason>(&taken)) {
      return *reason;
    }
    CHECK(std::get<Bytes>(taken) == shelf.models.at(model));
    return Reason::kNone;
  }
  // A committed round whose model is `weight` in its first place.
  Digest Commit(RoundNumber round, float weight, std::uint64_t leaf) {
    Model model = base;
    model[0].values[0] = weight;
    const Digest digest = shelf.Put(model);
    Must(SettleCommit(desk.Open(), Must(SiteId::Parse("charite")),
                      Phase(contracts::PhaseKind::kTrain, round), leaf,
                      site_agent::Commit(Phase(contracts::PhaseKind::kTrain, round), digest, {})));
    return digest;
  }
};

TEST_CASE("ModelTaker: the first model is the grant's, fetched once and kept over a restart") {
  Taking t;

  CHECK(t.Try(t.base_digest) == Reason::kNone);
  CHECK(t.desk.LastLeaf().type() == audit::EventType::kModelIntake);
  CHECK(t.desk.FindJob().last_model == t.base_digest);
  t.desk.Reopen();
  CHECK(t.Try(t.base_digest) == Reason::kNone);
  CHECK(t.shelf.fetched == 1);
}

TEST_CASE("ModelTaker: another model than the grant's or the last commit's is refused unseen") {
  Taking t;
  Model other = t.base;
  other[0].values[0] = 1e-6F;
  const Digest wrong = t.shelf.Put(other);

  CHECK(t.Try(wrong) == Reason::kModelDigest);
  CHECK(t.shelf.fetched == 0);
  CHECK(t.desk.LastLeaf().type() == audit::EventType::kModelRefused);
  CHECK(t.desk.LastLeaf().Text("reason") == "MODEL-DIGEST");

  REQUIRE(t.Try(t.base_digest) == Reason::kNone);
  const Digest second = t.Commit(1, 0.5F, 10);
  // The old model again, although it is at hand: the aggregator does not choose the question.
  CHECK(t.Try(t.base_digest) == Reason::kModelDigest);
  CHECK(t.Try(second) == Reason::kNone);
}

TEST_CASE("ModelTaker: a model that no memory could hold is refused before it is fetched") {
  Taking t;

  for (const std::uint64_t size :
       {std::uint64_t{1} << 40U, std::numeric_limits<std::uint64_t>::max()}) {
    const auto taken = t.Take(t.base_digest, size);
    REQUIRE(std::holds_alternative<Reason>(taken));
    CHECK(std::get<Reason>(taken) == Reason::kTooLarge);
    CHECK(t.desk.LastLeaf().Text("reason") == "TOO-LARGE");
  }
  CHECK(t.shelf.fetched == 0);
}

TEST_CASE("ModelTaker: a step beyond the plan's is refused, and the site stays where it was") {
  Taking t;
  REQUIRE(t.Try(t.base_digest) == Reason::kNone);
  const Digest far = t.Commit(1, 4.01F, 10);

  CHECK(t.Try(far) == Reason::kModelJump);
  CHECK(t.desk.LastLeaf().Text("reason") == "MODEL-JUMP");
  CHECK(t.desk.FindJob().last_model == t.base_digest);
}

TEST_CASE("ModelTaker: a site that missed rounds takes one step for each verified commit") {
  Taking t;
  REQUIRE(t.Try(t.base_digest) == Reason::kNone);
  t.Commit(1, 3.9F, 10);
  t.Commit(2, 7.8F, 20);
  const Digest third = t.Commit(3, 11.7F, 30);

  CHECK(t.Try(third) == Reason::kNone);
  CHECK(t.desk.FindJob().train_commits == 0);  // used up
  const Digest fourth = t.Commit(4, 15.8F, 40);
  CHECK(t.Try(fourth) == Reason::kModelJump);
}

TEST_CASE("ModelTaker: a site that joins late measures from the first model") {
  Taking near;
  near.Commit(1, 3.9F, 10);
  CHECK(near.Try(near.Commit(2, 7.9F, 20)) == Reason::kNone);
  CHECK(near.shelf.fetched == 2);

  Taking far;
  far.Commit(1, 3.9F, 10);
  CHECK(far.Try(far.Commit(2, 8.1F, 20)) == Reason::kModelJump);
}

TEST_CASE("ModelTaker: a commit that arrives during the fetch is not lost") {
  Taking t;
  REQUIRE(t.Try(t.base_digest) == Reason::kNone);
  const Digest second = t.Commit(1, 3.0F, 10);
  Digest third;
  t.shelf.meanwhile = [&] {
    if (third.IsZero()) {
      third = t.Commit(2, 6.0F, 20);
    }
  };

  CHECK(t.Try(second) == Reason::kNone);
  CHECK(t.desk.FindJob().committed_model == third);
  CHECK(t.desk.FindJob().train_commits == 1);
  CHECK(t.Try(third) == Reason::kNone);
}

TEST_CASE("ModelTaker: the model before goes only when the next one is recorded") {
  Taking t;
  REQUIRE(t.Try(t.base_digest) == Reason::kNone);
  const Digest second = t.Commit(1, 1.0F, 10);
  REQUIRE(t.Try(second) == Reason::kNone);

  const auto files = Must(ListFiles(t.desk.Folder() + "/models"));
  CHECK(files == std::vector<std::string>{PrintHex(second)});
}

TEST_CASE("ModelTaker: a file that is no model is refused") {
  Taking t;
  t.shelf.models[t.base_digest] = ToBytes("not safetensors");

  CHECK(t.Try(t.base_digest) == Reason::kModelShape);
}

}  // namespace
}  // namespace domicile::site_agent

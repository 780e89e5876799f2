#include "site_agent/trainer/use_store.h"

#include <filesystem>

#include <doctest/doctest.h>

namespace domicile::site_agent {
namespace {

using contracts::PhaseKind;
using policy::Reason;

GrantUse Use(RoundNumber round, PhaseKind phase, std::uint8_t model = 1,
             std::string_view job = "heart-1") {
  GrantUse use{.job = JobId::Parse(job).value(), .round = round, .phase = phase, .model = {}};
  use.model.bytes.fill(model);
  return use;
}

}  // namespace

TEST_CASE("UseStore: a job goes forward, repeats its last phase, and never goes back") {
  UseStore store = UseStore::Open(":memory:").value();
  REQUIRE(store.Check(Use(1, PhaseKind::kStatistics)).value() == Reason::kNone);
  REQUIRE(store.Remember(Use(1, PhaseKind::kStatistics)).ok());
  REQUIRE(store.Check(Use(1, PhaseKind::kTrain)).value() == Reason::kNone);
  REQUIRE(store.Remember(Use(1, PhaseKind::kTrain)).ok());

  CHECK(store.Check(Use(1, PhaseKind::kTrain)).value() == Reason::kNone);
  CHECK(store.Check(Use(2, PhaseKind::kTrain, 2)).value() == Reason::kNone);
  CHECK(store.Check(Use(1, PhaseKind::kTrain, 2)).value() == Reason::kGrantUsed);
  CHECK(store.Check(Use(1, PhaseKind::kStatistics)).value() == Reason::kGrantUsed);
  CHECK(store.Check(Use(1, PhaseKind::kStatistics, 1, "heart-2")).value() == Reason::kNone);
}

TEST_CASE("UseStore: a job that was taken back stays so, over restarts, and others go on") {
  const std::string path =
      (std::filesystem::temp_directory_path() / "domicile-use-store-test.sqlite").string();
  std::filesystem::remove(path);
  {
    UseStore store = UseStore::Open(path).value();
    REQUIRE(store.Remember(Use(3, PhaseKind::kTrain)).ok());
    REQUIRE(store.Deny(Use(3, PhaseKind::kTrain).job).ok());
    REQUIRE(store.Deny(JobId::Parse("never-begun").value()).ok());
  }

  UseStore store = UseStore::Open(path).value();
  CHECK(store.Check(Use(4, PhaseKind::kTrain)).value() == Reason::kApprovalDenied);
  CHECK(store.Check(Use(1, PhaseKind::kTrain, 1, "never-begun")).value() ==
        Reason::kApprovalDenied);
  CHECK(store.Check(Use(1, PhaseKind::kTrain, 1, "another")).value() == Reason::kNone);
  std::filesystem::remove(path);
}

}  // namespace domicile::site_agent

#include <doctest/doctest.h>

#include "cli/testing_office.h"

namespace domicile::cli {
namespace {

TEST_CASE("policy sign: one after the other into one file; verify counts them") {
  Office office;
  office.Write("p.toml", "[policy]\nthreshold = 2\n");
  for (const char* name : {"officer", "head"}) {
    REQUIRE(crypto::WriteNotePublicKey(
                office.Path(std::string(name) + ".pub"),
                crypto::ReadNoteKey(office.Path(std::string(name) + ".key")).value().Verifier())
                .ok());
  }
  const std::string verify = "policy verify @p.toml --keys @officer.pub @head.pub";

  CHECK(office.Run("policy sign @p.toml --key @officer.key").exit == 0);
  const Outcome one = office.Run(verify);
  CHECK(office.Run("policy sign @p.toml --key @head.key").exit == 0);
  const Outcome two = office.Run(verify);

  CHECK(one.exit == 1);
  CHECK(one.Says("1 of 2 wanted; not enough"));
  CHECK(office.Run(verify + " --threshold 1").exit == 0);
  CHECK(two.exit == 0);
  CHECK(two.Says("fed.example/site/charite/officer, fed.example/site/charite/head: 2 of 2"));
}

TEST_CASE("policy sign: a changed file needs new signatures, which replace the old ones") {
  Office office;
  office.Write("p.toml", "[policy]\nthreshold = 1\n");
  REQUIRE(crypto::WriteNotePublicKey(office.Path("officer.pub"), office.verifiers[0]).ok());
  REQUIRE(office.Run("policy sign @p.toml --key @officer.key").exit == 0);
  office.Write("p.toml", "[policy]\nthreshold = 1\n# changed\n");

  const Outcome changed = office.Run("policy verify @p.toml --keys @officer.pub --json");
  CHECK(changed.exit == 1);
  CHECK_FALSE(*ParseJson(changed.out).value().Find("verifies")->TryBool());
  CHECK(office.Run("policy verify @p.toml --keys @officer.pub").Says("for other bytes"));
  REQUIRE(office.Run("policy sign @p.toml --key @officer.key").exit == 0);
  CHECK(office.Run("policy verify @p.toml --keys @officer.pub").exit == 0);
  CHECK(office.Run("policy sign @absent.toml --key @officer.key").exit == 3);
  office.Write("x.toml", "not toml");
  CHECK(office.Run("policy sign @x.toml --key @officer.key").exit == 2);
  CHECK(office.Run("policy verify @x.toml --keys @officer.pub").exit == 3);  // not signed
}

}  // namespace
}  // namespace domicile::cli

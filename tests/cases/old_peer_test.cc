// A member whose agent is of another release: turned away with the version that is spoken here,
// named in the log, and told not to come back by itself.
#include <doctest/doctest.h>

#include "policy/language/parse.h"
#include "tests/cases/federation.h"
#include "tests/cases/hostile_site.h"
#include "wire/settings.h"

namespace domicile::test {
namespace {

using audit::EventType;
using policy::Reason;

// What a release says that it speaks.
struct Release {
  const char* name;
  std::uint32_t protocol_min;
  std::uint32_t protocol_max;
  std::uint32_t schema_min;
  std::uint32_t schema_max;
  Reason reason;  // kNone: welcome
};

constexpr std::uint32_t kOurs = wire::kProtocolVersion;
constexpr std::uint32_t kSchema = policy::kPolicySchema;
const Release kReleases[] = {
    {"from before versions", 0, 0, kSchema, kSchema, Reason::kProtocolVersion},
    {"a later protocol only", kOurs + 1, kOurs + 1, kSchema, kSchema, Reason::kProtocolVersion},
    {"far later", UINT32_MAX, UINT32_MAX, kSchema, kSchema, Reason::kProtocolVersion},
    {"upside down", kOurs + 1, kOurs - 1, kSchema, kSchema, Reason::kProtocolVersion},
    {"an earlier schema", kOurs, kOurs, kSchema - 1, kSchema - 1, Reason::kPolicySchemaVersion},
    {"a later schema", kOurs, kOurs, kSchema + 1, kSchema + 1, Reason::kPolicySchemaVersion},
    {"later, and this one still", kOurs, kOurs + 1, kSchema, kSchema + 1, Reason::kNone},
};

}  // namespace

TEST_CASE("Old peer: an agent of another release is told which version is spoken here") {
  const auto federation = Must(CaseFederation::Start({{"delta", "AT", ""}}));
  for (const Release& release : kReleases) {
    CAPTURE(release.name);
    const auto site = Must(HostileSite::Connect(*federation, "delta"));

    const v1::Directive answer = Must(site->Greet(site->Statement(), [&](v1::Hello& hello) {
      hello.set_protocol_min(release.protocol_min);
      hello.set_protocol_max(release.protocol_max);
      hello.set_policy_schema_min(release.schema_min);
      hello.set_policy_schema_max(release.schema_max);
    }));

    if (release.reason == Reason::kNone) {
      REQUIRE(answer.has_welcome());
      CHECK(answer.welcome().protocol() == kOurs);
      CHECK(answer.welcome().policy_schema() == kSchema);
      continue;
    }
    REQUIRE(answer.has_goodbye());
    const bool protocol = release.reason == Reason::kProtocolVersion;
    CHECK(answer.goodbye().refusal().reason() == static_cast<std::uint32_t>(release.reason));
    CHECK(answer.goodbye().refusal().limit() == (protocol ? kOurs : kSchema));
    CHECK(answer.goodbye().refusal().found() ==
          (protocol ? release.protocol_max : release.schema_max));
    CHECK(answer.goodbye().retry_after_seconds() == 0);
  }

  const auto leaves = Must(federation->Leaves("aggregator"));
  CHECK(Count(leaves, EventType::kPeerConnected, {{"peer", "site/delta"}}) == 1);
  CHECK(Count(leaves, EventType::kPeerRefused, {{"peer", "site/delta"}}) >= 1);
}

}  // namespace domicile::test

#include "contracts/policy_life.h"

#include <doctest/doctest.h>

namespace domicile::contracts {
namespace {

using policy::Reason;
using std::chrono::hours;

const WallTime kNow = ParseTime("2026-12-01T00:00:00Z").value();

PolicyVersion Version(std::uint64_t number, const std::string& text = "text") {
  PolicyVersion version{.text = text, .digest = {}, .version = number};
  version.digest.bytes.fill(static_cast<std::uint8_t>(number * 16 + text.size()));
  return version;
}

const PolicyCeremony kCeremony = {
    .signers = {"dpo", "ciso"}, .threshold = 2, .cooldown = hours(24)};
using Signers = std::optional<std::vector<std::string>>;
const Signers kBoth = std::vector<std::string>{"dpo", "ciso"};
const Signers kOne = std::vector<std::string>{"dpo"};

PolicyLife InForce(std::uint64_t number) {
  return {.in_force = Version(number), .waiting = {}, .waiting_since = {}};
}

TEST_CASE("WeighPolicy: what becomes of a file, by signatures, number and what it allows") {
  struct Case {
    const char* name;
    PolicyLife life;
    PolicyVersion next;
    Signers signers;
    bool loosens;
    PolicyStep step;
    Reason reason;
  };
  const Case cases[] = {
      {"the first, by the threshold",
       {},
       Version(1),
       kBoth,
       true,
       PolicyStep::kAdopt,
       Reason::kNone},
      {"the first, by one of two",
       {},
       Version(1),
       kOne,
       true,
       PolicyStep::kRefuse,
       Reason::kPolicySignature},
      {"the first, unsigned by name", {}, Version(1), {}, true, PolicyStep::kAdopt, Reason::kNone},
      {"the same", InForce(3), Version(3), kOne, true, PolicyStep::kSame, Reason::kNone},
      {"another text of the same number", InForce(3), Version(3, "other"), kBoth, false,
       PolicyStep::kRefuse, Reason::kPolicyRollback},
      {"an older one, well signed", InForce(3), Version(2), kBoth, false, PolicyStep::kRefuse,
       Reason::kPolicyRollback},
      {"an older one, unsigned by name",
       InForce(3),
       Version(2),
       {},
       false,
       PolicyStep::kRefuse,
       Reason::kPolicyRollback},
      {"tighter, by one", InForce(3), Version(4), kOne, false, PolicyStep::kAdopt, Reason::kNone},
      {"tighter, by nobody", InForce(3), Version(4), std::vector<std::string>{}, false,
       PolicyStep::kRefuse, Reason::kPolicySignature},
      {"tighter, by a stranger", InForce(3), Version(4), std::vector<std::string>{"x", "y"}, false,
       PolicyStep::kRefuse, Reason::kPolicySignature},
      {"looser, by one", InForce(3), Version(4), kOne, true, PolicyStep::kRefuse,
       Reason::kPolicySignature},
      {"looser, by one and a stranger", InForce(3), Version(4),
       std::vector<std::string>{"dpo", "x"}, true, PolicyStep::kRefuse, Reason::kPolicySignature},
      {"looser, by the threshold", InForce(3), Version(4), kBoth, true, PolicyStep::kWait,
       Reason::kPolicyCooldown},
      {"looser, unsigned by name",
       InForce(3),
       Version(4),
       {},
       true,
       PolicyStep::kWait,
       Reason::kPolicyCooldown},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const PolicyVerdict verdict =
        WeighPolicy(c.life, c.next, c.signers, c.loosens, kCeremony, kNow);
    CHECK(verdict.step == c.step);
    CHECK(verdict.reason == c.reason);
    const PolicyLife after = After(c.life, c.next, verdict, kNow);
    CHECK((after.in_force == c.next) ==
          (c.step == PolicyStep::kAdopt || c.step == PolicyStep::kSame));
  }
}

TEST_CASE(
    "WeighPolicy: the cool-down counts from the first sight, and starts anew for other bytes") {
  const auto weigh = [](const PolicyLife& life, const PolicyVersion& next, WallTime now) {
    return WeighPolicy(life, next, kBoth, true, kCeremony, now);
  };
  PolicyLife life = InForce(1);
  const PolicyVerdict first = weigh(life, Version(2), kNow);
  CHECK(first.is_first_sight);
  CHECK(first.effective_at == kNow + hours(24));
  life = After(life, Version(2), first, kNow);

  const PolicyVerdict second = weigh(life, Version(2), kNow + hours(23));
  CHECK(second.step == PolicyStep::kWait);
  CHECK_FALSE(second.is_first_sight);
  CHECK(second.effective_at == kNow + hours(24));
  life = After(life, Version(2), second, kNow + hours(23));
  CHECK(life.waiting_since == kNow);

  CHECK(weigh(life, Version(3), kNow + hours(25)).effective_at == kNow + hours(49));
  const PolicyVerdict due = weigh(life, Version(2), kNow + hours(24));
  CHECK(due.step == PolicyStep::kAdopt);
  life = After(life, Version(2), due, kNow + hours(24));
  CHECK(life.in_force == Version(2));
  CHECK_FALSE(life.waiting.has_value());
}

TEST_CASE("After: a bad file leaves what waits; the old file put back withdraws it") {
  PolicyLife life = InForce(1);
  life.waiting = Version(2);
  life.waiting_since = kNow;

  const PolicyVerdict bad = WeighPolicy(life, Version(3), kOne, true, kCeremony, kNow);
  CHECK(After(life, Version(3), bad, kNow) == life);
  const PolicyVerdict old = WeighPolicy(life, Version(1), kOne, true, kCeremony, kNow);
  CHECK(After(life, Version(1), old, kNow) == InForce(1));
}

TEST_CASE("CeremonyOf: a new version cannot lower the bar for itself") {
  policy::PolicyIdentity before;
  before.signers = {"dpo", "ciso"};
  before.threshold = 2;
  before.cooldown = hours(72);
  policy::PolicyIdentity next;
  next.signers = {"intern"};
  next.threshold = 1;
  next.cooldown = hours(1);

  const PolicyCeremony ceremony = CeremonyOf(&before, next);
  CHECK(ceremony.signers == before.signers);
  CHECK(ceremony.threshold == 2);
  CHECK(ceremony.cooldown == hours(72));
  CHECK(CeremonyOf(&next, before).threshold == 2);
  CHECK(CeremonyOf(&next, before).cooldown == hours(72));
  CHECK(CeremonyOf(nullptr, next).signers == next.signers);
  next.cooldown.reset();
  next.threshold = 0;
  CHECK(CeremonyOf(nullptr, next).cooldown == kDefaultCooldown);
  CHECK(CeremonyOf(nullptr, next).threshold == 1);
}

}  // namespace
}  // namespace domicile::contracts

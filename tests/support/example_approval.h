// Tests only: persons who approve, and what they sign.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/random.h"
#include "contracts/approval.h"
#include "contracts/grant.h"
#include "crypto/note.h"

namespace domicile::test {

inline crypto::NoteSigner ExamplePerson(std::string_view name, std::uint64_t seed) {
  SeededRandom random(seed);
  return crypto::NoteSigner::Generate(name, random, crypto::NoteKeyKind::kCosigner).value();
}

// The note of one person over any text, signed at that time.
inline std::string SignedAt(const crypto::NoteSigner& person, std::string_view text,
                            WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return person.Cosign(text, static_cast<std::uint64_t>(seconds)).value();
}

inline std::string GrantBy(const crypto::NoteSigner& person, const contracts::GrantBody& body,
                           WallTime time) {
  return SignedAt(person, contracts::GrantText(body), time);
}

inline contracts::Approver ApproverOf(const crypto::NoteSigner& person,
                                      policy::ApprovalRole role = policy::ApprovalRole::kOperator,
                                      std::string_view organisation = "data-office") {
  return {.role = role, .organisation = std::string(organisation), .key = person.Verifier()};
}

}  // namespace domicile::test

// The policies and legal facts in force at a program, as texts and as values.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "policy/language/facts.h"
#include "policy/language/policy.h"

namespace domicile::contracts {

// What a program does not hold is empty: an agent has no aggregator policy of its own, an
// aggregator no site policy.
struct PoliciesInForce {
  std::string federation_text;
  std::string aggregator_text;
  std::string site_text;  // stays at the site
  std::string facts_text;
  policy::Policy federation;
  policy::Policy aggregator;
  policy::Policy site;
  std::string statement;  // of `site`: what may leave of it
  policy::Facts facts;
};

// What is known of one text.
struct PolicyTextFacts {
  policy::PolicyIdentity identity;  // of legal facts: the version alone
  Digest public_digest;             // for leaves: of what others may see of it
};

// Parses a text (kNone: legal facts) into `policies`, which are not to be used if it fails.
// `jurisdiction`: where the program's certificate places it. Errors: those of the parsers, with
// file and line; kInvalidArgument, a site policy for another place.
StatusOr<PolicyTextFacts> TakePolicyText(const std::string& text, const std::string& file,
                                         policy::PolicySource source, std::string_view jurisdiction,
                                         PoliciesInForce& policies);

}  // namespace domicile::contracts

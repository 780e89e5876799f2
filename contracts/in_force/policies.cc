#include "contracts/in_force/policies.h"

#include "crypto/sha256.h"
#include "policy/language/parse.h"
#include "policy/language/statement.h"

namespace domicile::contracts {

StatusOr<PolicyTextFacts> TakePolicyText(const std::string& text, const std::string& file,
                                         policy::PolicySource source, std::string_view jurisdiction,
                                         PoliciesInForce& policies) {
  const Digest digest = crypto::Sha256(AsBytes(text));
  switch (source) {
    case policy::PolicySource::kNone: {
      ASSIGN_OR_RETURN(policies.facts, policy::ParseFacts(text, file));
      policies.facts.digest = PrintHex(digest);
      policies.facts_text = text;
      policy::PolicyIdentity identity;
      identity.version = policies.facts.version;
      return PolicyTextFacts{.identity = identity, .public_digest = digest};
    }
    case policy::PolicySource::kFederation: {
      ASSIGN_OR_RETURN(policies.federation, policy::ParsePolicy(text, file, source));
      policies.federation_text = text;
      return PolicyTextFacts{.identity = policies.federation.identity, .public_digest = digest};
    }
    case policy::PolicySource::kAggregator: {
      ASSIGN_OR_RETURN(policies.aggregator, policy::ParsePolicy(text, file, source));
      policies.aggregator_text = text;
      return PolicyTextFacts{.identity = policies.aggregator.identity, .public_digest = digest};
    }
    case policy::PolicySource::kSite: {
      ASSIGN_OR_RETURN(policies.site, policy::ParsePolicy(text, file, source));
      if (!policies.site.site || policies.site.site->jurisdiction.text() != jurisdiction) {
        return Error(StatusCode::kInvalidArgument,
                     "`" + file + "`: site.jurisdiction is not `" + std::string(jurisdiction) +
                         "`, where this agent's certificate places it");
      }
      policies.site_text = text;
      policies.statement = policy::StatementText(policies.site);
      return PolicyTextFacts{.identity = policies.site.identity,
                             .public_digest = crypto::Sha256(AsBytes(policies.statement))};
    }
    case policy::PolicySource::kGrant:
      break;
  }
  return Error(StatusCode::kInternal, "`" + file + "` is of no known source");
}

}  // namespace domicile::contracts

// What DPV and ODRL exports share: names in their vocabularies, and values as JSON-LD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "policy/exporting/export.h"
#include "policy/exporting/internal/conditions.h"
#include "policy/language/policy.h"
#include "policy/language/vocabulary.h"

namespace domicile::policy::internal {

// The prefixes that every export declares; nothing is fetched to read one.
JsonObject Prefixes();

Json Iri(std::string_view iri);                            // {"@id": iri}
Json Typed(std::string_view text, std::string_view type);  // {"@value": text, "@type": type}
Json Moment(WallTime time);                                // xsd:dateTime
Json Duration8601(std::string_view seconds);               // xsd:duration
std::string PolicyIri(const Policy& policy);               // `urn:domicile:site/lyon`
std::string DatasetIri(const Policy& policy, std::string_view alias);

// Terms of DPV 2 where it has one, else of our own (`domicile:`).
std::string PlaceTerm(std::string_view area);
std::string PurposeTerm(Purpose purpose);
std::string CategoryTerm(Category category);
std::string RegimeTerm(Regime regime);
std::string BasisTerm(std::string_view basis);
// A mechanism as a basis of DPV only under the GDPR: `scc` is Art. 46(2)(c) there, and something
// else under other laws.
std::string MechanismTerm(Mechanism mechanism, bool is_gdpr);

// The values of a condition, each as JSON-LD; a number is a typed literal.
JsonArray ValuesOf(const Condition& condition);

// The legal grounds that the site states for a dataset, in file order.
std::vector<TransferGround> GroundsOf(const Policy& site, const PolicyDataset& dataset);

}  // namespace domicile::policy::internal

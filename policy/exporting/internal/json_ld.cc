#include "policy/exporting/internal/json_ld.h"

#include <array>
#include <utility>

namespace domicile::policy::internal {
namespace {

std::string Own(std::string_view group, std::string_view code) {
  return "domicile:" + std::string(group) + "-" + std::string(code);
}

}  // namespace

JsonObject Prefixes() {
  return {{"dct", "http://purl.org/dc/terms/"},
          {"domicile", "urn:domicile:vocabulary:"},
          {"dpv", "https://w3id.org/dpv#"},
          {"eu-ehds", "https://w3id.org/dpv/legal/eu/ehds#"},
          {"eu-gdpr", "https://w3id.org/dpv/legal/eu/gdpr#"},
          {"legal-eu", "https://w3id.org/dpv/legal/eu#"},
          {"loc", "https://w3id.org/dpv/loc#"},
          {"odrl", "http://www.w3.org/ns/odrl/2/"},
          {"pd", "https://w3id.org/dpv/pd#"},
          {"rdfs", "http://www.w3.org/2000/01/rdf-schema#"},
          {"xsd", "http://www.w3.org/2001/XMLSchema#"}};
}

Json Iri(std::string_view iri) { return JsonObject{{"@id", std::string(iri)}}; }

Json Typed(std::string_view text, std::string_view type) {
  return JsonObject{{"@value", std::string(text)}, {"@type", std::string(type)}};
}

Json Moment(WallTime time) { return Typed(PrintTime(time), "xsd:dateTime"); }

Json Duration8601(std::string_view seconds) {
  return Typed("PT" + std::string(seconds) + "S", "xsd:duration");
}

std::string PolicyIri(const Policy& policy) { return "urn:domicile:" + policy.identity.id; }

std::string DatasetIri(const Policy& policy, std::string_view alias) {
  return PolicyIri(policy) + "#dataset-" + std::string(alias);
}

std::string PlaceTerm(std::string_view area) { return "loc:" + std::string(area); }

std::string PurposeTerm(Purpose purpose) {
  switch (purpose) {
    case Purpose::kScientificResearch:
      return "dpv:ScientificResearch";
    case Purpose::kPublicHealth:
      return "eu-ehds:PublicInterestRelatedToHealth";
    case Purpose::kOfficialStatistics:
      return "dpv:ProvideOfficialStatistics";
    case Purpose::kPolicyMaking:
      return "dpv:PublicPolicyMaking";
    case Purpose::kEducation:
      return "eu-ehds:ImproveHealthcareEducation";
    case Purpose::kHealthcareDelivery:
      return "dpv:ImproveHealthcare";
    case Purpose::kAlgorithmTesting:
      return "eu-ehds:TrainTestAndEvaluateHealthAlgorithms";
    case Purpose::kFraudPrevention:
      return "dpv:FraudPreventionAndDetection";
    case Purpose::kServiceImprovement:
      return "dpv:ImproveExistingProductsAndServices";
    case Purpose::kProductDevelopment:
      return "eu-ehds:DevelopPublicHealthProductsAndServices";
    case Purpose::kMarketing:
      return "dpv:Marketing";
    case Purpose::kDetrimentalDecisions:
    case Purpose::kDiscriminatoryTerms:
    case Purpose::kHarmfulProducts:
    case Purpose::kUnethicalActivities:
    case Purpose::kNone:
      break;
  }
  return Own("purpose", Code(purpose));
}

std::string CategoryTerm(Category category) {
  switch (category) {
    case Category::kIdentifier:
      return "pd:Identifying";
    case Category::kHealth:
      return "pd:Health";
    case Category::kGenomic:
      return "pd:Genetic";
    case Category::kBiometric:
      return "pd:Biometric";
    case Category::kPreciseGeo:
      return "pd:Location";
    case Category::kFinancial:
      return "pd:Financial";
    case Category::kCriminal:
      return "pd:Criminal";
    case Category::kOrdinary:
      return "dpv:PersonalData";
    case Category::kOmic:
    case Category::kChild:
    case Category::kImportantCn:
    case Category::kNone:
      break;
  }
  return Own("category", Code(category));
}

std::string RegimeTerm(Regime regime) {
  if (regime == Regime::kEuGdpr) {
    return "legal-eu:law-GDPR";
  }
  return regime == Regime::kEuAiAct ? "legal-eu:law-AIAct" : Own("regime", Code(regime));
}

std::string BasisTerm(std::string_view basis) {
  const bool is_gdpr = basis.starts_with("A6-") || basis.starts_with("A9-");
  return is_gdpr ? "eu-gdpr:" + std::string(basis) : Own("basis", basis);
}

std::string MechanismTerm(Mechanism mechanism, bool is_gdpr) {
  constexpr std::array kArticles = {std::pair{Mechanism::kAdequacy, "A45-3"},
                                    std::pair{Mechanism::kScc, "A46-2-c"},
                                    std::pair{Mechanism::kSccNational, "A46-2-d"},
                                    std::pair{Mechanism::kBcr, "A46-2-b"},
                                    std::pair{Mechanism::kCode, "A46-2-e"},
                                    std::pair{Mechanism::kCertification, "A46-2-f"}};
  const std::string code(Code(mechanism));
  if (is_gdpr) {
    for (const auto& [each, article] : kArticles) {
      if (each == mechanism) {
        return "eu-gdpr:" + std::string(article);
      }
    }
    if (IsDerogation(mechanism)) {
      return "eu-gdpr:" + code.substr(code.find(':') + 1);
    }
  }
  return Own("mechanism", code);
}

JsonArray ValuesOf(const Condition& condition) {
  JsonArray values;
  for (const std::string& value : condition.values) {
    switch (condition.kind) {
      case ValueKind::kText:
        values.emplace_back(value);
        break;
      case ValueKind::kArea:
        values.push_back(Iri(PlaceTerm(value)));
        break;
      case ValueKind::kInteger:
        values.push_back(Typed(value, "xsd:integer"));
        break;
      case ValueKind::kDecimal:
        // A decimal of XML has no exponent; a double has.
        values.push_back(
            Typed(value, value.find('e') == std::string::npos ? "xsd:decimal" : "xsd:double"));
        break;
      case ValueKind::kDuration:
        values.push_back(Duration8601(value));
        break;
      case ValueKind::kFlag:
        values.push_back(Typed(value, "xsd:boolean"));
        break;
    }
  }
  return values;
}

std::vector<TransferGround> GroundsOf(const Policy& site, const PolicyDataset& dataset) {
  std::vector<TransferGround> grounds;
  for (const Rule& rule : site.rules) {
    if (!rule.dataset || *rule.dataset == dataset.alias) {
      grounds.insert(grounds.end(), rule.transfers.begin(), rule.transfers.end());
    }
  }
  return grounds;
}

}  // namespace domicile::policy::internal

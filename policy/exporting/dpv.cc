// The Data Privacy Vocabulary of the W3C community group, version 2: what a record of processing
// activities, an impact assessment or a catalogue of datasets reads.
#include <optional>
#include <utility>

#include "policy/exporting/export.h"
#include "policy/exporting/internal/json_ld.h"

namespace domicile::policy {
namespace {

using internal::Condition;
using internal::Iri;
using internal::Moment;
using internal::Relation;
using internal::Step;
using internal::Typed;

template <typename Items, typename Term>
JsonArray Terms(const Items& items, Term term) {
  JsonArray terms;
  for (const auto& item : items) {
    terms.push_back(Iri(term(item)));
  }
  return terms;
}

std::string_view RelationName(Relation relation) {
  switch (relation) {
    case Relation::kAnyOf:
      return "anyOf";
    case Relation::kNoneOf:
      return "noneOf";
    case Relation::kAtMost:
      return "atMost";
    case Relation::kAtLeast:
      return "atLeast";
    case Relation::kAbove:
      return "above";
    case Relation::kIs:
      return "is";
  }
  return "is";
}

Json ConditionNode(const Condition& condition) {
  const bool is_purpose = condition.key == "purposes" || condition.key == "deny_purposes";
  JsonArray values = internal::ValuesOf(condition);
  if (is_purpose) {
    values.clear();
    for (const std::string& code : condition.values) {
      values.push_back(
          Iri(internal::PurposeTerm(FromCode<Purpose>(code).value_or(Purpose::kNone))));
    }
  }
  JsonObject node = {{"@type", "domicile:Condition"},
                     {"domicile:key", condition.key},
                     {"domicile:relation", std::string(RelationName(condition.relation))},
                     {"domicile:value", JsonObject{{"@list", std::move(values)}}}};
  if (condition.needs_dp) {
    node.emplace("domicile:onlyIf", "dp_mode is above none");
  }
  return node;
}

// A permission, with every condition of its step; prohibitions stand by themselves.
Json Permission(const std::vector<Condition>& conditions, Step step) {
  JsonArray nodes;
  for (const Condition& condition : conditions) {
    if (Applies(condition.step, step) && condition.relation != Relation::kNoneOf) {
      nodes.push_back(ConditionNode(condition));
    }
  }
  return JsonObject{
      {"@type", "dpv:Permission"},
      {"dpv:hasProcessing", Iri("dpv:Transfer")},
      {"dct:description", step == Step::kSend ? "a contribution goes to the aggregator"
                                              : "a model goes to a recipient"},
      {"domicile:condition", std::move(nodes)}};
}

JsonArray Prohibitions(const std::vector<Condition>& conditions) {
  JsonArray nodes;
  for (const Condition& condition : conditions) {
    if (condition.relation == Relation::kNoneOf) {
      nodes.emplace_back(JsonObject{{"@type", "dpv:Prohibition"},
                                    {"dpv:hasProcessing", Iri("dpv:Transfer")},
                                    {"domicile:condition", ConditionNode(condition)}});
    }
  }
  return nodes;
}

void AddDocument(JsonArray& nodes, std::string_view type, const std::optional<DocumentRef>& ref,
                 bool with_private) {
  if (!ref) {
    return;
  }
  JsonObject node = {{"@type", std::string(type)}, {"dct:valid", Moment(ref->valid_until)}};
  if (with_private) {
    node.emplace("dct:identifier", ref->id);
    node.emplace("domicile:sha256", ref->sha256);
  }
  nodes.emplace_back(std::move(node));
}

JsonArray Transfers(const ExportSource& source, const PolicyDataset& dataset) {
  const bool is_gdpr = dataset.regimes.contains(Regime::kEuGdpr);
  JsonArray nodes;
  for (const TransferGround& ground : internal::GroundsOf(source.site, dataset)) {
    JsonObject node = {
        {"@type", "dpv:Process"},
        {"dpv:hasProcessing", Iri("dpv:Transfer")},
        {"dpv:hasLocation", Iri(internal::PlaceTerm(ground.to.text()))},
        {"dpv:hasLegalBasis", Iri(internal::MechanismTerm(ground.mechanism, is_gdpr))}};
    if (ground.valid_until) {
      node.emplace("dct:valid", Moment(*ground.valid_until));
    }
    if (!ground.importer.empty()) {
      node.emplace("dpv:hasRecipient", JsonObject{{"dct:identifier", ground.importer}});
    }
    if (source.with_private) {
      node.emplace("dct:references", ground.ref);
    }
    nodes.emplace_back(std::move(node));
  }
  return nodes;
}

// Measures that DPV has a term for, from the conditions that demand them.
JsonArray TechnicalMeasures(const std::vector<Condition>& conditions) {
  JsonArray measures;
  for (const Condition& condition : conditions) {
    if (condition.key == "require_secagg") {
      measures.push_back(Iri("dpv:SecureMultiPartyComputation"));
    }
    if (condition.key == "dp_mode" && condition.values.front() != Code(DpMode::kNone)) {
      measures.push_back(Iri("dpv:DifferentialPrivacy"));
    }
  }
  return measures;
}

Json ProcessNode(const ExportSource& source, const PolicyDataset& dataset,
                 const std::vector<Condition>& conditions, const JsonObject& folded) {
  JsonArray bases = {Iri(internal::BasisTerm(dataset.lawful_basis))};
  JsonArray data = Terms(dataset.categories, internal::CategoryTerm);
  if (!dataset.special_category_basis.empty()) {
    bases.push_back(Iri(internal::BasisTerm(dataset.special_category_basis)));
    data.push_back(Iri("dpv:SpecialCategoryPersonalData"));
  }
  JsonArray documents;
  AddDocument(documents, "dpv:DPIA", dataset.dpia, source.with_private);
  AddDocument(documents, "domicile:TransferImpactAssessment", dataset.tia, source.with_private);
  AddDocument(documents, "eu-ehds:DataPermit", dataset.permit, source.with_private);
  AddDocument(documents, "domicile:BusinessAssociateAgreement", dataset.baa, source.with_private);
  JsonArray subjects;
  for (const Jurisdiction& place : dataset.subject_jurisdictions) {
    subjects.push_back(Iri(internal::PlaceTerm(place.text())));
  }
  JsonObject node = {
      {"@id", internal::DatasetIri(source.site, dataset.alias.text())},
      {"@type", "dpv:PersonalDataProcess"},
      {"dct:identifier", dataset.alias.text()},
      {"dpv:hasPurpose", Terms(dataset.purposes, internal::PurposeTerm)},
      {"dpv:hasPersonalData", std::move(data)},
      {"dpv:hasDataSubject",
       JsonObject{{"@type", "dpv:DataSubject"}, {"dpv:hasJurisdiction", std::move(subjects)}}},
      {"dpv:hasLegalBasis", std::move(bases)},
      {"dpv:hasApplicableLaw", Terms(dataset.regimes, internal::RegimeTerm)},
      {"dpv:hasOrganisationalMeasure", std::move(documents)},
      {"dpv:hasTechnicalMeasure", TechnicalMeasures(conditions)},
      {"dpv:hasPermission",
       JsonArray{Permission(conditions, Step::kSend), Permission(conditions, Step::kRelease)}},
      {"dpv:hasProhibition", Prohibitions(conditions)},
      {"dpv:hasProcess", Transfers(source, dataset)}};
  if (source.site.site) {
    const Json place = Iri(internal::PlaceTerm(source.site.site->jurisdiction.text()));
    node.emplace("dpv:hasLocation", place);
    node.emplace("dpv:hasJurisdiction", place);
  }
  if (const auto approvals = folded.find("approvals"); approvals != folded.end()) {
    // Approvals differ from conditions: without them the answer is to wait, not no.
    node.emplace(
        "dpv:hasObligation",
        JsonObject{{"@type", "dpv:Obligation"},
                   {"dct:description", "approvals of each run: " + PrintJson(approvals->second)}});
  }
  if (source.with_private) {
    node.emplace("dct:title", dataset.name);
  }
  return node;
}

}  // namespace

std::vector<std::string_view> DpvCannotSay() {
  return {"that a missing permission denies: DPV describes and never decides",
          "how conditions of several sources combine; they are folded here, all must hold",
          "the legal facts that borders rest on, and since when a country is in a bloc",
          "numbers that are compared with a request (domicile:Condition is our own term)",
          "that what cannot be read, or is unknown, denies",
          "who signed the policy, and how it may be loosened"};
}

StatusOr<std::string> ExportDpv(const ExportSource& source) {
  ASSIGN_OR_RETURN(const JsonObject datasets, internal::FoldedDatasets(source.effective));
  const PolicyIdentity& identity = source.site.identity;
  JsonArray cannot;
  for (const std::string_view sentence : DpvCannotSay()) {
    cannot.emplace_back(std::string(sentence));
  }
  JsonArray processes;
  JsonArray graph;
  for (const PolicyDataset& dataset : source.site.datasets) {
    const auto folded = datasets.find(dataset.alias.text());
    if (folded == datasets.end()) {
      continue;  // the policies together do not know it
    }
    ASSIGN_OR_RETURN(const std::vector<Condition> conditions,
                     internal::ConditionsOf(*folded->second.TryObject()));
    processes.push_back(Iri(internal::DatasetIri(source.site, dataset.alias.text())));
    graph.push_back(ProcessNode(source, dataset, conditions, *folded->second.TryObject()));
  }
  JsonObject policy = {{"@id", internal::PolicyIri(source.site)},
                       {"@type", "dpv:Policy"},
                       {"dct:identifier", identity.id},
                       {"dct:hasVersion", std::to_string(identity.version)},
                       {"dct:available", Moment(identity.not_before)},
                       {"dct:valid", Moment(identity.expires)},
                       {"dpv:hasProcess", std::move(processes)},
                       {"domicile:notExpressed", std::move(cannot)}};
  if (source.with_private) {
    policy.emplace("dct:publisher", identity.issuer);
  }
  graph.insert(graph.begin(), Json(std::move(policy)));
  return internal::PrintIndented(
      JsonObject{{"@context", internal::Prefixes()}, {"@graph", std::move(graph)}});
}

}  // namespace domicile::policy

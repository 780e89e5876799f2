#include "policy/language/parse.h"

#include <string>
#include <utility>

#include <doctest/doctest.h>

namespace domicile::policy {
namespace {

const std::string kSite = R"([policy]
schema = 1
id = "site/lyon"
version = 7
not_before = 2026-12-01
expires = 2027-11-30
issuer = "chu-lyon"
signers = ["dpo-lyon", "ops-lyon"]
threshold = 2

[site]
jurisdiction = "FR"
control_jurisdictions = ["FR"]

[model]
recipients = ["FR", "EEA"]

[approvals]
required = [{ role = "dpo", count = 1 }]
keys = ["dpo-lyon"]

[sandbox]
network = "loopback"

[update]
weights = "rounded"

[[dataset]]
alias = "ct-lung"
name = "CT lung 2025, ward 3"
categories = ["health"]
subject_jurisdictions = ["FR"]
regimes = ["eu-gdpr"]
lawful_basis = "A6-1-e"
special_category_basis = "A9-2-j"
purpose = ["scientific_research"]
refs.dpia = { id = "DPIA-14", sha256 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", valid_until = 2027-06-30 }

[[rule]]
id = "S-12"
dataset = "ct-lung"
allow.aggregator_locations = ["EEA"]
allow.update_kinds = ["delta.masked"]
require.privacy = { min_contributors = 5, min_cohort = 100, clip_l2 = 1.5 }
limit.rounds = 10
deny.locations = ["US", "CN"]

[[rule.transfer]]
to = "CH"
mechanism = "adequacy"
ref = "2000/518/EC"
)";

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("ParsePolicy: every key of a site policy arrives, and absent ones have no opinion") {
  const auto policy = ParsePolicy(kSite, "lyon.toml", PolicySource::kSite);

  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  CHECK(policy->identity.id == "site/lyon");
  CHECK(policy->identity.version == 7);
  CHECK(policy->identity.threshold == 2);
  CHECK(PrintTime(policy->identity.expires) == "2027-11-30T00:00:00.000Z");
  CHECK(policy->site->jurisdiction.text() == "FR");
  CHECK(policy->site->location_evidence == LocationEvidence::kCertificate);
  CHECK(policy->model_recipients->size() == 2);
  CHECK(policy->approvals->required[0].role == ApprovalRole::kDpo);
  CHECK(policy->sandbox_network == SandboxNetwork::kLoopback);
  CHECK(policy->weights == WeightRule::kRounded);
  REQUIRE(policy->datasets.size() == 1);
  CHECK(policy->datasets[0].alias.text() == "ct-lung");
  CHECK(policy->datasets[0].IsSpecialCategory());
  CHECK(policy->datasets[0].line == 28);
  REQUIRE(policy->rules.size() == 1);
  const Rule& rule = policy->rules[0];
  CHECK(rule.id == "S-12");
  CHECK(rule.line == 39);
  CHECK(rule.min_cohort == 100);
  CHECK(rule.clip_l2 == 1.5);
  CHECK(rule.rounds == 10);
  CHECK(rule.deny_locations.size() == 2);
  CHECK(!rule.aggregator_view.has_value());
  CHECK(!rule.min_batch.has_value());
  CHECK(!rule.require_secagg.has_value());
  REQUIRE(rule.transfers.size() == 1);
  CHECK(rule.transfers[0].mechanism == Mechanism::kAdequacy);
}

TEST_CASE("ParsePolicy: every mistake is refused at its line, with the way to mend it") {
  struct Case {
    std::string from;
    std::string to;
    std::string says;
  };
  const Case cases[] = {
      {"schema = 1", "schema = 2", "this program reads 1"},
      {"version = 7", "version = 0", "lyon.toml:4:"},
      {"version = 7", "version = \"7\"", "whole number"},
      {"id = \"site/lyon\"", "id = \"Site Lyon\"", "lower-case letters"},
      {"expires = 2027-11-30", "expires = 2027-12-03", "366 days"},
      {"expires = 2027-11-30", "expires = 2026-12-01", "after not_before"},
      {"expires = 2027-11-30", "expires = \"soon\"", "must be a date"},
      {"threshold = 2", "threshold = 3", "number of signers"},
      {"threshold = 2", "treshold = 2", "`policy.threshold` is missing"},
      {"jurisdiction = \"FR\"", "jurisdiction = \"UK\"", "`GB`"},
      {"jurisdiction = \"FR\"", "jurisdiction = \"EU\"", "is a bloc"},
      {"jurisdiction = \"FR\"\n", "", "`site.jurisdiction` is missing"},
      {"control_jurisdictions = [\"FR\"]", "control_jurisdictions = []", "must not be empty"},
      {"[sandbox]\nnetwork", "[sandbox]\nnetwrok", "did you mean `sandbox.network`"},
      {"\"loopback\"", "\"lopback\"", "did you mean `loopback`"},
      {"\"loopback\"", "\"all\"", "known are `none`"},
      {"\"rounded\"", "\"Rounded\"", "did you mean `rounded`"},
      {"alias = \"ct-lung\"", "alias = \"CT lung\"", "lyon.toml:29:"},
      {"categories = [\"health\"]", "categories = []", "must not be empty"},
      {"categories = [\"health\"]", "categories = [\"health\", \"none\"]", "beside other"},
      {"[\"health\"]", "[\"none\"]", "no category is special"},
      {"special_category_basis = \"A9-2-j\"\n", "", "a category is special"},
      {"\"A9-2-j\"", "\"A9-2-z\"", "known are `A9-2-a`"},
      {"\"A6-1-e\"", "\"public interest\"", "known are `A6-1-a`"},
      {"regimes = [\"eu-gdpr\"]", "regimes = []", "name the law"},
      {"[\"eu-gdpr\"]", "[\"gdpr\"]", "eu-gdpr"},
      {"[\"scientific_research\"]", "[\"research\"]", "not a code"},
      {"sha256 = \"0123", "sha256 = \"X123",
       "`dataset[0].refs.dpia.sha256` must be 64 lower-case hexadecimal"},
      {"dataset = \"ct-lung\"", "dataset = \"ct-lungs\"", "names no [[dataset]]"},
      {"[\"delta.masked\"]", "[\"delta.maskd\"]", "did you mean `delta.masked`"},
      {"[\"EEA\"]\nallow.update", "[\"XX\"]\nallow.update", "jurisdiction or bloc"},
      {"[\"US\", \"CN\"]", "[\"US\", \"EUROPE\"]", "continent"},
      {"min_contributors = 5", "min_contributors = 2", "from 3"},
      {"clip_l2 = 1.5", "clip_l2 = 0", "must be a number"},
      {"clip_l2 = 1.5", "clip_l2 = inf", "must be a number"},
      {"limit.rounds = 10", "limit.rounds = -1", "whole number"},
      {"limit.rounds = 10", "limit.round = 10", "did you mean `rule.limit.rounds`"},
      {"limit.rounds = 10", "limits.rounds = 10", "unknown key `rule.limits`"},
      {"mechanism = \"adequacy\"", "mechanism = \"derogation:explicit_consent\"", "not a code"},
      {"mechanism = \"adequacy\"", "mechanism = \"derogation:A49-1-a\"", "needs valid_until"},
      {"mechanism = \"adequacy\"", "mechanism = \"scc\"", "needs valid_until"},
      {"ref = \"2000/518/EC\"", "ref = \"\"", "needs a ref"},
      {"ref = \"2000/518/EC\"", "ref = \"x\"\nimporter = \"A B\"", "as in the roster"},
      {"to = \"CH\"", "to = \"Switzerland\"", "jurisdiction or bloc"},
      {"keys = [\"dpo-lyon\"]", "keys = []", "keys that may approve"},
      {"count = 1", "count = 0", "whole number"},
      {"role = \"dpo\"", "role = \"boss\"", "known are"},
      {"required = [{", "requires = [{", "required"},
      {"[[rule]]\nid = \"S-12\"", "[[rule]]\nid = \"S 12\"", "letters, digits"},
      {"[[rule]]\nid = \"S-12\"", "[[rule]]\nid = \"S-12\"\n[[rule]]\nid = \"S-12\"", "twice"},
      {"[update]", "[updates]", "did you mean `update`"},
      {"[policy]", "[policy", "lyon.toml:1:"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    const auto policy =
        ParsePolicy(Replaced(kSite, c.from, c.to), "lyon.toml", PolicySource::kSite);
    CHECK(policy.status().code() == StatusCode::kInvalidArgument);
    const std::string message(Message(policy.status()));
    CAPTURE(message);
    CHECK(message.starts_with("lyon.toml:"));
    CHECK(message.find(c.says) != std::string::npos);
  }
}

TEST_CASE("ParsePolicy: the newer keys arrive, and absent is told from empty") {
  std::string text =
      Replaced(kSite, "threshold = 2",
               "threshold = 2\ncooldown = \"24h\"\nlegal_facts = "
               "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"");
  text = Replaced(text, "count = 1 }", "count = 2, distinct_org = true }");
  text = Replaced(text, "keys = [\"dpo-lyon\"]",
                  "keys = [\"dpo-lyon\", \"dpo-paris\"]\nmax_age = \"30d\"");
  text = Replaced(text, "network = \"loopback\"", "profile_min = \"ns+seccomp\"");
  text = Replaced(text, "limit.rounds = 10", R"(limit.epsilon_total = 4
limit.budget_window = "life"
deny.outputs = []
deny.purposes = ["marketing"]
allow.derogations = false
require.evidence = "attested")");
  text += R"(
[retention]
audit_min = "6y"

[audit]
witnesses_min = 0
max_unwitnessed_age = "90m"
)";

  const auto policy = ParsePolicy(text, "lyon.toml", PolicySource::kSite);

  REQUIRE_MESSAGE(policy.ok(), ToString(policy.status()));
  CHECK(policy->identity.cooldown == Duration(86'400));
  CHECK(policy->identity.legal_facts.size() == 64);
  CHECK(policy->approvals->required[0].distinct_org);
  CHECK(policy->approvals->max_age == Duration(30 * 86'400));
  CHECK(policy->sandbox_profile == SandboxProfile::kNamespaces);
  CHECK(!policy->sandbox_network.has_value());
  CHECK(policy->retention.audit_min == Duration(6LL * 366 * 86'400));
  CHECK(!policy->retention.update_max.has_value());
  CHECK(policy->audit.witnesses_min == 0U);
  CHECK(policy->audit.max_unwitnessed_age == Duration(5400));
  CHECK(policy->audit.line > policy->retention.line);
  CHECK(policy->time_line == 0);
  const Rule& rule = policy->rules[0];
  CHECK(rule.epsilon_total == 4.0);
  CHECK(rule.budget_window == kLifeOfDataset);
  CHECK(rule.deny_outputs.has_value());
  CHECK(rule.deny_outputs->empty());
  CHECK(rule.deny_purposes == std::set{Purpose::kMarketing});
  CHECK(rule.derogations == false);
  CHECK(rule.evidence == LocationEvidence::kAttested);
  CHECK(!rule.models.has_value());
  CHECK(!rule.transit.has_value());
}

TEST_CASE("ParsePolicy: only a site describes a site, datasets and legal grounds") {
  const std::string head = kSite.substr(0, kSite.find("[site]"));
  const std::string rule = "[[rule]]\nid = \"F-1\"\n";
  const std::string ground =
      "[[rule.transfer]]\nto = \"CH\"\nmechanism = \"adequacy\"\nref = \"x\"\n";
  for (const PolicySource source : {PolicySource::kFederation, PolicySource::kAggregator}) {
    CHECK(ParsePolicy(head + rule, "f.toml", source).ok());
    CHECK(Message(ParsePolicy(kSite, "f.toml", source).status()).find("site policy") !=
          std::string_view::npos);
    CHECK(Message(ParsePolicy(head + rule + ground, "f.toml", source).status())
              .find("the exporter must have the ground") != std::string_view::npos);
  }
  CHECK(Message(ParsePolicy(head + rule, "s.toml", PolicySource::kSite).status())
            .find("`site` is missing") != std::string_view::npos);
  CHECK(!ParsePolicy(kSite, "s.toml", PolicySource::kNone).ok());
}

TEST_CASE("ParsePolicy: recipients are names of a closed form") {
  const auto with = [](const std::string& name) {
    return ParsePolicy(Replaced(kSite, "allow.update_kinds",
                                "allow.recipients = [\"" + name + "\"]\nallow.update_kinds"),
                       "s.toml", PolicySource::kSite);
  };
  for (const std::string name : {"sites", "operator", "zurich-basel", "operator/alice"}) {
    CAPTURE(name);
    CHECK(with(name).ok());
  }
  for (const std::string name : {"*", "", "Sites", "site/x", "operator/", "a b"}) {
    CAPTURE(name);
    CHECK(!with(name).ok());
  }
}

}  // namespace domicile::policy

#include "policy/language/print.h"

#include <chrono>
#include <string_view>
#include <type_traits>

#include "base/text.h"
#include "policy/language/duration.h"
#include "policy/language/ranges.h"

namespace domicile::policy {
namespace {

// A TOML basic string.
std::string Quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\u00";
      quoted += kHex[byte >> 4U];
      quoted += kHex[byte & 15U];
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// A date where it says everything, else a UTC time with as many digits as it takes.
std::string Time(WallTime time) {
  std::string text = PrintTime(time);
  constexpr std::string_view kMidnight = "T00:00:00.000Z";
  const auto nanoseconds = (time.time_since_epoch() % std::chrono::milliseconds(1)).count();
  if (nanoseconds != 0) {
    const std::string digits = std::to_string(1'000'000 + nanoseconds);
    return text.replace(text.size() - 1, 1, digits.substr(1) + "Z");
  }
  return text.ends_with(kMidnight) ? text.substr(0, text.size() - kMidnight.size()) : text;
}

std::string Written(const std::string& text) { return Quoted(text); }
std::string Written(bool value) { return value ? "true" : "false"; }
std::string Written(std::uint32_t value) { return std::to_string(value); }
std::string Written(std::uint64_t value) { return std::to_string(value); }
std::string Written(double value) { return PrintDouble(value); }
std::string Written(WallTime value) { return Time(value); }
std::string Written(Duration value) {
  return Quoted(value == kLifeOfDataset ? std::string(kLife) : PrintDuration(value));
}
std::string Written(const Jurisdiction& place) { return Quoted(place.text()); }
std::string Written(const Area& area) { return Quoted(area.text()); }
template <typename E>
requires std::is_enum_v<E> std::string Written(E value) { return Quoted(Code(value)); }
std::string Written(const DocumentRef& document) {
  return "{ id = " + Written(document.id) + ", sha256 = " + Written(document.sha256) +
         ", valid_until = " + Written(document.valid_until) + " }";
}
std::string Written(const RequiredApproval& approval) {
  return "{ role = " + Written(approval.role) + ", count = " + Written(approval.count) +
         (approval.distinct_org ? ", distinct_org = true }" : " }");
}
template <typename List>
std::string ListOf(const List& list) {
  std::string text;
  for (const auto& item : list) {
    text += (text.empty() ? "" : ", ") + Written(item);
  }
  return "[" + text + "]";
}
template <typename T>
std::string Written(const std::set<T>& values) {
  return ListOf(values);
}
template <typename T>
std::string Written(const std::vector<T>& values) {
  return ListOf(values);
}

// One table: a heading, and its keys.
class Table {
 public:
  explicit Table(std::string_view heading) : heading_(heading) {}
  template <typename T>
  void Set(std::string_view key, const T& value) {
    body_ += std::string(key) + " = " + Written(value) + "\n";
  }
  template <typename T>
  void Try(std::string_view key, const std::optional<T>& value) {
    if (value) {
      Set(key, *value);
    }
  }
  // A text or a set of which empty and absent are the same.
  template <typename T>
  void UnlessEmpty(std::string_view key, const T& value) {
    if (!value.empty()) {
      Set(key, value);
    }
  }
  // Nothing for a table without keys.
  std::string Text() const { return body_.empty() ? "" : "\n" + heading_ + "\n" + body_; }

 private:
  std::string heading_;
  std::string body_;
};

std::string IdentityText(const PolicyIdentity& identity) {
  Table table("[policy]");
  table.Set("schema", identity.schema);
  table.Set("id", identity.id);
  table.Set("version", identity.version);
  table.Set("not_before", identity.not_before);
  table.Set("expires", identity.expires);
  table.Set("issuer", identity.issuer);
  table.Set("signers", identity.signers);
  table.Set("threshold", identity.threshold);
  table.UnlessEmpty("legal_facts", identity.legal_facts);
  table.Try("cooldown", identity.cooldown);
  return table.Text().substr(1);
}

std::string SiteText(const SiteSection& site) {
  Table table("[site]");
  table.Set("jurisdiction", site.jurisdiction);
  table.Set("control_jurisdictions", site.control_jurisdictions);
  table.Set("location_evidence", site.location_evidence);
  return table.Text();
}

std::string DatasetText(const PolicyDataset& dataset) {
  Table table("[[dataset]]");
  table.Set("alias", dataset.alias.text());
  table.Set("name", dataset.name);
  table.Set("categories", dataset.categories);
  table.Set("subject_jurisdictions", dataset.subject_jurisdictions);
  if (dataset.subjects_count != SubjectsCount::kUnset) {
    table.Set("subjects_count", dataset.subjects_count);
  }
  table.Set("regimes", dataset.regimes);
  table.Set("lawful_basis", dataset.lawful_basis);
  table.UnlessEmpty("special_category_basis", dataset.special_category_basis);
  table.Set("purpose", dataset.purposes);
  table.Try("refs.dpia", dataset.dpia);
  table.Try("refs.tia", dataset.tia);
  table.Try("refs.permit", dataset.permit);
  table.Try("refs.baa", dataset.baa);
  return table.Text();
}

std::string SettingsText(const Policy& policy) {
  Table model("[model]");
  model.Try("recipients", policy.model_recipients);
  Table approvals("[approvals]");
  if (policy.approvals) {
    approvals.Set("required", policy.approvals->required);
    approvals.UnlessEmpty("keys", policy.approvals->keys);
    approvals.Try("max_age", policy.approvals->max_age);
  }
  Table sandbox("[sandbox]");
  sandbox.Try("network", policy.sandbox_network);
  sandbox.Try("profile_min", policy.sandbox_profile);
  Table update("[update]");
  update.Try("weights", policy.weights);
  Table retention("[retention]");
  retention.Try("audit_min", policy.retention.audit_min);
  retention.Try("update_max", policy.retention.update_max);
  retention.Try("model_review", policy.retention.model_review);
  Table erasure("[erasure]");
  erasure.Try("on_withdrawal", policy.on_withdrawal);
  Table audit("[audit]");
  audit.Try("witnesses_min", policy.audit.witnesses_min);
  audit.Try("max_unwitnessed_age", policy.audit.max_unwitnessed_age);
  Table time("[time]");
  time.Try("max_skew", policy.max_skew);
  return model.Text() + approvals.Text() + sandbox.Text() + update.Text() + retention.Text() +
         erasure.Text() + audit.Text() + time.Text();
}

void SetAllowAndDeny(const Rule& rule, Table& table) {
  table.Try("allow.aggregator_locations", rule.aggregator_locations);
  table.Try("allow.aggregator_control", rule.aggregator_control);
  table.Try("allow.recipients", rule.recipients);
  table.Try("allow.update_kinds", rule.update_kinds);
  table.Try("allow.purposes", rule.purposes);
  table.Try("allow.aggregator_view", rule.aggregator_view);
  table.Try("allow.transit", rule.transit);
  table.Try("allow.models", rule.models);
  table.Try("allow.trainers", rule.trainers);
  table.Try("allow.contributors", rule.contributors);
  table.Try("allow.derogations", rule.derogations);
  table.UnlessEmpty("deny.locations", rule.deny_locations);
  table.UnlessEmpty("deny.control", rule.deny_control);
  table.UnlessEmpty("deny.recipients", rule.deny_recipients);
  table.UnlessEmpty("deny.update_kinds", rule.deny_update_kinds);
  table.Try("deny.outputs", rule.deny_outputs);
  table.Try("deny.purposes", rule.deny_purposes);
}

void SetNumbers(const Rule& rule, Table& table) {
  table.Try("require.evidence", rule.evidence);
  table.Try("require.privacy.min_contributors", rule.min_contributors);
  table.Try("require.privacy.min_cohort", rule.min_cohort);
  table.Try("require.privacy.min_batch", rule.min_batch);
  table.Try("require.privacy.min_local_steps", rule.min_local_steps);
  table.Try("require.privacy.clip_l2", rule.clip_l2);
  table.Try("require.privacy.dp_mode", rule.dp_mode);
  table.Try("require.privacy.require_secagg", rule.require_secagg);
  table.Try("require.privacy.secagg_threshold", rule.secagg_threshold);
  table.Try("require.privacy.dp_unit", rule.dp_unit);
  table.Try("require.privacy.sampling", rule.sampling);
  table.Try("limit.rounds", rule.rounds);
  table.Try("limit.runs_per_day", rule.runs_per_day);
  table.Try("limit.update_bytes", rule.update_bytes);
  table.Try("limit.released_numbers_per_record", rule.released_numbers_per_record);
  table.Try("limit.metrics", rule.metrics);
  table.Try("limit.params_per_record", rule.params_per_record);
  table.Try("limit.epsilon_total", rule.epsilon_total);
  table.Try("limit.epsilon_per_run", rule.epsilon_per_run);
  table.Try("limit.delta", rule.delta);
  table.Try("limit.budget_window", rule.budget_window);
  table.Try("limit.export_subjects_per_year", rule.export_subjects_per_year);
}

std::string RuleText(const Rule& rule) {
  Table table("[[rule]]");
  table.Set("id", rule.id);
  if (rule.dataset) {
    table.Set("dataset", rule.dataset->text());
  }
  SetAllowAndDeny(rule, table);
  SetNumbers(rule, table);
  std::string text = table.Text();
  for (const TransferGround& ground : rule.transfers) {
    Table transfer("[[rule.transfer]]");
    transfer.Set("to", ground.to);
    transfer.Set("mechanism", ground.mechanism);
    transfer.Set("ref", ground.ref);
    transfer.Try("valid_until", ground.valid_until);
    transfer.UnlessEmpty("importer", ground.importer);
    text += transfer.Text();
  }
  return text;
}

}  // namespace

std::string PrintPolicy(const Policy& policy) {
  std::string text = IdentityText(policy.identity);
  if (policy.site) {
    text += SiteText(*policy.site);
  }
  for (const PolicyDataset& dataset : policy.datasets) {
    text += DatasetText(dataset);
  }
  text += SettingsText(policy);
  for (const Rule& rule : policy.rules) {
    text += RuleText(rule);
  }
  return text;
}

}  // namespace domicile::policy

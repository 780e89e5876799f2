#include "policy/language/random_policy.h"

#include <array>
#include <chrono>
#include <string>
#include <vector>

namespace domicile::policy {
namespace {

constexpr std::array<std::string_view, 12> kAreas = {
    "EU", "EEA", "DE", "DE-BY", "US", "US-CA", "US-DE", "CN", "HK", "CH", "CA-QC", "NO"};
constexpr std::array<std::string_view, 8> kPlaces = {"DE", "DE-BY", "US-OH", "CH-ZH",
                                                     "NA", "RE",    "CN",    "GB"};
constexpr std::array<std::string_view, 5> kRecipients = {"sites", "operator", "operator/alice",
                                                         "lyon", "zurich-basel"};
// What TOML must escape, and what it must not.
constexpr std::array<std::string_view, 6> kTexts = {"plain",
                                                    "with \"quotes\"",
                                                    "back\\slash",
                                                    "tab\tline\nend\x01\x7f",
                                                    "Z\u00fcrich \u2192 Basel",
                                                    "# not a comment"};

// Draws from one engine.
class Draw {
 public:
  explicit Draw(std::mt19937_64& engine) : engine_(&engine) {}

  std::uint64_t Below(std::uint64_t end) { return (*engine_)() % end; }
  bool Coin() { return Below(2) == 0; }
  template <typename List>
  auto OneOf(const List& list) {
    return list[Below(std::size(list))];
  }
  std::string Text() { return std::string(OneOf(kTexts)); }
  std::string Digest() {
    std::string digest(64, '0');
    for (char& c : digest) {
      c = "0123456789abcdef"[Below(16)];
    }
    return digest;
  }
  WallTime Time() {
    const std::int64_t milliseconds = static_cast<std::int64_t>(Below(40'000)) * 86'400'000 +
                                      (Coin() ? 0 : static_cast<std::int64_t>(Below(86'400'000)));
    return WallTime(std::chrono::milliseconds(milliseconds));
  }
  Duration Span() {
    constexpr std::array<std::int64_t, 6> kUnits = {1, 60, 3600, 86'400, 604'800, 31'622'400};
    return Duration(static_cast<std::int64_t>(1 + Below(500)) * OneOf(kUnits));
  }
  double Decimal(double low, double high) {
    switch (Below(4)) {
      case 0:
        return low;
      case 1:
        return high;
      default:
        return low + (high - low) * (static_cast<double>(Below(1U << 20U)) / (1U << 20U));
    }
  }
  template <typename E>
  E Code() {
    return OneOf(AllOf<E>());
  }
  template <typename E>
  std::set<E> Codes() {
    std::set<E> values;
    for (const E value : AllOf<E>()) {
      if (Coin()) {
        values.insert(value);
      }
    }
    return values;
  }
  template <typename T, typename List>
  std::set<T> Parsed(const List& list) {
    std::set<T> values;
    for (const std::string_view text : list) {
      if (Below(3) == 0) {
        values.insert(*T::Parse(text));
      }
    }
    return values;
  }
  std::set<Area> Areas() { return Parsed<Area>(kAreas); }
  std::set<std::string> Recipients() {
    return {std::string(OneOf(kRecipients)), std::string(OneOf(kRecipients))};
  }

  // Draws the value only if it is to be there.
  template <typename F>
  auto Maybe(F draw) -> std::optional<decltype(draw())> {
    return Coin() ? std::optional(draw()) : std::nullopt;
  }

 private:
  std::mt19937_64* engine_;
};

PolicyIdentity Identity(Draw& draw) {
  PolicyIdentity identity;
  identity.id = "site/a-" + std::to_string(draw.Below(100));
  identity.version = 1 + draw.Below((std::uint64_t{1} << 53U) - 1);
  identity.schema = 1;
  identity.not_before = draw.Time();
  identity.expires = identity.not_before + std::chrono::hours(1 + draw.Below(8784));
  identity.issuer = draw.Text();
  for (std::uint64_t i = 0; i <= draw.Below(3); ++i) {
    identity.signers.push_back("key-" + std::to_string(i));
  }
  identity.threshold = static_cast<std::uint32_t>(1 + draw.Below(identity.signers.size()));
  identity.legal_facts = draw.Coin() ? draw.Digest() : "";
  identity.cooldown = draw.Maybe([&] { return draw.Span(); });
  return identity;
}

std::optional<DocumentRef> Document(Draw& draw) {
  return draw.Maybe([&] { return DocumentRef{draw.Text(), draw.Digest(), draw.Time()}; });
}

PolicyDataset Dataset(Draw& draw, std::size_t index) {
  PolicyDataset dataset;
  dataset.alias = *DatasetAlias::Parse("data-" + std::to_string(index));
  dataset.name = draw.Text();
  dataset.categories = draw.Codes<Category>();
  dataset.categories.erase(Category::kOrdinary);
  if (dataset.categories.empty()) {
    dataset.categories = {Category::kOrdinary};
  }
  dataset.subject_jurisdictions = draw.Parsed<Jurisdiction>(kPlaces);
  dataset.subject_jurisdictions.insert(*Jurisdiction::Parse("FR"));
  dataset.subjects_count = draw.Coin() ? draw.Code<SubjectsCount>() : SubjectsCount::kUnset;
  dataset.regimes = draw.Codes<Regime>();
  dataset.regimes.insert(Regime::kEuGdpr);
  dataset.lawful_basis = draw.OneOf(LawfulBases());
  if (dataset.IsSpecialCategory()) {
    dataset.special_category_basis = draw.OneOf(SpecialCategoryBases());
  }
  dataset.purposes = draw.Codes<Purpose>();
  dataset.dpia = Document(draw);
  dataset.tia = Document(draw);
  dataset.permit = Document(draw);
  dataset.baa = Document(draw);
  return dataset;
}

TransferGround Ground(Draw& draw) {
  TransferGround ground;
  ground.to = *Area::Parse(draw.OneOf(kAreas));
  ground.mechanism = draw.Code<Mechanism>();
  ground.ref = draw.Text();
  if (ground.mechanism != Mechanism::kAdequacy || draw.Coin()) {
    ground.valid_until = draw.Time();
  }
  ground.importer = draw.Coin() ? "mercy-hospital" : "";
  return ground;
}

void DrawAllowAndDeny(Draw& draw, Rule& rule) {
  const auto areas = [&] { return draw.Areas(); };
  const auto digests = [&] { return std::set<std::string>{draw.Digest(), draw.Digest()}; };
  rule.aggregator_locations = draw.Maybe(areas);
  rule.aggregator_control = draw.Maybe(areas);
  rule.recipients = draw.Maybe([&] { return draw.Recipients(); });
  rule.update_kinds = draw.Maybe([&] { return draw.Codes<UpdateKind>(); });
  rule.purposes = draw.Maybe([&] { return draw.Codes<Purpose>(); });
  rule.aggregator_view = draw.Maybe([&] { return draw.Code<View>(); });
  rule.transit = draw.Maybe(areas);
  rule.models = draw.Maybe(digests);
  rule.trainers = draw.Maybe(digests);
  rule.contributors = draw.Maybe([] { return std::set<std::string>{"budapest", "lyon"}; });
  rule.derogations = draw.Maybe([&] { return draw.Coin(); });
  rule.deny_locations = draw.Areas();
  rule.deny_control = draw.Areas();
  rule.deny_recipients = draw.Coin() ? draw.Recipients() : std::set<std::string>{};
  rule.deny_update_kinds = draw.Codes<UpdateKind>();
  rule.deny_outputs = draw.Maybe([&] { return draw.Codes<Output>(); });
  rule.deny_purposes = draw.Maybe([&] { return draw.Codes<Purpose>(); });
}

void DrawNumbers(Draw& draw, Rule& rule) {
  const auto count = [&] { return draw.Below((std::uint64_t{1} << 53U) - 1); };
  const auto from = [&](std::uint64_t low) {
    return draw.Maybe([&] { return static_cast<std::uint32_t>(low + draw.Below(1000)); });
  };
  const auto ratio = [&] { return draw.Decimal(0, 1e12); };
  const auto epsilon = [&] { return draw.Decimal(0, 1e6); };
  rule.evidence = draw.Maybe([&] { return draw.Code<LocationEvidence>(); });
  rule.min_contributors = from(3);
  rule.min_cohort = draw.Maybe([&] { return 1 + draw.Below(1000); });
  rule.min_batch = from(1);
  rule.min_local_steps = from(1);
  rule.clip_l2 = draw.Maybe([&] { return draw.Decimal(1e-9, 1e9); });
  rule.dp_mode = draw.Maybe([&] { return draw.Code<DpMode>(); });
  rule.require_secagg = draw.Maybe([&] { return draw.Coin(); });
  rule.secagg_threshold = draw.Maybe([&] { return draw.Decimal(0.5, 0.99); });
  rule.dp_unit = draw.Maybe([&] { return draw.Code<DpUnit>(); });
  rule.sampling = draw.Maybe([&] { return draw.Code<Sampling>(); });
  rule.rounds = draw.Maybe(count);
  rule.runs_per_day = draw.Maybe(count);
  rule.update_bytes = draw.Maybe(count);
  rule.released_numbers_per_record = draw.Maybe(ratio);
  rule.metrics = draw.Maybe(count);
  rule.params_per_record = draw.Maybe(ratio);
  rule.epsilon_total = draw.Maybe(epsilon);
  rule.epsilon_per_run = draw.Maybe(epsilon);
  rule.delta = draw.Maybe([&] { return draw.Decimal(0, 0.5); });
  rule.budget_window =
      draw.Maybe([&] { return draw.Below(3) == 0 ? kLifeOfDataset : draw.Span(); });
  rule.export_subjects_per_year = draw.Maybe(count);
}

void DrawSettings(Draw& draw, Policy& policy) {
  const auto span = [&] { return draw.Span(); };
  policy.model_recipients = draw.Maybe([&] { return draw.Areas(); });
  if (draw.Coin()) {
    ApprovalSection approvals;
    for (const ApprovalRole role : draw.Codes<ApprovalRole>()) {
      approvals.required.push_back(
          {role, static_cast<std::uint32_t>(1 + draw.Below(5)), draw.Coin()});
    }
    if (!approvals.required.empty() || draw.Coin()) {
      for (int i = 0; i < 25; ++i) {
        approvals.keys.push_back("key/" + std::to_string(i) + "!");
      }
    }
    approvals.max_age = draw.Maybe(span);
    policy.approvals = approvals;
  }
  policy.sandbox_network = draw.Maybe([&] { return draw.Code<SandboxNetwork>(); });
  policy.sandbox_profile = draw.Maybe([&] { return draw.Code<SandboxProfile>(); });
  policy.weights = draw.Maybe([&] { return draw.Code<WeightRule>(); });
  policy.retention.audit_min = draw.Maybe(span);
  policy.retention.update_max = draw.Maybe(span);
  policy.retention.model_review = draw.Maybe(span);
  policy.on_withdrawal = draw.Maybe([&] { return draw.Code<ErasureRule>(); });
  policy.audit.witnesses_min =
      draw.Maybe([&] { return static_cast<std::uint32_t>(draw.Below(1001)); });
  policy.audit.max_unwitnessed_age = draw.Maybe(span);
  policy.max_skew = draw.Maybe(span);
}

}  // namespace

Policy RandomPolicy(std::mt19937_64& engine, PolicySource source) {
  Draw draw(engine);
  Policy policy;
  policy.source = source;
  policy.identity = Identity(draw);
  const bool is_site = source == PolicySource::kSite;
  if (is_site) {
    policy.site = SiteSection{*Jurisdiction::Parse(draw.OneOf(kPlaces)),
                              draw.Parsed<Jurisdiction>(kPlaces), draw.Code<LocationEvidence>()};
    policy.site->control_jurisdictions.insert(policy.site->jurisdiction);
    for (std::size_t i = 0; i < draw.Below(4); ++i) {
      policy.datasets.push_back(Dataset(draw, i));
    }
  }
  DrawSettings(draw, policy);
  const std::uint64_t num_rules = draw.Below(4);
  for (std::uint64_t i = 0; i < num_rules; ++i) {
    Rule rule;
    rule.id = "R-" + std::to_string(i);
    if (is_site ? !policy.datasets.empty() && draw.Coin() : draw.Coin()) {
      rule.dataset = is_site ? draw.OneOf(policy.datasets).alias : *DatasetAlias::Parse("heart");
    }
    DrawAllowAndDeny(draw, rule);
    DrawNumbers(draw, rule);
    for (std::uint64_t each = 0; is_site && each < draw.Below(3); ++each) {
      rule.transfers.push_back(Ground(draw));
    }
    policy.rules.push_back(rule);
  }
  return policy;
}

}  // namespace domicile::policy

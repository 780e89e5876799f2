#include "cli/plan_words.h"

#include <bit>
#include <ostream>

#include "base/file.h"
#include "base/text.h"
#include "contracts/plan_facts.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestPlan = std::uint64_t{4} << 20U;

// What leaves one site over the whole job. A phase that is tried again sends the same bytes again,
// so attempts do not count.
struct Leaving {
  std::uint64_t statistics = 0;
  std::uint64_t each_round = 0;
  std::uint64_t metrics_each_round = 0;
  std::uint64_t evaluation = 0;
  std::uint64_t in_all = 0;
  std::uint32_t bits_per_number = 0;  // of a delta: the capacity of its grid
};

Leaving LeavingOf(const contracts::Plan& plan) {
  const policy::PlanFacts facts = contracts::FactsOf(plan);
  Leaving leaving;
  leaving.statistics = facts.statistics_numbers;
  leaving.each_round = facts.numbers_per_round;
  leaving.metrics_each_round = facts.metrics_per_round;
  leaving.evaluation = facts.evaluation_numbers;
  leaving.in_all = leaving.statistics + leaving.evaluation +
                   facts.rounds * (leaving.each_round + leaving.metrics_each_round);
  // 2 * max_level + 1 different values.
  leaving.bits_per_number = static_cast<std::uint32_t>(
      std::bit_width(2 * static_cast<std::uint64_t>(plan.DeltaMaxLevel())));
  return leaving;
}

// What of its data a site lets the model read.
std::string InputsOf(const contracts::SchemaContract& schema) {
  if (schema.image) {
    return "pictures, made " + std::to_string(schema.image->height) + " by " +
           std::to_string(schema.image->width) + " of " + std::to_string(schema.image->channels) +
           (schema.image->channels == 1 ? " channel" : " channels");
  }
  if (schema.text) {
    return "texts, the first " + std::to_string(schema.text->length) + " pieces of each";
  }
  std::vector<std::string> columns;
  for (const contracts::Feature& feature : schema.features) {
    columns.push_back(Visible(feature.column));
  }
  return Join(columns, ", ");
}

std::string LabelOf(const contracts::Label& label) {
  if (label.number.has_value()) {
    return Visible(label.column) + ", the number itself";
  }
  if (label.positive_above.has_value()) {
    return Visible(label.column) + " > " + PrintDouble(*label.positive_above);
  }
  std::vector<std::string> classes;
  for (const std::string& name : label.classes) {
    classes.push_back(Visible(name));
  }
  return Visible(label.column) + " as " + Join(classes, ", ");
}

std::string_view ViewWords(contracts::PlanView view) {
  switch (view) {
    case contracts::PlanView::kNone:
      break;
    case contracts::PlanView::kPlain:
      return "plain: the aggregator sees the numbers of this site alone";
    case contracts::PlanView::kMasked:
      return "masked: the aggregator sees this site's numbers behind masks";
    case contracts::PlanView::kSumOnly:
      return "sum_only: the aggregator sees sums over sites";
  }
  return "unknown";
}

std::string StepsOf(const contracts::TrainingPlan& training) {
  return training.local_epochs == 0
             ? std::to_string(training.local_steps) + " steps"
             : "as many steps as " + std::to_string(training.local_epochs) +
                   (training.local_epochs == 1 ? " pass" : " passes") + " over the rows takes";
}

// Empty where every pass is made.
std::string StoppingOf(const contracts::TrainingPlan& training) {
  const contracts::EarlyStoppingPlan& stopping = training.early_stopping;
  if (!stopping.enabled) {
    return "";
  }
  return "after " + std::to_string(stopping.patience) +
         (stopping.patience == 1 ? " pass" : " passes") + " without " +
         (stopping.min_improvement == 0
              ? "any improvement"
              : "an improvement of more than " + PrintDouble(stopping.min_improvement)) +
         " of the loss on a share of " + PrintDouble(stopping.validation_share) +
         " of the training rows, held out";
}

void PrintTraining(const contracts::Plan& plan, std::ostream& out) {
  out << "  training     " << plan.rounds.count << " rounds of " << StepsOf(plan.training) << ", ";
  if (plan.training.batch == 0) {
    out << "all rows in each";
  } else {
    out << plan.training.batch << " rows in each";
  }
  if (const std::string stopping = StoppingOf(plan.training); !stopping.empty()) {
    out << "\n  stops early  " << stopping;
  }
  out << "\n  contributors at least " << plan.rounds.quorum << ", at most " << plan.update.max_sites
      << "\n";
}

void PrintLeaving(const contracts::Plan& plan, std::ostream& out) {
  const Leaving leaving = LeavingOf(plan);
  out << "what leaves one site\n";
  if (leaving.statistics != 0) {
    out << "  once         " << leaving.statistics
        << " numbers: for each input a count, a sum, a sum of squares\n";
  }
  out << "  each round   " << leaving.each_round << " numbers of at most "
      << leaving.bits_per_number << " bits, norm at most " << PrintDouble(plan.update.clip_l2)
      << "; and " << leaving.metrics_each_round << " metrics\n";
  if (leaving.evaluation != 0) {
    out << "  at the end   " << leaving.evaluation
        << " numbers: counts of rows by class and score, and metrics\n";
  }
  out << "  in all       " << leaving.in_all << " numbers\n";
}

}  // namespace

std::string GroupedHex(const Digest& digest) {
  constexpr std::size_t kGroup = 4;
  const std::string hex = PrintHex(digest);
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += kGroup) {
    text += (i == 0 ? "" : " ") + hex.substr(i, kGroup);
  }
  return text;
}

StatusOr<contracts::Plan> ReadPlan(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestPlan));
  // No TOML file begins with a brace.
  if (!text.starts_with('{')) {
    return contracts::PlanFromJobFile(text, path);
  }
  StatusOr<contracts::Plan> plan = contracts::PlanFromText(text);
  if (!plan.ok()) {
    return Annotate(plan.status(), "`" + path + "`");
  }
  return plan;
}

void PrintPlanWords(const contracts::Plan& plan, std::ostream& out) {
  out << "plan \"" << Visible(plan.name) << "\"\n  digest       "
      << GroupedHex(contracts::PlanDigest(plan)) << "\n  purpose      " << plan.purpose
      << "\n  dataset      " << plan.dataset.text() << "\n";
  if (plan.model.kind == contracts::ModelKind::kRaw) {
    out << "  reads        what its own trainer reads of the dataset\n";
  } else {
    out << "  reads        " << InputsOf(plan.schema) << "\n  label        "
        << LabelOf(plan.schema.label) << "\n";
  }
  out << "  model        " << contracts::ModelKindName(plan.model.kind) << ", "
      << plan.NumParameters() << " parameters that are trained\n";
  if (plan.model.encoder.pretrained) {
    out << "  starts from  the model file " << GroupedHex(*plan.model.encoder.pretrained) << "\n";
  }
  out << "  recipients   " << Join(plan.recipients, ", ") << "\n  view         "
      << ViewWords(plan.update.view) << "\n";
  PrintTraining(plan, out);
  PrintLeaving(plan, out);
}

std::vector<std::string> PlanDifferences(const contracts::Plan& before,
                                         const contracts::Plan& now) {
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view what, const std::string& old_value,
                           const std::string& new_value) {
    if (old_value != new_value) {
      differences.push_back(std::string(what) + ": " + new_value + " (" + old_value + ")");
    }
  };
  const auto number = [&](std::string_view what, std::uint64_t old_value, std::uint64_t new_value) {
    compare(what, std::to_string(old_value), std::to_string(new_value));
  };
  const Leaving old_leaving = LeavingOf(before);
  const Leaving new_leaving = LeavingOf(now);
  compare("purpose", before.purpose, now.purpose);
  compare("recipients", Join(before.recipients, ", "), Join(now.recipients, ", "));
  compare("view", std::string(ViewWords(before.update.view)),
          std::string(ViewWords(now.update.view)));
  compare("reads", InputsOf(before.schema), InputsOf(now.schema));
  compare("label", LabelOf(before.schema.label), LabelOf(now.schema.label));
  compare("model", std::string(contracts::ModelKindName(before.model.kind)),
          std::string(contracts::ModelKindName(now.model.kind)));
  number("parameters", before.NumParameters(), now.NumParameters());
  number("rounds", before.rounds.count, now.rounds.count);
  compare("in a round", StepsOf(before.training), StepsOf(now.training));
  compare("stops early", StoppingOf(before.training), StoppingOf(now.training));
  number("rows a step (0: all)", before.training.batch, now.training.batch);
  number("contributors at least", before.rounds.quorum, now.rounds.quorum);
  number("numbers once", old_leaving.statistics, new_leaving.statistics);
  number("numbers each round", old_leaving.each_round + old_leaving.metrics_each_round,
         new_leaving.each_round + new_leaving.metrics_each_round);
  number("bits of a number", old_leaving.bits_per_number, new_leaving.bits_per_number);
  compare("norm at most", PrintDouble(before.update.clip_l2), PrintDouble(now.update.clip_l2));
  number("numbers at the end", old_leaving.evaluation, new_leaving.evaluation);
  number("numbers in all", old_leaving.in_all, new_leaving.in_all);
  if (differences.empty() && contracts::PlanDigest(before) != contracts::PlanDigest(now)) {
    differences.emplace_back("nothing of what leaves or who gets it; but the plan is another one");
  }
  return differences;
}

Json LeavingFacts(const contracts::Plan& plan) {
  const Leaving leaving = LeavingOf(plan);
  Json facts;
  facts.Set("statistics", leaving.statistics);
  facts.Set("each_round", leaving.each_round);
  facts.Set("metrics_each_round", leaving.metrics_each_round);
  facts.Set("evaluation", leaving.evaluation);
  facts.Set("in_all", leaving.in_all);
  facts.Set("bits_per_number", leaving.bits_per_number);
  return facts;
}

}  // namespace domicile::cli

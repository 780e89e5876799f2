// `domicile policy reach` and `who-can`: where data can get, and to whom.
#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/policy_analysis.h"
#include "cli/policy_sources.h"
#include "policy/analysis/reach.h"
#include "policy/analysis/who_can.h"

namespace domicile::cli {

namespace {

namespace analysis = policy::analysis;

struct ReachOptions {
  SourceOptions sources;
  std::string to;
  std::string subjects;
  std::string from;
  std::string by = "either";
  std::vector<std::string> kinds;
  std::string view;
  std::string purpose;
  std::string at;
  std::string within;
  bool json = false;
};

StatusOr<std::optional<policy::Area>> TryArea(const std::string& text) {
  if (text.empty()) {
    return std::optional<policy::Area>();
  }
  ASSIGN_OR_RETURN(policy::Area area, policy::Area::Parse(text));
  return std::optional<policy::Area>(std::move(area));
}

template <typename E>
StatusOr<E> CodeOf(const std::string& text, std::string_view option) {
  if (const std::optional<E> value = policy::FromCode<E>(text)) {
    return *value;
  }
  std::string known;
  for (const E value : policy::AllOf<E>()) {
    known += (known.empty() ? "" : ", ") + std::string(Code(value));
  }
  return Error(StatusCode::kInvalidArgument, std::string(option) + " must be one of " + known);
}

StatusOr<analysis::By> ByOf(const std::string& text) {
  if (text == "either") {
    return analysis::By::kEither;
  }
  if (text == "place") {
    return analysis::By::kPlace;
  }
  if (text == "control") {
    return analysis::By::kControl;
  }
  return Error(StatusCode::kInvalidArgument, "--by must be place, control or either");
}

// A bloc that no fact describes cannot be asked about: every answer would be "perhaps".
Status CheckBlocs(const std::vector<std::optional<policy::Area>>& areas,
                  const policy::Facts& facts) {
  for (const std::optional<policy::Area>& area : areas) {
    const bool is_known =
        !area || !area->IsBloc() ||
        std::any_of(facts.facts.begin(), facts.facts.end(), [&area](const policy::Fact& fact) {
          return fact.kind == policy::FactKind::kBloc && fact.bloc == area->text();
        });
    if (!is_known) {
      return Error(StatusCode::kInvalidArgument,
                   "no legal fact says who is in `" + area->text() + "`");
    }
  }
  return OkStatus();
}

StatusOr<analysis::Window> WindowOf(const std::string& at, const std::string& within,
                                    const Context& context) {
  analysis::Window window = {context.clock.Now(), {}};
  if (!at.empty()) {
    ASSIGN_OR_RETURN(window.from, ParseWhen(at, context.clock.Now()));
  }
  if (!within.empty()) {
    ASSIGN_OR_RETURN(window.until, ParseWhen(within, window.from));
    if (*window.until <= window.from) {
      return Error(StatusCode::kInvalidArgument, "--within ends before it begins");
    }
  }
  return window;
}

StatusOr<analysis::ReachQuestion> QuestionOf(const ReachOptions& options,
                                             const policy::Facts& facts, const Context& context) {
  analysis::ReachQuestion question;
  ASSIGN_OR_RETURN(question.to, policy::Area::Parse(options.to));
  ASSIGN_OR_RETURN(question.subjects, TryArea(options.subjects));
  ASSIGN_OR_RETURN(question.from, TryArea(options.from));
  RETURN_IF_ERROR(CheckBlocs({question.to, question.subjects, question.from}, facts));
  ASSIGN_OR_RETURN(question.by, ByOf(options.by));
  for (const std::string& text : options.kinds) {
    ASSIGN_OR_RETURN(const policy::UpdateKind kind, CodeOf<policy::UpdateKind>(text, "--kind"));
    question.kinds.insert(kind);
  }
  if (!options.view.empty()) {
    ASSIGN_OR_RETURN(question.view, CodeOf<policy::View>(options.view, "--view"));
  }
  if (!options.purpose.empty()) {
    ASSIGN_OR_RETURN(question.purpose, CodeOf<policy::Purpose>(options.purpose, "--purpose"));
  }
  ASSIGN_OR_RETURN(question.window, WindowOf(options.at, options.within, context));
  return question;
}

void PrintWay(const analysis::DatasetReach& reach, std::ostream& out) {
  out << "  " << reach.dataset << " of " << reach.site;
  if (reach.is_there) {
    out << ": the site itself is there\n";
    return;
  }
  out << (reach.reaches ? ":\n" : ": never\n");
  int number = 0;
  for (const analysis::Hop& hop : reach.way) {
    out << "  " << ++number << ". " << Print(hop);
  }
}

std::string Meaning(const std::string& by) {
  return by == "place"     ? ", as the place of a receiver"
         : by == "control" ? ", as the place that controls a receiver"
                           : ", as the place of a receiver or the one that controls it";
}

void PrintReach(const analysis::ReachResult& result, const ReachOptions& options,
                const LoadedWorld& loaded, std::ostream& out) {
  const analysis::DatasetReach* shortest = result.Shortest();
  if (shortest == nullptr) {
    out << "never: " << result.datasets.size() << " datasets, none can reach " << options.to
        << Meaning(options.by) << "\n";
  } else {
    const auto count =
        std::count_if(result.datasets.begin(), result.datasets.end(),
                      [](const analysis::DatasetReach& each) { return each.reaches; });
    out << "it can reach " << options.to << Meaning(options.by) << ": " << count << " of "
        << result.datasets.size() << " datasets; the shortest way:\n";
    PrintWay(*shortest, out);
  }
  for (const analysis::DatasetReach& each : result.datasets) {
    if (&each != shortest) {
      out << "  " << each.dataset << " of " << each.site << ": "
          << (each.is_there  ? "the site itself is there"
              : each.reaches ? std::to_string(each.way.size()) + " hops"
                             : "never")
          << "\n";
    }
  }
  out << Print(result.covered);
  for (const std::string& note : loaded.notes) {
    out << "  " << note << "\n";
  }
  out << "  inputs sha256 " << loaded.digest << "\n";
}

Json ReachJson(const analysis::ReachResult& result, const LoadedWorld& loaded) {
  JsonArray datasets;
  for (const analysis::DatasetReach& each : result.datasets) {
    JsonArray way;
    for (const analysis::Hop& hop : each.way) {
      way.push_back(ToJson(hop));
    }
    datasets.push_back(JsonObject{{"site", each.site},
                                  {"dataset", each.dataset},
                                  {"reaches", each.reaches},
                                  {"site_is_there", each.is_there},
                                  {"way", std::move(way)}});
  }
  return JsonObject{{"reaches", result.Shortest() != nullptr},
                    {"datasets", std::move(datasets)},
                    {"covered", ToJson(result.covered)},
                    {"inputs", loaded.digest}};
}

StatusOr<Exit> RunReach(const ReachOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  ASSIGN_OR_RETURN(const analysis::ReachQuestion question,
                   QuestionOf(options, loaded.world.facts, context));
  const analysis::ReachResult result = analysis::Reach(loaded.world, question);
  if (result.datasets.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "no dataset fits the question: check --subjects and --from");
  }
  if (options.json) {
    PrintFacts(context, ReachJson(result, loaded));
  } else {
    PrintReach(result, options, loaded, context.out);
  }
  return result.Shortest() == nullptr ? Exit::kDone : Exit::kNotSo;
}

struct WhoCanOptions {
  SourceOptions sources;
  std::string dataset;
  std::string site;
  std::string at;
  bool json = false;
};

StatusOr<Exit> RunWhoCan(const WhoCanOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  ASSIGN_OR_RETURN(const DatasetAlias dataset, DatasetAlias::Parse(options.dataset));
  ASSIGN_OR_RETURN(analysis::Window window, WindowOf(options.at, "", context));
  window.until = window.from + std::chrono::nanoseconds(1);  // that instant
  const analysis::WhoCanResult result =
      analysis::WhoCan(loaded.world, options.site, dataset, window);
  if (!result.is_known) {
    return Error(StatusCode::kInvalidArgument,
                 "no site policy describes the dataset `" + dataset.text() + "`" +
                     (options.site.empty() ? "" : " in `" + options.site + "`"));
  }
  if (options.json) {
    JsonArray allowed;
    for (const analysis::Crossing& crossing : result.allowed) {
      allowed.push_back(ToJson(crossing));
    }
    PrintFacts(context, JsonObject{{"allowed", std::move(allowed)},
                                   {"covered", ToJson(result.covered)},
                                   {"inputs", loaded.digest}});
  } else {
    context.out << (result.allowed.empty() ? "nobody\n" : "");
    for (const analysis::Crossing& crossing : result.allowed) {
      context.out << Print(crossing);
    }
    context.out << Print(result.covered);
    for (const std::string& note : loaded.notes) {
      context.out << "  " << note << "\n";
    }
    context.out << "  inputs sha256 " << loaded.digest << "\n";
  }
  return result.allowed.empty() ? Exit::kNotSo : Exit::kDone;
}

}  // namespace

void AddPolicyReach(CLI::App& group, Context& context) {
  auto reach = std::make_shared<ReachOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command = AddCommand(
      group, "reach",
      "Whether data can ever get to a place, in any number of hops: exit 0 never, 1 it can",
      "domicile policy reach deploy/examples/heart --subjects HU --to BR --within 180d");
  AddSourceOptions(*command, reach->sources);
  command->add_option("--to", reach->to, "a country, subdivision or bloc")->required();
  command->add_option("--subjects", reach->subjects, "only data about people of this area");
  command->add_option("--from", reach->from, "only sites in this area");
  command->add_option("--by", reach->by, "where the receiver is: place, control or either")
      ->capture_default_str();
  command->add_option("--kind", reach->kinds, "only these kinds of numbers; default: any");
  command->add_option("--view", reach->view, "only where the receiver sees at least this");
  command->add_option("--purpose", reach->purpose, "only for this purpose; default: any");
  command->add_option("--at", reach->at, "from this time on; default: now");
  command->add_option("--within", reach->within, "until a date, or for 90d; default: for ever");
  command->add_flag("--json", reach->json, "print facts as JSON");
  OnRun(*command, context, [reach, &context] { return RunReach(*reach, context); });

  auto who = std::make_shared<WhoCanOptions>();  // as above
  CLI::App* const who_command =
      AddCommand(group, "who-can", "Who may get what of a dataset: exit 1 if nobody",
                 "domicile policy who-can deploy/examples/heart --dataset heart");
  AddSourceOptions(*who_command, who->sources);
  who_command->add_option("--dataset", who->dataset, "its alias")->required();
  who_command->add_option("--site", who->site, "id of one site policy; default: all");
  who_command->add_option("--at", who->at, "at this time; default: now");
  who_command->add_flag("--json", who->json, "print facts as JSON");
  OnRun(*who_command, context, [who, &context] { return RunWhoCan(*who, context); });
}

}  // namespace domicile::cli

// `domicile policy diff`, `conflicts`, `shadowed`, `expiring`, `simulate`.
#include "cli/policy_analysis.h"

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/policy_sources.h"
#include "policy/analysis/diff.h"
#include "policy/analysis/expiring.h"
#include "policy/analysis/shadowed.h"
#include "policy/analysis/simulate.h"

namespace domicile::cli {

namespace {

namespace analysis = policy::analysis;

Json CrossingsJson(const std::vector<analysis::Crossing>& crossings) {
  JsonArray json;
  for (const analysis::Crossing& crossing : crossings) {
    json.push_back(ToJson(crossing));
  }
  return json;
}

Json DiffJson(const analysis::DiffResult& result) {
  JsonArray settings;
  for (const analysis::SettingChange& change : result.settings) {
    settings.push_back(JsonObject{{"site", change.site},
                                  {"dataset", change.dataset},
                                  {"key", change.key},
                                  {"before", change.before},
                                  {"after", change.after},
                                  {"loosens", change.loosens}});
  }
  return JsonObject{{"tightening", result.IsTightening()},    {"same", result.IsSame()},
                    {"gained", CrossingsJson(result.gained)}, {"lost", CrossingsJson(result.lost)},
                    {"settings", std::move(settings)},        {"covered", ToJson(result.covered)}};
}

void PrintCrossings(const char* title, const char* sign,
                    const std::vector<analysis::Crossing>& crossings, std::ostream& out) {
  if (!crossings.empty()) {
    out << title << "\n";
  }
  for (const analysis::Crossing& crossing : crossings) {
    out << "  " << sign << " " << Print(crossing);
  }
}

void PrintDiff(const analysis::DiffResult& result, std::ostream& out) {
  PrintCrossings("gained: allowed only after", "+", result.gained, out);
  PrintCrossings("lost: allowed only before", "-", result.lost, out);
  for (const analysis::SettingChange& change : result.settings) {
    out << (change.loosens ? "  + " : "  - ") << change.key << " "
        << (change.before.empty() ? "no bound" : change.before) << " -> "
        << (change.after.empty() ? "no bound" : change.after)
        << (change.loosens ? ", looser" : ", stricter")
        << (change.dataset.empty() ? " (" + change.site + ")"
                                   : " (" + change.dataset + " of " + change.site + ")")
        << "\n";
  }
  out << Print(result.covered);
}

struct DiffOptions {
  std::string before;
  std::string after;
  std::vector<std::string> others;
  std::string facts;
  std::string at;
  bool json = false;
};

// Before and after may be two folders, or two versions of one file among `others`.
StatusOr<LoadedWorld> LoadSide(const std::string& path, const DiffOptions& options) {
  SourceOptions sources = {{path}, options.facts};
  sources.paths.insert(sources.paths.end(), options.others.begin(), options.others.end());
  return LoadWorld(sources);
}

StatusOr<Exit> RunDiff(const DiffOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld before, LoadSide(options.before, options));
  ASSIGN_OR_RETURN(const LoadedWorld after, LoadSide(options.after, options));
  analysis::Window window = {context.clock.Now(), {}};
  if (!options.at.empty()) {
    ASSIGN_OR_RETURN(window.from, ParseWhen(options.at, window.from));
  }
  const analysis::DiffResult result = analysis::Diff(before.world, after.world, window);
  if (options.json) {
    PrintFacts(context, DiffJson(result));
  } else {
    context.out << (!result.has_site        ? "without a site policy nothing can be told\n"
                    : result.IsSame()       ? "the same answers, all of them\n"
                    : result.IsTightening() ? "a tightening: nothing is gained\n"
                                            : "a loosening: it needs its signers\n");
    PrintDiff(result, context.out);
  }
  return result.IsTightening() ? Exit::kDone : Exit::kNotSo;
}

struct WorldOptions {
  SourceOptions sources;
  std::string text;  // --within or --fact-revoked
  std::string at;
  bool json = false;
};

StatusOr<WallTime> StartOf(const WorldOptions& options, const Context& context) {
  return options.at.empty() ? StatusOr<WallTime>(context.clock.Now())
                            : ParseWhen(options.at, context.clock.Now());
}

StatusOr<Exit> RunConflicts(const WorldOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  const std::vector<std::string> conflicts = analysis::Conflicts(loaded.world);
  if (options.json) {
    PrintFacts(context, JsonObject{{"conflicts", JsonArray(conflicts.begin(), conflicts.end())}});
  } else {
    context.out << (conflicts.empty() ? "no two lines contradict each other\n" : "");
    for (const std::string& conflict : conflicts) {
      context.out << conflict << "\n";
    }
  }
  return conflicts.empty() ? Exit::kDone : Exit::kNotSo;
}

StatusOr<Exit> RunShadowed(const WorldOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  ASSIGN_OR_RETURN(const WallTime start, StartOf(options, context));
  PolicyProgress progress("taking keys out", context);
  const std::vector<analysis::Shadow> shadows = analysis::Shadowed(
      loaded.world, {start, {}},
      [&progress](std::size_t done, std::size_t all) { progress.Show(done, all); });
  if (options.json) {
    JsonArray list;
    for (const analysis::Shadow& shadow : shadows) {
      list.push_back(JsonObject{{"policy", shadow.policy},
                                {"file", shadow.file},
                                {"line", shadow.line},
                                {"rule", shadow.rule},
                                {"key", shadow.key}});
    }
    PrintFacts(context, JsonObject{{"shadowed", std::move(list)}});
  } else {
    context.out << (shadows.empty() ? "every rule and key changes some answer\n"
                                    : "without these, each alone, every answer is the same:\n");
    for (const analysis::Shadow& shadow : shadows) {
      context.out << "  " << shadow.file << ":" << shadow.line << " " << shadow.rule
                  << (shadow.rule.empty() || shadow.key.empty() ? "" : ", ")
                  << (shadow.key.empty() ? ", the whole rule" : shadow.key) << "\n";
    }
  }
  return shadows.empty() ? Exit::kDone : Exit::kNotSo;
}

StatusOr<Exit> RunExpiring(const WorldOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  ASSIGN_OR_RETURN(const WallTime start, StartOf(options, context));
  ASSIGN_OR_RETURN(const WallTime until, ParseWhen(options.text, start));
  const std::vector<analysis::Ending> endings = analysis::Expiring(loaded.world, start, until);
  if (options.json) {
    JsonArray list;
    for (const analysis::Ending& ending : endings) {
      list.push_back(JsonObject{{"at", PrintTime(ending.at)},
                                {"what", ending.what},
                                {"where", ending.where},
                                {"over", ending.is_over}});
    }
    PrintFacts(context, JsonObject{{"expiring", std::move(list)}});
  } else {
    context.out << (endings.empty() ? "nothing ends by " + PrintTime(until) + "\n" : "");
    for (const analysis::Ending& ending : endings) {
      context.out << PrintTime(ending.at).substr(0, 10) << (ending.is_over ? " OVER  " : "       ")
                  << ending.what << " (" << ending.where << ")\n";
    }
  }
  return endings.empty() ? Exit::kDone : Exit::kNotSo;
}

StatusOr<Exit> RunSimulate(const WorldOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const LoadedWorld loaded, LoadWorld(options.sources));
  ASSIGN_OR_RETURN(const std::vector<std::string> ids,
                   analysis::FactsNamed(loaded.world.facts, options.text));
  ASSIGN_OR_RETURN(const WallTime start, StartOf(options, context));
  const analysis::DiffResult result = analysis::SimulateRevoked(loaded.world, ids, {start, {}});
  if (options.json) {
    Json facts = DiffJson(result);
    facts.Set("event", "decision.simulated");
    facts.Set("revoked", JsonArray(ids.begin(), ids.end()));
    PrintFacts(context, facts);
  } else {
    context.out << "SIMULATED: without";
    for (const std::string& id : ids) {
      context.out << " " << id;
    }
    context.out << (result.lost.empty() ? ", nothing breaks\n" : ", this breaks:\n");
    PrintDiff(result, context.out);
  }
  return result.lost.empty() ? Exit::kDone : Exit::kNotSo;
}

template <typename F>
WorldOptions& AddWorldCommand(CLI::App& group, Context& context, const std::string& name,
                              const std::string& description, std::string_view example, F run,
                              CLI::App*& command) {
  auto options = std::make_shared<WorldOptions>();  // shared with the closure that CLI11 keeps
  command = AddCommand(group, name, description, example);
  AddSourceOptions(*command, options->sources);
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context, run] { return run(*options, context); });
  return *options;
}

void AddDiff(CLI::App& group, Context& context) {
  auto options = std::make_shared<DiffOptions>();  // as above
  CLI::App* const command = AddCommand(
      group, "diff", "What a new version allows that the old did not: exit 0 nothing, 1 something",
      "domicile policy diff old/site.policy.toml new/site.policy.toml --facts legal-facts.toml");
  command->add_option("OLD", options->before, "a policy, or a folder of them")->required();
  command->add_option("NEW", options->after, "the same later")->required();
  command->add_option("--with", options->others,
                      "policies that hold beside it, or folders of them; default: none, since what "
                      "they deny today they may allow tomorrow");
  command->add_option("--facts", options->facts, "legal facts, if no folder has them");
  command->add_option("--at", options->at, "from this time on; default: now");
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context] { return RunDiff(*options, context); });
}

}  // namespace

void AddPolicyAnalysis(CLI::App& group, Context& context) {
  AddDiff(group, context);
  CLI::App* command = nullptr;
  AddWorldCommand(group, context, "conflicts",
                  "Lines that leave nothing to allow together: exit 1 if there are",
                  "domicile policy conflicts deploy/examples/heart", RunConflicts, command);

  WorldOptions& shadowed = AddWorldCommand(
      group, context, "shadowed", "Rules and keys that change no answer: exit 1 if there are",
      "domicile policy shadowed deploy/examples/heart", RunShadowed, command);
  command->add_option("--at", shadowed.at, "from this time on; default: now");

  WorldOptions& expiring = AddWorldCommand(
      group, context, "expiring", "What ends soon, or has ended: exit 1 if anything does",
      "domicile policy expiring deploy/examples/heart --within 90d", RunExpiring, command);
  expiring.text = "90d";
  command->add_option("--within", expiring.text, "a duration, or a date")->capture_default_str();
  command->add_option("--at", expiring.at, "as seen at this time; default: now");

  WorldOptions& simulate = AddWorldCommand(
      group, context, "simulate", "What breaks if legal facts end: exit 1 if anything does",
      "domicile policy simulate deploy/examples/heart --fact-revoked adequacy:eu:CH", RunSimulate,
      command);
  command->add_option("--fact-revoked", simulate.text, "id of a fact, or KIND:REGIME:PLACE")
      ->required();
  command->add_option("--at", simulate.at, "from this time on; default: now");
}

}  // namespace domicile::cli

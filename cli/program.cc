#include <algorithm>
#include <exception>
#include <ostream>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "cli/command.h"

namespace domicile::cli {

namespace {

int Code(Exit exit) { return static_cast<int>(exit); }

void AddCommands(CLI::App& program, Context& context) {
  AddAudit(program, context);
  AddBench(program, context);
  AddCa(program, context);
  AddDemo(program, context);
  AddJob(program, context);
  AddJobGrant(program, context);
  AddModelExport(program, context);
  AddPolicy(program, context);
  AddSite(program, context);
}

int Report(Context& context, const Status& status) {
  context.err << "domicile: " << Message(status) << "\n";
  return Code(ExitOf(status));
}

// Looks for the command before options are read: what CLI11 says of a wrong word is only that a
// command is missing. Errors: kInvalidArgument, with the word and the nearest command.
Status FindCommand(CLI::App& program, std::span<const std::string> args) {
  CLI::App* group = &program;
  std::string path = program.get_name();
  for (const std::string& word : args) {
    const std::vector<CLI::App*> commands =
        group->get_subcommands([](const CLI::App*) { return true; });
    if (commands.empty() || word.starts_with("-")) {
      return OkStatus();  // the rest is the command's own
    }
    std::vector<std::string> names;
    names.reserve(commands.size());
    for (const CLI::App* command : commands) {
      names.push_back(command->get_name());
    }
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      const std::string nearest = NearestSpelling(word, names);
      return Error(StatusCode::kInvalidArgument,
                   "`" + Visible(word) + "` is no command of `" + path + "`" +
                       (nearest.empty() ? "" : "; did you mean `" + nearest + "`?") +
                       (nearest.empty() ? "; it has " : " It has ") + Join(names, ", "));
    }
    group = commands[static_cast<std::size_t>(found - names.begin())];
    path += " " + word;
  }
  return OkStatus();
}

// Runs the command that parsing has chosen, and makes sure that what it printed has arrived.
int RunChosen(Context& context) {
  if (!context.run) {
    context.err << "domicile: no command given; `domicile --help` lists them\n";
    return Code(Exit::kWrongUse);
  }
  const StatusOr<Exit> result = context.run();
  context.out.flush();
  if (!result.ok()) {
    return Report(context, result.status());
  }
  if (!context.out) {
    return Report(context, Error(StatusCode::kUnavailable, "the output could not be written"));
  }
  return Code(*result);
}

}  // namespace

CLI::App* AddGroup(CLI::App& parent, const std::string& name, const std::string& description) {
  const std::vector<CLI::App*> same =
      parent.get_subcommands([&name](const CLI::App* app) { return app->get_name() == name; });
  if (!same.empty()) {
    return same.front();
  }
  CLI::App* const group = parent.add_subcommand(name, description);
  group->require_subcommand(1);
  return group;
}

CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                     std::string_view example) {
  CLI::App* const command = parent.add_subcommand(name, description);
  command->footer("Example:\n  " + std::string(example));
  return command;
}

void OnRun(CLI::App& command, Context& context, Run run) {
  command.callback([&context, run = std::move(run)]() { context.run = run; });
}

Exit ExitOf(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return Exit::kDone;
    case StatusCode::kInvalidArgument:
    case StatusCode::kAlreadyExists:
    case StatusCode::kOutOfRange:
      return Exit::kWrongUse;
    default:  // not our enumeration: a code that is new to us is "could not"
      return Exit::kCouldNot;
  }
}

void PrintFacts(Context& context, const Json& facts) { context.out << PrintJson(facts) << "\n"; }

int RunProgram(std::span<const std::string> args, Context& context) {
  CLI::App program("Domicile trains one model on data that may not move.", "domicile");
  program.set_version_flag("--version", "domicile " DOMICILE_VERSION);
  program.require_subcommand(1);
  program.footer("Exit codes: 0 done, 1 not so, 2 wrong use or bad input, 3 could not do it.");
  AddCommands(program, context);
  if (const Status found = FindCommand(program, args); !found.ok()) {
    return Report(context, found);
  }
  try {
    // CLI11 takes the arguments from the back of the list.
    program.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::ParseError& error) {
    // Also thrown for --help and --version, with code 0.
    const int code = program.exit(error, context.out, context.err);
    return code == 0 ? Code(Exit::kDone) : Code(Exit::kWrongUse);
  } catch (const std::exception& error) {
    context.err << "domicile: " << error.what() << "\n";
    return Code(Exit::kCouldNot);
  }
  return RunChosen(context);
}

}  // namespace domicile::cli

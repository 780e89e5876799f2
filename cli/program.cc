#include <algorithm>
#include <exception>
#include <ostream>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

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
  AddPolicy(program, context);
}

int Report(Context& context, const Status& status) {
  context.err << "domicile: " << Message(status) << "\n";
  return Code(ExitOf(status));
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

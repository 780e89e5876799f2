// How a command is added to `domicile`. Each command has a file of its own, `cli/NAME.cc`, which
// defines one `AddNAME` declared here and named in cli/program.cc:
//
//   void AddPolicy(CLI::App& program, Context& context) {
//     CLI::App* policy = AddGroup(program, "policy", "Check and explain policies");
//     CLI::App* check = AddCommand(*policy, "check", "Whether a policy file is well formed",
//                                  "domicile policy check site.policy.toml");
//     auto file = std::make_shared<std::string>();  // shared with the closure that CLI11 keeps
//     check->add_option("FILE", *file, "policy source")->required();
//     OnRun(*check, context, [file, &context]() -> StatusOr<Exit> {
//       ASSIGN_OR_RETURN(const std::string text, ReadFile(*file, kLargestPolicy));
//       ...
//       context.out << "ok\n";
//       return Exit::kDone;
//     });
//   }
//
// Exit codes: 0 done, 1 the thing asked about is not so, 2 wrong use or bad input, 3 could not
// reach or do it. A Status that comes out of a command is printed as `domicile: MESSAGE` on
// standard error and becomes 2 or 3 (ExitOf); "not so" is an answer, not an error: print it and
// return Exit::kNotSo.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "base/status.h"

namespace CLI {
class App;
}  // namespace CLI

namespace domicile::cli {

enum class Exit : std::uint8_t { kDone = 0, kNotSo = 1, kWrongUse = 2, kCouldNot = 3 };

using Run = std::function<StatusOr<Exit>()>;

// What commands work with. Borrowed; outlives every command. One thread at a time.
struct Context {
  const Clock& clock;
  Random& random;
  std::ostream& out;  // facts, and nothing else: `--json` output can be piped
  std::ostream& err;  // errors and progress
  bool out_is_terminal = false;
  Run run = {};  // the command that was chosen; set by OnRun
};

// A group of commands (`domicile ca ...`), the same one for every file that adds to it; or one
// command with an example in its help.
CLI::App* AddGroup(CLI::App& parent, const std::string& name, const std::string& description);
CLI::App* AddCommand(CLI::App& parent, const std::string& name, const std::string& description,
                     std::string_view example);

// What the command does. Options are parsed before it runs.
void OnRun(CLI::App& command, Context& context, Run run);

// kInvalidArgument, kAlreadyExists, kOutOfRange -> 2; everything else -> 3.
Exit ExitOf(const Status& status);

// One line of canonical JSON, for `--json`.
void PrintFacts(Context& context, const Json& facts);

// The whole program: parses, runs, prints errors. `args` without the program's name. Returns the
// exit code.
int RunProgram(std::span<const std::string> args, Context& context);

// ---- the commands, one a file ----
void AddAudit(CLI::App& program, Context& context);  // audit.cc
void AddBench(CLI::App& program, Context& context);  // bench.cc
void AddCa(CLI::App& program, Context& context);     // ca.cc
void AddDemo(CLI::App& program, Context& context);   // demo/demo.cc
void AddJob(CLI::App& program, Context& context);    // job.cc: submit, list, show, watch, ...
void AddJobApproval(CLI::App& program,
                    Context& context);                  // job_approval.cc: request, approve, deny
void AddJobGrant(CLI::App& program, Context& context);  // job_grant.cc: `job plan`, and the above
void AddModelExport(CLI::App& program, Context& context);  // model.cc
void AddPolicy(CLI::App& program, Context& context);       // policy.cc
void AddSite(CLI::App& program, Context& context);         // site.cc

}  // namespace domicile::cli

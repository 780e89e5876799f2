// `domicile site recover`. The agent's program does it: only it knows the state, and only it reads
// the site's log key.
#include <array>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"

namespace domicile::cli {

namespace {

struct RecoverOptions {
  std::string config;
  std::string operator_name;
  std::vector<std::string> datasets;
  bool yes = false;
  bool json = false;
};

struct AgentAnswer {
  int code = 0;
  std::string out;
};

// Runs the agent's program that lies beside this one to its end. What it says on standard error is
// the person's to read.
StatusOr<AgentAnswer> RunAgent(std::vector<std::string> words) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return ErrnoError(error.value(), "finding this program");
  }
  words.insert(words.begin(), (self.parent_path() / "domicile-agent").string());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return ErrnoError(errno, "starting `" + words.front() + "`");
  }
  const FileHandle output(ends[0]);
  FileHandle input(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) {
    return ErrnoError(errno, "starting `" + words.front() + "`");
  }
  if (pid == 0) {
    dup2(input.descriptor(), STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  input = FileHandle();
  AgentAnswer answer;
  std::array<char, 4096> block{};
  for (ssize_t got = 1; got > 0;) {
    got = read(output.descriptor(), block.data(), block.size());
    if (got > 0) {
      answer.out.append(block.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      got = 1;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(Exit::kCouldNot);
  if (answer.code == 127) {
    return Error(StatusCode::kNotFound, "`" + words.front() + "` cannot be started");
  }
  return answer;
}

std::string TextOf(const Json& facts, std::string_view field) {
  const Json* value = facts.Find(field);
  const std::string* text = value == nullptr ? nullptr : value->TryString();
  return text == nullptr ? std::string() : *text;
}

std::string NumberOf(const Json& facts, std::string_view field) {
  const Json* value = facts.Find(field);
  const std::int64_t* number = value == nullptr ? nullptr : value->TryInt();
  return number == nullptr ? "?" : std::to_string(*number);
}

std::string NamesOf(const Json& facts, std::string_view field) {
  const Json* value = facts.Find(field);
  const JsonArray* names = value == nullptr ? nullptr : value->TryArray();
  std::string all;
  if (names != nullptr) {
    for (const Json& name : *names) {
      const std::string* text = name.TryString();
      all += (all.empty() ? "" : ", ") + (text == nullptr ? std::string() : *text);
    }
  }
  return all.empty() ? "none" : all;
}

void SayWhat(const Json& facts, std::ostream& out) {
  out << "site " << TextOf(facts, "site") << ": its log has " << NumberOf(facts, "size")
      << " entries; a head of " << NumberOf(facts, "remembered_size")
      << " that it does not contain was witnessed\n"
      << "  the log goes on from what there is; entries from " << NumberOf(facts, "kept")
      << " on that only the other history had are lost for good\n"
      << "  spent for good, in all their versions: " << NamesOf(facts, "datasets") << "\n"
      << "  a dataset that only a lost version of the policy listed must be named with --dataset\n"
      << "  updates that waited to be sent are forgotten; entry and operator ("
      << TextOf(facts, "operator") << ") are shown to the aggregator and to auditors\n";
}

// The person types the site's name: nobody does that by mistake.
bool Typed(const std::string& site, Context& context) {
  context.out << "If a newer copy exists, restore that instead. To go on, type the site's name: "
              << std::flush;
  std::string line;
  return std::getline(std::cin, line) && line == site;
}

StatusOr<Json> Facts(const AgentAnswer& answer) {
  std::string_view text = answer.out;
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return ParseCanonicalJson(text);
}

StatusOr<Exit> RecoverSite(const RecoverOptions& options, Context& context) {
  std::vector<std::string> words = {"--config", options.config, "--recover", options.operator_name};
  for (const std::string& dataset : options.datasets) {
    words.insert(words.end(), {"--dataset", dataset});
  }
  const bool asks = !options.yes;
  if (asks && !context.out_is_terminal) {
    return Error(StatusCode::kInvalidArgument,
                 "this cannot be undone: say `--yes`, or run it at a terminal");
  }
  if (asks) {
    ASSIGN_OR_RETURN(const AgentAnswer plan, RunAgent(words));
    if (plan.code != 0) {
      return static_cast<Exit>(plan.code);
    }
    ASSIGN_OR_RETURN(const Json facts, Facts(plan));
    SayWhat(facts, context.out);
    if (!Typed(TextOf(facts, "site"), context)) {
      context.out << "nothing was changed\n";
      return Exit::kNotSo;
    }
  }
  words.insert(words.end(), {"--confirm", "yes"});
  ASSIGN_OR_RETURN(const AgentAnswer done, RunAgent(words));
  if (done.code != 0) {
    return static_cast<Exit>(done.code);
  }
  ASSIGN_OR_RETURN(const Json facts, Facts(done));
  if (options.json) {
    PrintFacts(context, facts);
  } else {
    if (!asks) {
      SayWhat(facts, context.out);
    }
    context.out << "recovered; start the agent\n";
  }
  return Exit::kDone;
}

}  // namespace

void AddSite(CLI::App& program, Context& context) {
  CLI::App* site = AddGroup(program, "site", "Look after the agent of a site");
  CLI::App* recover = AddCommand(
      *site, "recover", "Go on from a restored copy: logs the gap, and spends what may be spent",
      "domicile site recover --config agent.toml --operator ada");
  auto options = std::make_shared<RecoverOptions>();  // shared with the closure that CLI11 keeps
  recover->add_option("--config", options->config, "agent.toml of the stopped agent")->required();
  recover->add_option("--operator", options->operator_name, "who says so; goes into the log")
      ->required();
  recover->add_option("--dataset", options->datasets,
                      "also spent: an alias that only a lost version of the policy listed");
  recover->add_flag("--yes", options->yes, "do not ask");
  recover->add_flag("--json", options->json, "facts for machines");
  OnRun(*recover, context, [options, &context] { return RecoverSite(*options, context); });
}

}  // namespace domicile::cli

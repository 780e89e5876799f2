// `domicile policy test`: decisions that must come out as written, and how much of the policies
// they hold in place.
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/file.h"
#include "cli/policy_analysis.h"
#include "cli/policy_sources.h"
#include "crypto/sha256.h"
#include "policy/analysis/cases.h"
#include "policy/analysis/mutation.h"

namespace domicile::cli {

namespace {

namespace analysis = policy::analysis;

struct TestOptions {
  std::string path;
  std::string root = ".";
  double min_score = 0;
  bool no_mutation = false;
  bool all_survivors = false;
  bool json = false;
};

struct Failure {
  std::string where;
  std::string name;
  std::string why;
};

StatusOr<std::vector<std::string>> CaseFiles(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    return std::vector<std::string>{path};
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(path));
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (name.ends_with(".case")) {
      files.push_back(JoinPath(path, name));
    }
  }
  if (files.empty()) {
    return Error(StatusCode::kInvalidArgument, path + ": has no .case file");
  }
  return files;
}

StatusOr<analysis::CaseBook> ReadBook(const TestOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, CaseFiles(options.path));
  analysis::CaseBook book(
      [](std::string_view text) { return PrintHex(crypto::Sha256(AsBytes(text))); });
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadSourceText(file));
    // Beside the case file, else from the root that was named.
    const auto load = [&](const std::string& path) -> StatusOr<std::string> {
      const std::string beside = ResolveBeside(file, path);
      return ReadSourceText(FileExists(beside) ? beside : JoinPath(options.root, path));
    };
    RETURN_IF_ERROR(book.Add(text, file, load));
  }
  return book;
}

std::vector<Failure> RunCases(const analysis::CaseBook& book) {
  std::vector<Failure> failures;
  for (const analysis::Case& each : book.cases()) {
    const std::string why = WhyFailed(each, book.Answer(each));
    if (!why.empty()) {
      failures.push_back({each.where, each.name, why});
    }
  }
  for (const analysis::Refusal& each : book.refusals()) {
    const std::string why = WhyFailed(each);
    if (!why.empty()) {
      failures.push_back({each.where, each.name, why});
    }
  }
  return failures;
}

std::string Score(const analysis::MutationReport& report) {
  const double score = report.Score();
  const auto tenths = static_cast<std::uint64_t>(score * 10);  // never rounded up
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

void PrintReport(const analysis::MutationReport& report, bool all_survivors, std::ostream& out) {
  out << "rules\n";
  for (const analysis::RuleCoverage& rule : report.rules) {
    out << "  " << rule.file << ":" << rule.line << " " << rule.rule << ": bears on "
        << rule.bearing << " cases, " << rule.killed << " of " << rule.mutants << " changes noticed"
        << (rule.killed == 0 ? ", NO CASE DEPENDS ON IT" : "") << "\n";
  }
  out << "mutation score " << Score(report) << ": " << report.Killed() << " of "
      << report.mutants.size() << " loosened keys make a case fail\n";
  constexpr std::size_t kShown = 20;
  std::size_t shown = 0;
  std::size_t left_out = 0;
  for (const analysis::Mutant& mutant : report.mutants) {
    if (mutant.is_killed) {
      continue;
    }
    if (!all_survivors && shown == kShown) {
      ++left_out;
      continue;
    }
    out << (shown++ == 0 ? "no case notices if these are loosened:\n" : "") << "  " << mutant.file
        << ":" << mutant.line << " " << mutant.rule << (mutant.rule.empty() ? "" : ", ")
        << mutant.key << "\n";
  }
  if (left_out > 0) {
    out << "  and " << left_out << " more: --all shows them\n";
  }
}

Json ReportJson(const analysis::MutationReport& report) {
  JsonArray rules;
  for (const analysis::RuleCoverage& rule : report.rules) {
    rules.push_back(JsonObject{{"file", rule.file},
                               {"line", rule.line},
                               {"rule", rule.rule},
                               {"cases", rule.bearing},
                               {"changes", rule.mutants},
                               {"noticed", rule.killed}});
  }
  JsonArray survivors;
  for (const analysis::Mutant& mutant : report.mutants) {
    if (!mutant.is_killed) {
      survivors.push_back(JsonObject{{"file", mutant.file},
                                     {"line", mutant.line},
                                     {"rule", mutant.rule},
                                     {"key", mutant.key}});
    }
  }
  return JsonObject{{"score", Score(report)},
                    {"changes", static_cast<std::uint64_t>(report.mutants.size())},
                    {"noticed", report.Killed()},
                    {"rules", std::move(rules)},
                    {"survivors", std::move(survivors)}};
}

StatusOr<Exit> RunTest(const TestOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const analysis::CaseBook book, ReadBook(options));
  const std::vector<Failure> failures = RunCases(book);
  const std::uint64_t count = book.cases().size() + book.refusals().size();
  Json facts =
      JsonObject{{"cases", count}, {"failed", static_cast<std::uint64_t>(failures.size())}};
  for (const Failure& failure : failures) {
    if (!options.json) {
      context.out << "FAILED " << failure.where << " " << failure.name << "\n  " << failure.why
                  << "\n";
    }
  }
  if (!options.json) {
    context.out << count - failures.size() << " of " << count << " cases come out as written\n";
  }
  Exit exit = failures.empty() ? Exit::kDone : Exit::kNotSo;
  if (failures.empty() && !options.no_mutation) {
    PolicyProgress progress("loosening keys", context);
    const analysis::MutationReport report = analysis::Mutate(
        book, [&progress](std::size_t done, std::size_t all) { progress.Show(done, all); });
    if (report.Score() < options.min_score) {
      exit = Exit::kNotSo;
    }
    if (options.json) {
      facts.Set("mutation", ReportJson(report));
    } else {
      PrintReport(report, options.all_survivors, context.out);
    }
  }
  if (options.json) {
    JsonArray list;
    for (const Failure& failure : failures) {
      list.push_back(
          JsonObject{{"where", failure.where}, {"name", failure.name}, {"why", failure.why}});
    }
    facts.Set("failures", std::move(list));
    PrintFacts(context, facts);
  }
  return exit;
}

}  // namespace

void AddPolicyTest(CLI::App& group, Context& context) {
  auto options = std::make_shared<TestOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command =
      AddCommand(group, "test",
                 "Whether the cases of a folder come out as written, and what no case would notice",
                 "domicile policy test deploy/policies/eu-hospitals --min-score 80");
  command->add_option("PATH", options->path, "a folder of .case files, or one")->required();
  command
      ->add_option("--root", options->root,
                   "where the files' paths begin that are not beside the case file")
      ->capture_default_str();
  command->add_option("--min-score", options->min_score, "exit 1 below this mutation score")
      ->check(CLI::Range(0.0, 100.0));
  command->add_flag("--no-mutation", options->no_mutation, "only run the cases");
  command->add_flag("--all", options->all_survivors, "show every change that no case notices");
  command->add_flag("--json", options->json, "print facts as JSON");
  OnRun(*command, context, [options, &context] { return RunTest(*options, context); });
}

}  // namespace domicile::cli

// `domicile policy`: check a policy source, explain a decision. Both work offline and touch
// nothing.
#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/toml.h"
#include "cli/command.h"
#include "cli/policy_analysis.h"
#include "cli/policy_export.h"
#include "cli/policy_sign.h"
#include "crypto/sha256.h"
#include "policy/engine/explain.h"
#include "policy/engine/request.h"
#include "policy/language/parse.h"

namespace domicile::cli {

namespace {

using policy::PolicySource;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 20U;

struct CheckOptions {
  std::string file;
  std::string source;
  bool json = false;
};

// What a file is, by the table it alone has; federation and aggregator policies look alike.
StatusOr<std::string> SourceOf(const CheckOptions& options, const std::string& text) {
  if (!options.source.empty()) {
    return options.source;
  }
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(text, options.file));
  if (document.Root().Has("facts")) {
    return std::string("facts");
  }
  return std::string(document.Root().Has("site") ? "site" : "federation");
}

StatusOr<Exit> CheckFacts(const CheckOptions& options, const std::string& text, Context& context) {
  ASSIGN_OR_RETURN(const policy::Facts facts, policy::ParseFacts(text, options.file));
  const bool has_expired = context.clock.Now() >= facts.expires;
  if (options.json) {
    PrintFacts(context, JsonObject{{"source", "facts"},
                                   {"id", facts.id},
                                   {"version", facts.version},
                                   {"facts", static_cast<std::uint64_t>(facts.facts.size())},
                                   {"expires", PrintTime(facts.expires)},
                                   {"expired", has_expired}});
  } else {
    context.out << options.file << ": legal facts `" << facts.id << "` version " << facts.version
                << ", " << facts.facts.size() << " facts, "
                << (has_expired ? "expired at " : "until ") << PrintTime(facts.expires) << "\n";
  }
  return has_expired ? Exit::kNotSo : Exit::kDone;
}

StatusOr<Exit> CheckPolicy(const CheckOptions& options, PolicySource source,
                           const std::string& text, Context& context) {
  ASSIGN_OR_RETURN(const policy::Policy read, policy::ParsePolicy(text, options.file, source));
  const bool has_expired = context.clock.Now() >= read.identity.expires;
  if (options.json) {
    PrintFacts(context, JsonObject{{"source", std::string(policy::Code(source))},
                                   {"id", read.identity.id},
                                   {"version", read.identity.version},
                                   {"datasets", static_cast<std::uint64_t>(read.datasets.size())},
                                   {"rules", static_cast<std::uint64_t>(read.rules.size())},
                                   {"not_before", PrintTime(read.identity.not_before)},
                                   {"expires", PrintTime(read.identity.expires)},
                                   {"expired", has_expired}});
  } else {
    context.out << options.file << ": " << policy::Code(source) << " policy `" << read.identity.id
                << "` version " << read.identity.version << ", " << read.datasets.size()
                << " datasets, " << read.rules.size() << " rules, "
                << (has_expired ? "expired at " : "until ") << PrintTime(read.identity.expires)
                << "\n";
  }
  return has_expired ? Exit::kNotSo : Exit::kDone;
}

StatusOr<Exit> Check(const CheckOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.file, kLargestFile));
  ASSIGN_OR_RETURN(const std::string source, SourceOf(options, text));
  if (source == "facts") {
    return CheckFacts(options, text, context);
  }
  const auto kind = policy::FromCode<PolicySource>(source);
  if (!kind) {
    return Error(StatusCode::kInvalidArgument,
                 "`--as` must be federation, aggregator, site or facts");
  }
  return CheckPolicy(options, *kind, text, context);
}

struct ExplainOptions {
  std::string file;
  std::string request;
  bool json = false;
};

StatusOr<policy::Policy> ReadPolicy(const std::string& path, PolicySource source) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  return policy::ParsePolicy(text, path, source);
}

struct Question {
  policy::Policy federation;
  policy::Policy aggregator;
  policy::Facts facts;
  policy::Transfer transfer;
};

StatusOr<Question> ReadQuestion(const std::string& path) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Read(path));
  TomlTable root = document.Root();
  TomlTable sources = root.Table("sources");
  const std::string federation = sources.String("federation");
  const std::string aggregator = sources.String("aggregator");
  const std::string facts = sources.String("facts");
  Question question;
  question.transfer = policy::ReadTransfer(root.Table("transfer"), {});
  RETURN_IF_ERROR(document.Finish());
  ASSIGN_OR_RETURN(question.federation,
                   ReadPolicy(ResolveBeside(path, federation), PolicySource::kFederation));
  ASSIGN_OR_RETURN(question.aggregator,
                   ReadPolicy(ResolveBeside(path, aggregator), PolicySource::kAggregator));
  const std::string facts_path = ResolveBeside(path, facts);
  ASSIGN_OR_RETURN(const std::string text, ReadFile(facts_path, kLargestFile));
  ASSIGN_OR_RETURN(question.facts, policy::ParseFacts(text, facts_path));
  question.facts.digest = PrintHex(crypto::Sha256(AsBytes(text)));
  return question;
}

StatusOr<Exit> Explain(const ExplainOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const policy::Policy site, ReadPolicy(options.file, PolicySource::kSite));
  ASSIGN_OR_RETURN(const Question question, ReadQuestion(options.request));
  const policy::Effective effective =
      policy::Meet(question.federation, question.aggregator, site, question.facts);
  const policy::Decision decision = policy::Simulate(effective, question.transfer);
  if (options.json) {
    PrintFacts(context, policy::ExplainJson(decision, question.transfer));
  } else {
    context.out << policy::ExplainText(decision, question.transfer);
  }
  return decision.result == policy::Result::kAllow ? Exit::kDone : Exit::kNotSo;
}

}  // namespace

void AddPolicy(CLI::App& program, Context& context) {
  CLI::App* const group = AddGroup(program, "policy", "Check and explain policies, offline");

  auto check = std::make_shared<CheckOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const check_command =
      AddCommand(*group, "check", "Whether a policy or legal facts file is well formed and in date",
                 "domicile policy check site.policy.toml");
  check_command->add_option("FILE", check->file, "policy source, or legal facts")->required();
  check_command->add_option("--as", check->source,
                            "federation, aggregator, site or facts; else told by its tables");
  check_command->add_flag("--json", check->json, "print facts as JSON");
  OnRun(*check_command, context, [check, &context] { return Check(*check, context); });

  auto explain = std::make_shared<ExplainOptions>();  // as above
  CLI::App* const explain_command =
      AddCommand(*group, "explain", "Decide a request under a site's policy, and say why",
                 "domicile policy explain site.budapest.policy.toml --request update.request.toml");
  explain_command->add_option("FILE", explain->file, "site policy")->required();
  explain_command->add_option("--request", explain->request, "the transfer and its other policies")
      ->required();
  explain_command->add_flag("--json", explain->json, "print the decision as JSON");
  OnRun(*explain_command, context, [explain, &context] { return Explain(*explain, context); });
  AddPolicyTest(*group, context);
  AddPolicyReach(*group, context);
  AddPolicyAnalysis(*group, context);
  AddPolicyExport(*group, context);
  AddPolicySign(*group, context);
}

}  // namespace domicile::cli

#include "cli/policy_export.h"

#include <memory>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/file.h"
#include "policy/exporting/export.h"
#include "policy/exporting/schema.h"
#include "policy/language/parse.h"

namespace domicile::cli {
namespace {

using policy::PolicySource;

constexpr std::uint64_t kLargestFile = std::uint64_t{1} << 20U;

struct ExportOptions {
  std::string file;
  std::string format;
  std::string federation;
  std::string aggregator;
  std::string facts;
  std::string out;
  bool with_private = false;
};

Status Put(const std::string& text, const std::string& out, Context& context) {
  if (out.empty()) {
    context.out << text;
    return OkStatus();
  }
  return WriteFileDurably(out, AsBytes(text), 0644);
}

StatusOr<policy::Policy> ReadPolicyFile(const std::string& path, PolicySource source) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  return policy::ParsePolicy(text, path, source);
}

StatusOr<policy::Effective> MeetAll(const policy::Policy& site, const ExportOptions& options) {
  policy::Facts facts;
  if (!options.facts.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.facts, kLargestFile));
    ASSIGN_OR_RETURN(facts, policy::ParseFacts(text, options.facts));
  }
  policy::Effective effective = policy::FromPolicy(site, facts);
  if (!options.federation.empty()) {
    ASSIGN_OR_RETURN(const policy::Policy federation,
                     ReadPolicyFile(options.federation, PolicySource::kFederation));
    effective = policy::Meet(effective, policy::FromPolicy(federation, facts));
  }
  if (!options.aggregator.empty()) {
    ASSIGN_OR_RETURN(const policy::Policy aggregator,
                     ReadPolicyFile(options.aggregator, PolicySource::kAggregator));
    effective = policy::Meet(effective, policy::FromPolicy(aggregator, facts));
  }
  return effective;
}

StatusOr<std::string> Make(const ExportOptions& options, const Context& context) {
  if (options.format == "cedar-schema") {
    return policy::ExportCedarSchema();
  }
  ASSIGN_OR_RETURN(const policy::Policy site, ReadPolicyFile(options.file, PolicySource::kSite));
  ASSIGN_OR_RETURN(const policy::Effective effective, MeetAll(site, options));
  const policy::ExportSource source = {
      .site = site, .effective = effective, .with_private = options.with_private};
  if (options.format == "dpv") {
    return policy::ExportDpv(source);
  }
  if (options.format == "odrl") {
    return policy::ExportOdrl(source);
  }
  if (options.format == "cedar") {
    return policy::ExportCedar(source, context.clock.Now());
  }
  if (options.format == "cedar-entities") {
    return policy::ExportCedarEntities(source, context.clock.Now());
  }
  return Error(StatusCode::kInvalidArgument,
               "`--format` must be dpv, odrl, cedar, cedar-schema or cedar-entities");
}

StatusOr<Exit> Export(const ExportOptions& options, Context& context) {
  ASSIGN_OR_RETURN(const std::string text, Make(options, context));
  RETURN_IF_ERROR(Put(text, options.out, context));
  return Exit::kDone;
}

}  // namespace

void AddPolicyExport(CLI::App& group, Context& context) {
  auto options = std::make_shared<ExportOptions>();  // shared with the closure that CLI11 keeps
  CLI::App* const command = AddCommand(
      group, "export", "A site's policy in the words of governance and authorisation tools",
      "domicile policy export site.policy.toml --format dpv -o policy.jsonld");
  command->add_option("FILE", options->file, "site policy")->required();
  command
      ->add_option("--format", options->format, "dpv, odrl, cedar, cedar-schema or cedar-entities")
      ->required();
  command->add_option("--federation", options->federation, "federation policy to meet it with");
  command->add_option("--aggregator", options->aggregator, "aggregator policy to meet it with");
  command->add_option("--facts", options->facts, "legal facts: who is in a bloc today");
  command->add_flag("--private", options->with_private,
                    "with names of datasets and documents, which a statement leaves out");
  command->add_option("-o,--out", options->out, "file to write; else standard output");
  OnRun(*command, context, [options, &context] { return Export(*options, context); });

  auto out = std::make_shared<std::string>();  // as above
  CLI::App* const schema =
      AddCommand(group, "schema", "The JSON schema of policy files, for editors",
                 "domicile policy schema -o policy.schema.json");
  schema->add_option("-o,--out", *out, "file to write; else standard output");
  OnRun(*schema, context, [out, &context]() -> StatusOr<Exit> {
    RETURN_IF_ERROR(Put(policy::PolicySchema(), *out, context));
    return Exit::kDone;
  });
}

}  // namespace domicile::cli

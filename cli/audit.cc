// `domicile audit`: what logs say, whether they are whole, and whether two of them agree. Offline.
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "audit/export.h"
#include "audit/leaves.h"
#include "audit/reconcile.h"
#include "audit/transfers.h"
#include "audit/verify.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "crypto/key_file.h"
#include "crypto/note.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestNote = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLargestHashes = std::uint64_t{1} << 32U;  // 66 million leaves
constexpr std::size_t kWidth = 100;

// A line on the terminal that says how far a long command is, from its second second on.
class Progress {
 public:
  explicit Progress(Context& context) : context_(context), start_(context.clock.Monotonic()) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) {
      context_.err << "\r\x1b[K" << std::flush;
    }
  }

  std::function<void(std::uint64_t)> Callback() {
    return [this](std::uint64_t leaves) {
      const MonotonicTime now = context_.clock.Monotonic();
      if (context_.out_is_terminal && now - start_ > std::chrono::seconds(1)) {
        context_.err << "\r" << leaves << " entries" << std::flush;
        shown_ = true;
      }
    };
  }

 private:
  Context& context_;
  MonotonicTime start_;
  bool shown_ = false;
};

// ---- show ----

std::string Scalar(const Json& value) {
  if (const std::string* text = value.TryString()) {
    const bool digest = ParseDigest(*text).ok();
    return digest ? text->substr(0, 8) : *text;
  }
  return PrintJson(value);
}

// A body in words: `job=heart-1 round=1 ... from.party=site/charite`. Lists of objects by their
// length.
void Describe(const std::string& prefix, const Json& value, std::vector<std::string>& words) {
  if (const JsonObject* object = value.TryObject()) {
    for (const auto& [key, member] : *object) {
      std::string name = prefix;
      name.append(prefix.empty() ? "" : ".").append(key);
      Describe(name, member, words);
    }
    return;
  }
  const JsonArray* items = value.TryArray();
  if (items == nullptr) {
    words.push_back(prefix + "=" + Scalar(value));
    return;
  }
  std::vector<std::string> texts;
  for (const Json& item : *items) {
    if (item.TryObject() != nullptr) {
      words.push_back(prefix + "=" + std::to_string(items->size()));
      return;
    }
    texts.push_back(Scalar(item));
  }
  words.push_back(prefix + "=" + Join(texts, ","));
}

void PrintLeafForPeople(const audit::Leaf& leaf, std::ostream& out) {
  const std::string seq = std::to_string(leaf.frame.seq);
  out << std::string(seq.size() < 7 ? 7 - seq.size() : 0, ' ') << seq << "  "
      << PrintTime(leaf.frame.time) << "  " << TypeName(leaf.event.type()) << "\n";
  std::vector<std::string> words;
  Describe("", leaf.event.body(), words);
  std::string line(8, ' ');
  for (const std::string& word : words) {
    if (line.size() > 8 && line.size() + 1 + word.size() > kWidth) {
      out << line << "\n";
      line = std::string(8, ' ');
    }
    line += " " + word;
  }
  out << line << "\n";
}

StatusOr<audit::EventType> ParseType(const std::string& name) {
  if (const auto type = audit::TypeFromName(name)) {
    return *type;
  }
  std::vector<std::string_view> names;
  for (const audit::EventType type : audit::AllEventTypes()) {
    names.push_back(TypeName(type));
  }
  const std::string near = NearestSpelling(name, names);
  return Error(StatusCode::kInvalidArgument,
               "`" + Visible(name) + "` is no type of event" +
                   (near.empty() ? "; docs/formats/events.md lists them"
                                 : "; did you mean `" + near + "`?"));
}

struct ShowOptions {
  std::string log;
  std::string type;
  bool json = false;
};

StatusOr<Exit> Show(const ShowOptions& options, Context& context) {
  std::optional<audit::EventType> wanted;
  if (!options.type.empty()) {
    ASSIGN_OR_RETURN(wanted, ParseType(options.type));
  }
  RETURN_IF_ERROR(audit::ForEachLeaf(options.log, [&](const audit::Leaf& leaf) -> Status {
    if (wanted && leaf.event.type() != *wanted) {
      return OkStatus();
    }
    if (options.json) {
      ASSIGN_OR_RETURN(const std::string bytes, PrintLeaf(leaf.frame, leaf.event));
      context.out << bytes << "\n";
    } else {
      PrintLeafForPeople(leaf, context.out);
    }
    return OkStatus();
  }));
  return Exit::kDone;
}

// ---- verify ----

struct VerifyArguments {
  std::string log;
  std::vector<std::string> heads;
  std::string key;
  bool json = false;
};

StatusOr<crypto::NoteVerifier> ReadKey(const std::string& key_or_file) {
  if (FileExists(key_or_file)) {
    return crypto::ReadNotePublicKey(key_or_file);
  }
  auto key = crypto::NoteVerifier::Parse(key_or_file);
  return key.ok() ? key : Annotate(key.status(), "`--key` is neither a file nor a verifier key");
}

StatusOr<Exit> Verify(const VerifyArguments& arguments, Context& context) {
  audit::VerifyOptions options;
  for (const std::string& file : arguments.heads) {
    ASSIGN_OR_RETURN(options.outside_heads.emplace_back(), ReadFile(file, kLargestNote));
  }
  if (!arguments.key.empty()) {
    ASSIGN_OR_RETURN(options.key, ReadKey(arguments.key));
  }
  const std::string hashes = arguments.log + ".hashes";
  if (FileExists(hashes)) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(hashes, kLargestHashes));
    auto parsed = audit::ParseLeafHashes(text);
    if (!parsed.ok()) {
      return Annotate(parsed.status(), "`" + hashes + "`");
    }
    options.leaf_hashes = *std::move(parsed);
  }
  StatusOr<audit::VerifyReport> report = audit::VerifyReport{};
  {
    Progress progress(context);
    options.progress = progress.Callback();
    report = audit::VerifyLogFile(arguments.log, options);
  }
  RETURN_IF_ERROR(report.status());
  if (arguments.json) {
    PrintFacts(context, ReportJson(*report));
  } else {
    context.out << PrintReport(*report);
  }
  return report->Intact() ? Exit::kDone : Exit::kNotSo;
}

// ---- reconcile, transfers, export ----

struct TwoLogs {
  std::string site;
  std::string aggregator;
  bool json = false;
};

StatusOr<Exit> ReconcileLogs(const TwoLogs& logs, Context& context) {
  ASSIGN_OR_RETURN(const audit::Reconciliation result,
                   audit::ReconcileFiles(logs.site, logs.aggregator));
  if (logs.json) {
    PrintFacts(context, ReconciliationJson(result));
  } else {
    context.out << PrintReconciliation(result);
  }
  return result.Explained() ? Exit::kDone : Exit::kNotSo;
}

StatusOr<Exit> ListTransfers(const std::string& log, bool json, Context& context) {
  ASSIGN_OR_RETURN(const std::vector<audit::TransferRow> rows, audit::TransfersOfFile(log));
  if (json) {
    PrintFacts(context, audit::TransfersJson(rows));
  } else {
    context.out << audit::PrintTransfers(rows);
  }
  return Exit::kDone;
}

struct ExportArguments {
  std::string log;
  std::string file;
  std::string head;
};

StatusOr<Exit> Export(const ExportArguments& arguments, Context& context) {
  ASSIGN_OR_RETURN(const audit::LogFileKind kind, audit::KindOfLogFile(arguments.log));
  if (kind != audit::LogFileKind::kDatabase) {
    return Error(StatusCode::kInvalidArgument,
                 "`" + arguments.log + "` is not a party's database; it is perhaps an export");
  }
  StatusOr<audit::ExportResult> result = audit::ExportResult{};
  {
    Progress progress(context);
    result = audit::ExportLog(arguments.log, arguments.file, arguments.head, progress.Callback());
  }
  RETURN_IF_ERROR(result.status());
  context.out << result->leaves << " entries written to " << arguments.file << "\n";
  if (!arguments.head.empty()) {
    context.out << "head of " << result->head_size << " entries written to " << arguments.head
                << "\n";
  }
  return Exit::kDone;
}

constexpr const char* kLogHelp = "a party's database, or an export of it";

void AddShow(CLI::App& group, Context& context) {
  CLI::App* show = AddCommand(group, "show", "What a log says, entry by entry",
                              "domicile audit show agent.db --type egress.done");
  auto options = std::make_shared<ShowOptions>();
  show->add_option("LOG", options->log, kLogHelp)->required();
  show->add_option("--type", options->type, "only events of this type");
  show->add_flag("--json", options->json, "the exact entries, one a line");
  OnRun(*show, context, [options, &context] { return Show(*options, context); });
}

void AddVerify(CLI::App& group, Context& context) {
  CLI::App* verify =
      AddCommand(group, "verify", "Whether a log is what was written",
                 "domicile audit verify agent.db --head noted.head --key agent-log.vkey");
  auto arguments = std::make_shared<VerifyArguments>();
  verify->add_option("LOG", arguments->log, kLogHelp)->required();
  verify->add_option("--head", arguments->heads,
                     "a signed head that was kept elsewhere; without one, removal at the end "
                     "cannot be seen");
  verify->add_option("--key", arguments->key, "the verifier key of the log, or a file with it");
  verify->add_flag("--json", arguments->json, "the report for machines");
  OnRun(*verify, context, [arguments, &context] { return Verify(*arguments, context); });
}

void AddReconcile(CLI::App& group, Context& context) {
  CLI::App* reconcile = AddCommand(
      group, "reconcile", "Whether a site and its aggregator tell the same; verify both logs first",
      "domicile audit reconcile agent.db aggregator.db");
  auto logs = std::make_shared<TwoLogs>();
  reconcile->add_option("SITE_LOG", logs->site, kLogHelp)->required();
  reconcile->add_option("AGGREGATOR_LOG", logs->aggregator, kLogHelp)->required();
  reconcile->add_flag("--json", logs->json, "the result for machines");
  OnRun(*reconcile, context, [logs, &context] { return ReconcileLogs(*logs, context); });
}

void AddTransfers(CLI::App& group, Context& context) {
  CLI::App* transfers = AddCommand(group, "transfers", "What crossed which border, by a log",
                                   "domicile audit transfers aggregator.db");
  auto log = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  transfers->add_option("LOG", *log, kLogHelp)->required();
  transfers->add_flag("--json", *json, "the table for machines");
  OnRun(*transfers, context, [log, json, &context] { return ListTransfers(*log, *json, context); });
}

void AddExport(CLI::App& group, Context& context) {
  CLI::App* command = AddCommand(group, "export", "The exact entries of a log as JSON Lines",
                                 "domicile audit export agent.db -o agent.jsonl --head-out head");
  auto arguments = std::make_shared<ExportArguments>();
  command->add_option("LOG", arguments->log, "a party's database")->required();
  command->add_option("-o,--output", arguments->file, "the export; FILE.hashes is written too")
      ->required();
  command->add_option("--head-out", arguments->head,
                      "the last signed head, and an export of exactly its entries");
  OnRun(*command, context, [arguments, &context] { return Export(*arguments, context); });
}

}  // namespace

void AddAudit(CLI::App& program, Context& context) {
  CLI::App* group = AddGroup(program, "audit", "Read, verify and compare logs, offline");
  AddShow(*group, context);
  AddVerify(*group, context);
  AddReconcile(*group, context);
  AddTransfers(*group, context);
  AddExport(*group, context);
}

}  // namespace domicile::cli

#include "cli/policy_sources.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/bytes.h"
#include "base/file.h"
#include "base/text.h"
#include "base/toml.h"
#include "crypto/sha256.h"
#include "policy/language/duration.h"
#include "policy/language/parse.h"

namespace domicile::cli {

namespace {

using policy::PolicySource;

class WorldReader {
 public:
  // A file that must be a policy or legal facts.
  Status Add(const std::string& path) {
    ASSIGN_OR_RETURN(const bool is_source, TryAdd(path));
    return is_source ? OkStatus()
                     : Error(StatusCode::kInvalidArgument,
                             path +
                                 ": is neither a policy nor legal facts: it has no [policy] or "
                                 "[facts]");
  }

  // The policies of a folder, and its legal facts if none were named before.
  Status AddFolder(const std::string& path) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFiles(path));
    for (const std::string& name : names) {
      if (name.ends_with(".toml")) {
        RETURN_IF_ERROR(TryAdd(JoinPath(path, name)).status());
      }
    }
    return OkStatus();
  }

  Status SetFacts(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, ReadSourceText(path));
    RETURN_IF_ERROR(AddFacts(text, path));
    has_named_facts_ = true;
    return OkStatus();
  }

  StatusOr<LoadedWorld> Take() {
    if (!has_facts_) {
      return Error(StatusCode::kInvalidArgument,
                   "no legal facts are given: name the file with --facts");
    }
    for (const PolicySource source : {PolicySource::kFederation, PolicySource::kAggregator}) {
      if (Count(source) == 0) {
        loaded_.notes.push_back("no " + std::string(Code(source)) +
                                " policy is given: none has an opinion here");
      }
    }
    loaded_.digest = PrintHex(crypto::Sha256(AsBytes(read_)));
    return std::move(loaded_);
  }

 private:
  std::size_t Count(PolicySource source) const {
    const auto& all = loaded_.world.policies;
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(),
                      [source](const policy::Policy& each) { return each.source == source; }));
  }

  void Note(const std::string& path, const std::string& text) {
    read_ += path + " " + PrintHex(crypto::Sha256(AsBytes(text))) + "\n";
  }

  Status AddFacts(const std::string& text, const std::string& path) {
    if (has_facts_ && has_named_facts_) {
      return OkStatus();  // those that were named go before those of a folder
    }
    if (has_facts_) {
      return Error(StatusCode::kInvalidArgument,
                   path + ": a second file of legal facts: choose one with --facts");
    }
    ASSIGN_OR_RETURN(loaded_.world.facts, policy::ParseFacts(text, path));
    loaded_.world.facts.digest = PrintHex(crypto::Sha256(AsBytes(text)));
    has_facts_ = true;
    Note(path, text);
    return OkStatus();
  }

  // False if the file is something else.
  StatusOr<bool> TryAdd(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, ReadSourceText(path));
    ASSIGN_OR_RETURN(const std::string kind, KindOfSource(text, path));
    if (kind.empty()) {
      return false;
    }
    if (kind == "facts") {
      RETURN_IF_ERROR(AddFacts(text, path));
      return true;
    }
    const PolicySource source = policy::FromCode<PolicySource>(kind).value_or(PolicySource::kNone);
    ASSIGN_OR_RETURN(policy::Policy read, policy::ParsePolicy(text, path, source));
    if (source != PolicySource::kSite && Count(source) > 0) {
      return Error(StatusCode::kInvalidArgument, path + ": a second " + kind + " policy");
    }
    for (const policy::Policy& other : loaded_.world.policies) {
      if (other.source == source && other.identity.id == read.identity.id) {
        return Error(StatusCode::kInvalidArgument, path + ": a second policy `" + read.identity.id +
                                                       "`; the first is " + other.file);
      }
    }
    loaded_.world.policies.push_back(std::move(read));
    Note(path, text);
    return true;
  }

  LoadedWorld loaded_;
  std::string read_;
  bool has_facts_ = false;
  bool has_named_facts_ = false;
};

}  // namespace

void AddSourceOptions(CLI::App& command, SourceOptions& options) {
  command.add_option("PATH", options.paths, "policies, or folders of policies and legal facts")
      ->required();
  command.add_option("--facts", options.facts, "legal facts, if no folder has them");
}

StatusOr<std::string> ReadSourceText(const std::string& path) {
  return ReadFile(path, kLargestPolicyFile);
}

StatusOr<std::string> KindOfSource(const std::string& text, const std::string& file) {
  ASSIGN_OR_RETURN(TomlDocument document, TomlDocument::Parse(text, file));
  TomlTable root = document.Root();
  if (root.Has("facts")) {
    return std::string("facts");
  }
  std::optional<TomlTable> head = root.TryTable("policy");
  if (!head) {
    return std::string();
  }
  if (root.Has("site")) {
    return std::string("site");
  }
  const std::string name = file.substr(file.rfind('/') + 1);
  const bool is_aggregator = name.starts_with("aggregator") ||
                             head->TryString("id").value_or("").starts_with("aggregator");
  return std::string(is_aggregator ? "aggregator" : "federation");
}

StatusOr<LoadedWorld> LoadWorld(const SourceOptions& options) {
  WorldReader reader;
  if (!options.facts.empty()) {
    RETURN_IF_ERROR(reader.SetFacts(options.facts));
  }
  for (const std::string& path : options.paths) {
    std::error_code error;
    RETURN_IF_ERROR(std::filesystem::is_directory(path, error) ? reader.AddFolder(path)
                                                               : reader.Add(path));
  }
  return reader.Take();
}

StatusOr<WallTime> ParseWhen(const std::string& text, WallTime now) {
  if (const StatusOr<policy::Duration> duration = policy::ParseDuration(text); duration.ok()) {
    return now + *duration;
  }
  const bool is_date = text.size() == std::string_view("2027-06-30").size();
  const StatusOr<WallTime> time = ParseTime(is_date ? text + "T00:00:00Z" : text);
  if (time.ok()) {
    return *time;
  }
  return Error(StatusCode::kInvalidArgument,
               "`" + Visible(text) + "` is no date (2027-06-30), UTC time or duration (90d)");
}

PolicyProgress::PolicyProgress(std::string name, Context& context)
    : name_(std::move(name)), context_(context), start_(context.clock.Monotonic()) {}

PolicyProgress::~PolicyProgress() {
  if (has_drawn_) {
    context_.err << "\r" << std::string(name_.size() + 32, ' ') << "\r" << std::flush;
  }
}

void PolicyProgress::Show(std::size_t done, std::size_t all) {
  if (context_.out_is_terminal && context_.clock.Monotonic() - start_ > std::chrono::seconds(1)) {
    context_.err << "\r" << name_ << ": " << done << " of " << all << std::flush;
    has_drawn_ = true;
  }
}

}  // namespace domicile::cli

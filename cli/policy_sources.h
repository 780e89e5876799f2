// The policies and facts that `domicile policy` commands read: single files, or a folder of them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/command.h"
#include "policy/analysis/world.h"

namespace domicile::cli {

inline constexpr std::uint64_t kLargestPolicyFile = std::uint64_t{1} << 20U;

// The words of a command that name sources.
struct SourceOptions {
  std::vector<std::string> paths;  // files, and folders whose policies and facts are all taken
  std::string facts;               // legal facts, in place of those of a folder
};
// Adds `PATH...`, `--facts`.
void AddSourceOptions(CLI::App& command, SourceOptions& options);

struct LoadedWorld {
  policy::analysis::World world;
  // SHA-256 over the names and digests of all files, in the order they were read: what an answer is
  // about.
  std::string digest;
  std::vector<std::string> notes;  // what a reader should know, as "no federation policy is given"
};

// Errors: kInvalidArgument for a file that does not load, more or less than one file of legal
// facts, two federation or aggregator policies; those of reading.
StatusOr<LoadedWorld> LoadWorld(const SourceOptions& options);

// What a policy file is, by its tables; of the two that look alike an aggregator's by its id
// (`aggregator/...`) or file name. Empty: no policy at all.
StatusOr<std::string> KindOfSource(const std::string& text, const std::string& file);

StatusOr<std::string> ReadSourceText(const std::string& path);

// The instant that `text` means, seen from `now`: a date, a UTC time, or a duration as `90d`.
StatusOr<WallTime> ParseWhen(const std::string& text, WallTime now);

// Draws "NAME: 3 of 40" over one line of standard error, on a terminal and after a second.
class PolicyProgress {
 public:
  PolicyProgress(std::string name, Context& context);
  ~PolicyProgress();
  PolicyProgress(const PolicyProgress&) = delete;
  PolicyProgress& operator=(const PolicyProgress&) = delete;
  void Show(std::size_t done, std::size_t all);

 private:
  std::string name_;
  Context& context_;
  MonotonicTime start_;
  bool has_drawn_ = false;
};

}  // namespace domicile::cli

#include "cli/grant_folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "cli/plan_words.h"
#include "crypto/note.h"

namespace domicile::cli {

namespace {

constexpr std::uint64_t kLargestGrant = 64 * 1024;
constexpr std::string_view kGrantEnding = ".grant";

// The text of a note without its signatures; a text that is no note as it is.
std::string_view TextOf(std::string_view note) {
  const std::size_t split = note.rfind("\n\n");
  return split == std::string_view::npos ? note : note.substr(0, split + 1);
}

}  // namespace

std::string GrantFolder::RequestOf(const JobId& job) const {
  return JoinPath(requests, job.text() + ".request");
}
std::string GrantFolder::PlanOf(const JobId& job) const {
  return JoinPath(requests, job.text() + ".plan.json");
}
std::string GrantFolder::GrantOf(const JobId& job) const {
  return JoinPath(grants, job.text() + std::string(kGrantEnding));
}
std::string GrantFolder::DenialOf(const JobId& job) const {
  return JoinPath(grants, job.text() + ".deny");
}

StatusOr<contracts::GrantBody> ReadRequest(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestGrant));
  StatusOr<contracts::GrantBody> body = contracts::GrantBodyFromText(TextOf(text));
  return body.ok() ? body : Annotate(body.status(), "request `" + path + "`");
}

bool AreAlike(const contracts::GrantBody& a, const contracts::GrantBody& b) {
  contracts::GrantBody same = a;
  same.not_after = b.not_after;
  return same == b;
}

Status KeepGrant(const std::string& path, const std::string& note) {
  std::string merged = note;
  const StatusOr<contracts::GrantBody> there = ReadRequest(path);
  ASSIGN_OR_RETURN(const contracts::GrantBody body, contracts::GrantBodyFromText(TextOf(note)));
  if (there.ok() && AreAlike(*there, body)) {
    if (*there != body) {
      return Error(StatusCode::kInvalidArgument,
                   "`" + path + "` holds an approval until " + PrintTime(there->not_after) +
                       ", and this one is until " + PrintTime(body.not_after) +
                       ": all must sign the same text; sign again without --days, or remove it");
    }
    ASSIGN_OR_RETURN(const std::string old_note, ReadFile(path, kLargestGrant));
    if (const StatusOr<std::string> both = crypto::MergeNotes(old_note, note); both.ok()) {
      merged = *both;
    }
  }
  return WriteFileDurably(path, AsBytes(merged), 0644);
}

std::optional<LastApproved> FindLastApproved(const GrantFolder& folder, const JobId& job,
                                             const contracts::Plan& plan) {
  const StatusOr<std::vector<std::string>> files = ListFiles(folder.grants);
  if (!files.ok()) {
    return std::nullopt;
  }
  std::optional<LastApproved> last;
  std::filesystem::file_time_type newest;
  for (const std::string& file : *files) {
    const std::string path = JoinPath(folder.grants, file);
    if (!file.ends_with(kGrantEnding)) {
      continue;
    }
    StatusOr<contracts::GrantBody> body = ReadRequest(path);
    if (!body.ok() || body->job == job) {
      continue;
    }
    StatusOr<contracts::Plan> before = ReadPlan(folder.PlanOf(body->job));
    std::error_code error;
    const auto written = std::filesystem::last_write_time(path, error);
    if (error || !before.ok() || contracts::PlanDigest(*before) != body->plan ||
        before->name != plan.name || before->dataset != plan.dataset ||
        (last && written < newest)) {
      continue;
    }
    newest = written;
    last = LastApproved{.body = *std::move(body), .plan = *std::move(before)};
  }
  return last;
}

}  // namespace domicile::cli

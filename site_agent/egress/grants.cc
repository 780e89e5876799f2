#include "site_agent/egress/grants.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "crypto/sha256.h"

namespace domicile::site_agent {

namespace {

constexpr std::uint64_t kLargestGrant = 64 * 1024;

// One entry a person.
std::vector<policy::PresentApproval> Present(const std::vector<contracts::GivenApproval>& given) {
  std::vector<policy::PresentApproval> present;
  present.reserve(given.size());
  for (const contracts::GivenApproval& approval : given) {
    present.push_back({.role = approval.role,
                       .count = 1,
                       .organisation = approval.organisation,
                       .signed_at = approval.signed_at});
  }
  return present;
}

}  // namespace

StatusOr<std::optional<FoundGrant>> FindGrant(const std::string& folder,
                                              const contracts::ApprovalRules& rules,
                                              const contracts::GrantBody& wanted, WallTime now,
                                              policy::Reason& why) {
  why = policy::Reason::kApprovalMissing;
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(folder));
  for (const std::string& file : files) {
    if (!file.ends_with(".grant")) {
      continue;
    }
    // A file that cannot be read (too long, taken away meanwhile) must not hide a good one.
    const StatusOr<std::string> read = ReadFile(JoinPath(folder, file), kLargestGrant);
    const std::string note = read.ok() ? *read : std::string();
    const contracts::GrantCheck check = contracts::VerifyGrant(note, rules, wanted, now);
    if (check.reason != policy::Reason::kNone) {
      // A grant for another plan says nothing about this one.
      if (check.reason != policy::Reason::kGrantPlan) {
        why = check.reason;
      }
      continue;
    }
    return FoundGrant{.note = note,
                      .digest = crypto::Sha256(AsBytes(note)),
                      .body = check.body,
                      .approvals = Present(check.approvals)};
  }
  return std::nullopt;
}

StatusOr<std::vector<JobId>> FindDenials(const std::string& folder) {
  constexpr std::string_view kEnding = ".deny";
  ASSIGN_OR_RETURN(const std::vector<std::string> files, ListFiles(folder));
  std::vector<JobId> denied;
  for (const std::string& file : files) {
    if (file.ends_with(kEnding)) {
      StatusOr<JobId> job = JobId::Parse(file.substr(0, file.size() - kEnding.size()));
      if (job.ok()) {
        denied.push_back(*std::move(job));
      }
    }
  }
  return denied;
}

Status WriteRequest(const AgentConfig& config, const contracts::GrantBody& body,
                    std::string_view plan_text) {
  RETURN_IF_ERROR(CreateFolders(config.requests));
  RETURN_IF_ERROR(WriteFileDurably(JoinPath(config.requests, body.job.text() + ".plan.json"),
                                   AsBytes(plan_text), 0644));
  return WriteFileDurably(JoinPath(config.requests, body.job.text() + ".request"),
                          AsBytes(contracts::GrantText(body)), 0644);
}

FolderWatch::FolderWatch(FileHandle watch, FileHandle wake, std::function<void()> changed)
    : watch_(std::move(watch)),
      wake_(std::move(wake)),
      changed_(std::move(changed)),
      thread_([this] { Loop(); }) {}

FolderWatch::~FolderWatch() {
  const std::uint64_t one = 1;
  // The counter of an eventfd takes eight bytes; the loop ends when it is readable.
  DOMICILE_CHECK(write(wake_.descriptor(), &one, sizeof one) == sizeof one);
}

StatusOr<std::unique_ptr<FolderWatch>> FolderWatch::Start(const std::string& folder,
                                                          std::function<void()> changed) {
  FileHandle watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  FileHandle wake(eventfd(0, EFD_CLOEXEC));
  if (!watch.IsOpen() || !wake.IsOpen() ||
      inotify_add_watch(watch.descriptor(), folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO) < 0) {
    return ErrnoError(errno, "watching folder `" + folder + "`");
  }
  return std::unique_ptr<FolderWatch>(
      new FolderWatch(std::move(watch), std::move(wake), std::move(changed)));
}

void FolderWatch::Loop() {
  std::array<pollfd, 2> waits = {pollfd{.fd = watch_.descriptor(), .events = POLLIN, .revents = 0},
                                 pollfd{.fd = wake_.descriptor(), .events = POLLIN, .revents = 0}};
  while (true) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      return;
    }
    if ((waits[1].revents & POLLIN) != 0) {
      return;
    }
    std::array<char, 4096> events{};
    bool any = false;
    while (read(watch_.descriptor(), events.data(), events.size()) > 0) {
      any = true;
    }
    if (any) {
      changed_();
    }
  }
}

}  // namespace domicile::site_agent

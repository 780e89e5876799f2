#include "cli/watch_job.h"

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::cli {
namespace {

constexpr std::string_view kGone = "keepalive watchdog timeout";

// Answers each WatchJob with the next of these: so many committed phases, one event of how things
// stand, then this status.
class ScriptedAdmin final : public wire::AdminClient {
 public:
  struct Answer {
    std::uint32_t phases = 0;
    Status status;
  };
  explicit ScriptedAdmin(std::vector<Answer> answers) : answers_(std::move(answers)) {}

  StatusOr<v1::SubmitJobResponse> SubmitJob(const v1::SubmitJobRequest& /*request*/) override {
    return Unused();
  }
  StatusOr<v1::ListJobsResponse> ListJobs() override { return Unused(); }
  StatusOr<v1::ShowJobResponse> ShowJob(const std::string& /*job*/) override { return Unused(); }
  Status CancelJob(const std::string& /*job*/) override { return Unused(); }
  StatusOr<std::variant<v1::BlobRef, v1::Refusal>> FetchModel(
      const std::string& /*job*/, std::uint32_t /*round*/, const wire::ByteSink& /*sink*/,
      const wire::CallLimits& /*limits*/) override {
    return Unused();
  }
  Status WatchJob(const std::string& /*job*/,
                  const std::function<bool(const v1::WatchJobResponse&)>& on_event,
                  const wire::CallLimits& limits) override {
    timeouts.push_back(limits.timeout);
    REQUIRE(next_ < answers_.size());
    const Answer& answer = answers_[next_++];
    for (std::uint32_t round = 1; round <= answer.phases; ++round) {
      v1::WatchJobResponse event;
      event.mutable_metrics()->set_round(round);
      if (!on_event(event)) {
        return OkStatus();
      }
    }
    if (answer.phases > 0 && !on_event({})) {
      return OkStatus();
    }
    return answer.status;
  }

  std::vector<std::chrono::milliseconds> timeouts;

 private:
  static Status Unused() { return Error(StatusCode::kInternal, "not asked for"); }

  std::vector<Answer> answers_;
  std::size_t next_ = 0;
};

Status Unavailable() { return Error(StatusCode::kUnavailable, kGone); }

struct Watched {
  Status status;
  std::vector<std::uint32_t> rounds;  // told of
  std::string said;
};

Watched Watch(ScriptedAdmin& admin, std::size_t at_most = 1000) {
  FakeClock clock{WallTime{}};
  std::ostringstream err;
  Watched watched;
  const WatchLimits limits = {.total = std::chrono::hours(1),
                              .wait = [&clock](auto pause) { clock.Advance(pause); }};
  watched.status = WatchToTheEnd(
      admin, "heart",
      [&](const v1::WatchJobResponse& event) {
        if (event.has_metrics()) {
          watched.rounds.push_back(event.metrics().round());
        }
        return watched.rounds.size() < at_most;
      },
      limits, clock, err);
  watched.said = err.str();
  return watched;
}

TEST_CASE("WatchToTheEnd: a connection that breaks is made again, and no phase is told twice") {
  ScriptedAdmin admin({{2, Unavailable()},
                       {0, Unavailable()},
                       {0, Unavailable()},
                       {2, Unavailable()},
                       {4, OkStatus()}});

  const Watched watched = Watch(admin);

  CHECK(watched.status.ok());
  CHECK(watched.rounds == std::vector<std::uint32_t>{1, 2, 3, 4});
  // Once for each time that it broke, not for each attempt.
  const std::string once = "domicile: keepalive watchdog timeout; connecting again\n";
  CHECK(watched.said == once + once);
  CHECK(admin.timeouts.front() == std::chrono::hours(1));
  CHECK(admin.timeouts.back() == std::chrono::hours(1) - std::chrono::seconds(4));
}

TEST_CASE("WatchToTheEnd: an outage that is too long ends it, and other errors at once") {
  ScriptedAdmin gone(std::vector<ScriptedAdmin::Answer>(1000, {0, Unavailable()}));
  CHECK(Watch(gone).status.code() == StatusCode::kUnavailable);
  CHECK(gone.timeouts.size() == 302);  // five minutes of a second each, and the first

  ScriptedAdmin unknown({{0, Error(StatusCode::kNotFound, "no job `heart`")}});
  const Watched refused = Watch(unknown);
  CHECK(refused.status.code() == StatusCode::kNotFound);
  CHECK(refused.said.empty());

  ScriptedAdmin stopped({{9, Unavailable()}});
  CHECK(Watch(stopped, 2).status.ok());
}

}  // namespace
}  // namespace domicile::cli

#include "cli/watch_job.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <thread>

namespace domicile::cli {

Status WatchToTheEnd(wire::AdminClient& client, const std::string& job,
                     const std::function<bool(const v1::WatchJobResponse&)>& on_event,
                     const WatchLimits& limits, const Clock& clock, std::ostream& err) {
  using std::chrono::milliseconds;
  const MonotonicTime began = clock.Monotonic();
  MonotonicTime heard = began;
  std::size_t told = 0;  // committed phases
  bool is_broken = false;
  while (true) {
    std::size_t phases = 0;  // that this connection has told of: it begins with the first again
    const auto since = [&clock](MonotonicTime time) {
      return std::chrono::duration_cast<milliseconds>(clock.Monotonic() - time);
    };
    Status status = client.WatchJob(
        job,
        [&](const v1::WatchJobResponse& event) {
          heard = clock.Monotonic();
          is_broken = false;
          if (event.has_metrics() && ++phases <= told) {
            return true;
          }
          told = std::max(told, phases);
          return on_event(event);
        },
        {.timeout = std::max(milliseconds(0), limits.total - since(began)), .stop = {}});
    if (status.code() != StatusCode::kUnavailable || since(heard) > limits.outage) {
      return status;
    }
    if (!is_broken) {
      err << "domicile: " << Message(status) << "; connecting again\n" << std::flush;
      is_broken = true;
    }
    limits.wait ? limits.wait(limits.pause) : std::this_thread::sleep_for(limits.pause);
  }
}

}  // namespace domicile::cli

// Following a job to its end, over connections that break: it takes hours, and a busy machine or a
// restart of the aggregator is no reason to look away.
#pragma once

#include <chrono>
#include <functional>
#include <iosfwd>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "wire/admin_client.h"

namespace domicile::cli {

struct WatchLimits {
  std::chrono::milliseconds total;                             // of it all
  std::chrono::milliseconds outage = std::chrono::minutes(5);  // how long nothing may be heard
  std::chrono::milliseconds pause = std::chrono::seconds(1);   // before connecting again
  // Waits; a test's returns at once.
  std::function<void(std::chrono::milliseconds)> wait;  // empty: sleeps
};

// As AdminClient::WatchJob; no committed phase is told of twice. What breaks is said on `err`.
// Errors: kUnavailable once an outage is too long, kDeadlineExceeded, every other error at once.
Status WatchToTheEnd(wire::AdminClient& client, const std::string& job,
                     const std::function<bool(const v1::WatchJobResponse&)>& on_event,
                     const WatchLimits& limits, const Clock& clock, std::ostream& err);

}  // namespace domicile::cli

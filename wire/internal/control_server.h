// The aggregator's end of all control streams: callback reactors, so that an idle stream costs no
// thread, and one control thread on which the handler hears of them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "crypto/certificate.h"
#include "wire/handlers.h"
#include "wire/internal/control_thread.h"
#include "wire/internal/raw_calls.h"

namespace domicile::wire::internal {

class ControlStreamReactor;

struct QueueLimits {
  std::size_t max_directives = 0;
  std::size_t max_bytes = 0;
};

// Thread-safe, save Stop.
class ControlStreams {
 public:
  ControlStreams(FederationHandler& handler, QueueLimits limits, const Clock& clock);
  ~ControlStreams();

  // A stream has been opened by this peer. The reactor owns itself until gRPC is done with it.
  RawFederationService::ControlReactor* Open(grpc::CallbackServerContext& context,
                                             crypto::PeerIdentity peer);
  // A stream that is refused at once.
  static RawFederationService::ControlReactor* Refuse(const Status& status);

  // Breaks off the streams that were to end before `since` and have not: the site does not read.
  void CancelStuck(MonotonicTime since);
  // Ends all streams, those that are opened from now on too.
  void EndAll(const Status& status);
  // After the gRPC server has shut down: the handler hears the rest, then nothing more.
  void Stop() { thread_.Stop(); }

 private:
  friend class ControlStreamReactor;
  void Forget(ControlStreamReactor& stream);
  std::vector<std::shared_ptr<ControlStreamReactor>> All();

  FederationHandler& handler_;
  const QueueLimits limits_;
  const Clock& clock_;
  ControlThread thread_;

  Mutex mutex_;
  std::map<ControlStreamReactor*, std::weak_ptr<ControlStreamReactor>> streams_ GUARDED_BY(mutex_);
  Status ending_ GUARDED_BY(mutex_);  // not OK once EndAll was called
};

}  // namespace domicile::wire::internal

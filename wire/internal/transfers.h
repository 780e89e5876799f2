// Which transfers move bytes, which wait, and which have stalled.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include <grpcpp/server_context.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace domicile::wire::internal {

enum class TransferKind : std::uint8_t { kUpload = 0, kDownload = 1 };

class Transfers;

// The right to move bytes, given back when destroyed. One thread at a time.
class TransferSlot {
 public:
  TransferSlot(const TransferSlot&) = delete;
  TransferSlot& operator=(const TransferSlot&) = delete;
  ~TransferSlot();
  // Bytes have moved, or begin to: from here on the transfer must go on.
  void Moved();
  // It is our turn now: this transfer cannot stall until it moves again.
  void Rest();

 private:
  friend class Transfers;
  TransferSlot(Transfers& transfers, TransferKind kind, std::string key,
               grpc::ServerContext& context)
      : transfers_(transfers), kind_(kind), key_(std::move(key)), context_(context) {}

  Transfers& transfers_;
  const TransferKind kind_;
  const std::string key_;
  grpc::ServerContext& context_;
  // Guarded by the mutex of `transfers_`.
  bool moving_ = false;   // holds a slot
  bool watched_ = false;  // must move
  MonotonicTime moved_at_{};
};

// Thread-safe.
class Transfers {
 public:
  // `slots`: of each kind.
  Transfers(std::size_t slots, std::chrono::milliseconds stall_timeout, const Clock& clock);

  // Waits for a slot. Of two transfers with the same key (if not empty) the newer ends the older
  // first, whose connection may be dead without anybody having noticed. Errors: kCancelled (the
  // caller has gone, or a newer transfer came), kUnavailable (stopped).
  StatusOr<std::unique_ptr<TransferSlot>> Begin(TransferKind kind, std::string key,
                                                grpc::ServerContext& context);

  // Ends the transfers that have moved nothing for the stall timeout.
  void CancelStalled();
  // No transfer begins any more; those that wait give up.
  void Stop();

 private:
  friend class TransferSlot;
  bool HasOlder(const TransferSlot& slot) REQUIRES(mutex_);
  void Leave(TransferSlot& slot);

  const std::size_t slots_;
  const std::chrono::milliseconds stall_timeout_;
  const Clock& clock_;

  Mutex mutex_;
  ConditionVariable changed_;
  std::list<TransferSlot*> all_ GUARDED_BY(mutex_);  // in the order they came
  std::array<std::size_t, 2> moving_ GUARDED_BY(mutex_) = {};
  bool stopped_ GUARDED_BY(mutex_) = false;
};

}  // namespace domicile::wire::internal

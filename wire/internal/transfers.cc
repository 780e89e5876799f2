#include "wire/internal/transfers.h"

#include <utility>

namespace domicile::wire::internal {
namespace {

constexpr auto kLook = std::chrono::milliseconds(100);  // a wait looks whether its caller has gone

std::size_t Index(TransferKind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

TransferSlot::~TransferSlot() { transfers_.Leave(*this); }

void TransferSlot::Moved() {
  const MonotonicTime now = transfers_.clock_.Monotonic();
  const MutexLock lock(transfers_.mutex_);
  watched_ = true;
  moved_at_ = now;
}

void TransferSlot::Rest() {
  const MutexLock lock(transfers_.mutex_);
  watched_ = false;
}

Transfers::Transfers(std::size_t slots, std::chrono::milliseconds stall_timeout, const Clock& clock)
    : slots_(slots), stall_timeout_(stall_timeout), clock_(clock) {}

bool Transfers::HasOlder(const TransferSlot& slot) {
  for (const TransferSlot* other : all_) {
    if (other == &slot) {
      return false;
    }
    if (!slot.key_.empty() && other->key_ == slot.key_) {
      return true;
    }
  }
  return false;
}

StatusOr<std::unique_ptr<TransferSlot>> Transfers::Begin(TransferKind kind, std::string key,
                                                         grpc::ServerContext& context) {
  std::unique_ptr<TransferSlot> slot(new TransferSlot(*this, kind, std::move(key), context));
  MutexLock lock(mutex_);
  for (TransferSlot* other : all_) {
    if (!slot->key_.empty() && other->key_ == slot->key_) {
      other->context_.TryCancel();
    }
  }
  all_.push_back(slot.get());
  const auto may_move = [&]() REQUIRES(mutex_) {
    return !HasOlder(*slot) && moving_[Index(kind)] < slots_;
  };
  Status status;
  while (status.ok() && !may_move()) {
    changed_.wait_for(mutex_, kLook);
    if (stopped_) {
      status = Error(StatusCode::kUnavailable, "the aggregator is stopping");
    } else if (context.IsCancelled()) {
      status = Error(StatusCode::kCancelled, "the caller has gone");
    }
  }
  if (stopped_ || !status.ok()) {  // the slot leaves by itself, after the lock
    return status.ok() ? Error(StatusCode::kUnavailable, "the aggregator is stopping") : status;
  }
  ++moving_[Index(kind)];
  slot->moving_ = true;
  return slot;
}

void Transfers::Leave(TransferSlot& slot) {
  const MutexLock lock(mutex_);
  if (slot.moving_) {
    --moving_[Index(slot.kind_)];
  }
  all_.remove(&slot);
  changed_.notify_all();
}

void Transfers::CancelStalled() {
  const MonotonicTime now = clock_.Monotonic();
  const MutexLock lock(mutex_);
  for (TransferSlot* slot : all_) {
    if (slot->watched_ && now - slot->moved_at_ > stall_timeout_) {
      slot->context_.TryCancel();
    }
  }
}

void Transfers::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace domicile::wire::internal

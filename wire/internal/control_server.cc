#include "wire/internal/control_server.h"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "wire/closed.h"
#include "wire/status.h"

namespace domicile::wire::internal {

// One stream. gRPC calls the On... methods, from several threads; the handler calls Push and End,
// from any. Start... and Finish are called without the lock, because gRPC may answer at once; so
// Finish waits until no Start... is being called (`starting_`): after Finish the reactor may be
// done with at any moment.
//
// shared_ptr: `self_` is gRPC's share, dropped in OnDone; the handler may hold another.
class ControlStreamReactor final : public SiteStream,
                                   public RawFederationService::ControlReactor,
                                   public std::enable_shared_from_this<ControlStreamReactor> {
 public:
  ControlStreamReactor(ControlStreams& streams, grpc::CallbackServerContext& context,
                       crypto::PeerIdentity peer)
      : streams_(streams), context_(context), peer_(std::move(peer)) {}

  void Begin() {
    self_ = shared_from_this();
    streams_.thread_.Post([self = self_] { self->Connect(); });
  }

  // ---- SiteStream ----
  const crypto::PeerIdentity& Peer() const override { return peer_; }

  Status Push(std::shared_ptr<const v1::Directive> directive) override {
    RETURN_IF_ERROR(RequireClosed(*directive));
    const std::size_t size = directive->ByteSizeLong();
    bool full = false;
    {
      const MutexLock lock(mutex_);
      if (end_.has_value()) {
        return Error(StatusCode::kUnavailable,
                     "the control stream of `" + peer_.spiffe.name + "` has ended");
      }
      full = queue_.size() >= streams_.limits_.max_directives ||
             size > streams_.limits_.max_bytes - queued_bytes_;
      if (full) {
        EndLocked(Error(StatusCode::kResourceExhausted,
                        "`" + peer_.spiffe.name + "` does not read its control stream"));
      } else {
        queue_.push_back(std::move(directive));
        queued_bytes_ += size;
        tally_.AddOut(size);
      }
    }
    if (full) {
      Cancel();  // a write may be waiting for the site for ever
      return Error(StatusCode::kResourceExhausted,
                   "`" + peer_.spiffe.name + "` does not read its control stream");
    }
    Pump();
    return OkStatus();
  }

  void End(const Status& status) override {
    {
      const MutexLock lock(mutex_);
      EndLocked(status);
    }
    Pump();
  }

  ControlTally Tally() const override {
    const MutexLock lock(mutex_);
    return tally_;
  }

  // Breaks the stream off, unless it has been finished.
  void Cancel() {
    {
      const MutexLock lock(mutex_);
      if (finished_) {
        return;
      }
      ++starting_;
    }
    context_.TryCancel();
    {
      const MutexLock lock(mutex_);
      --starting_;
    }
    Pump();
  }

  bool IsStuck(MonotonicTime since) {
    const MutexLock lock(mutex_);
    return end_.has_value() && !finished_ && ended_at_ < since;
  }

  // ---- reactions ----
  void OnReadDone(bool ok) override {
    const Status valid = ok ? RequireClosed(incoming_) : OkStatus();
    if (ok && valid.ok()) {
      {
        const MutexLock lock(mutex_);
        tally_.AddIn(incoming_.ByteSizeLong());
      }
      streams_.thread_.Post([self = shared_from_this()] { self->Deliver(); });
      return;
    }
    End(valid);  // not ok: the site will send no more
  }

  void OnWriteDone(bool ok) override {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      in_flight_.reset();
      if (!ok) {
        BreakLocked();
      }
    }
    Pump();
  }

  void OnCancel() override {
    {
      const MutexLock lock(mutex_);
      BreakLocked();
    }
    Pump();
  }

  void OnDone() override {
    streams_.Forget(*this);
    const std::shared_ptr<ControlStreamReactor> self = std::move(self_);
    streams_.thread_.Post([self] { self->Disconnect(); });
  }

 private:
  // ---- on the control thread ----
  void Connect() {
    const Status status = streams_.handler_.OnConnect(shared_from_this());
    if (!status.ok()) {
      End(status);
      return;
    }
    connected_ = true;
    ReadNext();
  }

  void Deliver() {
    streams_.handler_.OnMessage(*this, incoming_);
    ReadNext();
  }

  void Disconnect() {
    if (!connected_) {
      return;
    }
    Status why;
    {
      const MutexLock lock(mutex_);
      why = end_.value_or(OkStatus());
    }
    streams_.handler_.OnDisconnect(*this, why);
  }

  // ---- any thread ----
  void ReadNext() {
    {
      const MutexLock lock(mutex_);
      wants_read_ = true;
    }
    Pump();
  }

  void EndLocked(const Status& status) REQUIRES(mutex_) {
    if (!end_.has_value()) {
      end_ = status;
      ended_at_ = streams_.clock_.Monotonic();
    }
  }

  // The connection is gone: nothing queued can be sent. A stream that seemed to end in order did
  // not.
  void BreakLocked() REQUIRES(mutex_) {
    queue_.clear();
    queued_bytes_ = 0;
    if (!finished_ && (!end_.has_value() || end_->ok())) {
      end_.reset();
      EndLocked(Error(StatusCode::kCancelled, "the connection was lost"));
    }
  }

  enum class Action : std::uint8_t { kNone, kWrite, kRead, kFinish };

  Action NextLocked() REQUIRES(mutex_) {
    if (finished_) {
      return Action::kNone;
    }
    if (!writing_ && !queue_.empty()) {
      writing_ = true;
      ++starting_;
      in_flight_ = std::move(queue_.front());
      queue_.pop_front();
      queued_bytes_ -= in_flight_->ByteSizeLong();
      return Action::kWrite;
    }
    if (end_.has_value()) {
      if (writing_ || starting_ > 0) {
        return Action::kNone;
      }
      finished_ = true;
      return Action::kFinish;
    }
    if (wants_read_) {
      wants_read_ = false;
      ++starting_;
      return Action::kRead;
    }
    return Action::kNone;
  }

  // Starts whatever can be started.
  void Pump() {
    while (true) {
      Action action = Action::kNone;
      const v1::Directive* directive = nullptr;
      Status end;
      {
        const MutexLock lock(mutex_);
        action = NextLocked();
        directive = in_flight_.get();
        end = end_.value_or(OkStatus());
      }
      switch (action) {
        case Action::kNone:
          return;
        case Action::kFinish:
          Finish(ToPeer(end));
          return;
        case Action::kWrite:
          StartWrite(directive);
          break;
        case Action::kRead:
          StartRead(&incoming_);
          break;
      }
      const MutexLock lock(mutex_);
      --starting_;
    }
  }

  ControlStreams& streams_;
  grpc::CallbackServerContext& context_;  // gRPC's, until OnDone
  const crypto::PeerIdentity peer_;
  std::shared_ptr<ControlStreamReactor> self_;
  v1::SiteMessage incoming_;  // gRPC's while a read runs, else the control thread's
  bool connected_ = false;    // the control thread's

  mutable Mutex mutex_;
  ControlTally tally_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<const v1::Directive>> queue_ GUARDED_BY(mutex_);
  std::size_t queued_bytes_ GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const v1::Directive> in_flight_ GUARDED_BY(mutex_);
  std::optional<Status> end_ GUARDED_BY(mutex_);  // to be ended, with this
  MonotonicTime ended_at_ GUARDED_BY(mutex_);
  int starting_ GUARDED_BY(mutex_) = 0;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool wants_read_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
};

ControlStreams::ControlStreams(FederationHandler& handler, QueueLimits limits, const Clock& clock)
    : handler_(handler), limits_(limits), clock_(clock) {}

ControlStreams::~ControlStreams() = default;

RawFederationService::ControlReactor* ControlStreams::Open(grpc::CallbackServerContext& context,
                                                           crypto::PeerIdentity peer) {
  auto stream = std::make_shared<ControlStreamReactor>(*this, context, std::move(peer));
  {
    const MutexLock lock(mutex_);
    if (!ending_.ok()) {
      return Refuse(ending_);
    }
    streams_.emplace(stream.get(), stream);
  }
  stream->Begin();
  return stream.get();
}

RawFederationService::ControlReactor* ControlStreams::Refuse(const Status& status) {
  class Refused final : public RawFederationService::ControlReactor {
   public:
    explicit Refused(const Status& why) { Finish(ToPeer(why)); }
    void Keep(std::unique_ptr<Refused> self) { self_ = std::move(self); }
    void OnDone() override { const std::unique_ptr<Refused> last = std::move(self_); }

   private:
    std::unique_ptr<Refused> self_;  // gRPC's share
  };
  auto refused = std::make_unique<Refused>(status);
  Refused* reactor = refused.get();
  reactor->Keep(std::move(refused));
  return reactor;
}

void ControlStreams::Forget(ControlStreamReactor& stream) {
  const MutexLock lock(mutex_);
  streams_.erase(&stream);
}

std::vector<std::shared_ptr<ControlStreamReactor>> ControlStreams::All() {
  std::vector<std::shared_ptr<ControlStreamReactor>> all;
  const MutexLock lock(mutex_);
  for (const auto& [key, weak] : streams_) {
    if (auto stream = weak.lock()) {
      all.push_back(std::move(stream));
    }
  }
  return all;
}

void ControlStreams::CancelStuck(MonotonicTime since) {
  for (const auto& stream : All()) {
    if (stream->IsStuck(since)) {
      stream->Cancel();
    }
  }
}

void ControlStreams::EndAll(const Status& status) {
  {
    const MutexLock lock(mutex_);
    ending_ = status;
  }
  for (const auto& stream : All()) {
    stream->End(status);
  }
}

}  // namespace domicile::wire::internal

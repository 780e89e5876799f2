#include "wire/internal/control_client.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include "base/mutex.h"
#include "wire/closed.h"
#include "wire/proto/federation.grpc.pb.h"
#include "wire/status.h"

namespace domicile::wire::internal {
namespace {

constexpr std::size_t kMaxQueued = 1024;
constexpr auto kCloseTimeout = std::chrono::seconds(2);

// Two threads: one reads and calls the listener, one writes what is queued. Thread-safe.
class SyncControlStream final : public ControlStream {
 public:
  SyncControlStream(const Connection& connection, ControlListener& listener)
      : connection_(connection),
        listener_(listener),
        stub_(v1::Federation::NewStub(connection.Channel())),
        stream_(stub_->Control(&context_)),
        writer_([this] { Write(); }),
        reader_([this] { Read(); }) {}

  ~SyncControlStream() override {
    Close();
    {
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, kCloseTimeout, [this]() REQUIRES(mutex_) { return ended_; });
    }
    context_.TryCancel();
    reader_.join();
    writer_.join();
  }

  Status Send(const v1::SiteMessage& message) override {
    RETURN_IF_ERROR(RequireClosed(message));
    {
      const MutexLock lock(mutex_);
      if (closing_ || ended_) {
        return Error(StatusCode::kUnavailable, "the control stream has ended");
      }
      if (queue_.size() >= kMaxQueued) {
        return Error(StatusCode::kResourceExhausted,
                     "the aggregator does not read: 1024 messages are waiting for it");
      }
      queue_.push_back(message);
      tally_.AddOut(message.ByteSizeLong());
    }
    changed_.notify_all();
    return OkStatus();
  }

  void Close() override {
    {
      const MutexLock lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
  }

  ControlTally Tally() const override {
    const MutexLock lock(mutex_);
    return tally_;
  }

 private:
  void Write() {
    while (true) {
      v1::SiteMessage message;
      {
        MutexLock lock(mutex_);
        changed_.wait(mutex_,
                      [this]() REQUIRES(mutex_) { return closing_ || ended_ || !queue_.empty(); });
        if (ended_) {
          return;
        }
        if (queue_.empty()) {
          break;
        }
        message = std::move(queue_.front());
        queue_.pop_front();
      }
      if (!stream_->Write(message)) {
        return;  // the reader learns why
      }
    }
    stream_->WritesDone();
  }

  void Read() {
    Status invalid;
    v1::Directive directive;
    while (stream_->Read(&directive)) {
      invalid = RequireClosed(directive);
      if (!invalid.ok()) {
        context_.TryCancel();
        break;
      }
      {
        const MutexLock lock(mutex_);
        tally_.AddIn(directive.ByteSizeLong());
      }
      listener_.OnDirective(directive);
    }
    {
      const MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    // Finish wants all that has come to be read, after a TryCancel too.
    while (stream_->Read(&directive)) {
    }
    const grpc::Status status = stream_->Finish();
    listener_.OnClosed(invalid.ok() ? connection_.Explain(status) : invalid);
  }

  const Connection& connection_;
  ControlListener& listener_;
  grpc::ClientContext context_;
  const std::unique_ptr<v1::Federation::Stub> stub_;
  const std::unique_ptr<grpc::ClientReaderWriter<v1::SiteMessage, v1::Directive>> stream_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<v1::SiteMessage> queue_ GUARDED_BY(mutex_);
  ControlTally tally_ GUARDED_BY(mutex_);
  bool closing_ GUARDED_BY(mutex_) = false;
  bool ended_ GUARDED_BY(mutex_) = false;

  // Last: they use all of the above.
  std::jthread writer_;
  std::jthread reader_;
};

}  // namespace

std::unique_ptr<ControlStream> OpenControlStream(const Connection& connection,
                                                 ControlListener& listener) {
  return std::make_unique<SyncControlStream>(connection, listener);
}

}  // namespace domicile::wire::internal

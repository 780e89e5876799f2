// How workers find and know each other: the half of group.h before the first task.
#include <utility>

#include <poll.h>

#include "base/json.h"
#include "base/log.h"
#include "site_agent/cluster/group.h"
#include "site_agent/cluster/internal/frames.h"

namespace domicile::site_agent {

namespace {

using Wants = crypto::PskChannel::Wants;

constexpr std::string_view kPurpose = "domicile-cluster 1";
constexpr std::uint64_t kMaxHello = 4096;

std::string HelloText(const ClusterDescription& description, const ClusterIdentity& identity) {
  return PrintJson(JsonObject{{"v", 1},
                              {"federation", identity.federation},
                              {"site", identity.site.text()},
                              {"rank", std::uint64_t{description.rank}},
                              {"workers", std::uint64_t{description.workers.size()}},
                              {"trainer", PrintHex(identity.trainer)},
                              {"data", PrintHex(identity.data)}});
}

// The rank in a hello that fits this cluster.
StatusOr<std::size_t> ReadHello(std::string_view text, const ClusterDescription& description,
                                const ClusterIdentity& identity) {
  ASSIGN_OR_RETURN(const Json json, ParseCanonicalJson(text));
  JsonReader reader(json, "hello");
  reader.Int("v", 1, 1);
  const std::string federation = reader.String("federation");
  const std::string site = reader.String("site");
  const auto rank = static_cast<std::size_t>(reader.Int("rank", 0, kMaxWorkers - 1));
  const std::int64_t workers = reader.Int("workers", 2, kMaxWorkers);
  const std::string trainer = reader.String("trainer");
  const std::string data = reader.String("data");
  RETURN_IF_ERROR(reader.Finish());
  const auto refuse = [rank](std::string_view what) {
    return Error(
        StatusCode::kFailedPrecondition,
        "a worker that calls itself " + std::to_string(rank) + " has another " + std::string(what));
  };
  if (federation != identity.federation || site != identity.site.text()) {
    return refuse("federation or site in its trainer.toml");
  }
  if (static_cast<std::size_t>(workers) != description.workers.size() ||
      rank >= description.workers.size()) {
    return refuse("number of workers in its cluster description");
  }
  if (trainer != PrintHex(identity.trainer)) {
    return refuse("trainer program: install the same version on every host");
  }
  if (data != PrintHex(identity.data)) {
    return refuse(
        "snapshot of the data, or another `salt` in its state folder: both must be the "
        "same on every host");
  }
  return rank;
}

// A connection on its way to being a worker of the group.
class Greeting {
 public:
  Greeting(crypto::PskChannel channel, std::optional<std::size_t> expected,
           const std::string& hello)
      : channel_(std::move(channel)), expected_(expected) {
    const FrameHead head = internal::PrintHead(ClusterFrame::kHello, hello.size());
    out_.assign(head.begin(), head.end());
    out_.insert(out_.end(), hello.begin(), hello.end());
  }

  // As far as it goes without waiting. True when the other's hello is there.
  StatusOr<bool> Advance() {
    if (!shaken_) {
      ASSIGN_OR_RETURN(const Wants wants, channel_.Handshake());
      events_ = internal::EventOf(wants);
      shaken_ = wants == Wants::kNothing;
    }
    if (shaken_) {
      ByteSpan rest = ByteSpan(out_).subspan(sent_);
      const StatusOr<short> events = internal::SendSome(channel_, rest);
      sent_ = out_.size() - rest.size();
      ASSIGN_OR_RETURN(events_, events);
    }
    if (events_ == 0) {
      RETURN_IF_ERROR(Receive());
    }
    return events_ == 0;
  }

  std::string_view Hello() const { return AsText(ByteSpan(in_)); }
  std::optional<std::size_t> expected() const { return expected_; }
  pollfd Wait() const { return {channel_.descriptor(), events_, 0}; }
  crypto::PskChannel Take() { return std::move(channel_); }

 private:
  Status Receive() {
    if (head_read_ < head_.size()) {
      RETURN_IF_ERROR(ReceiveInto(head_, head_read_));
      if (head_read_ < head_.size()) {
        return OkStatus();
      }
      ASSIGN_OR_RETURN(const internal::ParsedHead head, internal::ParseHead(head_));
      if (head.kind != ClusterFrame::kHello || head.bytes > kMaxHello) {
        return Error(StatusCode::kFailedPrecondition, "the other side did not say hello");
      }
      in_.resize(head.bytes);
    }
    return ReceiveInto(in_, read_);
  }

  // Goes on behind the first `have` bytes.
  Status ReceiveInto(std::span<std::uint8_t> buffer, std::size_t& have) {
    std::span<std::uint8_t> rest = buffer.subspan(have);
    const StatusOr<short> events = internal::ReceiveSome(channel_, rest);
    have = buffer.size() - rest.size();
    ASSIGN_OR_RETURN(events_, events);
    return OkStatus();
  }

  crypto::PskChannel channel_;
  std::optional<std::size_t> expected_;
  bool shaken_ = false;
  Bytes out_;
  std::size_t sent_ = 0;
  FrameHead head_{};
  std::size_t head_read_ = 0;
  Bytes in_;
  std::size_t read_ = 0;
  short events_ = 0;
};

std::string Missing(const ClusterDescription& description,
                    const std::vector<std::optional<crypto::PskChannel>>& seated) {
  std::string names;
  for (std::size_t rank = 0; rank < seated.size(); ++rank) {
    if (!seated[rank] && rank != description.rank) {
      names += (names.empty() ? "" : ", ") + std::to_string(rank) + " (" +
               description.workers[rank].Text() + ")";
    }
  }
  return names;
}

// Everything that is connected but not yet seated.
class Arrivals {
 public:
  Arrivals(const ClusterDescription& description, ClusterSockets& sockets, ByteSpan key,
           const ClusterIdentity& identity)
      : description_(description),
        sockets_(sockets),
        key_(key),
        identity_(identity),
        hello_(HelloText(description, identity)) {}

  Status TakeLower() {
    for (std::size_t rank = 0; rank < sockets_.lower.size(); ++rank) {
      if (!sockets_.lower[rank].IsOpen()) {
        return Error(StatusCode::kUnavailable, "the connection to worker " + std::to_string(rank) +
                                                   " is gone: this worker has to start again");
      }
      RETURN_IF_ERROR(Greet(std::move(sockets_.lower[rank]), rank));
    }
    sockets_.lower.clear();
    return OkStatus();
  }

  Status AcceptHigher() {
    while (sockets_.listener.IsOpen() && greetings_.size() < kMaxWorkers) {
      ASSIGN_OR_RETURN(FileHandle handle, AcceptWorker(sockets_, description_.rank + 1, 0));
      if (!handle.IsOpen()) {
        break;
      }
      RETURN_IF_ERROR(Greet(std::move(handle), std::nullopt));
    }
    return OkStatus();
  }

  // Seats who has said a fitting hello. A lower rank that does not is an error; a higher one is
  // dropped, since anyone on a listed host can connect.
  Status Seat(std::vector<std::optional<crypto::PskChannel>>& seats) {
    for (auto greeting = greetings_.begin(); greeting != greetings_.end();) {
      const StatusOr<bool> done = greeting->Advance();
      if (done.ok() && !*done) {
        ++greeting;
        continue;
      }
      const Status seated = done.ok() ? SeatOne(*greeting, seats) : done.status();
      if (!seated.ok()) {
        if (greeting->expected()) {
          return Annotate(seated, "worker " + std::to_string(*greeting->expected()));
        }
        LogWarning("a connection to the cluster's address is refused: " +
                   std::string(Message(seated)));
      }
      greeting = greetings_.erase(greeting);
    }
    return OkStatus();
  }

  void Wait() const {
    std::vector<pollfd> waits;
    if (sockets_.listener.IsOpen()) {
      waits.push_back({sockets_.listener.descriptor(), POLLIN, 0});
    }
    for (const Greeting& greeting : greetings_) {
      waits.push_back(greeting.Wait());
    }
    poll(waits.data(), waits.size(), internal::kLookMilliseconds);
  }

 private:
  Status Greet(FileHandle handle, std::optional<std::size_t> expected) {
    const auto side = expected ? crypto::PskSide::kConnecting : crypto::PskSide::kAccepting;
    ASSIGN_OR_RETURN(crypto::PskChannel channel,
                     crypto::PskChannel::Make(std::move(handle), side, key_, kPurpose));
    greetings_.emplace_back(std::move(channel), expected, hello_);
    return OkStatus();
  }

  Status SeatOne(Greeting& greeting, std::vector<std::optional<crypto::PskChannel>>& seats) const {
    ASSIGN_OR_RETURN(const std::size_t rank, ReadHello(greeting.Hello(), description_, identity_));
    const bool fits = greeting.expected() ? rank == *greeting.expected() : rank > description_.rank;
    if (!fits) {
      return Error(StatusCode::kFailedPrecondition,
                   "it calls itself worker " + std::to_string(rank) +
                       ", which is not the rank of its address: compare the cluster descriptions");
    }
    // A worker that started again replaces its earlier connection, which nobody serves.
    seats[rank].emplace(greeting.Take());
    return OkStatus();
  }

  const ClusterDescription& description_;
  ClusterSockets& sockets_;
  ByteSpan key_;
  const ClusterIdentity& identity_;
  std::string hello_;
  std::vector<Greeting> greetings_;
};

}  // namespace

StatusOr<std::unique_ptr<ClusterGroup>> ClusterGroup::Join(const ClusterDescription& description,
                                                           ClusterSockets& sockets, ByteSpan key,
                                                           const ClusterIdentity& identity,
                                                           const Clock& clock,
                                                           const std::stop_token& stop) {
  std::unique_ptr<ClusterGroup> group(new ClusterGroup(description, clock));
  Arrivals arrivals(description, sockets, key, identity);
  RETURN_IF_ERROR(arrivals.TakeLower());
  const MonotonicTime deadline = clock.Monotonic() + description.rendezvous;
  while (true) {
    RETURN_IF_ERROR(arrivals.AcceptHigher());
    RETURN_IF_ERROR(arrivals.Seat(group->channels_));
    const std::string missing = Missing(description, group->channels_);
    if (missing.empty()) {
      return group;
    }
    if (stop.stop_requested()) {
      return Error(StatusCode::kCancelled, "cancelled");
    }
    if (clock.Monotonic() >= deadline) {
      return Error(StatusCode::kUnavailable, "workers are missing after " +
                                                 std::to_string(description.rendezvous.count()) +
                                                 " seconds: " + missing);
    }
    arrivals.Wait();
  }
}

}  // namespace domicile::site_agent

// What the log says of connections: greetings that were refused, and control messages in sums.
#include <utility>

#include "aggregator/coordinator/coordinator.h"
#include "audit/records.h"
#include "base/log.h"

namespace domicile::aggregator {

namespace {

using policy::Reason;

constexpr std::chrono::hours kControlPeriod{1};

}  // namespace

void Coordinator::RefuseGreeting(const crypto::PeerIdentity& peer, Reason reason) {
  const MutexLock lock(mutex_);
  LogRefusedGreeting("site/" + peer.spiffe.name, reason);
}

void Coordinator::LogRefusedGreeting(const std::string& party, Reason reason) {
  static constexpr std::chrono::minutes kPeriod{1};
  const auto write = [this, party, reason](std::uint64_t count,
                                           std::chrono::seconds period) REQUIRES(mutex_) {
    Json tally;
    tally.Set("reason", std::string(policy::Code(reason)));
    tally.Set("count", count);
    const Status logged = AppendLeaf(audit::EventBuilder(audit::EventType::kPeerRefused)
                                         .Set("peer", party)
                                         .Set("seconds", period.count())
                                         .Set("counts", Json(JsonArray{tally}))
                                         .Build());
    if (!logged.ok()) {
      LogError("logging a refused greeting: " + std::string(Message(logged)));
    }
  };
  const std::string kind = "hello/" + party + "/" + std::string(policy::Code(reason));
  const auto [repeats, is_first] = repeated_refusals_.try_emplace(kind, 0);
  if (!is_first) {
    ++repeats->second;
    return;
  }
  write(1, std::chrono::seconds(0));
  timers_.Arm("refusals/" + kind, clock_.Monotonic() + kPeriod, [this, kind, write] {
    const MutexLock lock(mutex_);
    const auto found = repeated_refusals_.find(kind);
    if (found != repeated_refusals_.end()) {
      if (found->second > 0) {
        write(found->second, kPeriod);
      }
      repeated_refusals_.erase(found);
    }
  });
}

void Coordinator::LogControl(const SiteId& site) {
  Session* session = FindSession(site);
  if (session == nullptr) {
    return;
  }
  const ControlTally now = session->port->Tally();
  const ControlTally before = std::exchange(session->summed, now);
  const MonotonicTime since = std::exchange(session->summed_at, clock_.Monotonic());
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(session->summed_at - since).count();
  AppendLeaf(ToEvent(audit::ControlSummary{.peer = "site/" + site.text(),
                                           .seconds = static_cast<std::uint64_t>(seconds),
                                           .messages_in = now.messages_in - before.messages_in,
                                           .messages_out = now.messages_out - before.messages_out,
                                           .bytes_in = now.bytes_in - before.bytes_in,
                                           .bytes_out = now.bytes_out - before.bytes_out}))
      .IgnoreError();  // the next leaf that must be written says that the disk fails
}

void Coordinator::LogControlLater(const SiteId& site, const SitePort* port) {
  timers_.Arm("control/" + site.text(), clock_.Monotonic() + kControlPeriod, [this, site, port] {
    const MutexLock lock(mutex_);
    const Session* session = FindSession(site);
    if (session != nullptr && session->port.get() == port) {
      LogControl(site);
      LogControlLater(site, port);
    }
  });
}

}  // namespace domicile::aggregator

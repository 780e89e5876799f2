// One connection to the aggregator: what both the session and the task under way need of it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/mutex.h"
#include "contracts/roster.h"
#include "crypto/note.h"
#include "site_agent/egress/agent_events.h"
#include "site_agent/egress/gate.h"
#include "site_agent/egress/site_store.h"
#include "wire/client.h"

namespace domicile::site_agent {

// What is fixed once the aggregator has said welcome.
struct Terms {
  std::uint64_t starts = 0;  // of the aggregator
  contracts::Roster roster;
  contracts::RosterEntry site;
  contracts::RosterEntry aggregator;
  crypto::NoteVerifier aggregator_log;
  ForcedPolicies policies;
  std::optional<std::chrono::milliseconds> clock_skew;  // the aggregator's clock less this one
};

// Members go in reverse order: the stream before the client and the listener that it borrows.
struct Connection {
  std::unique_ptr<EventListener> listener;
  std::unique_ptr<wire::FederationClient> client;
  std::unique_ptr<wire::ControlStream> control;
  Terms terms;
};

// The connection of the moment, if there is one. Thread-safe. shared_ptr: a task that is sending
// keeps the connection it sends on, while the session may already be looking for the next.
class CurrentConnection {
 public:
  std::shared_ptr<Connection> Find() const {
    const MutexLock lock(mutex_);
    return connection_;
  }
  void Set(std::shared_ptr<Connection> connection) {
    const MutexLock lock(mutex_);
    connection_ = std::move(connection);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<Connection> connection_ GUARDED_BY(mutex_);
};

}  // namespace domicile::site_agent

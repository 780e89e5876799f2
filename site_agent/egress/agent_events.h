// What the agent's own thread waits for, and who tells it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <optional>
#include <stop_token>
#include <variant>

#include "base/mutex.h"
#include "base/status.h"
#include "wire/client.h"

namespace domicile::site_agent {

struct GrantsChanged {};
struct ReloadAsked {};  // policies, by a signal
struct StreamClosed {
  Status why;
};
using AgentEvent = std::variant<v1::Directive, StreamClosed, GrantsChanged, ReloadAsked>;

// Thread-safe queue of them.
class AgentEvents {
 public:
  void Push(AgentEvent event);
  // The next event; empty when `until` has passed or a stop is requested.
  std::optional<AgentEvent> Next(std::chrono::steady_clock::time_point until,
                                 const std::stop_token& stop);
  void Clear();

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<AgentEvent> events_ GUARDED_BY(mutex_);
};

// Hands what a control stream says to the queue, until it is detached: a stream that a task still
// holds may end late, and the next connection must not hear of it. Thread-safe. Borrows the queue.
class EventListener final : public wire::ControlListener {
 public:
  explicit EventListener(AgentEvents& events) : events_(events) {}
  void OnDirective(const v1::Directive& directive) override { Push(directive); }
  void OnClosed(const Status& why) override { Push(StreamClosed{why}); }
  // After this nothing is pushed any more.
  void Detach();

 private:
  void Push(AgentEvent event);

  AgentEvents& events_;
  Mutex mutex_;
  bool is_attached_ GUARDED_BY(mutex_) = true;
};

}  // namespace domicile::site_agent

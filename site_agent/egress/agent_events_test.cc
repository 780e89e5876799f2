#include "site_agent/egress/agent_events.h"

#include <doctest/doctest.h>

namespace domicile::site_agent {
namespace {

std::optional<AgentEvent> Next(AgentEvents& events) {
  return events.Next(std::chrono::steady_clock::now(), {});
}

TEST_CASE("AgentEvents: in order, and nothing when there is nothing") {
  AgentEvents events;
  CHECK_FALSE(Next(events).has_value());

  events.Push(GrantsChanged{});
  events.Push(StreamClosed{OkStatus()});

  CHECK(std::holds_alternative<GrantsChanged>(Next(events).value()));
  CHECK(std::holds_alternative<StreamClosed>(Next(events).value()));
  CHECK_FALSE(Next(events).has_value());
}

TEST_CASE("AgentEvents: a stop ends the wait") {
  AgentEvents events;
  std::stop_source stop;
  stop.request_stop();

  CHECK_FALSE(
      events.Next(std::chrono::steady_clock::now() + std::chrono::hours(1), stop.get_token())
          .has_value());
}

TEST_CASE("EventListener: a stream that ends late is not taken for the next one") {
  AgentEvents events;
  EventListener old(events);
  old.OnDirective({});
  CHECK(std::holds_alternative<v1::Directive>(Next(events).value()));

  old.Detach();
  old.OnDirective({});
  old.OnClosed(OkStatus());
  CHECK_FALSE(Next(events).has_value());

  EventListener fresh(events);
  fresh.OnClosed(OkStatus());
  CHECK(std::holds_alternative<StreamClosed>(Next(events).value()));
}

}  // namespace
}  // namespace domicile::site_agent

#include "models/strategy/side_thread.h"

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <vector>

#include <doctest/doctest.h>

namespace domicile::models {
namespace {

TEST_CASE("SideThread: tasks run in order, beside their owner, and Finish waits for all") {
  SideThread side;
  std::vector<int> ran;
  std::promise<void> go;
  side.Begin([&] {
    go.get_future().wait();  // the owner gets to the line that ends this, or the test hangs
    ran.push_back(0);
    return OkStatus();
  });
  for (int i = 1; i < 100; ++i) {
    side.Begin([&ran, i] {
      ran.push_back(i);
      return OkStatus();
    });
  }
  go.set_value();

  CHECK(side.Finish() == OkStatus());

  REQUIRE(ran.size() == 100);
  for (int i = 0; i < 100; ++i) {
    CHECK(ran[static_cast<std::size_t>(i)] == i);
  }
  CHECK(side.Finish() == OkStatus());  // of nothing
}

TEST_CASE("SideThread: after an error nothing runs any more, and every Finish returns it") {
  SideThread side;
  std::atomic<int> ran = 0;
  const auto count = [&ran] {
    ++ran;
    return OkStatus();
  };
  side.Begin(count);
  side.Begin([] { return Error(StatusCode::kUnavailable, "worker 1 is gone"); });
  side.Begin(count);

  CHECK(side.Finish() == Error(StatusCode::kUnavailable, "worker 1 is gone"));
  side.Begin(count);
  CHECK(side.Finish() == Error(StatusCode::kUnavailable, "worker 1 is gone"));

  CHECK(ran == 1);
  SideThread other;
  other.Begin([]() -> Status { throw std::bad_alloc(); });
  CHECK(other.Finish().code() == StatusCode::kUnavailable);
}

TEST_CASE("SideThread: given up, it ends what it has begun and drops the rest") {
  SideThread side;
  std::promise<void> begun;
  std::promise<void> go;
  bool ended = false;
  std::atomic<int> ran = 0;
  side.Begin([&] {
    begun.set_value();
    go.get_future().wait();
    ended = true;
    return OkStatus();
  });
  begun.get_future().wait();
  // The first goes on when the second has been dropped, and not before.
  side.Begin([&ran, last = std::shared_ptr<void>(nullptr, [&go](void*) { go.set_value(); })] {
    ++ran;
    return OkStatus();
  });

  side.GiveUp();

  CHECK(ended);
  CHECK(ran == 0);
  side.Begin([&ran] {
    ++ran;
    return OkStatus();
  });
  CHECK(side.Finish() == OkStatus());
  CHECK(ran == 1);
}

}  // namespace
}  // namespace domicile::models

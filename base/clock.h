// Time, passed in: nothing below a `main` asks the system for it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace domicile {

// UTC wall time, nanosecond resolution. For what is written down and for legal dates.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
// Monotonic time since an arbitrary start. For deadlines; never compared across processes.
using MonotonicTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime Now() const = 0;
  virtual MonotonicTime Monotonic() const = 0;
};

// The system's clocks. Thread-safe.
class SystemClock final : public Clock {
 public:
  WallTime Now() const override;
  MonotonicTime Monotonic() const override;
};

// A clock that moves when told, for tests. One thread at a time.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(WallTime start) : now_(start) {}
  WallTime Now() const override { return now_; }
  MonotonicTime Monotonic() const override { return monotonic_; }
  void Advance(std::chrono::nanoseconds by) {
    now_ += by;
    monotonic_ += by;
  }
  void SetWall(WallTime now) { now_ = now; }

 private:
  WallTime now_;
  MonotonicTime monotonic_{};
};

// RFC 3339 in UTC with milliseconds: `2026-12-01T09:30:00.250Z`. Print rounds down; Parse takes 0
// to 9 digits of fraction and only the zone `Z`. Years 1970 to 2261. Errors: kInvalidArgument.
std::string PrintTime(WallTime time);
StatusOr<WallTime> ParseTime(std::string_view text);

}  // namespace domicile

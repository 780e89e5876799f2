// A std::mutex that the compiler can reason about.
//
// Clang checks the annotations (-Wthread-safety); ThreadSanitizer sees the std::mutex inside.
// Neither works with a mutex from a prebuilt library (absl::Mutex gives false races here).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define DOMICILE_TSA(x) __attribute__((x))
#else
#define DOMICILE_TSA(x)
#endif
// The absl that gRPC links defines this one too, with the same meaning.
#undef GUARDED_BY
#define GUARDED_BY(mutex) DOMICILE_TSA(guarded_by(mutex))
#define REQUIRES(...) DOMICILE_TSA(requires_capability(__VA_ARGS__))
#define EXCLUDES(...) DOMICILE_TSA(locks_excluded(__VA_ARGS__))

namespace domicile {

class DOMICILE_TSA(capability("mutex")) Mutex {
 public:
  void Lock() DOMICILE_TSA(acquire_capability()) { mutex_.lock(); }
  void Unlock() DOMICILE_TSA(release_capability()) { mutex_.unlock(); }

  // Lower-case names: what std::condition_variable_any calls.
  void lock() DOMICILE_TSA(acquire_capability()) { mutex_.lock(); }
  void unlock() DOMICILE_TSA(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class DOMICILE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DOMICILE_TSA(acquire_capability(mutex)) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() DOMICILE_TSA(release_capability()) { mutex_.Unlock(); }

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits with a Mutex held: condition.wait(mutex, predicate).
using ConditionVariable = std::condition_variable_any;

}  // namespace domicile

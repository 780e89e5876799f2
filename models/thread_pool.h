// A fixed set of threads for kernels. Work is cut by the caller into pieces whose bounds do not
// depend on the number of threads, so that results do not either.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

namespace domicile::models {

// Threads that have nothing to do look for work for some microseconds, then sleep. One caller at a
// time; the caller works too.
class ThreadPool {
 public:
  // `num_threads` >= 1 counts the caller: 1 starts no thread.
  explicit ThreadPool(std::size_t num_threads);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t NumThreads() const { return workers_.size() + 1; }

  // Calls run(piece) once for every piece in [0, num_pieces), in no particular order, and returns
  // when all have returned. Thread t of n takes the pieces [t * num_pieces / n, (t + 1) * ... / n).
  // `run` must not throw and must not call back into the pool.
  void Run(std::size_t num_pieces, const std::function<void(std::size_t)>& run);

 private:
  void Work(const std::stop_token& stop, std::size_t thread);
  void RunShare(std::size_t thread, std::size_t num_pieces,
                const std::function<void(std::size_t)>& run) const;

  // Written by the caller before it raises the generation, read by workers after they have seen it.
  std::size_t num_pieces_ = 0;
  const std::function<void(std::size_t)>* run_ = nullptr;
  std::atomic<std::uint32_t> generation_ = 0;  // of the job above; raised once more to stop
  std::atomic<std::uint32_t> num_busy_ = 0;

  std::vector<std::jthread> workers_;  // last: stopped and joined before what they use
};

}  // namespace domicile::models

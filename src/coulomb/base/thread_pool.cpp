#include "coulomb/base/thread_pool.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace coulomb {
namespace {

constexpr int max_threads = 1024;
constexpr std::chrono::milliseconds idle_interval(20);

/// Two cache lines each: neighbours are fetched in pairs.
struct alignas(128) Share {
  std::atomic<int> next{0};
  int end = 0;
};

/// Those that this process may run on: taskset, containers and batch systems give fewer than the machine has.
int usable_cores() {
#ifdef __linux__
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
#endif
  return int(std::thread::hardware_concurrency());
}

/// 0 becomes the number of cores; throws for what is no number of threads.
int checked(int num_threads) {
  if (num_threads < 0 || num_threads > max_threads)
    throw std::invalid_argument("num_threads: got " + std::to_string(num_threads) + ", expected 0 (all cores) to " +
                                std::to_string(max_threads));
  if (num_threads > 0) return num_threads;
  return std::clamp(usable_cores(), 1, max_threads);
}

}  // namespace

struct ThreadPool::Crew {
  explicit Crew(int num_threads) : shares(num_threads) {}

  void work(int thread);
  void wait_for_work(int thread);
  void keep(int item);  // the current exception, if no lower item has thrown

  std::vector<Share> shares;  // one per thread
  Job job;
  int chunk = 1;  // items that a thread takes at once

  std::mutex mutex;  // guards what follows
  std::condition_variable begin;
  std::condition_variable end;
  std::uint64_t round = 0;  // how many jobs there were
  int working = 0;          // threads of the crew that are not done with this one
  bool leave = false;
  int failed_item = 0;  // the lowest that threw, and what
  std::exception_ptr failure;
  std::vector<std::thread> threads;  // all but the caller's
};

/// Which exception is thrown must not depend on which thread was faster.
void ThreadPool::Crew::keep(int item) {
  const std::lock_guard lock(mutex);
  if (failure && failed_item < item) return;
  failure = std::current_exception();
  failed_item = item;
}

void ThreadPool::Crew::work(int thread) {
  // Its own share first, then what is left of the others'.
  const int count = int(shares.size());
  for (int k = 0; k < count; ++k) {
    Share& share = shares[(thread + k) % count];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const int first = share.next.fetch_add(chunk, std::memory_order_relaxed);
      const int last = std::min(first + chunk, share.end);
      for (int item = first; item < last; ++item) {
        try {
          job.call(job.body, item, thread);
        } catch (...) {
          keep(item);
        }
      }
    }
  }
}

void ThreadPool::Crew::wait_for_work(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    // Sleep until there is a job that this thread has not seen.
    {
      std::unique_lock lock(mutex);
      begin.wait(lock, [&] { return leave || round != seen; });
      if (leave) return;
      seen = round;
    }

    // The last one to finish wakes the caller.
    work(thread);
    const std::lock_guard lock(mutex);
    if (--working == 0) end.notify_one();
  }
}

ThreadPool::ThreadPool(int num_threads) : num_threads_(checked(num_threads)) {}

ThreadPool::~ThreadPool() {
  if (!crew_) return;

  // After a fork the threads are the parent's: they do not exist here, nothing can join them.
  if (process_ != getpid()) {
    (void)crew_.release();
    return;
  }

  {
    const std::lock_guard lock(crew_->mutex);
    crew_->leave = true;
  }
  crew_->begin.notify_all();
  for (std::thread& t : crew_->threads)
    t.join();
}

/// Starts the threads, once in every process.
void ThreadPool::hire() {
  if (crew_ && process_ == getpid()) return;
  (void)crew_.release();
  crew_ = std::make_unique<Crew>(num_threads_);
  process_ = getpid();

  // With all signals blocked, which threads inherit: signals are the caller's.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);

  // If no more threads are to be had, those that there are steal the shares of the missing.
  try {
    for (int thread = 1; thread < num_threads_; ++thread)
      crew_->threads.emplace_back([crew = crew_.get(), thread] { crew->wait_for_work(thread); });
  } catch (...) {
    if (crew_->threads.empty()) num_threads_ = 1;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ThreadPool::run(const Job& job) {
  hire();

  // Contiguous shares of equal size, cut into chunks that are worth the taking.
  Crew& crew = *crew_;
  const int threads = int(crew.shares.size());
  crew.job = job;
  crew.chunk = std::max(1, job.count / (16 * threads));
  const auto boundary = [&](int t) { return int(std::int64_t(job.count) * t / threads); };
  for (int t = 0; t < threads; ++t) {
    Share& share = crew.shares[t];
    share.next.store(boundary(t), std::memory_order_relaxed);
    share.end = boundary(t + 1);
  }

  // The caller works too; one item is not worth waking anybody.
  const bool together = job.count > 1 && !crew.threads.empty();
  if (together) {
    {
      const std::lock_guard lock(crew.mutex);
      ++crew.round;
      crew.working = int(crew.threads.size());
    }
    crew.begin.notify_all();
  }
  crew.work(0);

  // Then it waits for the others, and looks up now and then if it has something to look for.
  if (together) {
    std::unique_lock lock(crew.mutex);
    const auto done = [&] { return crew.working == 0; };
    while (!job.idle && !done())
      crew.end.wait(lock);
    while (!crew.end.wait_for(lock, idle_interval, done)) {
      lock.unlock();
      job.idle(job.idle_argument);
      lock.lock();
    }
  }

  // What an item threw is thrown here, after all have run.
  if (crew.failure) {
    std::rethrow_exception(std::exchange(crew.failure, nullptr));
  }
}

}  // namespace coulomb

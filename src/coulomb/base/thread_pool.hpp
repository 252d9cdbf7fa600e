// ThreadPool: a loop over independent items on a few threads that are kept from call to call.
//
// Every thread owns a contiguous share of the items (its caches and its part of the heap keep them) and, when done, takes chunks of the
// others' shares. Which thread computes an item may change from run to run; what is computed may not, so items must not share anything
// that is written.
#pragma once

#include <memory>
#include <type_traits>

namespace coulomb {

class ThreadPool {
 public:
  /// num_threads, the caller's included; 0: as many as this process may use (its CPU affinity). They start with the first run.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  /// body(item, thread) for the items 0 .. count-1; thread 0 is the caller. Returns when all have run; if some threw, the exception of
  /// the lowest item is thrown then. `idle`, if not null, is called on the caller's thread now and then while it waits for the others.
  template <class Body>
  void run(int count, Body&& body, void (*idle)(void*) = nullptr, void* idle_argument = nullptr) {
    using Plain = std::remove_reference_t<Body>;
    run(Job{[](void* b, int item, int thread) { (*static_cast<Plain*>(b))(item, thread); },
            const_cast<void*>(static_cast<const void*>(&body)), count, idle, idle_argument});
  }

 private:
  struct Job {
    void (*call)(void* body, int item, int thread) = nullptr;
    void* body = nullptr;
    int count = 0;
    void (*idle)(void*) = nullptr;
    void* idle_argument = nullptr;
  };
  struct Crew;  // the threads and what they share

  void run(const Job& job);
  void hire();

  int num_threads_;
  long process_ = 0;  // that the crew belongs to: a fork does not take threads along
  std::unique_ptr<Crew> crew_;
};

}  // namespace coulomb

// Counts every allocation of the test program that includes this, once per program.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

#if defined(__GNUC__)
#define COULOMB_NOT_INLINE __attribute__((noinline))  // GCC would warn of free() where it sees operator new
#else
#define COULOMB_NOT_INLINE
#endif

inline std::atomic<long> allocations{0};

COULOMB_NOT_INLINE void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
COULOMB_NOT_INLINE void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
COULOMB_NOT_INLINE void operator delete(void* p) noexcept { std::free(p); }
COULOMB_NOT_INLINE void operator delete(void* p, std::size_t) noexcept { std::free(p); }

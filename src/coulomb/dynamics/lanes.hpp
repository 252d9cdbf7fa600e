// Eight doubles worked on together. Explicit vectors: left to itself the compiler splits loops over eight lanes into scalars.
// Where the processor has narrower vectors the compiler lowers each operation to several of them.
#pragma once

#include "coulomb/dynamics/spatial.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inlined, so no vector is ever passed
#endif

namespace coulomb {

typedef double Lanes __attribute__((vector_size(64)));
typedef double UnalignedLanes __attribute__((vector_size(64), aligned(8), may_alias));
typedef long long LaneMask __attribute__((vector_size(64)));

COULOMB_INLINE Lanes load_lanes(const double* p) { return *reinterpret_cast<const UnalignedLanes*>(p); }
COULOMB_INLINE void store_lanes(double* p, const Lanes& x) { *reinterpret_cast<UnalignedLanes*>(p) = x; }

/// Lane i all ones where bit i is set, else zero. Compilers lower this comparison well, orderings of integers badly.
COULOMB_INLINE LaneMask lanes_of_bits(unsigned bits) {
  const long long m = bits;
  return ((m + LaneMask{}) & LaneMask{1, 2, 4, 8, 16, 32, 64, 128}) != LaneMask{};
}
/// Bits of the lanes below n >= 0.
COULOMB_INLINE unsigned bits_below(int n) { return n >= 8 ? 0xffu : (1u << n) - 1u; }
/// x where the mask is set, 0 elsewhere.
COULOMB_INLINE Lanes keep(const LaneMask& mask, const Lanes& x) {
  return reinterpret_cast<Lanes>(mask & reinterpret_cast<LaneMask>(x));
}
COULOMB_INLINE Lanes select(const LaneMask& mask, const Lanes& yes, const Lanes& no) {
  return reinterpret_cast<Lanes>((mask & reinterpret_cast<LaneMask>(yes)) | (~mask & reinterpret_cast<LaneMask>(no)));
}
COULOMB_INLINE Lanes broadcast(double x) { return x + Lanes{}; }  // an initialiser list becomes eight inserts

}  // namespace coulomb

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

/// All ones in lanes below n, zeros elsewhere; n in 0 .. 8.
COULOMB_INLINE LaneMask lanes_below(int n) {
  const long long m = n;
  return LaneMask{0, 1, 2, 3, 4, 5, 6, 7} < LaneMask{m, m, m, m, m, m, m, m};
}
COULOMB_INLINE LaneMask lane_at(int n) {
  const long long m = n;
  return LaneMask{0, 1, 2, 3, 4, 5, 6, 7} == LaneMask{m, m, m, m, m, m, m, m};
}
COULOMB_INLINE Lanes select(const LaneMask& mask, const Lanes& yes, const Lanes& no) {
  return reinterpret_cast<Lanes>((mask & reinterpret_cast<LaneMask>(yes)) | (~mask & reinterpret_cast<LaneMask>(no)));
}
COULOMB_INLINE Lanes broadcast(double x) { return Lanes{x, x, x, x, x, x, x, x}; }

}  // namespace coulomb

// Eight doubles worked on together, as two explicit vectors of four: left to itself the compiler splits loops over eight lanes into
// scalars, and vectors wider than the processor's own go through memory.
#pragma once

#include "coulomb/dynamics/spatial.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inlined, so no vector is ever passed
#endif

namespace coulomb {

typedef double Quad __attribute__((vector_size(32)));
typedef double UnalignedQuad __attribute__((vector_size(32), aligned(8), may_alias));
typedef long long QuadMask __attribute__((vector_size(32)));

struct Lanes {
  Quad low, high;
};
struct LaneMask {
  QuadMask low, high;
};

COULOMB_INLINE Lanes load_lanes(const double* p) {
  return {*reinterpret_cast<const UnalignedQuad*>(p), *reinterpret_cast<const UnalignedQuad*>(p + 4)};
}
COULOMB_INLINE void store_lanes(double* p, const Lanes& x) {
  *reinterpret_cast<UnalignedQuad*>(p) = x.low;
  *reinterpret_cast<UnalignedQuad*>(p + 4) = x.high;
}
COULOMB_INLINE Lanes operator+(const Lanes& a, const Lanes& b) { return {a.low + b.low, a.high + b.high}; }
COULOMB_INLINE Lanes operator-(const Lanes& a, const Lanes& b) { return {a.low - b.low, a.high - b.high}; }
COULOMB_INLINE Lanes operator*(const Lanes& a, const Lanes& b) { return {a.low * b.low, a.high * b.high}; }
COULOMB_INLINE Lanes operator*(double s, const Lanes& a) { return {s * a.low, s * a.high}; }
COULOMB_INLINE void operator+=(Lanes& a, const Lanes& b) { a = a + b; }
COULOMB_INLINE void operator-=(Lanes& a, const Lanes& b) { a = a - b; }

/// Lane i all ones where bit i is set, else zero. Compilers lower this comparison well, orderings of integers badly.
COULOMB_INLINE LaneMask lanes_of_bits(unsigned bits) {
  const QuadMask all = static_cast<long long>(bits) + QuadMask{};
  return {(all & QuadMask{1, 2, 4, 8}) != QuadMask{}, (all & QuadMask{16, 32, 64, 128}) != QuadMask{}};
}
/// Bits of the lanes below n >= 0.
COULOMB_INLINE unsigned bits_below(int n) { return n >= 8 ? 0xffu : (1u << n) - 1u; }
/// x where the mask is set, 0 elsewhere.
COULOMB_INLINE Lanes keep(const LaneMask& mask, const Lanes& x) {
  return {reinterpret_cast<Quad>(mask.low & reinterpret_cast<QuadMask>(x.low)),
          reinterpret_cast<Quad>(mask.high & reinterpret_cast<QuadMask>(x.high))};
}
COULOMB_INLINE Lanes select(const LaneMask& mask, const Lanes& yes, const Lanes& no) {
  return keep(mask, yes) + keep({~mask.low, ~mask.high}, no);
}
COULOMB_INLINE Lanes broadcast(double x) { return {x + Quad{}, x + Quad{}}; }  // an initialiser list becomes eight inserts

}  // namespace coulomb

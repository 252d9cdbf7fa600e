// Eight doubles worked on together, as 8 / width vectors of the processor's own width: left to itself the compiler splits loops over
// eight lanes into scalars, and vectors wider than the processor's own go through memory.
#pragma once

#include "coulomb/base/simd.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // every function here is inlined, so no vector is ever passed
#endif

namespace coulomb {

template <int width>
struct VectorTypes;
#define COULOMB_VECTOR_TYPES(width)                                                          \
  template <>                                                                                \
  struct VectorTypes<width> {                                                                \
    typedef double Reals __attribute__((vector_size(8 * width)));                            \
    typedef double Unaligned __attribute__((vector_size(8 * width), aligned(8), may_alias)); \
    typedef long long Bits __attribute__((vector_size(8 * width)));                          \
  };
COULOMB_VECTOR_TYPES(2)
COULOMB_VECTOR_TYPES(4)
COULOMB_VECTOR_TYPES(8)
#undef COULOMB_VECTOR_TYPES

/// `width` doubles.
template <int width>
using Vector = typename VectorTypes<width>::Reals;

template <int width>
COULOMB_INLINE Vector<width> load_vector(const double* p) {
  return *reinterpret_cast<const typename VectorTypes<width>::Unaligned*>(p);
}
template <int width>
COULOMB_INLINE void store_vector(double* p, const Vector<width>& x) {
  *reinterpret_cast<typename VectorTypes<width>::Unaligned*>(p) = x;
}

template <int width>
struct Lanes {
  static constexpr int parts = 8 / width;
  Vector<width> part[parts];
};
template <int width>
struct LaneMask {
  typename VectorTypes<width>::Bits part[8 / width];
};

#define COULOMB_EACH_PART _Pragma("GCC unroll 4") for (int i = 0; i < 8 / width; ++i)

template <int width>
COULOMB_INLINE Lanes<width> load_lanes(const double* p) {
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = load_vector<width>(p + i * width);
  return x;
}
template <int width>
COULOMB_INLINE void store_lanes(double* p, const Lanes<width>& x) {
  COULOMB_EACH_PART store_vector<width>(p + i * width, x.part[i]);
}
template <int width>
COULOMB_INLINE Lanes<width> broadcast(double s) {  // an initialiser list becomes eight inserts
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = s + Vector<width>{};
  return x;
}
template <int width>
COULOMB_INLINE Lanes<width> operator+(const Lanes<width>& a, const Lanes<width>& b) {
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = a.part[i] + b.part[i];
  return x;
}
template <int width>
COULOMB_INLINE Lanes<width> operator-(const Lanes<width>& a, const Lanes<width>& b) {
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = a.part[i] - b.part[i];
  return x;
}
template <int width>
COULOMB_INLINE Lanes<width> operator*(const Lanes<width>& a, const Lanes<width>& b) {
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = a.part[i] * b.part[i];
  return x;
}
template <int width>
COULOMB_INLINE Lanes<width> operator*(double s, const Lanes<width>& a) {
  Lanes<width> x;
  COULOMB_EACH_PART x.part[i] = s * a.part[i];
  return x;
}
template <int width>
COULOMB_INLINE void operator+=(Lanes<width>& a, const Lanes<width>& b) {
  a = a + b;
}
template <int width>
COULOMB_INLINE void operator-=(Lanes<width>& a, const Lanes<width>& b) {
  a = a - b;
}

/// Lane i all ones where bit i is set, else zero. Bits are kept in a table: SSE2 cannot compare 64-bit integers.
template <int width>
COULOMB_INLINE LaneMask<width> lanes_of_bits(unsigned bits) {
  LaneMask<width> mask;
  if constexpr (width == 2) {
    static constexpr long long pairs[4][2] = {{0, 0}, {-1, 0}, {0, -1}, {-1, -1}};
    COULOMB_EACH_PART __builtin_memcpy(&mask.part[i], pairs[(bits >> (2 * i)) & 3], 16);
  } else if constexpr (width == 4) {
    const typename VectorTypes<4>::Bits all = static_cast<long long>(bits) + typename VectorTypes<4>::Bits{};
    mask.part[0] = (all & typename VectorTypes<4>::Bits{1, 2, 4, 8}) != 0;
    mask.part[1] = (all & typename VectorTypes<4>::Bits{16, 32, 64, 128}) != 0;
  } else {
    const typename VectorTypes<8>::Bits all = static_cast<long long>(bits) + typename VectorTypes<8>::Bits{};
    mask.part[0] = (all & typename VectorTypes<8>::Bits{1, 2, 4, 8, 16, 32, 64, 128}) != 0;
  }
  return mask;
}
/// Bits of the lanes below n >= 0.
COULOMB_INLINE unsigned bits_below(int n) { return n >= 8 ? 0xffu : (1u << n) - 1u; }
/// x where the mask is set, 0 elsewhere.
template <int width>
COULOMB_INLINE Lanes<width> keep(const LaneMask<width>& mask, const Lanes<width>& x) {
  Lanes<width> kept;
  using Bits = typename VectorTypes<width>::Bits;
  COULOMB_EACH_PART kept.part[i] = reinterpret_cast<Vector<width>>(mask.part[i] & reinterpret_cast<Bits>(x.part[i]));
  return kept;
}
template <int width>
COULOMB_INLINE Lanes<width> select(const LaneMask<width>& mask, const Lanes<width>& yes, const Lanes<width>& no) {
  Lanes<width> x;
  using Bits = typename VectorTypes<width>::Bits;
  COULOMB_EACH_PART x.part[i] = reinterpret_cast<Vector<width>>((mask.part[i] & reinterpret_cast<Bits>(yes.part[i])) |
                                                                (~mask.part[i] & reinterpret_cast<Bits>(no.part[i])));
  return x;
}

#undef COULOMB_EACH_PART

}  // namespace coulomb

// Functions compiled for AVX-512, AVX2 and the baseline, one of them picked at load time (instruction_set.cpp). Only for functions that see no Eigen type
// (the wheels of Pinocchio are plain SSE2).
//
//   COULOMB_SIMD             on a function of plain loops: the same body for each instruction set
//   COULOMB_SIMD_BY_WIDTH    a function over a template on the number of doubles in the processor's own vectors (lanes.hpp):
//                            vectors wider than that would go through memory
#pragma once

/// Helpers of COULOMB_SIMD functions: GCC inlines plain inline functions of any size into a clone for another architecture only
/// when told to, and a call would fall back to baseline code without fused multiply-adds.
#if defined(__GNUC__)
#define COULOMB_INLINE inline __attribute__((always_inline))
#else
#define COULOMB_INLINE inline
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(COULOMB_NO_SIMD_CLONES)
#define COULOMB_SIMD_CLONES
#define COULOMB_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
/// `name` calls always-inline name##_lanes<width>. In an unnamed namespace only: other units would see the baseline alone.
#define COULOMB_SIMD_BY_WIDTH(result, name, parameters, arguments)                                       \
  __attribute__((target("default"))) result name parameters { return name##_lanes<2> arguments; }        \
  __attribute__((target("arch=x86-64-v3"))) result name parameters { return name##_lanes<4> arguments; } \
  __attribute__((target("arch=x86-64-v4"))) result name parameters { return name##_lanes<8> arguments; }
#else
#define COULOMB_SIMD
#define COULOMB_SIMD_BY_WIDTH(result, name, parameters, arguments) \
  result name parameters { return name##_lanes<2> arguments; }
#endif

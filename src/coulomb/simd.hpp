// COULOMB_SIMD: compiles a function on raw arrays for AVX-512, AVX2 and the baseline and picks at load time. Only for functions that
// see no Eigen type (BUILD.md: the wheels of Pinocchio are plain SSE2).
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(COULOMB_NO_SIMD_CLONES)
#define COULOMB_SIMD __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define COULOMB_SIMD
#endif

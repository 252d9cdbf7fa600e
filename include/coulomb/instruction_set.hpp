// Which of the instruction sets that the library is compiled for this process uses.
#pragma once

namespace coulomb {

/// "baseline" (x86-64 with SSE2, and every other architecture), "avx2" (x86-64-v3) or "avx512" (x86-64-v4): the best
/// that the processor has, or the one that the environment variable COULOMB_SIMD names. It is chosen once, when the
/// library is loaded.
///
/// Throws std::invalid_argument where COULOMB_SIMD names no instruction set, or one that the processor or this build of
/// the library lacks. So do the constructor of `Simulator` and Python's `import coulomb`.
const char* instruction_set();

}  // namespace coulomb

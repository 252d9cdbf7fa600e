// The instruction set of COULOMB_SIMD functions (simd.hpp): the best that the processor has, or the one that the
// environment variable COULOMB_SIMD names.
//
// GCC writes a resolver for each such function. The loader calls it while it relocates the library, and the resolver
// asks libgcc which instructions the processor has: __cpu_indicator_init() fills __cpu_features2, of which this library
// has a copy of its own. The linker sends that call to __wrap___cpu_indicator_init below (--wrap in
// cmake/CoulombLibrary.cmake), which hides what is not to be used. So the choice costs nothing where functions are
// called.
//
// The loader has not finished when this runs: functions of other libraries cannot be called, and the C library may not
// know its environment yet. `outcome` looks again when all is there, and instruction_set() reports what does not agree.
#include "coulomb/instruction_set.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "coulomb/base/simd.hpp"

#if defined(COULOMB_SIMD_CLONES)
#include <fcntl.h>
#include <sys/syscall.h>

// Words of bits, a bit for a feature. GCC may add words at the end: 4 hold all up to x86-64-v4.
extern "C" __attribute__((visibility("hidden"))) unsigned int __cpu_features2[4];
extern "C" int __real___cpu_indicator_init();
extern "C" __attribute__((visibility("hidden"), used)) int __wrap___cpu_indicator_init();
extern "C" __attribute__((weak)) char** environ;
#endif

namespace coulomb {
namespace {

constexpr const char* variable = "COULOMB_SIMD";

/// The value of the variable as it was found, cut off where it cannot be a name any more.
struct Value {
  bool known = false;
  char text[16] = "";
};

#if defined(COULOMB_SIMD_CLONES)

/// Set while the library is loaded, before any constructor.
constinit Value at_load;

// --- without the C library -------------------------------------------------------------------------------------------

long system_call(long number, long a, long b, long c) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}

bool same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

/// Reads "NAME=value" of the environment character by character, and keeps the value of the variable. The first one
/// counts, as it does for getenv.
struct EnvironmentReader {
  int matched = 0;  // characters of the name that agree; -1: another variable; beyond the name: its value
  bool found = false;
  int length = 0;

  void read(char c) {
    constexpr int name_length = 12;
    if (c == '\0') {
      found = found || matched > name_length;
      matched = 0;
    } else if (matched > name_length) {
      if (!found && length + 1 < static_cast<int>(sizeof at_load.text)) {
        at_load.text[length++] = c;
      }
    } else if (matched >= 0) {
      const char expected = matched < name_length ? variable[matched] : '=';
      matched = c == expected ? matched + 1 : -1;
    }
  }
};

/// The environment of the C library, where it has one already; else the one that the process was started with.
void read_environment() {
  at_load.known = true;
  EnvironmentReader reader;
  if (&environ != nullptr && environ != nullptr) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const char* c = *entry;
      do
        reader.read(*c);
      while (*c++ != '\0');
    }
    return;
  }

  const long file = system_call(SYS_open, reinterpret_cast<long>("/proc/self/environ"), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return;
  char buffer[1024];
  for (;;) {
    const long size = system_call(SYS_read, file, reinterpret_cast<long>(buffer), sizeof buffer);
    if (size <= 0) break;
    for (long k = 0; k < size; ++k)
      reader.read(buffer[k]);
  }
  system_call(SYS_close, file, 0, 0);
}

/// Clears the bit of the processor's features that `has` tests: only the compiler knows which one it is.
template <class Has>
void hide(Has has) {
  for (unsigned int& word : __cpu_features2)
    for (int bit = 0; bit < 32 && has(); ++bit) {
      const unsigned int before = word;
      word = before & ~(1u << bit);
      if (has()) {
        word = before;
      }
    }
}

// The compiler reads the same words under a name of its own: it is told that they may have changed.
bool has_avx2() {
  asm volatile("" ::: "memory");
  return __builtin_cpu_supports("x86-64-v3");
}
bool has_avx512() {
  asm volatile("" ::: "memory");
  return __builtin_cpu_supports("x86-64-v4");
}

// --- what is used ----------------------------------------------------------------------------------------------------

// Chosen by the same resolvers as all others: what they say is what is used.
__attribute__((target("default"))) const char* used() { return "baseline"; }
__attribute__((target("arch=x86-64-v3"))) const char* used() { return "avx2"; }
__attribute__((target("arch=x86-64-v4"))) const char* used() { return "avx512"; }

#else

const char* used() { return "baseline"; }

#endif

/// Why the variable cannot be obeyed; empty: it is.
std::string refusal() {
  // What it asks for, by name.
  const char* value = std::getenv(variable);
  const std::string asked = value ? value : "";
  const std::string what = std::string(variable) + " = '" + asked + "'";
  if (asked.empty()) return "";
  if (asked != "baseline" && asked != "avx2" && asked != "avx512")
    return what +
           " is not an instruction set: use 'baseline', 'avx2' or 'avx512', or unset it to use the best that the "
           "processor has";
  if (asked == used()) return "";

#if defined(COULOMB_SIMD_CLONES)
  // The processor decided otherwise, or the loader saw another environment.
  if (asked == at_load.text)
    return what + ": this processor does not have these instructions; '" + used() + "' is the best that it has";
  return what + " was not seen when the library was loaded: set it before the process starts";
#else
  return what +
         ": this build of the library has 'baseline' only (other instruction sets need GCC, x86-64 and no sanitizers)";
#endif
}

const std::string outcome = refusal();

}  // namespace

const char* instruction_set() {
  if (!outcome.empty()) throw std::invalid_argument(outcome);
  return used();
}

}  // namespace coulomb

#if defined(COULOMB_SIMD_CLONES)
/// What the resolvers call. Several threads may, later on; by then it only reads.
int __wrap___cpu_indicator_init() {
  const int result = __real___cpu_indicator_init();
  if (coulomb::at_load.known) return result;
  coulomb::read_environment();
  if (coulomb::same(coulomb::at_load.text, "baseline")) {
    coulomb::hide(coulomb::has_avx512);
    coulomb::hide(coulomb::has_avx2);
  } else if (coulomb::same(coulomb::at_load.text, "avx2")) {
    coulomb::hide(coulomb::has_avx512);
  }
  return result;
}
#endif

// The smallest test helper that serves: CHECK and CHECK_NEAR count failures, report() ends main.
#pragma once

#include <cmath>
#include <cstdio>

namespace coulomb::test {
inline int checks = 0, failures = 0;

inline void check(bool ok, const char* what, const char* file, int line) {
  ++checks;
  if (ok) return;
  ++failures;
  std::printf("%s:%d: failed: %s\n", file, line, what);
}

inline void check_near(double a, double b, double tolerance, const char* what, const char* file, int line) {
  ++checks;
  if (std::abs(a - b) <= tolerance) return;  // false for NaN
  ++failures;
  std::printf("%s:%d: failed: %s: %.17g against %.17g, differ by %.3g, allowed %.3g\n", file, line, what, a, b,
              std::abs(a - b), tolerance);
}

inline int report() {
  std::printf("%d passed, %d failed\n", checks - failures, failures);
  return failures == 0 ? 0 : 1;
}
}  // namespace coulomb::test

#define CHECK(condition) ::coulomb::test::check((condition), #condition, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance) ::coulomb::test::check_near((a), (b), (tolerance), #a " ~ " #b, __FILE__, __LINE__)

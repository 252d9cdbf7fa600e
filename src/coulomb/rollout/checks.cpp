#include "coulomb/rollout/checks.hpp"

#include <cmath>
#include <stdexcept>

namespace coulomb {

void refuse(const std::string& name, long long got, const std::string& expected) {
  throw std::invalid_argument(name + ": got " + std::to_string(got) + ", expected " + expected);
}

void refuse_number(const std::string& name, std::initializer_list<std::size_t> index, double value) {
  // As an array is indexed.
  std::string place;
  for (const std::size_t i : index)
    place += (place.empty() ? "" : ", ") + std::to_string(i);

  // Named alike on all platforms.
  const char* number = value > 0 ? "inf" : "-inf";
  if (std::isnan(value)) number = "nan";
  throw std::invalid_argument(name + "[" + place + "] is " + number + ", expected a finite number");
}

void check_overflow(const char* what, const double* x, std::size_t count, int step) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(x[i])) continue;
    throw std::overflow_error(std::string(what) + ": the derivative grows beyond the range of double at step " +
                              std::to_string(step) + "; use a shorter trajectory");
  }
}

}  // namespace coulomb

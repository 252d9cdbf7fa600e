// Standard normal numbers that are the same on every platform (the standard library's distributions are not).
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace coulomb {

class NormalNumbers {
 public:
  explicit NormalNumbers(std::uint64_t seed) : engine_(seed) {}
  double operator()() {  // Box and Muller
    const double u = (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53,
                 angle = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * angle);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace coulomb

// What a fuzzer's bytes are read as: choices, counts and numbers, the odd ones among them often.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

namespace coulomb::fuzz {

/// Reads from the front; past the end everything is zero, so that short inputs are whole ones too.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  std::uint8_t byte() { return at_ < end_ ? *at_++ : 0; }

  /// One of 0 .. count - 1.
  int choice(int count) { return byte() % count; }

  bool coin() { return byte() & 1; }

  /// Mostly of a usual size, sometimes any double there is.
  double number() {
    const int kind = byte();
    if (kind < 200) return (static_cast<int>(byte()) - 128) / 64.0;
    if (kind < 215) return std::ldexp(byte() - 128.0, byte() % 80 - 40);
    if (kind < 225) return odd_numbers[static_cast<std::size_t>(choice(odd_numbers.size()))];
    double x = 0;
    std::array<std::uint8_t, sizeof x> raw;
    for (auto& b : raw) b = byte();
    std::memcpy(&x, raw.data(), sizeof x);
    return x;
  }

  /// The same, mostly above 0: sizes and masses.
  double size() {
    const double x = number();
    return byte() < 250 ? std::abs(x) : x;
  }

  std::string rest() {
    std::string text(reinterpret_cast<const char*>(at_), static_cast<std::size_t>(end_ - at_));
    at_ = end_;
    return text;
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr std::array<double, 14> odd_numbers{
      0.0,    -0.0,  1.0,   -1.0,   1e-6,     1e6,       1e-300,
      5e-324, 1e154, 1e300, -1e308, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};

  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace coulomb::fuzz

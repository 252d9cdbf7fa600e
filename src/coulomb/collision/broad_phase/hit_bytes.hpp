// Rows of bytes, one per pair tested, most of them zero: which are not?
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace coulomb {

/// Calls visit(j) for every j in 0..n-1 with hits[j] != 0, ascending. n: a multiple of 8. A hit is a byte of value 1.
template <class Visit>
void for_each_hit(const std::uint8_t* hits, int n, const Visit& visit) {
  const bool little = std::endian::native == std::endian::little;
  for (int block = 0; block < n; block += 8) {
    std::uint64_t any;
    std::memcpy(&any, &hits[block], 8);
    while (any != 0) {
      const int byte = (little ? std::countr_zero(any) : std::countl_zero(any)) / 8;
      any &= ~(std::uint64_t{255} << 8 * (little ? byte : 7 - byte));
      visit(block + byte);
    }
  }
}

}  // namespace coulomb

// Rows and columns are exchanged in place; the update of a row looks for its largest entry on the way.
#include "coulomb/solvers/complete_pivoting.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/simd.hpp"

namespace coulomb::dense {
namespace {

/// target -= factor source over [begin, end); returns the largest size of what is left.
COULOMB_SIMD double eliminate(double* __restrict target, double factor, const double* __restrict source, int begin,
                              int end) {
  double largest[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int j = begin;
  for (; j + 8 <= end; j += 8)
    for (int l = 0; l < 8; ++l) {
      target[j + l] -= factor * source[j + l];
      largest[l] = std::max(largest[l], std::abs(target[j + l]));
    }
  for (; j < end; ++j) {
    target[j] -= factor * source[j];
    largest[0] = std::max(largest[0], std::abs(target[j]));
  }
  return *std::max_element(largest, largest + 8);
}

}  // namespace

int complete_pivoting(double* A, int n, int ld, double threshold, int* rows, int* columns) {
  for (int i = 0; i < n; ++i) rows[i] = columns[i] = i;
  const auto row = [&](int i) { return A + static_cast<long>(i) * ld; };
  double first = 0, value = 0;
  int best = 0;
  const auto consider = [&](int i, double largest) {
    if (largest > value) value = largest, best = i;
  };
  for (int i = 0; i < n; ++i) consider(i, eliminate(row(i), 0, row(i == 0 ? n - 1 : 0), 0, n));
  for (int k = 0; k < n; ++k) {
    if (k == 0) first = value;
    if (!(value > threshold * first) || !std::isfinite(value)) return k;
    std::swap(rows[k], rows[best]);
    if (best != k) std::swap_ranges(row(k), row(k) + n, row(best));
    int column = k;
    for (int j = k + 1; j < n; ++j)
      if (std::abs(row(k)[j]) > std::abs(row(k)[column])) column = j;
    std::swap(columns[k], columns[column]);
    for (int i = 0; i < n && column != k; ++i) std::swap(row(i)[k], row(i)[column]);
    value = 0;
    for (int i = k + 1; i < n; ++i) consider(i, eliminate(row(i), row(i)[k] / row(k)[k], row(k), k + 1, n));
  }
  return n;
}

}  // namespace coulomb::dense

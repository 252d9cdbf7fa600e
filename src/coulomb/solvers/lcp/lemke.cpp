#include "coulomb/solvers/lcp/lemke.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr double least_pivot = 1e-8;
constexpr double same_ratio = 1e-11;
constexpr double same_entry = 1e-9;

// A pivot's row times f from every other row.
COULOMB_SIMD void eliminate(int n, int ld, int row, int column, double* T, double* value) {
  const double* r = T + static_cast<long>(row) * ld;

  for (int i = 0; i < n; ++i) {
    double* __restrict t = T + static_cast<long>(i) * ld;
    const double f = t[column];
    if (i == row || f == 0) continue;
    t[column] = 0;
    for (int j = 0; j < ld; ++j)
      t[j] -= f * r[j];
    value[i] -= f * value[row];
  }
}

}  // namespace

void Lemke::resize(int size) {
  n = size;
  ld = dense::padded(n + 1);
  const std::size_t all = static_cast<std::size_t>(n) * static_cast<std::size_t>(ld);
  if (M.size() < all) {
    M.resize(all);
    T_.resize(all);
  }
  if (static_cast<int>(q.size()) < ld) {
    for (auto* v : {&q, &d, &z, &direction, &value_})
      v->resize(static_cast<std::size_t>(ld));
    for (auto* v : {&basic_, &nonbasic_})
      v->resize(static_cast<std::size_t>(ld));
    place_.resize(2 * static_cast<std::size_t>(ld) + 1);
  }

  std::fill_n(M.begin(), all, 0.0);
  std::fill_n(q.begin(), n, 0.0);
  std::fill_n(d.begin(), n, 1.0);
}

/// Of B^-1, in whose rows degenerate pivots are told apart.
double Lemke::inverse_entry(int row, int j) const {
  const int place = place_[j];
  return place >= 0 ? T_[static_cast<std::size_t>(row) * ld + place] : place == -1 - row ? 1.0 : 0.0;
}

/// Lexicographic order of two rows that reach zero together: no walk then goes in circles.
bool Lemke::before(int row, int other, int column) const {
  const double a = T_[static_cast<std::size_t>(row) * ld + column];
  const double b = T_[static_cast<std::size_t>(other) * ld + column];
  for (int j = 0; j < n; ++j) {
    const double x = inverse_entry(row, j) / a;
    const double y = inverse_entry(other, j) / b;
    if (std::abs(x - y) > same_entry * (1 + std::max(std::abs(x), std::abs(y)))) return x < y;
  }
  return a > b;
}

/// The basic variable that reaches zero first as that of the column grows; z0 before all others.
int Lemke::leaving_row(int column) const {
  // The least ratio ...
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n; ++i) {
    const double t = T_[static_cast<std::size_t>(i) * ld + column];
    if (t > least_pivot) {
      least = std::min(least, std::max(0.0, value_[i]) / t);
    }
  }

  // ... and the rows that share it.
  int row = -1;
  for (int i = 0; i < n; ++i) {
    const double t = T_[static_cast<std::size_t>(i) * ld + column];
    if (!(t > least_pivot) || std::max(0.0, value_[i]) / t > least + same_ratio * (1 + least)) continue;
    if (basic_[i] == 2 * n) return i;
    if (row < 0 || before(i, row, column)) {
      row = i;
    }
  }
  return row;
}

/// The basic variable of the row and the nonbasic one of the column change places.
void Lemke::pivot(int row, int column) {
  double* r = T_.data() + static_cast<std::size_t>(row) * ld;
  const double inverse = 1 / r[column];
  for (int j = 0; j <= n; ++j)
    r[j] *= inverse;
  value_[row] *= inverse;
  r[column] = inverse;

  eliminate(n, ld, row, column, T_.data(), value_.data());
  std::swap(basic_[row], nonbasic_[column]);
  place_[basic_[row]] = -1 - row;
  place_[nonbasic_[column]] = column;
}

/// w = q + M z + d z0, all w basic.
void Lemke::begin() {
  for (int i = 0; i < n; ++i) {
    double* t = T_.data() + static_cast<std::size_t>(i) * ld;
    const double* m = M.data() + static_cast<std::size_t>(i) * ld;
    for (int j = 0; j < ld; ++j)
      t[j] = j < n ? -m[j] : 0.0;
    t[n] = -d[i];
    value_[i] = q[i];
    basic_[i] = i;
    nonbasic_[i] = n + i;
    place_[i] = -1 - i;
    place_[n + i] = i;
  }
  nonbasic_[n] = 2 * n;
  place_[2 * n] = n;
}

/// Lemke's walk: complementary pivots from z0 > 0 until z0 is zero [Cottle1992].
bool Lemke::solve(int max_pivots) {
  std::fill_n(z.begin(), n, 0.0);
  pivots = 0;
  ray = false;
  z0 = 0;

  // z0 enters as large as the worst row needs.
  int row = -1;
  for (int i = 0; i < n; ++i)
    if (q[i] < -z0 * d[i]) {
      z0 = -q[i] / d[i];
      row = i;
    }
  if (row < 0) return true;

  // The walk, until z0 leaves or nothing does.
  begin();
  int column = n;
  while (pivots < max_pivots) {
    const int leaving = basic_[row];
    pivot(row, column);
    ++pivots;
    z0 = place_[2 * n] < 0 ? value_[-1 - place_[2 * n]] : 0.0;
    if (leaving == 2 * n) break;

    // The complement of what left enters.
    column = place_[leaving < n ? leaving + n : leaving - n];
    row = leaving_row(column);
    ray = row < 0;
    if (ray) break;
    value_[row] = std::max(0.0, value_[row]);
  }

  // z, and the direction of a ray.
  std::fill_n(direction.begin(), n, 0.0);
  if (ray && nonbasic_[column] >= n) {
    direction[nonbasic_[column] - n] = 1;
  }
  for (int i = 0; i < n; ++i) {
    if (basic_[i] < n || basic_[i] == 2 * n) continue;
    z[basic_[i] - n] = std::max(0.0, value_[i]);
    if (ray) {
      direction[basic_[i] - n] = std::max(0.0, -T_[static_cast<std::size_t>(i) * ld + column]);
    }
  }

  return place_[2 * n] >= 0;
}

}  // namespace coulomb

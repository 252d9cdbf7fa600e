// Column-pivoted Gram-Schmidt, then Gram-Schmidt on the rows of R; each projection twice, which keeps orthogonality to rounding.
#include "coulomb/solvers/rank_revealing.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD double dot(const double* a, const double* b, int n) {
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < 8; ++j) s[j] += a[i + j] * b[i + j];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

COULOMB_SIMD void add(double a, const double* x, int n, double* __restrict y) {
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < 8; ++j) y[i + j] += a * x[i + j];
}

}  // namespace

void PseudoInverse::compute(const double* A, int n, int ld, double threshold) {
  n_ = n;
  ld_ = dense::padded(n);
  const std::size_t size = static_cast<std::size_t>(ld_) * static_cast<std::size_t>(ld_);
  for (auto* v : {&columns_, &q_, &r_, &z_, &inverse_})
    if (v->size() < size) v->resize(size);
  if (order_.size() < static_cast<std::size_t>(n)) order_.resize(static_cast<std::size_t>(n));
  const long w = ld_;
  std::fill(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
  std::fill(r_.begin(), r_.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) columns_[j * w + i] = A[static_cast<long>(i) * ld + j];
  for (int j = 0; j < n; ++j) order_[j] = j;

  double first = 0;
  for (rank = 0; rank < n; ++rank) {   // r_[k][j]: coefficient of q_k in column order_[j]
    int best = rank;
    double largest = -1;
    for (int j = rank; j < n; ++j) {
      const double* column = &columns_[order_[j] * w];
      const double s = dot(column, column, ld_);
      if (s > largest) largest = s, best = j;
    }
    if (rank == 0) first = std::sqrt(largest);
    if (!(std::sqrt(largest) > threshold * first)) break;
    std::swap(order_[rank], order_[best]);
    double* q = &q_[rank * w];
    double* column = &columns_[order_[rank] * w];
    for (int k = 0; k < rank; ++k) {
      const double s = dot(&q_[k * w], column, ld_);
      add(-s, &q_[k * w], ld_, column);
      r_[k * w + order_[rank]] += s;
    }
    const double length = std::sqrt(dot(column, column, ld_));
    r_[rank * w + order_[rank]] = length;
    for (int i = 0; i < ld_; ++i) q[i] = column[i] / length;
    for (int j = rank + 1; j < n; ++j)
      for (int pass = 0; pass < 2; ++pass) {
        const double s = dot(q, &columns_[order_[j] * w], ld_);
        add(-s, q, ld_, &columns_[order_[j] * w]);
        r_[rank * w + order_[j]] += s;
      }
  }
  // rows of R: r_k = sum_i l_ki z_i, and at once y = L^-1 Q^T in q_
  for (int k = 0; k < rank; ++k) {
    double* z = &z_[k * w];
    std::copy(&r_[k * w], &r_[k * w] + ld_, z);
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < k; ++i) {
        const double l = dot(&z_[i * w], z, ld_);
        add(-l, &z_[i * w], ld_, z);
        add(-l, &q_[i * w], ld_, &q_[k * w]);
      }
    const double length = std::sqrt(dot(z, z, ld_));
    for (int i = 0; i < ld_; ++i) z[i] /= length, q_[k * w + i] /= length;
  }
  dense::multiply_transposed(z_.data(), ld_, q_.data(), ld_, inverse_.data(), ld_, n, rank, n);
}

void PseudoInverse::apply(bool transposed, double* X, int ldx, int cols) {
  const std::size_t size = static_cast<std::size_t>(n_) * static_cast<std::size_t>(cols);
  if (buffer_.size() < size) buffer_.resize(size);
  for (int i = 0; i < n_; ++i) std::copy(X + static_cast<long>(i) * ldx, X + static_cast<long>(i) * ldx + cols, &buffer_[static_cast<long>(i) * cols]);
  if (transposed) {
    dense::multiply_transposed(inverse_.data(), ld_, buffer_.data(), cols, X, ldx, n_, n_, cols);
  } else {
    dense::multiply(inverse_.data(), ld_, buffer_.data(), cols, X, ldx, n_, n_, cols);
  }
}

void PseudoInverse::solve(double* X, int ldx, int cols) { apply(false, X, ldx, cols); }
void PseudoInverse::solve_transposed(double* X, int ldx, int cols) { apply(true, X, ldx, cols); }

}  // namespace coulomb

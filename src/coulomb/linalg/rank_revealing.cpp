// Column-pivoted Gram-Schmidt, then Gram-Schmidt on the rows of R. Every vector is projected on all earlier ones again before it is
// normalised (rows of R only where the first pass cancelled), which keeps orthogonality to rounding.
#include "coulomb/linalg/rank_revealing.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD double dot(const double* a, const double* b, int n) {
  // Eight chains: the sum may be vectorised without reassociation.
  double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < 8; ++j)
      s[j] += a[i + j] * b[i + j];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

COULOMB_SIMD void add(double a, const double* x, int n, double* __restrict y) {
  for (int i = 0; i < n; i += 8)
    for (int j = 0; j < 8; ++j)
      y[i + j] += a * x[i + j];
}

/// Columns order[first ..] without their part along q: coefficients to r, squared lengths of what is left to size.
COULOMB_SIMD void project_out(const double* q, int first, int n, const int* order, int ld, double* columns, double* r,
                              double* size) {
  for (int c = first; c < n; ++c) {
    double* __restrict column = columns + static_cast<long>(order[c]) * ld;
    double s[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    double t[8] = {0, 0, 0, 0, 0, 0, 0, 0};

    // What lies along q ...
    for (int i = 0; i < ld; i += 8)
      for (int j = 0; j < 8; ++j)
        s[j] += q[i + j] * column[i + j];
    const double along = ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));

    // ... goes, and what is left has a length.
    for (int i = 0; i < ld; i += 8)
      for (int j = 0; j < 8; ++j) {
        column[i + j] -= along * q[i + j];
        t[j] += column[i + j] * column[i + j];
      }
    r[order[c]] = along;
    size[order[c]] = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]));
  }
}

}  // namespace

/// A = Q L Z, rows of Q^T and of Z orthonormal, L lower triangular: then A^+ = Z^T (L^-1 Q^T).
void PseudoInverse::compute(const double* A, int n, int ld, double threshold) {
  reserve(n);
  pivot_columns(A, ld, threshold);
  orthonormalise_rows();

  // The product, where it is not larger than its factors.
  low_rank_ = 2 * rank < n_;
  if (low_rank_) return;
  const std::size_t size = static_cast<std::size_t>(ld_) * static_cast<std::size_t>(ld_);
  if (inverse_.size() < size) inverse_.resize(size);
  dense::multiply_transposed(z_.data(), ld_, q_.data(), ld_, inverse_.data(), ld_, n_, rank, n_);
}

void PseudoInverse::reserve(int n) {
  n_ = n;
  ld_ = dense::padded(n);
  const std::size_t size = static_cast<std::size_t>(ld_) * static_cast<std::size_t>(ld_);
  for (auto* v : {&columns_, &q_, &r_, &z_})
    if (v->size() < size) {
      v->resize(size);
    }
  if (size_.size() < static_cast<std::size_t>(n)) {
    size_.resize(static_cast<std::size_t>(n));
  }
  if (order_.size() < static_cast<std::size_t>(n)) {
    order_.resize(static_cast<std::size_t>(n));
  }
  std::fill(columns_.begin(), columns_.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
  std::fill(r_.begin(), r_.begin() + static_cast<std::ptrdiff_t>(size), 0.0);
}

/// A = Q R by columns, the longest that is left first. r_[k][j]: coefficient of q_k in column order_[j].
void PseudoInverse::pivot_columns(const double* A, int ld, double threshold) {
  const long w = ld_;
  const int n = n_;
  // Its columns, and their squared lengths.
  for (int i = 0; i < n; ++i) {
    const double* row = A + static_cast<long>(i) * ld;
    for (int j = 0; j < n; ++j)
      columns_[j * w + i] = row[j];
  }
  for (int j = 0; j < n; ++j) {
    order_[j] = j;
    const double* column = &columns_[j * w];
    size_[j] = dot(column, column, ld_);
  }

  double first = 0;
  for (rank = 0; rank < n; ++rank) {
    // The longest column; where it is short beside the first, the rest is rounding.
    int best = rank;
    double largest = -1;
    for (int j = rank; j < n; ++j) {
      if (size_[order_[j]] > largest) {
        largest = size_[order_[j]];
        best = j;
      }
    }
    const double length_left = std::sqrt(largest);
    if (rank == 0) first = length_left;
    if (!(length_left > threshold * first)) break;
    std::swap(order_[rank], order_[best]);

    // Projected on the earlier ones once more, and normalised.
    double* q = &q_[rank * w];
    double* column = &columns_[order_[rank] * w];
    for (int k = 0; k < rank; ++k) {
      const double* earlier = &q_[k * w];
      const double s = dot(earlier, column, ld_);
      add(-s, earlier, ld_, column);
      r_[k * w + order_[rank]] += s;
    }

    // What is left of it, at unit length.
    const double length = std::sqrt(dot(column, column, ld_));
    r_[rank * w + order_[rank]] = length;
    for (int i = 0; i < ld_; ++i)
      q[i] = column[i] / length;

    // The others lose their part along it.
    project_out(q, rank + 1, n, order_.data(), ld_, columns_.data(), &r_[rank * w], size_.data());
  }
}

/// R = L Z by rows, and at once y = L^-1 Q^T in q_.
void PseudoInverse::orthonormalise_rows() {
  const long w = ld_;
  for (int k = 0; k < rank; ++k) {
    double* z = &z_[k * w];
    std::copy(&r_[k * w], &r_[k * w] + ld_, z);
    double before = dot(z, z, ld_);

    // r_k = sum_i l_ki z_i, a second time where the first pass cancelled.
    for (int pass = 0; pass < 2; ++pass) {
      for (int i = 0; i < k; ++i) {
        const double l = dot(&z_[i * w], z, ld_);
        add(-l, &z_[i * w], ld_, z);
        add(-l, &q_[i * w], ld_, &q_[k * w]);
      }
      const double after = dot(z, z, ld_);
      if (after > 0.25 * before) break;
      before = after;
    }

    const double length = std::sqrt(dot(z, z, ld_));
    for (int i = 0; i < ld_; ++i) {
      z[i] /= length;
      q_[k * w + i] /= length;
    }
  }
}

/// X := Z^T Y X, or its transpose Y^T Z X: through the product of Z and Y where that is smaller.
void PseudoInverse::apply(bool transposed, double* X, int ldx, int cols) {
  const std::size_t size = static_cast<std::size_t>(n_) * static_cast<std::size_t>(cols);
  if (buffer_.size() < size) buffer_.resize(size);

  // Through the factors, where they are smaller than the product.
  if (low_rank_) {
    const double* right = transposed ? z_.data() : q_.data();
    const double* left = transposed ? q_.data() : z_.data();
    dense::multiply(right, ld_, X, ldx, buffer_.data(), cols, rank, n_, cols);
    dense::multiply_transposed(left, ld_, buffer_.data(), cols, X, ldx, n_, rank, cols);
    return;
  }

  // Through the product, from a copy of X.
  for (int i = 0; i < n_; ++i) {
    const double* row = X + static_cast<long>(i) * ldx;
    std::copy(row, row + cols, &buffer_[static_cast<long>(i) * cols]);
  }

  if (transposed) {
    dense::multiply_transposed(inverse_.data(), ld_, buffer_.data(), cols, X, ldx, n_, n_, cols);
  } else {
    dense::multiply(inverse_.data(), ld_, buffer_.data(), cols, X, ldx, n_, n_, cols);
  }
}

void PseudoInverse::solve(double* X, int ldx, int cols) { apply(false, X, ldx, cols); }
void PseudoInverse::solve_transposed(double* X, int ldx, int cols) { apply(true, X, ldx, cols); }

}  // namespace coulomb

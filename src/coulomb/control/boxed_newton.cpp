#include "coulomb/control/boxed_newton.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr int max_iterations = 100;
constexpr int max_halvings = 30;
constexpr double least_pivot = 1e-14;  // relative
constexpr double armijo = 0.1;
constexpr double rounding = 1e-14;  // relative change of the value that counts as none

}  // namespace

void BoxedNewton::resize(int n) {
  n_ = n;
  const int ld = dense::padded(n);
  free_.reserve(n);
  factored_.reserve(n);
  U_.resize(std::size_t(ld) * ld);
  work_.resize(ld);
  gradient_.resize(n);
  step_.resize(ld);
  next_.resize(n);
}

double BoxedNewton::value(const double* Q, int ld, const double* q, const double* x) const {
  double sum = 0;
  for (int i = 0; i < n_; ++i) {
    double row = 0;
    for (int j = 0; j < n_; ++j)
      row += Q[std::size_t(i) * ld + j] * x[j];
    sum += x[i] * (0.5 * row + q[i]);
  }
  return sum;
}

bool BoxedNewton::factor(const double* Q, int ld) {
  const int count = int(free_.size());
  const int own = dense::padded(count);
  for (int i = 0; i < count; ++i) {
    double* row = U_.data() + std::size_t(i) * own;
    std::fill_n(row, own, 0.0);
    for (int j = 0; j < count; ++j)
      row[j] = Q[std::size_t(free_[i]) * ld + free_[j]];
  }
  factored_.assign(free_.begin(), free_.end());
  return dense::cholesky(U_.data(), count, own, work_.data()) > least_pivot;
}

bool BoxedNewton::solve(const double* Q, int ld, const double* q, const double* lower, const double* upper, double* x) {
  for (int i = 0; i < n_; ++i)
    x[i] = std::clamp(x[i], lower[i], upper[i]);
  factored_.clear();
  double now = value(Q, ld, q, x);
  if (!std::isfinite(now)) return false;

  for (int iteration = 0; iteration < max_iterations; ++iteration) {
    // Held: at a limit that the gradient points through.
    free_.clear();
    for (int i = 0; i < n_; ++i) {
      double slope = q[i];
      for (int j = 0; j < n_; ++j)
        slope += Q[std::size_t(i) * ld + j] * x[j];
      gradient_[i] = slope;
      const bool held = (x[i] <= lower[i] && slope > 0) || (x[i] >= upper[i] && slope < 0);
      if (!held) free_.push_back(i);
    }
    if (free_.empty()) return true;

    // Newton's step of the others.
    if (free_ != factored_ && !factor(Q, ld)) return false;
    const int count = int(free_.size());
    for (int k = 0; k < count; ++k)
      step_[k] = -gradient_[free_[k]];
    dense::cholesky_solve(U_.data(), count, dense::padded(count), step_.data());

    // Along its projection into the box, as far as it gains.
    double length = 1;
    double gained = 0;
    double promised = 0;
    for (int halving = 0; halving < max_halvings; ++halving) {
      std::copy_n(x, n_, next_.begin());
      promised = 0;
      for (int k = 0; k < count; ++k) {
        const int i = free_[k];
        next_[i] = std::clamp(x[i] + length * step_[k], lower[i], upper[i]);
        promised -= gradient_[i] * (next_[i] - x[i]);
      }
      gained = now - value(Q, ld, q, next_.data());
      if (gained >= armijo * promised) break;
      length /= 2;
    }
    if (!std::isfinite(gained)) return false;

    // At the solution rounding is all that is left.
    if (promised <= rounding * std::abs(now)) return true;
    if (gained < armijo * promised) return true;
    std::copy_n(next_.begin(), n_, x);
    now -= gained;
  }
  return true;
}

bool BoxedNewton::factor_free(const double* Q, int ld, const char* held) {
  free_.clear();
  for (int i = 0; i < n_; ++i)
    if (!held[i]) free_.push_back(i);
  return free_.empty() || factor(Q, ld);
}

void BoxedNewton::solve_free(double* X, int ldx, int columns) {
  const int count = int(free_.size());
  columns_.resize(std::size_t(n_) * ldx);
  for (int k = 0; k < count; ++k)
    for (int j = 0; j < columns; ++j)
      columns_[std::size_t(k) * ldx + j] = -X[std::size_t(free_[k]) * ldx + j];
  if (count > 0) {
    dense::cholesky_solve(U_.data(), count, dense::padded(count), columns_.data(), ldx, columns);
  }
  for (int i = 0; i < n_; ++i)
    std::fill_n(X + std::size_t(i) * ldx, columns, 0.0);
  for (int k = 0; k < count; ++k)
    std::copy_n(columns_.data() + std::size_t(k) * ldx, columns, X + std::size_t(free_[k]) * ldx);
}

}  // namespace coulomb

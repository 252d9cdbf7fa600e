#include "coulomb/stepping/implicit/implicit_factor.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

constexpr int sparse_from = 48;
constexpr double smallest_pivot = 1e-6;  // relative to its row

}  // namespace

void ImplicitFactor::resize(int n) {
  n_ = n;
  ld_ = dense::padded(n);
  lu_.resize(std::size_t(n) * ld_);
  work_.resize(ld_);
  pivot_.resize(n);
  if (n < sparse_from) return;
  copy_.reserve(lu_.size());
  lower_.reserve(std::size_t(n) * n / 2);
  upper_.reserve(std::size_t(n) * n / 2);
  lower_start_.resize(n + 1);
  upper_start_.resize(n + 1);
}

bool ImplicitFactor::factor() {
  sparse_ = false;
  if (n_ < sparse_from) return factor_dense();

  // Along the trees first; pivots that are too small need the rows exchanged.
  copy_ = lu_;
  sparse_ = factor_sparse();
  if (sparse_) return true;
  lu_ = copy_;
  return factor_dense();
}

/// factor() may take the other way next time: what a dense matrix has of the lists is left out.
ImplicitFactor::Factors ImplicitFactor::factors() const {
  Factors out;
  out.sparse = sparse_;
  out.lu = lu_;
  out.pivot = pivot_;
  out.lower_start = lower_start_;
  out.upper_start = upper_start_;
  if (!sparse_) return out;
  out.lower = lower_;
  out.upper = upper_;
  return out;
}

void ImplicitFactor::set_factors(const Factors& from) {
  const auto take = [](const auto& list, auto& to) { to.assign(list.begin(), list.end()); };
  sparse_ = from.sparse;
  take(from.lu, lu_);
  take(from.pivot, pivot_);
  take(from.lower, lower_);
  take(from.lower_start, lower_start_);
  take(from.upper, upper_);
  take(from.upper_start, upper_start_);
}

/// With partial pivoting.
bool ImplicitFactor::factor_dense() {
  const double pivot = dense::lu(lu_.data(), n_, ld_, pivot_.data(), work_.data());
  return std::isfinite(pivot) && pivot > 1e-18;
}

/// From the leaves to the roots, in place, without pivoting: no fill. False where a pivot is too small beside its row.
bool ImplicitFactor::factor_sparse() {
  lower_.clear();
  upper_.clear();
  for (int k = n_ - 1; k >= 0; --k) {
    // Entries of row k left of the diagonal.
    const double* row = &lu_[std::size_t(k) * ld_];
    const int first = int(lower_.size());
    double largest = std::abs(row[k]);
    for (int j = 0; j < k; ++j) {
      if (row[j] == 0) continue;
      lower_.push_back(j);
      largest = std::max(largest, std::abs(row[j]));
    }
    lower_start_[k] = first;
    upper_start_[k] = int(upper_.size());

    // Rows above that feel dof k.
    if (!(std::abs(row[k]) > smallest_pivot * largest) || !std::isfinite(largest)) return false;
    for (int i = 0; i < k; ++i) {
      double* target = &lu_[std::size_t(i) * ld_];
      if (target[k] == 0) continue;
      upper_.push_back(i);
      const double l = target[k] /= row[k];
      for (std::size_t e = first; e < lower_.size(); ++e)
        target[lower_[e]] -= l * row[lower_[e]];
    }
  }
  return true;
}

/// Lists are in the order k = n - 1 .. 0: the end of k's is the start of (k - 1)'s.
template <class Visit>
static void visit_list(const std::vector<int>& list, const std::vector<int>& start, int k, Visit visit) {
  const std::size_t end = k == 0 ? list.size() : std::size_t(start[k - 1]);
  for (std::size_t e = start[k]; e < end; ++e)
    visit(list[e]);
}

void ImplicitFactor::solve_transposed(double* x) const {
  if (!sparse_) return dense::lu_solve(lu_.data(), n_, ld_, pivot_.data(), x);

  // U first, then L.
  for (int k = n_ - 1; k >= 0; --k)
    visit_list(upper_, upper_start_, k, [&](int i) { x[i] -= lu_[std::size_t(i) * ld_ + k] * x[k]; });
  for (int k = 0; k < n_; ++k) {
    const double* row = &lu_[std::size_t(k) * ld_];
    visit_list(lower_, lower_start_, k, [&](int j) { x[k] -= row[j] * x[j]; });
    x[k] /= row[k];
  }
}

void ImplicitFactor::solve(double* x) const {
  if (!sparse_) return dense::lu_solve_transposed(lu_.data(), n_, ld_, pivot_.data(), x);

  // L first, then U.
  for (int k = n_ - 1; k >= 0; --k) {
    const double* row = &lu_[std::size_t(k) * ld_];
    x[k] /= row[k];
    visit_list(lower_, lower_start_, k, [&](int j) { x[j] -= row[j] * x[k]; });
  }
  for (int k = 0; k < n_; ++k)
    visit_list(upper_, upper_start_, k, [&](int i) { x[k] -= lu_[std::size_t(i) * ld_ + k] * x[i]; });
}

void ImplicitFactor::inverse_transposed(double* P_T) const {
  // All columns of the identity at once.
  std::fill_n(P_T, std::size_t(n_) * ld_, 0.0);
  for (int d = 0; d < n_; ++d)
    P_T[std::size_t(d) * ld_ + d] = 1;
  if (!sparse_) return dense::lu_solve(lu_.data(), n_, ld_, pivot_.data(), P_T, ld_, ld_);

  // As solve_transposed, a row of P_T for each number.
  const auto subtract = [&](int to, double scale, int from) {
    double* y = P_T + std::size_t(to) * ld_;
    double* x = P_T + std::size_t(from) * ld_;
    for (int d = 0; d < ld_; ++d)
      y[d] -= scale * x[d];
  };

  for (int k = n_ - 1; k >= 0; --k)
    visit_list(upper_, upper_start_, k, [&](int i) { subtract(i, lu_[std::size_t(i) * ld_ + k], k); });
  for (int k = 0; k < n_; ++k) {
    const double* row = &lu_[std::size_t(k) * ld_];
    visit_list(lower_, lower_start_, k, [&](int j) { subtract(k, row[j], j); });
    for (int d = 0; d < ld_; ++d)
      P_T[std::size_t(k) * ld_ + d] /= row[k];
  }
}

}  // namespace coulomb

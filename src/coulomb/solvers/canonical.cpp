#include "coulomb/solvers/canonical.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/solvers/dense.hpp"

namespace coulomb {
namespace {

constexpr double rank_threshold = 1e-9;  // as in ProblemLinearization
constexpr double vanishing_pivot = 1e-8;   // of an undamped LU
constexpr double at_rest = 1e-15;        // norm of the condition that rounding allows
constexpr double exact = 1e-14;          // residual: a smaller one does not matter
constexpr double smallest_update = 1e-11;
constexpr int max_steps = 12;

void grow(std::vector<double>& v, int size) {
  if (static_cast<int>(v.size()) < size) v.resize(static_cast<std::size_t>(size));
}

double norm(const double* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

void copy(const Iterate& from, Iterate& to, int ld) {
  std::copy_n(from.lambda.begin(), ld, to.lambda.begin());
  std::copy_n(from.c.begin(), ld, to.c.begin());
  to.residual = from.residual;
}

}  // namespace

bool CanonicalChoice::linearise(const ScaledProblem& problem, const Iterate& at) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    modes_[b] = problem.mode(b, at.lambda.data(), at.c.data());
    if (modes_[b].mode != labels_[b]) return false;
  }
  system_.set_modes(problem, modes_.data(), true);
  system_.assemble(problem, 0);
  inverse_.compute(system_.A.data(), system_.size, system_.ld, rank_threshold);
  for (int i = 0; i < system_.size; ++i) {
    const ReducedRow& r = system_.rows[i];
    lambda_rows_[i] = problem.typical * problem.inverse_root[r.row] * problem.inverse_root[r.row] * ReducedSystem::equation(r, at.lambda.data());
  }
  return true;
}

/// Orthonormal columns that span the null space, from the projector I - A^+ A (right) or I - A A^+ (left), by pivoted Gram-Schmidt.
void CanonicalChoice::null_basis(bool left, std::vector<double>& basis) {
  const int m = system_.size;
  double *P = work_.data(), *columns = x_.data();
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j) columns[i * m + j] = system_.A[left ? static_cast<long>(j) * system_.ld + i : static_cast<long>(i) * system_.ld + j];
  if (left) inverse_.solve_transposed(columns, m, m);   // (A^+)^T A^T = (A A^+)^T
  else inverse_.solve(columns, m, m);                   // A^+ A
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j) P[i * m + j] = (i == j) - 0.5 * (columns[i * m + j] + columns[j * m + i]);
  for (int k = 0; k < nullity_; ++k) {
    int best = 0;
    for (int i = 1; i < m; ++i)
      if (norm(P + i * m, m) > norm(P + best * m, m)) best = i;
    double* q = basis.data() + k * m;
    const double length = norm(P + best * m, m);
    for (int j = 0; j < m; ++j) q[j] = P[best * m + j] / length;
    for (int i = 0; i < m; ++i) {
      double along = 0;
      for (int j = 0; j < m; ++j) along += P[i * m + j] * q[j];
      for (int j = 0; j < m; ++j) P[i * m + j] -= along * q[j];
    }
  }
}

double CanonicalChoice::condition() {
  const int m = system_.size;
  double* r = work_.data();
  std::copy_n(lambda_rows_.begin(), m, r);
  inverse_.solve(r, 1, 1);
  for (int i = 0; i < m; ++i) {   // x_ = lambda rows - A A^+ (lambda rows)
    x_[i] = lambda_rows_[i];
    for (int j = 0; j < m; ++j) x_[i] -= system_.A[static_cast<long>(i) * system_.ld + j] * r[j];
  }
  for (int k = 0; k < nullity_; ++k) {
    F_[k] = 0;
    for (int i = 0; i < m; ++i) F_[k] += left_[k * m + i] * x_[i];
  }
  return norm(F_.data(), nullity_);
}

/// M = L0^T B W C N0: exact when modes' directions do not turn; Broyden's updates learn the rest.
void CanonicalChoice::slopes(const ScaledProblem& problem) {
  const int m = system_.size;
  for (int k = 0; k < nullity_; ++k) {
    std::fill(work_.begin(), work_.end(), 0.0);
    for (int i = 0; i < m; ++i) ReducedSystem::expand(system_.rows[i], right_[k * m + i], work_.data());
    for (int l = 0; l < nullity_; ++l) {
      double sum = 0;
      for (int i = 0; i < m; ++i) {
        const ReducedRow& r = system_.rows[i];
        sum += left_[l * m + i] * problem.typical * problem.inverse_root[r.row] * problem.inverse_root[r.row] * ReducedSystem::equation(r, work_.data());
      }
      M_[l * nullity_ + k] = sum;
    }
  }
}

/// x + (I - A^+ A) N0 y - A^+ (residual): along the solutions, and back onto them.
bool CanonicalChoice::move(const ScaledProblem& problem, const Iterate& from) {
  const int m = system_.size;
  double *direction = work_.data(), *image = x_.data();
  for (int i = 0; i < m; ++i) {
    direction[i] = 0;
    for (int k = 0; k < nullity_; ++k) direction[i] += right_[k * m + i] * y_[k];
  }
  for (int i = 0; i < m; ++i) {
    const ReducedRow& r = system_.rows[i];
    image[i] = ReducedSystem::equation(r, from.c.data()) + r.q * system_.coordinate(r, from.lambda.data());
    for (int j = 0; j < m; ++j) image[i] += system_.A[static_cast<long>(i) * system_.ld + j] * direction[j];
  }
  inverse_.solve(image, 1, 1);
  std::copy_n(system_.fixed.begin(), problem.ld, next_.lambda.begin());
  for (int i = 0; i < m; ++i) {
    const ReducedRow& r = system_.rows[i];
    ReducedSystem::expand(r, system_.coordinate(r, from.lambda.data()) + direction[i] - image[i], next_.lambda.data());
  }
  next_.evaluate(problem);
  return std::isfinite(next_.residual);
}

bool CanonicalChoice::find_modes(const ScaledProblem& problem, const Iterate& at) {
  const auto blocks = static_cast<std::size_t>(problem.num_blocks);
  if (modes_.size() < blocks) modes_.resize(blocks), labels_.resize(blocks);
  bool slides = false;
  for (int b = 0; b < problem.num_blocks; ++b) {
    modes_[b] = problem.mode(b, at.lambda.data(), at.c.data());
    labels_[b] = modes_[b].mode;
    slides = slides || (labels_[b] == Mode::sliding && problem.blocks[b].mu > 0);
  }
  return slides;
}

bool CanonicalChoice::deficient(const ScaledProblem& problem, const Iterate& iterate) {
  if (!find_modes(problem, iterate)) return false;
  system_.set_modes(problem, modes_.data(), true);
  return system_.size > 0 && !(system_.factorise(problem, 0) && system_.pivot_ratio > vanishing_pivot);
}

bool CanonicalChoice::centre(const ScaledProblem& problem, double tolerance, Iterate& iterate) {
  current_.resize(problem.ld), next_.resize(problem.ld);
  if (!find_modes(problem, iterate)) return true;
  grow(lambda_rows_, problem.ld);
  if (!linearise(problem, iterate)) return false;
  const int m = system_.size;
  nullity_ = m - inverse_.rank;
  if (nullity_ == 0) return true;
  for (auto* v : {&F_, &F_before_, &y_}) grow(*v, nullity_);
  for (auto* v : {&right_, &left_}) grow(*v, nullity_ * m);
  grow(M_, nullity_ * nullity_), grow(work_, std::max(m * m, problem.ld)), grow(x_, m * m);
  null_basis(false, right_);
  null_basis(true, left_);
  slopes(problem);
  copy(iterate, current_, problem.ld);
  double size = condition();
  const double scale = norm(lambda_rows_.data(), m);
  for (int step = 0; step < max_steps && (size > at_rest * scale || current_.residual > exact); ++step) {
    slopes_inverse_.compute(M_.data(), nullity_, nullity_, rank_threshold);
    for (int k = 0; k < nullity_; ++k) y_[k] = -F_[k];
    slopes_inverse_.solve(y_.data(), 1, 1);
    if (!move(problem, current_) || !linearise(problem, next_)) return false;
    std::copy_n(F_.begin(), nullity_, F_before_.begin());
    const double before = size;
    size = condition();
    // a step also returns to the solutions (they are curved): progress is that of both
    if (!(size / scale + next_.residual < before / scale + current_.residual)) {
      if (before <= 1e-12 * scale) break;   // rounding
      if (!(size < 2 * before)) return false;
    }
    copy(next_, current_, problem.ld);
    const double length = norm(y_.data(), nullity_), length2 = length * length;
    if (length <= smallest_update * scale) continue;   // rounding would spoil the slopes
    for (int i = 0; i < nullity_; ++i) {   // Broyden: M y = change of F
      double predicted = 0;
      for (int j = 0; j < nullity_; ++j) predicted += M_[i * nullity_ + j] * y_[j];
      for (int j = 0; j < nullity_; ++j) M_[i * nullity_ + j] += (F_[i] - F_before_[i] - predicted) * y_[j] / length2;
    }
  }
  if (!(size <= 1e-11 * scale) || !(current_.residual <= tolerance)) return false;
  copy(current_, iterate, problem.ld);
  return true;
}

}  // namespace coulomb

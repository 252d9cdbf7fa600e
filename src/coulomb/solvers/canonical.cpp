#include "coulomb/solvers/canonical.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "coulomb/solvers/complete_pivoting.hpp"
#include "coulomb/solvers/dense.hpp"

namespace coulomb {
namespace {

constexpr double rank_threshold = 1e-9;   // as in ProblemLinearization
constexpr double deficient_pivot = 1e-6;  // likewise
constexpr double at_rest = 1e-15;         // norm of the condition that rounding allows
constexpr double rounding = 1e-12;        // norm of the condition below which it need not fall any more
constexpr double exact = 1e-13;           // a residual that no further step improves
constexpr double unmoved = 1e-8;          // change of a scaled velocity by a null impulse of size one
constexpr double same_direction = 1e-11;
constexpr int max_steps = 12;

template <class T>
void grow(std::vector<T>& v, int size) {
  if (static_cast<int>(v.size()) < size) v.resize(static_cast<std::size_t>(size));
}

double norm(const double* x, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

}  // namespace

double CanonicalChoice::entry(int i, int j) const {
  return system_.A[static_cast<long>(rows_[i]) * system_.ld + columns_[j]];
}

double CanonicalChoice::weighted(const ScaledProblem& problem, int i, const double* lambda) const {
  const ReducedRow& r = system_.rows[i];
  return problem.typical * problem.inverse_root[r.row] * problem.inverse_root[r.row] *
         ReducedSystem::equation(r, lambda);
}

bool CanonicalChoice::linearise(const ScaledProblem& problem, const Iterate& at, bool first) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    Mode label;
    int facet;
    problem.margin(b, at.lambda.data(), at.c.data(), label, &facet);  // a contact at the border that rests sticks
    if (!first && (label != labels_[b] || facet != facets_[b])) return false;
    labels_[b] = label, facets_[b] = facet;
    modes_[b] = problem.mode(b, at.lambda.data(), at.c.data());
    if (facet >= 0) problem.set_facet(b, facet, modes_[b]);
    modes_[b].mode = label;
    modes_[b].k = std::clamp(modes_[b].k, 0.0, 1.0);
  }
  system_.set_modes(problem, modes_.data(), true);
  return true;
}

bool CanonicalChoice::factorise() {
  for (int i = 0; i < rank_; ++i)
    for (int j = 0; j < ld_; ++j) factor_[static_cast<long>(i) * ld_ + j] = j < rank_ ? entry(i, j) : 0.0;
  return rank_ == 0 || dense::lu(factor_.data(), rank_, ld_, pivot_.data(), work_.data()) > 0;
}

void CanonicalChoice::null_space() {
  for (int i = 0; i < rank_; ++i)
    for (int k = 0; k < ld_null_; ++k) N_[i * ld_null_ + k] = k < nullity_ ? -entry(i, rank_ + k) : 0.0;
  if (rank_ > 0) dense::lu_solve(factor_.data(), rank_, ld_, pivot_.data(), N_.data(), ld_null_, nullity_);
}

/// Whether G C N has entries in the tangential rows of a sliding block; by A N = 0 there is nothing in the others.
bool CanonicalChoice::moves_velocity(const ScaledProblem& problem) {
  const int m = system_.size;
  for (int b = 0; b < problem.num_blocks; ++b) {
    if (labels_[b] != Mode::sliding) continue;
    const int row = problem.blocks[b].row;
    for (int i = row; i < row + 2; ++i) {
      const double* G = problem.G.data() + static_cast<long>(i) * problem.ld;
      for (int j = 0; j < m; ++j) {  // (G C)_ij
        const ReducedRow& r = system_.rows[columns_[j]];
        x_[j] = r.one_c ? G[r.row_c] : r.c[0] * G[r.row] + r.c[1] * G[r.row + 1] + r.c[2] * G[r.row + 2];
      }
      for (int k = 0; k < nullity_; ++k) {
        double sum = x_[rank_ + k];
        for (int j = 0; j < rank_; ++j) sum += x_[j] * N_[j * ld_null_ + k];
        if (!(std::abs(sum) <= unmoved)) return true;
      }
    }
  }
  return false;
}

double CanonicalChoice::condition() {
  double* t = work_.data();
  for (int i = 0; i < rank_; ++i) t[i] = lambda_rows_[rows_[i]];
  if (rank_ > 0) dense::lu_solve(factor_.data(), rank_, ld_, pivot_.data(), t);
  for (int k = 0; k < nullity_; ++k) {
    F_[k] = lambda_rows_[rows_[rank_ + k]];
    for (int j = 0; j < rank_; ++j) F_[k] -= entry(rank_ + k, j) * t[j];
  }
  return norm(F_.data(), nullity_);
}

/// M = L^T B W C N: exact when modes' directions do not turn; Broyden's updates learn the rest.
void CanonicalChoice::slopes(const ScaledProblem& problem) {
  const int m = system_.size;
  double* upper = x_.data();  // rank x nullity: rows of B W C N, then A11^-1 of them
  for (int k = 0; k < nullity_; ++k) {
    std::fill_n(work_.begin(), problem.ld, 0.0);
    for (int j = 0; j < rank_; ++j)
      ReducedSystem::expand(system_.rows[columns_[j]], N_[j * ld_null_ + k], work_.data());
    ReducedSystem::expand(system_.rows[columns_[rank_ + k]], 1, work_.data());
    for (int i = 0; i < m; ++i) {
      const double value = weighted(problem, rows_[i], work_.data());
      if (i < rank_) upper[i * ld_null_ + k] = value;
      else M_[(i - rank_) * ld_null_ + k] = value;
    }
  }
  if (rank_ > 0) dense::lu_solve(factor_.data(), rank_, ld_, pivot_.data(), upper, ld_null_, nullity_);
  for (int l = 0; l < nullity_; ++l)
    for (int j = 0; j < rank_; ++j) {
      const double a = entry(rank_ + l, j);
      for (int k = 0; k < nullity_; ++k) M_[l * ld_null_ + k] -= a * upper[j * ld_null_ + k];
    }
}

bool CanonicalChoice::direction() {
  std::copy_n(M_.begin(), nullity_ * ld_null_, M_factor_.begin());
  if (!(dense::lu(M_factor_.data(), nullity_, ld_null_, slopes_pivot_.data(), work_.data()) > rank_threshold))
    return false;
  for (int k = 0; k < nullity_; ++k) y_[k] = -F_[k];
  dense::lu_solve(M_factor_.data(), nullity_, ld_null_, slopes_pivot_.data(), y_.data());
  return true;
}

/// x + N y - [A11^-1 (residual); 0]: along the solutions, and back onto them.
bool CanonicalChoice::move(const ScaledProblem& problem, const Iterate& from) {
  double* t = work_.data();
  for (int i = 0; i < rank_; ++i) {
    const ReducedRow& r = system_.rows[rows_[i]];
    t[i] = -(ReducedSystem::equation(r, from.c.data()) + r.q * system_.coordinate(r, from.lambda.data()));
    for (int k = 0; k < nullity_; ++k) t[i] -= entry(i, rank_ + k) * y_[k];
  }
  if (rank_ > 0) dense::lu_solve(factor_.data(), rank_, ld_, pivot_.data(), t);
  std::copy_n(system_.fixed.begin(), problem.ld, next_.lambda.begin());
  for (int j = 0; j < system_.size; ++j) {
    const ReducedRow& r = system_.rows[columns_[j]];
    const double step = j < rank_ ? t[j] : y_[j - rank_];
    ReducedSystem::expand(r, system_.coordinate(r, from.lambda.data()) + step, next_.lambda.data());
  }
  next_.evaluate(problem);
  return std::isfinite(next_.residual);
}

/// Broyden: M y = change of F.
void CanonicalChoice::learn(double length2) {
  for (int i = 0; i < nullity_; ++i) {
    double* row = M_.data() + i * ld_null_;
    double predicted = 0;
    for (int j = 0; j < nullity_; ++j) predicted += row[j] * y_[j];
    for (int j = 0; j < nullity_; ++j) row[j] += (F_[i] - F_before_[i] - predicted) * y_[j] / length2;
  }
}

bool CanonicalChoice::descend(const ScaledProblem& problem) {
  const auto weigh = [&](const Iterate& at) {
    for (int i = 0; i < system_.size; ++i) lambda_rows_[i] = weighted(problem, i, at.lambda.data());
  };
  weigh(current_);
  const double scale = norm(lambda_rows_.data(), system_.size);
  double size = condition();
  for (int step = 0; step < max_steps && (size > at_rest * scale || current_.residual > exact); ++step) {
    if (!direction() || !move(problem, current_) || !linearise(problem, next_, false)) return size <= rounding * scale;
    system_.assemble(problem, 0);
    if (!factorise()) return false;
    weigh(next_);
    std::copy_n(F_.begin(), nullity_, F_before_.begin());
    const double before = size;
    size = condition();
    // a step also returns to the solutions, which are curved: progress is that of both
    const double left = size / scale + next_.residual, had = before / scale + current_.residual;
    if (before <= rounding * scale) {  // from here only the residual has something to gain
      const bool better =
          size < before ? next_.residual <= exact : size <= rounding * scale && next_.residual < current_.residual;
      if (!better) return true;
    } else if (!(left < 2 * had)) {
      return false;
    }
    current_.copy(next_, problem.ld);
    const double length = norm(y_.data(), nullity_);
    if (before > rounding * scale) learn(length * length);
  }
  return size <= rounding * scale;
}

bool CanonicalChoice::find_modes(const ScaledProblem& problem, const Iterate& at) {
  const int blocks = problem.num_blocks;
  grow(modes_, blocks), grow(labels_, blocks), grow(facets_, blocks);
  linearise(problem, at, true);
  bool slides = false;
  for (int b = 0; b < blocks; ++b) slides = slides || (labels_[b] == Mode::sliding && problem.blocks[b].mu > 0);
  return slides;
}

bool CanonicalChoice::deficient(const ScaledProblem& problem, const Iterate& iterate, bool at_rest, double least) {
  factorised_ = false;
  if ((!find_modes(problem, iterate) && !at_rest) || system_.size == 0) return false;
  const bool regular = system_.factorise(problem, 0) && system_.pivot_ratio > least;
  factorised_ = regular && system_.pivot_ratio >= deficient_pivot;
  return !regular;
}

bool CanonicalChoice::polish(const ScaledProblem& problem, double tolerance, Iterate& iterate) {
  if (iterate.residual <= tolerance) return true;
  if (!factorised_) return false;
  next_.resize(problem.ld);
  system_.step(problem, iterate.lambda.data(), next_.lambda.data(), next_.c.data());
  next_.evaluate(problem);
  if (next_.residual < iterate.residual) iterate.copy(next_, problem.ld);
  return iterate.residual <= tolerance;
}

void CanonicalChoice::hand_over(const ScaledProblem& problem, const Iterate& iterate, SolutionFactor& factor) {
  factor.valid = false;
  if (!factorised_) return;
  for (int b = 0; b < problem.num_blocks; ++b) {
    Mode label;
    problem.margin(b, iterate.lambda.data(), iterate.c.data(), label);
    if (label != labels_[b]) return;
    if (label != Mode::sliding) continue;
    const BlockMode m = problem.mode(b, iterate.lambda.data(), iterate.c.data());
    const double turned = std::abs(m.nx - modes_[b].nx) + std::abs(m.ny - modes_[b].ny) +
                          std::abs(std::clamp(m.k, 0.0, 1.0) - modes_[b].k);
    if (!(turned <= same_direction)) return;
  }
  factor.valid = true;
  factorised_ = false;
  std::swap(factor.system, system_);
  factor.modes.assign(modes_.begin(), modes_.begin() + problem.num_blocks);
  factor.inverse_root.assign(problem.inverse_root.begin(), problem.inverse_root.begin() + problem.ld);
  factor.ref = problem.ref;
}

bool CanonicalChoice::centre(const ScaledProblem& problem, double tolerance, Iterate& iterate) {
  moved = false;
  if (!find_modes(problem, iterate)) return true;
  system_.assemble(problem, 0);
  const int m = system_.size;
  current_.resize(problem.ld), next_.resize(problem.ld);
  for (auto* v : {&rows_, &columns_, &pivot_, &slopes_pivot_}) grow(*v, m);
  grow(work_, problem.ld), grow(lambda_rows_, m);
  grow(x_, system_.ld * system_.ld), grow(factor_, system_.ld * system_.ld);
  std::copy_n(system_.A.begin(), static_cast<long>(m) * system_.ld, x_.begin());
  rank_ = dense::complete_pivoting(x_.data(), m, system_.ld, rank_threshold, rows_.data(), columns_.data());
  nullity_ = m - rank_;
  if (nullity_ == 0) return true;
  ld_ = dense::padded(rank_);
  ld_null_ = dense::padded(nullity_);
  for (auto* v : {&F_, &F_before_, &y_}) grow(*v, ld_null_);
  for (auto* v : {&M_, &M_factor_}) grow(*v, ld_null_ * ld_null_);
  grow(N_, ld_null_ * m), grow(x_, ld_null_ * m);
  if (!factorise()) return false;
  null_space();
  if (!moves_velocity(problem)) return true;
  slopes(problem);
  current_.copy(iterate, problem.ld);
  if (!descend(problem) || !(current_.residual <= tolerance)) return false;
  iterate.copy(current_, problem.ld);
  moved = true;
  return true;
}

}  // namespace coulomb

// Derivative of a solved constraint problem: (T4) with one factorisation for forward and reverse mode.
#include "coulomb/solvers/linearization.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double deficient_pivot = 1e-6;
constexpr double rank_threshold = 1e-9;

COULOMB_SIMD void add_row(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int j = 0; j < n; ++j) y[j] += a * x[j];
}

template <class Vector>
double* grown(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

}  // namespace

void ProblemLinearization::build(const ConstraintProblem& problem, const SolverResult& result,
                                 const SolutionFactor* factor) {
  grown(lambda_, problem.ld);
  grown(c_, problem.ld);
  grown(direction_, problem.ld);
  if (modes_.size() < problem.blocks.size()) modes_.resize(problem.blocks.size());
  if (factor && factor->valid) return use(problem, result, *factor);
  problem_ = nullptr;
  system_ = &own_;
  scaled_.assign(problem);
  if (result.relaxation > 0) scaled_.set_compliance(result.relaxation);
  factorise(result);
}

void ProblemLinearization::use(const ConstraintProblem& problem, const SolverResult& result,
                               const SolutionFactor& factor) {
  problem_ = &problem;
  system_ = &factor.system;
  deficient_ = false;
  scaled_.assign_scaling(problem, factor.inverse_root.data(), factor.ref);
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
  std::copy(factor.modes.begin(), factor.modes.end(), modes_.begin());
}

void ProblemLinearization::load_matrix() {
  if (!problem_) return;
  scaled_.assign(*problem_);
  problem_ = nullptr;
}

void ProblemLinearization::factorise(const SolverResult& result) {
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
  scaled_.velocity(lambda_.data(), c_.data());
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    modes_[b] = scaled_.mode(b, lambda_.data(), c_.data());  // for the direction and alpha
    if (scaled_.blocks[b].type == BlockType::pyramid) {
      choose_facet(b, result);
    } else if (result.modes[b] == Mode::sliding &&
               modes_[b].mode != Mode::sliding) {  // a tie, taken on this side: the impulse has the direction
      const double x = lambda_[scaled_.blocks[b].row], y = lambda_[scaled_.blocks[b].row + 1],
                   t = std::sqrt(x * x + y * y);
      if (t > 0) modes_[b].nx = x / t, modes_[b].ny = y / t;
      modes_[b].k = 1;
    }
    modes_[b].mode = result.modes[b];
    modes_[b].k = std::clamp(modes_[b].k, 0.0, 1.0);
  }
  own_.set_modes(scaled_, modes_.data(), true);
  const bool factorised = own_.factorise(scaled_, 0);
  deficient_ = own_.size > 0 && !(factorised && own_.pivot_ratio >= deficient_pivot);
  if (deficient_) {
    own_.assemble(scaled_, 0);
    inverse_.compute(own_.A.data(), own_.size, own_.ld, rank_threshold);
  }
}

/// The feature on which a pyramid slides: the result's own; else, for labels set by hand, that of z or of the impulse.
void ProblemLinearization::choose_facet(int b, const SolverResult& result) {
  if (result.modes[b] != Mode::sliding) return;
  int facet = static_cast<int>(result.facets.size()) > b ? result.facets[b] : -1;
  if (facet < 0) facet = modes_[b].facet;
  if (facet < 0) facet = facet_of_impulse(scaled_.blocks[b], lambda_.data() + scaled_.blocks[b].row);
  scaled_.set_facet(b, std::max(facet, 0), modes_[b]);
}

/// out = B Y or C^T Y, the scaling included.
void ProblemLinearization::gather(bool of_b, const double* Y, double* out, int ncols, int ld) const {
  for (int i = 0; i < system_->size; ++i) {
    const ReducedRow& r = system_->rows[i];
    double* target = out + static_cast<long>(i) * ld;
    std::fill(target, target + ncols, 0.0);
    const double d = scaled_.inverse_root[r.row];
    if (of_b ? r.one_b : r.one_c) {
      add_row(d, Y + static_cast<long>(of_b ? r.row_b : r.row_c) * ld, ncols, target);
      continue;
    }
    const double* a = of_b ? r.b : r.c;
    for (int k = 0; k < 3; ++k)
      if (a[k] != 0) add_row(d * a[k], Y + static_cast<long>(r.row + k) * ld, ncols, target);
  }
}

/// out = B^T x or C x, the scaling included.
void ProblemLinearization::scatter(bool of_b, const double* x, double* out, int ncols, int ld) const {
  for (int i = 0; i < scaled_.n; ++i)
    std::fill(out + static_cast<long>(i) * ld, out + static_cast<long>(i) * ld + ncols, 0.0);
  for (int i = 0; i < system_->size; ++i) {
    const ReducedRow& r = system_->rows[i];
    const double* source = x + static_cast<long>(i) * ld;
    const double d = scaled_.inverse_root[r.row];
    if (of_b ? r.one_b : r.one_c) {
      add_row(d, source, ncols, out + static_cast<long>(of_b ? r.row_b : r.row_c) * ld);
      continue;
    }
    const double* a = of_b ? r.b : r.c;
    for (int k = 0; k < 3; ++k)
      if (a[k] != 0) add_row(d * a[k], source, ncols, out + static_cast<long>(r.row + k) * ld);
  }
}

void ProblemLinearization::reduced_rows(const double* Y, double* BY, int ncols, int ld) const {
  gather(true, Y, BY, ncols, ld);
}
void ProblemLinearization::expand_transposed(const double* Y, double* CtY, int ncols, int ld) const {
  gather(false, Y, CtY, ncols, ld);
}
void ProblemLinearization::expand(const double* x, double* Cx, int ncols, int ld) const {
  scatter(false, x, Cx, ncols, ld);
}
void ProblemLinearization::reduced_rows_transposed(const double* x, double* Btx, int ncols, int ld) const {
  scatter(true, x, Btx, ncols, ld);
}

void ProblemLinearization::solve_reduced(double* rhs, int ncols, int ld) {
  if (deficient_) {
    inverse_.solve(rhs, ld, ncols);
  } else if (system_->symmetric) {
    dense::cholesky_solve(system_->A.data(), system_->size, system_->ld, rhs, ld, ncols);
  } else {
    dense::lu_solve(system_->A.data(), system_->size, system_->ld, system_->pivot.data(), rhs, ld, ncols);
  }
}

void ProblemLinearization::solve_reduced_transposed(double* rhs, int ncols, int ld) {
  if (deficient_) {
    inverse_.solve_transposed(rhs, ld, ncols);
  } else if (system_->symmetric) {
    dense::cholesky_solve(system_->A.data(), system_->size, system_->ld, rhs, ld, ncols);
  } else {
    dense::lu_solve_transposed(system_->A.data(), system_->size, system_->ld, system_->pivot.data(), rhs, ld, ncols);
  }
}

void ProblemLinearization::solve(const double* s, double* dlambda, int ncols, int ld) {
  double* x = grown(buffer_, static_cast<std::size_t>(system_->size) * static_cast<std::size_t>(ld));
  gather(true, s, x, ncols, ld);
  solve_reduced(x, ncols, ld);
  for (int i = 0; i < system_->size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(false, x, dlambda, ncols, ld);
}

void ProblemLinearization::solve_transposed(const double* w, double* z, int ncols, int ld) {
  double* x = grown(buffer_, static_cast<std::size_t>(system_->size) * static_cast<std::size_t>(ld));
  gather(false, w, x, ncols, ld);
  solve_reduced_transposed(x, ncols, ld);
  for (int i = 0; i < system_->size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(true, x, z, ncols, ld);
}

void ProblemLinearization::solve_transposed(const double* w, double* z) { solve_transposed(w, z, 1, 1); }

void ProblemLinearization::operator_matrix(double* K, int ld) {
  for (int i = 0; i < scaled_.n; ++i) {
    std::fill(K + static_cast<long>(i) * ld, K + static_cast<long>(i) * ld + ld, 0.0);
    K[static_cast<long>(i) * ld + i] = 1;
  }
  solve(K, K, scaled_.n, ld);
}

void ProblemLinearization::response(const double* p, double* out) {
  load_matrix();
  std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
  dense::add_weighted_rows(scaled_.G.data(), scaled_.n, scaled_.ld, p, c_.data());
  for (int i = 0; i < scaled_.n; ++i) c_[i] /= scaled_.inverse_root[i];
  solve(c_.data(), out, 1, 1);
  for (int i = 0; i < scaled_.n; ++i) out[i] += p[i] * scaled_.inverse_root[i];
}

void ProblemLinearization::dlambda_dmu(int block, double* out) {
  double* p = direction_.data();
  std::fill(p, p + scaled_.ld, 0.0);
  const int row = scaled_.blocks[block].row;
  if (modes_[block].mode == Mode::sliding) {  // p = lambda_N n, n the direction of the friction impulse
    const double normal = lambda_[row + 2] * scaled_.ref;
    p[row] = normal * modes_[block].nx;
    p[row + 1] = normal * modes_[block].ny;
  }
  response(p, out);
}

// The columns of dlambda_dmu(block, out) together: p has two entries, so G p needs no product of matrices.
void ProblemLinearization::dlambda_dmu(double* out, int ld) {
  load_matrix();
  const auto normal = [&](const Block& b) { return lambda_[b.row + 2] * scaled_.ref; };
  for (int i = 0; i < scaled_.n; ++i) {
    const double* G = scaled_.G.data() + static_cast<long>(i) * scaled_.ld;
    double* target = out + static_cast<long>(i) * ld;
    std::fill(target, target + ld, 0.0);
    for (int b = 0; b < scaled_.num_blocks; ++b) {
      const Block& block = scaled_.blocks[b];
      if (modes_[b].mode != Mode::sliding) continue;
      target[b] =
          normal(block) * (G[block.row] * modes_[b].nx + G[block.row + 1] * modes_[b].ny) / scaled_.inverse_root[i];
    }
  }
  solve(out, out, scaled_.num_blocks, ld);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    if (modes_[b].mode != Mode::sliding) continue;
    const double p = normal(block) * scaled_.inverse_root[block.row];
    out[static_cast<long>(block.row) * ld + b] += p * modes_[b].nx;
    out[static_cast<long>(block.row + 1) * ld + b] += p * modes_[b].ny;
  }
}

void ProblemLinearization::dlambda_dbound(int block, double* out) {
  double* p = direction_.data();
  std::fill(p, p + scaled_.ld, 0.0);
  const int row = scaled_.blocks[block].row;
  if (modes_[block].mode == Mode::upper) p[row] = 1 / scaled_.inverse_root[row];
  if (modes_[block].mode == Mode::lower) p[row] = -1 / scaled_.inverse_root[row];
  response(p, out);
}

}  // namespace coulomb

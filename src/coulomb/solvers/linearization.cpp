// Derivative of a solved constraint problem: (T4) with one factorisation for forward and reverse mode.
#include "coulomb/solvers/linearization.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void add_row(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int j = 0; j < n; ++j) y[j] += a * x[j];
}

template <class Vector>
double* grown(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

}  // namespace

void ProblemLinearization::build(const ConstraintProblem& problem, const SolverResult& result) {
  grown(lambda_, problem.ld);
  grown(c_, problem.ld);
  grown(direction_, problem.ld);
  if (modes_.size() < problem.blocks.size()) modes_.resize(problem.blocks.size());

  // Solvers of the problem as given leave redundant rows to a compliance, too.
  const bool regularised = result.compliance > 0;
  levels_ = result.relaxation > 0 ? 0 : std::max(result.levels, 1);
  scaled_.assign(problem);
  scaled_.set_compliance(regularised ? result.compliance : SolverSettings().compliance);

  // Labels are of level 0, directions and slips of the last level: all rounds may use its factor, their own differ by O(epsilon).
  scaled_.to_scaled(result.lambda_0.data(), lambda_.data());
  if (result.levels > 0) scaled_.set_level(lambda_.data());
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
  if (regularised) scaled_.velocity(lambda_.data(), c_.data());
  else scaled_.exact_velocity(lambda_.data(), c_.data());
  choose_modes(result);
  system_.set_modes(scaled_, modes_.data());
  system_.factorise(scaled_, 0);
  round_weights();
}

/// The labels of the result; a sliding contact moves against its impulse, whose direction is surer than that of a micro-slip.
void ProblemLinearization::choose_modes(const SolverResult& result) {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    modes_[b] = scaled_.mode(b, lambda_.data(), c_.data());
    if (block.type == BlockType::pyramid) {
      choose_facet(b, result);
    } else if (result.modes[b] == Mode::sliding && block.mu > 0) {
      const double* l = lambda_.data() + block.row;
      const double* c = c_.data() + block.row;
      const double t = std::sqrt(l[0] * l[0] + l[1] * l[1]);
      const double slip = std::sqrt(c[0] * c[0] + c[1] * c[1]);
      if (t > 0) {
        modes_[b].nx = l[0] / t;
        modes_[b].ny = l[1] / t;
        modes_[b].k = t / (t + slip);
      }
    }
    modes_[b].mode = result.modes[b];
    modes_[b].k = std::clamp(modes_[b].k, 0.0, 1.0);
  }
}

/// B E C: what a round adds to the right-hand side, of the same block only.
void ProblemLinearization::round_weights() {
  round_weights_.clear();
  for (int i = 0; i < system_.size; ++i) {
    const ReducedRow& left = system_.rows[i];
    for (int j = std::max(0, i - 5); j < std::min(system_.size, i + 6); ++j) {
      const ReducedRow& right = system_.rows[j];
      if (right.row != left.row) continue;
      double value = 0;
      for (int k = 0; k < 3; ++k) {
        const int row = left.row + k;
        const double b = left.one_b ? (row == left.row_b ? 1.0 : 0.0) : left.b[k];
        const double c = right.one_c ? (row == right.row_c ? 1.0 : 0.0) : right.c[k];
        if (b != 0 && c != 0) value += b * scaled_.E[row] * c;
      }
      if (value != 0) round_weights_.push_back({i, j, value});
    }
  }
}

bool ProblemLinearization::deficient() {
  const int size = system_.size;
  double* inverse = grown(first_round_, static_cast<std::size_t>(size) * size);
  std::fill_n(inverse, static_cast<std::size_t>(size) * size, 0.0);
  for (int i = 0; i < size; ++i) inverse[static_cast<std::size_t>(i) * size + i] = 1;
  system_.solve(scaled_, inverse, size, size);
  double directions = 0;
  for (const RoundWeight& w : round_weights_)
    directions += w.value * inverse[static_cast<std::size_t>(w.column) * size + w.row];
  return directions > 0.5;
}

/// From x = A^-1 b to the last level's, b in first_round_.
void ProblemLinearization::repeat(double* x, int ncols, int ld, bool transposed) {
  const int size = system_.size;
  double* next = grown(second_round_, static_cast<std::size_t>(size) * ld);
  for (int level = 0; level < levels_; ++level) {
    std::copy_n(first_round_.data(), static_cast<std::size_t>(size) * ld, next);
    for (const RoundWeight& w : round_weights_) {
      const int to = transposed ? w.column : w.row;
      const int from = transposed ? w.row : w.column;
      add_row(w.value, x + static_cast<long>(from) * ld, ncols, next + static_cast<long>(to) * ld);
    }
    if (transposed) system_.solve_transposed(scaled_, next, ncols, ld);
    else system_.solve(scaled_, next, ncols, ld);
    std::copy_n(next, static_cast<std::size_t>(size) * ld, x);
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
  for (int i = 0; i < system_.size; ++i) {
    const ReducedRow& r = system_.rows[i];
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
  for (int i = 0; i < system_.size; ++i) {
    const ReducedRow& r = system_.rows[i];
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
  std::copy_n(rhs, static_cast<std::size_t>(system_.size) * ld,
              grown(first_round_, static_cast<std::size_t>(system_.size) * ld));
  system_.solve(scaled_, rhs, ncols, ld);
  repeat(rhs, ncols, ld, false);
}

void ProblemLinearization::solve_reduced_transposed(double* rhs, int ncols, int ld) {
  std::copy_n(rhs, static_cast<std::size_t>(system_.size) * ld,
              grown(first_round_, static_cast<std::size_t>(system_.size) * ld));
  system_.solve_transposed(scaled_, rhs, ncols, ld);
  repeat(rhs, ncols, ld, true);
}

void ProblemLinearization::solve(const double* s, double* dlambda, int ncols, int ld) {
  double* x = grown(buffer_, static_cast<std::size_t>(system_.size) * static_cast<std::size_t>(ld));
  gather(true, s, x, ncols, ld);
  solve_reduced(x, ncols, ld);
  for (int i = 0; i < system_.size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(false, x, dlambda, ncols, ld);
}

void ProblemLinearization::solve_transposed(const double* w, double* z, int ncols, int ld) {
  double* x = grown(buffer_, static_cast<std::size_t>(system_.size) * static_cast<std::size_t>(ld));
  gather(false, w, x, ncols, ld);
  solve_reduced_transposed(x, ncols, ld);
  for (int i = 0; i < system_.size; ++i)
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

// Level 0 has c = (G + E) p, later ones G p - E (dlambda - p).
void ProblemLinearization::response(const double* p, double* out) {
  const int n = scaled_.n;
  double* x = grown(buffer_, static_cast<std::size_t>(system_.size));
  std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
  scaled_.add_product(p, c_.data());
  for (int i = 0; i < n; ++i) c_[i] /= scaled_.inverse_root[i];
  gather(true, c_.data(), x, 1, 1);
  system_.solve(scaled_, x, 1, 1);

  for (int i = 0; i < n; ++i) c_[i] -= scaled_.E[i] * p[i] / scaled_.inverse_root[i];
  gather(true, c_.data(), grown(first_round_, static_cast<std::size_t>(system_.size)), 1, 1);
  repeat(x, 1, 1, false);
  for (int i = 0; i < system_.size; ++i) x[i] = -x[i];
  scatter(false, x, out, 1, 1);
  for (int i = 0; i < n; ++i) out[i] += p[i] * scaled_.inverse_root[i];
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

void ProblemLinearization::dlambda_dmu(double* out, int ld) {
  std::vector<double> column(scaled_.n);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    dlambda_dmu(b, column.data());
    for (int i = 0; i < scaled_.n; ++i) out[static_cast<long>(i) * ld + b] = column[i];
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

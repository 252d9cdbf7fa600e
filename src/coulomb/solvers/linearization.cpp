// Derivative of a solved constraint problem: (T4) with one factorisation for forward and reverse mode.
#include "coulomb/solvers/linearization.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double negligible_round = 1e-5;  // its square is what is then neglected

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
  compliance_ = regularised ? result.compliance : SolverSettings().compliance;
  scaled_.set_compliance(compliance_);

  build_level(1, result, regularised);
  build_sharper_levels(result);
  round_weights();
  two_levels_ = regularised && levels_ > 0 && slides() && redundant();
  if (two_levels_) {
    build_level(0, result, regularised);
    scaled_.to_scaled(result.lambda_0.data(), grown(lambda_0_, problem.ld));
  }
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
}

/// Labels are those of level 0, directions and slips the level's own.
void ProblemLinearization::build_level(int level, const SolverResult& result, bool regularised) {
  scaled_.to_scaled(result.lambda_0.data(), lambda_.data());
  if (level == 0) {
    scaled_.set_level(nullptr);
  } else {
    if (result.levels > 0) scaled_.set_level(lambda_.data());
    scaled_.to_scaled(result.lambda.data(), lambda_.data());
  }
  if (regularised) scaled_.velocity(lambda_.data(), c_.data());
  else scaled_.exact_velocity(lambda_.data(), c_.data());
  choose_modes(result);
  systems_[level].set_modes(scaled_, modes_.data());
  systems_[level].factorise(scaled_, 0);
}

/// The same rows with smaller compliances. Only where the usual levels left something.
void ProblemLinearization::build_sharper_levels(const SolverResult& result) {
  sharper_levels_ = result.relaxation > 0 ? 0 : result.sharper_levels;
  if (sharper_levels_ == 0) return;
  if (static_cast<int>(sharper_.size()) < sharper_levels_) sharper_.resize(static_cast<std::size_t>(sharper_levels_));
  for (int level = 0; level < sharper_levels_; ++level) {
    scaled_.set_compliance(compliance_ * std::pow(sharpening, level + 1));
    sharper_[level].set_modes(scaled_, modes_.data());
    sharper_[level].factorise(scaled_, 0);
  }
  scaled_.set_compliance(compliance_);
}

/// Does a round move anything? It does by the compliance over the least pivot.
bool ProblemLinearization::redundant() {
  const int size = last().size;
  double* first = grown(first_round_, static_cast<std::size_t>(size));
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) first[i] = std::sin(1.0 + 2.4 * i);  // in no special direction
  std::copy_n(first, size, x);
  systems_[1].solve(scaled_, x, 1, 1);
  std::vector<double>& before = rows_;
  grown(before, static_cast<std::size_t>(size));
  std::copy_n(x, size, before.begin());
  repeat(x, 1, 1, false);
  double moved = 0;
  double largest = 0;
  for (int i = 0; i < size; ++i) {
    moved = std::max(moved, std::abs(x[i] - before[i]));
    largest = std::max(largest, std::abs(x[i]));
  }
  return !(moved <= negligible_round * largest);
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
  for (int i = 0; i < last().size; ++i) {
    const ReducedRow& left = last().rows[i];
    for (int j = std::max(0, i - 5); j < std::min(last().size, i + 6); ++j) {
      const ReducedRow& right = last().rows[j];
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
  const int size = last().size;
  double* inverse = grown(first_round_, static_cast<std::size_t>(size) * size);
  std::fill_n(inverse, static_cast<std::size_t>(size) * size, 0.0);
  for (int i = 0; i < size; ++i) inverse[static_cast<std::size_t>(i) * size + i] = 1;
  systems_[1].solve(scaled_, inverse, size, size);
  double directions = 0;
  for (const RoundWeight& w : round_weights_)
    directions += w.value * inverse[static_cast<std::size_t>(w.column) * size + w.row];
  return directions > 0.5;
}

/// to += weight B E C x, or its transpose.
void ProblemLinearization::add_round(const double* x, double* to, int ncols, int ld, bool transposed,
                                     double weight) const {
  for (const RoundWeight& w : round_weights_) {
    const int row = transposed ? w.column : w.row;
    const int from = transposed ? w.row : w.column;
    add_row(weight * w.value, x + static_cast<long>(from) * ld, ncols, to + static_cast<long>(row) * ld);
  }
}

void ProblemLinearization::add_rows(const double* rows, double* to, int ncols, int ld) const {
  for (int i = 0; i < last().size; ++i)
    add_row(1, rows + static_cast<long>(i) * ld, ncols, to + static_cast<long>(i) * ld);
}

/// From the last usual level to the last of all: x = A_k^-1 (b + B E_k C x) of every level k with a smaller compliance.
void ProblemLinearization::sharpen(double* x, const double* b, int ncols, int ld) {
  if (sharper_levels_ == 0) return;
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  double* next = grown(second_round_, length);
  for (int level = 0; level < sharper_levels_; ++level) {
    const double smaller = std::pow(sharpening, level + 1);
    std::copy_n(b, length, next);
    add_round(x, next, ncols, ld, false, smaller);
    scaled_.set_compliance(compliance_ * smaller);
    sharper_[level].solve(scaled_, next, ncols, ld);
    std::copy_n(next, length, x);
  }
  scaled_.set_compliance(compliance_);
}

/// The transpose: x becomes what the last usual level is given, and the sum of what the others make of b's cotangent is returned; null
/// where there are none.
double* ProblemLinearization::sharpen_transposed(double* x, int ncols, int ld) {
  if (sharper_levels_ == 0) return nullptr;
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  double* sum = grown(sum_, length);
  double* next = grown(second_round_, length);
  std::fill_n(sum, length, 0.0);
  for (int level = sharper_levels_ - 1; level >= 0; --level) {
    const double smaller = std::pow(sharpening, level + 1);
    scaled_.set_compliance(compliance_ * smaller);
    sharper_[level].solve_transposed(scaled_, x, ncols, ld);
    add_rows(x, sum, ncols, ld);
    std::fill_n(next, length, 0.0);
    add_round(x, next, ncols, ld, true, smaller);
    std::copy_n(next, length, x);
  }
  scaled_.set_compliance(compliance_);
  return sum;
}

void ProblemLinearization::solve_upper_transposed(double* x, double* lowest, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  const double* sharper = sharpen_transposed(x, ncols, ld);
  systems_[1].solve_transposed(scaled_, x, ncols, ld);
  std::copy_n(x, length, lowest);
  double* next = grown(second_round_, length);
  for (int level = 1; level < levels_; ++level) {
    std::fill_n(next, length, 0.0);
    add_round(lowest, next, ncols, ld, true);
    systems_[1].solve_transposed(scaled_, next, ncols, ld);
    std::copy_n(next, length, lowest);
    add_rows(next, x, ncols, ld);
  }
  if (sharper) add_rows(sharper, x, ncols, ld);
}

void ProblemLinearization::solve_upper(double* x, const double* b, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  systems_[1].solve(scaled_, x, ncols, ld);
  double* next = grown(second_round_, length);
  for (int level = 1; level < levels_; ++level) {
    std::copy_n(b, length, next);
    add_round(x, next, ncols, ld, false);
    systems_[1].solve(scaled_, next, ncols, ld);
    std::copy_n(next, length, x);
  }
  sharpen(x, b, ncols, ld);
}

/// From x = A^-1 b to the last level's, b in first_round_.
void ProblemLinearization::repeat(double* x, int ncols, int ld, bool transposed) {
  const int size = last().size;
  double* next = grown(second_round_, static_cast<std::size_t>(size) * ld);
  for (int level = 0; level < levels_; ++level) {
    std::copy_n(first_round_.data(), static_cast<std::size_t>(size) * ld, next);
    add_round(x, next, ncols, ld, transposed);
    if (transposed) systems_[1].solve_transposed(scaled_, next, ncols, ld);
    else systems_[1].solve(scaled_, next, ncols, ld);
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
void ProblemLinearization::gather(const ReducedSystem& system, bool of_b, const double* Y, double* out, int ncols,
                                  int ld) const {
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& r = system.rows[i];
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
void ProblemLinearization::scatter(const ReducedSystem& system, bool of_b, const double* x, double* out, int ncols,
                                   int ld) const {
  for (int i = 0; i < scaled_.n; ++i)
    std::fill(out + static_cast<long>(i) * ld, out + static_cast<long>(i) * ld + ncols, 0.0);
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& r = system.rows[i];
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
  gather(last(), true, Y, BY, ncols, ld);
}
void ProblemLinearization::expand_transposed(const double* Y, double* CtY, int ncols, int ld) const {
  gather(last(), false, Y, CtY, ncols, ld);
}
void ProblemLinearization::expand(const double* x, double* Cx, int ncols, int ld) const {
  scatter(last(), false, x, Cx, ncols, ld);
}
void ProblemLinearization::reduced_rows_transposed(const double* x, double* Btx, int ncols, int ld) const {
  scatter(last(), true, x, Btx, ncols, ld);
}
void ProblemLinearization::reduced_rows(int level, const double* Y, double* BY, int ncols, int ld) const {
  gather(systems_[level], true, Y, BY, ncols, ld);
}
void ProblemLinearization::expand_transposed(int level, const double* Y, double* CtY, int ncols, int ld) const {
  gather(systems_[level], false, Y, CtY, ncols, ld);
}

void ProblemLinearization::pass_down(const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(systems_[1], true, x, rows, ncols, ld);
  weigh_rows(rows, ncols, ld);
  gather(systems_[0], false, rows, out, ncols, ld);
}

void ProblemLinearization::pass_up(const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(systems_[0], false, x, rows, ncols, ld);
  weigh_rows(rows, ncols, ld);
  gather(systems_[1], true, rows, out, ncols, ld);
}

/// Physical impulses to the velocities of the compliance.
void ProblemLinearization::weigh_rows(double* rows, int ncols, int ld) const {
  for (int i = 0; i < scaled_.n; ++i) {
    const double d = scaled_.inverse_root[i];
    const double weight = scaled_.E[i] / (d * d);
    for (int j = 0; j < ncols; ++j) rows[static_cast<long>(i) * ld + j] *= weight;
  }
}

void ProblemLinearization::solve_transposed(const double* w, double* z, double* z_0) {
  const int size = last().size;
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  double* down = grown(first_round_, static_cast<std::size_t>(size));
  double* lowest = grown(lowest_, static_cast<std::size_t>(size));
  gather(systems_[1], false, w, x, 1, 1);
  solve_upper_transposed(x, lowest, 1, 1);
  pass_down(lowest, down, 1, 1);
  systems_[0].solve_transposed(scaled_, down, 1, 1);
  for (int i = 0; i < size; ++i) {
    x[i] = -x[i];
    down[i] = -down[i];
  }
  scatter(systems_[1], true, x, z, 1, 1);
  scatter(systems_[0], true, down, z_0, 1, 1);
}

void ProblemLinearization::solve_reduced(double* rhs, int ncols, int ld) {
  std::copy_n(rhs, static_cast<std::size_t>(last().size) * ld,
              grown(first_round_, static_cast<std::size_t>(last().size) * ld));
  systems_[1].solve(scaled_, rhs, ncols, ld);
  repeat(rhs, ncols, ld, false);
  sharpen(rhs, first_round_.data(), ncols, ld);
}

void ProblemLinearization::solve_reduced_transposed(double* rhs, int ncols, int ld) {
  const double* sharper = sharpen_transposed(rhs, ncols, ld);
  std::copy_n(rhs, static_cast<std::size_t>(last().size) * ld,
              grown(first_round_, static_cast<std::size_t>(last().size) * ld));
  systems_[1].solve_transposed(scaled_, rhs, ncols, ld);
  repeat(rhs, ncols, ld, true);
  if (sharper) add_rows(sharper, rhs, ncols, ld);
}

void ProblemLinearization::solve(const double* s, double* dlambda, int ncols, int ld, const double* s_0) {
  const int size = last().size;
  const std::size_t length = static_cast<std::size_t>(size) * static_cast<std::size_t>(ld);
  double* x = grown(buffer_, length);
  gather(last(), true, s, x, ncols, ld);
  if (two_levels_) {
    double* b = grown(first_round_, length);
    double* first = grown(lowest_, length);
    double* up = grown(second_round_, length);
    std::copy_n(x, length, b);
    gather(systems_[0], true, s_0 ? s_0 : s, first, ncols, ld);
    systems_[0].solve(scaled_, first, ncols, ld);
    pass_up(first, up, ncols, ld);
    for (int i = 0; i < size; ++i) add_row(1, up + static_cast<long>(i) * ld, ncols, x + static_cast<long>(i) * ld);
    solve_upper(x, b, ncols, ld);
  } else {
    solve_reduced(x, ncols, ld);
  }
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(last(), false, x, dlambda, ncols, ld);
}

void ProblemLinearization::solve_transposed(const double* w, double* z, int ncols, int ld) {
  const int size = last().size;
  const std::size_t length = static_cast<std::size_t>(size) * static_cast<std::size_t>(ld);
  double* x = grown(buffer_, length);
  double* lowest = grown(lowest_, length);
  gather(last(), false, w, x, ncols, ld);
  if (two_levels_) solve_upper_transposed(x, lowest, ncols, ld);
  else solve_reduced_transposed(x, ncols, ld);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(last(), true, x, z, ncols, ld);
  if (!two_levels_) return;

  // And what goes through level 0.
  double* down = grown(first_round_, length);
  double* other = grown(second_round_, static_cast<std::size_t>(scaled_.n) * ld);
  pass_down(lowest, down, ncols, ld);
  systems_[0].solve_transposed(scaled_, down, ncols, ld);
  scatter(systems_[0], true, down, other, ncols, ld);
  for (int i = 0; i < scaled_.n; ++i)
    add_row(-1, other + static_cast<long>(i) * ld, ncols, z + static_cast<long>(i) * ld);
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
  double* x = grown(buffer_, static_cast<std::size_t>(last().size));
  std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
  scaled_.add_product(p, c_.data());
  for (int i = 0; i < n; ++i) c_[i] /= scaled_.inverse_root[i];
  gather(last(), true, c_.data(), x, 1, 1);
  systems_[1].solve(scaled_, x, 1, 1);

  for (int i = 0; i < n; ++i) c_[i] -= scaled_.E[i] * p[i] / scaled_.inverse_root[i];
  gather(last(), true, c_.data(), grown(first_round_, static_cast<std::size_t>(last().size)), 1, 1);
  repeat(x, 1, 1, false);
  sharpen(x, first_round_.data(), 1, 1);
  for (int i = 0; i < last().size; ++i) x[i] = -x[i];
  scatter(last(), false, x, out, 1, 1);
  for (int i = 0; i < n; ++i) out[i] += p[i] * scaled_.inverse_root[i];
}

/// The same where each level has its own: p_0 at level 0.
void ProblemLinearization::response(const double* p_0, const double* p, double* out) {
  const int n = scaled_.n;
  double* x = grown(buffer_, static_cast<std::size_t>(last().size));
  double* first = grown(rows_, static_cast<std::size_t>(n));
  const auto respond = [&](ReducedSystem& system, const double* direct, const double* below, double* dlambda) {
    std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
    scaled_.add_product(direct, c_.data());
    for (int i = 0; below && i < n; ++i) c_[i] -= scaled_.E[i] * below[i] / scaled_.inverse_root[i];
    for (int i = 0; i < n; ++i) c_[i] /= scaled_.inverse_root[i];
    gather(system, true, c_.data(), x, 1, 1);
    system.solve(scaled_, x, 1, 1);
    for (int i = 0; i < last().size; ++i) x[i] = -x[i];
    scatter(system, false, x, dlambda, 1, 1);
    for (int i = 0; i < n; ++i) dlambda[i] += direct[i] * scaled_.inverse_root[i];
  };

  respond(systems_[0], p_0, nullptr, first);
  std::copy_n(first, n, out);
  for (int level = 0; level < levels_; ++level) respond(systems_[1], p, out, out);
  for (int level = 0; level < sharper_levels_; ++level) {
    scaled_.set_compliance(compliance_ * std::pow(sharpening, level + 1));
    respond(sharper_[level], p, out, out);
  }
  scaled_.set_compliance(compliance_);
}

/// Change of an impulse that slides, per unit of friction: its normal part times its direction, scaled.
void ProblemLinearization::friction_direction(int b, const double* lambda, double* p) const {
  std::fill(p, p + scaled_.ld, 0.0);
  const Block& block = scaled_.blocks[b];
  const double* l = lambda + block.row;
  if (modes_[b].mode != Mode::sliding) return;
  const bool from_impulse = block.type == BlockType::cone && block.mu > 0;
  p[block.row] = scaled_.ref * (from_impulse ? l[0] / block.mu : l[2] * modes_[b].nx);
  p[block.row + 1] = scaled_.ref * (from_impulse ? l[1] / block.mu : l[2] * modes_[b].ny);
}

void ProblemLinearization::dlambda_dmu(int block, double* out) {
  friction_direction(block, lambda_.data(), direction_.data());
  if (!two_levels_) return response(direction_.data(), out);
  friction_direction(block, lambda_0_.data(), grown(direction_0_, direction_.size()));
  response(direction_0_.data(), direction_.data(), out);
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
  if (two_levels_) response(p, p, out);
  else response(p, out);
}

}  // namespace coulomb

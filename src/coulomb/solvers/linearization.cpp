// Derivative of a solved constraint problem: docs/theory.md (L3) with one factorisation for forward and reverse mode.
#include "coulomb/solvers/linearization.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double negligible_round = 1e-5;  // its square is what is then neglected
constexpr double negligible_speed = 1e-8;  // scaled: of a level whose right-hand side is taken to be the last one's

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
  for (auto* values : {&lambda_, &c_, &direction_}) grown(*values, problem.ld);
  if (modes_.size() < problem.blocks.size()) modes_.resize(problem.blocks.size());

  // Solvers of the problem as given leave redundant rows to a compliance, too.
  const bool regularised = result.compliance > 0;
  levels_ = result.relaxation > 0 ? 0 : std::max(result.levels, 1);
  scaled_.assign(problem);
  compliance_ = regularised ? result.compliance : SolverSettings().compliance;
  sharper_levels_ = result.relaxation > 0 ? 0 : result.sharper_levels;
  scaled_.set_compliance(compliance_);

  lower_ = 0;
  num_further_ = 0;
  yields_.assign(problem.blocks.size(), {});
  reserve_kinks();
  if (lower_lambda_.empty()) lower_lambda_.resize(1);
  scaled_.to_scaled(result.lambda_0.data(), grown(lower_lambda_[0], problem.ld));
  build_last(result, regularised);
  const bool redundant_rows = levels_ > 0 && redundant();
  const int lower = redundant_rows && regularised ? find_lower_levels() : 0;
  if (redundant_rows && let_rows_yield()) build_last(result, regularised);
  at_kink_ = find_kinks(result);
  build_sharper_levels();
  for (int level = 0; level < lower; ++level) build_level(level, result);
  lower_ = lower;
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
}

/// Labels are those of level 0, directions and slips the level's own.
void ProblemLinearization::build_last(const SolverResult& result, bool regularised) {
  scaled_.set_level(result.levels > 0 ? lower_lambda_[0].data() : nullptr);
  scaled_.to_scaled(result.lambda.data(), lambda_.data());
  if (regularised) scaled_.velocity(lambda_.data(), c_.data());
  else scaled_.exact_velocity(lambda_.data(), c_.data());
  choose_modes(result);
  last_.set_modes(scaled_, modes_.data());
  last_.factorise(scaled_, 0);
  round_weights();
}

/// The same rows with smaller compliances. Only where the usual levels left something.
void ProblemLinearization::build_sharper_levels() {
  if (sharper_levels_ == 0) return;
  if (static_cast<int>(sharper_.size()) < sharper_levels_) sharper_.resize(static_cast<std::size_t>(sharper_levels_));
  for (int level = levels_ + 1; level <= total_levels(); ++level) {
    scaled_.set_compliance(compliance_ * share(level));
    upper_system(level).set_modes(scaled_, modes_.data());
    upper_system(level).factorise(scaled_, 0);
  }
  scaled_.set_compliance(compliance_);
}

double ProblemLinearization::share(int level) const {
  return level <= levels_ ? 1.0 : std::pow(sharpening, level - levels_);
}

void ProblemLinearization::build_level(int level, const SolverResult& result) {
  scaled_.set_level(level > 0 ? lower_lambda_[level - 1].data() : nullptr);
  std::copy_n(lower_lambda_[level].begin(), scaled_.ld, lambda_.begin());
  scaled_.velocity(lambda_.data(), c_.data());
  choose_modes(result);
  if (static_cast<int>(lower_systems_.size()) <= level) lower_systems_.resize(level + 1);
  lower_systems_[level].set_modes(scaled_, modes_.data());
  lower_systems_[level].factorise(scaled_, 0);
}

/// The impulses of the lower levels, and how many levels count by themselves: what a level's own right-hand side changes is that of the
/// difference of impulses, dG (lambda_k - lambda), through the levels above. Level 0 is known; the next follow from it and the modes.
int ProblemLinearization::find_lower_levels() {
  const int size = last_.size;
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  double* round = grown(second_round_, static_cast<std::size_t>(size));
  double* again = grown(first_round_, static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) x[i] = std::sin(1.0 + 2.4 * i);
  last_.solve(scaled_, x, 1, 1);
  const auto moved_by_round = [&] {  // the speed, of impulses x = A^-1 B E C x
    std::fill_n(round, size, 0.0);
    add_round(x, round, 1, 1, false);
    std::copy_n(round, size, x);
    last_.solve(scaled_, x, 1, 1);
    std::fill_n(again, size, 0.0);
    add_round(x, again, 1, 1, false);
    double energy = 0;
    for (int i = 0; i < size; ++i) energy += x[i] * (round[i] - again[i]);
    return std::sqrt(std::abs(energy));
  };
  const double once = moved_by_round();
  const double twice = moved_by_round();

  int count = slides() ? 1 : 0;
  const int below = sharper_levels_ > 0 ? levels_ + 1 : levels_;  // the usual ones that are not the last
  for (int level = 0; level < below; ++level) {
    if (static_cast<int>(lower_lambda_.size()) <= level) lower_lambda_.emplace_back();
    if (level > 0) {
      double* lambda = grown(lower_lambda_[level], scaled_.ld);
      scaled_.set_level(lower_lambda_[level - 1].data());
      last_.step(scaled_, lambda_.data(), nullptr, lambda, grown(rows_, scaled_.ld));
    }
    double difference = 0;
    for (int i = 0; i < scaled_.n; ++i)
      difference = std::max(difference, std::abs(lower_lambda_[level][i] - lambda_[i]));
    if (difference * (level + 1 < below ? twice : once) > negligible_speed) count = level + 1;
    else if (difference * once <= negligible_speed) break;
  }
  return count;
}

void ProblemLinearization::impulses(int level, double* lambda) const {
  for (int i = 0; i < scaled_.n; ++i) lambda[i] = lower_lambda_[level][i] * scaled_.inverse_root[i] * scaled_.ref;
}

/// Does a round move anything? It does by the compliance over the least pivot.
bool ProblemLinearization::redundant() {
  const int size = last().size;
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  double* round = grown(second_round_, static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) x[i] = std::sin(1.0 + 2.4 * i);  // in no special direction
  last_.solve(scaled_, x, 1, 1);
  std::fill_n(round, size, 0.0);
  add_round(x, round, 1, 1, false);
  last_.solve(scaled_, round, 1, 1);

  double moved = 0;
  double largest = 0;
  for (int i = 0; i < size; ++i) {
    moved = std::max(moved, std::abs(round[i]));
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
    apply(yields_[b], b, modes_[b]);
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
  last_.solve(scaled_, inverse, size, size);
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

void ProblemLinearization::solve_upper_transposed(double* x, double* lowest, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  double* next = grown(second_round_, length);
  std::copy_n(x, length, next);
  std::fill_n(x, length, 0.0);
  for (int level = total_levels(); level >= lower_; --level) {
    upper_system(level).solve_transposed(scaled_, next, ncols, ld);
    for (int i = 0; i < last().size; ++i)
      add_row(1, next + static_cast<long>(i) * ld, ncols, x + static_cast<long>(i) * ld);
    std::copy_n(next, length, lowest);
    if (level == lower_) return;
    std::fill_n(next, length, 0.0);
    add_round(lowest, next, ncols, ld, true, share(level));
  }
}

void ProblemLinearization::solve_upper(double* x, const double* b, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  double* next = grown(second_round_, length);
  upper_system(lower_).solve(scaled_, x, ncols, ld);
  for (int level = lower_ + 1; level <= total_levels(); ++level) {
    std::copy_n(b, length, next);
    add_round(x, next, ncols, ld, false, share(level));
    upper_system(level).solve(scaled_, next, ncols, ld);
    std::copy_n(next, length, x);
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
  gather(system(level), true, Y, BY, ncols, ld);
}
void ProblemLinearization::expand_transposed(int level, const double* Y, double* CtY, int ncols, int ld) const {
  gather(system(level), false, Y, CtY, ncols, ld);
}

void ProblemLinearization::pass_down(int level, const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(system(level + 1), true, x, rows, ncols, ld);
  weigh_rows(share(level + 1), rows, ncols, ld);
  gather(system(level), false, rows, out, ncols, ld);
}

void ProblemLinearization::pass_up(int level, const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(system(level), false, x, rows, ncols, ld);
  weigh_rows(share(level + 1), rows, ncols, ld);
  gather(system(level + 1), true, rows, out, ncols, ld);
}

/// Physical impulses to the velocities of the compliance.
void ProblemLinearization::weigh_rows(double share_of_compliance, double* rows, int ncols, int ld) const {
  for (int i = 0; i < scaled_.n; ++i) {
    const double d = scaled_.inverse_root[i];
    const double weight = share_of_compliance * scaled_.E[i] / (d * d);
    for (int j = 0; j < ncols; ++j) rows[static_cast<long>(i) * ld + j] *= weight;
  }
}

void ProblemLinearization::solve_transposed(const double* w, double* z, double* const* z_lower) {
  const int size = last().size;
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  double* down = grown(first_round_, static_cast<std::size_t>(size));
  double* lowest = grown(lowest_, static_cast<std::size_t>(size));
  const auto store = [&](const ReducedSystem& system, double* values, double* to) {
    for (int i = 0; i < size; ++i) values[i] = -values[i];
    scatter(system, true, values, to, 1, 1);
    for (int i = 0; i < size; ++i) values[i] = -values[i];
  };
  gather(last(), false, w, x, 1, 1);
  solve_upper_transposed(x, lowest, 1, 1);
  store(last(), x, z);
  for (int level = lower_ - 1; level >= 0; --level) {
    pass_down(level, lowest, down, 1, 1);
    solve_level_transposed(level, down, 1, 1);
    store(system(level), down, z_lower[level]);
    std::copy_n(down, size, lowest);
  }
}

void ProblemLinearization::solve_reduced(double* rhs, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  std::copy_n(rhs, length, grown(first_round_, length));
  solve_upper(rhs, first_round_.data(), ncols, ld);
}

void ProblemLinearization::solve_reduced_transposed(double* rhs, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  solve_upper_transposed(rhs, grown(first_round_, length), ncols, ld);
}

void ProblemLinearization::solve(const double* s, double* dlambda, int ncols, int ld, const double* const* s_lower) {
  const int size = last().size;
  const std::size_t length = static_cast<std::size_t>(size) * static_cast<std::size_t>(ld);
  double* x = grown(buffer_, length);
  const auto add = [&](const double* from, double* to) {
    for (int i = 0; i < size; ++i) add_row(1, from + static_cast<long>(i) * ld, ncols, to + static_cast<long>(i) * ld);
  };
  gather(last(), true, s, x, ncols, ld);
  if (lower_ > 0) {
    double* b = grown(first_round_, length);
    double* own = grown(lowest_, length);
    double* up = grown(second_round_, length);
    std::copy_n(x, length, b);
    for (int level = 0; level < lower_; ++level) {
      gather(system(level), true, s_lower ? s_lower[level] : s, own, ncols, ld);
      if (level > 0) add(up, own);
      solve_level(level, own, ncols, ld);
      pass_up(level, own, up, ncols, ld);
    }
    add(up, x);
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
  if (lower_ > 0) solve_upper_transposed(x, lowest, ncols, ld);
  else solve_reduced_transposed(x, ncols, ld);
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < ncols; ++j) x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(last(), true, x, z, ncols, ld);

  // And what goes through the lower levels.
  for (int level = lower_ - 1; level >= 0; --level) {
    double* down = grown(first_round_, length);
    double* other = grown(second_round_, static_cast<std::size_t>(scaled_.n) * ld);
    pass_down(level, lowest, down, ncols, ld);
    solve_level_transposed(level, down, ncols, ld);
    std::copy_n(down, length, lowest);
    scatter(system(level), true, down, other, ncols, ld);
    for (int i = 0; i < scaled_.n; ++i)
      add_row(-1, other + static_cast<long>(i) * ld, ncols, z + static_cast<long>(i) * ld);
  }
}

void ProblemLinearization::solve_transposed(const double* w, double* z) { solve_transposed(w, z, 1, 1); }

void ProblemLinearization::operator_matrix(double* K, int ld) {
  for (int i = 0; i < scaled_.n; ++i) {
    std::fill(K + static_cast<long>(i) * ld, K + static_cast<long>(i) * ld + ld, 0.0);
    K[static_cast<long>(i) * ld + i] = 1;
  }
  solve(K, K, scaled_.n, ld);
}

// Level 0 has c = (G + E) p, later ones G p - E (dlambda - p), dlambda of the level below.
void ProblemLinearization::response(const double* const* p_lower, const double* p, double* out) {
  const int n = scaled_.n;
  double* x = grown(buffer_, static_cast<std::size_t>(last().size));
  double* below = grown(rows_, static_cast<std::size_t>(n));
  std::fill_n(below, n, 0.0);
  for (int level = 0; level <= total_levels(); ++level) {
    if (level > levels_) scaled_.set_compliance(compliance_ * share(level));
    const double* direct = level < lower_ ? p_lower[level] : p;
    ReducedSystem& own = level < lower_ ? lower_systems_[level] : upper_system(level);
    std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
    scaled_.add_product(direct, c_.data());
    for (int i = 0; i < n; ++i)
      c_[i] = (c_[i] - scaled_.E[i] * below[i] / scaled_.inverse_root[i]) / scaled_.inverse_root[i];
    gather(own, true, c_.data(), x, 1, 1);
    own.solve(scaled_, x, 1, 1);
    for (int i = 0; i < own.size; ++i) x[i] = -x[i];
    scatter(own, false, x, below, 1, 1);
    for (int i = 0; i < n; ++i) below[i] += direct[i] * scaled_.inverse_root[i];
  }
  if (sharper_levels_ > 0) scaled_.set_compliance(compliance_);
  std::copy_n(below, n, out);
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
  lower_pointers_.resize(lower_);
  if (static_cast<int>(lower_direction_.size()) < lower_) lower_direction_.resize(lower_);
  for (int level = 0; level < lower_; ++level) {
    double* p = grown(lower_direction_[level], direction_.size());
    friction_direction(block, lower_lambda_[level].data(), p);
    lower_pointers_[level] = p;
  }
  response(lower_pointers_.data(), direction_.data(), out);
}

void ProblemLinearization::dlambda_dmu(double* out, int ld) {
  double* column = grown(column_, static_cast<std::size_t>(scaled_.n));
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    dlambda_dmu(b, column);
    for (int i = 0; i < scaled_.n; ++i) out[static_cast<long>(i) * ld + b] = column[i];
  }
}

void ProblemLinearization::dlambda_dbound(int block, double* out) {
  double* p = direction_.data();
  std::fill(p, p + scaled_.ld, 0.0);
  const int row = scaled_.blocks[block].row;
  if (yields_[block].entirely) std::fill_n(out, scaled_.n, 0.0);
  if (yields_[block].entirely) return;
  if (modes_[block].mode == Mode::upper) p[row] = 1 / scaled_.inverse_root[row];
  if (modes_[block].mode == Mode::lower) p[row] = -1 / scaled_.inverse_root[row];
  lower_pointers_.assign(lower_, p);
  response(lower_pointers_.data(), p, out);
}

}  // namespace coulomb

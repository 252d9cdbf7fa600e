// Derivative of a solved constraint problem: docs/theory.md (L3) with one factorisation for forward and reverse mode.
#include "coulomb/solvers/linearization/linearization.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double negligible_round = 1e-5;  // its square is what is then neglected

COULOMB_SIMD void add_row(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int j = 0; j < n; ++j)
    y[j] += a * x[j];
}

template <class Vector>
double* grown(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

}  // namespace

void ProblemLinearization::build(const ConstraintProblem& problem, const SolverResult& result) {
  for (auto* values : {&lambda_, &c_, &direction_})
    grown(*values, problem.ld);
  if (modes_.size() < problem.blocks.size()) {
    modes_.resize(problem.blocks.size());
  }

  // Solvers of the problem as given leave redundant rows to a compliance, too.
  const bool regularised = result.compliance > 0;
  result_ = &result;
  levels_ = result.relaxation > 0 ? 0 : std::max(result.levels, 1);
  scaled_.assign(problem);
  compliance_ = regularised ? result.compliance : SolverSettings().compliance;
  sharper_levels_ = result.relaxation > 0 ? 0 : result.sharper_levels;
  scaled_.set_compliance(compliance_);
  has_centre_ = !result.centre.empty();
  if (has_centre_) scaled_.to_scaled(result.centre.data(), grown(centre_, scaled_.ld));

  lower_ = 0;
  num_further_ = 0;
  kinks_known_ = false;
  yields_.assign(problem.blocks.size(), {});

  reserve_kinks();
  find_labels(result, regularised);
  yield_beside_parallel_rows();

  // The last level, once more where rows yield; then those of levels that have a factor of their own.
  build_last(regularised);
  const bool redundant_rows = levels_ > 0 && redundant();
  const int lower = regularised ? find_lower_levels(redundant_rows) : 0;
  if (redundant_rows && let_rows_yield()) build_last(regularised);
  build_sharper_levels();
  for (int level = 0; level < lower; ++level)
    build_level(level);
  lower_ = lower;
}

/// Where every level below has given its own, directions and slips are those of the last one.
void ProblemLinearization::build_last(bool regularised) {
  scaled_.to_scaled(result_->lambda.data(), lambda_.data());
  scaled_.set_compliance(compliance_ * share(total_levels()));
  scaled_.set_level(result_->levels > 0 ? lower_lambda_[total_levels() - 1].data() : nullptr);
  if (regularised)
    scaled_.velocity(lambda_.data(), c_.data());
  else
    scaled_.exact_velocity(lambda_.data(), c_.data());

  choose_modes(last_labels_, lambda_.data(), c_.data(), modes_);
  scaled_.set_compliance(compliance_);
  last_.set_modes(scaled_, modes_.data());
  last_.factorise(scaled_, 0);
  round_weights();
}

/// The same rows with smaller compliances. Only where the usual levels left something.
void ProblemLinearization::build_sharper_levels() {
  if (sharper_levels_ == 0) return;
  if (static_cast<int>(sharper_.size()) < sharper_levels_) {
    sharper_.resize(static_cast<std::size_t>(sharper_levels_));
  }
  for (int level = levels_ + 1; level <= total_levels(); ++level) {
    scaled_.set_compliance(compliance_ * share(level));
    upper_system(level).set_modes(scaled_, modes_.data());
    upper_system(level).factorise(scaled_, 0);
  }
  scaled_.set_compliance(compliance_);
}

/// Of the compliance: the usual levels have all of it, sharper ones a power of the sharpening.
double ProblemLinearization::share(int level) const {
  return level <= levels_ ? 1.0 : std::pow(result_->sharpening, level - levels_);
}

/// Does a round move anything? It does by the compliance over the least pivot.
bool ProblemLinearization::redundant() {
  // Impulses in no special direction, and the round that follows from them.
  const int size = last().size;
  double* x = grown(buffer_, static_cast<std::size_t>(size));
  double* round = grown(second_round_, static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    x[i] = std::sin(1.0 + 2.4 * i);
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

/// B E C: what a round adds to the right-hand side, of the same block only.
void ProblemLinearization::round_weights() {
  round_weights_.clear();
  for (int i = 0; i < last().size; ++i) {
    const ReducedRow& left = last().rows[i];
    for (int j = std::max(0, i - 5); j < std::min(last().size, i + 6); ++j) {
      const ReducedRow& right = last().rows[j];
      if (right.row != left.row) continue;
      double value = 0;

      // Both touch the same rows of the block.
      for (int k = 0; k < left.width; ++k) {
        const int row = left.row + k;
        const double b = left.one_b ? (row == left.row_b ? 1.0 : 0.0) : left.b[k];
        const double c = right.one_c ? (row == right.row_c ? 1.0 : 0.0) : right.c[k];
        if (b != 0 && c != 0) {
          value += b * scaled_.E[row] * c;
        }
      }
      if (value != 0) {
        round_weights_.push_back({i, j, value});
      }
    }
  }
}

/// tr(B E C A^-1) counts the directions that the compliance alone determines.
bool ProblemLinearization::deficient() {
  const int size = last().size;
  double* inverse = grown(first_round_, static_cast<std::size_t>(size) * size);
  std::fill_n(inverse, static_cast<std::size_t>(size) * size, 0.0);
  for (int i = 0; i < size; ++i)
    inverse[static_cast<std::size_t>(i) * size + i] = 1;
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

/// x = A^-T x with the rounds of all upper levels, last one first; lowest: what the lowest of them had.
void ProblemLinearization::solve_upper_transposed(double* x, double* lowest, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  double* next = grown(second_round_, length);
  std::copy_n(x, length, next);
  std::fill_n(x, length, 0.0);

  for (int level = total_levels(); level >= lower_; --level) {
    solve_level_transposed(level, next, ncols, ld);
    for (int i = 0; i < last().size; ++i)
      add_row(1, next + static_cast<long>(i) * ld, ncols, x + static_cast<long>(i) * ld);
    std::copy_n(next, length, lowest);

    if (level == lower_) return;
    std::fill_n(next, length, 0.0);
    add_round(lowest, next, ncols, ld, true, share(level));
  }
}

/// x_k = A^-1 (b + B E C x_(k-1)), docs/theory.md (L9), from the lowest upper level on.
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
    for (int k = 0; k < r.width; ++k)
      if (a[k] != 0) {
        add_row(d * a[k], Y + static_cast<long>(r.row + k) * ld, ncols, target);
      }
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
    for (int k = 0; k < r.width; ++k)
      if (a[k] != 0) {
        add_row(d * a[k], source, ncols, out + static_cast<long>(r.row + k) * ld);
      }
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

/// x = A^-1 x of all levels where none has modes of its own.
void ProblemLinearization::solve_reduced(double* rhs, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  std::copy_n(rhs, length, grown(first_round_, length));
  solve_upper(rhs, first_round_.data(), ncols, ld);
}

/// x = A^-T x of them.
void ProblemLinearization::solve_reduced_transposed(double* rhs, int ncols, int ld) {
  const std::size_t length = static_cast<std::size_t>(last().size) * static_cast<std::size_t>(ld);
  solve_upper_transposed(rhs, grown(first_round_, length), ncols, ld);
}

/// dlambda = -C x, x by the levels from the lowest on; s_lower: right-hand sides of those with modes of their own.
void ProblemLinearization::solve(const double* s, double* dlambda, int ncols, int ld, const double* const* s_lower) {
  const int size = last().size;

  const std::size_t most = static_cast<std::size_t>(scaled_.n) * static_cast<std::size_t>(ld);
  const std::size_t length = static_cast<std::size_t>(size) * static_cast<std::size_t>(ld);
  double* x = grown(buffer_, most);
  const auto add = [&](const double* from, double* to, int count) {
    for (int i = 0; i < count; ++i)
      add_row(1, from + static_cast<long>(i) * ld, ncols, to + static_cast<long>(i) * ld);
  };
  gather(last(), true, s, x, ncols, ld);

  // Lower levels hand what the compliance makes of their impulses to the next one.
  if (lower_ > 0) {
    double* b = grown(first_round_, length);
    double* own = grown(lowest_, most);
    double* up = grown(second_round_, most);
    std::copy_n(x, length, b);
    for (int level = 0; level < lower_; ++level) {
      gather(system(level), true, s_lower ? s_lower[level] : s, own, ncols, ld);
      if (level > 0) {
        add(up, own, reduced_size(level));
      }
      solve_level(level, own, ncols, ld);
      pass_up(level, own, up, ncols, ld);
    }
    add(up, x, size);
    solve_upper(x, b, ncols, ld);
  } else {
    solve_reduced(x, ncols, ld);
  }

  // dlambda = -C x.
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < ncols; ++j)
      x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(last(), false, x, dlambda, ncols, ld);
}

/// z = K^T w, docs/theory.md (L10).
void ProblemLinearization::solve_transposed(const double* w, double* z, int ncols, int ld) {
  const int size = last().size;
  const std::size_t most = static_cast<std::size_t>(scaled_.n) * static_cast<std::size_t>(ld);
  double* x = grown(buffer_, most);
  double* lowest = grown(lowest_, most);

  // Upper levels.
  gather(last(), false, w, x, ncols, ld);
  if (lower_ > 0)
    solve_upper_transposed(x, lowest, ncols, ld);
  else
    solve_reduced_transposed(x, ncols, ld);

  for (int i = 0; i < size; ++i)
    for (int j = 0; j < ncols; ++j)
      x[static_cast<long>(i) * ld + j] = -x[static_cast<long>(i) * ld + j];
  scatter(last(), true, x, z, ncols, ld);

  // And what goes through the lower levels.
  for (int level = lower_ - 1; level >= 0; --level) {
    double* down = grown(first_round_, most);
    double* other = grown(second_round_, most);
    pass_down(level, lowest, down, ncols, ld);
    solve_level_transposed(level, down, ncols, ld);
    std::copy_n(down, static_cast<std::size_t>(reduced_size(level)) * ld, lowest);
    scatter(system(level), true, down, other, ncols, ld);
    for (int i = 0; i < scaled_.n; ++i)
      add_row(-1, other + static_cast<long>(i) * ld, ncols, z + static_cast<long>(i) * ld);
  }
}

void ProblemLinearization::solve_transposed(const double* w, double* z) { solve_transposed(w, z, 1, 1); }

/// K, column by column.
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
  double* x = grown(buffer_, static_cast<std::size_t>(n));
  double* below = grown(rows_, static_cast<std::size_t>(n));
  std::fill_n(below, n, 0.0);
  for (int level = 0; level <= total_levels(); ++level) {
    if (level > levels_) {
      scaled_.set_compliance(compliance_ * share(level));
    }
    const double* direct = level < lower_ ? p_lower[level] : p;
    ReducedSystem& own = level < lower_ ? lower_systems_[level] : upper_system(level);

    // The direct change as a right-hand side, less what the level below has given.
    std::fill(c_.begin(), c_.begin() + scaled_.ld, 0.0);
    scaled_.add_product(direct, c_.data());
    for (int i = 0; i < n; ++i)
      c_[i] = (c_[i] - scaled_.E[i] * below[i] / scaled_.inverse_root[i]) / scaled_.inverse_root[i];

    // The level's answer, and the direct change itself.
    gather(own, true, c_.data(), x, 1, 1);
    own.solve(scaled_, x, 1, 1);
    for (int i = 0; i < own.size; ++i)
      x[i] = -x[i];
    scatter(own, false, x, below, 1, 1);
    for (int i = 0; i < n; ++i)
      below[i] += direct[i] * scaled_.inverse_root[i];
  }
  if (sharper_levels_ > 0) scaled_.set_compliance(compliance_);
  std::copy_n(below, n, out);
}

/// Change of an impulse that slides, per unit of friction: its normal part times its direction, scaled.
void ProblemLinearization::friction_direction(int b, const BlockMode& mode, const double* lambda, double* p) const {
  std::fill(p, p + scaled_.ld, 0.0);
  const Block& block = scaled_.blocks[b];
  const double* l = lambda + block.row;
  if (mode.mode != Mode::sliding) return;

  // On a cone the impulse itself is surer than the mode's direction.
  const bool from_impulse = block.type == BlockType::cone && block.mu > 0;
  for (int k = 0; k < block.tangents(); ++k) {
    const int i = block.tangent(k);
    p[i] = scaled_.ref * (from_impulse ? l[i - block.row] / block.mu : l[2] * mode.n[k]);
  }
}

void ProblemLinearization::dlambda_dmu(int block, double* out) {
  direct_changes(out, [&](const BlockMode* modes, const double* lambda, double* p) {
    friction_direction(block, modes[block], lambda, p);
  });
}

void ProblemLinearization::dlambda_dmu(double* out, int ld) {
  double* column = grown(column_, static_cast<std::size_t>(scaled_.n));
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    dlambda_dmu(b, column);
    for (int i = 0; i < scaled_.n; ++i)
      out[static_cast<long>(i) * ld + b] = column[i];
  }
}

void ProblemLinearization::dlambda_dbound(int block, double* out) {
  std::fill_n(out, scaled_.n, 0.0);
  if (yields_[block].entirely) return;
  const int row = scaled_.blocks[block].row;
  direct_changes(out, [&](const BlockMode* modes, const double*, double* p) {
    std::fill(p, p + scaled_.ld, 0.0);
    if (modes[block].mode == Mode::upper) {
      p[row] = 1 / scaled_.inverse_root[row];
    }
    if (modes[block].mode == Mode::lower) {
      p[row] = -1 / scaled_.inverse_root[row];
    }
  });
}

/// out: what follows when the impulses of each level change directly by direction(modes, impulses, p).
template <class Direction>
void ProblemLinearization::direct_changes(double* out, Direction direction) {
  lower_pointers_.resize(lower_);
  if (static_cast<int>(lower_direction_.size()) < lower_) {
    lower_direction_.resize(lower_);
  }

  // Each lower level in its own modes ...
  for (int level = 0; level < lower_; ++level) {
    double* p = grown(lower_direction_[level], direction_.size());
    direction(lower_modes_[level].data(), lower_lambda_[level].data(), p);
    lower_pointers_[level] = p;
  }

  // ... and the last in the result's.
  scaled_.to_scaled(result_->lambda.data(), lambda_.data());
  direction(modes_.data(), lambda_.data(), direction_.data());
  response(lower_pointers_.data(), direction_.data(), out);
}

}  // namespace coulomb

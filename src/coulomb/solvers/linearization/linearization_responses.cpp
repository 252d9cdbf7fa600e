// How all rows answer to all velocities at once, W of a Jacobian (step_linearization.hpp), where systems are solved in velocities:
//
//   A^T x_0 = C^T Y U,   A^T x_(k+1) = (B E C)^T x_k,   W = x_0 + x_1 + ...,      A = B Y Y^T C + D,   D = B E C + Q
//
// The right-hand side of level k is C^T Y V_k + c_k, with V_0 = U, c_0 = 0 and
//
//   V_(k+1) = H^-T (V_k - Y^T B^T D^-T c_k),   x_k = D^-T (C^T Y V_(k+1) + c_k),   c_(k+1) = c_k - Q^T x_k
//
// so that levels cost a solve with H each, and rows are met once; c is zero but where Q is not (contacts that slide, compliant rows). What
// the rows leave of U is U - Y^T B^T W, the last V. A division by D costs the digits of E; what is left of the right-hand sides, solved for
// once more, brings them back.
#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void add_row(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int j = 0; j < n; ++j)
    y[j] += a * x[j];
}

void scale_rows(double a, int n, double* x) {
  for (int i = 0; i < n; ++i)
    x[i] *= a;
}

double* grown(std::vector<double>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

}  // namespace

/// to (unknowns of the block x ld) = D^-T from.
void ProblemLinearization::apply_local_transposed(const ReducedSystem& system, int block, const double* from, int ld,
                                                  double* to) const {
  const int count = system.first[block + 1] - system.first[block];
  const double* inverse = system.local_inverse(block);
  std::fill_n(to, static_cast<std::size_t>(count) * ld, 0.0);
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j) {
      const double weight = inverse[j * count + i];
      if (weight != 0) {
        add_row(weight, from + static_cast<long>(j) * ld, ld, to + static_cast<long>(i) * ld);
      }
    }
}

/// to += D^-T from, of all blocks.
void ProblemLinearization::add_local_transposed(const ReducedSystem& system, const double* from, int ld,
                                                double* to) const {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const int count = system.first[b + 1] - system.first[b];
    const double* inverse = system.local_inverse(b);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j < count; ++j) {
        const double weight = inverse[j * count + i];
        const long row = system.first[b];
        if (weight != 0) {
          add_row(weight, from + (row + j) * ld, ld, to + (row + i) * ld);
        }
      }
  }
}

/// to -= Q^T x of a block.
void ProblemLinearization::subtract_Q(const Special& special, const double* x, int ld, double* to) {
  for (int i = 0; i < special.count; ++i)
    for (int j = 0; j < special.count; ++j)
      if (special.Q[6 * j + i] != 0)
        add_row(-special.Q[6 * j + i], x + static_cast<long>(j) * ld, ld, to + static_cast<long>(i) * ld);
}

/// V (dofs x ld) = H^-T V; trees have padded places in H.
void ProblemLinearization::solve_velocities_transposed(ReducedSystem& system, double* V, int ld) {
  const std::vector<int>& sizes = scaled_.Y.tree_size();
  double* places = grown(places_, static_cast<std::size_t>(scaled_.Y.columns()) * ld);
  std::fill_n(places, static_cast<std::size_t>(scaled_.Y.columns()) * ld, 0.0);

  // From dofs to the places of their trees ...
  double* own = V;
  for (std::size_t t = 0; t < sizes.size(); own += static_cast<std::size_t>(sizes[t++]) * ld)
    std::copy_n(own, static_cast<std::size_t>(sizes[t]) * ld,
                places + static_cast<std::size_t>(scaled_.Y.tree_start(static_cast<int>(t))) * ld);
  system.solve_velocities_transposed(places, ld, ld);

  // ... and back.
  own = V;
  for (std::size_t t = 0; t < sizes.size(); own += static_cast<std::size_t>(sizes[t++]) * ld)
    std::copy_n(places + static_cast<std::size_t>(scaled_.Y.tree_start(static_cast<int>(t))) * ld,
                static_cast<std::size_t>(sizes[t]) * ld, own);
}

/// X = A^-T X of a level. In velocities it loses the digits that a division by E costs: a second round brings them back.
void ProblemLinearization::solve_level_transposed(int level, double* X, int ncols, int ld) {
  ReducedSystem& system = level < lower_ ? lower_systems_[level] : upper_system(level);

  const auto size = static_cast<std::size_t>(system.size);
  if (!scaled_.factored) return system.solve_transposed(scaled_, X, ncols, ld);

  double* left = grown(right_side_, size * ld);
  std::copy_n(X, size * ld, left);
  system.solve_transposed(scaled_, X, ncols, ld);

  // What that leaves of the right-hand side, solved for again.
  if (level > levels_) {
    scaled_.set_compliance(compliance_ * share(level));
  }
  for (int column = 0; column < ncols; ++column)
    subtract_transposed(system, X + column, ld, left + column);
  if (level > levels_) scaled_.set_compliance(compliance_);
  system.solve_transposed(scaled_, left, ncols, ld);
  for (std::size_t i = 0; i < size; ++i)
    add_row(1, left + i * ld, ncols, X + i * ld);
}

/// left -= A^T x = C^T (G + E) B^T x + Q x; entries ld apart.
void ProblemLinearization::subtract_transposed(const ReducedSystem& system, const double* x, int ld, double* left) {
  // B^T x ...
  double* impulses = change_.data();
  double* velocities = earlier_.data();
  std::fill_n(impulses, scaled_.ld, 0.0);
  std::fill_n(velocities, scaled_.ld, 0.0);
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    const double value = x[static_cast<long>(i) * ld];
    if (row.one_b)
      impulses[row.row_b] += value;
    else
      for (int k = 0; k < row.width; ++k)
        impulses[row.row + k] += row.b[k] * value;
  }

  // ... what it moves ...
  scaled_.add_product(impulses, velocities);

  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    double sum = row.q * x[static_cast<long>(i) * ld];
    if (row.one_c)
      sum += velocities[row.row_c];
    else
      for (int k = 0; k < row.width; ++k)
        sum += row.c[k] * velocities[row.row + k];
    left[static_cast<long>(i) * ld] -= sum;
  }
}

bool ProblemLinearization::responds_in_velocities() const { return scaled_.factored && sharper_levels_ == 0; }

/// The blocks where Q = D - B E C is not zero.
void ProblemLinearization::find_special() {
  special_.clear();
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    Special special;
    special.block = b;
    special.first = last_.first[b];
    special.count = last_.first[b + 1] - special.first;

    bool any = false;
    double left[6];
    double right[6][6];
    double unused[6];

    // C of the block, then B (R + E) C less its compliance, row by row.
    for (int j = 0; j < special.count; ++j)
      row_coefficients(last_.rows[special.first + j], block, unused, right[j]);
    for (int i = 0; i < special.count; ++i) {
      row_coefficients(last_.rows[special.first + i], block, left, unused);
      for (int j = 0; j < special.count; ++j) {
        double q = i == j ? last_.rows[special.first + i].q : 0.0;
        for (int k = 0; k < block.size; ++k)
          q += left[k] * scaled_.rigid[block.row + k] * right[j][k];
        special.Q[6 * i + j] = q;
        any = any || q != 0;
      }
    }
    if (any) special_.push_back(special);
  }
}

/// W and V of all upper levels, the last one first: the recursion at the head of this file. lowest: D^-T of the lowest right-hand side.
void ProblemLinearization::velocity_responses(const double* BY, const double* CtY, int dofs, int ld, const double* U,
                                              double* V, double* W, double* lowest) {
  const int size = last_.size;
  const std::size_t square = static_cast<std::size_t>(dofs) * ld;
  const std::size_t all = static_cast<std::size_t>(size) * ld;

  double* sum = grown(first_round_, square);
  double* own = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  std::fill_n(sum, square, 0.0);
  std::copy_n(U, square, V);

  // Blocks with Q carry a right-hand side c of their own, and its sum over the levels.
  find_special();
  double* c = nullptr;
  double* c_sum = nullptr;
  if (!special_.empty()) {
    c = grown(special_c_, 2 * all);
    c_sum = c + all;
    std::fill_n(c, 2 * all, 0.0);
  }

  for (int level = total_levels(); level >= lower_; --level) {
    // V - Y^T B^T D^-T c, and H^-T of it.
    for (const Special& special : special_) {
      const std::size_t at = static_cast<std::size_t>(special.first) * ld;
      apply_local_transposed(last_, special.block, c + at, ld, own);
      if (level < total_levels())
        multiply(Product::subtract, transposed(BY + at, dofs, special.count, ld), own, V, ld, ld, product_);
    }

    solve_velocities_transposed(last_, V, ld);
    add_row(1, V, static_cast<int>(square), sum);

    // The right-hand side of the lowest, where levels below follow.
    if (level == lower_ && lowest) {
      multiply(Product::set, rows_of(CtY, size, dofs, ld), V, W, ld, ld, product_);
      if (c) {
        add_row(1, c, static_cast<int>(all), W);
      }
      std::fill_n(lowest, all, 0.0);
      add_local_transposed(last_, W, ld, lowest);
    }

    // c - Q^T x, x = D^-T (C^T Y V + c).
    for (const Special& special : special_) {
      const std::size_t at = static_cast<std::size_t>(special.first) * ld;
      const int count = special.count * ld;
      double* x = own + count;

      add_row(1, c + at, count, c_sum + at);
      multiply(Product::set, rows_of(CtY + at, special.count, dofs, ld), V, own, ld, ld, product_);
      add_row(1, c + at, count, own);
      apply_local_transposed(last_, special.block, own, ld, x);
      subtract_Q(special, x, ld, c + at);
    }
  }

  // W = D^-T (C^T Y sum of V + sum of c).
  multiply(Product::set, rows_of(CtY, size, dofs, ld), sum, own, ld, ld, product_);
  if (c_sum) {
    add_row(1, c_sum, static_cast<int>(all), own);
  }
  std::fill_n(W, all, 0.0);
  add_local_transposed(last_, own, ld, W);

  // Once more, with what is left of the right-hand sides.
  std::copy_n(U, square, sum);
  add_row(-1, V, static_cast<int>(square), sum);
  multiply(Product::subtract, transposed(BY, dofs, size, ld), W, sum, ld, ld, product_);
  for (const Special& special : special_) {
    const std::size_t at = static_cast<std::size_t>(special.first) * ld;
    scale_rows(-1, special.count * ld, c + at);
    subtract_Q(special, W + at, ld, c + at);
    apply_local_transposed(last_, special.block, c + at, ld, own);
    multiply(Product::subtract, transposed(BY + at, dofs, special.count, ld), own, sum, ld, ld, product_);
  }

  solve_velocities_transposed(last_, sum, ld);
  multiply(Product::set, rows_of(CtY, size, dofs, ld), sum, own, ld, ld, product_);
  if (c) {
    add_row(1, c, static_cast<int>(all), own);
  }
  add_local_transposed(last_, own, ld, W);
}

/// X = A^-T X of a lower level, (C11) transposed.
void ProblemLinearization::solve_level_transposed(int level, const double* BY, const double* CtY, int dofs, int ld,
                                                  double* X) {
  ReducedSystem& own = system(level);
  const std::size_t all = static_cast<std::size_t>(own.size) * ld;
  const std::size_t square = static_cast<std::size_t>(dofs) * ld;

  double* local = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  double* moved = grown(first_round_, square);

  std::fill_n(local, all, 0.0);
  add_local_transposed(own, X, ld, local);

  // D^-T X, less what the velocities take.
  multiply(Product::set, transposed(BY, dofs, own.size, ld), local, moved, ld, ld, product_);
  solve_velocities_transposed(own, moved, ld);
  multiply(Product::subtract, rows_of(CtY, own.size, dofs, ld), moved, X, ld, ld, product_);

  std::fill_n(local, all, 0.0);
  add_local_transposed(own, X, ld, local);

  // Once more, with what is left: as above.
  multiply(Product::subtract, transposed(BY, dofs, own.size, ld), local, moved, ld, ld, product_);
  solve_velocities_transposed(own, moved, ld);
  multiply(Product::set, rows_of(CtY, own.size, dofs, ld), moved, X, ld, ld, product_);
  add_local_transposed(own, X, ld, local);
  std::copy_n(local, all, X);
}

}  // namespace coulomb

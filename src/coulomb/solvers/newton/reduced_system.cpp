// Unknowns, matrix and factorisation of a set of modes (docs/theory.md (C9), (C10)).
#include "coulomb/solvers/newton/reduced_system.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

/// The next unknown, without its coefficients.
ReducedRow& add_row(std::vector<ReducedRow>& rows, int& size, int row, int width, bool one_c, bool one_b) {
  ReducedRow& r = rows[size++];
  r.row = row;
  r.row_c = row;
  r.row_b = row;
  r.width = width;
  r.one_c = one_c;
  r.one_b = one_b;
  r.q = 0;
  r.damping = 1;
  return r;
}

// An unknown that is an impulse of its own row: the row's velocity is zero.
void add_single(std::vector<ReducedRow>& rows, int& size, int row) { add_row(rows, size, row, 3, true, true); }

// The impulse along the normal takes the friction of sliding towards n with it; the normal velocity is zero.
void add_normal(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m) {
  ReducedRow& normal = add_row(rows, size, block.row, block.size, false, true);
  normal.row_b = block.row + 2;
  normal.c[0] = block.mu * m.n[0];
  normal.c[1] = block.mu * m.n[1];
  normal.c[2] = 1;
  for (int i = 3; i < block.size; ++i)
    normal.c[i] = block.mu * m.n[i - 1];
}

// The impulse across sticks: no velocity along this direction of the tangents.
ReducedRow& add_across(std::vector<ReducedRow>& rows, int& size, const Block& block, const double* direction) {
  ReducedRow& across = add_row(rows, size, block.row, block.size, false, false);
  across.c[0] = across.b[0] = direction[0];
  across.c[1] = across.b[1] = direction[1];
  across.c[2] = across.b[2] = 0;
  for (int i = 3; i < block.size; ++i)
    across.c[i] = across.b[i] = direction[i - 1];
  return across;
}

/// Across a direction of sliding that turns.
void add_turning(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m,
                 const double* direction) {
  ReducedRow& across = add_across(rows, size, block, direction);
  across.b[0] = m.k * across.c[0];
  across.b[1] = m.k * across.c[1];
  for (int i = 3; i < block.size; ++i)
    across.b[i] = m.k * across.c[i];
  across.q = 1 - m.k;
  across.damping = m.k;
}

void add_sliding(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m) {
  if (block.mu == 0) return add_single(rows, size, block.row + 2);
  add_normal(rows, size, block, m);

  // Across, the direction of sliding turns: k c_perp + (1 - k) lambda_perp = 0.
  if (block.size == 3) {
    const double direction[max_tangents] = {-m.n[1], m.n[0]};
    add_turning(rows, size, block, m, direction);
    return;
  }
  double directions[max_tangents - 1][max_tangents];
  const int count = directions_across(block, m, directions);
  for (int j = 0; j < count; ++j)
    add_turning(rows, size, block, m, directions[j]);
}

void add_sliding_pyramid(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m) {
  if (block.mu == 0) return add_single(rows, size, block.row + 2);
  add_normal(rows, size, block, m);

  // On a side the impulse moves freely along it; a vertex holds it. What sticks keeps its own rows.
  const FrictionPolygon& polygon = friction_polygon(block);
  const PyramidParts parts = parts_of(block, m.facet);
  if (parts.feature < 0) {
    add_single(rows, size, block.row);
    add_single(rows, size, block.row + 1);
  } else if (polygon.is_side(parts.feature)) {
    const double* normal = polygon.direction[parts.feature];
    const double along[max_tangents] = {-normal[1], normal[0]};
    add_across(rows, size, block, along);
  }
  for (int i = 3; i < block.size; ++i) {
    if (parts.end[i - 3] == 0) add_single(rows, size, block.row + i);
  }
}

/// Sticks, but for what is loose.
void add_loose(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m) {
  add_single(rows, size, block.row + 2);
  if (m.loose > 1) return;
  double directions[max_tangents - 1][max_tangents];
  const int count = directions_across(block, m, directions);
  for (int j = 0; j < count; ++j)
    add_across(rows, size, block, directions[j]);
}

/// Rows of B G C + Q; with `upper` only the part right of the diagonal (plus rubbish left of it that nobody reads).
COULOMB_SIMD void assemble_rows(const double* G, int ldg, const ReducedRow* rows, int m, int ld, bool upper,
                                double delta, double* combination, double* __restrict A) {
  for (int i = 0; i < m; ++i) {
    // B combines rows of G where an equation mixes the velocities of its block.
    const ReducedRow& r = rows[i];
    const double* source = G + static_cast<long>(r.one_b ? r.row_b : r.row) * ldg;
    if (!r.one_b) {
      const double* s1 = source + ldg;
      const double* s2 = s1 + ldg;
      for (int j = 0; j < ldg; ++j)
        combination[j] = r.b[0] * source[j] + r.b[1] * s1[j] + r.b[2] * s2[j];
      for (int k = 3; k < r.width; ++k)
        for (int j = 0; j < ldg; ++j)
          combination[j] += r.b[k] * source[static_cast<long>(k) * ldg + j];
      source = combination;
    }

    // C combines the columns of that row.
    double* target = A + static_cast<long>(i) * ld;
    for (int j = upper ? i : 0; j < m; ++j) {
      const ReducedRow& t = rows[j];
      const double* s = source + t.row;
      target[j] = t.one_c ? source[t.row_c] : t.c[0] * s[0] + t.c[1] * s[1] + t.c[2] * s[2];
      for (int k = 3; !t.one_c && k < t.width; ++k)
        target[j] += t.c[k] * s[k];
    }

    // Q and the proximal term stand on the diagonal.
    target[i] += r.q + delta * r.damping;
  }
}

}  // namespace

int directions_across(const Block& block, const BlockMode& m, double (*out)[max_tangents]) {
  // In the plane: n turned by a quarter.
  const int tangents = block.tangents();
  if (tangents == 2) {
    out[0][0] = -m.n[1];
    out[0][1] = m.n[0];
    return 1;
  }

  // The reflection that takes the axis nearest to n to n takes the other axes to directions across.
  int nearest = 0;
  for (int k = 1; k < tangents; ++k)
    if (std::abs(m.n[k]) > std::abs(m.n[nearest])) {
      nearest = k;
    }
  double v[max_tangents];
  double squared = 0;
  for (int k = 0; k < tangents; ++k) {
    v[k] = m.n[k] + (k == nearest ? std::copysign(1.0, m.n[k]) : 0.0);
    squared += v[k] * v[k];
  }

  int count = 0;
  for (int axis = 0; axis < tangents; ++axis) {
    if (axis == nearest) continue;
    for (int k = 0; k < tangents; ++k)
      out[count][k] = (k == axis ? 1.0 : 0.0) - 2 * v[axis] * v[k] / squared;
    ++count;
  }
  return count;
}

void row_coefficients(const ReducedRow& r, const Block& block, double* b, double* c) {
  std::fill_n(b, block.size, 0.0);
  std::fill_n(c, block.size, 0.0);

  // Of the impulses ...
  if (r.one_c)
    c[r.row_c - block.row] = 1;
  else
    std::copy_n(r.c, r.width, c);

  // ... and of the equation.
  if (r.one_b)
    b[r.row_b - block.row] = 1;
  else
    std::copy_n(r.b, r.width, b);
}

void ReducedSystem::reserve(const ScaledProblem& problem) {
  const auto n = static_cast<std::size_t>(problem.ld);

  // Whatever the modes, a row has at most one unknown.
  if (rows.size() < n) {
    rows.resize(n);
    fixed.resize(n);
    pivot.resize(n);
    work_.resize(2 * n);
  }
  if (!problem.factored && A.size() < n * n) {
    A.resize(n * n);
  }
  if (first.size() < static_cast<std::size_t>(problem.num_blocks) + 1) {
    first.resize(problem.num_blocks + 1);
  }
}

void ReducedSystem::set_modes(const ScaledProblem& problem, const BlockMode* modes) {
  reserve(problem);
  std::fill(fixed.begin(), fixed.begin() + problem.ld, 0.0);
  size = 0;
  symmetric = true;

  // Every mode is a pair of linear statements, docs/theory.md (C9): unknowns with equations, or a fixed impulse.
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const Mode mode = modes[b].mode;
    first[b] = size;
    if (mode == Mode::sliding) {
      if (block.type == BlockType::cone)
        add_sliding(rows, size, block, modes[b]);
      else
        add_sliding_pyramid(rows, size, block, modes[b]);
      symmetric = symmetric && block.mu == 0;
    } else if (mode == Mode::lower || mode == Mode::upper) {
      fixed[block.row] = mode == Mode::upper ? problem.bound[b] : -problem.bound[b];
    } else if (mode == Mode::sticking && modes[b].loose > 0) {
      add_loose(rows, size, block, modes[b]);
    } else if (mode != Mode::separating) {
      for (int i = 0; i < block.size; ++i)
        add_single(rows, size, block.row + i);
    }
  }
  first[problem.num_blocks] = size;
  ld = dense::padded(size);
}

bool ReducedSystem::factorise(const ScaledProblem& problem, double delta) {
  delta_ = delta;
  if (problem.factored) return factorise_velocities(problem);

  // B G C + Q + delta is symmetric where nothing slides.
  assemble_rows(problem.G.data(), problem.ld, rows.data(), size, ld, symmetric, delta, work_.data(), A.data());
  const double pivot_ratio = symmetric ? dense::cholesky(A.data(), size, ld, work_.data())
                                       : dense::lu(A.data(), size, ld, pivot.data(), work_.data());
  return pivot_ratio > 0;
}

// Each block's D is small: inverted, it leaves H = 1 + Y^T C D^-1 B Y for the trees.
bool ReducedSystem::factorise_velocities(const ScaledProblem& problem) {
  local_inverse_.resize(problem.blocks, problem.num_blocks);
  local_.resize(problem.blocks, problem.num_blocks);
  if (diagonal_.size() < static_cast<std::size_t>(problem.num_blocks)) {
    diagonal_.resize(problem.num_blocks);
  }

  for (int b = 0; b < problem.num_blocks; ++b) {
    // Where every row is by itself, D is diagonal.
    diagonal_[b] = std::all_of(rows.begin() + first[b], rows.begin() + first[b + 1],
                               [](const ReducedRow& r) { return r.one_b && r.one_c && r.row_b == r.row_c; });
    const bool regular = diagonal_[b] ? invert_diagonal(problem, b) : invert_block(problem, b);
    if (!regular) return false;
  }
  return velocities_.factorise(problem.Y, problem.blocks, local_);
}

/// Of a block whose rows stand by themselves: D = R + E + Q + delta inverted, entry by entry. False: singular.
bool ReducedSystem::invert_diagonal(const ScaledProblem& problem, int b) {
  const Block& block = problem.blocks[b];
  const int count = first[b + 1] - first[b];
  const int width = block.size;
  double* inverse = local_inverse_[b];
  double* on_rows = local_[b];
  std::fill_n(on_rows, width * width, 0.0);
  std::fill_n(inverse, count * count, 0.0);

  // The unknowns, then the rows of the block that carry them.
  for (int i = 0; i < count; ++i) {
    const ReducedRow& r = rows[first[b] + i];
    const double entry = 1.0 / (problem.rigid[r.row_b] + problem.E[r.row_b] + r.q + delta_ * r.damping);
    if (!std::isfinite(entry)) return false;
    inverse[i * (count + 1)] = entry;
    on_rows[(r.row_b - block.row) * (width + 1)] = entry;
  }
  return true;
}

/// Of any other block: D = B (R + E) C + Q + delta, its inverse, and C D^-1 B. False: singular.
bool ReducedSystem::invert_block(const ScaledProblem& problem, int b) {
  const Block& block = problem.blocks[b];
  const int count = first[b + 1] - first[b];
  const int width = block.size;
  double* D = local_inverse_[b];
  double* K = local_[b];

  // B and C of the block, an unknown a row.
  double left[6][6];
  double right[6][6];
  for (int i = 0; i < count; ++i)
    row_coefficients(rows[first[b] + i], block, left[i], right[i]);

  // D, in which the compliance of the rows stands between B and C.
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      double sum = 0;
      for (int k = 0; k < width; ++k)
        sum += left[i][k] * (problem.rigid[block.row + k] + problem.E[block.row + k]) * right[j][k];
      D[i * count + j] = sum;
    }
    const ReducedRow& r = rows[first[b] + i];
    D[i * count + i] += r.q + delta_ * r.damping;
  }
  if (!invert_small(D, count)) return false;

  // C D^-1 B, what the trees see of the block.
  std::fill_n(K, width * width, 0.0);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < count; ++j) {
      const double weight = D[i * count + j];
      if (weight == 0.0) continue;
      for (int k = 0; k < width; ++k)
        for (int l = 0; l < width; ++l)
          K[k * width + l] += right[i][k] * weight * left[j][l];
    }
  }
  return true;
}

/// X = A^-1 X by x = D^-1 (b - B Y w), H w = Y^T C D^-1 b; transposed with B and C, D and D^T in each other's places.
void ReducedSystem::solve_velocities(const ScaledProblem& problem, bool transposed, double* X, int columns, int ldx) {
  const int width = problem.Y.columns();
  if (rows_.size() < static_cast<std::size_t>(problem.ld)) {
    rows_.resize(problem.ld);
  }
  if (w_.size() < static_cast<std::size_t>(width) * columns) {
    w_.resize(static_cast<std::size_t>(width) * columns);
  }
  if (moved_.size() < static_cast<std::size_t>(width)) {
    moved_.resize(width);
  }

  // B, C and D of the blocks, or what stands in their places in the transposed system.
  const auto local = [&](int b, int i, int j) {
    const int count = first[b + 1] - first[b];
    return local_inverse_[b][transposed ? j * count + i : i * count + j];
  };
  const auto add_rows = [&](const ReducedRow& r, double x) {  // C x, or B^T x
    const bool one = transposed ? r.one_b : r.one_c;
    const double* a = transposed ? r.b : r.c;
    if (one)
      rows_[transposed ? r.row_b : r.row_c] += x;
    else
      for (int k = 0; k < r.width; ++k)
        rows_[r.row + k] += a[k] * x;
  };
  const auto combine = [&](const ReducedRow& r) {  // B rows, or C^T rows
    const bool one = transposed ? r.one_c : r.one_b;
    const double* a = transposed ? r.c : r.b;
    if (one) return rows_[transposed ? r.row_c : r.row_b];
    return ReducedSystem::combine(r, a, rows_.data());
  };

  // D^-1 of a block's right-hand sides, less `subtracted`.
  const auto apply_local = [&](int b, int column, const double* subtracted, double* out) {
    const int count = first[b + 1] - first[b];
    if (diagonal_[b]) {
      for (int i = 0; i < count; ++i) {
        const double x = X[static_cast<long>(first[b] + i) * ldx + column] - (subtracted ? subtracted[i] : 0.0);
        out[i] = local_inverse_[b][i * (count + 1)] * x;
      }
      return;
    }
    for (int i = 0; i < count; ++i) {
      out[i] = 0;
      for (int j = 0; j < count; ++j) {
        const double x = X[static_cast<long>(first[b] + j) * ldx + column] - (subtracted ? subtracted[j] : 0.0);
        out[i] += local(b, i, j) * x;
      }
    }
  };

  // Y^T C D^-1 b of every column.
  double out[6];
  for (int column = 0; column < columns; ++column) {
    std::fill_n(rows_.begin(), problem.ld, 0.0);
    for (int b = 0; b < problem.num_blocks; ++b) {
      apply_local(b, column, nullptr, out);
      for (int i = first[b]; i < first[b + 1]; ++i)
        add_rows(rows[i], out[i - first[b]]);
    }
    problem.Y.times_transposed(rows_.data(), moved_.data());
    for (int k = 0; k < width; ++k)
      w_[static_cast<std::size_t>(k) * columns + column] = moved_[k];
  }

  // H w = Y^T C D^-1 b.
  if (transposed)
    velocities_.solve_transposed(w_.data(), columns, columns);
  else
    velocities_.solve(w_.data(), columns, columns);

  // D^-1 (b - B Y w).
  double taken[6];
  for (int column = 0; column < columns; ++column) {
    for (int k = 0; k < width; ++k)
      moved_[k] = w_[static_cast<std::size_t>(k) * columns + column];
    std::fill_n(rows_.begin(), problem.ld, 0.0);
    problem.Y.add_times(moved_.data(), rows_.data());
    for (int b = 0; b < problem.num_blocks; ++b) {
      for (int i = first[b]; i < first[b + 1]; ++i)
        taken[i - first[b]] = combine(rows[i]);
      apply_local(b, column, taken, out);
      for (int i = first[b]; i < first[b + 1]; ++i)
        X[static_cast<long>(i) * ldx + column] = out[i - first[b]];
    }
  }
}

void ReducedSystem::solve(const ScaledProblem& problem, double* X, int columns, int ldx) {
  if (problem.factored)
    solve_velocities(problem, false, X, columns, ldx);
  else if (symmetric)
    dense::cholesky_solve(A.data(), size, ld, X, ldx, columns);
  else
    dense::lu_solve(A.data(), size, ld, pivot.data(), X, ldx, columns);
}

void ReducedSystem::solve_transposed(const ScaledProblem& problem, double* X, int columns, int ldx) {
  if (problem.factored)
    solve_velocities(problem, true, X, columns, ldx);
  else if (symmetric)
    dense::cholesky_solve(A.data(), size, ld, X, ldx, columns);
  else
    dense::lu_solve_transposed(A.data(), size, ld, pivot.data(), X, ldx, columns);
}

void ReducedSystem::step(const ScaledProblem& problem, const double* from, const double* from_c, double* to, double* c,
                         int most_rounds) {
  // The impulses that these modes allow next to the old ones.
  std::copy(fixed.begin(), fixed.begin() + problem.ld, to);
  for (int i = 0; i < size; ++i)
    expand(rows[i], coordinate(rows[i], from), to);
  if (size == 0) return;

  if (static_cast<int>(x_.size()) < 2 * size) {
    x_.resize(2 * rows.size());
  }
  double* sum = x_.data() + size;
  std::fill_n(sum, size, 0.0);

  // Through velocities, impulses lose the digits that a division by E costs: a second round brings them back.
  const int rounds = problem.factored ? most_rounds : 1;

  for (int round = 0; round < rounds; ++round) {
    // The equations' residual, with the proximal term and Q.
    if (round == 0 && from_c && std::equal(from, from + problem.ld, to))
      std::copy_n(from_c, problem.ld, c);
    else
      problem.velocity(to, c);
    for (int i = 0; i < size; ++i) {
      x_[i] = -equation(rows[i], c) - delta_ * rows[i].damping * sum[i];
      if (rows[i].q != 0) {
        x_[i] -= rows[i].q * (coordinate(rows[i], from) + sum[i]);
      }
    }

    // What it asks of the impulses.
    solve(problem, x_.data());
    for (int i = 0; i < size; ++i) {
      expand(rows[i], x_[i], to);
      sum[i] += x_[i];
    }
  }
}

}  // namespace coulomb

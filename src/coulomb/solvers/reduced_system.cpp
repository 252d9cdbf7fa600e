// Unknowns, matrix and factorisation of a set of modes (THEORY (T4)).
#include "coulomb/solvers/reduced_system.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

void add_single(std::vector<ReducedRow>& rows, int& size, int row) {
  ReducedRow& r = rows[size++];
  r = ReducedRow{};
  r.row = r.row_c = r.row_b = row;
}

void add_sliding(std::vector<ReducedRow>& rows, int& size, int row, double mu, const BlockMode& m, bool unit) {
  if (mu == 0) return add_single(rows, size, row + 2);
  ReducedRow& normal = rows[size++];
  normal = ReducedRow{};
  const double length = unit ? std::sqrt(1 + mu * mu) : 1.0;
  normal.row = row;
  normal.row_b = row + 2;
  normal.one_c = false;
  normal.c[0] = mu * m.nx / length, normal.c[1] = mu * m.ny / length, normal.c[2] = 1 / length;
  ReducedRow& across = rows[size++];
  across = ReducedRow{};
  across.row = row;
  across.one_c = across.one_b = false;
  across.c[0] = -m.ny, across.c[1] = m.nx;
  across.b[0] = -m.k * m.ny, across.b[1] = m.k * m.nx;
  across.q = 1 - m.k;
  across.damping = m.k;
}

void add_sliding_pyramid(std::vector<ReducedRow>& rows, int& size, const Block& block, const BlockMode& m, bool unit) {
  if (block.mu == 0) return add_single(rows, size, block.row + 2);
  const double x = block.mu * m.nx, y = block.mu * m.ny, length = unit ? std::sqrt(1 + x * x + y * y) : 1.0;
  ReducedRow& normal = rows[size++];
  normal = ReducedRow{};
  normal.row = block.row;
  normal.row_b = block.row + 2;
  normal.one_c = false;
  normal.c[0] = x / length, normal.c[1] = y / length, normal.c[2] = 1 / length;
  const FrictionPolygon& polygon = friction_polygon(block);
  if (!polygon.is_side(m.facet)) return;
  ReducedRow& across = rows[size++];
  across = ReducedRow{};
  across.row = block.row;
  across.one_c = across.one_b = false;
  across.c[0] = across.b[0] = -polygon.direction[m.facet][1];
  across.c[1] = across.b[1] = polygon.direction[m.facet][0];
}

/// Rows of B G C + Q; with `upper` only the part right of the diagonal (plus rubbish left of it that nobody reads).
COULOMB_SIMD void assemble_rows(const double* G, int ldg, const ReducedRow* rows, int m, int ld, bool upper,
                                double delta, double* combination, double* __restrict A) {
  for (int i = 0; i < m; ++i) {
    const ReducedRow& r = rows[i];
    const double* source = G + static_cast<long>(r.one_b ? r.row_b : r.row) * ldg;
    if (!r.one_b) {
      const double *s1 = source + ldg, *s2 = s1 + ldg;
      for (int j = 0; j < ldg; ++j) combination[j] = r.b[0] * source[j] + r.b[1] * s1[j] + r.b[2] * s2[j];
      source = combination;
    }
    double* target = A + static_cast<long>(i) * ld;
    for (int j = upper ? i : 0; j < m; ++j) {
      const ReducedRow& t = rows[j];
      const double* s = source + t.row;
      target[j] = t.one_c ? source[t.row_c] : t.c[0] * s[0] + t.c[1] * s[1] + t.c[2] * s[2];
    }
    target[i] += r.q + delta * r.damping;
  }
}

}  // namespace

void ReducedSystem::set_modes(const ScaledProblem& problem, const BlockMode* modes, bool unit_columns) {
  if (static_cast<int>(rows.size()) < problem.n) {
    const auto n = static_cast<std::size_t>(problem.ld);
    rows.resize(n);
    fixed.resize(n);
    pivot.resize(n);
    work_.resize(2 * n);
    A.resize(n * n);
  }
  std::fill(fixed.begin(), fixed.begin() + problem.ld, 0.0);
  size = 0;
  symmetric = true;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const Mode mode = modes[b].mode;
    if (mode == Mode::sliding) {
      if (block.type == BlockType::cone) add_sliding(rows, size, block.row, block.mu, modes[b], unit_columns);
      else add_sliding_pyramid(rows, size, block, modes[b], unit_columns);
      symmetric = symmetric && block.mu == 0;
    } else if (mode == Mode::lower || mode == Mode::upper) {
      fixed[block.row] = mode == Mode::upper ? problem.bound[b] : -problem.bound[b];
    } else if (mode != Mode::separating) {
      for (int i = 0; i < block.size; ++i) add_single(rows, size, block.row + i);
    }
  }
  ld = dense::padded(size);
}

void ReducedSystem::assemble(const ScaledProblem& problem, double delta) {
  assemble_rows(problem.G.data(), problem.ld, rows.data(), size, ld, false, delta, work_.data(), A.data());
}

bool ReducedSystem::factorise(const ScaledProblem& problem, double delta) {
  assemble_rows(problem.G.data(), problem.ld, rows.data(), size, ld, symmetric, delta, work_.data(), A.data());
  pivot_ratio = symmetric ? dense::cholesky(A.data(), size, ld, work_.data())
                          : dense::lu(A.data(), size, ld, pivot.data(), work_.data());
  return pivot_ratio > 0;
}

void ReducedSystem::solve(double* x) {
  if (symmetric) {
    dense::cholesky_solve(A.data(), size, ld, x);
  } else {
    dense::lu_solve(A.data(), size, ld, pivot.data(), x);
  }
}

void ReducedSystem::step(const ScaledProblem& problem, const double* from, double* to, double* c) {
  std::copy(fixed.begin(), fixed.begin() + problem.ld, to);
  for (int i = 0; i < size; ++i) expand(rows[i], coordinate(rows[i], from), to);
  if (size == 0) return;
  if (static_cast<int>(x_.size()) < size) x_.resize(rows.size());
  problem.velocity(to, c);
  for (int i = 0; i < size; ++i) {
    x_[i] = -equation(rows[i], c);
    if (rows[i].q != 0) x_[i] -= rows[i].q * coordinate(rows[i], from);
  }
  solve(x_.data());
  for (int i = 0; i < size; ++i) expand(rows[i], x_[i], to);
}

}  // namespace coulomb

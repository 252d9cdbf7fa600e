// M + diag = L^T D L with the tree's sparsity (no fill-in: row d of L lives on d's root path), and u_hat from U = L^-1, which has
// the same pattern: u_hat[k][i] = U[i][k] D_k^(-1/2), so (M + diag)^-1 = u_hat^T u_hat. An ancestor's row is a prefix of its
// descendant's, so every inner loop runs over contiguous memory.
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/simd.hpp"

#include <cmath>
#include <limits>

namespace coulomb {
namespace {

COULOMB_SIMD bool factor_rows(const Model& model, const double* __restrict mass, const double* extra, double* __restrict l,
                              double* __restrict diagonal) {
  const int nv = model.nv;
  const int* row_start = model.dof_row.data();
  bool positive = true;
  for (int i = 0; i < row_start[nv]; ++i) l[i] = mass[i];
  if (extra)
    for (int d = 0; d < nv; ++d) l[row_start[d + 1] - 1] += extra[d];
  for (int k = nv - 1; k >= 0; --k) {
    const int depth = row_start[k + 1] - row_start[k] - 1;
    double* row = l + row_start[k];
    const int* path = &model.dof_path[row_start[k]];
    double pivot = row[depth];
    if (!(pivot > 0 && pivot <= std::numeric_limits<double>::max())) {
      positive = false;
      pivot = 1e-12;
    }
    diagonal[k] = pivot;
    const double inverse = 1.0 / pivot;
    for (int i = depth - 1; i >= 0; --i) {
      const double scale = row[i] * inverse;
      double* __restrict target = l + row_start[path[i]];
      for (int j = 0; j <= i; ++j) target[j] -= scale * row[j];
      row[i] = scale;
    }
    row[depth] = 1.0;
  }
  return positive;
}

COULOMB_SIMD void invert_rows(const Model& model, const double* __restrict l, const double* __restrict diagonal, int ld,
                              double* __restrict u, double* __restrict u_hat) {
  const int nv = model.nv;
  const int* row_start = model.dof_row.data();
  for (int d = 0; d < nv; ++d) {
    const int depth = row_start[d + 1] - row_start[d] - 1;
    const int* path = &model.dof_path[row_start[d]];
    const double* row = l + row_start[d];
    double* __restrict out = u + row_start[d];
    for (int i = 0; i < depth; ++i) out[i] = 0.0;
    out[depth] = 1.0;
    for (int i = 0; i < depth; ++i) {
      const double scale = row[i];
      const double* ancestor = u + row_start[path[i]];
      for (int j = 0; j <= i; ++j) out[j] -= scale * ancestor[j];
    }
  }
  for (int d = 0; d < nv; ++d)
    for (int i = row_start[d]; i < row_start[d + 1]; ++i) u_hat[model.dof_path[i] * ld + d] = u[i];
  for (int k = 0; k < nv; ++k) {
    const double scale = 1.0 / std::sqrt(diagonal[k]);
    for (int i = k; i < model.dof_subtree_end[k]; ++i) u_hat[k * ld + i] *= scale;
  }
}

}  // namespace

bool factor(const Model& model, const double* extra_diagonal, DynamicsWorkspace& ws) {
  const bool positive = factor_rows(model, ws.mass.data(), extra_diagonal, ws.factor_l.data(), ws.factor_d.data());
  invert_rows(model, ws.factor_l.data(), ws.factor_d.data(), ws.ld, ws.scratch.data(), ws.u_hat.data());
  return positive;
}

void solve_mass(const Model& model, const DynamicsWorkspace& ws, double* x) {
  const double* l = ws.factor_l.data();
  const int* start = model.dof_row.data();
  const int* path = model.dof_path.data();
  for (int d = model.nv - 1; d >= 0; --d)  // x = L^-T x
    for (int i = start[d]; i < start[d + 1] - 1; ++i) x[path[i]] -= l[i] * x[d];
  for (int d = 0; d < model.nv; ++d) x[d] /= ws.factor_d[d];
  for (int d = 0; d < model.nv; ++d)  // x = L^-1 x
    for (int i = start[d]; i < start[d + 1] - 1; ++i) x[d] -= l[i] * x[path[i]];
}

}  // namespace coulomb

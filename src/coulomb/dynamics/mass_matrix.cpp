// Composite rigid bodies: M_dk = J_k . a_d for k <= d, a_d = I_c J_d with I_c the inertia of the subtree that dof d moves, plus
// the armature on the diagonal. Rows are packed along root paths, so the columns J_k of a row are a stack in
// structure-of-arrays form and a row is computed in blocks of 8 without gathers.
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/simd.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void composite_sweep(const Model& model, const double* inertia, double* composite) {
  for (int i = 0; i < 12 * model.num_bodies; ++i) composite[i] = inertia[i];
  for (int b = model.num_bodies - 1; b > 0; --b) {
    const int parent = model.body_parent[b];
    if (model.body_tree[parent] < 0) continue;
    double* to = composite + 12 * parent;
    const double* from = composite + 12 * b;
    for (int i = 0; i < 12; ++i) to[i] += from[i];
  }
}

/// Writes value into lane `lane` of the block of 8 by load, blend, store: a scalar store would stall the vector load after it.
COULOMB_INLINE void set_lane(double* block, int lane, double value) {
  for (int i = 0; i < 8; ++i) block[i] = i == lane ? value : block[i];
}

COULOMB_SIMD void mass_rows(const Model& model, const double* columns, const double* composite, int capacity, double* __restrict stack,
                            double* __restrict vectors, double* __restrict mass) {
  for (int d = 0; d < model.nv; ++d) {
    const int depth = model.dof_depth[d], block = depth & ~7;
    const double* column = columns + 8 * d;
    for (int i = 0; i < 6; ++i) set_lane(stack + i * capacity + block, depth - block, column[i]);
    const Spatial a = inertia_times(composite + 12 * model.dof_body[d], load6(column));
    store6(vectors + 24 * d, a);
    const double a0 = a.linear.x, a1 = a.linear.y, a2 = a.linear.z, a3 = a.angular.x, a4 = a.angular.y, a5 = a.angular.z;
    double* row = mass + model.dof_row[d];
    for (int k = 0; k <= depth; k += 8) {
      const double* s = stack + k;
      for (int i = 0; i < 8; ++i)
        row[k + i] = s[i] * a0 + s[capacity + i] * a1 + s[2 * capacity + i] * a2 + s[3 * capacity + i] * a3 +
                     s[4 * capacity + i] * a4 + s[5 * capacity + i] * a5;
    }
    row[depth] += model.dof_armature[d];
  }
}

}  // namespace

void mass_matrix(const Model& model, DynamicsWorkspace& ws) {
  composite_sweep(model, ws.inertia.data(), ws.composite.data());
  mass_rows(model, ws.columns.data(), ws.composite.data(), ws.path_capacity, ws.scratch.data(), ws.vectors.data(), ws.mass.data());
}

void multiply_mass(const Model& model, const DynamicsWorkspace& ws, const double* x, double* y) {
  for (int d = 0; d < model.nv; ++d) {
    const double* row = &ws.mass[model.dof_row[d]];
    const int* path = &model.dof_path[model.dof_row[d]];
    const int depth = model.dof_depth[d];
    double sum = row[depth] * x[d];
    for (int i = 0; i < depth; ++i) {
      sum += row[i] * x[path[i]];
      y[path[i]] += row[i] * x[d];  // an ancestor's own sum is already there
    }
    y[d] = sum;
  }
}

}  // namespace coulomb

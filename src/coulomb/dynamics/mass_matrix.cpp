// Composite rigid bodies: M_dk = J_k . a_d for k <= d, a_d = I_c J_d with I_c the inertia of the subtree that dof d moves, plus
// the armature on the diagonal. Rows are packed along root paths, so the columns J_k of a row are a stack in
// structure-of-arrays form and a row is computed in blocks of 8 without gathers.
#include "coulomb/base/lanes.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

namespace coulomb {
namespace {

/// Sums of inertias over subtrees.
COULOMB_SIMD void composite_sweep(const int* __restrict parents, const int* __restrict trees,
                                  const int* __restrict moving, int num_moving, const double* __restrict inertia,
                                  double* __restrict composite) {
  for (int k = 0; k < num_moving; ++k)
    for (int i = 0; i < 12; ++i)
      composite[12 * moving[k] + i] = inertia[12 * moving[k] + i];
  for (int k = num_moving - 1; k >= 0; --k) {
    const int b = moving[k];
    const int parent = parents[b];
    if (trees[parent] < 0) continue;
    double* to = composite + 12 * parent;
    const double* from = composite + 12 * b;
    for (int i = 0; i < 12; ++i)
      to[i] += from[i];
  }
}

/// What mass_rows reads of the model, by dof.
struct DofTables {
  const int* depth;
  const int* row;
  const int* body;
  const double* armature;
};

/// Rows of M, packed along root paths; a_d goes to the first six of `vectors` (24 a dof).
template <int width>
COULOMB_INLINE void mass_rows_lanes(DofTables dofs, int nv, const double* __restrict columns,
                                    const double* __restrict composite, int capacity, double* __restrict stack,
                                    double* __restrict vectors, double* __restrict mass) {
  // The column of dof d joins the stack of its root path, in its own lane. Loaded, blended, stored: a scalar store
  // would stall the vector load after it.
  for (int d = 0; d < nv; ++d) {
    const int depth = dofs.depth[d];
    const int block = depth & ~7;
    const double* column = columns + 8 * d;
    const LaneMask<width> lane = lanes_of_bits<width>(1u << (depth - block));
    for (int i = 0; i < 6; ++i) {
      double* at = stack + i * capacity + block;
      store_lanes(at, select(lane, broadcast<width>(column[i]), load_lanes<width>(at)));
    }

    // a_d = I_c J_d
    const Spatial a = inertia_times(composite + 12 * dofs.body[d], load6(column));
    store6(vectors + 24 * d, a);
    const double a0 = a.linear.x;
    const double a1 = a.linear.y;
    const double a2 = a.linear.z;
    const double a3 = a.angular.x;
    const double a4 = a.angular.y;
    const double a5 = a.angular.z;

    // M_dk = J_k . a_d for all k on the path, eight at a time.
    double* row = mass + dofs.row[d];
    for (int k = 0; k <= depth; k += 8) {
      const double* s = stack + k;
      const auto linear =
          a0 * load_lanes<width>(s) + a1 * load_lanes<width>(s + capacity) + a2 * load_lanes<width>(s + 2 * capacity);
      s += 3 * capacity;
      const auto angular =
          a3 * load_lanes<width>(s) + a4 * load_lanes<width>(s + capacity) + a5 * load_lanes<width>(s + 2 * capacity);
      store_lanes(row + k, linear + angular);
    }

    // The rotor turns with this dof alone.
    row[depth] += dofs.armature[d];
  }
}

COULOMB_SIMD_BY_WIDTH(void, mass_rows,
                      (DofTables dofs, int nv, const double* __restrict columns, const double* __restrict composite,
                       int capacity, double* __restrict stack, double* __restrict vectors, double* __restrict mass),
                      (dofs, nv, columns, composite, capacity, stack, vectors, mass))

}  // namespace

void mass_matrix(const Model& model, DynamicsWorkspace& ws) {
  composite_sweep(model.body_parent.data(), model.body_tree.data(), model.moving_bodies.data(),
                  static_cast<int>(model.moving_bodies.size()), ws.inertia.data(), ws.composite.data());
  const DofTables dofs{model.dof_depth.data(), model.dof_row.data(), model.dof_body.data(), model.dof_armature.data()};
  mass_rows(dofs, model.nv, ws.columns.data(), ws.composite.data(), ws.path_capacity, ws.scratch.data(),
            ws.vectors.data(), ws.mass.data());
}

/// y = M x, by rows: M_dk x_k in the row of d, M_kd x_d in those of its ancestors, whose own sums are there already.
void multiply_mass(const Model& model, const DynamicsWorkspace& ws, const double* x, double* y) {
  for (int d = 0; d < model.nv; ++d) {
    const double* row = &ws.mass[model.dof_row[d]];
    const int* path = &model.dof_path[model.dof_row[d]];
    const int depth = model.dof_depth[d];
    double sum = row[depth] * x[d];
    for (int i = 0; i < depth; ++i) {
      sum += row[i] * x[path[i]];
      y[path[i]] += row[i] * x[d];
    }
    y[d] = sum;
  }
}

}  // namespace coulomb

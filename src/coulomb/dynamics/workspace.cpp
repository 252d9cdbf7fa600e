// Sizes of the dynamics workspace and the per-body force accumulator. Everything starts at zero: padding, entries of unrelated
// dofs and bodies fixed to the world are never written again.
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/spatial.hpp"

#include <algorithm>

namespace coulomb {

DynamicsWorkspace::DynamicsWorkspace(const Model& model) {
  nv = model.nv;
  ld = (nv + 7) / 8 * 8;
  const std::size_t bodies = model.num_bodies;
  const std::size_t dofs = nv;

  // Packed rows are written in blocks of 8 that run over into the next row, which is written later.
  const std::size_t packed = model.dof_path.size() + 8;

  // Dense matrices are kept by tree, each with rows padded to multiples of 8.
  std::size_t dense = 0;
  std::size_t width = 0;
  for (int t = 0; t < model.num_trees; ++t) {
    DofBlock tree;
    tree.first = model.tree_first_dof[t];
    tree.size = model.tree_first_dof[t + 1] - tree.first;
    tree.ld = (tree.size + 7) / 8 * 8;
    tree.matrix = dense;
    tree.streams = 18 * width;
    dense += static_cast<std::size_t>(tree.size) * tree.ld;
    width += tree.ld;
    trees.push_back(tree);
  }

  // The longest root path, padded likewise.
  int depth = 0;
  for (int d : model.dof_depth)
    depth = std::max(depth, d + 1);
  path_capacity = (depth + 7) / 8 * 8;

  // Bodies.
  reference.assign(3 * static_cast<std::size_t>(model.num_trees), 0.0);
  body_rotation.assign(9 * bodies, 0.0);
  body_position.assign(3 * bodies, 0.0);
  body_quaternion.assign(4 * bodies, 0.0);
  body_twist.assign(8 * bodies, 0.0);
  body_acceleration.assign(8 * bodies, 0.0);
  inertia.assign(12 * bodies, 0.0);
  composite.assign(12 * bodies, 0.0);
  link.assign(32 * bodies, 0.0);

  // Dofs.
  columns.assign(8 * dofs, 0.0);
  column_rate.assign(8 * dofs, 0.0);
  column_chi.assign(8 * dofs, 0.0);
  column_acceleration.assign(8 * dofs, 0.0);
  vectors.assign(24 * dofs, 0.0);
  velocity.assign(dofs, 0.0);
  bias.assign(dofs, 0.0);

  // M and its factor.
  mass.assign(packed, 0.0);
  factor_l.assign(packed, 0.0);
  factor_d.assign(dofs, 0.0);
  u_rows.assign(packed, 0.0);
  u_hat.assign(dense, 0.0);
  factor_work.assign(dofs * path_capacity, 0.0);

  // Derivatives, with a mask of the ancestors of every dof, eight to a byte.
  id_dq_T.assign(dense, 0.0);
  id_dv_T.assign(dense, 0.0);
  ancestors.assign(dense / 8, 0);
  for (const DofBlock& tree : trees)
    for (int d = 0; d < tree.size; ++d)
      for (int k = model.dof_parent[tree.first + d]; k >= 0; k = model.dof_parent[k]) {
        const int column = k - tree.first;
        ancestors[(tree.matrix + static_cast<std::size_t>(d) * tree.ld + column) / 8] |=
            static_cast<unsigned char>(1u << (column % 8));
      }

  streams.assign(18 * width, 0.0);

  // Scratch is shared by the vjp (18 sums per dof) and the factor (rows of L^-1 of a root path and their scales).
  scratch.assign(
      std::max(18 * static_cast<std::size_t>(ld), static_cast<std::size_t>(path_capacity + 1) * path_capacity), 0.0);
}

void add_by_tree(const DynamicsWorkspace& ws, const std::vector<double>& matrix, double* out, int ld) {
  for (const DofBlock& tree : ws.trees)
    for (int k = 0; k < tree.size; ++k) {
      const double* from = matrix.data() + tree.matrix + static_cast<std::size_t>(k) * tree.ld;
      double* to = out + static_cast<std::size_t>(tree.first + k) * ld + tree.first;
      for (int d = 0; d < tree.size; ++d)
        to[d] += from[d];
    }
}

BodyForces::BodyForces(const Model& model)
    : wrench(8 * static_cast<std::size_t>(model.num_bodies), 0.0),
      moment(9 * static_cast<std::size_t>(model.num_bodies), 0.0) {}

void BodyForces::clear() {
  std::fill(wrench.begin(), wrench.end(), 0.0);
  std::fill(moment.begin(), moment.end(), 0.0);
}

void add_body_force(const Model& model, const DynamicsWorkspace& ws, BodyForces& forces, int body,
                    const double point_world[3], const double force_world[3]) {
  const int tree = model.body_tree[body];
  if (tree < 0) return;
  const Vector3 f = load3(force_world);
  const Vector3 p = load3(point_world) - load3(&ws.reference[3 * tree]);

  // The wrench about o, and the virial f p^T - (p . f) 1 of (D12).
  double* wrench = &forces.wrench[8 * body];
  store6(wrench, load6(wrench) + Spatial{f, cross(p, f)});
  double* e = &forces.moment[9 * body];
  const double pf = dot(p, f);
  const double fs[3] = {f.x, f.y, f.z};
  const double ps[3] = {p.x, p.y, p.z};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      e[3 * i + j] += fs[i] * ps[j] - (i == j ? pf : 0.0);
}

}  // namespace coulomb

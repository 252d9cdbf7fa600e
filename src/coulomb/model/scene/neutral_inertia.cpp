#include "coulomb/model/scene/neutral_inertia.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// Poses of bodies at the neutral configuration and the columns (D4) of their dofs, about the world's origin.
void neutral_kinematics(const Model& m, NeutralInertia& k) {
  k.body.resize(m.num_bodies);
  k.columns.assign(6 * m.nv, 0.0);

  // The pose in the parent's frame, then in the world.
  for (int b = 1; b < m.num_bodies; ++b) {
    Placement local;
    std::copy_n(&m.body_pos[3 * b], 3, local.pos.begin());
    std::copy_n(&m.body_quat[4 * b], 4, local.quat.begin());
    k.body[b] = compose(k.body[m.body_parent[b]], local);
    double R[9];
    quaternion_to_matrix(k.body[b].quat.data(), R);

    // Columns of its joints: an axis through the anchor, or the body's axes.
    for (int j = m.body_first_joint[b]; j < m.body_first_joint[b] + m.body_num_joints[b]; ++j) {
      const int d = m.joint_v[j];
      double anchor[3];
      rotate(R, &m.joint_pos[3 * j], anchor);
      add3(anchor, k.body[b].pos.data(), anchor);
      auto turn = [&](int dof, const double* axis) {
        copy3(axis, &k.columns[6 * dof + 3]);
        cross3(anchor, axis, &k.columns[6 * dof]);
      };
      double axis[3];
      rotate(R, &m.joint_axis[3 * j], axis);
      if (m.joint_type[j] == JointType::slide) {
        copy3(axis, &k.columns[6 * d]);
      }
      if (m.joint_type[j] == JointType::hinge) {
        turn(d, axis);
      }
      const bool free = m.joint_type[j] == JointType::free;
      if (free || m.joint_type[j] == JointType::ball)
        for (int i = 0; i < 3; ++i) {
          const double column[3] = {R[i], R[3 + i], R[6 + i]};
          if (free) {
            k.columns[6 * (d + i) + i] = 1;
          }
          turn(free ? d + 3 + i : d + i, column);
        }
    }
  }
}

/// Composite inertia of a subtree about the world's origin: mass, first moment, rotational inertia (6 entries used as 3x3).
struct Composite {
  double mass = 0;
  double first[3] = {0, 0, 0};
  double inertia[9] = {};
  void add(const Composite& o) {
    mass += o.mass;
    add3(first, o.first, first);
    for (int i = 0; i < 9; ++i)
      inertia[i] += o.inertia[i];
  }

  // wrench = inertia times twist (D6).
  void apply(const double* twist, double* wrench) const {
    double t[3];
    cross3(twist + 3, first, t);
    for (int i = 0; i < 3; ++i)
      wrench[i] = mass * twist[i] + t[i];
    rotate(inertia, twist + 3, wrench + 3);
    add_cross3(first, twist, wrench + 3);
  }
};

/// Of one body alone.
Composite body_inertia(const Model& m, int b, const Placement& place) {
  // Centre of mass in the world.
  Composite c;
  double R[9];
  double com[3];
  quaternion_to_matrix(place.quat.data(), R);
  rotate(R, &m.body_com[3 * b], com);
  add3(com, place.pos.data(), com);

  // Inertia about it, turned into the world's axes,
  const double* I = &m.body_inertia[6 * b];
  const double local[9] = {I[0], I[1], I[3], I[1], I[2], I[4], I[3], I[4], I[5]};
  const double Rt[9] = {R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]};
  multiply3(R, local, c.inertia);
  multiply3(c.inertia, Rt, c.inertia);

  // then about the world's origin (Steiner).
  c.mass = m.body_mass[b];
  for (int i = 0; i < 3; ++i)
    c.first[i] = c.mass * com[i];
  const double square = dot3(com, com);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      c.inertia[3 * i + j] += c.mass * ((i == j ? square : 0.0) - com[i] * com[j]);
  return c;
}

}  // namespace

NeutralInertia::NeutralInertia(const Model& m) {
  neutral_kinematics(m, *this);

  // Subtrees, from the leaves to the roots.
  std::vector<Composite> composite(m.num_bodies);
  for (int b = 1; b < m.num_bodies; ++b)
    composite[b] = body_inertia(m, b, body[b]);
  for (int b = m.num_bodies - 1; b > 0; --b)
    if (m.body_tree[b] >= 0) {
      composite[m.body_parent[b]].add(composite[b]);
    }

  // M, packed along root paths (D7).
  factor.resize(m.dof_path.size());
  diagonal.resize(m.nv);
  for (int d = 0; d < m.nv; ++d) {
    double wrench[6];
    composite[m.dof_body[d]].apply(&columns[6 * d], wrench);
    for (int e = 0; e <= m.dof_depth[d]; ++e)
      factor[m.dof_row[d] + e] = dot6(&columns[6 * m.dof_path[m.dof_row[d] + e]], wrench);
    diagonal[d] = factor[m.dof_row[d] + m.dof_depth[d]] += m.dof_armature[d];
  }

  // Its factor, from the leaves.
  for (int d = m.nv - 1; d >= 0; --d) {
    const double* row = &factor[m.dof_row[d]];
    for (int e = 0; e < m.dof_depth[d]; ++e) {
      const double share = row[e] / row[m.dof_depth[d]];
      double* ancestor = &factor[m.dof_row[m.dof_path[m.dof_row[d] + e]]];
      for (int f = 0; f <= e; ++f)
        ancestor[f] -= share * row[f];
    }
  }
}

double NeutralInertia::mobility(const Model& m, int last, double* x) const {
  // x = L^-T x from the leaf on, then its norm in D^-1.
  double sum = 0;
  const int* path = &m.dof_path[m.dof_row[last]];
  for (int i = m.dof_depth[last]; i >= 0; --i) {
    const double* row = &factor[m.dof_row[path[i]]];
    const double value = x[path[i]] / row[i];
    for (int e = 0; e < i; ++e)
      x[path[e]] -= row[e] * value;
    sum += value * x[path[i]];
  }
  return sum;
}

}  // namespace coulomb

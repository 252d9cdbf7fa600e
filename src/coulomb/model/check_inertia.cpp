// Whether a model can move: inertias are those of rigid bodies, and the mass matrix at the neutral configuration,
// M = sum_b J_b^T I_b J_b + armature, is positive definite. Dense and plain: it runs once per build.
#include <algorithm>
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene_parts.hpp"

namespace coulomb {

void check_inertia(const std::string& what, double mass, const Vec3& com, const std::array<double, 6>& I) {
  checks::not_negative(what + " mass", mass);
  checks::finite(what + " com", com.data(), 3);
  checks::finite(what + " inertia", I.data(), 6);
  const double half = (I[0] + I[2] + I[5]) / 2;
  const double xx = half - I[0], yy = half - I[2], zz = half - I[5], xy = -I[1], xz = -I[3], yz = -I[4];
  const std::string value = "(Ixx Ixy Iyy Ixz Iyz Izz) = (" + checks::text(I[0]) + ", " + checks::text(I[1]) + ", " +
                            checks::text(I[2]) + ", " + checks::text(I[3]) + ", " + checks::text(I[4]) + ", " +
                            checks::text(I[5]) + ")";
  constexpr double tolerance = 1e-6;  // relative: files round their numbers
  const double t = std::abs(half) + 1e-300, e = tolerance * t;
  if (half < 0) checks::fail(what + " inertia", value + " has a negative trace");
  const double minors[6] = {xx * yy - xy * xy, xx * zz - xz * xz, yy * zz - yz * yz};
  const double det = xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
  const bool ok = xx >= -e && yy >= -e && zz >= -e && minors[0] >= -e * t && minors[1] >= -e * t &&
                  minors[2] >= -e * t && det >= -e * t * t;
  if (!ok)
    checks::fail(what + " inertia",
                 value +
                     " belongs to no rigid body: its principal moments must be non-negative and satisfy the "
                     "triangle inequality");
  if (mass == 0 && half > 0 && half < 1e-300) checks::fail(what + " inertia", "is denormal");
}

namespace {

/// Jacobian columns (v, w) of every dof about the world's origin, at the neutral configuration.
struct NeutralKinematics {
  std::vector<Placement> body;
  std::vector<double> columns;  ///< 6 nv
};

NeutralKinematics neutral_kinematics(const Model& m) {
  NeutralKinematics k;
  k.body.resize(m.num_bodies);
  k.columns.assign(6 * m.nv, 0.0);
  for (int b = 1; b < m.num_bodies; ++b) {
    Placement local;
    std::copy_n(&m.body_pos[3 * b], 3, local.pos.begin());
    std::copy_n(&m.body_quat[4 * b], 4, local.quat.begin());
    k.body[b] = compose(k.body[m.body_parent[b]], local);
    double R[9];
    quaternion_to_matrix(k.body[b].quat.data(), R);
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
      if (m.joint_type[j] == JointType::slide) copy3(axis, &k.columns[6 * d]);
      if (m.joint_type[j] == JointType::hinge) turn(d, axis);
      const bool free = m.joint_type[j] == JointType::free;
      if (free || m.joint_type[j] == JointType::ball)
        for (int i = 0; i < 3; ++i) {
          const double column[3] = {R[i], R[3 + i], R[6 + i]};
          if (free) k.columns[6 * (d + i) + i] = 1;
          turn(free ? d + 3 + i : d + i, column);
        }
    }
  }
  return k;
}

/// Composite inertia of a subtree about the world's origin: mass, first moment, rotational inertia (6 entries used as 3x3).
struct Composite {
  double mass = 0, first[3] = {0, 0, 0}, inertia[9] = {};
  void add(const Composite& o) {
    mass += o.mass;
    add3(first, o.first, first);
    for (int i = 0; i < 9; ++i) inertia[i] += o.inertia[i];
  }
  void apply(const double* twist, double* wrench) const {
    double t[3];
    cross3(twist + 3, first, t);
    for (int i = 0; i < 3; ++i) wrench[i] = mass * twist[i] + t[i];
    rotate(inertia, twist + 3, wrench + 3);
    add_cross3(first, twist, wrench + 3);
  }
};

Composite body_inertia(const Model& m, int b, const Placement& place) {
  Composite c;
  double R[9], com[3];
  quaternion_to_matrix(place.quat.data(), R);
  rotate(R, &m.body_com[3 * b], com);
  add3(com, place.pos.data(), com);
  const double* I = &m.body_inertia[6 * b];
  const double local[9] = {I[0], I[1], I[3], I[1], I[2], I[4], I[3], I[4], I[5]};
  const double Rt[9] = {R[0], R[3], R[6], R[1], R[4], R[7], R[2], R[5], R[8]};
  multiply3(R, local, c.inertia);
  multiply3(c.inertia, Rt, c.inertia);
  c.mass = m.body_mass[b];
  for (int i = 0; i < 3; ++i) c.first[i] = c.mass * com[i];
  const double square = dot3(com, com);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) c.inertia[3 * i + j] += c.mass * ((i == j ? square : 0.0) - com[i] * com[j]);
  return c;
}

}  // namespace

void check_mass_matrix(const Model& m) {
  const NeutralKinematics k = neutral_kinematics(m);
  std::vector<Composite> composite(m.num_bodies);
  for (int b = 1; b < m.num_bodies; ++b) composite[b] = body_inertia(m, b, k.body[b]);
  for (int b = m.num_bodies - 1; b > 0; --b)
    if (m.body_tree[b] >= 0) composite[m.body_parent[b]].add(composite[b]);
  // rows packed along root paths as in Model::dof_row, factor L^T D L from the leaves: D_d is what is left to move dof d
  std::vector<double> M(m.dof_path.size());
  for (int d = 0; d < m.nv; ++d) {
    double wrench[6];
    composite[m.dof_body[d]].apply(&k.columns[6 * d], wrench);
    for (int e = 0; e <= m.dof_depth[d]; ++e)
      M[m.dof_row[d] + e] = dot6(&k.columns[6 * m.dof_path[m.dof_row[d] + e]], wrench);
    M[m.dof_row[d] + m.dof_depth[d]] += m.dof_armature[d];
  }
  std::vector<double> diagonal(m.nv);
  for (int d = 0; d < m.nv; ++d) diagonal[d] = M[m.dof_row[d] + m.dof_depth[d]];
  for (int d = m.nv - 1; d >= 0; --d) {
    const double* row = &M[m.dof_row[d]];
    const double pivot = row[m.dof_depth[d]];
    if (!(pivot > 1e-11 * diagonal[d]) || !(pivot > 1e-300))
      throw std::invalid_argument("joint '" + m.joint_names[m.dof_joint[d]] + "' of body '" +
                                  m.body_names[m.dof_body[d]] + "': mass or inertia that it moves is " +
                                  checks::text(pivot) +
                                  "; a moving body needs positive mass and inertia (or armature)");
    for (int e = 0; e < m.dof_depth[d]; ++e) {
      const double factor = row[e] / pivot;
      double* ancestor = &M[m.dof_row[m.dof_path[m.dof_row[d] + e]]];
      for (int f = 0; f <= e; ++f) ancestor[f] -= factor * row[f];
    }
  }
}

}  // namespace coulomb

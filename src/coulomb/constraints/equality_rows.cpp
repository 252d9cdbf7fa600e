// Equalities: connect (3 rows: two points coincide), weld (6: two frames coincide), joint (1: q_a = polynomial of q_b). Two-sided
// Baumgarte bias on the position error; the rotation error of a weld is the axial vector of R_a R_b^T, sin(angle) about its axis.
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

void place(const DynamicsWorkspace& dynamics, int body, const double* local, double* world) {
  rotate(dynamics.body_rotation.data() + 9 * body, local, world);
  add3(world, dynamics.body_position.data() + 3 * body, world);
}

void add_bodies(const RowContext& context, int index, ConstraintRows& rows) {
  const Equality& equality = context.model.equalities[index];
  BodyRows b;
  b.row = rows.num_rows, b.block = rows.num_blocks;
  b.size = equality.type == EqualityType::weld ? 6 : 3;
  b.body_a = equality.body_a, b.body_b = equality.body_b;
  b.torque_scale = equality.torque_scale;
  place(context.dynamics, b.body_a, equality.pos_a.data(), b.point_a);
  place(context.dynamics, b.body_b, equality.pos_b.data(), b.point_b);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) b.axes[i][j] = i == j;
    b.phi[i] = b.point_a[i] - b.point_b[i];
  }
  if (b.size == 6) {
    double local_a[9], local_b[9], Ra[9], Rb[9];
    quaternion_to_matrix(equality.quat_a.data(), local_a);
    quaternion_to_matrix(equality.quat_b.data(), local_b);
    multiply3(context.dynamics.body_rotation.data() + 9 * b.body_a, local_a, Ra);
    multiply3(context.dynamics.body_rotation.data() + 9 * b.body_b, local_b, Rb);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) b.rotation_error[3 * i + j] = dot3(Ra + 3 * i, Rb + 3 * j);
    const double* E = b.rotation_error;
    b.phi[3] = 0.5 * (E[7] - E[5]), b.phi[4] = 0.5 * (E[2] - E[6]), b.phi[5] = 0.5 * (E[3] - E[1]);
    for (int i = 3; i < 6; ++i) b.phi[i] *= b.torque_scale;
  }
  b.dbias_dphi = context.options.baumgarte / context.options.timestep;
  for (int i = 0; i < b.size; ++i) {
    rows.bias.push_back(b.dbias_dphi * b.phi[i]);
    rows.weight.push_back(context.model.equality_weight[2 * index + (i < 3 ? 0 : 1)]);
  }
  rows.blocks.push_back({BlockType::equality, b.row, b.size, 0, 0, false});
  rows.keys.push_back((std::uint64_t(2) << 60) | std::uint64_t(index));
  rows.num_rows += b.size;
  ++rows.num_blocks;
  rows.body_rows.push_back(b);
}

void add_joints(const RowContext& context, int index, ConstraintRows& rows) {
  const Model& model = context.model;
  const Equality& equality = model.equalities[index];
  DofRow row;
  row.row = rows.num_rows, row.block = rows.num_blocks;
  row.dof[0] = model.joint_v[equality.joint_a];
  row.coefficient[0] = 1;
  const double a = context.q[model.joint_q[equality.joint_a]] - equality.ref_a;
  double value = equality.poly[0], slope = 0, curvature = 0;
  if (equality.joint_b >= 0) {
    const double b = context.q[model.joint_q[equality.joint_b]] - equality.ref_b;
    value = slope = curvature = 0;
    for (int i = 4; i >= 0; --i) {  // Horner, with first and second derivative
      curvature = curvature * b + 2 * slope;
      slope = slope * b + value;
      value = value * b + equality.poly[i];
    }
    row.num = 2;
    row.dof[1] = model.joint_v[equality.joint_b];
    row.coefficient[1] = -slope;
    row.dcoefficient[1][1] = -curvature;
  }
  row.phi = a - value;
  row.dbias_dphi = context.options.baumgarte / context.options.timestep;
  rows.bias.push_back(row.dbias_dphi * row.phi);
  rows.weight.push_back(model.equality_weight[2 * index]);
  rows.blocks.push_back({BlockType::equality, row.row, 1, 0, 0, false});
  rows.keys.push_back((std::uint64_t(2) << 60) | std::uint64_t(index));
  ++rows.num_rows;
  ++rows.num_blocks;
  rows.dof_rows.push_back(row);
}

}  // namespace

void add_equality_rows(const RowContext& context, ConstraintRows& rows) {
  for (int i = 0; i < static_cast<int>(context.model.equalities.size()); ++i) {
    if (!context.model.equalities[i].active) continue;
    if (context.model.equalities[i].type == EqualityType::joint) add_joints(context, i, rows);
    else add_bodies(context, i, rows);
  }
}

}  // namespace coulomb

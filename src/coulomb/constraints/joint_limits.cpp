// Of a ball the gap is upper - |phi|, phi its rotation vector; its row is minus the axis n = phi/|phi| (body axes), which turns by
// dn = (1 - n n^T) J_r^-1 / |phi|.
#include "coulomb/constraints/joint_limits.hpp"

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

constexpr double no_axis = 1e-9;  // rad; limits this tight are refused by the scene

}  // namespace

double rotation_vector(const double* quaternion, double* vector) {
  const double length = std::sqrt(quaternion[0] * quaternion[0] + dot3(quaternion + 1, quaternion + 1));
  double unit[4];
  for (int i = 0; i < 4; ++i)
    unit[i] = quaternion[i] / length;
  quaternion_log(unit, vector);
  return norm3(vector);
}

JointLimit ball_limit(const Model& model, int joint, const double* q) {
  double vector[3];
  const double angle = rotation_vector(q + model.joint_q[joint], vector);

  // The gap shrinks as the joint turns about the axis.
  JointLimit out;
  out.first_dof = model.joint_v[joint];
  out.num = 3;
  out.phi = model.joint_upper[joint] - angle;
  for (int i = 0; i < 3 && angle >= no_axis; ++i)
    out.coefficient[i] = -(vector[i] / angle);
  return out;
}

DofRow JointLimit::row() const {
  DofRow out;
  out.num = num;
  out.phi = phi;
  for (int i = 0; i < num; ++i) {
    out.dof[i] = first_dof + i;
    out.coefficient[i] = coefficient[i];
  }
  return out;
}

DofRow tendon_row(const TendonState& state, bool upper, double bound) {
  const double sign = upper ? -1 : 1;
  DofRow out;
  out.num = state.num;
  for (int i = 0; i < out.num; ++i) {
    out.dof[i] = state.dof[i];
    out.coefficient[i] = sign * state.J[i];
  }
  out.phi = sign * (state.length - bound);
  return out;
}

DofRow tendon_limit_row(const Model& model, int tendon, bool upper, const TendonState& state) {
  const Tendon& t = model.tendons[tendon];
  DofRow out = tendon_row(state, upper, upper ? t.upper : t.lower);
  out.tendon = tendon;
  return out;
}

void turn_tendon_row(const TendonState& state, bool upper, DofRow& row, ConstraintRows& rows) {
  if (!state.turns) return;
  const double sign = upper ? -1 : 1;
  double* turning = rows.turn(row);
  for (int i = 0; i < row.num; ++i)
    for (int j = 0; j < row.num; ++j)
      turning[i * row.num + j] = sign * state.dJ[i][j];
}

void turn_limit_row(const Model& model, int joint, const double* q, DofRow& row, ConstraintRows& rows) {
  if (model.joint_type[joint] != JointType::ball) return;
  double vector[3];
  double inverse[9];
  const double angle = rotation_vector(q + model.joint_q[joint], vector);
  inverse_right_jacobian(vector, inverse);
  double n[3];
  for (int i = 0; i < 3; ++i)
    n[i] = vector[i] / angle;

  double* turning = rows.turn(row);
  for (int j = 0; j < 3; ++j) {
    const double column[3] = {inverse[j], inverse[3 + j], inverse[6 + j]};
    const double along = dot3(n, column);
    for (int i = 0; i < 3; ++i)
      turning[3 * i + j] = -(column[i] - n[i] * along) / angle;
  }
}

}  // namespace coulomb

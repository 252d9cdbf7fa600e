// Joint rows: limits (0 <= lambda, c = rate of the gap + bias >= 0, lower and upper side apart) and dry friction (|lambda| <= h tau_dry,
// c = the joint's velocity). A limit that is still open is speculative: its bias phi/h lets the joint close the gap and no more.
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// A row enters when the gap could close within the step (twice over, for what other constraints may add); rows that enter without
/// need carry no impulse.
bool within_reach(const RowContext& context, double phi, double rate, double free_rate) {
  if (context.options.gaps != GapRule::speculative) return is_held(context.options, phi, rate);
  const double closing = std::max(0.0, std::max(-rate, -free_rate));
  return phi < 1e-6 + 2 * context.options.timestep * closing;
}

/// key: of the joint and its side.
void push_limit(const RowContext& context, DofRow& row, std::uint64_t key, ConstraintRows& rows) {
  row.row = rows.num_rows;
  row.block = rows.num_blocks;
  const Bias correction = one_sided_bias(context.options, row.phi);
  row.dbias_dphi = correction.slope;
  rows.bias.push_back(correction.value);

  // The mean of the joint's own.
  double weight = 0;
  for (int i = 0; i < row.num; ++i)
    weight += context.model.dof_weight[row.dof[i]] / row.num;
  rows.weight.push_back(weight);

  rows.blocks.push_back({BlockType::limit, row.row, 1, 0, 0, row.phi > 0});
  rows.blocks.back().corner = correction.corner;
  rows.keys.push_back((std::uint64_t(3) << 60) | key);
  ++rows.num_rows;
  ++rows.num_blocks;
  rows.dof_rows.push_back(row);
}

/// Hinge and slide: lower and upper side apart.
void add_linear(const RowContext& context, int joint, ConstraintRows& rows) {
  const Model& model = context.model;
  const double q = context.q[model.joint_q[joint]];
  const int d = model.joint_v[joint];
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1 : -1;
    const double bound = side == 0 ? model.joint_lower[joint] : model.joint_upper[joint];
    if (!std::isfinite(bound)) continue;

    const double phi = sign * (q - bound);
    if (!within_reach(context, phi, sign * context.v[d], sign * context.v_free[d])) continue;

    DofRow row;
    row.dof[0] = d;
    row.coefficient[0] = sign;
    row.phi = phi;
    push_limit(context, row, 2 * std::uint64_t(joint) + side, rows);
  }
}

/// Ball: rotation angle <= upper. The row is minus the rotation axis n (body axes); dn = (1 - n n^T) Jr^-1 / angle.
void add_ball(const RowContext& context, int joint, ConstraintRows& rows) {
  const Model& model = context.model;
  const int d = model.joint_v[joint];

  // The rotation vector, phi = angle n. Without an axis there is no row; a limit this tight is refused by the scene.
  double q[4];
  double phi[3];
  const double* quaternion = context.q + model.joint_q[joint];
  const double length = std::sqrt(quaternion[0] * quaternion[0] + dot3(quaternion + 1, quaternion + 1));
  for (int i = 0; i < 4; ++i)
    q[i] = quaternion[i] / length;
  quaternion_log(q, phi);
  const double angle = norm3(phi);
  if (angle < 1e-9) return;

  double n[3];
  for (int i = 0; i < 3; ++i)
    n[i] = phi[i] / angle;

  // The gap closes as the joint turns about the axis.
  DofRow row;
  row.num = 3;
  row.phi = model.joint_upper[joint] - angle;
  double rate = 0;
  double free_rate = 0;
  for (int i = 0; i < 3; ++i) {
    row.dof[i] = d + i;
    row.coefficient[i] = -n[i];
    rate -= n[i] * context.v[d + i];
    free_rate -= n[i] * context.v_free[d + i];
  }
  if (!within_reach(context, row.phi, rate, free_rate)) return;

  // How the axis turns with the joint.
  double inverse[9];
  inverse_right_jacobian(phi, inverse);
  for (int j = 0; j < 3; ++j) {
    const double column[3] = {inverse[j], inverse[3 + j], inverse[6 + j]};
    const double along = dot3(n, column);
    for (int i = 0; i < 3; ++i)
      row.dcoefficient[i][j] = -(column[i] - n[i] * along) / angle;
  }
  push_limit(context, row, 2 * std::uint64_t(joint) + 1, rows);
}

}  // namespace

void add_joint_limit_rows(const RowContext& context, ConstraintRows& rows) {
  const Model& model = context.model;
  for (int j = 0; j < model.num_joints; ++j) {
    if (!model.joint_limited[j]) continue;
    if (model.joint_type[j] == JointType::ball)
      add_ball(context, j, rows);
    else if (model.joint_type[j] != JointType::free)
      add_linear(context, j, rows);
  }
}

void add_dry_friction_rows(const RowContext& context, ConstraintRows& rows) {
  const Model& model = context.model;

  // A force does nothing in an instant.
  if (context.options.gaps == GapRule::impact) return;
  for (int d = 0; d < model.nv; ++d) {
    if (!(model.dof_dry_friction[d] > 0)) continue;
    DofRow row;
    row.row = rows.num_rows;
    row.block = rows.num_blocks;
    row.dof[0] = d;
    row.coefficient[0] = 1;

    // The impulse is at most that of the friction over the step.
    rows.bias.push_back(0);
    rows.weight.push_back(model.dof_weight[d]);
    rows.blocks.push_back({BlockType::box, row.row, 1, 0, context.options.timestep * model.dof_dry_friction[d], false});
    rows.keys.push_back((std::uint64_t(4) << 60) | std::uint64_t(d));
    ++rows.num_rows;
    ++rows.num_blocks;
    rows.dof_rows.push_back(row);
  }
}

}  // namespace coulomb

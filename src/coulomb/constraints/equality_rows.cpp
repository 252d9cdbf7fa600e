// Equalities: connect (3 rows: two points coincide), weld (6: two frames coincide), joint (1: q_a = polynomial of q_b), tendon (1: the same
// of lengths). Two-sided
// Baumgarte bias on the position error, no faster than max_correction_speed; the rotation error of a weld is the axial vector of
// R_a R_b^T, sin(angle) about its axis.
#include <array>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/tendon_state.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// A point of a body's frame, in the world.
void place(const DynamicsWorkspace& dynamics, int body, const double* local, double* world) {
  rotate(dynamics.body_rotation.data() + 9 * body, local, world);
  add3(world, dynamics.body_position.data() + 3 * body, world);
}

/// A frame of a body, in the world: R (3 x 3).
void turn(const DynamicsWorkspace& dynamics, int body, const double* local_quaternion, double* R) {
  double local[9];
  quaternion_to_matrix(local_quaternion, local);
  multiply3(dynamics.body_rotation.data() + 9 * body, local, R);
}

/// The rotation error of a weld: R_a R_b^T, and its axial vector as errors of the angular rows.
void set_rotation_error(const DynamicsWorkspace& dynamics, const Equality& equality, BodyRows& b) {
  double Ra[9];
  double Rb[9];
  turn(dynamics, b.body_a, equality.quat_a.data(), Ra);
  turn(dynamics, b.body_b, equality.quat_b.data(), Rb);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      b.rotation_error[3 * i + j] = dot3(Ra + 3 * i, Rb + 3 * j);

  const double* E = b.rotation_error;
  b.phi[3] = 0.5 * (E[7] - E[5]);
  b.phi[4] = 0.5 * (E[2] - E[6]);
  b.phi[5] = 0.5 * (E[3] - E[1]);
  for (int i = 3; i < 6; ++i)
    b.phi[i] *= b.torque_scale;
}

/// What all equalities are: a two-sided block, known from step to step by its index in the model.
void add_block(int row, int size, int index, ConstraintRows& rows) {
  rows.blocks.push_back({BlockType::equality, row, size, 0, 0, false});
  rows.keys.push_back(constraint_key(ConstraintKind::equality, std::uint64_t(index)));
  rows.num_rows += size;
  ++rows.num_blocks;
}

/// The bias of three rows of an equality of bodies: a share of their error, as a vector no faster than max_correction_speed. True: where it
/// becomes so fast.
bool set_bias(const RowContext& context, int first, BodyRows& b, ConstraintRows& rows) {
  double& slope = b.bias_slope[first / 3];
  slope = b.dbias_dphi;
  const double error = norm3(b.phi + first);
  const double excess = slope * error - context.options.max_correction_speed;
  const bool corner = slope > 0 && std::abs(excess) <= corner_width * slope;
  if (excess > 0) {
    for (int i = first; i < first + 3; ++i)
      b.fastest[i] = b.phi[i] / error;
    slope = context.options.max_correction_speed / error;
  }
  for (int i = first; i < first + 3; ++i)
    rows.bias.push_back(slope * b.phi[i]);
  return corner;
}

/// The size of an equality's error as MuJoCo's impedance sees it: of a weld with the sine of half the angle.
double error_of(const BodyRows& b) {
  double square = dot3(b.phi, b.phi);
  if (b.size == 6) {
    const double trace = b.rotation_error[0] + b.rotation_error[4] + b.rotation_error[8];
    square += b.torque_scale * b.torque_scale * std::max(0.0, 0.25 * (3 - trace));
  }
  return std::sqrt(square);
}

/// R and beta of all rows, whose velocities before the step their masses keep.
void soften(const RowContext& context, const EqualitySprings& springs, double error, BodyRows& b,
            ConstraintRows& rows) {
  b.soft = int(rows.soft_blocks.size());
  rows.soft_blocks.push_back({.error = error});
  rows.compliance.resize(b.row, 0.0);
  for (int i = 0; i < b.size; ++i) {
    const double approach = row_velocity(context.model, context.dynamics, context.twist, b, i);
    const SpringRow law = two_sided_row(springs.of_row(i), context.options.timestep, b.phi[i], approach);
    rows.bias.push_back(law.bias.value);
    rows.compliance.push_back(law.compliance);

    // Stiffness, dashpot and mass of a weld's rotation have the ratios of its translation's.
    b.restitution = law.bounce;
    b.bias_slope[i / 3] = law.bias.slope;
  }
}

/// connect and weld
void add_bodies(const RowContext& context, int index, ConstraintRows& rows) {
  const Equality& equality = context.model.equalities[index];
  BodyRows b;
  b.row = rows.num_rows;
  b.block = rows.num_blocks;
  b.size = equality.type == EqualityType::weld ? 6 : 3;
  b.body_a = equality.body_a;
  b.body_b = equality.body_b;
  b.torque_scale = equality.torque_scale;

  // The error is the distance of the two points along the world's axes, for a weld that of two frames too.
  place(context.dynamics, b.body_a, equality.pos_a.data(), b.point_a);
  place(context.dynamics, b.body_b, equality.pos_b.data(), b.point_b);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j)
      b.axes[i][j] = i == j;
    b.phi[i] = b.point_a[i] - b.point_b[i];
  }
  if (b.size == 6) {
    set_rotation_error(context.dynamics, equality, b);
  }

  // A share of it goes in every step, or the spring pulls.
  b.dbias_dphi = context.options.baumgarte / context.options.timestep;
  bool corner = false;
  const double error = equality.spring.acts() ? error_of(b) : 0;
  if (const auto springs = equality_springs(context.model, index, error))
    soften(context, *springs, error, b, rows);
  else
    for (int first = 0; first < b.size; first += 3)
      corner = set_bias(context, first, b, rows) || corner;
  for (int i = 0; i < b.size; ++i)
    rows.weight.push_back(context.model.equality_weight[2 * index + (i < 3 ? 0 : 1)]);
  add_block(b.row, b.size, index, rows);
  rows.blocks.back().corner = corner;
  rows.body_rows.push_back(b);
}

/// A polynomial's value and first two derivatives.
struct PolynomialAt {
  double value = 0;
  double slope = 0;
  double curvature = 0;
};

/// Horner's rule, with both derivatives.
PolynomialAt evaluate(const std::array<double, 5>& coefficients, double x) {
  PolynomialAt p;
  for (int i = 4; i >= 0; --i) {
    p.curvature = p.curvature * x + 2 * p.slope;
    p.slope = p.slope * x + p.value;
    p.value = p.value * x + coefficients[i];
  }
  return p;
}

/// Of a rigid row: a share of the error goes in every step, no faster than violated limits go.
Bias rigid_bias(const ConstraintOptions& options, double phi) {
  Bias out;
  out.slope = options.baumgarte / options.timestep;
  out.value = out.slope * phi;
  const double excess = std::abs(out.value) - options.max_correction_speed;
  out.corner = out.slope > 0 && std::abs(excess) <= corner_width * out.slope;
  if (excess > 0) {
    out.value = std::copysign(options.max_correction_speed, out.value);
    out.slope = 0;
  }
  return out;
}

/// A row on joints with its error, whose block is known from step to step by its index.
void add_scalar_row(const RowContext& context, int index, DofRow row, ConstraintRows& rows) {
  row.row = rows.num_rows;
  row.block = rows.num_blocks;

  const RowSpring& spring = context.model.equalities[index].spring;
  SpringRow law;
  if (spring.acts()) {
    row.approach = rate_of(row, context.v);
    law = two_sided_row(at_depth(spring, std::abs(row.phi)), context.options.timestep, row.phi, row.approach);
    rows.compliance.resize(row.row, 0.0);
    rows.compliance.push_back(law.compliance);
  } else {
    law.bias = rigid_bias(context.options, row.phi);
  }
  row.dbias_dphi = law.bias.slope;
  row.bounce = law.bounce;
  rows.bias.push_back(law.bias.value);
  rows.weight.push_back(context.model.equality_weight[2 * index]);
  add_block(row.row, 1, index, rows);
  rows.blocks.back().corner = law.bias.corner;
  rows.dof_rows.push_back(row);
}

/// joint: q_a = polynomial of q_b, or of nothing
void add_joints(const RowContext& context, int index, ConstraintRows& rows) {
  const Model& model = context.model;
  const Equality& equality = model.equalities[index];
  DofRow row;
  row.dof[0] = model.joint_v[equality.joint_a];
  row.coefficient[0] = 1;
  const double a = context.q[model.joint_q[equality.joint_a]] - equality.ref_a;
  double wanted = equality.poly[0];

  // The second joint moves the first by the slope, and the slope by its own motion.
  if (equality.joint_b >= 0) {
    const double b = context.q[model.joint_q[equality.joint_b]] - equality.ref_b;
    const PolynomialAt p = evaluate(equality.poly, b);
    wanted = p.value;
    row.num = 2;
    row.dof[1] = model.joint_v[equality.joint_b];
    row.coefficient[1] = -p.slope;
    if (p.curvature != 0) rows.turn(row)[3] = -p.curvature;
  }

  row.phi = a - wanted;
  add_scalar_row(context, index, row, rows);
}

/// Where the dofs of a tendon are in a row, which gets those that it does not have yet.
void place_dofs(const TendonState& state, DofRow& row, int* place) {
  for (int i = 0; i < state.num; ++i) {
    int at = 0;
    while (at < row.num && row.dof[at] != state.dof[i])
      ++at;
    if (at == row.num) row.dof[row.num++] = state.dof[i];
    place[i] = at;
  }
}

/// What an equality of tendons makes of one of them: `slope` times its row, and how that turns (null: it does not); curvature: of the polynomial that the length
/// enters.
void add_tendon(const TendonState& state, double slope, double curvature, const int* place, DofRow& row,
                double* turning) {
  for (int i = 0; i < state.num; ++i) {
    row.coefficient[place[i]] += slope * state.J[i];
    for (int j = 0; turning && j < state.num; ++j)
      turning[place[i] * row.num + place[j]] +=
          curvature * state.J[i] * state.J[j] + (state.turns ? slope * state.dJ[i][j] : 0.0);
  }
}

/// tendon: the same of lengths
void add_tendons(const RowContext& context, int index, ConstraintRows& rows) {
  const Model& model = context.model;
  const Equality& equality = model.equalities[index];
  const bool has_second = equality.tendon_b >= 0;
  TendonState first;
  TendonState second;
  tendon_state(model, context.dynamics, equality.tendon_a, context.q, true, first);
  if (has_second) tendon_state(model, context.dynamics, equality.tendon_b, context.q, true, second);

  // The second length moves the first by the slope, and the slope by the curvature.
  PolynomialAt p{equality.poly[0], 0, 0};
  if (has_second) p = evaluate(equality.poly, second.length - equality.ref_b);
  DofRow row;
  row.num = 0;
  row.phi = first.length - equality.ref_a - p.value;
  int of_first[TendonState::max_dofs];
  int of_second[TendonState::max_dofs];
  place_dofs(first, row, of_first);
  if (has_second) place_dofs(second, row, of_second);
  const bool turns = first.turns || (has_second && (second.turns || p.curvature != 0));
  double* turning = turns ? rows.turn(row) : nullptr;
  add_tendon(first, 1, 0, of_first, row, turning);
  if (has_second) add_tendon(second, -p.slope, -p.curvature, of_second, row, turning);
  add_scalar_row(context, index, row, rows);
  if (first.at_kink || (has_second && second.at_kink)) rows.blocks.back().corner = true;
}

}  // namespace

void add_equality_rows(const RowContext& context, ConstraintRows& rows) {
  const auto& equalities = context.model.equalities;
  for (int i = 0; i < int(equalities.size()); ++i) {
    if (!equalities[i].active) continue;
    if (equalities[i].type == EqualityType::joint)
      add_joints(context, i, rows);
    else if (equalities[i].type == EqualityType::tendon)
      add_tendons(context, i, rows);
    else
      add_bodies(context, i, rows);
  }
}

}  // namespace coulomb

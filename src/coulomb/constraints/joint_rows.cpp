// Rows on joints: limits of joints and tendons (0 <= lambda, c = rate of the gap + bias >= 0, one row for each side) and
// dry friction (|lambda| <= h tau_dry, c = the joint's velocity). A limit that is still open is speculative: its bias phi/h
// lets the joint close the gap and no more. A limit with a stiffness is a spring (docs/theory.md (S9)).
#include <algorithm>

#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/model.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// A row enters when the gap could close within the step (twice over, for what other constraints may add); rows that enter without
/// need carry no impulse.
bool within_reach(const RowContext& context, double phi, double rate, double free_rate) {
  if (context.options.gaps != GapRule::speculative) return is_held(context.options, phi, rate);
  const double closing = std::max(0.0, std::max(-rate, -free_rate));
  return phi < 1e-6 + 2 * context.options.timestep * closing;
}

/// R and beta of a limit: those of its spring, or rigid.
SpringRow limit_law(const RowContext& context, DofRow& row) {
  std::optional<OneSidedSpring> spring;
  if (row.tendon < 0)
    spring = limit_spring(context.model, context.model.dof_joint[row.dof[0]], row.phi);
  else if (const RowSpring& law = context.model.tendons[row.tendon].limit_spring; law.acts())
    spring = at_depth(law, -row.phi);
  if (!spring) return {.bias = one_sided_bias(context.options, row.phi)};
  row.approach = rate_of(row, context.v);
  const SpringRow law = spring_row(*spring, context.options.timestep, row.phi, row.approach);
  row.bounce = law.bounce;
  return law;
}

/// R and beta of dry friction: none, or those of its creep.
SpringRow friction_law(const RowContext& context, const RowSpring& law, DofRow& row) {
  if (!law.acts()) return {};
  row.approach = rate_of(row, context.v);
  const SpringRow creep = two_sided_row(at_depth(law, 0), context.options.timestep, 0, row.approach);
  row.bounce = creep.bounce;
  return creep;
}

/// A block of one row. bound: of a box, N s.
void push_row(DofRow row, BlockType type, double bound, const SpringRow& law, double weight, std::uint64_t key,
              ConstraintRows& rows) {
  row.row = rows.num_rows;
  row.block = rows.num_blocks;
  row.dbias_dphi = law.bias.slope;
  rows.bias.push_back(law.bias.value);
  if (law.compliance > 0) {
    rows.compliance.resize(row.row, 0.0);
    rows.compliance.push_back(law.compliance);
  }
  rows.weight.push_back(weight > 0 ? weight : 1);
  rows.blocks.push_back({type, row.row, 1, 0, bound, type == BlockType::limit && row.phi > 0});
  rows.blocks.back().corner = law.bias.corner;
  rows.keys.push_back(key);
  ++rows.num_rows;
  ++rows.num_blocks;
  rows.dof_rows.push_back(row);
}

/// Of a joint's row: the mean of its dofs.
double joint_weight(const Model& model, const DofRow& row) {
  double weight = 0;
  for (int i = 0; i < row.num; ++i)
    weight += model.dof_weight[row.dof[i]] / row.num;
  return weight;
}

void push_limit(const RowContext& context, DofRow row, std::uint64_t key, ConstraintRows& rows) {
  const double weight = row.tendon < 0 ? joint_weight(context.model, row) : context.model.tendons[row.tendon].weight;
  const SpringRow law = limit_law(context, row);
  push_row(row, BlockType::limit, 0, law, weight, key, rows);
}

/// Of a tendon that is spatial: how its row turns, which the state does not have yet.
void turn_row(const RowContext& context, int tendon, bool upper, TendonState& state, DofRow& row,
              ConstraintRows& rows) {
  if (!state.turns) return;
  tendon_state(context.model, context.dynamics, tendon, context.q, true, state);
  turn_tendon_row(state, upper, row, rows);
}

/// Of the last row.
void mark_kink(const TendonState& state, ConstraintRows& rows) {
  if (state.at_kink) rows.blocks.back().corner = true;
}

}  // namespace

void add_joint_limit_rows(const RowContext& context, ConstraintRows& rows) {
  const Model& model = context.model;
  const unsigned char* without = context.without_limits;
  for_each_limit(model, [&](int joint, bool upper) {
    if (without && without[model.body_tree[model.joint_body[joint]]]) return;
    const JointLimit limit = joint_limit(model, joint, upper, context.q);
    if (!within_reach(context, limit.phi, limit.rate(context.v), limit.rate(context.v_free))) return;

    // A ball that is not turned has no axis, and no row.
    const double* n = limit.coefficient;
    if (n[0] == 0 && n[1] == 0 && n[2] == 0) return;
    DofRow row = limit.row();
    turn_limit_row(model, joint, context.q, row, rows);
    push_limit(context, row, limit_key(joint, upper), rows);
  });

  // Of tendons, behind those of joints.
  for_each_tendon_limit(model, [&](int tendon, bool upper) {
    TendonState state;
    tendon_state(model, context.dynamics, tendon, context.q, false, state);
    DofRow row = tendon_limit_row(model, tendon, upper, state);
    if (without && without[model.body_tree[model.dof_body[row.dof[0]]]]) return;
    if (!within_reach(context, row.phi, rate_of(row, context.v), rate_of(row, context.v_free))) return;
    turn_row(context, tendon, upper, state, row, rows);
    push_limit(context, row, tendon_limit_key(model.num_joints, tendon, upper), rows);
    mark_kink(state, rows);
  });
}

namespace {

/// A row of a tendon's spring, damper, armature or dry friction, with its weight.
void push_tendon_row(const RowContext& context, int tendon, DofRow row, BlockType type, double bound,
                     const SpringRow& law, std::uint64_t key, ConstraintRows& rows) {
  row.tendon = -1;
  row.spring = tendon;
  push_row(row, type, bound, law, context.model.tendons[tendon].weight, key, rows);
}

/// Of the last row, a tendon's with an armature: its bias is `slope` times the rate that it had, less what it bends by in the step.
void set_bias_slopes(const RowContext& context, const TendonBend& bend, double slope, ConstraintRows& rows) {
  DofRow& row = rows.dof_rows.back();
  const double h = context.options.timestep;
  row.slopes = int(rows.bias_slopes.size());
  for (int j = 0; j < row.num; ++j)
    rows.bias_slopes.push_back(slope * (rows.drate_dq(row, j, context.v) - h * bend.by_q[j]));
  for (int j = 0; j < row.num; ++j)
    rows.bias_slopes.push_back(slope * (row.coefficient[j] - h * bend.by_v[j]));
}

}  // namespace

void add_tendon_spring_rows(const RowContext& context, ConstraintRows& rows) {
  // Forces do nothing in an instant.
  const Model& model = context.model;
  if (context.options.gaps == GapRule::impact) return;
  const double h = context.options.timestep;
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    const Tendon& tendon = model.tendons[t];
    if (!has_own_forces(tendon)) continue;
    TendonState state;
    tendon_state(model, context.dynamics, t, context.q, true, state);
    const auto push = [&](bool upper, DofRow row, BlockType type, double bound, const SpringRow& law,
                          std::uint64_t key) {
      turn_tendon_row(state, upper, row, rows);
      push_tendon_row(context, t, row, type, bound, law, key, rows);
      mark_kink(state, rows);
    };

    // Beyond either length of a spring with a range, ...
    if (tendon.stiffness > 0 && has_range(tendon)) {
      const OneSidedSpring spring = tendon_spring(tendon, false);
      for (const bool upper : {false, true}) {
        const DofRow row = tendon_row(state, upper, upper ? tendon.spring_upper : tendon.spring_lower);
        if (!within_reach(context, row.phi, rate_of(row, context.v), rate_of(row, context.v_free))) continue;
        push(upper, row, BlockType::limit, 0, spring_row(spring, h, row.phi, 0),
             tendon_spring_key(t, upper ? TendonSpringSide::upper : TendonSpringSide::lower));
      }
    }

    // ... a spring without one, the damper and the armature at any length, ...
    const OneSidedSpring both = tendon_spring(tendon, true);
    if (both.stiffness > 0 || both.dashpot > 0 || both.inertia > 0) {
      DofRow row = tendon_row(state, false, tendon.spring_lower);
      TendonBend bend;
      if (both.inertia > 0) tendon_bend(model, context.dynamics, t, context.v, state, bend);
      row.bend = bend.value;
      const double kept = rate_of(row, context.v) - h * bend.value;
      const SpringRow law = two_sided_row(both, h, row.phi, kept);
      push(false, row, BlockType::equality, 0, law, tendon_spring_key(t, TendonSpringSide::both));
      if (both.inertia > 0) set_bias_slopes(context, bend, law.bounce, rows);
    }

    // ... and dry friction.
    if (tendon.dry_friction > 0) {
      DofRow row = tendon_row(state, false, 0);
      const SpringRow law = friction_law(context, tendon.friction_spring, row);
      push(false, row, BlockType::box, h * tendon.dry_friction, law,
           constraint_key(ConstraintKind::tendon_friction, std::uint64_t(t)));
    }
  }
}

void add_dry_friction_rows(const RowContext& context, ConstraintRows& rows) {
  const Model& model = context.model;

  // A force does nothing in an instant.
  if (context.options.gaps == GapRule::impact) return;
  for (int d = 0; d < model.nv; ++d) {
    if (!(model.dof_dry_friction[d] > 0)) continue;
    DofRow row;
    row.dof[0] = d;
    row.coefficient[0] = 1;

    // The impulse is at most that of the friction over the step.
    const SpringRow law = friction_law(context, model.dof_friction_spring[d], row);
    push_row(row, BlockType::box, context.options.timestep * model.dof_dry_friction[d], law, model.dof_weight[d],
             constraint_key(ConstraintKind::dry_friction, std::uint64_t(d)), rows);
  }
}

}  // namespace coulomb

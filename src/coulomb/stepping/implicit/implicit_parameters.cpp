// The derivative of an implicit step by named parameters: r = -dR/dtheta of every stage, from the right-hand sides that the kinds give
// (parameters/right_hand_side.hpp) with the time step set to 1, so that impulses are forces.
//
// With explicit_dynamics the rigid bodies are at (q, v) and the forces of springs at (q+, v+): both places are asked, the second one
// for those kinds that move a force. Springs read the kinds' s, the motion of their rows, as a change of their forces.
#include <algorithm>
#include <cstring>

#include "coulomb/base/small_math.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/penalty_sides.hpp"
#include "coulomb/stepping/implicit/implicit_linearization.hpp"

namespace coulomb {
namespace {

bool is_kind(const ParameterSet::Item& item, const char* name) { return std::strcmp(item.kind->name(), name) == 0; }

/// Kinds that belong to the rigid bodies and joints alone.
bool moves_no_force(const ParameterSet::Item& item) {
  for (const char* name : {"mass", "com", "inertia", "armature", "joint_damping", "joint_stiffness", "joint_friction",
                           "gravity", "gravity_compensation", "timestep", "density", "viscosity", "wind",
                           "fluid_coefficients", "actuator_gain", "actuator_kp", "actuator_kd", "muscle_force"})
    if (is_kind(item, name)) return true;
  return false;
}

/// What contexts without constraints or contacts have.
struct Nothing {
  ConstraintRows rows;
  std::vector<Contact> contacts;
  RowDerivatives derivatives;
  std::vector<unsigned char> inactive;
  std::vector<Mode> modes;
};

const Nothing& nothing() {
  static const Nothing value;
  return value;
}

}  // namespace

bool is_timestep(const ParameterSet::Item& item) { return is_kind(item, "timestep"); }

std::vector<RightHandSide>& ImplicitLinearization::cleared_sides(int count) {
  if (int(sides_.size()) < count) {
    sides_.resize(count);
  }
  for (int k = 0; k < count; ++k)
    sides_[k].clear();
  return sides_;
}

/// J^T df of the springs whose rows move.
void ImplicitLinearization::spring_side(int i, const RightHandSide& rows, RightHandSide& out) {
  const Stage& s = *stages_[i];
  out.clear();
  const int nv = model_->nv;
  change_.assign(s.equation.springs.rows.num_rows, 0.0);
  moved_.assign(nv, 0.0);
  wrench_.resize(8 * nv);
  for (const auto& entry : rows.rows)
    change_[entry.index] += spring_force_change(s.equation.springs, entry.index, entry.value);
  apply_rows_transposed(*model_, s.equation.dynamics, s.equation.springs.rows, change_.data(), wrench_.data(),
                        moved_.data());

  // Sparse again: few dofs move.
  for (int d = 0; d < nv; ++d)
    if (moved_[d] != 0) {
      out.dofs.push_back({d, moved_[d]});
    }
}

/// Whose rows a context has.
struct ImplicitLinearization::ContextRows {
  const ConstraintRows& rows;
  const std::vector<Contact>& contacts;
  const RowDerivatives& derivatives;
  const std::vector<unsigned char>& inactive;
  const std::vector<Mode>& modes;
  const double* twist;  // nv x 8: link twists at v+
  const double* force;  // per row, or null
};

/// What the kinds read at `at`, whose configuration is q: impulses are forces, since `unit` has the time step 1.
ParameterContext ImplicitLinearization::context_at(int i, const DynamicsWorkspace& at, const double* q,
                                                   const ConstraintOptions& unit, const ContextRows& own) const {
  const ImplicitStage& stage = solution(i);
  const double* v = stage.v_next.data();
  const double* rate = at.column_rate.data();
  return ParameterContext{.model = *model_,
                          .dynamics = at,
                          .options = unit,
                          .rows = own.rows,
                          .contacts = own.contacts,
                          .derivatives = own.derivatives,
                          .inactive = own.inactive,
                          .velocities = {own.twist, rate, own.twist, rate},
                          .body_twist = at.body_twist.data(),
                          .body_twist_plus = at.body_twist.data(),
                          .q = q,
                          .v = v,
                          .u = record_->u.data(),
                          .v_plus = v,
                          .acceleration = stage.acceleration.data(),
                          .lambda = own.force,
                          .fext = record_->fext,
                          .modes = own.modes,
                          .joint_forces = stages_[i]->equation.joint_forces};
}

template <class Visit>
void ImplicitLinearization::visit_sides(int i, const ParameterSet& set, Visit visit) {
  evaluate(i);
  const ImplicitEquation& e = stages_[i]->equation;
  const ImplicitStage& stage = solution(i);
  const PenaltyForces& c = e.contacts;
  const SpringForces& f = e.springs;
  const Nothing& none = nothing();
  ConstraintOptions unit = options_->constraints;
  unit.timestep = 1;

  // The end of the stage, with its contacts if there are any.
  const double* q = stage.q_next.data();
  const double* twist = f.twist.data();
  const ContextRows nobody{none.rows, none.contacts, none.derivatives, none.inactive, none.modes, twist, nullptr};
  const ContextRows touching{c.rows,  c.collision.contacts, c.derivatives, c.inactive,
                             c.modes, c.twist.data(),       c.force.data()};
  const bool touches = c.rows.num_rows > 0;
  ParameterContext end = context_at(i, e.dynamics, q, unit, touches ? touching : nobody);
  if (touches) end.penalty = &c;
  end.own_forces = !stage.explicit_dynamics;

  // The rigid bodies, which are at the base with explicit dynamics.
  ParameterContext rigid = stage.explicit_dynamics ? context_at(i, e.inertial(), stage.q.data(), unit, nobody) : end;
  rigid.acceleration = e.base_acceleration(stage);
  rigid.own_forces = true;
  if (stage.explicit_dynamics) {
    rigid.spins = &e.spins();
    rigid.spin_shift = e.spin().velocity.data();
    rigid.spin_scale = 1 / stage.c;
    rigid.gains = &e.gains();
    rigid.gain_time = stage.c;
  }

  // The springs.
  const ContextRows sprung{f.rows, none.contacts, f.derivatives, f.inactive, none.modes, twist, f.force.data()};
  ParameterContext springs = context_at(i, e.dynamics, q, unit, sprung);
  springs.rows_are_forces = true;
  springs.own_forces = false;
  const bool any_spring = f.rows.num_rows > 0;

  for (const ParameterSet::Item& item : set.items()) {
    if (is_timestep(item)) continue;
    const int count = item.element.size;
    const auto ask = [&](const ParameterContext& context, bool rows_only) {
      std::vector<RightHandSide>& sides = cleared_sides(count);
      item.kind->right_hand_sides(context, item.element, sides.data());
      if (context.penalty) {
        close_penalty_sides(context, sides.data(), count);
      }
      for (int k = 0; k < count; ++k) {
        if (rows_only) spring_side(i, sides[k], spring_side_);
        visit(item.first + k, context, rows_only ? spring_side_ : sides[k]);
      }
    };

    // Dry friction is a force on its dofs alone.
    if (is_kind(item, "joint_friction")) {
      for (int k = 0; k < count; ++k) {
        const int d = model_->joint_v[item.element.index] + k;
        spring_side_.clear();
        spring_side_.dofs.push_back({d, f.dry_direction[d]});
        visit(item.first + k, end, spring_side_);
      }
      continue;
    }

    // All others belong to the rigid bodies; those that move a force are asked where it is, too.
    ask(rigid, false);
    if ((!stage.explicit_dynamics && !any_spring) || moves_no_force(item)) continue;
    if (stage.explicit_dynamics) ask(end, false);
    if (any_spring) ask(springs, true);
  }
}

/// visit(scalar, entries) of what each parameter changes of Delta, at the start of a stage of bdf1.
template <class Visit>
void ImplicitLinearization::visit_shifts(int i, const ParameterSet& set, Visit visit) {
  const SpinningStart& start = *stages_[i]->start;
  if (!start.any()) return;

  // At rest and without forces: only the shift is looked at.
  const Nothing& none = nothing();
  ConstraintOptions unit = options_->constraints;
  unit.timestep = 1;
  const SpringForces& f = stages_[i]->equation.springs;
  const ContextRows nobody{none.rows,  none.contacts,  none.derivatives, none.inactive,
                           none.modes, f.twist.data(), nullptr};
  ParameterContext base = context_at(i, start.at(), solution(i).q.data(), unit, nobody);
  base.spins = &start.spins();
  base.shift_itself = true;
  base.own_forces = false;
  for (const ParameterSet::Item& item : set.items()) {
    if (is_timestep(item)) continue;
    std::vector<RightHandSide>& sides = cleared_sides(item.element.size);
    item.kind->right_hand_sides(base, item.element, sides.data());
    for (int k = 0; k < item.element.size; ++k)
      visit(item.first + k, sides[k].shift);
  }
}

/// dDelta of every scalar, rows of ld.
void ImplicitLinearization::parameter_shifts(int i, const ParameterSet& set, double* rows) {
  const int ld = stages_[i]->equation.dynamics.ld;
  std::fill_n(rows, std::size_t(set.size()) * ld, 0.0);
  visit_shifts(i, set, [&](int k, const std::vector<RightHandSide::Entry>& entries) {
    for (const auto& entry : entries)
      rows[std::size_t(k) * ld + entry.index] += entry.value;
  });
}

/// out += v_bar . dDelta of every scalar.
void ImplicitLinearization::add_shift_gradient(int i, const ParameterSet& set, const double* v_bar,
                                               std::vector<double>& out) {
  visit_shifts(i, set, [&](int k, const std::vector<RightHandSide::Entry>& entries) {
    for (const auto& entry : entries)
      out[k] += v_bar[entry.index] * entry.value;
  });
}

/// r of every scalar, rows of ld.
void ImplicitLinearization::parameter_forces(int i, const ParameterSet& set, double* rows) {
  const int ld = stages_[i]->equation.dynamics.ld;
  std::fill_n(rows, std::size_t(set.size()) * ld, 0.0);
  visit_sides(i, set, [&](int k, const ParameterContext& context, const RightHandSide& side) {
    expand(context, side, rows + std::size_t(k) * ld, nullptr, 0);
  });
}

/// What parameters change of the contacts' forces at fixed (q+, v+).
void ImplicitLinearization::add_impulse_changes(int i, const ParameterSet& set, double h, int rows,
                                                std::vector<double>& out_T) {
  visit_sides(i, set, [&](int k, const ParameterContext& context, const RightHandSide& side) {
    if (!context.penalty) return;
    for (const auto& entry : side.impulses)
      out_T[std::size_t(k) * rows + entry.index] += h * entry.value;
  });
}

/// out += y . r of every scalar, by link twists of y.
void ImplicitLinearization::add_stage_gradient(int i, const ParameterSet& set, const double* y,
                                               std::vector<double>& out) {
  evaluate(i);
  const ImplicitEquation& e = stages_[i]->equation;
  const int nv = model_->nv;
  twist_y_.resize(16 * nv);
  double* at_end = twist_y_.data();
  double* before = twist_y_.data() + 8 * nv;
  link_twists(*model_, e.dynamics, y, at_end);
  link_twists(*model_, e.inertial(), y, before);
  visit_sides(i, set, [&](int k, const ParameterContext& context, const RightHandSide& side) {
    out[k] += project(context, side, y, &context.dynamics == &e.dynamics ? at_end : before, nullptr);
  });
}

}  // namespace coulomb

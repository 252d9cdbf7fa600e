// docs/theory.md (P8). gravity (3, m/s^2): every body's weight, r = h sum J_b^T (1 - c) m g. gravity_compensation/<body>: the share c
// of its weight that a body does not have, r = -h J_b^T m g. timestep (1, s): everything that h
// multiplies,
//
//   r = [M (v+ - v - Delta) - J^T lambda] / h + M dDelta/dh - h K v+      the residual of the step is zero
//   s = -beta / h for position errors; of soft contacts dR/dh lambda_N + dbeta/dh (P9)
//   q+ = q (+) h v+
//
// actuator_gain/<actuator>: the constant part of the gain (MuJoCo's gainprm[0]; a position servo's bias -kp is another number).
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"
#include "coulomb/dynamics/spatial.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class GravityKind : public ParameterKind {
  const char* name() const override { return "gravity"; }
  const char* unit() const override { return "m/s^2"; }
  std::vector<ParameterElement> elements(const Model&) const override { return {{"", 0, 3}}; }
  void read(const Model& model, const ParameterElement&, double* values) const override {
    for (int i = 0; i < 3; ++i)
      values[i] = model.gravity[i];
  }
  void write(Model& model, const ParameterElement&, const double* values, const std::string&) const override {
    for (int i = 0; i < 3; ++i)
      model.gravity[i] = values[i];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement&, RightHandSide* out) const override {
    const Model& m = context.model;

    // The weight of every body by each component: its inertia times an acceleration.
    for (int b = 1; b < m.num_bodies; ++b) {
      if (m.body_last_dof[b] < 0) continue;
      for (int k = 0; k < 3; ++k) {
        Spatial up;
        const double weighing = 1 - m.body_gravity_compensation[b];
        (k == 0 ? up.linear.x : k == 1 ? up.linear.y : up.linear.z) = context.options.timestep * weighing;

        double weight[6];
        store6(weight, inertia_times(context.dynamics.inertia.data() + 12 * b, up));
        out[k].add_wrench(b, weight, weight + 3);
      }
    }
  }
};

class GravityCompensationKind : public ParameterKind {
  const char* name() const override { return "gravity_compensation"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return moving_bodies(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.body_gravity_compensation[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string&) const override {
    model.body_gravity_compensation[e.index] = values[0];
    model.has_gravity_compensation = true;
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // Its weight, upwards.
    const Spatial up{-context.options.timestep * load3(context.model.gravity.data()), {}};
    double wrench[6];
    store6(wrench, inertia_times(context.dynamics.inertia.data() + 12 * e.index, up));
    out[0].add_wrench(e.index, wrench, wrench + 3);
  }
};

class TimestepKind : public ParameterKind {
  const char* name() const override { return "timestep"; }
  const char* unit() const override { return "s"; }
  std::vector<ParameterElement> elements(const Model&) const override { return {{"", 0, 1}}; }
  void read(const Model& model, const ParameterElement&, double* values) const override { values[0] = model.timestep; }
  void write(Model& model, const ParameterElement&, const double* values, const std::string& what) const override {
    checks::positive(what, values[0]);
    model.timestep = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement&, RightHandSide* out) const override {
    const Model& m = context.model;
    const double h = context.options.timestep;

    // M (v+ - v - Delta)
    std::vector<double> change(m.nv);
    for (int d = 0; d < m.nv; ++d)
      change[d] = context.v_plus[d] - context.v[d];
    if (context.spin_shift)
      for (int d = 0; d < m.nv; ++d)
        change[d] -= context.spin_shift[d];
    std::vector<double> r(m.nv);
    multiply_mass(m, context.dynamics, change.data(), r.data());

    // less J^T lambda, over h
    std::vector<double> impulse(m.nv, 0.0);
    std::vector<double> wrench(8 * m.nv + 8);
    if (context.rows.num_rows > 0)
      apply_rows_transposed(m, context.dynamics, context.rows, context.lambda, wrench.data(), impulse.data());
    for (int d = 0; d < m.nv; ++d)
      out[0].dofs.push_back({d, (r[d] - impulse[d]) / h});

    // What is at the end of the step comes later: - h K v+
    if (context.gains && context.gains->any_stiffness) {
      std::fill(r.begin(), r.end(), 0.0);
      context.gains->stiffness.add_product(-h, context.v_plus, r.data());
      for (int d = 0; d < m.nv; ++d)
        if (r[d] != 0) out[0].dofs.push_back({d, r[d]});
    }

    // M dDelta/dh
    if (context.spins)
      for (const SpinDerivative& spin : *context.spins)
        add_spin_column(context, spin, SpinDerivative::time, out[0]);

    // Biases of position errors are divided by h; those of bounces are not. Springs have a law of their own.
    for (const BodyRows& b : context.rows.body_rows) {
      if (const auto spring = spring_of(context, b)) {
        const double s = spring_side(*spring, {h, b.phi[2], b.approach, context.lambda[b.row + 2]}, {.timestep = 1});
        out[0].rows.push_back({b.row + 2, s});
        continue;
      }
      if (const auto springs = equality_springs(m, context.rows, b)) {
        for (int i = 0; i < b.size; ++i)
          out[0].rows.push_back(
              {b.row + i, spring_side(springs->of_row(i), soft_row_state(context, b, i), {.timestep = 1}, true)});
        continue;
      }
      for (int i = 0; i < b.size; ++i)
        if (b.restitution == 0 && b.dbias_dphi != 0 && norm3(b.fastest + 3 * (i / 3)) == 0)
          out[0].rows.push_back({b.row + i, -context.rows.bias[b.row + i] / h});
    }
    for (const DofRow& row : context.rows.dof_rows) {
      if (const auto law = row_law(m, context.rows, row)) {
        const SpringState state{h, row.phi, rate_of(row, context.v), context.lambda[row.row], row.bend};
        out[0].rows.push_back({row.row, spring_side(law->spring, state, {.timestep = 1}, law->both_signs)});
      } else if (row.dbias_dphi != 0) {
        out[0].rows.push_back({row.row, -context.rows.bias[row.row] / h});
      }

      // Dry friction is bounded by h f.
      const Mode mode = context.modes[row.block];
      if (mode != Mode::upper && mode != Mode::lower) continue;
      const double friction = row.spring >= 0 ? m.tendons[row.spring].dry_friction : m.dof_dry_friction[row.dof[0]];
      for (int i = 0; i < row.num; ++i)
        out[0].dofs.push_back({row.dof[i], (mode == Mode::upper ? 1 : -1) * row.coefficient[i] * friction});
    }

    out[0].timestep = 1;
  }
};

class ActuatorGainKind : public ParameterKind {
  const char* name() const override { return "actuator_gain"; }
  const char* unit() const override { return "force per control"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int k = 0; k < model.nu; ++k)
      if (!has_curves(model.actuators[k])) out.push_back({model.actuators[k].name, k, 1});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.actuators[e.index].gain[0];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string&) const override {
    model.actuators[e.index].gain[0] = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // h dtau/dgain over the dofs of its joint or tendon.
    const ActuatorDofs dofs = actuator_dofs(context.model, e.index);
    for (int i = 0; i < dofs.num; ++i)
      out[0].dofs.push_back(
          {dofs.dof[i], context.options.timestep * context.joint_forces.dtau_dgain[max_actuator_dofs * e.index + i]});
  }
};

/// muscle_force/<actuator>: the peak force of a muscle, in which its force is linear.
class MuscleForceKind : public ActuatorGainKind {
  const char* name() const override { return "muscle_force"; }
  const char* unit() const override { return "N"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int k = 0; k < model.nu; ++k)
      if (has_curves(model.actuators[k])) out.push_back({model.actuators[k].name, k, 1});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.actuators[e.index].muscle.peak_force;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::positive(what, values[0]);
    model.actuators[e.index].muscle.peak_force = values[0];
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_gravity() { return std::make_unique<GravityKind>(); }
std::unique_ptr<ParameterKind> make_gravity_compensation() { return std::make_unique<GravityCompensationKind>(); }
std::unique_ptr<ParameterKind> make_timestep() { return std::make_unique<TimestepKind>(); }
std::unique_ptr<ParameterKind> make_muscle_force() { return std::make_unique<MuscleForceKind>(); }
std::unique_ptr<ParameterKind> make_actuator_gain() { return std::make_unique<ActuatorGainKind>(); }

}  // namespace coulomb

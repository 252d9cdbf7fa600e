#include "coulomb/dynamics/joint_forces.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/body_wrenches.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/muscle_curves.hpp"
#include "coulomb/dynamics/tendon_state.hpp"
#include "coulomb/model/tendon.hpp"

// Actuator k on joint j (MuJoCo's meaning): length l = gear . (q or its rotation vector), speed s = m . v,
//   force = clamp_f( (g0 + g1 l + g2 s) clamp_u(u) + b0 + b1 l + b2 s ),  tau_j += m force,  tau_j clamped per joint,
// where the moment m is the gear, turned into the body's axes for a transmission in the parent's frame.
// On a tendon of length L: l = gear L, m = gear dL/dq. At a site: l = 0, m = J^T gear; against another site: body_wrenches.hpp. A muscle has
// curves in place of g and b (muscle_curves.hpp).
// A position servo (g0 = -b1 alone) on a ball joint goes the short way round: u - l is taken modulo a turn, 2 pi |gear|.
// At a clamp the derivative is the saturated side's: zero.

namespace coulomb {
namespace {

/// Rotation vector phi of a quaternion of any length, and J_r^-1(phi): dphi = J_r^-1 dq.
void rotation_vector(const double* quaternion, double* phi, double* inverse_jacobian) {
  double q[4];
  const double n = std::sqrt(quaternion[0] * quaternion[0] + dot3(quaternion + 1, quaternion + 1));
  for (int i = 0; i < 4; ++i)
    q[i] = quaternion[i] / n;
  quaternion_log(q, phi);
  inverse_right_jacobian(phi, inverse_jacobian);
}

// Moment of a rotational gear (three entries at `first`), given in the parent's frame: m = R^T gear, dm = m x delta.
void parent_frame_moment(const double* quaternion, const double* gear, int first, ActuatorForce& t) {
  double R[9];
  double m[3];
  quaternion_to_matrix(quaternion, R);
  rotate_transposed(R, gear, m);
  copy3(m, t.moment + first);

  // Its derivative by a rotation of the joint.
  const double d[3][3] = {{0, -m[2], m[1]}, {m[2], 0, -m[0]}, {-m[1], m[0], 0}};
  t.turns = true;
  for (int i = 0; i < first + 3; ++i)
    std::fill_n(t.dmoment[i], first + 3, 0.0);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      t.dmoment[first + i][first + j] = d[i][j];
}

/// Length and moment of a tendon, times the gear.
void tendon_moment(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, const double* q,
                   ActuatorForce& t) {
  const double gear = actuator.gear[0];
  TendonState state;
  tendon_state(model, at, actuator.tendon, q, true, state);
  t.length = gear * state.length;
  t.turns = state.turns;
  t.at_kink = state.at_kink;
  for (int i = 0; i < state.num; ++i) {
    t.dlength[i] = t.moment[i] = gear * state.J[i];
    for (int j = 0; state.turns && j < state.num; ++j)
      t.dmoment[i][j] = gear * state.dJ[i][j];
  }
}

/// Length and moment of a transmission, and how they move with the joint.
void transmission(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, const double* q,
                  const ActuatorDofs& dofs, ActuatorForce& t) {
  if (actuator.reference_body >= 0) {
    relative_site_moment(model, at, actuator, dofs, t);
    return;
  }
  if (actuator.body >= 0) {
    site_moment(model, at, actuator, t);
    return;
  }

  if (actuator.tendon >= 0) {
    tendon_moment(model, at, actuator, q, t);
    return;
  }

  const int j = actuator.joint;
  const double* qj = q + model.joint_q[j];
  switch (model.joint_type[j]) {
    case JointType::slide:
    case JointType::hinge:
      t.length = actuator.gear[0] * qj[0];
      t.dlength[0] = t.moment[0] = actuator.gear[0];
      break;
    case JointType::ball: {
      double phi[3];
      double inverse[9];

      // The rotation vector along the gear; its derivative is J_r^-1.
      rotation_vector(qj, phi, inverse);
      t.length = dot3(actuator.gear.data(), phi);
      rotate_transposed(inverse, actuator.gear.data(), t.dlength);
      if (actuator.in_parent_frame)
        parent_frame_moment(qj, actuator.gear.data(), 0, t);
      else
        copy3(actuator.gear.data(), t.moment);
      break;
    }
    case JointType::free:
      // A free joint has no length: its moment is the gear.
      copy3(actuator.gear.data(), t.moment);
      if (actuator.in_parent_frame)
        parent_frame_moment(qj + 3, actuator.gear.data() + 3, 3, t);
      else
        copy3(actuator.gear.data() + 3, t.moment + 3);
      break;
  }
}

/// The control nearest to the length among those that mean the same rotation.
double nearest_turn(const Model& model, const Actuator& actuator, double length, double u) {
  if (!drives_joint(actuator) || model.joint_type[actuator.joint] != JointType::ball) return u;

  // The shorter way round is meant by position servos alone.
  const bool servo =
      actuator.gain[0] != 0 && actuator.gain[1] == 0 && actuator.gain[2] == 0 && actuator.bias[1] == -actuator.gain[0];
  const double turn = 2 * M_PI * norm3(actuator.gear.data());
  if (!servo || turn == 0) return u;

  // Controls one turn apart ask for the same rotation.
  return length + std::remainder(u - length, turn);
}

/// The force of a muscle; where one of its curves is not used gain or bias take its place. df_dgain is by its peak force.
void set_muscle_force(const Actuator& actuator, double u, double du, ActuatorForce& a) {
  const Muscle& muscle = actuator.muscle;
  MuscleForce gain{actuator.gain[0] + actuator.gain[1] * a.length + actuator.gain[2] * a.speed, actuator.gain[1],
                   actuator.gain[2]};
  MuscleForce bias{actuator.bias[0] + actuator.bias[1] * a.length + actuator.bias[2] * a.speed, actuator.bias[1],
                   actuator.bias[2]};
  if (muscle.pulls) gain = muscle_gain(muscle, a.length, a.speed);
  if (muscle.resists) bias = muscle_bias(muscle, a.length);
  a.force = gain.value * u + bias.value;
  a.df_dlength = gain.by_length * u + bias.by_length;
  a.df_dspeed = gain.by_speed * u + bias.by_speed;
  a.df_du = du * gain.value;
  a.df_dgain = ((muscle.pulls ? gain.value * u : 0.0) + (muscle.resists ? bias.value : 0.0)) / muscle.peak_force;
  a.df_dbias = muscle.resists ? 0 : 1;
}

/// At a bound a force moves with nothing.
void hold_at_bound(const Actuator& actuator, ForceBound bound, ActuatorForce& a) {
  if (bound == ForceBound::none) return;
  a.force = actuator.force_range[bound == ForceBound::upper];
  a.df_dlength = a.df_dspeed = a.df_du = a.df_dgain = a.df_dbias = a.du = 0;
}

/// Actuator k where its tendon's force is at its bound: its own bound and its slopes, which are those of the pull of all of the tendon's
/// actuators together. False: the tendon is not at a bound.
bool share_in_tendon(const Model& model, const DynamicsWorkspace& at, int k, const double* q, const double* v,
                     const double* u, ActuatorForce& a) {
  const Actuator& actuator = model.actuators[k];
  if (actuator.tendon < 0 || !model.tendons[actuator.tendon].force_limited) return false;
  const TendonShare share = tendon_share(model, at, actuator.tendon, q, v, u);
  if (!share.bounded) return false;

  // d(sum gear_i s f_i) / df_k over gear_k; a force at its own bound moves the others all the same.
  a.force *= share.scale;
  const ForceBound bound = own_bound(actuator, a.force);
  const double own = bound == ForceBound::none ? 1.0 : 0.0;
  const double slope = share.scale * own - share.pull / share.sum / actuator.gear[0];
  if (bound != ForceBound::none) a.force = actuator.force_range[bound == ForceBound::upper];
  for (double* x : {&a.df_dlength, &a.df_dspeed, &a.df_du, &a.df_dgain, &a.df_dbias, &a.du})
    *x *= slope;
  return true;
}

/// What the end of the step may make of actuator k, whose force without bounds this is.
void note_clamp(const Model& model, int k, const ActuatorForce& a, ForceClamps& clamps) {
  const Actuator& actuator = model.actuators[k];
  const int joint = actuator.joint;
  clamps.force[k] = a.force;

  // Tendons, sites and muscles act with the force of the start.
  if (!may_act_at_end(actuator)) {
    clamps.by_speed[k] = clamps.by_length[k] = 0;
    if (!clamps.known) clamps.actuators[k] = own_bound(actuator, a.force);
    return;
  }
  clamps.by_speed[k] = std::min(0.0, a.df_dspeed);
  clamps.by_length[k] = model.joint_type[joint] != JointType::free ? std::min(0.0, a.df_dlength) : 0.0;
  if (!clamps.known) clamps.actuators[k] = own_bound(actuator, a.force);

  const bool limited = actuator.force_limited || std::isfinite(model.joint_actuator_lower[joint]) ||
                       std::isfinite(model.joint_actuator_upper[joint]);
  clamps.any = clamps.any || (limited && (clamps.by_speed[k] < 0 || clamps.by_length[k] < 0));
}

/// Adds actuator k to the forces of the joints of its tendon or body, whose derivatives go by one another's coordinates.
void add_coupled_actuator(const Model& model, int k, const ActuatorForce& a, JointForces& out) {
  const ActuatorDofs dofs = actuator_dofs(model, k);
  for (int i = 0; i < dofs.num; ++i) {
    out.tau[dofs.dof[i]] += a.moment[i] * a.force;
    out.dtau_du[max_actuator_dofs * k + i] = a.moment[i] * a.df_du;
    out.dtau_dgain[max_actuator_dofs * k + i] = a.moment[i] * a.df_dgain;
    out.dtau_dbias[max_actuator_dofs * k + i] = a.moment[i] * a.df_dbias;
    if (a.df_dlength == 0 && a.df_dspeed == 0 && !a.turns) continue;
    for (int j = 0; j < dofs.num; ++j) {
      const double turned = a.turns ? a.dmoment[i][j] * a.force : 0.0;
      const double moved = a.df_dlength * a.dlength[j] + a.df_dspeed * a.dspeed[j];
      out.coupled_slopes.push_back(
          {dofs.dof[i], dofs.dof[j], a.moment[i] * moved + turned, a.moment[i] * a.df_dspeed * a.moment[j]});
    }
  }
}

/// Adds actuator k to the forces of its joint, tendon or body.
void add_actuator(const Model& model, int k, const ActuatorForce& a, JointForces& out) {
  if (!drives_joint(model.actuators[k])) {
    out.actuator_force[k] = a.force;
    out.actuator_length[k] = a.length;
    out.actuator_speed[k] = a.speed;
    out.at_kink = out.at_kink || (a.at_kink && a.force != 0);
    add_coupled_actuator(model, k, a, out);
    return;
  }

  const int first = model.joint_v[model.actuators[k].joint];
  const int n = joint_num_dofs(model.joint_type[model.actuators[k].joint]);
  out.actuator_force[k] = a.force;
  out.actuator_length[k] = a.length;
  out.actuator_speed[k] = a.speed;
  out.at_kink = out.at_kink || (a.at_kink && a.force != 0);

  // The force acts along the moment, and so do its derivatives, unless the moment itself turns.
  for (int i = 0; i < n; ++i) {
    const int d = first + i;
    out.tau[d] += a.moment[i] * a.force;
    out.dtau_du[max_actuator_dofs * k + i] = a.moment[i] * a.df_du;
    out.dtau_dgain[max_actuator_dofs * k + i] = a.moment[i] * a.df_dgain;
    out.dtau_dbias[max_actuator_dofs * k + i] = a.moment[i] * a.df_dbias;
    for (int j = 0; j < n; ++j) {
      out.dtau_dq[6 * d + j] += a.moment[i] * (a.df_dlength * a.dlength[j] + a.df_dspeed * a.dspeed[j]) +
                                (a.turns ? a.dmoment[i][j] * a.force : 0.0);
      if (!a.end_speed) out.dtau_dv[6 * d + j] += a.moment[i] * a.df_dspeed * a.moment[j];
    }
  }
}

/// What of actuator k opposes the motion of its joint.
void note_gains(const Model& model, int k, const ActuatorForce& a, JointForces& out) {
  // Of a tendon nothing is taken at the end of the step: its dofs may lie on branches, where the factor of M has no entry for a pair of them;
  // nor of a site, whose moment turns, nor of a muscle, whose force is not affine.
  if (!may_act_at_end(model.actuators[k])) {
    std::copy_n(a.moment, actuator_dofs(model, k).num, &out.moment[max_actuator_dofs * k]);
    out.speed_gain[k] = out.length_gain[k] = 0;
    return;
  }

  const JointType type = model.joint_type[model.actuators[k].joint];
  std::copy_n(a.moment, joint_num_dofs(type), &out.moment[max_actuator_dofs * k]);
  out.speed_gain[k] = std::max(0.0, -a.df_dspeed);

  // A free joint has no length.
  out.length_gain[k] = type != JointType::free ? std::max(0.0, -a.df_dlength) : 0.0;
  out.any_gain = out.any_gain || out.speed_gain[k] > 0 || out.length_gain[k] > 0;
}

/// A dof that is saturated does not feel its tendons either.
void drop_coupled_slopes(const Model& model, int d, JointForces& out) {
  if (out.coupled_slopes.empty() && model.tendons.empty()) return;
  std::erase_if(out.coupled_slopes, [d](const CoupledSlope& slope) { return slope.row == d; });
  for (int k = 0; k < model.nu; ++k) {
    if (drives_joint(model.actuators[k])) continue;
    const ActuatorDofs dofs = actuator_dofs(model, k);
    for (int i = 0; i < dofs.num; ++i)
      if (dofs.dof[i] == d)
        out.dtau_du[max_actuator_dofs * k + i] = out.dtau_dgain[max_actuator_dofs * k + i] =
            out.dtau_dbias[max_actuator_dofs * k + i] = 0;
  }
}

// The joint's own limit on the sum of its actuators (MuJoCo's actuatorfrcrange; hinge and slide only).
void clamp_joint(const Model& model, int j, JointForces& out) {
  const int d = model.joint_v[j];
  const double lower = model.joint_actuator_lower[j];
  const double upper = model.joint_actuator_upper[j];
  ForceBound& bound = out.clamps.joints[j];
  if (!out.clamps.known) bound = bound_of(out.tau[d], lower, upper);
  if (bound == ForceBound::none) return;

  // A saturated joint does not feel its actuators: no slope, no gain.
  out.tau[d] = bound == ForceBound::upper ? upper : lower;
  std::fill_n(&out.dtau_dq[6 * d], 6, 0.0);
  std::fill_n(&out.dtau_dv[6 * d], 6, 0.0);
  for (int k = 0; k < model.nu; ++k)
    if (model.actuators[k].joint == j) {
      out.dtau_du[max_actuator_dofs * k] = out.dtau_dgain[max_actuator_dofs * k] =
          out.dtau_dbias[max_actuator_dofs * k] = 0;
      out.speed_gain[k] = out.length_gain[k] = 0;
    }
  drop_coupled_slopes(model, d, out);
}

/// tau_d -= stiffness * stretch, of a dof of its own.
void add_linear_spring(double stiffness, double stretch, int d, int column, JointForces& out) {
  out.tau[d] -= stiffness * stretch;
  out.dtau_dq[6 * d + column] -= stiffness;
}

// tau = -k log(q_spring^-1 q), derivative -k Jr^-1.
void add_rotation_spring(double stiffness, const double* q, const double* rest, int first, int column,
                         JointForces& out) {
  double relative[4];
  double phi[3];
  double inverse[9];
  quaternion_conjugate_multiply(rest, q, relative);
  rotation_vector(relative, phi, inverse);

  for (int i = 0; i < 3; ++i) {
    out.tau[first + i] -= stiffness * phi[i];
    for (int j = 0; j < 3; ++j)
      out.dtau_dq[6 * (first + i) + column + j] -= stiffness * inverse[3 * i + j];
  }
}

/// The spring of joint j with stiffness k, from its rest position.
void add_spring(const Model& model, int j, double k, const double* q, JointForces& out) {
  const double* qj = q + model.joint_q[j];
  const double* rest = model.q_spring.data() + model.joint_q[j];
  const int d = model.joint_v[j];
  switch (model.joint_type[j]) {
    case JointType::slide:
    case JointType::hinge: add_linear_spring(k, qj[0] - rest[0], d, 0, out); break;
    case JointType::ball: add_rotation_spring(k, qj, rest, d, 0, out); break;
    case JointType::free:
      for (int i = 0; i < 3; ++i)
        add_linear_spring(k, qj[i] - rest[i], d + i, i, out);
      add_rotation_spring(k, qj + 3, rest + 3, d + 3, 3, out);
      break;
  }
}

void clear(JointForces& out) {
  std::fill(out.tau.begin(), out.tau.end(), 0.0);
  std::fill(out.dtau_dq.begin(), out.dtau_dq.end(), 0.0);
  std::fill(out.dtau_dv.begin(), out.dtau_dv.end(), 0.0);
  out.coupled_slopes.clear();
  out.any_gain = out.at_end = out.at_kink = out.clamps.any = false;
}

void check_state(const Model& model, const std::vector<double>& q, const std::vector<double>& v) {
  check_vector(q, model.nq, "q");
  check_configuration(model, q.data(), "q");
  check_vector(v, model.nv, "v");
}

}  // namespace

ActuatorDofs actuator_dofs(const Model& model, int actuator) {
  const Actuator& a = model.actuators[actuator];
  ActuatorDofs out;
  if (a.tendon >= 0) {
    const std::vector<int>& dofs = model.tendons[a.tendon].dofs;
    out.num = int(dofs.size());
    std::copy(dofs.begin(), dofs.end(), out.dof);
    return out;
  }
  if (a.reference_body >= 0) {
    // What moves both of them moves neither against the other.
    for (int d = 0; d < model.nv && out.num < max_actuator_dofs; ++d)
      if (dof_moves_body(model, d, a.body) != dof_moves_body(model, d, a.reference_body)) out.dof[out.num++] = d;
    return out;
  }
  if (a.body >= 0) {
    const int last = model.body_last_dof[a.body];
    out.num = model.dof_depth[last] + 1;
    std::copy_n(model.dof_path.data() + model.dof_row[last], out.num, out.dof);
    return out;
  }
  out.num = joint_num_dofs(model.joint_type[a.joint]);
  for (int i = 0; i < out.num; ++i)
    out.dof[i] = model.joint_v[a.joint] + i;
  return out;
}

int actuator_tree(const Model& model, int actuator) {
  const Actuator& a = model.actuators[actuator];
  if (a.reference_body >= 0) return model.body_tree[model.dof_body[actuator_dofs(model, actuator).dof[0]]];
  if (a.body >= 0) return model.body_tree[a.body];
  const int dof = a.tendon >= 0 ? model.tendons[a.tendon].dofs[0] : model.joint_v[a.joint];
  return model.body_tree[model.dof_body[dof]];
}

std::vector<std::pair<int, int>> actuator_ties(const Model& model) {
  std::vector<std::pair<int, int>> out;
  for (int k = 0; k < model.nu; ++k) {
    if (drives_joint(model.actuators[k])) continue;
    const int first = actuator_tree(model, k);
    const ActuatorDofs dofs = actuator_dofs(model, k);
    int last = first;
    for (int i = 0; i < dofs.num; ++i) {
      const int tree = model.body_tree[model.dof_body[dofs.dof[i]]];
      if (tree != first && tree != last) out.emplace_back(first, tree);
      last = tree;
    }
  }
  return out;
}

int joint_num_dofs(JointType type) { return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1; }

ActuatorForce actuator_force(const Model& model, const DynamicsWorkspace& at, int k, const double* q, const double* v,
                             double u) {
  ActuatorForce a = unbounded_force(model, at, k, q, v, u);
  hold_at_bound(model.actuators[k], own_bound(model.actuators[k], a.force), a);
  return a;
}

ForceBound own_bound(const Actuator& actuator, double force) {
  if (!actuator.force_limited) return ForceBound::none;
  return bound_of(force, actuator.force_range[0], actuator.force_range[1]);
}

TendonShare tendon_share(const Model& model, const DynamicsWorkspace& at, int tendon, const double* q, const double* v,
                         const double* u) {
  TendonShare out;
  const auto add_up = [&](auto visit) {
    for (int k = 0; k < model.nu; ++k)
      if (model.actuators[k].tendon == tendon)
        visit(model.actuators[k], unbounded_force(model, at, k, q, v, u[k]).force);
  };
  add_up([&](const Actuator&, double force) { out.sum += force; });
  const std::array<double, 2>& range = model.tendons[tendon].force_range;
  const ForceBound bound = bound_of(out.sum, range[0], range[1]);
  if (bound == ForceBound::none) return out;

  // Zero lies within the range, so the sum is not zero here.
  out.bounded = true;
  out.scale = range[bound == ForceBound::upper] / out.sum;
  add_up([&](const Actuator& actuator, double force) {
    if (own_bound(actuator, out.scale * force) == ForceBound::none) out.pull += actuator.gear[0] * (out.scale * force);
  });
  return out;
}

ActuatorForce unbounded_force(const Model& model, const DynamicsWorkspace& at, int k, const double* q, const double* v,
                              double u) {
  const Actuator& actuator = model.actuators[k];
  const ActuatorDofs dofs = actuator_dofs(model, k);
  ActuatorForce a;
  for (int i = 0; i < dofs.num; ++i)
    a.dlength[i] = a.moment[i] = a.dspeed[i] = 0;

  // Length and moment, and the speed that is their rate.
  transmission(model, at, actuator, q, dofs, a);
  for (int i = 0; i < dofs.num; ++i) {
    a.speed += a.moment[i] * v[dofs.dof[i]];
    for (int l = 0; a.turns && l < dofs.num; ++l)
      a.dspeed[i] += a.dmoment[l][i] * v[dofs.dof[l]];
  }

  // The control saturates ...
  double du = 1;
  if (actuator.control_limited && actuator.activation == ActivationType::none) {
    if (u < actuator.control_range[0]) {
      u = actuator.control_range[0];
      du = 0;
    } else if (u > actuator.control_range[1]) {
      u = actuator.control_range[1];
      du = 0;
    }
  }

  a.du = du;
  if (has_curves(actuator)) {
    set_muscle_force(actuator, u, du, a);
    return a;
  }

  // ... and is that of the shorter way round. The force is affine in length and speed.
  u = nearest_turn(model, actuator, a.length, u);
  const double gain = actuator.gain[0] + actuator.gain[1] * a.length + actuator.gain[2] * a.speed;
  a.force = gain * u + actuator.bias[0] + actuator.bias[1] * a.length + actuator.bias[2] * a.speed;

  a.df_dlength = actuator.gain[1] * u + actuator.bias[1];
  a.df_dspeed = actuator.gain[2] * u + actuator.bias[2];
  a.df_du = du * gain;
  a.df_dgain = u;
  a.df_dbias = 1;
  return a;
}

void take_to_end(const Model& model, int k, const StepMotion& motion, ActuatorForce& a) {
  const Actuator& actuator = model.actuators[k];
  if (!may_act_at_end(actuator)) return;
  const JointType type = model.joint_type[actuator.joint];
  const int first = model.joint_v[actuator.joint];
  const int n = joint_num_dofs(type);
  a.end_speed = motion.rule != ForcesAtEnd::none && a.df_dspeed < 0;
  a.end_length = motion.rule == ForcesAtEnd::positions && type != JointType::free && a.df_dlength < 0;
  if (!a.end_speed && !a.end_length) return;

  // The speed at the end, and how far the length comes; the moment is that of the start.
  double end = 0;
  double turned[6] = {0};
  for (int i = 0; i < n; ++i) {
    end += a.moment[i] * motion.v_plus[first + i];
    for (int l = 0; a.turns && l < n; ++l)
      turned[i] += a.dmoment[l][i] * motion.v_plus[first + l];
  }
  const double by_speed = a.end_speed ? end - a.speed : 0.0;
  const double by_length = a.end_length ? motion.h * end : 0.0;
  a.speed += by_speed;
  a.length += by_length;

  // The force is affine in both, and so is its gain.
  a.force += a.df_dspeed * by_speed + a.df_dlength * by_length;
  a.df_du += a.du * (actuator.gain[2] * by_speed + actuator.gain[1] * by_length);
  for (int i = 0; i < n; ++i) {
    if (a.end_speed) a.dspeed[i] = turned[i];
    if (a.end_length) a.dlength[i] += motion.h * turned[i];
  }
}

// force = kp (u - length) - kd speed
double by_position_gain(double by_gain, double by_bias, double length) { return by_gain - length * by_bias; }

// The same, or kd (u - speed).
double by_velocity_gain(const Actuator& actuator, double by_gain, double by_bias, double speed) {
  const bool in_gain = actuator.bias[1] == 0;
  return (in_gain ? by_gain : 0.0) - speed * by_bias;
}

JointForces::JointForces(const Model& model)
    : tau(model.nv), dtau_dq(6 * model.nv), dtau_dv(6 * model.nv), dtau_du(max_actuator_dofs * model.nu),
      dtau_dgain(max_actuator_dofs * model.nu), dtau_dbias(max_actuator_dofs * model.nu), actuator_force(model.nu),
      actuator_length(model.nu), actuator_speed(model.nu), moment(max_actuator_dofs * model.nu), speed_gain(model.nu),
      length_gain(model.nu), clamps(model), tau_at_end(model.nv) {
  std::size_t most = 0;
  for (const Actuator& a : model.actuators)
    most += a.tendon >= 0 ? model.tendons[a.tendon].dofs.size() * model.tendons[a.tendon].dofs.size() : 0;
  coupled_slopes.reserve(most + count_wrench_slopes(model));
}

void joint_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v, const double* u,
                  JointForces& out) {
  clear(out);
  add_actuator_forces(model, at, q, v, u, out);
  add_passive_forces(model, at, q, v, out);
}

void add_actuator_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v,
                         const double* u, JointForces& out) {
  // Sum, then the joints' own limits on it.
  for (int k = 0; k < model.nu; ++k) {
    ActuatorForce a = unbounded_force(model, at, k, q, v, u[k]);
    note_clamp(model, k, a, out.clamps);
    if (!share_in_tendon(model, at, k, q, v, u, a)) hold_at_bound(model.actuators[k], out.clamps.actuators[k], a);
    add_actuator(model, k, a, out);
    note_gains(model, k, a, out);
  }
  if (model.nu == 0) return;
  for (int j = 0; j < model.num_joints; ++j)
    if (joint_num_dofs(model.joint_type[j]) == 1) clamp_joint(model, j, out);
}

void add_passive_forces(const Model& model, const DynamicsWorkspace& at, const double* q, const double* v,
                        JointForces& out) {
  // Springs,
  for (int j = 0; j < model.num_joints; ++j)
    if (model.joint_stiffness[j] != 0) {
      add_spring(model, j, model.joint_stiffness[j], q, out);
    }

  // damping,
  for (int d = 0; d < model.nv; ++d) {
    const int column = d - model.joint_v[model.dof_joint[d]];
    out.tau[d] -= model.dof_damping[d] * v[d];
    out.dtau_dv[6 * d + column] -= model.dof_damping[d];
  }

  // and drag.
  add_medium_forces(model, at, v, out);
}

void joint_forces_at_end(const Model& model, const DynamicsWorkspace& at, const double* q, const double* u,
                         const StepMotion& motion, JointForces& forces) {
  if (forces.at_end || !forces.any_gain || motion.rule == ForcesAtEnd::none) return;

  // Position gains alone act at the start.
  const auto brakes = [](double gain) { return gain > 0; };
  const std::vector<double>& gains = forces.speed_gain;
  if (motion.rule == ForcesAtEnd::speeds && std::none_of(gains.begin(), gains.end(), brakes)) return;
  const bool any_clamp = forces.clamps.any;
  forces.tau.swap(forces.tau_at_end);
  clear(forces);
  forces.clamps.any = any_clamp;

  // A joint that is saturated has the derivatives it had: none.
  for (int k = 0; k < model.nu; ++k) {
    const int joint = model.actuators[k].joint;
    if (joint >= 0 && forces.clamps.joints[joint] != ForceBound::none) continue;
    ActuatorForce force = unbounded_force(model, at, k, q, motion.v, u[k]);
    if (!share_in_tendon(model, at, k, q, motion.v, u, force))
      hold_at_bound(model.actuators[k], forces.clamps.actuators[k], force);
    take_to_end(model, k, motion, force);
    add_actuator(model, k, force, forces);
  }
  for (int j = 0; j < model.num_joints && !forces.coupled_slopes.empty(); ++j)
    if (forces.clamps.joints[j] != ForceBound::none) drop_coupled_slopes(model, model.joint_v[j], forces);
  add_passive_forces(model, at, q, motion.v, forces);
  forces.tau.swap(forces.tau_at_end);
  forces.any_gain = forces.at_end = true;
}

void add_unit_spring(const Model& model, int joint, const double* q, JointForces& out) {
  add_spring(model, joint, 1.0, q, out);
}

std::vector<double> passive_forces(const Model& model, const std::vector<double>& q, const std::vector<double>& v) {
  check_state(model, q, v);
  JointForces out(model);
  DynamicsWorkspace at(model);
  kinematics(model, q.data(), at);
  add_passive_forces(model, at, q.data(), v.data(), out);

  // Springs and dampers of tendons, which steps take as constraints.
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    const Tendon& tendon = model.tendons[t];
    TendonState state;
    tendon_state(model, at, t, q.data(), false, state);
    const double force =
        -tendon.stiffness * tendon_stretch(tendon, state.length) - tendon.damping * state.rate(v.data());
    for (int i = 0; i < state.num; ++i)
      out.tau[state.dof[i]] += state.J[i] * force;
  }
  return out.tau;
}

std::vector<double> actuator_forces(const Model& model, const std::vector<double>& q, const std::vector<double>& v,
                                    const std::vector<double>& u) {
  check_state(model, q, v);
  check_vector(u, model.nu, "u");
  JointForces out(model);
  DynamicsWorkspace at(model);
  kinematics(model, q.data(), at);
  add_actuator_forces(model, at, q.data(), v.data(), u.data(), out);
  return out.tau;
}

}  // namespace coulomb

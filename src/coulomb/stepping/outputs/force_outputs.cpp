#include "coulomb/stepping/outputs/force_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/motion/smoothed_motion.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

/// to += scale x, by index.
void add(const std::vector<std::pair<int, double>>& entries, double scale, std::vector<double>& to) {
  for (const auto& [i, value] : entries)
    to[i] += scale * value;
}

bool is_kind(const ParameterSet::Item& item, const char* name) { return std::string(item.kind->name()) == name; }

/// What it takes to tell the reading of a force sensor.
StepForce force_of(const Sensor& sensor) {
  switch (sensor.type) {
    case SensorType::touch:
    case SensorType::joint_limit_force:
    case SensorType::contact_force:
    case SensorType::joint_friction_force:
    case SensorType::tendon_limit_force:
    case SensorType::contact:
    case SensorType::equality_force: return StepForce::constraint;
    case SensorType::interaction_force:
    case SensorType::interaction_torque: return StepForce::balance;
    default: return StepForce::motion;
  }
}

/// Throws where the step does not tell.
void check_told(const Sensor& sensor, const StepOptions& options) {
  const char* const why = options.stepper->untold(force_of(sensor));
  if (why) {
    throw std::logic_error("output '" + sensor.name + "': " + why);
  }
}

}  // namespace

void ForceGradient::clear(const Model& model, const StepRecord& record, const ParameterSet* set) {
  lambda.assign(record.rows.num_rows, 0.0);
  u.assign(model.nu, 0.0);
  parameters.assign(set ? set->size() : 0, 0.0);
  fext.clear();
  for (auto* x : {&q, &v, &q_next, &v_next})
    x->assign(model.nv, 0.0);
}

ForceOutputs::ForceOutputs(const Model& model, const StepOptions& options)
    : model_(&model), options_(&options), at_(model), springs_(model), motion_(model), spin_(model) {}

void ForceOutputs::move_to(const StepRecord& record) {
  record_ = &record;
  have_at_ = have_driven_ = false;
}

/// Of contacts and springs.
bool ForceOutputs::found_at_end() const { return options_->stepper->contacts_at() == StepPoint::end; }

const DynamicsWorkspace& ForceOutputs::where_found() {
  if (have_at_) return at_;
  have_at_ = true;
  kinematics(*model_, found_at_end() ? record_->q_next.data() : record_->q.data(), at_);
  velocities(*model_, found_at_end() ? record_->v_next.data() : record_->v.data(), at_);
  return at_;
}

/// Where actuators act, for those whose length or moment depends on poses. Records of steps that know their contacts at the end have the
/// poses of neither end: those of the last iterate, or none where a step is recalled.
const DynamicsWorkspace& ForceOutputs::where_driven() {
  if (!found_at_end()) return record_->dynamics;
  if (options_->stepper->dynamics_at() == StepPoint::end) return where_found();
  if (!driven_) driven_.emplace(*model_);
  if (!have_driven_) {
    kinematics(*model_, record_->q.data(), *driven_);
    velocities(*model_, record_->v.data(), *driven_);
    have_driven_ = true;
  }
  return *driven_;
}

/// Force of actuator k, with its derivatives, `scale` times. Returns the force.
double ForceOutputs::add_actuator(int k, double scale, Scalar& out) {
  const StepRecord& r = *record_;
  out.at_end = options_->stepper->dynamics_at() == StepPoint::end;
  const double* q = out.at_end ? r.q_next.data() : r.q.data();
  const double* v = out.at_end ? r.v_next.data() : r.v.data();
  const DynamicsWorkspace& at = where_driven();
  const Actuator& actuator = model_->actuators[k];
  TendonShare share;
  if (actuator.tendon >= 0 && model_->tendons[actuator.tendon].force_limited)
    share = tendon_share(*model_, at, actuator.tendon, q, v, r.u.data());
  if (!share.bounded) {
    const ActuatorForce a = actuator_force(*model_, at, k, q, v, r.u[k]);
    out.value += scale * a.force;
    add_slopes(k, a, scale, out);
    return a.force;
  }

  // At the bound of its tendon it gives way to the others, unless it is at its own.
  const ActuatorForce a = unbounded_force(*model_, at, k, q, v, r.u[k]);
  const double force = share.scale * a.force;
  const ForceBound bound = own_bound(actuator, force);
  if (bound != ForceBound::none) {
    const double held = actuator.force_range[bound == ForceBound::upper];
    out.value += scale * held;
    return held;
  }
  out.value += scale * force;
  add_slopes(k, a, scale * share.scale, out);
  for (int other = 0; other < model_->nu; ++other)
    if (model_->actuators[other].tendon == actuator.tendon)
      add_slopes(other, unbounded_force(*model_, at, other, q, v, r.u[other]), -scale * force / share.sum, out);
  return force;
}

/// Derivatives of the force of actuator k, `scale` times.
void ForceOutputs::add_slopes(int k, const ActuatorForce& a, double scale, Scalar& out) const {
  // By control and gains, then by the state of its joint or tendon.
  out.du.push_back({k, scale * a.df_du});
  out.gains.push_back({k, scale * a.df_dgain});
  out.kps.push_back({k, scale * by_position_gain(a.df_dgain, a.df_dbias, a.length)});
  out.kds.push_back({k, scale * by_velocity_gain(model_->actuators[k], a.df_dgain, a.df_dbias, a.speed)});
  const ActuatorDofs dofs = actuator_dofs(*model_, k);
  for (int i = 0; i < dofs.num; ++i) {
    out.dq.push_back({dofs.dof[i], scale * (a.df_dlength * a.dlength[i] + a.df_dspeed * a.dspeed[i])});
    out.dv.push_back({dofs.dof[i], scale * a.df_dspeed * a.moment[i]});
  }
}

/// Force on A, by a covector c on it: how c . f changes with the normal, impulses held. The tangents move with it, dt = -(t . dn) n; those of
/// a pyramid, whose impulses belong to its own frame, turn about it as well.
void ForceOutputs::turn_by_normal(const BodyRows& b, const double* c, double scale, double* by_normal) const {
  const double* lambda = record_->solution.lambda.data() + b.row;
  const double along = dot3(b.axes[2], c);

  // The normal itself, and the tangents with it.
  for (int j = 0; j < 3; ++j)
    by_normal[j] += scale * lambda[2] * c[j];
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      by_normal[j] -= scale * lambda[k] * b.axes[k][j] * along;
  if (record_->rows.blocks[b.block].type != BlockType::pyramid) return;

  // A pyramid's frame spins.
  const double spun = lambda[0] * dot3(b.axes[1], c) - lambda[1] * dot3(b.axes[0], c);
  for (int j = 0; j < 3; ++j) {
    double dn[3] = {0, 0, 0};
    dn[j] = 1;
    by_normal[j] += scale * spun * contact_frame_spin(b.axes[2], dn);
  }
}

/// The same of the torque of torsional and rolling friction.
void ForceOutputs::turn_torque_by_normal(const BodyRows& b, const double* c, double scale, double* by_normal) const {
  if (b.size == 3) return;
  double m[3];
  block_torque(b, record_->solution.lambda.data() + b.row, m);
  const double* n = b.axes[2];
  const double about_normal = dot3(m, n);
  const double along = dot3(n, c);
  for (int j = 0; j < 3; ++j)
    by_normal[j] += scale * (about_normal * c[j] - (m[j] - about_normal * n[j]) * along);
  if (record_->rows.blocks[b.block].type != BlockType::pyramid) return;

  // A pyramid's frame spins.
  double spun[3];
  cross3(n, m, spun);
  for (int j = 0; j < 3; ++j) {
    double dn[3] = {0, 0, 0};
    dn[j] = 1;
    by_normal[j] += scale * dot3(spun, c) * contact_frame_spin(n, dn);
  }
}

/// The share of an actuator of a tendon or at a site in the force of a hinge or slide: its moment may turn with all of its dofs.
void ForceOutputs::add_coupled_actuator(int k, int joint, Scalar& out) {
  const StepRecord& r = *record_;
  const bool at_end = options_->stepper->dynamics_at() == StepPoint::end;
  const ActuatorForce a = actuator_force(*model_, where_driven(), k, at_end ? r.q_next.data() : r.q.data(),
                                         at_end ? r.v_next.data() : r.v.data(), r.u[k]);
  const ActuatorDofs dofs = actuator_dofs(*model_, k);
  for (int i = 0; i < dofs.num; ++i) {
    if (model_->dof_joint[dofs.dof[i]] != joint) continue;
    const double force = add_actuator(k, a.moment[i], out);
    for (int j = 0; a.turns && j < dofs.num; ++j)
      out.dq.push_back({dofs.dof[j], a.dmoment[i][j] * force});
  }
}

/// A joint's actuators together, within the limits of the joint. True: at a limit, so that nothing moves it.
bool ForceOutputs::add_joint_actuators(int joint, Scalar& out) {
  for (int k = 0; k < model_->nu; ++k) {
    const Actuator& actuator = model_->actuators[k];
    if (actuator.joint == joint) add_actuator(k, actuator.gear[0], out);
    if (!drives_joint(actuator)) add_coupled_actuator(k, joint, out);
  }

  const double lower = model_->joint_actuator_lower[joint];
  const double upper = model_->joint_actuator_upper[joint];
  const double clamped = std::clamp(out.value, lower, upper);
  const bool at_limit = clamped != out.value;
  out.value = clamped;
  return at_limit;
}

/// What the actuators of a tendon pull with, together.
void ForceOutputs::add_tendon_actuators(int tendon, Scalar& out) {
  for (int k = 0; k < model_->nu; ++k)
    if (model_->actuators[k].tendon == tendon) add_actuator(k, 1, out);
}

/// The numbers of a sensor, with all that moves them, in scalars_.
void ForceOutputs::scalars(const Sensor& sensor) {
  scalars_.assign(sensor_tangent_size(*model_, sensor), Scalar{});
  check_told(sensor, *options_);
  spins_.clear();

  Scalar& out = scalars_[0];
  bool constant = false;
  switch (sensor.type) {
    case SensorType::actuator_force: add_actuator(sensor.index, 1, out); break;
    case SensorType::joint_actuator_force: constant = add_joint_actuators(sensor.index, out); break;
    case SensorType::touch: add_touch(model_->sites[sensor.index], out); break;
    case SensorType::tendon_actuator_force: add_tendon_actuators(sensor.index, out); break;
    case SensorType::tendon_limit_force: add_limit(-1, sensor.index, out); break;
    case SensorType::joint_limit_force: add_limit(sensor.index, -1, out); break;
    case SensorType::contact_force: add_contact_force(sensor); break;
    case SensorType::contact: add_contact_sensor(sensor); break;
    case SensorType::joint_friction_force: add_dry_friction(sensor.index); break;
    case SensorType::equality_force: add_equality(sensor.index); break;
    case SensorType::accelerometer:
    case SensorType::frame_acceleration:
    case SensorType::frame_angular_acceleration:
    case SensorType::interaction_force:
    case SensorType::interaction_torque: add_motion(sensor); break;
    default: break;
  }

  for (Scalar& s : scalars_) {
    close(s);

    // At a limit of the sensor nothing moves it either.
    const bool is_held = constant || is_clamped(sensor, s.value);
    s.value = clamp_reading(sensor, s.value);
    if (!is_held) continue;
    const double value = s.value;
    s = Scalar{};
    s.value = value;
  }
}

/// Impulses become forces; and what a longer step changes of them, of the acceleration and of the spins.
void ForceOutputs::close(Scalar& s) const {
  const double h = options_->constraints.timestep;
  double of_impulses = 0;
  for (auto& [row, coefficient] : s.impulses) {
    coefficient /= h;
    of_impulses += coefficient * record_->solution.lambda[row];
  }
  s.value += of_impulses;
  for (Scalar::Turn& turn : s.turns) {
    if (!turn.of_impulses) continue;
    for (int i = 0; i < 3; ++i) {
      turn.by_normal[i] /= h;
      turn.by_point[i] /= h;
    }
  }

  s.timestep = -of_impulses / h;
  for (std::size_t d = 0; d < s.da.size(); ++d)
    s.timestep -= s.da[d] * acceleration_[d] / h;
  for (const SpinDerivative& spin : spins_) {
    double change[6];
    for (int i = 0; i < 6; ++i)
      change[i] = spin.by[i][SpinDerivative::time];
    s.timestep += by_shift(s, spin, change);
  }
}

void ForceOutputs::read(const Sensor& sensor, double* readings) {
  scalars(sensor);
  for (std::size_t k = 0; k < scalars_.size(); ++k)
    readings[k] = scalars_[k].value;
}

/// Normals and points of contacts move with the bodies, and with the shapes that parameters change.
void ForceOutputs::add_turns(const Scalar& s, double weight, const ParameterSet* set, ForceGradient& to) {
  const GradientOptions& g = options_->gradient;
  std::vector<double>& by_q = found_at_end() ? to.q_next : to.q;
  CollisionWorkspace collision = record_->collision;
  const SmoothedMotion smoothed(*model_, collision, g.samples, g.scale, g.seed);
  std::vector<ContactChange> change;
  for (const Scalar::Turn& turn : s.turns) {
    const Contact& contact = record_->collision.contacts[turn.contact];
    ContactMotion motion;
    if (g.mode == GradientMode::smoothed_collision)
      smoothed(contact, motion);
    else
      contact_motion(contact, motion);

    // By all dofs where it was found, then by parameters.
    change.assign(model_->nv, ContactChange{});
    add_contact_columns(*model_, where_found(), contact, motion, change.data());
    const auto moved = [&](const ContactChange& c) {
      return weight * (dot3(turn.by_normal, c.normal) + dot3(turn.by_point, c.point) + turn.by_depth * c.depth);
    };
    for (int d = 0; d < model_->nv; ++d)
      by_q[d] += moved(change[d]);
    if (!set || set->size() == 0) continue;
    change.assign(set->size(), ContactChange{});
    add_contact_columns(*model_, where_found(), contact, motion, *set, change.data());
    for (int k = 0; k < set->size(); ++k)
      to.parameters[k] += moved(change[k]);
  }
}

/// What parameters change at fixed states and impulses.
void ForceOutputs::add_parameters(const Sensor& sensor, const Scalar& s, double weight, const ParameterSet& set,
                                  ForceGradient& to) {
  const ConstraintOptions& step = options_->constraints;
  double* parameters = to.parameters.data();

  // Motion sensors: inertia and frames, and how bodies spin.
  if (!s.da.empty()) {
    motion_.add_parameters(s.motion, sensor, outside_, {set, *record_, step, weight}, parameters);
  }
  if (!spins_.empty() && set.size() > 0)
    motion_.add_spin_parameters(spins_, s.da, {set, *record_, step, -weight / step.timestep}, parameters);

  // Frames of equalities.
  if (!s.of_frames.terms.empty() && set.size() > 0) {
    std::vector<double> row(set.size());
    add_output_parameters(*model_, where_found(), {s.of_frames}, set, row.data(), set.size());
    for (int k = 0; k < set.size(); ++k)
      parameters[k] += weight * row[k];
  }

  for (const ParameterSet::Item& item : set.items()) {
    if (is_kind(item, "timestep")) {
      parameters[item.first] += weight * s.timestep;
    }
    add_actuator_parameter(s, item, weight, parameters);
    add_turning_parameter(s, item, weight, parameters);

    if (is_kind(item, "joint_friction")) {
      const int first = model_->joint_v[item.element.index];
      for (const auto& [dof, value] : s.dry_frictions)
        if (dof >= first && dof < first + item.element.size) {
          parameters[item.first + dof - first] += weight * value;
        }
    }

    // Limits are springs on the way to a bound.
    const bool of_limit = (s.limit_joint >= 0 && is_kind(item, "joint_limits")) ||
                          (s.limit_tendon >= 0 && is_kind(item, "tendon_limits"));
    if (!of_limit) continue;
    std::vector<FrameMotion> motions;
    item.kind->frame_motions(*model_, where_found(), item.element, motions);
    for (std::size_t k = 0; k < motions.size(); ++k)
      if (motions[k].joint == s.limit_joint && motions[k].tendon == s.limit_tendon)
        parameters[item.first + k] += weight * (s.dlower * motions[k].dlower + s.dupper * motions[k].dupper);
  }
}

/// A coefficient that makes rows of torsional or rolling friction longer: the same impulses are more torque.
void ForceOutputs::add_turning_parameter(const Scalar& s, const ParameterSet::Item& item, double weight,
                                         double* parameters) const {
  for (const BodyRows& b : record_->rows.body_rows) {
    if (b.contact < 0 || b.size == 3) continue;
    const int pair = record_->collision.contacts[b.contact].pair;
    for (const auto& [row, coefficient] : s.impulses) {
      const int k = row - b.row;
      if (k < 3 || k >= b.size) continue;
      const TurningRows which = b.turning_axis(k) == 2 ? TurningRows::torsional : TurningRows::rolling;
      const double share = item.kind->turning_rows_by(*model_, item.element, pair, which);
      parameters[item.first] += weight * share * coefficient * record_->solution.lambda[row];
    }
  }
}

/// A gain of an actuator that the scalar feels.
void ForceOutputs::add_actuator_parameter(const Scalar& s, const ParameterSet::Item& item, double weight,
                                          double* parameters) const {
  const std::vector<std::pair<int, double>>* of_actuators = nullptr;
  if (is_kind(item, "actuator_gain") || is_kind(item, "muscle_force")) {
    of_actuators = &s.gains;
  }
  if (is_kind(item, "actuator_kp")) {
    of_actuators = &s.kps;
  }
  if (is_kind(item, "actuator_kd")) {
    of_actuators = &s.kds;
  }
  if (!of_actuators) return;
  for (const auto& [actuator, value] : *of_actuators)
    if (actuator == item.element.index) {
      parameters[item.first] += weight * value;
    }
}

void ForceOutputs::add_gradient(const Sensor& sensor, const double* weights, const ParameterSet* set,
                                ForceGradient& to) {
  scalars(sensor);
  for (std::size_t k = 0; k < scalars_.size(); ++k) {
    const Scalar& s = scalars_[k];
    const double weight = weights[k];
    if (weight == 0) continue;

    // Impulses and controls.
    add(s.impulses, weight, to.lambda);
    add(s.du, weight, to.u);

    // a = (v+ - v) / h
    const double by_velocity = weight / options_->constraints.timestep;
    for (std::size_t d = 0; d < s.da.size(); ++d) {
      to.v_next[d] += by_velocity * s.da[d];
      to.v[d] -= by_velocity * s.da[d];
    }
    if (!s.da.empty() && s.motion.of_forces) {
      add_wrenches(s, weight, to);
    }

    // Both states, and what moves contacts and frames.
    add(s.dq, weight, s.at_end ? to.q_next : to.q);
    add(s.dv, weight, s.at_end ? to.v_next : to.v);
    if (!s.of_frames.terms.empty())
      add_output_row(*model_, where_found(), s.of_frames, weight, to.q_next.data(), to.v_next.data());
    if (!s.turns.empty()) {
      add_turns(s, weight, set, to);
    }
    if (set) {
      add_parameters(sensor, s, weight, *set, to);
    }
  }
}

void check_forces_told(const OutputSet& outputs, const StepOptions& options) {
  for (const OutputSet::Item& item : outputs.items())
    check_told(item.sensor, options);
}

}  // namespace coulomb

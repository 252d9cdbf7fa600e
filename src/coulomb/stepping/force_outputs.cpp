#include "coulomb/stepping/force_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/collision/smoothed_motion.hpp"
#include "coulomb/dynamics/site_zone.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/semi_implicit.hpp"
#include "coulomb/stepping/steppers.hpp"

namespace coulomb {
namespace {

void add(const std::vector<std::pair<int, double>>& entries, double scale, std::vector<double>& to) {
  for (const auto& [i, value] : entries) to[i] += scale * value;
}

bool is_kind(const ParameterSet::Item& item, const char* name) { return std::string(item.kind->name()) == name; }

void check_told(const Sensor& sensor, const StepOptions& options) {
  const bool of_rows = sensor.type == SensorType::touch || sensor.type == SensorType::joint_limit_force ||
                       sensor.type == SensorType::contact_force || sensor.type == SensorType::joint_friction_force ||
                       sensor.type == SensorType::equality_force;
  const bool of_balance = sensor.type == SensorType::interaction_force || sensor.type == SensorType::interaction_torque;
  if ((of_rows || of_balance) && options.impacts.enabled)
    throw std::logic_error("output '" + sensor.name + "': not of steps with continuous_collision");
  if (of_balance && is_implicit(options))
    throw std::logic_error(
        "output '" + sensor.name +
        "': not of implicit steppers and penalty contact, whose forces are those of the end of the step");
}

/// by_a, by_b: scale times the derivative of the i-th number of half the axial vector of E, where E turns as [dphi_a] E - E [dphi_b].
void turn_of_axial(const double* E, int i, double scale, double* by_a, double* by_b) {
  const int j = (i + 1) % 3, k = (i + 2) % 3;  // half of E_kj - E_jk
  for (int m = 0; m < 3; ++m) {
    double turn[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};  // [e_m]
    turn[3 * ((m + 2) % 3) + (m + 1) % 3] = 1, turn[3 * ((m + 1) % 3) + (m + 2) % 3] = -1;
    double left[9], right[9];
    multiply3(turn, E, left), multiply3(E, turn, right);
    by_a[m] = 0.5 * scale * (left[3 * k + j] - left[3 * j + k]);
    by_b[m] = -0.5 * scale * (right[3 * k + j] - right[3 * j + k]);
  }
}

}  // namespace

void ForceGradient::clear(const Model& model, const StepRecord& record, const ParameterSet* set) {
  lambda.assign(record.rows.num_rows, 0.0), u.assign(model.nu, 0.0), parameters.assign(set ? set->size() : 0, 0.0);
  fext.clear();
  for (auto* x : {&q, &v, &q_next, &v_next}) x->assign(model.nv, 0.0);
}

ForceOutputs::ForceOutputs(const Model& model, const StepOptions& options)
    : model_(&model), options_(&options), at_(model), springs_(model), motion_(model), spin_(model) {}

void ForceOutputs::move_to(const StepRecord& record) { record_ = &record, have_at_ = false; }

bool ForceOutputs::found_at_end() const { return is_implicit(*options_); }

const DynamicsWorkspace& ForceOutputs::where_found() {
  if (have_at_) return at_;
  have_at_ = true;
  kinematics(*model_, found_at_end() ? record_->q_next.data() : record_->q.data(), at_);
  velocities(*model_, found_at_end() ? record_->v_next.data() : record_->v.data(), at_);
  return at_;
}

void ForceOutputs::add_actuator(int k, double scale, Scalar& out) {
  const StepRecord& r = *record_;
  out.at_end = options_->stepper != StepperKind::semi_implicit;
  const ActuatorForce a = actuator_force(*model_, k, out.at_end ? r.q_next.data() : r.q.data(),
                                         out.at_end ? r.v_next.data() : r.v.data(), r.u[k]);
  const int joint = model_->actuators[k].joint, first = model_->joint_v[joint];
  out.value += scale * a.force;
  out.du.push_back({k, scale * a.df_du}), out.gains.push_back({k, scale * a.df_dgain});
  out.kps.push_back({k, scale * by_position_gain(a.df_dgain, a.df_dbias, a.length)});
  out.kds.push_back({k, scale * by_velocity_gain(model_->actuators[k], a.df_dgain, a.df_dbias, a.speed)});
  for (int i = 0; i < joint_num_dofs(model_->joint_type[joint]); ++i) {
    out.dq.push_back({first + i, scale * (a.df_dlength * a.dlength[i] + a.df_dspeed * a.dspeed[i])});
    out.dv.push_back({first + i, scale * a.df_dspeed * a.moment[i]});
  }
}

// Contacts on the site's own body whose force, followed away from the body, meets the zone.
void ForceOutputs::add_touch(const Site& site, Scalar& out) {
  const StepRecord& r = *record_;
  const FrameState frame = frame_state(*model_, where_found(), site.frame);
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0 || !(r.solution.lambda[b.row + 2] > 0)) continue;
    const Contact& c = r.collision.contacts[b.contact];
    if (c.body_a != site.frame.body && c.body_b != site.frame.body) continue;
    double arm[3], p[3], d[3], outward[3];
    for (int i = 0; i < 3; ++i) outward[i] = c.body_a == site.frame.body ? -c.normal[i] : c.normal[i];
    sub3(c.point, frame.position, arm);
    rotate_transposed(frame.rotation, arm, p);
    rotate_transposed(frame.rotation, outward, d);
    if (ray_meets_zone(site, p, d)) out.impulses.push_back({b.row + 2, 1});
  }
}

/// Force on A, by a covector c on it: how c . f changes with the normal, impulses held. The tangents move with it, dt = -(t . dn) n; those of
/// a pyramid, whose impulses belong to its own frame, turn about it as well.
void ForceOutputs::turn_by_normal(const BodyRows& b, const double* c, double scale, double* by_normal) const {
  const double* lambda = record_->solution.lambda.data() + b.row;
  const double along = dot3(b.axes[2], c);
  for (int j = 0; j < 3; ++j) by_normal[j] += scale * lambda[2] * c[j];
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j) by_normal[j] -= scale * lambda[k] * b.axes[k][j] * along;
  if (record_->rows.blocks[b.block].type != BlockType::pyramid) return;
  const double spun = lambda[0] * dot3(b.axes[1], c) - lambda[1] * dot3(b.axes[0], c);
  for (int j = 0; j < 3; ++j) {
    double dn[3] = {0, 0, 0};
    dn[j] = 1;
    by_normal[j] += scale * spun * contact_frame_spin(b.axes[2], dn);
  }
}

// Force on A: frame^T lambda.
void ForceOutputs::add_contact_force(const Sensor& sensor) {
  const StepRecord& r = *record_;
  const Frame& frame = sensor.frame;
  const auto counts = [&](int body, int geometry) {
    if (!sensor.geometries) return frame.geometry >= 0 ? geometry == frame.geometry : body == frame.body;
    const std::vector<int>& those = *sensor.geometries;
    return std::find(those.begin(), those.end(), geometry) != those.end();
  };
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& c = r.collision.contacts[b.contact];
    const bool on_a = counts(c.body_a, c.geometry_a);
    const bool on_b = counts(c.body_b, c.geometry_b);
    if (on_a == on_b) continue;
    const double sign = on_a ? 1 : -1;
    for (int i = 0; i < 3; ++i) {
      Scalar& out = scalars_[i];
      Scalar::Turn turn{b.contact, {0, 0, 0}};
      for (int k = 0; k < 3; ++k) out.impulses.push_back({b.row + k, sign * b.axes[k][i]});
      double c[3] = {0, 0, 0};
      c[i] = 1;
      turn_by_normal(b, c, sign, turn.by_normal);
      out.turns.push_back(turn);
    }
  }
}

// Of a spring: force(phi, coefficient . v), with both functions of x1.
void ForceOutputs::add_limit(int joint, Scalar& out) {
  const StepRecord& r = *record_;
  const auto of_joint = [&](const ConstraintRows& rows, const DofRow& row) {
    return rows.blocks[row.block].type == BlockType::limit && model_->dof_joint[row.dof[0]] == joint;
  };
  if (!found_at_end()) {
    for (const DofRow& row : r.rows.dof_rows)
      if (of_joint(r.rows, row)) out.impulses.push_back({row.row, 1});
    return;
  }
  const double* v = r.v_next.data();
  springs();
  out.at_end = true, out.limit_joint = joint;
  for (const DofRow& row : springs_.rows.dof_rows) {
    if (!of_joint(springs_.rows, row)) continue;
    out.value += springs_.force[row.row];
    const double by_phi = springs_.dforce_dphi[row.row], by_rate = springs_.dforce_drate[row.row];
    for (int k = 0; k < row.num; ++k) {
      double drate = 0;
      for (int i = 0; i < row.num; ++i) drate += row.dcoefficient[i][k] * v[row.dof[i]];
      out.dq.push_back({row.dof[k], by_phi * row.coefficient[k] + by_rate * drate});
      out.dv.push_back({row.dof[k], by_rate * row.coefficient[k]});
    }
    const bool upper = row.num > 1 || row.coefficient[0] < 0;  // phi = upper - q, or range - angle
    (upper ? out.dupper : out.dlower) += upper ? by_phi : -by_phi;
  }
}

/// Limits, equalities and dry friction as springs, at the end of the step.
const SpringForces& ForceOutputs::springs() {
  std::vector<double> Q(model_->nv, 0.0);
  spring_forces(*model_, where_found(), options_->implicit, record_->q_next.data(), record_->v_next.data(), springs_,
                Q.data());
  return springs_;
}

void ForceOutputs::add_dry_friction(int joint) {
  const StepRecord& r = *record_;
  const int first = model_->joint_v[joint];

  // A smooth function of the next velocity ...
  if (found_at_end()) {
    springs();
    for (std::size_t i = 0; i < scalars_.size(); ++i) {
      const int dof = first + static_cast<int>(i);
      Scalar& out = scalars_[i];
      out.at_end = true;
      out.value = model_->dof_dry_friction[dof] * springs_.dry_direction[dof];
      out.dv.push_back({dof, springs_.dry_slope[dof]});
      out.dry_frictions.push_back({dof, springs_.dry_direction[dof]});
    }
    return;
  }

  // ... or an impulse; one at its bound is +-h f whatever else changes.
  const double h = options_->constraints.timestep;
  for (const DofRow& row : r.rows.dof_rows) {
    const int i = row.dof[0] - first;
    if (r.rows.blocks[row.block].type != BlockType::box || i < 0 || i >= static_cast<int>(scalars_.size())) continue;
    Scalar& out = scalars_[i];
    const Mode mode = r.solution.modes[row.block];
    const double bound = r.rows.blocks[row.block].bound;
    const bool inside = std::abs(r.solution.lambda[row.row]) < (1 - 1e-9) * bound;  // modes are those of level 0
    if ((mode != Mode::lower && mode != Mode::upper) || inside) {
      out.impulses.push_back({row.row, 1});
      continue;
    }
    out.value = r.solution.lambda[row.row] / h;
    out.dry_frictions.push_back({row.dof[0], mode == Mode::upper ? 1.0 : -1.0});
  }
}

// The forces of its rows, on body a or along joint a. Angular rows are weighted: their torque is the weight times the force.
void ForceOutputs::add_equality(int index) {
  const Equality& equality = model_->equalities[index];
  if (found_at_end()) return add_equality_spring(equality, index);
  const ConstraintRows& rows = record_->rows;
  const std::uint64_t key = (std::uint64_t(2) << 60) | std::uint64_t(index);
  for (const BodyRows& b : rows.body_rows)
    for (int i = 0; rows.keys[b.block] == key && i < b.size; ++i)
      scalars_[i].impulses.push_back({b.row + i, i < 3 ? 1.0 : b.torque_scale});
  for (const DofRow& row : rows.dof_rows)
    if (rows.keys[row.block] == key) scalars_[0].impulses.push_back({row.row, 1});
}

// f = -k phi - d phi' of the next state. Bodies: phi = p_a - p_b and half the axial vector of E = R_a R_b^T, which turns by
// dE = [dphi_a] E - E [dphi_b].
void ForceOutputs::add_equality_spring(const Equality& equality, int index) {
  const std::uint64_t key = (std::uint64_t(2) << 60) | std::uint64_t(index);
  const SpringForces& f = springs();
  const double* v = record_->v_next.data();

  for (const DofRow& row : f.rows.dof_rows) {
    if (f.rows.keys[row.block] != key) continue;
    Scalar& out = scalars_[0];
    out.at_end = true;
    out.value = f.force[row.row];
    for (int k = 0; k < row.num; ++k) {
      double drate = 0;
      for (int i = 0; i < row.num; ++i) drate += row.dcoefficient[i][k] * v[row.dof[i]];
      const double by_phi = f.dforce_dphi[row.row];
      const double by_rate = f.dforce_drate[row.row];
      out.dq.push_back({row.dof[k], by_phi * row.coefficient[k] + by_rate * drate});
      out.dv.push_back({row.dof[k], by_rate * row.coefficient[k]});
    }
  }

  for (const BodyRows& b : f.rows.body_rows) {
    if (f.rows.keys[b.block] != key) continue;
    Frame a_frame, b_frame;
    a_frame.body = b.body_a, a_frame.pos = equality.pos_a, a_frame.quat = equality.quat_a;
    b_frame.body = b.body_b, b_frame.pos = equality.pos_b, b_frame.quat = equality.quat_b;
    const FrameState at_a = frame_state(*model_, where_found(), a_frame);
    const FrameState at_b = frame_state(*model_, where_found(), b_frame);
    for (int i = 0; i < b.size; ++i) {
      const double weight = i < 3 ? 1.0 : b.torque_scale;
      const double by_phi = weight * weight * f.dforce_dphi[b.row + i];
      const double by_rate = weight * weight * f.dforce_drate[b.row + i];
      FrameCovector on_a, on_b;
      if (i < 3) {
        on_a.p[i] = by_phi, on_a.v[i] = by_rate;
      } else {
        turn_of_axial(b.rotation_error, i - 3, by_phi, on_a.phi, on_b.phi);
        on_a.w[i - 3] = by_rate;
      }
      for (int k = 0; k < 3; ++k) on_b.p[k] = -on_a.p[k], on_b.v[k] = -on_a.v[k], on_b.w[k] = -on_a.w[k];
      Scalar& out = scalars_[i];
      out.at_end = true;
      out.value = weight * f.force[b.row + i];
      add_frame_term(*model_, where_found(), a_frame, at_a, on_a, out.of_frames);
      add_frame_term(*model_, where_found(), b_frame, at_b, on_b, out.of_frames);
    }
  }
}

/// What contacts, equalities and the user put on bodies in the step.
void ForceOutputs::collect_outside_forces() {
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  outside_.clear();
  for (const BodyRows& b : r.rows.body_rows)
    for (const double sign : {1.0, -1.0}) {
      OutsideForce out{sign > 0 ? b.body_a : b.body_b, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, b.contact < 0};
      copy3(sign > 0 ? b.point_a : b.point_b, out.point);
      for (int k = 0; k < 3; ++k) {
        axpy3(sign / h * r.solution.lambda[b.row + k], b.axes[k], out.f);
        if (b.size == 6) out.n[k] = sign / h * b.torque_scale * r.solution.lambda[b.row + 3 + k];
      }
      outside_.push_back(out);
    }
  for (int b = 1; !r.fext.empty() && b < model_->num_bodies; ++b) {
    OutsideForce out{b, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, true};
    Frame centre;
    centre.body = b, centre.at_com = true;
    copy3(frame_state(*model_, motion_.dynamics(), centre).position, out.point);
    copy3(r.fext.data() + 6 * b, out.f), copy3(r.fext.data() + 6 * b + 3, out.n);
    outside_.push_back(out);
  }
}

/// Less what comes from outside: impulses of rows, wrenches of the user.
void ForceOutputs::add_outside_forces(Scalar& out) {
  const StepRecord& r = *record_;
  double by_f[3], by_n[3], turned[3];
  for (const BodyRows& b : r.rows.body_rows)
    for (const double sign : {1.0, -1.0}) {
      if (!motion_.feels(out.motion, sign > 0 ? b.body_a : b.body_b)) continue;
      motion_.screw_at(out.motion, sign > 0 ? b.point_a : b.point_b, by_f, by_n);
      for (int k = 0; k < b.size; ++k)
        out.impulses.push_back({b.row + k, -sign * (k < 3 ? dot3(by_f, b.axes[k]) : b.torque_scale * by_n[k - 3])});
      if (b.contact < 0) continue;

      // f . by_f of a contact: its axes turn with the normal, its point moves the screw past it.
      const double* lambda = r.solution.lambda.data() + b.row;
      double f[3] = {0, 0, 0};
      for (int k = 0; k < 3; ++k) axpy3(lambda[k], b.axes[k], f);
      Scalar::Turn turn{b.contact, {0, 0, 0}, {0, 0, 0}};
      turn_by_normal(b, by_f, -sign, turn.by_normal);
      cross3(f, by_n, turned);
      for (int j = 0; j < 3; ++j) turn.by_point[j] = -sign * turned[j];
      out.turns.push_back(turn);
    }
  if (r.fext.empty()) return;
  for (const OutsideForce& o : outside_) {
    const bool of_user = &o >= &outside_.back() - (model_->num_bodies - 2);
    if (!of_user || !motion_.feels(out.motion, o.body)) continue;
    motion_.screw_at(out.motion, o.point, by_f, by_n);
    out.value -= dot3(by_f, o.f) + dot3(by_n, o.n);
  }
}

/// What the user puts on the subtree, zero wrenches too, the parent need not.
void ForceOutputs::add_wrenches(const Scalar& s, double weight, ForceGradient& to) {
  to.fext.resize(std::size_t(6) * model_->num_bodies, 0.0);
  for (int b = 1; b < model_->num_bodies; ++b) {
    if (!motion_.feels(s.motion, b)) continue;
    Frame centre;
    centre.body = b, centre.at_com = true;
    double by_f[3], by_n[3];
    motion_.screw_at(s.motion, frame_state(*model_, motion_.dynamics(), centre).position, by_f, by_n);
    for (int i = 0; i < 3; ++i) {
      to.fext[6 * b + i] -= weight * by_f[i];
      to.fext[6 * b + 3 + i] -= weight * by_n[i];
    }
  }
}

/// Forces balance what they accelerate: without what torque-free spin adds to the velocity.
void ForceOutputs::shift_by_spin(const Sensor& sensor) {
  const StepRecord& r = *record_;
  if (sensor.type == SensorType::accelerometer || found_at_end() || !spins_torque_free(*options_, r)) return;
  const double h = options_->constraints.timestep;
  where_found();
  mass_matrix(*model_, at_);
  spin_shift(*model_, at_, r.v.data(), h, spin_);
  if (!spin_.any) return;
  for (int d = 0; d < model_->nv; ++d) acceleration_[d] -= spin_.velocity[d] / h;
  spin_derivatives(*model_, at_, r.v.data(), h, true, spins_);
}

/// Of a change of a joint's Delta (6).
double ForceOutputs::by_shift(const Scalar& s, const SpinDerivative& spin, const double* change) const {
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (spin.linear >= 0) sum -= s.da[spin.linear + i] * change[i];
    sum -= s.da[spin.dof + i] * change[3 + i];
  }
  return sum / options_->constraints.timestep;
}

// Where the step has its dynamics, with its mean acceleration.
void ForceOutputs::add_motion(const Sensor& sensor) {
  const StepRecord& r = *record_;
  const int nv = model_->nv;
  const bool at_end = options_->stepper != StepperKind::semi_implicit;
  acceleration_.resize(nv);
  for (int d = 0; d < nv; ++d) acceleration_[d] = (r.v_next[d] - r.v[d]) / options_->constraints.timestep;
  shift_by_spin(sensor);
  motion_.move_to(at_end ? r.q_next.data() : r.q.data(), at_end ? r.v_next.data() : r.v.data(), acceleration_.data());
  outside_.clear();
  if (sensor.type != SensorType::accelerometer) collect_outside_forces();

  std::vector<double> by_q, by_v;
  for (int k = 0; k < 3; ++k) {
    Scalar& out = scalars_[k];
    out.at_end = at_end;
    out.motion = motion_.row(sensor, k);
    out.value = out.motion.value;
    by_q.assign(nv, 0.0), by_v.assign(nv, 0.0), out.da.assign(nv, 0.0);
    motion_.add_columns(out.motion, outside_, by_q.data(), by_v.data(), out.da.data());
    for (const SpinDerivative& spin : spins_)
      visit_spin_columns(
          *model_, at_, spin, [&](int d, const double* change) { by_v[d] += by_shift(out, spin, change); },
          [&](int d, const double* change) { by_q[d] += by_shift(out, spin, change); });
    for (int d = 0; d < nv; ++d) out.dq.push_back({d, by_q[d]}), out.dv.push_back({d, by_v[d]});
    if (out.motion.of_forces) add_outside_forces(out);
  }
}

void ForceOutputs::scalars(const Sensor& sensor) {
  scalars_.assign(sensor_tangent_size(*model_, sensor), Scalar{});
  Scalar& out = scalars_[0];
  check_told(sensor, *options_);
  spins_.clear();
  bool constant = false;
  switch (sensor.type) {
    case SensorType::actuator_force: add_actuator(sensor.index, 1, out); break;
    case SensorType::joint_actuator_force: {
      for (int k = 0; k < model_->nu; ++k)
        if (model_->actuators[k].joint == sensor.index) add_actuator(k, model_->actuators[k].gear[0], out);
      const double clamped =
          std::clamp(out.value, model_->joint_actuator_lower[sensor.index], model_->joint_actuator_upper[sensor.index]);
      constant = clamped != out.value;
      out.value = clamped;
      break;
    }
    case SensorType::touch: add_touch(model_->sites[sensor.index], out); break;
    case SensorType::joint_limit_force: add_limit(sensor.index, out); break;
    case SensorType::contact_force: add_contact_force(sensor); break;
    case SensorType::joint_friction_force: add_dry_friction(sensor.index); break;
    case SensorType::equality_force: add_equality(sensor.index); break;
    case SensorType::accelerometer:
    case SensorType::interaction_force:
    case SensorType::interaction_torque: add_motion(sensor); break;
    default: break;
  }
  const double h = options_->constraints.timestep;
  for (Scalar& s : scalars_) {
    double of_impulses = 0;
    for (auto& [row, coefficient] : s.impulses) {
      coefficient /= h;
      of_impulses += coefficient * record_->solution.lambda[row];
    }
    s.value += of_impulses;
    s.timestep = -of_impulses / h;
    for (std::size_t d = 0; d < s.da.size(); ++d) s.timestep -= s.da[d] * acceleration_[d] / h;
    for (const SpinDerivative& spin : spins_) {
      double change[6];
      for (int i = 0; i < 6; ++i) change[i] = spin.by[i][SpinDerivative::time];
      s.timestep += by_shift(s, spin, change);
    }
    for (Scalar::Turn& turn : s.turns)
      for (int i = 0; i < 3; ++i) turn.by_normal[i] /= h, turn.by_point[i] /= h;
    constant = constant || is_clamped(sensor, s.value);
    s.value = clamp_reading(sensor, s.value);
    if (!constant) continue;
    const double value = s.value;
    s = Scalar{};
    s.value = value;
  }
}

void ForceOutputs::read(const Sensor& sensor, double* readings) {
  scalars(sensor);
  for (std::size_t k = 0; k < scalars_.size(); ++k) readings[k] = scalars_[k].value;
}

void ForceOutputs::add_turns(const Scalar& s, double weight, const ParameterSet* set, ForceGradient& to) {
  const GradientOptions& g = options_->gradient;
  std::vector<double>& by_q = found_at_end() ? to.q_next : to.q;
  CollisionWorkspace collision = record_->collision;
  const SmoothedMotion smoothed(*model_, collision, g.samples, g.scale, g.seed);
  std::vector<ContactChange> change;
  for (const Scalar::Turn& turn : s.turns) {
    const Contact& contact = record_->collision.contacts[turn.contact];
    ContactMotion motion;
    if (g.mode == GradientMode::smoothed_collision) smoothed(contact, motion);
    else contact_motion(contact, motion);
    change.assign(model_->nv, ContactChange{});
    add_contact_columns(*model_, where_found(), contact, motion, change.data());
    const auto moved = [&](const ContactChange& c) {
      return weight * (dot3(turn.by_normal, c.normal) + dot3(turn.by_point, c.point));
    };
    for (int d = 0; d < model_->nv; ++d) by_q[d] += moved(change[d]);
    if (!set || set->size() == 0) continue;
    change.assign(set->size(), ContactChange{});
    add_contact_columns(*model_, where_found(), contact, motion, *set, change.data());
    for (int k = 0; k < set->size(); ++k) to.parameters[k] += moved(change[k]);
  }
}

void ForceOutputs::add_parameters(const Sensor& sensor, const Scalar& s, double weight, const ParameterSet& set,
                                  ForceGradient& to) {
  if (!s.da.empty())
    motion_.add_parameters(s.motion, sensor, outside_, set, *record_, options_->constraints, weight,
                           to.parameters.data());
  if (!spins_.empty() && set.size() > 0)
    motion_.add_spin_parameters(spins_, s.da, set, *record_, options_->constraints,
                                -weight / options_->constraints.timestep, to.parameters.data());
  if (!s.of_frames.terms.empty() && set.size() > 0) {
    std::vector<double> row(set.size());
    add_output_parameters(*model_, where_found(), {s.of_frames}, set, row.data(), set.size());
    for (int k = 0; k < set.size(); ++k) to.parameters[k] += weight * row[k];
  }
  for (const ParameterSet::Item& item : set.items()) {
    if (is_kind(item, "timestep")) to.parameters[item.first] += weight * s.timestep;
    const std::vector<std::pair<int, double>>* of_actuators = is_kind(item, "actuator_gain") ? &s.gains
                                                              : is_kind(item, "actuator_kp") ? &s.kps
                                                              : is_kind(item, "actuator_kd") ? &s.kds
                                                                                             : nullptr;
    for (std::size_t i = 0; of_actuators && i < of_actuators->size(); ++i)
      if ((*of_actuators)[i].first == item.element.index)
        to.parameters[item.first] += weight * (*of_actuators)[i].second;
    if (is_kind(item, "joint_friction")) {
      const int first = model_->joint_v[item.element.index];
      for (const auto& [dof, value] : s.dry_frictions)
        if (dof >= first && dof < first + item.element.size) to.parameters[item.first + dof - first] += weight * value;
    }
    if (s.limit_joint < 0 || !is_kind(item, "joint_limits")) continue;
    std::vector<FrameMotion> motions;
    item.kind->frame_motions(*model_, where_found(), item.element, motions);
    for (std::size_t k = 0; k < motions.size(); ++k)
      if (motions[k].joint == s.limit_joint)
        to.parameters[item.first + k] += weight * (s.dlower * motions[k].dlower + s.dupper * motions[k].dupper);
  }
}

void ForceOutputs::add_gradient(const Sensor& sensor, const double* weights, const ParameterSet* set,
                                ForceGradient& to) {
  scalars(sensor);
  for (std::size_t k = 0; k < scalars_.size(); ++k) {
    const Scalar& s = scalars_[k];
    const double weight = weights[k];
    if (weight == 0) continue;
    add(s.impulses, weight, to.lambda), add(s.du, weight, to.u);
    const double by_velocity = weight / options_->constraints.timestep;  // a = (v+ - v) / h
    for (std::size_t d = 0; d < s.da.size(); ++d) {
      to.v_next[d] += by_velocity * s.da[d];
      to.v[d] -= by_velocity * s.da[d];
    }
    if (!s.da.empty() && s.motion.of_forces) add_wrenches(s, weight, to);
    add(s.dq, weight, s.at_end ? to.q_next : to.q), add(s.dv, weight, s.at_end ? to.v_next : to.v);
    if (!s.of_frames.terms.empty())
      add_output_row(*model_, where_found(), s.of_frames, weight, to.q_next.data(), to.v_next.data());
    if (!s.turns.empty()) add_turns(s, weight, set, to);
    if (set) add_parameters(sensor, s, weight, *set, to);
  }
}

void check_forces_told(const OutputSet& outputs, const StepOptions& options) {
  for (const OutputSet::Item& item : outputs.items()) check_told(item.sensor, options);
}

}  // namespace coulomb

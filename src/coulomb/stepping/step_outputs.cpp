#include "coulomb/stepping/step_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/collision/smoothed_motion.hpp"
#include "coulomb/dynamics/site_zone.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

const StepRecord& recorded(const Simulator& simulator, const char* what) {
  if (!simulator.record().valid) throw std::logic_error(std::string(what) + ": no step was taken yet");
  return simulator.record();
}

/// Contacts were found at q, and the rows hold all impulses of the step: of springs, and of steps split at impacts, they do not.
bool rows_tell_all(const Simulator& simulator) {
  const StepOptions& options = simulator.resolved_options();
  return options.stepper == StepperKind::semi_implicit && options.constraints.contact != ContactLaw::penalty &&
         !options.impacts.enabled;
}

/// A force of the last step: reading = sum of coefficient x impulse + f(q, v, u), and what else moves it.
struct ForceReading {
  double value = 0;
  std::vector<std::pair<int, double>> impulses;  // row, coefficient
  int joint = -1;                                // whose dofs dq and dv are over
  double dq[6] = {0}, dv[6] = {0}, timestep = 0;
  std::vector<std::pair<int, double>> du, gains;  // actuator, derivative
  bool clamped = false;
};

void add_actuator(const StepRecord& r, const Model& model, int k, double scale, ForceReading& out) {
  const ActuatorForce a = actuator_force(model, k, r.q.data(), r.v.data(), r.u[k]);
  out.value += scale * a.force, out.joint = model.actuators[k].joint;
  out.du.push_back({k, scale * a.df_du}), out.gains.push_back({k, scale * a.df_dgain});
  for (int i = 0; i < joint_num_dofs(model.joint_type[out.joint]); ++i) {
    out.dq[i] += scale * (a.df_dlength * a.dlength[i] + a.df_dspeed * a.dspeed[i]);
    out.dv[i] += scale * a.df_dspeed * a.moment[i];
  }
}

/// Contacts on the site's own body whose force, followed away from the body, meets the zone.
void add_touch(const Model& model, const StepRecord& r, const Site& site, ForceReading& out) {
  DynamicsWorkspace at(model);  // where the contacts were found
  kinematics(model, r.q.data(), at);
  const FrameState frame = frame_state(model, at, site.frame);
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

ForceReading force_reading(const Simulator& simulator, const Sensor& sensor) {
  const Model& model = simulator.model();
  const StepRecord& r = simulator.record();
  const double h = simulator.timestep();
  ForceReading out;
  const bool of_rows = sensor.type == SensorType::touch || sensor.type == SensorType::joint_limit_force;
  if (of_rows && !rows_tell_all(simulator))
    throw std::logic_error("output '" + sensor.name +
                           "': only of semi_implicit steps with ncp or lcp contact, without continuous_collision");
  switch (sensor.type) {
    case SensorType::actuator_force: add_actuator(r, model, sensor.index, 1, out); break;
    case SensorType::joint_actuator_force: {
      for (int k = 0; k < model.nu; ++k)
        if (model.actuators[k].joint == sensor.index) add_actuator(r, model, k, model.actuators[k].gear[0], out);
      const double clamped =
          std::clamp(out.value, model.joint_actuator_lower[sensor.index], model.joint_actuator_upper[sensor.index]);
      out.clamped = clamped != out.value;
      out.value = clamped;
      break;
    }
    case SensorType::touch: add_touch(model, r, model.sites[sensor.index], out); break;
    case SensorType::joint_limit_force:
      for (const DofRow& row : r.rows.dof_rows)
        if (r.rows.blocks[row.block].type == BlockType::limit && model.dof_joint[row.dof[0]] == sensor.index)
          out.impulses.push_back({row.row, 1});
      break;
    default: break;
  }
  for (auto& [row, coefficient] : out.impulses) {
    coefficient /= h;
    out.value += coefficient * r.solution.lambda[row];
  }
  if (!out.impulses.empty()) out.timestep = -out.value / h;
  out.clamped = out.clamped || is_clamped(sensor, out.value);
  out.value = clamp_reading(sensor, out.value);
  if (out.clamped) {
    ForceReading constant;
    constant.value = out.value;
    return constant;
  }
  return out;
}

StepInput input_of(const std::string& wrt) {
  return wrt == "q" ? StepInput::q : wrt == "v" ? StepInput::v : wrt == "u" ? StepInput::u : StepInput::tau;
}
bool is_input(const std::string& wrt) { return wrt == "q" || wrt == "v" || wrt == "u" || wrt == "tau"; }

/// The part of a force's derivative that is not through impulses: row of an input (null set) or of parameters.
void add_direct(const Model& model, const ForceReading& force, const std::string& wrt, const ParameterSet* set,
                double scale, double* row) {
  if (set) {
    for (const ParameterSet::Item& item : set->items()) {
      if (item.kind->name() == std::string("timestep")) row[item.first] += scale * force.timestep;
      if (item.kind->name() != std::string("actuator_gain")) continue;
      for (const auto& [k, value] : force.gains)
        if (k == item.element.index) row[item.first] += scale * value;
    }
    return;
  }
  if (wrt == "u")
    for (const auto& [k, value] : force.du) row[k] += scale * value;
  if ((wrt != "q" && wrt != "v") || force.joint < 0) return;
  for (int i = 0; i < joint_num_dofs(model.joint_type[force.joint]); ++i)
    row[model.joint_v[force.joint] + i] += scale * (wrt == "q" ? force.dq[i] : force.dv[i]);
}

bool any_force(const OutputSet& outputs) {
  return std::any_of(outputs.items().begin(), outputs.items().end(),
                     [](const OutputSet::Item& i) { return is_force(i.sensor.type); });
}

/// columns(q1, v1) of an input or of parameters: rows of 2 nv.
const std::vector<double>& state_columns(const StepDerivatives& d, const std::string& wrt, std::vector<double>& copy) {
  if (wrt == "u") return d.B_T;
  if (wrt == "tau") return d.B_tau_T;
  if (!is_input(wrt)) return d.parameters_T;
  const auto half = d.A_T.begin() + std::ptrdiff_t(2) * d.nv * d.nv;
  copy = wrt == "q" ? std::vector<double>(d.A_T.begin(), half) : std::vector<double>(half, d.A_T.end());
  return copy;
}

void add_state_rows(Simulator& simulator, const OutputSet& outputs, const std::string& wrt, const ParameterSet* set,
                    int columns, std::vector<double>& out) {
  const Model& model = simulator.model();
  const StepRecord& r = simulator.record();
  const std::size_t nv = model.nv, rows = outputs.tangent_size(), width = columns;
  std::vector<double> by_q(rows * nv), by_v(rows * nv), copy;
  StateOutputs at(model);
  at.move_to(r.q_next.data(), r.v_next.data());
  at.columns(outputs, by_q.data(), by_v.data());
  if (set) at.parameter_columns(outputs, *set, out.data());
  const auto d = set ? simulator.derivatives({wrt}) : simulator.shared_derivatives();
  const std::vector<double>& X = state_columns(*d, wrt, copy);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t k = 0; k < width; ++k) {
      const double *x = X.data() + 2 * nv * k, *q = by_q.data() + i * nv, *v = by_v.data() + i * nv;
      double sum = 0;
      for (std::size_t j = 0; j < nv; ++j) sum += q[j] * x[j] + v[j] * x[nv + j];
      out[i * width + k] += sum;
    }
}

/// lambda_bar . dlambda/dx for every input and parameter, added.
void impulse_vjp(StepGradient& gradient, int num_rows, const std::vector<double>& lambda_bar, const ParameterSet* set,
                 StepCotangent& out) {
  std::vector<double> columns_T;
  const auto project = [&](std::vector<double>& to) {
    for (std::size_t k = 0; k < to.size(); ++k)
      for (int i = 0; i < num_rows; ++i) to[k] += lambda_bar[i] * columns_T[k * num_rows + i];
  };
  const auto input = [&](StepInput which, std::vector<double>& to) {
    gradient.impulse_columns(which, columns_T);
    project(to);
  };
  input(StepInput::q, out.q), input(StepInput::v, out.v), input(StepInput::u, out.u), input(StepInput::tau, out.tau);
  if (!set || set->size() == 0) return;
  gradient.impulse_columns(*set, columns_T);
  project(out.parameters);
}

}  // namespace

std::vector<double> contact_derivatives(Simulator& simulator, ContactQuantity quantity, const std::string& wrt,
                                        int& columns) {
  const StepRecord& r = recorded(simulator, "contact derivatives");
  const Model& model = simulator.model();
  const StepOptions& options = simulator.resolved_options();
  if (!rows_tell_all(simulator))
    throw std::logic_error(
        "contact derivatives: only of semi_implicit steps with ncp or lcp contact, without continuous_collision");
  std::optional<ParameterSet> set;
  if (!is_input(wrt)) set.emplace(model, std::vector<std::string>{wrt});
  columns = set ? set->size() : wrt == "u" ? model.nu : model.nv;
  DynamicsWorkspace at(model);
  kinematics(model, r.q.data(), at);
  velocities(model, r.v.data(), at);
  CollisionWorkspace collision = r.collision;
  const GradientOptions& g = options.gradient;
  const SmoothedMotion smoothed(model, collision, g.samples, g.scale, g.seed);
  const std::size_t rows = quantity == ContactQuantity::depth ? 1 : 3, width = columns;
  std::vector<double> out;
  std::vector<ContactChange> change(width);
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& contact = r.collision.contacts[b.contact];
    ContactMotion motion;
    if (g.mode == GradientMode::smoothed_collision) smoothed(contact, motion);
    else contact_motion(contact, motion);
    std::fill(change.begin(), change.end(), ContactChange{});
    if (set) add_contact_columns(model, at, contact, motion, *set, change.data());
    else if (wrt == "q") add_contact_columns(model, at, contact, motion, change.data());
    for (std::size_t i = 0; i < rows; ++i)
      for (const ContactChange& c : change)
        out.push_back(quantity == ContactQuantity::point    ? c.point[i]
                      : quantity == ContactQuantity::normal ? c.normal[i]
                                                            : c.depth);
  }
  return out;
}

void read_outputs(const Simulator& simulator, const OutputSet& outputs, StateOutputs& at, double* readings) {
  const StepRecord& r = recorded(simulator, "output");
  at.set_model(simulator.model());
  at.move_to(r.q_next.data(), r.v_next.data());
  at.read(outputs, readings);
  for (const OutputSet::Item& item : outputs.items())
    if (is_force(item.sensor.type)) readings[item.first] = force_reading(simulator, item.sensor).value;
}

std::vector<double> read_outputs(const Simulator& simulator, const OutputSet& outputs) {
  std::vector<double> out(outputs.size());
  StateOutputs at(simulator.model());
  read_outputs(simulator, outputs, at, out.data());
  return out;
}

std::vector<double> output_derivatives(Simulator& simulator, const OutputSet& outputs, const std::string& wrt,
                                       int& columns) {
  const StepRecord& r = recorded(simulator, "output derivatives");
  const Model& model = simulator.model();
  std::optional<ParameterSet> set;
  if (!is_input(wrt)) set.emplace(model, std::vector<std::string>{wrt});
  columns = set ? set->size() : wrt == "u" ? model.nu : model.nv;
  const std::size_t width = columns, num_rows = r.rows.num_rows;
  std::vector<double> out(outputs.tangent_size() * width), columns_T;
  add_state_rows(simulator, outputs, wrt, set ? &*set : nullptr, columns, out);
  if (!any_force(outputs)) return out;
  if (set) simulator.gradient().impulse_columns(*set, columns_T);
  else simulator.gradient().impulse_columns(input_of(wrt), columns_T);
  for (const OutputSet::Item& item : outputs.items()) {
    if (!is_force(item.sensor.type)) continue;
    const ForceReading force = force_reading(simulator, item.sensor);
    double* row = out.data() + item.first_tangent * width;
    for (const auto& [i, coefficient] : force.impulses)
      for (std::size_t k = 0; k < width; ++k) row[k] += coefficient * columns_T[k * num_rows + i];
    add_direct(model, force, wrt, set ? &*set : nullptr, 1, row);
  }
  return out;
}

StepCotangent vjp(Simulator& simulator, const double* dq1, const double* dv1, const OutputCotangent& cotangent,
                  const std::vector<std::string>& parameters) {
  const StepRecord& r = recorded(simulator, "vjp");
  const Model& model = simulator.model();
  const std::size_t nv = model.nv;
  std::vector<double> dq(nv), dv(nv), lambda_bar(r.rows.num_rows);
  if (dq1) dq.assign(dq1, dq1 + nv);
  if (dv1) dv.assign(dv1, dv1 + nv);
  const ParameterSet set(model, parameters);
  std::vector<double> direct(set.size());
  bool of_impulses = false;
  if (cotangent.dlambda) {
    int i = 0;
    for (const BodyRows& b : r.rows.body_rows)
      for (int k = 0; b.contact >= 0 && k < 3; ++k) lambda_bar[b.row + k] += cotangent.dlambda[i++];
    of_impulses = i > 0;
  }
  std::vector<std::pair<ForceReading, double>> forces;
  if (cotangent.outputs) {
    StateOutputs at(model);
    at.move_to(r.q_next.data(), r.v_next.data());
    at.vjp(*cotangent.outputs, cotangent.doutputs, dq.data(), dv.data(), &set, direct.data());
    for (const OutputSet::Item& item : cotangent.outputs->items())
      if (is_force(item.sensor.type))
        forces.emplace_back(force_reading(simulator, item.sensor), cotangent.doutputs[item.first_tangent]);
  }
  StepCotangent out = simulator.vjp(dq.data(), dv.data(), parameters);
  for (const auto& [force, weight] : forces) {
    for (const auto& [row, coefficient] : force.impulses) lambda_bar[row] += weight * coefficient, of_impulses = true;
    add_direct(model, force, "q", nullptr, weight, out.q.data());
    add_direct(model, force, "v", nullptr, weight, out.v.data());
    add_direct(model, force, "u", nullptr, weight, out.u.data());
    add_direct(model, force, "", &set, weight, direct.data());
  }
  for (std::size_t k = 0; k < direct.size(); ++k) out.parameters[k] += direct[k];
  if (of_impulses) impulse_vjp(simulator.gradient(), r.rows.num_rows, lambda_bar, &set, out);
  return out;
}

}  // namespace coulomb

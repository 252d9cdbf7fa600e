#include "coulomb/stepping/outputs/step_outputs.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "coulomb/collision/motion/smoothed_motion.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/stepping/outputs/force_outputs.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

/// Parameters by their name; nothing if it is an input of the step.
std::optional<ParameterSet> parameters_of(const Model& model, const std::string& wrt) {
  std::optional<ParameterSet> set;
  if (!is_step_input(wrt)) {
    set.emplace(model, std::vector<std::string>{wrt});
  }
  return set;
}

int columns_of(const Model& model, const std::string& wrt, const std::optional<ParameterSet>& set) {
  if (set) return set->size();
  return wrt == "u" ? model.nu : model.nv;
}

/// What a force gets of the input itself.
const std::vector<double>& direct_part(const ForceGradient& g, const std::string& wrt) {
  if (!is_step_input(wrt)) return g.parameters;
  if (wrt == "q") return g.q;
  return wrt == "v" ? g.v : g.u;
}

/// Throws where there is no step to look at.
const StepRecord& recorded(const Simulator& simulator, const char* what) {
  if (!simulator.record().valid) {
    throw std::logic_error(std::string(what) + ": no step was taken yet");
  }
  return simulator.record();
}

/// Does the next state not tell them all?
bool any_force(const OutputSet& outputs) {
  return std::any_of(outputs.items().begin(), outputs.items().end(),
                     [](const OutputSet::Item& i) { return is_force(i.sensor.type); });
}

/// columns(q1, v1) of an input or of parameters: rows of 2 nv.
const std::vector<double>& state_columns(const StepDerivatives& d, const std::string& wrt, std::vector<double>& copy) {
  if (wrt == "u") return d.B_T;
  if (wrt == "tau") return d.B_tau_T;
  if (!is_step_input(wrt)) return d.parameters_T;
  const auto half = d.A_T.begin() + std::ptrdiff_t(2) * d.nv * d.nv;
  copy = wrt == "q" ? std::vector<double>(d.A_T.begin(), half) : std::vector<double>(half, d.A_T.end());
  return copy;
}

/// out (rows x columns) += (dy/dx1) X, and what parameters change of the readings at a fixed state.
void add_state_rows(const Simulator& simulator, const OutputSet& outputs, const ParameterSet* set,
                    const std::vector<double>& X, int columns, std::vector<double>& out) {
  const Model& model = simulator.model();
  const StepRecord& r = simulator.record();
  const std::size_t nv = model.nv;
  const std::size_t rows = outputs.tangent_size();
  const std::size_t width = columns;
  std::vector<double> by_q(rows * nv);
  std::vector<double> by_v(rows * nv);

  // The readings' rows by the next state.
  StateOutputs at(model);
  at.move_to(r.q_next.data(), r.v_next.data());
  at.columns(outputs, by_q.data(), by_v.data());
  if (set) {
    at.parameter_columns(outputs, *set, out.data());
  }

  // Times the columns of that state.
  for (std::size_t i = 0; i < rows; ++i) {
    const double* q = by_q.data() + i * nv;
    const double* v = by_v.data() + i * nv;
    for (std::size_t k = 0; k < width; ++k) {
      const double* x = X.data() + 2 * nv * k;
      double sum = 0;
      for (std::size_t j = 0; j < nv; ++j)
        sum += q[j] * x[j] + v[j] * x[nv + j];
      out[i * width + k] += sum;
    }
  }
}

/// to += x
void add_to(const std::vector<double>& x, std::vector<double>& to) {
  for (std::size_t i = 0; i < x.size(); ++i)
    to[i] += x[i];
}

}  // namespace

void add_impulse_cotangent(StepGradient& gradient, const std::vector<double>& lambda, const ParameterSet* set,
                           StepCotangent& out) {
  const std::size_t num_rows = lambda.size();
  std::vector<double> columns_T;
  const auto project = [&](std::vector<double>& to) {
    for (std::size_t k = 0; k < to.size(); ++k)
      for (std::size_t i = 0; i < num_rows; ++i)
        to[k] += lambda[i] * columns_T[k * num_rows + i];
  };
  const auto input = [&](StepInput which, std::vector<double>& to) {
    gradient.impulse_columns(which, columns_T);
    project(to);
  };

  // Every input by its columns; tau apart, since wrenches get their part of it.
  std::vector<double> tau(out.tau.size());
  input(StepInput::q, out.q);
  input(StepInput::v, out.v);
  input(StepInput::u, out.u);
  input(StepInput::tau, tau);
  add_to(tau, out.tau);
  if (out.wants_fext) {
    gradient.add_fext_cotangent(tau.data(), out.fext);
  }
  if (!set || set->size() == 0) return;
  gradient.impulse_columns(*set, columns_T);
  project(out.parameters);
}

/// Rows (3, or 1 for depths) x columns for each contact.
std::vector<double> contact_derivatives(Simulator& simulator, ContactQuantity quantity, const std::string& wrt,
                                        int& columns) {
  const StepRecord& r = recorded(simulator, "contact derivatives");
  const Model& model = simulator.model();
  const StepOptions& options = simulator.resolved_options();
  const char* const why = options.stepper->untold(StepForce::constraint);
  if (why) {
    throw std::logic_error(std::string("contact derivatives: ") + why);
  }
  const auto set = parameters_of(model, wrt);
  columns = columns_of(model, wrt, set);
  const std::size_t width = columns;
  const std::size_t nv = model.nv;

  // Where the contacts were found: at q, or at the end of the step, which the input moves in its turn.
  const bool at_end = options.stepper->contacts_at() == StepPoint::end;
  DynamicsWorkspace at(model);
  kinematics(model, at_end ? r.q_next.data() : r.q.data(), at);
  velocities(model, at_end ? r.v_next.data() : r.v.data(), at);
  std::vector<double> copy;
  std::shared_ptr<const StepDerivatives> d;
  if (at_end) {
    d = set ? simulator.derivatives({wrt}) : simulator.shared_derivatives();
  }
  const double* X = at_end ? state_columns(*d, wrt, copy).data() : nullptr;

  CollisionWorkspace collision = r.collision;
  const GradientOptions& g = options.gradient;
  const SmoothedMotion smoothed(model, collision, g.samples, g.scale, g.seed);
  const std::size_t rows = quantity == ContactQuantity::depth ? 1 : 3;
  const auto part = [&](const ContactChange& c, std::size_t i) {
    if (quantity == ContactQuantity::point) return c.point[i];
    return quantity == ContactQuantity::normal ? c.normal[i] : c.depth;
  };

  std::vector<double> out;
  std::vector<ContactChange> change(width);
  std::vector<ContactChange> by_q(nv);
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& contact = r.collision.contacts[b.contact];

    // How the contact moves with all bodies, and with the shapes that parameters change.
    ContactMotion motion;
    if (g.mode == GradientMode::smoothed_collision)
      smoothed(contact, motion);
    else
      contact_motion(contact, motion);
    std::fill(change.begin(), change.end(), ContactChange{});
    std::fill(by_q.begin(), by_q.end(), ContactChange{});
    if (set) {
      add_contact_columns(model, at, contact, motion, *set, change.data());
    }
    if (at_end || wrt == "q") {
      add_contact_columns(model, at, contact, motion, by_q.data());
    }

    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t k = 0; k < width; ++k) {
        double sum = part(change[k], i);
        if (!at_end && wrt == "q") {
          sum += part(by_q[k], i);
        }
        for (std::size_t j = 0; at_end && j < nv; ++j)
          sum += part(by_q[j], i) * X[2 * nv * k + j];
        out.push_back(sum);
      }
    }
  }
  return out;
}

/// at: workspace of a loop over simulators.
void read_outputs(const Simulator& simulator, const OutputSet& outputs, StateOutputs& at, double* readings) {
  const StepRecord& r = recorded(simulator, "output");
  at.set_model(simulator.model());
  at.move_to(r.q_next.data(), r.v_next.data());
  at.read(outputs, readings);
  if (!any_force(outputs)) return;
  ForceOutputs forces(simulator.model(), simulator.resolved_options());
  forces.move_to(r);
  for (const OutputSet::Item& item : outputs.items())
    if (is_force(item.sensor.type)) {
      forces.read(item.sensor, readings + item.first);
    }
}

std::vector<double> read_outputs(const Simulator& simulator, const OutputSet& outputs) {
  std::vector<double> out(outputs.size());
  StateOutputs at(simulator.model());
  read_outputs(simulator, outputs, at, out.data());
  return out;
}

/// tangent_size x columns.
std::vector<double> output_derivatives(Simulator& simulator, const OutputSet& outputs, const std::string& wrt,
                                       int& columns) {
  const StepRecord& r = recorded(simulator, "output derivatives");
  const Model& model = simulator.model();
  const auto set = parameters_of(model, wrt);
  const ParameterSet* parameters = set ? &*set : nullptr;
  columns = columns_of(model, wrt, set);
  const std::size_t width = columns;
  const std::size_t num_rows = r.rows.num_rows;
  const std::size_t nv = model.nv;

  // What the next state tells.
  std::vector<double> copy;
  const auto d = set ? simulator.derivatives({wrt}) : simulator.shared_derivatives();
  const std::vector<double>& X = state_columns(*d, wrt, copy);
  std::vector<double> out(outputs.tangent_size() * width);
  add_state_rows(simulator, outputs, parameters, X, columns, out);
  if (!any_force(outputs)) return out;

  // Forces follow impulses, both states and some inputs directly.
  std::vector<double> columns_T;
  if (set)
    simulator.gradient().impulse_columns(*set, columns_T);
  else
    simulator.gradient().impulse_columns(step_input(wrt), columns_T);

  ForceOutputs forces(model, simulator.resolved_options());
  forces.move_to(r);
  ForceGradient g;
  std::vector<double> unit;
  for (const OutputSet::Item& item : outputs.items()) {
    if (!is_force(item.sensor.type)) continue;
    for (int scalar = 0; scalar < item.tangent_size; ++scalar) {
      // The gradient of one number ...
      unit.assign(item.tangent_size, 0.0);
      unit[scalar] = 1;
      g.clear(model, r, parameters);
      forces.add_gradient(item.sensor, unit.data(), parameters, g);
      const std::vector<double>& direct = direct_part(g, wrt);

      // ... times the columns.
      double* row = out.data() + (item.first_tangent + scalar) * width;
      for (std::size_t k = 0; k < width; ++k) {
        const double* x = X.data() + 2 * nv * k;
        for (std::size_t i = 0; i < num_rows; ++i)
          row[k] += g.lambda[i] * columns_T[k * num_rows + i];
        for (std::size_t j = 0; j < nv; ++j)
          row[k] += g.q_next[j] * x[j] + g.v_next[j] * x[nv + j];
        if (wrt != "tau") {
          row[k] += direct[k];
        }
      }
    }
  }
  return out;
}

/// Outputs and impulses first; then one reverse product of the step.
StepCotangent vjp(Simulator& simulator, const double* dq1, const double* dv1, const OutputCotangent& cotangent,
                  const std::vector<std::string>& parameters, bool wants_fext) {
  const StepRecord& r = recorded(simulator, "vjp");
  const Model& model = simulator.model();
  const std::size_t nv = model.nv;
  const ParameterSet set(model, parameters);

  // Of the next state, and of parameters at fixed states.
  std::vector<double> dq(nv);
  std::vector<double> dv(nv);
  std::vector<double> direct(set.size());
  if (dq1) dq.assign(dq1, dq1 + nv);
  if (dv1) dv.assign(dv1, dv1 + nv);

  // Impulses of contacts that are asked for by themselves.
  ForceGradient g;
  g.clear(model, r, &set);
  if (cotangent.dlambda) {
    int i = 0;
    for (const BodyRows& b : r.rows.body_rows)
      for (int k = 0; b.contact >= 0 && k < 3; ++k)
        g.lambda[b.row + k] += cotangent.dlambda[i++];
  }

  // Readings become cotangents of the state that they were read at, of impulses and of inputs.
  if (cotangent.outputs) {
    StateOutputs at(model);
    at.move_to(r.q_next.data(), r.v_next.data());
    at.vjp(*cotangent.outputs, cotangent.doutputs, dq.data(), dv.data(), &set, direct.data());
    ForceOutputs forces(model, simulator.resolved_options());
    forces.move_to(r);
    for (const OutputSet::Item& item : cotangent.outputs->items())
      if (is_force(item.sensor.type))
        forces.add_gradient(item.sensor, cotangent.doutputs + item.first_tangent, &set, g);
  }
  add_to(g.parameters, direct);
  add_to(g.q_next, dq);
  add_to(g.v_next, dv);

  // Impulses that are functions of the next state go back through it, others through the contact problem.
  const bool of_impulses = std::any_of(g.lambda.begin(), g.lambda.end(), [](double x) { return x != 0; });
  const bool gone_back =
      of_impulses && simulator.gradient().impulse_cotangent(g.lambda.data(), set, dq.data(), dv.data(), direct.data());
  StepCotangent out = simulator.vjp(dq.data(), dv.data(), parameters, wants_fext);
  add_to(direct, out.parameters);
  add_to(g.q, out.q);
  add_to(g.v, out.v);
  add_to(g.u, out.u);
  if (wants_fext) add_to(g.fext, out.fext);
  if (of_impulses && !gone_back) {
    add_impulse_cotangent(simulator.gradient(), g.lambda, &set, out);
  }
  return out;
}

}  // namespace coulomb

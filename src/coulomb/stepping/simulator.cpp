#include "coulomb/simulator.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/instruction_set.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/topology.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/stepping/contradictions.hpp"
#include "coulomb/stepping/impacts/impact_report.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/neutral_overlaps.hpp"
#include "coulomb/stepping/simulator_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

constexpr double reported_tie = 1e-8;
// Beyond, the squares in derivatives are not finite.
constexpr double differentiable_size = 1e150;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

/// Throws, naming the first element that is not finite.
void check_finite(const char* name, const double* x, int n) {
  for (int i = 0; i < n; ++i)
    if (!std::isfinite(x[i]))
      refuse(std::string(name) + "[" + std::to_string(i) + "] is " + number_text(x[i]) + ", expected a finite number");
}

/// Of a vector that a caller gave.
void check_size(const char* name, std::size_t size, std::size_t expected) {
  if (size != expected)
    refuse(std::string(name) + " has " + std::to_string(size) + " elements, expected " + std::to_string(expected));
}

/// In words that a user can act on.
const char* reason(SolveStatus status) {
  switch (status) {
    case SolveStatus::solved: return "solved";
    case SolveStatus::relaxed: return "relaxed";
    case SolveStatus::max_iterations: return "max_iterations: the solver ran out of its budget";
    case SolveStatus::failed: return "failed: no solution was found; the best iterate was used";
  }
  return "unknown";
}

}  // namespace

/// With the stiffness that the options ask for, and without pairs that overlap from the beginning.
static std::shared_ptr<const Model> simulated_model(std::shared_ptr<const Model> model, SimulatorOptions& options) {
  model = with_penalty_options(std::move(model), options);
  if (!options.exclude_neutral_overlaps) return model;
  return without_pairs(model, neutral_overlaps(*model));
}

/// All that a simulator has.
struct Simulator::Parts {
  Parts(Simulator* simulator, std::shared_ptr<const Model> given, SimulatorOptions asked);
  const std::shared_ptr<const ParameterSet>& set_of(const std::vector<std::string>& names);
  Model& movable();

  std::shared_ptr<const Model> model;
  std::shared_ptr<Model> moved;  // the same, if bodies were moved
  FixedPosesStorage fixed_poses;
  std::shared_ptr<const Model> unmoved;  // the model before its mocap bodies were moved; null: they were not
  SimulatorOptions options;
  StepOptions step_options;
  StepMemory memory;
  StepWorkspace workspace;
  StepRecord record;
  std::shared_ptr<StepGradient> gradient;  // made when first needed
  bool linearized = false;
  bool overflowed = false;
  std::uint64_t step_count = 0;
  std::shared_ptr<DerivativeOrigin> origin;
  std::vector<std::string> parameter_names;
  std::shared_ptr<const ParameterSet> parameter_set = std::make_shared<ParameterSet>();
};

Simulator::Parts::Parts(Simulator* simulator, std::shared_ptr<const Model> given, SimulatorOptions asked)
    : model(simulated_model(std::move(given), asked)), options(std::move(asked)),
      step_options(coulomb::step_options(*model, options)), memory(*model), workspace(*model), record(*model),
      origin(std::make_shared<DerivativeOrigin>(DerivativeOrigin{simulator})) {
  // A value of COULOMB_SIMD that cannot be obeyed is refused here.
  instruction_set();

  // Options that were left to the model are told as they are.
  options.timestep = step_options.constraints.timestep;
  options.contact = contact_name(step_options.constraints.contact);
}

/// The model, to move its bodies: one that others hold stays as it is.
Model& Simulator::Parts::movable() {
  if (moved == nullptr || moved != model || moved.use_count() > 2) {
    moved = std::make_shared<Model>(*model);
    model = moved;
  }
  record.valid = linearized = false;
  return *moved;
}

/// The last one is kept: loops ask for the same names.
const std::shared_ptr<const ParameterSet>& Simulator::Parts::set_of(const std::vector<std::string>& names) {
  if (names != parameter_names) {
    parameter_set = std::make_shared<ParameterSet>(*model, names);
    parameter_names = names;
  }
  return parameter_set;
}

Simulator::Simulator(std::shared_ptr<const Model> model, SimulatorOptions options)
    : parts_(std::make_unique<Parts>(this, std::move(model), std::move(options))) {}

Simulator::~Simulator() { parts_->origin->simulator = nullptr; }

const Model& Simulator::model() const { return *parts_->model; }
std::shared_ptr<const Model> Simulator::shared_model() const { return parts_->model; }
std::shared_ptr<const Model> Simulator::unmoved_model() const {
  return parts_->unmoved ? parts_->unmoved : parts_->model;
}
const SimulatorOptions& Simulator::options() const { return parts_->options; }
double Simulator::timestep() const { return parts_->step_options.constraints.timestep; }
bool Simulator::overflowed() const { return parts_->overflowed; }
std::uint64_t Simulator::step_count() const { return parts_->step_count; }
const StepMemory& Simulator::memory() const { return parts_->memory; }
const StepRecord& Simulator::record() const { return parts_->record; }
const StepOptions& Simulator::resolved_options() const { return parts_->step_options; }
void Simulator::freeze_memory(bool frozen) { parts_->step_options.collision.frozen_cache = frozen; }
void Simulator::keep_steps(bool kept) { parts_->step_options.keep_steps = kept; }
void Simulator::forget_states() { parts_->memory.forget_states(); }
std::vector<ImpactReport> Simulator::impacts() const { return impact_reports(*parts_->model, parts_->record); }

void Simulator::step(const double* q, const double* v, const double* u, const double* tau, const double* fext,
                     double* q_next, double* v_next) {
  const Model& m = *parts_->model;
  check_configuration(m, q, "q");
  check_finite("v", v, m.nv);
  if (u) check_finite("u", u, m.nu);
  if (tau) check_finite("tau", tau, m.nv);
  if (fext) {
    check_finite("fext", fext, 6 * m.num_bodies);
  }

  // The record takes all that the step is given; what is not given is zero.
  StepRecord& r = parts_->record;
  const auto take = [](const double* from, std::vector<double>& to) {
    if (from)
      std::copy_n(from, to.size(), to.begin());
    else
      std::fill(to.begin(), to.end(), 0.0);
  };
  take(q, r.q);
  take(v, r.v);
  take(u, r.u);
  take(tau, r.tau);
  r.fext.resize(fext ? 6 * m.num_bodies : 0);
  take(fext, r.fext);

  // A step whose numbers overflow ends where it began.
  parts_->linearized = false;
  ++parts_->step_count;
  const Stepper& stepper = *parts_->step_options.stepper;
  parts_->overflowed = !stepper.step(m, parts_->step_options, parts_->workspace, parts_->memory, r);
  std::copy(r.q_next.begin(), r.q_next.end(), q_next);
  std::copy(r.v_next.begin(), r.v_next.end(), v_next);
}

void Simulator::move_body(int body, const double* position, const double* quaternion) {
  const Model& m = *parts_->model;
  if (body < 1 || body >= m.num_bodies)
    refuse("body: " + std::to_string(body) + " is none of the " + std::to_string(m.num_bodies - 1) +
           " bodies beside the world");
  const std::string what = "body '" + m.body_names[body] + "'";
  if (m.body_num_joints[body] > 0) refuse(what + ": has a joint; its pose is a part of q");
  if (m.body_parent[body] != 0)
    refuse(what + ": is placed in '" + m.body_names[m.body_parent[body]] + "'; only bodies of the world can be moved");
  check_finite((what + " position").c_str(), position, 3);
  const std::array<double, 4> given{quaternion[0], quaternion[1], quaternion[2], quaternion[3]};
  const std::array<double, 4> unit = checks::unit_quaternion(what + " quaternion", given);

  parts_->unmoved.reset();
  Model& moved = parts_->movable();
  std::copy_n(position, 3, &moved.body_pos[3 * body]);
  std::copy_n(unit.data(), 4, &moved.body_quat[4 * body]);
  parts_->fixed_poses.find(moved);
}

void Simulator::move_mocap_bodies(const double* poses) {
  check_mocap_poses(*parts_->model, poses, "mocap[");
  if (mocap_bodies_are_at(*parts_->model, poses)) return;
  if (!parts_->unmoved) parts_->unmoved = parts_->model;
  place_mocap_bodies(parts_->movable(), poses, parts_->fixed_poses);
}

void Simulator::step(const State& state, const std::vector<double>& u, State& next, const std::vector<double>& tau,
                     const std::vector<double>& fext) {
  const Model& m = *parts_->model;
  check_size("q", state.q.size(), m.nq);
  check_size("v", state.v.size(), m.nv);
  if (!u.empty() || m.nu == 0) {
    check_size("u", u.size(), m.nu);
  }
  if (!tau.empty()) {
    check_size("tau", tau.size(), m.nv);
  }
  if (!fext.empty()) {
    check_size("fext", fext.size(), 6 * m.num_bodies);
  }

  // What is empty is zero.
  next.q.resize(m.nq);
  next.v.resize(m.nv);
  step(state.q.data(), state.v.data(), u.empty() ? nullptr : u.data(), tau.empty() ? nullptr : tau.data(),
       fext.empty() ? nullptr : fext.data(), next.q.data(), next.v.data());
}

/// A step whose numbers overflowed has no derivative.
bool Simulator::differentiable() const {
  const auto small = [](double x) { return std::abs(x) < differentiable_size; };
  const auto all_small = [&](const std::vector<double>& x) { return std::all_of(x.begin(), x.end(), small); };
  const StepRecord& r = parts_->record;
  return r.valid && !parts_->overflowed && all_small(r.q) && all_small(r.v) && all_small(r.v_next);
}

StepStatus Simulator::status() const {
  StepStatus out;
  const StepRecord& r = parts_->record;
  if (!r.valid) {
    out.reason = "no step was taken";
    return out;
  }

  // Numbers as the solver has left them.
  const SolverResult& s = r.solution;
  out.converged = s.status == SolveStatus::solved;
  out.classes_hit = s.classes_hit;
  out.iterations = s.iterations;
  out.residual = s.residual;
  out.exact_residual = s.exact_residual;
  out.relaxation = s.relaxation;

  // The stepper's own words, if it has some.
  out.reason = r.reason ? r.reason : reason(s.status);
  if (parts_->overflowed)
    out.reason = "failed: overflow: the numbers of this step exceed double precision, the state was left as it was";

  // And the constraints that gave way, first those that cannot all hold.
  const Model& m = *parts_->model;
  bool relaxed = !parts_->overflowed && !r.reason && s.status == SolveStatus::relaxed;
  const auto add = [&](const char* first, const char* later, const std::vector<std::string>& names) {
    if (names.empty()) return;
    out.reason += (relaxed ? std::string(": ") + first : std::string("; ") + later) + ": " + enumeration(names);
    relaxed = false;
  };
  out.contradictions = constraint_names(m, r.contradictory);
  add("the constraints contradict one another", "constraints that contradict one another", out.contradictions);
  const std::vector<std::string> jammed = constraint_names(m, r.jammed);
  add("friction jams", "friction jams", jammed);
  for (const std::string& name : jammed)
    if (std::find(out.contradictions.begin(), out.contradictions.end(), name) == out.contradictions.end())
      out.contradictions.push_back(name);

  // Those whose position errors stay, since no moderate motion removes them.
  const std::vector<std::string> out_of_reach = constraint_names(m, r.out_of_reach);
  add("position correction out of reach", "position correction out of reach", out_of_reach);
  for (const std::string& name : out_of_reach)
    if (std::find(out.contradictions.begin(), out.contradictions.end(), name) == out.contradictions.end())
      out.contradictions.push_back(name);

  // Those of which it is not known, and those whose numbers are too far apart for a double to tell.
  out.unsolved = constraint_names(m, r.unsolved);
  add("no solution was found", "no solution was found", out.unsolved);
  out.scale_ratio = s.scale_ratio;
  out.badly_scaled = constraint_names(m, r.badly_scaled);
  char badly_scaled[64];
  std::snprintf(badly_scaled, sizeof badly_scaled, "badly scaled constraints, as 1 to %.0e", s.scale_ratio);
  add(badly_scaled, badly_scaled, out.badly_scaled);
  return out;
}

/// As the record has them: after a step, at the state where the contacts were found.
std::vector<ContactReport> Simulator::contacts() const {
  std::vector<ContactReport> out;
  const StepRecord& r = parts_->record;
  const Model& m = *parts_->model;
  if (!r.valid) return out;

  // c = J v+, along the rows.
  std::vector<double> velocity(r.rows.num_rows);
  std::vector<double> twist(8 * m.nv);
  link_twists(m, r.dynamics, r.v_next.data(), twist.data());
  apply_rows(m, r.dynamics, r.rows, r.v_next.data(), twist.data(), velocity.data());
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& c = r.collision.contacts[b.contact];

    // Who touches whom, and where.
    ContactReport report{};
    report.geometry_a = m.geometry_names[c.geometry_a];
    report.geometry_b = m.geometry_names[c.geometry_b];
    report.body_a = m.body_names[c.body_a];
    report.body_b = m.body_names[c.body_b];
    copy3(c.point, report.point);
    copy3(c.normal, report.normal);
    for (int i = 0; i < 9; ++i)
      report.frame[i] = b.axes[i / 3][i % 3];
    report.depth = -c.distance;

    // Impulse and velocity, from the rows to world axes.
    for (int i = 0; i < 3; ++i) {
      axpy3(r.solution.lambda[b.row + i], b.axes[i], report.impulse);
      axpy3(velocity[b.row + i], b.axes[i], report.velocity);
    }

    double torque[3];
    block_torque(b, r.solution.lambda.data() + b.row, torque);
    for (int i = 0; i < 3; ++i)
      report.torque[i] = torque[i] / parts_->step_options.constraints.timestep;

    // How the contact was solved, and whether its geometry has a derivative.
    report.friction = m.pair_friction[c.pair];
    report.mode = r.solution.modes[b.block];
    if (const int facet = r.solution.facets[b.block]; facet >= 0) {
      const PyramidParts parts = parts_of(r.rows.blocks[b.block], facet);
      report.facet = parts.feature;
      for (int i = 3; i < b.size; ++i)
        report.turning[(b.turning_axis(i) + 1) % 3] = parts.end[i - 3];
    }
    report.margin = r.solution.margin[b.block];
    report.tie = report.margin < reported_tie;
    if (report.mode != Mode::separating) {
      ContactMotion motion;
      contact_motion(c, motion);
      report.frozen = motion.frozen;
    }
    out.push_back(std::move(report));
  }
  return out;
}

/// One gradient may serve many simulators of the same sizes, one after another.
void Simulator::share_gradient(std::shared_ptr<StepGradient> gradient) {
  parts_->gradient = std::move(gradient);
  parts_->linearized = false;
}

/// Prepared once for every step that is differentiated.
StepGradient& Simulator::gradient() {
  Parts& p = *parts_;
  if (!p.record.valid) {
    throw std::logic_error("derivatives: no step was taken yet");
  }
  if (p.overflowed) {
    throw std::logic_error(
        "derivatives: the last step overflowed, so it has no derivative; step again from a finite state");
  }
  if (!differentiable()) {
    throw std::logic_error("derivatives: a state beyond 1e150 has none in double precision");
  }
  if (!p.gradient) {
    p.gradient = p.step_options.stepper->make_gradient(*p.model, p.step_options);
  }
  if (!p.linearized) {
    p.gradient->prepare(*p.model, p.step_options, p.record, p.memory);
  }
  p.linearized = true;
  return *p.gradient;
}

const StepDerivatives& Simulator::derivatives() { return gradient().jacobian(); }

std::shared_ptr<const StepDerivatives> Simulator::shared_derivatives() {
  std::shared_ptr<StepDerivatives> out = gradient().shared_jacobian();
  out->origin = parts_->origin;
  out->step = parts_->step_count;
  return out;
}

std::shared_ptr<const StepDerivatives> Simulator::derivatives(const std::vector<std::string>& parameters) {
  const auto& set = parts_->set_of(parameters);
  auto out = std::make_shared<StepDerivatives>(derivatives());
  out->parameters = set;
  parts_->gradient->parameter_columns(*set, out->parameters_T);
  out->ambiguous = parts_->gradient->ambiguous();
  out->origin = parts_->origin;
  out->step = parts_->step_count;
  return out;
}

std::shared_ptr<const SparseStepDerivatives> Simulator::sparse_derivatives(const std::vector<std::string>& parameters) {
  const std::shared_ptr<const ParameterSet> set = parameters.empty() ? nullptr : parts_->set_of(parameters);
  std::shared_ptr<SparseStepDerivatives> out = gradient().sparse_jacobian();
  if (set) {
    out->parameters = set;
    parts_->gradient->parameter_columns(*set, out->parameters_T);
    out->ambiguous = parts_->gradient->ambiguous();
  }
  return out;
}

/// 3 rows per contact, `columns` numbers each.
std::vector<double> Simulator::impulse_derivatives(const std::string& wrt, int& columns) {
  gradient();
  std::vector<double> columns_T;
  if (is_step_input(wrt)) {
    parts_->gradient->impulse_columns(step_input(wrt), columns_T);
    columns = wrt == "u" ? parts_->model->nu : parts_->model->nv;
  } else {
    const ParameterSet set(*parts_->model, {wrt});
    parts_->gradient->impulse_columns(set, columns_T);
    columns = set.size();
  }

  // Contacts alone, row by row.
  const ConstraintRows& rows = parts_->record.rows;
  std::vector<double> out;
  for (const BodyRows& b : rows.body_rows) {
    if (b.contact < 0) continue;
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < columns; ++k)
        out.push_back(columns_T[std::size_t(k) * rows.num_rows + b.row + i]);
  }
  return out;
}

StepCotangent Simulator::vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters,
                             bool wants_fext) {
  check_finite("dq1", dq1, parts_->model->nv);
  check_finite("dv1", dv1, parts_->model->nv);
  gradient();

  // The reverse product of the gradient that was asked for.
  StepCotangent out;
  out.parameter_set = parts_->set_of(parameters);
  out.wants_fext = wants_fext;
  parts_->gradient->vjp(dq1, dv1, out, out.parameter_set.get());
  out.ambiguous = parts_->gradient->ambiguous();
  return out;
}

void Simulator::jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1,
                    double* dv1) {
  if (dq) {
    check_finite("dq", dq, parts_->model->nv);
  }
  if (dv) {
    check_finite("dv", dv, parts_->model->nv);
  }
  if (du) {
    check_finite("du", du, parts_->model->nu);
  }
  if (dtau) {
    check_finite("dtau", dtau, parts_->model->nv);
  }
  gradient().jvp({dq, dv, du, dtau}, dq1, dv1);
}

void Simulator::set_memory(const StepMemory& memory) {
  if (memory.structure != parts_->memory.structure)
    refuse(
        "memory: belongs to a model of another structure (bodies, joints, shapes or pairs); expected one of this "
        "simulator's model");
  parts_->memory = memory;
}

/// The record of the last step, and its derivatives, are gone too.
void Simulator::reset() {
  parts_->memory.reset();
  parts_->record.valid = false;
  parts_->linearized = parts_->overflowed = false;
}

}  // namespace coulomb

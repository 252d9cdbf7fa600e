#include "coulomb/stepping/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/base/small_math.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/stepping/contradictions.hpp"
#include "coulomb/stepping/neutral_overlaps.hpp"
#include "coulomb/stepping/simulator_options.hpp"

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
    case SolveStatus::relaxed: return "relaxed: the constraints contradict one another";
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

Simulator::Simulator(std::shared_ptr<const Model> model, SimulatorOptions options)
    : model_(simulated_model(std::move(model), options)), options_(std::move(options)),
      step_options_(step_options(*model_, options_)), memory_(*model_), record_(std::make_unique<StepRecord>(*model_)) {
  // Options that were left to the model are told as they are.
  options_.timestep = step_options_.constraints.timestep;
  options_.contact = contact_name(step_options_.constraints.contact);
}

void Simulator::step(const double* q, const double* v, const double* u, const double* tau, const double* fext,
                     double* q_next, double* v_next) {
  const Model& m = *model_;
  check_configuration(m, q, "q");
  check_finite("v", v, m.nv);
  if (u) check_finite("u", u, m.nu);
  if (tau) check_finite("tau", tau, m.nv);
  if (fext) check_finite("fext", fext, 6 * m.num_bodies);

  // The record takes all that the step is given; what is not given is zero.
  StepRecord& r = *record_;
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
  linearized_ = false;
  ++step_count_;
  overflowed_ = !step_options_.stepper->step(m, step_options_, solver_, memory_, r);
  std::copy(r.q_next.begin(), r.q_next.end(), q_next);
  std::copy(r.v_next.begin(), r.v_next.end(), v_next);
}

void Simulator::step(const State& state, const std::vector<double>& u, State& next, const std::vector<double>& tau,
                     const std::vector<double>& fext) {
  const Model& m = *model_;
  check_size("q", state.q.size(), m.nq);
  check_size("v", state.v.size(), m.nv);
  if (!u.empty() || m.nu == 0) check_size("u", u.size(), m.nu);
  if (!tau.empty()) check_size("tau", tau.size(), m.nv);
  if (!fext.empty()) check_size("fext", fext.size(), 6 * m.num_bodies);

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
  return record_->valid && !overflowed_ && all_small(record_->q) && all_small(record_->v) && all_small(record_->v_next);
}

StepStatus Simulator::status() const {
  StepStatus out;
  if (!record_->valid) {
    out.reason = "no step was taken";
    return out;
  }

  // Numbers as the solver has left them.
  const SolverResult& s = record_->solution;
  out.converged = s.status == SolveStatus::solved;
  out.classes_hit = s.classes_hit;
  out.iterations = s.iterations;
  out.residual = s.residual;
  out.exact_residual = s.exact_residual;
  out.relaxation = s.relaxation;

  // The stepper's own words, if it has some.
  out.reason = record_->reason ? record_->reason : reason(s.status);
  if (overflowed_)
    out.reason = "failed: overflow: the numbers of this step exceed double precision, the state was left as it was";

  // And the constraints that cannot all hold.
  out.contradictions = constraint_names(*model_, record_->contradictory);
  if (!out.contradictions.empty()) {
    const bool told = !overflowed_ && !record_->reason && s.status == SolveStatus::relaxed;
    out.reason += (told ? ": " : "; constraints that contradict one another: ") + enumeration(out.contradictions);
  }
  return out;
}

/// As the record has them: after a step, at the state where the contacts were found.
std::vector<ContactReport> Simulator::contacts() const {
  std::vector<ContactReport> out;
  const StepRecord& r = *record_;
  const Model& m = *model_;
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

    // How the contact was solved, and whether its geometry has a derivative.
    report.friction = m.pair_friction[c.pair];
    report.mode = r.solution.modes[b.block];
    report.facet = r.solution.facets[b.block];
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
  gradient_ = std::move(gradient);
  linearized_ = false;
}

/// Prepared once for every step that is differentiated.
StepGradient& Simulator::gradient() {
  if (!record_->valid) throw std::logic_error("derivatives: no step was taken yet");
  if (overflowed_) throw std::logic_error("derivatives: the numbers of the last step overflowed, it has none");
  if (!differentiable()) throw std::logic_error("derivatives: a state beyond 1e150 has none in double precision");
  if (!gradient_) gradient_ = step_options_.stepper->make_gradient(*model_, step_options_);
  if (!linearized_) gradient_->prepare(*model_, step_options_, *record_, memory_);
  linearized_ = true;
  return *gradient_;
}

const StepDerivatives& Simulator::derivatives() { return gradient().jacobian(); }

std::shared_ptr<const StepDerivatives> Simulator::shared_derivatives() {
  std::shared_ptr<StepDerivatives> out = gradient().shared_jacobian();
  out->origin = origin_;
  out->step = step_count_;
  return out;
}

/// The last one is kept: loops ask for the same names.
const std::shared_ptr<const ParameterSet>& Simulator::parameter_set(const std::vector<std::string>& names) {
  if (names != parameter_names_) {
    parameter_set_ = std::make_shared<ParameterSet>(*model_, names);
    parameter_names_ = names;
  }
  return parameter_set_;
}

std::shared_ptr<const StepDerivatives> Simulator::derivatives(const std::vector<std::string>& parameters) {
  const auto& set = parameter_set(parameters);
  auto out = std::make_shared<StepDerivatives>(derivatives());
  out->parameters = set;
  gradient_->parameter_columns(*set, out->parameters_T);
  out->ambiguous = gradient_->ambiguous();
  out->origin = origin_;
  out->step = step_count_;
  return out;
}

std::shared_ptr<const SparseStepDerivatives> Simulator::sparse_derivatives(const std::vector<std::string>& parameters) {
  const std::shared_ptr<const ParameterSet> set = parameters.empty() ? nullptr : parameter_set(parameters);
  std::shared_ptr<SparseStepDerivatives> out = gradient().sparse_jacobian();
  if (set) {
    out->parameters = set;
    gradient_->parameter_columns(*set, out->parameters_T);
    out->ambiguous = gradient_->ambiguous();
  }
  return out;
}

/// 3 rows per contact, `columns` numbers each.
std::vector<double> Simulator::impulse_derivatives(const std::string& wrt, int& columns) {
  gradient();
  std::vector<double> columns_T;
  if (is_step_input(wrt)) {
    gradient_->impulse_columns(step_input(wrt), columns_T);
    columns = wrt == "u" ? model_->nu : model_->nv;
  } else {
    const ParameterSet set(*model_, {wrt});
    gradient_->impulse_columns(set, columns_T);
    columns = set.size();
  }

  // Contacts alone, row by row.
  const ConstraintRows& rows = record_->rows;
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
  check_finite("dq1", dq1, model_->nv);
  check_finite("dv1", dv1, model_->nv);
  gradient();

  // The reverse product of the gradient that was asked for.
  StepCotangent out;
  out.parameter_set = parameter_set(parameters);
  out.wants_fext = wants_fext;
  gradient_->vjp(dq1, dv1, out, out.parameter_set.get());
  out.ambiguous = gradient_->ambiguous();
  return out;
}

void Simulator::jvp(const double* dq, const double* dv, const double* du, const double* dtau, double* dq1,
                    double* dv1) {
  if (dq) check_finite("dq", dq, model_->nv);
  if (dv) check_finite("dv", dv, model_->nv);
  if (du) check_finite("du", du, model_->nu);
  if (dtau) check_finite("dtau", dtau, model_->nv);
  gradient().jvp({dq, dv, du, dtau}, dq1, dv1);
}

void Simulator::set_memory(const StepMemory& memory) {
  if (memory.structure != memory_.structure)
    refuse(
        "memory: belongs to a model of another structure (bodies, joints, shapes or pairs); expected one of this "
        "simulator's model");
  memory_ = memory;
}

/// The record of the last step, and its derivatives, are gone too.
void Simulator::reset() {
  memory_.reset();
  record_->valid = false;
  linearized_ = overflowed_ = false;
}

}  // namespace coulomb

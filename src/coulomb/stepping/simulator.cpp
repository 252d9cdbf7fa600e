#include "coulomb/stepping/simulator.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/contradictions.hpp"
#include "coulomb/stepping/neutral_overlaps.hpp"

namespace coulomb {
namespace {

constexpr double reported_tie = 1e-8;
constexpr double differentiable_size = 1e150;  // beyond, the squares in derivatives are not finite

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument(what); }

void check_range(const char* name, double value, double low, double high, bool open_low) {
  const bool ok = std::isfinite(value) && value <= high && (open_low ? value > low : value >= low);
  if (!ok)
    refuse(std::string(name) + ": got " + number(value) + ", expected a number in " + (open_low ? "(" : "[") +
           number(low) + ", " + number(high) + "]");
}

void check_finite(const char* name, const double* x, int n) {
  for (int i = 0; i < n; ++i)
    if (!std::isfinite(x[i]))
      refuse(std::string(name) + "[" + std::to_string(i) + "] is " + number(x[i]) + ", expected a finite number");
}

void check_size(const char* name, std::size_t size, std::size_t expected) {
  if (size != expected)
    refuse(std::string(name) + " has " + std::to_string(size) + " elements, expected " + std::to_string(expected));
}

SolverMethod solver_method(const std::string& name) {
  if (name == "automatic" || name == "auto") return SolverMethod::automatic;
  if (name == "ac_lm") return SolverMethod::ac_lm;
  if (name == "admm") return SolverMethod::admm;
  if (name == "pgs") return SolverMethod::pgs;
  if (name == "dantzig") return SolverMethod::dantzig;
  refuse("solver: got \"" + name + "\", expected \"auto\", \"ac_lm\", \"admm\", \"pgs\" or \"dantzig\"");
}

GradientMode gradient_mode(const std::string& name) {
  if (name == "exact") return GradientMode::exact;
  if (name == "complementarity_aware") return GradientMode::complementarity_aware;
  if (name == "approximate_bounce") return GradientMode::approximate_bounce;
  if (name == "smoothed_collision") return GradientMode::smoothed_collision;
  if (name == "smoothed_step") return GradientMode::smoothed_step;
  refuse("gradient: got \"" + name +
         "\", expected \"exact\", \"complementarity_aware\", \"approximate_bounce\", \"smoothed_collision\" or "
         "\"smoothed_step\"");
}

StepperKind stepper_kind(const std::string& name) {
  if (name == "semi_implicit") return StepperKind::semi_implicit;
  if (name == "bdf1") return StepperKind::bdf1;
  if (name == "bdf2") return StepperKind::bdf2;
  refuse("stepper: got \"" + name + "\", expected \"semi_implicit\", \"bdf1\" or \"bdf2\"");
}

ContactLaw contact_law(const std::string& name, StepperKind stepper) {
  if (name == "automatic" || name == "auto")
    return stepper == StepperKind::semi_implicit ? ContactLaw::cone : ContactLaw::penalty;
  if (name == "ncp") return ContactLaw::cone;
  if (name == "penalty") return ContactLaw::penalty;
  if (name == "lcp") return ContactLaw::pyramid;
  refuse("contact: got \"" + name + "\", expected \"auto\", \"ncp\", \"lcp\" or \"penalty\"");
}

ImplicitOptions implicit_options(const SimulatorOptions& o) {
  ImplicitOptions out;
  check_range("limit_stiffness", o.limit_stiffness, 0, 1e15, true);
  check_range("limit_damping", o.limit_damping, 0, 1e15, false);
  check_range("equality_stiffness", o.equality_stiffness, 0, 1e15, true);
  check_range("equality_damping", o.equality_damping, 0, 1e15, false);
  check_range("dry_friction_velocity", o.dry_friction_velocity, 0, 1e3, true);
  if (o.newton_iterations < 1)
    refuse("newton_iterations: got " + std::to_string(o.newton_iterations) + ", expected at least 1");
  if (o.newton_halvings < 0 || o.newton_halvings > 16)
    refuse("newton_halvings: got " + std::to_string(o.newton_halvings) + ", expected 0 to 16");
  out.tolerance = o.tolerance, out.max_iterations = o.newton_iterations, out.max_halvings = o.newton_halvings;
  out.limit_stiffness = o.limit_stiffness, out.limit_damping = o.limit_damping;
  out.equality_stiffness = o.equality_stiffness, out.equality_damping = o.equality_damping;
  out.dry_friction_velocity = o.dry_friction_velocity;
  return out;
}

const char* name(ContactLaw law) {
  return law == ContactLaw::cone ? "ncp" : law == ContactLaw::pyramid ? "lcp" : "penalty";
}

// Steppers and laws that know one gradient only, the exact one.
void check_implicit(const Model& model, const SimulatorOptions& o, const StepOptions& options) {
  const bool implicit = options.stepper != StepperKind::semi_implicit,
             penalty = options.constraints.contact == ContactLaw::penalty;
  if (implicit && !penalty && !model.pair_a.empty())
    refuse("contact: got \"" + o.contact + "\" with stepper \"" + o.stepper +
           "\", expected \"penalty\": implicit steppers know no other contact, and this model has geometries that can "
           "touch");
  if ((implicit || penalty) && options.impacts.enabled)
    refuse("continuous_collision: got true, expected false with stepper \"" + o.stepper + "\" and contact \"" +
           name(options.constraints.contact) + "\"");
  if ((implicit || penalty) && options.gradient.mode != GradientMode::exact)
    refuse("gradient: got \"" + o.gradient + "\", expected \"exact\" with " +
           (implicit ? "stepper \"" + o.stepper : std::string("contact \"penalty")) + "\"");
}

// An option that has no influence on the simulator that is asked for is a mistake: refused, unless it is as it is by default.
void check_used(const SimulatorOptions& o, const StepOptions& out) {
  const SimulatorOptions unset;
  const ContactLaw law = out.constraints.contact;
  const bool springs = out.stepper != StepperKind::semi_implicit || law == ContactLaw::penalty;
  const bool one_method = out.solver.method != SolverMethod::automatic;
  const GradientMode mode = out.gradient.mode;
  const bool smoothed = mode == GradientMode::smoothed_collision || mode == GradientMode::smoothed_step;

  const auto only = [](const char* option, bool changed, bool used, const char* with) {
    if (changed && !used)
      refuse(std::string(option) + ": has no influence here, it belongs to " + with + "; leave it out");
  };
  const char* const lcp = "contact \"lcp\"";
  only("friction_directions", o.friction_directions != unset.friction_directions, law == ContactLaw::pyramid, lcp);
  only("friction_polygon", o.friction_polygon != unset.friction_polygon, law == ContactLaw::pyramid, lcp);

  const char* const of_springs = "implicit steppers and contact \"penalty\"";
  only("limit_stiffness", o.limit_stiffness != unset.limit_stiffness, springs, of_springs);
  only("limit_damping", o.limit_damping != unset.limit_damping, springs, of_springs);
  only("equality_stiffness", o.equality_stiffness != unset.equality_stiffness, springs, of_springs);
  only("equality_damping", o.equality_damping != unset.equality_damping, springs, of_springs);
  only("dry_friction_velocity", o.dry_friction_velocity != unset.dry_friction_velocity, springs, of_springs);
  only("newton_iterations", o.newton_iterations != unset.newton_iterations, springs, of_springs);
  only("newton_halvings", o.newton_halvings != unset.newton_halvings, springs, of_springs);

  const char* const hard = "the semi-implicit stepper with contact \"ncp\" or \"lcp\"";
  only("solver", out.solver.method != SolverMethod::automatic, !springs, hard);
  only("max_iterations", o.max_iterations != unset.max_iterations, !springs && one_method,
       "a solver by itself (\"ac_lm\", \"admm\", \"pgs\", \"dantzig\")");
  only("baumgarte", o.baumgarte != unset.baumgarte, !springs, hard);
  only("slop", o.slop != unset.slop, !springs, hard);
  only("max_correction_speed", o.max_correction_speed != unset.max_correction_speed, !springs, hard);
  only("restitution_threshold", o.restitution_threshold != unset.restitution_threshold, !springs, hard);

  only("max_impacts", o.max_impacts != unset.max_impacts, o.continuous_collision, "continuous_collision=True");
  only("penetration_tolerance", o.penetration_tolerance != unset.penetration_tolerance, o.continuous_collision,
       "continuous_collision=True");

  const char* const averages = "gradient \"smoothed_collision\" and \"smoothed_step\"";
  only("gradient_samples", o.gradient_samples != unset.gradient_samples, smoothed, averages);
  only("gradient_scale", o.gradient_scale != unset.gradient_scale, smoothed, averages);
  only("gradient_seed", o.gradient_seed != unset.gradient_seed, smoothed, averages);
  only("tie_margin", o.tie_margin != unset.tie_margin, mode == GradientMode::complementarity_aware,
       "gradient \"complementarity_aware\"");
}

StepOptions step_options(const Model& model, const SimulatorOptions& o) {
  StepOptions out;
  out.constraints.timestep = o.timestep == 0 ? model.timestep : o.timestep;
  check_range("timestep", out.constraints.timestep, 0, 1, true);
  if (out.constraints.timestep < 1e-9)
    refuse("timestep: got " + number(out.constraints.timestep) + ", expected at least 1e-9 s");
  out.stepper = stepper_kind(o.stepper);
  out.constraints.contact = contact_law(o.contact, out.stepper);
  if (o.friction_directions < 2 || o.friction_directions > max_facets / 2)
    refuse("friction_directions: got " + std::to_string(o.friction_directions) + ", expected 2 to " +
           std::to_string(max_facets / 2));
  out.constraints.friction_directions = o.friction_directions;
  out.constraints.inscribed_polygon = o.friction_polygon == "inscribed";
  if (o.friction_polygon != "circumscribed" && o.friction_polygon != "inscribed")
    refuse("friction_polygon: got \"" + o.friction_polygon + "\", expected \"circumscribed\" or \"inscribed\"");
  check_range("tolerance", o.tolerance, 0, 1e-2, true);
  check_range("baumgarte", o.baumgarte, 0, 1, false);
  check_range("slop", o.slop, 0, 1, false);
  check_range("max_correction_speed", o.max_correction_speed, 0, 1e6, true);
  check_range("restitution_threshold", o.restitution_threshold, 0, 1e6, false);
  if (o.max_iterations < 1) refuse("max_iterations: got " + std::to_string(o.max_iterations) + ", expected at least 1");
  out.constraints.baumgarte = o.baumgarte, out.constraints.slop = o.slop;
  out.constraints.max_correction_speed = o.max_correction_speed;
  out.constraints.restitution_threshold = o.restitution_threshold;
  if (o.gyroscopic != "implicit" && o.gyroscopic != "explicit")
    refuse("gyroscopic: got \"" + o.gyroscopic + "\", expected \"implicit\" or \"explicit\"");
  if (o.gyroscopic == "explicit" && out.stepper != StepperKind::semi_implicit)
    refuse("gyroscopic: got \"explicit\" with stepper \"" + o.stepper +
           "\", expected \"implicit\": only the semi-implicit stepper knows another one");
  out.torque_free_spin = o.gyroscopic == "implicit";
  check_range("penetration_tolerance", o.penetration_tolerance, 0, 1, true);
  if (o.max_impacts < 1) refuse("max_impacts: got " + std::to_string(o.max_impacts) + ", expected at least 1");
  if (o.continuous_collision && (o.gradient == "smoothed_step" || o.gradient == "approximate_bounce"))
    refuse("gradient: \"" + o.gradient + "\" is not available with continuous_collision");
  out.impacts.enabled = o.continuous_collision, out.impacts.max_impacts = o.max_impacts;
  out.impacts.penetration_tolerance = o.penetration_tolerance;
  out.collision.stateless = !o.patches;
  out.solver.method = solver_method(o.solver);
  if (out.solver.method == SolverMethod::dantzig && (out.constraints.contact != ContactLaw::pyramid ||
                                                     o.friction_directions != 2 || out.constraints.inscribed_polygon))
    refuse(
        "solver: \"dantzig\" solves boxed LCPs: it needs contact \"lcp\", friction_directions 2 and the circumscribed "
        "polygon");
  out.solver.tolerance = o.tolerance;
  out.solver.max_iterations = o.max_iterations;
  out.warm_start = o.warm_start;
  out.gradient.mode = gradient_mode(o.gradient);
  if (o.gradient_samples < 1)
    refuse("gradient_samples: got " + std::to_string(o.gradient_samples) + ", expected at least 1");
  check_range("gradient_scale", o.gradient_scale, 0, 1, true);
  check_range("tie_margin", o.tie_margin, 0, 1e6, false);
  out.gradient.tie_margin = o.tie_margin;
  out.gradient.samples = o.gradient_samples, out.gradient.scale = o.gradient_scale, out.gradient.seed = o.gradient_seed;
  out.implicit = implicit_options(o);
  check_implicit(model, o, out);
  check_used(o, out);
  return out;
}

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

std::shared_ptr<const Model> with_penalty_options(std::shared_ptr<const Model> model, SimulatorOptions& o) {
  if (!model) refuse("model: got a null pointer");
  if (contact_law(o.contact, stepper_kind(o.stepper)) != ContactLaw::penalty) {
    const char* const why = ": has no influence here, it belongs to contact \"penalty\"; leave it out";
    if (o.contact_stiffness) refuse(std::string("contact_stiffness") + why);
    if (o.contact_damping) refuse(std::string("contact_damping") + why);
    if (o.contact_friction_stiffness) refuse(std::string("contact_friction_stiffness") + why);
    return model;
  }
  const auto given = [](std::optional<double>& option, double now) { return std::exchange(option, {}).value_or(now); };
  const PenaltyDefaults& own = model->penalty;
  const PenaltyDefaults wanted{given(o.contact_stiffness, own.stiffness), given(o.contact_damping, own.damping),
                               given(o.contact_friction_stiffness, own.friction_stiffness)};
  checks::positive("contact_stiffness", wanted.stiffness);
  checks::not_negative("contact_damping", wanted.damping);
  checks::not_negative("contact_friction_stiffness", wanted.friction_stiffness);
  if (wanted.stiffness == own.stiffness && wanted.damping == own.damping &&
      wanted.friction_stiffness == own.friction_stiffness)
    return model;
  auto out = std::make_shared<Model>(*model);
  out->penalty = wanted;
  return out;
}

static std::shared_ptr<const Model> simulated_model(std::shared_ptr<const Model> model, SimulatorOptions& options) {
  model = with_penalty_options(std::move(model), options);
  if (!options.exclude_neutral_overlaps) return model;
  return without_pairs(model, neutral_overlaps(*model));
}

Simulator::Simulator(std::shared_ptr<const Model> model, SimulatorOptions options)
    : model_(simulated_model(std::move(model), options)), options_(std::move(options)),
      step_options_(step_options(*model_, options_)), memory_(*model_), record_(std::make_unique<StepRecord>(*model_)) {
  options_.timestep = step_options_.constraints.timestep;
  options_.contact = name(step_options_.constraints.contact);
}

void Simulator::step(const double* q, const double* v, const double* u, const double* tau, const double* fext,
                     double* q_next, double* v_next) {
  const Model& m = *model_;
  check_configuration(m, q, "q");
  check_finite("v", v, m.nv);
  if (u) check_finite("u", u, m.nu);
  if (tau) check_finite("tau", tau, m.nv);
  if (fext) check_finite("fext", fext, 6 * m.num_bodies);
  StepRecord& r = *record_;
  const auto take = [](const double* from, std::vector<double>& to) {
    if (from) std::copy_n(from, to.size(), to.begin());
    else std::fill(to.begin(), to.end(), 0.0);
  };
  take(q, r.q), take(v, r.v), take(u, r.u), take(tau, r.tau);
  r.fext.resize(fext ? 6 * m.num_bodies : 0);
  take(fext, r.fext);
  linearized_ = false;
  ++step_count_;
  overflowed_ = !take_step(m, step_options_, solver_, memory_, r);
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
  next.q.resize(m.nq);
  next.v.resize(m.nv);
  step(state.q.data(), state.v.data(), u.empty() ? nullptr : u.data(), tau.empty() ? nullptr : tau.data(),
       fext.empty() ? nullptr : fext.data(), next.q.data(), next.v.data());
}

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
  const SolverResult& s = record_->solution;
  out.converged = s.status == SolveStatus::solved;
  out.classes_hit = s.classes_hit;
  out.iterations = s.iterations, out.residual = s.residual, out.exact_residual = s.exact_residual;
  out.relaxation = s.relaxation;
  out.reason = overflowed_
                   ? "failed: overflow: the numbers of this step exceed double precision, the state was left as it was"
               : record_->reason ? record_->reason
                                 : reason(s.status);
  out.contradictions = constraint_names(*model_, record_->contradictory);
  if (!out.contradictions.empty()) {
    const bool told = !overflowed_ && !record_->reason && s.status == SolveStatus::relaxed;
    out.reason += (told ? ": " : "; constraints that contradict one another: ") + enumeration(out.contradictions);
  }
  return out;
}

std::vector<ContactReport> Simulator::contacts() const {
  std::vector<ContactReport> out;
  const StepRecord& r = *record_;
  const Model& m = *model_;
  if (!r.valid) return out;
  std::vector<double> velocity(r.rows.num_rows), twist(8 * m.nv);
  link_twists(m, r.dynamics, r.v_next.data(), twist.data());
  apply_rows(m, r.dynamics, r.rows, r.v_next.data(), twist.data(), velocity.data());
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& c = r.collision.contacts[b.contact];
    ContactReport report{};
    report.geometry_a = m.geometry_names[c.geometry_a], report.geometry_b = m.geometry_names[c.geometry_b];
    report.body_a = m.body_names[c.body_a], report.body_b = m.body_names[c.body_b];
    copy3(c.point, report.point);
    copy3(c.normal, report.normal);
    for (int i = 0; i < 9; ++i) report.frame[i] = b.axes[i / 3][i % 3];
    report.depth = -c.distance;
    for (int i = 0; i < 3; ++i) {
      axpy3(r.solution.lambda[b.row + i], b.axes[i], report.impulse);
      axpy3(velocity[b.row + i], b.axes[i], report.velocity);
    }
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

void Simulator::share_gradient(std::shared_ptr<StepGradient> gradient) {
  gradient_ = std::move(gradient);
  linearized_ = false;
}

StepGradient& Simulator::gradient() {
  if (!record_->valid) throw std::logic_error("derivatives: no step was taken yet");
  if (overflowed_) throw std::logic_error("derivatives: the numbers of the last step overflowed, it has none");
  if (!differentiable()) throw std::logic_error("derivatives: a state beyond 1e150 has none in double precision");
  if (!gradient_) gradient_ = make_step_gradient(*model_, step_options_);
  if (!linearized_) gradient_->prepare(*model_, step_options_, *record_, memory_);
  linearized_ = true;
  return *gradient_;
}

const StepDerivatives& Simulator::derivatives() { return gradient().jacobian(); }

std::shared_ptr<const StepDerivatives> Simulator::shared_derivatives() {
  std::shared_ptr<StepDerivatives> out = gradient().shared_jacobian();
  out->origin = origin_, out->step = step_count_;
  return out;
}

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
  out->origin = origin_, out->step = step_count_;
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

std::vector<double> Simulator::impulse_derivatives(const std::string& wrt, int& columns) {
  gradient();
  std::vector<double> columns_T;
  if (wrt == "q" || wrt == "v" || wrt == "u" || wrt == "tau") {
    gradient_->impulse_columns(wrt == "q"   ? StepInput::q
                               : wrt == "v" ? StepInput::v
                               : wrt == "u" ? StepInput::u
                                            : StepInput::tau,
                               columns_T);
    columns = wrt == "u" ? model_->nu : model_->nv;
  } else {
    const ParameterSet set(*model_, {wrt});
    gradient_->impulse_columns(set, columns_T);
    columns = set.size();
  }
  const ConstraintRows& rows = record_->rows;
  std::vector<double> out;
  for (const BodyRows& b : rows.body_rows) {
    if (b.contact < 0) continue;
    for (int i = 0; i < 3; ++i)
      for (int k = 0; k < columns; ++k) out.push_back(columns_T[std::size_t(k) * rows.num_rows + b.row + i]);
  }
  return out;
}

StepCotangent Simulator::vjp(const double* dq1, const double* dv1, const std::vector<std::string>& parameters,
                             bool wants_fext) {
  check_finite("dq1", dq1, model_->nv);
  check_finite("dv1", dv1, model_->nv);
  gradient();
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

void Simulator::reset() {
  memory_.reset();
  record_->valid = false;
  linearized_ = overflowed_ = false;
}

}  // namespace coulomb

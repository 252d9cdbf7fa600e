#include "coulomb/stepping/implicit/implicit_step.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "coulomb/configuration.hpp"
#include "coulomb/stepping/kept_bytes.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

namespace coulomb {
namespace {

// Patience of Newton's method (implicit_newton.hpp), in evaluations. A search that finds nothing takes a dozen. The whole step gets
// ten of them, for the kinks of many contacts; a part gets three, for it can be divided.
constexpr int patience_whole = 130;
constexpr int patience_part = 40;

// Evaluations after which a step is not divided any further: finer parts help a step that is too long, not a force that jumps.
constexpr int most_evaluations = 450;

/// Bit for bit.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

/// The method of the whole step; bdf2 goes on where the step starts from where the last one ended, else it starts with sdirk2.
ImplicitScheme whole_step(ImplicitScheme scheme, const StepOptions& options, const StepMemory& memory,
                          const StepRecord& r) {
  if (scheme != ImplicitScheme::bdf2) return scheme;
  const bool goes_on = !memory.previous_q.empty() &&
                       (options.collision.frozen_cache || (same(memory.last_q, r.q) && same(memory.last_v, r.v)));
  return goes_on ? ImplicitScheme::bdf2 : ImplicitScheme::sdirk2;
}

/// The method of a part, which has no state before.
ImplicitScheme of_parts(ImplicitScheme whole) { return whole == ImplicitScheme::bdf2 ? ImplicitScheme::sdirk2 : whole; }

/// What bdf1 begins with; bdf2 has need of it at limits.
void make_start(const Model& model, ImplicitExtra& extra) {
  if (!extra.start) {
    extra.start = std::make_unique<SpinningStart>(model);
  }
}

/// The first (or only) stage of a part of length h from (q, v).
void begin_stage(const Model& model, ImplicitScheme scheme, double h, const std::vector<double>& q,
                 const std::vector<double>& v, ImplicitExtra& extra, ImplicitStage& stage) {
  stage.c = stage_fraction(scheme) * h;
  stage.explicit_dynamics = scheme == ImplicitScheme::semi_implicit;

  // What the methods of one step have.
  stage.q = q;
  stage.v_bar = v;
  std::fill(stage.w_bar.begin(), stage.w_bar.end(), 0.0);
  std::fill(stage.b.begin(), stage.b.end(), 0.0);
  if (scheme == ImplicitScheme::bdf1) {
    make_start(model, extra);
    extra.start->add(model, q.data(), v.data(), stage.c, stage.v_bar.data());
  }
  if (scheme != ImplicitScheme::bdf2) return;

  // bdf2: xi = q (-) q_before, and the velocity before, turned to the axes of q.
  difference(model, extra.previous_q.data(), q.data(), stage.w_bar.data());
  extra.turned_previous_v = extra.previous_v;
  integrate_jacobian_times(model, stage.w_bar.data(), IntegrateArgument::q, false, extra.turned_previous_v.data(), 1,
                           1);
  for (int d = 0; d < model.nv; ++d) {
    stage.w_bar[d] /= 3;
    stage.v_bar[d] = (4 * v[d] - extra.turned_previous_v[d]) / 3;
  }

  stage.b = stage.w_bar;
}

void second_stage(const Model& model, double h, const std::vector<double>& v, const ImplicitStage& first,
                  ImplicitStage& stage) {
  const double a = sdirk_alpha();
  stage.c = a * h;
  stage.explicit_dynamics = false;
  stage.q = first.q;
  stage.b = first.b;
  for (int d = 0; d < model.nv; ++d) {
    stage.v_bar[d] = v[d] + (1 - a) / a * (first.v_next[d] - v[d]);
    stage.w_bar[d] = (1 - a) * h * first.v_next[d];
  }
}

struct Attempt {
  int parts = 1;
  int patience = patience_part;
  bool last = false;  ///< where Newton's method fails, its best iterates are taken
};

/// The step in equal parts. False: Newton's method failed, and the step is at its end only with `last`.
bool attempt(const Model& model, const StepOptions& options, ImplicitScheme scheme, const Attempt& how, StepRecord& r,
             ImplicitExtra& extra, int& evaluations) {
  const int parts = how.parts;
  const double h = options.constraints.timestep / parts;

  // What is counted over all stages.
  const StageInputs inputs{r.u.data(), r.tau.data(), &r.fext};
  bool solved = true;
  extra.scheme = scheme;
  extra.parts = parts;
  extra.count = 0;
  extra.q = r.q;
  extra.v = r.v;
  r.solution.residual = 0;

  // One stage: false where the parts have to be smaller.
  const auto solve = [&](ImplicitStage& stage) {
    const NewtonOutcome outcome = extra.newton->solve(model, options, inputs, stage, how.patience);
    r.solution.iterations += outcome.iterations;
    evaluations += outcome.evaluations;
    r.solution.residual = std::max(r.solution.residual, outcome.residual);
    solved = solved && outcome.converged;
    return outcome.converged || how.last;
  };
  for (int part = 0; part < parts; ++part) {
    // From where the last part has ended. Both stages are made at once, so that references to them stay good.
    extra.stage(model, extra.count + 1);
    ImplicitStage& stage = extra.stage(model, extra.count++);
    begin_stage(model, scheme, h, extra.q, extra.v, extra, stage);
    stage.v_next = extra.v;
    if (!solve(stage)) return false;

    const ImplicitStage* end = &stage;
    if (scheme == ImplicitScheme::sdirk2) {
      ImplicitStage& second = extra.stage(model, extra.count++);
      second_stage(model, h, extra.v, stage, second);
      second.v_next = stage.v_next;
      if (!solve(second)) return false;
      end = &second;
    }

    extra.q = end->q_next;
    extra.v = end->v_next;
  }
  return solved;
}

/// Does a limit begin or cease to push within the step? A method of second order, which takes forces to be smooth, would then feed energy.
bool meets_limit(const Model& model, const StepOptions& options, const StepRecord& r, const ImplicitExtra& extra) {
  const auto differs = [&](const ImplicitStage& s) {
    return other_limits_push(model, options.implicit, r.q.data(), r.v.data(), s.q_next.data(), s.v_next.data());
  };
  return std::any_of(extra.stages.begin(), extra.stages.begin() + extra.count, differs);
}

/// The end of the step; its dynamics and contacts become those of the record, without a copy.
void store_result(const Model& model, double h, StepRecord& r, ImplicitExtra& extra) {
  r.q_next = extra.q;
  r.v_next = extra.v;
  r.v_free = extra.v;
  for (int d = 0; d < model.nv; ++d)
    r.acceleration[d] = (r.v_next[d] - r.v[d]) / h;
  std::swap(r.dynamics, extra.newton->equation.dynamics);
  std::swap(r.joint_forces, extra.newton->equation.joint_forces);

  // Derivatives have taken the inertia of the bodies out of it.
  if (extra.scheme == ImplicitScheme::semi_implicit) {
    kinematics(model, r.q_next.data(), r.dynamics);
  }
  report_contacts(extra.newton->equation.contacts, h, r);
}

/// An implicit step has no constraint problem.
void clear_constraints(StepRecord& r) {
  r.rows.clear();
  r.solution.lambda.clear();
  r.solution.c.clear();
  r.solution.modes.clear();
  r.solution.margin.clear();
  r.solution.facets.clear();
  r.clear_names();
  r.collision.contacts.clear();
}

void take_state_before(const StepMemory& memory, ImplicitExtra& extra) {
  extra.previous_q = memory.previous_q;
  extra.previous_v = memory.previous_v;
}

/// What bdf2 starts from next time: nothing after a step over a limit, whose states before and after lie on no smooth curve.
void remember(ImplicitScheme scheme, const StepOptions& options, const StepRecord& r, const ImplicitExtra& extra,
              StepMemory& memory) {
  if (scheme != ImplicitScheme::bdf2 || options.collision.frozen_cache) return;
  if (extra.scheme == ImplicitScheme::bdf1) return memory.forget_states();
  memory.previous_q = r.q;
  memory.previous_v = r.v;
  memory.last_q = r.q_next;
  memory.last_v = r.v_next;
}

/// A step of one stage: its scheme, the state before, and the linearized stage.
template <class Pass, class Extra, class Views>
void visit_kept(Pass& pass, Extra& extra, Views& views) {
  pass.value(extra.scheme);
  kept::whole(pass, extra.previous_q);
  kept::whole(pass, extra.previous_v);
  visit(pass, views);
}

/// The only stage of a step whose end is known.
void follow_stage(const Model& model, const StepOptions& options, const StepRecord& r, ImplicitExtra& extra) {
  extra.parts = extra.count = 1;
  ImplicitStage& stage = extra.stage(model, 0);
  begin_stage(model, extra.scheme, options.constraints.timestep, r.q, r.v, extra, stage);
  stage.v_next = r.v_next;
  stage.follow(model);
}

/// What else the ends tell.
void take_ends(const StepOptions& options, StepRecord& r) {
  for (std::size_t d = 0; d < r.acceleration.size(); ++d)
    r.acceleration[d] = (r.v_next[d] - r.v[d]) / options.constraints.timestep;
  clear_constraints(r);
  r.reason = nullptr;
  r.valid = true;
}

}  // namespace

void report_contacts(const PenaltyForces& contacts, double h, StepRecord& r) {
  if (contacts.rows.num_rows == 0) return;
  r.rows = contacts.rows;
  r.collision.contacts = contacts.collision.contacts;

  // Impulses are forces times the length of the step.
  r.solution.lambda = contacts.force;
  for (double& f : r.solution.lambda)
    f *= h;
  r.solution.modes = contacts.modes;

  // Springs leave no rest.
  r.solution.c.assign(contacts.force.size(), 0.0);
  r.solution.margin.assign(contacts.modes.size(), 1.0);
  r.solution.facets.assign(contacts.modes.size(), -1);
}

double sdirk_alpha() { return 1 - std::sqrt(0.5); }

double stage_fraction(ImplicitScheme scheme) {
  switch (scheme) {
    case ImplicitScheme::bdf2: return 2.0 / 3;
    case ImplicitScheme::sdirk2: return sdirk_alpha();
    default: return 1.0;
  }
}

std::unique_ptr<StepExtra> ImplicitExtra::clone() const {
  auto out = std::make_unique<ImplicitExtra>();
  out->scheme = scheme;
  out->parts = parts;
  out->count = count;
  out->stages = stages;
  out->previous_q = previous_q;
  out->previous_v = previous_v;
  out->turned_previous_v = turned_previous_v;
  return out;
}

std::size_t ImplicitExtra::bytes() const {
  std::size_t numbers = 0;
  for (const auto* x : {&previous_q, &previous_v, &q, &v})
    numbers += x->capacity();

  std::size_t bytes = sizeof *this + numbers * sizeof(double);
  for (int i = 0; i < count; ++i)
    bytes += stages[i].bytes();
  return bytes;
}

ImplicitStage& ImplicitExtra::stage(const Model& model, int i) {
  while (int(stages.size()) <= i)
    stages.emplace_back(model);
  return stages[i];
}

ImplicitExtra& implicit_extra(StepRecord& record) {
  auto* extra = dynamic_cast<ImplicitExtra*>(record.extra.value.get());
  if (extra) return *extra;
  record.extra.value = std::make_unique<ImplicitExtra>();
  return static_cast<ImplicitExtra&>(*record.extra.value);
}

bool implicit_step(const Model& model, ImplicitScheme method, const StepOptions& options, StepMemory& memory,
                   StepRecord& r) {
  r.valid = false;
  r.reason = nullptr;
  ImplicitExtra& extra = implicit_extra(r);
  if (!extra.newton) {
    extra.newton = std::make_unique<ImplicitNewton>(model);
  }
  if (method != ImplicitScheme::semi_implicit) {
    make_start(model, extra);
  }
  const ImplicitScheme scheme = whole_step(method, options, memory, r);
  if (scheme == ImplicitScheme::bdf2) take_state_before(memory, extra);

  // Where Newton's method fails on the whole, in 2, 4, 8 ... parts.
  clear_constraints(r);
  r.solution.iterations = 0;
  r.solution.relaxation = 0;
  bool solved = false;
  const int most = options.implicit.max_halvings;
  int evaluations = 0;
  Attempt how{1, patience_whole, most == 0};
  for (int k = 0; k <= most && !solved && evaluations <= most_evaluations; ++k) {
    solved = attempt(model, options, k == 0 ? scheme : of_parts(scheme), how, r, extra, evaluations);

    // Over a limit by the method that takes energy from every convex spring.
    if (solved && method == ImplicitScheme::bdf2 && meets_limit(model, options, r, extra)) {
      solved = attempt(model, options, ImplicitScheme::bdf1, how, r, extra, evaluations);
    }
    how = {2 * how.parts, patience_part, false};
  }

  // There is no solution: the best iterate of the whole.
  if (!solved && most > 0) solved = attempt(model, options, scheme, {1, patience_part, true}, r, extra, evaluations);

  // What the solver says of it.
  r.solution.status = solved ? SolveStatus::solved : SolveStatus::failed;
  if (!solved)
    r.reason = "failed: Newton's method did not converge, nor in parts of the step; its best iterate was used";
  else if (extra.parts > 1)
    r.reason = "solved in parts: Newton's method did not converge on the whole step";
  else
    r.reason =
        spin_limit_reason(extra.scheme == ImplicitScheme::bdf1 ? extra.start->shift() : extra.newton->equation.spin());
  r.solution.exact_residual = r.solution.residual;

  // Factors for the way back, while they are there. What goes to the record stays where it is.
  extra.linearized.reset();
  extra.recalled.reset();
  if (options.keep_steps && extra.count == 1) {
    extra.linearized = extra.newton->linearized(model, extra.stages[0]);
  }
  store_result(model, options.constraints.timestep, r, extra);

  // Overflow: the step stands still and has no derivative.
  r.valid = true;
  if (!all_finite(r.v_next) || !all_finite(r.q_next) || !all_finite(r.acceleration)) {
    clear_constraints(r);
    stand_still(r);
    if (!options.collision.frozen_cache) memory.reset();
    return false;
  }
  remember(method, options, r, extra, memory);
  return true;
}

std::size_t kept_stage_bytes(const StepRecord& record) {
  const auto& extra = static_cast<const ImplicitExtra&>(*record.extra.value);
  if (!extra.linearized) return 0;
  kept::Measuring pass;
  visit_kept(pass, extra, *extra.linearized);
  return pass.bytes;
}

void keep_stage(const StepRecord& record, std::byte* to) {
  const auto& extra = static_cast<const ImplicitExtra&>(*record.extra.value);
  kept::Writing pass(to);
  visit_kept(pass, extra, *extra.linearized);
}

void recall_implicit_step(const Model& model, const StepOptions& options, const std::byte* from, StepRecord& r) {
  ImplicitExtra& extra = implicit_extra(r);
  kept::Reading pass(from);
  visit_kept(pass, extra, extra.recalled.emplace());
  extra.linearized.reset();
  follow_stage(model, options, r, extra);
  take_ends(options, r);
}

bool follow_implicit_step(const Model& model, ImplicitScheme method, const StepOptions& options, StepMemory& memory,
                          const std::byte* from, StepRecord& r) {
  ImplicitExtra& extra = implicit_extra(r);
  if (from) {
    recall_implicit_step(model, options, from, r);
    remember(method, options, r, extra, memory);
    return true;
  }

  // One stage, with the solution that is known.
  extra.scheme = whole_step(method, options, memory, r);
  extra.linearized.reset();
  extra.recalled.reset();
  if (extra.scheme == ImplicitScheme::sdirk2) return false;
  if (extra.scheme == ImplicitScheme::bdf2) {
    take_state_before(memory, extra);
  }
  follow_stage(model, options, r, extra);

  // It must end where the step did, and by the method of this stage.
  if (!same(extra.stages[0].q_next, r.q_next)) return false;
  if (method == ImplicitScheme::bdf2 && meets_limit(model, options, r, extra)) return false;
  take_ends(options, r);
  remember(method, options, r, extra, memory);
  return true;
}

}  // namespace coulomb

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

/// Bit for bit.
bool same(const double* a, const double* b, std::size_t count) {
  return std::memcmp(a, b, count * sizeof(double)) == 0;
}

/// marks[tree] = 1 where bdf2 goes on: where the step starts from where the last one ended.
void find_what_goes_on(const Model& model, const StepOptions& options, const StepMemory& memory, const StepRecord& r,
                       std::vector<unsigned char>& marks) {
  marks.assign(model.num_trees, 0);
  if (memory.previous_q.empty()) return;
  for (int tree = 0; tree < model.num_trees; ++tree) {
    const auto [q, q_end] = tree_coordinates(model, tree);
    const int v = model.tree_first_dof[tree];
    const int v_end = model.tree_first_dof[tree + 1];
    const bool is_known = memory.forgotten.empty() || !memory.forgotten[tree];
    marks[tree] = is_known && (options.collision.frozen_cache || (same(&memory.last_q[q], &r.q[q], q_end - q) &&
                                                                  same(&memory.last_v[v], &r.v[v], v_end - v)));
  }
}

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

/// Limits that begin or cease to push within the stages of a run, by tree. A method of second order, which takes forces to be smooth,
/// would feed energy there.
void find_limits_met(const Model& model, const StepOptions& options, const StepRecord& r, const ImplicitRun& run,
                     ImplicitExtra& extra) {
  extra.marks.assign(model.num_trees, 0);
  for (int i = run.first; i < run.first + run.count; ++i) {
    const ImplicitStage& s = extra.stages[i];
    mark_limits_met(model, options.implicit, r.q.data(), r.v.data(), s.q_next.data(), s.v_next.data(), extra.at,
                    extra.marks.data());
  }
}

/// The trees that the islands have chosen go through the step. Those that are not at its end then are left out of the run, which is none
/// if nobody is.
void run_islands(const Model& model, const StepOptions& options, StepRecord& r, ImplicitExtra& extra) {
  StepIslands& islands = *extra.islands;
  const IslandRule& rule = islands.rule();
  const StageInputs inputs{r.u.data(), r.tau.data(), &r.fext};
  const double h = options.constraints.timestep / rule.parts;
  ImplicitRun run{rule.scheme, rule.parts, extra.count, 0, nullptr};

  // From the start, others rest there.
  const auto leave_others = [&](ImplicitStage& stage) {
    for (int tree = 0; tree < model.num_trees; ++tree)
      if (!islands.moves(tree)) stage.leave_out(model, tree, r.q.data());
  };
  for (int tree = 0; tree < model.num_trees; ++tree)
    if (islands.moves(tree)) copy_tree(model, tree, r.q.data(), r.v.data(), extra.q.data(), extra.v.data());

  // One stage: false where nobody goes on.
  const auto solve = [&](ImplicitStage& stage) {
    leave_others(stage);
    extra.newton->solve(model, options, inputs, stage, rule.patience);
    return islands.take_stage(model, options.implicit.tolerance, *extra.newton);
  };
  for (int part = 0; part < rule.parts; ++part) {
    // From where the last part has ended. Both stages are made at once, so that references to them stay good.
    const int i = run.first + run.count;
    extra.stage(model, i + 1);
    ImplicitStage& stage = extra.stage(model, i);
    begin_stage(model, rule.scheme, h, extra.q, extra.v, extra, stage);
    stage.v_next = extra.v;
    ++run.count;
    if (!solve(stage)) break;

    const ImplicitStage* end = &stage;
    if (rule.scheme == ImplicitScheme::sdirk2) {
      ImplicitStage& second = extra.stage(model, i + 1);
      second_stage(model, h, extra.v, stage, second);
      second.v_next = stage.v_next;
      ++run.count;
      if (!solve(second)) break;
      end = &second;
    }
    for (int tree = 0; tree < model.num_trees; ++tree)
      if (islands.moves(tree))
        copy_tree(model, tree, end->q_next.data(), end->v_next.data(), extra.q.data(), extra.v.data());
  }

  find_limits_met(model, options, r, run, extra);
  islands.end_run(extra.marks);

  // What has come to its end stays.
  bool any = model.num_trees == 0;
  for (int tree = 0; tree < model.num_trees; ++tree)
    any = any || islands.moves(tree);
  if (!any) return;
  for (int i = run.first; i < run.first + run.count; ++i)
    leave_others(extra.stages[i]);
  run.reason =
      spin_limit_reason(rule.scheme == ImplicitScheme::bdf1 ? extra.start->shift() : extra.newton->equation.spin());
  extra.count += run.count;
  extra.runs.push_back(run);
}

/// Does a run move the tree?
bool has_tree(const ImplicitExtra& extra, const ImplicitRun& run, int tree) {
  return extra.stages[run.first].has(tree);
}

/// Islands that start again are left out of what they had done; runs of nobody are dropped.
void leave_out_waiting(const Model& model, const StepRecord& r, ImplicitExtra& extra) {
  for (int i = 0; i < extra.count; ++i)
    for (int tree = 0; tree < model.num_trees; ++tree)
      if (extra.islands->waits(tree)) extra.stages[i].leave_out(model, tree, r.q.data());

  std::size_t runs = 0;
  int count = 0;
  for (ImplicitRun run : extra.runs) {
    bool any = false;
    for (int tree = 0; tree < model.num_trees; ++tree)
      any = any || has_tree(extra, run, tree);
    if (!any) continue;
    for (int i = 0; i < run.count; ++i)
      std::swap(extra.stages[count + i], extra.stages[run.first + i]);
    run.first = count;
    count += run.count;
    extra.runs[runs++] = run;
  }
  extra.runs.resize(runs);
  extra.count = count;
}

/// The state in which several runs have ended, with its contacts. False: some of them join islands, which start again.
bool evaluate_end(const Model& model, const StepOptions& options, const StepRecord& r, ImplicitExtra& extra) {
  if (!extra.end) extra.end.emplace(model);
  ImplicitStage& end = *extra.end;
  end.c = options.constraints.timestep;
  end.q_next = extra.q;
  end.v_next = extra.v;
  for (int d = 0; d < model.nv; ++d)
    end.acceleration[d] = (extra.v[d] - r.v[d]) / end.c;

  ImplicitEquation& equation = extra.newton->equation;
  equation.begin(model, options, {r.u.data(), r.tau.data(), &r.fext}, end);
  equation.evaluate_end(model, options, end);
  if (!extra.islands->join(model, equation.contacts.rows)) return true;
  leave_out_waiting(model, r, extra);
  return false;
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
  if (extra.has(ImplicitScheme::semi_implicit)) {
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
void remember(const Model& model, ImplicitScheme scheme, const StepOptions& options, const StepRecord& r,
              const ImplicitExtra& extra, StepMemory& memory) {
  if (scheme != ImplicitScheme::bdf2 || options.collision.frozen_cache) return;
  memory.forgotten.clear();
  for (const ImplicitRun& run : extra.runs) {
    if (run.scheme != ImplicitScheme::bdf1) continue;
    memory.forgotten.resize(model.num_trees, 0);
    for (int tree = 0; tree < model.num_trees; ++tree)
      if (has_tree(extra, run, tree)) memory.forgotten[tree] = 1;
  }
  if (std::all_of(memory.forgotten.begin(), memory.forgotten.end(), [](unsigned char x) { return x != 0; }) &&
      !memory.forgotten.empty())
    return memory.forget_states();
  memory.previous_q = r.q;
  memory.previous_v = r.v;
  memory.last_q = r.q_next;
  memory.last_v = r.v_next;
}

/// A step of one stage: its scheme, the state before, and the linearized stage.
template <class Pass, class Extra, class Views>
void visit_kept(Pass& pass, Extra& extra, Views& views) {
  pass.value(extra.runs[0].scheme);
  kept::whole(pass, extra.previous_q);
  kept::whole(pass, extra.previous_v);
  visit(pass, views);
}

/// The only stage of a step whose end is known.
void follow_stage(const Model& model, const StepOptions& options, const StepRecord& r, ImplicitExtra& extra) {
  extra.count = 1;
  extra.runs[0] = {extra.runs[0].scheme, 1, 0, 1, nullptr};
  ImplicitStage& stage = extra.stage(model, 0);
  begin_stage(model, extra.runs[0].scheme, options.constraints.timestep, r.q, r.v, extra, stage);
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
  out->runs = runs;
  out->count = count;
  out->end = end;
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

  std::size_t bytes = sizeof *this + numbers * sizeof(double) + runs.capacity() * sizeof(ImplicitRun) +
                      marks.capacity() + (end ? end->bytes() : 0);
  for (int i = 0; i < count; ++i)
    bytes += stages[i].bytes();
  return bytes;
}

ImplicitStage& ImplicitExtra::stage(const Model& model, int i) {
  while (int(stages.size()) <= i)
    stages.emplace_back(model);
  stages[i].left_out.clear();
  return stages[i];
}

bool ImplicitExtra::has(ImplicitScheme scheme) const {
  return std::any_of(runs.begin(), runs.end(), [&](const ImplicitRun& run) { return run.scheme == scheme; });
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
  if (!extra.islands) {
    extra.islands = std::make_unique<StepIslands>(model);
  }
  StepIslands& islands = *extra.islands;
  find_what_goes_on(model, options, memory, r, extra.marks);
  islands.begin(model, method, options.implicit.max_halvings, extra.marks);
  if (!memory.previous_q.empty()) take_state_before(memory, extra);

  // Run by run, until all islands are at the end.
  clear_constraints(r);
  extra.runs.clear();
  extra.count = 0;
  extra.q = r.q;
  extra.v = r.v;
  do {
    while (islands.choose())
      run_islands(model, options, r, extra);
  } while (extra.runs.size() > 1 && !evaluate_end(model, options, r, extra));

  // What the solver says of it.
  const bool solved = islands.solved();
  const auto is_divided = [](const ImplicitRun& run) { return run.parts > 1; };
  r.solution.iterations = islands.iterations();
  r.solution.residual = islands.residual();
  r.solution.relaxation = 0;
  r.solution.status = solved ? SolveStatus::solved : SolveStatus::failed;
  r.reason = nullptr;
  for (const ImplicitRun& run : extra.runs)
    if (run.reason) r.reason = run.reason;
  if (!solved)
    r.reason = "failed: Newton's method did not converge, nor in parts of the step; its best iterate was used";
  else if (std::any_of(extra.runs.begin(), extra.runs.end(), is_divided))
    r.reason = "solved in parts: Newton's method did not converge on the whole step";
  r.solution.exact_residual = r.solution.residual;

  // Factors for the way back, while they are there. What goes to the record stays where it is.
  extra.linearized.reset();
  extra.recalled.reset();
  if (options.keep_steps && extra.is_single()) {
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
  remember(model, method, options, r, extra, memory);
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
  extra.runs.resize(1);
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
    remember(model, method, options, r, extra, memory);
    return true;
  }

  // One stage of all trees, with the solution that is known.
  extra.linearized.reset();
  extra.recalled.reset();
  if (method == ImplicitScheme::bdf2) {
    find_what_goes_on(model, options, memory, r, extra.marks);
    if (std::find(extra.marks.begin(), extra.marks.end(), 0) != extra.marks.end()) return false;
    take_state_before(memory, extra);
  }
  extra.runs.resize(1);
  extra.runs[0].scheme = method;
  follow_stage(model, options, r, extra);

  // It must end where the step did, and by the method of this stage.
  if (!same(extra.stages[0].q_next.data(), r.q_next.data(), r.q_next.size())) return false;
  if (method == ImplicitScheme::bdf2) {
    find_limits_met(model, options, r, extra.runs[0], extra);
    if (std::find(extra.marks.begin(), extra.marks.end(), 1) != extra.marks.end()) return false;
  }
  take_ends(options, r);
  remember(model, method, options, r, extra, memory);
  return true;
}

}  // namespace coulomb

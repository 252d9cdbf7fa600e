#include "coulomb/stepping/semi_implicit.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/model/configuration.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

// tau += J^T of the user's wrenches at the centres of mass.
void add_external_wrenches(const Model& model, StepRecord& r, double* tau) {
  if (r.fext.empty()) return;
  std::fill(r.scratch.begin(), r.scratch.end(), 0.0);
  for (int b = 1; b < model.num_bodies; ++b) {
    const int d = model.body_last_dof[b];
    if (d < 0) continue;
    const double* wrench = r.fext.data() + 6 * b;
    double com[3], arm[3], moment[3];
    rotate(r.dynamics.body_rotation.data() + 9 * b, model.body_com.data() + 3 * b, com);
    add3(com, r.dynamics.body_position.data() + 3 * b, com);
    relative_point(model, r.dynamics, b, com, arm);
    cross3(arm, wrench, moment);
    for (int i = 0; i < 3; ++i) {
      r.scratch[8 * d + i] += wrench[i];
      r.scratch[8 * d + 3 + i] += wrench[3 + i] + moment[i];
    }
  }
  for (int d = model.nv - 1; d >= 0; --d) {
    tau[d] += dot6(r.dynamics.columns.data() + 8 * d, r.scratch.data() + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i) r.scratch[8 * parent + i] += r.scratch[8 * d + i];
  }
}

// What the free velocity and every derivative start from.
void evaluate_dynamics(const Model& model, const StepOptions& options, StepRecord& r) {
  const double h = options.constraints.timestep;
  for (int d = 0; d < model.nv; ++d) r.implicit_damping[d] = h * model.dof_damping[d];
  velocities(model, r.v.data(), r.dynamics);
  mass_matrix(model, r.dynamics);
  factor(model, r.implicit_damping.data(), r.dynamics);
  joint_forces(model, r.configuration(), r.v.data(), r.u.data(), r.joint_forces);
}

void free_velocity(const Model& model, const StepOptions& options, StepRecord& r) {
  const double h = options.constraints.timestep;
  evaluate_dynamics(model, options, r);
  bias(model, r.dynamics);
  for (int d = 0; d < model.nv; ++d) r.acceleration[d] = r.joint_forces.tau[d] + r.tau[d] - r.dynamics.bias[d];
  add_external_wrenches(model, r, r.acceleration.data());
  solve_mass(model, r.dynamics, r.acceleration.data());
  for (int d = 0; d < model.nv; ++d) r.v_free[d] = r.v[d] + h * r.acceleration[d];
}

void collect_rows(const Model& model, const StepOptions& options, StepRecord& r) {
  link_twists(model, r.dynamics, r.v.data(), r.twist.data());
  const RowContext context{model,      r.dynamics,      options.constraints, r.configuration(),
                           r.v.data(), r.v_free.data(), r.twist.data()};
  r.rows.clear();
  add_contact_rows(context, r.collision.contacts, r.rows);
  add_equality_rows(context, r.rows);
  add_joint_limit_rows(context, r.rows);
  add_dry_friction_rows(context, r.rows);
}

bool has_corrections(const ConstraintRows& rows) {
  for (const BodyRows& b : rows.body_rows)
    if (b.contact >= 0 && b.restitution == 0 && rows.bias[b.row + 2] < 0) return true;
  for (const DofRow& d : rows.dof_rows)
    if (rows.blocks[d.block].type == BlockType::limit && rows.bias[d.row] < 0) return true;
  return false;
}

// Takes the position correction out of contacts and joint limits: bodies stop where they are instead of separating.
void drop_corrections(ConstraintRows& rows, ConstraintProblem& problem) {
  const auto drop = [&](int row, double& slope) {
    problem.g[row] -= rows.bias[row];
    rows.bias[row] = slope = 0;
  };
  for (BodyRows& b : rows.body_rows)
    if (b.contact >= 0 && b.restitution == 0 && rows.bias[b.row + 2] < 0) drop(b.row + 2, b.dbias_dphi);
  for (DofRow& d : rows.dof_rows)
    if (rows.blocks[d.block].type == BlockType::limit && rows.bias[d.row] < 0) drop(d.row, d.dbias_dphi);
}

// A correction can contradict the other constraints (a self-contact locked by friction cannot separate); the velocity problem
// without it is the one that has to hold, so it is what a failed solve falls back to.
// Bodies that locked each other stay so for many steps: then one short attempt with the correction is enough.
void solve(const StepOptions& options, ConstraintSolver& solver, const StepMemory& memory, StepRecord& r) {
  const WarmStart* warm = options.warm_start ? &r.warm_start : nullptr;
  r.corrections_dropped = false;
  SolverSettings settings = options.solver;
  const bool corrections = has_corrections(r.rows);
  if (corrections) settings.last_rung = memory.corrections_dropped ? 1 : 2;
  solver.solve(r.problem, settings, warm, r.solution, &r.factor);
  if (r.solution.status == SolveStatus::solved || !corrections) return;
  drop_corrections(r.rows, r.problem);
  const int iterations = r.solution.iterations;
  r.corrections_dropped = true;
  solver.solve(r.problem, options.solver, warm, r.solution, &r.factor);
  r.solution.iterations += iterations;
}

// The problem without its matrix.
void outline_problem(const ConstraintRows& rows, ConstraintProblem& problem) {
  problem.resize(rows.num_rows);
  problem.blocks.assign(rows.blocks.begin(), rows.blocks.end());
  std::copy(rows.compliance.begin(), rows.compliance.end(), problem.R.begin());
}

// Impulses and modes of the last step for the blocks that persist. Contact impulses are kept in world axes, since frames jump.
void recall(const StepMemory& memory, const ConstraintRows& rows, WarmStart& warm) {
  warm.lambda.assign(rows.num_rows, 0.0);
  warm.known.assign(rows.num_blocks, 0);
  warm.mode.assign(rows.num_blocks, Mode::separating);
  const std::size_t count = memory.impulses.size();
  std::size_t cursor = 0, body_row = 0;
  for (int block = 0; block < rows.num_blocks; ++block) {
    const std::uint64_t key = rows.keys[block];
    const BodyRows* body = nullptr;
    if (body_row < rows.body_rows.size() && rows.body_rows[body_row].block == block) body = &rows.body_rows[body_row++];
    std::size_t i = cursor;  // both lists are nearly in the same order: search onward, then from the start
    while (i < count && memory.impulses[i].key != key) ++i;
    if (i == count)
      for (i = 0; i < cursor && memory.impulses[i].key != key;) ++i;
    if (i == count || memory.impulses[i].key != key) continue;
    cursor = i + 1;
    const StepMemory::Impulse& impulse = memory.impulses[i];
    const Block& b = rows.blocks[block];
    if (impulse.size != b.size) continue;
    warm.known[block] = 1;
    warm.mode[block] = impulse.mode;
    for (int k = 0; k < b.size; ++k)
      warm.lambda[b.row + k] = body && body->contact >= 0 ? dot3(body->axes[k], impulse.value) : impulse.value[k];
  }
}

}  // namespace

void remember(const StepRecord& record, StepMemory& memory) {
  const ConstraintRows& rows = record.rows;
  const SolverResult& solution = record.solution;
  memory.corrections_dropped = record.corrections_dropped;
  memory.impulses.clear();
  std::size_t body_row = 0;
  for (int block = 0; block < rows.num_blocks; ++block) {
    const BodyRows* body = nullptr;
    if (body_row < rows.body_rows.size() && rows.body_rows[body_row].block == block) body = &rows.body_rows[body_row++];
    const Block& b = rows.blocks[block];
    StepMemory::Impulse impulse;
    impulse.key = rows.keys[block], impulse.mode = solution.modes[block], impulse.size = b.size;
    for (int k = 0; k < b.size; ++k) {
      if (body && body->contact >= 0) axpy3(solution.lambda[b.row + k], body->axes[k], impulse.value);
      else impulse.value[k] = solution.lambda[b.row + k];
    }
    memory.impulses.push_back(impulse);
  }
}

bool all_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

// The state stays: any other finite one would be a guess.
void stand_still(StepRecord& r) {
  r.rows.clear();
  r.factor.valid = false;
  r.solution.lambda.clear(), r.solution.c.clear(), r.solution.modes.clear(), r.solution.margin.clear();
  r.solution.facets.clear();
  r.solution.status = SolveStatus::failed;
  r.solution.residual = 1, r.solution.relaxation = 0;
  r.corrections_dropped = false;
  r.q_next = r.q, r.v_next = r.v, r.v_free = r.v;
  std::fill(r.acceleration.begin(), r.acceleration.end(), 0.0);
}

// v+ = v_free + M^-1 J^T lambda, q+ = q (+) h v+.
void advance(const Model& model, double h, StepRecord& r) {
  std::fill(r.v_next.begin(), r.v_next.end(), 0.0);
  if (r.rows.num_rows > 0) {
    apply_rows_transposed(model, r.dynamics, r.rows, r.solution.lambda.data(), r.scratch.data(), r.v_next.data());
    solve_mass(model, r.dynamics, r.v_next.data());
  }
  for (int d = 0; d < model.nv; ++d) {
    r.v_next[d] += r.v_free[d];
    r.acceleration[d] = (r.v_next[d] - r.v[d]) / h;
    r.scratch[d] = h * r.v_next[d];
  }
  integrate(model, r.q.data(), r.scratch.data(), r.q_next.data());
}

StepRecord::StepRecord(const Model& model)
    : q(model.nq), v(model.nv), u(model.nu), tau(model.nv), q_next(model.nq), v_next(model.nv), acceleration(model.nv),
      v_free(model.nv), dynamics(model), collision(model), joint_forces(model), implicit_damping(model.nv),
      assembly(model), twist(8 * model.nv), twist_next(8 * model.nv), scratch(8 * model.nv + 8) {}

void solve_velocities(const Model& model, const StepOptions& options, ConstraintSolver& solver,
                      const StepMemory& memory, StepRecord& r) {
  free_velocity(model, options, r);
  collect_rows(model, options, r);
  assemble_problem(model, r.dynamics, r.rows, r.v_free.data(), r.assembly, r.problem);
  if (options.warm_start) recall(memory, r.rows, r.warm_start);
  solve(options, solver, memory, r);
}

bool semi_implicit_step(const Model& model, const StepOptions& options, ConstraintSolver& solver, StepMemory& memory,
                        StepRecord& r) {
  r.valid = false;
  kinematics(model, r.q.data(), r.dynamics);
  detect_contacts(model, r.dynamics.body_position.data(), r.dynamics.body_rotation.data(), options.collision,
                  memory.collision, r.collision);
  solve_velocities(model, options, solver, memory, r);
  advance(model, options.constraints.timestep, r);
  r.valid = true;
  if (!all_finite(r.v_next) || !all_finite(r.q_next) || !all_finite(r.acceleration)) {
    stand_still(r);
    if (!options.collision.frozen_cache) memory.reset();  // it may hold what is not finite
    return false;
  }
  if (!options.collision.frozen_cache) remember(r, memory);
  return true;
}

void recall_semi_implicit_step(const Model& model, const StepOptions& options, const std::byte* kept, bool matrices,
                               StepRecord& r) {
  restore_step(kept, r);
  kinematics(model, r.q.data(), r.dynamics);
  evaluate_dynamics(model, options, r);
  collect_rows(model, options, r);

  // a solution with its factor needs no matrix, unless ties are broken another way
  const bool factored = r.factor.valid && options.gradient.mode != GradientMode::complementarity_aware;
  if (matrices || !factored) assemble_problem(model, r.dynamics, r.rows, r.v_free.data(), r.assembly, r.problem);
  else outline_problem(r.rows, r.problem);
  if (r.corrections_dropped) drop_corrections(r.rows, r.problem);

  const double h = options.constraints.timestep;
  for (int d = 0; d < model.nv; ++d) r.acceleration[d] = (r.v_next[d] - r.v[d]) / h;
  r.reason = nullptr, r.valid = true;
}

}  // namespace coulomb

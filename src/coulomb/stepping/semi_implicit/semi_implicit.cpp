#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/constraints/assemble.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/corrections.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/model.hpp"
#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/semi_implicit/contacts_ahead.hpp"
#include "coulomb/stepping/semi_implicit/kept_step.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/step_workspace.hpp"

namespace coulomb {
namespace {

// Clamps of servos are found by rounds; one servo by itself takes two at most. All that are wrong change together, then one by one and with the
// contacts that there are by then: which contacts come depends on the clamps, and both would change without end. Where nothing touches it ends
// by itself (Murty's rule). With 4 and 16 all of 12,000 random steps of arms of seven servos ended at the law, and all but one of 1.3 million
// steps of a Go1 that flails (tests/robustness/test_soak.py; one in 100,000 does not where every round looks for contacts).
constexpr int joint_clamp_rounds = 4;
constexpr int most_clamp_rounds = 16;

/// tau += J^T of the user's wrenches at the centres of mass.
void add_external_wrenches(const Model& model, StepRecord& r, double* tau) {
  if (r.fext.empty()) return;
  std::fill(r.scratch.begin(), r.scratch.end(), 0.0);
  for (int b = 1; b < model.num_bodies; ++b) {
    const int d = model.body_last_dof[b];
    if (d < 0) continue;

    // About the tree's reference, at the body's last dof.
    const double* wrench = r.fext.data() + 6 * b;
    double com[3];
    double arm[3];
    double moment[3];
    rotate(r.dynamics.body_rotation.data() + 9 * b, model.body_com.data() + 3 * b, com);
    add3(com, r.dynamics.body_position.data() + 3 * b, com);
    relative_point(model, r.dynamics, b, com, arm);
    cross3(arm, wrench, moment);
    for (int i = 0; i < 3; ++i) {
      r.scratch[8 * d + i] += wrench[i];
      r.scratch[8 * d + 3 + i] += wrench[3 + i] + moment[i];
    }
  }

  // From the leaves to the roots.
  for (int d = model.nv - 1; d >= 0; --d) {
    tau[d] += dot6(r.dynamics.columns.data() + 8 * d, r.scratch.data() + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i)
      r.scratch[8 * parent + i] += r.scratch[8 * d + i];
  }
}

/// What the free velocity and every derivative start from.
void evaluate_dynamics(const Model& model, const StepOptions& options, StepRecord& r) {
  const double h = options.constraints.timestep;
  joint_forces(model, r.dynamics, r.configuration(), r.v.data(), r.u.data(), r.joint_forces);
  implicit_gains(model, options.forces_at_end, h, r.joint_forces, r.gains);

  // Inertia with what is implicit: M + h D + h^2 K.
  velocities(model, r.v.data(), r.dynamics);
  mass_matrix(model, r.dynamics);
  factor(model, r.gains.inertia, r.dynamics);

  // What spins torque-free.
  if (options.torque_free_spin)
    spin_shift(model, r.dynamics, r.v.data(), h, r.spin, {r.flying()});
  else
    r.spin.clear();
}

}  // namespace

/// (S3): the velocity after the step without constraint impulses.
void free_velocity(const Model& model, const StepOptions& options, StepRecord& r) {
  const double h = options.constraints.timestep;
  evaluate_dynamics(model, options, r);

  // tau - b, of joints, user and wrenches.
  bias(model, r.dynamics);
  for (int d = 0; d < model.nv; ++d)
    r.acceleration[d] = r.joint_forces.tau[d] + r.tau[d] - r.dynamics.bias[d];
  add_external_wrenches(model, r, r.acceleration.data());

  // What springs lose on the way at the velocity of the start.
  if (r.gains.any_stiffness) r.gains.stiffness.add_product(-h, r.v.data(), r.acceleration.data());

  // M Delta / h among the forces: Mh^-1 M Delta = Delta - Mh^-1 (h D + h^2 K) Delta.
  const double* shift = r.spin.velocity.data();
  if (r.spin.any) r.gains.inertia.add_product(-1 / h, shift, r.acceleration.data());

  // v_free = v + Delta + h Mh^-1 (...)
  solve_mass(model, r.dynamics, r.acceleration.data());
  for (int d = 0; d < model.nv; ++d)
    r.v_free[d] = r.v[d] + h * r.acceleration[d];
  if (r.spin.any)
    for (int d = 0; d < model.nv; ++d)
      r.v_free[d] += shift[d];
}

namespace {

/// All that touches or holds, law by law.
void collect_rows(const Model& model, const StepOptions& options, StepRecord& r) {
  link_twists(model, r.dynamics, r.v.data(), r.twist.data());
  const RowContext context{model,      r.dynamics,      options.constraints, r.configuration(),
                           r.v.data(), r.v_free.data(), r.twist.data(),      r.flying()};
  r.rows.clear();
  add_contact_rows(context, r.collision.contacts, r.rows);
  add_equality_rows(context, r.rows);
  add_joint_limit_rows(context, r.rows);
  add_dry_friction_rows(context, r.rows);
  add_tendon_spring_rows(context, r.rows);
}

// Leaves the rows of the islands that have one of these trees.
void keep_struck(const Model& model, StruckIslands& struck, StepRecord& r) {
  struck.islands.assign(r.islands.pool.size(), 0);
  for (int t = 0; t < model.num_trees; ++t)
    if (struck.trees[t]) struck.islands[r.islands.of_tree(t)] = 1;

  struck.blocks.resize(r.rows.num_blocks);
  for (int b = 0; b < r.rows.num_blocks; ++b)
    struck.blocks[b] = struck.islands[r.islands.of_block(b)];
  r.rows.keep(struck.blocks);
  r.islands.find(model, r.rows);
}

/// Do two trees of this island touch?
bool has_contact_of_trees(const ConstraintProblem& problem) {
  for (std::size_t b = 0; b < problem.segments.size(); ++b) {
    const auto& [first, second] = problem.segments[b];
    if (problem.blocks[b].is_contact() && first.tree >= 0 && second.tree >= 0) return true;
  }
  return false;
}

/// Trees that lie on one another have the accuracy that their motion asks for: errors that fast bodies do not feel add up in a stack at
/// rest until it falls.
void note_speeds(const Model& model, StepRecord& r) {
  for (int index : r.islands.order) {
    Island& island = r.islands.pool[index];
    if (!has_contact_of_trees(island.problem)) continue;
    double fastest = 0;
    for (int tree : island.trees)
      for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d)
        fastest = std::max(fastest, std::abs(r.v[d]));
    island.problem.speed = fastest;
  }
}

// Rows, islands and their problems.
void collect_problems(const Model& model, const StepOptions& options, StepRecord& r, StruckIslands* struck = nullptr) {
  collect_rows(model, options, r);
  r.islands.find(model, r.rows);
  if (struck) keep_struck(model, *struck, r);
  const bool dense = options.solver.method != SolverMethod::automatic;
  assemble_problems(model, r.dynamics, r.rows, r.v_free.data(), dense, r.assembly, r.islands);
  note_speeds(model, r);

  // Position errors ask for what moderate motions reach; in an instant for nothing.
  r.corrections.clear();
  if (options.constraints.gaps != GapRule::impact) bound_corrections(r.rows, r.islands, r.corrections);
  r.out_of_reach = r.corrections.out_of_reach;
}

/// A linear curve has a kink at full depth, and where an error of either sign is zero.
bool is_at_kink(const SpringCurve& curve, double gap, bool both_signs) {
  if (curve.power != 1 || curve.start == curve.end) return false;
  return std::abs(gap + curve.full_depth) <= corner_width || (both_signs && std::abs(gap) <= corner_width);
}

/// The same of an equality of bodies, by the size of its error.
void follow_error(const Model& model, double h, const BodyRows& b, StepRecord& r) {
  const auto springs = equality_springs(model, r.rows, b);
  if (!springs) return;
  SoftBlock& soft = r.rows.soft_blocks[b.soft];
  for (int i = 0; i < b.size; ++i) {
    const double approach = row_velocity(model, r.dynamics, r.twist.data(), b, i);
    const SpringState state{h, b.phi[i], approach, r.solution.lambda[b.row + i]};
    soft.slope[i] = -curve_side(*springs->curve, springs->of_row(i), state, -soft.error, true);
  }
  if (is_at_kink(*springs->curve, -soft.error, true)) r.rows.blocks[b.block].corner = true;
}

/// Springs whose numbers depend on the depth: their rows ask for something else when the gap changes, by their impulse.
void follow_curves(const Model& model, const StepOptions& options, StepRecord& r) {
  if (!model.has_spring_curves || options.constraints.contact == ContactLaw::penalty) return;
  const double h = options.constraints.timestep;
  const std::vector<double>& lambda = r.solution.lambda;
  for (BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) {
      follow_error(model, h, b, r);
      continue;
    }
    const PairPenalty& pair = model.pair_penalty[r.collision.contacts[b.contact].pair];
    const auto spring = contact_spring(pair, b.phi[2]);
    if (!spring) continue;
    const SpringState state{h, b.phi[2], b.approach, lambda[b.row + 2]};
    b.dbias_dphi += curve_side(pair.curve, *spring, state, b.phi[2]);
    if (is_at_kink(pair.curve, b.phi[2], false)) r.rows.blocks[b.block].corner = true;
  }
  for (DofRow& d : r.rows.dof_rows) {
    const auto law = row_law(model, r.rows, d);
    if (!law || !law->curve) continue;
    const double gap = law->both_signs ? -std::abs(d.phi) : d.phi;
    const SpringState state{h, d.phi, d.approach, lambda[d.row]};
    d.dbias_dphi += law->depth_sign * curve_side(*law->curve, law->spring, state, gap, law->both_signs);
    if (is_at_kink(*law->curve, gap, law->both_signs)) r.rows.blocks[d.block].corner = true;
  }
}

/// Every island by itself.
void solve(const StepOptions& options, ConstraintSolver& solver, StepRecord& r) {
  for (int index : r.islands.order) {
    Island& island = r.islands.pool[index];
    if (island.blocks.empty()) continue;
    solver.solve(island.problem, options.solver, options.warm_start ? &island.warm_start : nullptr, island.solution);
  }

  // Together again.
  r.islands.gather_solution(r.rows, r.solution);
  const auto name = [&](const std::vector<int>& blocks, std::vector<std::uint64_t>& keys) {
    keys.clear();
    for (int block : blocks)
      keys.push_back(r.rows.keys[block]);
  };
  name(r.solution.contradictory, r.contradictory);
  name(r.solution.jammed, r.jammed);
  name(r.solution.unsolved, r.unsolved);
  name(r.solution.badly_scaled, r.badly_scaled);

  // The problem is solved as posed, but position errors stay.
  if (r.out_of_reach.empty()) return;
  r.solution.status = std::max(r.solution.status, SolveStatus::relaxed);
  r.solution.relaxation = std::max(r.solution.relaxation, r.corrections.compliance);
}

// Finds impulses of the memory by key. It and the rows are nearly in the same order: the next one is mostly the one wanted; else of
// those with the same key the first one onward, then from the start.
class Recollection {
 public:
  Recollection(const std::vector<StepMemory::Impulse>& impulses, std::vector<int>& order)
      : impulses_(impulses), order_(order) {
    order_.clear();
  }

  const StepMemory::Impulse* find(std::uint64_t key) {
    if (cursor_ < impulses_.size() && impulses_[cursor_].key == key) return &impulses_[cursor_++];

    // Among those with its key, from where the last one was found.
    if (order_.empty()) sort();
    const auto before = [&](int i, std::uint64_t k) { return impulses_[i].key < k; };
    const auto first = std::lower_bound(order_.begin(), order_.end(), key, before);
    auto found = first;
    while (found != order_.end() && impulses_[*found].key == key && std::size_t(*found) < cursor_)
      ++found;
    if (found == order_.end() || impulses_[*found].key != key) found = first;
    if (found == order_.end() || impulses_[*found].key != key) return nullptr;
    cursor_ = std::size_t(*found) + 1;
    return &impulses_[*found];
  }

 private:
  void sort() {
    order_.resize(impulses_.size());
    for (std::size_t i = 0; i < order_.size(); ++i)
      order_[i] = int(i);
    std::sort(order_.begin(), order_.end(), [&](int i, int j) {
      return impulses_[i].key != impulses_[j].key ? impulses_[i].key < impulses_[j].key : i < j;
    });
  }

  const std::vector<StepMemory::Impulse>& impulses_;
  std::vector<int>& order_;
  std::size_t cursor_ = 0;
};

/// Of what is remembered of a block: the impulse along row k, of a contact out of its torque.
double along_row(const BodyRows* body, bool contact, int k, const double* value) {
  return contact ? dot3(body->axes[body->turning_axis(k)], value + 3) / body->turning_weight(k) : value[k];
}

/// Impulses and modes of the last step for the blocks that persist. Contact impulses are kept in world axes, since frames jump: force, then
/// torque. What gave
/// way without proof (compliance 0) is no start: the next step is judged as if it were the first.
void recall(const StepMemory& memory, bool automatic, std::vector<int>& order, StepRecord& r) {
  const ConstraintRows& rows = r.rows;
  for (int index : r.islands.order) {
    Island& island = r.islands.pool[index];
    WarmStart& warm = island.warm_start;
    for (auto* values : {&warm.lambda, &warm.lambda_0, &warm.lambda_1})
      values->assign(island.rows.size(), 0.0);
    warm.known.assign(island.blocks.size(), 0);
    warm.mode.assign(island.blocks.size(), Mode::separating);
    warm.compliance = 0;
    warm.contradictory = false;
  }

  Recollection recollection(memory.impulses, order);
  std::size_t body_row = 0;
  for (int block = 0; block < rows.num_blocks; ++block) {
    const BodyRows* body = nullptr;
    if (body_row < rows.body_rows.size() && rows.body_rows[body_row].block == block) body = &rows.body_rows[body_row++];

    // What was there before, if it had as many rows.
    const StepMemory::Impulse* impulse = recollection.find(rows.keys[block]);
    if (!impulse || impulse->size != rows.blocks[block].size) continue;
    const bool gave_way = automatic && impulse->compliance == 0;
    if (gave_way) continue;
    Island& island = r.islands.pool[r.islands.of_block(block)];
    WarmStart& warm = island.warm_start;
    const int own = r.islands.block_index[block];
    const int row = island.problem.blocks[own].row;

    // Impulses of all levels, along the rows there are now.
    const bool contact = body && body->contact >= 0;
    warm.known[own] = 1;
    warm.mode[own] = impulse->mode;
    warm.compliance = std::max(warm.compliance, impulse->compliance);
    warm.contradictory = warm.contradictory || impulse->compliance < 0;
    const int along_axes = contact ? 3 : 0;
    for (int k = 0; k < along_axes; ++k) {
      warm.lambda[row + k] = dot3(body->axes[k], impulse->value);
      warm.lambda_0[row + k] = dot3(body->axes[k], impulse->value_0);
      warm.lambda_1[row + k] = dot3(body->axes[k], impulse->value_1);
    }
    for (int k = along_axes; k < impulse->size; ++k) {
      warm.lambda[row + k] = along_row(body, contact, k, impulse->value);
      warm.lambda_0[row + k] = along_row(body, contact, k, impulse->value_0);
      warm.lambda_1[row + k] = along_row(body, contact, k, impulse->value_1);
    }
  }
}

}  // namespace

void remember(const StepRecord& record, StepMemory& memory) {
  const ConstraintRows& rows = record.rows;
  const SolverResult& solution = record.solution;
  const std::vector<double>& lambda_0 =
      solution.lambda_0.size() == solution.lambda.size() ? solution.lambda_0 : solution.lambda;
  const std::vector<double>& lambda_1 =
      solution.lambda_1.size() == solution.lambda.size() ? solution.lambda_1 : solution.lambda;

  // Block by block, in the order of the rows.
  memory.impulses.clear();
  std::size_t body_row = 0;
  for (int block = 0; block < rows.num_blocks; ++block) {
    const BodyRows* body = nullptr;
    if (body_row < rows.body_rows.size() && rows.body_rows[body_row].block == block) body = &rows.body_rows[body_row++];

    // Contacts in world axes, others along their rows.
    const Block& b = rows.blocks[block];
    StepMemory::Impulse impulse;
    impulse.key = rows.keys[block];
    impulse.mode = solution.modes[block];
    impulse.size = b.size;
    impulse.compliance = record.islands.compliance_of_block(block);
    for (int k = 0; k < b.size; ++k) {
      if (body && body->contact >= 0 && k >= 3) {
        const double* axis = body->axes[body->turning_axis(k)];
        const double weight = body->turning_weight(k);
        axpy3(weight * solution.lambda[b.row + k], axis, impulse.value + 3);
        axpy3(weight * lambda_0[b.row + k], axis, impulse.value_0 + 3);
        axpy3(weight * lambda_1[b.row + k], axis, impulse.value_1 + 3);
      } else if (body && body->contact >= 0) {
        axpy3(solution.lambda[b.row + k], body->axes[k], impulse.value);
        axpy3(lambda_0[b.row + k], body->axes[k], impulse.value_0);
        axpy3(lambda_1[b.row + k], body->axes[k], impulse.value_1);
      } else {
        impulse.value[k] = solution.lambda[b.row + k];
        impulse.value_0[k] = lambda_0[b.row + k];
        impulse.value_1[k] = lambda_1[b.row + k];
      }
    }
    memory.impulses.push_back(impulse);
  }
}

bool all_finite(const std::vector<double>& x) {
  return std::all_of(x.begin(), x.end(), [](double value) { return std::isfinite(value); });
}

/// The state stays: any other finite one would be a guess.
void stand_still(StepRecord& r) {
  r.rows.clear();
  r.islands.order.clear();
  r.solution.lambda.clear();
  r.solution.c.clear();
  r.solution.modes.clear();
  r.solution.margin.clear();
  r.solution.facets.clear();
  r.solution.lambda_0.clear();
  r.solution.lambda_1.clear();
  r.solution.centre.clear();
  r.clear_names();

  // It has failed, whatever the solver says.
  r.solution.status = SolveStatus::failed;
  r.solution.residual = r.solution.exact_residual = 1;
  r.solution.relaxation = 0;
  r.q_next = r.q;
  r.v_next = r.v;
  r.v_free = r.v;
  std::fill(r.acceleration.begin(), r.acceleration.end(), 0.0);
}

/// v+ = v_free + M^-1 J^T lambda, q+ = q (+) h v+.
void advance(const Model& model, double h, StepRecord& r) {
  std::fill(r.v_next.begin(), r.v_next.end(), 0.0);
  if (r.rows.num_rows > 0) {
    apply_rows_transposed(model, r.dynamics, r.rows, r.solution.lambda.data(), r.scratch.data(), r.v_next.data());
    solve_mass(model, r.dynamics, r.v_next.data());
  }

  // The whole step at the new velocity.
  for (int d = 0; d < model.nv; ++d) {
    r.v_next[d] += r.v_free[d];
    r.acceleration[d] = (r.v_next[d] - r.v[d]) / h;
    r.scratch[d] = h * r.v_next[d];
  }
  integrate(model, r.q.data(), r.scratch.data(), r.q_next.data());
}

/// What of the step could not be followed to its end.
static const char* limit_reason(const StepRecord& r) {
  const char* clamps = clamp_limit_reason(r.joint_forces.clamps);
  return clamps ? clamps : spin_limit_reason(r.spin);
}

bool clamps_change(const Model& model, const StepOptions& options, int round, StepRecord& r) {
  ForceClamps& clamps = r.joint_forces.clamps;
  clamps.unsettled = false;
  if (!clamps.any) return false;

  // The last round stays, and the step is not solved where it is not the law's.
  const StepMotion motion{r.gains.rule, options.constraints.timestep, r.v.data(), r.v_next.data()};
  if (round == most_clamp_rounds) {
    clamps.unsettled = !clamps_hold(model, motion, r.joint_forces);
    if (clamps.unsettled) r.solution.status = std::max(r.solution.status, SolveStatus::max_iterations);
    return false;
  }

  clamps.known = true;
  const ClampRule rule = round < joint_clamp_rounds ? ClampRule::by_turns : ClampRule::one_by_one;
  return judge_clamps_at_end(model, motion, rule, r.joint_forces);
}

void StepRecord::clear_names() {
  for (auto* blocks : {&solution.contradictory, &solution.jammed, &solution.unsolved, &solution.badly_scaled})
    blocks->clear();
  for (auto* keys : {&contradictory, &jammed, &unsolved, &badly_scaled, &out_of_reach})
    keys->clear();
  solution.scale_ratio = 0;
}

StepRecord::StepRecord(const Model& model)
    : q(model.nq), v(model.nv), u(model.nu), tau(model.nv), q_next(model.nq), v_next(model.nv), acceleration(model.nv),
      v_free(model.nv), dynamics(model), collision(model), joint_forces(model), spin(model), gains(model),
      islands(model), assembly(model), twist(8 * model.nv), twist_next(8 * model.nv), scratch(8 * model.nv + 8) {}

StepWorkspace::StepWorkspace(const Model& model) : to_come(model), united(model), travel(6 * model.num_bodies) {}

void solve_constraints(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                       const StepMemory& memory, StepRecord& r, StruckIslands* struck) {
  collect_problems(model, options, r, struck);
  if (options.warm_start) {
    const bool automatic = options.solver.method == SolverMethod::automatic;
    recall(memory, automatic, workspace.recall_order, r);
  }
  solve(options, workspace.solver, r);
  follow_curves(model, options, r);
}

void solve_velocities(const Model& model, const StepOptions& options, StepWorkspace& workspace,
                      const StepMemory& memory, StepRecord& r, StruckIslands* struck) {
  free_velocity(model, options, r);
  solve_constraints(model, options, workspace, memory, r, struck);
}

bool semi_implicit_step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                        StepRecord& r) {
  r.valid = false;

  // In the order of ARCHITECTURE.md: kinematics, free velocity, contacts, problem and solution, new state; again where that state shows
  // that what was to pass meets, or that a servo's force is at another bound.
  kinematics(model, r.q.data(), r.dynamics);
  r.joint_forces.clamps.known = false;
  for (int round = 0;; ++round) {
    free_velocity(model, options, r);
    const bool together = round <= joint_clamp_rounds;
    if (together) detect_contacts_ahead(model, options, workspace, memory.collision, r);
    do {
      solve_constraints(model, options, workspace, memory, r);
      advance(model, options.constraints.timestep, r);
    } while (restore_contacts_that_meet(model, options, r, workspace));
    if (!clamps_change(model, options, round, r)) break;
  }
  r.reason = limit_reason(r);
  r.valid = true;

  // Overflow: the state stays, and there is no derivative.
  if (!all_finite(r.v_next) || !all_finite(r.q_next) || !all_finite(r.acceleration)) {
    stand_still(r);
    // The memory may hold what is not finite.
    if (!options.collision.frozen_cache) memory.reset();
    return false;
  }
  if (!options.collision.frozen_cache) remember(r, memory);
  return true;
}

void recall_semi_implicit_step(const Model& model, const StepOptions& options, const std::byte* kept, StepRecord& r) {
  // All but the solve, which is known.
  restore_step(kept, r);
  kinematics(model, r.q.data(), r.dynamics);
  r.joint_forces.clamps.known = true;
  evaluate_dynamics(model, options, r);
  collect_problems(model, options, r);
  r.islands.scatter_solution(r.solution);
  follow_curves(model, options, r);

  const double h = options.constraints.timestep;
  for (int d = 0; d < model.nv; ++d)
    r.acceleration[d] = (r.v_next[d] - r.v[d]) / h;
  r.reason = limit_reason(r);
  r.valid = true;
}

}  // namespace coulomb

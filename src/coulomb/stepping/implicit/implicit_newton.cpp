#include "coulomb/stepping/implicit/implicit_newton.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/model/scene/topology.hpp"

namespace coulomb {
namespace {

constexpr double fast = 0.05;    // contraction below which the old matrix is good enough
constexpr double stalled = 100;  // times what is allowed: solved, if no correction makes it less
// Correction that leads no further, to the velocity that the forces make in the stage.
constexpr double negligible = 1e-8;
constexpr double small_residual = 1e-6;  // of its terms, and of that correction
constexpr double smallest = 1e-280;      // no meaning below
constexpr double rounding_units = 2e-15;
constexpr int max_halvings = 12;
constexpr int most_jumps = 2;
constexpr double solved_exactly = 1e-3;  // ratio below which a solution is not polished

// A search for a change of sign ends at this part of the power at its start. Friction stops a body within so small a part of a step that
// ten sections do not find it.
constexpr double small_power = 0.1;
constexpr int max_sections = 20;

void copy(const NewtonIsland& island, const std::vector<double>& from, std::vector<double>& to) {
  for (int d : island.dofs)
    to[d] = from[d];
}

}  // namespace

ImplicitNewton::ImplicitNewton(const Model& model)
    : equation(model), factor_(model.nv), coupled_(model), pool_(model.num_trees), allowed_(model.nv), step_(model.nv),
      next_step_(model.nv), from_(model.nv), best_(model.nv), work_(model.nv), size_(model.nv) {
  order_.reserve(model.num_trees);
  old_order_.reserve(model.num_trees);
}

/// Joins what the last evaluation couples. True: something was apart.
bool ImplicitNewton::is_coupled_anew(const Model& model) {
  if (order_.size() == 1) return false;
  const bool springs = coupled_.join(model, equation.springs.rows);
  return coupled_.join(model, equation.contacts.rows) || springs;
}

/// Islands of the coupled trees, with their dofs; nothing else of them is set.
void ImplicitNewton::find_islands(const Call& call) {
  const Model& model = call.model;
  order_.clear();
  for (int tree = 0; tree < model.num_trees; ++tree) {
    if (!call.stage.has(tree)) continue;
    const int first = coupled_.first_of(tree);
    NewtonIsland& island = pool_[first];
    if (first == tree) {
      order_.push_back(first);
      island.dofs.clear();
      island.first_tree = first;
    }
    for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d)
      island.dofs.push_back(d);
  }
  is_whole_ = order_.size() == 1 && int(pool_[order_[0]].dofs.size()) == model.nv;
}

/// Those of the first guess.
void ImplicitNewton::separate(const Call& call) {
  order_.clear();
  coupled_.separate();
  is_coupled_anew(call.model);
  find_islands(call);
  for (int i : order_) {
    NewtonIsland& island = pool_[i];
    island.start();
    if (!is_whole_) island.factor.resize(int(island.dofs.size()));
  }
}

/// Islands that have come together go on as one, from where their searches have started.
void ImplicitNewton::merge(const Call& call) {
  old_order_ = order_;
  for (int i : old_order_) {
    NewtonIsland& island = pool_[i];
    const int first = coupled_.first_of(i);
    const bool alone = first == i && std::none_of(old_order_.begin(), old_order_.end(),
                                                  [&](int j) { return j != i && coupled_.first_of(j) == i; });
    if (alone) continue;
    const bool moved = island.phase != NewtonPhase::landing && island.phase != NewtonPhase::merged &&
                       island.phase != NewtonPhase::done;
    if (moved) copy(island, from_, call.stage.v_next);

    // Of several, what took longest counts.
    NewtonIsland& whole = pool_[first];
    const int iterations = std::max(whole.iterations, island.iterations);
    const int evaluations = std::max(whole.evaluations, island.evaluations);
    whole.start();
    whole.phase = NewtonPhase::merged;
    whole.iterations = iterations;
    whole.progress = whole.evaluations = evaluations;
  }

  find_islands(call);
  for (int i : order_)
    if (pool_[i].phase == NewtonPhase::merged && !is_whole_) pool_[i].factor.resize(int(pool_[i].dofs.size()));
}

void NewtonIsland::start() {
  phase = NewtonPhase::landing;
  known = wants_matrix = singular = converged = false;
  ratio = least = missed = halved = shortened = INFINITY;
  iterations = evaluations = jumps = progress = 0;
}

/// What is allowed of an island's residual, and its reach: with the matrix in factor_.
void ImplicitNewton::find_sizes(const Call& call, NewtonIsland& island) {
  const Model& model = call.model;
  const ImplicitStage& stage = call.stage;
  const int ld = equation.dynamics.ld;
  const DynamicsWorkspace& inertia = equation.inertial();
  const double* H_T = factor_.matrix();

  // What rounding of the forces makes of the residual, and of v+ and q+: extent and speed are what that is relative to.
  double extent = 1;
  double speed_of_all = 0;
  for (int d : island.dofs) {
    speed_of_all = std::max({speed_of_all, std::abs(stage.v_next[d]), std::abs(stage.v_bar[d])});
    const int joint = model.dof_joint[d];
    if (d != model.joint_v[joint]) continue;
    const double* q = stage.q_next.data() + model.joint_q[joint];
    for (int i = 0; i < joint_num_q(model.joint_type[joint]); ++i)
      extent = std::max(extent, std::abs(q[i]));
  }

  // |M_dd| / c, |H| and |R_q| times those.
  for (int d : island.dofs)
    allowed_[d] = equation.rounding[d] + inertia.mass[model.dof_row[d] + model.dof_depth[d]] / stage.c * speed_of_all;
  for (int k : island.dofs) {
    const double speed = std::abs(stage.v_next[k]) + std::abs(stage.v_bar[k]);
    const double* H = H_T + std::size_t(k) * ld;
    const double* R_q = equation.R_q_T.data() + std::size_t(k) * ld;
    for (int d : island.dofs)
      allowed_[d] += std::abs(H[d]) * speed + std::abs(R_q[d]) * extent;
  }

  // The tolerance is of the sizes of the terms; with the inertia they are a velocity, too.
  double reach = 0;
  for (int d : island.dofs) {
    const double size = size_[d];
    reach += size * size / inertia.mass[model.dof_row[d] + model.dof_depth[d]];
    allowed_[d] = call.options.implicit.tolerance * size + rounding_units * allowed_[d] + smallest;
  }
  island.reach = stage.c * std::sqrt(reach);
}

/// Matrices and corrections of the islands that want them, and what is allowed of their residuals there. False: none does.
bool ImplicitNewton::linearize(const Call& call) {
  const Model& model = call.model;
  const bool wanted = std::any_of(order_.begin(), order_.end(), [&](int i) { return pool_[i].wants_matrix; });
  if (!wanted) return false;
  equation.prepare(model, call.stage);
  equation.differentiate(model, call.stage);
  equation.newton_matrix(model, call.stage, factor_.matrix());
  equation.find_rounding(model);

  // The sizes of the terms.
  for (int d = 0; d < model.nv; ++d)
    work_[d] = std::abs(call.stage.acceleration[d]);
  equation.times_mass(model, work_.data(), size_.data());
  for (int d = 0; d < model.nv; ++d)
    size_[d] = equation.scale[d] + std::abs(size_[d]);

  const int ld = equation.dynamics.ld;
  for (int i : order_) {
    NewtonIsland& island = pool_[i];
    if (!island.wants_matrix) continue;
    find_sizes(call, island);
    take_inertia(model, island);
    if (is_whole_) {
      island.singular = !factor_.factor();
      continue;
    }

    // Its part of the matrix.
    double* row = island.factor.matrix();
    const int own_ld = island.factor.leading_dimension();
    for (int k : island.dofs) {
      const double* from = factor_.matrix() + std::size_t(k) * ld;
      std::fill_n(row, own_ld, 0.0);
      for (std::size_t j = 0; j < island.dofs.size(); ++j)
        row[j] = from[island.dofs[j]];
      row += own_ld;
    }
    island.singular = !island.factor.factor();
  }
  return true;
}

/// Infinite where a residual is not a number.
double ImplicitNewton::ratio(const NewtonIsland& island) const {
  double largest = 0;
  for (int d : island.dofs) {
    const double r = std::abs(equation.residual[d]);
    if (!std::isfinite(r)) return INFINITY;
    if (r > 0) {
      largest = std::max(largest, r / allowed_[d]);
    }
  }
  return largest;
}

/// Others may ask for a matrix, and with it for the inertia, at an iterate where this island goes on with an old one.
void ImplicitNewton::take_inertia(const Model& model, const NewtonIsland& island) {
  const std::vector<double>& mass = equation.inertial().mass;
  mass_.resize(mass.size());
  for (int d : island.dofs)
    std::copy_n(&mass[model.dof_row[d]], model.dof_depth[d] + 1, &mass_[model.dof_row[d]]);
}

/// The speed that the residual would make in the stage: by dof with its own inertia, in the norm of the kinetic energy. Unlike the
/// ratio, whose measure grows with the forces of an iterate, this compares iterates however far apart they are.
double ImplicitNewton::missed_speed(const Call& call, const NewtonIsland& island) const {
  const Model& model = call.model;
  double sum = 0;
  for (int d : island.dofs) {
    const double r = call.stage.c * equation.residual[d];
    sum += r * r / mass_[model.dof_row[d] + model.dof_depth[d]];
  }
  return std::sqrt(sum);
}

/// An iterate with this residual.
void ImplicitNewton::take_as_best(NewtonIsland& island, const Vector& v) {
  island.least = island.ratio;
  copy(island, v, best_);
}

/// In the norm of the kinetic energy; infinite where that is not a number.
double ImplicitNewton::length(const Model& model, const NewtonIsland& island, const Vector& x) const {
  double sum = 0;
  for (int d : island.dofs) {
    const double* row = &mass_[model.dof_row[d]];
    const int* path = &model.dof_path[model.dof_row[d]];
    double above = 0;
    for (int i = 0; i < model.dof_depth[d]; ++i)
      above += row[i] * x[path[i]];
    sum += x[d] * (row[model.dof_depth[d]] * x[d] + 2 * above);
  }
  return std::isfinite(sum) ? std::sqrt(std::max(0.0, sum)) : INFINITY;
}

/// x = -H^-1 R with the matrix there is.
void ImplicitNewton::correction(const NewtonIsland& island, Vector& x) {
  const std::size_t n = island.dofs.size();
  for (std::size_t i = 0; i < n; ++i)
    work_[i] = -equation.residual[island.dofs[i]];
  factor_of(island).solve(work_.data());
  for (std::size_t i = 0; i < n; ++i)
    x[island.dofs[i]] = work_[i];
}

/// Is nothing left to be won: a small residual, and a correction below the noise of the stage?
bool ImplicitNewton::is_rounding(const Call& call, const NewtonIsland& island) const {
  return island.ratio * call.options.implicit.tolerance <= small_residual &&
         length(call.model, island, step_) <= negligible * island.reach;
}

/// The power of the residual along step_: below zero where the step takes energy out of what is minimised.
double ImplicitNewton::power(const NewtonIsland& island) const {
  double sum = 0;
  for (int d : island.dofs)
    sum += equation.residual[d] * step_[d];
  return sum;
}

void ImplicitNewton::try_fraction(const Call& call, NewtonIsland& island, double fraction) {
  island.fraction = fraction;
  for (int d : island.dofs)
    call.stage.v_next[d] = from_[d] + fraction * step_[d];
}

/// What the evaluation says of where the island is, and where it is to be evaluated next.
void ImplicitNewton::advance(const Call& call, NewtonIsland& island) {
  switch (island.phase) {
    case NewtonPhase::landing: island.wants_matrix = true; break;
    case NewtonPhase::merged: island.phase = NewtonPhase::landing; break;
    case NewtonPhase::searching: search(call, island); break;
    case NewtonPhase::sections: search_sign(call, island); break;
    case NewtonPhase::polishing: polish(call, island); break;
    case NewtonPhase::done: break;
  }
}

/// The correction by a new matrix.
void ImplicitNewton::take_matrix(const Call& call, NewtonIsland& island) {
  if (!island.wants_matrix) return;
  island.wants_matrix = false;
  if (island.singular) return finish(call, island, false);
  correction(island, step_);
  arrive(call, island);
}

/// At an iterate whose correction is known.
void ImplicitNewton::arrive(const Call& call, NewtonIsland& island) {
  island.ratio = ratio(island);
  if (!std::isfinite(island.ratio)) return finish(call, island, false);
  const double miss = missed_speed(call, island);
  if (island.ratio <= 1 || miss < island.missed) {
    island.missed = miss;
    take_as_best(island, call.stage.v_next);
  }

  // Solved: one more correction, since it is known already.
  if (island.ratio <= 1) {
    if (island.ratio <= solved_exactly) return finish(call, island, true);
    copy(island, call.stage.v_next, from_);
    try_fraction(call, island, 1);
    island.phase = NewtonPhase::polishing;
    return;
  }

  // Still on the way?
  island.length = length(call.model, island, step_);
  if (island.ratio <= 0.5 * island.halved || island.length <= 0.5 * island.shortened) {
    island.halved = std::min(island.halved, island.ratio);
    island.shortened = std::min(island.shortened, island.length);
    island.progress = island.evaluations;
  }
  const bool given_up =
      island.iterations == call.options.implicit.max_iterations || island.evaluations - island.progress > call.patience;
  if (given_up) {
    const bool converged = is_rounding(call, island);
    if (converged) take_as_best(island, call.stage.v_next);
    return finish(call, island, converged);
  }

  // Along the correction.
  copy(island, call.stage.v_next, from_);
  island.power = power(island);
  island.trials = 0;
  island.phase = NewtonPhase::searching;
  try_fraction(call, island, 1);
}

/// A correction is good if the next one, with the same matrix, is shorter.
void ImplicitNewton::search(const Call& call, NewtonIsland& island) {
  ++island.evaluations;
  const double residual = ratio(island);
  double after = INFINITY;
  if (std::isfinite(residual)) {
    correction(island, next_step_);
    after = length(call.model, island, next_step_);
  }
  if (residual <= 1 || after <= (1 - 0.25 * island.fraction) * island.length)
    return accept(call, island, island.length > 0 ? after / island.length : 0);

  // That says nothing across a kink: the matrix does not know the forces beyond. An old one knows even less.
  if (island.trials++ == 0) {
    if (island.known) return leave(call, island);
    const double at_end = power(island);
    if (island.power < 0 && at_end > 0) {
      island.bracket = SignChange(island.power, at_end);
      island.phase = NewtonPhase::sections;
      island.trials = 0;
      return try_fraction(call, island, island.bracket.next());
    }
  }
  if (island.trials == max_halvings) return leave(call, island);
  try_fraction(call, island, 0.5 * island.fraction);
}

/// Where the power along step_ changes sign, it is made small: forces that begin to push within the step, or stop to slide.
void ImplicitNewton::search_sign(const Call& call, NewtonIsland& island) {
  ++island.evaluations;
  const double residual = ratio(island);
  if (!std::isfinite(residual)) return leave(call, island);
  const double now = power(island);
  if (residual <= 1 || std::abs(now) <= small_power * std::abs(island.power)) return accept(call, island, 1);
  if (++island.trials == max_sections) return leave(call, island);
  island.bracket.add(island.fraction, now);
  try_fraction(call, island, island.bracket.next());
}

/// Goes on from where the equation was evaluated, with the same matrix if that was fast.
void ImplicitNewton::accept(const Call& call, NewtonIsland& island, double contraction) {
  ++island.iterations;
  island.known = contraction < fast;
  island.phase = NewtonPhase::landing;
  island.wants_matrix = !island.known;
  if (!island.known) return;
  copy(island, next_step_, step_);
  arrive(call, island);
}

/// No step helps. With a fresh matrix: rounding, or a kink.
void ImplicitNewton::leave(const Call& call, NewtonIsland& island) {
  const bool is_last = !island.known && island.ratio > stalled && island.jumps++ == most_jumps;
  if (!island.known && (island.ratio <= stalled || is_last)) {
    const bool converged = !is_last || is_rounding(call, island);
    if (converged) take_as_best(island, from_);
    return finish(call, island, converged);
  }

  // Again from there with a fresh matrix; or, at a kink that no short step crosses, by a whole step.
  copy(island, from_, call.stage.v_next);
  if (!island.known) try_fraction(call, island, 1);
  island.known = false;
  island.phase = NewtonPhase::landing;
  ++island.iterations;
  ++island.evaluations;
}

/// Back, if the last correction was none.
void ImplicitNewton::polish(const Call& call, NewtonIsland& island) {
  const double after = ratio(island);
  if (after <= island.ratio) {
    island.least = after;
    copy(island, call.stage.v_next, best_);
  } else {
    copy(island, from_, call.stage.v_next);
    is_behind_ = true;
  }
  finish(call, island, true);
}

/// The best iterate is the result where there is no solution.
void ImplicitNewton::finish(const Call& call, NewtonIsland& island, bool converged) {
  island.phase = NewtonPhase::done;
  island.converged = converged;
  if ((converged && island.least <= 1) || !std::isfinite(island.least)) return;
  copy(island, best_, call.stage.v_next);
  is_behind_ = true;
}

void ImplicitNewton::solve(const Model& model, const StepOptions& options, const StageInputs& inputs,
                           ImplicitStage& stage, int patience) {
  const Call call{model, options, stage, patience};
  const auto is_done = [&](int i) { return pool_[i].phase == NewtonPhase::done; };
  equation.begin(model, options, inputs, stage);
  equation.evaluate(model, options, stage);
  separate(call);
  is_behind_ = false;

  // Every island goes on as far as the evaluation leads, then all are evaluated again.
  while (true) {
    for (int i : order_)
      advance(call, pool_[i]);
    if (linearize(call)) {
      for (int i : order_)
        take_matrix(call, pool_[i]);
    }

    const bool done = std::all_of(order_.begin(), order_.end(), is_done);
    if (done && !is_behind_) break;
    is_behind_ = false;
    equation.evaluate(model, options, stage);
    if (is_coupled_anew(model)) merge(call);
  }
}

StageViews ImplicitNewton::linearized(const Model& model, const ImplicitStage& stage) {
  equation.prepare(model, stage);
  equation.prepare_base(model, stage);
  linearize_stage(model, stage, equation, factor_);
  return {equation.reverse_terms(), factor_.factors()};
}

}  // namespace coulomb

#include "coulomb/stepping/implicit/step_islands.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/constraints/islands.hpp"

namespace coulomb {
namespace {

// Patience of Newton's method (implicit_newton.hpp), in evaluations. A search that finds nothing takes a dozen. The whole step gets
// ten of them, for the kinks of many contacts; a part gets three, for it can be divided.
constexpr int patience_whole = 130;
constexpr int patience_part = 40;

// Evaluations after which a step is not divided any further: finer parts help a step that is too long, not a force that jumps.
constexpr int most_evaluations = 450;

/// The method of a part, which has no state before.
ImplicitScheme of_parts(ImplicitScheme whole) { return whole == ImplicitScheme::bdf2 ? ImplicitScheme::sdirk2 : whole; }

/// The trees that an equality joins, -1: none. Tendons are of two trees at most, together.
BlockTrees trees_of(const Model& model, const Equality& equality) {
  const auto of_dof = [&](int dof) { return model.body_tree[model.dof_body[dof]]; };
  const auto of_joint = [&](int joint) { return joint < 0 ? -1 : of_dof(model.joint_v[joint]); };
  if (equality.type == EqualityType::joint) return {of_joint(equality.joint_a), of_joint(equality.joint_b)};
  if (equality.type == EqualityType::tendon) {
    BlockTrees out{-1, -1};
    for (const int tendon : {equality.tendon_a, equality.tendon_b})
      for (std::size_t i = 0; tendon >= 0 && i < model.tendons[tendon].dofs.size(); ++i) {
        const int tree = of_dof(model.tendons[tendon].dofs[i]);
        (out.first < 0 || out.first == tree ? out.first : out.second) = tree;
      }
    return out;
  }
  return {model.body_tree[equality.body_a], model.body_tree[equality.body_b]};
}

}  // namespace

StepIslands::StepIslands(const Model& model)
    : coupled_(model), islands_(model.num_trees), goes_on_(model.num_trees), moving_(model.num_trees),
      taken_(model.num_trees), failed_(model.num_trees), iterations_(model.num_trees), evaluations_(model.num_trees),
      residual_(model.num_trees) {}

void StepIslands::begin(const Model& model, ImplicitScheme method, int most_halvings,
                        const std::vector<unsigned char>& goes_on) {
  method_ = method;
  most_halvings_ = most_halvings;
  goes_on_ = goes_on;
  nobody_ = model.num_trees == 0;
  rule_ = {method, 1, patience_whole, true};

  // Equalities act at every pose.
  coupled_.separate();
  for (const Equality& equality : model.equalities) {
    const BlockTrees trees = trees_of(model, equality);
    if (equality.active && trees.first >= 0 && trees.second >= 0) {
      coupled_.join(trees.first, trees.second);
    }
  }

  std::fill(iterations_.begin(), iterations_.end(), 0);
  for (int tree = 0; tree < model.num_trees; ++tree)
    if (first_of(tree) == tree) start(tree);
}

/// bdf2 where all of an island goes on, else its start.
ImplicitScheme StepIslands::whole_step(bool goes_on) const {
  return method_ == ImplicitScheme::bdf2 && !goes_on ? ImplicitScheme::sdirk2 : method_;
}

/// An island by its first rule.
void StepIslands::start(int first) {
  bool all_go_on = true;
  for (int tree = first; tree < int(goes_on_.size()); ++tree) {
    if (first_of(tree) != first) continue;
    all_go_on = all_go_on && goes_on_[tree];
    evaluations_[tree] = 0;
  }

  Island& island = islands_[first];
  island.halvings = 0;
  island.waits = true;
  island.whole = whole_step(all_go_on);
  island.rule = {island.whole, 1, patience_whole, most_halvings_ == 0};
}

bool StepIslands::choose() {
  const bool once = nobody_;
  nobody_ = false;
  const int trees = int(moving_.size());
  int first = 0;
  while (first < trees && !(first_of(first) == first && islands_[first].waits))
    ++first;
  if (first == trees) return once;

  rule_ = islands_[first].rule;
  for (int tree = 0; tree < trees; ++tree) {
    const Island& island = islands_[first_of(tree)];
    taken_[tree] = moving_[tree] = island.waits && island.rule == rule_;
    if (!taken_[tree]) continue;
    failed_[tree] = 0;
    residual_[tree] = 0;
  }
  return true;
}

bool StepIslands::take_stage(const Model& model, double tolerance, ImplicitNewton& newton) {
  const int trees = model.num_trees;
  for (int tree = 0; tree < trees; ++tree) {
    if (!moving_[tree]) continue;
    const NewtonIsland& island = newton.island_of(tree);
    coupled_.join(tree, island.first_tree);
    iterations_[tree] += island.iterations;
    evaluations_[tree] += island.evaluations;
    const double residual = std::isfinite(island.least) ? std::min(1.0, island.least * tolerance) : 1.0;
    residual_[tree] = std::max(residual_[tree], residual);
    failed_[tree] = failed_[tree] || !island.converged;
  }

  // An island fails as a whole.
  for (int tree = 0; tree < trees; ++tree)
    islands_[tree].failed = false;
  for (int tree = 0; tree < trees; ++tree)
    if (taken_[tree] && failed_[tree]) islands_[first_of(tree)].failed = true;
  bool any = trees == 0;
  for (int tree = 0; tree < trees; ++tree) {
    if (islands_[first_of(tree)].failed && !rule_.last) moving_[tree] = 0;
    any = any || moving_[tree];
  }
  return any;
}

/// The rule after one that failed: more parts, in the end the whole at its best iterate.
void StepIslands::follow(Island& island) const {
  const bool divides = island.halvings < most_halvings_ && island.evaluations <= most_evaluations;
  if (divides) {
    ++island.halvings;
    island.rule = {of_parts(island.whole), 2 * rule_.parts, patience_part, false};
  } else {
    island.rule = {island.whole, 1, patience_part, true};
  }
}

void StepIslands::end_run(const std::vector<unsigned char>& met) {
  const int trees = int(moving_.size());
  for (Island& island : islands_) {
    island.taken = island.failed = island.met_limit = false;
    island.goes_on = true;
    island.evaluations = 0;
  }
  for (int tree = 0; tree < trees; ++tree) {
    if (!taken_[tree]) continue;
    Island& island = islands_[first_of(tree)];
    island.taken = true;
    island.goes_on = island.goes_on && goes_on_[tree];
    island.failed = island.failed || failed_[tree];
    island.met_limit = island.met_limit || met[tree];
    island.evaluations = std::max(island.evaluations, evaluations_[tree]);
  }

  const bool second_order = rule_.scheme == ImplicitScheme::bdf2 || rule_.scheme == ImplicitScheme::sdirk2;
  const bool final_try = rule_.last && most_halvings_ > 0;
  for (Island& island : islands_) {
    if (!island.taken) continue;
    island.waits = false;
    island.solved = !island.failed;
    island.whole = whole_step(island.goes_on);

    // Over a limit by the method that takes energy from every convex spring.
    if (island.solved && island.met_limit && second_order && !final_try) {
      island.waits = true;
      island.rule = rule_;
      island.rule.scheme = ImplicitScheme::bdf1;
    }
    if (island.failed && !rule_.last) {
      island.waits = true;
      follow(island);
    }
  }
  for (int tree = 0; tree < trees; ++tree)
    if (islands_[first_of(tree)].waits) moving_[tree] = 0;
}

bool StepIslands::join(const Model& model, const ConstraintRows& rows) {
  bool any = false;
  for_each_block(model, rows, [&](int, BlockTrees trees) {
    if (trees.first < 0 || trees.second < 0) return;
    if (!coupled_.join(trees.first, trees.second)) return;
    any = true;
    islands_[first_of(trees.first)].waits = true;
  });
  if (!any) return false;

  // An island that was joined last may have a first tree of its own.
  for (int tree = 0; tree < model.num_trees; ++tree)
    if (first_of(tree) != tree && islands_[tree].waits) {
      islands_[tree].waits = false;
      islands_[first_of(tree)].waits = true;
    }
  for (int tree = 0; tree < model.num_trees; ++tree)
    if (first_of(tree) == tree && islands_[tree].waits) start(tree);
  return true;
}

bool StepIslands::solved() {
  for (int tree = 0; tree < int(moving_.size()); ++tree)
    if (!islands_[first_of(tree)].solved) return false;
  return true;
}

int StepIslands::iterations() const {
  return iterations_.empty() ? 0 : *std::max_element(iterations_.begin(), iterations_.end());
}

double StepIslands::residual() const {
  return residual_.empty() ? 0 : *std::max_element(residual_.begin(), residual_.end());
}

}  // namespace coulomb

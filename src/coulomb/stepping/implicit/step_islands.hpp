// The rules by which the islands of an implicit step go: method, equal parts, patience of Newton's method. Each island has its own, and
// what befalls one changes nothing of another: where one meets a joint limit, it alone takes the step by BDF1, where Newton's method fails in
// one, it alone goes on in parts.
//
// An island here is all trees that equalities join, or that touch in the step: at an iterate of a run, or at the end. Islands that touch
// at the end only, while they went by different rules, start the step again as one.
#pragma once

#include <vector>

#include "coulomb/stepping/implicit/coupled_trees.hpp"
#include "coulomb/stepping/implicit/implicit_newton.hpp"

namespace coulomb {

enum class ImplicitScheme : std::uint8_t { semi_implicit, bdf1, bdf2, sdirk2 };

struct IslandRule {
  ImplicitScheme scheme = ImplicitScheme::bdf1;
  int parts = 1;
  int patience = 0;
  bool last = false;  ///< where Newton's method fails, its best iterates are taken
  bool operator==(const IslandRule&) const = default;
};

class StepIslands {
 public:
  explicit StepIslands(const Model& model);

  /// goes_on: by tree, whether bdf2 goes on from the state before.
  void begin(const Model& model, ImplicitScheme method, int most_halvings, const std::vector<unsigned char>& goes_on);

  /// The next rule and the trees that move by it now: all islands that wait for it. False: none waits.
  bool choose();
  const IslandRule& rule() const { return rule_; }
  bool moves(int tree) const { return moving_[tree]; }
  int first_of(int tree) { return coupled_.first_of(tree); }

  /// After a stage of them: islands in which it failed do not move on. False: none does.
  bool take_stage(const Model& model, double tolerance, ImplicitNewton& newton);
  /// After the run; met: by tree, whether it met a limit. Those that move are at the end of the step, others wait for their next rule.
  void end_run(const std::vector<unsigned char>& met);
  /// At the end of the step, with the rows there: islands that touch become one, and wait again. False: none does.
  bool join(const Model& model, const ConstraintRows& rows);
  bool waits(int tree) { return islands_[first_of(tree)].waits; }

  bool solved();
  /// The largest of an island, over all its stages; residual: of its last run.
  int iterations() const;
  double residual() const;

 private:
  struct Island {
    IslandRule rule;
    ImplicitScheme whole = ImplicitScheme::bdf1;  ///< the method of the whole step
    int halvings = 0;
    bool waits = false;
    bool solved = false;

    // Of its trees, in a run.
    bool taken = false;
    bool goes_on = false;
    bool failed = false;
    bool met_limit = false;
    int evaluations = 0;
  };
  ImplicitScheme whole_step(bool goes_on) const;
  void start(int first);
  void follow(Island& island) const;

  ImplicitScheme method_ = ImplicitScheme::bdf1;
  int most_halvings_ = 0;
  bool nobody_ = false;  // a model without trees: one run
  IslandRule rule_;
  CoupledTrees coupled_;
  std::vector<Island> islands_;  // by the first tree

  // By tree.
  std::vector<unsigned char> goes_on_, moving_, taken_, failed_;
  std::vector<int> iterations_, evaluations_;
  std::vector<double> residual_;
};

}  // namespace coulomb

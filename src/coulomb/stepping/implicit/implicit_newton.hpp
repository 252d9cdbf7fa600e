// Newton's method for one implicit stage (implicit_equation.hpp): analytic matrix, LU, line search by the natural monotonicity test
// [Deuflhard2004] (a step must shorten the next Newton correction with the same matrix; it does not depend on the units of the
// equations), and corrections with an old matrix while they converge fast. Across a kink, where a contact begins to push or stops to slide,
// that test fails at every step but tiny ones: the old matrix takes the forces beyond for an error. There the step ends where the power
// R . step is small, between its ends of opposite signs: the line search of what is minimised, where forces have a potential.
//
// Islands, trees that forces couple, are searched and judged each by itself (newton_island.hpp), so that none changes a bit of another;
// evaluations and matrices are of all at once. Islands that touch at an iterate are one from then on. What became of each is read from
// island_of.
//
// A stage is solved when every residual is below the tolerance times the sizes of its own terms, or below what rounding of the
// state and of the forces makes of it: an estimate, so up to a hundred times that is taken where no correction makes it less; or more, up to 1e-6 of
// the terms, where the correction that is left is below 1e-8 of the velocity that the forces make in the stage (springs of 1e8 N/m and
// more, whose lengths are rounding).
#pragma once

#include <vector>

#include "coulomb/stepping/implicit/coupled_trees.hpp"
#include "coulomb/stepping/implicit/implicit_equation.hpp"
#include "coulomb/stepping/implicit/implicit_factor.hpp"
#include "coulomb/stepping/implicit/implicit_kept.hpp"
#include "coulomb/stepping/implicit/newton_island.hpp"

namespace coulomb {

class ImplicitNewton {
 public:
  explicit ImplicitNewton(const Model& model);

  /// stage.v_next: the first guess, then the solution, or the best iterate. `equation` is left evaluated there.
  /// patience: evaluations in which neither the residual nor the correction falls to half, after which it gives up.
  void solve(const Model& model, const StepOptions& options, const StageInputs& inputs, ImplicitStage& stage,
             int patience);

  /// Where the island of a tree has ended, and the first tree of it; of the stage solved last, if it has the tree.
  const NewtonIsland& island_of(int tree) { return pool_[coupled_.first_of(tree)]; }

  /// What derivatives need of the stage solved last; views of `equation` and of the factor, until the next one is solved.
  StageViews linearized(const Model& model, const ImplicitStage& stage);

  ImplicitEquation equation;

 private:
  using Vector = std::vector<double>;
  struct Call {
    const Model& model;
    const StepOptions& options;
    ImplicitStage& stage;
    int patience;
  };

  // Islands.
  void separate(const Call& call);
  void find_islands(const Call& call);
  void merge(const Call& call);
  bool is_coupled_anew(const Model& model);
  bool linearize(const Call& call);
  void find_sizes(const Call& call, NewtonIsland& island);

  // Of one island, after an evaluation.
  void advance(const Call& call, NewtonIsland& island);
  void take_matrix(const Call& call, NewtonIsland& island);
  void arrive(const Call& call, NewtonIsland& island);
  void search(const Call& call, NewtonIsland& island);
  void search_sign(const Call& call, NewtonIsland& island);
  void accept(const Call& call, NewtonIsland& island, double contraction);
  void leave(const Call& call, NewtonIsland& island);
  void polish(const Call& call, NewtonIsland& island);
  void finish(const Call& call, NewtonIsland& island, bool converged);

  double ratio(const NewtonIsland& island) const;
  double power(const NewtonIsland& island) const;
  void take_inertia(const Model& model, const NewtonIsland& island);
  double length(const Model& model, const NewtonIsland& island, const Vector& x) const;
  double missed_speed(const Call& call, const NewtonIsland& island) const;
  void take_as_best(NewtonIsland& island, const Vector& v);
  bool is_rounding(const Call& call, const NewtonIsland& island) const;
  void correction(const NewtonIsland& island, Vector& x);
  void try_fraction(const Call& call, NewtonIsland& island, double fraction);

  const ImplicitFactor& factor_of(const NewtonIsland& island) const { return is_whole_ ? factor_ : island.factor; }

  ImplicitFactor factor_;
  CoupledTrees coupled_;
  std::vector<NewtonIsland> pool_;      // by the first tree
  std::vector<int> order_, old_order_;  // of those that there are
  bool is_whole_ = false;               // there is one island, of all trees
  bool is_behind_ = false;              // the equation was not evaluated at the end of an island
  // nv, of all islands: what is allowed of the residual; corrections; where a search has started; the best iterate.
  Vector allowed_, step_, next_step_, from_, best_, work_, size_;
  Vector mass_;  // the inertia by which corrections are measured: of each island where its matrix is of
};

}  // namespace coulomb

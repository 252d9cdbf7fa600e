// Where Newton's method stands in one island of a stage: trees that forces couple, and no others. Islands are searched, judged and given up
// each by itself (implicit_newton.hpp), by the same evaluations.
#pragma once

#include <cmath>
#include <vector>

#include "coulomb/stepping/implicit/implicit_factor.hpp"
#include "coulomb/stepping/implicit/sign_change.hpp"

namespace coulomb {

/// What the island's v+ is, when the equation is evaluated next.
enum class NewtonPhase : unsigned char {
  landing,    ///< a new iterate
  searching,  ///< a fraction of the step
  sections,   ///< a fraction between two of opposite powers
  polishing,  ///< one more correction of a solution
  merged,     ///< an iterate of islands that have become one: the last evaluation is not of it
  done,
};

struct NewtonIsland {
  NewtonIsland() : factor(0) {}
  void start();
  /// Of its own matrix, or that of the whole if there is no other island.
  ImplicitFactor factor;
  std::vector<int> dofs;  ///< ascending
  int first_tree = 0;

  NewtonPhase phase = NewtonPhase::landing;
  bool known = false;         ///< the correction is one by the matrix of a point before
  bool wants_matrix = false;  ///< at this iterate
  bool singular = false;
  bool converged = false;
  double reach = 0;  ///< velocity that the forces make in the stage, as `length`

  // The iterate, and the best one.
  double ratio = INFINITY;  ///< of the largest residual to what is allowed
  double length = 0;        ///< of the correction
  double least = INFINITY;  ///< ratio of the best
  double missed =
      INFINITY;  ///< the speed that the residual of the best would make in the stage, in the norm of the kinetic energy
  int iterations = 0;
  int evaluations = 0;
  int jumps = 0;

  // What residual and correction were when one of them fell to half last, and when that was.
  double halved = INFINITY;
  double shortened = INFINITY;
  int progress = 0;

  // The search.
  double fraction = 1;
  double power = 0;  ///< at its start
  int trials = 0;
  SignChange bracket;
};

}  // namespace coulomb

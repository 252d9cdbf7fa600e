// Cancellation: how far impulses cancel one another. For a direction d of the impulses it measures J^T d, with rows and
// columns scaled. Constraints contradict one another if such a d works against their demands and moves nothing,
// docs/theory.md (C15).
#pragma once

#include <vector>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

class Cancellation {
 public:
  /// d: n, scaled impulses; inverse_root: n, the scale of each row (ScaledProblem).
  void assign(const ConstraintProblem& problem, const double* inverse_root, const double* d);

  /// Does d move nothing, up to what rounding makes of the rows and of d?
  bool complete() const { return left_ <= known_; }
  /// Does it move next to nothing? Velocities that answer what d works against are a million times as fast as what is asked. Not known where only G is.
  bool nearly_complete() const { return by_columns_ && left_ <= nearly_; }
  /// |d|^2 / d^T G d: how much less d moves than its parts by themselves would. About the ratio of masses that rest on one another.
  double ratio() const { return ratio_; }

 private:
  static constexpr double nearly_ = 1e-6;

  void add_columns(const ConstraintProblem& problem, const double* inverse_root, const double* d);
  void add_matrix(const ConstraintProblem& problem, const double* inverse_root, const double* d);

  std::vector<double> sum_;    ///< J^T d, a column for each dof of the trees; without trees G d
  std::vector<double> terms_;  ///< the same, if nothing cancelled and every entry of d were as large as the largest
  double left_ = 1;
  double known_ = 0;
  bool by_columns_ = false;
  double ratio_ = 1;
};

}  // namespace coulomb

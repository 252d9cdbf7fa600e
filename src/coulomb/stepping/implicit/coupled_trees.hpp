// Which trees an implicit stage couples: those that a spring or a penalty contact joins at one of its iterates, directly or through others.
// Actuators tie those of their tendon or bodies for good; other forces act within a tree.
#pragma once

#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

class CoupledTrees {
 public:
  explicit CoupledTrees(const Model& model) : parent_(model.num_trees), ties_(actuator_ties(model)) {}

  /// Every tree by itself, but for those that actuators tie.
  void separate();
  /// Joins the trees of every row. True: some were apart.
  bool join(const Model& model, const ConstraintRows& rows);
  /// Joins two. True: they were apart.
  bool join(int a, int b);
  /// The first tree of those that are coupled with this one.
  int first_of(int tree);

 private:
  std::vector<int> parent_;
  std::vector<std::pair<int, int>> ties_;
};

}  // namespace coulomb

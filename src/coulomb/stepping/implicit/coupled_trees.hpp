// Which trees an implicit stage couples: those that a spring or a penalty contact joins at one of its iterates, directly or through others.
// Other forces act within a tree.
#pragma once

#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

class CoupledTrees {
 public:
  explicit CoupledTrees(const Model& model) : parent_(model.num_trees) {}

  /// Every tree by itself.
  void separate();
  /// Joins the trees of every row. True: some were apart.
  bool join(const Model& model, const ConstraintRows& rows);
  /// Joins two. True: they were apart.
  bool join(int a, int b);
  /// The first tree of those that are coupled with this one.
  int first_of(int tree);

 private:
  std::vector<int> parent_;
};

}  // namespace coulomb

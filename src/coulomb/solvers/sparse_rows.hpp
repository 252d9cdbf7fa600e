// SparseRows: Y with G = Y Y^T, rows by block and columns by tree (ConstraintProblem), scaled. Trees lie one after the other in a vector of
// `columns()` entries, each from tree_start on, padded to 8.
#pragma once

#include <array>
#include <vector>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

class SparseRows {
 public:
  /// Takes the rows of a problem, row i times scale[i].
  void assign(const ConstraintProblem& problem, const double* scale);

  int columns() const { return columns_; }
  /// w = Y^T x.
  void times_transposed(const double* x, double* w) const;
  /// y += Y w.
  void add_times(const double* w, double* y) const;

  /// One block's rows on one tree: `size` rows of `ld`.
  struct Segment {
    int tree = -1;
    int size = 0;  ///< dofs of the tree
    int ld = 0;
    int start = 0;  ///< of the tree in a vector
    const double* values = nullptr;
  };
  /// The block's segment k (0, 1); tree = -1: none.
  Segment segment(int block, int k) const;
  const std::vector<int>& tree_size() const { return problem_->tree_size; }
  int tree_start(int tree) const { return tree_start_[tree]; }
  int tree_ld(int tree) const { return tree_start_[tree + 1] - tree_start_[tree]; }

 private:
  const ConstraintProblem* problem_ = nullptr;
  std::vector<double> values_;
  std::vector<int> tree_start_;
  int columns_ = 0;
};

}  // namespace coulomb

// SparseRows: the factor Y of G = Y Y^T, scaled, with rows by block and columns by tree (ConstraintProblem). A vector
// of `columns()` entries holds the trees one after the other; each begins at tree_start and is padded to a multiple of
// 8.
#pragma once

#include <cstddef>
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

  /// (Y Y^T) of two rows, counted within their blocks.
  double row_product(int block_a, int row_a, int block_b, int row_b) const;

  /// The rows of consecutive blocks on one tree that they all move: rows x ld, row major, without gaps.
  struct Panel {
    int tree = -1;
    int size = 0;   ///< dofs of the tree
    int ld = 0;     ///< the same, padded
    int start = 0;  ///< of the tree in a vector
    int row = 0;    ///< the first row
    int rows = 0;
    std::size_t values = 0;  ///< where they lie
  };
  /// Consecutive blocks on the same trees: one panel, or two of the same rows; or none.
  struct Run {
    int first_block = 0;
    int end_block = 0;
    int first_panel = 0;
    int end_panel = 0;
  };
  const std::vector<Run>& runs() const { return runs_; }
  const Panel& panel(int index) const { return panels_[index]; }
  const double* values(const Panel& panel) const { return values_.data() + panel.values; }
  int tree_start(int tree) const { return tree_start_[tree]; }
  const std::vector<int>& tree_size() const { return problem_->tree_size; }

 private:
  void find_runs();

  const ConstraintProblem* problem_ = nullptr;
  std::vector<double> values_;
  std::vector<Run> runs_;
  std::vector<Panel> panels_;
  std::vector<int> run_of_;  ///< per block
  std::vector<int> tree_start_;
  int columns_ = 0;
};

}  // namespace coulomb

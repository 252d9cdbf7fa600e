// Islands: the trees that constraint rows couple, directly or through other trees, and these rows. Islands are
// independent: each is assembled, solved, warm-started, checked and differentiated separately. The cost of a step is
// therefore the sum over its islands, and a difficult island changes no bit of the others.
#pragma once

#include <vector>

#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/path_products.hpp"
#include "coulomb/model.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

struct Island {
  std::vector<int> trees;       ///< ascending
  std::vector<int> tree_start;  ///< trees.size() + 1: first dof of each tree among the island's own; last: their number
  std::vector<int> blocks;      ///< of ConstraintRows, ascending
  std::vector<int> rows;        ///< per own row: that of ConstraintRows

  ConstraintProblem problem;
  WarmStart warm_start;
  SolverResult solution;

  int num_dofs() const { return tree_start.back(); }
  int num_rows() const { return static_cast<int>(rows.size()); }
};

/// The islands of one step: trees that rows or actuators tie. Every tree is in one, with rows or without.
struct Islands {
  explicit Islands(const Model& model);

  /// Islands of these rows; their problems are left to assemble_problems.
  void find(const Model& model, const ConstraintRows& rows);
  /// Island of a body's tree, or of a row's block: an index into pool.
  int of_tree(int tree) const { return tree_island[tree]; }
  int of_block(int block) const { return block_island[block]; }
  /// Compliance of the levels that a block's island was solved with; 0 where it was relaxed, negative where rows contradicted one another.
  double compliance_of_block(int block) const {
    const SolverResult& solution = pool[block_island[block]].solution;
    if (!solution.contradictory.empty()) return -solution.relaxation;
    return solution.relaxation > 0 ? 0.0 : solution.compliance;
  }
  bool is_whole(const Model& model, int island) const { return pool[island].num_dofs() == model.nv; }

  /// Results of all islands, by global rows: status the worst, residual, relaxation, exact residual and iterations the largest.
  void gather_solution(const ConstraintRows& rows, SolverResult& out) const;
  /// Impulses and labels of all rows to the islands' solutions.
  void scatter_labels(const SolverResult& from);
  /// What gather_solution gathers by rows and by blocks, back to the islands' solutions. After find, not before.
  void scatter_solution(const SolverResult& from);
  std::size_t bytes() const;

  /// By the island's first tree, so that storage stays with it; last: rows that move no tree.
  std::vector<Island> pool;
  std::vector<int> order;         ///< those in use, by their first tree
  std::vector<int> tree_island;   ///< index into pool
  std::vector<int> tree_index;    ///< among the trees of its island
  std::vector<int> block_island;  ///< index into pool
  std::vector<int> block_index;   ///< among the blocks of its island

 private:
  int root(int tree);
  void join(int tree_a, int tree_b);
  std::vector<int> parent_;
  std::vector<std::pair<int, int>> ties_;  ///< of actuators, which are there in every step
};

/// The trees that each block's rows move, at most two, the first below the second; -1: none.
struct BlockTrees {
  int first = -1;
  int second = -1;
};
BlockTrees trees_of(const Model& model, const BodyRows& rows);
BlockTrees trees_of(const Model& model, const DofRow& row);

/// Calls visit(block, trees) for every block in order.
template <class Visit>
void for_each_block(const Model& model, const ConstraintRows& rows, Visit visit) {
  // Both lists are in the order of their blocks.
  std::size_t body_row = 0;
  std::size_t dof_row = 0;
  for (int block = 0; block < rows.num_blocks; ++block) {
    const bool of_bodies = body_row < rows.body_rows.size() && rows.body_rows[body_row].block == block;
    visit(block, of_bodies ? trees_of(model, rows.body_rows[body_row++]) : trees_of(model, rows.dof_rows[dof_row++]));
  }
}

/// A matrix of rows by dofs: one dense matrix, or one per island in the layout of ConstraintProblem::Y.
struct RowMatrix {
  RowMatrix(double* data, int leading_dimension) : dense(data), ld(leading_dimension) {}
  RowMatrix(const Islands& all, double* const* data) : islands(&all), of_island(data) {}

  /// A block's rows at a tree's columns: entry (i, d) of dof d is data[i * ld + d - first].
  struct Place {
    double* data;
    int ld;
    int first;
  };
  Place at(const Model& model, int block, int row, int tree) const;

  double* dense = nullptr;
  int ld = 0;
  const Islands* islands = nullptr;
  double* const* of_island = nullptr;  ///< by index into pool
};

/// A matrix of dofs by dofs of the same island: one dense matrix, or one per island, its leading dimension its dofs rounded up to 8.
struct DofMatrix {
  DofMatrix(double* data, int leading_dimension) : dense(data), ld(leading_dimension) {}
  DofMatrix(const Islands& all, double* const* data) : islands(&all), of_island(data) {}

  /// From the first row of one tree and the first column of another (of the same island) on.
  PathTarget at(const Model& model, int tree_of_rows, int tree_of_columns) const;

  double* dense = nullptr;
  int ld = 0;
  const Islands* islands = nullptr;
  double* const* of_island = nullptr;  ///< by index into pool
};

}  // namespace coulomb

// VelocityFactor: the constraint problem's linear systems in the velocities of the trees instead of its rows (docs/theory.md (C11)).
//
//   (Y Y^T + D) x = b     with D block diagonal, K = D^-1:     H w = Y^T K b,   x = K (b - Y w),   H = 1 + Y^T K Y
//
// H has a block per tree and per pair of trees that share a constraint (TreeFactor): cheaper than a matrix over rows where rows are many.
// K is not symmetric where something slides, and nor is H.
#pragma once

#include <utility>
#include <vector>

#include "coulomb/solvers/newton/tree_factor.hpp"
#include "coulomb/solvers/sparse_rows.hpp"

namespace coulomb {

/// One small square matrix per block of a problem, block.size wide, row major.
class BlockMatrices {
 public:
  void resize(const Block* blocks, int num_blocks);
  double* operator[](int block) { return values_.data() + start_[block]; }
  const double* operator[](int block) const { return values_.data() + start_[block]; }

 private:
  std::vector<double> values_;
  std::vector<int> start_;
};

/// In place; n up to 6. Rows are interchanged where pivots are small. False: singular.
bool invert_small(double* A, int n);

class VelocityFactor {
 public:
  /// H = 1 + Y^T K Y, factorised. blocks: of the problem that Y is of.
  bool factorise(const SparseRows& Y, const Block* blocks, const BlockMatrices& K);
  /// W (Y.columns() x columns) = H^-1 W, or H^-T W.
  void solve(double* W, int columns, int ld) { tree_.solve(W, columns, ld); }
  void solve_transposed(double* W, int columns, int ld) { tree_.solve_transposed(W, columns, ld); }

 private:
  void add_run(const SparseRows& Y, const SparseRows::Run& run, const Block* blocks, const BlockMatrices& K);

  TreeFactor tree_;
  std::vector<std::pair<int, int>> couplings_;
  std::vector<double> KY_, product_;
};

}  // namespace coulomb

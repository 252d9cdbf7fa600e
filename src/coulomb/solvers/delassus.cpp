#include "coulomb/solvers/delassus.hpp"

#include <algorithm>

namespace coulomb {
namespace {

void grow(std::vector<double>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

// By rows, padded: the right factor of Y Y^T.
void transpose(const double* Y, int rows, int columns, int ld, int ldt, double* Yt) {
  std::fill_n(Yt, std::size_t(columns) * ldt, 0.0);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < columns; ++k)
      Yt[std::size_t(k) * ldt + i] = Y[std::size_t(i) * ld + k];
}

/// G = Y Y^T: what is right of the diagonal by strips of rows, the rest mirrored.
void multiply_symmetric(const double* Y, int n, int dofs, int ld, int ldn, DelassusScratch& w, double* G) {
  constexpr int strip = 16;
  for (int i = 0; i < n; i += strip) {
    const int rows = std::min(strip, n - i);
    multiply(Product::set, rows_of(Y + std::size_t(i) * ld, rows, dofs, ld), w.Yt.data() + i,
             G + std::size_t(i) * ldn + i, ldn - i, ldn, w.product);
    for (int k = i; k < i + rows; ++k) {
      const double* from = G + std::size_t(k) * ldn;
      for (int j = i + strip; j < n; ++j)
        G[std::size_t(j) * ldn + k] = from[j];
    }
  }
}

const RowSegment* segment_in(const ConstraintProblem& problem, int block, int tree) {
  for (const RowSegment& s : problem.segments[block])
    if (s.tree == tree) return &s;
  return nullptr;
}

/// Collects the rows that move a tree; their number.
int collect_rows(const ConstraintProblem& problem, int tree, DelassusScratch& w) {
  const int ld = padded(problem.tree_size[tree]);
  int rows = 0;
  w.block.clear();
  w.first.clear();
  for (int b = 0; b < static_cast<int>(problem.blocks.size()); ++b) {
    const RowSegment* segment = segment_in(problem, b, tree);
    if (!segment) continue;
    const int size = problem.blocks[b].size;
    grow(w.Y, std::size_t(rows + size) * ld);
    std::copy_n(problem.Y.data() + segment->start, std::size_t(size) * ld, w.Y.data() + std::size_t(rows) * ld);
    w.block.push_back(b);
    w.first.push_back(rows);
    rows += size;
  }
  return rows;
}

/// G += the product of the rows that were collected.
void add_product(int rows, ConstraintProblem& problem, DelassusScratch& w) {
  const int ldn = padded(rows);
  for (std::size_t a = 0; a < w.block.size(); ++a)
    for (int i = 0; i < problem.blocks[w.block[a]].size; ++i) {
      const double* from = w.G.data() + std::size_t(w.first[a] + i) * ldn;
      double* to = problem.G.data() + std::size_t(problem.blocks[w.block[a]].row + i) * problem.ld;
      for (std::size_t b = 0; b < w.block.size(); ++b)
        for (int j = 0; j < problem.blocks[w.block[b]].size; ++j)
          to[problem.blocks[w.block[b]].row + j] += from[w.first[b] + j];
    }
}

}  // namespace

/// G = Y Y^T, docs/theory.md (D16), tree by tree.
void form_delassus(ConstraintProblem& problem, DelassusScratch& w) {
  const int n = problem.n;
  const int trees = static_cast<int>(problem.tree_size.size());
  problem.resize_matrix();

  // One tree moves all rows.
  if (trees == 1) {
    const int dofs = problem.tree_size[0];
    const int ldn = problem.ld;
    grow(w.Yt, std::size_t(dofs) * ldn);
    transpose(problem.Y.data(), n, dofs, padded(dofs), ldn, w.Yt.data());
    multiply_symmetric(problem.Y.data(), n, dofs, padded(dofs), ldn, w, problem.G.data());
    return;
  }

  // Of several, each sees those that move it.
  for (int tree = 0; tree < trees; ++tree) {
    const int rows = collect_rows(problem, tree, w);
    const int dofs = problem.tree_size[tree];
    const int ld = padded(dofs);
    const int ldn = padded(rows);
    if (rows == 0) continue;
    grow(w.Yt, std::size_t(dofs) * ldn);
    grow(w.G, std::size_t(rows) * ldn);
    transpose(w.Y.data(), rows, dofs, ld, ldn, w.Yt.data());
    multiply_symmetric(w.Y.data(), rows, dofs, ld, ldn, w, w.G.data());
    add_product(rows, problem, w);
  }
}

bool prefers_velocities(const ConstraintProblem& problem) {
  constexpr int dense_rows = 24;   // up to here a dense matrix over rows is always at least as fast
  constexpr int sparse_rows = 48;  // of several trees: from here their sparsity pays
  const auto trees = problem.tree_size.size();
  if (trees == 0 || problem.n <= dense_rows) return false;
  if (trees > 2 && problem.n > sparse_rows) return true;
  int dofs = 0;
  for (int size : problem.tree_size)
    dofs += size;
  return problem.n >= 4 * dofs;
}

/// An entry of the diagonal alone: the squared length of a row of Y.
double delassus_diagonal(const ConstraintProblem& problem, int block, int row_of_block) {
  double sum = 0;
  for (const RowSegment& s : problem.segments[block]) {
    if (s.tree < 0) continue;
    const int size = problem.tree_size[s.tree];
    const double* y = problem.Y.data() + s.start + std::size_t(row_of_block) * padded(size);
    for (int k = 0; k < size; ++k)
      sum += y[k] * y[k];
  }
  return sum;
}

}  // namespace coulomb

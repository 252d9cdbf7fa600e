#include "coulomb/solvers/cancellation.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense_kernels.hpp"

namespace coulomb {
namespace {

constexpr double known_by_columns = 1e-9;  // d is a difference of impulses, known to so many digits
constexpr double known_by_matrix = 1e-14;  // its entries are sums of columns of any size: as good as its rounding
constexpr double smallest = 1e-300;

}  // namespace

void Cancellation::assign(const ConstraintProblem& problem, const double* inverse_root, const double* d) {
  double length = 0;
  double largest = 0;
  for (int i = 0; i < problem.n; ++i) {
    length += d[i] * d[i];
    largest = std::max(largest, std::abs(d[i]));
  }

  // The work of d against itself: by columns where they are known, as they know masses of any ratio, else by the matrix.
  double work = 0;
  by_columns_ = !problem.tree_size.empty();
  known_ = by_columns_ ? known_by_columns : known_by_matrix;
  if (by_columns_) {
    add_columns(problem, inverse_root, d);
    for (const double s : sum_)
      work += s * s;
  } else {
    add_matrix(problem, inverse_root, d);
    for (int i = 0; i < problem.n; ++i)
      work += std::max(0.0, d[i] * sum_[i]);
  }

  // What is left of the sum in the column that cancels least. Rows that are compliant move themselves.
  left_ = 0;
  for (std::size_t k = 0; k < sum_.size(); ++k)
    left_ = std::max(left_, std::abs(sum_[k]) / std::max(largest * terms_[k], smallest));
  for (int i = 0; by_columns_ && i < problem.n; ++i) {
    const double moved = problem.R[i] * inverse_root[i] * inverse_root[i] * std::abs(d[i]);
    left_ = std::max(left_, moved / std::max(largest, smallest));
    work += moved * std::abs(d[i]);
  }
  ratio_ = length / std::max(work, smallest * length);
}

/// J^T d, in the columns of Y: every one has the scale of its dof's mobility, whatever the masses of others are.
void Cancellation::add_columns(const ConstraintProblem& problem, const double* inverse_root, const double* d) {
  // Trees lie one after the other.
  int columns = 0;
  for (const int size : problem.tree_size)
    columns += size;
  sum_.assign(std::size_t(columns), 0.0);
  terms_.assign(std::size_t(columns), 0.0);

  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    const Block& block = problem.blocks[b];
    for (const RowSegment& segment : problem.segments[b]) {
      if (segment.tree < 0) continue;
      int first = 0;
      for (int tree = 0; tree < segment.tree; ++tree)
        first += problem.tree_size[tree];

      const int size = problem.tree_size[segment.tree];
      for (int i = 0; i < block.size; ++i) {
        const double* row = problem.Y.data() + segment.start + std::size_t(i) * padded(size);
        const double scale = inverse_root[block.row + i];
        for (int k = 0; k < size; ++k) {
          sum_[first + k] += row[k] * scale * d[block.row + i];
          terms_[first + k] += std::abs(row[k]) * scale;
        }
      }
    }
  }
}

/// G d, with the R that is in c and not in G.
void Cancellation::add_matrix(const ConstraintProblem& problem, const double* inverse_root, const double* d) {
  sum_.assign(std::size_t(problem.n), 0.0);
  terms_.assign(std::size_t(problem.n), 0.0);
  for (int i = 0; i < problem.n; ++i) {
    for (int j = 0; j < problem.n; ++j) {
      double entry = problem.G[std::size_t(i) * problem.ld + j];
      if (i == j) entry += problem.R[i];
      entry *= inverse_root[i] * inverse_root[j];
      sum_[i] += entry * d[j];
      terms_[i] += std::abs(entry);
    }
  }
}

}  // namespace coulomb

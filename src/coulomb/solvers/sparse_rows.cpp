#include "coulomb/solvers/sparse_rows.hpp"

#include <algorithm>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void add_rows(const double* __restrict values, int rows, int ld, const double* x, double* __restrict w) {
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < ld; ++k) w[k] += x[i] * values[i * ld + k];
}

COULOMB_SIMD void add_dots(const double* __restrict values, int rows, int ld, const double* __restrict w, double* y) {
  for (int i = 0; i < rows; ++i) {
    double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};  // eight chains: vectorised without reassociation
    for (int k = 0; k < ld; k += 8)
      for (int l = 0; l < 8; ++l) sum[l] += values[i * ld + k + l] * w[k + l];
    y[i] += ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
  }
}

}  // namespace

void SparseRows::assign(const ConstraintProblem& problem, const double* scale) {
  problem_ = &problem;
  const int trees = static_cast<int>(problem.tree_size.size());
  if (static_cast<int>(tree_start_.size()) < trees + 1) tree_start_.resize(trees + 1);
  tree_start_[0] = 0;
  for (int t = 0; t < trees; ++t) tree_start_[t + 1] = tree_start_[t] + dense::padded(problem.tree_size[t]);
  columns_ = tree_start_[trees];
  if (values_.size() < problem.Y.size()) values_.resize(problem.Y.size());

  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    for (const RowSegment& segment : problem.segments[b]) {
      if (segment.tree < 0) continue;
      const int ld = dense::padded(problem.tree_size[segment.tree]);
      for (int i = 0; i < problem.blocks[b].size; ++i) {
        const double d = scale[problem.blocks[b].row + i];
        const double* from = problem.Y.data() + segment.start + i * ld;
        double* to = values_.data() + segment.start + i * ld;
        for (int k = 0; k < ld; ++k) to[k] = d * from[k];
      }
    }
  }
}

SparseRows::Segment SparseRows::segment(int block, int k) const {
  const RowSegment& s = problem_->segments[block][k];
  if (s.tree < 0) return {};
  return {s.tree, problem_->tree_size[s.tree], tree_ld(s.tree), tree_start_[s.tree], values_.data() + s.start};
}

void SparseRows::times_transposed(const double* x, double* w) const {
  std::fill_n(w, columns_, 0.0);
  for (std::size_t b = 0; b < problem_->blocks.size(); ++b) {
    const Block& block = problem_->blocks[b];
    for (int k = 0; k < 2; ++k) {
      const Segment s = segment(static_cast<int>(b), k);
      if (s.tree >= 0) add_rows(s.values, block.size, s.ld, x + block.row, w + s.start);
    }
  }
}

void SparseRows::add_times(const double* w, double* y) const {
  for (std::size_t b = 0; b < problem_->blocks.size(); ++b) {
    const Block& block = problem_->blocks[b];
    for (int k = 0; k < 2; ++k) {
      const Segment s = segment(static_cast<int>(b), k);
      if (s.tree >= 0) add_dots(s.values, block.size, s.ld, w + s.start, y + block.row);
    }
  }
}

}  // namespace coulomb

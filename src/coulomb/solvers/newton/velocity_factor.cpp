#include "coulomb/solvers/newton/velocity_factor.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/lanes.hpp"
#include "coulomb/linalg/dense_blocked.hpp"

namespace coulomb {
namespace {

constexpr int largest_block = 6;

/// out = K Y of blocks below one another, each with its own K.
template <int width>
COULOMB_INLINE void weigh_rows_lanes(const Block* blocks, int count, const double* K, const double* Y, int ld,
                                     double* out) {
  for (int b = 0; b < count; ++b) {
    const int rows = blocks[b].size;
    for (int i = 0; i < rows; ++i) {
      for (int k = 0; k < ld; k += width) {
        Vector<width> sum{};
        for (int j = 0; j < rows; ++j)
          sum += K[i * rows + j] * load_vector<width>(Y + j * ld + k);
        store_vector<width>(out + i * ld + k, sum);
      }
    }
    K += rows * rows;
    Y += rows * ld;
    out += rows * ld;
  }
}
COULOMB_SIMD_BY_WIDTH(void, weigh_rows,
                      (const Block* blocks, int count, const double* K, const double* Y, int ld, double* out),
                      (blocks, count, K, Y, ld, out))

}  // namespace

void BlockMatrices::resize(const Block* blocks, int num_blocks) {
  if (static_cast<int>(start_.size()) < num_blocks + 1) {
    start_.resize(num_blocks + 1);
  }
  int end = 0;
  for (int b = 0; b < num_blocks; ++b) {
    start_[b] = end;
    end += blocks[b].size * blocks[b].size;
  }
  start_[num_blocks] = end;
  if (static_cast<int>(values_.size()) < end) {
    values_.resize(end);
  }
}

bool invert_small(double* A, int n) {
  if (n == 1) {
    A[0] = 1.0 / A[0];
    return std::isfinite(A[0]);
  }

  // Gauss and Jordan, with the identity beside.
  double B[largest_block * largest_block] = {0};
  for (int i = 0; i < n; ++i)
    B[i * n + i] = 1;
  for (int k = 0; k < n; ++k) {
    // The largest entry of the column.
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A[i * n + k]) > std::abs(A[best * n + k])) {
        best = i;
      }
    if (!(std::abs(A[best * n + k]) > 0)) return false;

    // On the diagonal, scaled to one ...
    for (int j = 0; j < n && best != k; ++j) {
      std::swap(A[k * n + j], A[best * n + j]);
      std::swap(B[k * n + j], B[best * n + j]);
    }
    const double inverse = 1.0 / A[k * n + k];
    for (int j = 0; j < n; ++j) {
      A[k * n + j] *= inverse;
      B[k * n + j] *= inverse;
    }

    // ... and all others of the column zero.
    for (int i = 0; i < n; ++i) {
      const double factor = A[i * n + k];
      if (i == k || factor == 0.0) continue;
      for (int j = 0; j < n; ++j) {
        A[i * n + j] -= factor * A[k * n + j];
        B[i * n + j] -= factor * B[k * n + j];
      }
    }
  }
  std::copy_n(B, n * n, A);
  return true;
}

/// Y^T K Y of the blocks of a run, on each pair of the trees that they move.
void VelocityFactor::add_run(const SparseRows& Y, const SparseRows::Run& run, const Block* blocks,
                             const BlockMatrices& K) {
  for (int p = run.first_panel; p < run.end_panel; ++p) {
    // Y of a tree, weighed ...
    const SparseRows::Panel& right = Y.panel(p);
    weigh_rows(blocks + run.first_block, run.end_block - run.first_block, K[run.first_block], Y.values(right), right.ld,
               KY_.data());

    // ... beside that of every tree of the run, itself among them.
    for (int o = run.first_panel; o < run.end_panel; ++o) {
      const SparseRows::Panel& left = Y.panel(o);
      std::fill_n(product_.begin(), left.size * right.ld, 0.0);
      dense::add_product(1, Y.values(left), 1, left.ld, KY_.data(), right.ld, product_.data(), right.ld, left.size,
                         right.rows, right.ld);
      tree_.add(left.tree, right.tree, product_.data(), right.ld);
    }
  }
}

bool VelocityFactor::factorise(const SparseRows& Y, const Block* blocks, const BlockMatrices& K) {
  // Who shares a constraint with whom.
  couplings_.clear();
  std::size_t widest = 0;
  std::size_t longest = 0;
  for (const SparseRows::Run& run : Y.runs()) {
    for (int p = run.first_panel; p < run.end_panel; ++p) {
      const auto ld = static_cast<std::size_t>(Y.panel(p).ld);
      widest = std::max(widest, ld);
      longest = std::max(longest, ld * Y.panel(p).rows);
    }
    if (run.end_panel - run.first_panel < 2) continue;
    const std::pair<int, int> coupling = std::minmax(Y.panel(run.first_panel).tree, Y.panel(run.first_panel + 1).tree);
    if (couplings_.empty() || couplings_.back() != coupling) {
      couplings_.push_back(coupling);
    }
  }

  tree_.analyse(Y.tree_size(), couplings_);
  if (KY_.size() < longest) KY_.resize(longest);
  if (product_.size() < widest * widest) {
    product_.resize(widest * widest);
  }

  // H = 1 + Y^T K Y, docs/theory.md (C11).
  tree_.clear();
  for (const SparseRows::Run& run : Y.runs())
    add_run(Y, run, blocks, K);
  return tree_.factorise();
}

}  // namespace coulomb

#include "coulomb/solvers/velocity_factor.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/simd.hpp"
#include "coulomb/solvers/dense_blocked.hpp"

namespace coulomb {
namespace {

constexpr int largest_block = 6;

/// out (rows x ld) = K Y.
COULOMB_SIMD void weigh_rows(const double* K, const double* __restrict Y, int rows, int ld, double* __restrict out) {
  for (int i = 0; i < rows; ++i) {
    double* __restrict target = out + static_cast<long>(i) * ld;
    for (int k = 0; k < ld; ++k) target[k] = 0;
    for (int j = 0; j < rows; ++j) {
      const double weight = K[i * rows + j];
      if (weight == 0.0) continue;
      for (int k = 0; k < ld; ++k) target[k] += weight * Y[static_cast<long>(j) * ld + k];
    }
  }
}

/// out (size_a x ld_b) = A^T B, A: rows x ld_a, B: rows x ld_b.
COULOMB_SIMD void outer_product(const double* A, int size_a, int ld_a, const double* __restrict B, int ld_b, int rows,
                                double* __restrict out) {
  for (int k = 0; k < size_a; ++k) {
    double* __restrict target = out + static_cast<long>(k) * ld_b;
    for (int l = 0; l < ld_b; ++l) target[l] = 0;
    for (int i = 0; i < rows; ++i) {
      const double a = A[static_cast<long>(i) * ld_a + k];
      if (a == 0.0) continue;
      for (int l = 0; l < ld_b; ++l) target[l] += a * B[static_cast<long>(i) * ld_b + l];
    }
  }
}

}  // namespace

void BlockMatrices::resize(const Block* blocks, int num_blocks) {
  if (static_cast<int>(start_.size()) < num_blocks + 1) start_.resize(num_blocks + 1);
  int end = 0;
  for (int b = 0; b < num_blocks; ++b) {
    start_[b] = end;
    end += blocks[b].size * blocks[b].size;
  }
  start_[num_blocks] = end;
  if (static_cast<int>(values_.size()) < end) values_.resize(end);
}

bool invert_small(double* A, int n) {
  if (n == 1) {
    A[0] = 1.0 / A[0];
    return std::isfinite(A[0]);
  }

  // Gauss and Jordan, with the identity beside.
  double B[largest_block * largest_block] = {0};
  for (int i = 0; i < n; ++i) B[i * n + i] = 1;
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(A[i * n + k]) > std::abs(A[best * n + k])) best = i;
    if (!(std::abs(A[best * n + k]) > 0)) return false;
    for (int j = 0; j < n && best != k; ++j) {
      std::swap(A[k * n + j], A[best * n + j]);
      std::swap(B[k * n + j], B[best * n + j]);
    }
    const double inverse = 1.0 / A[k * n + k];
    for (int j = 0; j < n; ++j) {
      A[k * n + j] *= inverse;
      B[k * n + j] *= inverse;
    }
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

void VelocityFactor::add_block(const SparseRows& Y, int block, int size, const double* K) {
  for (int second = 0; second < 2; ++second) {
    const SparseRows::Segment right = Y.segment(block, second);
    if (right.tree < 0) continue;
    weigh_rows(K, right.values, size, right.ld, KY_.data());
    for (int first = 0; first < 2; ++first) {
      const SparseRows::Segment left = Y.segment(block, first);
      if (left.tree < 0) continue;
      outer_product(left.values, left.size, left.ld, KY_.data(), right.ld, size, product_.data());
      tree_.add(left.tree, right.tree, product_.data(), right.ld);
    }
  }
}

bool VelocityFactor::factorise(const SparseRows& Y, const Block* blocks, int num_blocks, const BlockMatrices& K) {
  // Who shares a constraint with whom.
  couplings_.clear();
  int widest = 0;
  for (int b = 0; b < num_blocks; ++b) {
    const SparseRows::Segment first = Y.segment(b, 0);
    const SparseRows::Segment second = Y.segment(b, 1);
    widest = std::max({widest, first.ld, second.ld});
    if (second.tree < 0 || first.tree < 0) continue;
    const std::pair<int, int> coupling = std::minmax(first.tree, second.tree);
    if (couplings_.empty() || couplings_.back() != coupling) couplings_.push_back(coupling);
  }
  tree_.analyse(Y.tree_size(), couplings_);
  const auto largest = static_cast<std::size_t>(widest);
  if (KY_.size() < largest_block * largest) KY_.resize(largest_block * largest);
  if (product_.size() < largest * largest) product_.resize(largest * largest);

  tree_.clear();
  for (int b = 0; b < num_blocks; ++b) add_block(Y, b, blocks[b].size, K[b]);
  return tree_.factorise();
}

}  // namespace coulomb

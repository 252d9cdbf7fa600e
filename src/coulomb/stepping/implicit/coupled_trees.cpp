#include "coulomb/stepping/implicit/coupled_trees.hpp"

#include <algorithm>
#include <numeric>

#include "coulomb/constraints/islands.hpp"

namespace coulomb {

void CoupledTrees::separate() { std::iota(parent_.begin(), parent_.end(), 0); }

bool CoupledTrees::join(const Model& model, const ConstraintRows& rows) {
  bool joined = false;
  for_each_block(model, rows, [&](int, BlockTrees trees) {
    if (trees.first < 0 || trees.second < 0) return;
    const int a = first_of(trees.first);
    const int b = first_of(trees.second);
    joined = joined || a != b;
    parent_[std::max(a, b)] = std::min(a, b);
  });
  return joined;
}

/// Paths are halved on the way, so that they stay short.
int CoupledTrees::first_of(int tree) {
  while (parent_[tree] != tree) {
    parent_[tree] = parent_[parent_[tree]];
    tree = parent_[tree];
  }
  return tree;
}

}  // namespace coulomb

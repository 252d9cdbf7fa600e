#include "coulomb/stepping/implicit/coupled_trees.hpp"

#include <algorithm>
#include <numeric>

#include "coulomb/constraints/islands.hpp"

namespace coulomb {

void CoupledTrees::separate() {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (const auto& [a, b] : ties_)
    join(a, b);
}

bool CoupledTrees::join(const Model& model, const ConstraintRows& rows) {
  bool joined = false;
  for_each_block(model, rows, [&](int, BlockTrees trees) {
    if (trees.first < 0 || trees.second < 0) return;
    joined = join(trees.first, trees.second) || joined;
  });
  return joined;
}

bool CoupledTrees::join(int a, int b) {
  a = first_of(a);
  b = first_of(b);
  parent_[std::max(a, b)] = std::min(a, b);
  return a != b;
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

// Friction cones that a tree is held between.
#include "coulomb/stepping/semi_implicit/wedges.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

// Per island: of more the starts are too many and too dear, for a derivative that ordinary steps do not feel.
constexpr int most_contacts = 12;

}  // namespace

void Wedges::add_push(const Model& model, int body, double sign, const double* normal, int block, double mu) {
  const int tree = model.body_tree[body];
  if (tree < 0) return;
  Push push;
  push.tree = tree;
  push.block = block;
  push.cosine = 1 / std::sqrt(1 + mu * mu);
  push.sine = mu * push.cosine;
  for (int i = 0; i < 3; ++i)
    push.direction[i] = sign * normal[i];
  pushes_.push_back(push);
}

/// Is the angle between one direction and the opposite of the other less than both cones' half angles together?
bool Wedges::oppose(const Push& a, const Push& b) {
  return dot3(a.direction, b.direction) < a.sine * b.sine - a.cosine * b.cosine;
}

void Wedges::find(const Model& model, const ConstraintRows& rows, const Islands& islands) {
  // What every contact does to the trees of its bodies.
  wedged_.clear();
  pushes_.clear();
  pair_of_.assign(rows.blocks.size(), -1);
  contacts_.assign(islands.pool.size(), 0);
  int pair = -1;
  const BodyRows* before = nullptr;
  for (const BodyRows& b : rows.body_rows) {
    if (b.contact < 0) continue;
    const bool same = before && before->body_a == b.body_a && before->body_b == b.body_b;
    if (!same) ++pair;
    before = &b;
    pair_of_[b.block] = pair;
    ++contacts_[islands.of_block(b.block)];
    const double mu = rows.blocks[b.block].mu;
    if (!(mu > 0)) continue;
    add_push(model, b.body_a, 1, b.axes[2], b.block, mu);
    add_push(model, b.body_b, -1, b.axes[2], b.block, mu);
  }
  if (pair < 1) return;

  // Two pushes of one tree against each other.
  std::sort(pushes_.begin(), pushes_.end(), [](const Push& a, const Push& b) {
    return a.tree != b.tree ? a.tree < b.tree : a.block < b.block;
  });
  for (std::size_t i = 0; i < pushes_.size(); ++i) {
    const int island = islands.of_block(pushes_[i].block);
    if (contacts_[island] > most_contacts) continue;
    for (std::size_t j = i + 1; j < pushes_.size() && pushes_[j].tree == pushes_[i].tree; ++j) {
      if (pair_of_[pushes_[i].block] == pair_of_[pushes_[j].block] || !oppose(pushes_[i], pushes_[j])) continue;
      wedged_.push_back(island);
      break;
    }
  }
  std::sort(wedged_.begin(), wedged_.end());
  wedged_.erase(std::unique(wedged_.begin(), wedged_.end()), wedged_.end());
}

const std::vector<int>& Wedges::pairs_of_bodies(const Islands& islands, int island) {
  const std::vector<int>& blocks = islands.pool[island].blocks;
  groups_.resize(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    groups_[b] = pair_of_[blocks[b]];
  return groups_;
}

}  // namespace coulomb

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
constexpr double touching =
    1e-9;  // of a cosine: cones whose borders are opposite hold, too, as floor and wall with friction 1

}  // namespace

void Wedges::add_push(const Model& model, const BodyRows& rows, int body, double sign, int pair, double mu) {
  const int tree = model.body_tree[body];
  if (tree < 0) return;
  Push push;
  push.tree = tree;
  push.body = body;
  push.inner = model.body_tree[rows.body_a] == model.body_tree[rows.body_b];
  push.block = rows.block;
  push.pair = pair;
  push.cosine = 1 / std::sqrt(1 + mu * mu);
  push.sine = mu * push.cosine;
  for (int i = 0; i < 3; ++i)
    push.direction[i] = sign * rows.axes[2][i];
  pushes_.push_back(push);
}

/// Is the angle between one direction and the opposite of the other no more than both cones' half angles together?
bool Wedges::oppose(const Push& a, const Push& b) {
  return dot3(a.direction, b.direction) <= a.sine * b.sine - a.cosine * b.cosine + touching;
}

void Wedges::find(const Model& model, const ConstraintRows& rows, const Islands& islands) {
  // What every contact does to the trees of its bodies.
  wedged_.clear();
  pushes_.clear();
  int pair = -1;
  const BodyRows* before = nullptr;
  for (const BodyRows& b : rows.body_rows) {
    const double mu = b.contact >= 0 ? rows.blocks[b.block].mu : 0;
    if (!(mu > 0)) continue;
    const bool same = before && before->body_a == b.body_a && before->body_b == b.body_b;
    if (!same) ++pair;
    before = &b;
    add_push(model, b, b.body_a, 1, pair, mu);
    add_push(model, b, b.body_b, -1, pair, mu);
  }
  if (pair < 1) return;

  // Two pushes of one tree against each other. What its own bodies do to one another holds none but these bodies. A contact pushes a tree twice at most.
  std::sort(pushes_.begin(), pushes_.end(),
            [](const Push& a, const Push& b) { return a.tree != b.tree ? a.tree < b.tree : a.block < b.block; });
  for (auto first = pushes_.cbegin(), end = first; first != pushes_.cend(); first = end) {
    end = std::find_if(first, pushes_.cend(), [&](const Push& push) { return push.tree != first->tree; });
    if (end - first > 2 * most_contacts || !any_oppose(first, end)) continue;
    wedged_.push_back(islands.of_block(first->block));
  }
  if (!wedged_.empty()) leave_small(rows, islands);
}

bool Wedges::any_oppose(std::vector<Push>::const_iterator first, std::vector<Push>::const_iterator end) {
  for (auto a = first; a != end; ++a)
    for (auto b = a + 1; b != end; ++b)
      if (a->pair != b->pair && (a->body == b->body || !(a->inner || b->inner)) && oppose(*a, *b)) return true;
  return false;
}

/// Islands of few contacts, each once; and the pairs of bodies of all blocks.
void Wedges::leave_small(const ConstraintRows& rows, const Islands& islands) {
  pair_of_.assign(rows.blocks.size(), -1);
  contacts_.assign(islands.pool.size(), 0);
  for (const Push& push : pushes_) {
    if (pair_of_[push.block] < 0) ++contacts_[islands.of_block(push.block)];
    pair_of_[push.block] = push.pair;
  }
  std::sort(wedged_.begin(), wedged_.end());
  wedged_.erase(std::unique(wedged_.begin(), wedged_.end()), wedged_.end());
  const auto many = [&](int island) { return contacts_[island] > most_contacts; };
  wedged_.erase(std::remove_if(wedged_.begin(), wedged_.end(), many), wedged_.end());
}

const std::vector<int>& Wedges::pairs_of_bodies(const Islands& islands, int island) {
  const std::vector<int>& blocks = islands.pool[island].blocks;
  groups_.resize(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    groups_[b] = pair_of_[blocks[b]];
  return groups_;
}

}  // namespace coulomb

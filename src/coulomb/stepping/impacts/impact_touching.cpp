// What touches where a phase of a split step starts: what its problem holds, what comes down, what is hit, and whom an impact reaches.
#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/stepping/impacts/impact_contact.hpp"
#include "coulomb/stepping/impacts/impact_limits.hpp"
#include "coulomb/stepping/impacts/impact_splitter.hpp"

namespace coulomb {

/// Leaves the contacts that the next problem holds; link twists at v.
void ImpactSplitter::keep_touching(GapRule gaps) {
  StepRecord& r = at();
  std::vector<Contact>& contacts = r.collision.contacts;
  if (contacts.empty()) return;

  // An impact keeps what brought us here, whatever rounding makes of its gap.
  link_twists(model_, r.dynamics, r.v.data(), r.twist.data());
  const ConstraintOptions& c = gaps == GapRule::held ? phases_.smooth.constraints : phases_.impact.constraints;
  const auto leaves = [&](const Contact& contact) {
    const bool was_hit = gaps == GapRule::impact && contact.pair == hit_pair() && contact.distance < event_gap;
    return !was_hit && !is_held(c, contact.distance, normal_velocity(model_, r, contact));
  };
  contacts.erase(std::remove_if(contacts.begin(), contacts.end(), leaves), contacts.end());
}

/// Leaves out what is hit: the phase goes to the time at which that touched.
void ImpactSplitter::leave_out_hits(StepRecord& r) const {
  std::vector<Contact>& contacts = r.collision.contacts;
  const auto hits = [&](const Contact& c) { return is_hit(r, c); };
  contacts.erase(std::remove_if(contacts.begin(), contacts.end(), hits), contacts.end());
}

/// Does it come down fast enough to bounce, or to sink visibly before a smooth phase has stopped it? For link twists at v.
bool ImpactSplitter::comes_down(const StepRecord& r, const Contact& contact) const {
  const double bouncing = std::max(options_.constraints.restitution_threshold, 1e-9);
  const double speed = -normal_velocity(model_, r, contact);
  const bool bounces = model_.pair_restitution[contact.pair] > 0 && speed > bouncing;
  return speed > phases_.impact.constraints.held_speed || bounces;
}

/// And not from an overlap in which it was a step ago already.
bool ImpactSplitter::is_hit(const StepRecord& r, const Contact& contact) const {
  return comes_down(r, contact) && contact.distance >= h_ * normal_velocity(model_, r, contact);
}

/// Pairs that come back without end, as those of a coin that wobbles almost flat do, now at one point, now at another: lifts would add
/// energy. Here all of a pair's points that can come down in the rest of the step come no nearer: an inelastic impact, which takes energy.
/// For link twists at v.
void ImpactSplitter::stop_rattling() {
  StepRecord& r = at();
  std::vector<Contact>& contacts = r.collision.contacts;
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const Contact c = contacts[i];
    if (!(c.lift > 0) || !phases_.sinking.has_sunk(c.pair)) continue;

    // How fast points of the smaller shape come down or rise: a spin about the normal moves none.
    double speed = std::abs(normal_velocity(model_, r, c));
    for (const int body : {c.body_a, c.body_b}) {
      double tilting[3];
      cross3(body_link_twist(model_, r.twist.data(), body) + 3, c.normal, tilting);
      speed += 2 * c.size * norm3(tilting);
    }

    // Contacts are in the order of pairs.
    collide_moved_pair(model_, c.pair, {c.point}, rest_ * speed, r.collision, phases_.found);
    const auto after = [&](const Contact& other) { return other.pair > c.pair; };
    for (const Contact& point : phases_.found) {
      if (SinkingContacts::is_among(contacts, point)) continue;
      contacts.insert(std::find_if(contacts.begin(), contacts.end(), after), point)->stops = true;
    }

    // Where impacts have run out, a pair with no other point to stop is thrown rather than left to wait.
    if (events_ <= options_.impacts.max_impacts) continue;
    const auto is_other = [&](const Contact& other) { return other.pair == c.pair && other.feature != c.feature; };
    if (std::none_of(contacts.begin(), contacts.end(), is_other)) phases_.sinking.comes_back_alone(c.pair);
  }
}

/// In phases_.hits: what touches and comes down, so that the time at which it touches moves with the state. True: something else comes
/// down, in a deep overlap. After keep_touching.
bool ImpactSplitter::find_hits() {
  const StepRecord& r = at();
  bool deep = false;
  for (const Contact& contact : r.collision.contacts) {
    if (is_hit(r, contact))
      phases_.hits.push_back({contact});
    else
      deep = deep || comes_down(r, contact);
  }

  // Joints that are at their limits or beyond, by the same measure.
  const ConstraintOptions& c = phases_.impact.constraints;
  any_limit(model_, r.q.data(), r.v.data(), [&](int joint, bool upper, double phi, double rate) {
    if (!is_held(c, phi, rate) || -rate <= c.held_speed) return false;
    if (phi >= h_ * rate)
      phases_.hits.push_back({{}, joint, upper});
    else
      deep = true;
    return false;
  });
  return deep;
}

/// Has it touched at once? What lies above, and is not held at other points, is left to the search. After what hits was left out.
bool ImpactSplitter::has_touched(const ClosingGap& hit) const {
  if (hit.joint >= 0 || hit.contact.distance <= 0) return true;
  const std::vector<Contact>& held = phases_.record(phases_.count - 1, step_).collision.contacts;
  return std::any_of(held.begin(), held.end(), [&](const Contact& c) { return c.pair == hit.contact.pair; });
}

bool ImpactSplitter::any_has_touched() const {
  const std::vector<ClosingGap>& hits = phases_.hits;
  return std::any_of(hits.begin(), hits.end(), [&](const ClosingGap& hit) { return has_touched(hit); });
}

/// In phases_.struck: the trees of what comes down, or has sunk and is parted. Islands without any do not know of the impact. For link
/// twists at v.
void ImpactSplitter::find_struck(const StepRecord& r) {
  phases_.struck.trees.assign(model_.num_trees, 0);
  const auto strike = [&](int body) {
    const int tree = model_.body_tree[body];
    if (tree >= 0) {
      phases_.struck.trees[tree] = 1;
    }
  };

  // Pairs.
  for (const Contact& c : r.collision.contacts) {
    const bool parts = c.lift > 0 && phases_.sinking.has_sunk(c.pair);
    if (c.pair != hit_pair() && !parts && !comes_down(r, c)) continue;
    strike(c.body_a);
    strike(c.body_b);
  }

  // Joints at their limits; the one that brought us here, whatever rounding makes of its gap.
  const int reached = event() ? event()->gap.joint : -1;
  const ConstraintOptions& c = phases_.impact.constraints;
  any_limit(model_, r.q.data(), r.v.data(), [&](int joint, bool, double phi, double rate) {
    if (joint == reached || (is_held(c, phi, rate) && -rate > c.held_speed)) {
      strike(model_.joint_body[joint]);
    }
    return false;
  });
}

/// A tree that the gap moves with; of a pair with the world, the other one.
int ImpactSplitter::tree_of(const ClosingGap& gap) const {
  if (gap.joint >= 0) return model_.body_tree[model_.joint_body[gap.joint]];
  return std::max(model_.body_tree[gap.contact.body_a], model_.body_tree[gap.contact.body_b]);
}

/// Keeps the fastest hit of every island other than that of the event; all of them may be ties.
void ImpactSplitter::add_event(ImpactPhase& ended, const StepRecord& r, int block, double speed,
                               const ClosingGap& gap) {
  ended.ties.push_back(gap);
  if (r.solution.modes[block] == Mode::separating) return;
  int& event = phases_.events[r.islands.of_block(block)];
  if (event == 0) return;

  if (event < 0) {
    ended.others.push_back(gap);
    phases_.approach.push_back(speed);
    event = static_cast<int>(ended.others.size());
  } else if (speed > phases_.approach[event - 1]) {
    ended.others[event - 1] = gap;
    phases_.approach[event - 1] = speed;
  }
}

/// (I8): of what hits at the same time, islands that do not know each other have times of their own.
void ImpactSplitter::separate_events(ImpactPhase& ended, const StepRecord& r) {
  phases_.events.assign(r.islands.pool.size(), -1);
  phases_.events[r.islands.of_tree(tree_of(ended.gap))] = 0;
  phases_.approach.clear();

  // Pairs whose gap is closed just now.
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& contact = r.collision.contacts[b.contact];
    if (is_hit(r, contact) && std::abs(contact.distance) <= closed_gap)
      add_event(ended, r, b.block, -normal_velocity(model_, r, contact), {contact});
  }

  // Joints that are just at their limits. Balls have an upper one only.
  for (const DofRow& d : r.rows.dof_rows) {
    if (r.rows.blocks[d.block].type != BlockType::limit) continue;
    double rate = 0;
    for (int i = 0; i < d.num; ++i)
      rate += d.coefficient[i] * r.v[d.dof[i]];
    const bool upper = d.num == 3 || d.coefficient[0] < 0;
    if (-rate > phases_.impact.constraints.held_speed && std::abs(d.phi) <= closed_gap)
      add_event(ended, r, d.block, -rate, {{}, model_.dof_joint[d.dof[0]], upper});
  }
  if (ended.others.empty()) return;

  // Dofs of islands that hit nothing go with the event.
  ended.event_of_dof.assign(model_.nv, 0);
  for (int t = 0; t < model_.num_trees; ++t)
    for (int d = model_.tree_first_dof[t]; d < model_.tree_first_dof[t + 1]; ++d)
      ended.event_of_dof[d] = std::max(phases_.events[r.islands.of_tree(t)], 0);
}

}  // namespace coulomb

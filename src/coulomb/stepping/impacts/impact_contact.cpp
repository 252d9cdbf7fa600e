#include "coulomb/stepping/impacts/impact_contact.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

// m, and of the shapes' size: the two distance routines agree to this on where.
constexpr double same_point = 1e-4;

}  // namespace

/// `hit` becomes the contact of its pair that lies at the same place; where the list has none, one is found and put there.
void find_contact(const Model& model, CollisionWorkspace& collision, std::vector<Contact>& found, Contact& hit) {
  auto& contacts = collision.contacts;

  // The nearest contact of the pair at the same distance, at the same place or anywhere.
  const Contact* best = nullptr;
  const auto look = [&](const std::vector<Contact>& list, bool anywhere) {
    double nearest = 0;
    best = nullptr;
    for (const Contact& c : list) {
      double apart[3];
      sub3(c.point, hit.point, apart);
      const double away = norm3(apart);
      const double off = std::abs(c.distance - hit.distance);
      if (c.pair != hit.pair || off >= event_gap || !(anywhere || away <= same_point * (1 + c.size))) continue;
      if (best && !(away < nearest)) continue;
      best = &c;
      nearest = away;
    }
    return best != nullptr;
  };

  // Outside its margin, or a manifold that leaves the nearest point out: the pair is looked at again, and its contacts replaced.
  if (!look(contacts, false)) {
    collide_moved_pair(model, hit.pair, {hit.point}, 2 * event_gap, collision, found);
    if (!look(found, false) && !look(found, true)) {
      found.assign(1, hit);
    }
    const auto is_hit = [&](const Contact& c) { return c.pair == hit.pair; };
    contacts.erase(std::remove_if(contacts.begin(), contacts.end(), is_hit), contacts.end());
    const auto is_behind = [&](const Contact& c) { return c.pair > hit.pair; };
    contacts.insert(std::find_if(contacts.begin(), contacts.end(), is_behind), found.begin(), found.end());
    if (!look(contacts, false)) look(contacts, true);
  }
  hit = *best;
}

}  // namespace coulomb

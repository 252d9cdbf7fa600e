#include "coulomb/stepping/impacts/impact_sinking.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"

namespace coulomb {
namespace {

constexpr double growth = 4;       // of the speed, from one time to the next
constexpr int gentle_growths = 3;  // a hop of the energy of a few tolerances of height; faster ones add energy
// From there on, of a pair that has no other point to stop (range 1.5 to 3: with 4 twice as many scenes gain energy in a step, with
// smaller ones impacts run out more often).
constexpr double growth_alone = 2;
constexpr int most_growths = 12;
constexpr double same_place = 1e-6;  // m, rad: the chain ends with more motion than this
constexpr double same_point = 0.02;  // of the shapes' size
constexpr std::size_t longest_chain = 8;

/// How much faster a pair is lifted that came back this often.
double growth_after(int count) {
  const int gentle = std::min(count, gentle_growths);
  return std::pow(growth, gentle) * std::pow(growth_alone, count - gentle);
}

/// Is there a contact of the same pair at the same place?
bool has_point(const std::vector<Contact>& contacts, const Contact& c) {
  for (const Contact& other : contacts) {
    if (other.pair != c.pair) continue;
    double apart[3];
    sub3(other.point, c.point, apart);
    if (norm3(apart) <= same_point * std::max(c.size, other.size) + same_place) return true;
  }
  return false;
}

}  // namespace

/// At the begin of a step.
void SinkingContacts::clear() {
  returning_.clear();
  chain_.clear();
  lifted_.clear();
  hurries_ = false;
  returning_.reserve(16);
  chain_.reserve(longest_chain);
  lifted_.reserve(longest_chain);
}

/// By its features, or by its place.
bool SinkingContacts::is_among(const std::vector<Contact>& contacts, const Contact& contact) {
  const auto is_same = [&](const Contact& c) { return c.pair == contact.pair && c.feature == contact.feature; };
  return std::any_of(contacts.begin(), contacts.end(), is_same) || has_point(contacts, contact);
}

bool SinkingContacts::has_sunk(int pair) const {
  return std::any_of(returning_.begin(), returning_.end(), [&](const Returning& known) { return known.pair == pair; });
}

void SinkingContacts::creeps(int pair) {
  // The pair sinks again: next time it is lifted faster.
  for (Returning& known : returning_) {
    if (known.pair != pair) continue;
    known.count = std::min(known.count + 1, known.alone ? most_growths : gentle_growths);
    return;
  }
  returning_.push_back({pair, 0, false});
}

void SinkingContacts::comes_back_alone(int pair) {
  for (Returning& known : returning_)
    if (known.pair == pair) known.alone = true;
}

/// A pair has closed. moved: how far bodies went since the last one; held: contacts of the phase before.
void SinkingContacts::hit(const Contact& contact, bool sank, double moved, const std::vector<Contact>& held,
                          std::vector<Contact>& contacts) {
  if (moved > same_place) chain_.clear();

  // What has left the overlap starts anew: it needs no more speed than before.
  if (!sank && contact.distance > -closed_gap) forget(contact.pair);

  // Bodies that rattle at one place are lifted by what they were held by.
  const auto of_pair = [&](const Contact& c) { return c.pair == contact.pair; };
  const bool known = has_point(chain_, contact);
  if (sank && is_among(held, contact) && (known || std::none_of(chain_.begin(), chain_.end(), of_pair)))
    creeps(contact.pair);
  else if (hurries_ && is_among(lifted_, contact))
    creeps(contact.pair);

  // Points that have closed at this place stay in the problem.
  for (const Contact& earlier : chain_) {
    if (!of_pair(earlier) || has_point(contacts, earlier)) continue;
    const auto after = [&](const Contact& c) { return c.pair > earlier.pair; };
    contacts.insert(std::find_if(contacts.begin(), contacts.end(), after), earlier)->rule = MotionRule::frozen;
  }
  if (chain_.size() < longest_chain && !known) {
    chain_.push_back(contact);
  }
}

/// How fast each contact that has sunk is parted.
bool SinkingContacts::lift(const ConstraintOptions& impact, double slowest, const std::vector<Contact>* held,
                           std::vector<Contact>& contacts) {
  bool any = false;
  for (Contact& contact : contacts) {
    contact.lift = 0;
    contact.turns_back = false;
    contact.stops = false;

    // Only what was held can have sunk, and what lands in the overlap that it was lifted from has not left it.
    if (!sank(impact, contact.distance)) continue;
    const bool was_held = held && is_among(*held, contact);
    if (!was_held && !is_among(lifted_, contact)) continue;
    contact.lift = slowest;
    contact.turns_back = was_held && has_point(*held, contact);

    // Pairs that have sunk before in this step, faster and faster.
    for (const Returning& known : returning_) {
      if (known.pair != contact.pair) continue;
      contact.lift = std::min(slowest * growth_after(known.count), std::max(slowest, impact.max_correction_speed));
      any = true;
    }
  }

  // What hops now.
  for (const Contact& contact : contacts)
    if (any && contact.lift > 0 && lifted_.size() < longest_chain && !is_among(lifted_, contact))
      lifted_.push_back(contact);
  return any;
}

/// This pair has not sunk.
void SinkingContacts::forget(int pair) {
  std::erase_if(returning_, [&](const Returning& known) { return known.pair == pair; });
  std::erase_if(lifted_, [&](const Contact& c) { return c.pair == pair; });
}

}  // namespace coulomb

#include "coulomb/collision/motion/smoothed_motion.hpp"

#include <algorithm>

#include "coulomb/base/random.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// The columns of a motion about its own point, for twists about `point`: v(own) = v + w x (own - point).
void add_about(const Contact& c, const ContactMotion& m, const double* point, double weight, ContactMotion& sum) {
  // From the common point to the contact's own.
  double arm[3];
  sub3(c.point, point, arm);

  // A turn about the common point moves the own one as well.
  const auto add = [&](const double* row, double* out) {
    for (int side = 0; side < 12; side += 6)
      for (int k = 0; k < 3; ++k) {
        double axis[3] = {0, 0, 0};
        double v[3];
        axis[k] = 1;
        cross3(axis, arm, v);
        out[side + k] += weight * row[side + k];
        out[side + 3 + k] += weight * (row[side + 3 + k] + dot3(row + side, v));
      }
  };

  for (int i = 0; i < 3; ++i) {
    add(m.dnormal[i], sum.dnormal[i]);
    add(m.dpoint[i], sum.dpoint[i]);
  }
  add(m.ddistance, sum.ddistance);
}

/// Of the points of two contacts.
double squared_distance(const Contact& a, const Contact& b) {
  double d[3];
  sub3(a.point, b.point, d);
  return dot3(d, d);
}

}  // namespace

// The lowest point has taken over; unless it stands for another contact of the pair that is closed, or as low as this
// one, and has a motion of its own: then the nearest.
const Contact* SmoothedMotion::carrier(const Contact& contact, const std::vector<Contact>& found) const {
  // The lowest and the nearest of the contacts that were found.
  const Contact* lowest = nullptr;
  const Contact* nearest = nullptr;
  for (const Contact& c : found) {
    if (!lowest || c.distance < lowest->distance) {
      lowest = &c;
    }
    if (!nearest || squared_distance(c, contact) < squared_distance(*nearest, contact)) {
      nearest = &c;
    }
  }

  // Does the lowest one stand for another contact?
  const double highest = std::max(contact.distance, model_.pair_margin[contact.pair]);
  for (const Contact& other : workspace_.contacts)
    if (lowest && other.pair == contact.pair && other.distance <= highest &&
        squared_distance(*lowest, other) < squared_distance(*lowest, contact))
      return nearest;
  return lowest;
}

void SmoothedMotion::operator()(const Contact& contact, ContactMotion& motion) const {
  // The same samples at every call for this contact.
  NormalNumbers normal(seed_ ^ (std::uint64_t(contact.pair) << 20) ^ std::uint64_t(contact.feature));
  ContactMotion sum{};
  ContactMotion one;
  int used = 0;
  std::vector<Contact> found;

  // Poses of A about this one, each with the contact that has taken over (G13).
  const double reach = 8 * scale_ + std::max(contact.distance, 0.0);
  for (int s = 0; s < samples_; ++s) {
    double shift[3];
    double turn[3];
    for (double& x : shift)
      x = scale_ * normal();
    const double angle = scale_ / std::max(contact.size, 1e-9);
    for (double& x : turn)
      x = angle * normal();
    collide_moved_pair(model_, contact.pair, {contact.point, shift, turn}, reach, workspace_, found);

    const Contact* chosen = carrier(contact, found);
    if (!chosen) continue;
    contact_motion(*chosen, one);
    if (one.frozen) continue;
    add_about(*chosen, one, contact.point, 1, sum);
    ++used;
  }

  if (used == 0) return contact_motion(contact, motion);
  motion = ContactMotion{};
  add_about(contact, sum, contact.point, 1.0 / used, motion);

  // The mean of turning normals is not quite tangent to this one.
  for (int c = 0; c < 12; ++c) {
    double along = 0;
    for (int i = 0; i < 3; ++i)
      along += contact.normal[i] * motion.dnormal[i][c];
    for (int i = 0; i < 3; ++i)
      motion.dnormal[i][c] -= along * contact.normal[i];
  }
}

}  // namespace coulomb

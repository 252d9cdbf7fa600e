// Contacts at the impacts of a split step: their separating velocity, and the contact of the collision stage that
// matches the one found by the search.
#pragma once

#include <vector>

#include "coulomb/collision/detect.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

/// m: the collision stage and the search agree to this on the distance of the pair that is hit.
inline constexpr double event_gap = 1e-7;

/// How fast the gap opens, for the link twists of the record.
inline double normal_velocity(const Model& model, const StepRecord& r, const Contact& c) {
  return normal_velocity(model, r.dynamics, r.twist.data(), c);
}

/// `hit` becomes the hit pair's contact as the collision stage sees it, with its rule of motion, and is among the stage's contacts
/// afterwards. found: scratch.
void find_contact(const Model& model, CollisionWorkspace& collision, std::vector<Contact>& found, Contact& hit);

}  // namespace coulomb

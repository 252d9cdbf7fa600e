// The signed distance of two posed shapes, however far apart: the one number of a pair that continuous collision detection follows.
// True distance or depth of the shapes (docs/theory.md (G1): max over n of -h_A(-n) - h_B(n)). Where shapes touch, the contacts of
// detect_contacts have it to rounding; those of a cylinder's cap that leans by less than 0.02, and of capsules nearly parallel, lie a
// little above it, those of nearly parallel faces a little below.
#pragma once

#include "coulomb/collision/shape.hpp"

namespace coulomb {

struct SignedDistance {
  double distance = 0;           ///< m: > 0 apart, < 0 penetrating
  double normal[3] = {0, 0, 1};  ///< unit, from B to A

  /// Witnesses: point_a - point_b = distance * normal
  double point_a[3] = {0, 0, 0};
  double point_b[3] = {0, 0, 0};
};

/// Two half-spaces: 1e30 apart. The value is not above -h_A(-n) - h_B(n) of the normal returned: a guess of the narrow phase about
/// the features that touch cannot make it too large.
void signed_distance(const Shape& a, const Shape& b, SignedDistance& out);

/// True only if the signed distance is more than `distance`; false where that takes more than a look. Not for half-spaces.
/// axis: a first guess of the direction from B to A (zero: none), on return the last one: with it the next look at a pair that has
/// hardly moved is one support point. It speeds the look up and can only turn false into true.
bool is_farther(const Shape& a, const Shape& b, double distance, double axis[3]);
bool is_farther(const Shape& a, const Shape& b, double distance);

/// -h_A(-n) - h_B(n): at most the signed distance, equal for the right unit normal. Neither is a half-space.
double separation_along(const Shape& a, const Shape& b, const double normal[3]);

}  // namespace coulomb

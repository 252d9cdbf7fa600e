// EPA on the cores of two overlapping convex shapes: the face of A - B nearest to the origin, hence the least
// translation that separates them, with the support points that name the features.
#pragma once

#include "coulomb/collision/narrow_phase/gjk.hpp"

namespace coulomb {

/// From an overlapping GJK simplex (grown to a tetrahedron here). On return `simplex` holds the nearest triangle with
/// the weights of the origin's projection and `normal` is the unit direction from B to A; the depth is returned (>= 0),
/// to the absolute `tolerance`. False in `solid` when A - B has no volume: depth 0 and a deterministic normal.
double epa(const Shape& a, const Shape& b, double tolerance, int hints[2], Simplex& simplex, double normal[3],
           bool& solid);

}  // namespace coulomb

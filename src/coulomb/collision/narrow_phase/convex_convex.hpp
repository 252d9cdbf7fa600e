// The general convex pair: every pair of {sphere, capsule, cylinder, box, ellipsoid, mesh} without a routine of its
// own. GJK (apart) or EPA (overlapping) on the cores, an exact finish on the features found, then the manifold
// (docs/theory/geometry.md "3. Several points").
#pragma once

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/collision/narrow_phase/convex_witness.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// Contacts of a and b closer than margin, at most 8, written to `out` (room for 8); returns their number. Fills
/// everything but the pair, geometry and body indices. Reads and, unless frozen, writes the pair's cache.
int collide_convex(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                   CollisionCache::Pair& cache, Contact* out);

/// The pair's one witness, before any manifold; false when farther apart than margin. `axis`: first guess of the
/// direction from B to A, on return the normal or an axis that separates by more than margin. `hints`: start of hill
/// climbing on A and B.
bool convex_witness(const Shape& a, const Shape& b, double margin, double axis[3], int hints[2], Witness& w);

/// The witness as a contact, for features that have no manifold.
void single_contact(const Shape& a, const Shape& b, const Witness& w, Contact& c);

}  // namespace coulomb

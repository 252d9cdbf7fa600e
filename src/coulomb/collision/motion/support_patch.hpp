// The support curvature of a shape at one feature: S = F + infinity * E E^T for a given outward direction (docs/theory.md (G2)).
// The detectors know which feature they found (a GJK simplex, a clipped face); they name it here and get the patch that
// contact_motion needs.
#pragma once

#include <cstdint>

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// Which piece of a surface carries the witness point.
enum class Feature : std::uint8_t {
  vertex,  ///< a corner of a box or mesh, or any point held fixed on its body
  edge,    ///< an edge of a box or mesh: support_patch needs its direction
  face,    ///< a box or mesh face, a cylinder's cap, the half-space
  round,   ///< sphere, the end of a capsule, ellipsoid: strictly curved
  line,    ///< the straight side of a capsule or cylinder
  rim,     ///< the circle around a cylinder's cap
};

/// Fills `patch` for `shape` at `feature`. normal_out: unit outward direction of this surface at its witness (-n for
/// body A, n for body B). edge_direction: world axes, any length; read for Feature::edge only, may be null otherwise.
void support_patch(const Shape& shape, Feature feature, const double normal_out[3], const double* edge_direction,
                   SurfacePatch& patch);

}  // namespace coulomb

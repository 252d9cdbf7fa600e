// Choosing at most four points of a manifold, well spread and steady from step to step (docs/theory/geometry.md "3. Several points").
#pragma once

#include "coulomb/collision/detect.hpp"
#include "coulomb/collision/narrow_phase/face_clipping.hpp"

namespace coulomb {

/// Keeps at most four of `count` candidates in place, ordered by feature; returns how many. size: body size (the band
/// is 2e-3 of it). Up to four candidates all stay; of more, those within the band of the deepest compete. `cache` may
/// be null.
int select_points(Candidate* points, int count, double size, CollisionCache::Pair* cache);

}  // namespace coulomb

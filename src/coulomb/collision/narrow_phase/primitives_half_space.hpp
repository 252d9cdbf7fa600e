// Half-space (body A; solid where local z <= 0, its body may move) against every other shape, each point with a depth
// of its own.
#pragma once

#include "coulomb/collision/narrow_phase/primitives_common.hpp"

namespace coulomb {

int collide_half_space_sphere(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                              CollisionCache::Pair& cache, Contact* out);
int collide_half_space_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                               CollisionCache::Pair& cache, Contact* out);
int collide_half_space_cylinder(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                                CollisionCache::Pair& cache, Contact* out);
int collide_half_space_ellipsoid(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                                 CollisionCache::Pair& cache, Contact* out);
int collide_half_space_box(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                           CollisionCache::Pair& cache, Contact* out);
int collide_half_space_mesh(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                            CollisionCache::Pair& cache, Contact* out);

}  // namespace coulomb

// Closed-form pairs of spheres and capsules, and of a sphere with a box or a cylinder.
#pragma once

#include "coulomb/collision/narrow_phase/primitives_common.hpp"

namespace coulomb {

int collide_sphere_sphere(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                          CollisionCache::Pair& cache, Contact* out);
int collide_sphere_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                           CollisionCache::Pair& cache, Contact* out);
/// One point, or two (both ends of the overlap) when the axes are parallel within parallel_sine.
int collide_capsule_capsule(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                            CollisionCache::Pair& cache, Contact* out);
int collide_sphere_box(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                       CollisionCache::Pair& cache, Contact* out);
int collide_sphere_cylinder(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                            CollisionCache::Pair& cache, Contact* out);

}  // namespace coulomb

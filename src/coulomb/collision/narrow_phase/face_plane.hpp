// The planes of flat sides: faces of boxes and meshes, caps of cylinders (0 the upper one, 1 the lower).
#pragma once

#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// The flat side of s most along `direction` (unit) and its cosine; false if s has none.
bool face_towards(const Shape& s, const double direction[3], int& face, double& cosine);

/// Its plane: unit outward normal and a point of it, world.
void face_plane(const Shape& s, int face, double normal[3], double point[3]);

/// Does x, a point of the plane, belong to the flat side?
bool is_on_face(const Shape& s, const double x[3]);

}  // namespace coulomb

// The direction that separates two shapes best, near a given one, to rounding: for pairs whose features the narrow phase does not
// resolve (a cylinder's cap that leans on a face by less than its angle of repose there).
#pragma once

#include "coulomb/collision/shape.hpp"

namespace coulomb {

/// Raises G(n) = -h_A(-n) - h_B(n) over unit normals within about 0.1 rad of the given one; `separation` is G(normal) before and
/// after, never less. For touching and separated shapes the best is found.
void improve_separating_normal(const Shape& a, const Shape& b, double normal[3], double& separation);

}  // namespace coulomb

// How far moving geometries can be shifted along a direction before scenery blocks them: what poses at rest are found by.
#pragma once

#include <vector>

#include "coulomb/model.hpp"

namespace coulomb {

/// While the moving geometry of a pair is shifted by s along the direction, low < s < high (m), it overlaps the fixed one.
struct BlockedShift {
  int pair;  ///< index into Model::pair_*
  double low;
  double high;
};

/// Of every pair of a moving geometry and one that is fixed to the world, at q; direction: unit. A pair has several where it is with a surface
/// of triangles, one for each triangle over which it lies; solid reaches from a triangle that faces along the direction back to the next one
/// that faces the other way, without one without end. A half-space that leans by more than 89.9 degrees blocks nothing.
std::vector<BlockedShift> blocked_shifts(const Model& model, const std::vector<double>& q, const double direction[3]);

}  // namespace coulomb

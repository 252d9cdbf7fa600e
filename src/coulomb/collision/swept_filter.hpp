// Which geometries may meet during a motion: bounding spheres and oriented boxes swept along a straight line, widened by how far
// the motion leaves that line and by how much the shape turns. Conservative: pairs that are dropped stay apart all the time.
#pragma once

#include "coulomb/collision/filter.hpp"

namespace coulomb {

struct SweptGeometry {
  double centre[3], rotation[9];  ///< of the box at the start, world
  double half[3], radius;         ///< half sides; bounding sphere
  double travel[3];               ///< of the centre along its first velocity
  double deviation;               ///< m: largest distance from that line at the same time
  double sway;                    ///< m: how far turning takes any point of the core relative to the centre
};

bool swept_spheres_meet(const SweptGeometry& a, const SweptGeometry& b);
bool swept_boxes_meet(const SweptGeometry& a, const SweptGeometry& b);
/// The half-space stands still: solid below `height` along the unit vector `up`.
bool swept_box_meets_half_space(const double up[3], double height, const SweptGeometry& a);

}  // namespace coulomb

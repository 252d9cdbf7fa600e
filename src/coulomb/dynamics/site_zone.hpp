// The zone of a touch sensor: whether a ray meets a site's volume (MuJoCo's rule: a contact counts when the line of its force, followed
// away from the site's body, meets the zone; always when its point is inside), and whether a point is in it.
#pragma once

#include "coulomb/sensors.hpp"

namespace coulomb {

/// Ray p + t d, t >= 0, in the site's frame; d of any length but zero.
bool ray_meets_zone(const Site& site, const double* p, const double* d);

/// Is this point of the site's frame in its volume?
bool is_in_zone(const Site& site, const double* p);

}  // namespace coulomb

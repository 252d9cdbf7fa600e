// The velocities that derivatives of rows need.
#pragma once

namespace coulomb {

/// The velocities that rows see: at v+ (all rows) and at v (bouncing normal rows).
struct RowVelocities {
  const double* twist_plus;  ///< nv x 8: link twists at v+
  const double* rate_plus;   ///< nv x 8: column rates at v+
  const double* twist;       ///< nv x 8: at v
  const double* rate;
};

}  // namespace coulomb

// What the collision stage is asked for, as a part of StepOptions.
#pragma once

namespace coulomb {

struct CollisionOptions {
  bool stateless = false;     ///< ignore and do not write the cache's hysteresis (points kept from step to step)
  bool frozen_cache = false;  ///< read the cache, do not write it: for derivative and finite-difference checks
  double least_margin = 0;    ///< m: of pairs whose own margin is smaller
};

}  // namespace coulomb

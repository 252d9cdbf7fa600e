// Options of the collision stage, a part of StepOptions.
#pragma once

namespace coulomb {

struct CollisionOptions {
  bool stateless = false;     ///< ignore and do not write the cache's hysteresis (points kept from step to step)
  bool frozen_cache = false;  ///< read the cache, do not write it: for derivative and finite-difference checks
  double least_margin = 0;    ///< m: of pairs whose own margin is smaller
  /// m: how far the flat side that carried the normal in the last step may lean from the one that does now, across the smaller shape, to go
  /// on carrying it. Plain steps spare themselves the change; split ones have to agree with the distance of the pair.
  double kept_face_error = 1;
};

}  // namespace coulomb

// The motion that continuous collision detection follows over a sub-step, in MuJoCo's tangent coordinates:
//   q(t) = q (+) (t v + t^2/2 a),   0 <= t <= duration.
// Free and ball joints turn by exp of that vector: about a fixed axis unless a turns v.
#pragma once

namespace coulomb {

struct MotionPath {
  const double* q = nullptr;  ///< nq
  const double* v = nullptr;  ///< nv
  const double* a = nullptr;  ///< nv; null: zero
  double duration = 0;        ///< seconds
};

}  // namespace coulomb

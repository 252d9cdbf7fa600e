// The curves of muscles: how a muscle's force depends on its length and on its velocity (MuJoCo's FLV model). With L the length in units of
// that at which the muscle is strongest, V its rate in units of the fastest, F the peak force, u the activation:
//
//   force = -F (FL(L) FV(V) u + FP(L))
//
// All of them are made of parabolas that meet with one slope: first derivatives are continuous. FL rises from zero at `shortest` to one at
// L = 1 and falls to zero at `longest`; FV rises from zero at V = -1 over one at rest to `stretched`; FP is zero up to L = 1, a parabola to
// halfway to `longest`, then a line.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

/// A force for each unit of its input, with its slopes.
struct MuscleForce {
  double value = 0;
  double by_length = 0;  ///< per m of the actuator's length
  double by_speed = 0;   ///< per m/s
};

/// -F FL FV: of a unit of activation.
MuscleForce muscle_gain(const Muscle& muscle, double length, double speed);
/// -F FP
MuscleForce muscle_bias(const Muscle& muscle, double length);

}  // namespace coulomb

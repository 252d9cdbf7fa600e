// The medium's force on one ellipsoid (MuJoCo's ellipsoid model), in the ellipsoid's axes, with its derivatives. Of the velocity v of its
// middle against the medium and its angular velocity w, with n = |v|, density rho, viscosity mu, semi-axes s, p_i = (s_j s_k)^2:
//
//   added mass      f = rho (m v) x w,   torque = rho (m v) x v + rho (I w) x w     m, I: virtual mass and inertia by axis
//   viscosity       f = -3 pi d mu v,    torque = -pi d^3 mu w                      d = 2/3 (s_1 + s_2 + s_3)
//   drag            f = -rho n (blunt A + slender (A_max - A)) v                    A: area across v,  A_max: the largest
//   angular drag    torque = -rho |c w| w                                           c_i = angular J_i + slender (J_max - J_i)
//   Kutta lift      f = rho kutta (cos alpha) A ((p v) x v) x v                     cos alpha = N / (n D)
//   Magnus lift     f = rho magnus V w x v                                          V: volume
//
// with N = sum p_i v_i^2, D = sum p_i^2 v_i^2, A = pi sqrt(D / N). Products without a sign are by axis.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

/// Wrenches are (f, n) and twists (v, w), both about the ellipsoid's middle, in its axes.
struct EllipsoidDrag {
  double by_density[6];          ///< the wrench is density by_density + viscosity by_viscosity
  double by_viscosity[6];        ///< the same
  double slope[6][6];            ///< d wrench / d twist
  double by_coefficients[5][6];  ///< d wrench / d MediumEllipsoid::coefficients
};

/// twist: against the medium.
EllipsoidDrag ellipsoid_drag(const MediumEllipsoid& ellipsoid, const Medium& medium, const double* twist);

}  // namespace coulomb

// What an inertia says of its body: the nearest one that a rigid body can have, principal axes, the box of its size.
#pragma once

#include <array>

namespace coulomb {

/// Of Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass the nearest inertia that a rigid body can have: its second moments S = tr(I)/2 1 - I
/// without their negative principal parts, which is the nearest positive semi-definite S in the Frobenius norm.
std::array<double, 6> balanced_inertia(const std::array<double, 6>& inertia);

/// Principal moments of Ixx Ixy Iyy Ixz Iyz Izz, and their axes as a rotation.
struct PrincipalInertia {
  std::array<double, 3> moments;
  std::array<double, 4> quat;  ///< w x y z
};
PrincipalInertia principal_inertia(const std::array<double, 6>& inertia);

/// Full sides of the box of uniform density with this mass and these principal moments.
std::array<double, 3> box_of_inertia(double mass, const std::array<double, 3>& moments);

}  // namespace coulomb

// The rigid body that is nearest to what a file says.
#pragma once

#include <array>

namespace coulomb {

/// Of Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass the nearest inertia that a rigid body can have: its second moments S = tr(I)/2 1 - I
/// without their negative principal parts, which is the nearest positive semi-definite S in the Frobenius norm.
std::array<double, 6> balanced_inertia(const std::array<double, 6>& inertia);

}  // namespace coulomb

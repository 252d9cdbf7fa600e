// Torque-free motion of a joint's rigid body (rigid_spin.hpp) with its derivatives.
#pragma once

#include "coulomb/dynamics/rigid_spin.hpp"

namespace coulomb {

/// Entries of symmetric matrices: xx xy yy xz yz zz.
inline constexpr int row_of[6] = {0, 0, 1, 0, 1, 2};
inline constexpr int column_of[6] = {0, 1, 1, 2, 2, 2};

/// Entry n of m (c.c 1 - c c^T), which parallel axes take from an inertia about the origin, by the first moment m c_k; and by m at fixed m c.
double parallel_axes_by_moment(const double* c, int n, int k);
double parallel_axes_by_mass(const double* c, int n);

/// (dI w) x w - dK a, where entries (i, j) and (j, i) of I and of K change by one: entry k of a symmetric matrix.
void torque_by_inertia(int k, const double* w, const double* a, double* out);

/// w(h) and its derivative: by w, by I and by K (symmetric, 6), by the time.
struct TurnedSpin {
  double w[3];
  double by_w[9];
  double by_I[3][6];
  double by_K[3][6];
  double rate[3];
};
TurnedSpin turned_spin(const RigidSpin& body, const SpinParts& parts);

}  // namespace coulomb

// What mass, com and inertia share (docs/theory.md (P2)): a body's inertia is linear in (m, m c, S), S the second moments about the
// body's origin (I_o = tr(S) 1 - S), and inverse dynamics is linear in it (the joint torque regressor): r = -h J_b^T (I' A + V x* I' V),
// and through the torque-free spin of the joints that carry the body.
#pragma once

namespace coulomb {

struct ParameterContext;
struct RightHandSide;

/// A change of a body's inertia in its own axes, about its origin.
struct InertiaChange {
  double mass = 0;
  double first[3] = {0, 0, 0};            ///< of m c
  double second[6] = {0, 0, 0, 0, 0, 0};  ///< of S: xx xy yy xz yz zz
};

void add_inertia_change(const ParameterContext& context, int body, const InertiaChange& change, RightHandSide& out);

/// S += a b^T + b a^T over 2 (a b^T when equal).
void add_outer(double scale, const double* a, const double* b, double* second);

}  // namespace coulomb

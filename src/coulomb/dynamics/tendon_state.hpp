// Tendons at a configuration: length, its gradient over the dofs, and how that turns. Fixed tendons are sums of joints; spatial ones run
// over points of bodies and around spheres and cylinders.
#pragma once

#include "coulomb/model.hpp"

namespace coulomb {

struct DynamicsWorkspace;

/// The length L of a tendon and J = dL/dq over its dofs; its rate is J v.
struct TendonState {
  static constexpr int max_dofs = 64;  ///< of those that exert a force, as many as rows of constraints have (DofRow)
  int num = 0;
  int dof[max_dofs];
  double length = 0;
  double J[max_dofs];
  bool turns = false;  ///< J changes with q: of spatial tendons
  bool at_kink =
      false;  ///< J changes at different rates on the two sides of this q: a wrap begins, or two points coincide
  double dJ[max_dofs][max_dofs];  ///< where it turns: d J_i / dq_(dof j); else left as it is

  double rate(const double* v) const {
    double sum = 0;
    for (int i = 0; i < num; ++i)
      sum += J[i] * v[dof[i]];
    return sum;
  }
};

/// After kinematics at q. Turning J is found where it is asked for.
void tendon_state(const Model& model, const DynamicsWorkspace& at, int tendon, const double* q, bool with_turning,
                  TendonState& out);

/// How the rate of a tendon changes at constant v, dJ/dt v, and its derivatives over the tendon's dofs. Of fixed tendons zero; of paths around
/// obstacles it is not known.
struct TendonBend {
  double value = 0;
  double by_q[TendonState::max_dofs];
  double by_v[TendonState::max_dofs];
};

/// state: of the tendon at this configuration.
void tendon_bend(const Model& model, const DynamicsWorkspace& at, int tendon, const double* v, const TendonState& state,
                 TendonBend& out);

}  // namespace coulomb

// The path of a smooth phase, (I2): q(t) = q (+) (t v + t^2/2 r), v(t) = v + t a, where r is the acceleration of the
// positions:
//
//   free flight        r = a: exact under constant forces
//   held by contacts   r = 2 a: positions move with the velocity at the end, v + t a, as in plain steps. Springs, and
//                      rolling or pivoting bodies, whose constraints rotate with them, thus lose energy and gain none.
//   pure sliding       r = a for the translations of a free joint, since nothing rotates with it: also exact
//
// Between the last two, r = (1 + s) a for those translations, s = x^2 / (x^2 + x_0^2). x^2 is the sum of the squared
// angular velocities of all bodies of the island (in SI units) at the start of the phase. The path is smooth, and so is
// its derivative. Bodies in contact share one s; otherwise they would drift into each other. An island with joints
// other than free joints has s = 1.
#pragma once

#include <vector>

#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {

/// r of a phase, from the acceleration and the islands of its problem: phase.path.
void set_path(const Model& model, const StepRecord& record, ImpactPhase& phase);

/// Changes of v and a: `count` rows of ld.
struct PathChanges {
  const double* dv_T;
  const double* da_T;
  int count;
  int ld;
};
/// dr of them, in as many rows.
void path_acceleration_tangents(const Model& model, const ImpactPhase& phase, const StepRecord& record,
                                const PathChanges& changes, double* dr_T);

/// From the cotangent of r to those of v and a, which it adds to.
void path_acceleration_cotangent(const Model& model, const ImpactPhase& phase, const StepRecord& record,
                                 const double* r_bar, double* v_bar, double* a_bar);

}  // namespace coulomb

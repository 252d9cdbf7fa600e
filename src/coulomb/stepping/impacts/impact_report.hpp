// What a step that was split at impacts met, by name.
#pragma once

#include <string>
#include <vector>

#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

/// One point of an impact, or one joint at its limit (no geometries then). World axes; the impulse acts on A, its opposite on B.
struct ImpactReport {
  double time = 0;  ///< s since the start of the step
  std::string geometry_a, geometry_b, body_a, body_b;
  std::string joint;                                   ///< at its limit; empty: two geometries
  double point[3] = {0, 0, 0}, normal[3] = {0, 0, 0};  ///< m; unit, from B to A
  double approach = 0;                                 ///< m/s (limit: the joint's): > 0, just before
  double impulse[3] = {0, 0, 0};                       ///< N s; limit: along the joint, in [0]
  bool grazing = false;  ///< found by a motion almost along the surface: the time is held fixed in derivatives
};

/// Of a record of impact_step, in the order of time; what only touched and took no part is left out.
std::vector<ImpactReport> impact_reports(const Model& model, const StepRecord& record);

}  // namespace coulomb

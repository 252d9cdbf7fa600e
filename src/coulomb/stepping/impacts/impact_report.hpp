// The impacts of a split step, by name.
#pragma once

#include <vector>

#include "coulomb/simulator.hpp"

namespace coulomb {

/// Of a record of impact_step, in the order of time; what only touched and took no part is left out.
std::vector<ImpactReport> impact_reports(const Model& model, const StepRecord& record);

}  // namespace coulomb

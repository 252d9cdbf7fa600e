// A step that is split at impacts (docs/theory.md (I1), (I2); [Yang2024]). From (q, v), with the remaining time s = h:
//
//   touch    touching bodies that approach have hit at a time T <= 0: back to that time, s := h - T
//   impact   bodies that touch and approach: v := v + M^-1 J^T lambda, c_N = J_N v+ + e J_N v >= 0, friction by the
//            same cone or pyramid, all touching contacts and joint limits together
//   smooth   contacts at rest: v+ as in a semi-implicit step of length h, a = (v+ - v) / h;
//            q(t) = q (+) (t v + t^2/2 a), v(t) = v + t a until the first impact on [0, s], else to s
//
// These are repeated until s is used up. Between impacts, open gaps do not slow bodies down. Bodies that hop fly, or,
// below a visible height, are stopped in a problem as short as the hop. Without contact, a is evaluated at the middle
// of the path, and the step is of order two (position Verlet).
#pragma once

#include "coulomb/step_memory.hpp"
#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {

struct StepWorkspace;

/// As semi_implicit_step. The record's stages are those of the last smooth phase, its impulses those of a whole step of that phase;
/// record.extra has the phases.
bool impact_step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
                 StepRecord& record);

}  // namespace coulomb

// The stepper that splits steps at impacts (impact_step.hpp). Rollouts do not store its steps, since each phase has a
// record of its own.
#pragma once

#include "coulomb/stepping/stepper.hpp"

namespace coulomb {

class ImpactStepper final : public Stepper {
 public:
  const char* name() const override { return "semi_implicit"; }
  bool fits(const StepOptions& options) const override;
  bool splits_at_impacts() const override { return true; }
  bool has_gradient(GradientMode mode) const override;

  bool step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
            StepRecord& record) const override;
  std::unique_ptr<StepGradient> make_gradient(const Model& model, const StepOptions& options) const override;

  const char* untold(StepForce force) const override;
};

inline constexpr ImpactStepper impact_stepper;

}  // namespace coulomb

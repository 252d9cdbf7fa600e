// The stepper of the semi-implicit step with hard contact (semi_implicit.hpp), and the data that rollouts keep of a
// step (kept_step.hpp).
#pragma once

#include "coulomb/stepping/stepper.hpp"

namespace coulomb {

class SemiImplicitStepper final : public Stepper {
 public:
  const char* name() const override { return "semi_implicit"; }
  bool fits(const StepOptions& options) const override;
  bool has_gradient(GradientMode) const override { return true; }

  bool step(const Model& model, const StepOptions& options, StepWorkspace& workspace, StepMemory& memory,
            StepRecord& record) const override;
  std::unique_ptr<StepGradient> make_gradient(const Model& model, const StepOptions& options) const override;

  bool keeps_steps(const StepOptions& options) const override;
  std::size_t kept_bytes(const StepRecord& record) const override;
  void keep(const StepRecord& record, std::byte* to) const override;
  void recall(const Model& model, const StepOptions& options, const std::byte* kept, StepRecord& record) const override;
};

inline constexpr SemiImplicitStepper semi_implicit_stepper;

}  // namespace coulomb

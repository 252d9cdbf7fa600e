// TieGradient: complementarity-aware reverse mode (docs/theory.md (Q8); [Werling2021]). At a tie, both sides have a
// derivative. Given the cotangent of the next state, it takes at one tie after another the side whose gradient is
// larger in ||dl/dv||^2 + ||dl/dtau||^2 / h: with a gradient of zero, an optimiser would stop at the saddle. Forward
// mode is the exact one.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/stepping/gradients/gradient_modes.hpp"

namespace coulomb {

/// Of steps that solve a constraint problem.
class TieGradient final : public GradientDecorator {
 public:
  using GradientDecorator::GradientDecorator;

  void prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory& memory) override;
  /// The linearisation is afterwards as before.
  void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) override;

 private:
  const Model* model_ = nullptr;
  const StepOptions* options_ = nullptr;
  StepRecord* record_ = nullptr;
  const StepMemory* memory_ = nullptr;
};

}  // namespace coulomb

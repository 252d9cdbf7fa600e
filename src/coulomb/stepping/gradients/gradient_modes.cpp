#include "coulomb/stepping/gradients/gradient_modes.hpp"

#include "coulomb/stepping/gradients/distance_gradient.hpp"
#include "coulomb/stepping/gradients/impact_bounce.hpp"
#include "coulomb/stepping/gradients/step_average.hpp"
#include "coulomb/stepping/gradients/tie_choice.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {

std::unique_ptr<StepGradient> with_mode(GradientMode mode, const Model& model, const MakeGradient& exact) {
  switch (mode) {
    case GradientMode::complementarity_aware: return std::make_unique<TieGradient>(exact(model));
    case GradientMode::approximate_bounce: return std::make_unique<BounceGradient>(exact(model));
    case GradientMode::smoothed_step: return std::make_unique<AverageGradient>(model, exact);
    case GradientMode::from_distance: return std::make_unique<DistanceGradient>(exact(model), model);
    case GradientMode::exact:
    case GradientMode::smoothed_collision: break;
  }
  return exact(model);
}

}  // namespace coulomb

// The options that select the gradient of a step (docs/conventions.md).
#pragma once

#include <cstdint>

namespace coulomb {

enum class GradientMode : std::uint8_t {
  exact,                  ///< of the step that was computed; at a tie one documented side
  complementarity_aware,  ///< reverse mode: at every tie the side with the larger gradient (Nimble; docs/theory.md (Q8))
  smoothed_collision,     ///< contact points and normals move as they do on average over perturbed poses [Montaut2023]
  approximate_bounce,  ///< positions through elastic impacts as if the step had been split there [Werling2021, appendix E]
  smoothed_step,       ///< the Jacobian averaged over perturbed states
  from_distance        ///< gaps that no impulse keeps open act in part, as contacts that are about to close
};

struct GradientOptions {
  GradientMode mode = GradientMode::exact;
  int samples = 32;  ///< of the smoothed modes
  /// Standard deviation: m and m/s, rad and rad/s (smoothed_collision: m, and rad over the shape's size). from_distance: m, the gap that acts
  /// to 1/e.
  double scale = 1e-3;
  std::uint64_t seed = 0;    ///< same seed, same gradient
  double tie_margin = 1e-6;  ///< complementarity_aware: contacts nearer than this to the border of their mode are ties
};

}  // namespace coulomb

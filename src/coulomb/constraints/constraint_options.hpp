// Options of the constraints of a step, a part of StepOptions.
#pragma once

#include <cstdint>

namespace coulomb {

/// cone: exact Coulomb friction (NCP); pyramid: LCP; penalty: forces of springs, no rows.
enum class ContactLaw : std::uint8_t { cone, pyramid, penalty };

/// What has rows. speculative: open gaps too, which may close within the step and no more. Steps split at impacts look ahead instead:
/// held: what touches, and open gaps do not brake; impact: the same in an instant, where dry friction does nothing.
enum class GapRule : std::uint8_t { speculative, held, impact };

/// How constraints are stabilised and when they bounce; part of the step's definition, differentiated as it stands.
struct ConstraintOptions {
  ContactLaw contact = ContactLaw::cone;
  int friction_directions = 2;     ///< pyramid: its polygon has twice as many sides
  bool inscribed_polygon = false;  ///< pyramid: inside the disc of the cone instead of around it
  double timestep = 1e-3;
  double baumgarte = 0.1;               ///< share of a position error removed per step, in [0, 1]
  double slop = 0;                      ///< metres (or radians) of penetration that Baumgarte leaves alone
  double max_correction_speed = 1.0;    ///< m/s (rad/s): the bias of contacts and limits never asks for more
  double restitution_threshold = 1e-2;  ///< m/s: slower approaches do not bounce
  GapRule gaps = GapRule::speculative;
  // held and impact
  double touching = 0;          ///< m, rad: gaps below are closed, for what approaches
  double held_speed = 0;        ///< m/s, rad/s: more slowly than this
  double separating_speed = 0;  ///< m/s, rad/s: held: faster ones have left
  bool lets_in =
      false;  ///< held: what is closed and approaches faster than held_speed is left out, as what has not come yet
  double rebound_depth = 0;  ///< m: impact: what has sunk deeper than this is parted (Contact::lift, turns_back: e = 1)
};

}  // namespace coulomb

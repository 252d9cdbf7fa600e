#include "coulomb/constraints/one_sided_spring.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// h k + d + m / h: force per closing speed, of a gap that is closed.
double impedance(const OneSidedSpring& spring, double timestep) {
  return timestep * spring.stiffness + spring.dashpot + spring.armature / timestep;
}

}  // namespace

std::optional<OneSidedSpring> contact_spring(const PairPenalty& pair) {
  if (!pair.stiffness) return std::nullopt;
  return OneSidedSpring{pair.scale * *pair.stiffness, pair.scale * pair.dashpot};
}

std::optional<OneSidedSpring> limit_spring(const Model& model, int joint) {
  if (!(model.joint_limit_stiffness[joint] > 0)) return std::nullopt;
  return OneSidedSpring{model.joint_limit_stiffness[joint], model.joint_limit_dashpot[joint]};
}

std::optional<OneSidedSpring> limit_spring(const Model& model, const DofRow& row, const Block& block) {
  if (row.spring >= 0 && block.type != BlockType::box)
    return tendon_spring(model.tendons[row.spring], block.type == BlockType::equality);
  if (block.type != BlockType::limit || row.tendon >= 0) return std::nullopt;
  return limit_spring(model, model.dof_joint[row.dof[0]]);
}

SpringRow spring_row(const OneSidedSpring& spring, double timestep, double phi) {
  // Closed: the spring pushes by its depth; open: nothing acts before the gap has closed.
  const double z = impedance(spring, timestep);
  const double closed = spring.stiffness / z;
  const double open = 1 / timestep;
  SpringRow row;
  row.compliance = 1 / (timestep * z);
  row.bias.value = (phi <= 0 ? closed : open) * phi;

  // The two slopes are one without a dashpot; where they meet that of the closed contact counts.
  row.bias.slope = phi <= corner_width ? closed : open;
  row.bias.corner = spring.dashpot > 0 && std::abs(phi) <= corner_width;
  return row;
}

bool has_range(const Tendon& tendon) { return tendon.spring_lower < tendon.spring_upper; }

OneSidedSpring tendon_spring(const Tendon& tendon, bool both_signs) {
  if (!has_range(tendon)) return {tendon.stiffness, tendon.damping, tendon.armature};
  return both_signs ? OneSidedSpring{0, tendon.damping, tendon.armature} : OneSidedSpring{tendon.stiffness, 0};
}

double tendon_slope(const Tendon& tendon, BlockType type) {
  constexpr double no_effect = 1e-30;
  if (type == BlockType::box) return no_effect * tendon.dry_friction;
  const OneSidedSpring spring = tendon_spring(tendon, type == BlockType::equality);
  return std::max(spring.stiffness, no_effect * spring.dashpot);
}

SpringRow two_sided_row(const OneSidedSpring& spring, double timestep, double phi, double rate) {
  const double z = impedance(spring, timestep);
  SpringRow row;
  row.compliance = 1 / (timestep * z);
  row.bias.slope = spring.stiffness / z;
  row.rate_slope = -spring.armature / timestep / z;
  row.bias.value = row.bias.slope * phi + row.rate_slope * rate;
  return row;
}

double contact_compliance(const Model& model, int pair, double timestep) {
  const auto spring = contact_spring(model.pair_penalty[pair]);
  return spring ? spring_row(*spring, timestep, 0).compliance : model.pair_compliance[pair];
}

double spring_side(const OneSidedSpring& spring, double timestep, const SpringState& state, const SpringChange& change,
                   bool both_signs) {
  // Everything relative to z = h k + d + m / h: its square would leave double precision long before k does.
  const double h = timestep;
  const double z = impedance(spring, h);
  const double k = spring.stiffness / z;
  const double d = spring.dashpot / z;
  const double m = spring.armature / (h * z);
  const double dk = change.stiffness / z;
  const double dd = change.dashpot / z;
  const double dm = change.armature / (h * z);
  const double dh = change.timestep;

  // R = 1/(h z), dR = -R (R d(1/R)) with 1/R = h^2 k + h d + m.
  const double relative = h * dk + dd + dm + (2 * k + d / h) * dh;
  const double compliance_side = -relative * (state.impulse / (h * z));

  // beta = (k phi - m (phi' / h - bend)) / z closed, phi / h open.
  const double closed = (d + m) * dk - k * (dd + dm) - k * (k - m / h) * dh;
  const double bias_side = state.phi <= 0 || both_signs ? closed * state.phi : -dh / (h * h) * state.phi;
  const double kept = m * (h * dk + dd) - (h * k + d) * dm + m / h * (2 * h * k + d) * dh;
  return compliance_side + bias_side + kept * (state.rate - h * state.bend) + m * state.bend * dh;
}

}  // namespace coulomb

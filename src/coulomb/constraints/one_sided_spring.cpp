#include "coulomb/constraints/one_sided_spring.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

/// N/m, N s/m, kg of a tendon: less is as good as nothing, and this has an inverse that is finite.
constexpr double least_of_tendon = 1e-280;

/// h k + d + m/h: force per closing speed, of a gap that is closed.
double impedance(const OneSidedSpring& spring, double timestep) {
  return timestep * spring.stiffness + spring.dashpot + spring.inertia / timestep;
}

/// y of the curve at the share x of the full depth, and dy/dx.
struct Rise {
  double value = 0;
  double slope = 0;
};

/// Up to the midpoint a power of x, from there on one of 1 - x.
Rise rise(const SpringCurve& curve, double x) {
  if (x <= 0) return {0, 0};
  if (x >= 1) return {1, 0};
  const double p = curve.power;
  const bool first = x <= curve.midpoint;
  const double from_end = first ? x : 1 - x;
  const double to_middle = first ? curve.midpoint : 1 - curve.midpoint;
  const double slope = p * std::pow(from_end / to_middle, p - 1);
  const double part = from_end * slope / p;
  return {first ? part : 1 - part, slope};
}

}  // namespace

SpringShape spring_shape(const SpringCurve& curve, double phi) {
  if (curve.start == curve.end) return {};

  // d at this depth.
  const Rise y = rise(curve, -phi / curve.full_depth);
  const double range = curve.end - curve.start;
  const double d = curve.start + y.value * range;
  const double d_slope = -range * y.slope / curve.full_depth;

  // Over those of full depth: w = d/(1 - d) and w d.
  const double w = d * (1 - curve.end) / ((1 - d) * curve.end);
  const double w_slope = d_slope * (1 - curve.end) / ((1 - d) * (1 - d) * curve.end);
  return {w * d / curve.end, w, (w_slope * d + w * d_slope) / curve.end, w_slope};
}

std::optional<OneSidedSpring> contact_spring(const PairPenalty& pair, double phi) {
  if (!pair.stiffness) return std::nullopt;
  const SpringShape shape = spring_shape(pair.curve, phi);
  return OneSidedSpring{pair.scale * *pair.stiffness * shape.stiffness, pair.scale * pair.dashpot * shape.others,
                        pair.scale * pair.curve.inertia * shape.others};
}

std::optional<OneSidedSpring> limit_spring(const Model& model, int joint, double phi) {
  if (!(model.joint_limit_stiffness[joint] > 0)) return std::nullopt;
  const SpringCurve& curve = model.joint_limit_curve[joint];
  const SpringShape shape = spring_shape(curve, phi);
  return OneSidedSpring{model.joint_limit_stiffness[joint] * shape.stiffness,
                        model.joint_limit_dashpot[joint] * shape.others, curve.inertia * shape.others};
}

OneSidedSpring at_depth(const RowSpring& law, double depth) {
  const SpringShape shape = spring_shape(law.curve, -depth);
  return {law.stiffness * shape.stiffness, law.dashpot * shape.others, law.curve.inertia * shape.others};
}

std::optional<EqualitySprings> equality_springs(const Model& model, int equality, double error) {
  const Equality& e = model.equalities[equality];
  if (!e.spring.acts()) return std::nullopt;
  const OneSidedSpring linear = at_depth(e.spring, error);
  const double share = e.angular_share;
  return EqualitySprings{
      linear, {share * linear.stiffness, share * linear.dashpot, share * linear.inertia}, &e.spring.curve};
}

std::optional<EqualitySprings> equality_springs(const Model& model, const ConstraintRows& rows, const BodyRows& b) {
  if (b.soft < 0) return std::nullopt;
  return equality_springs(model, int(index_of(rows.keys[b.block])), rows.soft_blocks[b.soft].error);
}

namespace {

/// A soft row whose error has either sign.
std::optional<RowLaw> two_sided_law(const RowSpring& law, double phi) {
  if (!law.acts()) return std::nullopt;
  return RowLaw{at_depth(law, std::abs(phi)), &law.curve, true, phi > 0 ? -1.0 : 1.0};
}

std::optional<RowLaw> limit_law(const Model& model, const DofRow& row) {
  if (row.tendon >= 0) {
    const RowSpring& law = model.tendons[row.tendon].limit_spring;
    if (!law.acts()) return std::nullopt;
    return RowLaw{at_depth(law, -row.phi), &law.curve};
  }
  const int joint = model.dof_joint[row.dof[0]];
  const auto spring = limit_spring(model, joint, row.phi);
  if (!spring) return std::nullopt;
  return RowLaw{*spring, &model.joint_limit_curve[joint]};
}

}  // namespace

std::optional<RowLaw> row_law(const Model& model, const ConstraintRows& rows, const DofRow& row) {
  switch (const std::uint64_t key = rows.keys[row.block]; kind_of(key)) {
    case ConstraintKind::equality: return two_sided_law(model.equalities[index_of(key)].spring, row.phi);
    case ConstraintKind::limit: return limit_law(model, row);
    case ConstraintKind::dry_friction: return two_sided_law(model.dof_friction_spring[index_of(key)], 0);
    case ConstraintKind::tendon_friction: return two_sided_law(model.tendons[row.spring].friction_spring, 0);
    case ConstraintKind::tendon_spring: break;
    case ConstraintKind::contact: return std::nullopt;
  }
  const bool both_signs = rows.blocks[row.block].type == BlockType::equality;
  return RowLaw{tendon_spring(model.tendons[row.spring], both_signs), nullptr, both_signs};
}

SpringRow spring_row(const OneSidedSpring& spring, double timestep, double phi, double approach) {
  // Closed: the spring pushes by its depth; open: nothing acts before the gap has closed.
  const double z = impedance(spring, timestep);
  const double closed = spring.stiffness / z;
  const double open = 1 / timestep;
  SpringRow row;
  row.compliance = 1 / (timestep * z);
  row.bias.value = (phi <= 0 ? closed : open) * phi;

  // The two slopes are one without a dashpot and a mass; where they meet that of the closed contact counts.
  row.bias.slope = phi <= corner_width ? closed : open;
  row.bias.corner = (spring.dashpot > 0 || spring.inertia > 0) && std::abs(phi) <= corner_width;

  // The mass has the velocity of the surface already.
  if (!(spring.inertia > 0)) return row;
  row.bounce = -spring.inertia / (timestep * z);
  row.bias.value += row.bounce * approach;
  return row;
}

bool has_range(const Tendon& tendon) { return tendon.spring_lower < tendon.spring_upper; }

OneSidedSpring tendon_spring(const Tendon& tendon, bool both_signs) {
  const auto inverse_is_finite = [](double x) { return x > 0 ? std::max(x, least_of_tendon) : 0.0; };
  const double stiffness = inverse_is_finite(tendon.stiffness);
  const double damping = inverse_is_finite(tendon.damping);
  const double armature = inverse_is_finite(tendon.armature);

  // With a range the spring pushes or pulls; what damps and weighs is of both signs.
  if (!has_range(tendon)) return {stiffness, damping, armature};
  return both_signs ? OneSidedSpring{0, damping, armature} : OneSidedSpring{stiffness, 0};
}

double tendon_slope(const Tendon& tendon, BlockType type) {
  constexpr double no_effect = 1e-30;
  if (type == BlockType::box) return no_effect * tendon.dry_friction;
  const OneSidedSpring spring = tendon_spring(tendon, type == BlockType::equality);
  return std::max(spring.stiffness, no_effect * spring.dashpot);
}

SpringRow two_sided_row(const OneSidedSpring& spring, double timestep, double phi, double approach) {
  const double z = impedance(spring, timestep);
  SpringRow row;
  row.compliance = 1 / (timestep * z);
  row.bias.slope = spring.stiffness / z;
  row.bounce = -spring.inertia / timestep / z;
  row.bias.value = row.bias.slope * phi + row.bounce * approach;
  return row;
}

double contact_compliance(const Model& model, int pair, double timestep) {
  const auto spring = contact_spring(model.pair_penalty[pair], 0);
  return spring ? spring_row(*spring, timestep, 0, 0).compliance : model.pair_compliance[pair];
}

double spring_side(const OneSidedSpring& spring, const SpringState& state, const SpringChange& change,
                   bool both_signs) {
  // Everything relative to z = h k + d + m / h: its square would leave double precision long before k does.
  const double h = state.timestep;
  const double z = impedance(spring, h);
  const double k = spring.stiffness / z;
  const double d = spring.dashpot / z;
  const double dk = change.stiffness / z;
  const double dd = change.dashpot / z;
  const double dh = change.timestep;
  const double m = spring.inertia / (h * z);
  const double dm = change.inertia / (h * z);

  // R = 1/(h z), dR = -R (R d(1/R)) with 1/R = h^2 k + h d + m.
  const double relative = h * dk + dd + dm + (2 * k + d / h) * dh;
  const double compliance_side = -relative * (state.impulse / (h * z));

  // beta = (k phi - m (approach / h - bend)) / z closed, phi / h open.
  const double closed = (d + m) * dk - k * (dd + dm) - k * (k - m / h) * dh;
  const double bias_side = state.phi <= 0 || both_signs ? closed * state.phi : -dh / (h * h) * state.phi;
  const double kept = m * (h * dk + dd) - (h * k + d) * dm + m / h * (2 * h * k + d) * dh;
  return compliance_side + bias_side + kept * (state.approach - h * state.bend) + m * state.bend * dh;
}

double curve_side(const SpringCurve& curve, const OneSidedSpring& spring, const SpringState& state, double gap,
                  bool both_signs) {
  const SpringShape shape = spring_shape(curve, gap);
  if (shape.others_slope == 0) return 0;
  const double stiffness = spring.stiffness / shape.stiffness * shape.stiffness_slope;
  const double others = shape.others_slope / shape.others;
  return spring_side(spring, state,
                     {.stiffness = stiffness, .dashpot = spring.dashpot * others, .inertia = spring.inertia * others},
                     both_signs);
}

}  // namespace coulomb

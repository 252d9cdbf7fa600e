#include "coulomb/model/scene/file_softness.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/model/scene/neutral_inertia.hpp"
#include "coulomb/model/scene/topology.hpp"

namespace coulomb {
namespace {

// Where MuJoCo keeps its parameters.
constexpr double least_impedance = 1e-4;
constexpr double largest_impedance = 0.9999;
constexpr double least_number = 1e-15;
constexpr double least_friction = 1e-5;

/// A law without a spring still is one.
constexpr double least_stiffness = 1e-30;

double clamped_impedance(double d) { return std::clamp(d, least_impedance, largest_impedance); }

/// k (1/s^2) and b (1/s) of the reference acceleration -b v - k d r.
struct Reference {
  double k = 0;
  double b = 0;
};

Reference reference_of(const Softness& law) {
  const double d = clamped_impedance(law.impedance[1]);
  std::array<double, 2> values = law.reference;
  if ((values[0] > 0) != (values[1] > 0)) values = Softness{}.reference;
  if (!(values[0] > 0)) return {-values[0] / (d * d), -values[1] / d};

  const double time = std::max(values[0], law.least_time);
  const double root = d * time * values[1];
  return {1 / std::max(least_number, root * root), 2 / std::max(least_number, d * time)};
}

/// solimp as a curve, without inertia as yet.
SpringCurve curve_of(const Softness& law) {
  SpringCurve curve;
  curve.start = clamped_impedance(law.impedance[0]);
  curve.end = clamped_impedance(law.impedance[1]);
  curve.midpoint = clamped_impedance(law.impedance[3]);
  curve.power = std::max(1.0, law.impedance[4]);

  // Without a depth over which it could change it is constant.
  if (law.impedance[2] > least_number)
    curve.full_depth = law.impedance[2];
  else
    curve.start = curve.end = (curve.start + curve.end) / 2;
  return curve;
}

/// The row's regularisation is R = (1 - d)/d A with A about its mobility (1/kg), and its force f = (-b v - k d r - a)/R: a spring k d/R,
/// a dashpot b/R and a mass 1/R, here at full depth.
PairSpring spring_of(const Softness& law, double mobility) {
  const Reference reference = reference_of(law);
  PairSpring out;
  out.curve = curve_of(law);
  const double d = out.curve.end;
  out.curve.inertia = d / ((1 - d) * mobility);
  out.stiffness = std::max(least_stiffness, reference.k * d * out.curve.inertia);
  out.dashpot = std::max(0.0, reference.b * out.curve.inertia);
  return out;
}

/// Of a row on an error of either sign, or of a limit.
RowSpring row_spring(const Softness& law, double mobility) {
  const PairSpring spring = spring_of(law, mobility);
  return {spring.stiffness, spring.dashpot, spring.curve};
}

/// Of dry friction, which has no error: no spring, and d as at depth 0.
RowSpring friction_spring(const Softness& law, double mobility) {
  RowSpring out;
  const double d = clamped_impedance(law.impedance[0]);
  out.curve.start = d;
  out.curve.end = d;
  out.curve.inertia = d / ((1 - d) * mobility);
  out.dashpot = std::max(0.0, reference_of(law).b * out.curve.inertia);
  return out;
}

/// The file's mobility where it has one, else the model's.
double mobility_of(const Softness& law, double of_model) { return law.mobility > 0 ? law.mobility : of_model; }

double mixed(double a, double b, double share) { return share * a + (1 - share) * b; }

/// Of two geometries of one priority, by the weights of their mixes.
Softness mixed_law(const ContactSoftness& a, const ContactSoftness& b) {
  double share = 0.5;
  if (a.mix >= least_number && b.mix >= least_number)
    share = a.mix / (a.mix + b.mix);
  else if (a.mix >= least_number || b.mix >= least_number)
    share = a.mix >= least_number ? 1 : 0;

  // Time constants mix; of two stiffnesses the larger counts.
  Softness out;
  const bool times = a.law.reference[0] > 0 && b.law.reference[0] > 0;
  for (int i = 0; i < 2; ++i)
    out.reference[i] =
        times ? mixed(a.law.reference[i], b.law.reference[i], share) : std::min(a.law.reference[i], b.law.reference[i]);
  for (int i = 0; i < 5; ++i)
    out.impedance[i] = mixed(a.law.impedance[i], b.law.impedance[i], share);
  out.least_time = std::max(a.law.least_time, b.law.least_time);
  return out;
}

/// Of two geometries: by priority, else both; one without softness leaves it to the other.
std::optional<ContactSoftness> combined(const GeometryPart& a, const GeometryPart& b) {
  if (!a.softness) return b.softness;
  if (!b.softness) return a.softness;
  ContactSoftness out = a.priority >= b.priority ? *a.softness : *b.softness;
  if (a.priority == b.priority) {
    out.law = mixed_law(*a.softness, *b.softness);
    out.condim = std::max(a.softness->condim, b.softness->condim);
  }
  out.margin = a.softness->margin + b.softness->margin;
  return out;
}

/// What the normal of a contact with a pyramid feels of A: the edges n +- mu t are its rows, each with the same R = 2 mu^2/ratio (1 + mu^2) A
/// (1 - d)/d.
double share_of_normal(const ContactSoftness& softness, double friction) {
  if (!softness.pyramids || softness.condim < 3) return 1;
  const double mu = std::max(friction, least_friction);
  return mu * mu / softness.impedance_ratio * (1 + mu * mu) / (softness.condim - 1);
}

/// Pairs that the file lists by themselves.
std::map<std::pair<int, int>, ContactSoftness> listed_pairs(const SceneParts& parts) {
  std::map<std::pair<int, int>, ContactSoftness> out;
  for (const PairPart& pair : parts.pairs)
    if (pair.softness) out[std::minmax(pair.a, pair.b)] = *pair.softness;
  return out;
}

/// 1/kg, of a geometry's body.
double mobility_of(const GeometryPart& geometry, const std::vector<double>& of_bodies) {
  const bool has_own = geometry.softness && geometry.softness->law.mobility > 0;
  return has_own ? geometry.softness->law.mobility : of_bodies[geometry.body];
}

void set_contacts(const SceneParts& parts, const NeutralInertia& neutral, Model& m) {
  const std::vector<double> mobility = linear_mobilities(neutral, m);
  const auto listed = listed_pairs(parts);
  for (std::size_t p = 0; p < m.pair_a.size(); ++p) {
    const GeometryPart& a = parts.geometries[m.pair_a[p]];
    const GeometryPart& b = parts.geometries[m.pair_b[p]];

    // A stiffness that somebody gave comes first.
    if (a.penalty.stiffness || b.penalty.stiffness) continue;
    const auto own = listed.find({m.pair_a[p], m.pair_b[p]});
    const auto softness = own != listed.end() ? std::optional(own->second) : combined(a, b);
    const double both = mobility_of(a, mobility) + mobility_of(b, mobility);
    if (!softness || !(both > 0)) continue;

    PairSpring spring = spring_of(softness->law, share_of_normal(*softness, m.pair_friction[p]) * both);
    spring.margin = softness->margin;
    m.pair_overrides[p].spring = spring;
    m.pair_penalty[p] = combine_penalty(a.penalty, b.penalty, m.pair_overrides[p]);
    m.pair_margin[p] += spring.margin;
    m.has_spring_curves = true;
  }
}

void set_limits(const SceneParts& parts, Model& m) {
  for (int j = 0; j < m.num_joints; ++j) {
    const JointPart& joint = parts.joints[j];
    if (!joint.limited || !joint.limit_softness) continue;

    // A ball turns about any axis.
    const int dofs = joint.type == JointType::ball ? 3 : 1;
    double mobility = 0;
    for (int i = 0; i < dofs; ++i)
      mobility += m.dof_weight[m.joint_v[j] + i] / dofs;
    if (joint.limit_softness->mobility > 0) mobility = joint.limit_softness->mobility;
    const PairSpring spring = spring_of(*joint.limit_softness, mobility);
    m.joint_limit_stiffness[j] = spring.stiffness;
    m.joint_limit_dashpot[j] = spring.dashpot;
    m.joint_limit_curve[j] = spring.curve;
    m.has_spring_curves = true;
  }
}

/// Of joints and tendons.
void set_frictions(const SceneParts& parts, Model& m) {
  for (int j = 0; j < m.num_joints; ++j) {
    const JointPart& joint = parts.joints[j];
    if (!joint.friction_softness) continue;
    const int first = m.joint_v[j];
    for (int d = first; d < first + joint_num_v(joint.type); ++d)
      if (m.dof_dry_friction[d] > 0)
        m.dof_friction_spring[d] =
            friction_spring(*joint.friction_softness, mobility_of(*joint.friction_softness, m.dof_weight[d]));
  }
  for (Tendon& tendon : m.tendons)
    if (tendon.friction_softness && tendon.dry_friction > 0)
      tendon.friction_spring =
          friction_spring(*tendon.friction_softness, mobility_of(*tendon.friction_softness, tendon.weight));
}

void set_tendon_limits(Model& m) {
  for (Tendon& tendon : m.tendons) {
    if (!tendon.limited || !tendon.limit_softness) continue;
    tendon.limit_spring = row_spring(*tendon.limit_softness, mobility_of(*tendon.limit_softness, tendon.weight));
    m.has_spring_curves = true;
  }
}

void set_equalities(Model& m) {
  for (std::size_t i = 0; i < m.equalities.size(); ++i) {
    Equality& equality = m.equalities[i];
    if (!equality.softness) continue;
    const double mobility = mobility_of(*equality.softness, m.equality_weight[2 * i]);
    equality.spring = row_spring(*equality.softness, mobility);
    m.has_spring_curves = true;

    // MuJoCo's rows of rotation are those of half the angle: half the error, half the torque.
    const double angular = equality.softness->angular_mobility;
    equality.angular_share = 0.25 * (angular > 0 ? mobility / angular : 1);
  }
}

}  // namespace

void set_file_softness(const SceneParts& parts, const NeutralInertia& neutral, Model& m) {
  const bool contacts = std::any_of(parts.geometries.begin(), parts.geometries.end(),
                                    [](const auto& g) { return g.softness.has_value(); });
  if (contacts) set_contacts(parts, neutral, m);
  set_limits(parts, m);
  set_tendon_limits(m);
  set_equalities(m);
  set_frictions(parts, m);
}

}  // namespace coulomb

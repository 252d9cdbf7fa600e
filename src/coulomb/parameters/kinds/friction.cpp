// friction/<geometry>: Coulomb's coefficient (docs/theory.md (P4)). A pair has the larger of its two (model/scene/materials.hpp), so the
// derivative is that of the geometry whose value counts; at equal values, the pair's first. pair_friction/<geometry>:<geometry>: that of
// a pair with a value of its own. Only sliding contacts feel it:
//   lambda_T = mu lambda_N n, so r = J^T p, s = R p with p = lambda_N n; n of a pyramid: the point of the polygon's feature.
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

/// Direction of the friction impulse; without one, against the sliding velocity.
bool friction_direction(const ParameterContext& context, const BodyRows& b, double* n) {
  // Where friction acts, its direction.
  double t[2] = {context.lambda[b.row], context.lambda[b.row + 1]};
  double length = std::hypot(t[0], t[1]);

  // Without an impulse, the relative velocity of the bodies at the contact's point decides.
  if (!(length > 0)) {
    double velocity[3] = {0, 0, 0};
    for (const double sign : {1.0, -1.0}) {
      const int body = sign > 0 ? b.body_a : b.body_b;
      const double* twist = body_link_twist(context.model, context.velocities.twist_plus, body);
      double arm[3];
      double spin[3];
      relative_point(context.model, context.dynamics, body, b.point_a, arm);
      cross3(twist + 3, arm, spin);
      for (int i = 0; i < 3; ++i)
        velocity[i] += sign * (twist[i] + spin[i]);
    }

    for (int i = 0; i < 2; ++i)
      t[i] = -dot3(velocity, b.axes[i]);
    length = std::hypot(t[0], t[1]);
  }
  if (!(length > 0)) return false;
  n[0] = t[0] / length;
  n[1] = t[1] / length;
  return true;
}

/// What the coefficient does at one sliding contact: p = lambda_N n, its force on the bodies, and its compliance.
void add_friction_side(const ParameterContext& context, const BodyRows& b, RightHandSide& out) {
  // The direction n of the friction: for a pyramid the point of the polygon's feature.
  double n[2];
  const Block& block = context.rows.blocks[b.block];
  if (block.type == BlockType::pyramid) {
    const int facet = context.facets[b.block];
    if (facet < 0) return;
    for (int i = 0; i < 2; ++i)
      n[i] = friction_polygon(block).point[facet][i];
  } else if (!friction_direction(context, b, n)) {
    return;
  }

  double f[3] = {0, 0, 0};
  for (int i = 0; i < 2; ++i) {
    const double p = context.lambda[b.row + 2] * n[i];
    axpy3(p, b.axes[i], f);
    out.impulses.push_back({b.row + i, p});
    if (!context.rows.compliance.empty()) {
      out.rows.push_back({b.row + i, context.rows.compliance[b.row + i] * p});
    }
  }
  add_contact_force(context, b, f, out);
}

bool slides(const ParameterContext& context, const BodyRows& b) {
  return b.contact >= 0 && context.modes[b.block] == Mode::sliding;
}

class FrictionKind : public ParameterKind {
  const char* name() const override { return "friction"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.geometry_friction[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.geometry_friction[e.index] = values[0];
    model.geometry_materials[e.index].friction = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    // Sliding contacts of pairs whose larger coefficient is this geometry's.
    const Model& m = context.model;
    for (const BodyRows& b : context.rows.body_rows) {
      if (!slides(context, b)) continue;
      const int pair = context.contacts[b.contact].pair;
      const PairMaterial material = combine_materials(m.geometry_materials[m.pair_a[pair]],
                                                      m.geometry_materials[m.pair_b[pair]], m.pair_overrides[pair]);
      if (owns(material.friction_owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index))
        add_friction_side(context, b, out[0]);
    }
  }
};

class PairFrictionKind : public ParameterKind {
  const char* name() const override { return "pair_friction"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    return pairs_with(model, [](const PairOverride& own) { return own.friction.has_value(); });
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = *model.pair_overrides[e.index].friction;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.pair_overrides[e.index].friction = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (const BodyRows& b : context.rows.body_rows)
      if (slides(context, b) && context.contacts[b.contact].pair == e.index) {
        add_friction_side(context, b, out[0]);
      }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_friction() { return std::make_unique<FrictionKind>(); }
std::unique_ptr<ParameterKind> make_pair_friction() { return std::make_unique<PairFrictionKind>(); }

}  // namespace coulomb

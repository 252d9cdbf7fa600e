// restitution/<geometry>: Newton's coefficient e in [0, 1]; pair_restitution/<geometry>:<geometry>: that of a pair with a value of its own.
// Bouncing normal rows have the bias e (J v)_N: s = (J v)_N, docs/theory.md (P4).
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// Does this contact bounce by the coefficient of its pair? Others have a rebound of their own.
bool bounces(const ParameterContext& context, const BodyRows& b) {
  if (b.contact < 0 || b.restitution <= 0 || context.inactive[b.block]) return false;
  return b.restitution == context.model.pair_restitution[context.contacts[b.contact].pair];
}

void add_bounce_side(const ParameterContext& context, const BodyRows& b, RightHandSide& out) {
  out.rows.push_back({b.row + 2, context.rows.bias[b.row + 2] / b.restitution});
}

void check_restitution(const std::string& what, double value) {
  if (!(value >= 0 && value <= 1)) {
    checks::fail(what, checks::text(value) + " is outside [0, 1]");
  }
}

class RestitutionKind : public ParameterKind {
  const char* name() const override { return "restitution"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.geometry_restitution[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    check_restitution(what, values[0]);
    model.geometry_restitution[e.index] = values[0];
    model.geometry_materials[e.index].restitution = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;

    // The larger coefficient of two geometries counts.
    for (const BodyRows& b : context.rows.body_rows) {
      if (!bounces(context, b)) continue;
      const int pair = context.contacts[b.contact].pair;
      const PairMaterial material = combine_materials(m.geometry_materials[m.pair_a[pair]],
                                                      m.geometry_materials[m.pair_b[pair]], m.pair_overrides[pair]);
      if (owns(material.restitution_owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index))
        add_bounce_side(context, b, out[0]);
    }
  }
};

class PairRestitutionKind : public ParameterKind {
  const char* name() const override { return "pair_restitution"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    return pairs_with(model, [](const PairOverride& own) { return own.restitution.has_value(); });
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = *model.pair_overrides[e.index].restitution;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    check_restitution(what, values[0]);
    model.pair_overrides[e.index].restitution = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (const BodyRows& b : context.rows.body_rows)
      if (bounces(context, b) && context.contacts[b.contact].pair == e.index) {
        add_bounce_side(context, b, out[0]);
      }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_restitution() { return std::make_unique<RestitutionKind>(); }
std::unique_ptr<ParameterKind> make_pair_restitution() { return std::make_unique<PairRestitutionKind>(); }

}  // namespace coulomb

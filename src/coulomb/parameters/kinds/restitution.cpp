// restitution/<geometry>: Newton's coefficient e in [0, 1]. Bouncing normal rows have the bias e (J v)_N: s = (J v)_N, docs/theory.md
// (P4).
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class RestitutionKind : public ParameterKind {
  const char* name() const override { return "restitution"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.geometry_restitution[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    if (!(values[0] >= 0 && values[0] <= 1)) {
      checks::fail(what, checks::text(values[0]) + " is outside [0, 1]");
    }
    model.geometry_restitution[e.index] = values[0];
    model.geometry_materials[e.index].restitution = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;

    // Contacts that bounce by the coefficient of their pair; others have a rebound of their own.
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || b.restitution <= 0 || context.inactive[b.block]) continue;
      const int pair = context.contacts[b.contact].pair;
      if (b.restitution != m.pair_restitution[pair]) continue;

      // The larger coefficient of two geometries counts.
      const PairMaterial material = combine_materials(m.geometry_materials[m.pair_a[pair]],
                                                      m.geometry_materials[m.pair_b[pair]], m.pair_overrides[pair]);
      if (!owns(material.restitution_owner, m.pair_a[pair] == e.index, m.pair_b[pair] == e.index)) continue;
      out[0].rows.push_back({b.row + 2, context.rows.bias[b.row + 2] / b.restitution});
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_restitution() { return std::make_unique<RestitutionKind>(); }

}  // namespace coulomb

// compliance/<geometry>: velocity per normal impulse; those of a pair add. s = lambda_N on the normal rows, docs/theory.md (P4).
#include "coulomb/collision/contact.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class ComplianceKind : public ParameterKind {
  const char* name() const override { return "compliance"; }
  const char* unit() const override { return "m/(N s)"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return all_geometries(model, 1); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.geometry_compliance[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.geometry_compliance[e.index] = model.geometry_materials[e.index].compliance = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;

    // Compliant rows of contacts that the geometry takes part in; soft ones have a law of their own.
    if (context.rows.compliance.empty()) return;
    for (const BodyRows& b : context.rows.body_rows) {
      if (b.contact < 0 || context.inactive[b.block] || spring_of(context, b)) continue;

      const int pair = context.contacts[b.contact].pair;
      if (m.pair_a[pair] != e.index && m.pair_b[pair] != e.index) continue;
      out[0].rows.push_back({b.row + 2, context.lambda[b.row + 2]});
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_compliance() { return std::make_unique<ComplianceKind>(); }

}  // namespace coulomb

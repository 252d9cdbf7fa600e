// density (1, kg/m^3), viscosity (1, Pa s), wind (3, m/s) of the medium that a file's bodies move in: r = h sum J_b^T dW_b. The boxes and
// ellipsoids that stand for the bodies are those of the file, whatever their masses and geometries become. fluid_coefficients (5 for each
// ellipsoid of a body, in their order).
#include "coulomb/dynamics/body_wrenches.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// Calls visit(body, the medium on it) of every body that it acts on.
template <class Visit>
void for_each_body(const ParameterContext& context, Visit visit) {
  const Model& m = context.model;
  for (int b = 1; b < m.num_bodies; ++b) {
    if (m.body_last_dof[b] < 0 || !feels_medium(m, b)) continue;
    visit(b, MediumOnBody(m, context.dynamics, b, context.body_twist + 8 * b));
  }
}

std::vector<ParameterElement> if_there(const Model& model, int size) {
  return has_medium(model) ? std::vector<ParameterElement>{{"", 0, size}} : std::vector<ParameterElement>{};
}

class DensityKind : public ParameterKind {
  const char* name() const override { return "density"; }
  const char* unit() const override { return "kg/m^3"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return if_there(model, 1); }
  void read(const Model& model, const ParameterElement&, double* values) const override {
    values[0] = model.medium.density;
  }
  void write(Model& model, const ParameterElement&, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.medium.density = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement&, RightHandSide* out) const override {
    for_each_body(context, [&](int b, const MediumOnBody& medium) {
      out[0].add_wrench(b, medium.by_density, medium.by_density + 3, context.options.timestep);
    });
  }
};

class ViscosityKind : public ParameterKind {
  const char* name() const override { return "viscosity"; }
  const char* unit() const override { return "Pa s"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return if_there(model, 1); }
  void read(const Model& model, const ParameterElement&, double* values) const override {
    values[0] = model.medium.viscosity;
  }
  void write(Model& model, const ParameterElement&, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.medium.viscosity = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement&, RightHandSide* out) const override {
    for_each_body(context, [&](int b, const MediumOnBody& medium) {
      out[0].add_wrench(b, medium.by_viscosity, medium.by_viscosity + 3, context.options.timestep);
    });
  }
};

class WindKind : public ParameterKind {
  const char* name() const override { return "wind"; }
  const char* unit() const override { return "m/s"; }
  std::vector<ParameterElement> elements(const Model& model) const override { return if_there(model, 3); }
  void read(const Model& model, const ParameterElement&, double* values) const override {
    for (int i = 0; i < 3; ++i)
      values[i] = model.medium.wind[i];
  }
  void write(Model& model, const ParameterElement&, const double* values, const std::string& what) const override {
    checks::finite(what, values, 3);
    for (int i = 0; i < 3; ++i)
      model.medium.wind[i] = values[i];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement&, RightHandSide* out) const override {
    for_each_body(context, [&](int b, const MediumOnBody& medium) {
      for (int k = 0; k < 3; ++k) {
        double wind[3] = {0, 0, 0};
        double change[6];
        wind[k] = 1;
        medium.respond_to_wind(wind, change);
        out[k].add_wrench(b, change, change + 3, context.options.timestep);
      }
    });
  }
};

class FluidCoefficientsKind : public ParameterKind {
  static constexpr int per_ellipsoid = 5;
  const char* name() const override { return "fluid_coefficients"; }
  const char* unit() const override { return "1"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int b = 1; b < model.num_bodies && has_medium(model); ++b) {
      const EllipsoidRange range = ellipsoids_of(model, b);
      if (model.body_last_dof[b] >= 0 && range.first < range.last)
        out.push_back({model.body_names[b], b, per_ellipsoid * (range.last - range.first)});
    }
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    const EllipsoidRange range = ellipsoids_of(model, e.index);
    for (int i = range.first; i < range.last; ++i)
      for (const double c : model.medium_ellipsoids[i].coefficients)
        *values++ = c;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::finite(what, values, e.size);
    const EllipsoidRange range = ellipsoids_of(model, e.index);
    for (int i = range.first; i < range.last; ++i)
      for (double& c : model.medium_ellipsoids[i].coefficients)
        c = *values++;
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const EllipsoidRange range = ellipsoids_of(context.model, e.index);
    for (int i = range.first; i < range.last; ++i) {
      double changes[per_ellipsoid][6];
      ellipsoid_coefficient_wrenches(context.model, context.dynamics, e.index, i, context.body_twist + 8 * e.index,
                                     changes);
      for (const double(&change)[6] : changes)
        (out++)->add_wrench(e.index, change, change + 3, context.options.timestep);
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_fluid_coefficients() { return std::make_unique<FluidCoefficientsKind>(); }
std::unique_ptr<ParameterKind> make_density() { return std::make_unique<DensityKind>(); }
std::unique_ptr<ParameterKind> make_viscosity() { return std::make_unique<ViscosityKind>(); }
std::unique_ptr<ParameterKind> make_wind() { return std::make_unique<WindKind>(); }

}  // namespace coulomb

// Right-hand sides of every kind of parameter that moves contacts or changes their law, with penalty contact: against differences of
// Q - ID, and forward against reverse.
#include <cstring>

#include "check.hpp"
#include "constraints/penalty_scene.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/penalty_sides.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

/// Everything a ParameterContext points to, for one evaluation.
struct Context {
  explicit Context(const Model& m) : at(m), joints(m), still(m.nv, 0.0), fext() {}
  PenaltyEvaluation at;
  JointForces joints;
  std::vector<double> still, fext, q, v;
  ConstraintOptions options;

  void prepare(const Model& m) {
    at(m, q, v);
    DynamicsWorkspace& d = at.dynamics;
    BodyForces forces(m);
    mass_matrix(m, d);
    add_penalty_body_forces(m, d, at.forces, forces);
    inverse_dynamics_derivatives(m, d, still.data(), &forces);
    std::vector<double> dq_T(std::size_t(m.nv) * d.ld), dv_T(dq_T);
    penalty_row_derivatives(m, d, at.forces);
    penalty_derivatives(m, d, at.forces, dq_T.data(), dv_T.data(), d.ld);
    options.timestep = 1;
  }
  ParameterContext view(const Model& m) const {
    const PenaltyForces& f = at.forces;
    const double *twist = f.twist.data(), *rate = at.dynamics.column_rate.data(),
                 *body_twist = at.dynamics.body_twist.data();
    return {m,
            at.dynamics,
            options,
            f.rows,
            f.collision.contacts,
            f.derivatives,
            f.inactive,
            {twist, rate, twist, rate},
            body_twist,
            body_twist,
            q.data(),
            v.data(),
            nullptr,
            v.data(),
            still.data(),
            f.force.data(),
            fext,
            f.modes,
            joints,
            &f};
  }
};

/// Q - ID(q, v, 0)
std::vector<double> residual(const Model& m, PenaltyEvaluation& at, const std::vector<double>& q,
                             const std::vector<double>& v) {
  at(m, q, v);
  bias(m, at.dynamics);
  std::vector<double> out = at.Q;
  for (int d = 0; d < m.nv; ++d) out[d] -= at.dynamics.bias[d];
  return out;
}

const ParameterKind& kind_of(const std::string& name) {
  for (const auto& kind : parameter_kinds())
    if (kind->name() == name) return *kind;
  CHECK(false);
  return *parameter_kinds().front();
}

struct Tally {
  int compared = 0, skipped = 0, moved = 0;
  double worst = 0;
};

void compare_element(const Model& m, const ParameterKind& kind, const ParameterElement& e, const Context& here,
                     Tally& tally) {
  static const double weight[4] = {-1.0 / 12, 8.0 / 12, -8.0 / 12, 1.0 / 12}, at[4] = {2, 1, -1, -2};
  const ParameterContext context = here.view(m);
  std::vector<RightHandSide> sides(e.size);
  kind.right_hand_sides(context, e, sides.data());
  close_penalty_sides(context, sides.data(), e.size);
  std::vector<double> value(e.size);
  kind.read(m, e, value.data());
  double scale = 1;
  for (const double x : here.at.Q) scale = std::max(scale, std::abs(x));
  std::vector<double> y(m.nv), twist(8 * m.nv + 8);
  for (int d = 0; d < m.nv; ++d) y[d] = std::cos(3.0 * d + 1);
  link_twists(m, here.at.dynamics, y.data(), twist.data());
  for (int k = 0; k < e.size; ++k) {
    std::vector<double> r(m.nv, 0.0), expected(m.nv, 0.0);
    CHECK(sides[k].rows.empty());
    expand(context, sides[k], r.data(), nullptr, 0);
    double forward = 0, size = 0;
    for (int d = 0; d < m.nv; ++d) forward += y[d] * r[d], size += std::abs(y[d] * r[d]);
    CHECK_NEAR(project(context, sides[k], y.data(), twist.data(), nullptr), forward, 1e-12 * (1 + size));
    const double step = 2e-5 * std::max(1.0, std::abs(value[k]));
    bool same = true;
    for (int i = 0; i < 4 && same; ++i) {
      Model other = m;
      std::vector<double> w = value;
      w[k] += at[i] * step;
      kind.write(other, e, w.data(), "test");
      PenaltyEvaluation moved(other);
      const std::vector<double> f = residual(other, moved, here.q, here.v);
      same = same_piece(here.at.forces, moved.forces);
      for (int d = 0; d < m.nv; ++d) expected[d] += weight[i] * f[d] / step;
    }
    if (!same) {
      ++tally.skipped;
      continue;
    }
    ++tally.compared;
    double error = 0, largest = 0;
    for (int d = 0; d < m.nv; ++d)
      error = std::max(error, std::abs(r[d] - expected[d])), largest = std::max(largest, std::abs(expected[d]));
    const double unit = std::max(largest, scale / std::max(1.0, std::abs(value[k])));
    tally.moved += largest > 1e-6 * unit;
    tally.worst = std::max(tally.worst, error / unit);
    if (!(error < 1e-7 * unit)) std::printf("%s/%s[%d]: ", kind.name(), e.name.c_str(), k);
    CHECK(error < 1e-7 * unit);
  }
}

bool any_frozen(const PenaltyForces& f) {
  for (std::size_t i = 0; i < f.modes.size(); ++i)
    if (!f.inactive[i] && f.derivatives.motions[i].frozen) return true;
  return false;
}

void every_kind() {
  constexpr ShapeType shapes[] = {ShapeType::sphere, ShapeType::capsule,   ShapeType::cylinder,
                                  ShapeType::box,    ShapeType::ellipsoid, ShapeType::mesh};
  const char* kinds[] = {"friction",
                         "contact_stiffness",
                         "contact_damping",
                         "contact_friction_stiffness",
                         "contact_scale",
                         "contact_points",
                         "size",
                         "vertices",
                         "geometry_placement",
                         "joint_placement"};
  Tally tally[std::size(kinds)];
  Random random(11);
  for (const ShapeType a : shapes)
    for (const ShapeType b : shapes)
      for (const int points : {0, 2}) {
        const PenaltyScene scene(a, b, points > 0 ? 30 : 0, points == 2 ? 20 : 0, random);
        const Model& m = *scene.model;
        Context here(m);
        for (int k = 0; k < 2; ++k) {
          if (!draw_state(scene, k == 1, random, here.at, here.q, here.v)) continue;
          here.prepare(m);
          if (any_frozen(here.at.forces)) continue;
          for (std::size_t i = 0; i < std::size(kinds); ++i) {
            const ParameterKind& kind = kind_of(kinds[i]);
            for (const ParameterElement& e : kind.elements(m)) compare_element(m, kind, e, here, tally[i]);
          }
        }
      }
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    std::printf("%-28s %5d compared, %4d with an effect, %4d crossed a kink, worst %.2g\n", kinds[i], tally[i].compared,
                tally[i].moved, tally[i].skipped, tally[i].worst);
    CHECK(tally[i].moved > 20 && tally[i].compared > 3 * tally[i].skipped);
  }
}

/// What other laws of contact have and these forces do not.
void others_are_zero() {
  Random random(3);
  const PenaltyScene scene(ShapeType::box, ShapeType::sphere, 0, 0, random);
  Context here(*scene.model);
  CHECK(draw_state(scene, false, random, here.at, here.q, here.v));
  here.prepare(*scene.model);
  const ParameterContext context = here.view(*scene.model);
  for (const char* name : {"compliance", "restitution"})
    for (const ParameterElement& e : kind_of(name).elements(*scene.model)) {
      std::vector<RightHandSide> sides(e.size);
      kind_of(name).right_hand_sides(context, e, sides.data());
      CHECK(sides[0].rows.empty() && sides[0].wrenches.empty() && sides[0].dofs.empty());
    }
}

}  // namespace

int main() {
  every_kind();
  others_are_zero();
  return report();
}

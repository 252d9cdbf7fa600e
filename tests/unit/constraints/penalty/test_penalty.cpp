// Penalty contact: the law itself, forces that never pull, and dQ/dq, dQ/dv against differences for every pair of shapes, with and
// without contact points, in every mode.
#include "check.hpp"
#include "constraints/penalty_scene.hpp"

#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model/scene/materials.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr ShapeType shapes[] = {ShapeType::sphere, ShapeType::capsule,   ShapeType::cylinder,
                                ShapeType::box,    ShapeType::ellipsoid, ShapeType::mesh};

/// dQ/dq and dQ/dv in full: what ID' holds, and the rest.
void derivatives(const Model& m, PenaltyEvaluation& at, std::vector<double>& dq_T, std::vector<double>& dv_T) {
  DynamicsWorkspace& d = at.dynamics;
  const std::vector<double> still(m.nv, 0.0);
  BodyForces forces(m);
  mass_matrix(m, d);
  inverse_dynamics_derivatives(m, d, still.data(), nullptr);
  std::vector<double> loaded(std::size_t(m.nv) * d.ld);
  dq_T.assign(loaded.size(), 0.0);
  add_by_tree(d, d.id_dq_T, dq_T.data(), d.ld);
  add_penalty_body_forces(m, d, at.forces, forces);
  inverse_dynamics_derivatives(m, d, still.data(), &forces);
  add_by_tree(d, d.id_dq_T, loaded.data(), d.ld);
  for (std::size_t i = 0; i < dq_T.size(); ++i) dq_T[i] -= loaded[i];
  dv_T.assign(dq_T.size(), 0.0);
  penalty_row_derivatives(m, d, at.forces);
  penalty_derivatives(m, d, at.forces, dq_T.data(), dv_T.data(), d.ld);
}

struct Tally {
  int compared = 0, skipped = 0, sticking = 0, sliding = 0, separating = 0, frozen = 0;
  double worst = 0;
} tally;

/// Fourth-order difference of Q along one tangent direction; false where it would cross into another piece.
bool difference(const Model& m, const PenaltyForces& here, const std::vector<double>& q, const std::vector<double>& v,
                int k, bool by_v, double step, PenaltyEvaluation& moved, std::vector<double>& out) {
  static const double weight[4] = {-1.0 / 12, 8.0 / 12, -8.0 / 12, 1.0 / 12}, at[4] = {2, 1, -1, -2};
  out.assign(m.nv, 0.0);
  for (int i = 0; i < 4; ++i) {
    std::vector<double> q1 = q, v1 = v, w(m.nv, 0.0);
    if (by_v) v1[k] += at[i] * step;
    else w[k] = at[i] * step, integrate(m, q.data(), w.data(), q1.data());
    moved(m, q1, v1);
    if (!same_piece(here, moved.forces)) return false;
    for (int d = 0; d < m.nv; ++d) out[d] += weight[i] * moved.Q[d] / step;
  }
  return true;
}

void compare(const Model& m, const std::vector<double>& q, const std::vector<double>& v, PenaltyEvaluation& at,
             PenaltyEvaluation& moved, double tolerance) {
  std::vector<double> dq_T, dv_T, expected;
  at(m, q, v);
  derivatives(m, at, dq_T, dv_T);
  for (std::size_t i = 0; i < at.forces.modes.size(); ++i) {
    if (at.forces.inactive[i]) continue;
    if (at.forces.derivatives.motions[i].frozen) {
      ++tally.frozen;
      return;
    }
  }
  for (const Mode mode : at.forces.modes)
    ++(mode == Mode::sticking ? tally.sticking : mode == Mode::sliding ? tally.sliding : tally.separating);
  double scale = 1;
  for (const double x : dq_T) scale = std::max(scale, std::abs(x));
  for (int k = 0; k < m.nv; ++k)
    for (const bool by_v : {false, true}) {
      if (!difference(m, at.forces, q, v, k, by_v, by_v ? 1e-4 : 2e-5, moved, expected)) {
        ++tally.skipped;
        continue;
      }
      ++tally.compared;
      const double* got = (by_v ? dv_T : dq_T).data() + std::size_t(k) * at.dynamics.ld;
      double error = 0;
      for (int d = 0; d < m.nv; ++d) error = std::max(error, std::abs(got[d] - expected[d]));
      tally.worst = std::max(tally.worst, error / scale);
      CHECK(error < tolerance * scale);
    }
}

void never_pulls(const PenaltyForces& forces) {
  for (std::size_t i = 0; i < forces.modes.size(); ++i) {
    const double* f = &forces.force[3 * i];
    const double mu = forces.rows.blocks[i].mu;
    CHECK(f[2] >= 0 && std::hypot(f[0], f[1]) <= mu * f[2] * (1 + 1e-14));
    CHECK(forces.collision.contacts[i].distance < 0);
    CHECK((forces.modes[i] == Mode::separating) == (f[2] == 0));
  }
}

void every_pair() {
  Random random(7);
  for (const ShapeType a : shapes)
    for (const ShapeType b : shapes)
      for (const int points : {0, 1, 2}) {
        const PenaltyScene scene(a, b, points > 0 ? 60 : 0, points == 2 ? 40 : 0, random);
        PenaltyEvaluation at(*scene.model), moved(*scene.model);
        std::vector<double> q, v;
        for (int k = 0; k < 4; ++k) {
          const bool found = draw_state(scene, k == 3, random, at, q, v);
          CHECK(found);
          if (!found) continue;
          never_pulls(at.forces);
          compare(*scene.model, q, v, at, moved, 1e-7);
        }
      }
  std::printf("%d compared, %d crossed a kink, %d frozen; %d viscous, %d sliding, %d pulled apart; worst %.2g\n",
              tally.compared, tally.skipped, tally.frozen, tally.sticking, tally.sliding, tally.separating,
              tally.worst);
  CHECK(tally.compared > 4 * tally.skipped && tally.frozen < 40);
  CHECK(tally.sticking > 50 && tally.sliding > 50 && tally.separating > 10);
}

/// A ball on the ground, number by number.
void law() {
  Scene scene;
  GroundOptions ground;
  ground.friction = 0.5;
  scene.add_ground(ground);
  ShapeOptions ball;
  ball.mass = 1.0, ball.friction = 0.4, ball.penalty = {2e4, 3e3, 50.0, 0.5};
  scene.add_sphere(0.1, ball);
  const auto model = scene.build();
  PenaltyEvaluation at(*model);
  std::vector<double> q = {0, 0, 0.098, 1, 0, 0, 0}, v(6, 0.0);
  const auto force = [&](double vx, double vz) {
    v[0] = vx, v[2] = vz;
    at(*model, q, v);
    return std::pair(at.Q[0], at.Q[2]);
  };
  const double d = -0.002, s = 0.5, kn = 2e4, kd = 3e3, kt = 50;
  CHECK_NEAR(force(0, 0).second, -s * kn * d, 1e-12);
  CHECK_NEAR(force(0, -1).second, s * (-kn * d + kd * -1 * d), 1e-12);
  CHECK_NEAR(force(0, 2).second, s * (-kn * d + kd * 2 * d), 1e-12);
  CHECK(force(0.3, 7).second == 0 && at.Q[0] == 0 && at.forces.modes[0] == Mode::separating);  // beyond k_n / k_d
  CHECK_NEAR(force(0.1, 0).first, -s * kt * 0.1, 1e-12);
  CHECK(at.forces.modes[0] == Mode::sticking);
  CHECK_NEAR(force(3, 0).first, -0.5 * 20, 1e-12);
  CHECK(at.forces.modes[0] == Mode::sliding);
  q[2] = 0.1;
  CHECK(force(1, -1).second == 0 && at.forces.collision.contacts.empty());
}

void materials() {
  const PenaltyMaterial none, soft{1e4, 10.0, std::nullopt, 2}, hard{3e4, 4.0, 7.0, 3};
  CHECK(!combine_penalty(none, none).stiffness && combine_penalty(none, none).damping_owner == Owner::none);
  CHECK(*combine_penalty(none, soft).stiffness == 1e4 && combine_penalty(none, soft).scale == 2);
  const PairPenalty both = combine_penalty(soft, hard);
  CHECK_NEAR(*both.stiffness, 7500, 1e-10);
  CHECK(*both.damping == 10 && both.damping_owner == Owner::a);
  CHECK(*both.friction_stiffness == 7 && both.friction_stiffness_owner == Owner::b && both.scale == 6);
}

}  // namespace

int main() {
  materials();
  law();
  every_pair();
  return report();
}

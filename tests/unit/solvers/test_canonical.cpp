// The choice among impulses that are not unique, where the next velocity depends on it: redundant contacts that slide. The condition
// of canonical.hpp by other means (a pseudo-inverse), independence of the start, and its derivative against differences.
#include "../check.hpp"
#include "coulomb/model/scene.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/linearization.hpp"
#include "coulomb/stepping/simulator.hpp"
#include "problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

SolverResult solve(const ConstraintProblem& p, const WarmStart* warm = nullptr) {
  ConstraintSolver solver;
  SolverResult result;
  solver.solve(p, SolverSettings(), warm, result);
  return result;
}

double length(const Vector& x) {
  double sum = 0;
  for (double a : x) sum += a * a;
  return std::sqrt(sum);
}

double difference(const Vector& a, const Vector& b) {
  Vector d(a);
  for (std::size_t i = 0; i < a.size(); ++i) d[i] -= b[i];
  return length(d) / length(b);
}

/// ||L^T B W lambda|| / ||B W lambda|| with the projector 1 - A A^+ in the place of L; and how many directions L has.
double condition(const ConstraintProblem& p, const SolverResult& r, int& nullity, Vector* null_impulse = nullptr) {
  ScaledProblem scaled;
  scaled.assign(p);
  Vector lambda(scaled.ld), c(scaled.ld);
  scaled.to_scaled(r.lambda.data(), lambda.data());
  scaled.velocity(lambda.data(), c.data());
  std::vector<BlockMode> modes(p.blocks.size());
  for (std::size_t b = 0; b < modes.size(); ++b) {
    modes[b] = scaled.mode(static_cast<int>(b), lambda.data(), c.data());
    modes[b].mode = r.modes[b];
  }
  ReducedSystem system;
  system.set_modes(scaled, modes.data(), true);
  system.assemble(scaled, 0);
  const int m = system.size;
  Vector w(m), x(m);
  for (int i = 0; i < m; ++i) {
    const double d = scaled.inverse_root[system.rows[i].row];
    w[i] = x[i] = d * d * ReducedSystem::equation(system.rows[i], lambda.data());
  }
  PseudoInverse inverse;
  inverse.compute(system.A.data(), m, system.ld);
  nullity = m - inverse.rank;
  inverse.solve(x.data(), 1, 1);
  Vector rest(w);
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j) rest[i] -= system.A[static_cast<std::size_t>(i) * system.ld + j] * x[j];
  if (null_impulse) {  // C (1 - A^+ A) x
    Vector along(m), image(m);
    for (int i = 0; i < m; ++i) along[i] = 1 + i % 3;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < m; ++j) image[i] += system.A[static_cast<std::size_t>(i) * system.ld + j] * along[j];
    inverse.solve(image.data(), 1, 1);
    Vector scaled_impulse(scaled.ld, 0.0);
    for (int i = 0; i < m; ++i) ReducedSystem::expand(system.rows[i], along[i] - image[i], scaled_impulse.data());
    null_impulse->assign(p.n, 0.0);
    for (int i = 0; i < p.n; ++i) (*null_impulse)[i] = scaled_impulse[i] * scaled.inverse_root[i];
  }
  return length(rest) / length(w);
}

/// A box that slides and spins on four points.
World spinning_box(std::uint64_t seed) {
  Random r(seed);
  World w;
  w.add_body(1, 0.01, {0, 0, 0.1}, {1 + 0.3 * r.normal(), 0.3 * r.normal(), -0.1},
             {0.02 * r.normal(), 0.02 * r.normal(), 3 * r.normal()});
  add_box_on_ground(w, 0, 0.4);
  return w;
}

/// Two links joined by a ball joint that touch the ground at one and the same point, the joint's, and slide.
World chain(std::uint64_t seed) {
  Random r(seed);
  World w;
  const Vec3 joint = {0, 0, 0};
  const auto link = [&](double mass, Vec3 at) {
    w.add_body(mass, 0.02 * mass, at, {1, 0.2 * r.normal(), -0.5}, {0, r.normal(), r.normal()});
  };
  link(1, {-0.2, 0.1, 0.3});
  link(0.4, {0.25, 0, 0.2});
  for (const Vec3& axis : {Vec3{1, 0, 0}, Vec3{0, 1, 0}, Vec3{0, 0, 1}})
    w.add_row(BlockType::equality, w.row(0, 1, joint, axis));
  w.add_contact(0, -1, joint, {0, 0, 1}, 0.3);
  w.add_contact(1, -1, joint, {0, 0, 1}, 0.7);
  return w;
}

int slides(const SolverResult& r) {
  int count = 0;
  for (Mode m : r.modes) count += m == Mode::sliding;
  return count;
}

int centred = 0, linearised = 0;

void test_choice(const World& w, std::uint64_t seed) {
  const ConstraintProblem p = w.problem();
  const SolverResult cold = solve(p);
  CHECK(cold.status == SolveStatus::solved && cold.canonical);
  if (slides(cold) < 2) return;
  int nullity = 0;
  Vector along;
  const double rest = condition(p, cold, nullity, &along);
  if (nullity == 0) return;
  ++centred;
  CHECK_NEAR(rest, 0, 1e-13);
  CHECK_NEAR(violation(p, cold.lambda), 0, 2e-10);
  Random random(seed);
  for (double noise : {1e-6, 1e-2, 1.0}) {
    WarmStart warm{cold.lambda, std::vector<std::uint8_t>(cold.modes.size(), 1), cold.modes};
    if (noise > 0.1) warm.mode.assign(cold.modes.size(), Mode::sticking);
    for (double& l : warm.lambda) l += noise * length(cold.lambda) * random.normal();
    const SolverResult r = solve(p, &warm);
    CHECK(r.canonical && r.modes == cold.modes);
    CHECK_NEAR(difference(r.lambda, cold.lambda), 0, 1e-12);
  }
  WarmStart other{cold.lambda, std::vector<std::uint8_t>(cold.modes.size(), 1),
                  cold.modes};  // almost, or quite, a solution as well
  for (double size : {1e-2, 1e-6, 1e-9}) {
    for (int i = 0; i < p.n; ++i)
      other.lambda[i] = cold.lambda[i] + size * length(cold.lambda) * along[i] / length(along);
    CHECK_NEAR(difference(solve(p, &other).lambda, cold.lambda), 0, 1e-12);
  }
}

/// dlambda along a change of the free velocity: the limit of compliant problems' derivatives, extrapolated from four of them as in
/// stepping/limit_linearization.cpp, against differences of the choice.
void test_derivative(const World& w, std::uint64_t seed) {
  const ConstraintProblem p = w.problem();
  const SolverResult base = solve(p);
  Random random(seed);
  World moved = w;
  Vector dv(w.v.size()), ds(p.n, 0.0), exact(p.n, 0.0), column(p.n);
  for (double& x : dv) x = random.normal();
  for (int i = 0; i < p.n; ++i)
    for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * dv[k];
  ConstraintSolver solver;
  ProblemLinearization linearization;
  const double weight[4] = {64.0 / 21, -8.0 / 3, 2.0 / 3, -1.0 / 21};
  for (int level = 0; level < 4; ++level) {
    SolverResult r = base;
    CHECK(solver.solve_compliant(p, 2e-5 * (1 << level), r) && r.modes == base.modes);
    linearization.build(p, r);
    linearization.solve(ds.data(), column.data(), 1, 1);
    for (int i = 0; i < p.n; ++i) exact[i] += weight[level] * column[i];
  }
  const auto at = [&](double e) {
    for (std::size_t k = 0; k < dv.size(); ++k) moved.v[k] = w.v[k] + e * dv[k];
    return solve(moved.problem());
  };
  Vector numeric(p.n);
  for (double e : {1e-4, 5e-5}) {
    const SolverResult plus = at(e), minus = at(-e);
    if (plus.modes != base.modes || minus.modes != base.modes) return;
    for (int i = 0; i < p.n; ++i)
      numeric[i] =
          (e < 1e-4 ? 4.0 / 3 : -1.0 / 3) * (plus.lambda[i] - minus.lambda[i]) / (2 * e) + (e < 1e-4 ? numeric[i] : 0);
  }
  ++linearised;
  CHECK_NEAR(difference(exact, numeric), 0, 1e-7);
}

/// The same through a whole step: the Jacobian of a box that slides and spins on its four corners.
void test_step() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  scene.add_box({0.2, 0.3, 0.2}, {.mass = 1.0, .position = {0, 0, 0.0999}, .friction = 0.5});
  auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-3});
  int compared = 0;
  for (int seed = 0; seed < 12; ++seed) {
    Random r(static_cast<std::uint64_t>(seed));
    State base{model->q_neutral, Vector(6)}, next, plus, minus;
    const double scale[6] = {1, 1, 0, 0.03, 0.03, 3};
    for (int i = 0; i < 6; ++i) base.v[i] = scale[i] * r.normal();
    base.v[2] = -0.1;
    sim.reset();
    sim.freeze_memory(false);
    sim.step(base, {}, next);
    sim.freeze_memory(true);
    sim.step(base, {}, next);
    const std::vector<Mode> modes = sim.record().solution.modes;
    if (std::count(modes.begin(), modes.end(), Mode::sliding) < 4) continue;
    const StepDerivatives J = sim.derivatives();
    for (int dof = 0; dof < 6; ++dof) {
      Vector coarse(6), fine(6);
      bool same = true;
      for (double h : {2e-5, 1e-5}) {
        State x = base;
        x.v[dof] += h;
        sim.step(x, {}, plus);
        same = same && sim.record().solution.modes == modes;
        x.v[dof] = base.v[dof] - h;
        sim.step(x, {}, minus);
        same = same && sim.record().solution.modes == modes;
        for (int i = 0; i < 6; ++i) (h > 1e-5 ? coarse : fine)[i] = (plus.v[i] - minus.v[i]) / (2 * h);
      }
      if (!same) continue;
      ++compared;
      for (int i = 0; i < 6; ++i) CHECK_NEAR(J.A_T[12 * (6 + dof) + 6 + i], (4 * fine[i] - coarse[i]) / 3, 1e-8);
    }
  }
  CHECK(compared >= 36);
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (const World& w : {spinning_box(seed), chain(seed)}) {
      test_choice(w, seed);
      int nullity = 0;
      const SolverResult r = solve(w.problem());
      if (slides(r) >= 2 && (condition(w.problem(), r, nullity), nullity > 0)) test_derivative(w, seed);
    }
  }
  test_step();
  std::printf("%d choices, %d derivatives\n", centred, linearised);
  CHECK(centred >= 16 && linearised >= 12);
  return report();
}

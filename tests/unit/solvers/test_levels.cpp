// What the regularised definition promises (scaled_problem.hpp, "levels"): a choice among redundant impulses that no start decides and that
// is the least in W's norm; a second level that is much sharper than the first; next to nothing where impulses are unique; and its
// derivative, against differences of the solve and of whole steps.
#include "check.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

/// The compliance over the smallest pivot of these problems, squared. That pivot: 3/8 of the mean (a sphere's normal).
const double least = 1.1 * std::pow(SolverSettings().compliance * 8 / 3, 2);

/// Where redundant contacts slide, impulses and with them velocities are known to rounding over the compliance, relative to their size.
const double rounding = 2.2e-16 / SolverSettings().compliance;

/// As exact as it gets.
SolverSettings sharp() {
  SolverSettings settings;
  settings.levels = 1;
  settings.tolerance = 1e-14;
  return settings;
}

SolverResult solve(const ConstraintProblem& p, const WarmStart* warm = nullptr,
                   const SolverSettings& settings = sharp()) {
  ConstraintSolver solver;
  SolverResult result;
  solver.solve(p, settings, warm, result);
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

int slides(const SolverResult& r) {
  int count = 0;
  for (Mode m : r.modes) count += m == Mode::sliding;
  return count;
}

/// A box on four points that slides and spins; that rests; and two links that touch the ground where they are joined.
World spinning_box(std::uint64_t seed) {
  Random r(seed);
  World w;
  w.add_body(1, 0.01, {0, 0, 0.1}, {1 + 0.3 * r.normal(), 0.3 * r.normal(), -0.1},
             {0.02 * r.normal(), 0.02 * r.normal(), 3 * r.normal()});
  add_box_on_ground(w, 0, 0.4);
  return w;
}

World resting_box(std::uint64_t seed) {
  Random r(seed);
  World w;
  w.add_body(1, 0.01, {0, 0, 0.1}, {0.003 * r.normal(), 0.003 * r.normal(), -0.1},
             {0.05 * r.normal(), 0.05 * r.normal(), 0.01 * r.normal()});
  add_box_on_ground(w, 0, 0.8);
  return w;
}

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

/// Any start gives the same impulses: up to rounding over the compliance, which is how well redundant ones are determined.
void test_starts(const World& w, std::uint64_t seed) {
  const ConstraintProblem p = w.problem();
  const SolverResult cold = solve(p);
  CHECK(cold.status == SolveStatus::solved);
  CHECK_NEAR(violation(p, cold), 0, 2e-10);

  Random random(seed);
  for (double noise : {1e-6, 1e-2, 1.0}) {
    WarmStart warm = warm_from(cold);
    if (noise > 0.1) warm.mode.assign(cold.modes.size(), Mode::sticking);
    for (Vector* start : {&warm.lambda, &warm.lambda_0})
      for (double& l : *start) l += noise * length(cold.lambda) * random.normal();
    const SolverResult r = solve(p, &warm);
    CHECK(r.status == SolveStatus::solved && r.modes == cold.modes);
    CHECK_NEAR(difference(r.lambda, cold.lambda), 0, 1e-9);
    CHECK_NEAR(difference(w.velocity_change(r.lambda), w.velocity_change(cold.lambda)), 0,
               slides(cold) > 0 ? rounding : 1e-12);
  }
}

/// From its own memory nothing is left to do, and nothing changes.
void test_own_start(const World& w) {
  const ConstraintProblem p = w.problem();
  const SolverResult cold = solve(p);
  const WarmStart warm = warm_from(cold);
  const SolverResult again = solve(p, &warm);
  CHECK(again.status == SolveStatus::solved && again.modes == cold.modes);
  CHECK_NEAR(difference(w.velocity_change(again.lambda), w.velocity_change(cold.lambda)), 0,
             slides(cold) > 0 ? rounding : 1e-14);
}

/// A proximal step multiplies what the compliance leaves by the compliance again.
void test_sharpening(const World& w) {
  const ConstraintProblem p = w.problem();
  SolverSettings one_level = sharp();
  one_level.levels = 0;
  const SolverResult first = solve(p, nullptr, one_level);
  const SolverResult second = solve(p);
  CHECK(first.levels == 0 && second.levels == 1);
  CHECK(first.exact_residual > 1e-9 && first.exact_residual < 1e-4);
  CHECK(second.exact_residual < 1e-4 * first.exact_residual);
  CHECK_NEAR(difference(first.lambda, second.lambda_0), 0, 1e-12);
}

/// The least impulses in W's norm that stop a body on points that stick: W^-1 J z with J^T W^-1 J z = the momentum that goes.
Vector least_norm(const World& w, const Vector& weight) {
  const int n = static_cast<int>(w.J.size());
  Vector A(6 * 8, 0.0), z(8, 0.0), work(8), lambda(n, 0.0);
  std::vector<int> pivot(6);
  for (int i = 0; i < 6; ++i) {
    z[i] = -w.v[i] / w.inverse_mass[i];
    for (int j = 0; j < 6; ++j)
      for (int k = 0; k < n; ++k) A[8 * i + j] += w.J[k][i] * w.J[k][j] / weight[k];
  }
  dense::lu(A.data(), 6, 8, pivot.data(), work.data());
  dense::lu_solve(A.data(), 6, 8, pivot.data(), z.data());
  for (int k = 0; k < n; ++k)
    for (int i = 0; i < 6; ++i) lambda[k] += w.J[k][i] * z[i] / weight[k];
  return lambda;
}

void test_least_norm(std::uint64_t seed) {
  const World w = resting_box(seed);
  ConstraintProblem p = w.problem();
  Random random(seed);
  p.W.assign(p.n, 0.0);
  for (const Block& b : p.blocks) {
    const double weight = block_scale(p, b) * std::exp(random.normal());
    for (int i = b.row; i < b.row + b.size; ++i) p.W[i] = weight;
  }
  const SolverResult r = solve(p);
  const Vector expected = least_norm(w, p.W);
  for (Mode m : r.modes) CHECK(m == Mode::sticking);
  CHECK_NEAR(difference(r.lambda, expected), 0, 1e-9);

  // Equal weights, equal shares: not the same impulses, but the same motion.
  p.W.clear();
  const SolverResult equal = solve(p);
  CHECK(difference(equal.lambda, expected) > 1e-3);
  CHECK_NEAR(difference(w.velocity_change(equal.lambda), w.velocity_change(expected)), 0, least);
}

/// Spheres, each on one contact, and rows by themselves: impulses are those of the problem without compliance.
void test_well_posed(std::uint64_t seed) {
  Random random(seed);
  World w;
  for (int i = 0; i < 4; ++i) {
    const double mass = std::exp(random.normal());
    w.add_body(mass, 0.4 * mass * 0.01, {1.0 * i, 0, 0.1}, {random.normal(), random.normal(), -0.5},
               {random.normal(), random.normal(), random.normal()});
  }
  for (int i = 0; i < 4; ++i) w.add_contact(i, -1, {1.0 * i, 0, 0}, {0, 0, 1}, i < 2 ? 0.05 : 2.0);
  const ConstraintProblem p = w.problem();
  SolverSettings as_given;
  as_given.method = SolverMethod::ac_lm;
  as_given.tolerance = 1e-14;
  const SolverResult exact = solve(p, nullptr, as_given);
  const SolverResult r = solve(p);
  CHECK(r.modes == exact.modes && slides(r) == 2);
  CHECK_NEAR(difference(r.lambda, exact.lambda), 0, least);
  CHECK_NEAR(violation(p, r.lambda), 0, least);
}

/// dlambda along a change of the free velocity, where redundant contacts slide.
int linearised = 0;
void test_derivative(const World& w, std::uint64_t seed) {
  constexpr double difference_step = 5e-4;
  const ConstraintProblem p = w.problem();
  const SolverResult base = solve(p);
  Random random(seed);
  Vector dv(w.v.size()), ds(p.n, 0.0), exact(p.n);
  for (double& x : dv) x = random.normal();
  for (int i = 0; i < p.n; ++i)
    for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * dv[k];
  ProblemLinearization linearization;
  linearization.build(p, base);
  if (slides(base) < 2 || !linearization.deficient()) return;
  linearization.solve(ds.data(), exact.data(), 1, 1);

  World moved = w;
  const auto at = [&](double e) {
    for (std::size_t k = 0; k < dv.size(); ++k) moved.v[k] = w.v[k] + e * dv[k];
    return solve(moved.problem());
  };
  Vector numeric(p.n, 0.0);
  for (const double e : {2 * difference_step, difference_step}) {
    const SolverResult plus = at(e), minus = at(-e);
    if (plus.modes != base.modes || minus.modes != base.modes) return;
    const double weight = e == difference_step ? 4.0 / 3 : -1.0 / 3;
    for (int i = 0; i < p.n; ++i) numeric[i] += weight * (plus.lambda[i] - minus.lambda[i]) / (2 * e);
  }
  ++linearised;
  // Impulses are known to rounding relative to their size; the four of the extrapolation have the weights 4/6, 4/6, 1/12, 1/12 over the step.
  const double of_impulses = 1.5 * rounding * length(base.lambda) / (difference_step * length(numeric));
  CHECK_NEAR(difference(exact, numeric), 0, 1e-7 + of_impulses);
}

/// The same through a whole step: the Jacobian of a box that slides and spins on its four corners. Velocities of this size, 1 m/s, are
/// known to rounding over the compliance where redundant contacts slide; differences divide that by their step.
void test_step() {
  constexpr double difference_step = 1e-3;
  Scene scene;
  scene.add_ground({.friction = 0.6});
  scene.add_box({0.2, 0.3, 0.2}, {.mass = 1.0, .position = {0, 0, 0.0999}, .friction = 0.5});
  const auto model = scene.build();
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
      for (double h : {2 * difference_step, difference_step}) {
        State x = base;
        x.v[dof] += h;
        sim.step(x, {}, plus);
        same = same && sim.record().solution.modes == modes;
        x.v[dof] = base.v[dof] - h;
        sim.step(x, {}, minus);
        same = same && sim.record().solution.modes == modes;
        for (int i = 0; i < 6; ++i) (h > difference_step ? coarse : fine)[i] = (plus.v[i] - minus.v[i]) / (2 * h);
      }
      if (!same) continue;
      ++compared;
      for (int i = 0; i < 6; ++i)
        CHECK_NEAR(J.A_T[12 * (6 + dof) + 6 + i], (4 * fine[i] - coarse[i]) / 3, 1e-8 + rounding / difference_step);
    }
  }
  CHECK(compared >= 36);
}

}  // namespace

int main() {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    for (const World& w : {spinning_box(seed), resting_box(seed), chain(seed)}) {
      test_starts(w, seed);
      test_own_start(w);
      test_sharpening(w);
      test_derivative(w, seed);
    }
    test_least_norm(seed);
    test_well_posed(seed);
  }
  test_step();
  std::printf("%d derivatives\n", linearised);
  CHECK(linearised >= 12);
  return report();
}

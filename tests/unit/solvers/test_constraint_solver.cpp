// The solver on problems known to be hard: every law checked independently of the solver's own residual, methods against each other.
#include <cstdlib>

#include "check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "count_allocations.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr double law_tolerance = 2e-10;

SolverResult solve(const ConstraintProblem& p, SolverMethod method = SolverMethod::automatic,
                   const WarmStart* warm = nullptr) {
  ConstraintSolver solver;
  SolverSettings settings;
  settings.levels = 1;  // the one level that violation() states
  settings.method = method;
  if (method == SolverMethod::pgs) settings.max_iterations = 20000;
  SolverResult result;
  solver.solve(p, settings, warm, result);
  return result;
}

/// x_1 of a row by itself whose impulse would be x without compliance: its share (E / (1 + E))^2 is left out.
double sharpened(double x) {
  const double compliance = SolverSettings().compliance;
  const double left = compliance / (1 + compliance);
  return x * (1 - left * left);
}

void expect_solved(const World& w) {
  const ConstraintProblem p = w.problem();
  const SolverResult r = solve(p);
  CHECK(r.status == SolveStatus::solved);
  CHECK(r.residual <= 1e-10);

  // Levels with smaller compliances end where the law without any is known to this.
  const double allowed = r.sharper_levels > 0 ? 1e-6 : law_tolerance;
  CHECK_NEAR(violation(p, r), 0, allowed);
  const WarmStart warm = warm_from(r);
  const SolverResult again = solve(p, SolverMethod::automatic, &warm);
  CHECK(again.status == SolveStatus::solved);
  CHECK_NEAR(violation(p, again), 0, allowed);
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(a[i] - b[i])), size = std::max(size, std::abs(a[i]));
  return worst / size;
}

World box(double mu, Vec3 velocity, Vec3 spin = {0, 0, 0}) {
  World w;
  w.add_body(1, 0.01, {0, 0, 0.1}, velocity, spin);
  add_box_on_ground(w, 0, mu);
  return w;
}

void test_known_answers() {
  {  // a box at rest: sticking, the sum of the normal impulses is its momentum, and equal shares of it are the least norm
    const World w = box(0.5, {0, 0, -0.01});
    const SolverResult r = solve(w.problem());
    for (int b = 0; b < 4; ++b) {
      CHECK(r.modes[b] == Mode::sticking);
      CHECK_NEAR(r.lambda[3 * b + 2], 0.0025, 1e-8);
      CHECK(r.margin[b] > 1e-3);
    }
  }
  {  // a sphere that slides: friction mu lambda_N against the motion
    World w;
    w.add_body(2, 0.01, {0, 0, 0.1}, {1, 0, -0.01});
    w.add_contact(0, -1, {0, 0, 0}, {0, 0, 1}, 0.3);
    const SolverResult r = solve(w.problem());
    CHECK(r.modes[0] == Mode::sliding);
    CHECK_NEAR(r.lambda[2], 0.02, 1e-12);
    CHECK_NEAR(std::hypot(r.lambda[0], r.lambda[1]), 0.006, 1e-12);
    CHECK_NEAR(std::abs(w.wrench(r.lambda)[0] + 0.006), 0, 1e-12);
  }
  {  // leaves the ground
    const SolverResult r = solve(box(0.5, {1, 0, 0.1}).problem());
    for (Mode m : r.modes) CHECK(m == Mode::separating);
    for (double l : r.lambda) CHECK(l == 0);
    CHECK(r.iterations == 0);
  }
  {  // one dof: limit, dry friction below and at its bound, equality
    World w;
    w.add_body(2, 1, {0, 0, 0}, {-1, -0.5, 3});
    std::vector<double> x(6, 0.0), y(6, 0.0), z(6, 0.0), rx(6, 0.0);
    x[0] = y[1] = z[2] = rx[3] = 1;
    w.add_row(BlockType::limit, x);
    w.add_row(BlockType::box, y, 5);
    w.add_row(BlockType::box, z, 0.5);
    w.add_row(BlockType::equality, rx, 0, 0.25);
    const SolverResult r = solve(w.problem());
    CHECK_NEAR(r.lambda[0], sharpened(2), 1e-12);
    CHECK_NEAR(r.lambda[1], sharpened(1), 1e-12);
    CHECK_NEAR(r.lambda[2], -0.5, 1e-15);
    CHECK_NEAR(r.lambda[3], sharpened(-0.25), 1e-12);
    CHECK(r.modes[0] == Mode::active && r.modes[1] == Mode::sticking && r.modes[2] == Mode::lower &&
          r.modes[3] == Mode::active);
  }
  {  // nothing to do
    ConstraintProblem p;
    p.resize(0);
    const SolverResult r = solve(p);
    CHECK(r.status == SolveStatus::solved && r.lambda.empty());
  }
}

void test_hard_problems() {
  for (int boxes : {1, 2, 5, 10})
    for (double mu : {0.0, 0.3, 0.9})
      for (double push : {0.0, 0.02}) expect_solved(stack(boxes, 1, mu, {push, 0.3 * push, 0}));
  for (double ratio : {1000.0, 0.001})
    for (double push : {0.0, 0.02}) expect_solved(stack(2, ratio, 0.5, {push, 0, 0}));
  for (double mu : {0.0, 0.2, 0.8}) {  // a wedge: a body between two inclined planes
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, {0.02, 0.1, -0.3}, {0.1, 2, -1});
    for (double y : {-0.05, 0.05}) {
      w.add_contact(0, -1, {-0.1, y, 0.05}, {1, 0, 0.4}, mu);
      w.add_contact(0, -1, {0.1, y, 0.05}, {-1, 0, 0.4}, mu);
    }
    expect_solved(w);
  }
  for (double mu : {0.5, 1.5, 3.0})  // Painleve: a rod pushed along its inclined axis, large friction
    for (double angle : {0.3, 0.8, 1.2}) {
      World w;
      w.add_body(1, 1.0 / 12, {0.5 * std::cos(angle), 0, 0.5 * std::sin(angle)}, {-1, 0, -0.02}, {0, 0.3, 0});
      w.add_contact(0, -1, {0, 0, 0}, {0, 0, 1}, mu);
      expect_solved(w);
    }
  for (int seed = 0; seed < 60; ++seed) {
    expect_solved(random_world(seed, 4 + seed % 9, 3));
    expect_solved(random_world(seed, 10, 2));  // rank deficient
    expect_solved(random_world(seed, 5, 3, true));
  }
  for (int seed = 0; seed < 20; ++seed) {  // badly scaled: bodies of 1e-5 to 1e5 kg
    World w = random_world(seed, 5, 3);
    for (std::size_t k = 0; k < w.inverse_mass.size(); ++k)
      w.inverse_mass[k] *= std::pow(10.0, 5.0 * (static_cast<double>(k / 6) - 1));
    expect_solved(w);
  }
}

void test_degenerate() {
  {  // zero rows: a contact between two fixed things that separates, beside a real one
    World w = box(0.5, {0, 0, -0.01});
    w.add_contact(-1, -1, {0, 0, 0}, {0, 0, 1}, 0.5, 0.1);
    expect_solved(w);
  }
  {  // the same that approaches for ever: no finite impulse exists
    World w = box(0.5, {0, 0, -0.01});
    w.add_contact(-1, -1, {0, 0, 0}, {0, 0, 1}, 0.5, -0.1);
    const SolverResult r = solve(w.problem());
    CHECK(r.status == SolveStatus::relaxed && r.relaxation > 0);
    CHECK(r.contradictory == std::vector<int>{4});
    for (double l : r.lambda) CHECK(std::isfinite(l));
  }
  {  // a body squeezed by two planes that both ask it to leave
    World w;
    w.add_body(1, 0.01, {0, 0, 0}, {0, 0, -0.01});
    w.add_contact(0, -1, {0, 0, -0.1}, {0, 0, 1}, 0.5, -0.1);
    w.add_contact(0, -1, {0, 0, 0.1}, {0, 0, -1}, 0.5, -0.1);
    const ConstraintProblem p = w.problem();
    const SolverResult r = solve(p);
    CHECK(r.status == SolveStatus::relaxed && r.contradictory == std::vector<int>({0, 1}));
    CHECK_NEAR(violation(p, r), 0, law_tolerance);
  }
  {  // Baumgarte that no rigid box can follow: four corners with different speeds
    World w = box(0.5, {0, 0, -0.01});
    Random random(3);
    for (double& b : w.bias) b += 1e-4 * random.normal();
    const ConstraintProblem p = w.problem();
    const SolverResult r = solve(p);
    CHECK(r.status != SolveStatus::failed);
    CHECK_NEAR(violation(p, r), 0, law_tolerance);
  }
  {  // boxes with bound zero do nothing
    World w = random_world(5, 3, 2);
    const std::vector<double> without = w.wrench(solve(w.problem()).lambda);
    std::vector<double> row(w.v.size(), 0.3);
    w.add_row(BlockType::box, row, 0);
    const SolverResult r = solve(w.problem());
    CHECK(r.lambda.back() == 0);
    CHECK_NEAR(difference(without, w.wrench(r.lambda)), 0, 1e-9);
  }
}

/// Numbers everywhere, whatever the problem was; no impulses where it failed.
SolveStatus expect_numbers(const ConstraintProblem& p) {
  const SolverResult r = solve(p);
  for (double l : r.lambda) CHECK(std::isfinite(l) && (l == 0 || r.status != SolveStatus::failed));
  for (double c : r.c) CHECK(std::isfinite(c));
  for (double m : r.margin) CHECK(std::isfinite(m));
  CHECK(std::isfinite(r.residual));
  return r.status;
}

/// Numbers that are none, and numbers whose squares, sums or quotients are none.
void test_numbers() {
  for (const double bad : std::vector<double>{NAN, INFINITY, -INFINITY, -1e308, 1e160}) {
    ConstraintProblem p = random_world(1, 3, 2).problem();
    p.g[4] = bad;
    const SolveStatus status = expect_numbers(p);
    CHECK(std::isfinite(bad) || status == SolveStatus::failed);
    p = random_world(1, 3, 2).problem();
    for (int i = 0; i < p.n; ++i)
      p.G[static_cast<std::size_t>(i) * p.ld + i] = std::abs(bad) < 1e300 ? 1e308 : std::abs(bad);
    expect_numbers(p);
  }
  for (double size : {1e-100, 1e-30, 1e30, 1e100}) {  // and those that still work
    ConstraintProblem p = random_world(1, 3, 2).problem();
    const SolverResult reference = solve(p);
    for (double& x : p.G) x *= size;
    for (double& x : p.g) x /= size;
    const SolverResult r = solve(p);
    CHECK(r.status == SolveStatus::solved);
    for (int i = 0; i < p.n; ++i) CHECK_NEAR(r.lambda[i] * size * size, reference.lambda[i], 1e-9);
  }
  ConstraintProblem p;  // an impulse of 1e400
  p.resize(3);
  p.resize_matrix();
  for (int i = 0; i < 3; ++i) p.G[static_cast<std::size_t>(i) * p.ld + i] = 1e-260;
  p.g[2] = -1e140;
  p.blocks.push_back({BlockType::cone, 0, 3, 0.5, 0, false});
  CHECK(expect_numbers(p) == SolveStatus::failed);
}

/// A light ball under a heavy one, which falls on it by its weight alone: impulses that are large, and no contradiction. Where the matrix
/// cannot tell any more they are badly scaled.
void test_masses_far_apart() {
  for (const double ratio : {1e6, 1e8, 1e9, 1e10, 1e12}) {
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, {0, 0, -0.01});
    w.add_body(ratio, 0.01 * ratio, {0, 0, 0.3}, {0, 0, -0.01});
    w.add_contact(0, -1, {0, 0, 0}, {0, 0, 1}, 0.5);
    w.add_contact(1, 0, {0, 0, 0.2}, {0, 0, 1}, 0.5);
    const SolverResult r = solve(w.problem());
    CHECK(r.contradictory.empty());
    if (ratio <= 1e10) {
      CHECK(r.status == SolveStatus::solved && r.badly_scaled.empty() && r.scale_ratio == 0);
      CHECK_NEAR(r.lambda[5] / (0.01 * ratio), 1, 1e-3);
      CHECK(std::abs(r.c[2]) < 1e-5 && std::abs(r.c[5]) < 1e-5);
    } else {
      CHECK(r.status == SolveStatus::relaxed && r.badly_scaled == std::vector<int>({0, 1}));
      CHECK(r.scale_ratio > 0.1 * ratio && r.scale_ratio < 10 * ratio);
    }
  }
}

/// Two contacts of one pair of bodies whose speeds along the line that joins them differ by rounding (curved surfaces, biases):
/// both can only stick up to that, and steps that try harder drive the impulses between them up.
void test_contradiction_by_rounding() {
  for (double defect : {1e-12, 1e-11, 1e-10, 4e-10}) {
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, {0.001, 0.002, -0.2});
    for (double x : {-0.1, 0.1}) w.add_contact(0, -1, {x, 0, 0}, {0, 0, 1}, 0.8);
    ConstraintProblem p = w.problem();
    for (int i : {0, 1}) p.g[i] += 0.1 * defect;
    const SolverResult r = solve(p);
    CHECK(r.status == SolveStatus::solved);
    CHECK(r.residual <= std::max(1e-10, defect));
    CHECK(r.modes[0] == Mode::sticking && r.modes[1] == Mode::sticking);
    CHECK_NEAR(violation(p, r.lambda), 0, 1e-9);
  }
}

/// A body that slides or rolls along without a load: normal velocities are rounding, tangential ones are not, or both are.
void test_velocities_of_rounding() {
  for (int seed = 0; seed < 60; ++seed) {
    Random r(seed);
    World w;
    const int bodies = 1 + seed % 3;
    for (int i = 0; i < bodies; ++i) w.add_body(1 + i, 0.01, {0.2 * i, 0, 0.1}, {0, 0, 0});
    for (int i = 0; i < bodies; ++i) w.add_contact(i, -1, {0.2 * i, 0, 0}, {0, 0, 1}, 0.5);
    for (int i = 1; i < bodies; ++i) w.add_contact(i, i - 1, {0.2 * i - 0.1, 0, 0.1}, {1, 0, 0}, 0.5);
    for (const bool pyramid : {false, true})
      for (const bool speculative : {false, true})
        for (const double slip : {600.0, 1e-14, 0.0}) {
          ConstraintProblem p = w.problem();
          for (Block& b : p.blocks) {
            b.speculative = speculative;
            if (pyramid) b.type = BlockType::pyramid;
            p.g[b.row] = slip;
            for (int i = 1; i < 3; ++i) p.g[b.row + i] = 1e-14 * r.normal();
          }
          SolverResult result = solve(p);
          CHECK(result.status == SolveStatus::solved);
          for (double l : result.lambda) CHECK(std::abs(l) <= 1e-12);
          WarmStart warm = warm_from(result);
          for (double& l : warm.lambda) l += 1e-12 * std::abs(r.normal());
          result = solve(p, SolverMethod::automatic, &warm);
          CHECK(result.status == SolveStatus::solved);
          for (double l : result.lambda) CHECK(std::abs(l) <= 1e-11);
        }
  }
}

void test_methods_agree() {
  int compared = 0, other = 0;  // Coulomb friction may have several solutions; a method may find another one, rarely
  for (int seed = 0; seed < 40; ++seed) {
    const World w = random_world(1000 + seed, 3 + seed % 4, 4);
    const ConstraintProblem p = w.problem();
    const std::vector<double> f = w.wrench(solve(p).lambda);
    for (SolverMethod m : {SolverMethod::ac_lm, SolverMethod::admm, SolverMethod::pgs}) {
      const SolverResult r = solve(p, m);
      if (r.status != SolveStatus::solved) continue;
      ++compared;
      CHECK_NEAR(violation(p, r), 0, law_tolerance);
      other += !(difference(f, w.wrench(r.lambda)) <= 1e-6);
    }
  }
  CHECK(compared > 100 && other <= 3);
  std::printf("methods compared: %d of 120, at another solution %d\n", compared, other);
}

void test_warm_start_does_not_leak() {
  for (double push : {0.0, 0.05}) {
    const World w = box(0.5, {push, 0.3 * push, -0.01}, {0, 0, 3 * push});
    const ConstraintProblem p = w.problem();
    const SolverResult cold = solve(p);
    WarmStart warm = warm_from(cold);
    Random random(9);
    for (double& l : warm.lambda) l += 1e-3 * random.normal();
    const SolverResult r = solve(p, SolverMethod::automatic, &warm);
    CHECK(r.status == SolveStatus::solved);
    CHECK_NEAR(difference(cold.lambda, r.lambda), 0, 1e-6);
  }
  const ConstraintProblem p = box(0.5, {0, 0, -0.01}).problem();
  const SolverResult cold = solve(p);
  WarmStart warm = warm_from(cold);  // another solution: one diagonal carries more
  for (int b = 0; b < 4; ++b) warm.lambda[3 * b + 2] += b == 0 || b == 3 ? 1e-3 : -1e-3;
  CHECK_NEAR(difference(cold.lambda, solve(p, SolverMethod::automatic, &warm).lambda), 0, 1e-6);
}

void test_allocation_and_determinism() {
  ConstraintSolver solver;
  SolverSettings settings;
  settings.levels = 1;  // as solve()
  SolverResult result, second;
  std::vector<ConstraintProblem> problems;
  for (int seed = 0; seed < 20; ++seed) problems.push_back(random_world(seed, 12 - seed % 9, 2 + seed % 3).problem());
  problems.push_back(stack(3, 1000, 0.5).problem());
  for (const auto& p : problems) solver.solve(p, settings, nullptr, result);
  const long before = allocations;
  for (const auto& p : problems) solver.solve(p, settings, nullptr, result);
  CHECK(allocations == before);
  for (const auto& p : problems) {
    solver.solve(p, settings, nullptr, result);
    const SolverResult fresh = solve(p);
    CHECK(fresh.lambda == result.lambda && fresh.c == result.c && fresh.margin == result.margin);
  }
}

}  // namespace

int main() {
  test_known_answers();
  test_hard_problems();
  test_degenerate();
  test_numbers();
  test_masses_far_apart();
  test_contradiction_by_rounding();
  test_velocities_of_rounding();
  test_methods_agree();
  test_warm_start_does_not_leak();
  test_allocation_and_determinism();
  return report();
}

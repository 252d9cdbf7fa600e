// InteriorPoint by itself: every kind of block, alone and mixed, against the laws and against what is known; and the whole solver in the
// velocities of the trees against the same in the rows of the problem. The tests of the method run with its steps and along its paths.
#include "coulomb/solvers/interior_point/interior_point.hpp"

#include "check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "count_allocations.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

const double compliance = SolverSettings().compliance;

/// How the method goes: by steps, or along the path of that number.
constexpr int steps = -1;
int path = steps;

bool run(InteriorPoint& method, const ScaledProblem& scaled, InteriorPoint::Options options, Iterate& iterate,
         int& iterations) {
  if (path == steps) return method.solve(scaled, options, iterate, iterations);
  options.max_iterations = 300;
  return method.follow(scaled, options, path, iterate, iterations);
}

struct Reached {
  bool reached = false;
  int iterations = 0;
  Vector lambda;
};

/// Level 0 to a gap that leaves errors of its size.
Reached interior(const ConstraintProblem& p, double gap = 1e-11) {
  ScaledProblem scaled;
  scaled.assign(p);
  scaled.set_compliance(compliance);
  InteriorPoint method;
  Iterate iterate;
  iterate.resize(scaled.ld);
  InteriorPoint::Options options;
  options.gap = gap;
  options.residual = 1e-9;
  Reached out;
  out.reached = run(method, scaled, options, iterate, out.iterations);
  Vector c(scaled.ld);
  out.lambda.resize(scaled.ld);
  scaled.from_scaled(iterate.lambda.data(), iterate.c.data(), out.lambda.data(), c.data());
  out.lambda.resize(p.n);
  return out;
}

World with_pyramids(World w, int facets, bool inscribed = false) {
  for (Block& b : w.blocks)
    if (b.type == BlockType::cone) b.type = BlockType::pyramid, b.facets = facets, b.inscribed = inscribed;
  return w;
}

std::vector<double> unit_row(int dof, int dofs = 6) {
  std::vector<double> row(dofs, 0.0);
  row[dof] = 1;
  return row;
}

/// One body of mass 2 and a row on each of its coordinates.
void test_rows_alone() {
  World w;
  w.add_body(2, 1, {0, 0, 0}, {-1, -0.5, 3}, {0.25, 2, -2});
  w.add_row(BlockType::limit, unit_row(0));
  w.add_row(BlockType::box, unit_row(1), 5);
  w.add_row(BlockType::box, unit_row(2), 0.5);
  w.add_row(BlockType::equality, unit_row(3), 0, 0.25);
  w.add_row(BlockType::limit, unit_row(4));
  w.add_row(BlockType::box, unit_row(5), 0.5);
  const Reached r = interior(w.problem());
  CHECK(r.reached && r.iterations <= (path == steps ? 30 : 60));
  const double expected[6] = {2, 1, -0.5, -0.5, 0, 0.5};
  for (int i = 0; i < 6; ++i) CHECK_NEAR(r.lambda[i], expected[i], 1e-5);
}

/// A sphere on a plane: sticking, sliding, leaving, without friction.
void test_one_contact() {
  for (const double mu : {0.0, 0.1, 2.0})
    for (const double up : {-0.5, 0.5}) {
      World w;
      w.add_body(2, 0.008, {0, 0, 0.1}, {0.6, 0.8, up});
      w.add_contact(0, -1, {0, 0, 0}, {0, 0, 1}, mu);
      const Reached r = interior(w.problem());
      CHECK(r.reached);

      // 2/7 of the momentum stops a ball that sticks, more than mu times the normal impulse if mu is small.
      const double normal = up < 0 ? 1.0 : 0.0;
      const double tangential = std::min(mu * normal, 2 * 2.0 / 7);
      const Vector f = w.wrench(r.lambda);
      CHECK_NEAR(f[2], normal, 1e-5);
      CHECK_NEAR(f[0], -0.6 * tangential, 1e-5);
      CHECK_NEAR(f[1], -0.8 * tangential, 1e-5);
    }
}

/// c and the laws recomputed from G.
double violation_of(const ConstraintProblem& p, const Reached& r) {
  SolverResult result;
  result.lambda = r.lambda;
  result.compliance = compliance;
  return violation(p, result);
}

/// Steps are stuck where the way to a solution folds, rarely: then a path has to be followed.
int tried = 0, stuck = 0;
void expect_law(const ConstraintProblem& p) {
  const Reached r = interior(p);
  ++tried;
  stuck += !r.reached;
  if (r.reached) CHECK_NEAR(violation_of(p, r), 0, 1e-5);
}

/// A path may be lost, on one of 180 problems or so, and which ones is up to rounding: the solver has two. One of them leads to the law, whatever the
/// rounding. It may end before the least gap, where rounding hides it.
int followed = 0, lost = 0;
void expect_law_by_a_path(const ConstraintProblem& p, std::uint64_t seed) {
  Random random(seed);
  ConstraintProblem rounded = p;
  for (int rounding = 0; rounding < 3; ++rounding) {
    double least = INFINITY;
    for (const int way : {0, 1}) {
      path = way;
      const double violation = violation_of(rounded, interior(rounded));
      least = std::min(least, violation);
      ++followed;
      lost += violation > 1e-5;
    }
    CHECK_NEAR(least, 0, 1e-5);
    for (int i = 0; i < p.n; ++i) rounded.g[i] = p.g[i] * (1 + 1e-15 * random.normal());
  }
}

std::vector<ConstraintProblem> problems() {
  std::vector<ConstraintProblem> out;
  for (int seed = 0; seed < 60; ++seed) {
    out.push_back(random_world(seed, 1 + seed % 9, 3).problem());
    out.push_back(random_world(seed, 10, 2).problem());  // rank deficient
    out.push_back(random_world(seed, 4, 3, true).problem());
  }
  for (const double push : {0.0, 0.02}) {
    out.push_back(stack(5, 1, 0.5, {push, 0, 0}).problem());
    out.push_back(stack(2, 1000, 0.5, {push, 0, 0}).problem());
  }
  return out;
}

void test_problems() {
  path = steps;
  for (const ConstraintProblem& p : problems()) expect_law(p);
  std::printf("steps: stuck in %d of %d\n", stuck, tried);
  CHECK(stuck <= 3 && tried >= 180);

  std::uint64_t seed = 0;
  for (const ConstraintProblem& p : problems()) expect_law_by_a_path(p, ++seed);
  std::printf("paths: %d of %d lost\n", lost, followed);
  CHECK(100 * lost <= 2 * followed && followed >= 1000);
}

/// Against a pyramid's law from trigonometry: no approach, no more friction than the polygon allows, and along it the most dissipation.
double pyramid_violation(const ConstraintProblem& p, const Vector& lambda) {
  SolverResult result;
  result.lambda = lambda;
  result.compliance = compliance;
  const Vector extra = compliance_velocity(p, result);
  double worst = 0, size_g = 1e-300, size_l = 1e-300;
  for (int i = 0; i < p.n; ++i) {
    size_g = std::max(size_g, std::abs(p.g[i]));
    size_l = std::max(size_l, std::abs(lambda[i]));
  }
  for (const Block& b : p.blocks) size_l = std::max(size_l, size_g / block_scale(p, b));
  for (const Block& b : p.blocks) {
    if (b.type != BlockType::pyramid) continue;
    double c[3];
    for (int i = 0; i < 3; ++i) {
      c[i] = p.g[b.row + i] + extra[b.row + i];
      for (int j = 0; j < p.n; ++j) c[i] += p.G[static_cast<std::size_t>(b.row + i) * p.ld + j] * lambda[j];
    }
    const double* l = lambda.data() + b.row;
    worst = std::max({worst, -l[2] / size_l, -c[2] / size_g, std::abs(l[2] * c[2]) / (size_l * size_g)});
    const double half = 3.14159265358979323846 / b.facets;
    const double apothem = b.inscribed ? std::cos(half) : 1;
    double most = -1e300;
    for (int k = 0; k < b.facets; ++k) {
      const double side = 2 * half * k + (b.inscribed ? half : 0.0);
      const double corner = side + half;
      worst = std::max(worst, (l[0] * std::cos(side) + l[1] * std::sin(side) - apothem * b.mu * l[2]) / size_l);
      most = std::max(most, -(c[0] * std::cos(corner) + c[1] * std::sin(corner)) * apothem / std::cos(half));
    }
    worst = std::max(worst, std::abs(-l[0] * c[0] - l[1] * c[1] - b.mu * l[2] * most) / (size_l * size_g));
  }
  return worst;
}

void test_pyramids() {
  for (int facets = 4; facets <= 16; facets += 2)
    for (int seed = 0; seed < 10; ++seed) {
      const ConstraintProblem p =
          with_pyramids(random_world(100 + seed, 1 + seed % 5, 3, seed % 3 == 0), facets, seed % 2 == 1).problem();
      const Reached r = interior(p);
      CHECK(r.reached);
      CHECK_NEAR(pyramid_violation(p, r.lambda), 0, 1e-5);
    }
}

/// A smaller gap is nearer to what the solver finds in the end.
void test_gap() {
  const ConstraintProblem p = random_world(7, 5, 3).problem();
  ConstraintSolver solver;
  SolverResult result;
  SolverSettings one_level;
  one_level.levels = 1;
  solver.solve(p, one_level, nullptr, result);
  double last = 1e300;
  for (const double gap : {1e-5, 1e-8, 1e-11}) {
    const Reached r = interior(p, gap);
    double error = 0;
    for (int i = 0; i < p.n; ++i) error = std::max(error, std::abs(r.lambda[i] - result.lambda_0[i]));
    CHECK(error < last);
    last = error;
  }
  CHECK_NEAR(last, 0, 1e-6);
}

double difference(const Vector& a, const Vector& b) {
  double worst = 0, size = 1e-300;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    size = std::max(size, std::abs(a[i]));
  }
  return worst / size;
}

/// Rows that move two bodies at most: limits, dry friction and equalities between them.
World coupled_world(int seed) {
  World w = random_world(300 + seed, 4 + seed % 6, 3);
  Random random(seed);
  for (const BlockType type : {BlockType::limit, BlockType::box, BlockType::equality}) {
    Vector row(w.v.size(), 0.0);
    for (int i = 0; i < 3; ++i) row[static_cast<std::size_t>(random.uniform(0, 12))] = random.normal();
    w.add_row(type, row, type == BlockType::box ? 0.1 : 0);
  }
  return w;
}

/// The velocities after impulses do not know in which space they were found.
int compared = 0;
void expect_same_in_both_spaces(const World& w) {
  const ConstraintProblem rows = w.problem();
  const ConstraintProblem velocities = w.factored_problem();
  CHECK(rows.has_G && !velocities.has_G);
  ConstraintSolver solver;
  SolverResult in_rows, in_velocities;
  SolverSettings one_level;  // which violation() states
  one_level.levels = 1;
  solver.solve(rows, one_level, nullptr, in_rows);
  solver.solve(velocities, one_level, nullptr, in_velocities);
  CHECK(in_rows.status == SolveStatus::solved && in_velocities.status == SolveStatus::solved);
  // Where the path of the usual compliance folds, a larger one with more levels is taken: other impulses of redundant contacts.
  if (in_rows.compliance != in_velocities.compliance || in_rows.levels != in_velocities.levels) return;
  CHECK(in_rows.modes == in_velocities.modes);
  CHECK_NEAR(difference(w.velocity_change(in_rows.lambda), w.velocity_change(in_velocities.lambda)), 0, 1e-10);
  const bool pyramids = w.blocks[0].type == BlockType::pyramid;
  CHECK_NEAR(pyramids ? 0.0 : violation(rows, in_velocities), 0, 2e-10);
  ++compared;
}

void test_spaces() {
  for (int seed = 0; seed < 40; ++seed) expect_same_in_both_spaces(coupled_world(seed));
  for (const double push : {0.0, 0.02, 0.3}) expect_same_in_both_spaces(stack(4, 1, 0.5, {push, 0.1 * push, 0}));
  for (int seed = 0; seed < 10; ++seed)
    expect_same_in_both_spaces(with_pyramids(coupled_world(seed), 4 + 2 * seed % 12));
}

/// The method itself in both spaces, without the steps that end a solve.
void test_interior_in_velocities() {
  for (int seed = 0; seed < 20; ++seed) {
    const World w = coupled_world(seed);
    const Reached in_rows = interior(w.problem());
    const Reached in_velocities = interior(w.factored_problem());
    CHECK(in_rows.reached && in_velocities.reached);
    CHECK_NEAR(difference(w.velocity_change(in_rows.lambda), w.velocity_change(in_velocities.lambda)), 0, 1e-4);
  }
}

void test_no_allocation() {
  std::vector<ConstraintProblem> problems;
  for (int seed = 0; seed < 6; ++seed) {
    problems.push_back(coupled_world(seed).problem());
    problems.push_back(coupled_world(seed).factored_problem());
    problems.push_back(with_pyramids(coupled_world(seed), 8).problem());
  }
  ScaledProblem scaled;
  InteriorPoint method;
  Iterate iterate;
  const auto solve_all = [&] {
    int iterations = 0;
    for (const ConstraintProblem& p : problems) {
      scaled.assign(p);
      scaled.set_compliance(compliance);
      iterate.resize(scaled.ld);
      run(method, scaled, {}, iterate, iterations);
    }
  };
  solve_all();
  solve_all();
  const long before = allocations;
  solve_all();
  CHECK(allocations == before);
}

}  // namespace

int main() {
  for (const int way : {steps, 0, 1}) {
    path = way;
    test_rows_alone();
    test_one_contact();
    test_pyramids();
    test_gap();
    test_interior_in_velocities();
    test_no_allocation();
  }
  test_problems();
  test_spaces();
  std::printf("%d problems in both spaces\n", compared);
  return report();
}

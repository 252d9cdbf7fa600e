// LCP contact: the law checked from its definition, every algorithm, derivatives against differences, memory of classes.
#include "check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

constexpr double pi = 3.14159265358979323846;

World with_pyramids(World w, int facets, bool inscribed) {
  for (Block& b : w.blocks)
    if (b.type == BlockType::cone) b.type = BlockType::pyramid, b.facets = facets, b.inscribed = inscribed;
  return w;
}

/// Corner k of the polygon, from trigonometry alone.
void corner(const Block& b, int k, double* w) {
  const double angle = 2 * pi * (k + (b.inscribed ? 0.0 : 0.5)) / b.facets,
               r = b.inscribed ? 1 : 1 / std::cos(pi / b.facets);
  w[0] = r * std::cos(angle), w[1] = r * std::sin(angle);
}

/// Worst violation of the LCP's conditions, of the last level where there are levels, relative to the sizes of g and of the impulses.
double lcp_violation(const ConstraintProblem& p, const SolverResult& s) {
  double worst = 0, size_g = 1e-300, size_l = 1e-300;
  for (int i = 0; i < p.n; ++i)
    size_g = std::max(size_g, std::abs(p.g[i])), size_l = std::max(size_l, std::abs(s.lambda[i]));
  const Vector extra = compliance_velocity(p, s);
  for (const Block& b : p.blocks) {
    if (b.type != BlockType::pyramid) continue;
    double c[3];
    for (int i = 0; i < 3; ++i) {
      c[i] = p.g[b.row + i] + p.R[b.row + i] * s.lambda[b.row + i] + extra[b.row + i];
      for (int j = 0; j < p.n; ++j) c[i] += p.G[static_cast<std::size_t>(b.row + i) * p.ld + j] * s.lambda[j];
    }
    const double* l = s.lambda.data() + b.row;
    worst = std::max({worst, -l[2] / size_l, -c[2] / size_g, std::abs(l[2] * c[2]) / (size_l * size_g)});
    double least = 0;  // of c_T . w over the polygon
    for (int k = 0; k < b.facets; ++k) {
      double w[2], next[2];
      corner(b, k, w), corner(b, k + 1, next);
      least = k == 0 ? c[0] * w[0] + c[1] * w[1] : std::min(least, c[0] * w[0] + c[1] * w[1]);
      const double normal[2] = {next[1] - w[1], w[0] - next[0]}, length = std::hypot(normal[0], normal[1]);
      const double outside =
          (normal[0] * (l[0] - b.mu * l[2] * w[0]) + normal[1] * (l[1] - b.mu * l[2] * w[1])) / length;
      worst = std::max(worst, outside / size_l);
    }
    worst = std::max(worst, std::abs(l[0] * c[0] + l[1] * c[1] - b.mu * l[2] * least) / (size_l * size_g));
    if (b.facets == 4 && !b.inscribed)  // the boxed LCP, row by row
      for (int i = 0; i < 2; ++i) {
        worst = std::max(worst, (std::abs(l[i]) - b.mu * l[2]) / size_l);
        if (c[i] < -1e-8 * size_g) worst = std::max(worst, std::abs(l[i] - b.mu * l[2]) / size_l);
        if (c[i] > 1e-8 * size_g) worst = std::max(worst, std::abs(l[i] + b.mu * l[2]) / size_l);
      }
  }
  return worst;
}

void test_polygons() {
  for (int facets : {4, 6, 8, 10, 16, 32})
    for (bool inscribed : {false, true}) {
      Block b;
      b.type = BlockType::pyramid, b.facets = facets, b.inscribed = inscribed, b.mu = 0.7;
      const FrictionPolygon& p = friction_polygon(b);
      CHECK(p.sides == facets);
      for (int k = 0; k < facets; ++k) {
        double w[2];
        corner(b, k, w);
        const int f = 2 * k + (inscribed ? 0 : 1);
        CHECK(!p.is_side(f) && p.is_side(f + 1 == 2 * facets ? 0 : f + 1));
        CHECK_NEAR(std::hypot(p.point[f][0] - w[0], p.point[f][1] - w[1]), 0, 1e-15 * 8);
      }
      Random r(facets);
      for (int i = 0; i < 200; ++i) {  // the projection is the nearest point: no admissible point is in front of it
        double x[3] = {r.normal(), r.normal(), r.normal()}, y[3] = {x[0], x[1], x[2]};
        project_pyramid(b, y);
        double reach = 0;
        for (int k = 0; k < facets; ++k) {
          double w[2];
          corner(b, k, w);
          const double ray[3] = {b.mu * w[0], b.mu * w[1], 1};
          double along = 0, at = 0;
          for (int j = 0; j < 3; ++j) along += (x[j] - y[j]) * ray[j], at += (x[j] - y[j]) * y[j];
          reach = std::max({reach, along, std::abs(at)});
        }
        CHECK_NEAR(reach, 0, 1e-14 * 20);
        CHECK_NEAR(
            pyramid_support(b, x),
            [&] {
              double best = -1e300;
              for (int k = 0; k < facets; ++k) {
                double w[2];
                corner(b, k, w);
                best = std::max(best, w[0] * x[0] + w[1] * x[1]);
              }
              return best;
            }(),
            1e-14);
      }
    }
}

Vector times(const ConstraintProblem& p, const Vector& x) {
  Vector y(p.n, 0.0);
  for (int i = 0; i < p.n; ++i)
    for (int j = 0; j < p.n; ++j) y[i] += p.G[static_cast<std::size_t>(i) * p.ld + j] * x[j];
  return y;
}

struct Count {
  int solved = 0, total = 0, side = 0, vertex = 0, sticking = 0, separating = 0, derivatives = 0, deficient = 0;
} count;

void tally(const ConstraintProblem& p, const SolverResult& s) {
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    if (p.blocks[b].type != BlockType::pyramid) continue;
    count.sticking += s.modes[b] == Mode::sticking, count.separating += s.modes[b] == Mode::separating;
    CHECK((s.modes[b] == Mode::sliding) == (s.facets[b] >= 0));
    if (s.facets[b] < 0) continue;
    (friction_polygon(p.blocks[b]).is_side(s.facets[b]) ? count.side : count.vertex) += 1;
  }
}

SolverResult solve(const ConstraintProblem& p, double tolerance = 1e-10, const SolverResult* near = nullptr,
                   SolverMethod method = SolverMethod::automatic) {
  ConstraintSolver solver;
  SolverSettings settings;
  settings.levels = 1;
  settings.tolerance = tolerance, settings.method = method;
  WarmStart warm;
  if (near) warm = warm_from(*near);
  SolverResult r;
  solver.solve(p, settings, near ? &warm : nullptr, r);
  return r;
}

void test_conditions() {
  for (int seed = 0; seed < 300; ++seed) {
    const int facets = seed % 3 == 0 ? 4 : 4 + 2 * (seed % 7);
    const World w = with_pyramids(random_world(seed, 1 + seed % 6, 3, seed % 4 == 0), facets, seed % 5 == 1);
    const ConstraintProblem p = w.problem();
    const SolverResult r = solve(p);
    ++count.total;
    if (r.status != SolveStatus::solved) continue;
    ++count.solved;
    tally(p, r);
    CHECK_NEAR(lcp_violation(p, r), 0, 1e-9);
    const SolverResult again = solve(p, 1e-10, &r);
    CHECK(again.classes_hit && again.modes == r.modes && again.facets == r.facets);
  }
  for (int boxes : {1, 2, 5}) {
    for (Vec3 push : {Vec3{0, 0, 0}, Vec3{0.5, 0, 0}, Vec3{0.3, 0.2, 0}}) {
      const ConstraintProblem p = with_pyramids(stack(boxes, 2, 0.3, push), 4, false).problem();
      const SolverResult r = solve(p);
      CHECK(r.status == SolveStatus::solved);
      CHECK_NEAR(lcp_violation(p, r), 0, 1e-9);
      tally(p, r);
    }
  }
}

/// A few contacts: every method finds a solution, and where it is unique the same.
void test_methods() {
  int agree = 0, pgs = 0, admm = 0, dantzig = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const ConstraintProblem p =
        with_pyramids(random_world(seed, 1 + seed % 3, 3), 4 + 2 * (seed % 4), seed % 4 == 1).problem();
    const SolverResult r = solve(p, 1e-10);
    if (r.status != SolveStatus::solved) continue;
    const bool boxed = seed % 4 == 0;
    for (SolverMethod method : {SolverMethod::pgs, SolverMethod::admm, SolverMethod::dantzig}) {
      const SolverResult other = solve(p, 1e-10, nullptr, method);
      if (method == SolverMethod::dantzig && !boxed) continue;
      if (other.status != SolveStatus::solved) continue;
      (method == SolverMethod::pgs ? pgs : method == SolverMethod::admm ? admm : dantzig) += 1;
      CHECK_NEAR(lcp_violation(p, other), 0, 1e-9);
      double worst = 0;
      for (int i = 0; i < p.n; ++i) worst = std::max(worst, std::abs(other.lambda[i] - r.lambda[i]));
      agree += worst < 1e-7;
    }
  }
  std::printf("methods: pgs solved %d, admm %d of 60, dantzig %d of 15; %d agree\n", pgs, admm, dantzig, agree);
  CHECK(pgs >= 50 && admm >= 50 && dantzig == 15 && agree >= pgs + admm + dantzig - 6);
}

template <class Make>
Vector differences(Make make, const SolverResult& near, double h) {
  auto central = [&](double step) {
    Vector a = solve(make(step), 1e-12, &near).lambda;
    const Vector b = solve(make(-step), 1e-12, &near).lambda;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = (a[i] - b[i]) / (2 * step);
    return a;
  };
  Vector coarse = central(h);
  const Vector fine = central(h / 2);
  for (std::size_t i = 0; i < coarse.size(); ++i) coarse[i] = (4 * fine[i] - coarse[i]) / 3;
  return coarse;
}

void compare(const Vector& a, const Vector& b, double tolerance) {
  double size = 1e-300, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    size = std::max({size, std::abs(a[i]), std::abs(b[i])}), worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK_NEAR(worst / size, 0, tolerance);
}

void test_derivatives(const World& w, std::uint64_t seed) {
  const ConstraintProblem p = w.problem();
  const SolverResult r = solve(p, 1e-12);
  double margin = 1e300;
  bool slides = false;
  for (std::size_t b = 0; b < r.margin.size(); ++b)
    margin = std::min(margin, r.margin[b]), slides = slides || r.modes[b] == Mode::sliding;
  if (r.status != SolveStatus::solved || margin < 1e-3) return;
  ProblemLinearization lin;
  lin.build(p, r);
  if (lin.deficient() && slides) return;
  ++count.derivatives;
  count.deficient += lin.deficient();
  Random random(seed);
  const auto check = [&](const Vector& analytic, const Vector& numeric) {
    lin.deficient() ? compare(times(p, analytic), times(p, numeric), 1e-6) : compare(analytic, numeric, 1e-6);
  };
  Vector dv(w.v.size()), ds(p.n, 0.0), dl(p.n), dm(w.v.size());
  for (double& x : dv) x = 0.1 * random.normal();
  for (int i = 0; i < p.n; ++i)
    for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * dv[k];
  lin.solve(ds.data(), dl.data(), 1, 1);
  check(dl, differences(
                [&](double e) {
                  World q = w;
                  for (std::size_t k = 0; k < dv.size(); ++k) q.v[k] += e * dv[k];
                  return q.problem();
                },
                r, 1e-4));
  for (double& x : dm) x = 0.3 * random.normal();
  const Vector f = w.wrench(r.lambda);
  for (int i = 0; i < p.n; ++i) {
    ds[i] = 0;
    for (std::size_t k = 0; k < dm.size(); ++k) ds[i] += w.J[i][k] * w.inverse_mass[k] * dm[k] * f[k];
  }
  lin.solve(ds.data(), dl.data(), 1, 1);
  check(dl, differences(
                [&](double e) {
                  World q = w;
                  for (std::size_t k = 0; k < dm.size(); ++k) q.inverse_mass[k] *= 1 + e * dm[k];
                  return q.problem();
                },
                r, 1e-4));
  for (std::size_t b = 0; b < w.blocks.size(); ++b) {
    if (r.modes[b] != Mode::sliding || w.blocks[b].mu == 0) continue;
    lin.dlambda_dmu(static_cast<int>(b), dl.data());
    check(dl, differences(
                  [&](double e) {
                    World q = w;
                    q.blocks[b].mu += e;
                    return q.problem();
                  },
                  r, 1e-4));
  }
  Vector u(p.n), z(p.n);
  for (int i = 0; i < p.n; ++i) u[i] = random.normal(), ds[i] = random.normal();
  lin.solve(ds.data(), dl.data(), 1, 1);
  lin.solve_transposed(u.data(), z.data());
  double left = 0, right = 0, size = 0;
  for (int i = 0; i < p.n; ++i)
    left += u[i] * dl[i], right += z[i] * ds[i], size += std::abs(u[i] * dl[i]) + std::abs(z[i] * ds[i]);
  CHECK_NEAR(left, right, 1e-12 * (1 + size));
}

/// The impulses of four points under a shoved box do not depend on the start.
void test_starts() {
  for (Vec3 push : {Vec3{0, 0, -0.05}, Vec3{0.5, 0, -0.05}, Vec3{0.5, 0.3, -0.05}}) {
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, push, {0.01, 0.02, 0.0});
    add_box_on_ground(w, 0, 0.2);
    const ConstraintProblem p = with_pyramids(w, 4, false).problem();
    const SolverResult r = solve(p);
    CHECK(r.status == SolveStatus::solved);
    Random random(3);
    for (int k = 0; k < 5; ++k) {
      SolverResult near = r;
      for (auto* start : {&near.lambda, &near.lambda_0})
        for (double& x : *start) x += 0.02 * random.uniform(0, 1);
      const SolverResult other = solve(p, 1e-10, &near);
      double worst = 0;
      for (int i = 0; i < p.n; ++i) worst = std::max(worst, std::abs(other.lambda[i] - r.lambda[i]));
      CHECK_NEAR(worst, 0, 1e-8);
    }
  }
}

/// More sides, nearer to the cone: the distance falls as 1 / m^2.
void test_limit() {
  for (int seed : {3, 5, 8}) {
    const World w = random_world(seed, 2, 3);
    const SolverResult cone = solve(w.problem(), 1e-12);
    double last = 1e300;
    for (int facets : {8, 16, 32}) {
      const SolverResult r = solve(with_pyramids(w, facets, false).problem(), 1e-12);
      double worst = 0, size = 0;
      for (std::size_t i = 0; i < r.lambda.size(); ++i)
        worst = std::max(worst, std::abs(r.lambda[i] - cone.lambda[i])),
        size = std::max(size, std::abs(cone.lambda[i]));
      CHECK(worst <= 1e-10 * size || worst < last);
      CHECK(worst <= 3 * pi / facets * size);
      last = worst;
    }
  }
}

/// The other side of a tie is one of the modes next to it.
void test_other_side() {
  Block b;
  b.type = BlockType::pyramid, b.mu = 0.5;
  const double on_side[3] = {0.5, 0.1, 1}, on_vertex[3] = {0.5, 0.5, 1}, rest[3] = {0, 0, 0}, nothing[3] = {0, 0, 0};
  CHECK(pyramid_other_side(b, 1, {Mode::sticking, -1}, on_side, rest).facet == 0);
  CHECK(pyramid_other_side(b, 1, {Mode::sticking, -1}, on_vertex, rest).facet == 1);
  CHECK(pyramid_other_side(b, 1, {Mode::sliding, 0}, on_side, rest).mode == Mode::sticking);
  const double slow[3] = {-0.3, -1e-9, 0}, sliding[3] = {-0.3, 0, 0};
  CHECK(pyramid_other_side(b, 1, {Mode::sliding, 1}, on_vertex, slow).facet == 0);
  CHECK(pyramid_other_side(b, 1, {Mode::sliding, 0}, on_vertex, sliding).facet == 1);
  CHECK(pyramid_other_side(b, 1, {Mode::sticking, -1}, nothing, rest).mode == Mode::separating);
  CHECK(pyramid_other_side(b, 1, {Mode::separating, -1}, nothing, rest).mode == Mode::sticking);
}

}  // namespace

int main() {
  test_polygons();
  test_conditions();
  test_methods();
  for (int seed = 0; seed < 150; ++seed)
    test_derivatives(
        with_pyramids(random_world(seed, 1 + seed % 5, 3, seed % 3 == 0), 4 + 2 * (seed % 3), seed % 4 == 1), seed);
  for (int seed = 0; seed < 20; ++seed) {  // redundant sticking
    Random r(seed);
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, {0.01 * r.normal(), 0.01 * r.normal(), -0.1});
    add_box_on_ground(w, 0, 0.8);
    test_derivatives(with_pyramids(w, 4, false), seed);
  }
  test_starts();
  test_limit();
  test_other_side();
  std::printf("%d of %d solved; sides %d vertices %d sticking %d separating %d; derivatives of %d, deficient %d\n",
              count.solved, count.total, count.side, count.vertex, count.sticking, count.separating, count.derivatives,
              count.deficient);
  CHECK(count.side > 30 && count.vertex > 30 && count.sticking > 30 && count.separating > 30);
  CHECK(count.solved >= count.total * 97 / 100 && count.derivatives > 80 && count.deficient > 10);
  return report();
}

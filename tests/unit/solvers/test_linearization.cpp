// The derivative of a solve against Richardson's finite differences of the solve itself.
#include "../check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/linearization.hpp"
#include "problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

struct Solved {
  ConstraintProblem problem;
  SolverResult result;
};

Solved solve(const ConstraintProblem& p, const SolverResult* near = nullptr) {
  ConstraintSolver solver;
  SolverSettings settings;
  settings.levels = 1;
  settings.tolerance = 1e-12;
  Solved s{p, {}};
  WarmStart warm;
  if (near) warm = warm_from(*near);
  solver.solve(p, settings, near ? &warm : nullptr, s.result);
  return s;
}

double min_margin(const SolverResult& r) {
  double m = 1e300;
  for (double x : r.margin) m = std::min(m, x);
  return m;
}

Vector times(const ConstraintProblem& p, const Vector& x) {
  Vector y(p.n, 0.0);
  for (int i = 0; i < p.n; ++i)
    for (int j = 0; j < p.n; ++j) y[i] += p.G[static_cast<std::size_t>(i) * p.ld + j] * x[j];
  return y;
}

/// d lambda / d epsilon of make(epsilon) at 0: central differences with one Richardson step.
template <class Make>
Vector differences(Make make, const SolverResult& near, double h) {
  auto central = [&](double step) {
    Vector a = solve(make(step), &near).result.lambda;
    const Vector b = solve(make(-step), &near).result.lambda;
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = (a[i] - b[i]) / (2 * step);
    return a;
  };
  Vector coarse = central(h);
  const Vector fine = central(h / 2);
  for (std::size_t i = 0; i < coarse.size(); ++i) coarse[i] = (4 * fine[i] - coarse[i]) / 3;
  return coarse;
}

/// rounding: what differences cannot tell, absolute.
void compare(const Vector& a, const Vector& b, double tolerance, double rounding = 0) {
  double size = 1e-300, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    size = std::max({size, std::abs(a[i]), std::abs(b[i])}), worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK_NEAR(worst / (size + rounding / tolerance), 0, tolerance);
}

struct Count {
  int sticking = 0, sliding = 0, separating = 0, active = 0, bound = 0, deficient = 0, used = 0;
} count;

void test_world(const World& w, std::uint64_t seed) {
  const Solved s = solve(w.problem());
  if (s.result.status != SolveStatus::solved || min_margin(s.result) < 1e-3) return;
  ProblemLinearization lin;
  lin.build(s.problem, s.result);
  bool slides = false;
  for (std::size_t b = 0; b < s.result.modes.size(); ++b)
    slides = slides || (s.result.modes[b] == Mode::sliding && s.problem.blocks[b].mu > 0);
  if (lin.deficient() && slides) return;  // v is not unique either: nothing to compare with
  ++count.used;
  count.deficient += lin.deficient();
  for (Mode m : s.result.modes) {
    count.sticking += m == Mode::sticking, count.sliding += m == Mode::sliding,
        count.separating += m == Mode::separating;
    count.active += m == Mode::active, count.bound += m == Mode::lower || m == Mode::upper;
  }
  const int n = s.problem.n;
  Random random(seed);
  auto check = [&](const Vector& analytic, const Vector& numeric, double tolerance) {
    // Near redundant contacts impulses are known to rounding over the compliance; differences of 1e-4 feel that.
    constexpr double rounding = 2.2e-16 / 3e-6 / 1e-4;
    lin.deficient() ? compare(times(s.problem, analytic), times(s.problem, numeric), tolerance, rounding)
                    : compare(analytic, numeric, tolerance, rounding);
  };
  {  // dg through the free velocity
    Vector dv(w.v.size()), ds(n, 0.0), dl(n);
    for (double& x : dv) x = 0.1 * random.normal();
    for (int i = 0; i < n; ++i)
      for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * dv[k];
    lin.solve(ds.data(), dl.data(), 1, 1);
    check(dl,
          differences(
              [&](double e) {
                World q = w;
                for (std::size_t k = 0; k < dv.size(); ++k) q.v[k] += e * dv[k];
                return q.problem();
              },
              s.result, 1e-4),
          1e-6);
  }
  {  // dG: the masses
    Vector dm(w.v.size()), ds(n, 0.0), dl(n);
    for (double& x : dm) x = 0.3 * random.normal();
    const Vector f = w.wrench(s.result.lambda);
    const Vector f_0 = w.wrench(s.result.lambda_0);  // each level has its own impulses
    Vector ds_0(n, 0.0);
    for (int i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < dm.size(); ++k) {
        ds[i] += w.J[i][k] * w.inverse_mass[k] * dm[k] * f[k];
        ds_0[i] += w.J[i][k] * w.inverse_mass[k] * dm[k] * f_0[k];
      }
    }
    lin.solve(ds.data(), dl.data(), 1, 1, ds_0.data());
    check(dl,
          differences(
              [&](double e) {
                World q = w;
                for (std::size_t k = 0; k < dm.size(); ++k) q.inverse_mass[k] *= 1 + e * dm[k];
                return q.problem();
              },
              s.result, 1e-4),
          1e-6);
  }
  const int blocks = static_cast<int>(w.blocks.size());
  Vector dmu(static_cast<std::size_t>(n) * blocks);
  lin.dlambda_dmu(dmu.data(), blocks);
  for (std::size_t b = 0; b < w.blocks.size(); ++b) {
    const Block& block = w.blocks[b];
    Vector dl(n);
    if (block.type == BlockType::cone && block.mu > 0) {
      lin.dlambda_dmu(static_cast<int>(b), dl.data());
      for (int i = 0; i < n; ++i)
        CHECK_NEAR(dl[i], dmu[static_cast<std::size_t>(i) * blocks + b], 1e-12 * (1 + std::abs(dl[i])));
      if (s.result.modes[b] == Mode::sliding)
        check(dl,
              differences(
                  [&](double e) {
                    World q = w;
                    q.blocks[b].mu += e;
                    return q.problem();
                  },
                  s.result, 1e-4),
              1e-6);
      else
        for (double x : dl) CHECK(x == 0);
    }
    if (block.type == BlockType::box && s.result.modes[b] != Mode::sticking) {
      lin.dlambda_dbound(static_cast<int>(b), dl.data());
      check(dl,
            differences(
                [&](double e) {
                  World q = w;
                  q.blocks[b].bound += e;
                  return q.problem();
                },
                s.result, 1e-5),
            1e-6);
    }
  }
  // transposed, several columns, the operator itself
  Vector K(static_cast<std::size_t>(n) * n), u(n), z(n), sr(n), dl(n);
  lin.operator_matrix(K.data(), n);
  for (int i = 0; i < n; ++i) u[i] = random.normal(), sr[i] = random.normal();
  lin.solve(sr.data(), dl.data(), 1, 1);
  lin.solve_transposed(u.data(), z.data());
  double left = 0, right = 0, size = 0, worst = 0, norm = 0;
  for (int i = 0; i < n; ++i) {
    left += u[i] * dl[i], right += z[i] * sr[i], size += std::abs(u[i] * dl[i]) + std::abs(z[i] * sr[i]);
    double sum = -dl[i];
    for (int j = 0; j < n; ++j)
      sum += K[static_cast<std::size_t>(i) * n + j] * sr[j],
          norm = std::max(norm, std::abs(K[static_cast<std::size_t>(i) * n + j]));
    worst = std::max(worst, std::abs(sum));
  }
  CHECK_NEAR(left, right, 1e-12 * (size + norm));
  CHECK_NEAR(worst, 0, 1e-11 * (norm + 1));
}

}  // namespace

int main() {
  for (int seed = 0; seed < 120; ++seed) test_world(random_world(seed, 1 + seed % 5, 3), seed);
  for (int seed = 0; seed < 60; ++seed) test_world(random_world(500 + seed, 2, 3, true), seed);
  for (int seed = 0; seed < 30; ++seed) {  // redundant sticking: four points, shoved a little
    Random r(seed);
    World w;
    w.add_body(1, 0.01, {0, 0, 0.1}, {0.01 * r.normal(), 0.01 * r.normal(), -0.1},
               {0.05 * r.normal(), 0.05 * r.normal(), 0.05 * r.normal()});
    add_box_on_ground(w, 0, 0.8);
    test_world(w, seed);
  }
  for (int seed = 0; seed < 10; ++seed) {  // no friction at all
    World w = random_world(seed, 3, 3);
    for (Block& b : w.blocks) b.mu = 0;
    test_world(w, seed);
  }
  std::printf("%d problems: sticking %d sliding %d separating %d active %d at a bound %d, deficient %d\n", count.used,
              count.sticking, count.sliding, count.separating, count.active, count.bound, count.deficient);
  CHECK(count.used > 100 && count.sliding > 30 && count.sticking > 50 && count.bound > 10 && count.deficient > 10);
  return report();
}

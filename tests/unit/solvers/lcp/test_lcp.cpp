// Boxed LCPs by themselves: every method on random problems, friction, redundancy, derivatives against differences, no solution.
#include "check.hpp"
#include "coulomb/lcp.hpp"
#include "coulomb/solvers/lcp/dantzig.hpp"
#include "coulomb/solvers/lcp/lcp_search.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;
constexpr double infinity = INFINITY;

double& at(BoxedLcp& p, int i, int j) { return p.A[static_cast<std::size_t>(i) * p.ld + j]; }

/// Worst violation of the definition, relative to the sizes of b and x.
double violation(const BoxedLcp& p, const LcpSolution& s) {
  double size_b = 1e-300, size_x = 1e-300, worst = 0;
  for (int i = 0; i < p.n; ++i)
    size_b = std::max(size_b, std::abs(p.b[i])), size_x = std::max(size_x, std::abs(s.x[i]));
  for (int i = 0; i < p.n; ++i) {
    double w = p.b[i];
    for (int j = 0; j < p.n; ++j) w += p.A[static_cast<std::size_t>(i) * p.ld + j] * s.x[j];
    const double lo = p.lower(i, s.x.data()), hi = p.upper(i, s.x.data());
    worst = std::max({worst, (lo - s.x[i]) / size_x, (s.x[i] - hi) / size_x});
    const bool above = s.x[i] > lo + 1e-9 * size_x, below = s.x[i] < hi - 1e-9 * size_x;
    if (above) worst = std::max(worst, w / size_b);  // may fall
    if (below) worst = std::max(worst, -w / size_b);
  }
  return worst;
}

/// The boxed LCP of a world of contacts and joint rows.
BoxedLcp from_world(const World& w) {
  const ConstraintProblem c = w.problem();
  BoxedLcp p;
  p.resize(c.n);
  for (int i = 0; i < c.n; ++i) {
    for (int j = 0; j < c.n; ++j) at(p, i, j) = c.G[static_cast<std::size_t>(i) * c.ld + j];
    p.b[i] = c.g[i];
  }
  for (const Block& b : c.blocks)
    for (int k = 0; k < b.size; ++k) {
      const int i = b.row + k;
      if (b.type == BlockType::cone && k < 2) p.hi[i] = b.mu, p.normal[i] = b.row + 2;
      if (b.type == BlockType::box) p.lo[i] = -b.bound, p.hi[i] = b.bound;
      if (b.type == BlockType::equality) p.lo[i] = -infinity;
    }
  return p;
}

void test_methods() {
  int solved[4] = {0, 0, 0, 0}, total = 0, pivoted = 0, not_unique = 0;
  for (int seed = 0; seed < 150; ++seed) {
    const BoxedLcp p = from_world(random_world(seed, 1 + seed % 5, 3, seed % 3 == 0));
    check_lcp(p);
    ++total;
    Vector first;
    for (LcpMethod method : {LcpMethod::automatic, LcpMethod::newton, LcpMethod::dantzig, LcpMethod::pgs}) {
      const LcpSolution s = solve_lcp(p, method, 1e-10, method == LcpMethod::pgs ? 20000 : 2000);
      if (!s.converged) continue;
      ++solved[static_cast<int>(method)];
      CHECK_NEAR(violation(p, s), 0, 1e-8);
      CHECK(s.reason == "solved" && s.residual <= 1e-10);
      if (first.empty()) first = s.x;
      double worst = 0, size = 1e-300;
      for (int i = 0; i < p.n; ++i)
        worst = std::max(worst, std::abs(s.x[i] - first[i])), size = std::max(size, std::abs(first[i]));
      not_unique += worst > 1e-7 * size;
    }
    Dantzig dantzig;
    Vector x;
    std::vector<LcpClass> classes;
    pivoted += dantzig.solve(p, 20 * p.n + 100, x, classes);
  }
  std::printf("of %d: auto %d newton %d dantzig %d (%d without a search) pgs %d; other solutions %d\n", total,
              solved[0], solved[1], solved[2], pivoted, solved[3], not_unique);
  CHECK(solved[0] == total && solved[2] == total && solved[1] > total * 9 / 10 && solved[3] > total * 8 / 10);
  CHECK(pivoted > total * 8 / 10 && not_unique < total / 20);
}

/// Not symmetric, two-sided, fixed and free rows: P-matrices have exactly one solution.
void test_general() {
  for (int seed = 0; seed < 100; ++seed) {
    Random r(seed);
    BoxedLcp p;
    p.resize(2 + seed % 7);
    for (int i = 0; i < p.n; ++i) {
      for (int j = 0; j < p.n; ++j) at(p, i, j) = r.normal() * 0.5;
      at(p, i, i) = p.n;
      p.b[i] = r.normal() * 3;
      const int kind = static_cast<int>(r.uniform(0, 5));
      if (kind == 1) p.lo[i] = -0.3, p.hi[i] = 0.2;
      if (kind == 2) p.lo[i] = -infinity, p.hi[i] = r.normal();
      if (kind == 3) p.lo[i] = -infinity;
      if (kind == 4) p.lo[i] = p.hi[i] = 0.1;
    }
    const LcpSolution s = solve_lcp(p, LcpMethod::automatic), d = solve_lcp(p, LcpMethod::dantzig);
    CHECK(s.converged && d.converged && s.unique);
    CHECK_NEAR(violation(p, s), 0, 1e-9);
    for (int i = 0; i < p.n; ++i) CHECK_NEAR(s.x[i], d.x[i], 1e-9);
  }
}

/// Four points under one box: forces are shared alike, whatever the method (least norm).
void test_least_norm() {
  World w;
  w.add_body(1, 0.01, {0, 0, 0.1}, {0, 0, -1});
  add_box_on_ground(w, 0, 0.0);
  const ConstraintProblem c = w.problem();
  BoxedLcp p;
  p.resize(4);
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) at(p, i, j) = c.G[static_cast<std::size_t>(3 * i + 2) * c.ld + 3 * j + 2];
    p.b[i] = c.g[3 * i + 2];
  }
  for (LcpMethod method : {LcpMethod::automatic, LcpMethod::newton, LcpMethod::dantzig, LcpMethod::pgs}) {
    const LcpSolution s = solve_lcp(p, method, 1e-10);
    CHECK(s.converged && !s.unique && s.canonical);
    for (double x : s.x) CHECK_NEAR(x, 0.25, 1e-9);
  }
}

void test_no_solution() {
  BoxedLcp p;  // w = -1 - x >= 0 never
  p.resize(1);
  at(p, 0, 0) = -1, p.b[0] = -1;
  LcpSolution s = solve_lcp(p, LcpMethod::automatic);
  CHECK(!s.converged && s.no_solution && s.reason.find("no solution exists") == 0);
  p.resize(2);  // two contacts that contradict each other: w_1 = x_1 - x_2 - 1, w_2 = x_2 - x_1 - 1
  at(p, 0, 0) = at(p, 1, 1) = 1, at(p, 0, 1) = at(p, 1, 0) = -1, p.b = {-1, -1};
  for (LcpMethod method : {LcpMethod::automatic, LcpMethod::dantzig}) {
    s = solve_lcp(p, method);
    CHECK(!s.converged && s.no_solution);
  }
  for (double x : s.x) CHECK(std::isfinite(x));
}

BoxedLcp moved(BoxedLcp p, const Vector& dA, const Vector& db, const Vector& dlo, const Vector& dhi, double e) {
  for (int i = 0; i < p.n; ++i) {
    for (int j = 0; j < p.n; ++j) at(p, i, j) += e * dA[static_cast<std::size_t>(i) * p.n + j];
    p.b[i] += e * db[i];
    if (std::isfinite(p.lo[i]) && !p.is_friction(i)) p.lo[i] += e * dlo[i];
    if (std::isfinite(p.hi[i])) p.hi[i] += e * dhi[i];
  }
  return p;
}

void test_derivatives() {
  int used = 0, bound = 0;
  for (int seed = 0; seed < 120; ++seed) {
    World w = random_world(seed, 1 + seed % 3, 3, seed % 2 == 0);
    BoxedLcp p = from_world(w);
    Random r(1000 + seed);
    if (seed % 4 == 1)  // not symmetric
      for (int i = 0; i < p.n; ++i)
        for (int j = 0; j < p.n; ++j) at(p, i, j) += 0.01 * r.normal() * at(p, i, i);
    const LcpSolution s = solve_lcp(p, LcpMethod::automatic, 1e-12);
    if (!s.converged || !s.unique) continue;
    const int n = p.n;
    const auto size = static_cast<std::size_t>(n);
    Vector dA(size * size), db(size), dlo(size), dhi(size), x_bar(size);
    for (double& v : dA) v = 0.1 * r.normal();
    for (auto* v : {&db, &dlo, &dhi, &x_bar})
      for (double& value : *v) value = 0.1 * r.normal();
    for (int i = 0; i < n; ++i) {
      if (!std::isfinite(p.lo[i]) || p.is_friction(i)) dlo[i] = 0;
      if (!std::isfinite(p.hi[i])) dhi[i] = 0;
      for (int j = 0; j < n; ++j)
        if (p.normal[j] == i) dlo[i] = 0;  // its lower end stays >= 0
    }
    LcpDerivatives d(p, s);
    Vector dx = d.along_dA(dA.data());
    const Vector by_b = d.dx_db(), by_lo = d.dx_dlo(), by_hi = d.dx_dhi();
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        dx[i] += by_b[i * size + j] * db[j] + by_lo[i * size + j] * dlo[j] + by_hi[i * size + j] * dhi[j];
    const double h = 1e-5;
    Vector x[4];
    bool smooth = true;
    for (int k = 0; k < 4; ++k) {
      const LcpSolution q =
          solve_lcp(moved(p, dA, db, dlo, dhi, (k % 2 ? -1 : 1) * (k < 2 ? h : h / 2)), LcpMethod::automatic, 1e-12);
      smooth = smooth && q.converged && q.classes == s.classes;
      x[k] = q.x;
    }
    if (!smooth) continue;
    ++used;
    double worst = 0, scale = 1e-300;
    for (int i = 0; i < n; ++i) {
      const double numeric = (4 * (x[2][i] - x[3][i]) / h - (x[0][i] - x[1][i]) / (2 * h)) / 3;
      worst = std::max(worst, std::abs(numeric - dx[i])), scale = std::max(scale, std::abs(numeric));
      bound += s.classes[i] != LcpClass::clamped && p.is_friction(i);
    }
    CHECK_NEAR(worst / scale, 0, 1e-6);
    const LcpCotangent g = d.vjp(x_bar.data());
    double left = 0, right = 0, total = 0;
    for (int i = 0; i < n; ++i) {
      left += x_bar[i] * dx[i];
      right += g.b[i] * db[i] + g.lo[i] * dlo[i] + g.hi[i] * dhi[i];
      for (int j = 0; j < n; ++j) right += g.A[i * size + j] * dA[i * size + j];
      total += std::abs(x_bar[i] * dx[i]);
    }
    CHECK_NEAR(left, right, 1e-10 * (1 + total));
  }
  std::printf("derivatives of %d, %d friction rows at a bound\n", used, bound);
  CHECK(used > 60 && bound > 60);
}

/// Dependent clamped rows: the least-norm x moves with A = B B^T along changes of B, which keep the rank.
void test_deficient_derivative() {
  Random r(5);
  const int n = 4, k = 2;
  Vector B(n * k), dB(n * k), c(k), x_bar(n);
  for (auto* v : {&B, &dB, &c, &x_bar})
    for (double& value : *v) value = r.uniform(0.5, 1.5);
  const auto make = [&](double e) {
    BoxedLcp p;
    p.resize(n);
    for (int i = 0; i < n; ++i) {
      p.lo[i] = -infinity;
      for (int l = 0; l < k; ++l) {
        p.b[i] -= (B[i * k + l] + e * dB[i * k + l]) * c[l];
        for (int j = 0; j < n; ++j)
          at(p, i, j) += (B[i * k + l] + e * dB[i * k + l]) * (B[j * k + l] + e * dB[j * k + l]);
      }
    }
    return p;
  };
  const BoxedLcp p = make(0);
  const LcpSolution s = solve_lcp(p, LcpMethod::automatic, 1e-12);
  CHECK(s.converged && !s.unique);
  LcpDerivatives d(p, s);
  CHECK(d.deficient());
  const LcpDerivatives copy = d;
  CHECK(copy.dx_db() == d.dx_db() && copy.size() == d.size());
  Vector dA(n * n, 0.0), db(n, 0.0);
  for (int i = 0; i < n; ++i)
    for (int l = 0; l < k; ++l) {
      db[i] -= dB[i * k + l] * c[l];
      for (int j = 0; j < n; ++j) dA[i * n + j] += dB[i * k + l] * B[j * k + l] + B[i * k + l] * dB[j * k + l];
    }
  Vector dx = d.along_dA(dA.data());
  const Vector by_b = d.dx_db();
  double left = 0, right = 0;
  const LcpCotangent g = d.vjp(x_bar.data());
  const double h = 1e-4;
  const Vector plus = solve_lcp(make(h), LcpMethod::automatic, 1e-12).x,
               minus = solve_lcp(make(-h), LcpMethod::automatic, 1e-12).x,
               half_plus = solve_lcp(make(h / 2), LcpMethod::automatic, 1e-12).x,
               half_minus = solve_lcp(make(-h / 2), LcpMethod::automatic, 1e-12).x;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) dx[i] += by_b[i * n + j] * db[j], right += g.A[i * n + j] * dA[i * n + j];
    left += x_bar[i] * dx[i], right += g.b[i] * db[i];
    CHECK_NEAR(dx[i], (4 * (half_plus[i] - half_minus[i]) / h - (plus[i] - minus[i]) / (2 * h)) / 3, 1e-7);
  }
  CHECK_NEAR(left, right, 1e-11 * (1 + std::abs(left)));
}

}  // namespace

int main() {
  test_methods();
  test_general();
  test_least_norm();
  test_no_solution();
  test_derivatives();
  test_deficient_derivative();
  return report();
}

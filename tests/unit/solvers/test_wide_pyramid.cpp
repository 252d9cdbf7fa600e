// Pyramids with further tangents (spinning, rolling): the law from its definition, every method, both forms of G, derivatives against differences.
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

/// Gives the contact that was added last further tangents: the relative turning of its bodies about these axes.
void add_turning(World& w, int a, int b, const Vec3& axis, double ratio) {
  Vector row(w.v.size(), 0.0);
  for (int i = 0; i < 3; ++i) {
    if (a >= 0) row[6 * a + 3 + i] += ratio * axis[i];
    if (b >= 0) row[6 * b + 3 + i] -= ratio * axis[i];
  }
  w.J.push_back(row);
  w.bias.push_back(0);
  w.blocks.back().size += 1;
}

/// Bodies that touch one another and the ground, by contacts of three to six rows; equality: one of them is also nailed down in one direction.
World random_wide_world(int seed, int contacts, bool equality = false) {
  Random r(seed + 7000);
  World w;
  for (int i = 0; i < 3; ++i) {
    const Vec3 at = {r.normal(), r.normal(), 1 + r.normal()};
    const double aside = seed % 2 == 0 ? 1 : 0.03;  // slower, and below the bodies: more of them stick
    w.add_body(r.uniform(0.5, 3), r.uniform(0.1, 1), at,
               {aside * r.normal(), aside * r.normal(), -std::abs(r.normal())},
               {aside * r.normal(), aside * r.normal(), aside * r.normal()});
  }
  for (int k = 0; k < contacts; ++k) {
    const int a = static_cast<int>(r.uniform(0, 3));
    const int b = r.uniform(0, 1) < 0.5 ? -1 : (a + 1) % 3;
    Vec3 normal = unit({r.normal(), r.normal(), 0.5 + std::abs(r.normal())});
    if (b > a) normal = {-normal[0], -normal[1], -normal[2]};  // separation is always possible
    const double mu = r.uniform(0.1, 1.2);
    const Vec3& c = w.center[a];
    Vec3 point = {r.normal(), r.normal(), r.normal()};
    if (seed % 2 == 1) point = {c[0] + 0.3 * point[0], c[1] + 0.3 * point[1], c[2] - 0.5};
    w.add_contact(a, b, point, normal, mu, -r.uniform(0, seed % 2 == 0 ? 1.0 : 0.03));
    const int size = 3 + (k + seed) % 4;
    for (int i = 3; i < size; ++i)
      add_turning(w, a, b, i == 3 ? normal : unit({r.normal(), r.normal(), r.normal()}),
                  r.uniform(0.05, seed % 2 == 0 ? 0.6 : 1.0));
    Block& block = w.blocks.back();
    block.type = BlockType::pyramid;
    block.facets = 4 + 2 * (seed % 3);
    block.inscribed = seed % 5 == 4;
  }
  if (equality) w.add_row(BlockType::equality, w.row(0, -1, {0, 0, 1}, {0, 0, 1}));
  return w;
}

/// Its problem, weighed as those of steps are: one number for sliding and the normal, and one for every further tangent.
ConstraintProblem problem_of(const World& w, bool factored = false) {
  const ConstraintProblem dense = w.problem();
  ConstraintProblem p = factored ? w.factored_problem() : dense;
  p.W.resize(p.n);
  for (const Block& b : p.blocks) {
    const auto diagonal = [&](int i) { return dense.G[static_cast<std::size_t>(i) * dense.ld + i]; };
    for (int i = b.row; i < b.row + b.size; ++i) {
      const bool own = b.size == 1 || i >= b.row + 3;
      p.W[i] = own ? diagonal(i) : (diagonal(b.row) + diagonal(b.row + 1) + diagonal(b.row + 2)) / 3;
    }
  }
  return p;
}

/// E (lambda - that of the level before) of the last level.
Vector slip_of_compliance(const ConstraintProblem& p, const SolverResult& r) {
  Vector out(p.n);
  if (r.sharper_levels > 0) return out;
  for (int i = 0; i < p.n; ++i)
    out[i] = r.compliance * p.W[i] *
             (r.lambda[i] - (r.levels > 1   ? r.lambda_1[i]
                             : r.levels > 0 ? r.lambda_0[i]
                                            : 0.0));
  return out;
}

/// Corner k of the polygon, from trigonometry alone.
void corner(const Block& b, int k, double* w) {
  const double angle = 2 * pi * (k + (b.inscribed ? 0.0 : 0.5)) / b.facets;
  const double r = b.inscribed ? 1 : 1 / std::cos(pi / b.facets);
  w[0] = r * std::cos(angle);
  w[1] = r * std::sin(angle);
}

/// Worst violation of the law's conditions, relative to the sizes of g and of the impulses.
double violation_of_law(const ConstraintProblem& p, const Vector& lambda, const Vector& extra) {
  double size_g = 1e-300, size_l = 1e-300, worst = 0;
  for (int i = 0; i < p.n; ++i) {
    size_g = std::max(size_g, std::abs(p.g[i]));
    size_l = std::max(size_l, std::abs(lambda[i]));
  }
  for (const Block& b : p.blocks) {
    if (b.type != BlockType::pyramid) continue;
    double c[6];
    for (int i = 0; i < b.size; ++i) {
      c[i] = p.g[b.row + i] + extra[b.row + i];
      for (int j = 0; j < p.n; ++j) c[i] += p.G[static_cast<std::size_t>(b.row + i) * p.ld + j] * lambda[j];
    }
    const double* l = lambda.data() + b.row;
    const double r = b.mu * l[2];
    worst = std::max({worst, -l[2] / size_l, -c[2] / size_g, std::abs(l[2] * c[2]) / (size_l * size_g)});

    // The polygon: inside of every side, and the most dissipation.
    double least = 1e300;
    for (int k = 0; k < b.facets; ++k) {
      double w[2], next[2];
      corner(b, k, w), corner(b, k + 1, next);
      least = std::min(least, c[0] * w[0] + c[1] * w[1]);
      const double normal[2] = {next[1] - w[1], w[0] - next[0]}, length = std::hypot(normal[0], normal[1]);
      const double outside = (normal[0] * (l[0] - r * w[0]) + normal[1] * (l[1] - r * w[1])) / length;
      worst = std::max(worst, outside / size_l);
    }
    worst = std::max(worst, std::abs(l[0] * c[0] + l[1] * c[1] - r * least) / (size_l * size_g));

    // Every interval.
    for (int i = 3; i < b.size; ++i) {
      worst = std::max(worst, (std::abs(l[i]) - r) / size_l);
      worst = std::max(worst, std::abs(l[i] * c[i] + r * std::abs(c[i])) / (size_l * size_g));
    }
  }
  return worst;
}

SolverResult solve(const ConstraintProblem& p, double tolerance = 1e-10, const SolverResult* near = nullptr,
                   SolverMethod method = SolverMethod::automatic) {
  ConstraintSolver solver;
  SolverSettings settings;
  settings.tolerance = tolerance;
  settings.method = method;
  WarmStart warm;
  if (near) warm = warm_from(*near);
  SolverResult r;
  solver.solve(p, settings, near ? &warm : nullptr, r);
  return r;
}

struct Count {
  int solved = 0, total = 0, partly = 0, sticking = 0, separating = 0, ends = 0, derivatives = 0;
} count;

void tally(const ConstraintProblem& p, const SolverResult& s) {
  for (std::size_t b = 0; b < p.blocks.size(); ++b) {
    if (p.blocks[b].size == 3 || p.blocks[b].type != BlockType::pyramid) continue;
    count.sticking += s.modes[b] == Mode::sticking;
    count.separating += s.modes[b] == Mode::separating;
    CHECK((s.modes[b] == Mode::sliding) == (s.facets[b] >= 0));
    if (s.facets[b] < 0) continue;
    const PyramidParts parts = parts_of(p.blocks[b], s.facets[b]);
    bool holds = parts.feature < 0;
    for (int i = 3; i < p.blocks[b].size; ++i) {
      holds = holds || parts.end[i - 3] == 0;
      count.ends += parts.end[i - 3] != 0;
    }
    count.partly += holds;
  }
}

void test_facets() {
  for (int size = 3; size <= 6; ++size) {
    Block b;
    b.type = BlockType::pyramid;
    b.size = size;
    int facets = 0;
    for (int feature = size == 3 ? 0 : -1; feature < 2 * b.facets; ++feature) {
      for (int code = 0; code < (size == 3 ? 1 : size == 4 ? 3 : size == 5 ? 9 : 27); ++code) {
        PyramidParts parts;
        parts.feature = feature;
        int rest = code;
        bool sticks = feature < 0;
        for (int i = 3; i < size; ++i, rest /= 3) {
          parts.end[i - 3] = rest % 3 - 1;
          sticks = sticks && parts.end[i - 3] == 0;
        }
        const int facet = facet_of(b, parts);
        CHECK((facet < 0) == sticks);
        CHECK(sticks || parts_of(b, facet) == parts);
        ++facets;
      }
    }
    CHECK(facets == (size == 3 ? 8 : size == 4 ? 27 : size == 5 ? 81 : 243));
  }
}

/// The projection is the nearest point: what is left is orthogonal to it, and no edge of the pyramid is in front of it.
void test_projection() {
  for (int facets : {4, 6, 32}) {
    for (bool inscribed : {false, true}) {
      for (int size = 4; size <= 6; ++size) {
        Block b;
        b.type = BlockType::pyramid, b.facets = facets, b.inscribed = inscribed, b.mu = 0.7, b.size = size;
        Random random(facets + size);
        for (int trial = 0; trial < 200; ++trial) {
          double x[6], y[6];
          for (int i = 0; i < size; ++i) y[i] = x[i] = random.normal();
          project_pyramid(b, y);
          double at = 0;
          for (int i = 0; i < size; ++i) at += (x[i] - y[i]) * y[i];
          CHECK_NEAR(at, 0, 1e-13);

          // Of all edges the one that is most in front.
          double most = -1e300;
          for (int k = 0; k < facets; ++k) {
            double w[2];
            corner(b, k, w);
            most = std::max(most, b.mu * ((x[0] - y[0]) * w[0] + (x[1] - y[1]) * w[1]));
          }
          for (int i = 3; i < size; ++i) most += b.mu * std::abs(x[i] - y[i]);
          CHECK(most + x[2] - y[2] < 1e-13);

          // Where it is admissible nothing moves; and the modes of (y, y - x) say so.
          double again[6];
          std::copy_n(y, size, again);
          project_pyramid(b, again);
          for (int i = 0; i < size; ++i) CHECK_NEAR(again[i], y[i], 1e-14);
        }
      }
    }
  }
}

void test_law() {
  for (int seed = 0; seed < 200; ++seed) {
    const World w = random_wide_world(seed, 1 + seed % 5);
    const ConstraintProblem p = problem_of(w);
    const SolverResult r = solve(p);
    ++count.total;
    if (r.status != SolveStatus::solved) continue;
    ++count.solved;
    tally(p, r);
    CHECK_NEAR(violation_of_law(p, r.lambda, slip_of_compliance(p, r)), 0, 1e-9);
    const SolverResult again = solve(p, 1e-10, &r);
    CHECK(again.status == SolveStatus::solved && again.modes == r.modes && again.facets == r.facets);

    // Solved in velocities it is the same.
    const SolverResult in_velocities = solve(problem_of(w, true));
    CHECK(in_velocities.status == SolveStatus::solved);
    const double exact =
        in_velocities.sharper_levels > 0 ? 1e-5 : 1e-9;  // sharper levels end where 1e-6 of the speeds is left
    CHECK_NEAR(violation_of_law(p, in_velocities.lambda, slip_of_compliance(p, in_velocities)), 0, exact);
  }
}

/// A pyramid whose further tangents nothing moves is the one without them.
void test_useless_tangents() {
  for (int seed = 0; seed < 10; ++seed) {
    World w = random_wide_world(4 * seed, 1);
    CHECK(w.blocks[0].size == 3);
    const SolverResult plain = solve(w.problem());
    add_turning(w, 0, -1, {0, 0, 0}, 1);
    const SolverResult wide = solve(w.problem());
    CHECK(plain.status == SolveStatus::solved && wide.status == SolveStatus::solved);
    for (int i = 0; i < 3; ++i) CHECK_NEAR(wide.lambda[i], plain.lambda[i], 1e-9);
    CHECK_NEAR(wide.lambda[3], 0, 1e-9);
  }
}

void test_methods() {
  int agree = 0, pgs = 0, admm = 0, dantzig = 0, boxed = 0;
  for (int seed = 0; seed < 60; ++seed) {
    const ConstraintProblem p = problem_of(random_wide_world(seed, 1 + seed % 3));
    const SolverResult r = solve(p, 1e-10);
    if (r.status != SolveStatus::solved) continue;
    const bool suits = p.blocks[0].facets == 4 && !p.blocks[0].inscribed;
    boxed += suits;
    for (SolverMethod method : {SolverMethod::pgs, SolverMethod::admm, SolverMethod::dantzig}) {
      if (method == SolverMethod::dantzig && !suits) continue;
      const SolverResult other = solve(p, 1e-10, nullptr, method);
      if (other.status != SolveStatus::solved) continue;
      (method == SolverMethod::pgs ? pgs : method == SolverMethod::admm ? admm : dantzig) += 1;
      CHECK_NEAR(violation_of_law(p, other.lambda, slip_of_compliance(p, other)), 0, 1e-9);
      double worst = 0;
      for (int i = 0; i < p.n; ++i) worst = std::max(worst, std::abs(other.lambda[i] - r.lambda[i]));
      agree += worst < 1e-7;
    }
  }
  std::printf("methods: pgs solved %d, admm %d of 60, dantzig %d of %d; %d agree\n", pgs, admm, dantzig, boxed, agree);
  CHECK(pgs >= 45 && admm >= 50 && dantzig == boxed && agree >= (pgs + admm + dantzig) * 9 / 10);
}

template <class Make>
Vector differences(Make make, const SolverResult& near, double h) {
  const auto central = [&](double step) {
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

void compare(const Vector& a, const Vector& b) {
  double size = 1e-3, worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::abs(b[i]));
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  CHECK_NEAR(worst / size, 0, 1e-6);
}

void test_derivatives(int seed) {
  const World w = random_wide_world(seed, 1 + seed % 4, seed % 6 == 5);
  const ConstraintProblem p = problem_of(w);
  const SolverResult r = solve(p, 1e-12);
  if (r.status != SolveStatus::solved || *std::min_element(r.margin.begin(), r.margin.end()) < 1e-3) return;
  ProblemLinearization lin;
  lin.build(p, r);
  if (lin.deficient()) return;
  ++count.derivatives;

  // By the velocities before, and by the masses.
  Random random(seed);
  Vector dv(w.v.size()), ds(p.n, 0.0), dl(p.n);
  for (double& x : dv) x = 0.1 * random.normal();
  for (int i = 0; i < p.n; ++i)
    for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * dv[k];
  lin.solve(ds.data(), dl.data(), 1, 1);
  const auto at_velocity = [&](double e) {
    World q = w;
    for (std::size_t k = 0; k < dv.size(); ++k) q.v[k] += e * dv[k];
    return problem_of(q);
  };
  compare(dl, differences(at_velocity, r, 1e-4));

  const Vector f = w.wrench(r.lambda);
  for (int i = 0; i < p.n; ++i) {
    ds[i] = 0;
    for (std::size_t k = 0; k < dv.size(); ++k) ds[i] += w.J[i][k] * w.inverse_mass[k] * dv[k] * f[k];
  }
  lin.solve(ds.data(), dl.data(), 1, 1);
  const auto at_mass = [&](double e) {
    World q = w;
    for (std::size_t k = 0; k < dv.size(); ++k) q.inverse_mass[k] *= 1 + e * dv[k];
    return problem_of(q);
  };
  compare(dl, differences(at_mass, r, 1e-4));

  // By the coefficients of friction.
  for (std::size_t b = 0; b < w.blocks.size(); ++b) {
    if (r.modes[b] != Mode::sliding) continue;
    lin.dlambda_dmu(static_cast<int>(b), dl.data());
    const auto at_mu = [&](double e) {
      World q = w;
      q.blocks[b].mu += e;
      return problem_of(q);
    };
    compare(dl, differences(at_mu, r, 1e-4));
  }

  // Forward is reverse.
  Vector u(p.n), z(p.n);
  for (int i = 0; i < p.n; ++i) u[i] = random.normal(), ds[i] = random.normal();
  lin.solve(ds.data(), dl.data(), 1, 1);
  lin.solve_transposed(u.data(), z.data());
  double left = 0, right = 0, size = 0;
  for (int i = 0; i < p.n; ++i) {
    left += u[i] * dl[i];
    right += z[i] * ds[i];
    size += std::abs(u[i] * dl[i]) + std::abs(z[i] * ds[i]);
  }
  CHECK_NEAR(left, right, 1e-12 * (1 + size));
}

/// The other side of a tie: the part that is nearest to its border crosses it.
void test_other_side() {
  Block b;
  b.type = BlockType::pyramid, b.mu = 0.5, b.size = 4;
  const auto facet = [&](int feature, int end) {
    PyramidParts parts;
    parts.feature = feature;
    parts.end[0] = end;
    return facet_of(b, parts);
  };
  const double spins[4] = {0.1, 0, 1, 0.5}, slides[4] = {0.5, 0.1, 1, 0.2}, rest[4] = {0, 0, 0, 0};
  CHECK(pyramid_other_side(b, 1, {Mode::sticking, -1}, spins, rest).facet == facet(-1, 1));
  CHECK(pyramid_other_side(b, 1, {Mode::sticking, -1}, slides, rest).facet == facet(0, 0));
  CHECK(pyramid_other_side(b, 1, {Mode::sliding, facet(-1, 1)}, spins, rest).mode == Mode::sticking);
  const double slow[4] = {-0.3, 0, 0, -1e-9}, both[4] = {0.5, 0.1, 1, 0.5};
  CHECK(pyramid_other_side(b, 1, {Mode::sliding, facet(0, 1)}, both, slow).facet == facet(0, 0));
}

}  // namespace

int main() {
  test_facets();
  test_projection();
  test_law();
  test_useless_tangents();
  test_methods();
  for (int seed = 0; seed < 150; ++seed) test_derivatives(seed);
  test_other_side();
  std::printf("%d of %d solved; partly %d ends %d sticking %d separating %d; derivatives of %d\n", count.solved,
              count.total, count.partly, count.ends, count.sticking, count.separating, count.derivatives);
  CHECK(count.partly > 30 && count.ends > 30 && count.sticking > 10 && count.separating > 30);
  CHECK(count.solved >= count.total * 97 / 100 && count.derivatives > 60);
  return report();
}

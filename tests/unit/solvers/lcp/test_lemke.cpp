// Lemke's method: solutions from their definition, ties, rays; and on constraint problems where steps between modes go round in circles.
#include "check.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/single_methods/block_lemke.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

/// Worst violation of 0 <= z, 0 <= w = M z + q, z . w = 0, relative to the largest entries.
double violation(const Lemke& p) {
  double size_z = 1e-300, size_q = 1e-300, worst = 0;
  for (int i = 0; i < p.n; ++i) size_z = std::max(size_z, p.z[i]), size_q = std::max(size_q, std::abs(p.q[i]));
  for (int i = 0; i < p.n; ++i) {
    double w = p.q[i];
    for (int j = 0; j < p.n; ++j) w += p.M[static_cast<std::size_t>(i) * p.ld + j] * p.z[j];
    worst = std::max({worst, -p.z[i] / size_z, -w / size_q, std::min(std::abs(w) / size_q, p.z[i] / size_z)});
  }
  return worst;
}

double& at(Lemke& p, int i, int j) { return p.M[static_cast<std::size_t>(i) * p.ld + j]; }

void test_random() {
  Lemke p;
  for (int seed = 0; seed < 200; ++seed) {
    Random r(seed);
    const int n = 1 + seed % 30, rank = 1 + seed % 7;
    p.resize(n);
    std::vector<double> J(static_cast<std::size_t>(n) * rank);
    for (double& x : J) x = r.normal();
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < rank; ++k) {
        p.q[i] += J[static_cast<std::size_t>(i) * rank + k];  // (1, .., 1) is feasible: q in the range of M
        for (int j = 0; j < n; ++j)
          at(p, i, j) += J[static_cast<std::size_t>(i) * rank + k] * J[static_cast<std::size_t>(j) * rank + k];
      }
      for (int j = 0; j < i && seed % 2 == 0; ++j) {  // not symmetric
        const double skew = rank >= n ? r.normal() : 0.0;
        at(p, i, j) += skew, at(p, j, i) -= skew;
      }
    }
    CHECK(p.solve(100 * n));
    CHECK_NEAR(violation(p), 0, 1e-9);
  }
}

void test_ties_and_rays() {
  Lemke p;
  for (int n : {1, 2, 5, 20}) {  // all ratios tie, at every pivot
    p.resize(n);
    for (int i = 0; i < n; ++i) {
      p.q[i] = -1;
      for (int j = 0; j < n; ++j) at(p, i, j) = 1;
    }
    CHECK(p.solve(10 * n));
    CHECK_NEAR(violation(p), 0, 1e-12);
  }
  p.resize(3);
  p.q[0] = 2;
  CHECK(p.solve(10) && p.pivots == 0 && p.z[0] == 0);
  p.resize(2);  // z_0 >= 1 + z_1 and z_1 >= 1 + z_0
  at(p, 0, 0) = at(p, 1, 1) = 1, at(p, 0, 1) = at(p, 1, 0) = -1;
  p.q[0] = p.q[1] = -1;
  CHECK(!p.solve(10) && p.ray && p.z0 > 0.5);
  p.resize(0);
  CHECK(p.solve(10));
}

World with_pyramids(World w, int facets, bool inscribed) {
  for (Block& b : w.blocks)
    if (b.type == BlockType::cone) b.type = BlockType::pyramid, b.facets = facets, b.inscribed = inscribed;
  return w;
}

/// Bodies on many redundant contacts with strong friction, all kinds of rows.
World heap(int seed) {
  Random r(seed);
  World w = stack(1 + seed % 4, 1.5, 0.3 + 0.3 * (seed % 8), {0.3 * r.normal(), 0.3 * r.normal(), -0.2});
  for (int k = 0; k < seed % 5; ++k)
    w.add_contact(0, -1, {r.uniform(-0.1, 0.1), r.uniform(-0.1, 0.1), 0}, {0, 0, 1}, 1.5);
  for (BlockType type : {BlockType::limit, BlockType::box, BlockType::equality}) {
    std::vector<double> row(w.v.size(), 0.0);
    for (int i = 0; i < 2; ++i)
      row[static_cast<std::size_t>(r.uniform(0, static_cast<double>(row.size())))] = r.normal();
    if (seed % 2 == 0) w.add_row(type, row, type == BlockType::box ? 0.05 : 0);
  }
  return w;
}

/// The walk on constraint problems, and Dantzig's method, which takes it where its own pivots go round in circles.
void test_blocks() {
  BlockLemke lemke;
  ScaledProblem scaled;
  Iterate x;
  ConstraintSolver solver;
  SolverResult result;
  for (int seed = 0; seed < 120; ++seed) {
    const int facets = 4 + 2 * (seed % 3);
    const bool inscribed = seed % 4 == 1;
    const ConstraintProblem p = with_pyramids(heap(seed), facets, inscribed).problem();
    scaled.assign(p);
    x.resize(scaled.ld);
    int pivots = 0;
    CHECK(lemke.solve(scaled, x, pivots) == BlockLemke::End::solved);
    CHECK_NEAR(x.residual, 0, 1e-8);
    for (SolverMethod method : {SolverMethod::automatic, SolverMethod::dantzig}) {
      if (method == SolverMethod::dantzig && (facets != 4 || inscribed)) continue;
      SolverSettings settings;
      settings.method = method;
      solver.solve(p, settings, nullptr, result);
      CHECK(result.status == SolveStatus::solved && result.residual <= 1e-9);
    }
  }
}

/// A body between two walls that close in: no impulse separates it from both.
void test_contradiction() {
  World w;
  w.add_body(1, 0.01, {0, 0, 0}, {0, 0, 0});
  for (double side : {-1.0, 1.0}) w.add_contact(0, -1, {0, 0, 0.1 * side}, {0, 0, -side}, 0.5, -0.3);
  for (int facets : {0, 4, 8}) {
    const ConstraintProblem p = (facets ? with_pyramids(w, facets, false) : w).problem();
    BlockLemke lemke;
    ScaledProblem scaled;
    scaled.assign(p);
    Iterate x;
    x.resize(scaled.ld);
    int pivots = 0;
    CHECK(lemke.solve(scaled, x, pivots) == BlockLemke::End::ray);
  }
}

}  // namespace

int main() {
  test_random();
  test_ties_and_rays();
  test_blocks();
  test_contradiction();
  return report();
}

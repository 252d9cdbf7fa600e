// The stand-alone problem: validation, solution, derivatives.
#include <memory>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "coulomb/contact_problem.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

void expect_rejected(const Vector& G, const Vector& g, const Vector& mu, const std::string& words,
                     const Vector& R = {}) {
  std::string message;
  try {
    ContactProblem p(G, g, mu, R);
  } catch (const std::invalid_argument& e) {
    message = e.what();
  }
  CHECK(message.find(words) != std::string::npos);
  if (message.find(words) == std::string::npos)
    std::printf("  message: '%s', wanted '%s'\n", message.c_str(), words.c_str());
}

}  // namespace

int main() {
  const Vector I = {1, 0, 0, 0, 1, 0, 0, 0, 1};
  Vector bad = I;
  bad[1] = 0.5;
  expect_rejected(bad, {0, 0, -1}, {0.5}, "symmetric");
  bad = I, bad[4] = -1;
  expect_rejected(bad, {0, 0, -1}, {0.5}, "G[1, 1] = -1");
  bad = I, bad[5] = bad[7] = 7;
  expect_rejected(bad, {0, 0, -1}, {0.5}, "G[2, 1] = 7");
  bad = I, bad[2] = NAN;
  expect_rejected(bad, {0, 0, -1}, {0.5}, "G[2] = nan");
  expect_rejected(I, {0, 0}, {0.5}, "g has 2 elements");
  expect_rejected(I, {0, INFINITY, 0}, {0.5}, "g[1] = inf");
  expect_rejected(I, {0, 0, -1}, {-0.5}, "mu[0] = -0.5");
  expect_rejected(I, {0, 0, -1}, {0.5}, "R[2] = -1", {0, 0, -1});

  ContactProblem p(I, {1, 0, -1}, {0.5});
  for (SolverMethod m : {SolverMethod::automatic, SolverMethod::ac_lm, SolverMethod::admm, SolverMethod::pgs}) {
    const ContactSolution& s = p.solve(m);
    CHECK(s.status == SolveStatus::solved && s.modes[0] == Mode::sliding);
    CHECK_NEAR(s.impulse[0], -0.5, 1e-10);
    CHECK_NEAR(s.impulse[2], 1, 1e-10);
    CHECK_NEAR(s.velocity[0], 0.5, 1e-10);
  }
  // lambda_x = mu g_N, lambda_N = -g_N, but for the share that two levels of the compliance leave
  const ContactDerivatives d = p.derivatives();
  const double compliance = SolverSettings().compliance;
  const double share = 1 - std::pow(compliance / (1 + compliance), 2);
  CHECK_NEAR(d.dlambda_dg[2], 0.5 * share, 1e-12);
  CHECK_NEAR(d.dlambda_dg[8], -share, 1e-12);
  CHECK_NEAR(d.dlambda_dg[0], 0, 1e-12);
  CHECK_NEAR(d.dlambda_dmu[0], -1, 1e-12);
  CHECK_NEAR(d.dlambda_dmu[2], 0, 1e-12);
  const Vector along = p.dlambda_along_dG({0, 0, 0, 0, 0, 0, 0, 0, 1});  // lambda_N = 1 / G_NN
  CHECK_NEAR(along[2], -share, 1e-12);
  CHECK_NEAR(along[0], 0.5 * share, 1e-12);

  // A copy has a problem and a solution of its own: it outlives the original, and its derivatives have the same bits.
  auto original = std::make_unique<ContactProblem>(I, Vector{1, 0, -1}, Vector{0.5});
  const ContactSolution solution = original->solve();
  const Vector by_g = original->derivatives().dlambda_dg;
  ContactProblem copy = *original;
  original->solve(SolverMethod::pgs, 1e-2);
  original.reset();
  CHECK(copy.solution().impulse == solution.impulse && copy.size() == 3 && copy.num_contacts() == 1);
  CHECK(copy.derivatives().dlambda_dg == by_g);

  ContactProblem zero(Vector(9, 0.0), {0.1, 0, 0.2}, {0.5});
  CHECK(zero.solve().status == SolveStatus::solved);
  for (double x : zero.derivatives().dlambda_dg) CHECK(x == 0);
  ContactProblem stuck(Vector(9, 0.0), {0.1, 0, -0.2}, {0.5});
  CHECK(stuck.solve().status == SolveStatus::relaxed);
  for (double x : stuck.derivatives().dlambda_dg) CHECK(std::isfinite(x));
  ContactProblem none({}, {}, {});
  CHECK(none.solve().status == SolveStatus::solved && none.derivatives().dlambda_dg.empty());

  bool refused = false;
  try {
    solver_method_from_name("newton");
  } catch (const std::invalid_argument& e) {
    refused = std::string(e.what()).find("newton") != std::string::npos;
  }
  CHECK(refused);
  return report();
}

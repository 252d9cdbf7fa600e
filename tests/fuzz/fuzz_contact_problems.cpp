// Contact problems and boxed LCPs: every solver ends with finite numbers, and what is called solved obeys its law.
#include <algorithm>

#include "coulomb/contact_problem.hpp"
#include "coulomb/lcp.hpp"
#include "trial.hpp"

namespace {

using namespace coulomb;
using fuzz::Bytes;
using fuzz::promise;

double largest(const std::vector<double>& x) {
  double most = 0;
  for (double e : x) most = std::max(most, std::abs(e));
  return most;
}

/// B B^T of some numbers: symmetric, positive semi-definite, of any rank up to n.
std::vector<double> random_delassus(Bytes& bytes, int n) {
  const int rank = 1 + bytes.choice(n);
  std::vector<double> B(static_cast<std::size_t>(n * rank)), G(static_cast<std::size_t>(n * n));
  for (double& e : B) e = bytes.number();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < rank; ++k) G[i * n + j] += B[i * rank + k] * B[j * rank + k];
    }
  }
  return G;
}

void check_contacts(Bytes& bytes) {
  const int num_contacts = 1 + bytes.choice(4), n = 3 * num_contacts;
  const auto G = random_delassus(bytes, n);
  std::vector<double> g(n), mu(num_contacts), R;
  for (double& e : g) e = bytes.number();
  for (double& e : mu) e = bytes.size();
  if (bytes.coin()) {
    R.resize(n);
    for (double& e : R) e = bytes.size();
  }
  std::unique_ptr<ContactProblem> problem;
  if (!fuzz::accepted([&] { problem = std::make_unique<ContactProblem>(G, g, mu, R); })) return;

  const SolverMethod methods[] = {SolverMethod::automatic, SolverMethod::ac_lm, SolverMethod::admm, SolverMethod::pgs};
  for (const auto method : methods) {
    const auto& found = problem->solve(method, 1e-10, 200);
    promise(fuzz::finite(found.impulse) && fuzz::finite(found.velocity), "impulses and velocities are finite");
    promise(!std::isnan(found.residual) && !std::isnan(found.exact_residual), "residuals are numbers");
    if (found.status != SolveStatus::solved) continue;

    // Impulses lie in the cone, but for a share of those that g asks for.
    double asked = 0;
    for (int i = 0; i < n; ++i) {
      // A direction in which nothing moves asks in the units of its contact.
      double entry = G[i * n + i];
      for (int k = i - i % 3; k < i - i % 3 + 3; ++k)
        if (!(G[i * n + i] > 0)) entry = std::max(entry, G[k * n + k]);
      if (entry > 0) asked = std::max(asked, std::abs(g[i]) / std::sqrt(entry));
    }
    for (int i = 0; i < num_contacts; ++i) {
      const double* f = &found.impulse[3 * i];
      double mobility = INFINITY;
      for (int k = 3 * i; k < 3 * i + 3; ++k)
        if (G[k * n + k] > 0) mobility = std::min(mobility, G[k * n + k]);
      const double error = 1e-6 * (largest(found.impulse) + asked / std::sqrt(mobility)) * (1 + mu[i]);
      promise(f[2] >= -error, "nothing pulls");
      promise(std::hypot(f[0], f[1]) <= mu[i] * f[2] + error, "friction is in the cone");
    }
    fuzz::accepted([&] {
      const auto d = problem->derivatives();
      promise(fuzz::finite(d.dlambda_dg) && fuzz::finite(d.dlambda_dmu), "derivatives are finite");
    });
  }
}

void check_lcps(Bytes& bytes) {
  BoxedLcp problem;
  const int n = 1 + bytes.choice(6);
  problem.resize(n);
  const bool symmetric = bytes.choice(4) != 0;
  const auto G = random_delassus(bytes, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) problem.A[i * problem.ld + j] = symmetric ? G[i * n + j] : bytes.number();
    problem.b[i] = bytes.number();
    if (bytes.choice(4) == 0) problem.lo[i] = bytes.number();
    if (bytes.choice(4) == 0) problem.hi[i] = bytes.number();
    if (i > 0 && bytes.choice(3) == 0) problem.normal[i] = bytes.choice(i);
  }
  if (!fuzz::accepted([&] { check_lcp(problem); })) return;

  const LcpMethod methods[] = {LcpMethod::automatic, LcpMethod::newton, LcpMethod::dantzig, LcpMethod::pgs,
                               LcpMethod::lemke};
  for (const auto method : methods) {
    LcpSolution found;
    if (!fuzz::accepted([&] { found = solve_lcp(problem, method, 1e-10, 200); })) continue;
    promise(!found.reason.empty() || found.converged, "a failure says why");
    if (!found.converged) continue;
    promise(fuzz::finite(found.x) && fuzz::finite(found.w), "solutions are finite");

    // Every row is at a bound and pushed there, or between its bounds and at rest.
    // Both but for a share of what rows ask for, those with a diagonal entry by sqrt(A_ii), others by the terms of w.
    const double w_scale = 1 + largest(found.w) + largest(problem.b);
    double asked = 0;
    for (int i = 0; i < n; ++i) {
      const double diagonal = problem.A[i * problem.ld + i];
      if (diagonal > 0) asked = std::max(asked, std::abs(problem.b[i]) / std::sqrt(diagonal));
    }
    for (int i = 0; i < n; ++i) {
      const double lower = problem.lower(i, found.x.data()), upper = problem.upper(i, found.x.data());
      const double x = found.x[i], w = found.w[i];

      // w is the difference of these, and known to what the tolerance leaves of them.
      const double* row = &problem.A[i * problem.ld];
      double terms = std::abs(problem.b[i]);
      double entry = 0;
      for (int j = 0; j < n; ++j) {
        terms += std::abs(row[j] * found.x[j]);
        entry = std::max(entry, std::abs(row[j]));
      }
      const double diagonal = std::max(row[i], 0.0);
      const double demand = diagonal > 0 ? asked / std::sqrt(diagonal) : entry > 0 ? terms / entry : 0;
      const double near = 1e-6 * (1 + largest(found.x) + demand);
      // And a row is at rest where a small change of x_i brings it there.
      const double unsure = 1e-6 * w_scale + 1e-9 * terms + (diagonal > 0 ? diagonal * near : 0);
      promise(x >= lower - near && x <= upper + near, "x is within its bounds");
      promise(w > -unsure || x >= upper - near, "w < 0 at the upper bound alone");
      promise(w < unsure || x <= lower + near, "w > 0 at the lower bound alone");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  bytes.coin() ? check_contacts(bytes) : check_lcps(bytes);
  return 0;
}

// LU of implicit stages: solves, transposed solves and inverse against the matrix itself, dense, sparse, and where the sparse one gives up.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "check.hpp"
#include "coulomb/stepping/implicit/implicit_factor.hpp"

using namespace coulomb;

namespace {

double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return double(state >> 11) / double(1ull << 53) - 0.5;
}

// H of a random tree: entries between relatives, a dominant diagonal unless `hard`, some couplings across branches.
std::vector<double> random_matrix(int n, bool hard, std::uint64_t seed) {
  std::vector<int> parent(n);
  std::vector<double> H(std::size_t(n) * n);
  for (int d = 0; d < n; ++d) {
    parent[d] = d == 0 ? -1 : static_cast<int>((uniform(seed) + 0.5) * d);
    for (int a = d; a >= 0; a = parent[a]) {
      H[std::size_t(d) * n + a] = uniform(seed), H[std::size_t(a) * n + d] = uniform(seed);
    }
    H[std::size_t(d) * n + d] = hard ? 1e-9 * uniform(seed) : 4 + uniform(seed);
  }
  for (int k = 0; k < n / 8; ++k) {
    const int i = static_cast<int>((uniform(seed) + 0.5) * n), j = static_cast<int>((uniform(seed) + 0.5) * n);
    if (i != j) H[std::size_t(i) * n + j] += uniform(seed);
  }
  if (hard)
    for (int d = 0; d < n; ++d) H[std::size_t(d) * n + (d + 1) % n] += 3;  // only pivoting finds it
  return H;
}

// reused: a factor that holds what was kept of another matrix.
void check_matrix(int n, bool hard, bool expect_sparse, std::uint64_t seed, ImplicitFactor* reused = nullptr) {
  const std::vector<double> H = random_matrix(n, hard, seed);
  ImplicitFactor own(n);
  ImplicitFactor& factor = reused ? *reused : own;
  const int ld = (n + 7) & ~7;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) factor.matrix()[std::size_t(j) * ld + i] = H[std::size_t(i) * n + j];
  CHECK(factor.factor());
  CHECK(factor.sparse() == expect_sparse);
  std::vector<double> b(n), x, y, P_T(std::size_t(n) * ld);
  for (double& value : b) value = uniform(seed);
  x = y = b;
  factor.solve(x.data()), factor.solve_transposed(y.data()), factor.inverse_transposed(P_T.data());
  double error = 0;
  for (int i = 0; i < n; ++i) {
    double forward = -b[i], transposed = -b[i], inverse = -x[i];
    for (int j = 0; j < n; ++j) {
      forward += H[std::size_t(i) * n + j] * x[j], transposed += H[std::size_t(j) * n + i] * y[j];
      inverse += P_T[std::size_t(j) * ld + i] * b[j];
    }
    error = std::max({error, std::abs(forward), std::abs(transposed), std::abs(inverse)});
  }
  CHECK(error < 1e-11);
  if (reused) reused->set_factors(factor.factors());
}

}  // namespace

int main() {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int n : {1, 2, 7, 20, 47}) check_matrix(n, false, false, seed);
    for (const int n : {48, 65, 120}) check_matrix(n, false, true, seed);
    check_matrix(64, true, false, seed);
    ImplicitFactor reused(64);
    for (const bool hard : {true, false, false, true, true}) check_matrix(64, hard, !hard, seed, &reused);
  }
  ImplicitFactor singular(3);
  std::fill_n(singular.matrix(), 24, 0.0);
  CHECK(!singular.factor());
  return test::report();
}

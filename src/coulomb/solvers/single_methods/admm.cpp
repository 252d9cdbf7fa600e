// ADMM on min 1/2 x'Gx + (g + s)'x, x in the cones, with s_N = mu ||z_T|| of the current dual z, which makes its fixed points the
// solutions of the nonlinear complementarity problem (docs/theory.md (C3); [Carpentier2024]). For a pyramid the norm is the polygon's
// support function of -z_T: lambda . c + mu lambda_N h(-c_T) = 0 and c_N >= 0 are the LCP's conditions.
#include <algorithm>
#include <cmath>

#include "coulomb/linalg/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/single_methods/first_order.hpp"

namespace coulomb {
namespace {
constexpr double proximal = 1e-6;
}

bool AdmmSolver::factorise(const ScaledProblem& p) {
  std::copy(p.G.begin(), p.G.begin() + static_cast<std::ptrdiff_t>(p.ld) * p.n, factor_.begin());
  for (int i = 0; i < p.n; ++i)
    factor_[static_cast<std::size_t>(i) * p.ld + i] += rho_ + proximal;
  return dense::cholesky(factor_.data(), p.n, p.ld, work_.data()) > 0;
}

void AdmmSolver::start(const ScaledProblem& p, const Iterate& from) {
  const auto ld = static_cast<std::size_t>(p.ld);
  if (x_.size() < ld) {
    factor_.resize(ld * ld);
    for (auto* v : {&work_, &x_, &y_, &z_, &y_old_})
      v->resize(ld);
  }

  // The penalty from the size of G, as a geometric mean between it and the proximal term.
  double largest = 0;
  for (int i = 0; i < p.n; ++i) {
    double sum = 0;
    for (int j = 0; j < p.n; ++j)
      sum += std::abs(p.G[static_cast<std::size_t>(i) * ld + j]);
    largest = std::max(largest, sum);
  }
  largest = std::max(largest, 1e-12);
  rho_ = std::sqrt(largest * proximal) * std::pow(largest / proximal, 0.3);
  since_update_ = 0;

  // x and y from the impulses at hand, no dual as yet.
  std::copy(from.lambda.begin(), from.lambda.begin() + p.ld, x_.begin());
  std::copy(from.lambda.begin(), from.lambda.begin() + p.ld, y_.begin());
  p.project(y_.data());

  std::fill(z_.begin(), z_.begin() + p.ld, 0.0);
  factorise(p);
}

bool AdmmSolver::run(const ScaledProblem& p, int count, double tolerance, Iterate& iterate, int& iterations) {
  const int n = p.n;
  double* x = x_.data();
  double* y = y_.data();
  double* z = z_.data();
  for (int it = 0; it < count; ++it) {
    ++iterations;

    // x: the quadratic part, with De Saxce's term of the dual at hand.
    for (int i = 0; i < n; ++i)
      x[i] = proximal * x[i] + rho_ * y[i] + z[i] - p.g[i];
    for (int b = 0; b < p.num_blocks; ++b) {
      const Block& block = p.blocks[b];
      if (block.type == BlockType::cone) x[block.row + 2] -= block.mu * tangential_norm(block, z + block.row);
      if (block.type == BlockType::pyramid) {
        double against[max_tangents];
        for (int k = 0; k < block.tangents(); ++k)
          against[k] = -z[block.tangent(k)];
        x[block.row + 2] -= block.mu * pyramid_support(block, against);
      }
    }
    dense::cholesky_solve(factor_.data(), n, p.ld, x);

    // y: the impulses that are admissible next to it.
    std::copy(y, y + n, y_old_.begin());
    for (int i = 0; i < n; ++i)
      y[i] = x[i] - z[i] / rho_;
    p.project(y);

    // z: the dual, by what still parts them.
    double primal = 0;
    double dual = 0;
    for (int i = 0; i < n; ++i) {
      primal = std::max(primal, std::abs(x[i] - y[i]));
      dual = std::max(dual, rho_ * std::abs(y[i] - y_old_[i]));
      z[i] -= rho_ * (x[i] - y[i]);
    }

    // The penalty keeps both residuals of one size.
    if (++since_update_ >= 20) {
      since_update_ = 0;
      if (primal > 10 * dual || dual > 10 * primal) {
        rho_ = std::clamp(primal > dual ? rho_ * 4 : rho_ / 4, 1e-8, 1e8);
        factorise(p);
      }
    }

    if (std::max(primal, dual) <= 0.1 * tolerance) break;
  }

  std::copy(y, y + n, iterate.lambda.begin());
  std::fill(iterate.lambda.begin() + n, iterate.lambda.begin() + p.ld, 0.0);
  iterate.evaluate(p);
  return iterate.residual <= tolerance;
}

}  // namespace coulomb

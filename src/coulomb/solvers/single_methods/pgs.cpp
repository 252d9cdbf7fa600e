// Projected block Gauss-Seidel with an exact solve of each contact problem.
#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/solvers/newton/velocity_factor.hpp"
#include "coulomb/solvers/single_methods/first_order.hpp"

namespace coulomb {
namespace {

COULOMB_SIMD void symmetric_update(const double* row, double x, int ld, double* __restrict c) {
  for (int j = 0; j < ld; ++j)
    c[j] += x * row[j];
}

/// Tangential problem after eliminating the normal impulse: (H + eta I) l_T = -h, ||l_T|| = mu l_N, eta >= 0.
struct LocalSliding {
  double hxx, hxy, hyy;
  double hx, hy;
  double gx, gy;
  double b, inverse, mu;

  /// ||l_T|| - mu l_N of the impulses l at eta.
  double tangent(double eta, double* l) const {
    const double a = hxx + eta;
    const double d = hyy + eta;
    const double det = a * d - hxy * hxy;
    if (!(det > 0)) return INFINITY;
    l[0] = (-d * hx + hxy * hy) / det;
    l[1] = (hxy * hx - a * hy) / det;
    l[2] = -(b + gx * l[0] + gy * l[1]) * inverse;
    return std::sqrt(l[0] * l[0] + l[1] * l[1]) - mu * l[2];
  }
};

/// The same with further tangents.
struct LocalWideSliding {
  int tangents = 2;
  double H[max_tangents][max_tangents];
  double h[max_tangents];
  double g[max_tangents];
  double b, inverse, mu;

  double tangent(double eta, double* l) const {
    // H + eta I, and its solution for -h.
    double A[max_tangents * max_tangents];
    for (int i = 0; i < tangents; ++i)
      for (int j = 0; j < tangents; ++j)
        A[i * tangents + j] = H[i][j] + (i == j ? eta : 0.0);
    if (!invert_small(A, tangents)) return INFINITY;

    double squared = 0;
    double along = 0;
    for (int i = 0; i < tangents; ++i) {
      double sum = 0;
      for (int j = 0; j < tangents; ++j)
        sum -= A[i * tangents + j] * h[j];
      l[i < 2 ? i : i + 1] = sum;
      squared += sum * sum;
      along += g[i] * sum;
    }
    l[2] = -(b + along) * inverse;
    return std::sqrt(squared) - mu * l[2];
  }
};

/// eta >= 0 at which the impulse is on the border of the cone, or 0 where it is inside.
template <class Sliding>
void find_border(const Sliding& s, double size, double* l) {
  // eta = 0 sticks; a singular tangential block has no eta = 0.
  double low = 1e-14 * size;
  double high = size;

  double f_low = s.tangent(low, l);
  if (f_low <= 0) return;

  double f_high = s.tangent(high, l);
  for (int i = 0; i < 60 && !(f_high <= 0); ++i) {
    low = high;
    f_low = f_high;
    high *= 8;
    f_high = s.tangent(high, l);
  }

  // Bisection on a logarithmic scale until secants are safe, then secants with bracketing.
  for (int i = 0; i < 80; ++i) {
    double eta = std::sqrt(low * high);
    if (high < 4 * low && std::isfinite(f_low)) {
      const double t = std::clamp(f_low / (f_low - f_high), 0.05, 0.95);
      eta = low + t * (high - low);
    }

    const double f = s.tangent(eta, l);
    if (f > 0) {
      low = eta;
      f_low = f;
    } else {
      high = eta;
      f_high = f;
    }
    if (high - low <= 1e-15 * high || f == 0) break;
  }
  s.tangent(high, l);
}

/// One row at a time: limits, dry friction, equalities.
void solve_row(const ScaledProblem& p, int b, double* lambda, double* c) {
  const Block& block = p.blocks[b];
  for (int i = block.row; i < block.row + block.size; ++i) {
    const double* row = p.G.data() + static_cast<long>(i) * p.ld;
    if (!(row[i] > 0)) continue;

    double value = lambda[i] - c[i] / row[i];
    if (block.type == BlockType::limit) {
      value = std::max(0.0, value);
    }
    if (block.type == BlockType::box) {
      value = std::clamp(value, -p.bound[b], p.bound[b]);
    }
    symmetric_update(row, value - lambda[i], p.ld, c);
    lambda[i] = value;
  }
}

/// A contact with further tangents, as solve_local_cone() has it.
void solve_wide_cone(const double* G, int ld, const double* b, const Block& block, double* l) {
  const auto at = [&](int i, int j) { return G[static_cast<long>(i) * ld + j]; };
  LocalWideSliding s;
  s.tangents = block.tangents();
  s.b = b[2];
  s.inverse = 1 / at(2, 2);
  s.mu = block.mu;

  double trace = 0;
  for (int k = 0; k < s.tangents; ++k) {
    const int i = block.tangent(k) - block.row;
    s.g[k] = at(i, 2);
    s.h[k] = b[i] - s.g[k] * b[2] * s.inverse;
    trace += at(i, i);
    for (int m = 0; m < s.tangents; ++m) {
      const int j = block.tangent(m) - block.row;
      s.H[k][m] = at(i, j) - at(i, 2) * at(j, 2) * s.inverse;
    }
  }
  find_border(s, std::max(trace, 1e-12 * at(2, 2)), l);
}

/// A pyramid with further tangents, part by part: its first three rows together, then every further tangent in its interval.
void sweep_wide_pyramid(const double* G, int ld, const double* b, const double* from, const Block& block, double* l) {
  double velocity[3];
  for (int i = 0; i < 3; ++i) {
    velocity[i] = b[i];
    for (int j = 3; j < block.size; ++j)
      velocity[i] += G[static_cast<long>(i) * ld + j] * from[j];
  }
  std::copy_n(from, block.size, l);
  solve_local_pyramid(G, ld, velocity, block, l);

  const double most = block.mu * l[2];
  for (int i = 3; i < block.size; ++i) {
    const double* row = G + static_cast<long>(i) * ld;
    double c = b[i];
    for (int j = 0; j < block.size; ++j)
      c += row[j] * l[j];
    const double value = row[i] > 0 ? l[i] - c / row[i] : 0.0;
    l[i] = std::clamp(value, -most, most);
  }
}

/// A contact, with its velocities less what its own impulses do.
void solve_contact(const ScaledProblem& p, const Block& block, double* lambda, double* c) {
  const int r = block.row;
  const double* G = p.G.data() + static_cast<long>(r) * p.ld + r;
  double b[1 + max_tangents];
  double l[1 + max_tangents];
  for (int i = 0; i < block.size; ++i) {
    b[i] = c[r + i];
    for (int j = 0; j < block.size; ++j)
      b[i] -= G[static_cast<long>(i) * p.ld + j] * lambda[r + j];
  }

  // Alone it has an exact solution, which all rows then feel.
  if (block.type == BlockType::cone)
    solve_local_cone(G, p.ld, b, block, l);
  else if (block.size == 3)
    solve_local_pyramid(G, p.ld, b, block, l);
  else
    sweep_wide_pyramid(G, p.ld, b, lambda + r, block, l);

  for (int i = 0; i < block.size; ++i) {
    if (l[i] == lambda[r + i]) continue;
    symmetric_update(p.G.data() + static_cast<long>(r + i) * p.ld, l[i] - lambda[r + i], p.ld, c);
    lambda[r + i] = l[i];
  }
}

}  // namespace

void solve_local_cone(const double* G, int ld, const double* b, const Block& block, double* l) {
  // No impulse, or no friction.
  const double gnn = G[2 * static_cast<long>(ld) + 2];
  std::fill_n(l, block.size, 0.0);
  if (b[2] >= 0 || !(gnn > 0)) return;
  if (block.mu == 0) {
    l[2] = -b[2] / gnn;
    return;
  }

  // Sticking or sliding, the normal impulse eliminated.
  const double inverse = 1 / gnn;
  if (block.size > 3) return solve_wide_cone(G, ld, b, block, l);
  const double gx = G[2];
  const double gy = G[ld + 2];
  const LocalSliding s{G[0] - gx * gx * inverse,
                       G[1] - gx * gy * inverse,
                       G[ld + 1] - gy * gy * inverse,
                       b[0] - gx * b[2] * inverse,
                       b[1] - gy * b[2] * inverse,
                       gx,
                       gy,
                       b[2],
                       inverse,
                       block.mu};
  find_border(s, std::max(G[0] + G[ld + 1], 1e-12 * gnn), l);
}

bool sweep_pgs(const ScaledProblem& p, int sweeps, double tolerance, Iterate& iterate, int& iterations) {
  double* lambda = iterate.lambda.data();
  double* c = iterate.c.data();
  iterate.evaluate(p);

  for (int sweep = 0; sweep < sweeps && !(iterate.residual <= tolerance); ++sweep) {
    ++iterations;

    // There and back.
    for (int direction = 0; direction < 2; ++direction)
      for (int i = 0; i < p.num_blocks; ++i) {
        const int b = direction == 0 ? i : p.num_blocks - 1 - i;
        if (p.blocks[b].is_contact()) {
          solve_contact(p, p.blocks[b], lambda, c);
        } else {
          solve_row(p, b, lambda, c);
        }
      }

    // Afresh: the running c gathers rounding errors.
    iterate.evaluate(p);
    if (!std::isfinite(iterate.residual)) return false;
  }
  return iterate.residual <= tolerance;
}

}  // namespace coulomb

// Synthetic constraint problems from free rigid bodies, and an independent check of a solution (in physical units, through J).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb::test {

/// Reproducible on every platform, unlike the distributions of <random>.
struct Random {
  std::uint64_t state;
  explicit Random(std::uint64_t seed) : state(seed * 0x9E3779B97F4A7C15ull + 1) {}
  double uniform(double a, double b) {
    state += 0x9E3779B97F4A7C15ull;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    return a + (b - a) * static_cast<double>(z >> 11) * 0x1p-53;
  }
  double normal() {
    const double u = uniform(1e-300, 1), v = uniform(0, 1);
    return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
};

using Vec3 = std::array<double, 3>;
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline Vec3 unit(Vec3 a) {
  const double n = std::sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
  return {a[0] / n, a[1] / n, a[2] / n};
}

/// All bodies first, then the rows. Bodies of six degrees of freedom (linear, angular, about their own centres) and the rows that join them.
struct World {
  std::vector<double> inverse_mass;  ///< per dof
  std::vector<double> v;             ///< free velocity
  std::vector<Vec3> center;
  std::vector<std::vector<double>> J;
  std::vector<Block> blocks;
  std::vector<double> bias;

  int add_body(double mass, double inertia, Vec3 at, Vec3 velocity = {0, 0, -0.01}, Vec3 spin = {0, 0, 0}) {
    for (int i = 0; i < 3; ++i) inverse_mass.push_back(1 / mass);
    for (int i = 0; i < 3; ++i) inverse_mass.push_back(1 / inertia);
    for (double x : velocity) v.push_back(x);
    for (double x : spin) v.push_back(x);
    center.push_back(at);
    return static_cast<int>(center.size()) - 1;
  }
  std::vector<double> row(int a, int b, Vec3 point, Vec3 direction) const {
    std::vector<double> r(v.size(), 0.0);
    for (int side = 0; side < 2; ++side) {
      const int body = side == 0 ? a : b;
      if (body < 0) continue;
      const double sign = side == 0 ? 1 : -1;
      const Vec3 arm = {point[0] - center[body][0], point[1] - center[body][1], point[2] - center[body][2]};
      const Vec3 m = cross(arm, direction);
      for (int i = 0; i < 3; ++i) r[6 * body + i] += sign * direction[i], r[6 * body + 3 + i] += sign * m[i];
    }
    return r;
  }
  void add_contact(int a, int b, Vec3 point, Vec3 normal, double mu, double bias_n = 0) {
    normal = unit(normal);
    const Vec3 other = std::abs(normal[0]) < 0.6 ? Vec3{1, 0, 0} : Vec3{0, 1, 0};
    const Vec3 t1 = unit(cross(other, normal)), t2 = cross(normal, t1);
    blocks.push_back({BlockType::cone, static_cast<int>(J.size()), 3, mu, 0, false});
    for (const Vec3& d : {t1, t2, normal}) J.push_back(row(a, b, point, d)), bias.push_back(0);
    bias.back() = bias_n;
  }
  void add_row(BlockType type, std::vector<double> r, double bound = 0, double bias_row = 0) {
    blocks.push_back({type, static_cast<int>(J.size()), 1, 0, bound, false});
    J.push_back(std::move(r));
    bias.push_back(bias_row);
  }
  ConstraintProblem problem() const {
    ConstraintProblem p;
    const int n = static_cast<int>(J.size());
    p.resize(n);
    p.resize_matrix();
    p.blocks = blocks;
    for (int i = 0; i < n; ++i) {
      p.g[i] = bias[i];
      for (std::size_t k = 0; k < v.size(); ++k) p.g[i] += J[i][k] * v[k];
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < v.size(); ++k) sum += J[i][k] * inverse_mass[k] * J[j][k];
        p.G[static_cast<std::size_t>(i) * p.ld + j] = sum;
      }
    }
    return p;
  }
  /// The same as a sparse Y = J M^-1/2 with one tree per body and without G. Every row moves two bodies at most.
  ConstraintProblem factored_problem() const {
    ConstraintProblem p = problem();
    p.has_G = false;
    p.G.clear();
    p.tree_size.assign(center.size(), 6);
    for (const Block& block : blocks) {
      std::array<RowSegment, 2>& segments = p.segments.emplace_back();
      int used = 0;
      for (int body = 0; body < static_cast<int>(center.size()); ++body) {
        if (!moves(block, body)) continue;
        RowSegment& segment = segments.at(used++);
        segment.tree = body;
        segment.start = static_cast<int>(p.Y.size());
        for (int i = block.row; i < block.row + block.size; ++i)
          for (int k = 0; k < 8; ++k)
            p.Y.push_back(k < 6 ? J[i][6 * body + k] * std::sqrt(inverse_mass[6 * body + k]) : 0.0);
      }
    }
    return p;
  }
  bool moves(const Block& block, int body) const {
    for (int i = block.row; i < block.row + block.size; ++i)
      for (int k = 0; k < 6; ++k)
        if (J[i][6 * body + k] != 0) return true;
    return false;
  }
  /// M^-1 J^T lambda: what impulses do to the velocities.
  std::vector<double> velocity_change(const std::vector<double>& lambda) const {
    std::vector<double> dv = wrench(lambda);
    for (std::size_t k = 0; k < dv.size(); ++k) dv[k] *= inverse_mass[k];
    return dv;
  }
  /// J^T lambda, which is unique where impulses are not.
  std::vector<double> wrench(const std::vector<double>& lambda) const {
    std::vector<double> f(v.size(), 0.0);
    for (std::size_t i = 0; i < J.size(); ++i)
      for (std::size_t k = 0; k < v.size(); ++k) f[k] += J[i][k] * lambda[i];
    return f;
  }
};

/// Mean diagonal of a block of G + R, or the largest of all where the block is zero.
inline double block_scale(const ConstraintProblem& p, const Block& block) {
  double own = 0, largest = 0;
  for (const Block& b : p.blocks) {
    double trace = 0;
    for (int i = b.row; i < b.row + b.size; ++i) trace += p.G[static_cast<std::size_t>(i) * p.ld + i] + p.R[i];
    if (b.row == block.row) own = trace / b.size;
    largest = std::max(largest, trace / b.size);
  }
  return own > 1e-14 * largest ? own : largest > 0 ? largest : 1;
}

/// Velocity that the compliance of the result's last level adds: E (lambda - lambda_0), or E lambda where there is one level. Without W. Sharper levels
/// do not keep their impulses: none then, they are exact.
inline std::vector<double> compliance_velocity(const ConstraintProblem& p, const SolverResult& r) {
  std::vector<double> out(r.lambda.size());
  if (r.sharper_levels > 0) return out;
  for (const Block& b : p.blocks)
    for (int i = b.row; i < b.row + b.size; ++i)
      out[i] = r.compliance * block_scale(p, b) * (r.lambda[i] - (r.levels > 0 ? r.lambda_0[i] : 0.0));
  return out;
}

/// c recomputed from the problem, and the worst violation of the block laws relative to the block's sizes of c and lambda. extra: added to c.
inline double violation(const ConstraintProblem& p, const std::vector<double>& lambda,
                        const std::vector<double>& extra = {}) {
  double worst = 0, ref = 1e-300;
  for (const Block& b : p.blocks)
    for (int i = b.row; i < b.row + b.size; ++i)
      if (!b.speculative || p.g[i] < 0) ref = std::max(ref, std::abs(p.g[i]) / std::sqrt(block_scale(p, b)));
  for (const Block& b : p.blocks) {
    const double s = block_scale(p, b), g_size = ref * std::sqrt(s), l_size = ref / std::sqrt(s);
    double c[6] = {0};
    for (int i = 0; i < b.size; ++i) {
      c[i] = p.g[b.row + i] + p.R[b.row + i] * lambda[b.row + i] + (extra.empty() ? 0.0 : extra[b.row + i]);
      for (int j = 0; j < p.n; ++j) c[i] += p.G[static_cast<std::size_t>(b.row + i) * p.ld + j] * lambda[j];
    }
    const double* l = lambda.data() + b.row;
    double bad = 0;
    if (b.type == BlockType::cone) {
      const double lt = std::hypot(l[0], l[1]), ct = std::hypot(c[0], c[1]);
      bad = std::max(bad, (lt - b.mu * l[2]) / l_size);  // cone
      bad = std::max(bad, -l[2] / l_size);
      bad = std::max(bad, -c[2] / g_size);  // no approach
      const double big = std::max(l_size, std::abs(l[2]));
      bad = std::max(bad, std::abs(l[2] * c[2]) / (big * g_size));  // complementarity
      bad = std::max(bad,
                     std::abs(l[0] * c[0] + l[1] * c[1] + b.mu * l[2] * ct) / (big * g_size));  // maximum dissipation
    } else if (b.type == BlockType::limit) {
      bad = std::max({-l[0] / l_size, -c[0] / g_size, std::abs(l[0] * c[0]) / (std::max(l_size, l[0]) * g_size)});
    } else if (b.type == BlockType::box) {
      bad = (std::abs(l[0]) - b.bound) / l_size;
      bad = std::max(bad, std::abs(l[0] * c[0] + b.bound * std::abs(c[0])) / (std::max(l_size, b.bound) * g_size));
    } else {
      for (int i = 0; i < b.size; ++i) bad = std::max(bad, std::abs(c[i]) / g_size);
    }
    if (!(bad <= worst)) worst = bad;
  }
  return worst;
}

/// Of the law of what a solver says it solved: the last level of the regularised problem.
inline double violation(const ConstraintProblem& p, const SolverResult& r) {
  return violation(p, r.lambda, compliance_velocity(p, r));
}

/// A start from everything that a step remembers, for the blocks of the same problem.
inline WarmStart warm_from(const SolverResult& r) {
  return {r.lambda, r.lambda_0, r.lambda_1, std::vector<std::uint8_t>(r.modes.size(), 1), r.modes};
}

inline void add_box_on_ground(World& w, int body, double mu, double half = 0.1, double bias = 0) {
  for (double sx : {-1.0, 1.0})
    for (double sy : {-1.0, 1.0})
      w.add_contact(body, -1, {w.center[body][0] + sx * half, w.center[body][1] + sy * half, w.center[body][2] - half},
                    {0, 0, 1}, mu, bias);
}

inline World stack(int boxes, double ratio, double mu, Vec3 push = {0, 0, 0}) {
  World w;
  double mass = 1;
  for (int i = 0; i < boxes; ++i, mass *= ratio)
    w.add_body(mass, mass * 0.04 / 6, {0, 0, 0.1 + 0.2 * i}, {push[0] * (i + 1), push[1], -0.01 + push[2]});
  for (int i = 0; i < boxes; ++i)
    for (double sx : {-0.1, 0.1})
      for (double sy : {-0.1, 0.1}) w.add_contact(i, i - 1, {sx, sy, 0.2 * i}, {0, 0, 1}, mu);
  return w;
}

/// A few bodies with random contacts between them and the ground.
inline World random_world(std::uint64_t seed, int contacts, int bodies, bool extras = false) {
  Random r(seed);
  World w;
  auto vector = [&](double s) { return Vec3{s * r.normal(), s * r.normal(), s * r.normal()}; };
  for (int i = 0; i < bodies; ++i)
    w.add_body(std::exp(r.normal()), 0.02 * std::exp(r.normal()), vector(0.3), vector(0.3), vector(1.0));
  for (int i = 0; i < contacts; ++i) {
    const int a = static_cast<int>(r.uniform(0, bodies)), other = static_cast<int>(r.uniform(-1, bodies)),
              b = other == a ? -1 : other;
    Vec3 n = vector(1.0);
    n[2] = std::abs(n[2]) + 0.5;  // one half-space of normals: separation is always possible
    if (b > a) n = {-n[0], -n[1], -n[2]};
    const Vec3 arm = vector(0.2);
    w.add_contact(a, b, {w.center[a][0] + arm[0], w.center[a][1] + arm[1], w.center[a][2] + arm[2]}, n,
                  r.uniform(0.05, 1.2));
  }
  if (extras) {
    for (BlockType type : {BlockType::limit, BlockType::box, BlockType::equality, BlockType::limit, BlockType::box}) {
      std::vector<double> row(w.v.size(), 0.0);
      for (int i = 0; i < 3; ++i)
        row[static_cast<std::size_t>(r.uniform(0, static_cast<double>(row.size())))] = r.normal();
      w.add_row(type, row, type == BlockType::box ? r.uniform(0.01, 0.3) : 0);
    }
  }
  return w;
}

}  // namespace coulomb::test

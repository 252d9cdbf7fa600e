// One pyramid block alone (for Gauss-Seidel): sticking, then the features of the polygon, from the one nearest to the sticking impulse
// outwards. Every candidate is a system of at most three equations; the first whose residual vanishes is the solution, and where none
// does (a frictional contact of its own may have none), the least residual.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/single_methods/first_order.hpp"

namespace coulomb {
namespace {

constexpr double solved = 1e-13;

struct Local {
  const double* G;
  int ld;
  const double* b;
  double at(int i, int j) const { return G[static_cast<long>(i) * ld + j]; }
  void velocity(const double* l, double* c) const {
    for (int i = 0; i < 3; ++i)
      c[i] = b[i] + at(i, 0) * l[0] + at(i, 1) * l[1] + at(i, 2) * l[2];
  }
};

/// c = 0.
bool stick(const Local& p, double* l) {
  const double inverse = 1 / p.at(2, 2);
  const double gx = p.at(0, 2);
  const double gy = p.at(1, 2);

  // The tangential problem, the normal impulse eliminated.
  const double xx = p.at(0, 0) - gx * gx * inverse;
  const double xy = p.at(0, 1) - gx * gy * inverse;
  const double yy = p.at(1, 1) - gy * gy * inverse;
  const double hx = p.b[0] - gx * p.b[2] * inverse;
  const double hy = p.b[1] - gy * p.b[2] * inverse;
  const double det = xx * yy - xy * xy;
  if (!(det > 1e-14 * (p.at(0, 0) * p.at(1, 1)))) return false;

  l[0] = (-yy * hx + xy * hy) / det;
  l[1] = (xy * hx - xx * hy) / det;
  l[2] = -(p.b[2] + gx * l[0] + gy * l[1]) * inverse;
  return std::isfinite(l[0]) && std::isfinite(l[1]);
}

/// On a side: c_N = 0 and t . c = 0 in (lambda_N, shift along t); at a vertex c_N = 0 in lambda_N.
bool slide(const Local& p, const Block& block, const FrictionPolygon& polygon, int feature, double* l) {
  const double u[3] = {block.mu * polygon.point[feature][0], block.mu * polygon.point[feature][1], 1};
  const double nn = p.at(2, 0) * u[0] + p.at(2, 1) * u[1] + p.at(2, 2);
  const double tx = -polygon.direction[feature][1];
  const double ty = polygon.direction[feature][0];
  double normal;
  double shift = 0;
  if (polygon.is_side(feature)) {
    double row[3];
    for (int j = 0; j < 3; ++j)
      row[j] = tx * p.at(0, j) + ty * p.at(1, j);
    const double nt = p.at(2, 0) * tx + p.at(2, 1) * ty;
    const double tn = row[0] * u[0] + row[1] * u[1] + row[2];
    const double tt = row[0] * tx + row[1] * ty;
    const double bt = tx * p.b[0] + ty * p.b[1];
    const double det = nn * tt - nt * tn;
    if (det == 0) return false;
    normal = (-tt * p.b[2] + nt * bt) / det;
    shift = (tn * p.b[2] - nn * bt) / det;
  } else {
    if (nn == 0) return false;
    normal = -p.b[2] / nn;
  }

  l[0] = normal * u[0] + shift * tx;
  l[1] = normal * u[1] + shift * ty;
  l[2] = normal;
  return std::isfinite(normal) && std::isfinite(shift);
}

}  // namespace

void solve_local_pyramid(const double* G, int ld, const double* b, const Block& contact, double* l) {
  const Local p{G, ld, b};
  Block block = contact;
  block.size = 3;
  l[0] = l[1] = l[2] = 0;

  // No impulse, or no friction.
  if (b[2] >= 0 || !(p.at(2, 2) > 0)) return;
  if (block.mu == 0) {
    l[2] = -b[2] / p.at(2, 2);
    return;
  }

  // The best candidate so far; true where it is the solution.
  const double size = std::max({std::abs(b[0]), std::abs(b[1]), std::abs(b[2])});
  double best = INFINITY;
  double candidate[3];
  double c[3];
  const auto consider = [&] {
    p.velocity(candidate, c);
    const double residual = pyramid_residual(block, candidate, c);
    if (residual < best) {
      best = residual;
      std::copy_n(candidate, 3, l);
    }
    return residual <= solved * size;
  };

  // Sticking, else the features outwards from its impulse.
  const FrictionPolygon& polygon = friction_polygon(block);
  int start = polygon.nearest_side(-b[0], -b[1]);
  if (stick(p, candidate)) {
    if (consider()) return;
    start = polygon.nearest_side(candidate[0], candidate[1]);
  }

  for (int k = 0; k < 2 * polygon.sides; ++k) {  // 0, 1, -1, 2, -2, ..
    const int feature = polygon.neighbour(start, k % 2 == 1 ? (k + 1) / 2 : -k / 2);
    if (slide(p, block, polygon, feature, candidate) && consider()) return;
  }
  if (!(best < INFINITY)) {
    l[2] = -b[2] / p.at(2, 2);
  }
}

}  // namespace coulomb

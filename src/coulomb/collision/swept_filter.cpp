#include "coulomb/collision/swept_filter.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr double rounding = 1e-12;

double extent_along(const SweptGeometry& g, const double* axis) {
  double sum = 0;
  for (int k = 0; k < 3; ++k)
    sum += g.half[k] * std::abs(axis[0] * g.rotation[k] + axis[1] * g.rotation[3 + k] + axis[2] * g.rotation[6 + k]);
  return sum;
}

}  // namespace

bool swept_spheres_meet(const SweptGeometry& a, const SweptGeometry& b) {
  double p[3], w[3];
  sub3(b.centre, a.centre, p);
  sub3(b.travel, a.travel, w);
  const double pw = dot3(p, w), ww = dot3(w, w);
  const double s = pw < 0 ? std::min(1.0, -pw / ww) : 0.0;
  axpy3(s, w, p);
  const double reach = (a.radius + b.radius + a.deviation + b.deviation) * (1 + rounding);
  return !(dot3(p, p) > reach * reach);
}

// Axes shorter than 1 make the test more careful only.
bool swept_boxes_meet(const SweptGeometry& a, const SweptGeometry& b) {
  double p[3], w[3];
  sub3(b.centre, a.centre, p);
  sub3(b.travel, a.travel, w);
  const double size = a.radius + b.radius;
  const double margin = a.deviation + b.deviation + a.sway + b.sway + rounding * (size + norm3(p) + norm3(w));
  const auto apart = [&](const double* axis) {
    const double start = dot3(axis, p), end = start + dot3(axis, w);
    const double least = (start > 0) == (end > 0) ? std::min(std::abs(start), std::abs(end)) : 0.0;
    return least > extent_along(a, axis) + extent_along(b, axis) + margin;
  };
  double axis[3], other[3], across[3];
  for (const SweptGeometry* g : {&a, &b})
    for (int k = 0; k < 3; ++k) {
      for (int i = 0; i < 3; ++i) axis[i] = g->rotation[3 * i + k];
      if (apart(axis)) return false;
    }
  for (int k = 0; k < 3; ++k)
    for (int l = 0; l < 3; ++l) {
      for (int i = 0; i < 3; ++i) axis[i] = a.rotation[3 * i + k], other[i] = b.rotation[3 * i + l];
      cross3(axis, other, across);
      if (apart(across)) return false;
    }
  return true;
}

bool swept_box_meets_half_space(const double up[3], double height, const SweptGeometry& a) {
  const double start = dot3(up, a.centre) - height, end = start + dot3(up, a.travel);
  const double margin = a.deviation + a.sway + rounding * (a.radius + std::abs(height) + norm3(a.travel));
  return !(std::min(start, end) > extent_along(a, up) + margin);
}

}  // namespace coulomb

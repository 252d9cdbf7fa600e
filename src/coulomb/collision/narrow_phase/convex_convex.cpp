// Steps of the general convex pair: cached axis, GJK, EPA if the cores overlap, exact features, manifold, selection.
#include "coulomb/collision/narrow_phase/convex_convex.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/narrow_phase/convex_witness.hpp"
#include "coulomb/collision/narrow_phase/face_clipping.hpp"
#include "coulomb/collision/narrow_phase/manifold_selection.hpp"

namespace coulomb {

namespace {

/// The cores are farther apart than `reach` along `axis`, of any length.
bool separates(const Shape& a, const Shape& b, double reach, const double axis[3], int hints[2]) {
  const double d[3] = {-axis[0], -axis[1], -axis[2]};
  MinkowskiVertex v;
  minkowski_support(a, b, d, hints, v);
  const double bound = dot3(axis, v.w);
  return bound > 0 && bound * bound > reach * reach * dot3(axis, axis);
}

}  // namespace

/// Smooth cores are refined from a coarse simplex, which is improved until the exact finish passes its checks.
bool convex_witness(const Shape& a, const Shape& b, double margin, double axis[3], int hints[2], Witness& w) {
  const bool smooth = !has_polyhedral_core(a) || !has_polyhedral_core(b);
  const double sum = bounding_radius(a) + bounding_radius(b);
  const double reach = std::max(0.0, margin + core_radius(a) + core_radius(b));

  // Lengths are judged by the smaller shape: beside a much larger one it would be small itself. Below is rounding.
  const double scale = std::min(sum, 100 * std::min(bounding_radius(a), bounding_radius(b)));
  const double rounding = 1e-12 * sum;

  // Polyhedral cores need the last attempt alone.
  for (int attempt = smooth ? 0 : 2; attempt < 3; ++attempt) {
    static constexpr double tolerances[3] = {1e-3, 1e-6, 1e-11};
    static constexpr double doubts[3] = {1e-3, 1e-6, 2e-2};
    const double tolerance = tolerances[attempt];
    const double doubt = smooth ? doubts[attempt] : 1e-9;

    // The last normal makes a poor first tetrahedron of smooth cores: unless it separates, start from the centres.
    if (smooth) {
      if (separates(a, b, reach, axis, hints)) return false;
      double ca[3];
      double cb[3];
      bounding_center(a, ca);
      bounding_center(b, cb);
      sub3(ca, cb, axis);
    }

    // Apart, overlapping or too far.
    Simplex simplex;
    const GjkStatus status = gjk(a, b, reach, smooth ? tolerance : 0.0, axis, hints, simplex);
    if (status == GjkStatus::beyond) return false;

    // The normal: along the shortest connection, or that of the nearest face of A - B.
    double n[3];
    if (status == GjkStatus::apart) {
      const double length = norm3(simplex.closest);
      for (int i = 0; i < 3; ++i)
        n[i] = simplex.closest[i] / length;
    } else {
      bool solid;
      epa(a, b, smooth ? std::max(0.1 * tolerance * scale, rounding) : 0.0, hints, simplex, n, solid);
      if (!solid) {
        // A - B is flat: a point of it, and the direction in which it has no extent.
        for (int i = 0; i < simplex.count; ++i)
          simplex.weight[i] = i == 0 ? 1.0 : 0.0;
        simplex.closest[0] = simplex.closest[1] = simplex.closest[2] = 0;
        copy3(n, axis);
        refine_witness(a, b, simplex, n, 1e-6 * sum, w);
        return w.distance <= margin;
      }
    }

    // The exact features; when they fail their checks, once more with a finer simplex.
    if (refine_witness(a, b, simplex, n, std::max(doubt * scale, rounding), w)) break;
  }
  copy3(w.normal, axis);
  return w.distance <= margin;
}

void single_contact(const Shape& a, const Shape& b, const Witness& w, Contact& c) {
  c = Contact{};
  c.distance = w.distance;
  copy3(w.normal, c.normal);
  copy3(w.point_a, c.point_a);
  copy3(w.point_b, c.point_b);
  for (int i = 0; i < 3; ++i)
    c.point[i] = 0.5 * (w.point_a[i] + w.point_b[i]);
  c.rule = MotionRule::support;

  // The pair's only witness: warm starts carry over when it changes feature.
  c.feature = 1 << 30;
  witness_patches(a, b, w, c);
}

int collide_convex(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                   CollisionCache::Pair& cache, Contact* out) {
  // Start from the last step's axis, or from the line between the centres.
  double axis[3];
  int hints[2] = {-1, -1};
  int reference = -1;
  const bool cached = !options.stateless && dot3(cache.axis, cache.axis) > 0;
  if (cached) {
    copy3(cache.axis, axis);
    hints[0] = cache.hint_a;
    hints[1] = cache.hint_b;
    reference = cache.reference;
  } else {
    double ca[3];
    double cb[3];
    bounding_center(a, ca);
    bounding_center(b, cb);
    sub3(ca, cb, axis);
  }

  Witness w;
  const bool touching = convex_witness(a, b, margin, axis, hints, w);

  // What the next step starts from.
  const bool write = !options.stateless && !options.frozen_cache;
  if (write) {
    const double length = norm3(axis);
    for (int i = 0; i < 3; ++i)
      cache.axis[i] = length > 0 ? axis[i] / length : 0.0;
    cache.hint_a = hints[0];
    cache.hint_b = hints[1];
    if (!touching) {
      cache.num_kept = 0;
      cache.reference = -1;
    }
  }
  if (!touching) return 0;

  // The manifold, unless it misses the deepest place or is a single point that the witness knows better.
  Candidate candidates[max_candidates];
  const double size = std::min(bounding_radius(a), bounding_radius(b));
  const double kept_sine = std::min(most_kept_sine, options.kept_face_error / (2 * size));
  int count = clip_manifold(a, b, w, margin, kept_sine, reference, candidates);
  double deepest = 1e300;
  for (int i = 0; i < count; ++i)
    deepest = std::min(deepest, candidates[i].distance);
  if (count == 0 || (count == 1 && w.exact) || deepest > w.distance + 2e-3 * size + 0.1 * std::abs(w.distance)) {
    single_contact(a, b, w, out[0]);
    if (write) {
      cache.num_kept = 0;
      cache.reference = -1;
    }
    return 1;
  }

  // The points that stay.
  CollisionCache::Pair kept = cache;
  if (options.stateless) kept.num_kept = 0;
  count = select_points(candidates, count, size, &kept);
  if (write) {
    cache.reference = reference;
    cache.num_kept = kept.num_kept;
    std::copy(kept.kept, kept.kept + 8, cache.kept);
  }

  for (int i = 0; i < count; ++i)
    fill_contact(a, b, candidates[i], out[i]);
  return count;
}

}  // namespace coulomb

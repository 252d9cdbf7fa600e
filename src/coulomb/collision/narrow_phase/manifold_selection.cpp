// Deepest point, the farthest from it, the extremes on each side of that line; the old set stays while it serves as
// well.
#include "coulomb/collision/narrow_phase/manifold_selection.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"

namespace coulomb {

namespace {

/// Signed double area of (p, q, r) seen along n.
double side(const double* n, const double* p, const double* q, const double* r) {
  double e[3];
  double f[3];
  double m[3];
  sub3(q, p, e);
  sub3(r, p, f);
  cross3(e, f, m);
  return dot3(n, m);
}

/// Up to four points that lie below the limit and span the most; how many.
int choose_four(const Candidate* c, int count, double limit, int* chosen) {
  // The deepest, and the farthest from it.
  const double* n = c[0].normal;
  int deepest = 0;
  for (int i = 1; i < count; ++i)
    if (c[i].distance < c[deepest].distance) {
      deepest = i;
    }
  const double* p = c[deepest].point_a;
  int far = -1;
  double best = 0;
  for (int i = 0; i < count; ++i) {
    double d[3];
    sub3(c[i].point_a, p, d);
    if (c[i].distance <= limit && dot3(d, d) > best) {
      best = dot3(d, d);
      far = i;
    }
  }

  int num = 0;
  chosen[num++] = deepest;
  if (far < 0) return num;
  chosen[num++] = far;

  // The extremes on either side of the line through both.
  int left = -1;
  int right = -1;
  double high = 0;
  double low = 0;
  for (int i = 0; i < count; ++i) {
    if (c[i].distance > limit || i == deepest || i == far) continue;
    const double area = side(n, p, c[far].point_a, c[i].point_a);
    if (area > high * (1 + 1e-9)) {
      high = area;
      left = i;
    }
    if (area < low * (1 + 1e-9)) {
      low = area;
      right = i;
    }
  }

  if (left >= 0) chosen[num++] = left;
  if (right >= 0) chosen[num++] = right;
  return num;
}

/// Area of the hull of at most four points: of any four, the sum of two triangles over the longest ordering.
double area_of(const Candidate* c, const int* set, int num) {
  if (num < 3) return 0;
  const double* n = c[0].normal;
  if (num == 3) {
    return std::abs(side(n, c[set[0]].point_a, c[set[1]].point_a, c[set[2]].point_a));
  }
  static constexpr int orders[3][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {0, 1, 3, 2}};
  double best = 0;
  for (const auto& o : orders) {
    const double a = side(n, c[set[o[0]]].point_a, c[set[o[1]]].point_a, c[set[o[2]]].point_a) +
                     side(n, c[set[o[0]]].point_a, c[set[o[2]]].point_a, c[set[o[3]]].point_a);
    best = std::max(best, std::abs(a));
  }
  return best;
}

}  // namespace

int select_points(Candidate* points, int count, double size, CollisionCache::Pair* cache) {
  // Few points all stay.
  const double band = 2e-3 * size;
  int chosen[8];
  int num = 0;
  if (count <= 4) {
    for (; num < count; ++num)
      chosen[num] = num;
  } else {
    // Of many, four within a band of the deepest; where one corner or edge is deepest, four of all.
    double deepest = points[0].distance;
    for (int i = 1; i < count; ++i)
      deepest = std::min(deepest, points[i].distance);
    num = choose_four(points, count, deepest + band, chosen);
    if (num < 3) {
      num = choose_four(points, count, 1e300, chosen);
    }

    // The old set, if all its points are there, are about as deep, and span about as much.
    if (cache != nullptr && cache->num_kept > 0 && cache->num_kept <= 4) {
      int old[8];
      int found = 0;
      double old_deepest = 1e300;
      for (int k = 0; k < cache->num_kept; ++k)
        for (int i = 0; i < count; ++i)
          if (points[i].feature == cache->kept[k] && points[i].distance <= deepest + 2 * band) {
            old[found++] = i;
            old_deepest = std::min(old_deepest, points[i].distance);
            break;
          }

      if (found == cache->num_kept && found >= std::min(num, 3) && deepest >= old_deepest - 0.25 * band &&
          area_of(points, old, found) >= 0.75 * area_of(points, chosen, num)) {
        num = found;
        std::copy(old, old + found, chosen);
      }
    }
  }

  // By feature: the order of the points does not depend on which is deepest.
  for (int i = 1; i < num; ++i)
    for (int k = i; k > 0 && points[chosen[k]].feature < points[chosen[k - 1]].feature; --k)
      std::swap(chosen[k], chosen[k - 1]);

  Candidate result[4];
  num = std::min(num, 4);  // as it is; the compiler cannot know
  for (int i = 0; i < num; ++i)
    result[i] = points[chosen[i]];
  for (int i = 0; i < num; ++i)
    points[i] = result[i];

  // What the next step may keep.
  if (cache != nullptr) {
    cache->num_kept = num;
    for (int i = 0; i < num; ++i)
      cache->kept[i] = points[i].feature;
  }
  return num;
}

}  // namespace coulomb

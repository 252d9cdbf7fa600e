// Half-space against a convex mesh: the vertices below the plane, at most four of them (manifold_selection.hpp).
//
// Few vertices: look at all. Many: climb from the cached vertex to the deepest one (a linear function on a convex
// polytope has no other local optimum), then gather what lies within a band of it; that set is connected along edges.
// The choice keeps the last step's points while they are nearly as good as a fresh one, so that forces do not hop
// between vertices of a flat side.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

constexpr int few_vertices = 32;

/// Of the largest flat face that is seen whole.
constexpr int max_candidates = 1024;

/// Of the body's size.
constexpr double band_fraction = 2e-3;

/// What is kept has at least these shares of the fresh choice's area and diagonal.
constexpr double keep_area = 0.75;
constexpr double keep_length = 0.75;

/// Vertices that may be chosen.
struct Candidates {
  int count = 0;
  int vertex[max_candidates];
  double height[max_candidates];
  int deepest = 0;  // position in the arrays, the lowest index of equals
};

/// Heights over the plane in the mesh's own frame.
struct LocalPlane {
  const double* vertices;
  double up[3];
  double offset;
  double height(int v) const { return dot3(up, vertices + 3 * v) - offset; }
};

/// Finds the deepest.
void find_deepest(Candidates& c) {
  for (int k = 0; k < c.count; ++k)
    if (c.height[k] < c.height[c.deepest] || (c.height[k] == c.height[c.deepest] && c.vertex[k] < c.vertex[c.deepest]))
      c.deepest = k;
}

/// All vertices below the limit.
void all_below(const LocalPlane& plane, int num_vertices, double limit, Candidates& c) {
  for (int v = 0; v < num_vertices; ++v) {
    const double height = plane.height(v);
    if (height <= limit) {
      c.vertex[c.count] = v;
      c.height[c.count++] = height;
    }
  }
  find_deepest(c);
}

/// The deepest vertex: a linear function on a convex polytope has no other local optimum.
int climb_down(const ConvexMesh& mesh, const LocalPlane& plane, int start) {
  int best = start;
  double height = plane.height(best);
  for (bool moved = true; moved;) {
    moved = false;

    // After a better neighbour the loop starts over at it.
    for (int k = mesh.neighbour_start[best], end = mesh.neighbour_start[best + 1]; k < end; ++k) {
      const int v = mesh.neighbours[k];
      const double h = plane.height(v);
      if (h < height) {
        height = h;
        best = v;
        moved = true;
        end = mesh.neighbour_start[best + 1];
        k = mesh.neighbour_start[best] - 1;
      }
    }
  }
  return best;
}

/// Every vertex within `limit`, reached from `start` along edges, sorted by index.
void gather_band(const ConvexMesh& mesh, const LocalPlane& plane, int start, double limit, Candidates& c) {
  // Breadth first along edges.
  c.vertex[0] = start;
  c.height[0] = plane.height(start);
  c.count = 1;
  for (int next = 0; next < c.count; ++next) {
    const int u = c.vertex[next];
    for (int k = mesh.neighbour_start[u]; k < mesh.neighbour_start[u + 1] && c.count < max_candidates; ++k) {
      const int v = mesh.neighbours[k];
      const double height = plane.height(v);
      if (height > limit || std::find(c.vertex, c.vertex + c.count, v) != c.vertex + c.count) continue;
      c.vertex[c.count] = v;
      c.height[c.count++] = height;
    }
  }

  std::sort(c.vertex, c.vertex + c.count);
  for (int k = 0; k < c.count; ++k)
    c.height[k] = plane.height(c.vertex[k]);
  find_deepest(c);
}

/// Twice the signed area of (p, q, r) seen along the plane's normal.
double signed_area(const LocalPlane& plane, int p, int q, int r) {
  double e[3];
  double f[3];
  double across[3];
  sub3(plane.vertices + 3 * q, plane.vertices + 3 * p, e);
  sub3(plane.vertices + 3 * r, plane.vertices + 3 * p, f);
  cross3(e, f, across);
  return dot3(plane.up, across);
}

/// The deepest, the farthest from it, the extremes on each side of the line through them. Returns how many, their area
/// in `area`.
int choose_four(const LocalPlane& plane, const Candidates& c, int* chosen, double& area) {
  // The deepest and the farthest from it, seen along the normal.
  chosen[0] = c.vertex[c.deepest];
  int far = -1;
  double best = 0;
  for (int k = 0; k < c.count; ++k) {
    double e[3];
    sub3(plane.vertices + 3 * c.vertex[k], plane.vertices + 3 * chosen[0], e);
    const double h = dot3(plane.up, e);
    const double d2 = dot3(e, e) - h * h;
    if (d2 > best) {
      best = d2;
      far = c.vertex[k];
    }
  }

  area = 0;
  if (far < 0) return 1;
  chosen[1] = far;

  // The extremes on either side of the line through both.
  int left = -1;
  int right = -1;
  double most = 1e-9 * best;
  double least = -most;
  for (int k = 0; k < c.count; ++k) {
    const double s = signed_area(plane, chosen[0], far, c.vertex[k]);
    if (s > most) {
      most = s;
      left = c.vertex[k];
    }
    if (s < least) {
      least = s;
      right = c.vertex[k];
    }
  }

  int count = 2;
  if (left >= 0) {
    chosen[count++] = left;
    area += most;
  }
  if (right >= 0) {
    chosen[count++] = right;
    area -= least;
  }
  return count;
}

/// Distance of two vertices, seen along the normal.
double length_across(const LocalPlane& plane, int p, int q) {
  double e[3];
  sub3(plane.vertices + 3 * q, plane.vertices + 3 * p, e);
  const double h = dot3(plane.up, e);
  return std::sqrt(std::max(0.0, dot3(e, e) - h * h));
}

/// Area of the kept set, whose order is that of choose_four (the first two span the diagonal).
double kept_area(const LocalPlane& plane, const int* kept, int count) {
  double area = 0;
  for (int k = 2; k < count; ++k)
    area += std::abs(signed_area(plane, kept[0], kept[1], kept[k]));
  return area;
}

/// A point does not do for a line, nor a line for a face.
bool keep_old(const LocalPlane& plane, const Candidates& c, const CollisionCache::Pair& cache, double band,
              const int* fresh, int num_fresh, double fresh_area) {
  // The diagonal,
  if (num_fresh > 1 && (cache.num_kept < 2 || length_across(plane, cache.kept[0], cache.kept[1]) <
                                                  keep_length * length_across(plane, fresh[0], fresh[1])))
    return false;

  // the heights,
  const double deepest = c.height[c.deepest];
  double kept_deepest = INFINITY;
  double kept_highest = -INFINITY;
  for (int k = 0; k < cache.num_kept; ++k) {
    const double height = plane.height(cache.kept[k]);
    kept_deepest = std::min(kept_deepest, height);
    kept_highest = std::max(kept_highest, height);
  }

  // and the area of what was kept.
  return cache.num_kept > 0 && kept_highest <= deepest + 2 * band && deepest >= kept_deepest - 0.25 * band &&
         kept_area(plane, cache.kept, cache.num_kept) >= keep_area * fresh_area;
}

/// What was kept are vertices of this mesh.
bool cache_fits(const CollisionCache::Pair& cache, int num_vertices) {
  for (int k = 0; k < cache.num_kept; ++k)
    if (cache.kept[k] < 0 || cache.kept[k] >= num_vertices) return false;
  return cache.num_kept <= 4;
}

}  // namespace

int collide_half_space_mesh(const Shape& a, const Shape& b, double margin, const CollisionOptions& options,
                            CollisionCache::Pair& cache, Contact* out) {
  const ConvexMesh& mesh = *b.mesh;
  const int num_vertices = mesh.num_vertices();

  // The plane in the mesh's frame.
  double up[3];
  shape_axis(a, 2, up);
  LocalPlane plane;
  plane.vertices = mesh.vertices.data();
  rotate_transposed(b.rotation, up, plane.up);
  plane.offset = dot3(up, a.position) - dot3(up, b.position);

  // Vertices that may be chosen: all that are below, or those in a band above the deepest.
  Candidates c;
  const bool many = num_vertices > few_vertices;
  const bool write = !options.stateless && !options.frozen_cache;
  const double band = 2 * band_fraction * norm3(mesh.aabb_half.data());

  if (many) {
    // From the cached vertex, or from one that the table lists for that direction.
    int hint = options.stateless || cache.hint_b < 0 || cache.hint_b >= num_vertices ? -1 : cache.hint_b;
    if (hint < 0) {
      const double down[3] = {-plane.up[0], -plane.up[1], -plane.up[2]};
      hint = mesh.support_start.empty() ? 0 : mesh.support_vertices[mesh.support_start[direction_cell(down)]];
    }

    const int deepest = climb_down(mesh, plane, hint);
    if (write) cache.hint_b = deepest;
    const double height = plane.height(deepest);
    if (height <= margin) {
      gather_band(mesh, plane, deepest, std::min(height + band, margin), c);
    }
  } else {
    all_below(plane, num_vertices, margin, c);
  }
  if (c.count == 0) {
    if (write) cache.num_kept = 0;
    return 0;
  }

  // At most four of them; of many, those of the last step while they are nearly as good.
  int chosen[4];
  int count;
  if (!many && c.count <= 4) {
    count = c.count;
    for (int k = 0; k < count; ++k)
      chosen[k] = c.vertex[k];
  } else {
    double area;
    count = choose_four(plane, c, chosen, area);
    if (many && !options.stateless && cache_fits(cache, num_vertices) &&
        keep_old(plane, c, cache, band, chosen, count, area)) {
      count = cache.num_kept;
      for (int k = 0; k < count; ++k)
        chosen[k] = cache.kept[k];
    }
    if (many && write) {
      cache.num_kept = count;
      for (int k = 0; k < count; ++k)
        cache.kept[k] = chosen[k];
    }
  }

  // In the order of their vertices, those within the margin.
  for (int k = 1; k < count; ++k)
    for (int i = k; i > 0 && chosen[i] < chosen[i - 1]; --i)
      std::swap(chosen[i], chosen[i - 1]);
  int written = 0;
  for (int k = 0; k < count; ++k) {
    const double distance = plane.height(chosen[k]);
    if (!(distance <= margin)) continue;
    double p[3];
    const double n[3] = {-up[0], -up[1], -up[2]};
    rotate(b.rotation, mesh.vertices.data() + 3 * chosen[k], p);
    add3(p, b.position, p);
    set_contact_from_b(n, p, distance, chosen[k], out[written]);
    set_patches(a, Feature::face, b, Feature::vertex, out[written++]);
  }
  return written;
}

}  // namespace coulomb

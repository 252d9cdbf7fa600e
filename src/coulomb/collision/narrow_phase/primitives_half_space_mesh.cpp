// Half-space against a convex mesh: the vertices below the plane, at most four of them (manifold_selection.hpp).
//
// Few vertices: look at all. Many: climb from the cached vertex to the deepest one (a linear function on a convex
// polytope has no other local optimum), then gather what lies within a band of it; that set is connected along edges.
// The choice is a function of the pose alone: what touches comes first, the extremes of it seen from a direction that
// is fixed in the mesh, so that forces do not hop between vertices of a flat side that shakes.
#include <algorithm>
#include <cmath>

#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"

namespace coulomb {
namespace {

constexpr int few_vertices = 32;

/// Of the largest flat face that is seen whole.
constexpr int max_candidates = 1024;

/// Of the body's size.
constexpr double band_fraction = 2e-3;

/// Of the body's size: heights that are alike, more than what a flat side at rest shakes by and less than what it sinks by unseen.
constexpr double alike_fraction = 1e-4;

/// Fixed in the mesh, along no symmetry of any; the second where the first is along the plane's normal.
constexpr double directions[2][3] = {{0.53, 0.27, 0.80}, {0.71, -0.64, 0.29}};
constexpr double along_normal = 0.9;

/// Of a square of lengths: areas that are none.
constexpr double flat = 1e-9;

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

/// Square of the distance of two vertices, seen along the normal.
double square_across(const LocalPlane& plane, int p, int q) {
  double e[3];
  sub3(plane.vertices + 3 * q, plane.vertices + 3 * p, e);
  const double h = dot3(plane.up, e);
  return dot3(e, e) - h * h;
}

/// The farthest one in the direction that is fixed in the mesh.
int first_of(const LocalPlane& plane, const Candidates& c, double limit) {
  const bool other = std::abs(dot3(plane.up, directions[0])) > along_normal * norm3(directions[0]);
  const double* direction = directions[other ? 1 : 0];
  double across[3];
  copy3(direction, across);
  axpy3(-dot3(plane.up, direction), plane.up, across);

  int first = -1;
  double farthest = -INFINITY;
  for (int k = 0; k < c.count; ++k) {
    const double d = dot3(across, plane.vertices + 3 * c.vertex[k]);
    if (c.height[k] > limit || d <= farthest) continue;
    farthest = d;
    first = c.vertex[k];
  }
  return first;
}

/// Adds to the `count` ones that are chosen, up to four, of those below the limit: the first, the farthest from it, the extremes on each
/// side of the line through both. Returns how many there are.
int choose_below(const LocalPlane& plane, const Candidates& c, double limit, int* chosen, int count) {
  if (count == 0) chosen[count++] = first_of(plane, c, limit);
  if (count == 1) {
    int far = -1;
    double best = 0;
    for (int k = 0; k < c.count; ++k) {
      const double d2 = square_across(plane, chosen[0], c.vertex[k]);
      if (c.height[k] > limit || d2 <= best) continue;
      best = d2;
      far = c.vertex[k];
    }
    if (far < 0) return count;
    chosen[count++] = far;
  }

  // A side that has a vertex already keeps it.
  const double least = flat * square_across(plane, chosen[0], chosen[1]);
  bool taken[2] = {false, false};
  for (int k = 2; k < count; ++k)
    taken[signed_area(plane, chosen[0], chosen[1], chosen[k]) > 0] = true;
  for (const bool left : {false, true}) {
    int extreme = -1;
    double most = least;
    for (int k = 0; k < c.count && !taken[left]; ++k) {
      const double area = signed_area(plane, chosen[0], chosen[1], c.vertex[k]);
      if (c.height[k] > limit || (left ? area : -area) <= most) continue;
      most = std::abs(area);
      extreme = c.vertex[k];
    }
    if (extreme >= 0) chosen[count++] = extreme;
  }
  return count;
}

/// At most four: those that touch, or are alike to the deepest, then others; and the deepest, for the one that is nearest to it.
int choose_four(const LocalPlane& plane, const Candidates& c, double alike, int* chosen) {
  const double deepest = c.height[c.deepest];
  int count = choose_below(plane, c, std::max(deepest, 0.0) + alike, chosen, 0);
  count = choose_below(plane, c, INFINITY, chosen, count);

  double lowest = INFINITY;
  double least = INFINITY;
  int nearest = 0;
  for (int k = 0; k < count; ++k) {
    lowest = std::min(lowest, plane.height(chosen[k]));
    const double d2 = square_across(plane, c.vertex[c.deepest], chosen[k]);
    if (d2 < least) nearest = k;
    least = std::min(least, d2);
  }
  if (lowest > deepest + alike) chosen[nearest] = c.vertex[c.deepest];
  return count;
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
  if (c.count == 0) return 0;

  // At most four of them.
  int chosen[4];
  int count = c.count;
  if (!many && count <= 4) {
    for (int i = 0; i < count; ++i)
      chosen[i] = c.vertex[i];
  } else {
    count = choose_four(plane, c, alike_fraction * norm3(mesh.aabb_half.data()), chosen);
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

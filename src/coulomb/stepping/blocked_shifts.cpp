// A moving shape A and a fixed convex shape B overlap for the shifts s d of A in an interval. Its end is found from beyond by Newton's method:
// a unit normal n from B to A with n d > 0 separates the shapes by f = -h_A(-n) - h_B(n), and goes on to do so until A is moved back by
// f / (n d). The distance of convex shapes is a convex function of s, so that no look goes past the end.
#include "coulomb/stepping/blocked_shifts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/continuous/triangle_shape.hpp"
#include "coulomb/collision/shape.hpp"
#include "coulomb/dynamics.hpp"

namespace coulomb {
namespace {

constexpr int most_looks = 200;
constexpr double exact = 1e-13;     // of the sizes: a shift that is not worth a look more
constexpr double most_lean = 1e-3;  // cosine, of half-spaces and triangles that block along a direction
constexpr double nothing = -INFINITY;

/// The end of the shifts of `a` along `direction` at which it overlaps `b`; -inf if there are none. Neither is a half-space or a surface.
double end_of_overlap(Shape a, const Shape& b, const double direction[3]) {
  // From where bounding spheres are apart.
  double centre_a[3];
  double centre_b[3];
  double between[3];
  bounding_center(a, centre_a);
  bounding_center(b, centre_b);
  sub3(centre_b, centre_a, between);
  const double size = bounding_radius(a) + bounding_radius(b);
  const double start[3] = {a.position[0], a.position[1], a.position[2]};
  double shift = dot3(between, direction) + 1.1 * size;

  for (int look = 0; look < most_looks; ++look) {
    copy3(start, a.position);
    axpy3(shift, direction, a.position);
    SignedDistance found;
    signed_distance(a, b, found);
    if (found.distance <= exact * size) break;

    // A normal across the direction, or against it, separates them wherever A goes back to.
    const double slope = dot3(found.normal, direction);
    if (slope <= 0) return nothing;
    shift -= found.distance / slope;
    if (dot3(between, direction) - shift > 1.1 * size) return nothing;
  }
  return shift;
}

void reverse(const double x[3], double out[3]) {
  for (int i = 0; i < 3; ++i)
    out[i] = -x[i];
}

/// Appends the blocked interval of two convex shapes, if there is one.
void block_convex(const Shape& a, const Shape& b, const double direction[3], int pair, std::vector<BlockedShift>& out) {
  double back[3];
  reverse(direction, back);
  const double high = end_of_overlap(a, b, direction);
  if (high == nothing) return;
  const double low = end_of_overlap(a, b, back);
  if (low != nothing && -low < high) out.push_back({pair, -low, high});
}

void block_half_space(const Shape& a, const Shape& plane, const double direction[3], int pair,
                      std::vector<BlockedShift>& out) {
  const double normal[3] = {plane.rotation[2], plane.rotation[5], plane.rotation[8]};
  const double slope = dot3(normal, direction);
  if (std::abs(slope) <= most_lean) return;

  double down[3];
  double lowest[3];
  double arm[3];
  int hint = -1;
  reverse(normal, down);
  shape_support(a, down, lowest, hint);
  sub3(lowest, plane.position, arm);
  const double end = -dot3(normal, arm) / slope;
  if (slope > 0)
    out.push_back({pair, -INFINITY, end});
  else
    out.push_back({pair, end, INFINITY});
}

/// Two directions across a unit one, and how far a shape reaches to both sides of each.
struct Column {
  double across[2][3];
  double low[2];
  double high[2];

  Column(const Shape& a, const double direction[3]) {
    const double x[3] = {std::abs(direction[0]) < 0.6 ? 1.0 : 0.0, std::abs(direction[0]) < 0.6 ? 0.0 : 1.0, 0};
    cross3(direction, x, across[0]);
    const double length = norm3(across[0]);
    for (double& e : across[0])
      e /= length;
    cross3(direction, across[0], across[1]);
    for (int k = 0; k < 2; ++k) {
      double point[3];
      double back[3];
      int hint = -1;
      shape_support(a, across[k], point, hint);
      high[k] = dot3(point, across[k]);
      reverse(across[k], back);
      hint = -1;
      shape_support(a, back, point, hint);
      low[k] = dot3(point, across[k]);
    }
  }

  /// May a shape with these corners be before or behind it?
  bool meets(const double corners[9]) const {
    for (int k = 0; k < 2; ++k) {
      const double x[3] = {dot3(corners, across[k]), dot3(corners + 3, across[k]), dot3(corners + 6, across[k])};
      if (std::min({x[0], x[1], x[2]}) > high[k] || std::max({x[0], x[1], x[2]}) < low[k]) return false;
    }
    return true;
  }
};

/// The triangles of a surface one by one, each as a convex shape of three corners.
class BlockingTriangles {
 public:
  BlockingTriangles(const Shape& a, const Shape& surface, const double direction[3], int pair)
      : a_(a), surface_(surface), direction_(direction), pair_(pair), column_(a, direction) {}

  void append_to(std::vector<BlockedShift>& out) {
    const TriangleSurface& s = *surface_.surface;
    std::vector<BlockedShift> along;
    std::vector<BlockedShift> others;
    std::vector<double> undersides;
    for (int t = 0; t < s.num_triangles(); ++t) {
      triangle_.place(surface_, t);
      if (!column_.meets(triangle_.corners())) continue;
      const double slope = dot3(triangle_.normal(), direction_);
      std::vector<BlockedShift>& to = slope > most_lean ? along : others;
      const std::size_t before = to.size();
      block_convex(a_, triangle_.shape(), direction_, pair_, to);
      if (slope < -most_lean && to.size() > before) undersides.push_back(to.back().low);
    }

    // Solid lies behind the faces.
    for (BlockedShift& shift : along) {
      double end = -INFINITY;
      for (const double underside : undersides)
        if (underside < shift.low) end = std::max(end, underside);
      shift.low = s.num_heights() > 0 ? -INFINITY : end;
    }
    out.insert(out.end(), along.begin(), along.end());
    out.insert(out.end(), others.begin(), others.end());
  }

 private:
  const Shape& a_;
  const Shape& surface_;
  const double* direction_;
  int pair_;
  Column column_;
  TriangleShape triangle_;
};

}  // namespace

std::vector<BlockedShift> blocked_shifts(const Model& model, const std::vector<double>& q, const double direction[3]) {
  const Placements places = geometry_placements(model, q);
  const auto posed = [&](int geometry) {
    Shape shape;
    set_shape(model, geometry, shape);
    std::copy_n(&places.positions[3 * geometry], 3, shape.position);
    std::copy_n(&places.rotations[9 * geometry], 9, shape.rotation);
    return shape;
  };
  const auto moves = [&](int geometry) { return model.body_tree[model.geometry_body[geometry]] >= 0; };

  std::vector<BlockedShift> out;
  for (std::size_t p = 0; p < model.pair_a.size(); ++p) {
    const bool first_moves = moves(model.pair_a[p]);
    if (first_moves == moves(model.pair_b[p])) continue;
    const Shape a = posed(first_moves ? model.pair_a[p] : model.pair_b[p]);
    const Shape b = posed(first_moves ? model.pair_b[p] : model.pair_a[p]);
    if (a.type == ShapeType::half_space || a.type == ShapeType::surface) continue;
    if (b.type == ShapeType::half_space)
      block_half_space(a, b, direction, int(p), out);
    else if (b.type == ShapeType::surface)
      BlockingTriangles(a, b, direction, int(p)).append_to(out);
    else
      block_convex(a, b, direction, int(p), out);
  }
  return out;
}

}  // namespace coulomb

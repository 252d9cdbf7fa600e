// Points against shapes: signed distance from inside, by the nearest place of the surface. Where two places are equally near the first
// of them counts; distances are continuous there, normals are not.
#include "coulomb/collision/penalty/contact_points.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/collision/narrow_phase/primitives_common.hpp"
#include "coulomb/collision/narrow_phase/surface_queries.hpp"

namespace coulomb {
namespace {

// m: how far from a point the faces of a surface are looked for, first and at most.
constexpr double first_reach = 0.01;
constexpr double deepest_point = 0.2;

/// n: outward, surface: nearest place, both in b's frame; distance < 0.
// To the world.
bool set_surface_contact(const Shape& b, Feature feature, const double* n, const double* surface, double distance,
                         Contact& out) {
  double world_n[3];
  double p[3];
  rotate(b.rotation, n, world_n);
  rotate(b.rotation, surface, p);
  add3(p, b.position, p);

  set_contact_from_b(world_n, p, distance, 0, out);
  out.rule = MotionRule::support;
  out.a = SurfacePatch{};
  support_patch(b, feature, world_n, nullptr, out.b);
  return true;
}

/// Offset surface of radius r around the core point q.
bool in_round(const Shape& b, Feature feature, const double* x, const double* q, double r, Contact& out) {
  double n[3];
  double surface[3];

  // Out from the core; its middle has no direction of its own.
  sub3(x, q, n);
  const double d = norm3(n);
  if (!(d < r)) return false;
  if (d > 0)
    for (double& value : n)
      value /= d;
  else {
    n[0] = 1;
    n[1] = n[2] = 0;
  }

  for (int i = 0; i < 3; ++i)
    surface[i] = q[i] + r * n[i];
  return set_surface_contact(b, feature, n, surface, d - r, out);
}

/// The nearest core point is on the axis: inside of the segment, or one of its ends.
bool in_capsule(const Shape& b, const double* x, Contact& out) {
  const double half = b.size[1];
  const double q[3] = {0, 0, std::min(std::max(x[2], -half), half)};
  return in_round(b, std::abs(x[2]) < half ? Feature::line : Feature::round, x, q, b.size[0], out);
}

/// The nearest of a cap and the side.
bool in_cylinder(const Shape& b, const double* x, Contact& out) {
  const double R = b.size[0];
  const double h = b.size[1];
  const double radius = std::hypot(x[0], x[1]);
  const double side = radius - R;
  const double cap = std::abs(x[2]) - h;
  const double up = x[2] < 0 ? -1.0 : 1.0;
  if (!(side < 0 && cap < 0)) return false;

  // Out through a cap ...
  if (cap >= side) {
    const double n[3] = {0, 0, up};
    const double surface[3] = {x[0], x[1], up * h};
    return set_surface_contact(b, Feature::face, n, surface, cap, out);
  }

  // ... or through the side; the axis has no direction of its own.
  const double n[3] = {radius > 0 ? x[0] / radius : 1.0, radius > 0 ? x[1] / radius : 0.0, 0};
  const double surface[3] = {R * n[0], R * n[1], x[2]};
  return set_surface_contact(b, Feature::line, n, surface, side, out);
}

/// Out through the nearest face, the first of equals.
bool in_box(const Shape& b, const double* x, Contact& out) {
  int nearest = 0;
  for (int i = 0; i < 3; ++i) {
    if (!(std::abs(x[i]) < b.size[i])) return false;
    if (b.size[i] - std::abs(x[i]) < b.size[nearest] - std::abs(x[nearest])) {
      nearest = i;
    }
  }

  const double sign = x[nearest] < 0 ? -1.0 : 1.0;
  double n[3] = {0, 0, 0};
  double surface[3] = {x[0], x[1], x[2]};
  n[nearest] = sign;
  surface[nearest] = sign * b.size[nearest];
  return set_surface_contact(b, Feature::face, n, surface, std::abs(x[nearest]) - b.size[nearest], out);
}

/// The nearest place is y_i = a_i^2 x_i / (a_i^2 + t) with sum (y_i / a_i)^2 = 1 and -min a^2 <= t < 0. The sum is convex in t: Newton
/// from where the shortest axis alone gives 1 never overshoots.
bool in_ellipsoid(const Shape& b, const double* x, Contact& out) {
  // Inside?
  const double* a = b.size;
  double level = 0;
  for (int i = 0; i < 3; ++i)
    level += x[i] * x[i] / (a[i] * a[i]);
  if (!(level < 1)) return false;

  // From where the shortest axis alone gives 1.
  const int least = static_cast<int>(std::min_element(a, a + 3) - a);
  const double bottom = -a[least] * a[least];
  double t = bottom + a[least] * std::abs(x[least]);

  // sum (y_i / a_i)^2 - 1 and its slope.
  const auto excess = [&](double at, double& slope) {
    double sum = -1;
    slope = 0;
    for (int i = 0; i < 3; ++i) {
      const double s = a[i] * a[i] + at;
      if (x[i] == 0 || !(s > 0)) continue;
      const double term = a[i] * a[i] * x[i] * x[i] / (s * s);
      sum += term;
      slope -= 2 * term / s;
    }
    return sum;
  };

  // Newton's method, until rounding stops it.
  for (int k = 0; k < 100; ++k) {
    double slope;
    const double value = excess(t, slope);
    if (!(value > 0) || slope == 0) break;
    const double next = t - value / slope;
    if (!(next > t)) break;
    t = next;
  }

  // The place, and what the shortest axis has of it. On the plane across that axis t may be at its end, where y is
  // not determined.
  double y[3];
  double rest = 1;
  for (int i = 0; i < 3; ++i) {
    const double s = a[i] * a[i] + t;
    y[i] = s > 0 ? a[i] * a[i] * x[i] / s : 0.0;
    if (i != least) {
      rest -= y[i] * y[i] / (a[i] * a[i]);
    }
  }
  if (x[least] == 0) {
    y[least] = a[least] * std::sqrt(std::max(rest, 0.0));
  }

  // The normal is the gradient of the level.
  double n[3];
  for (int i = 0; i < 3; ++i)
    n[i] = y[i] / (a[i] * a[i]);
  const double length = norm3(n);
  for (double& value : n)
    value /= length;

  double off[3];
  sub3(x, y, off);
  return set_surface_contact(b, Feature::round, n, y, -norm3(off), out);
}

/// Out through the face that is least deep.
bool in_mesh(const Shape& b, const double* x, Contact& out) {
  const ConvexMesh& mesh = *b.mesh;

  // Most points are outside of the box.
  for (int i = 0; i < 3; ++i)
    if (!(std::abs(x[i] - mesh.aabb_center[i]) <= mesh.aabb_half[i])) return false;

  int nearest = -1;
  double distance = -1e300;
  for (int f = 0; f < mesh.num_faces(); ++f) {
    const double d = dot3(&mesh.face_normals[3 * f], x) - mesh.face_offsets[f];
    if (!(d < 0)) return false;
    if (d > distance) {
      distance = d;
      nearest = f;
    }
  }

  const double* n = &mesh.face_normals[3 * nearest];
  double surface[3] = {x[0], x[1], x[2]};
  axpy3(-distance, n, surface);
  return set_surface_contact(b, Feature::face, n, surface, distance, out);
}

/// Out through the nearest face that the point lies behind.
bool in_surface(const Shape& b, const double* x, Contact& out) {
  for (double reach = first_reach; reach <= deepest_point; reach *= 4) {
    PointOverSurface over;
    if (!point_over_surface(*b.surface, x, reach, over)) continue;
    if (!(over.height < 0)) return false;
    const double* n = &b.surface->normals[3 * over.triangle];
    double surface[3] = {x[0], x[1], x[2]};
    axpy3(-over.height, n, surface);
    return set_surface_contact(b, Feature::face, n, surface, over.height, out);
  }
  return false;
}

/// Names the pair and its geometries.
void set_geometries(const Model& model, int pair, Contact& c) {
  const int a = model.pair_a[pair];
  const int b = model.pair_b[pair];
  c.pair = pair;
  c.geometry_a = a;
  c.geometry_b = b;
  c.body_a = model.geometry_body[a];
  c.body_b = model.geometry_body[b];
}

/// Appends a contact of the pair, flipped where it was found the other way round.
void append_contact(const Model& model, int pair, bool flip, double size, Contact& c, std::vector<Contact>& out) {
  if (flip) flip_contact(c);
  set_geometries(model, pair, c);
  c.size = size;
  out.push_back(c);
}

/// Penalty contact looks at points of the geometry.
bool has_points(const Model& model, int g) { return model.first_contact_point(g) < model.first_contact_point(g + 1); }

/// The points of `with_points` inside the other geometry of the pair.
void collide_points(const Model& model, int pair, int with_points, CollisionWorkspace& w) {
  const bool of_a = with_points == model.pair_a[pair];
  const int against = of_a ? model.pair_b[pair] : model.pair_a[pair];

  // Both shapes in the world.
  Shape own;
  Shape other;
  pose_shape(model, w, with_points, own);
  pose_shape(model, w, against, other);

  const int first = model.first_contact_point(with_points);
  const int end = model.first_contact_point(with_points + 1);
  for (int k = first; k < end; ++k) {
    double p[3];
    rotate(own.rotation, &model.contact_points[3 * k], p);
    add3(p, own.position, p);

    Contact c;
    if (!collide_point(p, other, c)) continue;

    // A point keeps its number as the contact's feature.
    c.contact_point = k;
    c.point_on_a = true;
    c.feature = 2 * (k - first) + (of_a ? 0 : 1);
    append_contact(model, pair, !of_a, std::min(w.filter.size[with_points], w.filter.size[against]), c, w.contacts);
  }
}

/// Has corners that penalty contact looks at.
bool is_cornered(ShapeType type) { return type == ShapeType::box || type == ShapeType::mesh; }

/// Every corner below the plane: unlike the four that hard contact keeps, they come and go without a jump.
void collide_corners(const Model& model, int pair, int plane, int body, CollisionWorkspace& w) {
  Shape half_space;
  Shape shape;
  pose_shape(model, w, plane, half_space);
  pose_shape(model, w, body, shape);

  // The plane in the frame of the corners: most are far above it.
  double up[3];
  double origin[3];
  double local[3];
  shape_axis(half_space, 2, up);
  sub3(shape.position, half_space.position, origin);
  const double offset = dot3(up, origin);
  const double near = 1e-9 * (std::abs(offset) + w.filter.radius[body]);
  rotate_transposed(shape.rotation, up, local);

  const double* vertices = shape.type == ShapeType::mesh ? shape.mesh->vertices.data() : nullptr;
  const int count = vertices ? shape.mesh->num_vertices() : 8;
  for (int v = 0; v < count; ++v) {
    if (vertices && dot3(local, vertices + 3 * v) + offset > near) continue;
    double p[3];
    core_vertex(shape, v, p);

    Contact c;
    if (!collide_point(p, half_space, c)) continue;

    c.feature = v;
    append_contact(model, pair, body != model.pair_a[pair], w.filter.size[body], c, w.contacts);
  }
}

/// Two shapes with flat sides: the outline that their faces have in common.
void collide_sides(const Model& model, int pair, CollisionWorkspace& w, std::vector<ContactShare>& shares) {
  const int a = model.pair_a[pair];
  const int b = model.pair_b[pair];
  const std::size_t first = w.contacts.size();

  Shape shape_a;
  Shape shape_b;
  pose_shape(model, w, a, shape_a);
  pose_shape(model, w, b, shape_b);
  collide_flat_sides(shape_a, shape_b, std::min(w.filter.size[a], w.filter.size[b]), w.contacts, shares);

  for (std::size_t i = first; i < w.contacts.size(); ++i)
    set_geometries(model, pair, w.contacts[i]);
}

}  // namespace

bool collide_point(const double point[3], const Shape& b, Contact& out) {
  // In the frame of b.
  double x[3];
  sub3(point, b.position, x);
  rotate_transposed(b.rotation, x, x);
  switch (b.type) {
    case ShapeType::half_space: {
      const double n[3] = {0, 0, 1};
      const double surface[3] = {x[0], x[1], 0};
      return x[2] < 0 && set_surface_contact(b, Feature::face, n, surface, x[2], out);
    }
    case ShapeType::sphere: {
      const double centre[3] = {0, 0, 0};
      return in_round(b, Feature::round, x, centre, b.size[0], out);
    }
    case ShapeType::capsule: return in_capsule(b, x, out);
    case ShapeType::cylinder: return in_cylinder(b, x, out);
    case ShapeType::box: return in_box(b, x, out);
    case ShapeType::ellipsoid: return in_ellipsoid(b, x, out);
    case ShapeType::mesh: return in_mesh(b, x, out);
    case ShapeType::surface: return in_surface(b, x, out);
  }
  return false;
}

void detect_penalty_contacts(const Model& model, const double* body_position, const double* body_rotation,
                             const unsigned char* left_out, CollisionWorkspace& w, std::vector<ContactShare>& shares) {
  const auto is_left_out = [&](int geometry) {
    const int tree = model.body_tree[model.geometry_body[geometry]];
    return left_out && tree >= 0 && left_out[tree];
  };

  // Pairs that are near.
  w.contacts.clear();
  shares.clear();
  filter_pairs(model, body_position, body_rotation, nullptr, w);

  for (const int pair : w.candidates) {
    const int a = model.pair_a[pair];
    const int b = model.pair_b[pair];
    if (is_left_out(a) || is_left_out(b)) continue;
    const ShapeType type_a = model.geometry_type[a];
    const ShapeType type_b = model.geometry_type[b];

    // Points of their own come first, then corners against half-spaces and against one another; all else as in
    // hard contact, where it overlaps.
    if (has_points(model, a) || has_points(model, b)) {
      if (has_points(model, a)) {
        collide_points(model, pair, a, w);
      }
      if (has_points(model, b)) {
        collide_points(model, pair, b, w);
      }
    } else if (type_a == ShapeType::half_space && is_cornered(type_b)) {
      collide_corners(model, pair, a, b, w);
    } else if (type_b == ShapeType::half_space && is_cornered(type_a)) {
      collide_corners(model, pair, b, a, w);
    } else if (is_cornered(type_a) && is_cornered(type_b)) {
      shares.resize(w.contacts.size());
      collide_sides(model, pair, w, shares);
    } else {
      const std::size_t first = w.contacts.size();
      collide_pair_stateless(model, pair, 0.0, w, w.contacts);
      const auto apart = [](const Contact& c) { return !(c.distance < 0); };
      w.contacts.erase(std::remove_if(w.contacts.begin() + static_cast<std::ptrdiff_t>(first), w.contacts.end(), apart),
                       w.contacts.end());
    }
  }

  // Contacts without a share have whole springs.
  shares.resize(w.contacts.size());
}

}  // namespace coulomb

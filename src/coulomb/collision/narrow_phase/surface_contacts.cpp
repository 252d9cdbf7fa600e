// In the surface's frame: points of A against faces, then corners and edges of the surface against A, by the routines of convex pairs for a
// point and for a segment; a contact counts if its normal belongs to the corner's or edge's cone of normals. Where all faces near A lie in
// one plane, that plane is a half-space.
#include "coulomb/collision/narrow_phase/surface_contacts.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/collision/narrow_phase/convex_convex.hpp"
#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"
#include "coulomb/collision/narrow_phase/surface_queries.hpp"

namespace coulomb {
namespace {

using namespace surface;

constexpr double cone_sine = 1e-9;   // so far outside of its cone a normal belongs to the edge
constexpr double most_tilt = 0.5;    // sine: a normal so far from across a ridge still belongs to the end of the ridge
constexpr double one_plane = 1e-12;  // sines, and offsets over the size: faces that are one
constexpr double same_face = 1e-9;   // 1 - cosine, and of the size: the same contact with two faces of one plane
constexpr double upright_sine = 0.02;  // below it a cylinder stands on four points of its cap, as on a half-space
constexpr double nearest_faces = 1.5;  // depths: faces that a point in the solid has to get out of
constexpr double touching = 1e-6;      // m: contacts so near are kept before others
constexpr int most_found = 32;         // contacts that are collected before they are thinned out
constexpr double nowhere = 1e300;

// Kinds of features: of A on a face, a corner of the surface, an edge.
constexpr int face_feature = 1 << 28;
constexpr int corner_feature = 2 << 28;
constexpr int edge_feature = 3 << 28;
constexpr int no_point = -1;

/// A number below 2^28 for a point of A on a triangle.
int mixed(int point, int triangle) {
  const unsigned x = static_cast<unsigned>(point) * 0x9E3779B1u ^ static_cast<unsigned>(triangle) * 0x85EBCA77u;
  return static_cast<int>((x ^ x >> 15) & 0x0FFFFFFFu);
}

/// Does a plane with this normal through x have the surface's point y in front of it?
bool rises(const double* normal, const double* x, const double* y) {
  double arm[3];
  sub3(y, x, arm);
  return dot3(normal, arm) > cone_sine * norm3(arm);
}

constexpr CollisionOptions stateless{.stateless = true, .frozen_cache = true};

struct Found {
  Contact contact;
  int point = no_point;  ///< of A, on a face
};

class SurfaceCollider {
 public:
  SurfaceCollider(const Shape& a, const TriangleSurface& surface, double margin)
      : a_(a), s_(surface), margin_(margin), size_(bounding_radius(a)), box_(box_of(a, margin)) {}

  int collide(Contact* out) { return is_plane() ? collide_plane(out) : collide_features(out); }

 private:
  // One plane.

  /// All triangles near A lie in one plane and none is at the border. Of parts of the tree that are known to be flat, one triangle is enough.
  bool is_plane() {
    bool flat = true;
    const auto visit = [&](int t) {
      if (plane_ < 0) plane_ = t;
      for (int k = 0; k < 3; ++k)
        flat = flat && s_.across[3 * t + k] >= 0;
      flat = flat && is_of_plane(t);
      return flat;
    };
    const auto is_known = [&](int node) {
      return plane_ >= 0 && s_.node_plane[node] >= 0 && is_of_plane(s_.node_plane[node]);
    };
    for_each_near(s_, box_, visit, is_known);
    return flat && plane_ >= 0;
  }

  /// Does triangle t lie in the plane of triangle plane_?
  bool is_of_plane(int t) const {
    const double* n = &s_.normals[3 * t];
    double turn[3];
    double arm[3];
    cross3(&s_.normals[3 * plane_], n, turn);
    sub3(corner(s_, t, 0), corner(s_, plane_, 0), arm);
    return norm3(turn) <= one_plane && dot3(n, &s_.normals[3 * plane_]) > 0 &&
           std::abs(dot3(n, arm)) <= one_plane * (size_ + norm3(arm));
  }

  int collide_plane(Contact* out) const {
    Shape plane;
    plane.type = ShapeType::half_space;
    copy3(corner(s_, plane_, 0), plane.position);
    set_third_axis(&s_.normals[3 * plane_], plane.rotation);
    CollisionCache::Pair cache;
    CollidePair collide = collide_half_space_mesh;
    switch (a_.type) {
      case ShapeType::sphere: collide = collide_half_space_sphere; break;
      case ShapeType::capsule: collide = collide_half_space_capsule; break;
      case ShapeType::cylinder: collide = collide_half_space_cylinder; break;
      case ShapeType::ellipsoid: collide = collide_half_space_ellipsoid; break;
      case ShapeType::box: collide = collide_half_space_box; break;
      default: break;
    }
    const int count = collide(plane, a_, margin_, stateless, cache, out);
    for (int k = 0; k < count; ++k)
      flip_contact(out[k]);
    return count;
  }

  int collide_features(Contact* out) {
    Found found[most_found];
    found_ = found;
    for_each_near(s_, box_, [this](int t) {
      add_faces(t);
      for (int k = 0; k < 3; ++k) {
        if (s_.features[t] & surface_feature::corner(k)) add_corner(t, k);
        if (s_.features[t] & surface_feature::edge(k)) add_edge(t, k);
      }
      return true;
    });
    thin_out(max_contacts_per_pair);
    for (int k = 0; k < count_; ++k)
      out[k] = found_[k].contact;
    return count_;
  }

  // Faces.

  /// A point of A's core at distance r from A's surface, or a point of its surface (r = 0).
  void add_point(int t, const double* x, double r, Feature of_a, int id) {
    const double* n = &s_.normals[3 * t];
    double arm[3];
    double foot[3];
    sub3(x, corner(s_, t, 0), arm);
    const double height = dot3(n, arm);
    const double distance = height - r;
    if (!(distance <= margin_) || distance < -2 * size_) return;
    copy3(x, foot);
    axpy3(-height, n, foot);
    if (height >= 0 && !is_over(s_, t, foot)) return;

    // What is behind the face has to be in the solid, and the face one of the nearest.
    if (height < 0) {
      if (!is_over(s_, t, foot) && !is_beyond_valley(s_, t, foot, height)) return;
      if (-height > nearest_faces * depth_in_solid(s_, x, -height)) return;
    }

    // Of one plane, one contact; of two sides of a thin wall that it is in, that which is nearer.
    const int feature = face_feature | mixed(id, t);
    for (int k = 0; k < count_; ++k) {
      if (found_[k].point != id) continue;
      const Contact& other = found_[k].contact;
      const double cosine = dot3(n, other.normal);
      const bool is_same = cosine > 1 - same_face && std::abs(distance - other.distance) <= same_face * size_;
      const bool is_behind = cosine < 0 && height < 0 && other.distance < 0;
      if (is_same || (is_behind && distance <= other.distance)) return;
      if (is_behind) {
        set_face_contact(n, foot, distance, of_a, feature, found_[k].contact);
        return;
      }
    }
    set_face_contact(n, foot, distance, of_a, feature, next(id));
  }

  void set_face_contact(const double* n, const double* foot, double distance, Feature of_a, int feature,
                        Contact& c) const {
    c = Contact{};
    set_contact_from_b(n, foot, distance, feature, c);
    set_patches(a_, of_a, a_, Feature::face, c);
  }

  void add_faces(int t) {
    const double* n = &s_.normals[3 * t];
    const double down[3] = {-n[0], -n[1], -n[2]};
    double x[3];
    switch (a_.type) {
      case ShapeType::sphere:
      case ShapeType::capsule:
        for (int end = 0; end < (a_.type == ShapeType::sphere ? 1 : 2); ++end) {
          core_vertex(a_, end, x);
          add_point(t, x, a_.size[0], Feature::round, end);
        }
        return;
      case ShapeType::ellipsoid: {
        int hint = -1;
        shape_support(a_, down, x, hint);
        add_point(t, x, 0, Feature::round, 0);
        return;
      }
      case ShapeType::cylinder: add_cylinder(t, down); return;
      default: add_vertices(t, down);
    }
  }

  /// The lowest points of both rims, or of a cap that lies on the face four points, as on a half-space.
  void add_cylinder(int t, const double* down) {
    double local[3];
    rotate_transposed(a_.rotation, down, local);
    const double sine = std::hypot(local[0], local[1]);
    const double R = a_.size[0];
    const double h = a_.size[1];
    double x[3];
    if (sine >= upright_sine) {
      for (int end = 0; end < 2; ++end) {
        const double p[3] = {R * local[0] / sine, R * local[1] / sine, end == 0 ? h : -h};
        place(p, x);
        add_point(t, x, 0, Feature::rim, end);
      }
      return;
    }
    const int cap = local[2] > 0 ? 0 : 1;
    for (int k = 0; k < 4; ++k) {
      const double side = k % 2 == 0 ? R : -R;
      const double p[3] = {k < 2 ? side : 0, k < 2 ? 0 : side, cap == 0 ? h : -h};
      place(p, x);
      add_point(t, x, 0, Feature::vertex, 2 + 4 * cap + k);
    }
  }

  /// A point of A's own frame.
  void place(const double* local, double* out) const {
    rotate(a_.rotation, local, out);
    add3(out, a_.position, out);
  }

  void add_vertices(int t, const double* down) {
    // Most faces are below all of them.
    double x[3];
    double arm[3];
    int hint = -1;
    core_support(a_, down, x, hint);
    sub3(x, corner(s_, t, 0), arm);
    if (-dot3(down, arm) > margin_) return;
    const int count = a_.type == ShapeType::box ? 8 : a_.mesh->num_vertices();
    for (int v = 0; v < count; ++v) {
      core_vertex(a_, v, x);
      add_point(t, x, 0, Feature::vertex, v);
    }
  }

  // Corners and edges.

  void add_corner(int t, int k) {
    const double* x = corner(s_, t, k);
    if (!box_.holds(x)) return;
    constexpr double no_size[3] = {0, 0, 0};
    Shape point;
    point.size = no_size;
    copy3(x, point.position);
    Witness w;
    double axis[3];
    int hints[2] = {-1, -1};
    bounding_center(a_, axis);
    sub3(axis, x, axis);
    if (!convex_witness(a_, point, margin_, axis, hints, w)) return;

    // Neighbours that rise over the plane through the corner hide it; so does the face from behind the border.
    const int v = s_.triangles[3 * t + k];
    const bool border = s_.across[3 * t + k] < 0 || s_.across[3 * t + (k + 2) % 3] < 0;
    if (border && !(dot3(w.normal, &s_.normals[3 * t]) > 0)) return;
    if (!corner_has_normal(v, w.normal)) return;
    Contact& c = next();
    single_contact(a_, point, w, c);
    c.feature = corner_feature | v;
  }

  void add_edge(int t, int k) {
    const double* first = corner(s_, t, k);
    const double* second = corner(s_, t, k + 1);
    if (!box_.meets(first, second)) return;

    // A segment is a capsule without a radius.
    double along[3];
    sub3(second, first, along);
    const double length = norm3(along);
    const double size[3] = {0, 0.5 * length, 0};
    Shape segment;
    segment.type = ShapeType::capsule;
    segment.size = size;
    for (int i = 0; i < 3; ++i) {
      along[i] /= length;
      segment.position[i] = 0.5 * (first[i] + second[i]);
    }
    set_third_axis(along, segment.rotation);
    CollisionCache::Pair cache;
    Contact touched[max_contacts_per_pair];
    const int count = collide_convex(a_, segment, margin_, stateless, cache, touched);
    for (int i = 0; i < count; ++i) {
      double arm[3];
      sub3(touched[i].point_b, first, arm);
      const double place = dot3(arm, along) / length;
      if (!edge_has_normal(t, k, along, touched[i].normal)) continue;

      // An end is a corner, which has its own contacts; but in a notch between two ridges the end of each touches a side of A by itself.
      if (place < on_border || place > 1 - on_border) {
        const double away = (place < 0.5 ? 1 : -1) * dot3(touched[i].normal, along);
        const int end = s_.triangles[3 * t + (place < 0.5 ? k : (k + 1) % 3)];
        if (away > cone_sine || away < -most_tilt || corner_has_normal(end, touched[i].normal)) continue;
      }
      Contact& c = next();
      c = touched[i];
      c.feature = edge_feature | (3 * t + k) << 2 | std::min(i, 3);
    }
  }

  /// Do no neighbours rise over the plane through the corner?
  bool corner_has_normal(int v, const double* normal) const {
    const double* x = &s_.vertices[3 * v];
    for (int i = s_.ring_start[v]; i < s_.ring_start[v + 1]; ++i)
      if (rises(normal, x, &s_.vertices[3 * s_.ring[i]])) return false;
    return true;
  }

  /// Is the normal between those of the two faces of edge k of t, whose direction is `along`? A normal that leans along the edge, as that of
  /// a face of A that lies on it, counts by what it has across the edge: how the faces are cut into triangles does not matter.
  bool edge_has_normal(int t, int k, const double* along, const double* normal) const {
    const int other = s_.across[3 * t + k];
    double into_face[3];
    cross3(&s_.normals[3 * t], along, into_face);
    if (dot3(normal, into_face) > cone_sine) return false;
    if (other < 0) return dot3(normal, &s_.normals[3 * t]) > 0;
    cross3(along, &s_.normals[3 * other], into_face);
    return !(dot3(normal, into_face) > cone_sine);
  }

  // The contacts that stay.

  Contact& next(int point = no_point) {
    if (count_ == most_found) thin_out(most_found / 4);
    found_[count_].point = point;
    return found_[count_++].contact;
  }

  /// How much contact i adds to those chosen before: the distance of its place and direction from theirs.
  double spread(const Contact& c, int chosen) const {
    double least = nowhere;
    for (int k = 0; k < chosen; ++k) {
      double apart[3];
      double turned[3];
      sub3(c.point, found_[k].contact.point, apart);
      sub3(c.normal, found_[k].contact.normal, turned);
      least = std::min(least, dot3(apart, apart) / (size_ * size_) + 0.5 * dot3(turned, turned));
    }
    return least;
  }

  /// Keeps the deepest, then always the one farthest from those kept; those that touch come first.
  void thin_out(int most) {
    if (count_ <= most) return;
    const auto is_deeper = [](const Found& f, const Found& g) {
      const Contact& x = f.contact;
      const Contact& y = g.contact;
      return x.distance < y.distance || (x.distance == y.distance && x.feature < y.feature);
    };
    std::sort(found_, found_ + count_, is_deeper);
    int near = static_cast<int>(
        std::count_if(found_, found_ + count_, [](const Found& f) { return f.contact.distance <= touching; }));
    if (near <= most) {
      count_ = most;
      return;
    }
    for (int chosen = 1; chosen < most; ++chosen) {
      int best = chosen;
      double best_spread = -1;
      for (int i = chosen; i < near; ++i) {
        const double s = spread(found_[i].contact, chosen);
        if (s > best_spread) {
          best = i;
          best_spread = s;
        }
      }
      std::swap(found_[chosen], found_[best]);
    }
    count_ = most;
  }

  const Shape& a_;
  const TriangleSurface& s_;
  double margin_;
  double size_;
  Box box_;
  int plane_ = -1;
  int count_ = 0;
  Found* found_ = nullptr;  ///< most_found
};

/// F = R F R^T of a symmetric matrix xx xy yy xz yz zz.
void turn_symmetric(const double* R, double* F) {
  const double full[9] = {F[0], F[1], F[3], F[1], F[2], F[4], F[3], F[4], F[5]};
  double half[9];
  multiply3(R, full, half);
  const int row[6] = {0, 0, 1, 0, 1, 2};
  const int column[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k)
    F[k] = dot3(half + 3 * row[k], R + 3 * column[k]);
}

/// A contact in the frame of B as one in the world.
void place_contact(const Shape& b, Contact& c) {
  for (double* x : {c.normal, c.incident_normal, c.edge, c.side, c.a.E[0], c.a.E[1], c.b.E[0], c.b.E[1]})
    rotate(b.rotation, x, x);
  for (double* x : {c.point, c.point_a, c.point_b}) {
    rotate(b.rotation, x, x);
    add3(x, b.position, x);
  }
  turn_symmetric(b.rotation, c.a.F);
  turn_symmetric(b.rotation, c.b.F);
}

}  // namespace

int collide_convex_surface(const Shape& a, const Shape& b, double margin, const CollisionOptions&,
                           CollisionCache::Pair&, Contact* out) {
  const Shape local = in_frame_of(a, b);
  SurfaceCollider collider(local, *b.surface, margin);
  const int count = collider.collide(out);
  for (int k = 0; k < count; ++k)
    place_contact(b, out[k]);
  return count;
}

}  // namespace coulomb

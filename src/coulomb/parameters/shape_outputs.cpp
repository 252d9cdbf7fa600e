#include "coulomb/parameters/shape_outputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"
#include "coulomb/collision/motion/shape_motion.hpp"
#include "coulomb/collision/motion/support_patch.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model.hpp"

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A cosine so small that the ray runs along the surface: there is no derivative.
constexpr double grazing = 1e-10;

Frame frame_of(const Model& model, int geometry) {
  Frame out;
  out.body = model.geometry_body[geometry];
  out.geometry = geometry;
  return out;
}

/// A geometry where its body is.
Shape shape_of(const Model& model, const DynamicsWorkspace& ws, int geometry) {
  const FrameState at = frame_state(model, ws, frame_of(model, geometry));
  Shape out;
  set_shape(model, geometry, out);
  copy3(at.position, out.position);
  std::copy_n(at.rotation, 9, out.rotation);
  return out;
}

/// Along the z axis of the sensor's frame.
Ray ray_of(const FrameState& at) {
  Ray out;
  for (int i = 0; i < 3; ++i) {
    out.origin[i] = at.position[i];
    out.direction[i] = at.rotation[3 * i + 2];
  }
  return out;
}

/// Appends how a row follows a point x that rides on a frame: c . (motion of x).
void add_point_term(const Model& model, const DynamicsWorkspace& ws, const Frame& frame, const double* x,
                    const double* c, OutputRow& row) {
  const FrameState at = frame_state(model, ws, frame);
  FrameCovector a;
  double arm[3];
  sub3(x, at.position, arm);
  copy3(c, a.p);
  cross3(arm, c, a.phi);
  add_frame_term(model, ws, frame, at, a, row);
}

/// dt = n . (u - do - t dd) / (n . d); the surface rides on its geometry, the ray on the frame.
void linearize_range(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, OutputRow& row) {
  const FrameState at = frame_state(model, ws, sensor.frame);
  const Ray ray = ray_of(at);
  const SurfaceHit hit = cast_ray(model, ws, ray, infinity, sensor.frame.body);
  if (hit.geometry < 0 || (sensor.cutoff > 0 && hit.t > sensor.cutoff)) return;
  const double cosine = dot3(hit.normal, ray.direction);
  if (std::abs(cosine) < grazing) return;

  // The point of the ray at the hit rides on the frame; t dd is part of its motion.
  double x[3];
  double c[3];
  double minus[3];
  for (int i = 0; i < 3; ++i) {
    x[i] = ray.origin[i] + hit.t * ray.direction[i];
    c[i] = hit.normal[i] / cosine;
    minus[i] = -c[i];
  }
  add_point_term(model, ws, sensor.frame, x, minus, row);
  add_point_term(model, ws, frame_of(model, hit.geometry), x, c, row);

  // The surface's own changes move it along its normal.
  const Shape shape = shape_of(model, ws, hit.geometry);
  OutputRow::Surface surface{hit.geometry, {0, 0, 0}, {}};
  hit_by_size(shape, ray, hit, surface.by_size);
  hit_by_vertices(shape, ray, hit, surface.by_vertex);
  for (double& slope : surface.by_size)
    slope /= cosine;
  for (auto& [vertex, slope] : surface.by_vertex)
    for (double& s : slope)
      s /= cosine;
  row.surfaces.push_back(std::move(surface));
}

/// Geometries of a group.
std::vector<int> members(const Model& model, const GeometryGroup& group) {
  std::vector<int> out;
  for (int g = 0; g < model.num_geometries; ++g) {
    const int body = model.geometry_body[g];
    const bool in_subtree = body >= group.index && group.index >= 0 && body < model.body_subtree_end[group.index];
    if (group.of == GeometryGroup::Of::all || (group.of == GeometryGroup::Of::geometry && g == group.index) ||
        (group.of == GeometryGroup::Of::body && body == group.index) ||
        (group.of == GeometryGroup::Of::subtree && in_subtree))
      out.push_back(g);
  }
  return out;
}

/// The nearest pair of geometries of two groups.
struct NearestPair {
  int first = -1;
  int second = -1;
  SignedDistance at;
};

/// first = -1: none is nearer than the cutoff.
NearestPair nearest_pair(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor) {
  NearestPair out;
  out.at.distance = sensor.cutoff;
  const std::vector<int> others = members(model, sensor.contacts->groups[1]);
  for (const int g : members(model, sensor.contacts->groups[0])) {
    const Shape shape = shape_of(model, ws, g);
    for (const int other : others) {
      if (g == other) continue;
      SignedDistance d;
      signed_distance(shape, shape_of(model, ws, other), d);
      if (d.distance < out.at.distance) out = {g, other, d};
    }
  }
  return out;
}

/// How far a shape reaches along an outward direction (unit, world), per metre of its sizes.
void reach_by_size(const Shape& shape, const double* direction, double by_size[3]) {
  double n[3];
  rotate_transposed(shape.rotation, direction, n);
  by_size[0] = by_size[1] = by_size[2] = 0;
  switch (shape.type) {
    case ShapeType::sphere: by_size[0] = 1; break;
    case ShapeType::capsule:
      by_size[0] = 1;
      by_size[1] = std::abs(n[2]);
      break;
    case ShapeType::cylinder:
      by_size[0] = std::hypot(n[0], n[1]);
      by_size[1] = std::abs(n[2]);
      break;
    case ShapeType::box:
      for (int k = 0; k < 3; ++k)
        by_size[k] = std::abs(n[k]);
      break;
    case ShapeType::ellipsoid: {
      double square = 0;
      for (int k = 0; k < 3; ++k)
        square += shape.size[k] * shape.size[k] * n[k] * n[k];
      for (int k = 0; k < 3; ++k)
        by_size[k] = shape.size[k] * n[k] * n[k] / std::sqrt(square);
      break;
    }
    default: break;
  }
}

/// The weights of up to three corners in a point x: of one, of an edge, of the triangle of a face's fan that holds it best.
struct Corners {
  int num = 0;
  int list[3];
  double weight[3];
};

/// The triangle (u, v, w) as a candidate, n its normal; `best` is the least weight so far.
void offer_triangle(const ConvexMesh& mesh, const std::array<int, 3>& corners, const double* n, const double* x,
                    double& best, Corners& out) {
  const auto at = [&](int k) { return mesh.vertices.data() + 3 * corners[k % 3]; };
  double weight[3];
  double total = 0;
  for (int k = 0; k < 3; ++k) {
    double p[3];
    double q[3];
    double area[3];
    sub3(at(k + 1), x, p);
    sub3(at(k + 2), x, q);
    cross3(p, q, area);
    total += weight[k] = dot3(n, area);
  }
  if (!(total > 0)) return;
  const double least = std::min({weight[0], weight[1], weight[2]}) / total;
  if (!(least > best)) return;
  best = least;
  out.num = 3;
  for (int k = 0; k < 3; ++k) {
    out.list[k] = corners[k];
    out.weight[k] = weight[k] / total;
  }
}

/// Of the farthest point x of a mesh along n, in its frame.
Corners corners_of(const ConvexMesh& mesh, const double* n, const double* x) {
  const auto at = [&](int v) { return mesh.vertices.data() + 3 * v; };
  const double close = 1e-9 * norm3(mesh.aabb_half.data());
  double farthest = -infinity;
  for (int v = 0; v < mesh.num_vertices(); ++v)
    farthest = std::max(farthest, dot3(n, at(v)));

  Corners out;
  int count = 0;
  for (int v = 0; v < mesh.num_vertices(); ++v) {
    if (dot3(n, at(v)) < farthest - close) continue;
    if (count < 3) {
      out.list[count] = v;
      out.weight[count] = 1;
    }
    ++count;
  }
  out.num = std::min(count, 3);
  if (count == 2) {
    double edge[3];
    double along[3];
    sub3(at(out.list[1]), at(out.list[0]), edge);
    sub3(x, at(out.list[0]), along);
    out.weight[1] = std::clamp(dot3(along, edge) / dot3(edge, edge), 0.0, 1.0);
    out.weight[0] = 1 - out.weight[1];
  }
  if (count <= 2) return out;

  // The face whose normal is nearest.
  int face = 0;
  for (int f = 1; f < mesh.num_faces(); ++f)
    if (dot3(n, mesh.face_normals.data() + 3 * f) > dot3(n, mesh.face_normals.data() + 3 * face)) face = f;
  const int* corner = mesh.face_vertices.data() + mesh.face_start[face];
  const int size = mesh.face_start[face + 1] - mesh.face_start[face];
  double best = -infinity;
  for (int k = 1; k + 1 < size; ++k)
    offer_triangle(mesh, {corner[0], corner[k], corner[k + 1]}, mesh.face_normals.data() + 3 * face, x, best, out);
  return out;
}

/// How far a mesh reaches along an outward direction (unit, world), where x is its farthest point, per metre of its vertices.
void reach_by_vertices(const Shape& shape, const double* direction, const double* point, OutputRow::Surface& out) {
  if (shape.type != ShapeType::mesh) return;
  double n[3];
  double x[3];
  double arm[3];
  sub3(point, shape.position, arm);
  rotate_transposed(shape.rotation, direction, n);
  rotate_transposed(shape.rotation, arm, x);
  const Corners corners = corners_of(*shape.mesh, n, x);
  for (int k = 0; k < corners.num; ++k) {
    const double w = corners.weight[k];
    out.by_vertex.push_back({corners.list[k], {w * n[0], w * n[1], w * n[2]}});
  }
}

/// d = n . (p_a - p_b): both witnesses ride on their geometries, to first order.
void linearize_distance(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, OutputRow& row) {
  const NearestPair pair = nearest_pair(model, ws, sensor);
  if (pair.first < 0 || is_clamped(sensor, pair.at.distance)) return;
  double minus[3];
  for (int i = 0; i < 3; ++i)
    minus[i] = -pair.at.normal[i];
  add_point_term(model, ws, frame_of(model, pair.first), pair.at.point_a, pair.at.normal, row);
  add_point_term(model, ws, frame_of(model, pair.second), pair.at.point_b, minus, row);

  // What makes either of them larger brings them nearer.
  for (const int side : {0, 1}) {
    const int geometry = side == 0 ? pair.first : pair.second;
    OutputRow::Surface surface{geometry, {0, 0, 0}, {}};
    const Shape shape = shape_of(model, ws, geometry);
    const double* outward = side == 0 ? minus : pair.at.normal;
    reach_by_size(shape, outward, surface.by_size);
    reach_by_vertices(shape, outward, side == 0 ? pair.at.point_a : pair.at.point_b, surface);
    for (double& slope : surface.by_size)
      slope = -slope;
    for (auto& [vertex, slope] : surface.by_vertex)
      for (double& s : slope)
        s = -s;
    row.surfaces.push_back(std::move(surface));
  }
}

/// A coordinate so close to the end of its range, as a share of the shape's size, that a witness is at that end.
constexpr double at_end = 1e-6;

/// Where the witness of a box is: at a corner, on an edge along one of its axes, on a face.
Feature feature_of_box(const Shape& box, const double* local, double* edge) {
  const double size = std::max({box.size[0], box.size[1], box.size[2]});
  int free = 0;
  for (int k = 0; k < 3; ++k) {
    if (std::abs(local[k]) > box.size[k] - at_end * size) continue;
    ++free;
    for (int i = 0; i < 3; ++i)
      edge[i] = box.rotation[3 * i + k];
  }
  return free == 0 ? Feature::vertex : free == 1 ? Feature::edge : Feature::face;
}

/// And of a mesh.
Feature feature_of_mesh(const Shape& shape, const double* local, const double* normal, double* edge) {
  const Corners corners = corners_of(*shape.mesh, normal, local);
  if (corners.num == 2) {
    double along[3];
    sub3(shape.mesh->vertices.data() + 3 * corners.list[1], shape.mesh->vertices.data() + 3 * corners.list[0], along);
    rotate(shape.rotation, along, edge);
  }
  return corners.num == 1 ? Feature::vertex : corners.num == 2 ? Feature::edge : Feature::face;
}

/// Which piece of a surface has the witness x with the outward normal n; edge: the direction of an edge.
Feature feature_of(const Shape& shape, const double* x, const double* n, double* edge) {
  double arm[3];
  double local[3];
  double normal[3];
  sub3(x, shape.position, arm);
  rotate_transposed(shape.rotation, arm, local);
  rotate_transposed(shape.rotation, n, normal);
  switch (shape.type) {
    case ShapeType::capsule: {
      const double place = std::abs(local[2] - shape.size[0] * normal[2]);
      return place < shape.size[1] * (1 - at_end) ? Feature::line : Feature::round;
    }
    case ShapeType::cylinder:
      if (1 - std::abs(normal[2]) < at_end * at_end) return Feature::face;
      return std::abs(local[2]) < shape.size[1] * (1 - at_end) ? Feature::line : Feature::rim;
    case ShapeType::box: return feature_of_box(shape, local, edge);
    case ShapeType::mesh: return feature_of_mesh(shape, local, normal, edge);
    case ShapeType::half_space: return Feature::face;
    default: return Feature::round;
  }
}

/// The pair as a contact, which contact_motion moves.
Contact contact_of(const Model& model, const Shape& a, const Shape& b, const NearestPair& pair) {
  Contact out;
  out.geometry_a = pair.first;
  out.geometry_b = pair.second;
  out.body_a = model.geometry_body[pair.first];
  out.body_b = model.geometry_body[pair.second];
  out.distance = pair.at.distance;
  copy3(pair.at.normal, out.normal);
  copy3(pair.at.point_a, out.point_a);
  copy3(pair.at.point_b, out.point_b);
  for (int i = 0; i < 3; ++i)
    out.point[i] = 0.5 * (out.point_a[i] + out.point_b[i]);

  // The scale of what counts as flat.
  out.size = infinity;
  for (const Shape* shape : {&a, &b})
    if (shape->type != ShapeType::half_space) out.size = std::min(out.size, bounding_radius(*shape));

  double edge[3];
  double outward[3];
  for (int i = 0; i < 3; ++i)
    outward[i] = -out.normal[i];
  support_patch(a, feature_of(a, out.point_a, outward, edge), outward, edge, out.a);
  support_patch(b, feature_of(b, out.point_b, out.normal, edge), out.normal, edge, out.b);
  return out;
}

/// The sign of the direction from witness to witness along the pair's normal, which shapes that overlap turn round.
double segment_sign(double distance) { return distance < 0 ? 1 : -1; }

/// Row r of a normal, or of a segment, from how the contact moves.
double segment_change(const Sensor& sensor, int r, const Contact& c, const double* dn, const double* dp, double dphi) {
  if (sensor.type == SensorType::distance_normal) return segment_sign(c.distance) * dn[r];
  const int i = r % 3;
  const double half = 0.5 * (dphi * c.normal[i] + c.distance * dn[i]);
  return r < 3 ? dp[i] + half : dp[i] - half;
}

/// f . (velocity of the frame's material point at x) + n . (its turn).
void add_twist_term(const Model& model, const DynamicsWorkspace& ws, const Frame& frame, const double* x,
                    const double* f, const double* n, OutputRow& row) {
  const FrameState at = frame_state(model, ws, frame);
  FrameCovector a;
  double arm[3];
  sub3(x, at.position, arm);
  copy3(f, a.p);
  copy3(n, a.phi);
  add_cross3(arm, f, a.phi);
  add_frame_term(model, ws, frame, at, a, row);
}

/// What sizes and vertices of one side's geometry change.
void add_shape_slopes(const Model& model, const Sensor& sensor, const Contact& contact, const Shape& shape, bool of_a,
                      std::vector<OutputRow>& rows) {
  const int geometry = of_a ? contact.geometry_a : contact.geometry_b;
  for (OutputRow& row : rows)
    row.surfaces.push_back({geometry, {0, 0, 0}, {}});
  const auto change = [&](std::size_t r, const ShapeMotion& motion) {
    return segment_change(sensor, static_cast<int>(r), contact, motion.dnormal, motion.dpoint, motion.ddistance);
  };

  for (int k = 0; k < num_sizes(shape.type); ++k) {
    ShapeMotion motion;
    size_motion(model, contact, of_a, k, shape.position, shape.rotation, motion);
    for (std::size_t r = 0; r < rows.size(); ++r)
      rows[r].surfaces.back().by_size[k] = change(r, motion);
  }
  if (shape.type != ShapeType::mesh) return;

  MeshCarrier carrier;
  find_carrier(model, contact, of_a, shape.position, shape.rotation, carrier);
  for (int k = 0; k < carrier.count(); ++k) {
    for (OutputRow& row : rows)
      row.surfaces.back().by_vertex.push_back({carrier.vertex(k), {0, 0, 0}});
    for (int axis = 0; axis < 3; ++axis) {
      ShapeMotion motion;
      vertex_motion(contact, carrier, carrier.vertex(k), axis, motion);
      for (std::size_t r = 0; r < rows.size(); ++r)
        rows[r].surfaces.back().by_vertex.back().second[axis] = change(r, motion);
    }
  }
}

/// Normals and witnesses move as those of a contact.
void linearize_segment(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor,
                       std::vector<OutputRow>& rows) {
  const NearestPair pair = nearest_pair(model, ws, sensor);
  if (pair.first < 0) return;
  const Shape a = shape_of(model, ws, pair.first);
  const Shape b = shape_of(model, ws, pair.second);
  const Contact contact = contact_of(model, a, b, pair);
  ContactMotion motion;
  contact_motion(contact, motion);

  for (std::size_t r = 0; r < rows.size(); ++r) {
    double by_twist[12];
    for (int c = 0; c < 12; ++c) {
      const double dn[3] = {motion.dnormal[0][c], motion.dnormal[1][c], motion.dnormal[2][c]};
      const double dp[3] = {motion.dpoint[0][c], motion.dpoint[1][c], motion.dpoint[2][c]};
      by_twist[c] = segment_change(sensor, static_cast<int>(r), contact, dn, dp, motion.ddistance[c]);
    }
    add_twist_term(model, ws, frame_of(model, pair.first), contact.point, by_twist, by_twist + 3, rows[r]);
    add_twist_term(model, ws, frame_of(model, pair.second), contact.point, by_twist + 6, by_twist + 9, rows[r]);
  }
  add_shape_slopes(model, sensor, contact, a, true, rows);
  add_shape_slopes(model, sensor, contact, b, false, rows);
}

/// From the first group to the second.
void read_segment(const Sensor& sensor, const NearestPair& pair, double* reading) {
  const bool is_normal = sensor.type == SensorType::distance_normal;
  std::fill_n(reading, is_normal ? 3 : 6, 0.0);
  if (pair.first < 0) return;
  if (is_normal) {
    for (int i = 0; i < 3; ++i)
      reading[i] = segment_sign(pair.at.distance) * pair.at.normal[i];
    return;
  }
  copy3(pair.at.point_a, reading);
  copy3(pair.at.point_b, reading + 3);
}

}  // namespace

bool is_of_shapes(SensorType type) {
  return type == SensorType::rangefinder || type == SensorType::distance || type == SensorType::distance_normal ||
         type == SensorType::distance_segment;
}

SurfaceHit cast_ray(const Model& model, const DynamicsWorkspace& ws, const Ray& ray, double reach, int excluded_body) {
  SurfaceHit best;
  for (int g = 0; g < model.num_geometries; ++g) {
    if (model.geometry_body[g] == excluded_body) continue;
    if (!ray_meets(shape_of(model, ws, g), ray, reach, best)) continue;
    best.geometry = g;
    reach = best.t;
  }
  return best;
}

void read_shape_output(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor, double* reading) {
  if (sensor.type == SensorType::distance) {
    reading[0] = clamp_reading(sensor, nearest_pair(model, ws, sensor).at.distance);
    return;
  }
  if (sensor.type != SensorType::rangefinder) {
    read_segment(sensor, nearest_pair(model, ws, sensor), reading);
    return;
  }
  const Ray ray = ray_of(frame_state(model, ws, sensor.frame));
  reading[0] = cast_ray(model, ws, ray, infinity, sensor.frame.body).t;
  if (sensor.cutoff > 0) reading[0] = std::min(reading[0], sensor.cutoff);
}

void linearize_shape_output(const Model& model, const DynamicsWorkspace& ws, const Sensor& sensor,
                            std::vector<OutputRow>& rows) {
  rows.assign(sensor_tangent_size(model, sensor), OutputRow{});
  if (sensor.type == SensorType::distance_normal || sensor.type == SensorType::distance_segment)
    linearize_segment(model, ws, sensor, rows);
  else if (sensor.type == SensorType::distance)
    linearize_distance(model, ws, sensor, rows[0]);
  else
    linearize_range(model, ws, sensor, rows[0]);
}

}  // namespace coulomb

// The filter's two tests. Rounding: sphere centres are rounded to float, so every radius grows by what that can shift them.
#include "coulomb/collision/filter.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "coulomb/collision/detect.hpp"
#include "coulomb/simd.hpp"
#include "coulomb/small_math.hpp"

namespace coulomb {
namespace {

constexpr int lanes = 16;

int round_up(int n) { return (n + lanes - 1) / lanes * lanes; }

/// Bounding box of one geometry in its own frame, and its sphere and smallest size.
void bound_geometry(const Model& model, int g, FilterTables& t) {
  const double* size = &model.geometry_size[3 * g];
  double* half = &t.box_half[3 * g];
  const auto set = [half](double x, double y, double z) { half[0] = x, half[1] = y, half[2] = z; };
  double radius = 0;
  switch (model.geometry_type[g]) {
    case ShapeType::half_space: set(INFINITY, INFINITY, INFINITY), radius = INFINITY; break;
    case ShapeType::sphere: set(size[0], size[0], size[0]), radius = size[0]; break;
    case ShapeType::capsule: set(size[0], size[0], size[0] + size[1]), radius = half[2]; break;
    case ShapeType::cylinder: set(size[0], size[0], size[1]), radius = std::hypot(size[0], size[1]); break;
    case ShapeType::box: set(size[0], size[1], size[2]), radius = norm3(size); break;
    case ShapeType::ellipsoid: set(size[0], size[1], size[2]), radius = std::max({size[0], size[1], size[2]}); break;
    case ShapeType::mesh: {
      const ConvexMesh& mesh = *model.meshes[model.geometry_mesh[g]];
      set(mesh.aabb_half[0], mesh.aabb_half[1], mesh.aabb_half[2]);
      copy3(mesh.aabb_center.data(), &t.box_local[3 * g]);
      for (int v = 0; v < mesh.num_vertices(); ++v) {
        double d[3];
        sub3(&mesh.vertices[3 * v], mesh.aabb_center.data(), d);
        radius = std::max(radius, norm3(d));
      }
      break;
    }
  }
  t.radius[g] = radius;
  t.size[g] = std::min({half[0], half[1], half[2]});
}

/// Centres of the bounding spheres in world axes, as doubles for the boxes and as floats for the spheres.
void place_centres(const Model& model, const double* body_position, const double* body_rotation, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;
  float* x = w.filter_center.data();
  float* y = x + t.padded;
  float* z = y + t.padded;
  for (const int g : t.used) {
    const int body = model.geometry_body[g];
    double* centre = &w.scratch[3 * g];
    rotate(body_rotation + 9 * body, &t.box_center[3 * g], centre);
    add3(centre, body_position + 3 * body, centre);
    x[g] = static_cast<float>(centre[0]), y[g] = static_cast<float>(centre[1]), z[g] = static_cast<float>(centre[2]);
    const double shift = 4e-7 * (std::abs(centre[0]) + std::abs(centre[1]) + std::abs(centre[2]));
    w.filter_radius[g] = static_cast<float>(t.reach[g] * (1 + 1e-6) + shift);
  }
}

/// hits[j] = allowed[j] and the spheres of the row's geometry and column j overlap.
COULOMB_SIMD void test_row(const float* __restrict x, const float* __restrict y, const float* __restrict z,
                           const float* __restrict r, const std::uint8_t* __restrict allowed, float xi, float yi, float zi,
                           float ri, int n, std::uint8_t* __restrict hits) {
  for (int j = 0; j < n; ++j) {
    const float dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi, reach = r[j] + ri;
    hits[j] = static_cast<std::uint8_t>(static_cast<int>(dx * dx + dy * dy + dz * dz <= reach * reach) & allowed[j]);
  }
}

void pose_geometry(const Model& model, const double* body_position, const double* body_rotation, int g,
                   CollisionWorkspace& w) {
  if (w.posed[g]) return;
  w.posed[g] = 1;
  const int body = model.geometry_body[g];
  multiply3(body_rotation + 9 * body, &w.filter.rotation[9 * g], &w.geometry_rotation[9 * g]);
  rotate(body_rotation + 9 * body, &model.geometry_pos[3 * g], &w.geometry_position[3 * g]);
  add3(&w.geometry_position[3 * g], body_position + 3 * body, &w.geometry_position[3 * g]);
}

double largest(const double* half) { return std::max({half[0], half[1], half[2]}); }

/// Boxes overlap within `margin` unless one of 15 axes separates them. An axis of length <= 1 needs no scaling: the test only
/// becomes more careful.
bool boxes_touch(const CollisionWorkspace& w, int a, int b, double margin) {
  const double* Ra = &w.geometry_rotation[9 * a];
  const double* Rb = &w.geometry_rotation[9 * b];
  const double* ha = &w.filter.box_half[3 * a];
  const double* hb = &w.filter.box_half[3 * b];
  double d[3], t[3], R[9], S[9];
  sub3(&w.scratch[3 * b], &w.scratch[3 * a], d);
  rotate_transposed(Ra, d, t);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      R[3 * i + j] = Ra[i] * Rb[j] + Ra[3 + i] * Rb[3 + j] + Ra[6 + i] * Rb[6 + j];
      S[3 * i + j] = std::abs(R[3 * i + j]) + 1e-12;
    }
  margin += 1e-12 * (largest(ha) + largest(hb));
  for (int i = 0; i < 3; ++i)
    if (std::abs(t[i]) > ha[i] + dot3(S + 3 * i, hb) + margin) return false;
  for (int j = 0; j < 3; ++j)
    if (std::abs(t[0] * R[j] + t[1] * R[3 + j] + t[2] * R[6 + j]) >
        hb[j] + ha[0] * S[j] + ha[1] * S[3 + j] + ha[2] * S[6 + j] + margin) return false;
  for (int i = 0; i < 3; ++i) {
    const int i1 = (i + 1) % 3, i2 = (i + 2) % 3;
    for (int j = 0; j < 3; ++j) {
      const int j1 = (j + 1) % 3, j2 = (j + 2) % 3;
      const double reach = ha[i1] * S[3 * i2 + j] + ha[i2] * S[3 * i1 + j] + hb[j1] * S[3 * i + j2] + hb[j2] * S[3 * i + j1];
      if (std::abs(t[i2] * R[3 * i1 + j] - t[i1] * R[3 * i2 + j]) > reach + margin) return false;
    }
  }
  return true;
}

/// A ball against a box: the distance of its centre from the box.
bool ball_touches_box(const CollisionWorkspace& w, int ball, int box, double margin) {
  double d[3], q[3], gap2 = 0;
  sub3(&w.scratch[3 * ball], &w.scratch[3 * box], d);
  rotate_transposed(&w.geometry_rotation[9 * box], d, q);
  for (int i = 0; i < 3; ++i) {
    const double out = std::max(std::abs(q[i]) - w.filter.box_half[3 * box + i], 0.0);
    gap2 += out * out;
  }
  const double reach = std::max(w.filter.radius[ball] + margin, 0.0) * (1 + 1e-12);
  return gap2 <= reach * reach;
}

bool boxes_of_pair_touch(const Model& model, const CollisionWorkspace& w, int pair) {
  const int a = model.pair_a[pair], b = model.pair_b[pair];
  const bool ball_a = model.geometry_type[a] == ShapeType::sphere, ball_b = model.geometry_type[b] == ShapeType::sphere;
  if (ball_a) return ball_touches_box(w, a, b, model.pair_margin[pair]);
  if (ball_b) return ball_touches_box(w, b, a, model.pair_margin[pair]);
  return boxes_touch(w, a, b, model.pair_margin[pair]);
}

/// Half-space against the box of the other geometry.
void test_half_spaces(const Model& model, const double* body_position, const double* body_rotation, CollisionWorkspace& w) {
  for (const int pair : w.filter.half_space_pairs) {
    int plane = model.pair_a[pair], other = model.pair_b[pair];
    if (model.geometry_type[plane] != ShapeType::half_space) std::swap(plane, other);
    if (model.geometry_type[other] == ShapeType::half_space) continue;
    pose_geometry(model, body_position, body_rotation, plane, w);
    const double* R = &w.geometry_rotation[9 * plane];
    const double up[3] = {R[2], R[5], R[8]};
    double d[3];
    sub3(&w.scratch[3 * other], &w.geometry_position[3 * plane], d);
    const double height = dot3(up, d), margin = model.pair_margin[pair], slack = 1e-12 * (1 + std::abs(height));
    if (!(height <= w.filter.radius[other] + margin + slack)) continue;
    pose_geometry(model, body_position, body_rotation, other, w);
    double local[3], reach = 0;
    rotate_transposed(&w.geometry_rotation[9 * other], up, local);
    for (int i = 0; i < 3; ++i) reach += std::abs(local[i]) * w.filter.box_half[3 * other + i];
    if (height <= reach + margin + slack) w.candidates.push_back(pair);
  }
}

void test_rows(const Model& model, const double* body_position, const double* body_rotation, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;
  const float* x = w.filter_center.data();
  const float* y = x + t.padded;
  const float* z = y + t.padded;
  const float* r = w.filter_radius.data();
  for (const FilterTables::Row& row : t.rows) {
    const int i = row.geometry, n = row.end - row.begin;
    test_row(x + row.begin, y + row.begin, z + row.begin, r + row.begin, &t.allowed[row.offset], x[i], y[i], z[i], r[i], n,
             w.hits.data());
    for (int block = 0; block < n; block += 8) {
      std::uint64_t any;
      std::memcpy(&any, &w.hits[block], 8);
      if (any == 0) continue;
      for (int j = block; j < block + 8; ++j) {
        if (!w.hits[j]) continue;
        const int pair = t.pair_of[row.offset + j];
        pose_geometry(model, body_position, body_rotation, i, w);
        pose_geometry(model, body_position, body_rotation, row.begin + j, w);
        if (boxes_of_pair_touch(model, w, pair)) w.candidates.push_back(pair);
      }
    }
  }
}

}  // namespace

FilterTables::FilterTables(const Model& model) {
  const int n = model.num_geometries, num_pairs = static_cast<int>(model.pair_a.size());
  padded = round_up(n);
  box_center.resize(3 * n), box_local.resize(3 * n), box_half.resize(3 * n), rotation.resize(9 * n);
  radius.resize(n), reach.resize(n), size.resize(n);
  std::vector<char> seen(n, 0);
  for (int g = 0; g < n; ++g) {
    bound_geometry(model, g, *this);
    quaternion_to_matrix(&model.geometry_quat[4 * g], &rotation[9 * g]);
    rotate(&rotation[9 * g], &box_local[3 * g], &box_center[3 * g]);
    add3(&box_center[3 * g], &model.geometry_pos[3 * g], &box_center[3 * g]);
    reach[g] = radius[g];
  }
  for (int p = 0; p < num_pairs; ++p)
    for (const int g : {model.pair_a[p], model.pair_b[p]}) {
      reach[g] = std::max(reach[g], radius[g] + 0.5 * std::max(model.pair_margin[p], 0.0));
      if (!seen[g]) seen[g] = 1, used.push_back(g);
    }
  std::sort(used.begin(), used.end());
  for (int p = 0; p < num_pairs;) {
    const int a = model.pair_a[p];
    int end = p;
    while (end < num_pairs && model.pair_a[end] == a) ++end;
    Row row;
    row.geometry = a;
    row.begin = model.pair_b[p];
    row.offset = static_cast<int>(allowed.size());
    row.end = std::min(row.begin + round_up(model.pair_b[end - 1] - row.begin + 1), padded);
    if (row.end - row.begin < lanes) row.begin = row.end - lanes;  // a short row at the end: start earlier
    row.begin = row.end - round_up(row.end - row.begin);
    const int start = allowed.size();
    allowed.resize(start + row.end - row.begin, 0), pair_of.resize(start + row.end - row.begin, -1);
    bool any = false;
    for (; p < end; ++p) {
      const int b = model.pair_b[p];
      if (model.geometry_type[a] == ShapeType::half_space || model.geometry_type[b] == ShapeType::half_space) {
        half_space_pairs.push_back(p);
        continue;
      }
      allowed[start + b - row.begin] = 1, pair_of[start + b - row.begin] = p, any = true;
    }
    if (any) rows.push_back(row);
    else allowed.resize(start), pair_of.resize(start);
  }
}

void filter_pairs(const Model& model, const double* body_position, const double* body_rotation, CollisionWorkspace& w) {
  w.candidates.clear();
  std::fill(w.posed.begin(), w.posed.end(), 0);
  place_centres(model, body_position, body_rotation, w);
  test_half_spaces(model, body_position, body_rotation, w);
  const std::size_t from_half_spaces = w.candidates.size();
  test_rows(model, body_position, body_rotation, w);
  if (from_half_spaces > 0 && !std::is_sorted(w.candidates.begin(), w.candidates.end()))
    std::sort(w.candidates.begin(), w.candidates.end());
}

}  // namespace coulomb

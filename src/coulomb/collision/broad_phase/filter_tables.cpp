// What the broad phase knows of a model before it has seen a pose: bounds, placements, and which geometries are tested against which.
#include "coulomb/collision/broad_phase/filter_tables.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "coulomb/base/small_math.hpp"

namespace coulomb {
namespace {

/// A multiple of the lanes.
int round_up(int n) { return (n + FilterTables::lanes - 1) / FilterTables::lanes * FilterTables::lanes; }

/// Bounding box of one geometry in its own frame, and its sphere and smallest size.
void bound_geometry(const Model& model, int g, FilterTables& t, double* centre) {
  const double* size = &model.geometry_size[3 * g];
  double half[3] = {0, 0, 0};
  const auto set = [&half](double x, double y, double z) {
    half[0] = x;
    half[1] = y;
    half[2] = z;
  };
  double radius = 0;

  // By shape; a mesh has its box about a centre of its own.
  switch (model.geometry_type[g]) {
    case ShapeType::half_space:
      set(INFINITY, INFINITY, INFINITY);
      radius = INFINITY;
      break;
    case ShapeType::sphere:
      set(size[0], size[0], size[0]);
      radius = size[0];
      break;
    case ShapeType::capsule:
      set(size[0], size[0], size[0] + size[1]);
      radius = half[2];
      break;
    case ShapeType::cylinder:
      set(size[0], size[0], size[1]);
      radius = std::hypot(size[0], size[1]);
      break;
    case ShapeType::box:
      set(size[0], size[1], size[2]);
      radius = norm3(size);
      break;
    case ShapeType::ellipsoid:
      set(size[0], size[1], size[2]);
      radius = std::max({size[0], size[1], size[2]});
      break;
    case ShapeType::mesh: {
      const ConvexMesh& mesh = *model.meshes[model.geometry_mesh[g]];
      set(mesh.aabb_half[0], mesh.aabb_half[1], mesh.aabb_half[2]);
      copy3(mesh.aabb_center.data(), centre);
      for (int v = 0; v < mesh.num_vertices(); ++v) {
        double d[3];
        sub3(&mesh.vertices[3 * v], mesh.aabb_center.data(), d);
        radius = std::max(radius, norm3(d));
      }
      break;
    }
    case ShapeType::surface: {
      const TriangleSurface& surface = *model.surfaces[model.geometry_mesh[g]];
      set(surface.aabb_half[0], surface.aabb_half[1], surface.aabb_half[2]);
      copy3(surface.aabb_center.data(), centre);
      radius = norm3(half);
      break;
    }
  }

  // A surface is as large as what lies on it.
  const bool is_surface = model.geometry_type[g] == ShapeType::surface;
  t.size[g] = is_surface ? INFINITY : std::min({half[0], half[1], half[2]});

  // Contact points may lie anywhere.
  for (int k = model.first_contact_point(g); k < model.first_contact_point(g + 1); ++k) {
    double d[3];
    sub3(&model.contact_points[3 * k], centre, d);
    radius = std::max(radius, norm3(d));
    for (int i = 0; i < 3; ++i)
      half[i] = std::max(half[i], std::abs(d[i]));
  }

  for (int i = 0; i < 3; ++i)
    t.box_half[i * t.padded + g] = half[i];
  t.radius[g] = radius;
}

/// Lists a pair with its half-space; two half-spaces do not collide.
void add_half_space_pair(const Model& model, int pair, std::vector<FilterTables::Plane>& planes) {
  int plane = model.pair_a[pair];
  int other = model.pair_b[pair];
  if (model.geometry_type[plane] != ShapeType::half_space) {
    std::swap(plane, other);
  }
  if (model.geometry_type[other] == ShapeType::half_space) return;

  auto at = std::find_if(planes.begin(), planes.end(), [plane](const auto& p) { return p.geometry == plane; });
  if (at == planes.end()) {
    at = planes.insert(planes.end(), FilterTables::Plane{plane, {}, {}, {}});
  }
  at->other.push_back(other);
  at->pair.push_back(pair);
  at->margin.push_back(model.pair_margin[pair]);
}

/// Of models with many geometries.
FilterTables::Fixed find_fixed(const Model& model, int padded) {
  // Bounded geometries of fixed bodies, but for those that are named as partners.
  std::vector<bool> is_fixed(padded, false);
  for (int g = 0; g < model.num_geometries; ++g) {
    const std::size_t body = model.geometry_body[g];
    is_fixed[g] =
        model.geometry_type[g] != ShapeType::half_space && body < model.body_tree.size() && model.body_tree[body] < 0;
  }
  for (std::size_t p = 0; p < model.pair_a.size(); ++p)
    if (is_fixed[model.pair_a[p]] && is_fixed[model.pair_b[p]]) {
      is_fixed[model.pair_a[p]] = is_fixed[model.pair_b[p]] = false;
    }

  FilterTables::Fixed out;
  std::vector<bool> carries(model.num_bodies, false);
  for (int g = 0; g < model.num_geometries; ++g)
    if (is_fixed[g]) {
      out.geometries.push_back(g);
      carries[model.geometry_body[g]] = true;
    }
  if (static_cast<int>(out.geometries.size()) < least_fixed_geometries) return {};
  for (int b = 0; b < model.num_bodies; ++b)
    if (carries[b]) out.bodies.push_back(b);

  // Whole vectors with at least one other geometry; neighbours are one block.
  for (int begin = 0; begin < padded; begin += FilterTables::lanes) {
    const int end = std::min(begin + FilterTables::lanes, model.num_geometries);
    if (std::all_of(is_fixed.begin() + begin, is_fixed.begin() + end, [](bool fixed) { return fixed; })) continue;
    if (!out.others.empty() && out.others.back().end == begin)
      out.others.back().end += FilterTables::lanes;
    else
      out.others.push_back({begin, begin + FilterTables::lanes});
  }
  return out;
}

}  // namespace

PairLookup::PairLookup(const Model& model) : start(model.num_geometries + 1, 0) {
  for (const int a : model.pair_a)
    ++start[a + 1];
  std::partial_sum(start.begin(), start.end(), start.begin());
}

int PairLookup::find(const Model& model, int a, int b) const {
  const int begin = start[a];
  const int end = start[a + 1];
  if (begin == end) return -1;

  // Where it is when `a` collides with every geometry up to b.
  const int guess = begin + b - model.pair_b[begin];
  if (guess >= begin && guess < end && model.pair_b[guess] == b) return guess;

  const auto first = model.pair_b.begin();
  const auto at = std::lower_bound(first + begin, first + end, b);
  return at != first + end && *at == b ? static_cast<int>(at - first) : -1;
}

FilterTables::FilterTables(const Model& model, int swept_from) {
  // Room for every geometry, padded to whole vectors.
  const int n = model.num_geometries;
  const int num_pairs = static_cast<int>(model.pair_a.size());
  padded = round_up(n);
  box_half.resize(3 * padded);
  local.resize(15 * padded);
  radius.resize(n);
  reach.resize(n);
  size.resize(n);
  core.resize(n);

  // Bounds and placements.
  for (int g = 0; g < n; ++g) {
    double R[9];
    double box[3] = {0, 0, 0};
    double centre[3];
    bound_geometry(model, g, *this, box);

    quaternion_to_matrix(&model.geometry_quat[4 * g], R);
    rotate(R, box, centre);
    add3(centre, &model.geometry_pos[3 * g], centre);
    for (int i = 0; i < 9; ++i)
      local[i * padded + g] = R[i];
    for (int i = 0; i < 3; ++i) {
      local[(position_row + i) * padded + g] = model.geometry_pos[3 * g + i];
      local[(centre_row + i) * padded + g] = centre[i];
    }

    // How far from its centre a turn moves a surface; for a half-space, per metre of distance (turn_of_plane).
    reach[g] = radius[g];
    switch (model.geometry_type[g]) {
      case ShapeType::half_space: core[g] = 1; break;
      case ShapeType::sphere: core[g] = 0; break;
      case ShapeType::capsule: core[g] = model.geometry_size[3 * g + 1]; break;
      default: core[g] = radius[g];
    }
    if (model.first_contact_point(g) < model.first_contact_point(g + 1)) {
      core[g] = radius[g];
    }
  }

  // Spheres reach as far as half the largest margin of their pairs.
  for (int p = 0; p < num_pairs; ++p)
    for (const int g : {model.pair_a[p], model.pair_b[p]})
      reach[g] = std::max(reach[g], radius[g] + 0.5 * std::max(model.pair_margin[p], 0.0));

  // Half-spaces have lists of their own.
  const auto has_half_space = [&model](int pair) {
    return model.geometry_type[model.pair_a[pair]] == ShapeType::half_space ||
           model.geometry_type[model.pair_b[pair]] == ShapeType::half_space;
  };
  for (int p = 0; p < num_pairs; ++p)
    if (has_half_space(p)) add_half_space_pair(model, p, planes);

  // Many geometries are swept, and pairs looked up.
  swept = n >= swept_from;
  if (swept) {
    lookup = PairLookup(model);
    fixed = find_fixed(model, padded);
    return;
  }

  // Few have a row of partners each: columns from the first partner on, in whole vectors.
  for (int p = 0; p < num_pairs;) {
    const int a = model.pair_a[p];
    int end = p;
    while (end < num_pairs && model.pair_a[end] == a)
      ++end;
    Row row;
    row.geometry = a;
    row.begin = model.pair_b[p];
    row.offset = static_cast<int>(allowed.size());

    // A short row at the end starts earlier.
    row.end = std::min(row.begin + round_up(model.pair_b[end - 1] - row.begin + 1), padded);
    if (row.end - row.begin < lanes) {
      row.begin = row.end - lanes;
    }
    row.begin = row.end - round_up(row.end - row.begin);

    // Which columns are partners, and of which pair.
    const int start = allowed.size();
    allowed.resize(start + row.end - row.begin, 0);
    pair_of.resize(start + row.end - row.begin, -1);
    bool any = false;
    for (; p < end; ++p) {
      if (has_half_space(p)) continue;
      const int column = start + model.pair_b[p] - row.begin;
      allowed[column] = 1;
      pair_of[column] = p;
      any = true;
    }

    // Partners that are half-spaces alone need no row.
    if (any)
      rows.push_back(row);
    else {
      allowed.resize(start);
      pair_of.resize(start);
    }
  }
}

SphereSweep FilterTables::make_sweep(const Model& model, bool fixed_are_still) const {
  if (!swept) return {};

  // Those that have partners other than half-spaces.
  std::vector<bool> has_partner(model.num_geometries, false);
  for (std::size_t p = 0; p < model.pair_a.size(); ++p)
    has_partner[model.pair_a[p]] = has_partner[model.pair_b[p]] = true;
  std::vector<int> still;
  if (fixed_are_still) {
    still = fixed.geometries;
  }
  std::vector<int> members;
  for (int g = 0; g < model.num_geometries; ++g)
    if (has_partner[g] && model.geometry_type[g] != ShapeType::half_space &&
        !std::binary_search(still.begin(), still.end(), g)) {
      members.push_back(g);
    }
  return SphereSweep(std::move(members), model.num_geometries, std::move(still));
}

}  // namespace coulomb

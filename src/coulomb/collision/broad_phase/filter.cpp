// Broad phase: the two tests of filter.hpp. Rounding: sphere centres are rounded to float, so every radius grows by what that can
// shift them.
#include "coulomb/collision/broad_phase/filter.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/broad_phase/hit_bytes.hpp"
#include "coulomb/collision/detect.hpp"

namespace coulomb {
namespace {

constexpr int lanes = FilterTables::lanes;
constexpr int position_row = FilterTables::position_row;
constexpr int centre_row = FilterTables::centre_row;

/// World poses of n geometries, one after the other and padded to `width`, and, in single precision, their bounding spheres.
COULOMB_SIMD void pose_rows(int n, int width, int stride, const int* __restrict body, const double* __restrict position,
                            const double* __restrict rotation, const double* __restrict local,
                            const double* __restrict reach, double* __restrict world, float* __restrict sphere,
                            float* __restrict radius) {
  // Columns of the five vectors placed: the three axes, the position, the centre.
  const double* l0 = local;
  const double* l1 = local + 3 * stride;
  const double* l2 = local + 6 * stride;
  const double* p = local + 9 * stride;
  const double* c = local + 12 * stride;

  // One row of the rotation after the other.
  for (int i = 0; i < 3; ++i) {
    double* __restrict w = world + 3 * i * stride;
    double* __restrict wp = world + (9 + i) * stride;
    double* __restrict wc = world + (12 + i) * stride;

    for (int g = 0; g < n; ++g) {
      const double x = rotation[9 * body[g] + 3 * i];
      const double y = rotation[9 * body[g] + 3 * i + 1];
      const double z = rotation[9 * body[g] + 3 * i + 2];
      const double at = position[3 * body[g] + i];
      w[g] = x * l0[g] + y * l1[g] + z * l2[g];
      w[stride + g] = x * l0[stride + g] + y * l1[stride + g] + z * l2[stride + g];
      w[2 * stride + g] = x * l0[2 * stride + g] + y * l1[2 * stride + g] + z * l2[2 * stride + g];
      wp[g] = at + (x * p[g] + y * p[stride + g] + z * p[2 * stride + g]);
      wc[g] = at + (x * c[g] + y * c[stride + g] + z * c[2 * stride + g]);
    }
  }

  // Spheres in single precision, with radii that rounding cannot make too small.
  const double* centre = world + 12 * stride;
  for (int i = 0; i < 3; ++i)
    for (int g = 0; g < width; ++g)
      sphere[i * stride + g] = static_cast<float>(centre[i * stride + g]);
  for (int g = 0; g < n; ++g) {
    const double sum = std::abs(centre[g]) + std::abs(centre[stride + g]) + std::abs(centre[2 * stride + g]);
    radius[g] = static_cast<float>(reach[g] * (1 + 1e-6) + 4e-7 * sum);
  }
}

/// hits[j] = allowed[j] and the spheres of the row's geometry and column j overlap.
COULOMB_SIMD void test_row(const float* __restrict x, const float* __restrict y, const float* __restrict z,
                           const float* __restrict r, const std::uint8_t* __restrict allowed, float xi, float yi,
                           float zi, float ri, int n, std::uint8_t* __restrict hits) {
  for (int j = 0; j < n; ++j) {
    const float dx = x[j] - xi;
    const float dy = y[j] - yi;
    const float dz = z[j] - zi;
    const float reach = r[j] + ri;
    hits[j] = static_cast<std::uint8_t>(static_cast<int>(dx * dx + dy * dy + dz * dz <= reach * reach) & allowed[j]);
  }
}

/// Oriented boxes of the listed pairs: touch[k] = 0 when one of 15 axes keeps them farther apart than the margin. An
/// axis of length <= 1 needs no scaling: the test only becomes more careful. world: rows of poses; half: 3 rows.
COULOMB_SIMD void test_boxes(int count, int stride, const int* __restrict first, const int* __restrict second,
                             const double* __restrict margins, const double* __restrict world,
                             const double* __restrict half, int* __restrict touch) {
  for (int k = 0; k < count; ++k) {
    // Poses, half sides, and the vector between the centres.
    const double* A = world + first[k];
    const double* B = world + second[k];
    const double ha[3] = {half[first[k]], half[stride + first[k]], half[2 * stride + first[k]]};
    const double hb[3] = {half[second[k]], half[stride + second[k]], half[2 * stride + second[k]]};
    const double dx = B[12 * stride] - A[12 * stride];
    const double dy = B[13 * stride] - A[13 * stride];
    const double dz = B[14 * stride] - A[14 * stride];
    const double margin = margins[k] + 1e-12 * (ha[0] + ha[1] + ha[2] + hb[0] + hb[1] + hb[2]);

    // In the axes of A: that vector and the axes of B.
    double t[3];
    double R[9];
    double S[9];
    for (int i = 0; i < 3; ++i) {
      t[i] = A[i * stride] * dx + A[(3 + i) * stride] * dy + A[(6 + i) * stride] * dz;
      for (int j = 0; j < 3; ++j) {
        R[3 * i + j] = A[i * stride] * B[j * stride] + A[(3 + i) * stride] * B[(3 + j) * stride] +
                       A[(6 + i) * stride] * B[(6 + j) * stride];
        S[3 * i + j] = std::abs(R[3 * i + j]) + 1e-12;
      }
    }

    // The largest gap over the axes: those of A, those of B, and their cross products.
    double gap = -1e300;
    for (int i = 0; i < 3; ++i) {
      const double along = std::abs(t[i]) - (ha[i] + S[3 * i] * hb[0] + S[3 * i + 1] * hb[1] + S[3 * i + 2] * hb[2]);
      gap = gap > along ? gap : along;
    }
    for (int j = 0; j < 3; ++j) {
      const double along = std::abs(t[0] * R[j] + t[1] * R[3 + j] + t[2] * R[6 + j]) -
                           (hb[j] + ha[0] * S[j] + ha[1] * S[3 + j] + ha[2] * S[6 + j]);
      gap = gap > along ? gap : along;
    }
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        const int i1 = (i + 1) % 3;
        const int i2 = (i + 2) % 3;
        const int j1 = (j + 1) % 3;
        const int j2 = (j + 2) % 3;
        const double along =
            std::abs(t[i2] * R[3 * i1 + j] - t[i1] * R[3 * i2 + j]) -
            (ha[i1] * S[3 * i2 + j] + ha[i2] * S[3 * i1 + j] + hb[j1] * S[3 * i + j2] + hb[j2] * S[3 * i + j1]);
        gap = gap > along ? gap : along;
      }
    touch[k] = gap <= margin;
  }
}

/// Boxes of the listed geometries against the half-space (up, offset): touch[k] = 0 when farther above it than the
/// margin.
COULOMB_SIMD void test_plane(int count, int stride, const int* __restrict other, const double* __restrict margins,
                             double ux, double uy, double uz, double offset, const double* __restrict world,
                             const double* __restrict half, int* __restrict touch) {
  // Height of the box's centre against its half-width along the normal.
  for (int k = 0; k < count; ++k) {
    const double* B = world + other[k];
    const double height = ux * B[12 * stride] + uy * B[13 * stride] + uz * B[14 * stride] - offset;
    double reach = margins[k] + 1e-12 * (1 + std::abs(height) + std::abs(offset));
    for (int i = 0; i < 3; ++i)
      reach += std::abs(ux * B[i * stride] + uy * B[(3 + i) * stride] + uz * B[(6 + i) * stride]) *
               half[i * stride + other[k]];
    touch[k] = height <= reach;
  }
}

/// A ball against a box: the distance of its centre from the box.
bool ball_touches_box(const CollisionWorkspace& w, int ball, int box, double margin) {
  const int stride = w.filter.padded;
  const double* A = &w.pose[ball];
  const double* B = &w.pose[box];

  // The centre in the axes of the box.
  double d[3];
  double gap2 = 0;
  for (int i = 0; i < 3; ++i)
    d[i] = A[(centre_row + i) * stride] - B[(centre_row + i) * stride];
  for (int i = 0; i < 3; ++i) {
    const double q = B[i * stride] * d[0] + B[(3 + i) * stride] * d[1] + B[(6 + i) * stride] * d[2];
    const double out = std::max(std::abs(q) - w.filter.box_half[i * stride + box], 0.0);
    gap2 += out * out;
  }
  const double reach = std::max(w.filter.radius[ball] + margin, 0.0) * (1 + 1e-12);
  return gap2 <= reach * reach;
}

/// How much farther a half-space may come towards a geometry than its own shift says, as it turns.
double turn_of_plane(const CollisionWorkspace& w, int plane, int other) {
  const int stride = w.filter.padded;
  double arm[3];
  for (int i = 0; i < 3; ++i)
    arm[i] = w.pose[(centre_row + i) * stride + other] - w.pose[(position_row + i) * stride + plane];
  return w.turn[plane] * (norm3(arm) + w.filter.radius[other]);
}

/// Candidates with half-spaces: geometries that reach below the plane.
void test_half_spaces(const Model& model, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;
  for (const FilterTables::Plane& plane : t.planes) {
    // The plane.
    const double* P = &w.pose[plane.geometry];
    const double up[3] = {P[2 * t.padded], P[5 * t.padded], P[8 * t.padded]};
    double offset = 0;
    for (int i = 0; i < 3; ++i)
      offset += up[i] * P[(position_row + i) * t.padded];

    // Its geometries together.
    const int count = static_cast<int>(plane.pair.size());
    for (int k = 0; k < count; ++k)
      w.plane_margin[k] = std::max(plane.margin[k], w.least_margin) + margin_width(model, w, plane.pair[k]);
    test_plane(count, t.padded, plane.other.data(), w.plane_margin.data(), up[0], up[1], up[2], offset, w.pose.data(),
               t.box_half.data(), w.touch.data());
    for (int k = 0; k < count; ++k)
      if (w.touch[k]) {
        w.candidates.push_back(plane.pair[k]);
      }
  }

  if (t.planes.size() > 1) {
    std::sort(w.candidates.begin(), w.candidates.end());
  }
}

/// A pair whose spheres overlap: with a ball it becomes a candidate at once if that touches the other's box; the others go through
/// the box test together.
inline void take_pair(const Model& model, int pair, int a, int b, int& num_boxes, CollisionWorkspace& w) {
  // A ball has its own, exact test.
  const double margin = std::max(model.pair_margin[pair], w.least_margin) + margin_width(model, w, pair);
  if (model.geometry_type[a] == ShapeType::sphere) {
    if (ball_touches_box(w, a, b, margin)) {
      w.candidates.push_back(pair);
    }
  } else if (model.geometry_type[b] == ShapeType::sphere) {
    if (ball_touches_box(w, b, a, margin)) {
      w.candidates.push_back(pair);
    }
  } else {
    // Boxes wait for the others.
    w.box_first[num_boxes] = a;
    w.box_second[num_boxes] = b;
    w.box_margin[num_boxes] = margin;
    w.box_pair[num_boxes++] = pair;
  }
}

/// Few geometries: every sphere against the row of its partners. The number of pairs for the box test.
int test_rows(const Model& model, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;

  // Spheres by rows.
  const float* x = w.filter_center.data();
  const float* y = x + t.padded;
  const float* z = y + t.padded;
  const float* r = w.filter_radius.data();
  int num_boxes = 0;

  for (const FilterTables::Row& row : t.rows) {
    const int i = row.geometry;
    const int n = row.end - row.begin;
    test_row(x + row.begin, y + row.begin, z + row.begin, r + row.begin, &t.allowed[row.offset], x[i], y[i], z[i], r[i],
             n, w.hits.data());
    for_each_hit(w.hits.data(), n,
                 [&](int j) { take_pair(model, t.pair_of[row.offset + j], i, row.begin + j, num_boxes, w); });
  }
  return num_boxes;
}

/// Many geometries: the spheres that the sweep finds. The number of pairs for the box test.
int test_swept(const Model& model, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;

  // The sweep gives pairs of spheres, which need not be pairs of the model.
  const float* centre = w.filter_center.data();
  w.sweep.run({{centre, centre + t.padded, centre + 2 * t.padded}, w.filter_radius.data()});
  const std::size_t count = w.sweep.first.size();
  w.reserve_boxes(count);
  int num_boxes = 0;

  for (std::size_t k = 0; k < count; ++k) {
    const int a = w.sweep.first[k];
    const int b = w.sweep.second[k];
    const int pair = t.lookup.find(model, a, b);
    if (pair >= 0) {
      take_pair(model, pair, a, b, num_boxes, w);
    }
  }
  return num_boxes;
}

/// Candidates of two kinds, the first `count` and the others, each ascending, become one list.
void merge_candidates(std::size_t count, CollisionWorkspace& w) {
  std::vector<int>& all = w.candidates;
  if (count == 0 || count == all.size() || all[count - 1] < all[count]) return;

  // What is written has been read: out <= next.
  w.merged.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count));
  std::size_t next = count;
  std::size_t out = 0;
  for (const int pair : w.merged) {
    while (next < all.size() && all[next] < pair)
      all[out++] = all[next++];
    all[out++] = pair;
  }
}

/// The box test, for all that waited for it.
void add_touching_boxes(int num_boxes, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;
  test_boxes(num_boxes, t.padded, w.box_first.data(), w.box_second.data(), w.box_margin.data(), w.pose.data(),
             t.box_half.data(), w.touch.data());
  for (int k = 0; k < num_boxes; ++k)
    if (w.touch[k]) {
      w.candidates.push_back(w.box_pair[k]);
    }
}

}  // namespace

double margin_width(const Model& model, const CollisionWorkspace& w, int pair) {
  if (!w.travels) return 0;
  const int a = model.pair_a[pair];
  const int b = model.pair_b[pair];

  double together[3];
  sub3(&w.shift[3 * a], &w.shift[3 * b], together);

  // Their shifts count together, their turns each for itself.
  const bool plane_a = model.geometry_type[a] == ShapeType::half_space;
  const bool plane_b = model.geometry_type[b] == ShapeType::half_space;
  return norm3(together) + (plane_a ? turn_of_plane(w, a, b) : w.turn[a]) +
         (plane_b ? turn_of_plane(w, b, a) : w.turn[b]);
}

double follow_travel(const Model& model, const double* body_rotation, const double* travel, int g,
                     CollisionWorkspace& w) {
  const FilterTables& t = w.filter;

  // The centre in the body, then how the body's twist moves it.
  const int body = model.geometry_body[g];
  const double* moves = travel + 6 * body;
  double* shift = &w.shift[3 * g];
  double centre[3];
  double arm[3];
  for (int i = 0; i < 3; ++i)
    centre[i] = t.local[(centre_row + i) * t.padded + g];
  rotate(body_rotation + 9 * body, centre, arm);

  copy3(moves, shift);
  add_cross3(moves + 3, arm, shift);

  // A ball's turn moves nothing: `core` is how far from its centre a shape turns.
  w.turn[g] = norm3(moves + 3) * t.core[g];
  return norm3(shift) + w.turn[g];
}

namespace {

/// World poses and bounding spheres of a block of geometries, with how far their surfaces may come.
void place_geometries(const Model& model, FilterTables::Block block, const double* body_position,
                      const double* body_rotation, const double* travel, CollisionWorkspace& w) {
  const FilterTables& t = w.filter;
  const int end = std::min(block.end, model.num_geometries);
  const bool wider = w.travels || w.least_margin > 0;
  for (int g = block.begin; g < end && wider; ++g) {
    w.reach[g] = t.reach[g] + 0.5 * w.least_margin;
    if (w.travels) {
      w.reach[g] += follow_travel(model, body_rotation, travel, g, w);
    }
  }

  const int g = block.begin;
  pose_rows(end - g, block.end - g, t.padded, model.geometry_body.data() + g, body_position, body_rotation,
            t.local.data() + g, (wider ? w.reach.data() : t.reach.data()) + g, w.pose.data() + g,
            w.filter_center.data() + g, w.filter_radius.data() + g);
}

/// True if the fixed geometries' poses and spheres are those that the workspace has. Else the bodies' places are kept for the next
/// detection, unless they travel: then nothing is known of the next one.
bool are_fixed_known(const Model& model, const double* body_position, const double* body_rotation, const double* travel,
                     CollisionWorkspace& w) {
  FixedPlaces& places = w.fixed;
  bool same = places.known && places.least_margin == w.least_margin;

  // Bodies that are fixed do not travel, and are where the model has them, if it has them at all.
  if (same && model.fixed_poses != nullptr && places.of_model == model.fixed_poses) return true;
  places.of_model = model.fixed_poses;
  bool travels = false;
  double* kept = places.poses.data();
  for (const int b : w.filter.fixed.bodies) {
    const double* position = body_position + 3 * b;
    const double* rotation = body_rotation + 9 * b;
    same = same && std::equal(position, position + 3, kept) && std::equal(rotation, rotation + 9, kept + 3);
    copy3(position, kept);
    std::copy(rotation, rotation + 9, kept + 3);
    kept += 12;
    for (int i = 0; i < 6 && travel; ++i)
      travels = travels || travel[6 * b + i] != 0;
  }

  // None of them travels, whoever asks next.
  if (!same && !travel)
    for (const int g : w.filter.fixed.geometries) {
      std::fill_n(&w.shift[3 * g], 3, 0.0);
      w.turn[g] = 0;
    }
  places.least_margin = w.least_margin;
  places.known = !travels;
  return same && !travels;
}

}  // namespace

void filter_pairs(const Model& model, const double* body_position, const double* body_rotation, const double* travel,
                  CollisionWorkspace& w) {
  const FilterTables& t = w.filter;

  // Fixed geometries lie where they lay, unless this is the first detection with their margin.
  w.candidates.clear();
  w.travels = travel != nullptr;
  const bool kept = !t.fixed.geometries.empty() && are_fixed_known(model, body_position, body_rotation, travel, w);
  if (kept) {
    for (const FilterTables::Block& block : t.fixed.others)
      place_geometries(model, block, body_position, body_rotation, travel, w);
  } else {
    place_geometries(model, {0, t.padded}, body_position, body_rotation, travel, w);
    if (!t.fixed.geometries.empty()) {
      const float* centre = w.filter_center.data();
      w.sweep.place_still({{centre, centre + t.padded, centre + 2 * t.padded}, w.filter_radius.data()});
    }
  }

  // Spheres, against half-spaces and against one another.
  test_half_spaces(model, w);
  const std::size_t of_half_spaces = w.candidates.size();
  const int num_boxes = t.swept ? test_swept(model, w) : test_rows(model, w);

  // Boxes of what overlaps.
  merge_candidates(of_half_spaces, w);
  const std::size_t without_boxes = w.candidates.size();
  add_touching_boxes(num_boxes, w);
  merge_candidates(without_boxes, w);
}

}  // namespace coulomb

// The sweep and the tree find the spheres that overlap, however they lie and move. Swept and tested pair by pair, a scene gives the same
// candidates and the same contacts, bit for bit, allocates nothing once it is warm, and remembers its candidates only.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "check.hpp"
#include "collision/scene.hpp"
#include "coulomb/collision/continuous/swept_filter.hpp"
#include "count_allocations.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr int always = 0, never = 1 << 30;  // from how many geometries on a scene is swept

struct Spheres {
  std::vector<float> x, y, z, r;

  explicit Spheres(int n) : x(n), y(n), z(n), r(n) {}
  int count() const { return static_cast<int>(x.size()); }
  SphereRows rows() const { return {{x.data(), y.data(), z.data()}, r.data()}; }

  /// Distance of the surfaces over the sum of the radii.
  double gap(int i, int j) const {
    const double dx = double(x[i]) - x[j], dy = double(y[i]) - y[j], dz = double(z[i]) - z[j];
    const double reach = double(r[i]) + r[j];
    return std::sqrt(dx * dx + dy * dy + dz * dz) / reach - 1;
  }
};

void check_sweep(SphereSweep& sweep, const Spheres& s, const std::vector<int>& members) {
  sweep.run(s.rows());
  std::vector<std::uint8_t> found(std::size_t(s.count()) * s.count(), 0);
  bool ascending = true;
  for (std::size_t k = 0; k < sweep.first.size(); ++k) {
    const int a = sweep.first[k], b = sweep.second[k];
    ascending = ascending && a < b;
    if (k > 0) ascending = ascending && std::pair(sweep.first[k - 1], sweep.second[k - 1]) < std::pair(a, b);
    found[std::size_t(a) * s.count() + b] = 1;
  }
  CHECK(ascending);

  int missed = 0, wrong = 0;
  std::size_t inside = 0;
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t j = i + 1; j < members.size(); ++j) {
      const bool hit = found[std::size_t(members[i]) * s.count() + members[j]];
      const double gap = s.gap(members[i], members[j]);
      inside += hit;
      missed += !hit && !(gap > 1e-6);  // what cannot be told is a hit
      wrong += hit && gap > 1e-6;
    }
  CHECK(missed == 0 && wrong == 0);
  CHECK(inside == sweep.first.size());  // nothing but members
}

/// Each sphere finds in a tree of the members what the test of every one finds, bit for bit.
void check_tree(const Spheres& s, const std::vector<int>& members) {
  SphereTree tree;
  tree.build(s.rows(), members);
  std::vector<int> found, expected;
  bool same = true;
  for (int g = 0; g < s.count(); ++g) {
    const SphereAt sphere = {{s.x[g], s.y[g], s.z[g]}, s.r[g]};
    found.clear(), expected.clear();
    tree.find(sphere, found);
    for (const int other : members) {
      float x[8] = {s.x[other]}, y[8] = {s.y[other]}, z[8] = {s.z[other]}, r[8] = {s.r[other]};
      std::uint8_t hits[8];
      test_spheres(x, y, z, r, sphere, 8, hits);
      if (hits[0]) expected.push_back(other);
    }
    std::sort(found.begin(), found.end());
    same = same && found == expected;
  }
  CHECK(same);
}

void overlapping_spheres() {
  Random random;
  for (const int n : {0, 1, 2, 17, 300}) {
    Spheres s(n);
    std::vector<int> members;
    for (int g = 0; g < n; ++g)
      if (n < 10 || g % 7 != 3) members.push_back(g);
    SphereSweep sweep(members, n);
    for (int sample = 0; sample < 60; ++sample) {
      // a cloud, a tower along each axis, a plane, far from the origin; small moves in between
      const int shape = sample / 4 % 6;
      const double extent[3] = {shape == 1 ? 50. : 2., shape == 2 ? 50. : 2., shape == 3 ? 50. : shape == 4 ? 0. : 2.};
      const double far = shape == 5 ? 1e5 : 0;
      for (int g = 0; g < n; ++g) {
        if (sample % 4 == 0) {
          s.x[g] = static_cast<float>(far + random.uniform(-extent[0], extent[0]));
          s.y[g] = static_cast<float>(-far + random.uniform(-extent[1], extent[1]));
          s.z[g] = static_cast<float>(far + random.uniform(-extent[2], extent[2]));
          s.r[g] = static_cast<float>(std::exp(random.uniform(-5, g % 50 == 0 ? 3 : -1)));
        } else {
          s.x[g] += static_cast<float>(random.uniform(-0.01, 0.01));
          s.z[g] += static_cast<float>(random.uniform(-0.01, 0.01));
        }
      }
      check_sweep(sweep, s, members);
    }
  }
}

void numbers_that_are_none() {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  Spheres s(40);
  std::vector<int> members(s.count());
  for (int g = 0; g < s.count(); ++g) members[g] = g, s.x[g] = static_cast<float>(g), s.r[g] = g % 3 == 0 ? 0.6f : 0.1f;
  s.x[5] = nan, s.y[11] = infinity, s.r[20] = infinity, s.x[31] = -infinity, s.x[32] = infinity;
  SphereSweep sweep(members, s.count());
  check_sweep(sweep, s, members);
  check_tree(s, members);
}

/// Few, a full subtree and one more, many; side by side, in one place, and of very different sizes.
void spheres_in_a_tree() {
  Random random;
  for (const int n : {0, 1, 16, 17, 256, 257, 900})
    for (const double extent : {0., 0.5, 20.}) {
      Spheres s(n);
      for (int g = 0; g < n; ++g) {
        s.x[g] = static_cast<float>(random.uniform(-extent, extent));
        s.y[g] = static_cast<float>(random.uniform(-extent, extent));
        s.z[g] = static_cast<float>(random.uniform(-0.1, 0.1));
        s.r[g] = static_cast<float>(std::exp(random.uniform(-4, g % 90 == 0 ? 2 : -1)));
      }
      std::vector<int> members;
      for (int g = 0; g < n; ++g)
        if (n < 20 || g % 5 != 2) members.push_back(g);
      check_tree(s, members);
    }
}

/// Shapes of all kinds and of very different sizes, two half-spaces among them; some pairs do not collide.
Scene crowd(int n, double margin) {
  Scene scene;
  Random random;
  const auto mesh = faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6);
  for (int k = 0; k < n; ++k) {
    const double s = k % 40 == 7 ? 1.5 : random.uniform(0.03, 0.15);
    switch (k == 4 || k == 90 ? 6 : k % 6) {
      case 0: scene.add(ShapeType::sphere, s, 0, 0); break;
      case 1: scene.add(ShapeType::capsule, 0.5 * s, s, 0); break;
      case 2: scene.add(ShapeType::cylinder, s, 0.7 * s, 0); break;
      case 3: scene.add(ShapeType::box, s, 0.4 * s, 0.8 * s); break;
      case 4: scene.add(ShapeType::ellipsoid, s, 0.6 * s, 0.9 * s); break;
      case 5: scene.add(ShapeType::mesh, 0, 0, 0, mesh); break;
      default: scene.add(ShapeType::half_space, 0, 0, 0);
    }
  }
  for (int g = 0; g < n; ++g)
    for (int i = 0; i < 3; ++i) scene.model.geometry_pos[3 * g + i] = random.uniform(-0.05, 0.05);
  for (int a = 0; a < n; ++a)
    for (int b = a + 1; b < n; ++b) {
      const bool half_spaces = scene.model.geometry_type[a] == ShapeType::half_space &&
                               scene.model.geometry_type[b] == ShapeType::half_space;
      if (half_spaces || (a + b) % 5 == 0 || a % 30 == 1) continue;
      scene.model.pair_a.push_back(a), scene.model.pair_b.push_back(b);
      scene.model.pair_margin.push_back(a % 3 == 0 ? 2 * margin : margin);
    }
  return scene;
}

void scatter(Scene& scene, Random& random, double far) {
  for (int body = 1; body < scene.model.num_bodies; ++body) {
    const bool half_space = scene.model.geometry_type[body - 1] == ShapeType::half_space;
    random.rotation(scene.body_rotation(body));
    const double upright[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    if (half_space) std::memcpy(scene.body_rotation(body), upright, sizeof upright);
    for (int i = 0; i < 3; ++i) scene.body_position(body)[i] = far + (half_space ? -1.2 : random.uniform(-1.5, 1.5));
  }
}

void nudge(Scene& scene, Random& random) {
  for (int body = 1; body < scene.model.num_bodies; ++body) {
    double shift[3], turn[3];
    for (int i = 0; i < 3; ++i) shift[i] = random.uniform(-0.01, 0.01), turn[i] = random.uniform(-0.02, 0.02);
    move_body(scene, body, scene.body_position(body), shift, turn);
  }
}

void detect(const Scene& scene, CollisionCache& cache, CollisionWorkspace& w) {
  detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {}, cache, w);
}

bool same_contacts(const std::vector<Contact>& a, const std::vector<Contact>& b) {
  bool same = a.size() == b.size();
  for (std::size_t k = 0; same && k < a.size(); ++k)
    same = a[k].pair == b[k].pair && a[k].feature == b[k].feature && a[k].distance == b[k].distance &&
           std::memcmp(a[k].normal, b[k].normal, sizeof a[k].normal) == 0 &&
           std::memcmp(a[k].point_a, b[k].point_a, sizeof a[k].point_a) == 0 &&
           std::memcmp(a[k].point_b, b[k].point_b, sizeof a[k].point_b) == 0;
  return same;
}

bool same_cache(const CollisionCache& a, const CollisionCache& b) {
  static_assert(sizeof(CollisionCache::Pair) == 3 * sizeof(double) + 12 * sizeof(int));  // no padding
  return a.pair_indices == b.pair_indices && a.pairs.size() == b.pairs.size() &&
         (a.pairs.empty() || std::memcmp(a.pairs.data(), b.pairs.data(), a.pairs.size() * sizeof a.pairs[0]) == 0);
}

void both_filters() {
  Random random;
  for (const double margin : {1e-6, 0.03}) {
    Scene scene = crowd(260, margin);
    CollisionWorkspace swept(scene.model, always), listed(scene.model, never);
    CHECK(swept.filter.swept && !listed.filter.swept);
    CHECK(swept.filter.rows.empty() && swept.filter.allowed.empty() && swept.filter.pair_of.empty());
    CollisionCache cache, other;
    std::size_t contacts = 0;
    for (int sample = 0; sample < 60; ++sample) {
      if (sample % 6 == 0) scatter(scene, random, sample % 12 == 6 ? 1000 : 0);
      else nudge(scene, random);
      detect(scene, cache, swept), detect(scene, other, listed);
      CHECK(std::is_sorted(swept.candidates.begin(), swept.candidates.end()));
      CHECK(swept.candidates == listed.candidates);
      CHECK(same_contacts(swept.contacts, listed.contacts));
      CHECK(same_cache(cache, other));
      CHECK(cache.pair_indices == swept.candidates);
      contacts += swept.contacts.size();
    }
    CHECK(contacts > 5000);
  }
}

/// Two bodies in three are fixed to the world; a few pairs among these are named all the same.
void fix_bodies(Scene& scene) {
  Model& m = scene.model;
  m.body_tree.assign(m.num_bodies, -1);
  for (int b = 1; b < m.num_bodies; ++b)
    if (b % 3 == 0) m.body_tree[b] = b / 3;
  std::size_t kept = 0;
  for (std::size_t p = 0; p < m.pair_a.size(); ++p) {
    const bool both = m.body_tree[m.geometry_body[m.pair_a[p]]] < 0 && m.body_tree[m.geometry_body[m.pair_b[p]]] < 0;
    if (both && p % 1000 != 0) continue;
    m.pair_a[kept] = m.pair_a[p], m.pair_b[kept] = m.pair_b[p], m.pair_margin[kept++] = m.pair_margin[p];
  }
  m.pair_a.resize(kept), m.pair_b.resize(kept), m.pair_margin.resize(kept);
}

/// What is fixed lies in a tree: the same, though it may be placed anew, travel all the same, or be asked for with another margin.
void fixed_bodies() {
  Random random;
  Scene scene = crowd(400, 1e-3);
  fix_bodies(scene);
  CollisionWorkspace swept(scene.model, always), listed(scene.model, never);
  const FilterTables::Fixed& fixed = swept.filter.fixed;
  CHECK(fixed.geometries.size() > 150 && listed.filter.fixed.geometries.empty());
  CollisionCache cache, other;
  std::vector<double> travel(6 * scene.model.num_bodies);
  std::size_t contacts = 0;
  scatter(scene, random, 0);
  for (int sample = 0; sample < 90; ++sample) {
    if (sample % 30 == 29) scatter(scene, random, 0);
    for (int body = 1; body < scene.model.num_bodies; ++body) {
      const bool moves = scene.model.body_tree[body] >= 0 || sample % 20 == 7;
      double shift[3], turn[3];
      for (int i = 0; i < 3; ++i) shift[i] = random.uniform(-0.02, 0.02), turn[i] = random.uniform(-0.02, 0.02);
      if (moves) move_body(scene, body, scene.body_position(body), shift, turn);
      for (int i = 0; i < 6; ++i) travel[6 * body + i] = moves && sample % 20 != 8 ? random.uniform(-0.02, 0.02) : 0;
    }
    const double* travels = sample % 4 == 1 ? nullptr : travel.data();
    const CollisionOptions options{.least_margin = sample % 7 == 0 ? 0.02 : 0};
    const double *position = scene.position.data(), *rotation = scene.rotation.data();
    detect_contacts(scene.model, position, rotation, options, cache, swept, travels);
    detect_contacts(scene.model, position, rotation, options, other, listed, travels);
    CHECK(swept.candidates == listed.candidates);
    CHECK(same_contacts(swept.contacts, listed.contacts));
    CHECK(same_cache(cache, other));
    CHECK(swept.pose == listed.pose && swept.filter_radius == listed.filter_radius);
    contacts += swept.contacts.size();
  }
  CHECK(contacts > 5000);

  // Few of them are swept with the others.
  Scene few = crowd(40, 1e-3);
  fix_bodies(few);
  CHECK(CollisionWorkspace(few.model, always).filter.fixed.geometries.empty());
}

void both_swept_filters() {
  Random random;
  Scene scene = crowd(230, 1e-6);
  SweptFilter swept(scene.model, always), listed(scene.model, never);
  const int n = scene.model.num_geometries;
  std::vector<double> up(3 * n);
  std::size_t pairs = 0;
  for (int sample = 0; sample < 20; ++sample) {
    for (int g = 0; g < n; ++g) {
      for (int i = 0; i < 3; ++i) swept.centre[3 * g + i] = random.uniform(-2, 2);
      random.direction(&up[3 * g]);
      swept.reach[g] = random.uniform(0, 0.1);
    }
    listed.centre = swept.centre, listed.reach = swept.reach;
    swept.run(scene.model, up.data()), listed.run(scene.model, up.data());
    CHECK(swept.pairs == listed.pairs);
    pairs += swept.pairs.size();
  }
  CHECK(pairs > 5000);
}

void lookup() {
  const Scene scene = crowd(120, 1e-6);
  const Model& m = scene.model;
  const PairLookup of(m);
  std::size_t next = 0;
  bool right = true;
  for (int a = 0; a < m.num_geometries; ++a)
    for (int b = a + 1; b < m.num_geometries; ++b) {
      const bool pair = next < m.pair_a.size() && m.pair_a[next] == a && m.pair_b[next] == b;
      right = right && of.find(m, a, b) == (pair ? static_cast<int>(next) : -1);
      next += pair;
    }
  CHECK(right && next == m.pair_a.size());
}

void no_allocation(bool with_fixed) {
  Scene scene = crowd(260, 1e-6);
  if (with_fixed) fix_bodies(scene);
  CollisionWorkspace w(scene.model, always);
  CHECK(w.filter.fixed.geometries.empty() != with_fixed);
  CollisionCache cache;
  const auto run = [&] {
    Random random;
    for (int sample = 0; sample < 30; ++sample) {
      if (sample % 10 == 0) scatter(scene, random, 0);
      else nudge(scene, random);
      detect(scene, cache, w);
    }
  };
  run(), run();
  const long before = allocations;
  run();
  CHECK(allocations == before);
}

void memory() {
  Random random;
  Scene scene = crowd(230, 1e-6);
  CollisionWorkspace w(scene.model), again(scene.model);
  CollisionCache cache;
  scatter(scene, random, 0);
  for (int step = 0; step < 5; ++step) nudge(scene, random), detect(scene, cache, w);

  // a copy goes on as the original does, in a workspace that saw other poses before
  CollisionCache copy = cache, other;
  Scene elsewhere = scene;
  scatter(elsewhere, random, 5);
  detect(elsewhere, other, again);
  for (int step = 0; step < 5; ++step) {
    nudge(scene, random);
    detect(scene, cache, w), detect(scene, copy, again);
    CHECK(same_contacts(w.contacts, again.contacts) && same_cache(cache, copy));
  }

  // frozen: read, not written; what is unknown is fresh
  const CollisionCache before = cache;
  nudge(scene, random);
  detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {.frozen_cache = true}, cache, w);
  CHECK(same_cache(cache, before));
  detect(scene, copy, again);
  CHECK(same_contacts(w.contacts, again.contacts));

  // out of reach and back is as never seen; so is a reset
  const Scene here = scene;
  for (int body = 1; body < scene.model.num_bodies; ++body) {
    const bool half_space = scene.model.geometry_type[body - 1] == ShapeType::half_space;
    scene.body_position(body)[2] += half_space ? -1e5 : 100. * body;
  }
  detect(scene, cache, w);
  CHECK(cache.pairs.empty() && !before.pairs.empty());
  scene = here;
  CollisionCache fresh;
  detect(scene, fresh, w), detect(scene, cache, again);
  CHECK(same_cache(fresh, cache));
  copy.reset();
  detect(scene, copy, again);
  CHECK(same_cache(fresh, copy));
  const CollisionCache::Pair* known = fresh.find(fresh.pair_indices.back());
  CHECK(known == &fresh.pairs.back() && fresh.find(-1) == nullptr && fresh.find(never) == nullptr);
}

}  // namespace

int main() {
  overlapping_spheres();
  numbers_that_are_none();
  spheres_in_a_tree();
  both_filters();
  fixed_bodies();
  both_swept_filters();
  lookup();
  no_allocation(false);
  no_allocation(true);
  memory();
  return report();
}

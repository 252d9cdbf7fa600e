// The filter never drops a pair that touches, returns its candidates in order, and a cluttered scene gives ordered,
// equal results.
#include <algorithm>
#include <cstring>

#include "check.hpp"
#include "collision/scene.hpp"
#include "coulomb/collision/narrow_phase/convex_convex.hpp"
#include "coulomb/collision/narrow_phase/primitives_half_space.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

Scene clutter(double margin) {
  Scene scene;
  const auto mesh = faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6);
  scene.add(ShapeType::sphere, 0.1, 0, 0);
  scene.add(ShapeType::half_space, 0, 0, 0);
  for (int k = 0; k < 6; ++k) {
    scene.add(ShapeType::sphere, 0.05 + 0.01 * k, 0, 0);
    scene.add(ShapeType::capsule, 0.04, 0.1 + 0.02 * k, 0);
    scene.add(ShapeType::cylinder, 0.08, 0.1, 0);
    scene.add(ShapeType::box, 0.1, 0.02 + 0.02 * k, 0.08);
    scene.add(ShapeType::ellipsoid, 0.08, 0.11, 0.14);
    scene.add(ShapeType::mesh, 0, 0, 0, mesh);
  }
  // places on the body other than its origin
  Random random;
  for (int g = 2; g < scene.model.num_geometries; ++g)
    for (int i = 0; i < 3; ++i) scene.model.geometry_pos[3 * g + i] = random.uniform(-0.1, 0.1);
  scene.connect_all(margin);
  return scene;
}

Shape shape_of(const Scene& scene, int g) {
  const Model& m = scene.model;
  Shape s;
  s.type = m.geometry_type[g], s.size = &m.geometry_size[3 * g];
  s.mesh = m.geometry_mesh[g] < 0 ? nullptr : m.meshes[m.geometry_mesh[g]].get();
  const double* R = &scene.rotation[9 * m.geometry_body[g]];
  rotate(R, &m.geometry_pos[3 * g], s.position);
  add3(s.position, &scene.position[3 * m.geometry_body[g]], s.position);
  std::memcpy(s.rotation, R, sizeof s.rotation);
  return s;
}

CollidePair half_space_routine(ShapeType type) {
  switch (type) {
    case ShapeType::sphere: return collide_half_space_sphere;
    case ShapeType::capsule: return collide_half_space_capsule;
    case ShapeType::cylinder: return collide_half_space_cylinder;
    case ShapeType::box: return collide_half_space_box;
    case ShapeType::ellipsoid: return collide_half_space_ellipsoid;
    default: return collide_half_space_mesh;
  }
}

bool touches(const Scene& scene, int pair) {
  Shape a = shape_of(scene, scene.model.pair_a[pair]), b = shape_of(scene, scene.model.pair_b[pair]);
  if (a.type > b.type) std::swap(a, b);
  const CollidePair collide = a.type == ShapeType::half_space ? half_space_routine(b.type) : collide_convex;
  CollisionCache::Pair cache;
  Contact out[8];
  return collide(a, b, scene.model.pair_margin[pair], {}, cache, out) > 0;
}

}  // namespace

int main() {
  Random random;
  for (const double margin : {0.0, 0.03}) {
    Scene scene = clutter(margin);
    CollisionWorkspace w(scene.model), again(scene.model);
    const int num_pairs = static_cast<int>(scene.model.pair_a.size());
    int touching = 0, candidates = 0;
    for (int sample = 0; sample < 20; ++sample) {
      const double far = sample % 2 == 0 ? 0 : 1000;  // single precision is poor far from the origin
      for (int body = 1; body < scene.model.num_bodies; ++body) {
        random.rotation(scene.body_rotation(body));
        for (int i = 0; i < 3; ++i) scene.body_position(body)[i] = far + random.uniform(-0.6, 0.6);
      }
      for (int i = 0; i < 3; ++i) scene.body_position(2)[i] = far - 0.3;  // the half-space
      CollisionCache cache, second;
      detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {}, cache, w);
      detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {}, second, again);
      CHECK(std::is_sorted(w.candidates.begin(), w.candidates.end()));
      candidates += static_cast<int>(w.candidates.size());
      std::size_t next = 0;
      for (int pair = 0; pair < num_pairs; ++pair) {
        const bool kept = next < w.candidates.size() && w.candidates[next] == pair;
        next += kept;
        const bool touch = touches(scene, pair);
        touching += touch;
        CHECK(kept || !touch);
      }
      CHECK(w.contacts.size() == again.contacts.size());
      for (std::size_t k = 0; k < w.contacts.size(); ++k) {
        const Contact &c = w.contacts[k], &d = again.contacts[k];
        CHECK(c.distance == d.distance && c.feature == d.feature);
        CHECK(c.geometry_a < c.geometry_b && c.body_a == c.geometry_a + 1 && c.size > 0);
        if (k > 0)
          CHECK(w.contacts[k - 1].pair < c.pair ||
                (w.contacts[k - 1].pair == c.pair && w.contacts[k - 1].feature < c.feature));
      }
    }
    std::printf("margin %g: %d pairs, %d candidates, %d touching\n", margin, 20 * num_pairs, candidates, touching);
    CHECK(touching > 200);
  }
  return report();
}

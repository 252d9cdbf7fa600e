// Bodies that travel: contacts within the margin are those of bodies that stand still, whatever the travel and whatever is known of the
// pair; beyond, what the travel brings together has a contact.
#include <algorithm>
#include <iterator>

#include "check.hpp"
#include "collision/scene.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

constexpr double margin = 1e-3;

Scene clutter() {
  Scene scene;
  const auto mesh = faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6);
  scene.add(ShapeType::half_space, 0, 0, 0);
  for (int k = 0; k < 3; ++k) {
    scene.add(ShapeType::sphere, 0.05 + 0.02 * k, 0, 0);
    scene.add(ShapeType::capsule, 0.04, 0.1 + 0.02 * k, 0);
    scene.add(ShapeType::cylinder, 0.08, 0.1, 0);
    scene.add(ShapeType::box, 0.1, 0.05 + 0.02 * k, 0.08);
    scene.add(ShapeType::ellipsoid, 0.08, 0.11, 0.14);
    scene.add(ShapeType::mesh, 0, 0, 0, mesh);
  }
  scene.connect_all(margin);
  return scene;
}

bool same(const Contact& a, const Contact& b) {
  return a.pair == b.pair && a.feature == b.feature && a.distance == b.distance &&
         std::equal(a.point, a.point + 3, b.point) && std::equal(a.normal, a.normal + 3, b.normal);
}

bool touches(const std::vector<Contact>& contacts, int pair) {
  return std::any_of(contacts.begin(), contacts.end(), [pair](const Contact& c) { return c.pair == pair; });
}

}  // namespace

int main() {
  Random random;
  Scene scene = clutter();
  CollisionWorkspace still(scene.model), moving(scene.model), later(scene.model);
  CollisionCache cache, known;
  const int num_pairs = static_cast<int>(scene.model.pair_a.size());
  std::vector<double> travel(6 * scene.model.num_bodies, 0.0);
  int within = 0, ahead = 0, met = 0;
  for (int sample = 0; sample < 60; ++sample) {
    if (sample % 4 == 0)
      for (int body = 2; body < scene.model.num_bodies; ++body) {
        random.rotation(scene.body_rotation(body));
        for (int i = 0; i < 3; ++i) scene.body_position(body)[i] = random.uniform(-0.4, 0.4) + (i == 2 ? 0.35 : 0);
      }
    for (int body = 2; body < scene.model.num_bodies; ++body)
      for (int i = 0; i < 6; ++i) travel[6 * body + i] = random.uniform(-0.03, 0.03) * (sample % 3);
    detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {}, cache, still);
    detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), {}, known, moving, travel.data());

    // those within the margin
    std::vector<Contact> near;
    std::copy_if(moving.contacts.begin(), moving.contacts.end(), std::back_inserter(near),
                 [](const Contact& c) { return c.distance <= margin; });
    CHECK(near.size() == still.contacts.size());
    for (std::size_t k = 0; k < near.size(); ++k) CHECK(same(near[k], still.contacts[k]));
    within += static_cast<int>(near.size());

    // those beyond
    for (const Contact& c : moving.contacts) {
      if (c.distance <= margin) continue;
      CHECK(c.distance <= margin + margin_width(scene.model, moving, c.pair));
      ++ahead;
    }
    for (std::size_t k = 1; k < moving.contacts.size(); ++k)
      CHECK(moving.contacts[k - 1].pair <= moving.contacts[k].pair);

    // what comes together on the way
    Scene end = scene;
    for (int body = 2; body < scene.model.num_bodies; ++body) {
      const std::vector<double> at(scene.body_position(body), scene.body_position(body) + 3);
      move_body(end, body, at.data(), &travel[6 * body], &travel[6 * body + 3]);
    }
    CollisionCache cold;
    detect_contacts(end.model, end.position.data(), end.rotation.data(), {}, cold, later);
    for (int pair = 0; pair < num_pairs; ++pair) {
      if (!touches(later.contacts, pair) || touches(still.contacts, pair)) continue;
      CHECK(touches(moving.contacts, pair));
      ++met;
    }
  }
  std::printf("%d contacts within the margin, %d ahead, %d pairs that met\n", within, ahead, met);
  CHECK(within > 100 && ahead > 100 && met > 20);
  return report();
}

// Scene: masses and pairs of a small scene, material rules, and that bad input is refused by name and changes nothing.
#include "coulomb/scene.hpp"

#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "refuses.hpp"

using namespace coulomb;
using test::refuses;

int main() {
  Scene scene;
  scene.add_ground({.friction = 0.8});
  ShapeOptions box{.mass = 2.0, .position = {0, 0, 0.1}};
  box.name = "box";
  scene.add_box({0.2, 0.4, 0.6}, box);
  ShapeOptions ball{.density = 1000.0, .position = {1, 0, 0.5}, .friction = 0.3, .restitution = 0.5};
  scene.add_sphere(0.1, ball);
  ShapeOptions wall;
  wall.fixed = true;
  scene.add_capsule(0.1, 0.5, wall);
  const auto model = scene.build();
  CHECK(model->num_bodies == 4 && model->nq == 14 && model->nv == 12 && model->num_geometries == 4);
  CHECK(model->body_names[1] == "box" && model->geometry_names[0] == "ground");
  CHECK_NEAR(model->body_inertia[6], 2.0 / 12 * (0.16 + 0.36), 1e-15);
  CHECK_NEAR(model->body_mass[2], 1000 * 4.0 / 3 * std::numbers::pi * 1e-3, 1e-12);
  CHECK_NEAR(model->q_neutral[2], 0.1, 0);
  CHECK(model->pair_a.size() ==
        5);  // ground-box, ground-sphere, box-sphere, box-capsule, sphere-capsule; not ground-capsule
  CHECK_NEAR(model->pair_friction[0], 0.8, 0);  // the partner's
  CHECK_NEAR(model->pair_friction[1], 0.8, 0);  // the larger
  CHECK_NEAR(model->pair_restitution[1], 0.5, 0);
  CHECK_NEAR(model->pair_friction[3], 1.0, 0);  // none set

  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(refuses([&] { scene.add_box({0.2, -1, 0.2}); }, "size[1]"));
  CHECK(refuses([&] { scene.add_sphere(nan); }, "radius"));
  CHECK(refuses([&] { scene.add_sphere(0.1, {.mass = 0.0}); }, "mass"));
  CHECK(refuses([&] { scene.add_sphere(0.1, {.mass = 1.0, .quaternion = {1, 1, 0, 0}}); }, "quaternion"));
  CHECK(refuses([&] { scene.add_sphere(0.1, {.mass = 1.0, .friction = -0.1}); }, "friction"));
  CHECK(refuses([&] { scene.add_ground({.restitution = 1.5}); }, "restitution"));
  CHECK(refuses([&] { scene.add_box({1, 1, 1}, box); }, "'box' is taken"));
  ShapeOptions bad{.mass = 1.0};
  bad.inertia = {1, 0, 1, 0, 0, 3};  // 1 + 1 < 3
  CHECK(refuses([&] { scene.add_sphere(0.1, bad); }, "triangle"));
  CHECK(refuses([&] { scene.add_urdf("/no/such/robot.urdf"); }, "no such file"));
  CHECK(scene.build()->num_bodies == 4);

  // names: the kind, numbered; across bodies and geometries; a scene is copied with its names
  Scene names;
  names.add_ground({.name = "box_3"});
  for (int k = 0; k < 3; ++k) names.add_box({1, 1, 1});
  Scene copy = names;
  CHECK(names.add_box({1, 1, 1}).name == "box_5" && copy.add_box({1, 1, 1}).name == "box_5");
  const auto named = names.build();
  CHECK(named->body_names[1] == "box" && named->body_names[2] == "box_2" && named->body_names[3] == "box_4");
  CHECK(named->joint_names[3] == "box_5_joint" && named->geometry_names[0] == "box_3");
  names.add_ground(), names.add_ground();
  CHECK(names.build()->geometry_names.back() == "ground_2");
  CHECK(refuses([&] { names.add_ground({.name = "box_4"}); }, "'box_4' is taken"));
  return test::report();
}

// Scenes of bodies of any size, mass and place, with springs, and their steps.
#include "coulomb/scene.hpp"
#include "trial.hpp"

namespace {

using namespace coulomb;
using fuzz::Bytes;

ShapeOptions random_body(Bytes& bytes) {
  ShapeOptions body;
  if (bytes.coin()) body.mass = bytes.size();
  if (bytes.choice(4)) {
    for (double& e : body.position) e = bytes.number();
  }
  if (bytes.coin()) {
    double norm = 0;
    for (double& e : body.quaternion) e = bytes.number(), norm += e * e;
    if (norm > 1e-6 && norm < 1e6) {
      for (double& e : body.quaternion) e /= std::sqrt(norm);
    }
  }
  if (bytes.coin()) body.friction = bytes.size();
  if (bytes.choice(4) == 0) body.restitution = bytes.size();
  if (bytes.choice(4) == 0) body.compliance = bytes.size();
  if (bytes.choice(4) == 0) body.penalty.stiffness = bytes.size() * 1e4;
  if (bytes.choice(8) == 0) body.penalty.dashpot = bytes.size() * 1e2;
  body.fixed = bytes.choice(8) == 0;
  return body;
}

void add_shape(Scene& scene, Bytes& bytes) {
  const auto body = random_body(bytes);
  const std::array<double, 3> size{bytes.size(), bytes.size(), bytes.size()};
  switch (bytes.choice(6)) {
    case 0: scene.add_box(size, body); return;
    case 1: scene.add_sphere(size[0], body); return;
    case 2: scene.add_capsule(size[0], size[1], body); return;
    case 3: scene.add_cylinder(size[0], size[1], body); return;
    case 4: scene.add_ellipsoid(size, body); return;
    default:
      std::vector<double> points(static_cast<std::size_t>(3 * (4 + bytes.choice(8))));
      for (double& e : points) e = bytes.number();
      scene.add_mesh(points, body);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  Scene scene;
  std::shared_ptr<const Model> model;
  const bool good = fuzz::accepted([&] {
    if (bytes.choice(4)) {
      GroundOptions ground;
      if (bytes.coin()) ground.friction = bytes.size();
      if (bytes.choice(4) == 0) ground.normal = {bytes.number(), bytes.number(), bytes.number()};
      scene.add_ground(ground);
    }
    const int count = 1 + bytes.choice(5);
    for (int i = 0; i < count; ++i)
      fuzz::accepted([&] { add_shape(scene, bytes); });  // refused: the scene is as it was
    model = scene.build();
  });
  if (good) fuzz::check_steps(model, bytes);
  return 0;
}

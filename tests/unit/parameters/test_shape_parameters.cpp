// size/ and vertices/: what they list, what they write (sharing what did not change, breaking bent faces, refusing by
// name what is no body).
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/scene.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

const std::vector<double> cube = {-.1, -.1, -.1, .1, -.1, -.1, -.1, .1, -.1, .1, .1, -.1,
                                  -.1, -.1, .1,  .1, -.1, .1,  -.1, .1, .1,  .1, .1, .1};

std::shared_ptr<const Model> shapes() {
  Scene scene;
  scene.add_ground();
  const auto named = [](const char* name, double x) {
    ShapeOptions options;
    options.name = name, options.mass = 1.0, options.position = {x, 0, 1};
    return options;
  };
  scene.add_box({0.2, 0.4, 0.6}, named("box", 0));
  scene.add_sphere(0.1, named("ball", 1));
  scene.add_capsule(0.05, 0.3, named("capsule", 2));
  scene.add_cylinder(0.06, 0.2, named("can", 3));
  scene.add_ellipsoid({0.1, 0.2, 0.3}, named("egg", 4));
  scene.add_mesh(cube, named("die", 5));
  return scene.build();
}

const ParameterKind& kind_of(const std::string& name) {
  static const auto size = make_size(), vertices = make_vertices();
  return name[0] == 's' ? *size : *vertices;
}

/// The element of "kind/element"; index -1 if the kind does not list it.
ParameterElement element_of(const Model& model, const std::string& name) {
  for (const ParameterElement& e : kind_of(name).elements(model))
    if (kind_of(name).name() + ("/" + e.name) == name) return e;
  return {"", -1, 0};
}

bool listed(const Model& model, const std::string& name) { return element_of(model, name).index >= 0; }

std::vector<double> value(const Model& model, const std::string& name) {
  const ParameterElement e = element_of(model, name);
  CHECK(e.index >= 0);
  std::vector<double> out(e.size);
  if (e.index >= 0) kind_of(name).read(model, e, out.data());
  return out;
}

std::shared_ptr<const Model> changed(const Model& model, const std::string& name, const std::vector<double>& values) {
  auto out = std::make_shared<Model>(model);
  CHECK(element_of(model, name).size == static_cast<int>(values.size()));
  kind_of(name).write(*out, element_of(model, name), values.data(), "parameter '" + name + "'");
  return out;
}

/// The message of a refusal; empty if the values were taken.
std::string refusal(const Model& model, const std::string& name, const std::vector<double>& values) {
  try {
    changed(model, name, values);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void sizes() {
  const auto model = shapes();
  CHECK((value(*model, "size/box") == std::vector<double>{0.1, 0.2, 0.3}));
  CHECK((value(*model, "size/capsule") == std::vector<double>{0.05, 0.15}));
  CHECK(value(*model, "size/ball").size() == 1 && value(*model, "size/can").size() == 2);
  CHECK(!listed(*model, "size/die") && !listed(*model, "size/ground"));
  CHECK(!listed(*model, "vertices/box"));
  const auto other = changed(*model, "size/egg", {0.2, 0.1, 0.4});
  CHECK((value(*other, "size/egg") == std::vector<double>{0.2, 0.1, 0.4}));
  CHECK((value(*model, "size/egg") == std::vector<double>{0.1, 0.2, 0.3}));
  CHECK(other->body_mass == model->body_mass && other->body_inertia == model->body_inertia);
  CHECK(other->meshes == model->meshes);
  CHECK(contains(refusal(*model, "size/capsule", {0.05, -0.1}), "size/capsule'[1] (half-length): -0.1"));
  CHECK(contains(refusal(*model, "size/ball", {0.0}), "size/ball' (radius): 0"));
  CHECK(contains(refusal(*model, "size/box", {0.1, NAN, 0.1}), "[1]"));
}

/// Index of the die's corner nearest to (x, y, z).
int corner(const std::vector<double>& v, double x, double y, double z) {
  for (std::size_t k = 0; k < v.size(); k += 3)
    if (std::abs(v[k] - x) + std::abs(v[k + 1] - y) + std::abs(v[k + 2] - z) < 1e-9) return static_cast<int>(k / 3);
  CHECK(false);
  return 0;
}

void vertices() {
  auto shared = std::make_shared<Model>(*shapes());
  const Model& model = *shared;
  const std::vector<double> v = value(model, "vertices/die");
  CHECK(v.size() == 24);
  const int top = corner(v, .1, .1, .1);
  // in the plane of two faces: the same faces
  std::vector<double> w = v;
  for (int k = 0; k < 8; ++k)
    if (v[3 * k] > 0) w[3 * k] += 0.05;
  auto other = changed(model, "vertices/die", w);
  CHECK(value(*other, "vertices/die") == w);
  const ConvexMesh& box = *other->meshes.back();
  CHECK(box.num_faces() == 6 && box.face_vertices == model.meshes.back()->face_vertices);
  double farthest = 0;
  for (int f = 0; f < 6; ++f) farthest = std::max(farthest, box.face_offsets[f]);
  CHECK_NEAR(farthest, 0.15, 1e-15);
  CHECK_NEAR(box.center[0], 0.025, 1e-15);
  CHECK(other->body_mass == model.body_mass);
  // outwards and inwards: its three faces break in two, along one diagonal or the other, the corners keep their order
  for (const double by : {0.02, -0.02}) {
    w = v;
    for (int i = 0; i < 3; ++i) w[3 * top + i] += by;
    other = changed(model, "vertices/die", w);
    CHECK(value(*other, "vertices/die") == w);
    CHECK(other->meshes.back()->num_faces() == 9);
  }
  // swallowed by the others, at the place of another, not a number
  w = v;
  for (int i = 0; i < 3; ++i) w[3 * top + i] = 0.01;
  const std::string inside = refusal(model, "vertices/die", w);
  CHECK(contains(inside, ("vertex " + std::to_string(top)).c_str()) && contains(inside, "0.01, 0.01, 0.01"));
  w = v;
  for (int i = 0; i < 3; ++i) w[3 * top + i] = v[3 * (top == 0 ? 1 : 0) + i];
  CHECK(contains(refusal(model, "vertices/die", w), "same place"));
  w = v, w[4] = NAN;
  CHECK(contains(refusal(model, "vertices/die", w), "[4]"));
  w.assign(24, 0.0);
  for (int k = 0; k < 24; ++k) w[k] = k % 3 == 2 ? 0.0 : v[k] * (1 + k);
  CHECK(contains(refusal(model, "vertices/die", w), "vertices/die"));
  CHECK(value(model, "vertices/die") == v);
}

/// Two geometries with one mesh: each keeps its own when the other's is changed.
void shared_meshes() {
  Model model = *shapes();
  const int die = model.num_geometries - 1, ball = 2;
  CHECK(model.geometry_names[ball] == "ball" && model.geometry_names[die] == "die");
  model.geometry_type[ball] = ShapeType::mesh, model.geometry_mesh[ball] = model.geometry_mesh[die];
  const std::vector<double> v = value(model, "vertices/die");
  std::vector<double> w = v;
  for (double& x : w) x *= 2;
  const auto other = changed(model, "vertices/die", w);
  CHECK(value(*other, "vertices/die") == w && value(*other, "vertices/ball") == v);
  CHECK(other->meshes[other->geometry_mesh[ball]] == model.meshes[model.geometry_mesh[ball]]);
  const auto back = changed(*changed(*other, "vertices/ball", w), "vertices/die", v);
  CHECK(value(*back, "vertices/ball") == w && value(*back, "vertices/die") == v);
  CHECK(back->meshes.size() == other->meshes.size());
}

}  // namespace

int main() {
  sizes();
  vertices();
  shared_meshes();
  return report();
}

// Models as bytes: written, read and written again they are the same bytes; meshes stay shared; cut or damaged bytes are refused.
#include "coulomb/model.hpp"

#include <stdexcept>
#include <string>

#include "check.hpp"
#include "coulomb/base/archive.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/step_memory.hpp"

using namespace coulomb;

namespace {

std::shared_ptr<const Model> model_with_meshes() {
  Scene scene;
  scene.add_ground({.friction = 0.5});
  const std::vector<double> corners{0.1, 0, 0, -0.1, 0, 0, 0, 0.1, 0, 0, -0.1, 0, 0, 0, 0.1, 0, 0, -0.1};
  scene.add_mesh(corners, {.mass = 1.0, .position = {0, 0, 0.0999}, .name = "gem"});
  scene.add_box({0.2, 0.2, 0.2}, {.mass = 2.0, .position = {1, 0, 0.0999}, .friction = 0.3, .name = "box"});
  return scene.build();
}

template <class Read>
std::string refusal(Read read) {
  try {
    read();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

void the_same_bytes_again() {
  const auto model = model_with_meshes();
  const std::string bytes = save_models({model, model});
  const Models read = load_models(bytes);
  CHECK(read.size() == 2 && read[0] == read[1]);
  CHECK(read[0]->body_names == model->body_names && read[0]->q_neutral == model->q_neutral);
  CHECK(read[0]->meshes.size() == 1 && read[0]->meshes[0]->vertices == model->meshes[0]->vertices);
  CHECK(save_models(read) == bytes);
  CHECK(is_archive(bytes) && !is_archive("<mujoco/>"));
}

void shared_meshes_are_written_once() {
  const auto model = model_with_meshes();
  auto copy = std::make_shared<Model>(*model);  // shares the mesh
  copy->gravity[0] = 1;
  const Models read = load_models(save_models({model, copy}));
  CHECK(read[0] != read[1] && read[1]->gravity[0] == 1 && read[0]->gravity[0] == 0);
  CHECK(read[0]->meshes[0] == read[1]->meshes[0]);
}

void bytes_that_end_early_are_refused() {
  const std::string bytes = save_models({model_with_meshes()});
  for (std::size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 97)
    CHECK(!refusal([&] { load_models(std::string_view(bytes).substr(0, size)); }).empty());
  CHECK(refusal([&] { load_models(bytes + "x"); }).find("cut off") != std::string::npos);
}

void flipped_bits_are_refused() {
  const std::string bytes = save_models({model_with_meshes()});
  for (std::size_t place = 0; place < bytes.size(); place += 61) {
    std::string bad = bytes;
    bad[place] = static_cast<char>(bad[place] ^ 4);
    CHECK(!refusal([&] { load_models(bad); }).empty());
  }
}

void memories_go_on() {
  const auto model = model_with_meshes();
  Simulator first(model), second(model);
  State x{model->q_neutral, std::vector<double>(model->nv, 0.01)}, y = x;
  for (int t = 0; t < 5; ++t) first.step(x);
  y = x;
  const std::string bytes = save_memories({first.memory()});
  second.set_memory(load_memories(bytes).front());
  CHECK(save_memories({second.memory()}) == bytes);
  for (int t = 0; t < 5; ++t) first.step(x), second.step(y);
  CHECK(x.q == y.q && x.v == y.v);
  CHECK(refusal([&] { load_models(bytes); }).find("these bytes hold a memory") != std::string::npos);
}

}  // namespace

int main() {
  the_same_bytes_again();
  shared_meshes_are_written_once();
  bytes_that_end_early_are_refused();
  flipped_bits_are_refused();
  memories_go_on();
  return coulomb::test::report();
}

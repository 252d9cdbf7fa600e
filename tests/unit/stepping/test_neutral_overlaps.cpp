// What simulations leave out of a model is told before there is a simulator: deviation_lines, ignored_lines.
#include <string>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"

namespace {

using namespace coulomb;

std::string can(const std::string& name, const std::string& height) {
  return "<link name=\"" + name +
         "\"><inertial><mass value=\"1\"/>"
         "<inertia ixx=\".02\" ixy=\"0\" ixz=\"0\" iyy=\".02\" iyz=\"0\" izz=\".02\"/></inertial>"
         "<collision><origin xyz=\"0 0 " +
         height + "\"/><geometry><cylinder radius=\".06\" length=\".1\"/></geometry></collision></link>";
}

/// A shoulder that turns on its fixed base about the axis of both; its centre is so high above the base.
std::shared_ptr<const Model> turntable(const std::string& height) {
  Scene scene;
  scene.add_urdf("<robot name=\"r\">" + can("base", ".05") + can("shoulder", height) +
                 "<joint name=\"pan\" type=\"continuous\"><parent link=\"base\"/><child link=\"shoulder\"/>"
                 "<origin xyz=\"0 0 .1\"/><axis xyz=\"0 0 1\"/></joint></robot>");
  return scene.build();
}

void check_a_pair_that_is_left_out_is_told() {
  const auto model = turntable(".045");
  const auto lines = deviation_lines(*model);
  CHECK(lines.size() == model->deviations.size() + 1);
  CHECK(lines.back().find("base_0, shoulder_0") != std::string::npos);
  CHECK(ignored_lines(*model).size() == model->ignored.size() + 1);
  CHECK(ignored_lines(*model).back() == lines.back());

  // As the model of its simulator tells, which has no more to leave out.
  Simulator sim(model);
  CHECK(sim.model().pair_a.empty() && model->pair_a.size() == 1);
  CHECK(sim.model().deviations == lines && sim.model().ignored == ignored_lines(*model));
  CHECK(deviation_lines(sim.model()) == lines);
}

void check_a_pair_that_acts_is_not() {
  const auto model = turntable(".052");
  CHECK(deviation_lines(*model) == model->deviations);
  CHECK(ignored_lines(*model) == model->ignored);
}

}  // namespace

int main() {
  check_a_pair_that_is_left_out_is_told();
  check_a_pair_that_acts_is_not();
  return test::report();
}

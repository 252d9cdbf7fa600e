// Servos at the bounds of their force, (S13): what the rounds of a step do not settle is not called solved.
#include <cstring>
#include <memory>
#include <vector>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace {

using namespace coulomb;

// A box whose servo is at its bound at the start of the step and not at its end.
std::shared_ptr<const Model> servo_on_a_box() {
  Scene scene;
  ShapeOptions box;
  box.mass = 1.0;
  box.name = "box";
  scene.add_box({0.2, 0.2, 0.2}, box);
  scene.add_actuator("box_joint", {.kind = "velocity",
                                   .kd = 1e4,
                                   .gear = {1, 0, 0, 0, 0, 0},
                                   .force_range = std::array<double, 2>{-5, 5},
                                   .name = "servo"});
  return scene.build();
}

void test_rounds() {
  const auto model = servo_on_a_box();
  Simulator sim(model, {.timestep = 1e-2});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  const std::vector<double> u{0.01};
  sim.step(state.q.data(), state.v.data(), u.data(), nullptr, nullptr, state.q.data(), state.v.data());
  CHECK(sim.status().converged);
  CHECK_NEAR(sim.record().v_next[0], 0.01, 1e-3);

  // The rounds that a step has, with a wrong choice after each of them.
  StepRecord r(*model);
  r = sim.record();
  CHECK(r.joint_forces.clamps.actuators[0] == ForceBound::none);
  int round = 0;
  do {
    r.joint_forces.clamps.actuators[0] = ForceBound::lower;
  } while (clamps_change(*model, sim.resolved_options(), round++, r) && round < 100);
  CHECK(round > 1 && round < 100);
  CHECK(r.joint_forces.clamps.unsettled && r.solution.status == SolveStatus::max_iterations);
  CHECK(std::strncmp(clamp_limit_reason(r.joint_forces.clamps), "force_bounds", 12) == 0);

  // And with the right one after the last.
  r.joint_forces.clamps.actuators[0] = ForceBound::none;
  CHECK(!clamps_change(*model, sim.resolved_options(), round - 1, r));
  CHECK(!r.joint_forces.clamps.unsettled && clamp_limit_reason(r.joint_forces.clamps) == nullptr);
}

}  // namespace

int main() {
  test_rounds();
  return test::report();
}

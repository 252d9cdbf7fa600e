// Implicit steps, steps with penalty contact and their derivatives allocate nothing once the workspace has seen the largest problem.
#include <vector>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "count_allocations.hpp"

void check_stepper(const char* stepper, const char* contact) {
  using namespace coulomb;
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0;
  for (int i = 0; i < 3; ++i) {
    box.position = {0.02 * i, 0, 0.1 + 0.2 * i};
    box.name = "box" + std::to_string(i);
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  ShapeOptions ball;
  ball.mass = 0.5, ball.position = {0.6, 0, 0.12};
  scene.add_sphere(0.1, ball);
  const auto model = scene.build();
  SimulatorOptions options;
  options.timestep = 2e-3, options.stepper = stepper, options.contact = contact;
  Simulator sim(model, options);
  State state{model->q_neutral, std::vector<double>(model->nv)};
  std::vector<double> tau(model->nv, 0.0);
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), nullptr, tau.data(), nullptr, state.q.data(), state.v.data());
    sim.derivatives();
  };
  for (int i = 0; i < 300; ++i) step();
  const long before = allocations;
  for (int i = 0; i < 100; ++i) step();
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(sim.status().converged);
  CHECK(sim.record().collision.contacts.size() >= 12);  // not vacuous
}

int main() {
  check_stepper("bdf1", "penalty");
  check_stepper("bdf2", "penalty");
  check_stepper("semi_implicit", "penalty");
  return coulomb::test::report();
}

// Implicit steps, steps with penalty contact and their derivatives allocate nothing once the workspace has seen the largest problem.
#include <algorithm>
#include <cmath>
#include <string>
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

/// Steps over a joint's limits, which bdf2 takes by bdf1; company: a ball of another island, which goes on by bdf2.
void check_limits(bool company) {
  using namespace coulomb;
  const std::string link =
      "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>";
  Scene scene;
  scene.add_urdf(
      "<robot name='slider'><link name='base'/><link name='cart'>" + link +
      "</link><joint name='slide' type='prismatic'><parent link='base'/><child link='cart'/><axis xyz='1 0 0'/>"
      "<limit lower='-.1' upper='.1' effort='1' velocity='1'/></joint></robot>");
  ShapeOptions ball;
  ball.mass = 0.5, ball.position = {0, 9, 0};
  if (company) scene.add_sphere(0.1, ball);
  const auto model = scene.build();

  SimulatorOptions options;
  options.timestep = 2e-3, options.stepper = "bdf2", options.limit_stiffness = 1e5, options.limit_damping = 0;
  Simulator sim(model, options);
  State state{model->q_neutral, std::vector<double>(model->nv, 5.0)};
  std::vector<double> tau(model->nv, 0.0);
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), nullptr, tau.data(), nullptr, state.q.data(), state.v.data());
    sim.derivatives();
  };

  // To and fro between the limits, once for the workspace to see them.
  int turns = 0;
  const auto bounce = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      const double was = state.v[0];
      step();
      turns += was * state.v[0] < 0;
      state.v[0] *= 5.0 / std::max(0.1, std::abs(state.v[0]));
    }
  };
  bounce(100);
  const long before = allocations;
  turns = 0;
  bounce(400);
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(turns >= 3);  // not vacuous
}

int main() {
  check_limits(false);
  check_limits(true);
  check_stepper("bdf1", "penalty");
  check_stepper("bdf2", "penalty");
  check_stepper("semi_implicit", "penalty");
  return coulomb::test::report();
}

// Stepping and differentiating allocate nothing once the workspace has seen the largest problem.
#include <algorithm>
#include <string>
#include <vector>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/impacts/impact_phases.hpp"
#include "coulomb/stepping/step_gradient.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "count_allocations.hpp"

namespace {

using namespace coulomb;

/// The most proximal levels that an island of the last step has.
int most_levels(const Simulator& sim) {
  int most = 0;
  for (const int index : sim.record().islands.order) {
    const SolverResult& solution = sim.record().islands.pool[index].solution;
    most = std::max(most, solution.levels + solution.sharper_levels);
  }
  return most;
}

/// Of 400 steps with their derivatives, while things settle and bounce, the second half allocates nothing: every contact has been seen.
/// Only a derivative with more proximal levels than any before makes room for them. speed: of all bodies, which are free ones, along x. split: at impacts.
void check_settling(const Scene& scene, double speed = 0, bool split = false) {
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-3, .continuous_collision = split});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  for (int d = 0; d < model->nv && speed != 0; d += 6) state.v[d] = speed;
  std::vector<double> tau(model->nv, 0.0);
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), nullptr, tau.data(), nullptr, state.q.data(), state.v.data());
  };
  int levels = 0;
  for (int i = 0; i < 200; ++i) {
    step();
    sim.derivatives();
    levels = std::max(levels, most_levels(sim));
  }
  long allocated = 0;
  for (int i = 0; i < 200; ++i) {
    const long before = allocations;
    step();
    const long after_step = allocations;
    sim.derivatives();
    const long after_both = allocations;
    const bool more_levels = most_levels(sim) > levels;
    allocated += (more_levels ? after_step : after_both) - before;
    levels = std::max(levels, most_levels(sim));
  }
  CHECK_NEAR(static_cast<double>(allocated), 0.0, 0.0);
  CHECK(sim.status().converged);
  CHECK(sim.record().collision.contacts.size() >= 12);  // not vacuous
}

void test_contacts() {
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
  ball.mass = 0.5, ball.position = {0.6, 0, 0.12}, ball.restitution = 0.5;
  scene.add_sphere(0.1, ball);
  check_settling(scene);
}

// Boxes that glide over the seams of tiles: contacts that are judged at the pose to come.
void test_seams() {
  Scene scene;
  ShapeOptions tile;
  for (int i = 0; i < 12; ++i) {
    tile.fixed = true, tile.friction = 0.0, tile.position = {0.15 * i, 0, -0.1};
    scene.add_box({0.15, 2.0, 0.2}, tile);
  }
  ShapeOptions box;
  box.mass = 1.0, box.friction = 0.0;
  for (int i = 0; i < 3; ++i) {
    box.position = {0.013 * i, -0.3 + 0.3 * i, 0.05};
    scene.add_box({0.1, 0.1, 0.1}, box);
  }
  check_settling(scene, 0.7);
  check_settling(scene, 0.7, true);
}

// Contacts that are springs, which bounce for a while.
void test_soft_contacts() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0, box.penalty.stiffness = 1e4, box.penalty.dashpot = 20.0;
  for (int i = 0; i < 3; ++i) {
    box.position = {0.02 * i, 0, 0.1 + 0.2 * i};
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  check_settling(scene);
}

// Boxes that fall into a heap: islands grow and part, modes change, and the second fall finds the room that the first one took.
void test_a_heap() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0;
  for (int i = 0; i < 16; ++i) {
    box.position = {0.13 * (i % 2) + 0.01 * i, 0.12 * (i / 2 % 2), 0.15 + 0.2 * (i / 2)};
    box.name = "box" + std::to_string(i);
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 5e-3});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  std::size_t most = 0;
  bool centred = false;
  const auto fall = [&] {
    sim.reset();
    std::copy(model->q_neutral.begin(), model->q_neutral.end(), state.q.begin());
    std::fill(state.v.begin(), state.v.end(), 0.0);
    for (int i = 0; i < 200; ++i) {
      sim.step(state.q.data(), state.v.data(), nullptr, nullptr, nullptr, state.q.data(), state.v.data());
      if (i % 20 == 0) sim.derivatives();
      most = std::max(most, sim.record().collision.contacts.size());
      centred = centred || !sim.record().solution.centre.empty();
    }
  };
  fall();
  const long before = allocations;
  fall();
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(most >= 40 && centred);  // not vacuous
}

// Joints that mimic each other against their limits: position corrections that are bounded, and differentiated.
void test_corrections() {
  const auto link = [](const std::string& name) {
    return "<link name='" + name + "'><inertial><origin xyz='0 0 -.2'/><mass value='1'/>" +
           "<inertia ixx='.01' iyy='.01' izz='.01' ixy='0' ixz='0' iyz='0'/></inertial></link>";
  };
  const auto joint = [](const std::string& name, const std::string& mimics) {
    return "<joint name='" + name + "' type='revolute'><parent link='base'/><child link='" + name +
           "'/><axis xyz='0 1 0'/><limit lower='.2' upper='1' effort='9' velocity='9'/>" + mimics + "</joint>";
  };
  Scene scene;
  scene.add_urdf("<robot name='hand'>" + link("base") + link("a") + link("b") + joint("a", "") +
                 joint("b", "<mimic joint='a' multiplier='-1'/>") + "</robot>");
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-3});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  std::fill(state.q.begin(), state.q.end(), 0.0);
  StepCotangent cotangent;
  const std::vector<double> ones(model->nv, 1.0);
  int bounded = 0;
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), nullptr, nullptr, nullptr, state.q.data(), state.v.data());
    sim.derivatives();
    sim.gradient().vjp(ones.data(), ones.data(), cotangent);
    bounded += sim.record().corrections.any;
  };
  for (int i = 0; i < 100; ++i) step();
  const long before = allocations;
  for (int i = 0; i < 100; ++i) step();
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(bounded == 200);
}

// Balls that bounce for ever: two impacts in some steps, none in others.
void test_impacts() {
  Scene scene;
  scene.add_ground({.friction = 0.1, .restitution = 1.0});
  ShapeOptions ball;
  ball.mass = 0.5;
  for (int i = 0; i < 3; ++i) {
    ball.position = {0.5 * i, 0, 0.11 + 0.01 * i};
    scene.add_sphere(0.1, ball);
  }
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-2, .continuous_collision = true});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  StepCotangent cotangent;
  const std::vector<double> ones(model->nv, 1.0);
  int split = 0;
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), nullptr, nullptr, nullptr, state.q.data(), state.v.data());
    sim.derivatives();
    sim.gradient().vjp(ones.data(), ones.data(), cotangent);
  };
  for (int i = 0; i < 300; ++i) step();
  const long before = allocations;
  for (int i = 0; i < 300; ++i) {
    step();
    split += phases_of(sim.record()).count > 1;
  }
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(split > 50 && split < 300);
}

// Servos along several dofs of one joint, their gains beside its inertia.
void test_servos() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0, box.position = {0, 0, 0.11}, box.name = "box";
  scene.add_box({0.2, 0.2, 0.2}, box);
  for (int k = 0; k < 3; ++k)
    scene.add_actuator("box_joint", {.kind = "velocity",
                                     .kd = 5.0,
                                     .gear = {1, 0.1 * k, 0, 0.2, 0, 0.3 - 0.2 * k},
                                     .name = "servo" + std::to_string(k)});
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-3, .joint_forces = "implicit"});
  State state{model->q_neutral, std::vector<double>(model->nv)};
  StepCotangent cotangent;
  const std::vector<double> ones(model->nv, 1.0);
  const std::vector<double> u{0.5, -0.3, 0.4};
  const auto step = [&] {
    sim.step(state.q.data(), state.v.data(), u.data(), nullptr, nullptr, state.q.data(), state.v.data());
    sim.derivatives();
    sim.gradient().vjp(ones.data(), ones.data(), cotangent);
  };
  for (int i = 0; i < 200; ++i) step();
  const long before = allocations;
  for (int i = 0; i < 200; ++i) step();
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
}

}  // namespace

int main() {
  test_contacts();
  test_seams();
  test_soft_contacts();
  test_a_heap();
  test_corrections();
  test_impacts();
  test_servos();
  return test::report();
}

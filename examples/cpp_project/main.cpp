// A box falls onto the ground and comes to rest; prints its height, its contacts and how the landing depends on the start.
#include <coulomb/coulomb.hpp>

#include <cmath>
#include <cstdio>

int main() {
  coulomb::Scene scene;
  scene.add_ground({.friction = 0.8});
  scene.add_box({0.2, 0.2, 0.2}, {.mass = 1.0, .position = {0, 0, 0.15}, .friction = 0.5, .name = "box"});
  auto model = scene.build();

  coulomb::Simulator sim(model, {.timestep = 1e-3});
  coulomb::State state{model->q_neutral, std::vector<double>(model->nv)};
  for (int i = 0; i < 500; ++i) sim.step(state);

  double weight = 0;
  for (const auto& contact : sim.contacts()) weight += std::abs(contact.impulse[2]) / sim.timestep();
  const auto& derivatives = sim.derivatives();  // A_T: row k is the derivative for entry k of (q, v)
  std::printf("coulomb %s: height of the box %.6f m, contact force %.4f N, d vz+/d vz %.3g\n", coulomb::version(),
              state.q[2], weight, derivatives.A_T[(model->nv + 2) * 2 * model->nv + model->nv + 2]);
  const bool rests = state.q[2] > 0.0999 && state.q[2] < 0.1001 && weight > 9.80 && weight < 9.82;
  return rests && sim.status().converged ? 0 : 1;
}

// Checkpoints give back what they were given, however often they were thinned; a rollout and its derivatives from C++.
#include <cmath>
#include <stdexcept>

#include "check.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/scene.hpp"

using namespace coulomb;

namespace {

std::shared_ptr<const Model> boxes() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  for (int i = 0; i < 3; ++i) {
    ShapeOptions box;
    box.mass = 1.0 + i, box.position = {0.01 * i, 0, 0.12 + 0.21 * i}, box.name = "box" + std::to_string(i);
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  return scene.build();
}

// A memory that names its step.
void mark(StepMemory& memory, int t) {
  memory.reset();
  for (int k = 0; k < t % 4; ++k) {
    memory.collision.pair_indices.push_back(k + t % 2);
    memory.collision.pairs.emplace_back().num_kept = t + k;
  }
  memory.impulses.resize(t % 3);
  for (auto& impulse : memory.impulses) impulse.key = t, impulse.size = 1, impulse.value[0] = 0.5 * t;
}

bool equal(const StepMemory& a, const StepMemory& b) {
  bool same = a.impulses.size() == b.impulses.size();
  for (std::size_t i = 0; same && i < a.impulses.size(); ++i)
    same = a.impulses[i].key == b.impulses[i].key && a.impulses[i].value[0] == b.impulses[i].value[0];
  same = same && a.collision.pair_indices == b.collision.pair_indices;
  for (std::size_t i = 0; same && i < a.collision.pairs.size(); ++i)
    same = a.collision.pairs[i].num_kept == b.collision.pairs[i].num_kept;
  return same;
}

void thinning(const Model& model) {
  constexpr int steps = 1000;
  for (const std::size_t budget : {std::size_t(1), std::size_t(40000), std::size_t(1) << 30}) {
    Checkpoints checkpoints(0, budget);
    StepMemory memory(model), expected(model);
    for (int t = 0; t < steps; ++t) {
      mark(memory, t);
      checkpoints.store(t, memory, 500);
    }
    const int every = checkpoints.every();
    CHECK(budget == 40000 ? every > 1 && checkpoints.bytes() + checkpoints.sweep_bytes(steps) <= budget
                          : (every == 1) == (budget > 40000));
    CHECK(budget > 1 || checkpoints.bytes() + checkpoints.sweep_bytes(steps) < 3 * checkpoints.least_bytes(steps));
    for (int t = 0; t < steps; t += every) {
      mark(expected, t);
      checkpoints.restore(t, memory);
      CHECK(equal(memory, expected));
    }
  }
}

void derivatives(const std::shared_ptr<const Model>& model) {
  Simulator simulator(model, {.timestep = 2e-3});
  const int steps = 60, nv = model->nv;
  const std::vector<double> v0(nv, 0.05);
  const Rollout r =
      rollout(simulator, {model->q_neutral.data(), v0.data(), nullptr, nullptr, steps}, {.checkpoint_every = 9});
  CHECK(r.converged && r.parts->checkpoints.every() == 9);
  std::vector<double> dq((steps + 1) * nv), dv(dq.size()), tangent(nv, 1.0), w(dq.size());
  jvp(r, {.dv0 = tangent.data(), .parameters = {"mass/box1"}, .dparameters = {2.0}}, dq.data(), dv.data());
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::sin(double(i));
  const RolloutCotangent g = vjp(r, w.data(), w.data(), {"mass/box1"});
  double forward = 0, reverse = 2 * g.parameters[0], scale = 0;
  for (std::size_t i = 0; i < w.size(); ++i) forward += w[i] * (dq[i] + dv[i]), scale += std::abs(w[i] * dv[i]);
  for (int d = 0; d < nv; ++d) reverse += g.v0[d];
  CHECK_NEAR(forward, reverse, 1e-10 * scale);
  const Rollout copy = r;
  CHECK(vjp(copy, w.data(), w.data(), {"mass/box1"}).v0 == g.v0 && copy.bytes() == r.bytes());
  CHECK(Rollout().bytes() > 0);
  const RolloutJacobian J = jacobian(r, {"v0", "mass/box1"}, false);
  for (int row = 0; row < nv; ++row) {
    double value = 2 * J.blocks[1].columns_T[row];
    for (int k = 0; k < nv; ++k) value += J.blocks[0].columns_T[std::size_t(k) * J.ld + row];
    CHECK_NEAR(value, dq[std::size_t(steps) * nv + row], 1e-10 * scale);
  }
}

void interruption(const std::shared_ptr<const Model>& model) {
  struct Stop {};
  Simulator simulator(model);
  const std::vector<double> v0(model->nv);
  int seen = 0;
  try {
    rollout(simulator, {model->q_neutral.data(), v0.data(), nullptr, nullptr, 100}, {}, [&](int done, int total) {
      CHECK(total == 100 && done == ++seen);
      if (done == 10) throw Stop();
    });
    CHECK(false);
  } catch (const Stop&) {
    CHECK(seen == 10);
  }
}

}  // namespace

int main() {
  const auto model = boxes();
  thinning(*model);
  derivatives(model);
  interruption(model);
  return test::report();
}

// Rollouts of a batch and their gradients: the bits of single rollouts for any number of threads; interruption.
#include <atomic>
#include <vector>

#include "check.hpp"
#include "coulomb/batch.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "random_model.hpp"

namespace {

using namespace coulomb;
using Array = std::vector<double>;

constexpr int num_envs = 6, steps = 40;
const std::vector<std::string> wrt = {"friction/ground", "mass/ball"};

struct Case {
  std::shared_ptr<const Model> model;
  Array q0, v0, tau, dv;
};

Case make_case() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0, box.position = {0, 0, 0.1};
  scene.add_box({0.2, 0.2, 0.2}, box);
  ShapeOptions ball;
  ball.mass = 0.5, ball.position = {0.6, 0, 0.12}, ball.restitution = 0.5, ball.name = "ball";
  scene.add_sphere(0.1, ball);
  Case out{scene.build(), {}, {}, {}, {}};
  const int nv = out.model->nv;
  test::Random random(3);
  for (int i = 0; i < num_envs; ++i)
    out.q0.insert(out.q0.end(), out.model->q_neutral.begin(), out.model->q_neutral.end());
  out.v0 = random.vector(num_envs * nv, 0.5);
  out.tau = random.vector(num_envs * steps * nv, 0.5);
  out.dv = random.vector(num_envs * (steps + 1) * nv, 1.0);
  return out;
}

struct Arrays {
  explicit Arrays(const Model& m)
      : q(num_envs * (steps + 1) * m.nq), v(num_envs * (steps + 1) * m.nv), residual(num_envs * steps),
        iterations(num_envs * steps), converged(new bool[num_envs * steps]) {}
  BatchTrajectories all() { return {q.data(), v.data(), converged.get(), iterations.data(), residual.data()}; }
  Array q, v, residual;
  std::vector<int> iterations;
  std::unique_ptr<bool[]> converged;
};

struct Gradient {
  explicit Gradient(const Model& m)
      : q0(num_envs * m.nv), v0(num_envs * m.nv), tau(num_envs * steps * m.nv), parameters(num_envs * wrt.size()) {}
  BatchRolloutCotangent all() { return {q0.data(), v0.data(), nullptr, tau.data(), parameters.data(), valid}; }
  Array q0, v0, tau, parameters;
  bool valid[num_envs] = {};
};

void same_bits_as_single_rollouts() {
  const Case c = make_case();
  const std::size_t nq = c.model->nq, nv = c.model->nv, states = steps + 1;
  for (const int threads : {1, 2, 4, 8})
    for (int again = 0; again < 3; ++again) {
      BatchSimulator batch(c.model, num_envs, threads, {.timestep = 2e-3});
      Arrays out(*c.model);
      Gradient g(*c.model);
      BatchRollout r;
      for (int twice = 0; twice < 2; ++twice)  // the second does not remember the first
        CHECK(rollout(batch, {.q0 = c.q0.data(), .v0 = c.v0.data(), .tau = c.tau.data(), .steps = steps}, {}, out.all(),
                      r));
      CHECK(vjp(batch, r, {.dv = c.dv.data()}, wrt, g.all()));
      Simulator sim(c.model, {.timestep = 2e-3});
      for (std::size_t i = 0; i < num_envs; ++i) {
        const Rollout single =
            rollout(sim, RolloutInput{&c.q0[i * nq], &c.v0[i * nv], nullptr, &c.tau[i * steps * nv], steps});
        CHECK(std::equal(single.q.begin(), single.q.end(), &out.q[i * states * nq]));
        CHECK(std::equal(single.v.begin(), single.v.end(), &out.v[i * states * nv]));
        CHECK(out.converged[i * steps] && g.valid[i]);
        const RolloutCotangent h = vjp(single, nullptr, &c.dv[i * states * nv], wrt);
        CHECK(std::equal(h.q0.begin(), h.q0.end(), &g.q0[i * nv]) &&
              std::equal(h.v0.begin(), h.v0.end(), &g.v0[i * nv]));
        CHECK(std::equal(h.tau.begin(), h.tau.end(), &g.tau[i * steps * nv]));
        CHECK(std::equal(h.parameters.begin(), h.parameters.end(), &g.parameters[i * wrt.size()]));
        CHECK(h.parameters[1] != 0);
      }
    }
}

void stops_when_told() {
  const Case c = make_case();
  for (const int threads : {1, 3}) {
    BatchSimulator batch(c.model, num_envs, threads, {.timestep = 2e-3});
    Arrays out(*c.model);
    BatchRollout r;
    int asked = 0;
    const Interrupted second_time = [&] { return ++asked == 2; };
    const BatchRolloutInput input{.q0 = c.q0.data(), .v0 = c.v0.data(), .steps = steps};
    bool finished = true;  // other threads may be done before the question comes twice
    for (int again = 0; again < 1000 && finished; ++again)
      finished = rollout(batch, input, {}, out.all(), r, second_time);
    CHECK(!finished && asked == 2);
    for (int i = 0; i < num_envs; ++i) CHECK(!batch.environment(i).record().valid);
    CHECK(rollout(batch, input, {}, out.all(), r));
  }
}

}  // namespace

int main() {
  same_bits_as_single_rollouts();
  stops_when_told();
  return test::report();
}

// A step that is recalled from what was kept of it has the record that the step had, and recalling allocates nothing once records have seen
// the largest step.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "check.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/semi_implicit/kept_step.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"
#include "coulomb/stepping/stepper.hpp"
#include "count_allocations.hpp"

namespace {

using namespace coulomb;

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b, std::size_t count) {
  return a.size() >= count && b.size() >= count && std::memcmp(a.data(), b.data(), count * sizeof(T)) == 0;
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && same(a, b, a.size());
}

// What derivatives read.
void check_same(const Model& model, const StepRecord& a, const StepRecord& b) {
  CHECK(same(a.v_free, b.v_free) && same(a.acceleration, b.acceleration));
  CHECK(same(a.gains.inertia.diagonal, b.gains.inertia.diagonal));
  CHECK(same(a.twist, b.twist));
  CHECK(same(a.dynamics.columns, b.dynamics.columns) && same(a.dynamics.column_rate, b.dynamics.column_rate));
  const auto packed = static_cast<std::size_t>(model.dof_row.back());  // what follows is scratch
  CHECK(same(a.dynamics.mass, b.dynamics.mass, packed) && same(a.dynamics.factor_l, b.dynamics.factor_l, packed));
  CHECK(same(a.joint_forces.tau, b.joint_forces.tau));
  CHECK(a.collision.contacts.size() == b.collision.contacts.size());
  CHECK(a.rows.num_rows == b.rows.num_rows && same(a.rows.bias, b.rows.bias) && same(a.rows.keys, b.rows.keys));
  CHECK(same(a.solution.lambda, b.solution.lambda) && same(a.solution.c, b.solution.c));
  CHECK(same(a.solution.modes, b.solution.modes) && same(a.solution.facets, b.solution.facets));
  CHECK(same(a.solution.margin, b.solution.margin) && a.solution.status == b.solution.status);
}

// Those of the islands.
void check_same_island(const Island& a, const Island& b) {
  CHECK(a.trees == b.trees && a.blocks == b.blocks && a.rows == b.rows);
  if (a.blocks.empty()) return;
  const auto n = static_cast<std::size_t>(a.problem.n);
  CHECK(a.problem.n == b.problem.n && same(a.problem.g, b.problem.g, n) && same(a.problem.R, b.problem.R, n));
  CHECK(same(a.problem.W, b.problem.W, n) && same(a.problem.Y, b.problem.Y) && a.problem.has_G == b.problem.has_G);
  if (a.problem.has_G) CHECK(same(a.problem.G, b.problem.G, n * static_cast<std::size_t>(a.problem.ld)));

  const SolverResult &s = a.solution, &t = b.solution;
  CHECK(same(s.lambda, t.lambda) && same(s.lambda_0, t.lambda_0) && same(s.c, t.c));
  CHECK(same(s.modes, t.modes) && same(s.facets, t.facets) && same(s.margin, t.margin));
  CHECK(s.status == t.status && s.compliance == t.compliance && s.levels == t.levels && s.relaxation == t.relaxation);
}

void check_same_islands(const Islands& a, const Islands& b) {
  CHECK(a.order == b.order);
  for (int index : a.order) check_same_island(a.pool[index], b.pool[index]);
}

std::shared_ptr<const Model> boxes_and_a_ball() {
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
  return scene.build();
}

void recall_steps(const char* contact) {
  const auto model = boxes_and_a_ball();
  Simulator sim(model, {.timestep = 2e-3, .contact = contact});
  const StepOptions& options = sim.resolved_options();
  CHECK(options.stepper->keeps_steps(options));
  State state{model->q_neutral, std::vector<double>(static_cast<std::size_t>(model->nv), 0.1)};
  StepRecord recalled(*model);
  StepLinearization original(*model), again(*model);
  StepCotangent expected, found;
  const std::vector<double> ones(static_cast<std::size_t>(model->nv), 1.0);
  std::vector<double> memory(1 << 17);
  std::byte* kept = reinterpret_cast<std::byte*>(memory.data());
  int touching = 0;
  std::size_t most_islands = 0;
  constexpr int steps = 300, warm = 200;
  for (int t = 0; t < steps; ++t) {
    sim.step(state.q.data(), state.v.data(), nullptr, nullptr, nullptr, state.q.data(), state.v.data());
    const StepRecord& r = sim.record();
    CHECK(kept_step_bytes(r) % 8 == 0 && kept_step_bytes(r) < memory.size() * sizeof(double));
    keep_step(r, kept);
    recalled.q = r.q, recalled.v = r.v, recalled.q_next = r.q_next, recalled.v_next = r.v_next;
    const long before = allocations;
    recall_semi_implicit_step(*model, options, kept, recalled);
    if (t >= warm) CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
    check_same(*model, r, recalled);
    check_same_islands(r.islands, recalled.islands);

    StepRecord copy = r;
    original.prepare(*model, options, copy, sim.memory()), again.prepare(*model, options, recalled, sim.memory());
    original.vjp(ones.data(), ones.data(), expected), again.vjp(ones.data(), ones.data(), found);
    CHECK(same(expected.q, found.q) && same(expected.v, found.v) && same(expected.tau, found.tau));
    touching += r.rows.num_rows > 0, most_islands = std::max(most_islands, r.islands.order.size());
  }
  CHECK(touching > 50 && most_islands > 1);
}

}  // namespace

int main() {
  recall_steps("ncp");
  recall_steps("lcp");
  return test::report();
}

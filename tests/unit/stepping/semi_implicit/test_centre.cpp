// The remembered centre of large heaps (docs/theory.md (C18)): which islands have one, what it is, when it starts anew, and how a velocity
// that keeps its direction enters the derivatives of rows that turn.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "check.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/row_derivatives.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/semi_implicit/kept_step.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_record.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;

/// So many boxes a side on the ground, and a slab on all of them: 8 contacts a box.
std::shared_ptr<const Model> slab_on_boxes(int side, double mass) {
  Scene scene;
  scene.add_ground({.friction = 0.5});
  for (int i = 0; i < side * side; ++i) {
    const double x = 0.25 * (i % side);
    const double y = 0.25 * (i / side);
    scene.add_box({0.2, 0.2, 0.2}, {.mass = 1.0, .position = {x, y, 0.1}, .friction = 0.5});
  }
  const double middle = 0.125 * (side - 1);
  scene.add_box({0.3 * side, 0.3 * side, 0.2}, {.mass = mass, .position = {middle, middle, 0.3}, .friction = 0.5});
  return scene.build();
}

/// The slab slides.
State sliding(const Model& model) {
  State state{model.q_neutral, Vector(static_cast<std::size_t>(model.nv), 0.0)};
  state.v[state.v.size() - 6] = 0.5;
  state.v[state.v.size() - 1] = 0.3;
  return state;
}

void step(Simulator& sim, State& state, int steps) {
  for (int i = 0; i < steps; ++i) sim.step(state, {}, state);
}

const Vector& centre(const Simulator& sim) { return sim.record().solution.centre; }

/// The impulses of the step before, as long as there was one.
void test_what_it_is() {
  const auto model = slab_on_boxes(5, 10);
  Simulator sim(model, {.timestep = 2e-3});
  State state = sliding(*model);
  step(sim, state, 1);
  CHECK(sim.record().rows.num_blocks == 200 && centre(sim).empty());

  // Bodies hardly turn in a step, so that axes are the same.
  const Vector before = sim.record().solution.lambda;
  step(sim, state, 1);
  CHECK(centre(sim).size() == before.size());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    largest = std::max(largest, std::abs(before[i]));
    difference = std::max(difference, std::abs(centre(sim)[i] - before[i]));
  }
  CHECK(largest > 0 && difference < 1e-6 * largest);

  // One proximal step is enough around it; and it starts anew where the memory does.
  for (int index : sim.record().islands.order) CHECK(sim.record().islands.pool[index].solution.levels <= 1);
  sim.reset();
  step(sim, state, 1);
  CHECK(centre(sim).empty());
}

/// A step that is recalled has it.
void test_kept() {
  const auto model = slab_on_boxes(5, 10);
  Simulator sim(model, {.timestep = 2e-3});
  State state = sliding(*model);
  step(sim, state, 3);
  const StepRecord& r = sim.record();
  Vector memory(kept_step_bytes(r) / sizeof(double) + 1);
  std::byte* kept = reinterpret_cast<std::byte*>(memory.data());
  keep_step(r, kept);
  StepRecord recalled(*model);
  recalled.q = r.q, recalled.v = r.v, recalled.q_next = r.q_next, recalled.v_next = r.v_next;
  recall_semi_implicit_step(*model, sim.resolved_options(), kept, recalled);
  for (int index : r.islands.order) {
    const Vector& own = r.islands.pool[index].solution.centre;
    CHECK(own == recalled.islands.pool[index].solution.centre);
    CHECK(own.empty() == r.islands.pool[index].blocks.empty());
  }
}

/// Islands of fewer than 100 contacts have none, nor where it would drive the motion, nor phases of a step that is split.
void test_who_has_none() {
  const auto has_one = [](int side, double mass, const SimulatorOptions& options) {
    const auto model = slab_on_boxes(side, mass);
    Simulator sim(model, options);
    State state = sliding(*model);
    step(sim, state, 5);
    return !centre(sim).empty();
  };
  CHECK(has_one(5, 10, {.timestep = 2e-3}));
  CHECK(has_one(4, 10, {.timestep = 2e-3}));   // 128 contacts
  CHECK(!has_one(3, 10, {.timestep = 2e-3}));  // 72
  CHECK(!has_one(5, 1e6, {.timestep = 2e-3}));
  CHECK(!has_one(5, 10, {.timestep = 2e-3, .warm_start = false}));
  CHECK(!has_one(5, 10, {.timestep = 2e-3, .continuous_collision = true}));
}

/// d(axes . w)/dq of a fixed w, against differences of the axes: balls on each other, whose normals turn with every motion.
void test_fixed_velocity() {
  Scene scene;
  scene.add_ground({.friction = 0.5});
  scene.add_sphere(0.1, {.mass = 1.0, .position = {0, 0, 0.1}, .friction = 0.5});
  scene.add_sphere(0.15, {.mass = 1.0, .position = {0.12, 0.08, 0.303}, .friction = 0.5});
  const auto model = scene.build();
  Simulator sim(model, {.timestep = 2e-3, .contact = "lcp"});
  const auto at = [&](const Vector& q) -> const StepRecord& {
    State state{q, Vector(static_cast<std::size_t>(model->nv), 0.0)};
    state.v[8] = -1;
    sim.reset();
    State next;
    sim.step(state, {}, next);
    return sim.record();
  };

  const StepRecord r = at(model->q_neutral);
  const int n = r.rows.num_rows;
  const int ld = (model->nv + 7) / 8 * 8;
  CHECK(r.rows.body_rows.size() >= 1);
  Vector velocity(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) velocity[i] = std::sin(1.0 + i);

  // s with it, less s without.
  const Vector still(8 * static_cast<std::size_t>(model->nv) + 8, 0.0);
  const std::vector<unsigned char> inactive(static_cast<std::size_t>(r.rows.num_blocks), 0);
  const auto columns = [&](const double* fixed) {
    RowDerivatives derivatives;
    Vector s(static_cast<std::size_t>(n) * ld, 0.0);
    const RowState state{*model,       r.dynamics,
                         r.rows,       {still.data(), still.data(), still.data(), still.data()},
                         still.data(), r.solution.lambda.data(),
                         inactive,     fixed};
    row_derivatives(state, r.collision.contacts, derivatives);
    fill_row_columns(state, derivatives, RowMatrix(s.data(), ld));
    return s;
  };
  const Vector with = columns(velocity.data());
  const Vector without = columns(nullptr);

  constexpr double e = 1e-6;
  double largest = 0;
  for (int d = 0; d < model->nv; ++d) {
    Vector change(static_cast<std::size_t>(model->nv), 0.0);
    Vector q(model->q_neutral);
    std::vector<Vector> moved;
    for (const double side : {e, -e}) {
      change[d] = side;
      integrate(*model, model->q_neutral.data(), change.data(), q.data());
      const StepRecord& there = at(q);
      CHECK(there.rows.num_rows == n);
      moved.emplace_back();
      for (std::size_t b = 0; b < r.rows.body_rows.size(); ++b) {
        const BodyRows& own = r.rows.body_rows[b];
        for (int i = 0; i < 3; ++i) {
          double sum = 0;
          for (int k = 0; k < 3; ++k)
            for (int j = 0; j < 3; ++j)
              sum += there.rows.body_rows[b].axes[i][j] * velocity[own.row + k] * own.axes[k][j];
          moved.back().push_back(sum);
        }
      }
    }
    for (std::size_t b = 0; b < r.rows.body_rows.size(); ++b)
      for (int i = 0; i < 3; ++i) {
        const std::size_t entry = static_cast<std::size_t>(r.rows.body_rows[b].row + i) * ld + d;
        const double expected = (moved[0][3 * b + i] - moved[1][3 * b + i]) / (2 * e);
        CHECK_NEAR(with[entry] - without[entry], expected, 1e-8);
        largest = std::max(largest, std::abs(expected));
      }
  }
  CHECK(largest > 0.5);
}

}  // namespace

int main() {
  test_what_it_is();
  test_kept();
  test_who_has_none();
  test_fixed_velocity();
  return report();
}

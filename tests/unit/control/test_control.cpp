// Ticks of a receding horizon: no allocation once warm, the same bits on two threads, interruption; boxed quadratic programs.
#include <cmath>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/control.hpp"
#include "coulomb/control/boxed_newton.hpp"
#include "coulomb/scene.hpp"
#include "count_allocations.hpp"
#include "random_model.hpp"

namespace {

using namespace coulomb;
using Array = std::vector<double>;

constexpr int horizon = 12;

std::shared_ptr<const Model> pushed_box() {
  Scene scene;
  scene.add_ground({.friction = 0.5});
  ShapeOptions box;
  box.mass = 1.0, box.position = {0, 0, 0.0999};
  scene.add_box({0.3, 0.2, 0.2}, box);
  return scene.build();
}

/// The box is to move by 10 cm, by forces.
std::unique_ptr<TrajectorySolver> make_solver(int num_threads) {
  ControlOptions options;
  options.horizon = horizon;
  options.substeps = 2;
  options.num_threads = num_threads;
  options.inputs = "tau";
  auto solver = std::make_unique<TrajectorySolver>(pushed_box(), options);
  const Model& model = solver->model();

  CostTerm state;
  state.of = CostTerm::Of::state;
  state.weight.assign((horizon + 1) * 2 * model.nv, 1.0);
  Array reference(model.nq + model.nv);
  neutral(model, reference.data());
  reference[0] += 0.1;
  for (int t = 0; t <= horizon; ++t) state.reference.insert(state.reference.end(), reference.begin(), reference.end());
  solver->add(state);

  CostTerm height;
  height.outputs = {"position/box"};
  height.shape = CostTerm::Shape::below;
  height.weight.assign((horizon + 1) * 3, 10.0);
  height.reference.assign((horizon + 1) * 3, 0.1);
  height.gate = "position/box";
  height.gate_row = 2;
  solver->add(height);

  CostTerm control;
  control.of = CostTerm::Of::control;
  control.weight.assign((horizon + 1) * model.nv, 1e-3);
  solver->add(control);
  CostTerm rate;
  rate.of = CostTerm::Of::control_rate;
  rate.weight.assign((horizon + 1) * model.nv, 1e-4);
  solver->add(rate);
  return solver;
}

/// One tick a call, from where the plan begins; pushed a little.
void tick(TrajectorySolver& solver, int count, const ControlBudget& budget) {
  const Model& model = solver.model();
  Array q(model.nq), v(model.nv);
  neutral(model, q.data());
  v[0] = 0.01 * count;
  ControlStart start;
  start.q0 = q.data();
  start.v0 = v.data();
  start.from_last = count > 0;
  start.shift = start.from_last;
  CHECK(solver.solve(start, budget));
}

void ticks_allocate_nothing() {
  const auto solver = make_solver(1);
  const Model& model = solver->model();
  Array q(model.nq), v(model.nv);
  neutral(model, q.data());
  ControlBudget budget;
  budget.iterations = 2;
  ControlStart start;
  start.q0 = q.data();
  start.v0 = v.data();
  CHECK(solver->solve(start, budget));
  start.from_last = true;
  start.shift = true;
  for (int i = 0; i < 20; ++i) CHECK(solver->solve(start, budget));

  const long before = allocations;
  for (int i = 0; i < 10; ++i) CHECK(solver->solve(start, budget));
  CHECK(allocations == before);
}

void threads_give_the_same_bits() {
  const auto one = make_solver(1);
  const auto two = make_solver(2);
  ControlBudget budget;
  budget.iterations = 3;
  for (int i = 0; i < 4; ++i) {
    tick(*one, i, budget);
    tick(*two, i, budget);
    CHECK(one->result().cost == two->result().cost);
    CHECK(one->result().q == two->result().q);
    CHECK(one->result().u == two->result().u);
    CHECK(one->result().gain == two->result().gain);
  }
}

/// Where the plans of these tests begin.
struct First {
  explicit First(const Model& model) : q(model.nq), v(model.nv) {
    neutral(model, q.data());
    start.q0 = q.data();
    start.v0 = v.data();
  }
  Array q, v;
  ControlStart start;
};

bool has_result(const TrajectorySolver& solver) {
  try {
    solver.result();
  } catch (const std::invalid_argument&) {
    return false;
  }
  return true;
}

/// Says yes from the sixth question on.
std::function<bool()> soon() {
  return [questions = 0]() mutable { return ++questions > 5; };
}

void interrupted_solves_are_forgotten() {
  const auto solver = make_solver(2);
  const First first(solver->model());
  ControlBudget budget;
  budget.interrupted = soon();
  CHECK(!has_result(*solver));
  CHECK(!solver->solve(first.start, budget));
  CHECK(!has_result(*solver));
  CHECK(!solver->has_last());
  budget.interrupted = {};
  CHECK(solver->solve(first.start, budget));
  CHECK(solver->result().status == ControlStatus::converged);
  CHECK(solver->has_last());

  // The result is of the solve that was done.
  const ControlResult done = solver->result();
  Array u(done.u.size(), 1.0);
  First other(solver->model());
  other.start.u = u.data();
  budget.interrupted = soon();
  CHECK(!solver->solve(other.start, budget));
  CHECK(!solver->has_last());
  CHECK(solver->result().costs == done.costs);
  CHECK(solver->result().steps == done.steps);
  CHECK(solver->result().u == done.u);
}

void gradients_do_not_notice_what_was_interrupted() {
  const auto fresh = make_solver(2);
  const auto solver = make_solver(2);
  const First first(solver->model());
  const std::size_t size = std::size_t(horizon) * solver->num_controls();
  const Array u(size, 0.1);
  Array expected(size), du(size);
  const std::optional<double> cost =
      fresh->gradient(first.q.data(), first.v.data(), u.data(), nullptr, expected.data());
  CHECK(cost.has_value());

  ControlBudget budget;
  budget.interrupted = soon();
  CHECK(!solver->solve(first.start, budget));
  CHECK(solver->gradient(first.q.data(), first.v.data(), u.data(), nullptr, du.data()) == cost);
  CHECK(du == expected);
  CHECK(!solver->gradient(first.q.data(), first.v.data(), u.data(), nullptr, du.data(), soon()));
  CHECK(solver->gradient(first.q.data(), first.v.data(), u.data(), nullptr, du.data()) == cost);
  CHECK(du == expected);
}

/// At the solution no entry can go where its gradient points: the conditions of Karush, Kuhn and Tucker.
void boxed_programs_are_solved() {
  test::Random random(5);
  for (int n = 1; n <= 12; ++n)
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Array M = random.vector(n * n, 1.0);
      const Array q = random.vector(n, 2.0);
      Array Q(n * 16);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
          Q[i * 16 + j] = i == j ? 0.05 : 0.0;
          for (int k = 0; k < n; ++k) Q[i * 16 + j] += M[k * n + i] * M[k * n + j];
        }
      const Array lower(n, -0.4), upper(n, 0.7);
      Array x(n, 0.0);
      BoxedNewton boxed;
      boxed.resize(n);
      CHECK(boxed.solve(Q.data(), 16, q.data(), lower.data(), upper.data(), x.data()));

      int free = 0;
      for (int i = 0; i < n; ++i) {
        double slope = q[i];
        for (int j = 0; j < n; ++j) slope += Q[i * 16 + j] * x[j];
        CHECK(x[i] >= lower[i] && x[i] <= upper[i]);
        if (slope < -1e-6) CHECK(x[i] == upper[i]);
        if (slope > 1e-6) CHECK(x[i] == lower[i]);
        free += std::abs(slope) <= 1e-6;
      }
      CHECK(boxed.num_free() == free);
    }
}

}  // namespace

int main() {
  ticks_allocate_nothing();
  threads_give_the_same_bits();
  interrupted_solves_are_forgotten();
  gradients_do_not_notice_what_was_interrupted();
  boxed_programs_are_solved();
  return test::report();
}

// A batch gives the bits of single simulators for any number of threads, run after run, and allocates nothing once warm.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "coulomb/base/thread_pool.hpp"
#include "coulomb/batch.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "count_allocations.hpp"
#include "random_model.hpp"

namespace {

using namespace coulomb;
using Array = std::vector<double>;

constexpr int num_envs = 13;
const std::vector<std::string> wrt = {"friction/ground", "mass/box1"};

std::shared_ptr<const Model> boxes_and_a_ball() {
  Scene scene;
  scene.add_ground({.friction = 0.6});
  ShapeOptions box;
  box.mass = 1.0;
  for (int i = 0; i < 2; ++i) {
    box.position = {0.02 * i, 0, 0.1 + 0.2 * i};
    box.name = "box" + std::to_string(i);
    scene.add_box({0.2, 0.2, 0.2}, box);
  }
  ShapeOptions ball;
  ball.mass = 0.5, ball.position = {0.6, 0, 0.12}, ball.restitution = 0.5;
  scene.add_sphere(0.1, ball);
  return scene.build();
}

struct States {
  Array q, v;
  bool operator==(const States& other) const {
    return std::memcmp(q.data(), other.q.data(), q.size() * sizeof(double)) == 0 &&
           std::memcmp(v.data(), other.v.data(), v.size() * sizeof(double)) == 0;
  }
};

States start(const Model& m, int n, double speed) {
  test::Random random(1);
  States out;
  for (int i = 0; i < n; ++i) {
    out.q.insert(out.q.end(), m.q_neutral.begin(), m.q_neutral.end());
    const Array v = random.vector(m.nv, speed * (i + 1) / n);
    out.v.insert(out.v.end(), v.begin(), v.end());
  }
  return out;
}

// Everything that a run of a batch gives.
struct Run {
  States states;
  Array A, B_tau, columns, dq, dv, tau, parameters, dq1, dv1;
  bool operator==(const Run& other) const;
};

bool Run::operator==(const Run& other) const {
  const auto same = [&](const Array Run::*member) {
    const Array &a = this->*member, &b = other.*member;
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  };
  bool ok = states == other.states;
  for (const auto member :
       {&Run::A, &Run::B_tau, &Run::columns, &Run::dq, &Run::dv, &Run::tau, &Run::parameters, &Run::dq1, &Run::dv1})
    ok = ok && same(member);
  return ok;
}

struct Sizes {
  std::size_t n, nv, k;
};

Run make_run(const Sizes& s) {
  const std::size_t square = s.n * 4 * s.nv * s.nv, row = s.n * s.nv;
  return {{},         Array(square), Array(square / 2), Array(row * 2 * s.k), Array(row),
          Array(row), Array(row),    Array(s.n * s.k),  Array(row),           Array(row)};
}

Run run_batch(const std::shared_ptr<const Model>& model, int threads, int steps, const States& from,
              const BatchParameters& parameters) {
  BatchSimulator batch(model, num_envs, threads, {.timestep = 2e-3}, parameters);
  const Sizes s{num_envs, std::size_t(model->nv), std::size_t(batch.parameter_set(wrt).size())};
  Run out = make_run(s);
  out.states = from;
  for (int t = 0; t < steps; ++t)
    batch.step({out.states.q.data(), out.states.v.data()}, out.states.q.data(), out.states.v.data());
  batch.derivatives(wrt, {.A = out.A.data(), .B_tau = out.B_tau.data(), .parameters = out.columns.data()});
  batch.vjp(from.v.data(), out.states.v.data(), wrt,
            {out.dq.data(), out.dv.data(), nullptr, out.tau.data(), out.parameters.data()});
  batch.jvp(from.v.data(), out.states.v.data(), nullptr, nullptr, out.dq1.data(), out.dv1.data());
  return out;
}

void store(const Array& transposed, std::size_t rows, std::size_t columns, double* out) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) out[i * columns + j] = transposed[j * rows + i];
}

Run run_singles(const std::shared_ptr<const Model>& model, int steps, const States& from,
                const BatchParameters& parameters) {
  const std::size_t nq = model->nq, nv = model->nv, k = ParameterSet(*model, wrt).size();
  Run out = make_run({num_envs, nv, k});
  out.states = from;
  for (std::size_t i = 0; i < num_envs; ++i) {
    ParameterValues own;
    for (const auto& [name, value] : parameters) own.emplace_back(name, Array{value[i]});
    Simulator sim(own.empty() ? model : with_parameters(*model, own), {.timestep = 2e-3});
    double *q = &out.states.q[i * nq], *v = &out.states.v[i * nv];
    for (int t = 0; t < steps; ++t) sim.step(q, v, nullptr, nullptr, nullptr, q, v);
    const auto d = sim.derivatives(wrt);
    store(d->A_T, 2 * nv, 2 * nv, &out.A[i * 4 * nv * nv]);
    store(d->B_tau_T, 2 * nv, nv, &out.B_tau[i * 2 * nv * nv]);
    store(d->parameters_T, 2 * nv, k, &out.columns[i * 2 * nv * k]);
    const StepCotangent g = sim.vjp(&from.v[i * nv], v, wrt);
    std::copy(g.q.begin(), g.q.end(), &out.dq[i * nv]);
    std::copy(g.v.begin(), g.v.end(), &out.dv[i * nv]);
    std::copy(g.tau.begin(), g.tau.end(), &out.tau[i * nv]);
    std::copy(g.parameters.begin(), g.parameters.end(), &out.parameters[i * k]);
    sim.jvp(&from.v[i * nv], v, nullptr, nullptr, &out.dq1[i * nv], &out.dv1[i * nv]);
  }
  return out;
}

void same_bits_as_single_simulators() {
  const auto model = boxes_and_a_ball();
  const States from = start(*model, num_envs, 1.0);
  BatchParameters masses{{"mass/box1", {}}, {"friction/ground", {}}};
  for (int i = 0; i < num_envs; ++i) masses[0].second.push_back(1 + 0.1 * i), masses[1].second.push_back(0.1 * i);
  for (const BatchParameters& parameters : {BatchParameters{}, masses}) {
    const Run single = run_singles(model, 60, from, parameters);
    CHECK(single.states.q != from.q);
    for (const int threads : {1, 2, 4, 8})
      for (int again = 0; again < 3; ++again) CHECK(run_batch(model, threads, 60, from, parameters) == single);
  }
  CHECK(!(run_singles(model, 60, from, {}) == run_singles(model, 60, from, masses)));
}

void no_allocation_once_warm() {
  const auto model = boxes_and_a_ball();
  BatchSimulator batch(model, num_envs, 2, {.timestep = 2e-3});
  States x = start(*model, num_envs, 0.1);
  const Array tau(std::size_t(num_envs) * model->nv, 0.0);
  Array A(std::size_t(num_envs) * 4 * model->nv * model->nv);
  const auto step = [&] {
    batch.step({.q = x.q.data(), .v = x.v.data(), .tau = tau.data()}, x.q.data(), x.v.data());
    batch.derivatives({}, {.A = A.data()});
  };
  for (int t = 0; t < 300; ++t) step();
  const long before = allocations;
  for (int t = 0; t < 300; ++t) step();
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(batch.environment(num_envs - 1).record().collision.contacts.size() >= 8);  // not vacuous
}

template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "accepted";
}

void refuses_before_anything_moves() {
  const auto model = boxes_and_a_ball();
  const std::size_t nq = model->nq, nv = model->nv;
  BatchSimulator batch(model, num_envs, 2, {.timestep = 2e-3}), untouched(model, num_envs, 2, {.timestep = 2e-3});
  States x = start(*model, num_envs, 0.1), y = x;
  for (int t = 0; t < 5; ++t) {
    batch.step({x.q.data(), x.v.data()}, x.q.data(), x.v.data());
    untouched.step({y.q.data(), y.v.data()}, y.q.data(), y.v.data());
  }
  States bad = x, out = x;
  bad.v[11 * nv + 2] = std::nan("");
  CHECK(refusal([&] { batch.step({bad.q.data(), bad.v.data()}, out.q.data(), out.v.data()); }) ==
        "V[11, 2] is nan, expected a finite number");
  bad = x;
  bad.q[12 * nq + 1] = -std::numeric_limits<double>::infinity();
  CHECK(refusal([&] { batch.step({bad.q.data(), bad.v.data()}, out.q.data(), out.v.data()); }) ==
        "Q[12, 1] is -inf, expected a finite number");
  bad = x;
  bad.q[12 * nq + 3] = 2;
  CHECK(refusal([&] {
          batch.step({bad.q.data(), bad.v.data()}, out.q.data(), out.v.data());
        }).find("Q[12][3:7]: quaternion") == 0);
  CHECK(out == x);
  CHECK(refusal([&] {
          batch.set_parameters({{"mass/box0", Array(num_envs, -1.0)}});
        }).find("environment 0: parameter 'mass/box0'") == 0);
  Array masses(num_envs, 2.0);
  masses[9] = std::nan("");
  CHECK(refusal([&] { batch.set_parameters({{"mass/box0", masses}}); }).find("environment 9: parameter 'mass/box0'") ==
        0);
  CHECK(refusal([&] { batch.set_parameters({{"mass/box7", masses}}); }).find("mass/box7") != std::string::npos);
  for (int t = 0; t < 20; ++t) {
    batch.step({x.q.data(), x.v.data()}, x.q.data(), x.v.data());
    untouched.step({y.q.data(), y.v.data()}, y.q.data(), y.v.data());
  }
  CHECK(x == y);
  CHECK(refusal([&] { BatchSimulator(model, 0); }).find("num_envs: got 0") == 0);
  CHECK(refusal([&] { BatchSimulator(model, 2, -1); }).find("num_threads: got -1") == 0);
  CHECK(refusal([&] { BatchSimulator(nullptr, 2); }).find("model") == 0);
  BatchSimulator fresh(model, 2);
  CHECK(refusal([&] { fresh.derivatives({}, {}); }).find("environment 0: no step was taken yet") != std::string::npos);
}

void trouble_stays_at_home() {
  const auto model = boxes_and_a_ball();
  const std::size_t nq = model->nq, nv = model->nv;
  BatchSimulator batch(model, num_envs, 2, {.timestep = 2e-3}), well(model, num_envs, 2, {.timestep = 2e-3});
  States x = start(*model, num_envs, 0.1), y = x;
  for (std::size_t d = 0; d < nv; ++d) x.v[4 * nv + d] = 1e200;  // squares leave the range of double
  const States before = x;
  for (int t = 0; t < 10; ++t) {
    batch.step({x.q.data(), x.v.data()}, x.q.data(), x.v.data());
    well.step({y.q.data(), y.v.data()}, y.q.data(), y.v.data());
  }
  CHECK(!batch.environment(4).status().converged);
  CHECK(batch.environment(3).status().converged && batch.environment(5).status().converged);
  CHECK(std::equal(&x.q[4 * nq], &x.q[5 * nq], &before.q[4 * nq]) &&
        std::equal(&x.v[4 * nv], &x.v[5 * nv], &before.v[4 * nv]));
  for (std::size_t i : {0, 3, 5, 12})
    CHECK(std::equal(x.q.data() + i * nq, x.q.data() + (i + 1) * nq, y.q.data() + i * nq));
  Array A(num_envs * 4 * nv * nv);
  bool valid[num_envs];
  batch.derivatives({}, {.A = A.data(), .valid = valid});
  for (std::size_t i = 0; i < num_envs; ++i) {
    const double sum = std::accumulate(&A[i * 4 * nv * nv], &A[i * 4 * nv * nv] + 4 * nv * nv, 0.0);
    CHECK(valid[i] == (i != 4) && std::isfinite(sum) && (sum == 0) == (i == 4));
  }
}

void exceptions_and_shares_of_the_pool() {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int count : {0, 1, 2, 7, 1000}) {
      std::vector<int> seen(std::size_t(count), 0);
      pool.run(count, [&](int item, int thread) { seen[std::size_t(item)] += thread >= 0 && thread < threads; });
      CHECK(seen == std::vector<int>(std::size_t(count), 1));
    }
    for (int again = 0; again < 20; ++again)
      CHECK(refusal([&] {
              pool.run(100, [](int item, int) {
                if (item % 30 == 29) throw std::invalid_argument(std::to_string(item));
              });
            }) == "29");
  }
}

}  // namespace

int main() {
  same_bits_as_single_simulators();
  no_allocation_once_warm();
  refuses_before_anything_moves();
  trouble_stays_at_home();
  exceptions_and_shares_of_the_pool();
  return test::report();
}

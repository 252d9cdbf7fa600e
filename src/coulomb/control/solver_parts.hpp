// What a TrajectorySolver has: the trajectory, its models, candidates, and what every thread works with.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "coulomb/control.hpp"
#include "coulomb/control/costs.hpp"
#include "coulomb/control/knot_dynamics.hpp"
#include "coulomb/control/riccati.hpp"
#include "coulomb/base/thread_pool.hpp"

namespace coulomb {

/// States and controls of all knots, and what the simulator remembered at each.
struct Trajectory {
  std::vector<double> q;           ///< (N + 1) x nq
  std::vector<double> v;           ///< (N + 1) x nv
  std::vector<double> u;           ///< N x nu
  std::vector<StepMemory> memory;  ///< N + 1
  std::vector<char> converged;     ///< N
  double cost = 0;
  bool finite = true;
};

struct TrajectorySolver::Parts {
  Parts(std::shared_ptr<const Model> of, ControlOptions asked);

  // solver_parts.cpp: what has no decisions in it
  void fit();
  Knot knot(const Trajectory& x, int t) const;
  void stand_still(Trajectory& x, int t) const;
  void roll_out(int thread, const Trajectory& from, bool feedback, double length, double limit, Trajectory& to);
  bool linearize();
  double sum_of_gaps() const;
  double largest_gap() const;
  template <class Body>
  bool run(int count, Body&& body);
  bool ask();

  // start.cpp: where a solve begins
  void check(const ControlStart& start, const ControlBudget& budget) const;
  void begin(const ControlStart& start);
  void shift();

  // trajectory_solver.cpp: the method
  bool solve(const ControlStart& start, const ControlBudget& budget);
  void iterate();
  bool descend(double merit, double slope, double gaps);
  bool bring_feedback();
  void finish(ControlStatus status, std::string_view reason);
  void tell();

  std::shared_ptr<const Model> model;
  ControlOptions options;
  int nu;
  ThreadPool pool;
  CostSum costs;
  std::vector<double> lower;
  std::vector<double> upper;

  // One per thread.
  struct Worker {
    Worker(std::shared_ptr<const Model> model, const ControlOptions& options)
        : dynamics(model, options), cost(*model), q_next(model->nq), v_next(model->nv) {}
    KnotDynamics dynamics;
    CostSum::Workspace cost;
    std::vector<double> dx;
    std::vector<double> q_next;
    std::vector<double> v_next;
  };
  std::vector<std::unique_ptr<Worker>> workers;
  StepMemory cold;

  // The last solve.
  KnotLayout layout;
  Trajectory now;
  std::vector<Trajectory> candidates;  // one per thread
  std::vector<double> u_before;
  KnotModels models;
  std::vector<double> knot_costs;
  std::vector<char> knot_finite;
  Feedback feedback;
  Feedback tried;
  Riccati riccati;
  ControlResult result;
  bool there = false;       // there is a trajectory
  bool linearized = false;  // models are those of `now`
  double penalty = 0;       // of gaps, in the merit
  double regularization = 0;

  // While a solve runs.
  const ControlBudget* budget = nullptr;
  std::atomic<bool> stopped{false};
};

/// body(item, thread), on all threads. False if interrupted.
template <class Body>
bool TrajectorySolver::Parts::run(int count, Body&& body) {
  // However the others are: thread 0 asks at least once.
  if (ask()) return false;
  void (*idle)(void*) = nullptr;
  if (budget && budget->interrupted) idle = [](void* self) { static_cast<Parts*>(self)->ask(); };
  const auto one = [&](int item, int thread) {
    if (thread == 0) ask();
    if (!stopped.load(std::memory_order_relaxed)) body(item, thread);
  };
  pool.run(count, one, idle, this);
  return !stopped;
}

}  // namespace coulomb

// What a TrajectorySolver has: the trajectory, its models, candidates, and what every thread works with.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "coulomb/base/thread_pool.hpp"
#include "coulomb/control.hpp"
#include "coulomb/control/costs.hpp"
#include "coulomb/control/knot_dynamics.hpp"
#include "coulomb/control/riccati.hpp"

namespace coulomb {

/// States and controls of all knots, and what the simulator remembered at each.
struct Trajectory {
  std::vector<double> q;           ///< (N + 1) x nq
  std::vector<double> v;           ///< (N + 1) x nv
  std::vector<double> u;           ///< N x nu
  std::vector<double> u_before;    ///< nu: for the first control rate
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
  bool linearize(Trajectory& x);
  double sum_of_gaps() const;
  double largest_gap() const;
  template <class Body>
  bool run(int count, Body&& body);
  bool ask();
  class Asking;

  // start.cpp: where a solve begins
  void check(const ControlStart& start) const;
  void check_inputs(const double* q0, const double* v0, const double* u, const double* u_before) const;
  bool begin(const ControlStart& start);
  void set_first(const double* q0, const double* v0, Trajectory& x) const;
  void shift();

  // trajectory_solver.cpp: the method
  bool solve(const ControlStart& start, const ControlBudget& budget);
  std::optional<double> gradient(const double* q0, const double* v0, const double* u, const double* u_before,
                                 double* du, const std::function<bool()>& asked);
  std::optional<double> cost(const double* q, const double* v, const double* u, const double* u_before, double* by_term,
                             const std::function<bool()>& asked);
  void iterate();
  bool descend(double merit, double slope, double gaps);
  bool bring_feedback();
  bool regularize_more();
  void finish(ControlStatus status, std::string_view reason);
  void finish_overflowed();
  bool bring_gains();
  void tell();

  std::shared_ptr<const Model> model;
  ControlOptions options;
  int nu;
  ThreadPool pool;
  CostSum costs;
  std::vector<double> range_lower;  // of the actuators
  std::vector<double> range_upper;
  std::vector<double> lower;  // within them
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
  KnotModels models;
  std::vector<double> knot_costs;
  std::vector<char> knot_finite;
  Feedback feedback;
  Feedback tried;
  Feedback gains;  // of the result
  Riccati riccati;
  ControlResult result;     // of the solve that runs
  ControlResult last;       // of the last one that was finished
  bool finished = false;    // there was one
  bool there = false;       // there is a trajectory
  bool linearized = false;  // models are those of `now`
  double penalty = 0;       // of gaps, in the merit
  double regularization = 0;
  double of_feedback = -1;  // the regularisation of `feedback`, where it is that of `models`; else -1
  double scale = 0;         // of costs: the largest that solves began with, since one that was not from the last

  // While a call runs.
  const ControlBudget* budget = nullptr;
  const std::function<bool()>* interrupted = nullptr;
  std::atomic<bool> stopped{false};
};

/// Adds the time that it lives, by a clock that there may be.
class Watch {
 public:
  Watch(const std::function<double()>& clock, double& total) : clock_(clock), total_(total) {
    if (clock_) total_ -= clock_();
  }
  ~Watch() {
    if (clock_) total_ += clock_();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  const std::function<double()>& clock_;
  double& total_;
};

/// For the time of a call: it asks whether it is to be left, and was not told so yet, whatever became of the call before.
class TrajectorySolver::Parts::Asking {
 public:
  Asking(Parts& parts, const std::function<bool()>& interrupted) : parts_(parts) {
    parts.stopped = false;
    parts.interrupted = interrupted ? &interrupted : nullptr;
  }
  ~Asking() { parts_.interrupted = nullptr; }
  Asking(const Asking&) = delete;
  Asking& operator=(const Asking&) = delete;

 private:
  Parts& parts_;
};

/// body(item, thread), on all threads. False if interrupted.
template <class Body>
bool TrajectorySolver::Parts::run(int count, Body&& body) {
  // However the others are: thread 0 asks at least once.
  if (ask()) return false;
  void (*idle)(void*) = nullptr;
  if (interrupted) idle = [](void* self) { static_cast<Parts*>(self)->ask(); };
  const auto one = [&](int item, int thread) {
    if (thread == 0) ask();
    if (!stopped.load(std::memory_order_relaxed)) body(item, thread);
  };
  pool.run(count, one, idle, this);
  return !stopped;
}

}  // namespace coulomb

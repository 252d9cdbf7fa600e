// control: trajectories of a simulator that are best by a cost, and receding horizons (docs/control.md).
//
//   minimise  sum over knots t < N of l_t(x_t, u_t)  +  l_N(x_N)      x_(t+1) = f(x_t, u_t),   lower <= u_t <= upper
//
// x = (q, v), f: `substeps` steps of a simulator with u held. A cost is a sum of residuals, l = 1/2 sum w r^2, and its Hessian is that of
// Gauss and Newton. The method is iLQR with multiple shooting: states need not follow the dynamics at first, and a step of length alpha
// closes the share alpha of each gap [Mastalli2020]; limits are kept by boxed Newton steps [Tassa2014].
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb {

struct ControlOptions {
  int horizon = 1;                  ///< N: knots at which the control changes
  int substeps = 1;                 ///< simulator steps from knot to knot
  int num_threads = 1;              ///< the caller's included; 0: all cores that this process may use
  std::string inputs = "u";         ///< "u": the model's actuators | "tau": a force on every dof
  SimulatorOptions simulator = {};  ///< any with one state: not bdf2
};

/// A term of the cost.
struct CostTerm {
  enum class Of : std::uint8_t {
    outputs,  ///< readings of states by name (docs/outputs.md), orientations by their rotation vector from the reference
    state,    ///< (q (-) q_reference, v - v_reference)
    control,      ///< u_t - reference
    control_rate  ///< u_t - u_(t-1)
  };
  enum class Shape : std::uint8_t {
    square,  ///< of the residual
    below,   ///< of its negative part: readings are to be at least the reference
    above    ///< of its positive part
  };
  Of of = Of::outputs;
  Shape shape = Shape::square;
  std::vector<std::string> outputs;

  /// Not empty: the weight is multiplied by the logistic function of (gate_threshold - y) / gate_width, y the row of that output.
  std::string gate;
  int gate_row = 0;
  double gate_threshold = 0;
  double gate_width = 0.01;

  /// (N + 1) x width, not negative. Row N: of the last state; of no meaning for controls.
  std::vector<double> weight;
  /// (N + 1) x size; empty: zero (quaternions: none). Not for control_rate.
  std::vector<double> reference;
};

enum class ControlStatus : std::uint8_t {
  converged,        ///< no gaps, and the model of the cost promises no more than the tolerance
  unsolved_steps,   ///< the same, but steps of the trajectory were not solved as posed
  iteration_limit,  ///< more iterations would improve it
  no_descent,       ///< the most regularised step has to be short, or none is good; or steps gain no more than rounding
  not_differentiable  ///< a state or step of the trajectory has no derivative: its numbers overflowed
};
const char* control_status_name(ControlStatus status);

/// Where a solve starts. Null: see there.
struct ControlStart {
  const double* q0 = nullptr;  ///< nq
  const double* v0 = nullptr;  ///< nv
  const double* u = nullptr;   ///< N x nu, clipped to the limits; null: zero, from_last: the last
  const double* q = nullptr;   ///< (N + 1) x nq, rows 1 .. N are guesses of states, with v; null: by a rollout of u
  const double* v = nullptr;   ///< (N + 1) x nv
  const double* u_before = nullptr;  ///< nu: for the first control_rate; null: zero, from_last: the last
  /// Guess the states of the last solve instead. Steps are then as warm as they were there.
  bool from_last = false;
  /// With from_last: one knot on. States and controls move up, the last control is held, u_before becomes the control that was first.
  bool shift = false;
  /// With from_last: first roll out from (q0, v0), under the feedback of the last solve, so that there are no gaps.
  bool roll = true;
};

struct ControlBudget {
  int iterations = 100;
  double tolerance =
      1e-8;  ///< promised improvement, relative to the cost; or the rounding of the cost that it began with
  double gap_tolerance = 1e-9;   ///< largest entry of a gap: m, rad, m/s, rad/s
  double regularization = 1e-9;  ///< first and least, relative to the mean of the diagonal by u
  double max_regularization = 1e6;
  int step_lengths = 11;  ///< 1, 1/2, 1/4, ...
  double armijo = 1e-4;   ///< share of the slope that a step must gain
  /// The gains of the result are those along its trajectory, for which that is linearised once more; else along the one that the last
  /// iteration began with.
  bool gains_of_result = true;
  std::function<double()> clock;  ///< seconds, for timings; empty: none are taken
  /// Asked now and then on the caller's thread; yes ends the solve.
  std::function<bool()> interrupted;
  /// Called after every iteration with (done, iterations). It may throw: the solve is then left.
  std::function<void(int, int)> progress;
};
/// Throws std::invalid_argument naming what is wrong and its value.
void check_budget(const ControlBudget& budget);

struct ControlTimings {
  double linearize = 0;  ///< s, steps, their Jacobians and those of costs
  double riccati = 0;
  double rollouts = 0;
};

/// Result of the last solve. States, controls and gains are finite; the cost is infinite where it overflows.
struct ControlResult {
  ControlStatus status = ControlStatus::iteration_limit;
  std::string reason;
  int iterations = 0;
  double cost = 0;
  std::vector<double> costs;    ///< iterations + 1: at the start and after every iteration, gaps or not
  std::vector<double> gaps;     ///< sum of |gaps| likewise
  std::vector<double> steps;    ///< accepted step lengths, 0: none
  double regularization = 0;    ///< in the end
  double promised = 0;          ///< improvement that the last model of the cost promised
  int unconverged = 0;          ///< knots with a step that was not solved as posed
  std::vector<double> q, v, u;  ///< (N + 1) x nq, (N + 1) x nv, N x nu
  /// N x nu x 2 nv: u + gain (x (-) x_t), best for the quadratic model of the cost along the trajectory; zero at limits that hold a control.
  std::vector<double> gain;
  double gain_regularization = 0;  ///< the least with which that model is convex; 0: as it is
  ControlTimings timings;
};

class TrajectorySolver {
 public:
  /// Throws std::invalid_argument naming argument and value.
  TrajectorySolver(std::shared_ptr<const Model> model, ControlOptions options);
  ~TrajectorySolver();
  TrajectorySolver(const TrajectorySolver&) = delete;
  TrajectorySolver& operator=(const TrajectorySolver&) = delete;

  const Model& model() const;
  std::shared_ptr<const Model> shared_model() const;
  const ControlOptions& options() const;
  int num_threads() const;
  int num_controls() const;
  double timestep() const;  ///< s from knot to knot

  /// Returns its index. Throws std::invalid_argument naming argument, element and value.
  int add(CostTerm term);
  int num_terms() const;
  const CostTerm& term(int index) const;
  /// Between solves; sizes as they were.
  void set_weight(int index, const double* weight);
  void set_reference(int index, const double* reference);
  /// num_controls() each, may be infinite; what is outside of the actuators' control ranges, where they saturate, is left out.
  void set_limits(const double* lower, const double* upper);
  const std::vector<double>& lower() const;
  const std::vector<double>& upper() const;

  /// Depends on its arguments, costs and limits alone; from_last on the last solve, too. False if interrupted: there is then no last one to
  /// start from. Throws std::invalid_argument for bad input, with everything as it was.
  bool solve(const ControlStart& start, const ControlBudget& budget);
  /// Result of the last solve that was not interrupted. Throws std::invalid_argument if there was none.
  const ControlResult& result() const;
  /// There is a last solve, whose trajectory the next one may start from.
  bool has_last() const;
  /// The next solve starts without the last.
  void forget();

  /// The cost of a rollout of u (N x nu, limits are not looked at) and its derivative by u, by costates; the last solve stays. Null if
  /// interrupted. Throws as solve; std::logic_error where the rollout has no derivative.
  std::optional<double> gradient(const double* q0, const double* v0, const double* u, const double* u_before,
                                 double* du, const std::function<bool()>& interrupted = {});
  /// The cost of states (N + 1) x nq, nv and controls N x nu, whether or not they follow the dynamics; by_term: num_terms() or null. Null if
  /// interrupted.
  std::optional<double> cost(const double* q, const double* v, const double* u, const double* u_before, double* by_term,
                             const std::function<bool()>& interrupted = {});

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coulomb

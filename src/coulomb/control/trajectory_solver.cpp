// The method: models of all knots, the backward pass, and the longest step that makes the merit smaller.
//
//   merit(alpha) = cost + nu (1 - alpha) sum |gaps|
//
// Gaps shrink by alpha exactly [Mastalli2020], so the merit's slope is that of the cost along the linear dynamics less nu times the gaps;
// nu is so large that it is negative.
#include "coulomb/control.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "coulomb/configuration.hpp"
#include "coulomb/control/solver_parts.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/rollout/checks.hpp"

namespace coulomb {
namespace {

constexpr double first_regularization = 1e-6;  // after one that was none
constexpr double growth = 10;
constexpr double trusted_regularization = 1e-3;  // more of it, and a small promise does not mean that none is to be had
constexpr double unfelt_regularization = 1e-9;   // in gains
constexpr double long_step = 0.5;
constexpr double short_step = 0.1;
constexpr double rounding = 1e-15;   // of costs, relative
constexpr double unnoticed = 1e-14;  // a gain, relative to the merit, that may be rounding
constexpr int patience = 5;          // iterations in a row that gained no more
constexpr std::size_t longest_reason = 100;
constexpr double epsilon = std::numeric_limits<double>::epsilon();

}  // namespace

const char* control_status_name(ControlStatus status) {
  switch (status) {
    case ControlStatus::converged: return "converged";
    case ControlStatus::unsolved_steps: return "unsolved steps";
    case ControlStatus::iteration_limit: return "iteration limit";
    case ControlStatus::no_descent: return "no descent";
    case ControlStatus::not_differentiable: return "not differentiable";
  }
  return "";
}

void TrajectorySolver::Parts::finish(ControlStatus status, std::string_view reason) {
  result.status = status;
  result.reason = reason;  // in the memory that it has
}

void TrajectorySolver::Parts::finish_overflowed() {
  if (!linearized) return finish(ControlStatus::not_differentiable, "the numbers of the first rollout overflowed");
  const auto first = std::find(knot_finite.begin(), knot_finite.end(), 0);
  const std::string knot = std::to_string(first - knot_finite.begin());
  finish(ControlStatus::not_differentiable, "the numbers of knot " + knot + " overflowed, it has no derivative");
}

/// False: there is no more.
bool TrajectorySolver::Parts::regularize_more() {
  const double most = budget->max_regularization;
  if (regularization >= most) return false;
  const double more = std::max(regularization * growth, first_regularization);
  regularization = std::min(more, most);
  return true;
}

/// `tried` for the smallest regularisation from here on that has one. False: none has.
bool TrajectorySolver::Parts::bring_feedback() {
  const Watch watch(budget->clock, result.timings.riccati);
  while (!riccati.backward(models, regularization, now.u.data(), lower.data(), upper.data(), tried))
    if (!regularize_more()) return false;
  return true;
}

/// Candidates of several lengths at once, as many as there are threads; the longest that is good enough becomes `now`.
bool TrajectorySolver::Parts::descend(double merit, double slope, double gaps) {
  const Watch watch(budget->clock, result.timings.rollouts);
  const int threads = pool.num_threads();

  // Lengths fall by halves; a cost is good enough if the merit falls by its share of what the slope promises.
  const auto length_of = [](int k) { return std::ldexp(1.0, -k); };
  const auto most = [&](double length) {
    const double wanted = budget->armijo * length * slope + rounding * std::abs(merit);
    const double of_gaps = penalty * (1 - length) * gaps;
    return merit + wanted - of_gaps;
  };
  for (int first = 0; first < budget->step_lengths; first += threads) {
    // As many rollouts as there are threads.
    const int count = std::min(threads, budget->step_lengths - first);
    const bool finished = run(count, [&](int i, int thread) {
      Trajectory& to = candidates[i];
      std::copy_n(now.q.begin(), model->nq, to.q.begin());
      std::copy_n(now.v.begin(), model->nv, to.v.begin());
      std::copy(now.u_before.begin(), now.u_before.end(), to.u_before.begin());
      to.memory.front() = now.memory.front();
      const double length = length_of(first + i);
      roll_out(thread, now, true, length, most(length), to);
    });
    if (!finished) return false;

    // The longest that is good enough.
    for (int i = 0; i < count; ++i) {
      Trajectory& to = candidates[i];
      if (!to.finite) continue;
      const double length = length_of(first + i);
      if (to.cost > most(length)) continue;

      // It is where the next iteration begins.
      std::swap(now, to);
      linearized = false;
      result.steps.push_back(length);
      result.costs.push_back(now.cost);
      result.gaps.push_back((1 - length) * gaps);
      return true;
    }
  }
  return false;
}

void TrajectorySolver::Parts::iterate() {
  int stalled = 0;
  while (result.iterations < budget->iterations) {
    if (budget->progress && result.iterations > 0) {
      budget->progress(result.iterations, budget->iterations);
    }

    // Where we are.
    if (!linearized) {
      const Watch watch(budget->clock, result.timings.linearize);
      if (!linearize(now)) return;
    }
    if (!now.finite) return finish_overflowed();
    const double gaps = sum_of_gaps();

    // Where to go.
    if (!bring_feedback()) {
      finish(ControlStatus::no_descent, "the model of the cost is not positive definite by the controls");
      return;
    }
    std::swap(feedback, tried);
    of_feedback = regularization;
    const Riccati::Promise promise = riccati.promise(models, feedback);
    result.promised = -(promise.slope + 0.5 * promise.curvature);

    // Nothing is to be gained; where the best cost is zero, next to those that there were.
    const bool closed = largest_gap() <= budget->gap_tolerance;
    const double little = std::max(budget->tolerance * now.cost, epsilon * scale);
    const bool small = std::abs(result.promised) <= little || promise.longest == 0;
    if (closed && small && regularization <= trusted_regularization) {
      const bool solved = std::all_of(now.converged.begin(), now.converged.end(), [](char c) { return c != 0; });
      if (solved)
        finish(ControlStatus::converged, "the model of the cost promises no more than the tolerance");
      else
        finish(ControlStatus::unsolved_steps, "nothing is to be gained, but some steps were not solved as posed");
      return;
    }

    // The merit falls along the step.
    if (gaps > 0) {
      const double curvature = std::max(promise.curvature, 0.0);
      const double change = promise.slope + 0.5 * curvature;
      penalty = std::max(penalty, 2 * change / gaps);
    }
    const double slope = promise.slope - penalty * gaps;
    const double merit = now.cost + penalty * gaps;
    const bool accepted = slope < 0 && descend(merit, slope, gaps);
    if (stopped) return;
    ++result.iterations;
    if (!accepted) {
      result.steps.push_back(0);
      result.costs.push_back(now.cost);
      result.gaps.push_back(gaps);
    }

    // Trust the model more or less.
    const double length = result.steps.back();
    const bool most = regularization >= budget->max_regularization;
    if (length >= long_step) {
      regularization = std::max(regularization / growth, budget->regularization);
    }
    if (length <= short_step) regularize_more();
    if (most && length < long_step)
      return finish(ControlStatus::no_descent, "the most regularised step has to be short, or none is good");

    // Steps that change nothing.
    if (!accepted) continue;
    const double merit_now = now.cost + penalty * result.gaps.back();
    const double gained = merit - merit_now;
    stalled = gained <= unnoticed * merit ? stalled + 1 : 0;
    if (stalled == patience)
      return finish(ControlStatus::no_descent, "steps are taken, but gain no more than rounding");
  }
  finish(ControlStatus::iteration_limit, "more iterations may improve it");
}

/// `gains` along the trajectory that was found. A search that is regularised has feedback that hardly acts; that is no property of the
/// trajectory. Kept apart from the search's own, which the next solve goes on from. False if interrupted.
bool TrajectorySolver::Parts::bring_gains() {
  double& least = result.gain_regularization;
  least = 0;
  if (budget->iterations == 0) {  // that of where it began, if there was any
    std::copy(feedback.K.begin(), feedback.K.end(), gains.K.begin());
    return true;
  }
  bool differentiable = now.finite;
  const bool again = budget->gains_of_result && !linearized && now.finite;
  if (again) {
    const Watch watch(budget->clock, result.timings.linearize);
    const double cost = now.cost;
    if (!linearize(now)) return false;

    // It is known already what the trajectory costs, and that it is finite.
    differentiable = now.finite;
    now.finite = true;
    now.cost = cost;
  }

  // A search that ended well, and one whose last models are good enough, has them already.
  const Watch watch(budget->clock, result.timings.riccati);
  const bool ended_well = result.status == ControlStatus::converged || result.status == ControlStatus::unsolved_steps;
  const bool there_already = of_feedback >= 0 && of_feedback <= unfelt_regularization;
  if (there_already && (ended_well || !budget->gains_of_result)) {
    std::copy(feedback.K.begin(), feedback.K.end(), gains.K.begin());
    least = of_feedback;
    return true;
  }

  // Else as little regularisation as makes the model convex; none where a step has no derivative.
  while (differentiable && !riccati.gains(models, least, now.u.data(), lower.data(), upper.data(), gains)) {
    differentiable = least < budget->max_regularization;
    least = std::min(std::max(least * growth, unfelt_regularization), budget->max_regularization);
  }
  if (!differentiable) {
    std::fill(gains.K.begin(), gains.K.end(), 0.0);
  }
  return true;
}

/// What was found, into the result.
void TrajectorySolver::Parts::tell() {
  const int rows = 2 * model->nv;
  const std::size_t num_controls = std::size_t(options.horizon) * nu;

  // How it ended.
  result.cost = now.cost;
  result.regularization = regularization;
  result.unconverged = int(std::count(now.converged.begin(), now.converged.end(), 0));

  // The trajectory, and its feedback by the state.
  result.q.assign(now.q.begin(), now.q.end());
  result.v.assign(now.v.begin(), now.v.end());
  result.u.assign(now.u.begin(), now.u.end());
  result.gain.resize(num_controls * rows);
  for (std::size_t i = 0; i < num_controls; ++i) {
    const double* row = gains.K.data() + i * gains.ld;
    std::copy_n(row, rows, result.gain.data() + i * rows);
  }
}

bool TrajectorySolver::Parts::solve(const ControlStart& start, const ControlBudget& asked) {
  check_budget(asked);
  check(start);
  const Asking asking(*this, asked.interrupted);

  // However it ends, the budget is the caller's again, and what did not end well is not there.
  budget = &asked;
  struct Leave {
    Parts* parts;
    bool done = false;
    ~Leave() {
      parts->budget = nullptr;
      if (!done) parts->there = false;
    }
  } leave{this};

  // An empty result; that of the last solve stays until this one is done.
  result.iterations = 0;
  result.costs.clear();
  result.gaps.clear();
  result.steps.clear();
  result.reason.reserve(longest_reason);
  result.costs.reserve(asked.iterations + 1);
  result.gaps.reserve(asked.iterations + 1);
  result.steps.reserve(asked.iterations);
  result.promised = 0;
  result.timings = {};
  penalty = 0;

  // One that found no descent says nothing about the next: it begins where models are trusted.
  if (!start.from_last) regularization = asked.regularization;
  if (start.from_last && last.status == ControlStatus::no_descent)
    regularization = std::min(regularization, trusted_regularization);
  regularization = std::clamp(regularization, asked.regularization, asked.max_regularization);

  // From where it begins, as far as it goes.
  if (!begin(start)) return false;
  if (!start.from_last) scale = 0;
  if (now.finite) {
    scale = std::max(scale, now.cost);
  }
  if (!now.finite)
    finish_overflowed();
  else
    iterate();
  if (stopped || !bring_gains()) return false;

  // Only now it replaces the last one.
  tell();
  std::swap(result, last);
  finished = true;
  leave.done = true;
  there = now.finite;
  return true;
}

/// On a trajectory of its own: the last solve stays.
std::optional<double> TrajectorySolver::Parts::gradient(const double* q0, const double* v0, const double* u,
                                                        const double* u_before, double* du,
                                                        const std::function<bool()>& asked) {
  check_inputs(q0, v0, u, u_before);
  if (!u) {
    checks::fail("U", "the controls are needed");
  }
  fit();

  // The trajectory: its first state, its controls, and the control before them.
  const Asking asking(*this, asked);
  Trajectory& x = candidates.front();
  set_first(q0, v0, x);
  x.memory.front() = cold;
  std::copy_n(u, x.u.size(), x.u.begin());
  if (u_before)
    std::copy_n(u_before, nu, x.u_before.begin());
  else
    std::fill(x.u_before.begin(), x.u_before.end(), 0.0);

  // The rollout, then its derivative.
  constexpr double any = std::numeric_limits<double>::infinity();
  const auto work = [&](int, int thread) { roll_out(thread, x, false, 1.0, any, x); };
  if (!run(1, work)) return std::nullopt;
  if (!x.finite) {
    throw std::logic_error("gradient: the numbers of the rollout overflowed");
  }
  if (!linearize(x)) return std::nullopt;
  if (!x.finite) {
    throw std::logic_error("gradient: the numbers of a knot overflowed, it has no derivative");
  }
  riccati.gradient(models, du);
  return x.cost;
}

std::optional<double> TrajectorySolver::Parts::cost(const double* q, const double* v, const double* u,
                                                    const double* u_before, double* by_term,
                                                    const std::function<bool()>& asked) {
  // Whatever is given is looked at before it is used.
  const int N = options.horizon;
  for (int t = 0; t <= N; ++t) {
    const std::string name = "Q[" + std::to_string(t) + "]";
    check_configuration(*model, q + std::size_t(t) * model->nq, name.c_str());
  }
  check_finite_rows("V", v, N + 1, model->nv);
  check_finite_rows("U", u, N, nu);
  if (u_before) {
    checks::finite("u_before", u_before, nu);
  }
  const std::vector<double> none(nu);
  if (by_term) {
    std::fill_n(by_term, costs.terms().size(), 0.0);
  }

  // Knot by knot.
  const Asking asking(*this, asked);
  CostSum::Workspace& ws = workers.front()->cost;
  costs.fit(ws);
  double sum = 0;
  for (int t = 0; t <= N; ++t) {
    if (ask()) return std::nullopt;
    Knot knot;
    knot.t = t;
    knot.q = q + std::size_t(t) * model->nq;
    knot.v = v + std::size_t(t) * model->nv;
    if (t < N) {
      const double* before_all = u_before ? u_before : none.data();
      knot.u = u + std::size_t(t) * nu;
      knot.u_before = t == 0 ? before_all : knot.u - nu;
    }
    sum += costs.value(knot, ws, by_term);
  }
  return sum;
}

TrajectorySolver::TrajectorySolver(std::shared_ptr<const Model> model, ControlOptions options)
    : parts_(std::make_unique<Parts>(std::move(model), std::move(options))) {}
TrajectorySolver::~TrajectorySolver() = default;

const Model& TrajectorySolver::model() const { return *parts_->model; }
std::shared_ptr<const Model> TrajectorySolver::shared_model() const { return parts_->model; }
const ControlOptions& TrajectorySolver::options() const { return parts_->options; }
int TrajectorySolver::num_threads() const { return parts_->pool.num_threads(); }
int TrajectorySolver::num_controls() const { return parts_->nu; }
double TrajectorySolver::timestep() const {
  return parts_->workers.front()->dynamics.simulator().timestep() * parts_->options.substeps;
}

int TrajectorySolver::add(CostTerm term) {
  parts_->costs.add(std::move(term));
  return num_terms() - 1;
}
int TrajectorySolver::num_terms() const { return int(parts_->costs.terms().size()); }
const CostTerm& TrajectorySolver::term(int index) const { return parts_->costs.terms()[index]; }
void TrajectorySolver::set_weight(int index, const double* weight) { parts_->costs.set_weight(index, weight); }
void TrajectorySolver::set_reference(int index, const double* reference) {
  parts_->costs.set_reference(index, reference);
}

void TrajectorySolver::set_limits(const double* lower, const double* upper) {
  const std::vector<double>& least = parts_->range_lower;
  const std::vector<double>& most = parts_->range_upper;
  const auto fail = [&](int i, const std::string& expected) {
    const std::string which = "[" + std::to_string(i) + "]";
    const std::string got = checks::text(lower[i]) + " .. " + checks::text(upper[i]);
    checks::fail("limits", which + " is " + got + ", expected " + expected);
  };

  // In order, and within reach.
  for (int i = 0; i < num_controls(); ++i) {
    const bool in_order = lower[i] <= upper[i] && lower[i] < HUGE_VAL && upper[i] > -HUGE_VAL;
    if (!in_order) {
      fail(i, "a lower and an upper one in this order");
    }
    if (lower[i] > most[i] || upper[i] < least[i]) {
      const std::string range = checks::text(least[i]) + " .. " + checks::text(most[i]);
      const std::string actuator = "'" + model().actuators[i].name + "'";
      fail(i, "some of the control range " + range + " of actuator " + actuator + ", where the simulator saturates");
    }
  }

  // Beyond its range an actuator does not answer.
  for (int i = 0; i < num_controls(); ++i) {
    parts_->lower[i] = std::max(lower[i], least[i]);
    parts_->upper[i] = std::min(upper[i], most[i]);
  }
}
const std::vector<double>& TrajectorySolver::lower() const { return parts_->lower; }
const std::vector<double>& TrajectorySolver::upper() const { return parts_->upper; }

bool TrajectorySolver::solve(const ControlStart& start, const ControlBudget& budget) {
  return parts_->solve(start, budget);
}
const ControlResult& TrajectorySolver::result() const {
  if (!parts_->finished) {
    checks::fail("result", "nothing has been solved yet; call solve");
  }
  return parts_->last;
}
bool TrajectorySolver::has_last() const { return parts_->there; }
void TrajectorySolver::forget() { parts_->there = false; }

std::optional<double> TrajectorySolver::gradient(const double* q0, const double* v0, const double* u,
                                                 const double* u_before, double* du,
                                                 const std::function<bool()>& interrupted) {
  return parts_->gradient(q0, v0, u, u_before, du, interrupted);
}

std::optional<double> TrajectorySolver::cost(const double* q, const double* v, const double* u, const double* u_before,
                                             double* by_term, const std::function<bool()>& interrupted) {
  return parts_->cost(q, v, u, u_before, by_term, interrupted);
}

}  // namespace coulomb

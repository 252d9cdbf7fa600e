// Forward mode with many columns: X_(t+1) = A_t X_t, plus B_t where u_t enters, plus F_t for parameters, plus what a
// multistep method takes from X_(t-1). Columns are kept as rows of a block, so that X_(t+1)^T = X_t^T A_t^T is one dense product per block and goes straight from one
// state's storage to the next's.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/rollout/replay.hpp"
#include "coulomb/rollout/rollout_derivatives.hpp"

namespace coulomb {
namespace {

enum class Input { q0, v0, u, tau, parameter };

struct Columns {
  Input input;
  int per_step = 0;  // u, tau: columns that begin at each step
  int first = 0;     // of a parameter, in the set
};

class ForwardSweep {
 public:
  ForwardSweep(const Rollout& rollout, const std::vector<std::string>& wrt, bool all_states)
      : rollout_(rollout), nv_(rollout.model->nv), replay_(rollout, 1, true), all_states_(all_states) {
    read_names(wrt);
    J_.rows = 2 * nv_, J_.ld = padded(2 * nv_), J_.states = all_states ? rollout.steps + 1 : 1;
    A_T_.assign(std::size_t(J_.rows) * J_.ld, 0.0);
    for (std::size_t i = 0; i < columns_.size(); ++i) start(columns_[i], J_.blocks[i]);
    if (all_states) return;
    for (const auto& block : J_.blocks) {
      last_.emplace_back(block.columns_T.size(), 0.0);
      if (rollout.step_options.stepper == StepperKind::bdf2) before_.emplace_back(block.columns_T.size(), 0.0);
    }
  }

  RolloutJacobian run(const Progress& progress) {
    if (rollout_.steps > 0) replay_.seek(0);
    for (int t = 0; t < rollout_.steps; ++t) {
      step(t);
      if (progress) progress(t + 1, rollout_.steps);
    }
    return std::move(J_);
  }

 private:
  void read_names(const std::vector<std::string>& wrt) {
    const Model& model = *rollout_.model;
    std::vector<std::string> parameters;
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      const std::string& name = wrt[i];
      if (std::find(wrt.begin(), wrt.begin() + i, name) != wrt.begin() + i)
        throw std::invalid_argument("wrt: '" + name + "' is there twice");
      if (name != "q0" && name != "v0" && name != "u" && name != "tau") parameters.push_back(name);
    }
    set_ = ParameterSet(model, parameters);
    std::size_t next = 0;
    for (const std::string& name : wrt) {
      Columns c{Input::parameter};
      int count = nv_;
      if (name == "q0") c.input = Input::q0;
      else if (name == "v0") c.input = Input::v0;
      else if (name == "u") c.input = Input::u, c.per_step = model.nu, count = model.nu * rollout_.steps;
      else if (name == "tau") c.input = Input::tau, c.per_step = nv_, count = nv_ * rollout_.steps;
      else c.first = set_.items()[next].first, count = set_.items()[next++].element.size;
      columns_.push_back(c);
      J_.blocks.push_back({name, count, {}});
    }
  }

  void start(const Columns& c, RolloutJacobian::Block& block) {
    block.columns_T.assign(std::size_t(J_.states) * block.columns * J_.ld, 0.0);
    if (c.input != Input::q0 && c.input != Input::v0) return;
    for (int d = 0; d < nv_; ++d) block.columns_T[std::size_t(d) * J_.ld + (c.input == Input::v0 ? nv_ : 0) + d] = 1;
  }

  void step(int t) {
    replay_.step(0);
    StepGradient& gradient = replay_.linearize(0);
    const StepDerivatives& d = gradient.jacobian();
    if (set_.size() > 0) gradient.parameter_columns(set_, parameters_T_);
    pad(d.A_T, A_T_);
    const bool previous = t > 0 && !d.A_previous_T.empty();
    if (previous) pad(d.A_previous_T, A_previous_T_);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Columns& c = columns_[i];
      auto& block = J_.blocks[i];
      const std::size_t size = std::size_t(block.columns) * J_.ld;
      if (!all_states_ && !before_.empty()) std::swap(before_[i], last_[i]);  // last_, columns_T, free
      if (!all_states_) std::swap(block.columns_T, last_[i]);
      const double* from = all_states_ ? block.columns_T.data() + t * size : last_[i].data();
      double* to = all_states_ ? block.columns_T.data() + (t + 1) * size : block.columns_T.data();
      const int begun = c.per_step > 0 ? t * c.per_step : block.columns;
      if (begun > 0)
        multiply(Product::set, rows_of(from, begun, J_.rows, J_.ld), A_T_.data(), to, J_.ld, J_.ld, product_);
      if (previous && begun > 0) {
        const double* earlier = all_states_ ? block.columns_T.data() + (t - 1) * size : before_[i].data();
        multiply(Product::add, rows_of(earlier, begun, J_.rows, J_.ld), A_previous_T_.data(), to, J_.ld, J_.ld,
                 product_);
      }
      const double* source = c.input == Input::u ? d.B_T.data() : c.input == Input::tau ? d.B_tau_T.data() : nullptr;
      if (c.input == Input::parameter) source = parameters_T_.data() + std::size_t(c.first) * J_.rows;
      const int entering = c.per_step > 0 ? c.per_step : block.columns, at = c.per_step > 0 ? begun : 0;
      for (int k = 0; source && k < entering; ++k)
        for (int r = 0; r < J_.rows; ++r) to[std::size_t(at + k) * J_.ld + r] += source[std::size_t(k) * J_.rows + r];
      check_overflow(to, std::size_t(at + (source ? entering : begun)) * J_.ld, t);
    }
  }

  void pad(const std::vector<double>& from, std::vector<double>& to) const {
    to.resize(std::size_t(J_.rows) * J_.ld, 0.0);
    for (int k = 0; k < J_.rows; ++k)
      std::copy_n(&from[std::size_t(k) * J_.rows], J_.rows, &to[std::size_t(k) * J_.ld]);
  }

  static void check_overflow(const double* x, std::size_t count, int step) {
    for (std::size_t i = 0; i < count; ++i)
      if (!std::isfinite(x[i]))
        throw std::overflow_error("jacobian: the derivative grows beyond the range of double at step " +
                                  std::to_string(step) + "; use a shorter trajectory");
  }

  const Rollout& rollout_;
  int nv_;
  Replay replay_;
  bool all_states_;
  ParameterSet set_;
  std::vector<Columns> columns_;
  RolloutJacobian J_;
  std::vector<double> A_T_, A_previous_T_, parameters_T_;
  std::vector<std::vector<double>> last_, before_;  // the states before, when only the last is kept
  ProductScratch product_;
};

}  // namespace

RolloutJacobian jacobian(const Rollout& rollout, const std::vector<std::string>& wrt, bool all_states,
                         const Progress& progress) {
  return ForwardSweep(rollout, wrt, all_states).run(progress);
}

}  // namespace coulomb

// Forward mode with many columns: X_(t+1) = A_t X_t, plus B_t where u_t enters, plus F_t for parameters, plus what a
// multistep method takes from X_(t-1) (docs/theory.md (L14)). Columns are kept as rows of a block, so that X_(t+1)^T = X_t^T A_t^T is one
// dense product per block and goes straight from one state's storage to the next's.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/replay/replay.hpp"
#include "coulomb/rollout/rollout_parts.hpp"
#include "coulomb/rollout/step_cotangents.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {
namespace {

enum class Input { q0, v0, u, tau, mocap, parameter };

/// The columns of one input, a block of the Jacobian.
struct Columns {
  Input input;
  int per_step = 0;  // u, tau, mocap: columns that begin at each step
  int first = 0;     // of a parameter or of mocap, in the set
};

class ForwardSweep {
 public:
  ForwardSweep(const Rollout& rollout, const std::vector<std::string>& wrt, bool all_states)
      : rollout_(rollout), nv_(rollout.model->nv), replay_(rollout, 1), all_states_(all_states) {
    read_names(wrt);

    // The blocks, and in them X_0.
    J_.rows = 2 * nv_;
    J_.ld = padded(2 * nv_);
    J_.states = all_states ? rollout.steps + 1 : 1;
    A_T_.assign(std::size_t(J_.rows) * J_.ld, 0.0);
    for (std::size_t i = 0; i < columns_.size(); ++i)
      start(columns_[i], J_.blocks[i]);

    // Where only the last state stays, earlier ones need storage to be multiplied from.
    if (all_states) return;
    for (const auto& block : J_.blocks) {
      last_.emplace_back(block.columns_T.size(), 0.0);
      if (rollout.parts->step_options.stepper->num_states() > 1) {
        before_.emplace_back(block.columns_T.size(), 0.0);
      }
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
  /// The blocks by name: q0, v0, u, tau, mocap, all others parameters.
  void read_names(const std::vector<std::string>& wrt) {
    std::vector<std::string> parameters;
    bool poses = false;
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      const std::string& name = wrt[i];
      if (std::find(wrt.begin(), wrt.begin() + i, name) != wrt.begin() + i)
        throw std::invalid_argument("wrt: '" + name + "' appears twice");
      const bool state = name == "q0" || name == "v0";
      const bool force = name == "u" || name == "tau";
      const bool pose = name == "mocap";
      poses |= pose;
      if (!state && !force && !pose) parameters.push_back(name);
    }
    set_ = sweep_parameters(*rollout_.model, parameters, {false, poses});

    // Parameters are in the set in the order of their names.
    std::size_t next = 0;
    for (const std::string& name : wrt) {
      const Columns c = columns_of(name, next);
      int count = nv_;
      if (c.input == Input::u || c.input == Input::tau || c.input == Input::mocap) {
        count = c.per_step * rollout_.steps;
      }
      if (c.input == Input::parameter) {
        count = set_.items()[next++].element.size;
      }
      columns_.push_back(c);
      J_.blocks.push_back({name, count, {}});
    }
  }

  /// next: of the items of the set, if it is a parameter.
  Columns columns_of(const std::string& name, std::size_t next) const {
    if (name == "q0") return {Input::q0};
    if (name == "v0") return {Input::v0};
    if (name == "u") return {Input::u, rollout_.model->nu};
    if (name == "tau") return {Input::tau, nv_};
    if (name == "mocap") {
      const auto size = int(mocap_tangent_size(*rollout_.model));
      return {Input::mocap, size, set_.size() - size};
    }
    return {Input::parameter, 0, set_.items()[next].first};
  }

  /// X_0: the identity for the initial state, else zero.
  void start(const Columns& c, RolloutJacobian::Block& block) {
    block.columns_T.assign(std::size_t(J_.states) * block.columns * J_.ld, 0.0);
    if (c.input != Input::q0 && c.input != Input::v0) return;
    const int first = c.input == Input::v0 ? nv_ : 0;
    for (int d = 0; d < nv_; ++d)
      block.columns_T[std::size_t(d) * J_.ld + first + d] = 1;
  }

  void step(int t) {
    // The derivative of this step.
    replay_.step(0);
    StepGradient& gradient = replay_.linearize(0);
    const StepDerivatives& d = gradient.jacobian();
    if (set_.size() > 0) {
      gradient.parameter_columns(set_, parameters_T_);
    }
    pad(d.A_T, A_T_);
    const bool previous = t > 0 && !d.A_previous_T.empty();
    if (previous) pad(d.A_previous_T, A_previous_T_);

    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const States x = states(i, t);

      // What earlier inputs have moved goes on: X_t^T A_t^T.
      const int begun = columns_[i].per_step > 0 ? t * columns_[i].per_step : J_.blocks[i].columns;
      const double* A_T = A_T_.data();
      const double* A_previous_T = A_previous_T_.data();
      const int ld = J_.ld;
      if (begun > 0) {
        multiply(Product::set, rows(x.from, begun), A_T, x.to, ld, ld, product_);
      }
      if (previous && begun > 0) {
        multiply(Product::add, rows(x.earlier, begun), A_previous_T, x.to, ld, ld, product_);
      }

      // What enters in this step: columns of its own, or more of the same.
      const int last = add_entering(i, t, d, x.to);
      check_overflow("jacobian", x.to, std::size_t(std::max(begun, last)) * J_.ld, t);
    }
  }

  /// Rows of one block: X_t, X_(t-1) (null if not kept) and X_(t+1), the result.
  struct States {
    const double* from;
    const double* earlier;
    double* to;
  };

  States states(std::size_t i, int t) {
    auto& block = J_.blocks[i];
    if (all_states_) {
      const std::size_t size = std::size_t(block.columns) * J_.ld;
      double* from = block.columns_T.data() + t * size;
      return {from, t > 0 ? from - size : nullptr, from + size};
    }

    // Storage goes round: before_ takes last_, last_ takes columns_T, which is then free.
    if (!before_.empty()) {
      std::swap(before_[i], last_[i]);
    }
    std::swap(block.columns_T, last_[i]);
    return {last_[i].data(), before_.empty() ? nullptr : before_[i].data(), block.columns_T.data()};
  }

  /// Adds B_t to the columns of u_t, F_t to those of a parameter; returns the end of the columns that it has added to, 0 if none.
  int add_entering(std::size_t i, int t, const StepDerivatives& d, double* to) const {
    const Columns& c = columns_[i];
    const double* source = nullptr;
    if (c.input == Input::u) {
      source = d.B_T.data();
    }
    if (c.input == Input::tau) {
      source = d.B_tau_T.data();
    }
    if (c.input == Input::parameter || c.input == Input::mocap) {
      source = parameters_T_.data() + std::size_t(c.first) * J_.rows;
    }
    if (!source) return 0;

    const int count = c.per_step > 0 ? c.per_step : J_.blocks[i].columns;
    const int first = t * c.per_step;
    for (int k = 0; k < count; ++k) {
      const double* column = source + std::size_t(k) * J_.rows;
      double* sum = to + std::size_t(first + k) * J_.ld;
      for (int r = 0; r < J_.rows; ++r)
        sum[r] += column[r];
    }
    return first + count;
  }

  StridedMatrix rows(const double* x, int count) const { return rows_of(x, count, J_.rows, J_.ld); }

  /// Rows of J_.ld numbers, from rows without padding.
  void pad(const std::vector<double>& from, std::vector<double>& to) const {
    to.resize(std::size_t(J_.rows) * J_.ld, 0.0);
    for (int k = 0; k < J_.rows; ++k)
      std::copy_n(&from[std::size_t(k) * J_.rows], J_.rows, &to[std::size_t(k) * J_.ld]);
  }

  const Rollout& rollout_;
  int nv_;
  Replay replay_;
  bool all_states_;
  ParameterSet set_;
  std::vector<Columns> columns_;  // one per block
  RolloutJacobian J_;

  // Of one step, written by step(): 2 nv rows of J_.ld, of J_.ld, and set_.size() rows of 2 nv.
  std::vector<double> A_T_;
  std::vector<double> A_previous_T_;
  std::vector<double> parameters_T_;

  // When only the last state is kept: X_t and X_(t-1), one vector per block.
  std::vector<std::vector<double>> last_;
  std::vector<std::vector<double>> before_;
  ProductScratch product_;
};

}  // namespace

RolloutJacobian jacobian(const Rollout& rollout, const std::vector<std::string>& wrt, bool all_states,
                         const Progress& progress) {
  return ForwardSweep(rollout, wrt, all_states).run(progress);
}

}  // namespace coulomb

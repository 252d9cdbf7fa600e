// rollout: many steps in a row, states kept. The simulator forgets its last step first, so that a rollout depends on
// its arguments alone. What is kept beside the states is enough to run any part of it again, with the same bits: derivatives of a
// trajectory need nothing from the simulator that made it.
//
// Derivatives of a trajectory (docs/theory.md (L14)), all states x_t = (q_t, v_t) in their tangent spaces, x_(t+1) = f(x_t, u_t, tau_t,
// theta):
//
//   reverse  a_T = dX_T,  a_t = dX_t + A_t^T a_(t+1),   du_t = B_t^T a_(t+1),   dtheta = sum_t F_t^T a_(t+1)
//   forward  X_0 given,   X_(t+1) = A_t X_t + B_t dU_t + F_t dtheta
//
// Gradients are those of what was solved: where a step did not converge, of its best iterate (converged says so).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/model.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/sensors.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb {

struct RolloutInput {
  const double* q0 = nullptr;   ///< nq
  const double* v0 = nullptr;   ///< nv
  const double* u = nullptr;    ///< steps x nu; null: zero
  const double* tau = nullptr;  ///< steps x nv extra joint forces; null: zero
  int steps = 0;
  const double* fext = nullptr;  ///< steps x num_bodies x 6, as Simulator::step; null: zero
  /// steps x mocap bodies x 7, as Simulator::move_mocap_bodies before each step; null: they stay where they are
  const double* mocap = nullptr;
};

struct RolloutOptions {
  /// Steps between checkpoints of the memory; 0: as often as the budget allows.
  int checkpoint_every = 0;
  /// Bytes of the rollout and of its backward sweep; 0: the states and 64 MB. Contacts that come later may pass a tight one: bytes() tells.
  std::size_t memory_budget = 0;
  /// And what else the reverse sweep needs of steps, in what the budget leaves (default: 64 MB).
  bool keep_factors = true;
};

/// Called after every step of a long loop with (done, total). It may throw: the loop is then left.
using Progress = std::function<void(int done, int total)>;

struct Rollout {
  int steps = 0;
  std::vector<double> q;           ///< (steps + 1) x nq
  std::vector<double> v;           ///< (steps + 1) x nv
  std::vector<StepStatus> status;  ///< one per step
  bool converged = true;           ///< every step did

  // What derivatives need.
  std::shared_ptr<const Model> model;
  std::vector<double> u;      ///< steps x nu, a copy of what was given, as tau and fext; empty: zero
  std::vector<double> tau;    ///< steps x nv
  std::vector<double> fext;   ///< steps x num_bodies x 6
  std::vector<double> mocap;  ///< steps x mocap bodies x 7; empty: where the model has them
  struct Parts;
  std::shared_ptr<Parts>
      parts;  ///< what is kept of its steps; constant once the rollout is there, so that copies share it

  std::size_t bytes() const;  ///< of all this
};

/// Throws std::invalid_argument naming argument, element and value, with the simulator as it was; a state that stops
/// being finite on the way is named with its step.
Rollout rollout(Simulator& simulator, const RolloutInput& input, const RolloutOptions& options = {},
                const Progress& progress = {});
/// q0: nq, v0: nv, u: steps x nu (null: zero).
Rollout rollout(Simulator& simulator, const double* q0, const double* v0, const double* u, int steps);

struct RolloutCotangent {
  std::vector<double> q0;          ///< nv: tangent space of q0
  std::vector<double> v0;          ///< nv
  std::vector<double> u;           ///< steps x nu
  std::vector<double> tau;         ///< steps x nv
  bool wants_fext = false;         ///< as asked
  std::vector<double> fext;        ///< steps x num_bodies x 6 if so, else empty
  bool wants_mocap = false;        ///< as asked
  std::vector<double> mocap;       ///< steps x mocap bodies x 6 if so, else empty: as the parameter body_placement
  std::vector<double> parameters;  ///< summed over the steps
  std::shared_ptr<const ParameterSet> parameter_set;
  int steps = 0;
  int nu = 0;
  int nv = 0;
  int num_bodies = 0;
  int num_mocap = 0;
  bool converged = true;  ///< every step did
  StepStatus status;      ///< of the first step that did not, or of the last one
  int ambiguous = 0;      ///< steps whose next velocity depends on a choice of impulses that has no derivative
};

/// Inputs whose cotangents are made on demand.
struct WantedCotangents {
  WantedCotangents(bool with_fext = false, bool with_mocap = false) : fext(with_fext), mocap(with_mocap) {}
  bool fext;
  /// Of the poses of mocap bodies, step by step; parameters must then not name them.
  bool mocap;
};

class StepCotangents;  // what a reverse sweep starts from in the steps themselves: forces

/// dq, dv: cotangents (steps + 1) x nv of q and v; null: zero. of_steps: or null. Throws std::invalid_argument for entries that are not
/// finite and unknown parameters, std::overflow_error where the gradient grows beyond the range of double.
RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv,
                     const std::vector<std::string>& parameters = {}, const Progress& progress = {},
                     StepCotangents* of_steps = nullptr, WantedCotangents wanted = {});

/// Tangents of the inputs; null: zero.
struct RolloutTangent {
  const double* dq0 = nullptr;   ///< nv
  const double* dv0 = nullptr;   ///< nv
  const double* du = nullptr;    ///< steps x nu
  const double* dtau = nullptr;  ///< steps x nv
  std::vector<std::string> parameters;
  std::vector<double> dparameters;  ///< in their order
  const double* dmocap = nullptr;   ///< steps x mocap bodies x 6
};
/// dq, dv: (steps + 1) x nv tangents of q and v. Throws as vjp.
void jvp(const Rollout& rollout, const RolloutTangent& tangent, double* dq, double* dv, const Progress& progress = {});

/// Columns of one input, transposed: [t][column][2 nv, padded to ld]; of the last state only: one t.
struct RolloutJacobian {
  struct Block {
    std::string name;  ///< "q0", "v0", "u", "tau", "mocap" or a parameter
    int columns =
        0;  ///< nv; steps x nu, steps x nv and steps x mocap bodies x 6 (the step first); the parameter's size
    std::vector<double> columns_T;
  };
  int states = 0;             ///< steps + 1 or 1
  int rows = 0;               ///< 2 nv
  int ld = 0;                 ///< its padding
  std::vector<Block> blocks;  ///< in the order of wrt
};
/// Forward mode. Throws as vjp.
RolloutJacobian jacobian(const Rollout& rollout, const std::vector<std::string>& wrt, bool all_states = true,
                         const Progress& progress = {});

/// Where the matrices of all steps go, row major: written by linearize(); null: not wanted.
struct StepMatrices {
  double* A = nullptr;           ///< steps x 2nv x 2nv, by the state before
  double* B = nullptr;           ///< steps x 2nv x nu, by the controls
  double* B_tau = nullptr;       ///< steps x 2nv x nv, by the joint forces
  double* A_previous = nullptr;  ///< as A, by the state before that (bdf2; zeros where a step does not depend on it)
  double* parameters = nullptr;  ///< steps x 2nv x set.size()
  bool* ambiguous = nullptr;     ///< steps: StepDerivatives::ambiguous
};
/// Throws std::logic_error naming a step whose numbers overflowed, std::invalid_argument for unknown parameters.
void linearize(const Rollout& rollout, const std::vector<std::string>& parameters, const StepMatrices& out,
               const Progress& progress = {});

// Outputs along a trajectory: readings at every state, and reverse products that start from them. Row t of a force is that of the step that
// ends in state t; row 0 is zero. Mocap bodies are where they were in that step, in row 0 where the first one has them.

/// (steps + 1) x outputs.size(). Throws std::logic_error for forces that the steps do not tell.
std::vector<double> read_outputs(const Rollout& rollout, const OutputSet& outputs);

/// Adjoints that the caller gives at every state of a trajectory, from which a reverse product starts; null: zero.
struct TrajectoryCotangent {
  const double* dq = nullptr;          ///< (steps + 1) x nv
  const double* dv = nullptr;          ///< (steps + 1) x nv
  const OutputSet* outputs = nullptr;  ///< what doutputs belong to; null: no outputs
  const double* doutputs = nullptr;    ///< (steps + 1) x outputs->tangent_size()
};

/// vjp of the states and of outputs, which must be there. Throws as vjp of the states.
RolloutCotangent vjp(const Rollout& rollout, const TrajectoryCotangent& from,
                     const std::vector<std::string>& parameters = {}, const Progress& progress = {},
                     WantedCotangents wanted = {});

}  // namespace coulomb

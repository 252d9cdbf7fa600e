// Derivatives of a trajectory (docs/theory.md (L14)), all states x_t = (q_t, v_t) in their tangent spaces, x_(t+1) = f(x_t, u_t, tau_t,
// theta):
//
//   reverse  a_T = dX_T,  a_t = dX_t + A_t^T a_(t+1),   du_t = B_t^T a_(t+1),   dtheta = sum_t F_t^T a_(t+1)
//   forward  X_0 given,   X_(t+1) = A_t X_t + B_t dU_t + F_t dtheta
//
// Steps are looked at once more to be differentiated (replay.hpp): backward stretch by stretch from the checkpoints, forward from the
// start. Gradients are those of what was solved: where a step did not converge, of its best iterate (converged says so).
#pragma once

#include <string>
#include <vector>

#include "coulomb/rollout/rollout.hpp"

namespace coulomb {

struct RolloutCotangent {
  std::vector<double> q0;          ///< nv: tangent space of q0
  std::vector<double> v0;          ///< nv
  std::vector<double> u;           ///< steps x nu
  std::vector<double> tau;         ///< steps x nv
  bool wants_fext = false;         ///< as asked
  std::vector<double> fext;        ///< steps x num_bodies x 6 if so, else empty
  std::vector<double> parameters;  ///< summed over the steps
  std::shared_ptr<const ParameterSet> parameter_set;
  int steps = 0;
  int nu = 0;
  int nv = 0;
  int num_bodies = 0;
  bool converged = true;  ///< every step did
  StepStatus status;      ///< of the first step that did not, or of the last one
  int ambiguous = 0;      ///< steps whose next velocity depends on a choice of impulses that has no derivative
};

/// What a reverse sweep starts from in the steps themselves, beside the states (rollout_outputs.cpp: forces).
class StepCotangents {
 public:
  virtual ~StepCotangents() = default;
  /// Before step t is gone back through: adds to the cotangents of the state it ends in, out.q0 and out.v0, and to out.parameters.
  virtual void before(int t, StepGradient& gradient, const StepRecord& record, RolloutCotangent& out) = 0;
  /// And then: adds to its inputs' cotangents.
  virtual void after(int t, StepGradient& gradient, StepCotangent& inputs) = 0;
};

/// dq, dv: cotangents (steps + 1) x nv of q and v; null: zero. of_steps: or null. Throws std::invalid_argument for entries that are not
/// finite and unknown parameters, std::overflow_error where the gradient grows beyond the range of double.
RolloutCotangent vjp(const Rollout& rollout, const double* dq, const double* dv,
                     const std::vector<std::string>& parameters = {}, const Progress& progress = {},
                     StepCotangents* of_steps = nullptr, bool wants_fext = false);

/// Tangents of the inputs; null: zero.
struct RolloutTangent {
  const double* dq0 = nullptr;   ///< nv
  const double* dv0 = nullptr;   ///< nv
  const double* du = nullptr;    ///< steps x nu
  const double* dtau = nullptr;  ///< steps x nv
  std::vector<std::string> parameters;
  std::vector<double> dparameters;  ///< in their order
};
/// dq, dv: (steps + 1) x nv tangents of q and v. Throws as vjp.
void jvp(const Rollout& rollout, const RolloutTangent& tangent, double* dq, double* dv, const Progress& progress = {});

/// Columns of one input, transposed: [t][column][2 nv, padded to ld]; of the last state only: one t.
struct RolloutJacobian {
  struct Block {
    std::string name;  ///< "q0", "v0", "u", "tau" or a parameter
    int columns = 0;   ///< nv; steps x nu and steps x nv (the step first); the parameter's size
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

}  // namespace coulomb

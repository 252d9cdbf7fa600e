// StepGradient: the interface to the derivative of a recorded step. Each stepper has one implementation (stepper.hpp);
// decorators provide other gradients of the same steps (gradients/gradient_modes.hpp).
//
// x = (q, v); all derivatives are in tangent spaces. A multistep method also depends on the previous state, x_previous.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "coulomb/derivatives.hpp"

namespace coulomb {

struct StepMemory;
struct StepOptions;
struct StepRecord;

/// A direction in the inputs; null: zero.
struct StepTangent {
  const double *q = nullptr, *v = nullptr, *u = nullptr, *tau = nullptr;
  const double *previous_q = nullptr, *previous_v = nullptr;
};

/// What a step depends on, for impulse_columns.
enum class StepInput : std::uint8_t { q, v, u, tau };
/// By the names that users give; else they name parameters.
bool is_step_input(const std::string& name);
StepInput step_input(const std::string& name);

class StepGradient {
 public:
  virtual ~StepGradient() = default;

  /// Prepares everything that forward and reverse mode share. memory: as the step left it. The record must stay unchanged while this is
  /// used.
  virtual void prepare(const Model& model, const StepOptions& options, StepRecord& record,
                       const StepMemory& memory) = 0;

  /// Does prepare read the memory? It must then stay unchanged, too.
  virtual bool reads_memory() const { return false; }

  virtual const StepDerivatives& jacobian() = 0;
  /// The same, to be kept: the next Jacobian then gets memory of its own.
  virtual std::shared_ptr<StepDerivatives> shared_jacobian() = 0;
  /// By islands, which never forms an nv x nv matrix where the stepper knows islands (semi-implicit); else one of all dofs.
  virtual std::shared_ptr<SparseStepDerivatives> sparse_jacobian();
  /// Columns (dq1, dv1) of the parameters' scalars: set.size() rows of 2 nv.
  virtual void parameter_columns(const ParameterSet& set, std::vector<double>& columns_T) = 0;
  /// Derivative of the impulses of all rows of record.rows (contacts: two tangents, normal) by an input or by parameters: one row of
  /// num_rows per scalar.
  virtual void impulse_columns(StepInput input, std::vector<double>& out_T) = 0;
  virtual void impulse_columns(const ParameterSet& set, std::vector<double>& out_T) = 0;

  /// Where impulses are functions of the next state: what their cotangents (record.rows.num_rows) add to those of the next state (dq1, dv1)
  /// and, by themselves, to the parameters of `set`. False: they are not.
  virtual bool impulse_cotangent(const double* /*lambda*/, const ParameterSet& /*set*/, double* /*dq1*/,
                                 double* /*dv1*/, double* /*parameters*/) {
    return false;
  }
  /// fext (num_bodies x 6) += what wrenches on bodies get of a cotangent of the joint forces. Throws where they act at more than one
  /// configuration, and vjp alone can tell them apart.
  virtual void add_fext_cotangent(const double* tau_bar, std::vector<double>& fext);
  /// Puts into the record the contacts that a step recalled from its ends (implicit_step.hpp) left out.
  virtual void restore_contacts() {}

  /// dq1, dv1: cotangents of the next state (nv each). set: parameters wanted, or null.
  virtual void vjp(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set = nullptr) = 0;
  virtual void jvp(const StepTangent& tangent, double* dq1, double* dv1);  ///< by default from the Jacobian

  /// Of the state, and of the parameters that were asked for last: StepDerivatives::ambiguous.
  virtual bool ambiguous() { return false; }

 protected:
  void vjp_from_jacobian(const double* dq1, const double* dv1, StepCotangent& out, const ParameterSet* set);
  /// derivatives_, in memory that no caller keeps; callers that hold one Jacobian while they ask for the next alternate between two.
  StepDerivatives& writable_derivatives(const Model& model);
  std::shared_ptr<StepDerivatives> derivatives_;

 private:
  std::shared_ptr<StepDerivatives> spare_;
};

}  // namespace coulomb

// The dynamics of one knot: some steps of a simulator with the control held, from what it remembers; and their Jacobian.
#pragma once

#include <memory>
#include <vector>

#include "coulomb/control.hpp"
#include "coulomb/control/costs.hpp"
#include "coulomb/step_memory.hpp"

namespace coulomb {

/// One per thread.
class KnotDynamics {
 public:
  KnotDynamics(std::shared_ptr<const Model> model, const ControlOptions& options);

  struct Outcome {
    bool finite = true;     ///< no step overflowed
    bool converged = true;  ///< every step was solved as posed
  };
  /// q_next, v_next are not q, v.
  Outcome step(const double* q, const double* v, const double* u, double* q_next, double* v_next);
  /// The same with F = [A B]: rows of z, nx of them with stride ld. finite is false, too, where a step has no derivative.
  Outcome linearize(const double* q, const double* v, const double* u, const KnotLayout& at, double* q_next,
                    double* v_next, double* F);

  void start(const StepMemory& memory) { sim_->set_memory(memory); }
  const StepMemory& memory() const { return sim_->memory(); }
  const Simulator& simulator() const { return *sim_; }

 private:
  Outcome step_once(const double* q, const double* v, const double* u, double* q_next, double* v_next);
  void append_jacobian(int step, const KnotLayout& at, double* F);

  std::unique_ptr<Simulator> sim_;
  int substeps_;
  bool forces_;  // controls are joint forces
  std::vector<double> q_;
  std::vector<double> v_;
  std::vector<double> product_;
};

}  // namespace coulomb

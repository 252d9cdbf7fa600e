// What calls of a batch return, with the environment as the first axis: of one step (batch.cpp) and of one control step (control_step.cpp).
#pragma once

#include <string>
#include <vector>

#include "arrays.hpp"
#include "coulomb/parameters.hpp"
#include "coulomb/simulator.hpp"

namespace coulomb::python {

struct DerivativesOut {
  Array A, B, B_tau, columns, valid;
  nb::object A_previous = nb::none();
  ParameterSet set;
  int nv = 0;
};

struct CotangentOut {
  Array q, v, u, tau, columns, valid;
  nb::object previous_q = nb::none(), previous_v = nb::none(), fext = nb::none(), mocap = nb::none();
  ParameterSet set;
};

struct StatusOut {
  explicit StatusOut(std::vector<StepStatus> all);
  Array converged, iterations, residual, exact_residual, relaxation;
  std::vector<std::string> reason;
  std::vector<std::vector<std::string>> contradictions, unsolved, badly_scaled;
};

}  // namespace coulomb::python

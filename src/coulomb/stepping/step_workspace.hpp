// StepWorkspace: scratch memory of steps; nothing reads it after the step. A simulator has one for all its steps.
// Records are many if a trajectory is differentiated, so they hold only the data that derivatives need
// (step_record.hpp).
#pragma once

#include <vector>

#include "coulomb/collision/united_faces.hpp"
#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/stepping/semi_implicit/contacts_to_come.hpp"

namespace coulomb {

struct Model;

/// Sized once from the model; storage grows only.
struct StepWorkspace {
  explicit StepWorkspace(const Model& model);

  ConstraintSolver solver;
  ContactsToCome to_come;         ///< contacts that are judged before they act
  UnitedFaces united;             ///< floors of several shapes
  std::vector<double> travel;     ///< num_bodies x 6: how bodies may move and turn (detect_contacts)
  std::vector<int> recall_order;  ///< of the memory's impulses, by key
};

}  // namespace coulomb

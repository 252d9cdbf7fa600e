// StepRecord: the results of one step that its derivative needs. They are never recomputed; the next step overwrites
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coulomb/collision/contact.hpp"
#include "coulomb/collision/detect.hpp"
#include "coulomb/constraints/assemble.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/corrections.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/solvers/constraint_problem.hpp"

namespace coulomb {

/// What a stepper keeps beyond the record's own fields; copied with it.
struct StepExtra {
  virtual ~StepExtra() = default;
  virtual std::unique_ptr<StepExtra> clone() const = 0;
  virtual std::size_t bytes() const = 0;
};

/// An owned StepExtra, or none.
struct StepExtraHolder {
  StepExtraHolder() = default;
  StepExtraHolder(const StepExtraHolder& other) : value(other.value ? other.value->clone() : nullptr) {}
  StepExtraHolder(StepExtraHolder&&) noexcept = default;
  StepExtraHolder& operator=(StepExtraHolder&&) noexcept = default;
  StepExtraHolder& operator=(const StepExtraHolder& other) {
    if (this != &other) value = other.value ? other.value->clone() : nullptr;
    return *this;
  }
  std::unique_ptr<StepExtra> value;
};

struct StepRecord {
  explicit StepRecord(const Model& model);

  // inputs
  std::vector<double> q, v, u, tau;  ///< state, controls, extra joint forces
  std::vector<double> fext;  ///< num_bodies x 6: world force and torque at each body's centre of mass; empty: none
  // results
  std::vector<double> q_next, v_next;
  std::vector<double> acceleration;  ///< (v_next - v) / h
  std::vector<double> v_free;
  // stages
  std::vector<double> q_evaluated;  ///< where the stages were evaluated; empty: at q
  const double* configuration() const { return q_evaluated.empty() ? q.data() : q_evaluated.data(); }
  /// By tree: evaluated half way of a flight, without limits and without torque-free spin. Empty: none is.
  std::vector<unsigned char> flies;
  const unsigned char* flying() const { return flies.empty() ? nullptr : flies.data(); }
  DynamicsWorkspace dynamics;
  CollisionWorkspace collision;  ///< .contacts
  bool just_touches = false;     ///< shapes do at the pose to come: contacts, or none, and the step jumps there
  JointForces joint_forces;
  SpinShift spin;       ///< Delta: what torque-free spin adds to the explicit change of v
  ImplicitGains gains;  ///< what of the joint forces is implicit, beside M
  ConstraintRows rows;
  Islands islands;  ///< of the rows: their problems, starts, solutions
  AssemblyWorkspace assembly;
  Corrections corrections;  ///< what position errors ask for, where that is less than their share
  SolverResult solution;    ///< of all islands, by the rows
  /// Keys of the blocks that gave way at any time of the step, by why, as in SolverResult.
  std::vector<std::uint64_t> contradictory, jammed, unsolved, badly_scaled;
  std::vector<std::uint64_t> out_of_reach;  ///< and of those whose position errors no moderate motion removes
  std::vector<double> twist, twist_next;    ///< nv x 8: link twists at v and at v_next
  std::vector<double> scratch;              ///< nv x 8
  const char* reason = nullptr;             ///< of status(), where a stepper has another one than the solver's
  StepExtraHolder extra;
  bool valid = false;

  void clear_names();  ///< nothing gave way
};

}  // namespace coulomb

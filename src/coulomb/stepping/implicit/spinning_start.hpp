// The velocity that a stage of BDF1 starts from: v + Delta(q, v, c), docs/theory.md (B14). The difference of angular velocities that backward
// Euler takes feeds energy to what spins, whose moments of inertia differ: with Delta a body that no torque acts on ends with the spin of
// torque-free motion, and keeps its energy. Joints of mechanisms have no Delta: what bends is not stiff.
#pragma once

#include <vector>

#include "coulomb/dynamics/spin.hpp"

namespace coulomb {

class SpinningStart {
 public:
  explicit SpinningStart(const Model& model);

  /// v_bar += Delta. limited: something turns too far for it to be followed.
  void add(const Model& model, const double* q, const double* v, double c, double* v_bar);
  const SpinShift& shift() const { return shift_; }

  /// Before the next four.
  void differentiate(const Model& model, const double* q, const double* v, double c);
  bool any() const { return !spins_.empty(); }
  const std::vector<SpinDerivative>& spins() const { return spins_; }
  const DynamicsWorkspace& at() const { return at_; }

  /// Columns of the start: rows (count x ld) of dq and dv, and dc (count, or null), of which `fraction` counts.
  struct Changes {
    const double* dq;
    const double* dv;
    const double* dc;
    double fraction;
    int count;
    int ld;
  };
  /// As many rows of v_bar += dDelta of them.
  void add_columns(const Model& model, const Changes& changes, double* rows) const;
  /// Cotangents of q and v += those of v_bar; returns that of c.
  double add_cotangents(const Model& model, const double* v_bar, double* q, double* v) const;

 private:
  void move_to(const Model& model, const double* q, const double* v);
  DynamicsWorkspace at_;                   // at (q, v)
  std::vector<unsigned char> mechanisms_;  // by tree: it has more than one joint
  SpinShift shift_;
  std::vector<SpinDerivative> spins_;
};

}  // namespace coulomb

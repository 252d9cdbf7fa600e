// What of the joints' forces a step takes at its end, docs/theory.md (S12): D, of dampers and of gains that oppose a speed, and K, of springs
// and of gains that oppose a length. Both couple the dofs of one joint only, and neither has a negative direction: forces that drive a
// motion instead of braking it stay explicit.
#pragma once

#include <vector>

#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

/// A symmetric matrix over dofs that is zero between dofs of different joints.
struct JointMatrix {
  explicit JointMatrix(const Model& model);
  std::vector<double> diagonal;  ///< nv

  struct Entry {
    int row;
    int column;  ///< < row
    double value;
  };
  std::vector<Entry> below;  ///< the diagonal; empty where hinges and slides alone have gains

  /// This = scale x diagonal.
  void set_diagonal(double scale, const std::vector<double>& values);
  void add(double scale, const JointMatrix& other);
  /// += scale m m^T over the n dofs from `first` on.
  void add_outer(double scale, const double* m, int first, int n);
  /// y += scale (this) x
  void add_product(double scale, const double* x, double* y) const;
};

struct ImplicitGains {
  explicit ImplicitGains(const Model& model);
  ForcesAtEnd rule = ForcesAtEnd::none;
  JointMatrix damping;         ///< D
  JointMatrix stiffness;       ///< K
  bool any_stiffness = false;  ///< else K is not filled
  JointMatrix inertia;         ///< h D + h^2 K, what stands beside M
};

/// After joint_forces.
void implicit_gains(const Model& model, ForcesAtEnd rule, double h, const JointForces& forces, ImplicitGains& out);

/// Does an actuator of this tree have a force that can oppose its speed?
bool has_speed_gains(const Model& model, int tree);

}  // namespace coulomb

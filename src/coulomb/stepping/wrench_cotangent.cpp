#include "coulomb/stepping/wrench_cotangent.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_rows.hpp"

namespace coulomb {

void add_wrench_cotangent(const Model& model, const DynamicsWorkspace& dynamics, const double* tau_bar,
                          std::vector<double>& fext) {
  std::vector<double> twists(std::size_t(8) * model.nv);
  link_twists(model, dynamics, tau_bar, twists.data());

  for (int b = 1; b < model.num_bodies; ++b) {
    if (model.body_last_dof[b] < 0) continue;

    // The centre of mass, from the reference point of the body's tree.
    double com[3];
    double arm[3];
    rotate(dynamics.body_rotation.data() + 9 * b, model.body_com.data() + 3 * b, com);
    add3(com, dynamics.body_position.data() + 3 * b, com);
    relative_point(model, dynamics, b, com, arm);

    // Its velocity, and the body's angular velocity.
    const double* twist = body_link_twist(model, twists.data(), b);
    double velocity[3];
    cross3(twist + 3, arm, velocity);
    for (int i = 0; i < 3; ++i) {
      fext[6 * b + i] += twist[i] + velocity[i];
      fext[6 * b + 3 + i] += twist[3 + i];
    }
  }
}

}  // namespace coulomb

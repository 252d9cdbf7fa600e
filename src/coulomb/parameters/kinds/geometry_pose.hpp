// World pose of a geometry at a step's configuration.
#pragma once

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {

struct GeometryPose {
  /// world from geometry, row major
  double position[3];
  double rotation[9];

  GeometryPose(const ParameterContext& context, int geometry)
      : GeometryPose(context.model, context.dynamics, geometry) {}
  GeometryPose(const Model& m, const DynamicsWorkspace& dynamics, int geometry) {
    const int body = m.geometry_body[geometry];
    const double* R = dynamics.body_rotation.data() + 9 * body;
    quaternion_to_matrix(m.geometry_quat.data() + 4 * geometry, rotation);
    multiply3(R, rotation, rotation);
    rotate(R, m.geometry_pos.data() + 3 * geometry, position);
    add3(position, dynamics.body_position.data() + 3 * body, position);
  }
};

}  // namespace coulomb

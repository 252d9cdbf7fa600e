// Whether a model can move: inertias are those of rigid bodies, and the mass matrix at the neutral configuration is positive definite.
#include <stdexcept>

#include "coulomb/model/checks.hpp"
#include "coulomb/model/scene/build_model.hpp"
#include "coulomb/model/scene/neutral_inertia.hpp"

namespace coulomb {

bool is_rigid_inertia(const std::array<double, 6>& I) {
  // The second moments S = tr(I)/2 1 - I are sums of squares: I is a rigid body's where S is positive
  // semi-definite, which is the triangle inequality of the principal moments.
  const double half = (I[0] + I[2] + I[5]) / 2;
  const double xx = half - I[0];
  const double yy = half - I[2];
  const double zz = half - I[5];
  const double xy = -I[1];
  const double xz = -I[3];
  const double yz = -I[4];

  // Up to the rounding of numbers in files, relative to the trace.
  constexpr double tolerance = 1e-6;
  const double t = std::abs(half) + 1e-300;
  const double e = tolerance * t;

  // All principal minors of S are non-negative.
  const double minor_xy = xx * yy - xy * xy;
  const double minor_xz = xx * zz - xz * xz;
  const double minor_yz = yy * zz - yz * yz;
  const double det = xx * minor_yz - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz);
  const bool diagonal_ok = xx >= -e && yy >= -e && zz >= -e;
  const bool minors_ok = minor_xy >= -e * t && minor_xz >= -e * t && minor_yz >= -e * t;
  return half >= 0 && diagonal_ok && minors_ok && det >= -e * t * t;
}

void check_inertia(const std::string& what, double mass, const Vec3& com, const std::array<double, 6>& I,
                   const std::string& advice) {
  checks::not_negative(what + " mass", mass);
  checks::finite(what + " com", com.data(), 3);
  checks::finite(what + " inertia", I.data(), 6);

  // The message shows all of I.
  std::string value = "(Ixx Ixy Iyy Ixz Iyz Izz) = (";
  for (int i = 0; i < 6; ++i) {
    if (i > 0) value += ", ";
    value += checks::text(I[i]);
  }
  value += ")";

  const double half = (I[0] + I[2] + I[5]) / 2;
  if (half < 0) {
    checks::fail(what + " inertia", value + " has a negative trace");
  }
  if (!is_rigid_inertia(I)) {
    checks::fail(what + " inertia",
                 value +
                     " belongs to no rigid body: its principal moments must be non-negative and satisfy the "
                     "triangle inequality" +
                     advice);
  }

  if (mass == 0 && half > 0 && half < 1e-300) {
    checks::fail(what + " inertia", "is denormal");
  }
}

void check_mass_matrix(const Model& m, const NeutralInertia& neutral) {
  // A pivot of the factor is what a dof feels of all that it moves, the dofs before it held.
  for (int d = m.nv - 1; d >= 0; --d) {
    const double pivot = neutral.factor[m.dof_row[d] + m.dof_depth[d]];
    const bool positive = pivot > 1e-11 * neutral.diagonal[d] && pivot > 1e-300;
    if (positive) continue;

    const std::string joint = "joint '" + m.joint_names[m.dof_joint[d]] + "'";
    const std::string body = "body '" + m.body_names[m.dof_body[d]] + "'";
    throw std::invalid_argument(joint + " of " + body + ": mass or inertia that it moves is " + checks::text(pivot) +
                                "; a moving body needs positive mass and inertia (or armature); for a URDF, "
                                "link_density computes them from collision shapes");
  }
}

}  // namespace coulomb

#include "coulomb/dynamics/body_wrenches.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/ellipsoid_drag.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

const double* column(const DynamicsWorkspace& at, int d) { return at.columns.data() + 8 * d; }

/// The dofs that move a body, from the root on.
struct Path {
  const int* dof;
  int num;
  Path(const Model& model, int body) {
    const int last = model.body_last_dof[body];
    num = last >= 0 ? model.dof_depth[last] + 1 : 0;
    dof = num > 0 ? model.dof_path.data() + model.dof_row[last] : nullptr;
  }
};

/// m x x of two twists (v, w).
void cross_motion6(const double* m, const double* x, double* out) {
  double t[6];
  cross3(m + 3, x, t);
  add_cross3(m, x + 3, t);
  cross3(m + 3, x + 3, t + 3);
  std::copy_n(t, 6, out);
}

/// A frame of a body: its origin from the reference point of the body's tree, and its axes.
void place_frame(const DynamicsWorkspace& at, int body, int tree, const double* pos, const double* quat, double* arm,
                 double* axes) {
  const double* R = at.body_rotation.data() + 9 * body;
  double local[9];
  quaternion_to_matrix(quat, local);
  multiply3(R, local, axes);
  rotate(R, pos, arm);
  add3(arm, at.body_position.data() + 3 * body, arm);
  sub3(arm, at.reference.data() + 3 * tree, arm);
}

}  // namespace

bool is_carried(const Model& model, int i, int j) {
  const int joint = model.dof_joint[i];
  const int first = model.joint_v[joint];
  switch (model.joint_type[joint]) {
    case JointType::ball: return j < first + 3;
    case JointType::free: return i < first + 3 ? j < first : j < first + 6;
    default: return j < i;
  }
}

void site_wrench(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, double* wrench) {
  double arm[3];
  double axes[9];
  place_frame(at, actuator.body, model.body_tree[actuator.body], actuator.site_pos.data(), actuator.site_quat.data(),
              arm, axes);
  rotate(axes, actuator.gear.data(), wrench);
  rotate(axes, actuator.gear.data() + 3, wrench + 3);
  add_cross3(arm, wrench, wrench + 3);
}

void site_moment(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, ActuatorForce& out) {
  const Path path(model, actuator.body);
  double wrench[6];
  site_wrench(model, at, actuator, wrench);
  out.turns = true;
  for (int i = 0; i < path.num; ++i) {
    std::fill_n(out.dmoment[i], path.num, 0.0);
    out.moment[i] = dot6(column(at, path.dof[i]), wrench);
    for (int j = 0; j < path.num; ++j) {
      if (is_carried(model, path.dof[i], path.dof[j])) continue;
      double turned[6];
      cross_force(column(at, path.dof[j]), wrench, turned);
      out.dmoment[i][j] = dot6(column(at, path.dof[i]), turned);
    }
  }
}

namespace {

/// A dof that moves one of the two bodies of a relative transmission: its column at that body's point.
struct RelativeDof {
  int dof;
  double sign;  ///< -1: it moves the reference
  double v[3];
  const double* w;
};

/// A frame in world axes.
struct WorldFrame {
  double p[3];
  double R[9];
  double quat[4];
};

WorldFrame world_frame(const DynamicsWorkspace& at, int body, const double* pos, const double* quat) {
  WorldFrame out;
  double local[9];
  quaternion_to_matrix(quat, local);
  multiply3(at.body_rotation.data() + 9 * body, local, out.R);
  rotate(at.body_rotation.data() + 9 * body, pos, out.p);
  add3(out.p, at.body_position.data() + 3 * body, out.p);
  quaternion_multiply(at.body_quaternion.data() + 4 * body, quat, out.quat);
  return out;
}

RelativeDof relative_dof(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator, int dof,
                         const WorldFrame& site, const WorldFrame& reference) {
  const bool moves_site = dof_moves_body(model, dof, actuator.body);
  const int body = moves_site ? actuator.body : actuator.reference_body;
  RelativeDof out{dof, moves_site ? 1.0 : -1.0, {0, 0, 0}, column(at, dof) + 3};
  double r[3];
  sub3(moves_site ? site.p : reference.p, at.reference.data() + 3 * model.body_tree[body], r);
  cross3(out.w, r, out.v);
  add3(out.v, column(at, dof), out.v);
  return out;
}

/// The rotation vector of the site in the reference's frame, and how a rotation of the site moves its part along the gear: in world axes.
double relative_rotation(const WorldFrame& site, const WorldFrame& reference, const double* gear, double* slope) {
  double relative[4];
  double phi[3];
  double inverse[9];
  double own[3];
  quaternion_conjugate_multiply(reference.quat, site.quat, relative);
  quaternion_log(relative, phi);
  inverse_right_jacobian(phi, inverse);
  rotate_transposed(inverse, gear, own);
  rotate(site.R, own, slope);
  return dot3(gear, phi);
}

/// d moment_i / dq_j with the force f and the torque n in world axes, which turn with the reference.
double relative_turning(const Model& model, const double* f, const double* n, const RelativeDof& i,
                        const RelativeDof& j) {
  double sum = 0;
  double turned[3];
  if (j.sign < 0) {
    cross3(j.w, f, turned);
    sum += dot3(turned, i.v);
    cross3(j.w, n, turned);
    sum += dot3(turned, i.w);
  }

  // The column itself turns where both dofs move the same body.
  if (i.sign == j.sign) {
    const bool carried = is_carried(model, i.dof, j.dof);
    if (carried)
      cross3(j.w, i.v, turned);
    else
      cross3(i.w, j.v, turned);
    sum += dot3(f, turned);
    if (carried) {
      cross3(j.w, i.w, turned);
      sum += dot3(n, turned);
    }
  }
  return i.sign * sum;
}

}  // namespace

void relative_site_moment(const Model& model, const DynamicsWorkspace& at, const Actuator& actuator,
                          const ActuatorDofs& dofs, ActuatorForce& out) {
  const WorldFrame site = world_frame(at, actuator.body, actuator.site_pos.data(), actuator.site_quat.data());
  const WorldFrame reference =
      world_frame(at, actuator.reference_body, actuator.reference_pos.data(), actuator.reference_quat.data());
  double f[3];
  double n[3];
  double arm[3];
  double slope[3];
  rotate(reference.R, actuator.gear.data(), f);
  rotate(reference.R, actuator.gear.data() + 3, n);
  sub3(site.p, reference.p, arm);
  out.length = dot3(f, arm) + relative_rotation(site, reference, actuator.gear.data() + 3, slope);
  out.turns = true;

  RelativeDof columns[max_actuator_dofs];
  for (int i = 0; i < dofs.num; ++i)
    columns[i] = relative_dof(model, at, actuator, dofs.dof[i], site, reference);
  for (int i = 0; i < dofs.num; ++i) {
    const RelativeDof& c = columns[i];
    out.moment[i] = c.sign * (dot3(f, c.v) + dot3(n, c.w));
    for (int j = 0; j < dofs.num; ++j)
      out.dmoment[i][j] = relative_turning(model, f, n, c, columns[j]);

    // The length is read in the reference's frame, which turns: its slope is not the moment.
    double turned[3];
    cross3(c.w, arm, turned);
    out.dlength[i] = c.sign * (dot3(f, c.v) + dot3(slope, c.w)) - (c.sign < 0 ? dot3(f, turned) : 0.0);
  }
}

MediumOnBody::MediumOnBody(const Model& model, const DynamicsWorkspace& at, int body, const double* twist) {
  const EllipsoidRange ellipsoids = ellipsoids_of(model, body);
  is_box_ = ellipsoids.first == ellipsoids.last;
  copy3(model.medium.wind.data(), wind_);
  if (is_box_)
    add_box(model, at, body, twist);
  else
    add_ellipsoids(model, at, body, twist);
}

void MediumOnBody::add_box(const Model& model, const DynamicsWorkspace& at, int body, const double* twist) {
  const MediumBox& box = model.body_medium_box[body];
  place_frame(at, body, model.body_tree[body], box.pos.data(), box.quat.data(), arm_, axes_);

  // The velocity of the middle against the wind, and the angular velocity, along the box.
  double velocity[3];
  double v[3];
  double w[3];
  cross3(twist + 3, arm_, velocity);
  add3(velocity, twist, velocity);
  sub3(velocity, wind_, velocity);
  rotate_transposed(axes_, velocity, v);
  rotate_transposed(axes_, twist + 3, w);

  const double* b = box.size.data();
  const double d = (b[0] + b[1] + b[2]) / 3;
  const double viscous = 3 * M_PI * d;
  const double viscous_turn = M_PI * d * d * d;
  const double rho = model.medium.density;
  const double mu = model.medium.viscosity;
  double force_by_density[3];
  double torque_by_density[3];
  double force_by_viscosity[3];
  double torque_by_viscosity[3];
  for (int i = 0; i < 3; ++i) {
    const double y = b[(i + 1) % 3];
    const double z = b[(i + 2) % 3];
    const double face = 0.5 * y * z;
    const double turn = b[i] * (y * y * y * y + z * z * z * z) / 64;
    force_by_density[i] = -face * std::abs(v[i]) * v[i];
    torque_by_density[i] = -turn * std::abs(w[i]) * w[i];
    force_by_viscosity[i] = -viscous * v[i];
    torque_by_viscosity[i] = -viscous_turn * w[i];
    linear_[i] = -mu * viscous - 2 * rho * face * std::abs(v[i]);
    angular_[i] = -mu * viscous_turn - 2 * rho * turn * std::abs(w[i]);
  }
  to_reference(force_by_density, torque_by_density, by_density);
  to_reference(force_by_viscosity, torque_by_viscosity, by_viscosity);
  for (int i = 0; i < 6; ++i)
    wrench[i] = rho * by_density[i] + mu * by_viscosity[i];
}

namespace {

/// An ellipsoid's frame, and its force there.
struct PlacedEllipsoid {
  double arm[3];   ///< of its middle, from the reference point
  double axes[9];  ///< world from ellipsoid
  EllipsoidDrag drag;

  PlacedEllipsoid(const Model& model, const DynamicsWorkspace& at, int body, int ellipsoid, const double* twist) {
    const MediumEllipsoid& e = model.medium_ellipsoids[ellipsoid];
    place_frame(at, body, model.body_tree[body], e.pos.data(), e.quat.data(), arm, axes);
    double seen[6];
    copy3(twist, seen);
    sub3(seen, model.medium.wind.data(), seen);
    copy3(twist + 3, seen + 3);
    double local[6];
    twist_there(seen, local);
    drag = ellipsoid_drag(e, model.medium, local);
  }
  /// A twist about the reference point, in the ellipsoid's frame.
  void twist_there(const double* twist, double* out) const {
    double velocity[3];
    cross3(twist + 3, arm, velocity);
    add3(velocity, twist, velocity);
    rotate_transposed(axes, velocity, out);
    rotate_transposed(axes, twist + 3, out + 3);
  }
  /// And a wrench back, added.
  void add_wrench_here(const double* wrench, double* out) const {
    double here[6];
    rotate(axes, wrench, here);
    rotate(axes, wrench + 3, here + 3);
    add_cross3(arm, here, here + 3);
    for (int i = 0; i < 6; ++i)
      out[i] += here[i];
  }
};

}  // namespace

void MediumOnBody::add_ellipsoids(const Model& model, const DynamicsWorkspace& at, int body, const double* twist) {
  const EllipsoidRange range = ellipsoids_of(model, body);
  std::fill_n(by_density, 6, 0.0);
  std::fill_n(by_viscosity, 6, 0.0);
  double columns[6][6] = {};
  for (int e = range.first; e < range.last; ++e) {
    const PlacedEllipsoid placed(model, at, body, e, twist);
    placed.add_wrench_here(placed.drag.by_density, by_density);
    placed.add_wrench_here(placed.drag.by_viscosity, by_viscosity);

    // The change by a unit of each component of the body's twist.
    for (int j = 0; j < 6; ++j) {
      double unit[6] = {0, 0, 0, 0, 0, 0};
      double there[6];
      double change[6] = {0, 0, 0, 0, 0, 0};
      unit[j] = 1;
      placed.twist_there(unit, there);
      for (int i = 0; i < 6; ++i)
        for (int k = 0; k < 6; ++k)
          change[i] += placed.drag.slope[i][k] * there[k];
      placed.add_wrench_here(change, columns[j]);
    }
  }
  for (int i = 0; i < 6; ++i) {
    wrench[i] = model.medium.density * by_density[i] + model.medium.viscosity * by_viscosity[i];
    for (int j = 0; j < 6; ++j)
      slope_[i][j] = columns[j][i];
  }
}

void ellipsoid_coefficient_wrenches(const Model& model, const DynamicsWorkspace& at, int body, int ellipsoid,
                                    const double* twist, double (*out)[6]) {
  const PlacedEllipsoid placed(model, at, body, ellipsoid, twist);
  for (int c = 0; c < 5; ++c) {
    std::fill_n(out[c], 6, 0.0);
    placed.add_wrench_here(placed.drag.by_coefficients[c], out[c]);
  }
}

/// From the box to a wrench about the reference point.
void MediumOnBody::to_reference(const double* force, const double* torque, double* out) const {
  rotate(axes_, force, out);
  rotate(axes_, torque, out + 3);
  add_cross3(arm_, out, out + 3);
}

void MediumOnBody::respond(const double* twist, double* change) const {
  if (!is_box_) {
    for (int i = 0; i < 6; ++i) {
      change[i] = 0;
      for (int j = 0; j < 6; ++j)
        change[i] += slope_[i][j] * twist[j];
    }
    return;
  }
  double velocity[3];
  double force[3];
  double torque[3];
  cross3(twist + 3, arm_, velocity);
  add3(velocity, twist, velocity);
  rotate_transposed(axes_, velocity, force);
  rotate_transposed(axes_, twist + 3, torque);
  for (int i = 0; i < 3; ++i) {
    force[i] *= linear_[i];
    torque[i] *= angular_[i];
  }
  to_reference(force, torque, change);
}

void MediumOnBody::respond_to_wind(const double* wind, double* change) const {
  const double slower[6] = {-wind[0], -wind[1], -wind[2], 0, 0, 0};
  respond(slower, change);
}

void MediumOnBody::seen_change(const double* xi, const double* before, double* twist) const {
  // The velocity that does not move along stays behind, and so does the wind.
  cross_motion6(xi, before, twist);
  for (int i = 0; i < 6; ++i)
    twist[i] = -twist[i];
  add_cross3(xi + 3, wind_, twist);
}

void twist_on_path(const Model& model, const DynamicsWorkspace& at, int body, const double* v, double* twist) {
  const Path path(model, body);
  std::fill_n(twist, 6, 0.0);
  for (int i = 0; i < path.num; ++i)
    for (int k = 0; k < 6; ++k)
      twist[k] += v[path.dof[i]] * column(at, path.dof[i])[k];
}

void add_medium_forces(const Model& model, const DynamicsWorkspace& at, const double* v, JointForces& out) {
  if (!has_medium(model)) return;
  for (const int b : model.moving_bodies) {
    const Path path(model, b);
    if (!feels_medium(model, b)) continue;
    double twist[6];
    twist_on_path(model, at, b, v, twist);
    const MediumOnBody medium(model, at, b, twist);
    for (int i = 0; i < path.num; ++i)
      out.tau[path.dof[i]] += dot6(column(at, path.dof[i]), medium.wrench);

    // Column by column: what a unit of velocity and of displacement change of the wrench.
    for (int j = 0; j < path.num; ++j) {
      const double* J = column(at, path.dof[j]);
      double by_speed[6];
      medium.respond(J, by_speed);

      double before[6] = {0, 0, 0, 0, 0, 0};
      for (int k = 0; k < path.num; ++k) {
        if (is_carried(model, path.dof[k], path.dof[j])) continue;
        for (int c = 0; c < 6; ++c)
          before[c] += v[path.dof[k]] * column(at, path.dof[k])[c];
      }
      double seen[6];
      double by_place[6];
      double turned[6];
      medium.seen_change(J, before, seen);
      medium.respond(seen, by_place);
      cross_force(J, medium.wrench, turned);

      for (int i = 0; i < path.num; ++i) {
        const double* row = column(at, path.dof[i]);
        const double carried = is_carried(model, path.dof[i], path.dof[j]) ? 0.0 : dot6(row, turned);
        out.coupled_slopes.push_back({path.dof[i], path.dof[j], carried + dot6(row, by_place), dot6(row, by_speed)});
      }
    }
  }
}

std::size_t count_wrench_slopes(const Model& model) {
  std::size_t count = 0;
  for (const Actuator& a : model.actuators) {
    const std::size_t dofs = a.reference_body >= 0 ? max_actuator_dofs : a.body >= 0 ? Path(model, a.body).num : 0;
    count += dofs * dofs;
  }
  for (int b = 1; b < model.num_bodies && has_medium(model); ++b) {
    const std::size_t dofs = Path(model, b).num;
    count += dofs * dofs;
  }
  return count;
}

}  // namespace coulomb

#include "coulomb/dynamics/body_wrenches.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/joint_forces.hpp"

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

MediumOnBody::MediumOnBody(const Model& model, const DynamicsWorkspace& at, int body, const double* twist) {
  const MediumBox& box = model.body_medium_box[body];
  place_frame(at, body, model.body_tree[body], box.pos.data(), box.quat.data(), arm_, axes_);
  copy3(model.medium.wind.data(), wind_);

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

/// From the box to a wrench about the reference point.
void MediumOnBody::to_reference(const double* force, const double* torque, double* out) const {
  rotate(axes_, force, out);
  rotate(axes_, torque, out + 3);
  add_cross3(arm_, out, out + 3);
}

void MediumOnBody::respond(const double* twist, double* change) const {
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
    if (model.body_medium_box[b].size[0] == 0) continue;
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
    const std::size_t dofs = a.body >= 0 ? Path(model, a.body).num : 0;
    count += dofs * dofs;
  }
  for (int b = 1; b < model.num_bodies && has_medium(model); ++b) {
    const std::size_t dofs = Path(model, b).num;
    count += dofs * dofs;
  }
  return count;
}

}  // namespace coulomb

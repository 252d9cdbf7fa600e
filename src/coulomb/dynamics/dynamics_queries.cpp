#include "coulomb/dynamics.hpp"

#include <stdexcept>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/dynamics/tendon_state.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

using Values = std::vector<double>;

/// The workspace at q, checked.
DynamicsWorkspace at(const Model& model, const Values& q) {
  check_vector(q, model.nq, "q");
  check_configuration(model, q.data(), "q");
  DynamicsWorkspace ws(model);
  kinematics(model, q.data(), ws);
  return ws;
}

/// The workspace at (q, v), checked.
DynamicsWorkspace at(const Model& model, const Values& q, const Values& v) {
  check_vector(v, model.nv, "v");
  DynamicsWorkspace ws = at(model, q);
  velocities(model, v.data(), ws);
  return ws;
}

/// The packed rows of M as a dense symmetric matrix.
Values dense_mass(const Model& model, const DynamicsWorkspace& ws) {
  const std::size_t nv = static_cast<std::size_t>(model.nv);
  Values out(nv * nv, 0.0);
  for (std::size_t d = 0; d < nv; ++d)
    for (int i = model.dof_row[d]; i <= model.dof_row[d] + model.dof_depth[d]; ++i) {
      const std::size_t k = static_cast<std::size_t>(model.dof_path[i]);
      out[d * nv + k] = out[k * nv + d] = ws.mass[i];
    }
  return out;
}

/// A tendon with an armature at a state.
struct HeavyTendon {
  TendonState state;
  TendonBend bend;
  double armature;

  /// m times the acceleration of its length.
  double force(const double* a) const { return armature * (state.rate(a) + bend.value); }
};

/// Calls visit(tendon) of every tendon that has an armature. v: null: at rest.
template <class Visit>
void for_each_armature(const Model& model, const DynamicsWorkspace& ws, const Values& q, const double* v, Visit visit) {
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    if (model.tendons[t].armature == 0) continue;
    HeavyTendon heavy;
    heavy.armature = model.tendons[t].armature;
    tendon_state(model, ws, t, q.data(), true, heavy.state);
    if (v) tendon_bend(model, ws, t, v, heavy.state, heavy.bend);
    visit(heavy);
  }
}

/// m J^T (J a + dJ/dt v) of tendons with an armature.
void add_armature_forces(const Model& model, const DynamicsWorkspace& ws, const Values& q, const Values& v,
                         const Values& a, Values& out) {
  for_each_armature(model, ws, q, v.data(), [&](const HeavyTendon& t) {
    for (int i = 0; i < t.state.num; ++i)
      out[t.state.dof[i]] += t.state.J[i] * t.force(a.data());
  });
}

/// Their derivatives by q and v, added to matrices of nv x nv.
void add_armature_slopes(const Model& model, const DynamicsWorkspace& ws, const Values& q, const Values& v,
                         const Values& a, Values& dq, Values& dv) {
  for_each_armature(model, ws, q, v.data(), [&](const HeavyTendon& t) {
    const TendonState& s = t.state;
    for (int k = 0; k < s.num; ++k) {
      double change = t.bend.by_q[k];
      for (int j = 0; s.turns && j < s.num; ++j)
        change += s.dJ[j][k] * a[s.dof[j]];
      for (int i = 0; i < s.num; ++i) {
        const std::size_t at = std::size_t(s.dof[i]) * model.nv + s.dof[k];
        dq[at] += t.armature * s.J[i] * change + (s.turns ? s.dJ[i][k] * t.force(a.data()) : 0.0);
        dv[at] += t.armature * s.J[i] * t.bend.by_v[k];
      }
    }
  });
}

/// M with the armature of tendons, m J^T J, which the packed rows do not have.
Values full_mass(const Model& model, const DynamicsWorkspace& ws, const Values& q) {
  Values out = dense_mass(model, ws);
  for_each_armature(model, ws, q, nullptr, [&](const HeavyTendon& t) {
    for (int i = 0; i < t.state.num; ++i)
      for (int j = 0; j < t.state.num; ++j)
        out[std::size_t(t.state.dof[i]) * model.nv + t.state.dof[j]] += t.armature * t.state.J[i] * t.state.J[j];
  });
  return out;
}

/// Transpose of a matrix of the workspace that is kept by tree, dense.
Values transposed(const DynamicsWorkspace& ws, const Values& by_tree) {
  const std::size_t nv = static_cast<std::size_t>(ws.nv);
  Values rows(nv * nv, 0.0);
  Values out(nv * nv);

  add_by_tree(ws, by_tree, rows.data(), ws.nv);
  for (std::size_t k = 0; k < nv; ++k)
    for (std::size_t d = 0; d < nv; ++d)
      out[d * nv + k] = rows[k * nv + d];
  return out;
}

/// 1/2 k |q - q_spring|^2; rotations by their rotation vector.
double spring_energy(const Model& model, const DynamicsWorkspace& ws, const Values& q) {
  Values stretch(model.nv);
  difference(model, model.q_spring.data(), q.data(), stretch.data());

  double energy = 0;
  for (int d = 0; d < model.nv; ++d)
    energy += 0.5 * model.joint_stiffness[model.dof_joint[d]] * stretch[d] * stretch[d];
  for (int t = 0; t < int(model.tendons.size()); ++t) {
    TendonState state;
    tendon_state(model, ws, t, q.data(), false, state);
    const double beyond = tendon_stretch(model.tendons[t], state.length);
    energy += 0.5 * model.tendons[t].stiffness * beyond * beyond;
  }
  return energy;
}

}  // namespace

Values mass_matrix(const Model& model, const Values& q) {
  DynamicsWorkspace ws = at(model, q);
  mass_matrix(model, ws);
  return full_mass(model, ws, q);
}

Values bias(const Model& model, const Values& q, const Values& v) {
  DynamicsWorkspace ws = at(model, q, v);
  bias(model, ws);
  add_armature_forces(model, ws, q, v, Values(model.nv, 0.0), ws.bias);
  return ws.bias;
}

Values inverse_dynamics(const Model& model, const Values& q, const Values& v, const Values& a) {
  check_vector(a, model.nv, "a");
  DynamicsWorkspace ws = at(model, q, v);
  Values tau(model.nv);
  inverse_dynamics(model, ws, a.data(), tau.data());
  add_armature_forces(model, ws, q, v, a, tau);
  return tau;
}

InverseDynamicsDerivatives inverse_dynamics_derivatives(const Model& model, const Values& q, const Values& v,
                                                        const Values& a) {
  check_vector(a, model.nv, "a");
  DynamicsWorkspace ws = at(model, q, v);
  mass_matrix(model, ws);

  // The mass matrix is read before the derivatives overwrite shared storage.
  const Values mass = full_mass(model, ws, q);

  inverse_dynamics_derivatives(model, ws, a.data(), nullptr);
  Values dq = transposed(ws, ws.id_dq_T);
  Values dv = transposed(ws, ws.id_dv_T);
  add_armature_slopes(model, ws, q, v, a, dq, dv);
  return {dq, dv, mass};
}

Placements body_placements(const Model& model, const Values& q) {
  const DynamicsWorkspace ws = at(model, q);
  return {ws.body_position, ws.body_rotation};
}

Placements geometry_placements(const Model& model, const Values& q) {
  const DynamicsWorkspace ws = at(model, q);
  Placements out{Values(3 * static_cast<std::size_t>(model.num_geometries)),
                 Values(9 * static_cast<std::size_t>(model.num_geometries))};
  for (int g = 0; g < model.num_geometries; ++g) {
    // A geometry rides on its body.
    const double* R = &ws.body_rotation[9 * model.geometry_body[g]];
    double local[9];
    quaternion_to_matrix(&model.geometry_quat[4 * g], local);
    multiply3(R, local, &out.rotations[9 * g]);
    rotate(R, &model.geometry_pos[3 * g], &out.positions[3 * g]);
    add3(&out.positions[3 * g], &ws.body_position[3 * model.geometry_body[g]], &out.positions[3 * g]);
  }
  return out;
}

Values body_velocities(const Model& model, const Values& q, const Values& v) {
  const DynamicsWorkspace ws = at(model, q, v);
  Values out(6 * static_cast<std::size_t>(model.num_bodies));
  for (int b = 0; b < model.num_bodies; ++b) {
    Frame frame;
    frame.body = b;
    const FrameState state = frame_state(model, ws, frame);
    copy3(state.velocity, &out[6 * b]);
    copy3(state.spin, &out[6 * b + 3]);
  }
  return out;
}

Values point_jacobian(const Model& model, const Values& q, int body, const Values& point) {
  if (body < 0 || body >= model.num_bodies)
    throw std::out_of_range("body: " + std::to_string(body) + " is not one of the " + std::to_string(model.num_bodies) +
                            " bodies");
  check_vector(point, 3, "point");

  // The point is a frame without a turn of its own: the Jacobian of its velocity is that of two sensors.
  const DynamicsWorkspace ws = at(model, q, Values(model.nv, 0.0));
  Sensor sensor;
  sensor.frame.body = body;
  copy3(point.data(), sensor.frame.pos.data());

  // Three rows of linear velocity, then three of angular velocity.
  Values out(6 * static_cast<std::size_t>(model.nv));
  std::vector<OutputRow> rows;
  for (int half = 0; half < 2; ++half) {
    sensor.type = half == 0 ? SensorType::velocity : SensorType::angular_velocity;
    linearize_output(model, ws, q.data(), nullptr, sensor, rows);
    for (int r = 0; r < 3; ++r)
      add_output_row(model, ws, rows[r], 1, nullptr, out.data() + static_cast<std::size_t>(3 * half + r) * model.nv);
  }
  return out;
}

Energy energy(const Model& model, const Values& q, const Values& v) {
  const DynamicsWorkspace ws = at(model, q, v);
  double kinetic = kinetic_energy(model, ws);
  for_each_armature(model, ws, q, nullptr, [&](const HeavyTendon& t) {
    const double rate = t.state.rate(v.data());
    kinetic += 0.5 * t.armature * rate * rate;
  });
  return {kinetic, potential_energy(model, ws) + spring_energy(model, ws, q)};
}

}  // namespace coulomb

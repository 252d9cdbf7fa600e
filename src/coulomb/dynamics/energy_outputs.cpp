#include "coulomb/dynamics/energy_outputs.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/dynamics/outputs.hpp"
#include "coulomb/dynamics/tendon_state.hpp"
#include "coulomb/model/tendon.hpp"

namespace coulomb {
namespace {

/// A body at its centre of mass.
struct MassState {
  Frame frame;
  FrameState at;
  double mass;
  double inertia[6];       ///< about the centre of mass, body axes
  double local_spin[3];    ///< body axes
  double own_momentum[3];  ///< I w, world axes

  MassState(const Model& model, const DynamicsWorkspace& ws, int body) {
    frame.body = body;
    frame.at_com = true;
    at = frame_state(model, ws, frame);
    mass = model.body_mass[body];
    std::copy_n(model.body_inertia.data() + 6 * body, 6, inertia);
    rotate_transposed(at.rotation, at.spin, local_spin);
    times_inertia(at.spin, own_momentum);
  }
  /// I x, both in world axes.
  void times_inertia(const double* x, double* out) const {
    double local[3];
    double turned[3];
    rotate_transposed(at.rotation, x, local);
    turned[0] = inertia[0] * local[0] + inertia[1] * local[1] + inertia[3] * local[2];
    turned[1] = inertia[1] * local[0] + inertia[2] * local[1] + inertia[4] * local[2];
    turned[2] = inertia[3] * local[0] + inertia[4] * local[1] + inertia[5] * local[2];
    rotate(at.rotation, turned, out);
  }
};

/// d (a . I b) / dI, entry by entry: those off the diagonal stand for two.
void add_inertia_slopes(double scale, const double* a, const double* b, double* out) {
  static constexpr int row[6] = {0, 0, 1, 0, 1, 2};
  static constexpr int column[6] = {0, 1, 1, 2, 2, 2};
  for (int k = 0; k < 6; ++k) {
    const int i = row[k];
    const int j = column[k];
    out[k] += scale * (i == j ? a[i] * b[i] : a[i] * b[j] + a[j] * b[i]);
  }
}

/// How far the spring of a joint is stretched, dof by dof: its force is -k times that, and its energy k/2 times the square.
struct Stretch {
  int num;
  double value[6];
  double half_square = 0;

  Stretch(const Model& model, int joint, const double* q) : num(joint_num_dofs(model.joint_type[joint])) {
    const double* at = q + model.joint_q[joint];
    const double* rest = model.q_spring.data() + model.joint_q[joint];
    const bool turns = num >= 3;
    const int straight = turns ? num - 3 : num;
    for (int i = 0; i < straight; ++i)
      value[i] = at[i] - rest[i];
    if (turns) {
      double relative[4];
      quaternion_conjugate_multiply(rest + straight, at + straight, relative);
      quaternion_log(relative, value + straight);
    }
    for (int i = 0; i < num; ++i)
      half_square += 0.5 * value[i] * value[i];
  }
};

/// visit(tendon, its number, its state) of those for which has(tendon).
template <class Has, class Visit>
void for_each_tendon(const Model& model, const DynamicsWorkspace& ws, const double* q, bool with_turning, Has has,
                     Visit visit) {
  for (int t = 0; t < static_cast<int>(model.tendons.size()); ++t) {
    if (!has(model.tendons[t])) continue;
    TendonState state;
    tendon_state(model, ws, t, q, with_turning, state);
    visit(model.tendons[t], t, state);
  }
}

bool has_spring(const Tendon& tendon) { return tendon.stiffness != 0; }
bool has_armature(const Tendon& tendon) { return tendon.armature != 0; }

}  // namespace

double potential_energy(const Model& model, const DynamicsWorkspace& ws, const double* q) {
  // Weights.
  double out = 0;
  for (int b = 1; b < model.num_bodies; ++b)
    out -= model.body_mass[b] * dot3(model.gravity.data(), MassState(model, ws, b).at.position);

  // Springs.
  for (int j = 0; j < model.num_joints; ++j)
    if (model.joint_stiffness[j] != 0) out += model.joint_stiffness[j] * Stretch(model, j, q).half_square;
  for_each_tendon(model, ws, q, false, has_spring, [&](const Tendon& tendon, int, const TendonState& state) {
    const double stretch = tendon_stretch(tendon, state.length);
    out += 0.5 * tendon.stiffness * stretch * stretch;
  });
  return out;
}

void potential_energy_row(const Model& model, const DynamicsWorkspace& ws, const double* q, OutputRow& row) {
  // Weights: of every body by its place, its mass and gravity.
  double first_moment[3] = {0, 0, 0};
  for (int b = 1; b < model.num_bodies; ++b) {
    const MassState body(model, ws, b);
    FrameCovector a;
    axpy3(-body.mass, model.gravity.data(), a.p);
    axpy3(body.mass, body.at.position, first_moment);
    add_frame_term(model, ws, body.frame, body.at, a, row);
    row.terms.back().mass_slope = -dot3(model.gravity.data(), body.at.position);
  }
  for (int k = 0; k < 3; ++k)
    row.scalars.push_back({"gravity", 0, k, -first_moment[k]});

  // Springs of joints; one without stiffness could get one.
  for (int j = 0; j < model.num_joints; ++j) {
    const Stretch stretch(model, j, q);
    row.scalars.push_back({"joint_stiffness", j, 0, stretch.half_square});
    for (int i = 0; i < stretch.num && model.joint_stiffness[j] != 0; ++i)
      row.dq.push_back({model.joint_v[j] + i, model.joint_stiffness[j] * stretch.value[i]});
  }

  // Springs of tendons.
  for_each_tendon(model, ws, q, false, has_spring, [&](const Tendon& tendon, int t, const TendonState& state) {
    const double beyond = tendon_stretch(tendon, state.length);
    row.scalars.push_back({"tendon_stiffness", t, 0, 0.5 * beyond * beyond});
    for (int i = 0; i < state.num; ++i)
      row.dq.push_back({state.dof[i], tendon.stiffness * beyond * state.J[i]});
  });
}

double kinetic_energy(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v) {
  // Bodies.
  double out = 0;
  for (const int b : model.moving_bodies) {
    const MassState body(model, ws, b);
    out += 0.5 * body.mass * dot3(body.at.velocity, body.at.velocity);
    out += 0.5 * dot3(body.at.spin, body.own_momentum);
  }

  // Rotors.
  for (int d = 0; d < model.nv; ++d)
    out += 0.5 * model.dof_armature[d] * v[d] * v[d];
  for_each_tendon(model, ws, q, false, has_armature, [&](const Tendon& tendon, int, const TendonState& state) {
    const double rate = state.rate(v);
    out += 0.5 * tendon.armature * rate * rate;
  });
  return out;
}

void kinetic_energy_row(const Model& model, const DynamicsWorkspace& ws, const double* q, const double* v,
                        OutputRow& row) {
  // A body's energy changes with its velocities; where its axes turn by phi, by phi . (I w x w).
  for (const int b : model.moving_bodies) {
    const MassState body(model, ws, b);
    FrameCovector a;
    axpy3(body.mass, body.at.velocity, a.v);
    copy3(body.own_momentum, a.w);
    cross3(body.own_momentum, body.at.spin, a.phi);
    add_frame_term(model, ws, body.frame, body.at, a, row);
    row.terms.back().mass_slope = 0.5 * dot3(body.at.velocity, body.at.velocity);
    add_inertia_slopes(0.5, body.local_spin, body.local_spin, row.terms.back().inertia_slope);
  }

  // Rotors of joints, and of tendons whose paths turn.
  for (int j = 0; j < model.num_joints; ++j) {
    const int first = model.joint_v[j];
    for (int k = 0; k < joint_num_dofs(model.joint_type[j]); ++k) {
      const double speed = v[first + k];
      row.scalars.push_back({"armature", j, k, 0.5 * speed * speed});
      row.dv.push_back({first + k, model.dof_armature[first + k] * speed});
    }
  }
  for_each_tendon(model, ws, q, true, has_armature, [&](const Tendon& tendon, int t, const TendonState& state) {
    const double rate = state.rate(v);
    row.scalars.push_back({"tendon_armature", t, 0, 0.5 * rate * rate});
    for (int i = 0; i < state.num; ++i) {
      row.dv.push_back({state.dof[i], tendon.armature * rate * state.J[i]});
      for (int j = 0; state.turns && j < state.num; ++j)
        row.dq.push_back({state.dof[j], tendon.armature * rate * state.dJ[i][j] * v[state.dof[i]]});
    }
  });
}

void angular_momentum(const Model& model, const DynamicsWorkspace& ws, int root, double* momentum) {
  const SubtreeState whole = subtree_state(model, ws, root);
  std::fill_n(momentum, 3, 0.0);
  for (int b = root; b < model.body_subtree_end[root]; ++b) {
    const MassState body(model, ws, b);
    double arm[3];
    double velocity[3];
    sub3(body.at.position, whole.com, arm);
    sub3(body.at.velocity, whole.velocity, velocity);
    for (double& x : velocity)
      x *= body.mass;
    add3(momentum, body.own_momentum, momentum);
    add_cross3(arm, velocity, momentum);
  }
}

void angular_momentum_rows(const Model& model, const DynamicsWorkspace& ws, int root, std::vector<OutputRow>& rows) {
  const SubtreeState whole = subtree_state(model, ws, root);
  for (int b = root; b < model.body_subtree_end[root]; ++b) {
    const MassState body(model, ws, b);
    double arm[3];
    double velocity[3];
    double orbit[3];
    sub3(body.at.position, whole.com, arm);
    sub3(body.at.velocity, whole.velocity, velocity);
    cross3(arm, velocity, orbit);

    for (int r = 0; r < 3; ++r) {
      // e . (m arm x velocity): the centre of mass of the whole drops out, as the arms and the velocities sum to zero.
      double e[3] = {0, 0, 0};
      e[r] = 1;
      FrameCovector a;
      cross3(velocity, e, a.p);
      cross3(e, arm, a.v);
      for (int i = 0; i < 3; ++i) {
        a.p[i] *= body.mass;
        a.v[i] *= body.mass;
      }

      // e . I w, whose axes turn: phi . (I w x e - w x I e).
      double of_axis[3];
      double back[3];
      body.times_inertia(e, of_axis);
      copy3(of_axis, a.w);
      cross3(body.own_momentum, e, a.phi);
      cross3(body.at.spin, of_axis, back);
      sub3(a.phi, back, a.phi);
      add_frame_term(model, ws, body.frame, body.at, a, rows[r]);

      double local[3];
      rotate_transposed(body.at.rotation, e, local);
      rows[r].terms.back().mass_slope = orbit[r];
      add_inertia_slopes(1, local, body.local_spin, rows[r].terms.back().inertia_slope);
    }
  }
}

}  // namespace coulomb

#include "coulomb/dynamics/implicit_gains.hpp"

#include <algorithm>

namespace coulomb {

JointMatrix::JointMatrix(const Model& model) : diagonal(model.nv) {
  std::size_t most = 0;
  for (int k = 0; k < model.nu; ++k) {
    if (model.actuators[k].joint < 0) continue;
    const int n = joint_num_dofs(model.joint_type[model.actuators[k].joint]);
    most += std::size_t(n) * (n - 1) / 2;
  }
  below.reserve(most);
}

void JointMatrix::set_diagonal(double scale, const std::vector<double>& values) {
  below.clear();
  for (std::size_t d = 0; d < diagonal.size(); ++d)
    diagonal[d] = scale * values[d];
}

void JointMatrix::add(double scale, const JointMatrix& other) {
  for (std::size_t d = 0; d < diagonal.size(); ++d)
    diagonal[d] += scale * other.diagonal[d];
  for (const Entry& e : other.below)
    below.push_back({e.row, e.column, scale * e.value});
}

void JointMatrix::add_outer(double scale, const double* m, int first, int n) {
  for (int i = 0; i < n; ++i) {
    diagonal[first + i] += scale * m[i] * m[i];
    for (int j = 0; j < i; ++j)
      if (m[i] != 0 && m[j] != 0) below.push_back({first + i, first + j, scale * m[i] * m[j]});
  }
}

void JointMatrix::add_product(double scale, const double* x, double* y) const {
  for (std::size_t d = 0; d < diagonal.size(); ++d)
    y[d] += scale * diagonal[d] * x[d];
  for (const Entry& e : below) {
    y[e.row] += scale * e.value * x[e.column];
    y[e.column] += scale * e.value * x[e.row];
  }
}

ImplicitGains::ImplicitGains(const Model& model) : damping(model), stiffness(model), inertia(model) {
  // It has the entries of both.
  inertia.below.reserve(2 * damping.below.capacity());
}

void implicit_gains(const Model& model, ForcesAtEnd rule, double h, const JointForces& forces, ImplicitGains& out) {
  out.rule = rule;
  out.any_stiffness = false;
  out.damping.set_diagonal(1, model.dof_damping);
  const auto add_actuators = [&](const std::vector<double>& gains, JointMatrix& to) {
    for (int k = 0; k < model.nu; ++k) {
      if (gains[k] == 0) continue;
      const int joint = model.actuators[k].joint;
      to.add_outer(gains[k], &forces.moment[max_actuator_dofs * k], model.joint_v[joint],
                   joint_num_dofs(model.joint_type[joint]));
    }
  };

  // D of the actuators.
  if (rule != ForcesAtEnd::none && forces.any_gain) add_actuators(forces.speed_gain, out.damping);
  out.inertia.set_diagonal(h, out.damping.diagonal);
  for (const JointMatrix::Entry& e : out.damping.below)
    out.inertia.below.push_back({e.row, e.column, h * e.value});
  if (rule != ForcesAtEnd::positions || (!forces.any_gain && !model.has_joint_springs)) return;

  // K: of a spring the same along all dofs of its joint.
  out.any_stiffness = true;
  out.stiffness.below.clear();
  for (int d = 0; d < model.nv; ++d)
    out.stiffness.diagonal[d] = model.joint_stiffness[model.dof_joint[d]];
  add_actuators(forces.length_gain, out.stiffness);
  out.inertia.add(h * h, out.stiffness);
}

bool has_speed_gains(const Model& model, int tree) {
  return std::any_of(model.actuators.begin(), model.actuators.end(), [&](const Actuator& a) {
    return a.joint >= 0 && model.body_tree[model.joint_body[a.joint]] == tree && (a.gain[2] != 0 || a.bias[2] < 0);
  });
}

}  // namespace coulomb

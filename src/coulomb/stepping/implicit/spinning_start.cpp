#include "coulomb/stepping/implicit/spinning_start.hpp"

namespace coulomb {
namespace {

/// visit(d, change) of the entries of a joint's dDelta.
template <class Visit>
void visit_entries(const SpinDerivative& spin, const double* change, Visit visit) {
  for (int i = spin.linear < 0 ? 3 : 0; i < 6; ++i)
    visit(i < 3 ? spin.linear + i : spin.dof + i - 3, change[i]);
}

/// By the time.
void by_time(const SpinDerivative& spin, double* change) {
  for (int i = 0; i < 6; ++i)
    change[i] = spin.by[i][SpinDerivative::time];
}

}  // namespace

SpinningStart::SpinningStart(const Model& model) : at_(model), mechanisms_(model.num_trees), shift_(model) {
  // Delta assumes that all beyond a joint is one stiff body: a rope that whips would be thrown.
  std::vector<int> num_joints(model.num_trees, 0);
  for (int joint = 0; joint < model.num_joints; ++joint)
    ++num_joints[model.body_tree[model.joint_body[joint]]];
  for (int tree = 0; tree < model.num_trees; ++tree)
    mechanisms_[tree] = num_joints[tree] > 1;
}

void SpinningStart::move_to(const Model& model, const double* q, const double* v) {
  kinematics(model, q, at_);
  velocities(model, v, at_);
  mass_matrix(model, at_);
}

void SpinningStart::add(const Model& model, const double* q, const double* v, double c, double* v_bar) {
  shift_.clear();
  if (!may_spin(model, v)) return;
  move_to(model, q, v);
  spin_shift(model, at_, v, c, shift_, {mechanisms_.data(), SpinLaw::at_end});
  for (int d = 0; d < model.nv; ++d)
    v_bar[d] += shift_.velocity[d];
}

void SpinningStart::differentiate(const Model& model, const double* q, const double* v, double c) {
  spins_.clear();
  bool rotates = false;
  for (int joint = 0; joint < model.num_joints; ++joint)
    rotates = rotates || model.joint_type[joint] == JointType::free || model.joint_type[joint] == JointType::ball;
  if (!rotates) return;
  move_to(model, q, v);
  spin_derivatives(model, at_, v, c, true, spins_, {mechanisms_.data(), SpinLaw::at_end});
}

void SpinningStart::add_columns(const Model& model, const Changes& changes, double* rows) const {
  const int count = changes.count;
  const int ld = changes.ld;
  for (const SpinDerivative& spin : spins_) {
    // Each dof that moves Delta, in all columns.
    const auto add_of = [&](const double* inputs) {
      return [&, inputs](int k, const double* change) {
        for (int r = 0; r < count; ++r) {
          const double input = inputs[std::size_t(r) * ld + k];
          if (input == 0) continue;
          double* row = rows + std::size_t(r) * ld;
          visit_entries(spin, change, [&](int d, double value) { row[d] += input * value; });
        }
      };
    };
    visit_spin_columns(model, at_, spin, add_of(changes.dv), add_of(changes.dq));

    // A longer step spins further.
    if (!changes.dc) continue;
    double change[6];
    by_time(spin, change);
    for (int r = 0; r < count; ++r) {
      double* row = rows + std::size_t(r) * ld;
      visit_entries(spin, change, [&](int d, double value) { row[d] += changes.fraction * changes.dc[r] * value; });
    }
  }
}

double SpinningStart::add_cotangents(const Model& model, const double* v_bar, double* q, double* v) const {
  double by_c = 0;
  for (const SpinDerivative& spin : spins_) {
    const auto product = [&](const double* change) {
      double sum = 0;
      visit_entries(spin, change, [&](int d, double value) { sum += v_bar[d] * value; });
      return sum;
    };
    visit_spin_columns(
        model, at_, spin, [&](int k, const double* change) { v[k] += product(change); },
        [&](int k, const double* change) { q[k] += product(change); });
    double change[6];
    by_time(spin, change);
    by_c += product(change);
  }
  return by_c;
}

}  // namespace coulomb

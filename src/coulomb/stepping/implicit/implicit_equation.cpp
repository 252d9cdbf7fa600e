#include "coulomb/stepping/implicit/implicit_equation.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/configuration.hpp"

namespace coulomb {

void centre_of_mass(const Model& model, const DynamicsWorkspace& at, int body, double* com) {
  rotate(at.body_rotation.data() + 9 * body, model.body_com.data() + 3 * body, com);
  add3(com, at.body_position.data() + 3 * body, com);
}

std::pair<int, int> tree_coordinates(const Model& model, int tree) {
  const auto first = [&](int t) {
    const int dof = model.tree_first_dof[t];
    return dof < model.nv ? model.joint_q[model.dof_joint[dof]] : model.nq;
  };
  return {first(tree), first(tree + 1)};
}

void copy_tree(const Model& model, int tree, const double* q_from, const double* v_from, double* q, double* v) {
  const auto [first, end] = tree_coordinates(model, tree);
  std::copy(q_from + first, q_from + end, q + first);
  const int first_dof = model.tree_first_dof[tree];
  const int end_dof = model.tree_first_dof[tree + 1];
  std::copy(v_from + first_dof, v_from + end_dof, v + first_dof);
}

ImplicitStage::ImplicitStage(const Model& model)
    : q(model.nq), v_bar(model.nv), w_bar(model.nv), b(model.nv), v_next(model.nv), q_next(model.nq),
      acceleration(model.nv), w(model.nv), turned(model.nv) {}

std::size_t ImplicitStage::bytes() const {
  std::size_t count = 0;
  for (const auto* x : {&q, &v_bar, &w_bar, &b, &v_next, &q_next, &acceleration, &w, &turned})
    count += x->capacity();
  return sizeof *this + count * sizeof(double) + left_out.capacity();
}

void ImplicitStage::leave_out(const Model& model, int tree, const double* q_at) {
  left_out.resize(model.num_trees, 0);
  left_out[tree] = 1;
  const auto [first, end] = tree_coordinates(model, tree);
  std::copy(q_at + first, q_at + end, q.begin() + first);
  for (auto* x : {&v_bar, &w_bar, &b, &v_next})
    std::fill(x->begin() + model.tree_first_dof[tree], x->begin() + model.tree_first_dof[tree + 1], 0.0);
}

void ImplicitStage::follow(const Model& model) {
  for (int d = 0; d < model.nv; ++d)
    w[d] = v_next[d];

  // w = w_bar + c (v+ + b x v+), and where it leads.
  for_each_rotation(model, [&](int d) { add_cross3(b.data() + d, v_next.data() + d, w.data() + d); });
  for (int d = 0; d < model.nv; ++d)
    w[d] = w_bar[d] + c * w[d];
  integrate(model, q.data(), w.data(), q_next.data());

  // a+ = (v+ - E(w) v_bar) / c.
  turned = v_bar;
  if (!explicit_dynamics) {
    integrate_jacobian_times(model, w.data(), IntegrateArgument::q, false, turned.data(), 1, 1);
  }
  for (int d = 0; d < model.nv; ++d)
    acceleration[d] = (v_next[d] - turned[d]) / c;
}

ImplicitEquation::ImplicitEquation(const Model& model)
    : dynamics(model), joint_forces(model), springs(model), contacts(model), forces(model), residual(model.nv),
      scale(model.nv), rounding(model.nv), time_acceleration(model.nv), gains_(model), before_(model), spin_(model),
      base_acceleration_(model.nv), external_(model), constant_(model.nv), constant_scale_(model.nv), term_(model.nv),
      wrench_(8 * model.nv + 8), errors_(2 * model.nv) {
  const std::size_t square = std::size_t(model.nv) * dynamics.ld;
  R_q_T.resize(square);
  R_v_T.resize(square);
}

/// Q += J^T of the user's wrenches.
void ImplicitEquation::add_external(const Model& model, const DynamicsWorkspace& at, double* Q) {
  if (inputs_.fext->empty()) return;
  std::fill(wrench_.begin(), wrench_.end(), 0.0);
  for (int b = 1; b < model.num_bodies; ++b) {
    const int d = model.body_last_dof[b];
    if (d < 0) continue;

    // As wrenches about the trees' references, at the last dofs.
    const double* f = inputs_.fext->data() + 6 * b;
    double com[3];
    double arm[3];
    double moment[3];
    centre_of_mass(model, at, b, com);
    relative_point(model, at, b, com, arm);
    cross3(arm, f, moment);
    for (int i = 0; i < 3; ++i) {
      wrench_[8 * d + i] += f[i];
      wrench_[8 * d + 3 + i] += f[3 + i] + moment[i];
    }
  }

  // From the leaves to the roots.
  for (int d = model.nv - 1; d >= 0; --d) {
    Q[d] += dot6(at.columns.data() + 8 * d, wrench_.data() + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i)
      wrench_[8 * parent + i] += wrench_[8 * d + i];
  }
}

/// The same wrenches at material points, for inverse dynamics' derivatives.
void ImplicitEquation::add_external_forces(const Model& model, const DynamicsWorkspace& at, BodyForces& to) const {
  if (inputs_.fext->empty()) return;
  for (int b = 1; b < model.num_bodies; ++b) {
    double com[3];
    centre_of_mass(model, at, b, com);
    add_body_force(model, at, to, b, com, inputs_.fext->data() + 6 * b);
    add_body_torque(model, to, b, inputs_.fext->data() + 6 * b + 3);
  }
}

/// residual += sign x, and its size to what the residual is measured by.
void ImplicitEquation::term(const double* x, int nv, double sign) {
  for (int d = 0; d < nv; ++d) {
    residual[d] += sign * x[d];
    scale[d] += std::abs(x[d]);
  }
}

void ImplicitEquation::begin(const Model& model, const StepOptions& options, const StageInputs& inputs,
                             const ImplicitStage& stage) {
  inputs_ = inputs;
  explicit_ = stage.explicit_dynamics;

  // Of the stage before.
  spin_.clear();
  spins_.clear();
  if (!explicit_) return;

  // Explicit dynamics: all of the residual that does not depend on v+, (B4).
  const int nv = model.nv;
  kinematics(model, stage.q.data(), before_);
  velocities(model, stage.v_bar.data(), before_);
  mass_matrix(model, before_);
  bias(model, before_);
  joint_forces.clamps.known = false;
  coulomb::joint_forces(model, before_, stage.q.data(), stage.v_bar.data(), inputs.u, joint_forces);
  implicit_gains(model, options.forces_at_end, stage.c, joint_forces, gains_);

  // b - tau - J^T f_ext, those of joints apart
  std::fill(residual.begin(), residual.end(), 0.0);
  std::fill(scale.begin(), scale.end(), 0.0);
  std::fill(term_.begin(), term_.end(), 0.0);
  add_external(model, before_, term_.data());
  term(before_.bias.data(), nv, 1);
  term(inputs.tau, nv, -1);
  term(term_.data(), nv, -1);

  // - M Delta / c, of what spins torque-free
  torque_free_ = options.torque_free_spin;
  if (torque_free_) {
    spin_shift(model, before_, stage.v_bar.data(), stage.c, spin_);
  }
  if (spin_.any) {
    multiply_mass(model, before_, spin_.velocity.data(), term_.data());
    for (double& x : term_)
      x /= stage.c;
    term(term_.data(), nv, -1);
  }

  constant_ = residual;
  constant_scale_ = scale;
}

void ImplicitEquation::evaluate(const Model& model, const StepOptions& options, ImplicitStage& stage) {
  stage.follow(model);
  evaluate_end(model, options, stage);
}

void ImplicitEquation::evaluate_end(const Model& model, const StepOptions& options, const ImplicitStage& stage) {
  const int nv = model.nv;
  kinematics(model, stage.q_next.data(), dynamics);
  velocities(model, stage.v_next.data(), dynamics);

  // The rigid bodies: at (q, v) there is only M a+ and what joints feel of v+ to be added, else all is at (q+, v+).
  if (explicit_) {
    residual = constant_;
    scale = constant_scale_;
    multiply_mass(model, before_, stage.acceleration.data(), term_.data());
    term(term_.data(), nv, 1);

    // Joints, their servos at the bounds that v+ says: -tau + D (v+ - v) + c K v+
    const StepMotion motion{gains_.rule, stage.c, stage.v_bar.data(), stage.v_next.data()};
    if (judge_clamps_at_end(model, motion, ClampRule::at_once, joint_forces)) {
      joint_forces.clamps.known = true;
      coulomb::joint_forces(model, before_, stage.q.data(), stage.v_bar.data(), inputs_.u, joint_forces);
      implicit_gains(model, options.forces_at_end, stage.c, joint_forces, gains_);
    }
    term(joint_forces.tau.data(), nv, -1);
    std::fill(term_.begin(), term_.end(), 0.0);
    gains_.damping.add_product(1, stage.v_next.data(), term_.data());
    gains_.damping.add_product(-1, stage.v_bar.data(), term_.data());
    if (gains_.any_stiffness) gains_.stiffness.add_product(stage.c, stage.v_next.data(), term_.data());
    term(term_.data(), nv, 1);
    std::fill(term_.begin(), term_.end(), 0.0);
  } else {
    std::fill(residual.begin(), residual.end(), 0.0);
    std::fill(scale.begin(), scale.end(), 0.0);
    inverse_dynamics(model, dynamics, stage.acceleration.data(), term_.data());
    coulomb::joint_forces(model, dynamics, stage.q_next.data(), stage.v_next.data(), inputs_.u, joint_forces);
    term(term_.data(), nv, 1);
    term(joint_forces.tau.data(), nv, -1);
    term(inputs_.tau, nv, -1);
    std::fill(term_.begin(), term_.end(), 0.0);
    add_external(model, dynamics, term_.data());
  }

  // Springs and contacts are at (q+, v+) in any case.
  spring_forces(model, dynamics, options.implicit, stage.q_next.data(), stage.v_next.data(), springs, term_.data());
  term(term_.data(), nv, -1);
  if (options.constraints.contact != ContactLaw::penalty || model.pair_a.empty()) return;
  std::fill(term_.begin(), term_.end(), 0.0);
  penalty_forces(model, dynamics, stage.v_next.data(), stage.left_out.empty() ? nullptr : stage.left_out.data(),
                 contacts, term_.data());
  term(term_.data(), nv, -1);
}

/// q_T, v_T += derivatives of ID' - tau (joints: with the joints' forces) at `at`, after derivative_pairs.
void ImplicitEquation::add_rigid_derivatives(const Model& model, const DynamicsWorkspace& at, bool joints, double* q_T,
                                             double* v_T) const {
  const int nv = model.nv;
  const int ld = at.ld;
  add_by_tree(at, at.id_dq_T, q_T, ld);
  add_by_tree(at, at.id_dv_T, v_T, ld);
  for (int d = 0; d < nv && joints; ++d) {
    const int first = model.joint_v[model.dof_joint[d]];
    const int count = joint_num_dofs(model.joint_type[model.dof_joint[d]]);
    for (int j = 0; j < count; ++j) {
      q_T[std::size_t(first + j) * ld + d] -= joint_forces.dtau_dq[6 * d + j];
      v_T[std::size_t(first + j) * ld + d] -= joint_forces.dtau_dv[6 * d + j];
    }
  }
  if (!joints) return;
  for (const CoupledSlope& slope : joint_forces.coupled_slopes) {
    q_T[std::size_t(slope.column) * ld + slope.row] -= slope.dq;
    v_T[std::size_t(slope.column) * ld + slope.row] -= slope.dv;
  }
}

void ImplicitEquation::prepare(const Model& model, const ImplicitStage& stage) {
  forces.clear();
  add_spring_body_forces(model, dynamics, springs, forces);
  add_penalty_body_forces(model, dynamics, contacts, forces);

  // ID' with all forces on bodies at material points.
  if (!explicit_) {
    add_external_forces(model, dynamics, forces);
    mass_matrix(model, dynamics);
    prepare_derivatives(model, dynamics, stage.acceleration.data(), &forces);
  } else {
    // Bodies without inertia: what is left of ID' is -J^T f.
    std::fill(dynamics.inertia.begin(), dynamics.inertia.end(), 0.0);
    std::fill(dynamics.composite.begin(), dynamics.composite.end(), 0.0);
    std::fill(dynamics.vectors.begin(), dynamics.vectors.end(), 0.0);
    prepare_derivatives(model, dynamics, nullptr, &forces);
  }

  // How points and frames move.
  spring_row_derivatives(model, dynamics, springs);
  if (contacts.rows.num_rows > 0) {
    penalty_row_derivatives(model, dynamics, contacts);
  }
}

void ImplicitEquation::differentiate(const Model& model, const ImplicitStage& stage) {
  const int ld = dynamics.ld;
  derivative_pairs(model, dynamics);

  // - dQ of springs and contacts
  std::fill(R_q_T.begin(), R_q_T.end(), 0.0);
  std::fill(R_v_T.begin(), R_v_T.end(), 0.0);
  spring_derivatives(model, dynamics, stage.v_next.data(), springs, R_q_T.data(), R_v_T.data(), ld);
  if (contacts.rows.num_rows > 0) {
    penalty_derivatives(model, dynamics, contacts, R_q_T.data(), R_v_T.data(), ld);
  }
  for (double& x : R_q_T)
    x = -x;
  for (double& x : R_v_T)
    x = -x;

  // + dID' - dtau, and with explicit dynamics D + c K
  add_rigid_derivatives(model, dynamics, !explicit_, R_q_T.data(), R_v_T.data());
  if (!explicit_) return;
  const auto add = [&](double scale, const JointMatrix& x) {
    for (int d = 0; d < model.nv; ++d)
      R_v_T[std::size_t(d) * ld + d] += scale * x.diagonal[d];
    for (const JointMatrix::Entry& e : x.below) {
      R_v_T[std::size_t(e.row) * ld + e.column] += scale * e.value;
      R_v_T[std::size_t(e.column) * ld + e.row] += scale * e.value;
    }
  };
  add(1, gains_.damping);
  if (gains_.any_stiffness) add(stage.c, gains_.stiffness);
}

void ImplicitEquation::prepare_base(const Model& model, const ImplicitStage& stage) {
  if (!explicit_) return;
  const StepMotion motion{gains_.rule, stage.c, stage.v_bar.data(), stage.v_next.data()};
  joint_forces_at_end(model, before_, stage.q.data(), inputs_.u, motion, joint_forces);
  external_.clear();
  add_external_forces(model, before_, external_);

  // Inverse dynamics at (q, v), with the acceleration less what the spin makes.
  for (int d = 0; d < model.nv; ++d)
    base_acceleration_[d] = stage.acceleration[d] - spin_.velocity[d] / stage.c;
  prepare_derivatives(model, before_, base_acceleration_.data(), &external_);
  if (torque_free_) {
    spin_derivatives(model, before_, stage.v_bar.data(), stage.c, true, spins_);
  }
}

void ImplicitEquation::differentiate_base(const Model& model, const ImplicitStage& stage) {
  time_acceleration = explicit_ ? base_acceleration_ : stage.acceleration;
  time_force.clear();
  if (!explicit_) return;
  if (gains_.any_stiffness) {
    time_force.assign(model.nv, 0.0);
    gains_.stiffness.add_product(1, stage.v_next.data(), time_force.data());
  }
  const std::size_t square = R_q_T.size();
  base_q_T.assign(square, 0.0);
  base_v_T.assign(square, 0.0);

  // As R_q and R_v, with the damping's other end.
  derivative_pairs(model, before_);
  add_rigid_derivatives(model, before_, true, base_q_T.data(), base_v_T.data());
  for (int d = 0; d < model.nv; ++d)
    base_v_T[std::size_t(d) * before_.ld + d] -= model.dof_damping[d];

  // And what moves Delta.
  for (const SpinDerivative& spin : spins_)
    subtract_spin(model, spin, stage.c);
}

/// base -= M dDelta / c, and what a longer step changes of Delta.
void ImplicitEquation::subtract_spin(const Model& model, const SpinDerivative& spin, double c) {
  const auto subtract_from = [&](std::vector<double>& base_T) {
    return [&](int k, const double* change) {
      double* column = base_T.data() + std::size_t(k) * before_.ld;
      multiply_mass_of(model, before_, spin, change, [&](int d, double value) { column[d] -= value / c; });
    };
  };
  visit_spin_columns(model, before_, spin, subtract_from(base_v_T), subtract_from(base_q_T));

  // A longer step spins further.
  for (int i = 0; i < 3; ++i) {
    if (spin.linear >= 0) {
      time_acceleration[spin.linear + i] += spin.by[i][SpinDerivative::time];
    }
    time_acceleration[spin.dof + i] += spin.by[3 + i][SpinDerivative::time];
  }
}

ReverseTerms ImplicitEquation::reverse_terms() const {
  ReverseTerms out{explicit_, R_q_T, inertial().mass, joint_forces.dtau_du, {}, {}, time_acceleration, time_force};
  if (explicit_) {
    out.base_q_T = base_q_T;
    out.base_v_T = base_v_T;
  }
  return out;
}

void ImplicitEquation::set_reverse_terms(const ReverseTerms& terms) {
  const auto take = [](std::span<const double> from, std::vector<double>& to) { to.assign(from.begin(), from.end()); };
  explicit_ = terms.explicit_dynamics;
  take(terms.R_q_T, R_q_T);
  take(terms.dtau_du, joint_forces.dtau_du);
  take(terms.time_acceleration, time_acceleration);
  take(terms.time_force, time_force);
  take(terms.mass, (explicit_ ? before_ : dynamics).mass);
  if (!explicit_) return;
  take(terms.base_q_T, base_q_T);
  take(terms.base_v_T, base_v_T);
}

void ImplicitEquation::times_mass(const Model& model, const double* x, double* y) const {
  multiply_mass(model, inertial(), x, y);
}

/// H_T -= (R_a [u])^T.
void ImplicitEquation::subtract_turning(const Model& model, const ImplicitStage& stage, double* H_T) const {
  const int ld = dynamics.ld;
  for_each_rotation(model, [&](int first) {
    for (int j = 0; j < 3; ++j) {
      // Row j of [u]: -u_(j+2) in column j + 1, u_(j+1) in column j + 2, cyclic.
      const int next = first + (j + 1) % 3;
      const int last = first + (j + 2) % 3;
      const int dof = first + j;
      const int depth = model.dof_depth[dof];
      const double u_next = stage.turned[next];
      const double u_last = stage.turned[last];
      const auto add = [&](int d, double mass) {
        H_T[std::size_t(next) * ld + d] += mass * u_last;
        H_T[std::size_t(last) * ld + d] -= mass * u_next;
      };

      // The column of M: dofs above it, then below.
      const int start = model.dof_row[dof];
      for (int k = 0; k <= depth; ++k)
        add(model.dof_path[start + k], dynamics.mass[start + k]);
      for (int d = dof + 1; d < model.dof_subtree_end[dof]; ++d)
        add(d, dynamics.mass[model.dof_row[d] + depth]);
    }
  });
}

void ImplicitEquation::newton_matrix(const Model& model, const ImplicitStage& stage, double* H_T) const {
  // c R_q - R_a [u]
  const DynamicsWorkspace& inertia = inertial();
  const int nv = model.nv;
  const int ld = dynamics.ld;
  for (std::size_t i = 0; i < R_q_T.size(); ++i)
    H_T[i] = stage.c * R_q_T[i];
  if (!explicit_) subtract_turning(model, stage, H_T);

  // ... J_r(w) (1 + [b]), transposed: (1 + [b])^T = 1 - [b]
  integrate_jacobian_times(model, stage.w.data(), IntegrateArgument::w, true, H_T, ld, nv);
  for_each_rotation(model, [&](int first) {
    double* rows = H_T + std::size_t(first) * ld;
    for (int d = 0; d < nv; ++d) {
      const double x[3] = {rows[d], rows[ld + d], rows[2 * ld + d]};
      double turned[3];
      cross3(stage.b.data() + first, x, turned);
      for (int i = 0; i < 3; ++i)
        rows[i * ld + d] -= turned[i];
    }
  });

  // ... + R_v + R_a / c
  for (std::size_t i = 0; i < R_q_T.size(); ++i)
    H_T[i] += R_v_T[i];
  for (int d = 0; d < nv; ++d) {
    const int start = model.dof_row[d];
    for (int k = 0; k <= model.dof_depth[d]; ++k) {
      const int i = model.dof_path[start + k];
      const double mass = inertia.mass[start + k] / stage.c;
      H_T[std::size_t(i) * ld + d] += mass;
      if (i != d) {
        H_T[std::size_t(d) * ld + i] += mass;
      }
    }
  }

  // 1 for trees that the stage leaves out: their cotangents stay zero.
  for (int tree = 0; tree < model.num_trees; ++tree) {
    if (stage.has(tree)) continue;
    for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d) {
      std::fill_n(H_T + std::size_t(d) * ld, nv, 0.0);
      H_T[std::size_t(d) * ld + d] = 1;
    }
  }
}

}  // namespace coulomb

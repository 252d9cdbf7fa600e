// Levels below the last that have right-hand sides of their own (ProblemLinearization::lower_levels; docs/theory.md (L11)): those of
// their velocities and impulses. With z_k, of the multipliers of level k,
//
//   dv+ = P r - W^T B s - sum over k of W_k^T (B_k s_k + B_k J Mh^-1 (r_k - r)),      P of all levels
//
// so that the sweeps of the last level count everything once, and each lower level adds how it differs.
#include <algorithm>

#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

namespace coulomb {

/// Room for all that levels have of their own; it stays.
void StepLinearization::reserve_levels() {
  const auto count = std::size_t(lower_);
  if (lower_parameter_.size() < count) lower_parameter_.resize(count);
  if (z_lower_.size() < count) z_lower_.resize(count);
  if (level_sides_.size() < count) level_sides_.resize(count);
  if (own_z_pointers_.size() < count) own_z_pointers_.resize(count);
  while (other_levels_.size() < count)
    other_levels_.push_back(std::make_unique<LevelState>(*model_));
  for (int index : record_->islands.order)
    if (islands_[index].lower.size() < count) islands_[index].lower.resize(count);
}

/// Labels of a level; those of the last one in islands without it.
void StepLinearization::take_labels(int level, std::vector<Mode>& modes, std::vector<int>& facets) const {
  modes.resize(record_->rows.num_blocks);
  facets.resize(record_->rows.num_blocks);
  for (int index : record_->islands.order) {
    const int own_level = level < islands_[index].problem.lower_levels() ? level : last_level;
    const std::vector<int>& blocks = island(index).blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const ProblemLinearization::Label label = islands_[index].problem.label(own_level, int(b));
      modes[blocks[b]] = label.mode;
      facets[blocks[b]] = label.facet;
    }
  }
}

/// What remembered impulses add to the velocities of level 0.
void StepLinearization::find_fixed_velocity() {
  const StepRecord& r = *record_;
  fixed_.assign(r.solution.centre.size(), 0.0);
  if (fixed_.empty()) return;
  for (int index : r.islands.order) {
    if (lower_levels(index) == 0) continue;
    const std::vector<int>& rows = island(index).rows;
    if (local_.size() < rows.size()) local_.resize(rows.size());
    islands_[index].problem.velocity_of_centre(local_.data());
    for (std::size_t i = 0; i < rows.size(); ++i)
      fixed_[rows[i]] = local_[i];
  }
}

/// Impulses and velocities of a level; those of the last one in islands without it.
void StepLinearization::prepare_lower_level(int index_of_level) {
  const Model& model = *model_;
  StepRecord& r = *record_;
  LevelState& level = *other_levels_[index_of_level];
  if (index_of_level == 0) find_fixed_velocity();
  level.lambda = r.solution.lambda;
  level.v_next = r.v_next;
  for (int index : r.islands.order) {
    if (lower_levels(index) <= index_of_level) continue;
    const std::vector<int>& rows = island(index).rows;
    if (local_.size() < rows.size()) local_.resize(rows.size());
    islands_[index].problem.impulses(index_of_level, local_.data());
    for (std::size_t i = 0; i < rows.size(); ++i)
      level.lambda[rows[i]] = local_[i];
  }

  // Its velocity, of the trees concerned.
  std::fill_n(level.acceleration.data(), model.nv, 0.0);
  apply_rows_transposed(model, r.dynamics, r.rows, level.lambda.data(), link_wrench_.data(), level.acceleration.data());
  solve_mass(model, r.dynamics, level.acceleration.data());
  for (int t = 0; t < model.num_trees; ++t) {
    if (lower_levels(r.islands.of_tree(t)) <= index_of_level) continue;
    for (int d = model.tree_first_dof[t]; d < model.tree_first_dof[t + 1]; ++d)
      level.v_next[d] = r.v_free[d] + level.acceleration[d];
  }
  prepare_motion(level, index_of_level);
}

/// Derivatives at a level whose velocity and impulses are known, in the place of the last one, whose own are prepared after it.
void StepLinearization::prepare_motion(LevelState& state, int level) {
  const Model& model = *model_;
  StepRecord& r = *record_;
  for (int d = 0; d < model.nv; ++d)
    state.acceleration[d] = (state.v_next[d] - r.v[d] - r.spin.velocity[d]) / options_->constraints.timestep;
  link_twists(model, r.dynamics, state.v_next.data(), state.twist_next.data());
  velocities(model, r.dynamics, state.v_next.data(), state.body_twist.data(), state.rate_next.data());

  // Joint forces at the end of the step are those of this velocity; who is at a bound is known.
  if (r.joint_forces.at_end) {
    const StepMotion motion{r.gains.rule, options_->constraints.timestep, r.v.data(), state.v_next.data()};
    state.joint_forces.clamps = r.joint_forces.clamps;
    state.joint_forces.clamps.known = true;
    joint_forces(model, r.dynamics, r.configuration(), r.v.data(), r.u.data(), state.joint_forces);
    joint_forces_at_end(model, r.dynamics, r.configuration(), r.u.data(), motion, state.joint_forces);
  }
  exchange_states(level);
  prepare_level(model);
  exchange_states(level);
}

void StepLinearization::exchange_levels(int level) {
  exchange_states(level);

  // What the dynamics keep of a level is computed again.
  prepare_derivatives(*model_, record_->dynamics, acceleration_.data(), &forces_);
}

void StepLinearization::exchange_states(int level) {
  LevelState& other = level_state(level);
  StepRecord& r = *record_;
  std::swap(r.v_next, other.v_next);
  std::swap(acceleration_, other.acceleration);
  std::swap(r.solution.lambda, other.lambda);
  std::swap(modes_, other.modes);
  std::swap(facets_, other.facets);
  std::swap(r.twist_next, other.twist_next);
  std::swap(rate_next_, other.rate_next);
  std::swap(body_twist_, other.body_twist);
  std::swap(rows_, other.rows);
  std::swap(forces_, other.forces);
  if (r.joint_forces.at_end) std::swap(r.joint_forces, other.joint_forces);
  if (level < last_level) std::swap(inactive_, other.inactive);
  level_ = level_ == last_level ? level : last_level;
}

/// r and B s of a lower level, beside those of the last one. What the dynamics keep is this level's afterwards.
void StepLinearization::prepare_matrices_of_level(int level) {
  const auto exchange = [&] {
    for (int index : record_->islands.order) {
      IslandMatrices& x = islands_[index];
      IslandMatrices::Lower& own = x.lower[level];
      std::swap(x.r_q, own.r_q);
      std::swap(x.Bs_q, own.Bs_q);
      std::swap(x.Bs_v, own.Bs_v);
    }
    exchange_states(level);
  };
  exchange();
  prepare_derivatives(*model_, record_->dynamics, acceleration_.data(), &forces_);
  derivative_pairs(*model_, record_->dynamics);
  right_hand_sides();
  row_columns();
  exchange();
  for (int index : record_->islands.order)
    r_q_of_[index] = islands_[index].r_q.data();
}

void StepLinearization::subtract_level(int index, int level, const double* r_k_T, const double* r_T, const double* Bs_k,
                                       int count, double* dv_T) {
  const IslandMatrices::Lower& own = islands_[index].lower[level];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);

  // The rows' own part, then how r differs from that of the last level.
  if (Bs_k)
    multiply(Product::subtract, transposed(Bs_k, count, reduced_size(index, level), padded(count)), own.W.data(), dv_T,
             ld, ld, product_);
  if (r_k_T == r_T) return;
  const std::size_t size = std::size_t(count) * ld;
  make_room(difference_, size);
  for (std::size_t i = 0; i < size; ++i)
    difference_[i] = r_k_T[i] - r_T[i];
  multiply(Product::subtract, rows_of(difference_.data(), count, nv, ld), own.P_T.data(), dv_T, ld, ld, product_);
}

/// level_y_ = Mh^-1 J^T z, what multipliers z of a level do to its momenta.
void StepLinearization::find_level_y(const double* z) {
  const Model& model = *model_;
  StepRecord& r = *record_;
  for (auto* values : {&signed_y_, &id_q_, &id_v_})
    make_room(*values, model.nv);
  still_.assign(model.nv, 0.0);
  level_y_.assign(model.nv, 0.0);
  apply_rows_transposed(model, r.dynamics, r.rows, z, link_wrench_.data(), level_y_.data());
  solve_mass(model, r.dynamics, level_y_.data());
}

/// Where joint forces act at the end of the step, what they depend on differs from level to level: signed_y_ . r, to q and to the controls.
void StepLinearization::add_joint_forces_of_level(double* q) {
  const Model& model = *model_;
  const JointForces& forces = record_->joint_forces;
  const double h = options_->constraints.timestep;
  if (!forces.at_end) return;
  for (int d = 0; d < model.nv; ++d) {
    const int joint = model.dof_joint[d];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j)
      q[model.joint_v[joint] + j] += h * forces.dtau_dq[6 * d + j] * signed_y_[d];
  }
  for (const CoupledSlope& slope : forces.coupled_slopes)
    q[slope.column] += h * slope.dq * signed_y_[slope.row];

  level_u_.resize(model.nu);
  for (int k = 0; k < model.nu; ++k) {
    const ActuatorDofs dofs = actuator_dofs(model, k);
    for (int j = 0; j < dofs.num; ++j)
      level_u_[k] += h * forces.dtau_du[max_actuator_dofs * k + j] * signed_y_[dofs.dof[j]];
  }
}

/// Do levels, or the motions of corrections, differ in what a control makes of the joint forces? Where a gain depends on the speed at the end.
bool StepLinearization::controls_feel_levels() const {
  if (lower_ + num_bounded_ == 0 || !record_->joint_forces.at_end) return false;
  return std::any_of(model_->actuators.begin(), model_->actuators.end(),
                     [](const Actuator& a) { return a.joint >= 0 && (a.gain[1] != 0 || a.gain[2] != 0); });
}

/// B_T row by row, from products backward: nu x 2 nv.
std::vector<double> StepLinearization::control_rows() {
  const std::size_t nv = model_->nv;
  std::vector<double> out(2 * nv * model_->nu);
  std::vector<double> weights(2 * nv, 0.0);
  StepCotangent back;
  for (std::size_t i = 0; i < 2 * nv; ++i) {
    weights[i] = 1;
    vjp(weights.data(), weights.data() + nv, back, nullptr);
    weights[i] = 0;
    for (int k = 0; k < model_->nu; ++k)
      out[2 * nv * k + i] = back.u[k];
  }
  return out;
}

/// Both right-hand sides of the level in place: q (nv) and the set's parameters += sign level_y_ . r + z . s.
void StepLinearization::add_sides(double sign, const double* z, double* q, const ParameterSet* set,
                                  double* parameters) {
  const Model& model = *model_;
  const int nv = model.nv;
  const double h = options_->constraints.timestep;
  for (int d = 0; d < nv; ++d)
    signed_y_[d] = sign * level_y_[d];
  inverse_dynamics_vjp(model, record_->dynamics, signed_y_.data(), id_q_.data(), id_v_.data());
  for (int d = 0; d < nv; ++d)
    q[d] -= h * id_q_[d];
  row_derivatives_vjp(row_state(), rows_, {signed_y_.data(), z}, row_sweep_, q);
  add_joint_forces_of_level(q);
  if (!set || set->size() == 0) return;
  parameter_gradient(*set, still_.data(), signed_y_.data(), z, gradient_);
  for (std::size_t k = 0; k < gradient_.size(); ++k)
    parameters[k] += gradient_[k];
}

/// Both sides with the multipliers of the lower level: what belongs to it was counted with the last one's.
void StepLinearization::add_level_difference(int level, const double* z, StepCotangent& out, const ParameterSet* set) {
  const int n = record_->rows.num_rows;
  find_level_y(z);

  // Off the last level, onto this one.
  make_room(signed_z_, n);
  for (int i = 0; i < n; ++i)
    signed_z_[i] = -z[i];
  add_sides(-1, signed_z_.data(), out.q.data(), set, out.parameters.data());
  exchange_levels(level);
  add_sides(1, z, out.q.data(), set, out.parameters.data());
  exchange_levels(level);
}

}  // namespace coulomb

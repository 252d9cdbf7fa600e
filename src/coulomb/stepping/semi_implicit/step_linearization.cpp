#include "coulomb/stepping/semi_implicit/step_linearization.hpp"

#include <algorithm>

#include "coulomb/base/simd.hpp"
#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/motion/smoothed_motion.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/stepping/implicit/implicit_springs.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"

namespace coulomb {
namespace {

constexpr double doubtful_margin = 1e-8;  // of modes: a tie
constexpr double held_speed = 1e-8;       // m/s, rad/s: with which an open limit hardly opens

COULOMB_SIMD void add_scaled(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int i = 0; i < n; ++i)
    y[i] += a * x[i];
}

/// Rows (h x, x) of n + n entries, x = scale * row of dv_T.
COULOMB_SIMD void store_rows(const double* __restrict dv_T, int n, int ld, double scale, double h,
                             double* __restrict out) {
  for (int k = 0; k < n; ++k) {
    const double* from = dv_T + static_cast<long>(k) * ld;
    double* position = out + static_cast<long>(2) * n * k;
    double* velocity = position + n;
    for (int d = 0; d < n; ++d) {
      const double x = scale * from[d];
      position[d] = h * x;
      velocity[d] = x;
    }
  }
}

/// Do impulses of this mode depend on the motion?
bool has_impulse_of_motion(Mode mode) { return mode != Mode::separating && mode != Mode::lower && mode != Mode::upper; }

/// Copies rows (dq1, dv1) of an island, 2 x size each, among those of all dofs from row `first_row` on.
void store_island(const Model& model, const Island& own, const double* columns_T, std::size_t first_row,
                  std::vector<double>& to) {
  const std::size_t nv = model.nv;
  const std::size_t size = own.num_dofs();
  for (std::size_t s = 0; s < own.trees.size(); ++s)
    for (int k = own.tree_start[s]; k < own.tree_start[s + 1]; ++k) {
      // The row of this dof; in it the dofs of every tree lie together.
      const double* from = columns_T + 2 * size * k;
      double* row = to.data() + 2 * nv * (first_row + model.tree_first_dof[own.trees[s]] + k - own.tree_start[s]);
      for (std::size_t t = 0; t < own.trees.size(); ++t) {
        const int first = model.tree_first_dof[own.trees[t]];
        const int start = own.tree_start[t];
        const int count = own.tree_start[t + 1] - start;
        std::copy_n(from + start, count, row + first);
        std::copy_n(from + size + start, count, row + nv + first);
      }
    }
}

}  // namespace

StepLinearization::StepLinearization(const Model& model)
    : model_(&model), forces_(model), islands_(model.num_trees + 1), acceleration_(model.nv), rate_next_(8 * model.nv),
      body_twist_(8 * model.num_bodies), r_q_of_(model.num_trees + 1), s_of_(model.num_trees + 1), w_(model.nv),
      identity_(model.nv), link_wrench_(8 * model.nv) {
  // Rotations, tree by tree.
  tree_rotations_.assign(model.num_trees + 1, 0);
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::ball && type != JointType::free) continue;
    rotations_.emplace_back().dof = model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    ++tree_rotations_[model.body_tree[model.joint_body[joint]] + 1];
  }
  for (int t = 0; t < model.num_trees; ++t)
    tree_rotations_[t + 1] += tree_rotations_[t];
}

RowVelocities StepLinearization::row_velocities() const {
  return {record_->twist_next.data(), rate_next_.data(), record_->twist.data(), record_->dynamics.column_rate.data()};
}

/// Force and torque of a block's impulses (impulses / h), on body a at its point and against body b.
void StepLinearization::add_block_forces(const BodyRows& b) {
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  double force[3] = {0, 0, 0};
  for (int i = 0; i < 3; ++i)
    axpy3(r.solution.lambda[b.row + i] / h, b.axes[i], force);
  const double minus_force[3] = {-force[0], -force[1], -force[2]};
  add_body_force(*model_, r.dynamics, forces_, b.body_a, b.point_a, force);
  add_body_force(*model_, r.dynamics, forces_, b.body_b, b.point_b, minus_force);

  // Rows beyond the third keep a rotation, too.
  if (b.size == 3) return;
  double torque[3];
  block_torque(b, r.solution.lambda.data() + b.row, torque);
  for (double& x : torque)
    x /= h;
  const double minus_torque[3] = {-torque[0], -torque[1], -torque[2]};
  add_body_torque(*model_, forces_, b.body_a, torque);
  add_body_torque(*model_, forces_, b.body_b, minus_torque);
}

/// Forces of the step at material points of the bodies, as ID' wants them.
void StepLinearization::collect_forces() {
  const StepRecord& r = *record_;
  forces_.clear();
  for (const BodyRows& b : r.rows.body_rows)
    if (!inactive_[b.block]) add_block_forces(b);

  // The user's act at centres of mass.
  if (r.fext.empty()) return;
  for (int b = 1; b < model_->num_bodies; ++b) {
    double com[3];
    rotate(r.dynamics.body_rotation.data() + 9 * b, model_->body_com.data() + 3 * b, com);
    add3(com, r.dynamics.body_position.data() + 3 * b, com);
    add_body_force(*model_, r.dynamics, forces_, b, com, r.fext.data() + 6 * b);
    add_body_torque(*model_, forces_, b, r.fext.data() + 6 * b + 3);
  }
}

void StepLinearization::prepare(const Model& model, const StepOptions& options, StepRecord& record, const StepMemory&) {
  // Nothing is known of this step yet.
  model_ = &model;
  options_ = &options;
  record_ = &record;
  have_jacobian_ = false;
  have_matrices_ = false;
  ambiguous_parameters_ = false;
  ambiguous_ = Known::unknown;
  has_unresolved_ = Known::unknown;

  // Joints as the step feels them, which is known now.
  joint_forces_at_end(model, record.dynamics, record.configuration(), record.u.data(),
                      {record.gains.rule, options.constraints.timestep, record.v.data(), record.v_next.data()},
                      record.joint_forces);

  // Motion at v+, forces and modes of its solution, then derivatives at every level, the last one last: it stays in place.
  link_twists(model, record.dynamics, record.v_next.data(), record.twist_next.data());
  velocities(model, record.dynamics, record.v_next.data(), body_twist_.data(), rate_next_.data());
  prepare_spins();
  prepare_problems();
  find_inactive();
  for (int level = 0; level < lower_; ++level)
    prepare_lower_level(level);
  prepare_corrections();
  prepare_level(model);

  // Products do not allocate.
  adjoint_.reserve(model.nv, record.rows.num_rows);
  for (auto* values : {&unresolved_, &further_z_})
    make_room(*values, record.rows.num_rows);
  make_room(leftover_, 2 * std::size_t(model.nv));
}

/// Forces account for the change of velocity less the spins' own.
void StepLinearization::prepare_spins() {
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  acceleration_ = r.acceleration;
  spins_.clear();
  have_all_spins_ = false;
  if (!r.spin.any) return;
  for (int d = 0; d < model_->nv; ++d)
    acceleration_[d] -= r.spin.velocity[d] / h;
  spin_derivatives(*model_, r.dynamics, r.v.data(), h, false, spins_, {r.flying()});
}

/// The linearized problem of every island, at all levels of its solution.
void StepLinearization::prepare_problems() {
  StepRecord& r = *record_;
  r.islands.scatter_labels(r.solution);
  lower_ = 0;
  level_ = last_level;
  for (int index : r.islands.order) {
    const Island& own = island(index);
    if (own.blocks.empty()) continue;
    islands_[index].problem.build(own.problem, own.solution);
    lower_ = std::max(lower_, lower_levels(index));
  }
  reserve_levels();
}

/// Blocks whose impulse is fixed at every level: their rows move nothing.
void StepLinearization::find_inactive() {
  const ConstraintRows& rows = record_->rows;
  inactive_.assign(rows.num_blocks, 1);
  const auto activate = [&](const std::vector<Mode>& modes) {
    for (int b = 0; b < rows.num_blocks; ++b)
      if (has_impulse_of_motion(modes[b])) inactive_[b] = 0;
  };
  take_labels(last_level, modes_, facets_);
  activate(modes_);
  for (int level = 0; level < lower_; ++level) {
    take_labels(level, other_levels_[level]->modes, other_levels_[level]->facets);
    activate(other_levels_[level]->modes);
  }

  // Of limits that touch state_ambiguous asks for the motion.
  const auto& solution = record_->solution;
  for (int b = 0; b < rows.num_blocks; ++b) {
    const bool touches = solution.margin[b] < doubtful_margin || solution.c[rows.blocks[b].row] <= held_speed;
    if (rows.blocks[b].type == BlockType::limit && touches) inactive_[b] = 0;
  }
}

/// Forces, inverse dynamics and rows at the velocities and impulses in place.
void StepLinearization::prepare_level(const Model& model) {
  StepRecord& record = *record_;
  collect_forces();
  prepare_derivatives(model, record.dynamics, acceleration_.data(), &forces_);

  // Contacts move as the collision stage has them, or as the average of perturbed ones.
  const GradientOptions& gradient = options_->gradient;
  const SmoothedMotion smoothed(model, record.collision, gradient.samples, gradient.scale, gradient.seed);
  coulomb::row_derivatives(row_state(), record.collision.contacts, rows_,
                           gradient.mode == GradientMode::smoothed_collision ? &smoothed : nullptr);
}

/// Calls visit(rotation, its first dof among the island's own).
template <class Visit>
void StepLinearization::for_each_rotation(int index, Visit visit) const {
  const Island& own = island(index);
  for (std::size_t t = 0; t < own.trees.size(); ++t) {
    const int tree = own.trees[t];
    const int shift = own.tree_start[t] - model_->tree_first_dof[tree];
    for (int i = tree_rotations_[tree]; i < tree_rotations_[tree + 1]; ++i)
      visit(rotations_[i], rotations_[i].dof + shift);
  }
}

/// Columns (dq1, dv1) from their velocity part scale * dv_T (rows of ld): dq1 = h d(+)/dw dv1.
void StepLinearization::store_columns(int index, const double* dv_T, double scale, double* columns_T) {
  const int nv = island(index).num_dofs();
  store_rows(dv_T, nv, padded(nv), scale, options_->constraints.timestep, columns_T);

  // A row holds dq1^T: right-multiplying by (d(+)/dw)^T applies d(+)/dw to every column.
  for_each_rotation(index, [&](const Rotation& rotation, int first) {
    const double* j = rotation.by_w;
    for (int k = 0; k < nv; ++k) {
      double* row = columns_T + std::size_t(2) * nv * k + first;
      const double x = row[0];
      const double y = row[1];
      const double z = row[2];
      row[0] = x * j[0] + y * j[3] + z * j[6];
      row[1] = x * j[1] + y * j[4] + z * j[7];
      row[2] = x * j[2] + y * j[5] + z * j[8];
    }
  });
}

/// Adds d(+)/dq to the position part of the columns of q: the identity, but for the 3 x 3 blocks of rotations.
void StepLinearization::add_integrate_jacobian(int index, double* columns_T) {
  const std::size_t nv = island(index).num_dofs();
  double* identity = identity_.data();
  std::fill_n(identity, nv, 1.0);
  for_each_rotation(index, [&](const Rotation& rotation, int first) {
    for (int i = 0; i < 3; ++i) {
      identity[first + i] = 0;
      for (int j = 0; j < 3; ++j)
        columns_T[2 * nv * (first + i) + first + j] += rotation.by_q[3 * i + j];
    }
  });
  for (std::size_t d = 0; d < nv; ++d)
    columns_T[2 * nv * d + d] += identity[d];
}

/// (L4): the columns of right-hand sides r_T of the momentum balance and Bs of the rows.
void StepLinearization::velocity_columns(int index, const std::vector<double>& r_T, const double* Bs,
                                         double* columns_T) {
  const IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);
  const int m = reduced_size(index);
  make_room(out_, std::size_t(nv) * ld);
  multiply(Product::set, rows_of(r_T.data(), nv, nv, ld), x.P_T.data(), out_.data(), ld, ld, product_);
  if (Bs) multiply(Product::subtract, transposed(Bs, nv, m, ld), x.W.data(), out_.data(), ld, ld, product_);

  // Lower levels have sides of their own, which differ by q; by v in bounces alone.
  for (int level = 0; level < lower_levels(index); ++level) {
    const IslandMatrices::Lower& own = x.lower[level];
    const bool of_q = &r_T == &x.r_q;
    const double* own_Bs = of_q ? own.Bs_q.data() : x.bounces ? own.Bs_v.data() : nullptr;
    subtract_level(index, level, of_q ? own.r_q.data() : r_T.data(), r_T.data(), own_Bs, nv, out_.data());
  }
  store_columns(index, out_.data(), 1.0, columns_T);
}

void StepLinearization::island_columns(int index, double* A_T, double* B_tau_T) {
  const IslandMatrices& x = islands_[index];
  const std::size_t nv = island(index).num_dofs();
  if (nv == 0) return;
  const bool rows = reduced_size(index) > 0;
  velocity_columns(index, x.r_q, rows ? x.Bs_q.data() : nullptr, A_T);
  velocity_columns(index, x.r_v, rows && x.bounces ? x.Bs_v.data() : nullptr, A_T + 2 * nv * nv);
  add_integrate_jacobian(index, A_T);
  store_columns(index, x.P_T.data(), options_->constraints.timestep, B_tau_T);
}

const StepDerivatives& StepLinearization::jacobian() {
  if (have_jacobian_) return *derivatives_;
  StepDerivatives& out = writable_derivatives(*model_);
  have_jacobian_ = true;
  out.ambiguous = state_ambiguous();
  prepare_matrices();

  // One island is the whole matrix; several are blocks of it.
  const Model& model = *model_;
  const Islands& islands = record_->islands;
  if (islands.order.empty() || !islands.is_whole(model, islands.order[0])) {
    std::fill(out.A_T.begin(), out.A_T.end(), 0.0);
    std::fill(out.B_tau_T.begin(), out.B_tau_T.end(), 0.0);
  }
  for (int index : islands.order) {
    if (islands.is_whole(model, index)) {
      island_columns(index, out.A_T.data(), out.B_tau_T.data());
      continue;
    }
    const std::size_t size = island(index).num_dofs();
    make_room(A_T_, 4 * size * size);
    make_room(B_tau_T_, 2 * size * size);
    island_columns(index, A_T_.data(), B_tau_T_.data());
    store_island(model, island(index), A_T_.data(), 0, out.A_T);
    store_island(model, island(index), A_T_.data() + 2 * size * size, model.nv, out.A_T);
    store_island(model, island(index), B_tau_T_.data(), 0, out.B_tau_T);
  }
  actuator_columns(out);
  if (controls_feel_levels()) out.B_T = control_rows();
  return out;
}

/// B_T, from the columns of joint forces: what a control makes of these.
void StepLinearization::actuator_columns(StepDerivatives& out) const {
  const Model& model = *model_;
  const std::size_t nv = model.nv;
  for (int k = 0; k < model.nu; ++k) {
    double* row = out.B_T.data() + 2 * nv * k;
    std::fill_n(row, 2 * nv, 0.0);
    const ActuatorDofs dofs = actuator_dofs(model, k);
    for (int j = 0; j < dofs.num; ++j) {
      const double gain = record_->joint_forces.dtau_du[max_actuator_dofs * k + j];
      if (gain != 0) add_scaled(gain, out.B_tau_T.data() + 2 * nv * dofs.dof[j], static_cast<int>(2 * nv), row);
    }
  }
}

/// The same of one island's actuators.
void StepLinearization::add_actuator_columns(int index, SparseStepDerivatives::Island& out) const {
  const Model& model = *model_;
  const Islands& islands = record_->islands;
  const std::size_t size = out.dofs.size();
  out.B_T.assign(2 * size * out.actuators.size(), 0.0);
  for (std::size_t k = 0; k < out.actuators.size(); ++k) {
    const int actuator = out.actuators[k];
    const ActuatorDofs dofs = actuator_dofs(model, actuator);
    double* row = out.B_T.data() + 2 * size * k;
    for (int j = 0; j < dofs.num; ++j) {
      const double gain = record_->joint_forces.dtau_du[max_actuator_dofs * actuator + j];
      if (gain == 0) continue;

      // Its place among the dofs of the island.
      const int tree = model.body_tree[model.dof_body[dofs.dof[j]]];
      const int own =
          dofs.dof[j] - model.tree_first_dof[tree] + islands.pool[index].tree_start[islands.tree_index[tree]];
      add_scaled(gain, out.B_tau_T.data() + 2 * size * own, static_cast<int>(2 * size), row);
    }
  }
}

std::shared_ptr<SparseStepDerivatives> StepLinearization::sparse_jacobian() {
  const Model& model = *model_;
  const Islands& islands = record_->islands;
  prepare_matrices();
  auto result = std::make_shared<SparseStepDerivatives>();
  result->nv = model.nv;
  result->nu = model.nu;
  result->ambiguous = state_ambiguous();

  // Islands that have dofs, in the order of the record; of_island: their places in the result.
  std::vector<int> of_island(islands.pool.size(), -1);
  for (int index : islands.order) {
    const Island& own = island(index);
    if (own.num_dofs() == 0) continue;
    of_island[index] = static_cast<int>(result->islands.size());
    SparseStepDerivatives::Island& out = result->islands.emplace_back();
    for (int tree : own.trees)
      for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d)
        out.dofs.push_back(d);

    const std::size_t size = out.dofs.size();
    out.A_T.resize(4 * size * size);
    out.B_tau_T.resize(2 * size * size);
    island_columns(index, out.A_T.data(), out.B_tau_T.data());
  }

  // Every actuator belongs to the island of its joint or tendon.
  for (int k = 0; k < model.nu; ++k) {
    const int tree = actuator_tree(model, k);
    result->islands[of_island[islands.of_tree(tree)]].actuators.push_back(k);
  }
  for (int index : islands.order)
    if (of_island[index] >= 0) add_actuator_columns(index, result->islands[of_island[index]]);
  if (!controls_feel_levels()) return result;

  const std::vector<double> rows = control_rows();
  for (SparseStepDerivatives::Island& own : result->islands) {
    const std::size_t size = own.dofs.size();
    for (std::size_t k = 0; k < own.actuators.size(); ++k)
      for (std::size_t i = 0; i < 2 * size; ++i)
        own.B_T[2 * size * k + i] = rows[2 * std::size_t(model.nv) * own.actuators[k] +
                                         (i < size ? own.dofs[i] : model.nv + own.dofs[i - size])];
  }
  return result;
}

}  // namespace coulomb

#include "coulomb/stepping/step_linearization.hpp"

#include <algorithm>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/simd.hpp"
#include "coulomb/small_math.hpp"
#include "coulomb/stepping/semi_implicit.hpp"
#include "coulomb/stepping/step_average.hpp"

namespace coulomb {
namespace {

constexpr double doubtful_margin = 1e-8;  // of modes: a tie
constexpr double held_speed = 1e-8;       // m/s, rad/s: with which an open limit hardly opens

COULOMB_SIMD void add_scaled(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int i = 0; i < n; ++i) y[i] += a * x[i];
}

/// Rows (h x, x) of n + n entries, x = scale * row of dv_T.
COULOMB_SIMD void store_rows(const double* __restrict dv_T, int n, int ld, double scale, double h,
                             double* __restrict out) {
  for (int k = 0; k < n; ++k) {
    const double* from = dv_T + static_cast<long>(k) * ld;
    double *position = out + static_cast<long>(2) * n * k, *velocity = position + n;
    for (int d = 0; d < n; ++d) {
      const double x = scale * from[d];
      position[d] = h * x;
      velocity[d] = x;
    }
  }
}

void add_torque(const Model& model, BodyForces& forces, int body, const double* torque) {
  if (model.body_last_dof[body] < 0) return;
  double* wrench = forces.wrench.data() + 8 * body;
  double* E = forces.moment.data() + 9 * body;
  for (int i = 0; i < 3; ++i) wrench[3 + i] += torque[i];
  E[1] -= torque[2], E[2] += torque[1], E[3] += torque[2], E[5] -= torque[0], E[6] -= torque[1], E[7] += torque[0];
}

}  // namespace

StepLinearization::StepLinearization(const Model& model)
    : model_(&model), forces_(model), islands_(model.num_trees + 1), acceleration_(model.nv), rate_next_(8 * model.nv),
      body_twist_(8 * model.num_bodies), r_q_of_(model.num_trees + 1), s_of_(model.num_trees + 1), w_(model.nv),
      scratch_(32 * model.nv + 8) {
  tree_rotations_.assign(model.num_trees + 1, 0);
  for (int joint = 0; joint < model.num_joints; ++joint) {
    const JointType type = model.joint_type[joint];
    if (type != JointType::ball && type != JointType::free) continue;
    rotations_.emplace_back().dof = model.joint_v[joint] + (type == JointType::free ? 3 : 0);
    ++tree_rotations_[model.body_tree[model.joint_body[joint]] + 1];
  }
  for (int t = 0; t < model.num_trees; ++t) tree_rotations_[t + 1] += tree_rotations_[t];
}

StepLinearization::StepLinearization(const StepLinearization& other) : StepLinearization(*other.model_) {}
StepLinearization::~StepLinearization() = default;

RowVelocities StepLinearization::row_velocities() const {
  return {record_->twist_next.data(), rate_next_.data(), record_->twist.data(), record_->dynamics.column_rate.data()};
}

// Forces of the step (impulses / h) at material points of the bodies, as ID' wants them.
void StepLinearization::collect_forces() {
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  forces_.clear();
  for (const BodyRows& b : r.rows.body_rows) {
    if (inactive_[b.block]) continue;
    double f[3] = {0, 0, 0}, minus[3], torque[3] = {0, 0, 0};
    for (int i = 0; i < 3; ++i) axpy3(r.solution.lambda[b.row + i] / h, b.axes[i], f);
    for (int i = 0; i < 3; ++i) minus[i] = -f[i];
    add_body_force(*model_, r.dynamics, forces_, b.body_a, b.point_a, f);
    add_body_force(*model_, r.dynamics, forces_, b.body_b, b.point_b, minus);
    if (b.size == 3) continue;
    for (int i = 0; i < 3; ++i) torque[i] = b.torque_scale * r.solution.lambda[b.row + 3 + i] / h;
    add_torque(*model_, forces_, b.body_a, torque);
    for (double& t : torque) t = -t;
    add_torque(*model_, forces_, b.body_b, torque);
  }
  if (r.fext.empty()) return;
  for (int b = 1; b < model_->num_bodies; ++b) {
    double com[3];
    rotate(r.dynamics.body_rotation.data() + 9 * b, model_->body_com.data() + 3 * b, com);
    add3(com, r.dynamics.body_position.data() + 3 * b, com);
    add_body_force(*model_, r.dynamics, forces_, b, com, r.fext.data() + 6 * b);
    add_torque(*model_, forces_, b, r.fext.data() + 6 * b + 3);
  }
}

void StepLinearization::prepare(const Model& model, const StepOptions& options, StepRecord& record,
                                const StepMemory& memory) {
  prepare_exact(model, options, record);
  if (options.gradient.mode != GradientMode::smoothed_step) return;
  if (!average_) average_ = std::make_unique<StepAverage>();
  use_average_ = average_->prepare_samples(model, options, record, memory);
  ambiguous_ = use_average_ ? Known::no : Known::yes;
}

void StepLinearization::prepare_exact(const Model& model, const StepOptions& options, StepRecord& record) {
  model_ = &model, options_ = &options, record_ = &record;
  have_jacobian_ = have_matrices_ = false;
  const ConstraintRows& rows = record.rows;
  link_twists(model, record.dynamics, record.v_next.data(), record.twist_next.data());
  velocities(model, record.dynamics, record.v_next.data(), body_twist_.data(), rate_next_.data());
  use_average_ = ambiguous_parameters_ = false;
  ambiguous_ = has_unresolved_ = Known::unknown;

  // Forces account for the change of velocity less the spins' own.
  acceleration_ = record.acceleration;
  if (record.spin.any)
    for (int d = 0; d < model.nv; ++d) acceleration_[d] -= record.spin.velocity[d] / options.constraints.timestep;
  spins_.clear();
  have_all_spins_ = false;
  if (record.spin.any)
    spin_derivatives(model, record.dynamics, record.v.data(), options.constraints.timestep, false, spins_);
  record.islands.scatter_labels(record.solution);
  lower_ = 0;
  level_ = last_level;
  for (int index : record.islands.order) {
    const Island& own = island(index);
    if (own.blocks.empty()) continue;
    islands_[index].problem.build(own.problem, own.solution);
    lower_ = std::max(lower_, lower_levels(index));
  }
  reserve_levels();
  take_labels(last_level, modes_, facets_);
  inactive_.assign(rows.num_blocks, 1);
  const auto activate = [&](const std::vector<Mode>& modes) {
    for (int b = 0; b < rows.num_blocks; ++b)
      if (modes[b] != Mode::separating && modes[b] != Mode::lower && modes[b] != Mode::upper) inactive_[b] = 0;
  };
  activate(modes_);
  for (int level = 0; level < lower_; ++level) {
    take_labels(level, other_levels_[level]->modes, other_levels_[level]->facets);
    activate(other_levels_[level]->modes);
  }
  for (int b = 0; b < rows.num_blocks; ++b) {
    const bool touches =
        record.solution.margin[b] < doubtful_margin || record.solution.c[rows.blocks[b].row] <= held_speed;
    if (rows.blocks[b].type == BlockType::limit && touches) inactive_[b] = 0;  // state_ambiguous asks for its motion
  }
  for (int level = 0; level < lower_; ++level) prepare_lower_level(level);
  prepare_level(model);
  adjoint_.reserve(model.nv, rows.num_rows);
  for (auto* values : {&unresolved_, &further_z_}) make_room(*values, rows.num_rows);
  make_room(leftover_, 2 * std::size_t(model.nv));
}

// Forces, inverse dynamics and rows at the velocities and impulses in place.
void StepLinearization::prepare_level(const Model& model) {
  StepRecord& record = *record_;
  collect_forces();
  prepare_derivatives(model, record.dynamics, acceleration_.data(), &forces_);
  const GradientOptions& gradient = options_->gradient;
  const SmoothedMotion smoothed(model, record.collision, gradient.samples, gradient.scale, gradient.seed);
  coulomb::row_derivatives(row_state(), record.collision.contacts, rows_,
                           gradient.mode == GradientMode::smoothed_collision ? &smoothed : nullptr);
}

// Calls visit(rotation, its first dof among the island's own).
template <class Visit>
void StepLinearization::for_each_rotation(int index, Visit visit) const {
  const Island& own = island(index);
  for (std::size_t t = 0; t < own.trees.size(); ++t) {
    const int tree = own.trees[t], shift = own.tree_start[t] - model_->tree_first_dof[tree];
    for (int i = tree_rotations_[tree]; i < tree_rotations_[tree + 1]; ++i)
      visit(rotations_[i], rotations_[i].dof + shift);
  }
}

// Columns (dq1, dv1) from their velocity part scale * dv_T (rows of ld): dq1 = h d(+)/dw dv1.
void StepLinearization::store_columns(int index, const double* dv_T, double scale, double* columns_T) {
  const int nv = island(index).num_dofs();
  store_rows(dv_T, nv, padded(nv), scale, options_->constraints.timestep, columns_T);
  // a row holds dq1^T: right-multiplying by (d(+)/dw)^T applies d(+)/dw to every column
  for_each_rotation(index, [&](const Rotation& rotation, int first) {
    const double* j = rotation.by_w;
    for (int k = 0; k < nv; ++k) {
      double* row = columns_T + std::size_t(2) * nv * k + first;
      const double x = row[0], y = row[1], z = row[2];
      row[0] = x * j[0] + y * j[3] + z * j[6];
      row[1] = x * j[1] + y * j[4] + z * j[7];
      row[2] = x * j[2] + y * j[5] + z * j[8];
    }
  });
}

// Adds d(+)/dq to the position part of the columns of q: the identity, but for the 3 x 3 blocks of rotations.
void StepLinearization::add_integrate_jacobian(int index, double* columns_T) {
  const std::size_t nv = island(index).num_dofs();
  double* identity = scratch_.data();
  std::fill_n(identity, nv, 1.0);
  for_each_rotation(index, [&](const Rotation& rotation, int first) {
    for (int i = 0; i < 3; ++i) {
      identity[first + i] = 0;
      for (int j = 0; j < 3; ++j) columns_T[2 * nv * (first + i) + first + j] += rotation.by_q[3 * i + j];
    }
  });
  for (std::size_t d = 0; d < nv; ++d) columns_T[2 * nv * d + d] += identity[d];
}

void StepLinearization::velocity_columns(int index, const std::vector<double>& r_T, const double* Bs,
                                         double* columns_T) {
  const IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs(), ld = padded(nv), m = reduced_size(index);
  make_room(out_, std::size_t(nv) * ld);
  multiply(Product::set, rows_of(r_T.data(), nv, nv, ld), x.P_T.data(), out_.data(), ld, ld, product_);
  if (Bs) multiply(Product::subtract, transposed(Bs, nv, m, ld), x.W.data(), out_.data(), ld, ld, product_);
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
  if (use_average_) {
    average_->jacobian(out);
    return out;
  }
  const Model& model = *model_;
  const StepRecord& r = *record_;
  const std::size_t nv = model.nv;
  prepare_matrices();

  // one island is the whole matrix; several are blocks of it
  const auto store = [&](const Island& own, const double* columns_T, std::size_t first_row, std::vector<double>& to) {
    const std::size_t size = own.num_dofs();
    for (std::size_t s = 0; s < own.trees.size(); ++s)
      for (int k = own.tree_start[s]; k < own.tree_start[s + 1]; ++k) {
        const double* from = columns_T + 2 * size * k;
        double* row = to.data() + 2 * nv * (first_row + model.tree_first_dof[own.trees[s]] + k - own.tree_start[s]);
        for (std::size_t t = 0; t < own.trees.size(); ++t) {
          const int first = model.tree_first_dof[own.trees[t]], start = own.tree_start[t],
                    count = own.tree_start[t + 1] - start;
          std::copy_n(from + start, count, row + first);
          std::copy_n(from + size + start, count, row + nv + first);
        }
      }
  };
  if (r.islands.order.empty() || !r.islands.is_whole(model, r.islands.order[0]))
    std::fill(out.A_T.begin(), out.A_T.end(), 0.0), std::fill(out.B_tau_T.begin(), out.B_tau_T.end(), 0.0);
  for (int index : r.islands.order) {
    if (r.islands.is_whole(model, index)) {
      island_columns(index, out.A_T.data(), out.B_tau_T.data());
      continue;
    }
    const std::size_t size = island(index).num_dofs();
    make_room(A_T_, 4 * size * size), make_room(B_tau_T_, 2 * size * size);
    island_columns(index, A_T_.data(), B_tau_T_.data());
    store(island(index), A_T_.data(), 0, out.A_T);
    store(island(index), A_T_.data() + 2 * size * size, nv, out.A_T);
    store(island(index), B_tau_T_.data(), 0, out.B_tau_T);
  }

  for (int k = 0; k < model.nu; ++k) {
    double* row = out.B_T.data() + 2 * nv * k;
    std::fill_n(row, 2 * nv, 0.0);
    const int joint = model.actuators[k].joint, first = model.joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j) {
      const double gain = r.joint_forces.dtau_du[6 * k + j];
      if (gain != 0) add_scaled(gain, out.B_tau_T.data() + 2 * nv * (first + j), static_cast<int>(2 * nv), row);
    }
  }
  return out;
}

void StepLinearization::add_actuator_columns(int index, SparseStepDerivatives::Island& out) const {
  const Model& model = *model_;
  const Islands& islands = record_->islands;
  const std::size_t size = out.dofs.size();
  out.B_T.assign(2 * size * out.actuators.size(), 0.0);
  for (std::size_t k = 0; k < out.actuators.size(); ++k) {
    const int actuator = out.actuators[k], joint = model.actuators[actuator].joint,
              tree = model.body_tree[model.joint_body[joint]],
              first = model.joint_v[joint] - model.tree_first_dof[tree] +
                      islands.pool[index].tree_start[islands.tree_index[tree]];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j) {
      const double gain = record_->joint_forces.dtau_du[6 * actuator + j];
      if (gain != 0)
        add_scaled(gain, out.B_tau_T.data() + 2 * size * (first + j), static_cast<int>(2 * size),
                   out.B_T.data() + 2 * size * k);
    }
  }
}

std::shared_ptr<SparseStepDerivatives> StepLinearization::sparse_jacobian() {
  if (use_average_) return StepGradient::sparse_jacobian();
  const Model& model = *model_;
  const Islands& islands = record_->islands;
  prepare_matrices();
  auto result = std::make_shared<SparseStepDerivatives>();
  result->nv = model.nv, result->nu = model.nu, result->ambiguous = state_ambiguous();

  std::vector<int> place(islands.pool.size(), -1);  // among the islands of the result
  for (int index : islands.order) {
    const Island& own = island(index);
    if (own.num_dofs() == 0) continue;
    place[index] = static_cast<int>(result->islands.size());
    SparseStepDerivatives::Island& out = result->islands.emplace_back();
    for (int tree : own.trees)
      for (int d = model.tree_first_dof[tree]; d < model.tree_first_dof[tree + 1]; ++d) out.dofs.push_back(d);
    const std::size_t size = out.dofs.size();
    out.A_T.resize(4 * size * size), out.B_tau_T.resize(2 * size * size);
    island_columns(index, out.A_T.data(), out.B_tau_T.data());
  }
  for (int k = 0; k < model.nu; ++k) {
    const int tree = model.body_tree[model.joint_body[model.actuators[k].joint]];
    result->islands[place[islands.of_tree(tree)]].actuators.push_back(k);
  }
  for (int index : islands.order)
    if (place[index] >= 0) add_actuator_columns(index, result->islands[place[index]]);
  return result;
}

}  // namespace coulomb

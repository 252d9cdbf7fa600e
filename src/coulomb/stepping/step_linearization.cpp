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

void grow(std::vector<double>& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

COULOMB_SIMD void scale(double a, const double* __restrict x, int n, double* __restrict y) {
  for (int i = 0; i < n; ++i) y[i] = a * x[i];
}

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
    : model_(&model), forces_(model), acceleration_(model.nv), islands_(model.num_trees + 1), rate_next_(8 * model.nv),
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
  ambiguous_ = !use_average_;
}

void StepLinearization::prepare_exact(const Model& model, const StepOptions& options, StepRecord& record) {
  model_ = &model, options_ = &options, record_ = &record;
  have_jacobian_ = have_matrices_ = false;
  const ConstraintRows& rows = record.rows;
  inactive_.assign(rows.num_blocks, 0);
  for (int b = 0; b < rows.num_blocks; ++b) {
    const Mode mode = record.solution.modes[b];
    inactive_[b] = mode == Mode::separating || mode == Mode::lower || mode == Mode::upper;
  }
  link_twists(model, record.dynamics, record.v_next.data(), record.twist_next.data());
  velocities(model, record.dynamics, record.v_next.data(), body_twist_.data(), rate_next_.data());
  use_average_ = ambiguous_ = false;

  // Forces account for the change of velocity less the spins' own.
  acceleration_ = record.acceleration;
  if (record.spin.any)
    for (int d = 0; d < model.nv; ++d) acceleration_[d] -= record.spin.velocity[d] / options.constraints.timestep;
  spins_.clear();
  have_all_spins_ = false;
  if (record.spin.any)
    spin_derivatives(model, record.dynamics, record.v.data(), options.constraints.timestep, false, spins_);
  record.islands.scatter_labels(record.solution);
  two_levels_ = false;
  level_ = 1;
  for (int index : record.islands.order) {
    const Island& own = island(index);
    if (own.blocks.empty()) continue;
    islands_[index].problem.build(own.problem, own.solution);
    two_levels_ = two_levels_ || islands_[index].problem.two_levels();
  }
  if (two_levels_) prepare_level_0();
  prepare_level(model);
  grow(lambda_bar_, 2 * std::size_t(rows.num_rows) + 8);
}

// Forces, inverse dynamics and rows at the velocities and impulses in place.
void StepLinearization::prepare_level(const Model& model) {
  StepRecord& record = *record_;
  collect_forces();
  prepare_derivatives(model, record.dynamics, acceleration_.data(), &forces_);
  const GradientOptions& gradient = options_->gradient;
  const SmoothedMotion smoothed(model, record.collision, gradient.samples, gradient.scale, gradient.seed);
  coulomb::row_derivatives(model, record.dynamics, record.rows, record.collision.contacts, row_velocities(),
                           record.solution.lambda.data(), inactive_, rows_,
                           gradient.mode == GradientMode::smoothed_collision ? &smoothed : nullptr);
}

// Level 0 of the islands where it counts by itself; the others are as they are.
void StepLinearization::prepare_level_0() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  if (!other_level_) other_level_ = std::make_unique<LevelState>(model);
  LevelState& level = *other_level_;
  level.lambda = r.solution.lambda;
  level.v_next = r.v_next;
  for (int index : r.islands.order) {
    if (island(index).blocks.empty() || !islands_[index].problem.two_levels()) continue;
    for (int row : island(index).rows) level.lambda[row] = r.solution.lambda_0[row];
  }

  // Its velocity, of the trees concerned.
  std::fill_n(level.acceleration.data(), model.nv, 0.0);
  apply_rows_transposed(model, r.dynamics, r.rows, level.lambda.data(), scratch_.data(), level.acceleration.data());
  solve_mass(model, r.dynamics, level.acceleration.data());
  for (int t = 0; t < model.num_trees; ++t) {
    const int index = r.islands.of_tree(t);
    if (island(index).blocks.empty() || !islands_[index].problem.two_levels()) continue;
    for (int d = model.tree_first_dof[t]; d < model.tree_first_dof[t + 1]; ++d)
      level.v_next[d] = r.v_free[d] + level.acceleration[d];
  }
  for (int d = 0; d < model.nv; ++d)
    level.acceleration[d] = (level.v_next[d] - r.v[d] - r.spin.velocity[d]) / options_->constraints.timestep;
  link_twists(model, r.dynamics, level.v_next.data(), level.twist_next.data());
  velocities(model, r.dynamics, level.v_next.data(), level.body_twist.data(), level.rate_next.data());

  exchange_levels();
  prepare_level(model);
  exchange_levels();
}

void StepLinearization::exchange_levels() {
  LevelState& other = *other_level_;
  StepRecord& r = *record_;
  std::swap(r.v_next, other.v_next);
  std::swap(acceleration_, other.acceleration);
  std::swap(r.solution.lambda, other.lambda);
  std::swap(r.twist_next, other.twist_next);
  std::swap(rate_next_, other.rate_next);
  std::swap(body_twist_, other.body_twist);
  std::swap(rows_, other.rows);
  std::swap(forces_, other.forces);
  level_ = 1 - level_;
  prepare_derivatives(*model_, r.dynamics, acceleration_.data(), &forces_);
}

// What the columns of all islands need.
void StepLinearization::prepare_matrices() {
  if (have_matrices_) return;
  have_matrices_ = true;
  const Model& model = *model_;
  StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  for (int d = 0; d < model.nv; ++d) w_[d] = h * r.v_next[d];
  for (Rotation& rotation : rotations_) {
    const double* w = w_.data() + rotation.dof;
    integrate_rotation_block(w, IntegrateArgument::q, true, rotation.by_q);
    integrate_rotation_block(w, IntegrateArgument::w, true, rotation.by_w);
  }
  derivative_pairs(model, r.dynamics);
  expand_factor(model, r.dynamics);
  for (int index : r.islands.order) response_matrices(index);
  right_hand_sides();
  row_columns();
  if (two_levels_) prepare_matrices_of_level_0();
}

// r and B s of level 0, beside those of the last level.
void StepLinearization::prepare_matrices_of_level_0() {
  const auto exchange = [&] {
    for (int index : record_->islands.order) {
      IslandMatrices& x = islands_[index];
      std::swap(x.r_q, x.r_q_0);
      std::swap(x.Bs_q, x.Bs_q_0);
      std::swap(x.Bs_v, x.Bs_v_0);
    }
    exchange_levels();
  };
  exchange();
  derivative_pairs(*model_, record_->dynamics);
  right_hand_sides();
  row_columns();
  exchange();
  for (int index : record_->islands.order) r_q_of_[index] = islands_[index].r_q.data();
}

void StepLinearization::subtract_level_0(int index, const double* r_0_T, const double* r_T, const double* Bs_0,
                                         int count, double* dv_T) {
  const IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs();
  const int ld = padded(nv);
  const int m = reduced_size(index);
  const int width = padded(count);
  grow(difference_, std::size_t(m) * width);
  std::fill_n(difference_.data(), std::size_t(m) * width, 0.0);
  if (Bs_0) std::copy_n(Bs_0, std::size_t(m) * width, difference_.data());
  for (int i = 0; i < m; ++i) {
    const double* row = x.BYM_0.data() + std::size_t(i) * ld;
    for (int k = 0; k < count; ++k) {
      double sum = 0;
      for (int d = 0; d < nv; ++d) sum += row[d] * (r_0_T[std::size_t(k) * ld + d] - r_T[std::size_t(k) * ld + d]);
      difference_[std::size_t(i) * width + k] += sum;
    }
  }
  multiply(Product::subtract, transposed(difference_.data(), count, m, width), x.W_0.data(), dv_T, ld, ld, product_);
}

// u_hat of the island's trees, dense.
const double* StepLinearization::dense_factor(int index) {
  const Island& own = island(index);
  const DynamicsWorkspace& dynamics = record_->dynamics;
  if (own.trees.size() == 1) return dynamics.u_hat.data() + dynamics.trees[own.trees[0]].matrix;
  const int nv = own.num_dofs(), ld = padded(nv);
  dense_factor_.assign(std::size_t(nv) * ld, 0.0);
  for (std::size_t t = 0; t < own.trees.size(); ++t) {
    const DofBlock& tree = dynamics.trees[own.trees[t]];
    for (int k = 0; k < tree.size; ++k)
      std::copy_n(dynamics.u_hat.data() + tree.matrix + std::size_t(k) * tree.ld, tree.size,
                  dense_factor_.data() + std::size_t(own.tree_start[t] + k) * ld + own.tree_start[t]);
  }
  return dense_factor_.data();
}

const double* StepLinearization::dense_rows(int index, const double* rows) {
  const Island& own = island(index);
  const ConstraintProblem& problem = own.problem;
  if (own.trees.size() == 1) return rows;
  const int ld = padded(own.num_dofs());
  dense_.assign(std::size_t(problem.n) * ld, 0.0);
  for (std::size_t b = 0; b < problem.blocks.size(); ++b)
    for (const RowSegment& segment : problem.segments[b]) {
      if (segment.tree < 0) continue;
      const int size = problem.tree_size[segment.tree];
      for (int i = 0; i < problem.blocks[b].size; ++i)
        std::copy_n(rows + segment.start + std::size_t(i) * padded(size), size,
                    dense_.data() + std::size_t(problem.blocks[b].row + i) * ld + own.tree_start[segment.tree]);
    }
  return dense_.data();
}

// Mh^-1, the reduced rows' W and B J Mh^-1, and P^T.
void StepLinearization::response_matrices(int index) {
  IslandMatrices& x = islands_[index];
  const int nv = island(index).num_dofs(), ld = padded(nv), m = reduced_size(index);
  if (nv == 0) return;
  const double* u_hat = dense_factor(index);
  grow(x.P_T, std::size_t(nv) * ld), grow(x.W, std::size_t(m) * ld), grow(x.BYM, std::size_t(m) * ld);
  grow(reduced_, std::size_t(m) * ld);
  multiply(Product::set, transposed(u_hat, nv, nv, ld), u_hat, x.P_T.data(), ld, ld, product_);
  if (m == 0) return;
  // reduced rows first: B Y and C^T Y have fewer rows than Y, and are the same when nothing slides
  const double* Y = dense_rows(index, island(index).problem.Y.data());
  const auto times_u_hat = [&](std::vector<double>& out) {
    multiply(Product::set, rows_of(reduced_.data(), m, nv, ld), u_hat, out.data(), ld, ld, product_);
  };
  x.problem.reduced_rows(Y, reduced_.data(), ld, ld);
  times_u_hat(x.BYM);
  if (x.problem.symmetric()) {
    std::copy_n(x.BYM.data(), std::size_t(m) * ld, x.W.data());
  } else {
    x.problem.expand_transposed(Y, reduced_.data(), ld, ld);
    times_u_hat(x.W);
  }
  if (!x.problem.two_levels()) {
    x.problem.solve_reduced_transposed(x.W.data(), ld, ld);
    multiply(Product::subtract, transposed(x.BYM.data(), nv, m, ld), x.W.data(), x.P_T.data(), ld, ld, product_);
    return;
  }

  // Level 0 by itself: what the last level passes down to it.
  grow(x.W_0, std::size_t(m) * ld);
  grow(x.BYM_0, std::size_t(m) * ld);
  grow(difference_, std::size_t(m) * ld);
  x.problem.solve_upper_transposed(x.W.data(), difference_.data(), ld, ld);
  x.problem.pass_down(difference_.data(), x.W_0.data(), ld, ld);
  x.problem.solve_level_transposed(0, x.W_0.data(), ld, ld);
  x.problem.reduced_rows(0, Y, reduced_.data(), ld, ld);
  times_u_hat(x.BYM_0);
  multiply(Product::subtract, transposed(x.BYM.data(), nv, m, ld), x.W.data(), x.P_T.data(), ld, ld, product_);
  multiply(Product::subtract, transposed(x.BYM_0.data(), nv, m, ld), x.W_0.data(), x.P_T.data(), ld, ld, product_);
}

// r_q, r_v (transposed); the velocity columns are then P r - W^T B s.
void StepLinearization::right_hand_sides() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  for (int index : r.islands.order) {
    IslandMatrices& x = islands_[index];
    const Island& own = island(index);
    const std::size_t size = std::size_t(own.num_dofs()) * padded(own.num_dofs());
    grow(x.r_q, size), grow(x.r_v, size);
    r_q_of_[index] = x.r_q.data();
    if (own.trees.size() == 1) {
      const std::size_t from = r.dynamics.trees[own.trees[0]].matrix;
      scale(-h, r.dynamics.id_dq_T.data() + from, static_cast<int>(size), x.r_q.data());
      scale(-h, r.dynamics.id_dv_T.data() + from, static_cast<int>(size), x.r_v.data());
      continue;
    }
    std::fill_n(x.r_q.data(), size, 0.0), std::fill_n(x.r_v.data(), size, 0.0);
    for (std::size_t t = 0; t < own.trees.size(); ++t) {
      const DofBlock& tree = r.dynamics.trees[own.trees[t]];
      for (int k = 0; k < tree.size; ++k) {
        const std::size_t from = tree.matrix + std::size_t(k) * tree.ld,
                          to = std::size_t(own.tree_start[t] + k) * padded(own.num_dofs()) + own.tree_start[t];
        scale(-h, r.dynamics.id_dq_T.data() + from, tree.size, x.r_q.data() + to);
        scale(-h, r.dynamics.id_dv_T.data() + from, tree.size, x.r_v.data() + to);
      }
    }
  }

  // joint forces, and Mh of dv itself
  for (int t = 0; t < model.num_trees; ++t) {
    const int index = r.islands.of_tree(t), first = model.tree_first_dof[t],
              start = island(index).tree_start[r.islands.tree_index[t]] - first, ld = padded(island(index).num_dofs());
    double *r_q = islands_[index].r_q.data(), *r_v = islands_[index].r_v.data();
    const auto at = [&](int k, int d) { return std::size_t(start + k) * ld + start + d; };
    for (int d = first; d < model.tree_first_dof[t + 1]; ++d) {
      const int joint = model.dof_joint[d], dof = model.joint_v[joint];
      for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j) {
        r_q[at(dof + j, d)] += h * r.joint_forces.dtau_dq[6 * d + j];
        r_v[at(dof + j, d)] += h * r.joint_forces.dtau_dv[6 * d + j];
      }
      const int row = model.dof_row[d];
      for (int k = 0; k <= model.dof_depth[d]; ++k) {
        const int i = model.dof_path[row + k];
        const double mass = r.dynamics.mass[row + k] + (i == d ? r.implicit_damping[d] : 0.0);
        r_v[at(i, d)] += mass;
        if (i != d) r_v[at(d, i)] += mass;
      }
    }
  }
  add_spin_columns();
  add_wrench_columns(model, r.dynamics, r.rows, rows_, r.solution.lambda.data(), DofMatrix(r.islands, r_q_of_.data()));
}

void StepLinearization::add_spin_columns() {
  const Model& model = *model_;
  const StepRecord& r = *record_;
  for (const SpinDerivative& spin : spins_) {
    const int tree = model.body_tree[model.joint_body[spin.joint]];
    const int index = r.islands.of_tree(tree);
    const int shift = island(index).tree_start[r.islands.tree_index[tree]] - model.tree_first_dof[tree];
    const int ld = padded(island(index).num_dofs());
    // The columns of M that Delta meets.
    grow(spin_mass_, 6 * std::size_t(ld));
    std::fill_n(spin_mass_.data(), 6 * std::size_t(ld), 0.0);
    for (int i = 0; i < 6; ++i) {
      double unit[6] = {};
      unit[i] = 1;
      double* to = spin_mass_.data() + std::size_t(i) * ld + shift;
      multiply_mass_of(model, r.dynamics, spin, unit, [&](int d, double value) { to[d] = value; });
    }
    const auto add_to = [&](std::vector<double>& r_T) {
      return [&](int k, const double* change) {
        double* column = r_T.data() + std::size_t(shift + k) * ld;
        for (int i = spin.linear < 0 ? 3 : 0; i < 6; ++i)
          add_scaled(change[i], spin_mass_.data() + std::size_t(i) * ld, ld, column);
      };
    };
    visit_spin_columns(model, r.dynamics, spin, add_to(islands_[index].r_v), add_to(islands_[index].r_q));
  }
}

const std::vector<SpinDerivative>& StepLinearization::spins(bool even) {
  if (!even) return spins_;
  if (have_all_spins_) return all_spins_;
  have_all_spins_ = true;
  all_spins_.clear();
  const StepRecord& r = *record_;
  if (spins_torque_free(*options_, r))
    spin_derivatives(*model_, r.dynamics, r.v.data(), options_->constraints.timestep, true, all_spins_);
  return all_spins_;
}

// B s of the rows' dependence on q, and on v where they bounce.
void StepLinearization::row_columns() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const auto clear = [&] {
    for (int index : r.islands.order) {
      IslandMatrices& x = islands_[index];
      const std::size_t size = reduced_size(index) > 0 ? island(index).problem.Y.size() : 0;
      grow(x.s, island(index).blocks.empty() ? 0 : island(index).problem.Y.size());
      std::fill_n(x.s.data(), size, 0.0);
      s_of_[index] = x.s.data();
    }
  };
  const auto reduce = [&](int index, std::vector<double>& Bs) {
    const int ld = padded(island(index).num_dofs()), m = reduced_size(index);
    grow(Bs, std::size_t(m) * ld);
    const double* s = dense_rows(index, islands_[index].s.data());
    const ProblemLinearization& problem = islands_[index].problem;
    if (level_ == 0 && problem.two_levels()) problem.reduced_rows(0, s, Bs.data(), ld, ld);
    else problem.reduced_rows(s, Bs.data(), ld, ld);
  };
  const RowMatrix s(r.islands, s_of_.data());
  clear();
  fill_row_columns(model, r.dynamics, r.rows, row_velocities(), r.v_next.data(), rows_, inactive_, s);
  for (int index : r.islands.order) {
    islands_[index].bounces = false;
    if (reduced_size(index) > 0) reduce(index, islands_[index].Bs_q);
  }

  bool any = false;  // a bouncing row's bias is e J v
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.restitution == 0 || inactive_[b.block]) continue;
    islands_[r.islands.of_block(b.block)].bounces = any = true;
  }
  if (!any) return;
  clear();
  for (const BodyRows& b : r.rows.body_rows)
    if (b.restitution != 0 && !inactive_[b.block]) bounce_row(b, s);
  for (int index : r.islands.order)
    if (islands_[index].bounces) reduce(index, islands_[index].Bs_v);
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
  grow(out_, std::size_t(nv) * ld);
  multiply(Product::set, rows_of(r_T.data(), nv, nv, ld), x.P_T.data(), out_.data(), ld, ld, product_);
  if (Bs) multiply(Product::subtract, transposed(Bs, nv, m, ld), x.W.data(), out_.data(), ld, ld, product_);
  if (m > 0 && x.problem.two_levels()) {
    const bool of_q = &r_T == &x.r_q;
    const double* Bs_0 = of_q ? x.Bs_q_0.data() : x.bounces ? x.Bs_v_0.data() : nullptr;
    subtract_level_0(index, of_q ? x.r_q_0.data() : r_T.data(), r_T.data(), Bs_0, nv, out_.data());
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
  out.ambiguous = ambiguous_;
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
    grow(A_T_, 4 * size * size), grow(B_tau_T_, 2 * size * size);
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
  result->nv = model.nv, result->nu = model.nu, result->ambiguous = ambiguous_;

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

// e n . (v_A(p) - v_B(p)) as a row on v.
void StepLinearization::bounce_row(const BodyRows& b, const RowMatrix& s) const {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b, last = model_->body_last_dof[body];
    if (last < 0) continue;
    double r[3], e[6];
    relative_point(*model_, record_->dynamics, body, b.point_a, r);
    copy3(b.axes[2], e);
    cross3(r, e, e + 3);
    const RowMatrix::Place to = s.at(*model_, b.block, b.row, model_->body_tree[body]);
    double* normal = to.data + std::size_t(2) * to.ld;
    const int* path = model_->dof_path.data() + model_->dof_row[last];
    for (int k = 0; k <= model_->dof_depth[last]; ++k)
      normal[path[k] - to.first] += sign * b.restitution * dot6(record_->dynamics.columns.data() + 8 * path[k], e);
  }
}

}  // namespace coulomb

#include "coulomb/stepping/step_linearization.hpp"

#include <algorithm>

#include "coulomb/dense_kernels.hpp"
#include "coulomb/model/configuration.hpp"
#include "coulomb/simd.hpp"
#include "coulomb/small_math.hpp"
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
    : model_(&model), forces_(model), rate_next_(8 * model.nv), body_twist_(8 * model.num_bodies), w_(model.nv),
      scratch_(32 * model.nv + 8) {
  const std::size_t square = std::size_t(model.nv) * padded(model.nv);
  P_T_.resize(square), r_q_.resize(square), r_v_.resize(square), out_.resize(square);
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
  have_jacobian_ = false;
  const ConstraintRows& rows = record.rows;
  inactive_.assign(rows.num_blocks, 0);
  for (int b = 0; b < rows.num_blocks; ++b) {
    const Mode mode = record.solution.modes[b];
    inactive_[b] = mode == Mode::separating || mode == Mode::lower || mode == Mode::upper;
  }
  link_twists(model, record.dynamics, record.v_next.data(), record.twist_next.data());
  velocities(model, record.dynamics, record.v_next.data(), body_twist_.data(), rate_next_.data());
  problem_.build(record.problem, record.solution);
  use_average_ = ambiguous_ = false;
  collect_forces();
  prepare_derivatives(model, record.dynamics, record.acceleration.data(), &forces_);
  const GradientOptions& gradient = options.gradient;
  const SmoothedMotion smoothed(model, record.collision, gradient.samples, gradient.scale, gradient.seed);
  coulomb::row_derivatives(model, record.dynamics, rows, record.collision.contacts, row_velocities(),
                           record.solution.lambda.data(), inactive_, rows_,
                           gradient.mode == GradientMode::smoothed_collision ? &smoothed : nullptr);
  const int n = rows.num_rows, m = problem_.reduced_size(), ld = record.dynamics.ld;
  grow(lambda_bar_, 2 * std::size_t(n) + 8);
  grow(reduced_, std::size_t(m) * ld), grow(s_, std::size_t(n) * ld);
  grow(W_, std::size_t(m) * ld), grow(BYM_, std::size_t(m) * ld), grow(Bs_, std::size_t(m) * ld);
}

// Mh^-1, the reduced rows' W and B J Mh^-1, and P^T.
void StepLinearization::response_matrices() {
  expand_factor(*model_, record_->dynamics);
  const DynamicsWorkspace& dynamics = record_->dynamics;
  const int nv = model_->nv, ld = dynamics.ld, m = problem_.reduced_size();
  const double* u_hat = dynamics.u_hat.data();
  multiply(Product::set, transposed(u_hat, nv, nv, ld), u_hat, P_T_.data(), ld, ld, product_);
  if (m == 0) return;
  // reduced rows first: B Y and C^T Y have fewer rows than Y, and are the same when nothing slides
  const double* Y = record_->assembly.Y.data();
  const auto times_u_hat = [&](std::vector<double>& out) {
    multiply(Product::set, rows_of(reduced_.data(), m, nv, ld), u_hat, out.data(), ld, ld, product_);
  };
  problem_.reduced_rows(Y, reduced_.data(), ld, ld);
  times_u_hat(BYM_);
  if (problem_.symmetric()) {
    std::copy_n(BYM_.data(), std::size_t(m) * ld, W_.data());
  } else {
    problem_.expand_transposed(Y, reduced_.data(), ld, ld);
    times_u_hat(W_);
  }
  problem_.solve_reduced_transposed(W_.data(), ld, ld);
  multiply(Product::subtract, transposed(BYM_.data(), nv, m, ld), W_.data(), P_T_.data(), ld, ld, product_);
}

// r_q, r_v (transposed) and s; the velocity columns are then P r - W^T B s.
void StepLinearization::right_hand_sides() {
  const Model& model = *model_;
  StepRecord& r = *record_;
  const int nv = model.nv, ld = r.dynamics.ld;
  const double h = options_->constraints.timestep;
  scale(-h, r.dynamics.id_dq_T.data(), static_cast<int>(r_q_.size()), r_q_.data());
  scale(-h, r.dynamics.id_dv_T.data(), static_cast<int>(r_v_.size()), r_v_.data());
  for (int d = 0; d < nv; ++d) {
    const int first = model.joint_v[model.dof_joint[d]], count = joint_num_dofs(model.joint_type[model.dof_joint[d]]);
    for (int j = 0; j < count; ++j) {
      r_q_[std::size_t(first + j) * ld + d] += h * r.joint_forces.dtau_dq[6 * d + j];
      r_v_[std::size_t(first + j) * ld + d] += h * r.joint_forces.dtau_dv[6 * d + j];
    }
    const int start = model.dof_row[d];
    for (int k = 0; k <= model.dof_depth[d]; ++k) {
      const int i = model.dof_path[start + k];
      const double mass = r.dynamics.mass[start + k] + (i == d ? r.implicit_damping[d] : 0.0);
      r_v_[std::size_t(i) * ld + d] += mass;
      if (i != d) r_v_[std::size_t(d) * ld + i] += mass;
    }
  }
  add_wrench_columns(model, r.dynamics, r.rows, rows_, r.solution.lambda.data(), r_q_.data(), ld);
}

// Columns (dq1, dv1) from their velocity part scale * dv_T (rows of ld): dq1 = h d(+)/dw dv1.
void StepLinearization::store_columns(const double* dv_T, double scale, double* columns_T) {
  const int nv = model_->nv, ld = record_->dynamics.ld;
  const double h = options_->constraints.timestep;
  store_rows(dv_T, nv, ld, scale, h, columns_T);
  // a row holds dq1^T: right-multiplying by (d(+)/dw)^T applies d(+)/dw to every column
  times_integrate_jacobian(*model_, w_.data(), IntegrateArgument::w, true, columns_T, 2 * nv, nv);
}

// Adds d(+)/dq to the position part of the columns of q: the identity, but for the 3 x 3 blocks of rotations.
void StepLinearization::add_integrate_jacobian(double* columns_T) {
  const Model& model = *model_;
  const int nv = model.nv;
  const auto is_rotation = [&](int d) {
    const JointType type = model.joint_type[model.dof_joint[d]];
    return type == JointType::ball || (type == JointType::free && d >= model.joint_v[model.dof_joint[d]] + 3);
  };
  double* axes = scratch_.data();  // row i: the i-th axis of every rotation
  std::fill_n(axes, 3 * nv, 0.0);
  for (int d = 0, axis = 0; d < nv; ++d) {
    if (is_rotation(d)) axes[nv * axis + d] = 1, axis = (axis + 1) % 3;
    else columns_T[std::size_t(2) * nv * d + d] += 1;
  }
  times_integrate_jacobian(model, w_.data(), IntegrateArgument::q, true, axes, nv, 3);
  for (int d = 0, axis = 0; d < nv; ++d) {
    if (!is_rotation(d)) continue;
    for (int j = d - axis; j < d - axis + 3; ++j) columns_T[std::size_t(2) * nv * d + j] += axes[nv * axis + j];
    axis = (axis + 1) % 3;
  }
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
  StepRecord& r = *record_;
  const int nv = model.nv, nu = model.nu, ld = r.dynamics.ld, n = r.rows.num_rows, m = problem_.reduced_size();
  const double h = options_->constraints.timestep;
  for (int d = 0; d < nv; ++d) w_[d] = h * r.v_next[d];
  derivative_pairs(model, r.dynamics);
  response_matrices();
  right_hand_sides();

  double* A = out.A_T.data();
  const auto velocity_columns = [&](const std::vector<double>& r_T, const double* Bs, double* target) {
    multiply(Product::set, rows_of(r_T.data(), nv, nv, ld), P_T_.data(), out_.data(), ld, ld, product_);
    if (Bs) multiply(Product::subtract, transposed(Bs, nv, m, ld), W_.data(), out_.data(), ld, ld, product_);
    store_columns(out_.data(), 1.0, target);
  };
  const double* Bs = nullptr;
  if (m > 0) {
    std::fill_n(s_.data(), std::size_t(n) * ld, 0.0);
    fill_row_columns(model, r.dynamics, r.rows, row_velocities(), r.v_next.data(), rows_, inactive_, s_.data(), ld);
    problem_.reduced_rows(s_.data(), Bs_.data(), ld, ld);
    Bs = Bs_.data();
  }
  velocity_columns(r_q_, Bs, A);
  Bs = nullptr;
  if (m > 0 && std::any_of(r.rows.body_rows.begin(), r.rows.body_rows.end(),
                           [](const BodyRows& b) { return b.restitution != 0; })) {
    std::fill_n(s_.data(), std::size_t(n) * ld, 0.0);  // a bouncing row's bias is e J v
    for (const BodyRows& b : r.rows.body_rows) {
      if (b.restitution == 0 || inactive_[b.block]) continue;
      bounce_row(b, s_.data() + std::size_t(b.row + 2) * ld);
    }
    problem_.reduced_rows(s_.data(), Bs_.data(), ld, ld);
    Bs = Bs_.data();
  }
  velocity_columns(r_v_, Bs, A + std::size_t(2) * nv * nv);
  add_integrate_jacobian(A);
  store_columns(P_T_.data(), h, out.B_tau_T.data());
  for (int k = 0; k < nu; ++k) {
    double* row = out.B_T.data() + std::size_t(2) * nv * k;
    std::fill_n(row, 2 * nv, 0.0);
    const int joint = model.actuators[k].joint, first = model.joint_v[joint];
    for (int j = 0; j < joint_num_dofs(model.joint_type[joint]); ++j) {
      const double gain = r.joint_forces.dtau_du[6 * k + j];
      if (gain != 0) add_scaled(gain, out.B_tau_T.data() + std::size_t(2) * nv * (first + j), 2 * nv, row);
    }
  }
  return out;
}

// e n . (v_A(p) - v_B(p)) as a row on v.
void StepLinearization::bounce_row(const BodyRows& b, double* row) const {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b, last = model_->body_last_dof[body];
    if (last < 0) continue;
    double r[3], e[6];
    relative_point(*model_, record_->dynamics, body, b.point_a, r);
    copy3(b.axes[2], e);
    cross3(r, e, e + 3);
    const int* path = model_->dof_path.data() + model_->dof_row[last];
    for (int k = 0; k <= model_->dof_depth[last]; ++k)
      row[path[k]] += sign * b.restitution * dot6(record_->dynamics.columns.data() + 8 * path[k], e);
  }
}

}  // namespace coulomb

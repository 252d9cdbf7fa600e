#include "coulomb/solvers/interior_point.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/solvers/dense.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double to_boundary = 0.99;
constexpr double least_centring = 1e-4;
constexpr double short_step = 0.1;
constexpr double gap_per_residual =
    0.003;                       // the gap must not outrun the residual, or cones reach the boundary before they fit
constexpr int frozen_steps = 4;  // without the turning of De Saxce's term, after a short step

template <class Vector>
void grow(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
}

// Vectors of the Lorentz cone: (0; 1, 2).

double determinant(const double* x) {
  const double t = std::sqrt(x[1] * x[1] + x[2] * x[2]);
  return (x[0] - t) * (x[0] + t);
}

/// z with l o z = d.
void arrow_solve(const double* l, const double* d, double* z) {
  const double inner = l[1] * d[1] + l[2] * d[2];
  z[0] = (l[0] * d[0] - inner) / determinant(l);
  z[1] = (d[1] - z[0] * l[1]) / l[0];
  z[2] = (d[2] - z[0] * l[2]) / l[0];
}

void jordan_product(const double* a, const double* b, double* out) {
  const double first = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const double second = a[0] * b[1] + b[0] * a[1];
  const double third = a[0] * b[2] + b[0] * a[2];
  out[0] = first;
  out[1] = second;
  out[2] = third;
}

/// out = Q(w)^(1/2) z, det w = 1: the hyperbolic rotation with first column w.
void rotate_by(const double* w, const double* z, double* out) {
  const double inner = w[1] * z[1] + w[2] * z[2];
  const double along = inner / (1 + w[0]) + z[0];
  out[0] = w[0] * z[0] + inner;
  out[1] = z[1] + along * w[1];
  out[2] = z[2] + along * w[2];
}

/// The longest step from x along d inside the Lorentz cone (infinite: any).
double cone_step(const double* x, const double* d) {
  const double a = d[0] * d[0] - d[1] * d[1] - d[2] * d[2];
  const double b = x[0] * d[0] - x[1] * d[1] - x[2] * d[2];
  const double c = determinant(x);
  const double discriminant = b * b - a * c;
  if (a >= 0 && (b >= 0 || discriminant < 0)) return d[0] >= 0 ? INFINITY : -x[0] / d[0];
  const double root = -b + std::sqrt(std::max(0.0, discriminant));
  return root > 0 ? c / root : INFINITY;
}

/// De Saxce's term: |y_T|, smooth at zero, without cancellation.
double slip_term(double speed2, double theta) {
  const double smooth = std::sqrt(speed2 + theta * theta);
  return smooth > theta ? speed2 / (smooth + theta) : 0.0;
}

double scalar_step(double x, double d) { return d < 0 ? -x / d : INFINITY; }

bool is_cone(const Block& block) { return block.type == BlockType::cone && block.mu > 0; }
bool is_pyramid(const Block& block) { return block.type == BlockType::pyramid && block.mu > 0; }
/// One row that may push only: limits, and the normals of contacts without friction.
int pushing_row(const Block& block) {
  if (block.type == BlockType::limit) return block.row;
  return block.is_contact() && block.mu <= 0 ? block.row + 2 : -1;
}

/// (mu lambda_N, lambda_T) of a contact's rows (t1, t2, n).
void to_lorentz(const Block& block, const double* rows, double normal_factor, double* x) {
  x[0] = normal_factor * rows[block.row + 2];
  x[1] = rows[block.row];
  x[2] = rows[block.row + 1];
}

/// Side j of a pyramid's polygon: the impulse stays where a . lambda_T <= mu lambda_N.
void side_of(const Block& block, int j, double* a) {
  const FrictionPolygon& polygon = friction_polygon(block);
  const int feature = 2 * j + polygon.first_side;
  a[0] = polygon.direction[feature][0] / polygon.apothem;
  a[1] = polygon.direction[feature][1] / polygon.apothem;
}

double side_slack(const Block& block, const double* a, const double* lambda) {
  return block.mu * lambda[block.row + 2] - a[0] * lambda[block.row] - a[1] * lambda[block.row + 1];
}

}  // namespace

// x = e, y = the size of the velocities: well inside, and no memory of anything.
void InteriorPoint::start(const ScaledProblem& problem, double relative_size) {
  const auto ld = static_cast<std::size_t>(problem.ld);
  const auto blocks = static_cast<std::size_t>(problem.num_blocks);
  for (auto* v : {&lambda_, &y_, &c_, &m_, &dlambda_, &dy_, &dm_, &adlambda_, &ady_, &adm_, &residual_}) grow(*v, ld);
  grow(slope_, 2 * blocks);
  grow(scaling_, blocks);
  has_sides_ = problem.has_pyramids;
  if (has_sides_)
    for (auto* v : {&side_, &dside_, &adside_}) grow(*v, max_facets * blocks);

  double size = 0;
  for (int i = 0; i < problem.n; ++i) size = std::max(size, std::abs(problem.g[i]));
  if (!(size > 0)) size = 1;
  size *= relative_size;
  std::fill_n(lambda_.begin(), ld, 0.0);
  std::fill_n(y_.begin(), ld, 0.0);
  std::fill_n(m_.begin(), ld, 0.0);
  pairs_ = 0;
  theta_ = size;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const int row = block.row;
    if (is_cone(block)) {
      lambda_[row + 2] = 1 / block.mu;
      y_[row + 2] = size;
      pairs_ += 1;
    } else if (is_pyramid(block)) {
      lambda_[row + 2] = 1 / block.mu;
      y_[row + 2] = size;
      for (int j = 0; j < block.facets; ++j) side_[static_cast<std::size_t>(max_facets) * b + j] = size;
      pairs_ += 1 + block.facets;
    } else if (pushing_row(block) >= 0) {
      lambda_[pushing_row(block)] = 1;
      y_[pushing_row(block)] = size;
      pairs_ += 1;
    } else if (block.type == BlockType::box && problem.bound[b] > 0) {
      y_[row] = m_[row] = size;
      pairs_ += 2;
    }
  }
}

double InteriorPoint::gap(const ScaledProblem& problem) const { return gap_after(problem, 0); }

/// The mean product of the pairs after a step along (dlambda, dy, dm, dside).
double InteriorPoint::gap_after(const ScaledProblem& problem, double step) const {
  double sum = 0;
  const auto at = [&](const std::vector<double>& x, const std::vector<double>& d, std::size_t i) {
    return step == 0 ? x[i] : x[i] + step * d[i];
  };
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const auto row = static_cast<std::size_t>(block.row);
    if (is_cone(block)) {
      sum += block.mu * at(lambda_, dlambda_, row + 2) * at(y_, dy_, row + 2);
      for (std::size_t i = row; i < row + 2; ++i) sum += at(lambda_, dlambda_, i) * at(y_, dy_, i);
    } else if (is_pyramid(block)) {
      sum += at(lambda_, dlambda_, row + 2) * at(y_, dy_, row + 2);
      const double moved[3] = {at(lambda_, dlambda_, row), at(lambda_, dlambda_, row + 1),
                               at(lambda_, dlambda_, row + 2)};
      for (int j = 0; j < block.facets; ++j) {
        double a[2];
        side_of(block, j, a);
        const double slack = block.mu * moved[2] - a[0] * moved[0] - a[1] * moved[1];
        sum += slack * at(side_, dside_, static_cast<std::size_t>(max_facets) * b + j);
      }
    } else if (const int pushing = pushing_row(block); pushing >= 0) {
      const auto i = static_cast<std::size_t>(pushing);
      sum += at(lambda_, dlambda_, i) * at(y_, dy_, i);
    } else if (block.type == BlockType::box && problem.bound[b] > 0) {
      const double impulse = at(lambda_, dlambda_, row);
      sum += at(y_, dy_, row) * (impulse + problem.bound[b]) + at(m_, dm_, row) * (problem.bound[b] - impulse);
    }
  }
  return pairs_ > 0 ? sum / pairs_ : 0;
}

/// c, what y lacks of fitting it, and the scaling of every cone.
void InteriorPoint::evaluate(const ScaledProblem& problem, bool frozen) {
  problem.velocity(lambda_.data(), c_.data());
  for (int i = 0; i < problem.n; ++i) c_[i] += extra_ * problem.E[i] * lambda_[i];
  worst_residual_ = 0;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const int row = block.row;
    if (is_cone(block)) {
      const double speed2 = y_[row] * y_[row] + y_[row + 1] * y_[row + 1];
      const double smooth = std::sqrt(speed2 + theta_ * theta_);
      const double term = slip_term(speed2, theta_);
      double* t = slope_.data() + 2 * static_cast<std::size_t>(b);
      t[0] = frozen || smooth == 0 ? 0 : y_[row] / smooth;
      t[1] = frozen || smooth == 0 ? 0 : y_[row + 1] / smooth;
      residual_[row] = c_[row] - y_[row];
      residual_[row + 1] = c_[row + 1] - y_[row + 1];
      residual_[row + 2] = c_[row + 2] / block.mu + term - y_[row + 2];

      double x[3];
      double y[3];
      to_lorentz(block, lambda_.data(), block.mu, x);
      to_lorentz(block, y_.data(), 1, y);
      const double dx = std::sqrt(std::max(determinant(x), 1e-300));
      const double dy = std::sqrt(std::max(determinant(y), 1e-300));
      const double inner = (x[0] * y[0] + x[1] * y[1] + x[2] * y[2]) / (dx * dy);
      const double gamma = std::sqrt(0.5 * (1 + inner));
      Scaling& s = scaling_[b];
      s.eta = std::sqrt(dx / dy);
      s.w[0] = (x[0] / dx + y[0] / dy) / (2 * gamma);
      s.w[1] = (x[1] / dx - y[1] / dy) / (2 * gamma);
      s.w[2] = (x[2] / dx - y[2] / dy) / (2 * gamma);
      rotate_by(s.w, y, s.l);
      for (double& l : s.l) l *= s.eta;
    } else if (is_pyramid(block)) {
      residual_[row] = c_[row];
      residual_[row + 1] = c_[row + 1];
      residual_[row + 2] = c_[row + 2] - y_[row + 2];
      for (int j = 0; j < block.facets; ++j) {
        double a[2];
        side_of(block, j, a);
        const double s = side_[static_cast<std::size_t>(max_facets) * b + j];
        residual_[row] += s * a[0];
        residual_[row + 1] += s * a[1];
      }
    } else if (const int pushing = pushing_row(block); pushing >= 0) {
      residual_[pushing] = c_[pushing] - y_[pushing];
      if (block.is_contact()) residual_[row] = residual_[row + 1] = 0;
    } else if (block.type == BlockType::box) {
      residual_[row] = problem.bound[b] > 0 ? c_[row] - y_[row] + m_[row] : 0.0;
    } else {
      for (int i = row; i < row + block.size; ++i) residual_[i] = c_[i];
    }
    for (int i = row; i < row + block.size; ++i) worst_residual_ = std::max(worst_residual_, std::abs(residual_[i]));
  }
}

/// D of one block: dc + D dlambda = r.
void InteriorPoint::local_matrix(const ScaledProblem& problem, int b, double* D) const {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  std::fill_n(D, block.size * block.size, 0.0);
  if (is_cone(block)) {
    // W^-2 = (2 v v^T - J) / eta^2 with v = J w, behind T^-1 = [1 -t^T; 0 1].
    const Scaling& s = scaling_[b];
    const double scale = 1 / (s.eta * s.eta);
    const double v[3] = {s.w[0], -s.w[1], -s.w[2]};
    double H[3][3];
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) H[i][j] = scale * 2 * v[i] * v[j];
    H[0][0] -= scale;
    H[1][1] += scale;
    H[2][2] += scale;
    const double* t = slope_.data() + 2 * static_cast<std::size_t>(b);
    for (int j = 0; j < 3; ++j) H[0][j] -= t[0] * H[1][j] + t[1] * H[2][j];
    constexpr int place[3] = {2, 0, 1};  // of (normal, t1, t2) in the rows (t1, t2, n)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        D[3 * place[i] + place[j]] = (i == 0 ? block.mu : 1.0) * H[i][j] * (j == 0 ? block.mu : 1.0);
  } else if (is_pyramid(block)) {
    for (int j = 0; j < block.facets; ++j) {
      double a[2];
      side_of(block, j, a);
      const double weight = side_[static_cast<std::size_t>(max_facets) * b + j] / side_slack(block, a, lambda_.data());
      for (int k = 0; k < 2; ++k) {
        for (int l = 0; l < 2; ++l) D[3 * k + l] += weight * a[k] * a[l];
        D[3 * k + 2] -= weight * a[k] * block.mu;
      }
    }
    D[8] = y_[row + 2] / lambda_[row + 2];
  } else if (block.type == BlockType::limit) {
    D[0] = y_[row] / lambda_[row];
  } else if (block.is_contact()) {
    D[0] = D[4] = 1e20;  // no friction: no tangential impulse
    D[8] = y_[row + 2] / lambda_[row + 2];
  } else if (block.type == BlockType::box) {
    const double bound = problem.bound[b];
    D[0] = bound > 0 ? y_[row] / (lambda_[row] + bound) + m_[row] / (bound - lambda_[row]) : 1e20;
  }
}

bool InteriorPoint::factorise(const ScaledProblem& problem) {
  D_.resize(problem.blocks, problem.num_blocks);
  for (int b = 0; b < problem.num_blocks; ++b) local_matrix(problem, b, D_[b]);

  // In velocities: K = (R + E + D)^-1.
  if (problem.factored) {
    K_.resize(problem.blocks, problem.num_blocks);
    for (int b = 0; b < problem.num_blocks; ++b) {
      const Block& block = problem.blocks[b];
      std::copy_n(D_[b], block.size * block.size, K_[b]);
      for (int i = 0; i < block.size; ++i)
        K_[b][i * block.size + i] += problem.rigid[block.row + i] + (1 + extra_) * problem.E[block.row + i];
      if (!invert_small(K_[b], block.size)) return false;
    }
    return velocities_.factorise(problem.Y, problem.blocks, K_);
  }

  const auto ld = static_cast<std::size_t>(problem.ld);
  const auto n = static_cast<std::size_t>(problem.n);
  grow(A_, ld * n);
  grow(pivot_, n);
  grow(work_, 2 * ld);
  std::copy_n(problem.G.begin(), ld * n, A_.begin());
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    for (int i = 0; i < block.size; ++i)
      for (int j = 0; j < block.size; ++j) A_[(block.row + i) * ld + block.row + j] += D_[b][i * block.size + j];
    for (int i = block.row; i < block.row + block.size; ++i) A_[i * ld + i] += extra_ * problem.E[i];
  }
  return dense::lu(A_.data(), problem.n, problem.ld, pivot_.data(), work_.data()) > 0;
}

/// r of one block for the given centring; corrected: with the second-order term of the predictor's step.
void InteriorPoint::right_hand_side(const ScaledProblem& problem, int b, double target, bool corrected,
                                    double* r) const {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    const Scaling& s = scaling_[b];
    double d[3];
    double product[3];
    jordan_product(s.l, s.l, product);
    for (int i = 0; i < 3; ++i) d[i] = -product[i];
    d[0] += target;
    if (corrected) {
      double x[3];
      double y[3];
      to_lorentz(block, adlambda_.data(), block.mu, x);
      to_lorentz(block, ady_.data(), 1, y);
      const double back[3] = {s.w[0], -s.w[1], -s.w[2]};
      double wx[3];
      double wy[3];
      rotate_by(back, x, wx);  // W^-1 dx, the factors eta cancel
      rotate_by(s.w, y, wy);
      jordan_product(wx, wy, product);
      for (int i = 0; i < 3; ++i) d[i] -= product[i];
    }
    double z[3];
    double v[3];
    arrow_solve(s.l, d, z);
    const double back[3] = {s.w[0], -s.w[1], -s.w[2]};
    rotate_by(back, z, v);
    const double* t = slope_.data() + 2 * static_cast<std::size_t>(b);
    const double along = t[0] * residual_[row] + t[1] * residual_[row + 1];
    const double v0 = v[0] / s.eta - (residual_[row + 2] + along);
    const double v1 = v[1] / s.eta - residual_[row];
    const double v2 = v[2] / s.eta - residual_[row + 1];
    r[0] = v1;
    r[1] = v2;
    r[2] = block.mu * (v0 - t[0] * v1 - t[1] * v2);
  } else if (is_pyramid(block)) {
    r[0] = -residual_[row];
    r[1] = -residual_[row + 1];
    for (int j = 0; j < block.facets; ++j) {
      double a[2];
      side_of(block, j, a);
      const std::size_t at = static_cast<std::size_t>(max_facets) * b + j;
      const double slack = side_slack(block, a, lambda_.data());
      double d = target - side_[at] * slack;
      if (corrected) d -= adside_[at] * side_slack(block, a, adlambda_.data());
      r[0] -= d / slack * a[0];
      r[1] -= d / slack * a[1];
    }
    const int i = row + 2;
    double d = target - lambda_[i] * y_[i];
    if (corrected) d -= adlambda_[i] * ady_[i];
    r[2] = d / lambda_[i] - residual_[i];
  } else if (const int i = pushing_row(block); i >= 0) {
    double d = target - lambda_[i] * y_[i];
    if (corrected) d -= adlambda_[i] * ady_[i];
    r[0] = r[block.size - 1] = 0;
    if (block.size == 3) r[1] = 0;
    r[i - row] = d / lambda_[i] - residual_[i];
  } else if (block.type == BlockType::box) {
    const double bound = problem.bound[b];
    r[0] = 0;
    if (!(bound > 0)) return;
    double dp = target - y_[row] * (lambda_[row] + bound);
    double dm = target - m_[row] * (bound - lambda_[row]);
    if (corrected) {
      dp -= ady_[row] * adlambda_[row];
      dm += adm_[row] * adlambda_[row];
    }
    r[0] = dp / (lambda_[row] + bound) - dm / (bound - lambda_[row]) - residual_[row];
  } else {
    for (int k = 0; k < block.size; ++k) r[k] = -residual_[row + k];
  }
}

/// dy and what goes with it, of the dlambda that the system gave.
void InteriorPoint::expand(const ScaledProblem& problem, int b, double target, bool corrected) {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    // dy = T Q dc + residual.
    const double* dc = dc_.data() + row;
    const double* t = slope_.data() + 2 * static_cast<std::size_t>(b);
    dy_[row] = dc[0] + residual_[row];
    dy_[row + 1] = dc[1] + residual_[row + 1];
    dy_[row + 2] = dc[2] / block.mu + t[0] * dy_[row] + t[1] * dy_[row + 1] + residual_[row + 2];
  } else if (is_pyramid(block)) {
    for (int j = 0; j < block.facets; ++j) {
      double a[2];
      side_of(block, j, a);
      const std::size_t at = static_cast<std::size_t>(max_facets) * b + j;
      const double slack = side_slack(block, a, lambda_.data());
      double d = target - side_[at] * slack;
      if (corrected) d -= adside_[at] * side_slack(block, a, adlambda_.data());
      dside_[at] = (d - side_[at] * side_slack(block, a, dlambda_.data())) / slack;
    }
    const int i = row + 2;
    double d = target - lambda_[i] * y_[i];
    if (corrected) d -= adlambda_[i] * ady_[i];
    dy_[i] = (d - y_[i] * dlambda_[i]) / lambda_[i];
  } else if (const int i = pushing_row(block); i >= 0) {
    double d = target - lambda_[i] * y_[i];
    if (corrected) d -= adlambda_[i] * ady_[i];
    dy_[i] = (d - y_[i] * dlambda_[i]) / lambda_[i];
  } else if (block.type == BlockType::box && problem.bound[b] > 0) {
    const double bound = problem.bound[b];
    double dp = target - y_[row] * (lambda_[row] + bound);
    double dm = target - m_[row] * (bound - lambda_[row]);
    if (corrected) {
      dp -= ady_[row] * adlambda_[row];
      dm += adm_[row] * adlambda_[row];
    }
    dy_[row] = (dp - y_[row] * dlambda_[row]) / (lambda_[row] + bound);
    dm_[row] = (dm + m_[row] * dlambda_[row]) / (bound - lambda_[row]);
  }
}

/// out = K x.
void InteriorPoint::weigh(const ScaledProblem& problem, const double* x, double* out) const {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const double* K = K_[b];
    for (int i = 0; i < block.size; ++i) {
      double sum = 0;
      for (int j = 0; j < block.size; ++j) sum += K[i * block.size + j] * x[block.row + j];
      out[block.row + i] = sum;
    }
  }
}

/// change = K (r - Y H^-1 Y^T K r): the system's solution in velocities, docs/theory.md (C11).
void InteriorPoint::solve_in_velocities(const ScaledProblem& problem, const double* r, double* change) {
  weigh(problem, r, weighted_.data());
  problem.Y.times_transposed(weighted_.data(), w_.data());
  velocities_.solve(w_.data(), 1, 1);

  std::fill_n(weighted_.begin(), problem.ld, 0.0);
  problem.Y.add_times(w_.data(), weighted_.data());
  for (int i = 0; i < problem.n; ++i) weighted_[i] = r[i] - weighted_[i];
  weigh(problem, weighted_.data(), change);
}

/// dc = (Y Y^T + R + E) dlambda.
void InteriorPoint::find_velocity_change(const ScaledProblem& problem) {
  problem.Y.times_transposed(dlambda_.data(), w_.data());
  std::fill_n(dc_.begin(), problem.ld, 0.0);
  problem.Y.add_times(w_.data(), dc_.data());
  for (int i = 0; i < problem.n; ++i) dc_[i] += (problem.rigid[i] + (1 + extra_) * problem.E[i]) * dlambda_[i];
}

/// out = asked - D dlambda: dc, as the system has it.
void InteriorPoint::take_local_part(const ScaledProblem& problem, const double* asked, double* out) const {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const double* D = D_[b];
    for (int i = 0; i < block.size; ++i) {
      double left = asked[block.row + i];
      for (int j = 0; j < block.size; ++j) left -= D[i * block.size + j] * dlambda_[block.row + j];
      out[block.row + i] = left;
    }
  }
}

void InteriorPoint::solve_direction(const ScaledProblem& problem, double target, bool corrected) {
  for (auto* v : {&asked_, &dc_}) grow(*v, static_cast<std::size_t>(problem.ld));
  for (int b = 0; b < problem.num_blocks; ++b)
    right_hand_side(problem, b, target, corrected, asked_.data() + problem.blocks[b].row);

  if (!problem.factored) {
    std::copy_n(asked_.begin(), problem.n, dlambda_.begin());
    dense::lu_solve(A_.data(), problem.n, problem.ld, pivot_.data(), dlambda_.data());
    take_local_part(problem, asked_.data(), dc_.data());
  } else {
    for (auto* v : {&weighted_, &rest_, &change_}) grow(*v, static_cast<std::size_t>(problem.ld));
    grow(w_, static_cast<std::size_t>(problem.Y.columns()));
    solve_in_velocities(problem, asked_.data(), dlambda_.data());

    // Once more for what rounding has left; D is large and small at a time near the boundary.
    find_velocity_change(problem);
    take_local_part(problem, asked_.data(), rest_.data());
    for (int i = 0; i < problem.n; ++i) rest_[i] -= dc_[i];
    solve_in_velocities(problem, rest_.data(), change_.data());
    for (int i = 0; i < problem.n; ++i) dlambda_[i] += change_[i];

    // dc itself, since asked - D dlambda has lost its digits: then y fits lambda to rounding.
    find_velocity_change(problem);
  }
  for (int b = 0; b < problem.num_blocks; ++b) expand(problem, b, target, corrected);
}

double InteriorPoint::longest_step(const ScaledProblem& problem) const {
  double step = INFINITY;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const int row = block.row;
    if (is_cone(block)) {
      double x[3];
      double d[3];
      to_lorentz(block, lambda_.data(), block.mu, x);
      to_lorentz(block, dlambda_.data(), block.mu, d);
      step = std::min(step, cone_step(x, d));
      to_lorentz(block, y_.data(), 1, x);
      to_lorentz(block, dy_.data(), 1, d);
      step = std::min(step, cone_step(x, d));
    } else if (is_pyramid(block)) {
      for (int j = 0; j < block.facets; ++j) {
        double a[2];
        side_of(block, j, a);
        const std::size_t at = static_cast<std::size_t>(max_facets) * b + j;
        step = std::min(step, scalar_step(side_slack(block, a, lambda_.data()), side_slack(block, a, dlambda_.data())));
        step = std::min(step, scalar_step(side_[at], dside_[at]));
      }
      step = std::min(step, scalar_step(lambda_[row + 2], dlambda_[row + 2]));
      step = std::min(step, scalar_step(y_[row + 2], dy_[row + 2]));
    } else if (const int i = pushing_row(block); i >= 0) {
      step = std::min(step, scalar_step(lambda_[i], dlambda_[i]));
      step = std::min(step, scalar_step(y_[i], dy_[i]));
    } else if (block.type == BlockType::box && problem.bound[b] > 0) {
      const double bound = problem.bound[b];
      step = std::min(step, scalar_step(lambda_[row] + bound, dlambda_[row]));
      step = std::min(step, scalar_step(bound - lambda_[row], -dlambda_[row]));
      step = std::min(step, scalar_step(y_[row], dy_[row]));
      step = std::min(step, scalar_step(m_[row], dm_[row]));
    }
  }
  return step;
}

void InteriorPoint::move(const ScaledProblem& problem, double step) {
  // What the linearisation of De Saxce's term misses goes to y_0.
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    if (!is_cone(block)) continue;
    const int row = block.row;
    const double* t = slope_.data() + 2 * static_cast<std::size_t>(b);
    const double x = y_[row] + step * dy_[row];
    const double y = y_[row + 1] + step * dy_[row + 1];
    const double now = slip_term(y_[row] * y_[row] + y_[row + 1] * y_[row + 1], theta_);
    const double missed = slip_term(x * x + y * y, theta_) - now - step * (t[0] * dy_[row] + t[1] * dy_[row + 1]);
    const double slack = y_[row + 2] + step * dy_[row + 2] - std::sqrt(x * x + y * y);
    y_[row + 2] += std::max(missed, -0.5 * slack);
  }
  const auto add = [&](const std::vector<double>& d, std::vector<double>& x) {
    for (std::size_t i = 0; i < x.size() && i < d.size(); ++i) x[i] += step * d[i];
  };
  add(dlambda_, lambda_);
  add(dy_, y_);
  add(dm_, m_);
  if (has_sides_) add(dside_, side_);
}

/// A smaller theta makes the term larger: y_0 takes that, too.
void InteriorPoint::set_smoothing(const ScaledProblem& problem, double theta) {
  if (!(theta < theta_)) return;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    if (!is_cone(block)) continue;
    const double speed2 = y_[block.row] * y_[block.row] + y_[block.row + 1] * y_[block.row + 1];
    y_[block.row + 2] += slip_term(speed2, theta) - slip_term(speed2, theta_);
  }
  theta_ = theta;
}

bool InteriorPoint::solve(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations) {
  start(problem, options.start);
  return resume(problem, options, iterate, iterations);
}

bool InteriorPoint::resume(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations) {
  for (auto* v : {&dlambda_, &dy_, &dm_}) std::fill(v->begin(), v->end(), 0.0);
  bool reached = false;
  int frozen = 0;
  double mean = gap(problem);
  double last_step = 1;
  std::copy_n(lambda_.begin(), problem.ld, iterate.lambda.begin());
  for (int it = 0; it < options.max_iterations; ++it) {
    ++iterations;
    set_smoothing(problem, options.smoothing * mean);
    mean = gap(problem);
    extra_ = std::max(0.0, options.softening * mean - 1);
    evaluate(problem, frozen > 0);
    if (frozen > 0) --frozen;
    if (!std::isfinite(mean) || !std::isfinite(worst_residual_)) break;
    std::copy_n(lambda_.begin(), problem.ld, iterate.lambda.begin());
    reached = mean < options.gap && worst_residual_ < options.residual;
    if (reached) break;
    if (!factorise(problem)) break;

    // Where the step without centring would lead says how much centring is needed.
    solve_direction(problem, 0, false);
    const double affine = std::min(1.0, longest_step(problem));
    if (!std::isfinite(affine)) break;
    const double ratio = pairs_ > 0 ? gap_after(problem, affine) / mean : 0;
    double centring = std::max(least_centring, ratio * ratio * ratio);
    centring = std::max(centring, std::min(1.0, gap_per_residual * worst_residual_ / std::max(mean, 1e-300)));
    std::swap(adlambda_, dlambda_);
    std::swap(ady_, dy_);
    std::swap(adm_, dm_);
    if (has_sides_) std::swap(adside_, dside_);
    std::fill_n(dy_.begin(), problem.ld, 0.0);
    std::fill_n(dm_.begin(), problem.ld, 0.0);
    solve_direction(problem, centring * mean, true);
    double step = std::min(1.0, to_boundary * longest_step(problem));

    // Stuck at the boundary: towards the centre, and for some steps without the turning of De Saxce's term.
    if (step < short_step) {
      solve_direction(problem, 0.8 * mean, false);
      step = std::min(1.0, to_boundary * longest_step(problem));
      if (frozen == 0 && last_step >= short_step) frozen = frozen_steps;
    }
    last_step = step;
    if (!std::isfinite(step)) break;
    move(problem, step);
    mean = gap(problem);
  }
  iterate.evaluate(problem);
  if (!std::isfinite(iterate.residual)) iterate.clear(problem);
  return reached;
}

}  // namespace coulomb

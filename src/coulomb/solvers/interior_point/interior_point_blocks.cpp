// The interior-point method on one block: where it starts, what it asks of the block's impulses, how far they may go (interior_point.hpp).
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/interior_point/interior_point.hpp"
#include "coulomb/solvers/interior_point/lorentz_cone.hpp"

namespace coulomb {
namespace {

constexpr double no_impulse = 1e20;  // on the diagonal of a row without friction

double scalar_step(double x, double d) { return d < 0 ? -x / d : INFINITY; }

bool is_cone(const Block& block) { return block.type == BlockType::cone && block.mu > 0; }
bool is_pyramid(const Block& block) { return block.type == BlockType::pyramid && block.mu > 0; }
/// One row that may push only: limits, and the normals of contacts without friction.
int pushing_row(const Block& block) {
  if (block.type == BlockType::limit) return block.row;
  return block.is_contact() && block.mu <= 0 ? block.row + 2 : -1;
}

/// (mu lambda_N, lambda_T) of a contact's rows (t1, t2, n, further tangents).
LorentzPoint lorentz_point(const Block& block, const std::vector<double>& rows, double normal_factor) {
  LorentzPoint x = {normal_factor * rows[block.row + 2]};
  for (int k = 0; k < block.tangents(); ++k)
    x[1 + k] = rows[block.tangent(k)];
  return x;
}

double squared_slip(const Block& block, const std::vector<double>& y) {
  const double* rows = y.data() + block.row;
  double sum = rows[0] * rows[0] + rows[1] * rows[1];
  for (int i = 3; i < block.size; ++i)
    sum += rows[i] * rows[i];
  return sum;
}

/// slope . rows of the tangents.
double along_slope(const Block& block, const double* slope, const std::vector<double>& rows) {
  double sum = slope[0] * rows[block.row] + slope[1] * rows[block.row + 1];
  for (int k = 2; k < block.tangents(); ++k)
    sum += slope[k] * rows[block.tangent(k)];
  return sum;
}

/// Sides of a pyramid: those of its polygon, then both ends of the interval of every further tangent.
int num_sides(const Block& block) { return block.facets + 2 * (block.tangents() - 2); }

/// Side j of a pyramid: the impulse stays where a . lambda_T <= mu lambda_N; a: one number per tangent.
void side_of(const Block& block, int j, double* a) {
  std::fill_n(a, block.tangents(), 0.0);
  if (j >= block.facets) {
    const int end = j - block.facets;
    a[2 + end / 2] = end % 2 == 0 ? 1 : -1;
    return;
  }
  const FrictionPolygon& polygon = friction_polygon(block);
  const int feature = 2 * j + polygon.first_side;
  a[0] = polygon.direction[feature][0] / polygon.apothem;
  a[1] = polygon.direction[feature][1] / polygon.apothem;
}

double side_slack(const Block& block, const double* a, const double* lambda) {
  double slack = block.mu * lambda[block.row + 2] - a[0] * lambda[block.row] - a[1] * lambda[block.row + 1];
  for (int k = 2; k < block.tangents(); ++k)
    slack -= a[k] * lambda[block.tangent(k)];
  return slack;
}

/// Which multiplier belongs to side j of block b.
std::size_t side_index(int b, int j) { return static_cast<std::size_t>(max_sides) * b + j; }

}  // namespace

/// x = e, y = size; counts the block's pairs.
void InteriorPoint::start_block(const ScaledProblem& problem, int b, double size) {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    at_.lambda[row + 2] = 1 / block.mu;
    at_.y[row + 2] = size;
    pairs_ += 1;
  } else if (is_pyramid(block)) {
    at_.lambda[row + 2] = 1 / block.mu;
    at_.y[row + 2] = size;
    for (int j = 0; j < num_sides(block); ++j)
      at_.side[side_index(b, j)] = size;
    pairs_ += 1 + num_sides(block);
  } else if (pushing_row(block) >= 0) {
    at_.lambda[pushing_row(block)] = 1;
    at_.y[pushing_row(block)] = size;
    pairs_ += 1;
  } else if (block.type == BlockType::box && problem.bound[b] > 0) {
    at_.y[row] = at_.m[row] = size;
    pairs_ += 2;
  }
}

/// Calls visit(x, offset, y) for the pairs of numbers of a block, whose products go to the gap: x and y map the unknowns, or a change of
/// them, to numbers; the first one of the pair is x(at_) + offset.
template <class Visit>
void InteriorPoint::for_each_pair(const ScaledProblem& problem, int b, const Visit& visit) const {
  const Block& block = problem.blocks[b];
  const auto row = static_cast<std::size_t>(block.row);
  if (is_pyramid(block)) {
    // The normal, and the slack of every side with its multiplier.
    const auto normal = [&](const Unknowns& u) { return u.lambda[row + 2]; };
    visit(normal, 0.0, [&](const Unknowns& u) { return u.y[row + 2]; });
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const auto slack = [&](const Unknowns& u) { return side_slack(block, a, u.lambda.data()); };
      visit(slack, 0.0, [&](const Unknowns& u) { return u.side[side_index(b, j)]; });
    }
  } else if (const int pushing = pushing_row(block); pushing >= 0) {
    const auto i = static_cast<std::size_t>(pushing);
    const auto impulse = [&](const Unknowns& u) { return u.lambda[i]; };
    visit(impulse, 0.0, [&](const Unknowns& u) { return u.y[i]; });
  } else if (block.type == BlockType::box && problem.bound[b] > 0) {
    // What is left to both bounds.
    const auto impulse = [&](const Unknowns& u) { return u.lambda[row]; };
    const auto reversed = [&](const Unknowns& u) { return -u.lambda[row]; };
    visit(impulse, problem.bound[b], [&](const Unknowns& u) { return u.y[row]; });
    visit(reversed, problem.bound[b], [&](const Unknowns& u) { return u.m[row]; });
  }
}

/// sum += the products of the block's pairs after a step along the direction.
void InteriorPoint::add_gap(const ScaledProblem& problem, int b, double step, double& sum) const {
  const Block& block = problem.blocks[b];
  const auto moved = [step](double value, double change) { return step == 0 ? value : value + step * change; };
  if (!is_cone(block)) {
    for_each_pair(problem, b, [&](const auto& x, double offset, const auto& y) {
      sum += moved(offset + x(at_), x(step_)) * moved(y(at_), y(step_));
    });
    return;
  }

  // One pair: x . y in the Lorentz cone.
  const auto product = [&](std::size_t i) {
    return moved(at_.lambda[i], step_.lambda[i]) * moved(at_.y[i], step_.y[i]);
  };
  const auto row = static_cast<std::size_t>(block.row);
  sum += block.mu * product(row + 2);
  for (int k = 0; k < block.tangents(); ++k)
    sum += product(static_cast<std::size_t>(block.tangent(k)));
}

/// What y lacks of fitting c, docs/theory.md (C12).
void InteriorPoint::find_residual(const ScaledProblem& problem, int b, bool frozen) {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    // De Saxce's term and its slope, which is zero while it is frozen.
    const double speed2 = squared_slip(block, at_.y);
    const double smooth = std::sqrt(speed2 + theta_ * theta_);
    const double term = slip_term(speed2, theta_);
    double* t = slope_.data() + max_tangents * static_cast<std::size_t>(b);
    for (int k = 0; k < block.tangents(); ++k) {
      const int i = block.tangent(k);
      t[k] = frozen || smooth == 0 ? 0 : at_.y[i] / smooth;
      residual_[i] = c_[i] - at_.y[i];
    }
    residual_[row + 2] = c_[row + 2] / block.mu + term - at_.y[row + 2];
  } else if (is_pyramid(block)) {
    for (int k = 0; k < block.tangents(); ++k)
      residual_[block.tangent(k)] = c_[block.tangent(k)];
    residual_[row + 2] = c_[row + 2] - at_.y[row + 2];
    // The sides carry the tangential velocity.
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const double s = at_.side[side_index(b, j)];
      for (int k = 0; k < block.tangents(); ++k)
        residual_[block.tangent(k)] += s * a[k];
    }
  } else if (const int pushing = pushing_row(block); pushing >= 0) {
    residual_[pushing] = c_[pushing] - at_.y[pushing];
    for (int k = 0; block.is_contact() && k < block.tangents(); ++k)
      residual_[block.tangent(k)] = 0;
  } else if (block.type == BlockType::box) {
    residual_[row] = problem.bound[b] > 0 ? c_[row] - at_.y[row] + at_.m[row] : 0.0;
  } else {
    for (int i = row; i < row + block.size; ++i)
      residual_[i] = c_[i];
  }
}

/// W of a cone with W y = W^-1 x, both inside (Nesterov and Todd).
void InteriorPoint::scale_cone(const Block& block, Scaling& s) const {
  const int m = block.tangents();
  const LorentzPoint x = lorentz_point(block, at_.lambda, block.mu);
  const LorentzPoint y = lorentz_point(block, at_.y, 1);
  const double dx = std::sqrt(std::max(determinant(m, x), 1e-300));
  const double dy = std::sqrt(std::max(determinant(m, y), 1e-300));

  // The middle of x and of y reflected, both of determinant 1.
  double inner = x[0] * y[0];
  for (int i = 1; i <= m; ++i)
    inner += x[i] * y[i];
  const double gamma = std::sqrt(0.5 * (1 + inner / (dx * dy)));
  s.eta = std::sqrt(dx / dy);
  s.w[0] = (x[0] / dx + y[0] / dy) / (2 * gamma);
  for (int i = 1; i <= m; ++i)
    s.w[i] = (x[i] / dx - y[i] / dy) / (2 * gamma);

  // Where x and y are the same point.
  s.l = rotated_by(m, s.w, y);
  for (double& l : s.l)
    l *= s.eta;
}

/// D of a cone: mu on its normal, W^-2 behind De Saxce's term.
void InteriorPoint::cone_matrix(const Block& block, int b, double* D) const {
  // W^-2 = (2 v v^T - J) / eta^2 with v = J w, behind T^-1 = [1 -t^T; 0 1].
  const Scaling& s = scaling_[b];
  const double scale = 1 / (s.eta * s.eta);
  const int size = block.size;
  const LorentzPoint v = reflected(size - 1, s.w);
  double H[1 + max_tangents][1 + max_tangents];
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      H[i][j] = scale * 2 * v[i] * v[j];
  H[0][0] -= scale;
  for (int i = 1; i < size; ++i)
    H[i][i] += scale;

  const double* t = slope_.data() + max_tangents * static_cast<std::size_t>(b);
  for (int j = 0; j < size; ++j) {
    double along = t[0] * H[1][j] + t[1] * H[2][j];
    for (int k = 2; k < block.tangents(); ++k)
      along += t[k] * H[1 + k][j];
    H[0][j] -= along;
  }

  // From (normal, tangents) to the rows of the block.
  const auto place = [&](int i) { return i == 0 ? 2 : block.tangent(i - 1) - block.row; };
  for (int i = 0; i < size; ++i)
    for (int j = 0; j < size; ++j)
      D[size * place(i) + place(j)] = (i == 0 ? block.mu : 1.0) * H[i][j] * (j == 0 ? block.mu : 1.0);
}

/// D of one block: dc + D dlambda = r.
void InteriorPoint::local_matrix(const ScaledProblem& problem, int b, double* D) const {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  std::fill_n(D, block.size * block.size, 0.0);
  if (is_cone(block)) {
    cone_matrix(block, b, D);
  } else if (is_pyramid(block)) {
    // Every side resists by its multiplier over its slack, the normal by its own pair.
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const double weight = at_.side[side_index(b, j)] / side_slack(block, a, at_.lambda.data());
      for (int k = 0; k < block.tangents(); ++k) {
        double* D_row = D + block.size * (block.tangent(k) - row);
        for (int l = 0; l < block.tangents(); ++l)
          D_row[block.tangent(l) - row] += weight * a[k] * a[l];
        D_row[2] -= weight * a[k] * block.mu;
      }
    }

    D[(block.size + 1) * 2] = at_.y[row + 2] / at_.lambda[row + 2];
  } else if (block.type == BlockType::limit) {
    D[0] = at_.y[row] / at_.lambda[row];
  } else if (block.is_contact()) {
    for (int i = 0; i < block.size; ++i)
      D[(block.size + 1) * i] = no_impulse;  // no friction: no tangential impulse
    D[(block.size + 1) * 2] = at_.y[row + 2] / at_.lambda[row + 2];
  } else if (block.type == BlockType::box) {
    const double bound = problem.bound[b];
    D[0] = bound > 0 ? at_.y[row] / (at_.lambda[row] + bound) + at_.m[row] / (bound - at_.lambda[row]) : no_impulse;
  }
}

/// What the product lambda y of row i still has to gain; corrected: with the predictor's second-order term.
double InteriorPoint::missing(int i, double target, bool corrected) const {
  double d = target - at_.lambda[i] * at_.y[i];
  if (corrected) d -= affine_.lambda[i] * affine_.y[i];
  return d;
}

/// The same of side j of a pyramid, a . lambda_T <= mu lambda_N.
double InteriorPoint::missing_of_side(const Block& block, std::size_t side, const double* a, double target,
                                      bool corrected) const {
  double d = target - at_.side[side] * side_slack(block, a, at_.lambda.data());
  if (corrected) d -= affine_.side[side] * side_slack(block, a, affine_.lambda.data());
  return d;
}

/// The same of a box towards its lower bound (p) and its upper one (m).
InteriorPoint::BoxGaps InteriorPoint::missing_of_box(int row, double bound, double target, bool corrected) const {
  BoxGaps d;
  d.p = target - at_.y[row] * (at_.lambda[row] + bound);
  d.m = target - at_.m[row] * (bound - at_.lambda[row]);
  if (corrected) {
    d.p -= affine_.y[row] * affine_.lambda[row];
    d.m += affine_.m[row] * affine_.lambda[row];
  }
  return d;
}

/// r of a cone: what the scaled product lacks, brought back from the scaling and through De Saxce's term.
void InteriorPoint::cone_right_hand_side(const Block& block, int b, double target, bool corrected, double* r) const {
  const int row = block.row;
  const Scaling& s = scaling_[b];
  const int m = block.tangents();
  const LorentzPoint back = reflected(m, s.w);

  // target e - l o l, in the scaling.
  LorentzPoint d = {};
  const LorentzPoint square = jordan_product(m, s.l, s.l);
  for (int i = 0; i <= m; ++i)
    d[i] = -square[i];
  d[0] += target;

  // The second-order term of the predictor's step.
  if (corrected) {
    const LorentzPoint wx = rotated_by(m, back, lorentz_point(block, affine_.lambda, block.mu));
    const LorentzPoint wy = rotated_by(m, s.w, lorentz_point(block, affine_.y, 1));  // the factors eta cancel
    const LorentzPoint product = jordan_product(m, wx, wy);
    for (int i = 0; i <= m; ++i)
      d[i] -= product[i];
  }

  // l o z = d, and out of the scaling.
  LorentzPoint z = {};
  arrow_solve(m, s.l, d, z);
  const LorentzPoint v = rotated_by(m, back, z);

  // Less what y lacks, which the step makes up for.
  const double* t = slope_.data() + max_tangents * static_cast<std::size_t>(b);
  double normal = v[0] / s.eta - (residual_[row + 2] + along_slope(block, t, residual_));
  for (int k = 0; k < m; ++k) {
    const int i = block.tangent(k);
    r[i - row] = v[1 + k] / s.eta - residual_[i];
    normal -= t[k] * r[i - row];
  }
  r[2] = block.mu * normal;
}

/// r of one block for the given centring; corrected: with the second-order term of the predictor's step.
void InteriorPoint::right_hand_side(const ScaledProblem& problem, int b, double target, bool corrected,
                                    double* r) const {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    cone_right_hand_side(block, b, target, corrected, r);
  } else if (is_pyramid(block)) {
    // What the sides have to bring ...
    for (int k = 0; k < block.tangents(); ++k)
      r[block.tangent(k) - row] = -residual_[block.tangent(k)];
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const double slack = side_slack(block, a, at_.lambda.data());
      const double d = missing_of_side(block, side_index(b, j), a, target, corrected);
      for (int k = 0; k < block.tangents(); ++k)
        r[block.tangent(k) - row] -= d / slack * a[k];
    }

    // ... and the normal.
    const int i = row + 2;
    r[2] = missing(i, target, corrected) / at_.lambda[i] - residual_[i];
  } else if (const int i = pushing_row(block); i >= 0) {
    std::fill_n(r, block.size, 0.0);
    r[i - row] = missing(i, target, corrected) / at_.lambda[i] - residual_[i];
  } else if (block.type == BlockType::box) {
    const double bound = problem.bound[b];
    r[0] = 0;
    if (!(bound > 0)) return;
    const BoxGaps d = missing_of_box(row, bound, target, corrected);
    r[0] = d.p / (at_.lambda[row] + bound) - d.m / (bound - at_.lambda[row]) - residual_[row];
  } else {
    for (int k = 0; k < block.size; ++k)
      r[k] = -residual_[row + k];
  }
}

/// dy and what goes with it, of the dlambda that the system gave.
void InteriorPoint::expand(const ScaledProblem& problem, int b, double target, bool corrected) {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  if (is_cone(block)) {
    // dy = T Q dc + residual.
    const double* dc = dc_.data() + row;
    const double* t = slope_.data() + max_tangents * static_cast<std::size_t>(b);
    double normal = dc[2] / block.mu;
    for (int k = 0; k < block.tangents(); ++k) {
      const int i = block.tangent(k);
      step_.y[i] = dc[i - row] + residual_[i];
      normal += t[k] * step_.y[i];
    }
    step_.y[row + 2] = normal + residual_[row + 2];
  } else if (is_pyramid(block)) {
    // The multipliers of the sides, then the velocity of the normal.
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const std::size_t side = side_index(b, j);
      const double slack = side_slack(block, a, at_.lambda.data());
      const double d = missing_of_side(block, side, a, target, corrected);
      step_.side[side] = (d - at_.side[side] * side_slack(block, a, step_.lambda.data())) / slack;
    }

    const int i = row + 2;
    step_.y[i] = (missing(i, target, corrected) - at_.y[i] * step_.lambda[i]) / at_.lambda[i];
  } else if (const int i = pushing_row(block); i >= 0) {
    step_.y[i] = (missing(i, target, corrected) - at_.y[i] * step_.lambda[i]) / at_.lambda[i];
  } else if (block.type == BlockType::box && problem.bound[b] > 0) {
    const double bound = problem.bound[b];
    const BoxGaps d = missing_of_box(row, bound, target, corrected);
    step_.y[row] = (d.p - at_.y[row] * step_.lambda[row]) / (at_.lambda[row] + bound);
    step_.m[row] = (d.m + at_.m[row] * step_.lambda[row]) / (bound - at_.lambda[row]);
  }
}

/// How far the block may go along its direction until a pair reaches zero.
double InteriorPoint::longest_step_of(const ScaledProblem& problem, int b) const {
  const Block& block = problem.blocks[b];
  const int row = block.row;
  double step = INFINITY;
  if (is_cone(block)) {
    // The impulse in its cone, then the velocity in its own.
    const int m = block.tangents();
    step = std::min(
        step, cone_step(m, lorentz_point(block, at_.lambda, block.mu), lorentz_point(block, step_.lambda, block.mu)));
    step = std::min(step, cone_step(m, lorentz_point(block, at_.y, 1), lorentz_point(block, step_.y, 1)));
  } else if (is_pyramid(block)) {
    // Inside every side, its multiplier positive.
    for (int j = 0; j < num_sides(block); ++j) {
      double a[max_tangents];
      side_of(block, j, a);
      const std::size_t side = side_index(b, j);
      const double slack = side_slack(block, a, at_.lambda.data());
      step = std::min(step, scalar_step(slack, side_slack(block, a, step_.lambda.data())));
      step = std::min(step, scalar_step(at_.side[side], step_.side[side]));
    }
    step = std::min(step, scalar_step(at_.lambda[row + 2], step_.lambda[row + 2]));
    step = std::min(step, scalar_step(at_.y[row + 2], step_.y[row + 2]));
  } else if (const int i = pushing_row(block); i >= 0) {
    step = std::min(step, scalar_step(at_.lambda[i], step_.lambda[i]));
    step = std::min(step, scalar_step(at_.y[i], step_.y[i]));
  } else if (block.type == BlockType::box && problem.bound[b] > 0) {
    const double bound = problem.bound[b];
    step = std::min(step, scalar_step(at_.lambda[row] + bound, step_.lambda[row]));
    step = std::min(step, scalar_step(bound - at_.lambda[row], -step_.lambda[row]));
    step = std::min(step, scalar_step(at_.y[row], step_.y[row]));
    step = std::min(step, scalar_step(at_.m[row], step_.m[row]));
  }
  return step;
}

/// What the linearisation of De Saxce's term misses of a step goes to y_0.
void InteriorPoint::correct_slip(const ScaledProblem& problem, double step) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    if (!is_cone(block)) continue;
    const int row = block.row;
    const double* t = slope_.data() + max_tangents * static_cast<std::size_t>(b);
    double speed2 = 0;
    for (int k = 0; k < block.tangents(); ++k) {
      const int i = block.tangent(k);
      const double slip = at_.y[i] + step * step_.y[i];
      speed2 += slip * slip;
    }
    const double now = slip_term(squared_slip(block, at_.y), theta_);
    const double missed = slip_term(speed2, theta_) - now - step * along_slope(block, t, step_.y);

    // No more than half of the distance to the boundary is taken back.
    const double slack = at_.y[row + 2] + step * step_.y[row + 2] - std::sqrt(speed2);
    at_.y[row + 2] += std::max(missed, -0.5 * slack);
  }
}

/// A smaller theta makes the term larger: y_0 takes that, too.
void InteriorPoint::set_smoothing(const ScaledProblem& problem, double theta) {
  if (!(theta < theta_)) return;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    if (!is_cone(block)) continue;
    const double speed2 = squared_slip(block, at_.y);
    at_.y[block.row + 2] += slip_term(speed2, theta) - slip_term(speed2, theta_);
  }
  theta_ = theta;
}

/// What a theta that grows with the gap adds to the residual of the normals, per relative change of both.
void InteriorPoint::add_smoothing_slope(const ScaledProblem& problem) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    if (!is_cone(problem.blocks[b])) continue;
    const int row = problem.blocks[b].row;
    const double smooth = std::sqrt(squared_slip(problem.blocks[b], at_.y) + theta_ * theta_);
    residual_[row + 2] += theta_ * (theta_ / smooth - 1);
  }
}

/// What y_0 lacks of the velocity and De Saxce's term it takes, as far as that leaves it inside.
void InteriorPoint::fit_slip(const ScaledProblem& problem) {
  worst_residual_ = 0;
  for (int b = 0; b < problem.num_blocks; ++b) {
    const Block& block = problem.blocks[b];
    const int row = block.row;
    if (is_cone(block)) {
      const double slack = at_.y[row + 2] - std::sqrt(squared_slip(block, at_.y));
      const double taken = std::max(-0.5 * slack, residual_[row + 2]);
      at_.y[row + 2] += taken;
      residual_[row + 2] -= taken;
      scale_cone(block, scaling_[b]);
    }
    for (int i = row; i < row + block.size; ++i)
      worst_residual_ = std::max(worst_residual_, std::abs(residual_[i]));
  }
}

/// The product of two changes in the scaling of the block, where a change of length 1 takes a pair about to its boundary when divided
/// by the root of the gap.
double InteriorPoint::local_product_of(const ScaledProblem& problem, int b, const Unknowns& a,
                                       const Unknowns& e) const {
  const Block& block = problem.blocks[b];
  double sum = 0;
  if (!is_cone(block)) {
    for_each_pair(problem, b, [&](const auto& x, double offset, const auto& y) {
      const double ratio = y(at_) / (offset + x(at_));
      sum += x(a) * x(e) * ratio + y(a) * y(e) / ratio;
    });
    return sum;
  }

  // W^-1 dx and W dy.
  const Scaling& s = scaling_[b];
  const int m = block.tangents();
  const auto product = [&](const std::vector<double>& left, const std::vector<double>& right, double normal_factor,
                           const LorentzPoint& w) {
    const LorentzPoint u = rotated_by(m, w, lorentz_point(block, left, normal_factor));
    const LorentzPoint v = rotated_by(m, w, lorentz_point(block, right, normal_factor));
    double inner = u[0] * v[0];
    for (int i = 1; i <= m; ++i)
      inner += u[i] * v[i];
    return inner;
  };
  sum += 1 / (s.eta * s.eta) * product(a.lambda, e.lambda, block.mu, reflected(m, s.w));
  sum += s.eta * s.eta * product(a.y, e.y, 1, s.w);
  return sum;
}

/// How far the block's products are from what they are on the path, relative to it.
double InteriorPoint::off_centre_of(const ScaledProblem& problem, int b, double gap) const {
  const double wanted = weight_[b] * gap;
  if (is_cone(problem.blocks[b])) {
    // The two eigenvalues of l o l.
    const LorentzPoint& l = scaling_[b].l;
    const double t = std::sqrt(tangential_product(problem.blocks[b].tangents(), l, l));
    const double smaller = (l[0] - t) * (l[0] - t) / wanted;
    const double larger = (l[0] + t) * (l[0] + t) / wanted;
    return std::max(std::abs(smaller - 1), std::abs(larger - 1));
  }

  double worst = 0;
  for_each_pair(problem, b, [&](const auto& x, double offset, const auto& y) {
    worst = std::max(worst, std::abs((offset + x(at_)) * y(at_) / wanted - 1));
  });
  return worst;
}

}  // namespace coulomb

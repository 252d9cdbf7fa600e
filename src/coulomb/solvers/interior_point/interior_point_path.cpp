// The path of the interior-point method, followed round its folds. Start reading at follow().
//
// The points whose products are the gap times a weight per block are a curve (docs/theory.md (C14)). It begins at a large gap, where De
// Saxce's term is smooth and weak, and ends at a solution. The law is not monotone, so on the way the gap may have to grow again: steps
// that ask for a smaller one are stuck there. Here the gap is one more unknown [Allgower1990]. Every step goes along the tangent of the
// curve and, at a right angle to it, back to the curve, both by one factor. Lengths and angles are those of the blocks' scaling.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "coulomb/solvers/interior_point/interior_point.hpp"

namespace coulomb {
namespace {

constexpr double near_path = 0.35;       // products may be off by this share of themselves
constexpr double centred = 0.05;         // from there on a step that fails can only have been too long
constexpr double fits = 0.01;            // of the gap: what y may lack
constexpr double rounding = 1e-14;       // of the largest impulse: y is not known better
constexpr double least_gap = 0.02;       // after a step, of that before
constexpr double first_length = 0.5;     // of a step; a pair is at its boundary after 1 or more
constexpr double restart_length = 1e-3;  // at least, after steps that only went back to the path
constexpr double greatest_length = 20;   // by then the gap says how far a step goes
constexpr double to_boundary = 0.9;      // on the way to the path
constexpr double beyond = 1.01;          // a step ends inside if it could be this much longer
constexpr int most_steps_to_path = 60;
constexpr int tries_off_path = 6;  // halves of a step's length before it goes back to the path
constexpr int tries_on_path = 20;
constexpr double least_share = 0.05;  // of the way back
constexpr double gained = 0.3;        // and of what it should gain

/// out = a x + b y, part by part.
template <class Unknowns>
void combine(double a, const Unknowns& x, double b, const Unknowns& y, Unknowns& out) {
  const auto part = [&](const std::vector<double>& xs, const std::vector<double>& ys, std::vector<double>& outs) {
    outs.resize(xs.size());
    for (std::size_t i = 0; i < xs.size(); ++i)
      outs[i] = a * xs[i] + b * ys[i];
  };
  part(x.lambda, y.lambda, out.lambda);
  part(x.y, y.y, out.y);
  part(x.m, y.m, out.m);
  part(x.side, y.side, out.side);
}

}  // namespace

/// Path 0 has the same product in every block. Those of others differ by up to 4, at random but the same every time.
void InteriorPoint::choose_path(const ScaledProblem& problem, int path) {
  for (int b = 0; b < problem.num_blocks; ++b) {
    std::uint64_t bits = (static_cast<std::uint64_t>(b) + 1) * static_cast<std::uint64_t>(path) * 0x9E3779B97F4A7C15u;
    bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9u;
    bits ^= bits >> 32;
    const double random = static_cast<double>(bits >> 11) * 0x1p-53;
    weight_[b] = path == 0 ? 1 : std::exp2(2 * random - 1);
  }
}

/// The largest share by which a product differs from that of the path.
double InteriorPoint::off_centre(const ScaledProblem& problem) const {
  double worst = 0;
  for (int b = 0; b < problem.num_blocks; ++b)
    worst = std::max(worst, off_centre_of(problem, b, path_gap_));
  return worst;
}

double InteriorPoint::allowed_residual(const ScaledProblem& problem) const {
  double largest = 0;
  for (int i = 0; i < problem.n; ++i)
    largest = std::max(largest, std::abs(at_.lambda[i]));
  return std::max(fits * path_gap_, rounding * largest);
}

double InteriorPoint::local_product(const ScaledProblem& problem, const PathStep& a, const PathStep& b) const {
  double sum = 0;
  for (int k = 0; k < problem.num_blocks; ++k)
    sum += local_product_of(problem, k, a.change, b.change);
  return a.gap * b.gap + sum / path_gap_;
}

/// From the start to the point of the path that has its gap. False: it was not found.
bool InteriorPoint::reach_path(const ScaledProblem& problem, int& iterations) {
  for (int it = 0; it < most_steps_to_path; ++it) {
    evaluate(problem, false);
    off_path_ = off_centre(problem);
    if (off_path_ < near_path && worst_residual_ <= allowed_residual(problem)) return true;

    ++iterations;
    if (!factorise(problem)) return false;
    solve_direction(problem, path_gap_, false);
    const double step = std::min(1.0, to_boundary * longest_step(problem));
    if (!std::isfinite(step)) return false;
    move(problem, step);
  }
  return false;
}

/// corrector_: to the path at this gap. tangent_: along the path, of length 1, on from the last one or, at first, to a smaller gap.
void InteriorPoint::find_path_steps(const ScaledProblem& problem, bool first) {
  solve_direction(problem, path_gap_, false);
  corrector_.change = step_;
  corrector_.gap = 0;

  // To the path at twice the gap, less that.
  std::swap(last_tangent_, tangent_);
  add_smoothing_slope(problem);
  solve_direction(problem, 2 * path_gap_, false);
  combine(1, step_, -1, corrector_.change, tangent_.change);
  tangent_.gap = 1;

  const bool turned = first || local_product(problem, tangent_, last_tangent_) < 0;
  const double length = std::sqrt(local_product(problem, tangent_, tangent_));
  const double scale = (turned ? -1 : 1) / length;
  combine(scale, tangent_.change, 0, tangent_.change, tangent_.change);
  tangent_.gap *= scale;
}

/// A share of the corrector and so far along the tangent. False: that is too far from the path, or from fitting; nothing has moved.
bool InteriorPoint::try_path_step(const ScaledProblem& problem, double share, double along, double allowed) {
  const double gap = path_gap_;
  along = tangent_.gap * along < least_gap - 1 ? (least_gap - 1) / tangent_.gap : along;
  combine(share, corrector_.change, along, tangent_.change, step_);
  if (!(longest_step(problem) > beyond)) return false;

  // There.
  std::swap(begin_, at_);
  combine(1, begin_, 1, step_, at_);
  path_gap_ = gap * (1 + along * tangent_.gap);
  theta_ = path_gap_;
  evaluate(problem, false);
  fit_slip(problem);
  const double off = off_centre(problem);
  if (off < allowed && worst_residual_ <= allowed_residual(problem)) {
    off_path_ = off;
    return true;
  }

  // And back.
  std::swap(begin_, at_);
  path_gap_ = gap;
  theta_ = gap;
  return false;
}

/// One step on, of the greatest length that stays near. Where the path turns too sharply for that, one back to it.
bool InteriorPoint::follow_path(const ScaledProblem& problem) {
  const double aside = local_product(problem, tangent_, corrector_);
  const int tries = off_path_ > centred ? tries_off_path : tries_on_path;
  for (int i = 0; i < tries; ++i) {
    if (try_path_step(problem, 1, path_length_ - aside, near_path)) {
      if (i == 0) path_length_ = std::min(2 * path_length_, greatest_length);
      return true;
    }
    path_length_ *= 0.5;
  }

  path_length_ = std::max(path_length_, restart_length);
  for (double share = 1; share > least_share; share *= 0.5)
    if (try_path_step(problem, share, -share * aside, off_path_ * (1 - gained * share))) return true;
  return false;
}

bool InteriorPoint::follow(const ScaledProblem& problem, const Options& options, int path, Iterate& iterate,
                           int& iterations) {
  // Theta is the gap, so that De Saxce's term vanishes where the gap is large.
  start(problem, 1);
  choose_path(problem, path);
  path_gap_ = theta_;
  path_length_ = first_length;

  bool on_path = pairs_ > 0 && reach_path(problem, iterations);
  for (int it = 0; on_path && path_gap_ >= options.gap; ++it) {
    on_path = it < options.max_iterations && factorise(problem);
    if (!on_path) break;
    ++iterations;
    find_path_steps(problem, it == 0);
    on_path = follow_path(problem);
  }

  std::copy_n(at_.lambda.begin(), problem.ld, iterate.lambda.begin());
  iterate.evaluate(problem);
  if (!std::isfinite(iterate.residual)) iterate.clear(problem);
  return on_path;
}

}  // namespace coulomb

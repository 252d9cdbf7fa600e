// What differs from level to level of a solution, and counts in its derivative: labels, impulses, directions of slip.
//
// Labels of level 0 are those of the result: its micro-slips, of the size of the compliance, tell apart what redundant contacts do. Later levels
// slip by the compliance squared and less. They keep the label of level 0 unless their own is clear: dry friction that has come inside its bounds,
// a contact that slips in earnest, or not any more, a pyramid's impulse on a side, or at a vertex.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"

namespace coulomb {
namespace {

constexpr double negligible_speed = 1e-8;  // scaled: of a level whose right-hand side is taken to be the last one's
constexpr double clear_margin = 1e-6;      // scaled: of a label, far above the rounding of slips
constexpr double label_rho = 1e-3;         // over the compliance, as labels of level 0 are read
constexpr double negligible_slip = 1e-8;   // of differences of slip, times what rounds keep of a unit
constexpr double near_rho = 3e-3;  // over the compliance, as the solver reads modes off velocities near a solution
constexpr double most_residual = 1e-16;  // scaled: less is rounding
constexpr int most_steps = 8;

template <class Vector>
double* grown(Vector& v, std::size_t size) {
  if (v.size() < size) v.resize(size);
  return v.data();
}

}  // namespace

/// Labels of all levels, and their impulses: of the first two and of the last the result has them.
void ProblemLinearization::find_labels(const SolverResult& result, bool regularised) {
  const auto count = static_cast<std::size_t>(scaled_.num_blocks);
  const int total = total_levels();
  const bool has_second = total >= 2 && result.lambda_1.size() == result.lambda.size();
  if (static_cast<int>(lower_lambda_.size()) < std::max(2, total)) {
    lower_lambda_.resize(std::max(2, total));
  }
  scaled_.to_scaled(result.lambda_0.data(), grown(lower_lambda_[0], scaled_.ld));
  scaled_.to_scaled((has_second ? result.lambda_1 : result.lambda_0).data(), grown(lower_lambda_[1], scaled_.ld));
  scaled_.to_scaled(result.lambda.data(), lambda_.data());

  // Every level starts with the labels of the result.
  if (static_cast<int>(labels_.size()) <= total) {
    labels_.resize(static_cast<std::size_t>(total) + 1);
  }
  for (int level = 0; level <= total; ++level)
    labels_[level].resize(count);
  last_labels_.resize(count);
  own_labels_.resize(count);

  Labels& given = labels_[0];
  for (std::size_t b = 0; b < count; ++b) {
    given[b] = {result.modes[b], -1};
    if (result.modes[b] == Mode::sliding && b < result.facets.size()) {
      given[b].facet = result.facets[b];
    }
  }

  for (int level = 1; level <= total; ++level)
    labels_[level] = given;
  last_labels_ = given;
  if (!regularised || levels_ == 0) return;

  // The last one, and the one in between.
  scaled_.exact_velocity(lambda_.data(), c_.data());
  own_labels(lambda_.data(), c_.data(), clear_margin, last_labels_);
  if (has_second) {
    scaled_.set_level(lower_lambda_[0].data());
    scaled_.velocity(lower_lambda_[1].data(), c_.data());
    own_labels(lower_lambda_[1].data(), c_.data(), clear_margin, labels_[1]);
  }

  // Those between follow from the one below.
  for (int level = has_second ? 2 : 1; level < total; ++level) {
    find_impulses(level);
    own_labels(lower_lambda_[level].data(), c_.data(), clear_margin, labels_[level]);
  }

  // Labels set by hand are those of all levels.
  const bool alike = last_labels_ == given && std::all_of(labels_.begin(), labels_.begin() + total,
                                                          [&](const Labels& labels) { return labels == given; });
  if (!alike) {
    scaled_.set_level(centre());
    scaled_.velocity(lower_lambda_[0].data(), c_.data());
    own_labels_ = given;
    own_labels(lower_lambda_[0].data(), c_.data(), clear_margin, own_labels_);
    for (std::size_t b = 0; b < count; ++b)
      if (!(own_labels_[b] == given[b])) {
        for (int level = 1; level < total; ++level)
          labels_[level][b] = given[b];
        last_labels_[b] = given[b];
      }
  }
}

/// Impulses of a level that the result does not have, and their velocities c_: as the solver found them, from the level below.
void ProblemLinearization::find_impulses(int level) {
  const double compliance = compliance_ * share(level);
  const std::vector<double>& below = lower_lambda_[level - 1];
  scaled_.set_compliance(compliance);
  scaled_.set_level(below.data());
  between_.resize(scaled_.ld);
  std::copy_n(below.begin(), scaled_.ld, between_.lambda.begin());

  // Modes are read off velocities, and steps go on until they gain nothing.
  NewtonOptions options;
  scaled_.rho = near_rho / compliance;
  options.tolerance = most_residual * scaled_.rho;
  options.start_tolerance = 0;
  options.least_damping = 0;
  options.kappa = 0;
  options.max_iterations = most_steps;
  int iterations = 0;
  between_.evaluate(scaled_);
  newton_.forget_factor();
  newton_.solve(scaled_, options, between_, iterations);
  scaled_.rho = 1;

  std::copy_n(between_.lambda.begin(), scaled_.ld, grown(lower_lambda_[level], scaled_.ld));
  std::copy_n(between_.c.begin(), scaled_.ld, c_.begin());
  scaled_.set_compliance(compliance_);
}

/// Overwrites the labels that these impulses and velocities tell otherwise, with at least this margin.
void ProblemLinearization::own_labels(const double* lambda, const double* c, double least_margin, Labels& labels) {
  scaled_.rho = std::max(1.0, label_rho / compliance_);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    Label own;
    const double margin = scaled_.margin(b, lambda, c, own.mode, &own.facet);
    const Block& block = scaled_.blocks[b];

    if (own.mode != labels[b].mode) {
      if (!(margin > least_margin)) continue;
      if (own.mode != Mode::sliding) {
        own.facet = -1;
      }
      labels[b] = own;
    } else if (block.type == BlockType::pyramid && labels[b].facet >= 0) {
      // Slips of later levels are rounding; impulses on a side and at a vertex are told apart.
      labels[b].facet = facet_of_clear_impulse(block, lambda + block.row, least_margin, labels[b].facet);
    }
  }
  scaled_.rho = 1;
}

/// A sliding contact moves against its impulse, whose direction is surer than that of a micro-slip.
void ProblemLinearization::choose_modes(const Labels& labels, const double* lambda, const double* c,
                                        std::vector<BlockMode>& modes) const {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    const double* l = lambda + block.row;
    BlockMode& mode = modes[b] = scaled_.mode(b, lambda, c);

    const bool slides = labels[b].mode == Mode::sliding && block.mu > 0;
    if (slides && block.type == BlockType::pyramid) {
      // The result's own; else, for labels set by hand, that of z or of the impulse.
      int facet = labels[b].facet >= 0 ? labels[b].facet : mode.facet;
      if (facet < 0) facet = facet_of_impulse(block, l);
      scaled_.set_facet(b, std::max(facet, 0), mode);

    } else if (slides) {
      const double t = tangential_norm(block, l);
      const double slip = tangential_norm(block, c + block.row);
      if (t > 0) {
        tangential_direction(block, l, t, mode.n);
        mode.k = t / (t + slip);
      }
    }

    mode.mode = labels[b].mode;
    mode.k = std::clamp(mode.k, 0.0, 1.0);
    apply(yields_[b], b, mode);
  }
}

/// A lower level's modes and factor.
void ProblemLinearization::build_level(int level) {
  const double* lambda = lower_lambda_[level].data();
  scaled_.set_compliance(compliance_ * share(level));
  scaled_.set_level(level > 0 ? lower_lambda_[level - 1].data() : centre());
  scaled_.velocity(lambda, c_.data());

  lower_modes_[level].resize(scaled_.num_blocks);
  choose_modes(labels_[level], lambda, c_.data(), lower_modes_[level]);
  lower_systems_[level].set_modes(scaled_, lower_modes_[level].data());
  lower_systems_[level].factorise(scaled_, 0);
  scaled_.set_compliance(compliance_);
}

/// How many levels count by themselves, and the impulses of these. Those with other labels than the last do. What a level's own right-hand
/// side changes is that of the difference of impulses, dG (lambda_k - lambda), through the levels above.
int ProblemLinearization::find_lower_levels(bool redundant_rows) {
  const int below = total_levels();
  int count = 0;
  for (int level = 0; level < below; ++level)
    if (!(labels_[level] == last_labels_)) {
      count = level + 1;
    }
  if (!redundant_rows && count == 0) return 0;

  const int size = last_.size;
  // What one round, and what two, leave of impulses in no special direction.
  double* x = grown(buffer_, static_cast<std::size_t>(scaled_.n));
  double* round = grown(second_round_, static_cast<std::size_t>(size));
  double* again = grown(first_round_, static_cast<std::size_t>(size));
  double* y = grown(moving_, static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    x[i] = std::sin(1.0 + 2.4 * i);
  last_.solve(scaled_, x, 1, 1);

  // The speed of impulses x = A^-1 B E C x. What redundant rows hold is far larger than what moves, and would drown it in rounding: the part
  // that moves, A y = (A - B E C) x, is taken out first.
  const auto moved_by_round = [&] {
    std::fill_n(round, size, 0.0);
    add_round(x, round, 1, 1, false);
    std::copy_n(round, size, x);
    last_.solve(scaled_, x, 1, 1);

    std::fill_n(again, size, 0.0);
    add_round(x, again, 1, 1, false);
    for (int i = 0; i < size; ++i)
      y[i] = round[i] -= again[i];
    last_.solve(scaled_, y, 1, 1);

    std::fill_n(again, size, 0.0);
    add_round(y, again, 1, 1, false);
    double energy = 0;
    for (int i = 0; i < size; ++i)
      energy += y[i] * (round[i] - again[i]);
    return std::sqrt(std::abs(energy));
  };

  const auto largest = [&] {
    double value = 0;
    for (int i = 0; i < size; ++i)
      value = std::max(value, std::abs(x[i]));
    return value;
  };

  const auto difference = [&](int level) {
    double value = 0;
    for (int i = 0; i < scaled_.n; ++i)
      value = std::max(value, std::abs(lower_lambda_[level][i] - lambda_[i]));
    return level > 0 ? value : std::max(value, speed_of_centre());
  };

  // Where nothing slides and one round takes out how level 0 differs, so do the others.
  const double once = moved_by_round();
  if (count == 0 && !slides() && difference(0) * once <= negligible_speed) return 0;

  const double kept_once = largest();
  const double twice = moved_by_round();
  const double kept_twice = largest();

  // Level 0 slips at impulses and in directions of its own, and rounds keep what redundant contacts make of that.
  const double kept = below > 1 ? kept_twice : kept_once;
  if (slides() && count == 0 && !(kept * difference_of_slip() <= negligible_slip)) {
    count = 1;
  }

  // Levels whose impulses differ by more than rounds take out.
  for (int level = 0; level < below; ++level) {
    const double differs = difference(level);
    if (differs * (level + 1 < below ? twice : once) > negligible_speed)
      count = std::max(count, level + 1);
    else if (differs * once <= negligible_speed)
      break;
  }

  if (static_cast<int>(lower_systems_.size()) < count) {
    lower_systems_.resize(static_cast<std::size_t>(count));
  }
  if (static_cast<int>(lower_modes_.size()) < count) {
    lower_modes_.resize(static_cast<std::size_t>(count));
  }
  return count;
}

/// How far impulses, directions and speeds of slip differ between level 0 and the last one.
double ProblemLinearization::difference_of_slip() {
  scaled_.set_level(centre());
  scaled_.velocity(lower_lambda_[0].data(), c_.data());
  lower_modes_.resize(std::max<std::size_t>(lower_modes_.size(), 1));
  lower_modes_[0].resize(scaled_.num_blocks);
  choose_modes(labels_[0], lower_lambda_[0].data(), c_.data(), lower_modes_[0]);

  double largest = speed_of_centre();
  for (int i = 0; i < scaled_.n; ++i)
    largest = std::max(largest, std::abs(lower_lambda_[0][i] - lambda_[i]));

  for (int b = 0; b < scaled_.num_blocks; ++b) {
    if (modes_[b].mode != Mode::sliding) continue;
    const BlockMode& first = lower_modes_[0][b];
    for (int k = 0; k < scaled_.blocks[b].tangents(); ++k)
      largest = std::max(largest, std::abs(first.n[k] - modes_[b].n[k]));
    largest = std::max(largest, std::abs(first.k - modes_[b].k));
  }
  return largest;
}

void ProblemLinearization::impulses(int level, double* lambda) const {
  for (int i = 0; i < scaled_.n; ++i)
    lambda[i] = lower_lambda_[level][i] * scaled_.inverse_root[i] * scaled_.ref;
}

void ProblemLinearization::velocity_of_centre(double* c) const {
  for (int i = 0; i < scaled_.n; ++i)
    c[i] = has_centre_ ? -scaled_.E[i] * centre_[i] * scaled_.ref / scaled_.inverse_root[i] : 0.0;
}

/// Scaled: the largest velocity that it adds.
double ProblemLinearization::speed_of_centre() const {
  double largest = 0;
  for (int i = 0; has_centre_ && i < scaled_.n; ++i)
    largest = std::max(largest, std::abs(scaled_.E[i] * centre_[i]));
  return largest;
}

/// out = C^T E B^T x: from a level's unknowns to those of the one below, transposed.
void ProblemLinearization::pass_down(int level, const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(system(level + 1), true, x, rows, ncols, ld);
  weigh_rows(share(level + 1), rows, ncols, ld);
  gather(system(level), false, rows, out, ncols, ld);
}

/// out = B E C x: to those of the one above.
void ProblemLinearization::pass_up(int level, const double* x, double* out, int ncols, int ld) {
  double* rows = grown(rows_, static_cast<std::size_t>(scaled_.n) * ld);
  scatter(system(level), false, x, rows, ncols, ld);
  weigh_rows(share(level + 1), rows, ncols, ld);
  gather(system(level + 1), true, rows, out, ncols, ld);
}

/// Physical impulses to the velocities of the compliance.
void ProblemLinearization::weigh_rows(double share_of_compliance, double* rows, int ncols, int ld) const {
  for (int i = 0; i < scaled_.n; ++i) {
    const double d = scaled_.inverse_root[i];
    const double weight = share_of_compliance * scaled_.E[i] / (d * d);
    for (int j = 0; j < ncols; ++j)
      rows[static_cast<long>(i) * ld + j] *= weight;
  }
}

/// z = K^T w by the levels, the last one first; z_lower: of those with right-hand sides of their own.
void ProblemLinearization::solve_transposed(const double* w, double* z, double* const* z_lower) {
  double* x = grown(buffer_, static_cast<std::size_t>(scaled_.n));
  double* down = grown(first_round_, static_cast<std::size_t>(scaled_.n));
  double* lowest = grown(lowest_, static_cast<std::size_t>(scaled_.n));

  // z = -B^T x, and x as it was.
  const auto store = [&](const ReducedSystem& system, double* values, double* to) {
    for (int i = 0; i < system.size; ++i)
      values[i] = -values[i];
    scatter(system, true, values, to, 1, 1);
    for (int i = 0; i < system.size; ++i)
      values[i] = -values[i];
  };

  gather(last(), false, w, x, 1, 1);
  solve_upper_transposed(x, lowest, 1, 1);
  store(last(), x, z);

  for (int level = lower_ - 1; level >= 0; --level) {
    pass_down(level, lowest, down, 1, 1);
    solve_level_transposed(level, down, 1, 1);
    store(system(level), down, z_lower[level]);
    std::copy_n(down, system(level).size, lowest);
  }
}

}  // namespace coulomb

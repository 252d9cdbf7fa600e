// Where one-sided derivatives differ: docs/theory.md (L13).
//
// Rows that only the compliance keeps apart, z = B^T y with y = A^-T (B E C)^T y, have J^T z = 0: a change with z . s != 0 asks them for different
// motions. Up to E lambda each has its share; beyond, some reach their bound, and which depends on the direction asked.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"

namespace coulomb {
namespace {

constexpr double tie = 1e-8;          // as in ScaledProblem::margin
constexpr double least_share = 1e-3;  // of a velocity: rows that take less are not redundant with what asks for it
constexpr int response_rounds = 3;
constexpr int most_rounds = 8;
constexpr double gone = 1e-7;     // of a combination of rows: what a few rounds leave where none is redundant
constexpr double settled = 1e-8;  // relative change by a round
constexpr double drifting =
    1e-3;  // relative change by a round of what shrinks slowly: rows that are redundant but for a little
constexpr double steady = 0.9;      // of the change by the round before: what shrinks faster is gone
constexpr double immobile = 1e-10;  // of a row's mobility by itself

double probe_value(int i) { return 1.5 + std::sin(1.0 + 2.4 * i); }

}  // namespace

/// x = A^-1 B E C x, or its transpose A^-T (B E C)^T x.
void ProblemLinearization::repeat_round(ReducedSystem& system, double* x, bool transposed) {
  // E C x, or E B^T x ...
  double* impulses = change_.data();
  std::fill_n(impulses, scaled_.ld, 0.0);
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    const bool one = transposed ? row.one_b : row.one_c;
    const double* a = transposed ? row.b : row.c;
    if (one)
      impulses[transposed ? row.row_b : row.row_c] += x[i];
    else
      for (int k = 0; k < row.width; ++k)
        impulses[row.row + k] += a[k] * x[i];
  }
  for (int i = 0; i < scaled_.n; ++i)
    impulses[i] *= scaled_.E[i];

  // ... and as equations: B, or C^T.
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    const bool one = transposed ? row.one_c : row.one_b;
    const double* a = transposed ? row.c : row.b;
    if (one)
      x[i] = impulses[transposed ? row.row_c : row.row_b];
    else
      x[i] = ReducedSystem::combine(row, a, impulses);
  }
  if (transposed)
    system.solve_transposed(scaled_, x);
  else
    system.solve(scaled_, x);
}

/// z (n, physical), its largest entry 1: a random one of the combinations of rows that only the compliance keeps apart, and of which some have
/// a bound or a sign (or of these blocks): others never reach a border, whatever they are asked.
bool ProblemLinearization::redundant_rows(ReducedSystem& system, double* z,
                                          const std::vector<unsigned char>* of_blocks) {
  const int size = system.size;

  // A random combination of the compliance's velocities on the rows that count.
  double* y = buffer_.data();
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const bool counts = of_blocks ? (*of_blocks)[b] != 0 : scaled_.blocks[b].type != BlockType::equality;
    for (int i = system.first[b]; i < system.first[b + 1]; ++i)
      y[i] = counts ? scaled_.E[system.rows[i].row] * (probe_value(i) - 1.5) : 0.0;
  }
  system.solve_transposed(scaled_, y);

  // Rounds leave what only the compliance keeps apart.
  double moved_before = INFINITY;
  for (int round = 0; round < most_rounds; ++round) {
    std::copy_n(y, size, earlier_.begin());
    repeat_round(system, y, true);
    double largest = 0;
    double moved = 0;
    for (int i = 0; i < size; ++i) {
      largest = std::max(largest, std::abs(y[i]));
      moved = std::max(moved, std::abs(y[i] - earlier_[i]));
    }

    if (!(largest > gone)) break;
    const bool drifts = moved <= drifting * largest && moved >= steady * moved_before;
    moved_before = moved;
    if (moved > settled * largest && !drifts && round + 1 < most_rounds) continue;
    if (!(largest > least_share)) break;

    // B^T y, its largest entry 1.
    scatter(system, true, y, z, 1, 1);
    double longest = 0;
    for (int i = 0; i < scaled_.n; ++i)
      longest = std::max(longest, std::abs(z[i]));
    for (int i = 0; i < scaled_.n; ++i)
      z[i] /= longest;
    return true;
  }
  std::fill_n(z, scaled_.n, 0.0);
  return false;
}

/// z . s, physical, at which impulses that change along z by as much as E asks reach the first border.
double ProblemLinearization::distance_to_border(const double* z) const {
  // z . E z: what impulses that change along z leave.
  const auto scaled_z = [&](int row) { return std::abs(z[row]) / scaled_.inverse_root[row]; };
  double squared = 0;
  for (int i = 0; i < scaled_.n; ++i)
    squared += scaled_.E[i] * scaled_z(i) * scaled_z(i);

  // How long until some impulse is at its bound or its sign.
  double least = INFINITY;
  const auto reach = [&](double way, double rate) {
    if (rate > 0) least = std::min(least, std::max(way, 0.0) / rate);
  };
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    const double* l = lambda_.data() + block.row;
    if (block.type == BlockType::limit) reach(l[0], scaled_z(block.row));
    if (block.type == BlockType::box) reach(scaled_.bound[b] - std::abs(l[0]), scaled_z(block.row));
    if (!block.is_contact()) continue;
    const double normal = scaled_z(block.row + 2);
    reach(l[2], normal);
    if (modes_[b].mode != Mode::sticking) continue;

    // The nearest side of its polygon, or the cone.
    if (block.type == BlockType::pyramid) {
      const FrictionPolygon& polygon = friction_polygon(block);
      const double friction = block.mu * polygon.apothem;
      const double z_1 = z[block.row] / scaled_.inverse_root[block.row];
      const double z_2 = z[block.row + 1] / scaled_.inverse_root[block.row + 1];
      for (int side = polygon.first_side; side < 2 * polygon.sides; side += 2) {
        const double* a = polygon.direction[side];
        const double along = a[0] * l[0] + a[1] * l[1];
        reach(friction * l[2] - along, std::abs(a[0] * z_1 + a[1] * z_2) + friction * normal);
      }
      for (int i = 3; i < block.size; ++i)
        reach(block.mu * l[2] - std::abs(l[i]), scaled_z(block.row + i) + block.mu * normal);
      continue;
    }
    double tangent = 0;
    for (int k = 0; k < block.tangents(); ++k)
      tangent = std::hypot(tangent, scaled_z(block.tangent(k)));
    reach(block.mu * l[2] - tangential_norm(block, l), tangent + block.mu * normal);
  }
  return least * squared * scaled_.ref;
}

bool ProblemLinearization::unresolved(double* z, double& band) {
  if (levels_ == 0) {
    std::fill_n(z, scaled_.n, 0.0);
    return false;
  }
  if (!redundant_rows(last_, z)) return false;
  band = distance_to_border(z);
  return true;
}

bool ProblemLinearization::add_unresolved(ReducedSystem& system, double band,
                                          const std::vector<unsigned char>* of_blocks) {
  if (static_cast<int>(further_.size()) <= num_further_) further_.emplace_back();
  Unresolved& next = further_[num_further_];
  if (next.z.size() < static_cast<std::size_t>(scaled_.ld)) next.z.resize(scaled_.ld);
  next.band = band;
  if (!redundant_rows(system, next.z.data(), of_blocks)) return false;
  ++num_further_;
  return true;
}

/// How far an impulse p (scaled) moves anything beside the unknowns of the system, and what it moves by itself.
ProblemLinearization::Energies ProblemLinearization::energies(ReducedSystem& system, const double* p) {
  const int n = scaled_.n;
  double* b = earlier_.data();
  double* x = buffer_.data();
  double* velocity = path_.data();

  const auto energy = [&](const double* impulse) {
    std::fill_n(velocity, scaled_.ld, 0.0);
    scaled_.add_product(impulse, velocity);
    double sum = 0;
    for (int i = 0; i < n; ++i)
      sum += impulse[i] * (velocity[i] - scaled_.E[i] * impulse[i]);
    return sum;
  };

  // What the system's equations ask for where p acts, answered in a few rounds.
  const double alone = energy(p);
  for (int i = 0; i < n; ++i)
    velocity[i] -= scaled_.E[i] * p[i];
  for (int i = 0; i < system.size; ++i)
    b[i] = x[i] = ReducedSystem::equation(system.rows[i], velocity);
  system.solve(scaled_, x);

  for (int round = 1; round < response_rounds; ++round) {
    repeat_round(system, x, false);
    std::copy_n(b, system.size, velocity);
    system.solve(scaled_, velocity);
    for (int i = 0; i < system.size; ++i)
      x[i] += velocity[i];
  }

  // What is left of the motion when they have answered.
  std::copy_n(p, scaled_.ld, change_.data());
  for (int i = 0; i < system.size; ++i)
    ReducedSystem::expand(system.rows[i], -x[i], change_.data());
  return {energy(change_.data()), alone};
}

bool ProblemLinearization::at_kink() {
  if (!kinks_known_) at_kink_ = find_kinks();
  kinks_known_ = true;
  return at_kink_;
}

bool ProblemLinearization::has_other_solution(const std::vector<int>& groups) {
  if (levels_ == 0 || !(result_->compliance > 0)) return false;
  scaled_.to_scaled(result_->lambda.data(), lambda_.data());
  scaled_.exact_velocity(lambda_.data(), c_.data());
  if (OtherSolutions::is_unique(scaled_, lambda_.data(), c_.data())) return false;
  scaled_.set_level(centre());
  return other_solutions_.exist(scaled_, lower_lambda_[0].data(), groups);
}

/// Redundant dry friction that holds, though a parallel row made it give way, or that is at its bound at some levels only: the band in which all
/// levels hold it, as wide as its bounds are apart.
void ProblemLinearization::find_bands() {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    if (block.type != BlockType::box || !(block.bound > 0)) continue;

    const auto end = labels_.begin() + total_levels();
    const bool passes = std::any_of(labels_.begin(), end, [&](const Labels& x) { return !(x[b] == last_labels_[b]); });
    const bool held = beside_parallel_[b] && last_labels_[b].mode == Mode::sticking;
    if (!passes && !held) continue;

    // The system with this friction held, the last one's or a trial: what is redundant with it then?
    const bool is_held = modes_[b].mode == Mode::sticking && total_levels() == levels_;
    if (!is_held && !factorise_with_held(b)) continue;
    chosen_.assign(scaled_.num_blocks, 0);
    chosen_[b] = 1;
    if (!add_unresolved(is_held ? last_ : trial_, 0, &chosen_)) continue;

    // Impulses change along z by as much as E asks.
    Unresolved& own = further_[num_further_ - 1];
    double squared = 0;
    for (int i = 0; i < scaled_.n; ++i) {
      const double z = own.z[i] / scaled_.inverse_root[i];
      squared += scaled_.E[i] * z * z;
    }

    const double rate = std::abs(own.z[block.row]) / scaled_.inverse_root[block.row];
    if (rate > 0) own.band = (scaled_.bound[b] + std::abs(lambda_[block.row])) / rate * squared * scaled_.ref;
  }
}

/// The modes of the last system, and this dry friction held. False: singular.
bool ProblemLinearization::factorise_with_held(int b) {
  std::copy_n(modes_.begin(), scaled_.num_blocks, trial_modes_.begin());
  trial_modes_[b] = {};
  trial_modes_[b].mode = Mode::sticking;
  trial_.set_modes(scaled_, trial_modes_.data());
  return trial_.factorise(scaled_, 0);
}

/// Ties and corners whose other side moves something. Rows that are doubtful themselves hold nothing; where g has a corner, dry friction
/// does not either.
bool ProblemLinearization::find_kinks() {
  scaled_.to_scaled(result_->lambda.data(), lambda_.data());
  scaled_.exact_velocity(lambda_.data(), c_.data());
  if (levels_ > 0) find_bands();

  bool any_tie = false;
  bool any_corner = false;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    any_tie = any_tie || is_tie(b);
    any_corner = any_corner || has_corner(b);
  }
  if (!any_tie && !any_corner) return false;

  // The other side of a tie, then that of a corner: does it move anything beside the rows that are sure?
  if (any_tie && (!factorise_sure_rows(true) || ties_move())) return true;
  for (int b = 0; b < scaled_.num_blocks && any_tie; ++b)
    if (is_tie(b) && tie_moves(b)) return true;

  if (any_corner && !factorise_sure_rows(false)) return true;
  for (int b = 0; b < scaled_.num_blocks && any_corner; ++b) {
    if (!has_corner(b)) continue;
    if (moves(scaled_.blocks[b].normal())) return true;
  }

  if (levels_ > 0) find_held_kinks();
  return false;
}

bool ProblemLinearization::is_tie(int b) const { return result_->margin[b] < tie && !yields_[b].gives(); }

/// A corner of g counts where the row holds; or where it only touches, and others hold it there.
bool ProblemLinearization::has_corner(int b) const {
  const Block& block = scaled_.blocks[b];
  const bool one_sided = block.is_contact() || block.type == BlockType::limit;
  if (yields_[b].entirely || !one_sided) return false;
  if (modes_[b].mode != Mode::separating) return block.corner;
  return (block.corner || block.type == BlockType::limit) && c_[block.normal()] <= tie;
}

/// The system of the rows that hold without doubt; dry friction that does counts on request. False: singular.
bool ProblemLinearization::factorise_sure_rows(bool friction) {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    BlockMode& mode = trial_modes_[b] = modes_[b];
    const Block& block = scaled_.blocks[b];
    const bool holds = block.type == BlockType::box && mode.mode == Mode::sticking;
    if (block.type == BlockType::box && (is_tie(b) || (!friction && holds))) mode.mode = Mode::upper;
    if (!is_tie(b) && !has_corner(b)) continue;

    // Between touching and separating it holds nothing; between sticking and sliding, not along its impulse.
    const bool parts = block.is_contact() && (modes_[b].mode == Mode::separating || lambda_[block.row + 2] <= 10 * tie);
    if (block.type == BlockType::limit || (block.is_contact() && (has_corner(b) || parts))) {
      mode.mode = Mode::separating;
    } else if (block.is_contact()) {
      mode.mode = Mode::sticking;
      mode.loose = block.type == BlockType::pyramid ? 2 : 1;
      const double* l = lambda_.data() + block.row;
      const double length = tangential_norm(block, l);
      mode.n = {1, 0, 0, 0, 0};
      if (length > 0) tangential_direction(block, l, length, mode.n);
    }
  }
  trial_.set_modes(scaled_, trial_modes_.data());
  return trial_.factorise(scaled_, 0);
}

/// Does an impulse of this row move anything beside the sure rows?
bool ProblemLinearization::moves(int row) {
  double* p = asked_.data();
  std::fill_n(p, scaled_.ld, 0.0);
  p[row] = 1;
  const Energies found = energies(trial_, p);
  return found.alone > 0 && found.left > immobile * found.alone;
}

/// Does a contact's impulse along this direction of its tangents, and along its normal?
bool ProblemLinearization::moves_along(const Block& block, const double* direction, double normal) {
  double* p = asked_.data();
  std::fill_n(p, scaled_.ld, 0.0);
  for (int k = 0; k < block.tangents(); ++k)
    p[block.tangent(k)] = direction[k];
  p[block.row + 2] = normal;
  const Energies found = energies(trial_, p);
  return found.alone > 0 && found.left > immobile * found.alone;
}

/// Do all ties together, in no special proportion, move more than so many could that move nothing? Heaps have many, and most of them move
/// nothing. By Cauchy and Schwarz the energy of a sum is at most the number of its parts times the sum of theirs; a block's scaled G has its
/// size as trace.
bool ProblemLinearization::ties_move() {
  double* p = asked_.data();
  std::fill_n(p, scaled_.ld, 0.0);
  int ties = 0;
  double most_alone = 0;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    if (!is_tie(b)) continue;
    ++ties;
    const Block& block = scaled_.blocks[b];
    const BlockMode& mode = trial_modes_[b];
    const double share = probe_value(b);
    most_alone += block.size * share * share;
    if (!block.is_contact()) {
      p[block.row] = share;
    } else if (mode.mode == Mode::sticking) {
      for (int k = 0; k < block.tangents(); ++k)
        p[block.tangent(k)] = share * mode.n[k];
    } else {
      p[block.row + 2] = share;
    }
  }
  return ties > 1 && energies(trial_, p).left > ties * immobile * most_alone;
}

/// Do the impulses that a tie leaves open move anything?
bool ProblemLinearization::tie_moves(int b) {
  const Block& block = scaled_.blocks[b];
  const BlockMode& mode = trial_modes_[b];
  if (!block.is_contact()) return moves(block.row);

  // Between sticking and sliding: along its impulse, at a vertex across it too.
  if (mode.mode == Mode::sticking) {
    if (moves_along(block, mode.n.data(), 0)) return true;
    if (mode.loose <= 1) return false;
    double directions[max_tangents - 1][max_tangents];
    const int count = directions_across(block, mode, directions);
    return std::any_of(directions, directions + count,
                       [&](const double* across) { return moves_along(block, across, 0); });
  }

  // Touching: it slips against its velocity, or sticks.
  const double* c = c_.data() + block.row;
  const double slip = tangential_norm(block, c);
  if (slip > tie && block.mu > 0) {
    double against[max_tangents];
    for (int k = 0; k < block.tangents(); ++k)
      against[k] = -block.mu * c[block.tangent(k) - block.row] / slip;
    return moves_along(block, against, 1);
  }
  if (moves(block.row + 2)) return true;
  for (int k = 0; k < block.tangents() && block.mu > 0; ++k)
    if (moves(block.tangent(k))) return true;
  return false;
}

/// Doubtful rows that others hold anyway: a kink where they are asked for another motion than these.
void ProblemLinearization::find_held_kinks() {
  bool any_chosen = false;
  chosen_.assign(scaled_.num_blocks, 0);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    trial_modes_[b] = modes_[b];
    const BlockType type = scaled_.blocks[b].type;
    if (scaled_.blocks[b].is_contact() || (!is_tie(b) && !has_corner(b))) continue;
    any_chosen = true;
    chosen_[b] = 1;
    if (type == BlockType::limit)
      trial_modes_[b].mode = Mode::active;
    else if (type == BlockType::box || modes_[b].mode == Mode::separating)
      trial_modes_[b].mode = Mode::sticking;
  }
  if (!any_chosen) return;

  trial_.set_modes(scaled_, trial_modes_.data());
  if (trial_.factorise(scaled_, 0)) add_unresolved(trial_, INFINITY, &chosen_);
}

}  // namespace coulomb

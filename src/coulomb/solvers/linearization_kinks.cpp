// Rows that give way, and where one-sided derivatives differ: docs/theory.md (L12), (L13).
//
// Redundant rows (dry friction beside an equality that holds the same joint) ask for one and the same motion. Level 0 lets each have its share
// of what the others ask, as far as its impulse goes: by E lambda, 1e-9 m/s and less. Beyond, what has a bound (dry friction, the tangents of
// a contact, a limit that can open) is at it, and what has none decides alone. The derivative that anybody can use is that of the other side of
// this band: such rows have no unknown of their own. With A^-1 and the rounds of the levels,
//
//   d_0 = A^-1 B e,   d_j = A^-1 B E C d_(j-1)
//
// of a velocity e asked of the rows without bound, what is determined by more than E leaves d_j as E^j; redundant impulses stay, and
// row b then takes the share |E_b d_b| of e. On the way lambda + t d the first to reach its bound yields, and so on until all is decided by the
// rest. Where the rows that yield depend on the direction asked, no Jacobian is right: they compete.
//
// Which rows are redundant still tells z = B^T y, y = A^-T (B E C)^T y: J^T z = 0, so a change with z . s != 0 asks them for different motions.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/linearization.hpp"

namespace coulomb {
namespace {

constexpr double tie = 1e-8;          // as in ScaledProblem::margin
constexpr double least_share = 1e-3;  // of a velocity: rows that take less are not redundant with what asks for it
constexpr double persistent = 0.9;    // of a redundant impulse: what a round leaves
constexpr int response_rounds = 3;
constexpr int most_rounds = 8;
constexpr double gone = 1e-7;       // of a combination of rows: what a few rounds leave where none is redundant
constexpr double settled = 1e-8;    // relative change by a round
constexpr double rounding = 1e-9;   // of an impulse at its bound
constexpr double parallel = 1e-6;   // directions that are the same
constexpr double immobile = 1e-10;  // of a row's mobility by itself
constexpr int probes = 3;           // further directions, where several rows yield

double probe_value(int i, int probe) { return 1.5 + std::sin(1.0 + 2.4 * i + 3.1 * probe); }

}  // namespace

void ProblemLinearization::apply(const Yield& yield, int block, BlockMode& mode) const {
  if (yield.entirely) mode.mode = scaled_.blocks[block].type == BlockType::box ? Mode::upper : Mode::separating;
  if (yield.loose == 0) return;
  mode.loose = yield.loose;
  mode.nx = yield.nx;
  mode.ny = yield.ny;
}

/// x = A^-1 B E C x, or its transpose A^-T (B E C)^T x.
void ProblemLinearization::repeat_round(ReducedSystem& system, double* x, bool transposed) {
  double* impulses = change_.data();
  std::fill_n(impulses, scaled_.ld, 0.0);
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    const bool one = transposed ? row.one_b : row.one_c;
    const double* a = transposed ? row.b : row.c;
    if (one) impulses[transposed ? row.row_b : row.row_c] += x[i];
    else
      for (int k = 0; k < 3; ++k) impulses[row.row + k] += a[k] * x[i];
  }
  for (int i = 0; i < scaled_.n; ++i) impulses[i] *= scaled_.E[i];
  for (int i = 0; i < system.size; ++i) {
    const ReducedRow& row = system.rows[i];
    const bool one = transposed ? row.one_c : row.one_b;
    const double* a = transposed ? row.c : row.b;
    if (one) x[i] = impulses[transposed ? row.row_c : row.row_b];
    else x[i] = a[0] * impulses[row.row] + a[1] * impulses[row.row + 1] + a[2] * impulses[row.row + 2];
  }
  if (transposed) system.solve_transposed(scaled_, x, 1, 1);
  else system.solve(scaled_, x);
}

/// Velocities that are asked of rows without a bound: equalities, or limits that hold. False: there is none.
bool ProblemLinearization::ask(BlockType hard, int probe, double sign) {
  bool any = false;
  std::fill(asked_.begin(), asked_.end(), 0.0);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    if (block.type != hard || modes_[b].mode != Mode::active) continue;
    any = true;
    for (int i = block.row; i < block.row + block.size; ++i) {
      const double value = probe_value(i, probe);
      const bool turned = hard == BlockType::equality && std::sin(7.7 * i + 1.3 * probe) < 0;
      asked_[i] = sign * (turned ? -value : value);
    }
  }
  return any;
}

/// What redundant rows make of the velocities asked, in change_, and a round earlier.
void ProblemLinearization::redundant_response(ReducedSystem& system) {
  double* x = buffer_.data();
  const auto expand = [&](std::vector<double>& to) {
    std::fill_n(to.begin(), scaled_.ld, 0.0);
    for (int i = 0; i < system.size; ++i) ReducedSystem::expand(system.rows[i], x[i], to.data());
  };
  for (int i = 0; i < system.size; ++i) x[i] = ReducedSystem::equation(system.rows[i], asked_.data());
  system.solve(scaled_, x);
  for (int round = 1; round < response_rounds; ++round) repeat_round(system, x, false);
  expand(earlier_);
  repeat_round(system, x, false);
  expand(change_);
}

/// A contact's tangents reach the border of the friction cone.
void ProblemLinearization::tangent_border(int b, Border& nearest) const {
  const Block& block = scaled_.blocks[b];
  const double* d = change_.data() + block.row;
  const double* l = path_.data() + block.row;
  const double share = scaled_.E[block.row] * std::sqrt(d[0] * d[0] + d[1] * d[1]);
  if (!(share > least_share)) return;
  for (int i = 0; i < 2; ++i) {
    const bool large = scaled_.E[block.row] * std::abs(d[i]) > 0.1 * share;
    if (large && !(std::abs(d[i]) > persistent * std::abs(earlier_[block.row + i]))) return;
  }

  Border border;
  border.block = b;
  border.yield.loose = 1;
  if (block.type == BlockType::pyramid) {
    const FrictionPolygon& polygon = friction_polygon(block);
    border.distance = INFINITY;
    for (int side = polygon.first_side; side < 2 * polygon.sides; side += 2) {
      const double* a = polygon.direction[side];
      const double outside = a[0] * d[0] + a[1] * d[1] - block.mu * polygon.apothem * d[2];
      const double left = block.mu * polygon.apothem * l[2] - a[0] * l[0] - a[1] * l[1];
      if (!(outside > 0) || std::max(left, 0.0) / outside >= border.distance) continue;
      border.distance = std::max(left, 0.0) / outside;
      border.yield.nx = a[0];
      border.yield.ny = a[1];
    }
  } else {
    // |l_T + t d_T|^2 = mu^2 (l_N + t d_N)^2.
    const double mu = block.mu * block.mu;
    const double squared = d[0] * d[0] + d[1] * d[1] - mu * d[2] * d[2];
    const double mixed = d[0] * l[0] + d[1] * l[1] - mu * d[2] * l[2];
    const double constant = std::min(0.0, l[0] * l[0] + l[1] * l[1] - mu * l[2] * l[2]);
    const double discriminant = std::sqrt(std::max(0.0, mixed * mixed - squared * constant));
    const double root = discriminant + mixed;
    if (!(root > 0)) return;
    border.distance = -constant / root;
    border.opposite = discriminant > mixed ? -constant / (discriminant - mixed) : 0.0;
    const double x = l[0] + border.distance * d[0];
    const double y = l[1] + border.distance * d[1];
    const double length = std::sqrt(x * x + y * y);
    border.yield.nx = length > 0 ? x / length : d[0] / std::sqrt(d[0] * d[0] + d[1] * d[1]);
    border.yield.ny = length > 0 ? y / length : d[1] / std::sqrt(d[0] * d[0] + d[1] * d[1]);
  }
  if (border.distance < INFINITY && (nearest.block < 0 || border.distance < nearest.distance)) nearest = border;
}

/// The first row that reaches its bound on the way path_ + t change_. Beside limits contacts do not: what they do there is a kink.
ProblemLinearization::Border ProblemLinearization::nearest_border(BlockType hard,
                                                                  const std::vector<Yield>& yields) const {
  Border nearest;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    const int row = block.row;
    if (yields[b].entirely || yields[b].loose > 0) continue;
    if (block.is_contact()) {
      if (hard == BlockType::equality && modes_[b].mode == Mode::sticking) tangent_border(b, nearest);
      continue;
    }

    const double d = change_[row];
    const bool friction = block.type == BlockType::box && modes_[b].mode == Mode::sticking;
    const bool opens = block.type == BlockType::limit && modes_[b].mode == Mode::active && d < 0;
    if (!friction && !opens) continue;
    if (!(scaled_.E[row] * std::abs(d) > least_share) || !(std::abs(d) > persistent * std::abs(earlier_[row])))
      continue;
    const double way = friction ? scaled_.bound[b] - std::copysign(1.0, d) * path_[row] : path_[row];
    const double distance = std::max(way, 0.0) / std::abs(d);
    if (nearest.block >= 0 && distance >= nearest.distance) continue;
    const double opposite = friction ? 2 * scaled_.bound[b] / std::abs(d) - distance : 0.0;
    nearest = {b, distance, opposite, {}};
    nearest.yield.entirely = true;
  }
  return nearest;
}

/// Does anything else hold a contact across the direction in which it is loose? Then it need not, and slips in any direction.
bool ProblemLinearization::across_is_redundant(int block, const std::vector<Yield>& yields) {
  ReducedSystem& system = with_yields(yields);
  const int across = system.first[block] + 1;
  double* x = buffer_.data();
  std::fill_n(x, system.size, 0.0);
  x[across] = 1;
  system.solve(scaled_, x);
  for (int round = 1; round < response_rounds; ++round) repeat_round(system, x, false);
  const double before = x[across];
  repeat_round(system, x, false);
  const double share = scaled_.E[scaled_.blocks[block].row] * std::abs(x[across]);
  return share > least_share && std::abs(x[across]) > persistent * std::abs(before);
}

/// Adds to `yields` the rows that give way where hard rows are asked for these velocities; keep_bands: to the further unresolved ones, each
/// with what may be asked until it yields. False: none does.
bool ProblemLinearization::follow(BlockType hard, int probe, double sign, std::vector<Yield>& yields, bool keep_bands) {
  if (!ask(hard, probe, sign)) return false;
  std::copy_n(lambda_.begin(), scaled_.ld, path_.begin());
  bool any = false;
  double travelled = 0;
  bool trial = std::any_of(yields.begin(), yields.end(), [](const Yield& y) { return y.entirely || y.loose > 0; });
  for (int count = 0; count <= scaled_.num_blocks; ++count) {
    ReducedSystem& system = trial ? with_yields(yields) : last_;
    redundant_response(system);
    const Border border = nearest_border(hard, yields);
    if (border.block < 0) return any;
    for (int i = 0; i < scaled_.n; ++i) path_[i] += border.distance * change_[i];
    travelled += border.distance;

    if (keep_bands) {
      chosen_.assign(scaled_.num_blocks, 0);
      chosen_[border.block] = 1;
      if (add_unresolved(system, 0, &chosen_)) {
        Unresolved& own = further_[num_further_ - 1];
        double asked = 0;
        for (int i = 0; i < scaled_.n; ++i) asked += own.z[i] * asked_[i] * scaled_.ref / scaled_.inverse_root[i];
        own.band = std::max(travelled, border.opposite) * std::abs(asked);
      }
    }
    Yield& yield = yields[border.block];
    yield = border.yield;
    if (yield.loose == 1 && across_is_redundant(border.block, yields)) yield.loose = 2;
    any = trial = true;
  }
  return any;
}

/// yields_ by every direction that may be asked. They may differ by more than what some rows do that agree with the others anyway (then
/// the redundant rows of the smaller set are consistent): they compete.
void ProblemLinearization::follow_all(BlockType hard) {
  start_ = yields_;
  const bool any = follow(hard, 0, 1, yields_, true);
  const bool one_sign = hard == BlockType::limit || !limits_hold();  // dry friction yields to both
  if (!any && one_sign) return;
  smallest_ = yields_;
  bool nested = true;
  const auto count =
      std::count_if(yields_.begin(), yields_.end(), [](const Yield& y) { return y.entirely || y.loose; });
  for (int probe = 0; probe < (count > 1 ? 1 + probes : 1); ++probe) {
    for (const double sign : {1.0, -1.0}) {
      if (probe == 0 && sign > 0) continue;
      other_yields_ = start_;
      follow(hard, probe, sign, other_yields_);
      if (is_part(other_yields_, smallest_)) smallest_ = other_yields_;
      else if (is_part(yields_, other_yields_)) yields_ = other_yields_;
      else if (!is_part(smallest_, other_yields_) || !is_part(other_yields_, yields_)) nested = false;
    }
  }
  if (nested && is_part(yields_, smallest_)) return;
  add_unresolved(nested ? with_yields(smallest_) : last_, INFINITY);
}

bool ProblemLinearization::limits_hold() const {
  for (int b = 0; b < scaled_.num_blocks; ++b)
    if (scaled_.blocks[b].type == BlockType::limit && modes_[b].mode == Mode::active) return true;
  return false;
}

/// Does every row that yields in a do so in b?
bool ProblemLinearization::is_part(const std::vector<Yield>& a, const std::vector<Yield>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].entirely && !b[i].entirely) return false;
    if (a[i].loose == 0 || b[i].loose > 1) continue;
    if (a[i].loose > 1 || b[i].loose == 0) return false;
    if (std::abs(a[i].nx * b[i].ny - a[i].ny * b[i].nx) > parallel) return false;
  }
  return true;
}

/// Finds yields_. True: some row yields.
bool ProblemLinearization::let_rows_yield() {
  bool bounded = false;
  bool hard = false;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const BlockType type = scaled_.blocks[b].type;
    const bool sticks = modes_[b].mode == Mode::sticking;
    const bool active = modes_[b].mode == Mode::active;
    bounded = bounded || sticks || (type == BlockType::limit && active);
    hard = hard || active;
  }
  if (!bounded || !hard) return false;
  follow_all(BlockType::equality);
  follow_all(BlockType::limit);
  return std::any_of(yields_.begin(), yields_.end(), [](const Yield& y) { return y.entirely || y.loose > 0; });
}

void ProblemLinearization::reserve_kinks() {
  const auto ld = static_cast<std::size_t>(scaled_.ld);
  for (auto* values : {&asked_, &path_, &change_, &earlier_, &buffer_})
    if (values->size() < ld) values->resize(ld);
  trial_modes_.resize(scaled_.num_blocks);
  chosen_.resize(scaled_.num_blocks);
  trial_.reserve(scaled_);
  if (further_.empty()) further_.resize(2);
  for (Unresolved& further : further_)
    if (further.z.size() < ld) further.z.resize(ld);
}

/// The system of the modes with these rows given way, factorised.
ReducedSystem& ProblemLinearization::with_yields(const std::vector<Yield>& yields) {
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    trial_modes_[b] = modes_[b];
    apply(yields[b], b, trial_modes_[b]);
  }
  trial_.set_modes(scaled_, trial_modes_.data());
  trial_.factorise(scaled_, 0);
  return trial_;
}

/// z (n, physical), its largest entry 1: a random one of the combinations of rows that only the compliance keeps apart, and of which some have
/// a bound or a sign (or of these blocks): others never reach a border, whatever they are asked.
bool ProblemLinearization::redundant_rows(ReducedSystem& system, double* z,
                                          const std::vector<unsigned char>* of_blocks) {
  const int size = system.size;
  double* y = buffer_.data();
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const bool counts = of_blocks ? (*of_blocks)[b] != 0 : scaled_.blocks[b].type != BlockType::equality;
    for (int i = system.first[b]; i < system.first[b + 1]; ++i)
      y[i] = counts ? scaled_.E[system.rows[i].row] * (probe_value(i, 0) - 1.5) : 0.0;
  }
  system.solve_transposed(scaled_, y, 1, 1);
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
    if (moved > settled * largest && round + 1 < most_rounds) continue;
    if (!(largest > least_share)) break;

    // B^T y.
    scatter(system, true, y, z, 1, 1);
    double longest = 0;
    for (int i = 0; i < scaled_.n; ++i) longest = std::max(longest, std::abs(z[i]));
    for (int i = 0; i < scaled_.n; ++i) z[i] /= longest;
    return true;
  }
  std::fill_n(z, scaled_.n, 0.0);
  return false;
}

/// z . s, physical, at which impulses that change along z by as much as E asks reach the first border.
double ProblemLinearization::distance_to_border(const double* z) const {
  const auto scaled_z = [&](int row) { return std::abs(z[row]) / scaled_.inverse_root[row]; };
  double squared = 0;
  for (int i = 0; i < scaled_.n; ++i) squared += scaled_.E[i] * scaled_z(i) * scaled_z(i);

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
    const double tangent = std::hypot(scaled_z(block.row), scaled_z(block.row + 1));
    reach(block.mu * l[2] - std::hypot(l[0], l[1]), tangent + block.mu * normal);
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

/// How far an impulse p (scaled) moves anything beside the unknowns of the system, relative to what it moves by itself.
double ProblemLinearization::mobility(ReducedSystem& system, const double* p) {
  const int n = scaled_.n;
  double* b = earlier_.data();
  double* x = buffer_.data();
  double* velocity = path_.data();
  const auto energy = [&](const double* impulse) {
    std::fill_n(velocity, scaled_.ld, 0.0);
    scaled_.add_product(impulse, velocity);
    double sum = 0;
    for (int i = 0; i < n; ++i) sum += impulse[i] * (velocity[i] - scaled_.E[i] * impulse[i]);
    return sum;
  };
  const double alone = energy(p);
  for (int i = 0; i < n; ++i) velocity[i] -= scaled_.E[i] * p[i];
  for (int i = 0; i < system.size; ++i) b[i] = x[i] = ReducedSystem::equation(system.rows[i], velocity);
  system.solve(scaled_, x);
  for (int round = 1; round < response_rounds; ++round) {
    repeat_round(system, x, false);
    std::copy_n(b, system.size, velocity);
    system.solve(scaled_, velocity);
    for (int i = 0; i < system.size; ++i) x[i] += velocity[i];
  }

  std::copy_n(p, scaled_.ld, change_.data());
  for (int i = 0; i < system.size; ++i) ReducedSystem::expand(system.rows[i], -x[i], change_.data());
  return alone > 0 ? energy(change_.data()) / alone : 0;
}

/// Ties and corners whose other side moves something. Rows that are doubtful themselves hold nothing; where g has a corner, dry friction
/// does not either.
bool ProblemLinearization::find_kinks(const SolverResult& result) {
  // At its border in the last level but not in level 0, or the other way round: inside of the band where rows yield.
  for (int b = 0; b < scaled_.num_blocks && levels_ > 0; ++b) {
    const Block& block = scaled_.blocks[b];
    if (result.margin[b] < tie || yields_[b].entirely) continue;
    const double l = lambda_[block.row];
    const Mode mode = modes_[b].mode;
    const bool holds = l > (mode == Mode::active ? 0.0 : tie);
    const bool inside = std::abs(l) < (1 - rounding) * scaled_.bound[b];
    if (block.type == BlockType::limit && (mode == Mode::active) != holds) return true;
    if (block.type == BlockType::box && (mode == Mode::sticking) != inside) return true;
  }

  bool any = false;
  const auto is_tie = [&](int b) { return result.margin[b] < tie && !yields_[b].entirely && yields_[b].loose == 0; };
  const auto has_corner = [&](int b) {  // where it holds; or it only touches, and others hold it there
    const Block& block = scaled_.blocks[b];
    const bool one_sided = block.is_contact() || block.type == BlockType::limit;
    if (yields_[b].entirely || !one_sided) return false;
    if (modes_[b].mode != Mode::separating) return block.corner;
    return (block.corner || block.type == BlockType::limit) && c_[block.row + block.size - 1] <= tie;
  };
  for (int b = 0; b < scaled_.num_blocks; ++b) any = any || is_tie(b) || has_corner(b);
  if (!any) return false;
  double* p = asked_.data();

  const auto parts = [&](int b) {  // a tie between touching and separating
    const Block& block = scaled_.blocks[b];
    return modes_[b].mode == Mode::separating || lambda_[block.row + 2] <= 10 * tie;
  };
  const auto without_doubtful = [&](bool friction) {
    for (int b = 0; b < scaled_.num_blocks; ++b) {
      BlockMode& mode = trial_modes_[b] = modes_[b];
      const Block& block = scaled_.blocks[b];
      const bool holds = block.type == BlockType::box && mode.mode == Mode::sticking;
      if (block.type == BlockType::box && (is_tie(b) || (!friction && holds))) mode.mode = Mode::upper;
      if (!is_tie(b) && !has_corner(b)) continue;
      if (block.type == BlockType::limit || (block.is_contact() && (has_corner(b) || parts(b)))) {
        mode.mode = Mode::separating;
      } else if (block.is_contact()) {
        mode.mode = Mode::sticking;
        mode.loose = block.type == BlockType::pyramid ? 2 : 1;
        const double* l = lambda_.data() + block.row;
        const double length = std::sqrt(l[0] * l[0] + l[1] * l[1]);
        mode.nx = length > 0 ? l[0] / length : 1;
        mode.ny = length > 0 ? l[1] / length : 0;
      }
    }
    trial_.set_modes(scaled_, trial_modes_.data());
    return trial_.factorise(scaled_, 0);
  };
  const auto moves = [&](int row, double x, double y, double normal) {
    std::fill_n(p, scaled_.ld, 0.0);
    p[row] = x;
    if (y != 0 || normal != 0) {
      p[row + 1] = y;
      p[row + 2] = normal;
    }
    return mobility(trial_, p) > immobile;
  };

  if (!without_doubtful(true)) return true;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    if (!is_tie(b)) continue;
    const Block& block = scaled_.blocks[b];
    const BlockMode& mode = trial_modes_[b];
    if (!block.is_contact()) {
      if (moves(block.row, 1, 0, 0)) return true;
      continue;
    }
    if (mode.mode == Mode::sticking) {
      if (moves(block.row, mode.nx, mode.ny, 0)) return true;
      if (mode.loose > 1 && moves(block.row, -mode.ny, mode.nx, 0)) return true;
      continue;
    }

    // Touching: it slips against its velocity, or sticks.
    const double* c = c_.data() + block.row;
    const double slip = std::sqrt(c[0] * c[0] + c[1] * c[1]);
    if (slip > tie && block.mu > 0) {
      if (moves(block.row, -block.mu * c[0] / slip, -block.mu * c[1] / slip, 1)) return true;
      continue;
    }
    if (moves(block.row, 0, 0, 1)) return true;
    if (block.mu > 0 && (moves(block.row, 1, 0, 0) || moves(block.row, 0, 1, 0))) return true;
  }

  if (!without_doubtful(false)) return true;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    if (!has_corner(b)) continue;
    const bool contact = scaled_.blocks[b].is_contact();
    if (moves(scaled_.blocks[b].row, contact ? 0 : 1, 0, contact ? 1 : 0)) return true;
  }

  // What others hold anyway: unless it is asked for another motion than they.
  if (levels_ == 0) return false;
  chosen_.assign(scaled_.num_blocks, 0);
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    trial_modes_[b] = modes_[b];
    const BlockType type = scaled_.blocks[b].type;
    if (scaled_.blocks[b].is_contact() || (!is_tie(b) && !has_corner(b))) continue;
    chosen_[b] = 1;
    if (type == BlockType::limit) trial_modes_[b].mode = Mode::active;
    else if (type == BlockType::box || modes_[b].mode == Mode::separating) trial_modes_[b].mode = Mode::sticking;
  }
  trial_.set_modes(scaled_, trial_modes_.data());
  if (trial_.factorise(scaled_, 0)) add_unresolved(trial_, INFINITY, &chosen_);
  return false;
}

}  // namespace coulomb

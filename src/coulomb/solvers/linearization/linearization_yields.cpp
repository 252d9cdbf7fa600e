// Rows that give way.
//
// Redundant rows (dry friction beside an equality that holds the same joint) ask for one and the same motion. Level 0 lets each have its share
// of what the others ask, as far as its impulse goes: by E lambda, 1e-9 m/s and less. Beyond, what has a bound (dry friction, the tangents of
// a contact, its place on a side of its pyramid, a limit that can open) is at it, and what has none decides alone. The derivative that anybody can use is that of the other side of
// this band: such rows have no unknown of their own.
//
// Dry friction is such a row wherever an equality holds the same joint; or a limit that presses by more than the friction's bound b, so that it
// holds with the friction to either side: with impulse l of the limit and f of the friction along it, l + f > b.
//
// Beside equalities there are others, by way of further joints. With A^-1 and the rounds of the levels,
//
//   d_0 = A^-1 B e,   d_j = A^-1 B E C d_(j-1)
//
// of a velocity e asked of the equalities, what is determined by more than E leaves d_j as E^j; redundant impulses stay, and
// row b then takes the share |E_b d_b| of e. On the way lambda + t d the first to reach its bound yields, and so on until all is decided by the
// rest. Where the rows that yield depend on the direction asked, no Jacobian is right: they compete.
#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"

namespace coulomb {
namespace {

constexpr double tie = 1e-8;          // as in ScaledProblem::margin
constexpr double same_row = 1e-12;    // 1 - cos^2 of two rows
constexpr double immovable = 1e-10;   // scaled: of a row that nothing moves, up to rounding
constexpr double least_share = 1e-3;  // of a velocity: rows that take less are not redundant with what asks for it
constexpr double persistent = 0.9;    // of a redundant impulse: what a round leaves
constexpr int response_rounds = 3;
constexpr double parallel = 1e-6;  // directions that are the same
constexpr int probes = 3;          // further directions, where several rows yield

/// How long impulses l that change by d take to the first side of the polygon that they meet; side -1: they meet none.
double polygon_border(const Block& block, const double* l, const double* d, int& side) {
  const FrictionPolygon& polygon = friction_polygon(block);
  double distance = INFINITY;
  side = -1;
  for (int f = polygon.first_side; f < 2 * polygon.sides; f += 2) {
    const double* a = polygon.direction[f];
    const double outside = a[0] * d[0] + a[1] * d[1] - block.mu * polygon.apothem * d[2];
    const double left = block.mu * polygon.apothem * l[2] - a[0] * l[0] - a[1] * l[1];
    if (!(outside > 0) || std::max(left, 0.0) / outside >= distance) continue;
    distance = std::max(left, 0.0) / outside;
    side = f;
  }
  return distance;
}

double probe_value(int i, int probe) { return 1.5 + std::sin(1.0 + 2.4 * i + 3.1 * probe); }

}  // namespace

void ProblemLinearization::apply(const Yield& yield, int block, BlockMode& mode) const {
  if (yield.entirely) mode.mode = scaled_.blocks[block].type == BlockType::box ? Mode::upper : Mode::separating;
  if (yield.facet >= 0) scaled_.set_facet(block, yield.facet, mode);
  if (yield.loose == 0) return;
  mode.loose = yield.loose;
  mode.n = yield.n;
}

/// J_a M^-1 J_b^T of two rows, scaled.
double ProblemLinearization::row_product(int block_a, int row_a, int block_b, int row_b) const {
  if (!scaled_.factored) {
    const int a = scaled_.blocks[block_a].row + row_a;
    const int b = scaled_.blocks[block_b].row + row_b;
    return scaled_.G[static_cast<long>(a) * scaled_.ld + b] - (a == b ? scaled_.E[a] + scaled_.rigid[a] : 0.0);
  }
  return scaled_.Y.row_product(block_a, row_a, block_b, row_b);
}

/// Dry friction along a row of an equality, or of a limit that holds whatever the friction does.
void ProblemLinearization::yield_beside_parallel_rows() {
  beside_parallel_.assign(scaled_.num_blocks, 0);
  if (levels_ == 0) return;

  for (int hard = 0; hard < scaled_.num_blocks; ++hard) {
    const Block& block = scaled_.blocks[hard];
    const bool is_limit = block.type == BlockType::limit;

    if (block.is_contact() || block.type == BlockType::box || last_labels_[hard].mode != Mode::active) continue;
    for (int k = 0; k < block.size; ++k) {
      // A row that moves something, without compliance of its own.
      if (scaled_.rigid[block.row + k] > 0) continue;
      const double own = row_product(hard, k, hard, k);
      if (!(own > immovable)) continue;

      // Dry friction along the same direction.
      for (int b = 0; b < scaled_.num_blocks; ++b) {
        const int row = scaled_.blocks[b].row;
        if (scaled_.blocks[b].type != BlockType::box || yields_[b].entirely || scaled_.rigid[row] > 0) continue;

        const double along = row_product(hard, k, b, 0);
        const double friction = row_product(b, 0, b, 0);
        if (!(along * along > (1 - same_row) * own * friction && friction > immovable)) continue;

        // It yields beside an equality; beside a limit that presses by more than its bound.
        const double of_friction = along > 0 ? lambda_[row] : -lambda_[row];
        const double pressed = lambda_[block.row] * std::sqrt(own / friction) + of_friction;
        yields_[b].entirely = !is_limit || pressed > scaled_.bound[b] + tie;
        beside_parallel_[b] = yields_[b].entirely;
      }
    }
  }
}

/// Velocities that are asked of equalities. False: there is none.
bool ProblemLinearization::ask(int probe, double sign) {
  bool any = false;
  std::fill(asked_.begin(), asked_.end(), 0.0);

  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    if (block.type != BlockType::equality) continue;

    any = true;
    for (int i = block.row; i < block.row + block.size; ++i) {
      const double value = probe_value(i, probe);
      const bool turned = std::sin(7.7 * i + 1.3 * probe) < 0;
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
    for (int i = 0; i < system.size; ++i)
      ReducedSystem::expand(system.rows[i], x[i], to.data());
  };

  for (int i = 0; i < system.size; ++i)
    x[i] = ReducedSystem::equation(system.rows[i], asked_.data());
  system.solve(scaled_, x);

  for (int round = 1; round < response_rounds; ++round)
    repeat_round(system, x, false);

  expand(earlier_);
  repeat_round(system, x, false);
  expand(change_);
}

/// A contact's tangents reach the border of the friction cone.
void ProblemLinearization::tangent_border(int b, Border& nearest) const {
  const Block& block = scaled_.blocks[b];

  const double* d = change_.data() + block.row;
  const double* l = path_.data() + block.row;
  const double length_of_change = tangential_norm(block, d);
  const double share = scaled_.E[block.row] * length_of_change;
  if (!(share > least_share)) return;

  // Of each tangent that takes part.
  for (int k = 0; k < block.tangents(); ++k) {
    const int i = block.tangent(k);
    const double change = std::abs(change_[i]);
    const bool large = scaled_.E[block.row] * change > 0.1 * share;
    if (large && !(change > persistent * std::abs(earlier_[i]))) return;
  }

  Border border;
  border.block = b;
  border.yield.loose = 1;
  if (block.type == BlockType::pyramid) {
    // The first side of the polygon that the impulse meets, or the first end of an interval.
    int side = -1;
    border.distance = polygon_border(block, l, d, side);
    if (side >= 0) std::copy_n(friction_polygon(block).direction[side], 2, border.yield.n.begin());
    for (int i = 3; i < block.size; ++i) {
      const double sign = std::copysign(1.0, d[i]);
      const double towards = std::abs(d[i]) - block.mu * d[2];
      const double left = std::max(block.mu * l[2] - sign * l[i], 0.0);
      if (!(towards > 0) || left / towards >= border.distance) continue;
      border.distance = left / towards;
      border.yield.n = {};
      border.yield.n[i - 1] = sign;
    }
  } else {
    // |l_T + t d_T|^2 = mu^2 (l_N + t d_N)^2.
    const double mu = block.mu * block.mu;
    double squared = d[0] * d[0] + d[1] * d[1];
    double mixed = d[0] * l[0] + d[1] * l[1];
    double constant = l[0] * l[0] + l[1] * l[1];
    for (int i = 3; i < block.size; ++i) {
      squared += d[i] * d[i];
      mixed += d[i] * l[i];
      constant += l[i] * l[i];
    }
    squared -= mu * d[2] * d[2];
    mixed -= mu * d[2] * l[2];
    constant = std::min(0.0, constant - mu * l[2] * l[2]);
    const double discriminant = std::sqrt(std::max(0.0, mixed * mixed - squared * constant));
    const double root = discriminant + mixed;
    if (!(root > 0)) return;

    border.distance = -constant / root;
    border.opposite = discriminant > mixed ? -constant / (discriminant - mixed) : 0.0;

    // There it slips in the direction that the impulse then has.
    double there[1 + max_tangents] = {};
    for (int i = 0; i < block.size; ++i)
      there[i] = l[i] + border.distance * d[i];
    const double length = tangential_norm(block, there);
    if (length > 0)
      tangential_direction(block, there, length, border.yield.n);
    else
      tangential_direction(block, d, length_of_change, border.yield.n);
  }

  if (border.distance < INFINITY && (nearest.block < 0 || border.distance < nearest.distance)) nearest = border;
}

/// Does it slide while parts of it hold: along a side of its polygon, or tangents that stick?
bool ProblemLinearization::holds_partly(int b) const {
  const Block& block = scaled_.blocks[b];
  const BlockMode& mode = modes_[b];
  if (block.type != BlockType::pyramid || mode.mode != Mode::sliding || mode.facet < 0) return false;

  const PyramidParts parts = parts_of(block, mode.facet);
  if (parts.feature < 0 || friction_polygon(block).is_side(parts.feature)) return true;
  return std::any_of(parts.end, parts.end + block.size - 3, [](int end) { return end == 0; });
}

/// A part of it that holds reaches its end, where it slides on: an end of the side, a side of the polygon, an end of an interval.
void ProblemLinearization::part_border(int b, Border& nearest) const {
  const Block& block = scaled_.blocks[b];
  const FrictionPolygon& polygon = friction_polygon(block);
  const PyramidParts parts = parts_of(block, modes_[b].facet);
  const double* l = path_.data() + block.row;
  const double* d = change_.data() + block.row;
  const double* before = earlier_.data() + block.row;
  const double E = scaled_.E[block.row];

  // Redundant: it takes a share, and rounds leave it.
  const auto is_redundant = [&](double change, double earlier) {
    return E * std::abs(change) > least_share && std::abs(change) > persistent * std::abs(earlier);
  };
  const auto take = [&](double distance, double opposite, const PyramidParts& there) {
    if (nearest.block >= 0 && distance >= nearest.distance) return;
    nearest = {};
    nearest.block = b;
    nearest.distance = distance;
    nearest.opposite = opposite;
    nearest.yield.facet = facet_of(block, there);
  };

  // An impulse between two ends, which move with the normal impulse.
  const auto reach = [&](double impulse, double change, double half, const PyramidParts& there) {
    const double sign = std::copysign(1.0, change);
    const double towards = std::abs(change) - half * d[2];
    if (!(towards > 0)) return;
    const double distance = std::max(half * l[2] - sign * impulse, 0.0) / towards;
    const double away = std::abs(change) + half * d[2];
    const double opposite = away > 0 ? std::max(half * l[2] + sign * impulse, 0.0) / away : 0.0;
    take(distance, opposite, there);
  };

  // The polygon: inside of it, or on a side.
  PyramidParts there = parts;
  if (parts.feature < 0) {
    const double change = std::hypot(d[0], d[1]);
    if (is_redundant(change, std::hypot(before[0], before[1]))) {
      const double distance = polygon_border(block, l, d, there.feature);
      if (there.feature >= 0) take(distance, 0, there);
    }
  } else if (polygon.is_side(parts.feature)) {
    const double* normal = polygon.direction[parts.feature];
    const auto along = [&](const double* impulse) { return normal[0] * impulse[1] - normal[1] * impulse[0]; };
    const double change = along(d);
    there.feature = polygon.neighbour(parts.feature, change > 0 ? 1 : -1);
    if (is_redundant(change, along(before))) reach(along(l), change, block.mu * polygon.half_side, there);
  }

  // Further tangents that stick.
  for (int i = 3; i < block.size; ++i) {
    if (parts.end[i - 3] != 0 || !is_redundant(d[i], before[i])) continue;
    there = parts;
    there.end[i - 3] = d[i] > 0 ? 1 : -1;
    reach(l[i], d[i], block.mu, there);
  }
}

/// The first row that reaches its bound on the way path_ + t change_.
ProblemLinearization::Border ProblemLinearization::nearest_border(const std::vector<Yield>& yields) const {
  Border nearest;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    const Block& block = scaled_.blocks[b];
    const int row = block.row;
    if (yields[b].gives()) continue;
    if (block.is_contact()) {
      if (modes_[b].mode == Mode::sticking) tangent_border(b, nearest);
      if (holds_partly(b)) part_border(b, nearest);
      continue;
    }

    const double d = change_[row];
    const bool friction = block.type == BlockType::box && modes_[b].mode == Mode::sticking;
    const bool opens = block.type == BlockType::limit && modes_[b].mode == Mode::active && d < 0;
    if (!friction && !opens) continue;

    // Redundant: it takes a share, and rounds leave it.
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

  // After its normal, one unknown for every direction across.
  double* x = buffer_.data();
  for (int across = system.first[block] + 1; across < system.first[block + 1]; ++across) {
    std::fill_n(x, system.size, 0.0);
    x[across] = 1;
    system.solve(scaled_, x);
    for (int round = 1; round < response_rounds; ++round)
      repeat_round(system, x, false);

    const double before = x[across];
    repeat_round(system, x, false);
    const double share = scaled_.E[scaled_.blocks[block].row] * std::abs(x[across]);
    if (!(share > least_share && std::abs(x[across]) > persistent * std::abs(before))) return false;
  }
  return true;
}

/// Adds to `yields` the rows that give way where equalities are asked for these velocities; keep_bands: to the further unresolved ones, each
/// with what may be asked until it yields. False: none does.
bool ProblemLinearization::follow(int probe, double sign, std::vector<Yield>& yields, bool keep_bands) {
  if (!ask(probe, sign)) return false;
  std::copy_n(lambda_.begin(), scaled_.ld, path_.begin());

  bool any = false;
  double travelled = 0;
  bool trial = std::any_of(yields.begin(), yields.end(), [](const Yield& y) { return y.gives(); });
  for (int count = 0; count <= scaled_.num_blocks; ++count) {
    // Which row is next on the way, and how far it is.
    ReducedSystem& system = trial ? with_yields(yields) : last_;
    redundant_response(system);
    const Border border = nearest_border(yields);

    if (border.block < 0) return any;
    for (int i = 0; i < scaled_.n; ++i)
      path_[i] += border.distance * change_[i];
    travelled += border.distance;

    // The band that it holds in: from where it yields to this side to where it does to the other.
    if (keep_bands) {
      chosen_.assign(scaled_.num_blocks, 0);
      chosen_[border.block] = 1;
      if (add_unresolved(system, 0, &chosen_)) {
        Unresolved& own = further_[num_further_ - 1];
        double asked = 0;
        for (int i = 0; i < scaled_.n; ++i)
          asked += own.z[i] * asked_[i] * scaled_.ref / scaled_.inverse_root[i];
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

/// Does every row that yields in a do so in b?
bool ProblemLinearization::is_part(const std::vector<Yield>& a, const std::vector<Yield>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].entirely && !b[i].entirely) return false;

    // Either end of a side: what decides along it is the same.
    if (a[i].facet >= 0 && b[i].facet < 0) return false;
    if (a[i].loose == 0 || b[i].loose > 1) continue;

    if (a[i].loose > 1 || b[i].loose == 0) return false;
    double crossed = 0;
    for (int k = 0; k < max_tangents; ++k)
      for (int l = 0; l < k; ++l)
        crossed += std::pow(a[i].n[l] * b[i].n[k] - a[i].n[k] * b[i].n[l], 2);
    if (std::sqrt(crossed) > parallel) return false;
  }
  return true;
}

/// Beside equalities: yields_ by every direction that may be asked. They may differ by more than what some rows do that agree with the others
/// anyway (then the redundant rows of the smaller set are consistent): they compete. True: some row yields that did not.
bool ProblemLinearization::let_rows_yield() {
  bool bounded = false;
  bool limit_holds = false;
  for (int b = 0; b < scaled_.num_blocks; ++b) {
    limit_holds = limit_holds || (scaled_.blocks[b].type == BlockType::limit && modes_[b].mode == Mode::active);
    bounded = bounded || modes_[b].mode == Mode::sticking || holds_partly(b);
  }
  if (!bounded && !limit_holds) return false;

  // As equalities are asked in one direction ...
  start_ = yields_;
  const bool any = follow(0, 1, yields_, true);
  if (!any && !limit_holds) return false;  // dry friction yields to both signs

  // ... and in others: the largest set of rows, and the smallest.
  const auto yields = [](const Yield& y) { return y.gives(); };
  const auto count = std::count_if(yields_.begin(), yields_.end(), yields);
  smallest_ = yields_;
  bool nested = true;

  for (int probe = 0; probe < (count > 1 ? 1 + probes : 1); ++probe) {
    for (const double sign : {1.0, -1.0}) {
      if (probe == 0 && sign > 0) continue;
      other_yields_ = start_;
      follow(probe, sign, other_yields_);

      if (is_part(other_yields_, smallest_))
        smallest_ = other_yields_;
      else if (is_part(yields_, other_yields_))
        yields_ = other_yields_;
      else if (!is_part(smallest_, other_yields_) || !is_part(other_yields_, yields_))
        nested = false;
    }
  }

  if (!nested || !is_part(yields_, smallest_)) add_unresolved(nested ? with_yields(smallest_) : last_, INFINITY);
  return !is_part(yields_, start_);
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

}  // namespace coulomb

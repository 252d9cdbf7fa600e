// docs/theory.md (K1) to (K6), (K8).
#include "coulomb/constraints/corrections.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/islands.hpp"
#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

/// kappa: work of a correction, in that of its rows by themselves. Loops away from singular poses have 1 to 3.
constexpr double most_work = 10;

/// S of connections and welds, in W: limits and joint equalities give way before a loop opens.
constexpr double rigid_share = 0.01;

/// m/s, rad/s: a fifth of a millimetre in steps of 2 ms. What equalities lack is removed this fast by any motion of little work, so that a loop
/// that is closed has one derivative, far from the border of the bound.
constexpr double slow_correction = 1e-2;

constexpr double least_damping = 1e-8;  // less concerns errors as small as solvers leave
constexpr double exactness = 1e-13;     // of the work, relative
constexpr double at_border = 1e-9;      // the same: the bound begins here
constexpr double begins = 1e-10;        // m/s, rad/s: of a limit that begins to be violated
constexpr int most_trials = 100;        // of eps; about six are usual

// friction: contacts with more jam where they oppose one another by less than .05 rad, and leave at 20 beta at most where they do not
constexpr double most_smooth = 0.05;
// Sweeps that look for the bound. While few rows oppose one another without end, each adds about N to the work: 2 kappa are enough.
constexpr int most_sweeps = 100;
constexpr double swept = 1e-10;           // of the work: less in a sweep ends the search
constexpr int most_damped_sweeps = 2000;  // with damping; tens are usual
constexpr double damped_swept = 1e-26;    // of the bound: less in a sweep is rounding
constexpr int most_supports = 20;         // that are tried; two are usual

constexpr double kept_share = 0.5;    // of a row's error: out of reach
constexpr double told = 5e-5;         // m/s, rad/s: slower corrections are not worth telling
constexpr double still_share = 0.99;  // of a row's error: nothing moves it
constexpr double told_still = 2e-6;   // m/s, rad/s: contradictions are damped from about three times this on

/// Work as a function of eps, from the rows of one island.
class Damping {
 public:
  Damping(IslandCorrection& island, Corrections& scratch) : c_(island), scratch_(scratch) {
    const std::size_t ld = c_.ld;
    if (scratch.work.size() < ld) scratch.work.resize(ld);
    if (scratch.factor.size() < ld * c_.n) scratch.factor.resize(ld * c_.n);
  }

  /// x of this eps. False: G + eps S is singular to rounding.
  bool solve(double eps) {
    double* K = scratch_.factor.data();
    std::copy_n(c_.G.data(), std::size_t(c_.n) * c_.ld, K);
    for (int k = 0; k < c_.n; ++k)
      K[std::size_t(k) * c_.ld + k] += eps * c_.rows[k].scale;
    if (!(dense::cholesky(K, c_.n, c_.ld, scratch_.work.data()) > 0)) return false;
    for (int k = 0; k < c_.n; ++k)
      c_.x[k] = c_.rows[k].idle ? 0 : c_.beta[k];
    dense::cholesky_solve(K, c_.n, c_.ld, c_.x.data());
    return true;
  }

  /// x . beta, after solve.
  double work() const {
    double sum = 0;
    for (int k = 0; k < c_.n; ++k)
      sum += c_.x[k] * c_.beta[k];
    return sum;
  }

  /// x . S x = - d work / d eps
  double slope() const {
    double sum = 0;
    for (int k = 0; k < c_.n; ++k)
      sum += c_.x[k] * c_.rows[k].scale * c_.x[k];
    return sum;
  }

  /// The eps of this work, of which least_damping allows more: Newton's method on logarithms, between bounds.
  double find(double bound) {
    double low = std::log(least_damping);
    double high = std::log(1 / (most_work * rigid_share));
    double middle = 0.5 * (low + high);
    double eps = std::exp(high);
    for (int trial = 0; trial < most_trials && high - low > exactness; ++trial) {
      eps = std::exp(middle);
      if (!solve(eps)) {
        low = middle;
        middle = 0.5 * (low + high);
        continue;
      }

      // Less work by more damping.
      const double value = work();
      const double excess = std::log(value / bound);
      if (std::abs(excess) <= exactness) return eps;
      (excess > 0 ? low : high) = middle;
      const double next = middle + excess * value / (eps * slope());
      middle = next > low && next < high ? next : 0.5 * (low + high);
    }
    solve(eps);
    return eps;
  }

 private:
  IslandCorrection& c_;
  Corrections& scratch_;
};

/// Is it the violated limit of a path? Where the path is stretched, only large motions change its length.
bool is_violated_path(const ConstraintRows& rows, int block) {
  if (rows.blocks[block].type != BlockType::limit || rows.turning.empty()) return false;
  const auto before = [](const DofRow& row, int index) { return row.block < index; };
  const auto found = std::lower_bound(rows.dof_rows.begin(), rows.dof_rows.end(), block, before);
  return found->tendon >= 0 && found->turning >= 0 && rows.bias[found->row] < 0;
}

/// Has the island an equality, or the violated limit of a path? Both may ask for what only a large motion reaches.
bool may_be_out_of_reach(const ConstraintRows& rows, const Island& island) {
  // Springs are none.
  const ConstraintProblem& problem = island.problem;
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    const Block& block = problem.blocks[b];
    if (block.type == BlockType::equality && !(problem.R[block.row] > 0)) return true;
    if (is_violated_path(rows, island.blocks[b])) return true;
  }
  return false;
}

/// The rows of equalities and violated limits that are rigid, with beta. False: no equality, or nothing to correct.
bool collect(const ConstraintRows& rows, const Island& island, IslandCorrection& out) {
  const ConstraintProblem& problem = island.problem;
  out.rows.clear();
  out.beta.clear();
  bool asks = false;
  if (!may_be_out_of_reach(rows, island)) return false;

  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    const Block& block = problem.blocks[b];
    const bool equality = block.type == BlockType::equality;
    if (!equality && block.type != BlockType::limit) continue;
    for (int i = 0; i < block.size; ++i) {
      const double beta = rows.bias[island.rows[block.row + i]];
      const bool soft = problem.R[block.row + i] > 0;
      if (soft || (!equality && !(beta < 0))) continue;
      const double weight = problem.W[block.row + i];
      const double scale = block.size > 1 ? rigid_share * weight : weight;
      out.rows.push_back({int(b), block.row + i, i, equality, scale, weight});
      out.beta.push_back(beta);
      asks = asks || beta != 0;
    }
  }
  return asks;
}

COULOMB_SIMD double dot(const double* __restrict x, const double* __restrict y, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += x[i] * y[i];
  return sum;
}

/// G of these rows: Y Y^T, where it is not known already.
void gather_matrix(const Island& island, Corrections& scratch, IslandCorrection& out) {
  const ConstraintProblem& problem = island.problem;
  out.n = int(out.rows.size());
  out.ld = dense::padded(out.n);
  const std::size_t ld = out.ld;
  out.G.assign(ld * out.n, 0.0);
  out.x.assign(ld, 0.0);
  if (problem.has_G) {
    for (int i = 0; i < out.n; ++i)
      for (int j = 0; j < out.n; ++j)
        out.G[ld * i + j] = problem.G[std::size_t(problem.ld) * out.rows[i].row + out.rows[j].row];
    return;
  }

  // Dense rows of Y.
  const int width = dense::padded(island.num_dofs());
  scratch.Y.assign(std::size_t(width) * out.n, 0.0);
  for (int k = 0; k < out.n; ++k)
    for (const RowSegment& segment : problem.segments[out.rows[k].block]) {
      if (segment.tree < 0) continue;
      const int size = problem.tree_size[segment.tree];
      std::copy_n(problem.Y.data() + segment.start + std::size_t(out.rows[k].row_of_block) * dense::padded(size), size,
                  scratch.Y.data() + std::size_t(width) * k + island.tree_start[segment.tree]);
    }
  for (int i = 0; i < out.n; ++i)
    for (int j = 0; j <= i; ++j) {
      const double* Y = scratch.Y.data();
      out.G[ld * i + j] = dot(Y + std::size_t(width) * i, Y + std::size_t(width) * j, width);
      out.G[ld * j + i] = out.G[ld * i + j];
    }
}

/// kappa (N + N_0): N of the rows by themselves, N_0 of equalities that are slightly violated.
double largest_work(const IslandCorrection& c) {
  double sum = 0;
  for (int k = 0; k < c.n; ++k) {
    const double least = c.rows[k].holds ? slow_correction * slow_correction : 0;
    sum += (c.beta[k] * c.beta[k] + least) / c.rows[k].weight;
  }
  return most_work * sum;
}

/// Does a rigid limit begin to be violated at this state?
bool limit_begins(const ConstraintRows& rows, const Island& island) {
  for (const Block& block : island.problem.blocks) {
    const bool rigid_limit = block.type == BlockType::limit && island.problem.R[block.row] == 0;
    if (rigid_limit && std::abs(rows.bias[island.rows[block.row]]) <= begins) return true;
  }
  return false;
}

/// beta' and the compliance of the rows into the problem, and what is out of reach.
void apply(Island& island, IslandCorrection& c) {
  for (int k = 0; k < c.n; ++k) {
    const double kept = c.rows[k].damping * c.rows[k].scale * c.x[k];
    island.problem.g[c.rows[k].row] -= kept;
    island.problem.R[c.rows[k].row] += c.compliance * c.rows[k].scale;
    const double least = std::abs(kept) >= still_share * std::abs(c.beta[k]) ? told_still : told;
    const bool out = std::abs(kept) >= std::max(kept_share * std::abs(c.beta[k]), least);
    const int block = c.rows[k].block;
    if (out && (c.out_of_reach.empty() || c.out_of_reach.back() != block)) c.out_of_reach.push_back(block);
  }
}

/// An island with an equality.
void bound_equalities(const ConstraintRows& rows, Island& island, Corrections& scratch, IslandCorrection& c) {
  gather_matrix(island, scratch, c);

  // Ordinary poses stay as they are.
  const double most = largest_work(c);
  if (!std::isfinite(most)) return;
  Damping damping(c, scratch);
  const bool regular = damping.solve(least_damping);
  const double undamped = regular ? damping.work() : 2 * most;
  c.at_kink = std::abs(undamped - most) <= at_border * most;
  if (!(undamped > most)) return;

  // Others take as much less as they must, and are as soft as eps S where nothing moves any more, softer before.
  c.bounded = true;
  const double eps = damping.find(most);
  for (CorrectedRow& row : c.rows)
    row.damping = eps;
  c.compliance = std::sqrt(eps / most_work);
  c.at_kink = c.at_kink || limit_begins(rows, island);
  apply(island, c);
}

/// Is it a rigid contact that does not bounce and is too smooth to jam? Others have another law, or friction that holds what is squeezed.
bool corrects(const ConstraintRows& rows, int block) {
  if (rows.blocks[block].mu > most_smooth) return false;
  const auto before = [](const BodyRows& b, int index) { return b.block < index; };
  const auto found = std::lower_bound(rows.body_rows.begin(), rows.body_rows.end(), block, before);
  return found->restitution == 0 && rows.compliance[found->row + 2] == 0;
}

/// The smooth contacts of an island with fixed bodies, violated or not, tree by tree.
void collect_one_sided(const ConstraintRows& rows, const Island& island, std::vector<CorrectedRow>& out) {
  const ConstraintProblem& problem = island.problem;
  out.clear();
  for (std::size_t b = 0; b < problem.blocks.size(); ++b) {
    const auto& [first, second] = problem.segments[b];
    const Block& block = problem.blocks[b];
    if (second.tree >= 0 || !block.is_contact() || !corrects(rows, island.blocks[b])) continue;
    const int row = block.normal();
    const int own = row - block.row;
    out.push_back({int(b), row, own, false, problem.W[row], problem.W[row], false, first.tree});
  }
  const auto before = [](const CorrectedRow& a, const CorrectedRow& b) {
    return a.tree != b.tree ? a.tree < b.tree : a.row < b.row;
  };
  std::sort(out.begin(), out.end(), before);
}

/// The rows of the bound: the support of the motion, and those that are violated, which count in N.
void take_support(const LeastMotion& least, const Corrections& scratch, IslandCorrection& c) {
  c.rows.clear();
  c.beta.clear();
  for (std::size_t k = 0; k < scratch.candidates.size(); ++k) {
    const bool idle = !(least.x()[k] < 0);
    if (idle && !(scratch.errors[k] < 0)) continue;
    CorrectedRow row = scratch.candidates[k];
    row.idle = idle;
    if (idle) row.scale = 0;
    c.rows.push_back(row);
    c.beta.push_back(scratch.errors[k]);
  }
}

/// Rows that are idle have no part in the motion.
void part_idle_rows(IslandCorrection& c) {
  for (int k = 0; k < c.n; ++k) {
    if (!c.rows[k].idle) continue;
    for (int i = 0; i < c.n; ++i)
      c.G[std::size_t(c.ld) * i + k] = c.G[std::size_t(c.ld) * k + i] = 0;
    c.G[std::size_t(c.ld) * k + k] = 1;
  }
}

/// Is a row about to join the support, or to leave it?
bool support_changes(const LeastMotion& least) {
  double largest = 0;
  double fastest = 0;
  for (int k = 0; k < int(least.x().size()); ++k) {
    largest = std::max(largest, -least.x()[k]);
    fastest = std::max(fastest, least.slack(k));
  }
  for (int k = 0; k < int(least.x().size()); ++k) {
    const bool idle = least.x()[k] == 0;
    if (idle ? least.slack(k) <= at_border * fastest : -least.x()[k] <= at_border * largest) return true;
  }
  return false;
}

/// The candidates, smooth contacts of one tree: what is asked of them, into of_tree. False: what their errors ask.
bool bound_tree(const Island& island, Corrections& scratch, bool& at_kink) {
  double most = 0;
  double largest = 0;
  for (std::size_t k = 0; k < scratch.candidates.size(); ++k) {
    const double error = std::max(-scratch.errors[k], 0.0);
    most += most_work * error * error / scratch.candidates[k].weight;
    largest = std::max(largest, error);
  }
  if (scratch.candidates.size() < 2 || !(largest > told_still) || !std::isfinite(most)) return false;

  // What the least motion takes, as far as the question is whether that is too much.
  LeastMotion& least = scratch.least;
  least.start(island, scratch.candidates, scratch.errors);
  double work = 0;
  for (int count = 0; count < most_sweeps && !(work > most); ++count) {
    const double changed = least.sweep(0);
    work = least.work();
    if (changed <= swept * work) break;
  }
  at_kink = at_kink || std::abs(work - most) <= at_border * most;
  if (!(work > most)) return false;

  // Damping and support, by turns.
  IslandCorrection& c = scratch.of_tree;
  double eps = 0.5 / most_work;
  bool settled = false;
  least.start(island, scratch.candidates, scratch.errors);
  for (int trial = 0; trial < most_supports && !settled; ++trial) {
    for (int count = 0; count < most_damped_sweeps; ++count)
      if (least.sweep(eps) <= damped_swept * most) break;
    take_support(least, scratch, c);
    gather_matrix(island, scratch, c);
    part_idle_rows(c);
    const double before = eps;
    eps = Damping(c, scratch).find(most);
    settled = std::abs(eps - before) <= at_border * before;
  }
  for (CorrectedRow& row : c.rows)
    row.damping = eps;
  at_kink = at_kink || !settled || support_changes(least);
  return true;
}

/// An island without an equality, tree by tree: what is asked of one does not depend on the others.
void bound_one_sided(const ConstraintRows& rows, Island& island, Corrections& scratch, IslandCorrection& c) {
  collect_one_sided(rows, island, scratch.one_sided);
  c.rows.clear();
  c.beta.clear();
  std::vector<double>& x = scratch.impulses;
  x.clear();
  for (std::size_t first = 0, end = 0; first < scratch.one_sided.size(); first = end) {
    scratch.candidates.clear();
    scratch.errors.clear();
    for (; end < scratch.one_sided.size() && scratch.one_sided[end].tree == scratch.one_sided[first].tree; ++end) {
      scratch.candidates.push_back(scratch.one_sided[end]);
      scratch.errors.push_back(rows.bias[island.rows[scratch.one_sided[end].row]]);
    }
    if (!bound_tree(island, scratch, c.at_kink)) continue;
    const IslandCorrection& own = scratch.of_tree;
    c.rows.insert(c.rows.end(), own.rows.begin(), own.rows.end());
    c.beta.insert(c.beta.end(), own.beta.begin(), own.beta.end());
    x.insert(x.end(), own.x.begin(), own.x.begin() + own.n);
  }
  if (c.rows.empty()) return;

  // All of them, for the derivative.
  c.bounded = true;
  gather_matrix(island, scratch, c);
  part_idle_rows(c);
  std::copy(x.begin(), x.end(), c.x.begin());
  apply(island, c);
}

/// One island.
void bound(const ConstraintRows& rows, Island& island, Corrections& scratch, IslandCorrection& c) {
  c.bounded = false;
  c.at_kink = false;
  c.compliance = 0;
  c.out_of_reach.clear();
  if (collect(rows, island, c))
    bound_equalities(rows, island, scratch, c);
  else if (!may_be_out_of_reach(rows, island))
    bound_one_sided(rows, island, scratch, c);
}

}  // namespace

std::size_t IslandCorrection::bytes() const {
  return rows.size() * sizeof(CorrectedRow) + (beta.size() + G.size() + x.size()) * sizeof(double) +
         out_of_reach.size() * sizeof(int);
}

std::size_t Corrections::bytes() const {
  std::size_t sum = (factor.size() + work.size() + Y.size() + errors.size() + impulses.size()) * sizeof(double);
  sum += (one_sided.size() + candidates.size()) * sizeof(CorrectedRow) + least.bytes() + of_tree.bytes();
  sum += out_of_reach.size() * sizeof(std::uint64_t);
  for (const IslandCorrection& island : of_island)
    sum += sizeof island + island.bytes();
  return sum;
}

void Corrections::clear() {
  any = false;
  at_kink = false;
  compliance = 0;
  out_of_reach.clear();
}

void bound_corrections(const ConstraintRows& rows, Islands& islands, Corrections& corrections) {
  corrections.clear();
  corrections.of_island.resize(islands.pool.size());
  for (int index : islands.order) {
    Island& island = islands.pool[index];
    IslandCorrection& c = corrections.of_island[index];
    c.bounded = false;
    if (island.blocks.empty()) continue;
    bound(rows, island, corrections, c);
    corrections.any = corrections.any || c.bounded;
    corrections.at_kink = corrections.at_kink || c.at_kink;
    if (!c.out_of_reach.empty()) corrections.compliance = std::max(corrections.compliance, c.compliance);
    for (int block : c.out_of_reach)
      corrections.out_of_reach.push_back(rows.keys[island.blocks[block]]);
  }
}

// dx = K^-1 (dbeta - dG x - deps S x), K = G + eps S, and x . beta follows its bound:
//   deps = [2 (x - kappa beta / W) . dbeta - x . dG x] / x . S x
//   dbeta' = dG x + G dx = C dbeta + (1 - C) dG x - deps C S x,   C = G K^-1 = 1 - eps S K^-1
void correction_slopes(const IslandCorrection& c, CorrectionSlopes& out) {
  const int n = c.n;
  const std::size_t ld = c.ld;
  for (auto* values : {&out.by_error, &out.by_rows, &out.factor, &out.inverse})
    values->assign(ld * n, 0.0);
  for (auto* values : {&out.compliance_by_error, &out.compliance_by_rows, &out.work})
    values->assign(ld, 0.0);

  // K^-1.
  std::copy_n(c.G.data(), ld * n, out.factor.data());
  for (int k = 0; k < n; ++k)
    out.factor[ld * k + k] += c.rows[k].damping * c.rows[k].scale;
  dense::cholesky(out.factor.data(), n, c.ld, out.work.data());
  for (int k = 0; k < n; ++k)
    out.inverse[ld * k + k] = 1;
  dense::cholesky_solve(out.factor.data(), n, c.ld, out.inverse.data(), c.ld, n);

  // deps, of the rows that share it.
  const auto together = [&](int i, int j) { return c.rows[i].tree == c.rows[j].tree; };
  for (int k = 0; k < n; ++k) {
    double slope = 0;
    for (int j = 0; j < n; ++j)
      if (together(k, j)) slope += c.x[j] * c.rows[j].scale * c.x[j];
    out.compliance_by_error[k] = 2 * (c.x[k] - most_work * c.beta[k] / c.rows[k].weight) / slope;
    out.compliance_by_rows[k] = -c.x[k] / slope;
  }

  // dbeta', by C S x of every row.
  for (int i = 0; i < n; ++i) {
    const double damped = c.rows[i].damping * c.rows[i].scale;
    double by_damping = c.rows[i].scale * c.x[i];
    for (int j = 0; j < n; ++j)
      by_damping -= damped * out.inverse[ld * i + j] * c.rows[j].scale * c.x[j];
    for (int j = 0; j < n; ++j) {
      const double rest = damped * out.inverse[ld * i + j];
      const double shared = together(i, j) ? by_damping : 0;
      out.by_error[ld * i + j] = (i == j) - rest - shared * out.compliance_by_error[j];
      out.by_rows[ld * i + j] = rest - shared * out.compliance_by_rows[j];
    }
  }

  // The compliance follows eps.
  for (int k = 0; k < n; ++k) {
    const double by_damping = 0.5 * c.compliance / c.rows[k].damping;
    out.compliance_by_error[k] *= by_damping;
    out.compliance_by_rows[k] *= by_damping;
  }
}

}  // namespace coulomb

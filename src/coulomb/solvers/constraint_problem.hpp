// ConstraintProblem: the constraint problem of one step, as the solvers read it (docs/theory.md (C4)): G, g and blocks,
// without a robot.
//
//   c = G lambda + g + R lambda,  (lambda, c) of every block is admissible:
//   cone       K_mu contains lambda, orthogonal to c + (0, 0, mu |c_T|) in K_mu^*     3 to 6 rows (t1, t2, n, further tangents)
//   pyramid    the same with a polygon for the disc and intervals (friction_pyramid.hpp): LCP 3 to 6 rows, as a cone
//   limit      0 <= lambda  orthogonal to  c >= 0                                     1 row
//   box        |lambda| <= bound; lambda = -bound if c > 0, +bound if c < 0            1 row  (joint dry friction)
//   equality   c = 0                                                                   1..6 rows
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "coulomb/solver.hpp"

namespace coulomb {

enum class BlockType : std::uint8_t { cone, limit, box, equality, pyramid };

constexpr int max_facets = 32;
constexpr int max_tangents = 5;  // of a contact: two of sliding, one of spinning, two of rolling
constexpr int max_sides =
    max_facets + 2 * (max_tangents - 2);  // of a pyramid: those of its polygon, and both ends of every interval

struct Block {
  BlockType type = BlockType::cone;
  int row = 0, size = 3;
  double mu = 0;             ///< cone, pyramid: friction coefficient
  double bound = 0;          ///< box: h * tau_dry
  bool speculative = false;  ///< its g counts in the scale only when negative (a gap that is still open)
  int facets = 4;            ///< pyramid: sides of the polygon, even, 4 .. max_facets
  bool inscribed = false;    ///< pyramid: polygon inside the disc instead of around it
  bool corner = false;       ///< its g, as a function of the state, has another slope on the other side of this state

  bool is_contact() const { return type == BlockType::cone || type == BlockType::pyramid; }
  /// Of contacts: rows of friction, and the row of each; the normal is the third row.
  int tangents() const { return size - 1; }
  int tangent(int k) const { return row + (k < 2 ? k : k + 1); }
  /// The row whose sign tells whether the block touches.
  int normal() const { return is_contact() ? row + 2 : row + size - 1; }
};

/// The columns of one tree in a block's rows of Y: entry (i, k) is Y[start + i * tree_ld + k], i < block.size, k < the tree's dofs.
/// tree_ld is that number rounded up to 8, padding zero. tree = -1: no segment.
struct RowSegment {
  int tree = -1;
  int start = 0;
};

/// The problem of one island: the trees that constraints couple, and their constraints.
struct ConstraintProblem {
  int n = 0, ld = 0;      ///< rows; leading dimension of G (n rounded up to 8)
  std::vector<double> G;  ///< ld x n row major, symmetric positive semi-definite, padding zero
  std::vector<double> g;  ///< n
  std::vector<double> R;  ///< n, compliance >= 0 (usually zero)
  std::vector<double>
      W;  ///< n, > 0: weight of the regularising compliance, the same in every row of a contact; empty: from G
  std::vector<Block> blocks;  ///< in row order
  double least_velocity = 0;  ///< slower ones may be rounding: the least scale
  /// m/s, rad/s: the largest velocity of its trees before the step; infinite: residuals need not follow it.
  double speed = std::numeric_limits<double>::infinity();

  /// G = Y Y^T with a sparse Y; no trees: only G is known. Where there are trees, G may be left to the solver, which forms it if it
  /// works in contact space (has_G tells).
  std::vector<int> tree_size;                       ///< dofs of each tree of the island
  std::vector<std::array<RowSegment, 2>> segments;  ///< per block
  std::vector<double> Y;
  bool has_G = true;

  void resize(int rows);  ///< g, R zero, no blocks, no G; grows storage only when needed
  void resize_matrix();   ///< G zero
};

struct SolverSettings {
  SolverMethod method = SolverMethod::automatic;
  double tolerance =
      1e-10;  ///< on the scaled residual (scaled_problem.hpp); automatic: 1e-13 at least, which is rounding
  int max_iterations = 3000;  ///< budget of a method that runs by itself; automatic has its own
  double compliance = 3e-6;   ///< automatic: of the regularised problem, relative to W
  int levels = 2;             ///< automatic: proximal steps that sharpen it
  bool centred = true;        ///< automatic: large heaps begin around the impulses of the step before
};

/// What a solve starts from: aligned with the blocks of the problem at hand. known[b] = 0: no memory of block b.
struct WarmStart {
  std::vector<double> lambda;
  std::vector<double> lambda_0;  ///< SolverResult::lambda_0 of the step before; empty: lambda
  std::vector<double> lambda_1;  ///< SolverResult::lambda_1 of the step before; empty: lambda
  std::vector<std::uint8_t> known;
  std::vector<Mode> mode;
  double compliance = 0;       ///< SolverResult::compliance of the step before, the largest; 0: not known
  bool contradictory = false;  ///< the step before was relaxed, since some of these blocks contradict one another
};

struct SolverResult {
  std::vector<double> lambda, c;  ///< n
  std::vector<double> lambda_0;   ///< n: the regularised solution that lambda sharpens; kept for the next solve's start
  std::vector<double> lambda_1;   ///< n: after the first proximal step; likewise
  std::vector<double> centre;     ///< n: the impulses around which level 0 has its compliance; empty: zero
  std::vector<Mode> modes;        ///< one per block
  std::vector<int> facets;        ///< one per block: facet that a pyramid slides on (friction_pyramid.hpp), else -1
  std::vector<double>
      margin;  ///< one per block: distance to the border of its mode, relative to the problem's scale (small: a tie)
  double residual = 0;        ///< of what was solved: the last level of the regularised problem
  double exact_residual = 0;  ///< of the problem without compliance
  double compliance = 0;      ///< relative to W: of the regularised problem; 0: none
  int levels = 0;             ///< proximal steps behind lambda
  int sharper_levels = 0;     ///< and more of them, with compliance * sharpening, compliance * sharpening^2, ...
  double sharpening = 0.1;
  double relaxation =
      0;  ///< the compliance, relative to W, that was left in because constraints contradict one another or are badly scaled
  std::vector<int> contradictory;  ///< relaxed: the blocks that contradict one another
  std::vector<int> jammed;         ///< relaxed: those that friction can hold shut whatever is asked
  std::vector<int> unsolved;       ///< relaxed: those that lack most, where no solution was found for no known reason
  std::vector<int> badly_scaled;   ///< relaxed: those of which rounding hides whether they do
  double scale_ratio = 0;          ///< and how far apart their numbers are (Cancellation::ratio)
  int iterations = 0;
  bool classes_hit = false;     ///< the modes of the warm start held: one linear solve [Werling2021]
  bool interior_point = false;  ///< it took the interior-point method
  SolveStatus status = SolveStatus::solved;
};

}  // namespace coulomb

// ProblemLinearization: the derivative of a solved constraint problem (docs/theory.md (L3), (L9) to (L13)).
//
//   dlambda = K s,   K = -C A^+ B,   A = B G~ C + Q,   s = change of c at fixed lambda = dG lambda + dg + dR lambda
//
// with the modes of the result. Scaled variables inside; B and C as exposed here contain the scaling, so that
//   dlambda = -expand(solve_reduced(reduced_rows(s))).
// The problem solved is the regularised one, sharpened by proximal steps (scaled_problem.hpp): A holds its compliance E and is regular
// everywhere. Every level contributes a round, with one factor for all (modes are those of level 0, they differ by O(epsilon)):
//   x_0 = A^-1 b,   x_k = A^-1 (b + B E C x_(k-1))
// which turns the compliance of what is determined into O(epsilon^2), and shares among redundant rows what is not. Levels with a smaller
// compliance (SolverResult::sharper_levels) follow, each with a factor of its own.
//
// That takes modes and s to be the same for all levels, although they differ in impulses and velocities. Where redundant contacts slide (the
// next velocity depends on how they share), rows are nearly redundant (their impulses differ from level to level) or a level has other modes
// (dry friction at its bound in level 0, and inside in the last), they are not: then the first few levels (lower_levels), or all, have modes, a factor
// and right-hand sides of their own, taken at their impulses and velocities:
//   dlambda_0 = -C_0 A_0^-1 B_0 s_0,   dlambda_1 = -C_1 A_1^-1 B_1 (s_1 - E dlambda_0),   ...   dlambda = -C A^-1 B (s - E dlambda_k)
//
// Rows that hold only because nothing asks them to move by more than the compliance (dry friction beside an equality that is satisfied)
// give way: linearization_yields.cpp. Where one-sided derivatives differ: linearization_kinks.cpp.
//
// Which derivative at a tie: the modes of level 0 are those of SolverResult, and later levels keep them unless their own are clear. With a margin below 1e-8 of the problem's scale a block between
// separating and touching counts as separating, one between sticking and sliding as sticking, a box between its inside and a bound
// as inside, a pyramid between a side and a vertex as on the side: one-sided derivatives, always the same side. SolverResult::margin tells.
// A relaxed result is differentiated as what was solved: its compliance is part of G~.
//
// Storage grows only. Matrices are row major; ld is the leading dimension of the caller's array, any value >= ncols.
#pragma once

#include <array>
#include <vector>

#include "coulomb/linalg/dense_kernels.hpp"
#include "coulomb/solvers/linearization/other_solutions.hpp"
#include "coulomb/solvers/newton/newton.hpp"

namespace coulomb {

class ProblemLinearization {
 public:
  /// Problem and result must stay as they are while this is used.
  void build(const ConstraintProblem& problem, const SolverResult& result);

  int rows() const { return scaled_.n; }
  int reduced_size() const { return last().size; }
  int reduced_size(int level) const { return system(level).size; }
  bool symmetric() const { return last().symmetric; }  ///< nothing slides: B = C^T, A symmetric
  bool slides() const { return !last().symmetric; }
  /// So many levels below the last have right-hand sides of their own. Where there are some, s of the functions below is taken to be the
  /// same for all of them, which it is not in a step.
  int lower_levels() const { return lower_; }
  void impulses(int level, double* lambda) const;  ///< n: lambda of a lower level
  /// n, added to the velocity of level 0 by impulses that are remembered: -E x_c. They keep their direction while axes turn, so that s of level 0
  /// has a part of it.
  void velocity_of_centre(double* c) const;
  /// Of a block at a level, lower or (-1) the last, with the feature that a pyramid slides on (else -1).
  struct Label {
    Mode mode = Mode::separating;
    int facet = -1;
    bool operator==(const Label&) const = default;
  };
  Label label(int level, int block) const { return level < 0 ? last_labels_[block] : labels_[level][block]; }
  /// The compliance chose among impulses that are not unique: tr(B E C A^-1), the number of directions that it alone determines, is not 0.
  /// A solve with as many columns as unknowns.
  bool deficient();
  /// Another side of this state has another derivative: a tie or a corner of g (Block::corner) that the impulses feel.
  bool at_kink();
  /// The start of the search has chosen between solutions that move otherwise: OtherSolutions. groups: per block, as there.
  bool has_other_solution(const std::vector<int>& groups);
  /// A combination z (n) of rows that ask for the same motion, so that none of them can have its own: a change of the problem with z . s != 0
  /// has different one-sided derivatives, or, where the band is finite, others inside of it.
  struct Unresolved {
    std::vector<double> z;
    double band = 0;  ///< m/s, rad/s: of z . s
  };
  /// Of the rows that the solution has. False, and z = 0: there is none. band: m/s, rad/s, of z . s: so far none of them reaches a border, and the
  /// derivative holds.
  bool unresolved(double* z, double& band);
  /// Further ones, each by itself: rows that yield, rows that compete, ties.
  int num_further() { return at_kink(), num_further_; }
  const Unresolved& further(int index) const { return further_[index]; }

  /// n x ncols to n x ncols; may be the same array. s_lower[level]: s of the lower levels (at their impulses); null: the same.
  void solve(const double* s, double* dlambda, int ncols, int ld, const double* const* s_lower = nullptr);
  void solve_transposed(const double* w, double* z);  ///< z = K^T w: w . dlambda = z . s
  void solve_transposed(const double* w, double* z, int ncols, int ld);
  void operator_matrix(double* K, int ld);      ///< n x n
  void dlambda_dmu(int block, double* out);     ///< n: per unit of the cone's friction coefficient
  void dlambda_dmu(double* out, int ld);        ///< n x ld, column b: of block b; one solve for all
  void dlambda_dbound(int block, double* out);  ///< n: per unit of the box's bound

  // the pieces, for callers that exploit the structure of s
  void reduced_rows(const double* Y, double* BY, int ncols, int ld) const;              ///< n x ld to m x ld: B Y
  void expand(const double* x, double* Cx, int ncols, int ld) const;                    ///< m x ld to n x ld: C x
  void reduced_rows_transposed(const double* x, double* Btx, int ncols, int ld) const;  ///< m x ld to n x ld
  void expand_transposed(const double* Y, double* CtY, int ncols, int ld) const;        ///< n x ld to m x ld
  void solve_reduced(double* rhs, int ncols, int ld);                                   ///< all rounds, in place
  void solve_reduced_transposed(double* rhs, int ncols, int ld);

  // Where there are lower levels, the pieces of each (0 ..), with reduced_size(level) reduced rows.
  void reduced_rows(int level, const double* Y, double* BY, int ncols, int ld) const;
  void expand_transposed(int level, const double* Y, double* CtY, int ncols, int ld) const;
  void solve_level(int level, double* rhs, int ncols, int ld) { system(level).solve(scaled_, rhs, ncols, ld); }
  void solve_level_transposed(int level, double* rhs, int ncols, int ld);
  /// C^T E B^T x from the level above to this one, and B E C x from this one to the level above; as many rows as where they go to.
  void pass_down(int level, const double* x, double* out, int ncols, int ld);
  void pass_up(int level, const double* x, double* out, int ncols, int ld);
  /// x: C^T w to what all levels above the lower ones make of it (A^-T each); lowest: of the first of them, which passes it down.
  void solve_upper_transposed(double* x, double* lowest, int ncols, int ld);
  /// x: b + pass_up of the highest lower level, to the last level's; b: B s.
  void solve_upper(double* x, const double* b, int ncols, int ld);
  /// Where systems are solved in velocities, all columns cost less from the island's Y (dense, dofs x ld of them), by B Y and C^T Y of the
  /// last level or of a lower one: V = U - Y^T B^T W (dofs x ld), W = solve_upper_transposed of C^T Y U; lowest: as there, or null.
  bool responds_in_velocities() const;
  void velocity_responses(const double* BY, const double* CtY, int dofs, int ld, const double* U, double* V, double* W,
                          double* lowest);
  void solve_level_transposed(int level, const double* BY, const double* CtY, int dofs, int ld, double* X);
  /// z (of s) and z_lower[level] (of the s of that level) with w . dlambda = z . s + sum of z_lower . s_lower.
  void solve_transposed(const double* w, double* z, double* const* z_lower);

 private:
  const ReducedSystem& last() const { return last_; }
  ReducedSystem& system(int level) { return level < lower_ ? lower_systems_[level] : last_; }
  const ReducedSystem& system(int level) const { return level < lower_ ? lower_systems_[level] : last_; }
  void weigh_rows(double share_of_compliance, double* rows, int ncols, int ld) const;
  void build_last(bool regularised);
  void build_sharper_levels();
  int total_levels() const { return levels_ + sharper_levels_; }
  double share(int level) const;  ///< of the usual compliance
  /// The system of a level that takes the last one's right-hand side.
  ReducedSystem& upper_system(int level) { return level <= levels_ ? last_ : sharper_[level - levels_ - 1]; }
  bool redundant();

  // linearization_levels.cpp
  using Labels = std::vector<Label>;  // per block
  void find_labels(const SolverResult& result, bool regularised);
  void find_impulses(int level);
  void own_labels(const double* lambda, const double* c, double least_margin, Labels& labels);
  void build_level(int level);
  int find_lower_levels(bool redundant_rows);
  double difference_of_slip();
  void choose_modes(const Labels& labels, const double* lambda, const double* c, std::vector<BlockMode>& modes) const;
  void gather(const ReducedSystem& system, bool of_b, const double* Y, double* out, int ncols, int ld) const;
  void scatter(const ReducedSystem& system, bool of_b, const double* x, double* out, int ncols, int ld) const;
  /// out: the change of lambda where it is changed by p directly (n, scaled) and everything else follows.
  /// p_lower[level]: of the lower levels.
  void response(const double* const* p_lower, const double* p, double* out);
  void friction_direction(int block, const BlockMode& mode, const double* lambda, double* p) const;
  template <class Direction>
  void direct_changes(double* out, Direction direction);
  void round_weights();

  // linearization_responses.cpp
  void subtract_transposed(const ReducedSystem& system, const double* x, int ld, double* left);
  /// A block whose Q is not zero.
  struct Special {
    int block = 0, first = 0, count = 0;
    double Q[36] = {};
  };
  void apply_local_transposed(const ReducedSystem& system, int block, const double* from, int ld, double* to) const;
  void add_local_transposed(const ReducedSystem& system, const double* from, int ld, double* to) const;
  static void subtract_Q(const Special& special, const double* x, int ld, double* to);
  void find_special();
  void solve_velocities_transposed(ReducedSystem& system, double* V, int ld);

  // linearization_yields.cpp
  /// How a block gives way: entirely; a contact that sticks in `loose` directions (BlockMode), the first along n; a pyramid that
  /// slides while parts of it hold (along a side, or a further tangent) to the facet where one of these has reached its end.
  struct Yield {
    bool entirely = false;
    int loose = 0;
    std::array<double, max_tangents> n = {1, 0, 0, 0, 0};
    int facet = -1;

    bool gives() const { return entirely || loose > 0 || facet >= 0; }
  };
  /// Which block reaches its border first, and after how much of a change of the impulses.
  struct Border {
    int block = -1;
    double distance = 0;
    double opposite = 0;  ///< of the border in the opposite direction
    Yield yield;
  };
  void yield_beside_parallel_rows();
  bool holds_partly(int block) const;
  void part_border(int block, Border& nearest) const;
  double row_product(int block_a, int row_a, int block_b, int row_b) const;
  bool let_rows_yield();
  static bool is_part(const std::vector<Yield>& a, const std::vector<Yield>& b);
  ReducedSystem& with_yields(const std::vector<Yield>& yields);
  void reserve_kinks();
  bool follow(int probe, double sign, std::vector<Yield>& yields, bool keep_bands = false);
  bool ask(int probe, double sign);
  void redundant_response(ReducedSystem& system);
  Border nearest_border(const std::vector<Yield>& yields) const;
  void tangent_border(int block, Border& nearest) const;
  bool across_is_redundant(int block, const std::vector<Yield>& yields);
  void apply(const Yield& yield, int block, BlockMode& mode) const;

  // linearization_kinks.cpp
  void repeat_round(ReducedSystem& system, double* x, bool transposed);
  bool redundant_rows(ReducedSystem& system, double* z, const std::vector<unsigned char>* of_blocks = nullptr);
  bool add_unresolved(ReducedSystem& system, double band, const std::vector<unsigned char>* of_blocks = nullptr);
  double distance_to_border(const double* z) const;
  bool find_kinks();
  bool is_tie(int block) const;
  bool has_corner(int block) const;
  bool factorise_sure_rows(bool friction);
  bool factorise_with_held(int block);
  bool moves(int row);
  bool moves_along(const Block& block, const double* direction, double normal);
  bool tie_moves(int block);
  bool ties_move();
  void find_held_kinks();
  void find_bands();
  struct Energies {
    double left = 0;
    double alone = 0;
  };
  Energies energies(ReducedSystem& system, const double* p);

  void add_round(const double* x, double* to, int ncols, int ld, bool transposed, double weight = 1) const;

  ScaledProblem scaled_;
  ReducedSystem last_;
  std::vector<ReducedSystem> lower_systems_;
  int lower_ = 0;
  int levels_ = 0;  ///< usual ones above level 0
  int sharper_levels_ = 0;
  double compliance_ = 0;               ///< of the usual levels
  std::vector<ReducedSystem> sharper_;  ///< of the levels with smaller compliances; as many as there ever were
  const SolverResult* result_ = nullptr;
  std::vector<Labels> labels_;  ///< of all levels but the last
  Labels last_labels_, own_labels_;
  std::vector<BlockMode> modes_;  ///< of the last level
  std::vector<std::vector<BlockMode>> lower_modes_;
  NewtonSolver newton_;  ///< of levels between those that the result has
  Iterate between_;
  const double* centre() const { return has_centre_ ? centre_.data() : nullptr; }
  double speed_of_centre() const;
  bool has_centre_ = false;
  std::vector<double> centre_;  ///< scaled: of the compliance of level 0
  std::vector<double> lambda_, c_, buffer_, direction_;
  std::vector<std::vector<double>> lower_lambda_;  ///< scaled
  std::vector<std::vector<double>> lower_direction_;
  std::vector<const double*> lower_pointers_;
  std::vector<double> rows_;    ///< n x columns
  std::vector<double> column_;  ///< n: of dlambda_dmu
  std::vector<double> moving_;  ///< reduced rows: of impulses, the part that moves anything
  std::vector<double> lowest_;  ///< reduced rows x columns: of the lowest level above the lower ones
  std::vector<double> first_round_, second_round_;  ///< reduced rows x columns: b of the rounds, and of the next one
  struct RoundWeight {
    int row = 0, column = 0;
    double value = 0;
  };
  std::vector<RoundWeight> round_weights_;  ///< B E C, a few entries a row
  std::vector<Special> special_;
  std::vector<double> special_c_, places_;  ///< of velocity_responses
  std::vector<double> right_side_;
  ProductScratch product_;

  std::vector<Yield> yields_, other_yields_, start_, smallest_;  ///< per block
  ReducedSystem trial_;                                          ///< with other modes than systems_
  std::vector<BlockMode> trial_modes_;
  std::vector<double> asked_, path_;            ///< n: velocities asked of hard rows; impulses on the way, scaled
  std::vector<double> change_, earlier_;        ///< n: of the impulses, by the last round and by the one before
  std::vector<unsigned char> chosen_;           ///< per block
  std::vector<unsigned char> beside_parallel_;  ///< per block: dry friction that a parallel row made give way
  std::vector<Unresolved> further_;
  int num_further_ = 0;
  OtherSolutions other_solutions_;
  bool at_kink_ = false, kinks_known_ = false;
};

}  // namespace coulomb

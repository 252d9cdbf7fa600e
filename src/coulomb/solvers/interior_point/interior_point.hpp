// InteriorPoint: a primal-dual interior-point method for the regularised constraint problem, from no start at all (docs/theory.md (C12)).
// Scaling: [Nesterov1997]; predictor and corrector: [Mehrotra1992].
//
// Every block keeps its impulse lambda and a velocity-like y strictly inside their sets while their product, the gap, goes to zero:
//   cone      x = (mu lambda_N, lambda_T), y = (c_N / mu + s(y_T), c_T) in the Lorentz cone, x o y = gap e      (Nesterov-Todd scaling)
//             s(y_T) = sqrt(|y_T|^2 + theta^2) - theta: De Saxce's term, with its whole derivative, theta a small share of the gap. It is convex, so
//             what a step's linearisation misses of it only moves y_0 further inside: it is added there and never becomes a residual.
//   pyramid   c_T + sum a_j s_j = 0, s_j w_j = gap with w_j = mu lambda_N - a_j . lambda_T for every side; lambda_N c_N = gap
//   limit     lambda c = gap
//   box       c = p - m, p (lambda + bound) = m (bound - lambda) = gap
//   equality  c = 0
// Newton's step then is (G + E + D) dlambda = r with a small D for every block, symmetric but for De Saxce's term; Mehrotra's predictor
// and corrector share the factor. In contact space that is a dense LU, in velocity space VelocityFactor.
#pragma once

#include <vector>

#include "coulomb/solvers/interior_point/lorentz_cone.hpp"
#include "coulomb/solvers/newton/newton.hpp"
#include "coulomb/solvers/newton/velocity_factor.hpp"

namespace coulomb {

class InteriorPoint {
 public:
  struct Options {
    double gap = 1e-9;       ///< where to stop
    double residual = 1e-8;  ///< and how exactly y has to fit lambda there
    int max_iterations = 40;
  };

  /// The level of the problem at hand, from a start of its own. Leaves the last impulses in `iterate`, evaluated. True: gap and residual
  /// were reached.
  bool solve(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations);
  /// From where the last call left, to a smaller gap.
  bool resume(const ScaledProblem& problem, const Options& options, Iterate& iterate, int& iterations);
  /// As solve(), along the path itself and round its folds (interior_point_path.cpp): slower, and seldom in vain. path: 0 has the same
  /// product in every block, 1, 2, ... have products of their own. Of the options the gap and the number of iterations count.
  bool follow(const ScaledProblem& problem, const Options& options, int path, Iterate& iterate, int& iterations);

 private:
  /// Per row: impulses and, where a block has them, velocities y (cone: in the block's own row order; limit: y; box: p; pyramid: y_N).
  struct Unknowns {
    std::vector<double> lambda, y;
    std::vector<double> m;     // per row: box
    std::vector<double> side;  // pyramid: multipliers s_j, max_sides per block
  };
  /// A change of the unknowns, and of the gap in shares of itself.
  struct PathStep {
    Unknowns change;
    double gap = 0;
  };
  struct Scaling {
    double eta = 1;
    LorentzPoint w = {1};  ///< W = eta Q(w)
    LorentzPoint l = {1};  ///< W y = W^-1 x
  };
  /// What the two products of a box lack.
  struct BoxGaps {
    double p;
    double m;
  };

  void resize(const ScaledProblem& problem);
  void start(const ScaledProblem& problem, double relative_size);
  double gap(const ScaledProblem& problem) const;
  void evaluate(const ScaledProblem& problem, bool frozen);
  bool factorise(const ScaledProblem& problem);
  void weigh(const ScaledProblem& problem, const double* x, double* out) const;
  void solve_in_velocities(const ScaledProblem& problem, const double* r, double* change);
  void find_velocity_change(const ScaledProblem& problem);
  void take_local_part(const ScaledProblem& problem, const double* asked, double* out) const;
  void solve_direction(const ScaledProblem& problem, double sigma_gap, bool corrected);
  double longest_step(const ScaledProblem& problem) const;
  double gap_after(const ScaledProblem& problem, double step) const;
  bool predict(const ScaledProblem& problem, double mean, double& centring);
  void keep_predictor(const ScaledProblem& problem);
  void move(const ScaledProblem& problem, double step);

  // The path (interior_point_path.cpp).
  void choose_path(const ScaledProblem& problem, int path);
  bool reach_path(const ScaledProblem& problem, int& iterations);
  void find_path_steps(const ScaledProblem& problem, bool first);
  bool follow_path(const ScaledProblem& problem);
  bool try_path_step(const ScaledProblem& problem, double share, double along, double allowed);
  double local_product(const ScaledProblem& problem, const PathStep& a, const PathStep& b) const;
  double off_centre(const ScaledProblem& problem) const;
  double allowed_residual(const ScaledProblem& problem) const;

  // One block each (interior_point_blocks.cpp); target: the product that its pairs should have.
  void start_block(const ScaledProblem& problem, int block, double size);
  void add_gap(const ScaledProblem& problem, int block, double step, double& sum) const;
  void find_residual(const ScaledProblem& problem, int block, bool frozen);
  void scale_cone(const Block& block, Scaling& scaling) const;
  void cone_matrix(const Block& block, int index, double* D) const;
  void local_matrix(const ScaledProblem& problem, int block, double* D) const;
  double missing(int row, double target, bool corrected) const;
  double missing_of_side(const Block& block, std::size_t side, const double* a, double target, bool corrected) const;
  BoxGaps missing_of_box(int row, double bound, double target, bool corrected) const;
  void cone_right_hand_side(const Block& block, int index, double target, bool corrected, double* r) const;
  void right_hand_side(const ScaledProblem& problem, int block, double target, bool corrected, double* r) const;
  void expand(const ScaledProblem& problem, int block, double target, bool corrected);
  double longest_step_of(const ScaledProblem& problem, int block) const;
  template <class Visit>
  void for_each_pair(const ScaledProblem& problem, int block, const Visit& visit) const;
  double local_product_of(const ScaledProblem& problem, int block, const Unknowns& a, const Unknowns& b) const;
  double off_centre_of(const ScaledProblem& problem, int block, double gap) const;

  // De Saxce's term of the cones.
  void correct_slip(const ScaledProblem& problem, double step);
  void set_smoothing(const ScaledProblem& problem, double theta);
  void add_smoothing_slope(const ScaledProblem& problem);
  void fit_slip(const ScaledProblem& problem);

  Unknowns at_;
  Unknowns step_, affine_;  // the direction at hand, and that of the predictor
  // Along the path: back to it, along it here and at the last point, and where a step began.
  PathStep corrector_, tangent_, last_tangent_;
  Unknowns begin_;
  std::vector<double> c_;
  std::vector<double> weight_;  // per block: its product on the path, over the gap
  double path_gap_ = 0;         // at the point at hand,
  double off_path_ = 0;         // which is so far from the path,
  double path_length_ = 0;      // and how far the next step tries to go
  // Per block: residual of y and the slope t of De Saxce's term (cones, max_tangents each), the scaling.
  std::vector<double> residual_, slope_;
  std::vector<Scaling> scaling_;
  double worst_residual_ = 0;
  double theta_ = 1;  ///< of De Saxce's term, never larger than it was
  int pairs_ = 0;
  bool has_sides_ = false;

  // The linear system: its right-hand side, the velocities of its solution, and in velocities what its solution goes through.
  std::vector<double> asked_, dc_;
  std::vector<double> weighted_, rest_, change_, w_;
  std::vector<double> A_, work_;
  std::vector<int> pivot_;
  BlockMatrices D_, K_;
  VelocityFactor velocities_;
};

}  // namespace coulomb

// ReducedSystem: the linear system of a set of modes, A = B G C + Q (docs/theory.md (C10), (L2)), in scaled variables. The Newton solver
// takes its steps with it and ProblemLinearization differentiates with it.
//
//   separating   no unknown, lambda = 0              box at a bound   no unknown, lambda = +-bound
//   sticking, limit, equality, box within its bounds  lambda itself, row c = 0
//   sticking, but loose along n (BlockMode::loose)    lambda_N and lambda_perp, or lambda_N alone
//   sliding      (lambda_N, lambda_perp), lambda_T = mu lambda_N n + lambda_perp n_perp, n_perp: a direction across n, or one for every further tangent
//                rows c_N = 0 and k c_perp + (1 - k) lambda_perp = 0, k = 1 / (1 + alpha), alpha = ||c_T|| / (mu lambda_N)
//                mu = 0: lambda_N alone
//   sliding pyramid, n the point of its facet: the same with k = 1 on a side (n_perp along it); lambda_N alone at a vertex;
//                with further tangents also lambda of every part that sticks
#pragma once

#include <vector>

#include "coulomb/solvers/newton/velocity_factor.hpp"
#include "coulomb/solvers/scaled_problem.hpp"

namespace coulomb {

/// One unknown and its equation: lambda += c x on `width` rows from `row` on (or on `row_c` alone), equation b . c_rows + q x = 0.
struct ReducedRow {
  int row = 0;
  bool one_c = true, one_b = true;  ///< the coefficient on its own single row is 1: row_c, row_b
  int row_c = 0, row_b = 0;
  int width = 3;
  double c[6], b[6];          ///< where not one_c, one_b: `width` numbers
  double q = 0, damping = 1;  ///< factor of the proximal term
};

/// Orthonormal directions of a contact's tangents across the direction n of its mode, one less than there are tangents: how many.
int directions_across(const Block& block, const BlockMode& mode, double (*out)[max_tangents]);

/// Coefficients of an unknown on its block's rows, block.size each: of its equation (b) and of its impulses (c).
void row_coefficients(const ReducedRow& row, const Block& block, double* b, double* c);

class ReducedSystem {
 public:
  /// Memory for any modes of the problem.
  void reserve(const ScaledProblem& problem);
  void set_modes(const ScaledProblem& problem, const BlockMode* modes);
  /// A + delta diag(damping), factorised. Dense: Cholesky if nothing slides, else LU. Factored problems: in the velocities of the trees
  /// (VelocityFactor). False: singular or not finite.
  bool factorise(const ScaledProblem& problem, double delta);
  /// X (size x columns, leading dimension ldx) = A^-1 X, or A^-T X. The problem is the one factorised.
  void solve(const ScaledProblem& problem, double* X, int columns, int ldx);
  void solve_transposed(const ScaledProblem& problem, double* X, int columns, int ldx);
  void solve(const ScaledProblem& problem, double* x) { solve(problem, x, 1, 1); }  ///< one right-hand side
  void solve_transposed(const ScaledProblem& problem, double* x) { solve_transposed(problem, x, 1, 1); }
  /// The Newton step of these modes with the last factorisation: from impulses `from` and their velocities (null: not known) to impulses `to`;
  /// c: scratch. Through velocities, up to most_rounds rounds of refinement.
  void step(const ScaledProblem& problem, const double* from, const double* from_c, double* to, double* c,
            int most_rounds = 2);

  /// Of a factored problem: (B (R + E) C + Q)^-1 of a block, as wide as its unknowns; and W (velocities x columns) = H^-T W.
  const double* local_inverse(int block) const { return local_inverse_[block]; }
  void solve_velocities_transposed(double* W, int columns, int ldw) { velocities_.solve_transposed(W, columns, ldw); }

  int size = 0, ld = 0;
  bool symmetric = true;  ///< nothing slides
  std::vector<ReducedRow> rows;
  std::vector<double> fixed;  ///< n: lambda of the blocks without unknowns
  std::vector<int> first;     ///< per block: its first unknown; one more at the end
  std::vector<double> A;      ///< dense: ld x size, the matrix, then its factor
  std::vector<int> pivot;

  double coordinate(const ReducedRow& r, const double* lambda) const {  ///< x of an impulse (least squares)
    if (r.one_c) return lambda[r.row_c];
    const double* l = lambda + r.row;
    if (r.one_b) return l[2] / r.c[2];  // the normal unknown of a sliding contact
    double along = r.c[0] * l[0] + r.c[1] * l[1];
    double squared = r.c[0] * r.c[0] + r.c[1] * r.c[1];
    for (int i = 3; i < r.width; ++i) {
      along += r.c[i] * l[i];
      squared += r.c[i] * r.c[i];
    }
    return along / squared;
  }
  static double equation(const ReducedRow& r, const double* c) {  ///< b . c
    return r.one_b ? c[r.row_b] : combine(r, r.b, c);
  }
  static void expand(const ReducedRow& r, double x, double* lambda) {  ///< lambda += c x
    if (r.one_c) {
      lambda[r.row_c] += x;
    } else {
      double* l = lambda + r.row;
      l[0] += r.c[0] * x;
      l[1] += r.c[1] * x;
      l[2] += r.c[2] * x;
      for (int i = 3; i < r.width; ++i)
        l[i] += r.c[i] * x;
    }
  }
  /// a . values on the rows of an unknown.
  static double combine(const ReducedRow& r, const double* a, const double* values) {
    const double* v = values + r.row;
    double sum = a[0] * v[0] + a[1] * v[1] + a[2] * v[2];
    for (int i = 3; i < r.width; ++i)
      sum += a[i] * v[i];
    return sum;
  }

 private:
  bool factorise_velocities(const ScaledProblem& problem);
  bool invert_diagonal(const ScaledProblem& problem, int block);
  bool invert_block(const ScaledProblem& problem, int block);
  void solve_velocities(const ScaledProblem& problem, bool transposed, double* X, int columns, int ldx);

  double delta_ = 0;  ///< of the last factorisation
  std::vector<double> work_, x_, moved_;
  // In velocities: the inverse of each block's local matrix D (B (R + E) C + Q), whether it is diagonal, and C D^-1 B, which acts on rows.
  VelocityFactor velocities_;
  BlockMatrices local_inverse_, local_;
  std::vector<unsigned char> diagonal_;
  std::vector<double> rows_, w_;
};

}  // namespace coulomb

// Lemke's method (lemke.hpp) on a constraint problem: docs/theory.md (Q7), the law of a pyramid with vertices mu lambda_N w_k as
// complementarity,
//
//   lambda_T = sum beta_k w_k,   0 <= beta_k  orthogonal to  gamma + w_k . c_T >= 0,   0 <= gamma  orthogonal to  mu lambda_N - sum beta_k >= 0
//
// [Stewart1996], [Anitescu1997], with 0 <= lambda_N orthogonal to c_N >= 0. A limit is its own row, an equality two opposite
// ones, a box lambda = -bound + y with 0 <= y orthogonal to c + s >= 0 and 0 <= s orthogonal to 2 bound - y >= 0. A cone is replaced by
// a polygon around it: a start for Newton's method.
#pragma once

#include <vector>

#include "coulomb/solvers/lcp/lemke.hpp"
#include "coulomb/solvers/newton/newton.hpp"

namespace coulomb {

class BlockLemke {
 public:
  enum class End { solved, ray, lost };
  /// solved: `iterate` is a solution up to the walk's rounding (of the polygons' problem where there are cones). ray: the walk shows
  /// impulses that move nothing and work against g; then the constraints contradict each other. lost: neither; too large, or rounding.
  End solve(const ScaledProblem& problem, Iterate& iterate, int& iterations);

 private:
  enum class Kind : unsigned char { plus, minus, vertex, slip, box, box_slack };
  struct Variable {
    Kind kind = Kind::plus;
    int block = 0, row = 0;  ///< row of G its column of lambda begins at
    double x = 1, y = 0;     ///< and its entries there and in the next row
  };
  void add(Kind kind, int block, int row, double x, double y);
  void list(const ScaledProblem& problem);
  void assemble(const ScaledProblem& problem);
  double couples(const ScaledProblem& problem, const Variable& a, const Variable& b) const;
  End walk(const ScaledProblem& problem, bool other, Iterate& iterate, int& iterations);

  Lemke lemke_;
  std::vector<Variable> variables_;
  std::vector<double> g_;  ///< with the boxes at their lower ends
  int size_ = 0;
  bool approximate_ = false;  ///< there are cones
};

}  // namespace coulomb

// Lemke's method (lemke.hpp) on a boxed LCP: x = x_0 + P z, x_0 at ends,
//
//   bounded below, above   its distance from the end        without bounds   two opposite ones
//   bounded on both sides  x = lo + y:  0 <= y  orthogonal to  w + s >= 0,   0 <= s  orthogonal to  hi - lo - y >= 0
//   friction of row j      the same with -hi x_j and hi x_j for lo and hi: y's end moves with x_j
#pragma once

#include <vector>

#include "coulomb/lcp.hpp"
#include "coulomb/solvers/lcp/lcp_classes.hpp"
#include "coulomb/solvers/lcp/lemke.hpp"

namespace coulomb {

class LcpLemke {
 public:
  /// True: x is a solution up to the walk's rounding.
  bool solve(const BoxedLcp& problem, const LcpScale& scale, std::vector<double>& x);
  int pivots = 0;
  bool ray = false;               ///< of the last solve: the walk ended in one
  std::vector<double> direction;  ///< then x could move along this, if it has no two-sided rows

 private:
  struct Variable {
    int row = 0;
    double sign = 1;
    bool slack = false, two_sided = false;
  };
  void list(const BoxedLcp& problem);
  void assemble(const BoxedLcp& problem, const LcpScale& scale);
  void expand(const BoxedLcp& problem, int variable, double z, double* x) const;  ///< x += P z

  Lemke lemke_;
  std::vector<Variable> variables_;
  std::vector<double> start_, column_, image_;
};

}  // namespace coulomb

// Dantzig's pivoting for boxed LCPs with friction rows [Baraff1994]; [Yang2024, section IV-C]: rows enter one after another; the new
// row's x moves until it is admissible, while the rows before stay so, and a row that meets the end of its class changes it.
//
// Jade's two corrections: the bound of a friction row moves with its normal, so the step to it is docs/theory.md (Q6), (mu x_n - x) /
// (dx - mu dx_n); and nothing says that the walk ends where friction is strong, so that a loop (a set of classes that comes back while
// the same row is driven) is noticed, and left to other methods.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/solvers/lcp/lcp_classes.hpp"

namespace coulomb {

class Dantzig {
 public:
  /// True: x solves the problem with `classes`. False: a loop, or a ray; x and classes are then the walk's last.
  bool solve(const BoxedLcp& problem, int max_pivots, std::vector<double>& x, std::vector<LcpClass>& classes);
  int pivots = 0;
  bool ray = false;               ///< x could move without end
  std::vector<double> direction;  ///< then along this; not of friction rows

 private:
  bool visited();  ///< these classes, since the row at hand entered
  bool drive(const BoxedLcp& problem, int k, int max_pivots);
  bool admissible(const BoxedLcp& problem, int k);
  void respond(const BoxedLcp& problem, int k, double sign);
  void enter(const BoxedLcp& problem, int i, LcpClass to);

  LcpClassSystem system_;
  std::vector<double> x_, w_, dx_, dw_, rhs_;
  std::vector<LcpClass> classes_;
  std::vector<char> in_;
  std::vector<std::uint64_t> seen_;
  LcpScale scale_;
};

}  // namespace coulomb

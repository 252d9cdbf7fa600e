// Looking for the classes of a boxed LCP by trying sets of them.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "coulomb/solvers/lcp/lcp_classes.hpp"

namespace coulomb {

class LcpSearch {
 public:
  LcpSearch(const BoxedLcp& problem, const LcpScale& scale, double tolerance);

  /// The classes that x and w of the last set ask for, again and again (the semismooth Newton method), from x; until a set repeats.
  bool iterate(int max_iterations);
  /// Sets that differ from the classes at hand in one row, then in two, each followed by a few of those steps (the search of [Yang2024]).
  bool vary(int budget);
  /// Every set there is, if there are not too many. all_regular: each determined its x, so that finding none shows that there is none.
  bool exhaust(long limit, bool& complete, bool& all_regular);

  std::vector<double> x, w;
  std::vector<LcpClass> classes;
  double residual = 0;
  int systems = 0;  ///< solved

 private:
  bool attempt();  ///< solves the set `classes_try_`; true: it is the solution
  bool visit();    ///< false: this set was tried before
  int count(int row) const;
  LcpClass choice(int row, int k) const;

  const BoxedLcp& problem_;
  const LcpScale& scale_;
  double tolerance_;
  LcpClassSystem system_;
  std::vector<LcpClass> try_;
  std::vector<double> x_, w_;
  std::unordered_set<std::uint64_t> visited_;
};

}  // namespace coulomb

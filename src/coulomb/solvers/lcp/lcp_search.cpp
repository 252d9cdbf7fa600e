#include "coulomb/solvers/lcp/lcp_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int follow = 6;  // steps after a variation

}  // namespace

LcpSearch::LcpSearch(const BoxedLcp& problem, const LcpScale& scale, double tolerance)
    : problem_(problem), scale_(scale), tolerance_(tolerance) {
  const auto n = static_cast<std::size_t>(problem.n);
  x.assign(n, 0.0);
  w.assign(n, 0.0);
  x_.assign(n, 0.0);
  w_.assign(n, 0.0);

  // From zero, or the end nearest to it.
  for (std::size_t i = 0; i < n; ++i)
    if (!problem.is_friction(static_cast<int>(i))) {
      x[i] = std::clamp(0.0, problem.lo[i], problem.hi[i]);
    }

  problem.multiply(x.data(), w.data());
  residual = lcp_residual(problem, scale, x.data(), w.data());

  classes.assign(n, LcpClass::lower);
  try_.assign(n, LcpClass::lower);
  lcp_classes(problem, scale, 0, x.data(), w.data(), classes.data());
}

/// False: this set of classes has been tried.
bool LcpSearch::visit() {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (LcpClass c : try_)
    hash = (hash ^ static_cast<std::uint64_t>(c)) * 0x100000001b3u;
  return visited_.insert(hash).second;
}

/// The solution of one set of classes; the best so far is kept.
bool LcpSearch::attempt() {
  ++systems;
  if (!system_.solve(problem_, try_.data(), x_.data())) return false;
  problem_.multiply(x_.data(), w_.data());
  const double value = lcp_residual(problem_, scale_, x_.data(), w_.data());
  if (value < residual) {
    residual = value;
    x = x_;
    w = w_;
    classes = try_;
  }
  return value <= tolerance_;
}

/// Newton's method: the classes that the last solution has, until they repeat.
bool LcpSearch::iterate(int max_iterations) {
  x_ = x;
  w_ = w;
  for (int it = 0; it < max_iterations; ++it) {
    lcp_classes(problem_, scale_, 0, x_.data(), w_.data(), try_.data());
    if (!visit()) return false;
    if (attempt()) return true;
  }
  return false;
}

/// How many classes a row may have.
int LcpSearch::count(int i) const {
  if (problem_.is_friction(i)) return problem_.hi[i] > 0 ? 3 : 1;
  if (problem_.lo[i] == problem_.hi[i]) return 1;
  return 1 + (problem_.lo[i] > -infinity) + (problem_.hi[i] < infinity);
}

LcpClass LcpSearch::choice(int i, int k) const {
  const bool friction = problem_.is_friction(i);
  const bool fixed = friction ? problem_.hi[i] == 0 : problem_.lo[i] == problem_.hi[i];
  if (fixed) return LcpClass::lower;
  if (k == 0) return LcpClass::clamped;
  const bool has_lower = friction || problem_.lo[i] > -infinity;
  return k == 1 && has_lower ? LcpClass::lower : LcpClass::upper;
}

/// Sets that differ from the best one in one row or two.
bool LcpSearch::vary(int budget) {
  const std::vector<LcpClass> start = classes;
  const int last = systems + budget;

  // Each set tried is followed by a few that its solution asks for.
  const auto try_set = [&] {
    if (!visit()) return false;
    if (attempt()) return true;
    for (int it = 0; it < follow && systems < last; ++it) {
      lcp_classes(problem_, scale_, 0, x_.data(), w_.data(), try_.data());
      if (!visit()) return false;
      if (attempt()) return true;
    }
    return false;
  };

  // One row at a time ...
  const int n = problem_.n;
  for (int i = 0; i < n; ++i)
    for (int a = 0; a < count(i) && systems < last; ++a) {
      try_ = start;
      try_[i] = choice(i, a);
      if (try_set()) return true;
    }

  // ... and then two.
  for (int i = 0; i < n; ++i)
    for (int a = 0; a < count(i); ++a)
      for (int j = i + 1; j < n; ++j)
        for (int c = 0; c < count(j) && systems < last; ++c) {
          try_ = start;
          try_[i] = choice(i, a);
          try_[j] = choice(j, c);
          if (try_set()) return true;
        }
  return false;
}

/// Every set of classes, if there are not too many; complete: all were tried, all_regular: none was singular.
bool LcpSearch::exhaust(long limit, bool& complete, bool& all_regular) {
  complete = false;
  all_regular = true;

  // How many sets there are.
  long sets = 1;
  for (int i = 0; i < problem_.n; ++i) {
    sets *= count(i);
    if (sets > limit) return false;
  }

  // Counting through them, the first row fastest.
  std::vector<int> digit(static_cast<std::size_t>(problem_.n), 0);
  for (long s = 0; s < sets; ++s) {
    for (int i = 0; i < problem_.n; ++i)
      try_[i] = choice(i, digit[i]);
    if (attempt()) return true;
    all_regular = all_regular && !system_.deficient;
    for (int i = 0; i < problem_.n && ++digit[i] == count(i); ++i)
      digit[i] = 0;
  }
  complete = true;
  return false;
}

}  // namespace coulomb

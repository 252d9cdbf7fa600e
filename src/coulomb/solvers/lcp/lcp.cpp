// The methods, from cheap to thorough, and what follows from their answer: the least-norm one of several solutions, a reason where there
// is none.
#include "coulomb/lcp.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>

#include "coulomb/solvers/lcp/dantzig.hpp"
#include "coulomb/solvers/lcp/lcp_lemke.hpp"
#include "coulomb/solvers/lcp/lcp_search.hpp"

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tie = 1e-8;
constexpr double vanishing_compliance = 1e-6;  // of the largest diagonal entry that a row depends on
constexpr long all_sets = 60000;

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string entry(const char* name, int i) { return std::string(name) + "[" + std::to_string(i) + "]"; }
[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument("solve_lcp: " + what); }

/// Projected Gauss-Seidel on the rows, friction after its normal. False: a row has no positive diagonal entry.
bool sweep(const BoxedLcp& p, const LcpScale& scale, int sweeps, double tolerance, LcpSearch& at, int& iterations) {
  for (int i = 0; i < p.n; ++i)
    if (!(p.A[static_cast<long>(i) * p.ld + i] > 0) && p.lower(i, at.x.data()) < p.upper(i, at.x.data())) return false;

  std::vector<double> x = at.x;
  std::vector<double> w(x.size());
  for (int s = 0; s < sweeps; ++s) {
    ++iterations;
    for (int stage = 0; stage < 2; ++stage)
      for (int i = 0; i < p.n; ++i) {
        if (p.is_friction(i) != (stage == 1)) continue;
        const double* a = p.A.data() + static_cast<long>(i) * p.ld;
        double sum = p.b[i];
        for (int j = 0; j < p.n; ++j)
          sum += a[j] * x[j];
        if (a[i] > 0) {
          x[i] -= sum / a[i];
        }
        x[i] = std::clamp(x[i], p.lower(i, x.data()), p.upper(i, x.data()));
      }

    // Now and then the residual; the best iterate is kept.
    if (s % 8 != 7 && s + 1 < sweeps) continue;
    p.multiply(x.data(), w.data());
    const double residual = lcp_residual(p, scale, x.data(), w.data());
    if (!std::isfinite(residual)) return false;
    if (residual < at.residual) {
      at.residual = residual;
      at.x = x;
      at.w = w;
    }
    if (residual <= tolerance) break;
  }

  lcp_classes(p, scale, 0, at.x.data(), at.w.data(), at.classes.data());
  return true;
}

/// d >= 0 where x is bounded below only (<= 0 above only, 0 where both or friction), with d . w = (A^T d) . x + b . d < 0 for every x
/// within its bounds, while every solution has d . w >= 0.
bool shows_no_solution(const BoxedLcp& p, const LcpScale& scale, std::vector<double> d) {
  // Signs that every solution agrees with; `most` is what d . w can be.
  double size = 0;
  double demand = 0;
  double most = 0;
  for (int i = 0; i < p.n; ++i)
    size = std::max(size, std::abs(d[i]) * scale.root[i]);
  if (!(size > 0)) return false;
  for (int i = 0; i < p.n; ++i) {
    const bool below = p.lo[i] > -infinity;
    const bool above = p.hi[i] < infinity;
    if (std::abs(d[i]) * scale.root[i] <= 1e-12 * size) {
      d[i] = 0;
    }
    if (d[i] != 0 && (p.is_friction(i) || (below && above) || (below && d[i] < 0) || (above && d[i] > 0))) return false;
    demand = std::max(demand, std::abs(d[i]) * scale.root[i] * scale.ref[i]);
    most += d[i] * p.b[i];
  }

  // A^T d, the friction with its normal.
  std::vector<double> a(d.size(), 0.0);
  for (int i = 0; i < p.n; ++i)
    for (int j = 0; d[i] != 0 && j < p.n; ++j)
      a[j] += p.A[static_cast<std::size_t>(i) * p.ld + j] * d[i];
  for (int f = 0; f < p.n; ++f)
    if (p.is_friction(f)) {
      a[p.normal[f]] += std::abs(a[f]) * p.hi[f];
    }

  // The largest (A^T d) . x within the bounds.
  for (int j = 0; j < p.n; ++j) {
    if (p.is_friction(j)) continue;
    const double end = a[j] > 0 ? p.hi[j] : p.lo[j];
    if (std::abs(end) < infinity)
      most += a[j] * end;
    else if (std::abs(a[j]) > 1e-10 * size * scale.root[j])
      return false;
  }
  return most < -1e-9 * demand;
}

/// Of several solutions the least-norm one: the classes of a vanishing compliance, then the pseudo-inverse.
void stabilise(const BoxedLcp& p, const LcpScale& scale, double tolerance, LcpSearch& at, LcpSolution& out) {
  // The solution of these classes, where it is one.
  std::vector<LcpClass> labels(at.classes.size());
  lcp_classes(p, scale, tie, at.x.data(), at.w.data(), labels.data());
  LcpClassSystem system;
  std::vector<double> x(at.x.size());
  std::vector<double> w(x.size());
  const auto accept = [&](const LcpClass* classes) {
    if (!system.solve(p, classes, x.data())) return false;
    p.multiply(x.data(), w.data());
    const double residual = lcp_residual(p, scale, x.data(), w.data());
    if (!(residual <= tolerance)) return false;
    at.x = x;
    at.w = w;
    at.residual = residual;
    return true;
  };

  // An end that may as well be clamped?
  bool tied = false;
  for (int i = 0; i < p.n; ++i) {
    const double lower = p.lower(i, at.x.data());
    const double upper = p.upper(i, at.x.data());
    if (lower == upper) continue;
    const double unit = scale.ref[i] / scale.root[i];
    tied = tied || ((at.x[i] - lower <= tie * unit || upper - at.x[i] <= tie * unit) &&
                    std::abs(at.w[i]) <= tie * scale.ref[i] * scale.root[i]);
  }

  const bool exact = accept(labels.data());
  if (!exact) accept(at.classes.data());
  if (!tied && !system.deficient) return;

  // The same problem with a compliance: its solution is unique, and its classes are those of the least norm.
  BoxedLcp compliant = p;
  std::vector<double> largest(at.x.size());
  for (int i = 0; i < p.n; ++i)
    largest[i] = std::abs(p.A[static_cast<long>(i) * p.ld + i]);
  spread_largest(p, largest.data());
  for (int i = 0; i < p.n; ++i)
    compliant.A[static_cast<long>(i) * p.ld + i] += vanishing_compliance * largest[i];

  LcpSearch search(compliant, scale, tolerance);
  search.x = at.x;
  compliant.multiply(search.x.data(), search.w.data());
  search.residual = infinity;
  out.canonical = search.iterate(50) || search.vary(500);
  out.iterations += search.systems;
  if (!out.canonical) {
    out.unique = !system.deficient;
    return;
  }

  // Without the compliance: rows it only just holds apart may belong to either class.
  const std::vector<double> before = at.x;
  const double limit = std::max(tolerance, 1e-9);
  const double saved = at.residual;
  lcp_classes(compliant, scale, tie, search.x.data(), search.w.data(), labels.data());
  if (!accept(search.classes.data()) && !accept(labels.data())) {
    out.canonical = false;
    at.residual = saved;
  }

  // It is the only solution if it has not moved.
  double moved = 0;
  for (int i = 0; i < p.n; ++i)
    moved = std::max(moved, std::abs(at.x[i] - before[i]) * scale.root[i] / scale.ref[i]);
  out.unique = !system.deficient && moved <= 1e3 * limit;
}

/// Why there is no solution, as far as all sets of classes tell within a budget.
std::string failure(LcpSearch& search, LcpSolution& out) {
  bool complete = false;
  bool all_regular = false;
  if (search.exhaust(all_sets, complete, all_regular)) return "solved";
  if (complete && all_regular) {
    out.no_solution = true;
    return "no solution exists: none of the sets of classes has one";
  }
  return complete ? "failed: no set of classes has a least-norm solution that is admissible"
                  : "failed: no solution was found; the best iterate is returned";
}

}  // namespace

void BoxedLcp::resize(int rows) {
  n = rows;
  ld = (rows + 7) & ~7;
  A.assign(static_cast<std::size_t>(n) * static_cast<std::size_t>(ld), 0.0);
  b.assign(n, 0.0);
  lo.assign(n, 0.0);
  hi.assign(n, infinity);
  normal.assign(n, -1);
}

/// w = A x + b.
void BoxedLcp::multiply(const double* x, double* w) const {
  for (int i = 0; i < n; ++i) {
    const double* a = A.data() + static_cast<long>(i) * ld;
    double sum = b[i];
    for (int j = 0; j < n; ++j)
      sum += a[j] * x[j];
    w[i] = sum;
  }
}

const char* name_of(LcpClass c) {
  static constexpr const char* names[] = {"lower", "clamped", "upper"};
  return names[static_cast<int>(c)];
}

LcpMethod lcp_method_from_name(const std::string& name) {
  if (name == "auto") return LcpMethod::automatic;
  if (name == "newton") return LcpMethod::newton;
  if (name == "dantzig") return LcpMethod::dantzig;
  if (name == "lemke") return LcpMethod::lemke;
  if (name == "pgs") return LcpMethod::pgs;
  reject("method = \"" + name + "\" is unknown; use \"auto\", \"newton\", \"dantzig\", \"lemke\" or \"pgs\"");
}

void check_lcp(const BoxedLcp& p) {
  for (int i = 0; i < p.n; ++i) {
    // Finite numbers ...
    for (int j = 0; j < p.n; ++j) {
      const double a = p.A[static_cast<long>(i) * p.ld + j];
      if (!std::isfinite(a))
        reject("A[" + std::to_string(i) + ", " + std::to_string(j) + "] = " + number(a) + " is not finite");
    }
    if (!std::isfinite(p.b[i])) {
      reject(entry("b", i) + " = " + number(p.b[i]) + " is not finite");
    }
    if (std::isnan(p.lo[i])) {
      reject(entry("lo", i) + " is nan");
    }
    if (std::isnan(p.hi[i])) {
      reject(entry("hi", i) + " is nan");
    }

    // ... bounds in order ...
    if (!p.is_friction(i)) {
      if (p.lo[i] == infinity || p.hi[i] == -infinity || p.lo[i] > p.hi[i])
        reject(entry("lo", i) + " = " + number(p.lo[i]) + " and " + entry("hi", i) + " = " + number(p.hi[i]) +
               ": expected lo <= hi");
      continue;
    }

    // ... and friction that follows a normal.
    const int j = p.normal[i];
    if (j >= p.n || j == i || p.is_friction(j))
      reject(entry("friction_index", i) + " = " + std::to_string(j) + ": expected -1 or a row without friction_index");
    if (!(p.hi[i] >= 0) || p.hi[i] == infinity)
      reject(entry("hi", i) + " = " + number(p.hi[i]) + ": a friction row's coefficient is finite and not negative");
    if (p.lo[j] < 0)
      reject(entry("lo", j) + " = " + number(p.lo[j]) + ": expected >= 0, " + entry("friction_index", i) +
             " refers to it");
  }
}

namespace {

/// One problem, and what the methods found so far.
class LcpSolver {
 public:
  LcpSolver(const BoxedLcp& problem, double tolerance, int max_iterations)
      : p_(problem), scale_(scale_of(problem)), tolerance_(tolerance), budget_(max_iterations),
        search_(p_, scale_, tolerance) {}

  LcpSolution solve(LcpMethod method);

 private:
  static LcpScale scale_of(const BoxedLcp& problem) {
    LcpScale scale;
    scale.assign(problem);
    return scale;
  }
  bool solved() const { return search_.residual <= tolerance_; }
  bool newton() { return solved() || search_.iterate(std::min(budget_, 50)); }
  bool sweeps(int count) {
    if (!solved()) {
      sweep(p_, scale_, count, tolerance_, search_, out_.iterations);
    }
    return solved();
  }
  bool vary() {  // sets of classes, as many as about a second allows
    const double one = 10.0 + static_cast<double>(p_.n) * p_.n * p_.n;
    return solved() || search_.vary(std::min({budget_, 2000, static_cast<int>(50 + 2e9 / one)}));
  }
  void consider(const std::vector<double>& x);
  bool lemke();
  bool dantzig();
  bool contradicts(const std::vector<double>& direction);

  const BoxedLcp& p_;
  const LcpScale scale_;
  double tolerance_;
  int budget_;
  LcpSearch search_;
  LcpSolution out_;
};

/// Takes x where it is better than the best so far.
void LcpSolver::consider(const std::vector<double>& x) {
  std::vector<double> w(x.size());
  p_.multiply(x.data(), w.data());
  const double residual = lcp_residual(p_, scale_, x.data(), w.data());
  if (!(residual <= search_.residual)) return;
  search_.x = x;
  search_.w = w;
  search_.residual = residual;
  lcp_classes(p_, scale_, 0, x.data(), w.data(), search_.classes.data());
}

/// A ray that shows that there is no solution.
bool LcpSolver::contradicts(const std::vector<double>& direction) {
  if (!shows_no_solution(p_, scale_, direction)) return false;
  out_.no_solution = true;
  out_.reason =
      "no solution exists: there is d with d . (A x + b) < 0 for all x within bounds, on rows that need w >= 0";
  return true;
}

/// False, too, where it shows that there is no solution.
bool LcpSolver::lemke() {
  if (solved()) return true;
  LcpLemke lemke;
  std::vector<double> x;
  const bool walked = lemke.solve(p_, scale_, x);
  out_.iterations += lemke.pivots;

  if (lemke.ray && contradicts(lemke.direction)) return false;
  consider(x);
  return solved() || (walked && search_.iterate(20));
}

bool LcpSolver::dantzig() {
  if (solved()) return true;
  Dantzig dantzig;
  std::vector<double> x;
  std::vector<LcpClass> classes;

  dantzig.solve(p_, std::min(budget_, 20 * p_.n + 100), x, classes);
  out_.iterations += dantzig.pivots;
  if (dantzig.ray && contradicts(dantzig.direction)) return false;
  consider(x);
  return solved() || search_.iterate(20);
}

LcpSolution LcpSolver::solve(LcpMethod method) {
  // Numbers that no solution can have.
  if (!std::all_of(scale_.ref.begin(), scale_.ref.end(), [](double ref) { return std::isfinite(ref); })) {
    out_.reason = "failed: solutions of this problem exceed double precision";
    out_.x.assign(p_.b.size(), 0.0);
    out_.w = p_.b;
    out_.classes.assign(p_.b.size(), LcpClass::lower);
    out_.residual = 1;
    return out_;
  }

  // Where pivoting gave no answer, sets of classes are tried.
  bool searched = false;
  const auto thorough = [&](bool found) {
    searched = true;
    if (found || out_.no_solution || vary()) return;
    sweeps(200);
    if (!newton()) vary();
  };
  switch (method) {
    case LcpMethod::newton: newton(); break;
    case LcpMethod::dantzig: thorough(dantzig()); break;
    case LcpMethod::lemke: lemke(); break;
    case LcpMethod::pgs: sweeps(budget_); break;
    case LcpMethod::automatic:
      sweeps(4);
      thorough(newton() || lemke() || (!out_.no_solution && dantzig()));
      break;
  }

  // What came of it, and why.
  out_.iterations += search_.systems;
  if (!solved() && !out_.no_solution)
    out_.reason = searched ? failure(search_, out_)
                           : "failed: the method found no solution within its budget; the best iterate is returned";
  out_.converged = solved() && !out_.no_solution;
  if (out_.converged) {
    out_.reason = "solved";
    stabilise(p_, scale_, tolerance_, search_, out_);
  }

  out_.x = search_.x;
  out_.w = search_.w;
  out_.residual = search_.residual;
  out_.classes.resize(search_.x.size());
  lcp_classes(p_, scale_, tie, out_.x.data(), out_.w.data(), out_.classes.data());
  return out_;
}

}  // namespace

LcpSolution solve_lcp(const BoxedLcp& problem, LcpMethod method, double tolerance, int max_iterations) {
  return LcpSolver(problem, tolerance, max_iterations).solve(method);
}

}  // namespace coulomb

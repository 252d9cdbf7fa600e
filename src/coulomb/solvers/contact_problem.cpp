// Validation of a stand-alone contact problem and its solution and derivatives through the common solver.
#include "coulomb/solvers/contact_problem.hpp"

#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace coulomb {
namespace {

// All digits, so that the message names the very value.
std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument("ContactProblem: " + what); }

void check_size(const char* name, std::size_t size, std::size_t expected, const char* meaning) {
  if (size != expected)
    reject(std::string(name) + " has " + std::to_string(size) + " elements, expected " + std::to_string(expected) +
           " (" + meaning + ")");
}

void check_finite(const char* name, const std::vector<double>& v) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (!std::isfinite(v[i]))
      reject(std::string(name) + "[" + std::to_string(i) + "] = " + number(v[i]) + " is not finite");
}

void check_not_negative(const char* name, const std::vector<double>& v) {
  for (std::size_t i = 0; i < v.size(); ++i)
    if (v[i] < 0) reject(std::string(name) + "[" + std::to_string(i) + "] = " + number(v[i]) + " is negative");
}

std::string entry(std::size_t i, std::size_t j) { return "G[" + std::to_string(i) + ", " + std::to_string(j) + "]"; }

/// Symmetric to 1e-9 of the largest entry, diagonal >= 0, and |G_ij| <= sqrt(G_ii G_jj), which semi-definiteness implies.
void check_matrix(const std::vector<double>& G, std::size_t n) {
  double largest = 0;
  for (double x : G)
    largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < n; ++i) {
    if (G[i * n + i] < 0)
      reject(entry(i, i) + " = " + number(G[i * n + i]) + " is negative: G must be positive semi-definite");
    for (std::size_t j = 0; j < i; ++j) {
      const double a = G[i * n + j];
      const double b = G[j * n + i];
      if (std::abs(a - b) > 1e-9 * largest)
        reject("G must be symmetric: " + entry(i, j) + " = " + number(a) + ", " + entry(j, i) + " = " + number(b));
      if (std::abs(a) > std::sqrt(G[i * n + i]) * std::sqrt(G[j * n + j]) + 1e-9 * largest)
        reject(entry(i, j) + " = " + number(a) + " is too large for its diagonal: G must be positive semi-definite");
    }
  }
}

}  // namespace

ContactProblem::ContactProblem(const std::vector<double>& G, const std::vector<double>& g,
                               const std::vector<double>& mu, const std::vector<double>& R) {
  // Numbers that make sense ...
  const std::size_t n = 3 * mu.size();
  check_size("g", g.size(), n, "3 per contact");
  check_size("G", G.size(), n * n, "square, 3 rows per contact");
  if (!R.empty()) check_size("R", R.size(), n, "3 per contact");
  check_finite("G", G);
  check_finite("g", g);
  check_finite("mu", mu);
  check_finite("R", R);
  check_not_negative("mu", mu);
  check_not_negative("R", R);
  check_matrix(G, n);

  // ... in the form of the solver, G symmetric to the bit.
  problem_.resize(static_cast<int>(n));
  problem_.resize_matrix();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j)
      problem_.G[i * static_cast<std::size_t>(problem_.ld) + j] = 0.5 * G[i * n + j] + 0.5 * G[j * n + i];
    problem_.g[i] = g[i];
    if (!R.empty()) problem_.R[i] = R[i];
  }

  for (std::size_t b = 0; b < mu.size(); ++b)
    problem_.blocks.push_back({BlockType::cone, static_cast<int>(3 * b), 3, mu[b], 0, false});
}

const ContactSolution& ContactProblem::solve(SolverMethod method, double tolerance, int max_iterations,
                                             const std::vector<double>& warm) {
  if (!(tolerance > 0) || !std::isfinite(tolerance))
    reject("tolerance = " + number(tolerance) + " is not a positive number");
  if (max_iterations < 1) reject("max_iterations = " + std::to_string(max_iterations) + " is less than 1");
  SolverSettings settings;
  settings.method = method;
  settings.tolerance = tolerance;
  settings.max_iterations = max_iterations;
  WarmStart start;
  if (!warm.empty()) {
    check_size("warm", warm.size(), static_cast<std::size_t>(problem_.n), "one per row of G");
    check_finite("warm", warm);
    start.lambda = warm;
    start.known.assign(problem_.blocks.size(), 1);
  }
  solver_.solve(problem_, settings, warm.empty() ? nullptr : &start, result_);
  solution_ = {result_.lambda,         result_.c,          result_.modes,      result_.margin, result_.residual,
               result_.exact_residual, result_.relaxation, result_.iterations, result_.status};
  solved_ = true;
  linearized_ = false;
  return solution_;
}

/// The factor of the last solution, made once.
void ContactProblem::linearize() {
  if (!solved_) solve();
  if (!linearized_) linearization_.build(problem_, result_);
  linearized_ = true;
}

/// K = dlambda/dg and dlambda/dmu of the last solution.
ContactDerivatives ContactProblem::derivatives() {
  linearize();
  ContactDerivatives d;
  d.n = problem_.n;
  d.num_contacts = num_contacts();
  const auto n = static_cast<std::size_t>(d.n);
  const auto nc = static_cast<std::size_t>(d.num_contacts);
  d.dlambda_dg.resize(n * n);
  d.dlambda_dmu.resize(n * nc);
  linearization_.operator_matrix(d.dlambda_dg.data(), d.n);
  linearization_.dlambda_dmu(d.dlambda_dmu.data(), d.num_contacts);

  d.deficient = linearization_.deficient();

  for (const auto* values : {&d.dlambda_dg, &d.dlambda_dmu})
    for (double x : *values)
      if (!std::isfinite(x))
        throw std::logic_error("ContactProblem: derivatives: overflow, they exceed double precision");
  return d;
}

std::vector<double> ContactProblem::dlambda_along_dG(const std::vector<double>& dG) {
  const auto n = static_cast<std::size_t>(problem_.n);
  check_size("dG", dG.size(), n * n, "the shape of G");
  check_finite("dG", dG);
  linearize();

  // dG lambda of every level that counts by itself.
  const auto times_dG = [&](const std::vector<double>& lambda) {
    std::vector<double> product(n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        product[i] += dG[i * n + j] * lambda[j];
    return product;
  };

  std::vector<std::vector<double>> lower;
  std::vector<const double*> s_lower;
  std::vector<double> lambda(n);
  for (int level = 0; level < linearization_.lower_levels(); ++level) {
    linearization_.impulses(level, lambda.data());
    lower.push_back(times_dG(lambda));
  }

  for (const std::vector<double>& values : lower)
    s_lower.push_back(values.data());
  std::vector<double> s = times_dG(result_.lambda);
  linearization_.solve(s.data(), s.data(), 1, 1, s_lower.data());
  return s;
}

SolverMethod solver_method_from_name(const std::string& name) {
  if (name == "auto" || name == "automatic") return SolverMethod::automatic;
  if (name == "ac_lm") return SolverMethod::ac_lm;
  if (name == "admm") return SolverMethod::admm;
  if (name == "pgs") return SolverMethod::pgs;
  reject("method = \"" + name + "\" is unknown; use \"auto\", \"ac_lm\", \"admm\" or \"pgs\"");
}

const char* name_of(Mode mode) {
  static constexpr const char* names[] = {"separating", "sticking", "sliding", "active", "lower", "upper"};
  return names[static_cast<int>(mode)];
}

const char* name_of(SolveStatus status) {
  static constexpr const char* names[] = {"solved", "relaxed", "max_iterations", "failed"};
  return names[static_cast<int>(status)];
}

}  // namespace coulomb

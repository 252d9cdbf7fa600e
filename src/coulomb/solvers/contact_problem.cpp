// Validation of a stand-alone contact problem and its solution and derivatives through the common solver.
#include "coulomb/contact_problem.hpp"

#include <cmath>
#include <cstdio>
#include <numeric>
#include <stdexcept>

#include "coulomb/solvers/constraint_solver.hpp"
#include "coulomb/solvers/linearization/linearization.hpp"

namespace coulomb {
namespace {

// All digits, so that the message names the very value.
std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

[[noreturn]] void reject(const std::string& what) { throw std::invalid_argument("ContactProblem: " + what); }

void check_size(const char* name, std::size_t size, std::size_t expected, const std::string& meaning) {
  if (size == expected) return;
  const std::string got = std::string(name) + " has " + std::to_string(size) + " elements";
  reject(got + ", expected " + std::to_string(expected) + " (" + meaning + ")");
}

void check_rows(const std::vector<int>& rows, std::size_t contacts) {
  check_size("rows", rows.size(), contacts, "one per contact");
  for (std::size_t b = 0; b < rows.size(); ++b) {
    if (rows[b] >= 3 && rows[b] <= 1 + max_tangents) continue;
    reject("rows[" + std::to_string(b) + "] = " + std::to_string(rows[b]) + " is not between 3 and 6");
  }
}

/// An entry of a vector with its value.
std::string entry(const char* name, std::size_t i, double value) {
  return std::string(name) + "[" + std::to_string(i) + "] = " + number(value);
}

void check_finite(const char* name, const std::vector<double>& v) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!std::isfinite(v[i])) reject(entry(name, i, v[i]) + " is not finite");
  }
}

void check_not_negative(const char* name, const std::vector<double>& v) {
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] < 0) reject(entry(name, i, v[i]) + " is negative");
  }
}

/// An entry of G with its value.
std::string entry(std::size_t i, std::size_t j, double value) {
  return "G[" + std::to_string(i) + ", " + std::to_string(j) + "] = " + number(value);
}

/// Symmetric to 1e-9 of the largest entry, diagonal >= 0, and |G_ij| <= sqrt(G_ii G_jj), which semi-definiteness implies.
void check_matrix(const std::vector<double>& G, std::size_t n) {
  double largest = 0;
  for (double x : G)
    largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < n; ++i) {
    const double G_ii = G[i * n + i];
    if (G_ii < 0) {
      reject(entry(i, i, G_ii) + " is negative: G must be positive semi-definite");
    }
    for (std::size_t j = 0; j < i; ++j) {
      const double a = G[i * n + j];
      const double b = G[j * n + i];
      if (std::abs(a - b) > 1e-9 * largest) {
        reject("G must be symmetric: " + entry(i, j, a) + ", " + entry(j, i, b));
      }

      // Roots first: products of large entries overflow.
      const double bound = std::sqrt(G_ii) * std::sqrt(G[j * n + j]);
      if (std::abs(a) > bound + 1e-9 * largest) {
        reject(entry(i, j, a) + " is too large for its diagonal: G must be positive semi-definite");
      }
    }
  }
}

}  // namespace

struct ContactProblem::Parts {
  ConstraintProblem problem;
  ConstraintSolver solver;
  SolverResult result;
  ContactSolution solution;
  ProblemLinearization linearization;  // of this problem and this result
  bool solved = false;
  bool linearized = false;
};

ContactProblem::~ContactProblem() = default;
ContactProblem::ContactProblem(ContactProblem&& other) noexcept = default;
ContactProblem& ContactProblem::operator=(ContactProblem&& other) noexcept = default;

/// The solution comes along; what its derivatives stand on is made again when it is asked for.
ContactProblem::ContactProblem(const ContactProblem& other) : parts_(std::make_unique<Parts>()) {
  parts_->problem = other.parts_->problem;
  parts_->result = other.parts_->result;
  parts_->solution = other.parts_->solution;
  parts_->solved = other.parts_->solved;
}

ContactProblem& ContactProblem::operator=(const ContactProblem& other) { return *this = ContactProblem(other); }

const ContactSolution& ContactProblem::solution() const { return parts_->solution; }
int ContactProblem::size() const { return parts_->problem.n; }
int ContactProblem::num_contacts() const { return static_cast<int>(parts_->problem.blocks.size()); }

ContactProblem::ContactProblem(const std::vector<double>& G, const std::vector<double>& g,
                               const std::vector<double>& mu, const std::vector<double>& R,
                               const std::vector<int>& rows)
    : parts_(std::make_unique<Parts>()) {
  // Numbers that make sense ...
  std::size_t n = 3 * mu.size();
  if (!rows.empty()) {
    check_rows(rows, mu.size());
    n = static_cast<std::size_t>(std::accumulate(rows.begin(), rows.end(), 0));
  }
  const std::string each = rows.empty() ? "3 per contact" : "the sum of rows";
  check_size("g", g.size(), n, each);
  check_size("G", G.size(), n * n, rows.empty() ? "square, 3 rows per contact" : "square, " + each);
  if (!R.empty()) {
    check_size("R", R.size(), n, each);
  }
  check_finite("G", G);
  check_finite("g", g);
  check_finite("mu", mu);
  check_finite("R", R);
  check_not_negative("mu", mu);
  check_not_negative("R", R);
  check_matrix(G, n);

  // ... in the form of the solver, G symmetric to the bit.
  ConstraintProblem& problem = parts_->problem;
  problem.resize(static_cast<int>(n));
  problem.resize_matrix();
  for (std::size_t i = 0; i < n; ++i) {
    double* row = problem.G.data() + i * static_cast<std::size_t>(problem.ld);
    for (std::size_t j = 0; j < n; ++j)
      row[j] = 0.5 * G[i * n + j] + 0.5 * G[j * n + i];
    problem.g[i] = g[i];
    if (!R.empty()) {
      problem.R[i] = R[i];
    }
  }

  // A cone for every contact.
  int row = 0;
  for (std::size_t b = 0; b < mu.size(); ++b) {
    const int size = rows.empty() ? 3 : rows[b];
    problem.blocks.push_back({BlockType::cone, row, size, mu[b], 0, false});
    row += size;
  }
}

const ContactSolution& ContactProblem::solve(SolverMethod method, double tolerance, int max_iterations,
                                             const std::vector<double>& warm) {
  const bool is_tolerance = tolerance > 0 && std::isfinite(tolerance);
  if (!is_tolerance) {
    reject("tolerance = " + number(tolerance) + " is not a positive number");
  }
  if (max_iterations < 1) {
    reject("max_iterations = " + std::to_string(max_iterations) + " is less than 1");
  }
  SolverSettings settings;
  settings.method = method;
  settings.tolerance = tolerance;
  settings.max_iterations = max_iterations;

  // Impulses from which the solver starts.
  WarmStart start;
  if (!warm.empty()) {
    check_size("warm", warm.size(), static_cast<std::size_t>(parts_->problem.n), "one per row of G");
    check_finite("warm", warm);
    start.lambda = warm;
    start.known.assign(parts_->problem.blocks.size(), 1);
  }
  parts_->solver.solve(parts_->problem, settings, warm.empty() ? nullptr : &start, parts_->result);
  const SolverResult& result = parts_->result;
  parts_->solution = {result.lambda,         result.c,          result.modes,      result.margin, result.residual,
                      result.exact_residual, result.relaxation, result.iterations, result.status};
  parts_->solved = true;
  parts_->linearized = false;
  return parts_->solution;
}

/// The factor of the last solution, made once.
void ContactProblem::linearize() {
  if (!parts_->solved) solve();
  if (!parts_->linearized) {
    parts_->linearization.build(parts_->problem, parts_->result);
  }
  parts_->linearized = true;
}

/// K = dlambda/dg and dlambda/dmu of the last solution.
ContactDerivatives ContactProblem::derivatives() {
  linearize();
  const auto n = static_cast<std::size_t>(parts_->problem.n);
  const auto nc = static_cast<std::size_t>(num_contacts());
  ContactDerivatives d;
  d.n = parts_->problem.n;
  d.num_contacts = num_contacts();
  d.dlambda_dg.resize(n * n);
  d.dlambda_dmu.resize(n * nc);
  parts_->linearization.operator_matrix(d.dlambda_dg.data(), d.n);
  parts_->linearization.dlambda_dmu(d.dlambda_dmu.data(), d.num_contacts);

  d.deficient = parts_->linearization.deficient();

  // What overflowed is no derivative.
  for (const auto* values : {&d.dlambda_dg, &d.dlambda_dmu}) {
    for (const double x : *values) {
      if (std::isfinite(x)) continue;
      throw std::logic_error("ContactProblem: derivatives: overflow, they exceed double precision");
    }
  }
  return d;
}

std::vector<double> ContactProblem::dlambda_along_dG(const std::vector<double>& dG) {
  const auto n = static_cast<std::size_t>(parts_->problem.n);
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
  for (int level = 0; level < parts_->linearization.lower_levels(); ++level) {
    parts_->linearization.impulses(level, lambda.data());
    lower.push_back(times_dG(lambda));
  }

  for (const std::vector<double>& values : lower)
    s_lower.push_back(values.data());
  std::vector<double> s = times_dG(parts_->result.lambda);
  parts_->linearization.solve(s.data(), s.data(), 1, 1, s_lower.data());
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

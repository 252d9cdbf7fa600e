// The boxed linear complementarity problem by itself (docs/theory.md (Q2); [Werling2021, appendix A]), for any square A:
//
//   w = A x + b,    x_i = lo_i and w_i >= 0,   or   lo_i <= x_i <= hi_i and w_i = 0,   or   x_i = hi_i and w_i <= 0
//
// A friction row i has normal[i] = j >= 0: its bounds are -hi_i x_j and +hi_i x_j (hi_i is the coefficient, lo_i is not used).
// The three cases are the classes `lower`, `clamped`, `upper` of a row; a row with x_i = lo_i = hi_i counts as lower or upper by the sign
// of w_i. Known classes make the problem linear; every method looks for classes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace coulomb {

struct BoxedLcp {
  int n = 0, ld = 0;      ///< rows; leading dimension of A (n rounded up to 8)
  std::vector<double> A;  ///< n x ld, row major, padding zero
  std::vector<double> b, lo, hi;
  std::vector<int> normal;  ///< -1, or the row whose x scales this row's bounds
  void resize(int rows);    ///< zeroes, bounds 0 and infinity
  bool is_friction(int i) const { return normal[i] >= 0; }
  double lower(int i, const double* x) const { return is_friction(i) ? -upper(i, x) : lo[i]; }
  double upper(int i, const double* x) const {
    if (!is_friction(i)) return hi[i];
    const double xj = x[normal[i]];
    return xj > 0 ? hi[i] * xj : 0.0;
  }
  void multiply(const double* x, double* w) const;  ///< w = A x + b
};

enum class LcpClass : std::uint8_t { lower, clamped, upper };
const char* name_of(LcpClass c);

enum class LcpMethod : std::uint8_t { automatic, newton, dantzig, pgs, lemke };
LcpMethod lcp_method_from_name(const std::string& name);  ///< "auto", "newton", "dantzig", "lemke", "pgs"

struct LcpSolution {
  std::vector<double> x, w;
  std::vector<LcpClass> classes;
  bool converged = false;
  bool no_solution = false;  ///< shown that there is none; else a failure only says that none was found
  bool unique = true;        ///< false: of several solutions, the least-norm one where canonical
  bool canonical = true;
  int iterations = 0;
  double residual = 0;
  std::string reason;
};

/// Throws std::invalid_argument naming argument, element and value.
void check_lcp(const BoxedLcp& problem);
LcpSolution solve_lcp(const BoxedLcp& problem, LcpMethod method, double tolerance = 1e-10, int max_iterations = 2000);

struct LcpCotangent {
  std::vector<double> A, b, lo, hi;  ///< A: n x n, row major
};

/// Derivatives of a solved boxed LCP with its classes held: at a tie, of the classes reported; where rank is deficient, along changes that
/// keep it (docs/theory.md (Q4)).
class LcpDerivatives {
 public:
  LcpDerivatives();  ///< of no problem
  LcpDerivatives(BoxedLcp problem, const LcpSolution& solution);
  ~LcpDerivatives();
  LcpDerivatives(const LcpDerivatives& other);
  LcpDerivatives(LcpDerivatives&& other) noexcept;
  LcpDerivatives& operator=(const LcpDerivatives& other);
  LcpDerivatives& operator=(LcpDerivatives&& other) noexcept;

  std::vector<double> dx_db() const;  ///< n x n, row major
  std::vector<double> dx_dlo() const;
  std::vector<double> dx_dhi() const;                    ///< of a friction row: by its coefficient
  std::vector<double> along_dA(const double* dA) const;  ///< dA: n x n
  LcpCotangent vjp(const double* x_bar) const;
  bool deficient() const;
  int size() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace coulomb

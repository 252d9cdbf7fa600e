// LU of the matrix of an implicit stage. Small: dense with pivoting. From 48 dofs on: sparse, leaves first, as trees of bodies fill in
// nothing then and only contacts between them do; without pivoting, since the matrix is M / c plus what springs and dampers add. Where a
// pivot gets too small for that, dense after all.
#pragma once

#include <span>
#include <vector>

namespace coulomb {

/// A = H^T with rows of ld = n rounded up to 8.
class ImplicitFactor {
 public:
  explicit ImplicitFactor(int n) { resize(n); }
  void resize(int n);  ///< of another matrix, whose storage only grows
  int leading_dimension() const { return ld_; }
  double* matrix() { return lu_.data(); }  ///< to be filled before factor()
  const double* matrix() const { return lu_.data(); }
  bool factor();                               ///< false: singular
  void solve(double* x) const;                 ///< x := H^-1 x
  void solve_transposed(double* x) const;      ///< x := H^-T x
  void inverse_transposed(double* P_T) const;  ///< H^-T, rows of ld
  bool sparse() const { return sparse_; }

  /// What solving reads, as long as this is not factored again.
  struct Factors {
    bool sparse = false;
    std::span<const double> lu;
    std::span<const int> pivot, lower, lower_start, upper, upper_start;
  };
  Factors factors() const;
  void set_factors(const Factors& from);  ///< of a matrix of this size

 private:
  bool factor_dense();
  bool factor_sparse();

  int n_ = 0, ld_ = 0;
  bool sparse_ = false;
  std::vector<double> lu_, copy_, work_;
  std::vector<int> pivot_;
  // sparse: A = U L, U unit upper; for k the j < k of L's row k and the i < k of U's column k
  std::vector<int> lower_, lower_start_, upper_, upper_start_;
};

}  // namespace coulomb

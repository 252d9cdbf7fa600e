// Dense kernels against their definitions: factor, solve, transposed solve, pseudo-inverse.
#include "check.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/linalg/rank_revealing.hpp"
#include "solvers/problems.hpp"

using coulomb::test::Random;
namespace dense = coulomb::dense;

namespace {

using Matrix = std::vector<double>;

Matrix random_matrix(Random& r, int rows, int cols, int ld) {
  Matrix A(static_cast<std::size_t>(rows) * ld, 0.0);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) A[static_cast<std::size_t>(i) * ld + j] = r.normal();
  return A;
}

double at(const Matrix& A, int ld, int i, int j) { return A[static_cast<std::size_t>(i) * ld + j]; }

/// max |op(A) X - B|
double defect(const Matrix& A, int n, int ld, bool transposed, const Matrix& X, const Matrix& B, int ldx, int cols) {
  double worst = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < cols; ++j) {
      double sum = -at(B, ldx, i, j);
      for (int k = 0; k < n; ++k) sum += (transposed ? at(A, ld, k, i) : at(A, ld, i, k)) * at(X, ldx, k, j);
      worst = std::max(worst, std::abs(sum));
    }
  return worst;
}

void test_size(int n, int cols) {
  Random r(static_cast<std::uint64_t>(100 * n + cols));
  const int ld = dense::padded(n), ldx = cols + 1;
  Matrix A = random_matrix(r, n, n, ld), S = A, work(ld);
  const Matrix B = random_matrix(r, n, cols, ldx);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = i == j ? 0.1 : 0;
      for (int k = 0; k < n; ++k) sum += at(A, ld, i, k) * at(A, ld, j, k);
      S[static_cast<std::size_t>(i) * ld + j] = sum;
    }
  for (int i = 0; i < n; ++i) A[static_cast<std::size_t>(i) * ld + i] += 3;

  Matrix F = A, X = B;
  std::vector<int> pivot(n);
  CHECK(dense::lu(F.data(), n, ld, pivot.data(), work.data()) > 0);
  dense::lu_solve(F.data(), n, ld, pivot.data(), X.data(), ldx, cols);
  CHECK(defect(A, n, ld, false, X, B, ldx, cols) < 1e-10 * n);
  X = B;
  dense::lu_solve_transposed(F.data(), n, ld, pivot.data(), X.data(), ldx, cols);
  CHECK(defect(A, n, ld, true, X, B, ldx, cols) < 1e-10 * n);
  Matrix b1 = random_matrix(r, n, 1, 1), x1 = b1;
  dense::lu_solve(F.data(), n, ld, pivot.data(), x1.data());
  CHECK(defect(A, n, ld, false, x1, b1, 1, 1) < 1e-10 * n);
  x1 = b1;
  dense::lu_solve_transposed(F.data(), n, ld, pivot.data(), x1.data());
  CHECK(defect(A, n, ld, true, x1, b1, 1, 1) < 1e-10 * n);

  F = S;
  CHECK(dense::cholesky(F.data(), n, ld, work.data()) > 0);
  X = B;
  dense::cholesky_solve(F.data(), n, ld, X.data(), ldx, cols);
  CHECK(defect(S, n, ld, false, X, B, ldx, cols) < 1e-9 * n);
  x1 = b1;
  dense::cholesky_solve(F.data(), n, ld, x1.data());
  CHECK(defect(S, n, ld, false, x1, b1, 1, 1) < 1e-9 * n);
}

/// A B and A^T B on both sides of the size from which products are blocked, with leading dimensions larger than the matrices.
void test_products(int m, int k, int cols) {
  Random r(static_cast<std::uint64_t>(m * 1000 + k * 10 + cols));
  const int lda = std::max(m, k) + 3, ldb = cols + 2, ldc = cols + 5;
  const Matrix A = random_matrix(r, m, k, lda), At = random_matrix(r, k, m, lda), B = random_matrix(r, k, cols, ldb);
  Matrix C(static_cast<std::size_t>(m) * ldc, 7.0), D = C;
  dense::multiply(A.data(), lda, B.data(), ldb, C.data(), ldc, m, k, cols);
  dense::multiply_transposed(At.data(), lda, B.data(), ldb, D.data(), ldc, m, k, cols);
  double worst = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < ldc; ++j) {
      double c = j < cols ? 0 : 7, d = c;  // what lies beside the result stays
      for (int l = 0; l < k && j < cols; ++l)
        c += at(A, lda, i, l) * at(B, ldb, l, j), d += at(At, lda, l, i) * at(B, ldb, l, j);
      worst = std::max({worst, std::abs(c - at(C, ldc, i, j)), std::abs(d - at(D, ldc, i, j))});
    }
  CHECK(worst < 1e-14 * k * 10);
}

void test_pseudo_inverse(int n, int rank) {
  Random r(static_cast<std::uint64_t>(n * 37 + rank));
  const int ld = dense::padded(n);
  const Matrix L = random_matrix(r, n, rank, rank), R = random_matrix(r, rank, n, ld);
  Matrix A(static_cast<std::size_t>(n) * ld, 0.0);
  dense::multiply(L.data(), rank, R.data(), ld, A.data(), ld, n, rank, n);
  coulomb::PseudoInverse inverse;
  inverse.compute(A.data(), n, ld);
  CHECK(inverse.rank == rank);
  Matrix P(static_cast<std::size_t>(n) * n, 0.0);
  for (int i = 0; i < n; ++i) P[static_cast<std::size_t>(i) * n + i] = 1;
  Matrix T = P;
  inverse.solve(P.data(), n, n);
  inverse.solve_transposed(T.data(), n, n);
  Matrix AP(static_cast<std::size_t>(n) * n), PA(AP), PAP(AP), APA(AP);
  dense::multiply(A.data(), ld, P.data(), n, AP.data(), n, n, n, n);
  dense::multiply(P.data(), n, A.data(), ld, PA.data(), n, n, n, n);
  dense::multiply(PA.data(), n, P.data(), n, PAP.data(), n, n, n, n);
  dense::multiply(AP.data(), n, A.data(), ld, APA.data(), n, n, n, n);
  for (int i = 0; i < n; ++i)  // the four conditions of Moore and Penrose
    for (int j = 0; j < n; ++j) {
      CHECK_NEAR(at(AP, n, i, j), at(AP, n, j, i), 1e-10);
      CHECK_NEAR(at(PA, n, i, j), at(PA, n, j, i), 1e-10);
      CHECK_NEAR(at(PAP, n, i, j), at(P, n, i, j), 1e-9);
      CHECK_NEAR(at(APA, n, i, j), at(A, ld, i, j), 1e-9);
      CHECK_NEAR(at(T, n, i, j), at(P, n, j, i), 1e-13);
    }
}

}  // namespace

int main() {
  for (int n : {1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 24, 33, 63, 64, 65, 100, 150, 193})
    for (int cols : {1, 3, 8, 21, 40}) test_size(n, cols);
  for (int m : {1, 7, 64, 131})
    for (int k : {1, 63, 64, 130, 300})
      for (int cols : {1, 8, 17, 40}) test_products(m, k, cols);
  for (int n : {3, 9, 16, 20, 70}) {
    test_pseudo_inverse(n, n);
    test_pseudo_inverse(n, (2 * n) / 3);
    test_pseudo_inverse(n, n / 3);
    test_pseudo_inverse(n, n - 2);
    test_pseudo_inverse(n, 1);
  }
  return coulomb::test::report();
}

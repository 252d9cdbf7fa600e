// TreeFactor: solutions of random coupled trees against a dense matrix that is multiplied out; transposes; no allocation when repeated.
#include "coulomb/solvers/newton/tree_factor.hpp"

#include "check.hpp"
#include "coulomb/linalg/dense.hpp"
#include "count_allocations.hpp"
#include "solvers/problems.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

using Vector = std::vector<double>;
using Couplings = std::vector<std::pair<int, int>>;

/// Blocks of a matrix on trees, before anything is factorised.
struct Coupled {
  std::vector<int> tree_size;
  Couplings couplings;
  std::vector<Vector> block;  ///< per coupling (a, b), then (b, a) where they differ: size(a) x 8-padded size(b)
};

int padded(int size) { return (size + 7) / 8 * 8; }

Vector random_block(int rows, int columns, double size, Random& random) {
  Vector out(static_cast<std::size_t>(rows) * padded(columns), 0.0);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[static_cast<std::size_t>(i) * padded(columns) + j] = size * random.normal();
  return out;
}

Coupled coupled(std::vector<int> tree_size, Couplings couplings, double size, Random& random) {
  Coupled out{std::move(tree_size), std::move(couplings), {}};
  for (const auto& [a, b] : out.couplings) {
    out.block.push_back(random_block(out.tree_size[a], out.tree_size[b], size, random));
    if (a != b) out.block.push_back(random_block(out.tree_size[b], out.tree_size[a], size, random));
  }
  return out;
}

void fill(const Coupled& from, TreeFactor& factor) {
  factor.analyse(from.tree_size, from.couplings);
  factor.clear();
  std::size_t next = 0;
  for (const auto& [a, b] : from.couplings) {
    factor.add(a, b, from.block[next++].data(), padded(from.tree_size[b]));
    if (a != b) factor.add(b, a, from.block[next++].data(), padded(from.tree_size[a]));
  }
}

/// 1 + blocks, dense, in the rows of the factor: n x n.
Vector dense_matrix(const Coupled& from, const TreeFactor& factor) {
  const int n = factor.size();
  Vector H(static_cast<std::size_t>(n) * n, 0.0);
  for (int i = 0; i < n; ++i) H[static_cast<std::size_t>(i) * n + i] = 1;
  std::size_t next = 0;
  const auto add = [&](int a, int b) {
    const Vector& block = from.block[next++];
    for (int i = 0; i < from.tree_size[a]; ++i)
      for (int j = 0; j < from.tree_size[b]; ++j)
        H[static_cast<std::size_t>(factor.start(a) + i) * n + factor.start(b) + j] +=
            block[static_cast<std::size_t>(i) * padded(from.tree_size[b]) + j];
  };
  for (const auto& [a, b] : from.couplings) {
    add(a, b);
    if (a != b) add(b, a);
  }
  return H;
}

double largest(const Vector& x) {
  double out = 0;
  for (double value : x) out = std::max(out, std::abs(value));
  return out;
}

/// X of both directions against LU of the dense matrix with pivoting over all rows.
void expect_equal(const Coupled& from, TreeFactor& factor, int columns, Random& random) {
  fill(from, factor);
  const int n = factor.size();
  const int ld = padded(n);
  const Vector H = dense_matrix(from, factor);
  CHECK(factor.factorise());
  for (const bool transposed : {false, true}) {
    // Only the rows of trees count: padding stays zero.
    Vector X(static_cast<std::size_t>(n) * columns, 0.0);
    for (std::size_t tree = 0; tree < from.tree_size.size(); ++tree)
      for (int i = 0; i < from.tree_size[tree]; ++i)
        for (int j = 0; j < columns; ++j)
          X[static_cast<std::size_t>(factor.start(static_cast<int>(tree)) + i) * columns + j] = random.normal();

    Vector A(static_cast<std::size_t>(n) * ld, 0.0);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        A[static_cast<std::size_t>(i) * ld + j] =
            H[static_cast<std::size_t>(transposed ? j : i) * n + (transposed ? i : j)];
    std::vector<int> pivot(n);
    Vector work(ld);
    dense::lu(A.data(), n, ld, pivot.data(), work.data());

    const Vector B = X;
    if (transposed) factor.solve_transposed(X.data(), columns, columns);
    else factor.solve(X.data(), columns, columns);
    double worst = 0;
    Vector column(ld, 0.0);
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < n; ++i) column[i] = B[static_cast<std::size_t>(i) * columns + j];
      dense::lu_solve(A.data(), n, ld, pivot.data(), column.data());
      for (int i = 0; i < n; ++i)
        worst = std::max(worst, std::abs(column[i] - X[static_cast<std::size_t>(i) * columns + j]));
    }
    CHECK_NEAR(worst / (1 + largest(X)), 0, 1e-10);
  }
}

/// Trees of 1 .. 20 dofs; each coupled to itself, to a tree before it, and now and then to another.
Coupled random_forest(int trees, double more, Random& random) {
  std::vector<int> size;
  Couplings couplings;
  for (int tree = 0; tree < trees; ++tree) {
    size.push_back(static_cast<int>(random.uniform(1, 21)));
    couplings.push_back({tree, tree});
    if (tree > 0) couplings.push_back({static_cast<int>(random.uniform(0, tree)), tree});
    if (tree > 1 && random.uniform(0, 1) < more) {
      const int other = static_cast<int>(random.uniform(0, tree));
      couplings.push_back({tree, other});
    }
  }
  return coupled(size, couplings, 0.1, random);
}

void test_random_forests() {
  TreeFactor factor;
  for (int seed = 0; seed < 80; ++seed) {
    Random random(seed);
    const Coupled from = random_forest(1 + seed % 12, 0.1 * (seed % 8), random);
    expect_equal(from, factor, 1 + seed % 9, random);
  }
}

/// A single tree is a dense LU, and its rows are interchanged: a diagonal of zeros is no obstacle.
void test_pivoting() {
  Random random(1);
  TreeFactor factor;
  for (int size : {2, 7, 30}) {
    Coupled from = coupled({size}, {{0, 0}}, 1, random);
    for (int i = 0; i < size; ++i) from.block[0][static_cast<std::size_t>(i) * padded(size) + i] = -1;
    expect_equal(from, factor, 3, random);
  }
}

void test_singular() {
  Random random(2);
  TreeFactor factor;
  Coupled from = coupled({4, 3}, {{0, 0}, {0, 1}}, 0.1, random);
  Vector& own = from.block[0];
  for (int j = 0; j < 4; ++j) own[j] = j == 0 ? -1 : 0;
  for (int j = 0; j < 3; ++j) from.block[1][j] = 0;
  fill(from, factor);
  CHECK(!factor.factorise());
  own[1] = NAN;
  fill(from, factor);
  CHECK(!factor.factorise());
}

/// Chains are eliminated without fill: the work grows in proportion.
void test_cost() {
  Random random(3);
  const auto cost_of_chain = [&](int trees) {
    Couplings couplings;
    for (int tree = 1; tree < trees; ++tree) couplings.push_back({tree - 1, tree});
    TreeFactor factor;
    factor.analyse(std::vector<int>(trees, 6), couplings);
    return factor.cost();
  };
  CHECK(cost_of_chain(80) < 2.2 * cost_of_chain(40));
}

void test_no_allocation() {
  Random random(4);
  std::vector<Coupled> all;
  for (int trees : {9, 3, 6}) all.push_back(random_forest(trees, 0.5, random));
  TreeFactor factor;
  Vector X;
  const auto solve_all = [&] {
    for (const Coupled& from : all) {
      fill(from, factor);
      factor.factorise();
      X.resize(std::max(X.size(), static_cast<std::size_t>(factor.size()) * 4));
      factor.solve(X.data(), 4, 4);
      factor.solve_transposed(X.data(), 4, 4);
    }
  };
  solve_all();
  solve_all();
  const long before = allocations;
  solve_all();
  CHECK(allocations == before);
}

/// The same input has the same bits, whatever was solved before.
void test_bits() {
  Random random(5);
  const Coupled first = random_forest(5, 0.5, random);
  const Coupled second = random_forest(8, 0.2, random);
  const auto solution = [&](TreeFactor& factor) {
    fill(first, factor);
    factor.factorise();
    Vector X(factor.size(), 0.0);
    for (int i = 0; i < first.tree_size[0]; ++i) X[factor.start(0) + i] = 1 + i;
    factor.solve(X.data(), 1, 1);
    return X;
  };
  TreeFactor fresh, used;
  fill(second, used);
  used.factorise();
  CHECK(solution(fresh) == solution(used));
}

}  // namespace

int main() {
  test_random_forests();
  test_pivoting();
  test_singular();
  test_cost();
  test_no_allocation();
  test_bits();
  return report();
}

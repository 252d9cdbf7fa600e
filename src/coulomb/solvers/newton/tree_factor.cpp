#include "coulomb/solvers/newton/tree_factor.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/linalg/dense_blocked.hpp"

namespace coulomb {
namespace {

/// LU of the first `own` rows of F (own x columns) with row interchanges among them. False: no pivot.
COULOMB_SIMD bool factor_panel(double* F, int own, int columns, int ld, int* pivot) {
  for (int k = 0; k < own; ++k) {
    // The largest entry of the column becomes the pivot.
    int best = k;
    double value = std::abs(F[static_cast<long>(k) * ld + k]);
    for (int i = k + 1; i < own; ++i) {
      const double candidate = std::abs(F[static_cast<long>(i) * ld + k]);
      if (candidate > value) {
        value = candidate;
        best = i;
      }
    }
    pivot[k] = best;
    if (!(value > 0) || !(value < INFINITY)) return false;

    // It moves to the diagonal, its whole row with it.
    double* __restrict row = F + static_cast<long>(k) * ld;
    if (best != k) {
      double* __restrict other = F + static_cast<long>(best) * ld;
      for (int j = 0; j < columns; ++j) {
        const double t = row[j];
        row[j] = other[j];
        other[j] = t;
      }
    }

    // What is below it goes.
    const double inverse = 1.0 / row[k];
    for (int i = k + 1; i < own; ++i) {
      double* __restrict target = F + static_cast<long>(i) * ld;
      const double l = target[k] *= inverse;
      if (l == 0.0) continue;
      for (int j = k + 1; j < columns; ++j)
        target[j] -= l * row[j];
    }
  }
  return true;
}

/// The rows below the panel: L21 = F21 U11^-1, in place.
COULOMB_SIMD void factor_below(double* F, int own, int rows, int ld) {
  for (int i = own; i < rows; ++i) {
    double* __restrict target = F + static_cast<long>(i) * ld;
    for (int k = 0; k < own; ++k) {
      const double* __restrict row = F + static_cast<long>(k) * ld;

      const double l = target[k] /= row[k];
      if (l == 0.0) continue;
      for (int j = k + 1; j < own; ++j)
        target[j] -= l * row[j];
    }
  }
}

COULOMB_SIMD void add_rows(const double* __restrict from, const int* columns, int count, double* to) {
  for (int j = 0; j < count; ++j)
    to[columns[j]] += from[j];
}

/// y -= a x on `columns` entries.
COULOMB_SIMD void subtract(double a, const double* __restrict x, int columns, double* __restrict y) {
  for (int j = 0; j < columns; ++j)
    y[j] -= a * x[j];
}

COULOMB_SIMD void scale(double a, int columns, double* __restrict x) {
  for (int j = 0; j < columns; ++j)
    x[j] *= a;
}

/// Eight chains: the sum may be vectorised without reassociation.
COULOMB_INLINE double dot(const double* __restrict a, const double* __restrict b, int n) {
  double sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  int i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l)
      sum[l] += a[i + l] * b[i + l];
  double rest = 0;
  for (; i < n; ++i)
    rest += a[i] * b[i];
  return rest + (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])));
}

/// One vector: x -= L x' for the rows of a front, then U^-1 for its own.
COULOMB_SIMD void eliminate(const double* F, int own, int rows, int ld, double* x) {
  for (int i = 1; i < rows; ++i)
    x[i] -= dot(F + static_cast<long>(i) * ld, x, std::min(i, own));
}

/// One vector: U^-T for the own rows of a front, x' -= U^T x for the others.
COULOMB_SIMD void eliminate_transposed(const double* F, int own, int rows, int ld, double* __restrict x) {
  for (int i = 0; i < own; ++i) {
    const double* row = F + static_cast<long>(i) * ld;
    const double known = x[i] /= row[i];
    for (int k = i + 1; k < rows; ++k)
      x[k] -= row[k] * known;
  }
}

/// One vector: L^-T.
COULOMB_SIMD void substitute_back_transposed(const double* F, int own, int rows, int ld, double* __restrict x) {
  for (int i = rows - 1; i > 0; --i) {
    const double* row = F + static_cast<long>(i) * ld;
    const double known = x[i];
    const int left = std::min(i, own);
    for (int k = 0; k < left; ++k)
      x[k] -= row[k] * known;
  }
}

/// One vector: U^-1 for the own rows of a front.
COULOMB_SIMD void substitute_back(const double* F, int own, int rows, int ld, double* x) {
  for (int i = own - 1; i >= 0; --i) {
    const double* row = F + static_cast<long>(i) * ld;
    x[i] = (x[i] - dot(row + i + 1, x + i + 1, rows - i - 1)) / row[i];
  }
}

}  // namespace

void TreeFactor::analyse(const std::vector<int>& tree_size, const std::vector<std::pair<int, int>>& couplings) {
  if (tree_size == tree_size_ && couplings == couplings_) return;
  tree_size_ = tree_size;
  couplings_ = couplings;

  // Trees begin at multiples of 8, as lanes have them.
  const int trees = static_cast<int>(tree_size.size());
  tree_start_.resize(trees + 1);
  tree_start_[0] = 0;
  for (int t = 0; t < trees; ++t)
    tree_start_[t + 1] = tree_start_[t] + dense::padded(tree_size[t]);
  size_ = tree_start_[trees];
  find_order(trees, couplings);
  build_fronts(trees);
}

// Minimum degree: the tree that is coupled to the fewest goes next, and couples those to one another.
void TreeFactor::find_order(int trees, const std::vector<std::pair<int, int>>& couplings) {
  // The graph of who is coupled to whom, each pair once.
  neighbours_.resize(std::max<std::size_t>(neighbours_.size(), trees));
  for (int t = 0; t < trees; ++t)
    neighbours_[t].clear();
  for (const auto& [a, b] : couplings) {
    if (a == b) continue;
    neighbours_[a].push_back(b);
    neighbours_[b].push_back(a);
  }
  for (int t = 0; t < trees; ++t) {
    std::vector<int>& list = neighbours_[t];
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  order_.clear();
  place_.assign(trees, -1);
  for (int step = 0; step < trees; ++step) {
    // The tree with the fewest neighbours goes.
    int next = -1;
    for (int t = 0; t < trees; ++t)
      if (place_[t] < 0 && (next < 0 || neighbours_[t].size() < neighbours_[next].size())) {
        next = t;
      }
    place_[next] = step;
    order_.push_back(next);

    // Its neighbours become neighbours of one another, and lose it.
    const std::vector<int>& clique = neighbours_[next];
    for (int t : clique) {
      merged_.clear();
      std::set_union(neighbours_[t].begin(), neighbours_[t].end(), clique.begin(), clique.end(),
                     std::back_inserter(merged_));
      merged_.erase(std::remove_if(merged_.begin(), merged_.end(), [&](int u) { return u == t || u == next; }),
                    merged_.end());
      neighbours_[t].assign(merged_.begin(), merged_.end());
    }
  }
}

// Trees eliminated one after the other with the same later neighbours share a front.
void TreeFactor::build_fronts(int trees) {
  fronts_.clear();
  front_trees_.clear();
  front_rows_.clear();
  pivot_start_.clear();
  front_of_.assign(trees, -1);
  cost_ = 0;
  std::size_t values = 0;
  int pivots = 0;
  for (int step = 0; step < trees;) {
    Front front;
    front.first = step;
    front.count = chain_length(step, trees);
    list_trees(front);

    // Its matrix and its pivots follow those of the front before.
    front.ld = dense::padded(front.rows);
    front.values = values;
    values += static_cast<std::size_t>(front.rows) * front.ld;
    pivot_start_.push_back(pivots);
    pivots += front.own_rows;
    cost_ += static_cast<double>(front.own_rows) * front.rows * front.rows;
    const int index = static_cast<int>(fronts_.size());
    for (int i = 0; i < front.count; ++i)
      front_of_[order_[step + i]] = index;
    fronts_.push_back(front);
    step += front.count;
  }

  // What a front leaves goes to the one that eliminates its next tree.
  for (Front& front : fronts_)
    if (front.trees_begin + front.count < front.trees_end)
      front.parent = front_of_[front_trees_[front.trees_begin + front.count]];
  reserve(values, pivots);
}

/// How many trees, from this step on, share a front.
int TreeFactor::chain_length(int step, int trees) const {
  int count = 1;
  while (step + count < trees) {
    const std::vector<int>& last = neighbours_[order_[step + count - 1]];
    const int next = order_[step + count];
    const bool chained =
        std::binary_search(last.begin(), last.end(), next) && last.size() == neighbours_[next].size() + 1;
    if (!chained) break;
    ++count;
  }
  return count;
}

/// The trees of a front and their rows: own trees first, then the later ones in the order of their elimination.
void TreeFactor::list_trees(Front& front) {
  front.trees_begin = static_cast<int>(front_trees_.size());
  for (int i = 0; i < front.count; ++i)
    front_trees_.push_back(order_[front.first + i]);
  const std::vector<int>& unsorted = neighbours_[order_[front.first + front.count - 1]];
  later_.assign(unsorted.begin(), unsorted.end());
  std::sort(later_.begin(), later_.end(), [&](int a, int b) { return place_[a] < place_[b]; });
  front_trees_.insert(front_trees_.end(), later_.begin(), later_.end());
  front.trees_end = static_cast<int>(front_trees_.size());
  for (int i = front.trees_begin; i < front.trees_end; ++i) {
    front_rows_.push_back(front.rows);
    front.rows += tree_size_[front_trees_[i]];
    if (i - front.trees_begin < front.count) {
      front.own_rows = front.rows;
    }
  }
}

/// Memory for all fronts, and for a vector on the largest.
void TreeFactor::reserve(std::size_t values, int pivots) {
  if (front_values_.size() < values) front_values_.resize(values);
  if (pivots_.size() < static_cast<std::size_t>(pivots)) {
    pivots_.resize(pivots);
  }
  int largest = 0;
  for (const Front& front : fronts_)
    largest = std::max(largest, front.rows);
  if (map_.size() < static_cast<std::size_t>(largest)) {
    map_.resize(largest);
  }
  if (gathered_.size() < 2 * static_cast<std::size_t>(dense::padded(largest)))
    gathered_.resize(2 * static_cast<std::size_t>(dense::padded(largest)));
}

int TreeFactor::position(const Front& front, int tree) const {
  // The trees of a front lie in the order of their elimination: search by place.
  int low = front.trees_begin;
  int high = front.trees_end;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (place_[front_trees_[middle]] <= place_[tree])
      low = middle;
    else
      high = middle;
  }
  return front_rows_[low];
}

void TreeFactor::clear() {
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const Front& front = fronts_[f];
    double* F = front_values_.data() + front.values;
    std::fill_n(F, static_cast<std::size_t>(front.rows) * front.ld, 0.0);
    for (int i = 0; i < front.own_rows; ++i)
      F[static_cast<long>(i) * front.ld + i] = 1;
  }
}

/// H(a, b) lies in the front of the tree that goes first.
void TreeFactor::add(int a, int b, const double* block, int ld) {
  const Front& front = fronts_[place_[a] <= place_[b] ? front_of_[a] : front_of_[b]];
  double* F = front_values_.data() + front.values;
  const int row = position(front, a);
  const int column = position(front, b);
  for (int i = 0; i < tree_size_[a]; ++i) {
    double* to = F + static_cast<long>(row + i) * front.ld + column;
    const double* from = block + static_cast<long>(i) * ld;
    for (int j = 0; j < tree_size_[b]; ++j)
      to[j] += from[j];
  }
}

// What is left of a child's front goes into its parent's.
void TreeFactor::extend_add(const Front& child, const Front& parent) {
  // Where the rows of the child lie in its parent.
  const int count = child.rows - child.own_rows;
  int filled = 0;
  for (int i = child.trees_begin + child.count; i < child.trees_end; ++i) {
    const int tree = front_trees_[i];
    const int row = position(parent, tree);
    for (int k = 0; k < tree_size_[tree]; ++k)
      map_[filled++] = row + k;
  }
  const double* from = front_values_.data() + child.values;
  double* to = front_values_.data() + parent.values;
  for (int i = 0; i < count; ++i)
    add_rows(from + static_cast<long>(child.own_rows + i) * child.ld + child.own_rows, map_.data(), count,
             to + static_cast<long>(map_[i]) * parent.ld);
}

/// LU of the fronts, children before parents: docs/theory.md (C11).
bool TreeFactor::factorise() {
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const Front& front = fronts_[f];
    double* F = front_values_.data() + front.values;
    const int own = front.own_rows;
    const int rest = front.rows - own;

    // A root has no later trees: plain LU.
    if (rest == 0) {
      if (!(dense::lu(F, own, front.ld, pivots_.data() + pivot_start_[f], gathered_.data()) > 0)) return false;
      continue;
    }

    // Own trees.
    if (!factor_panel(F, own, front.rows, front.ld, pivots_.data() + pivot_start_[f])) return false;

    // Rows of later trees, what they lose, and the parent that they pass it to.
    factor_below(F, own, front.rows, front.ld);
    double* below = F + static_cast<long>(own) * front.ld;
    dense::add_product(-1, below, front.ld, 1, F + own, front.ld, below + own, front.ld, rest, own, rest);
    extend_add(front, fronts_[front.parent]);
  }
  return true;
}

/// Where the rows of a front lie in X.
void TreeFactor::locate(const Front& front) {
  int filled = 0;
  for (int i = front.trees_begin; i < front.trees_end; ++i)
    for (int k = 0; k < tree_size_[front_trees_[i]]; ++k)
      map_[filled++] = tree_start_[front_trees_[i]] + k;
}

void TreeFactor::swap_rows(std::size_t index, int k, double* X, int columns, int ld) const {
  const int other = pivots_[pivot_start_[index] + k];
  if (other == k) return;
  double* row = X + static_cast<long>(map_[k]) * ld;
  std::swap_ranges(row, row + columns, X + static_cast<long>(map_[other]) * ld);
}

/// As solve(), of one vector: a front's entries are gathered, so that its rows are dot products.
/// The entries of the located front of x, one below the other.
void TreeFactor::gather(const Front& front, const double* x) {
  for (int i = 0; i < front.rows; ++i)
    gathered_[i] = x[map_[i]];
}

/// The first `count` of them, back in x.
void TreeFactor::scatter(int count, double* x) const {
  for (int i = 0; i < count; ++i)
    x[map_[i]] = gathered_[i];
}

/// As solve(), of one vector: a front's entries are gathered, so that its rows are dot products.
void TreeFactor::solve_one(double* x) {
  double* own = gathered_.data();

  // Down: L^-1, front after front; a root is solved on the way up.
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const Front& front = fronts_[f];
    if (front.own_rows == front.rows) continue;
    locate(front);
    for (int k = 0; k < front.own_rows; ++k)
      swap_rows(f, k, x, 1, 1);
    gather(front, x);
    eliminate(front_values_.data() + front.values, front.own_rows, front.rows, front.ld, own);
    scatter(front.rows, x);
  }

  // Up: U^-1 of its own rows.
  for (std::size_t f = fronts_.size(); f-- > 0;) {
    const Front& front = fronts_[f];
    const double* F = front_values_.data() + front.values;
    locate(front);
    gather(front, x);
    if (front.own_rows == front.rows)
      dense::lu_solve(F, front.rows, front.ld, pivots_.data() + pivot_start_[f], own);
    else
      substitute_back(F, front.own_rows, front.rows, front.ld, own);
    scatter(front.own_rows, x);
  }
}

void TreeFactor::solve(double* X, int columns, int ld) {
  if (columns == 1 && ld == 1) return solve_one(X);
  const auto at = [&](int i) { return X + static_cast<long>(map_[i]) * ld; };

  // Down: L^-1, front after front.
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const Front& front = fronts_[f];
    const double* F = front_values_.data() + front.values;
    locate(front);
    for (int k = 0; k < front.own_rows; ++k)
      swap_rows(f, k, X, columns, ld);
    for (int i = 1; i < front.rows; ++i) {
      const double* row = F + static_cast<long>(i) * front.ld;
      const int known = std::min(i, front.own_rows);
      for (int k = 0; k < known; ++k)
        if (row[k] != 0.0) {
          subtract(row[k], at(k), columns, at(i));
        }
    }
  }

  // Up: U^-1.
  for (std::size_t f = fronts_.size(); f-- > 0;) {
    const Front& front = fronts_[f];
    const double* F = front_values_.data() + front.values;
    locate(front);
    for (int i = front.own_rows - 1; i >= 0; --i) {
      const double* row = F + static_cast<long>(i) * front.ld;
      for (int k = i + 1; k < front.rows; ++k)
        if (row[k] != 0.0) {
          subtract(row[k], at(k), columns, at(i));
        }
      scale(1.0 / row[i], columns, at(i));
    }
  }
}

/// As solve_transposed(), of one vector.
void TreeFactor::solve_transposed_one(double* x) {
  double* own = gathered_.data();

  // Down: U^-T.
  for (const Front& front : fronts_) {
    locate(front);
    gather(front, x);
    eliminate_transposed(front_values_.data() + front.values, front.own_rows, front.rows, front.ld, own);
    scatter(front.rows, x);
  }

  // Up: L^-T, and the rows back where they were.
  for (std::size_t f = fronts_.size(); f-- > 0;) {
    const Front& front = fronts_[f];
    locate(front);
    gather(front, x);
    substitute_back_transposed(front_values_.data() + front.values, front.own_rows, front.rows, front.ld, own);
    scatter(front.own_rows, x);
    for (int k = front.own_rows - 1; k >= 0; --k)
      swap_rows(f, k, x, 1, 1);
  }
}

void TreeFactor::solve_transposed(double* X, int columns, int ld) {
  if (columns == 1 && ld == 1) return solve_transposed_one(X);
  const auto at = [&](int i) { return X + static_cast<long>(map_[i]) * ld; };

  // Down: U^-T.
  for (std::size_t f = 0; f < fronts_.size(); ++f) {
    const Front& front = fronts_[f];
    const double* F = front_values_.data() + front.values;
    locate(front);
    for (int i = 0; i < front.own_rows; ++i) {
      const double* row = F + static_cast<long>(i) * front.ld;
      scale(1.0 / row[i], columns, at(i));
      for (int k = i + 1; k < front.rows; ++k)
        if (row[k] != 0.0) {
          subtract(row[k], at(i), columns, at(k));
        }
    }
  }

  // Up: L^-T, and the rows back where they were.
  for (std::size_t f = fronts_.size(); f-- > 0;) {
    const Front& front = fronts_[f];
    const double* F = front_values_.data() + front.values;
    locate(front);
    for (int i = front.rows - 1; i > 0; --i) {
      const double* row = F + static_cast<long>(i) * front.ld;
      const int known = std::min(i, front.own_rows);
      for (int k = 0; k < known; ++k)
        if (row[k] != 0.0) {
          subtract(row[k], at(i), columns, at(k));
        }
    }
    for (int k = front.own_rows - 1; k >= 0; --k)
      swap_rows(f, k, X, columns, ld);
  }
}

}  // namespace coulomb

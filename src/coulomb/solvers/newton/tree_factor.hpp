// TreeFactor: LU of a matrix whose blocks couple the trees of an island, H = 1 + sum of blocks on (tree, tree), by the multifrontal
// method: trees are eliminated in an order of little fill, each in a dense front that holds the trees it is coupled to by then.
//
// Rows are interchanged within a front's own trees only, so the order depends on who touches whom and not on numbers. A single tree is
// one front: a plain dense LU with partial pivoting.
#pragma once

#include <utility>
#include <vector>

namespace coulomb {

class TreeFactor {
 public:
  /// Order of elimination and fronts for trees of these sizes coupled by these pairs (a == b allowed). Kept while nothing changes.
  void analyse(const std::vector<int>& tree_size, const std::vector<std::pair<int, int>>& couplings);

  /// Multiplications of one factorisation.
  double cost() const { return cost_; }
  /// Rows of H: trees one after the other, each from start(tree) on, padded to 8.
  int size() const { return size_; }
  int start(int tree) const { return tree_start_[tree]; }

  /// H = 1. Then blocks are added, then factorise().
  void clear();
  /// H(a, b) += block, size(a) x size(b), leading dimension ld; a and b coupled.
  void add(int a, int b, const double* block, int ld);
  /// False: a pivot vanished or is not finite.
  bool factorise();

  /// X (size() x columns, leading dimension ld) = H^-1 X, or H^-T X.
  void solve(double* X, int columns, int ld);
  void solve_transposed(double* X, int columns, int ld);

 private:
  /// A group of trees that is eliminated together, and the later trees that its front holds besides.
  struct Front {
    int first = 0, count = 0;            ///< own trees: order_[first ..]
    int own_rows = 0, rows = 0, ld = 0;  ///< of the own trees; of all
    int trees_begin = 0, trees_end = 0;  ///< front_trees_: all trees, own ones first, by their place in the order
    std::size_t values = 0;              ///< front_values_: rows x ld
    int parent = -1;
  };

  void find_order(int trees, const std::vector<std::pair<int, int>>& couplings);
  void build_fronts(int trees);
  int chain_length(int step, int trees) const;
  void list_trees(Front& front);
  void reserve(std::size_t values, int pivots);
  int position(const Front& front, int tree) const;  ///< first row of a tree in a front
  void solve_one(double* x);
  void solve_transposed_one(double* x);
  void extend_add(const Front& child, const Front& parent);
  void locate(const Front& front);  ///< map_
  void gather(const Front& front, const double* x);
  void scatter(int count, double* x) const;
  /// The interchange of a front's own row k, in X; the front is located.
  void swap_rows(std::size_t index, int k, double* X, int columns, int ld) const;

  std::vector<int> tree_size_, tree_start_;
  std::vector<std::pair<int, int>> couplings_;
  int size_ = 0;
  double cost_ = 0;

  std::vector<int> order_, place_;            ///< trees by elimination; its inverse
  std::vector<std::vector<int>> neighbours_;  ///< elimination graph, then each tree's later neighbours
  std::vector<int> merged_, later_;           ///< scratch
  std::vector<Front> fronts_;
  std::vector<int> front_of_;                  ///< tree -> front that eliminates it
  std::vector<int> front_trees_, front_rows_;  ///< per front: its trees, and where each begins in it
  std::vector<double> front_values_;
  std::vector<int> pivots_;       ///< per own row
  std::vector<int> pivot_start_;  ///< per front
  std::vector<int> map_;
  std::vector<double> gathered_;  ///< a front's entries of a vector
};

}  // namespace coulomb

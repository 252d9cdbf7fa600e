#include "coulomb/solvers/sparse_rows.hpp"

#include <algorithm>

#include "coulomb/base/lanes.hpp"
#include "coulomb/linalg/dense.hpp"

namespace coulomb {
namespace {

using Panel = SparseRows::Panel;

constexpr int strip = 8;  // columns whose sums stay in registers

/// w += Y^T x of one panel.
template <int width>
COULOMB_INLINE void add_panel_transposed(const Panel& panel, const double* Y, const double* x, double* w) {
  constexpr int parts = strip / width;
  for (int column = 0; column < panel.ld; column += strip) {
    // Even and odd rows apart: two chains of additions instead of one.
    Vector<width> even[parts];
    Vector<width> odd[parts];
    for (int p = 0; p < parts; ++p) {
      even[p] = load_vector<width>(w + column + p * width);
      odd[p] = Vector<width>{};
    }

    const double* row = Y + column;
    int i = 0;
    for (; i + 1 < panel.rows; i += 2) {
      for (int p = 0; p < parts; ++p) {
        even[p] += x[i] * load_vector<width>(row + p * width);
        odd[p] += x[i + 1] * load_vector<width>(row + panel.ld + p * width);
      }
      row += 2 * panel.ld;
    }

    if (i < panel.rows)
      for (int p = 0; p < parts; ++p)
        even[p] += x[i] * load_vector<width>(row + p * width);

    for (int p = 0; p < parts; ++p)
      store_vector<width>(w + column + p * width, even[p] + odd[p]);
  }
}

/// y += Y w of one panel, four rows at a time.
template <int width, int rows>
COULOMB_INLINE void add_dots(const double* Y, int ld, const double* w, double* y) {
  Vector<width> sum[rows];
  for (int i = 0; i < rows; ++i)
    sum[i] = Vector<width>{};

  for (int k = 0; k < ld; k += width) {
    const Vector<width> right = load_vector<width>(w + k);
    for (int i = 0; i < rows; ++i)
      sum[i] += right * load_vector<width>(Y + i * ld + k);
  }

  for (int i = 0; i < rows; ++i) {
    double total = 0;
    for (int l = 0; l < width; ++l)
      total += sum[i][l];
    y[i] += total;
  }
}

template <int width>
COULOMB_INLINE void times_transposed_lanes(const Panel* panels, int count, const double* values, const double* x,
                                           double* w) {
  for (const Panel* panel = panels; panel != panels + count; ++panel)
    add_panel_transposed<width>(*panel, values + panel->values, x + panel->row, w + panel->start);
}

template <int width>
COULOMB_INLINE void add_times_lanes(const Panel* panels, int count, const double* values, const double* w, double* y) {
  for (const Panel* panel = panels; panel != panels + count; ++panel) {
    const double* Y = values + panel->values;
    const double* right = w + panel->start;
    double* out = y + panel->row;
    int i = 0;
    for (; i + 4 <= panel->rows; i += 4)
      add_dots<width, 4>(Y + static_cast<long>(i) * panel->ld, panel->ld, right, out + i);
    for (; i < panel->rows; ++i)
      add_dots<width, 1>(Y + static_cast<long>(i) * panel->ld, panel->ld, right, out + i);
  }
}

COULOMB_SIMD_BY_WIDTH(void, times_transposed,

                      (const Panel* panels, int count, const double* values, const double* x, double* w),
                      (panels, count, values, x, w))
COULOMB_SIMD_BY_WIDTH(void, add_times,
                      (const Panel* panels, int count, const double* values, const double* w, double* y),
                      (panels, count, values, w, y))

// A row of Y in scaled variables.
COULOMB_SIMD void copy_scaled(const double* from, double scale, int count, double* __restrict to) {
  for (int k = 0; k < count; ++k)
    to[k] = scale * from[k];
}

// Blocks on the same trees lie in one dense panel a tree.
bool same_trees(const std::array<RowSegment, 2>& a, const std::array<RowSegment, 2>& b) {
  return a[0].tree == b[0].tree && a[1].tree == b[1].tree;
}

}  // namespace

/// Y = S^(1/2) Y of the problem, docs/theory.md (D16): panels by runs of blocks that move the same trees.
void SparseRows::assign(const ConstraintProblem& problem, const double* scale) {
  problem_ = &problem;

  // Trees are ranges of columns, padded to lanes.
  const int trees = static_cast<int>(problem.tree_size.size());
  if (static_cast<int>(tree_start_.size()) < trees + 1) {
    tree_start_.resize(trees + 1);
  }
  tree_start_[0] = 0;
  for (int t = 0; t < trees; ++t)
    tree_start_[t + 1] = tree_start_[t] + dense::padded(problem.tree_size[t]);
  columns_ = tree_start_[trees];
  if (values_.size() < problem.Y.size()) {
    values_.resize(problem.Y.size());
  }
  find_runs();

  // The rows of every panel, one below the other.
  for (const Run& run : runs_) {
    for (int p = run.first_panel; p < run.end_panel; ++p) {
      const Panel& panel = panels_[p];
      double* to = values_.data() + panel.values;
      for (int b = run.first_block; b < run.end_block; ++b) {
        const auto& segments = problem.segments[b];
        const RowSegment& segment = segments[0].tree == panel.tree ? segments[0] : segments[1];
        for (int i = 0; i < problem.blocks[b].size; ++i) {
          copy_scaled(problem.Y.data() + segment.start + i * panel.ld, scale[problem.blocks[b].row + i], panel.ld, to);
          to += panel.ld;
        }
      }
    }
  }
}

void SparseRows::find_runs() {
  runs_.clear();
  panels_.clear();
  const int num_blocks = static_cast<int>(problem_->blocks.size());
  if (static_cast<int>(run_of_.size()) < num_blocks) {
    run_of_.resize(num_blocks);
  }

  std::size_t values = 0;
  for (int b = 0; b < num_blocks;) {
    // How far do the same trees go?
    Run run;
    run.first_block = b;
    run.first_panel = static_cast<int>(panels_.size());
    const auto& segments = problem_->segments[b];
    int rows = 0;
    for (; b < num_blocks && same_trees(problem_->segments[b], segments); ++b) {
      rows += problem_->blocks[b].size;
      run_of_[b] = static_cast<int>(runs_.size());
    }
    run.end_block = b;

    // One panel for every tree of the run.
    for (const RowSegment& segment : segments) {
      if (segment.tree < 0) continue;
      Panel panel;
      panel.tree = segment.tree;
      panel.size = problem_->tree_size[segment.tree];
      panel.start = tree_start_[segment.tree];
      panel.ld = tree_start_[segment.tree + 1] - panel.start;
      panel.row = problem_->blocks[run.first_block].row;
      panel.rows = rows;
      panel.values = values;
      values += static_cast<std::size_t>(rows) * panel.ld;
      panels_.push_back(panel);
    }
    run.end_panel = static_cast<int>(panels_.size());
    runs_.push_back(run);
  }
}

/// One entry of Y Y^T.
double SparseRows::row_product(int block_a, int row_a, int block_b, int row_b) const {
  const Run& run_a = runs_[run_of_[block_a]];
  const Run& run_b = runs_[run_of_[block_b]];
  const auto row = [&](const Panel& panel, int block, int k) {
    return values(panel) + static_cast<std::size_t>(problem_->blocks[block].row + k - panel.row) * panel.ld;
  };
  double sum = 0;

  for (int p = run_a.first_panel; p < run_a.end_panel; ++p) {
    for (int o = run_b.first_panel; o < run_b.end_panel; ++o) {
      if (panels_[p].tree != panels_[o].tree) continue;
      const double* x = row(panels_[p], block_a, row_a);
      const double* y = row(panels_[o], block_b, row_b);
      for (int k = 0; k < panels_[p].size; ++k)
        sum += x[k] * y[k];
    }
  }
  return sum;
}

/// w = Y^T x, all trees.
void SparseRows::times_transposed(const double* x, double* w) const {
  std::fill_n(w, columns_, 0.0);
  coulomb::times_transposed(panels_.data(), static_cast<int>(panels_.size()), values_.data(), x, w);
}

/// y += Y w.
void SparseRows::add_times(const double* w, double* y) const {
  coulomb::add_times(panels_.data(), static_cast<int>(panels_.size()), values_.data(), w, y);
}

}  // namespace coulomb

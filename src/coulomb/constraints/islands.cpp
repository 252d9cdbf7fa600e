#include "coulomb/constraints/islands.hpp"

#include <algorithm>

#include "coulomb/dynamics/joint_forces.hpp"
#include "coulomb/linalg/dense_kernels.hpp"

namespace coulomb {
namespace {

/// The lower tree first, each once; -1: the world, last.
BlockTrees ordered(int a, int b) {
  if (a == b) b = -1;
  if (a < 0 || (b >= 0 && b < a)) {
    std::swap(a, b);
  }
  return {a, b};
}

/// What the arrays hold on the heap.
template <class... T>
std::size_t bytes_of(const std::vector<T>&... v) {
  return (std::size_t(0) + ... + (v.capacity() * sizeof(T)));
}

}  // namespace

BlockTrees trees_of(const Model& model, const BodyRows& rows) {
  return ordered(model.body_tree[rows.body_a], model.body_tree[rows.body_b]);
}

BlockTrees trees_of(const Model& model, const DofRow& row) {
  // The dofs of a row belong to one tree or to two.
  const auto tree = [&](int i) { return model.body_tree[model.dof_body[row.dof[i]]]; };
  int other = tree(0);
  for (int i = 1; i < row.num && other == tree(0); ++i)
    other = tree(i);
  return ordered(tree(0), other);
}

Islands::Islands(const Model& model)
    : pool(model.num_trees + 1), tree_island(model.num_trees), tree_index(model.num_trees), parent_(model.num_trees),
      ties_(actuator_ties(model)) {
  order.reserve(model.num_trees + 1);
}

/// The smallest tree of an island is its root. Paths are halved on the way, so that they stay short.
int Islands::root(int tree) {
  while (parent_[tree] != tree) {
    parent_[tree] = parent_[parent_[tree]];
    tree = parent_[tree];
  }
  return tree;
}

/// The smaller root stays.
void Islands::join(int tree_a, int tree_b) {
  const int a = root(tree_a);
  const int b = root(tree_b);
  parent_[std::max(a, b)] = std::min(a, b);
}

void Islands::find(const Model& model, const ConstraintRows& rows) {
  // Union and find: a block joins the trees that it moves.
  for (int t = 0; t < model.num_trees; ++t)
    parent_[t] = t;
  for (const auto& [a, b] : ties_)
    join(a, b);
  for_each_block(model, rows, [&](int, BlockTrees trees) {
    if (trees.second >= 0) {
      join(trees.first, trees.second);
    }
  });

  // Every tree goes to the island of its root, which comes first.
  const auto open = [&](int index) {
    Island& island = pool[index];
    island.trees.clear();
    island.blocks.clear();
    island.rows.clear();
    island.tree_start.assign(1, 0);
    order.push_back(index);
  };
  order.clear();
  for (int t = 0; t < model.num_trees; ++t) {
    const int index = root(t);
    if (index == t) open(index);
    Island& island = pool[index];
    tree_island[t] = index;
    tree_index[t] = int(island.trees.size());
    island.trees.push_back(t);
    island.tree_start.push_back(island.num_dofs() + model.tree_first_dof[t + 1] - model.tree_first_dof[t]);
  }

  // So do blocks and rows; those that move no tree come last.
  bool immovable = false;
  block_island.resize(rows.num_blocks);
  block_index.resize(rows.num_blocks);
  for_each_block(model, rows, [&](int block, BlockTrees trees) {
    const int index = trees.first >= 0 ? tree_island[trees.first] : model.num_trees;
    if (trees.first < 0 && !immovable) {
      open(index);
      immovable = true;
    }
    Island& island = pool[index];
    block_island[block] = index;
    block_index[block] = int(island.blocks.size());
    island.blocks.push_back(block);
    for (int i = 0; i < rows.blocks[block].size; ++i)
      island.rows.push_back(rows.blocks[block].row + i);
  });
}

void Islands::gather_solution(const ConstraintRows& rows, SolverResult& out) const {
  // Room, and what an empty problem has.
  for (auto* values : {&out.lambda, &out.c, &out.lambda_0, &out.lambda_1})
    values->resize(rows.num_rows);
  const bool centred = std::any_of(order.begin(), order.end(), [&](int index) {
    return !pool[index].blocks.empty() && !pool[index].solution.centre.empty();
  });
  out.centre.assign(centred ? rows.num_rows : 0, 0.0);
  out.modes.resize(rows.num_blocks);
  out.facets.resize(rows.num_blocks);
  out.margin.resize(rows.num_blocks);
  out.status = SolveStatus::solved;
  out.residual = 0;
  out.exact_residual = 0;
  out.relaxation = 0;
  out.compliance = 0;
  out.iterations = 0;
  for (auto* blocks : {&out.contradictory, &out.jammed, &out.unsolved, &out.badly_scaled})
    blocks->clear();
  out.scale_ratio = 0;
  out.classes_hit = rows.num_rows > 0;

  for (int index : order) {
    const Island& island = pool[index];
    if (island.blocks.empty()) continue;

    // Impulses and velocities by rows; where a solver had no levels they are all the last one.
    const SolverResult& own = island.solution;
    const std::vector<double>& lambda_0 = own.lambda_0.empty() ? own.lambda : own.lambda_0;
    const std::vector<double>& lambda_1 = own.lambda_1.empty() ? own.lambda : own.lambda_1;
    for (std::size_t i = 0; i < island.rows.size(); ++i) {
      const int row = island.rows[i];
      out.lambda[row] = own.lambda[i];
      out.c[row] = own.c[i];
      out.lambda_0[row] = lambda_0[i];
      out.lambda_1[row] = lambda_1[i];
      if (!own.centre.empty()) out.centre[row] = own.centre[i];
    }

    // Modes by blocks.
    for (std::size_t b = 0; b < island.blocks.size(); ++b) {
      const int block = island.blocks[b];
      out.modes[block] = own.modes[b];
      out.facets[block] = own.facets[b];
      out.margin[block] = own.margin[b];
    }

    // And the worst of everything else.
    out.status = std::max(out.status, own.status);
    out.residual = std::max(out.residual, own.residual);
    out.exact_residual = std::max(out.exact_residual, own.exact_residual);
    out.relaxation = std::max(out.relaxation, own.relaxation);
    out.compliance = std::max(out.compliance, own.compliance);
    out.iterations = std::max(out.iterations, own.iterations);
    out.classes_hit = out.classes_hit && own.classes_hit;
    const auto collect = [&](const std::vector<int>& blocks, std::vector<int>& all) {
      for (int b : blocks)
        all.push_back(island.blocks[b]);
    };
    collect(own.contradictory, out.contradictory);
    collect(own.jammed, out.jammed);
    collect(own.unsolved, out.unsolved);
    collect(own.badly_scaled, out.badly_scaled);
    out.scale_ratio = std::max(out.scale_ratio, own.scale_ratio);
  }
}

void Islands::scatter_labels(const SolverResult& from) {
  for (int index : order) {
    Island& island = pool[index];
    SolverResult& own = island.solution;
    for (std::size_t i = 0; i < island.rows.size(); ++i)
      own.lambda[i] = from.lambda[island.rows[i]];
    for (std::size_t b = 0; b < island.blocks.size(); ++b) {
      own.modes[b] = from.modes[island.blocks[b]];
      own.facets[b] = from.facets[island.blocks[b]];
    }
  }
}

void Islands::scatter_solution(const SolverResult& from) {
  // Sizes and numbers first, then what scatter_labels has of them.
  for (int index : order) {
    Island& island = pool[index];
    SolverResult& own = island.solution;
    for (auto* values : {&own.lambda, &own.lambda_0, &own.lambda_1, &own.c})
      values->resize(island.rows.size());
    own.centre.assign(from.centre.empty() ? 0 : island.rows.size(), 0.0);
    own.modes.resize(island.blocks.size());
    own.facets.resize(island.blocks.size());
    own.margin.resize(island.blocks.size());

    for (std::size_t i = 0; i < island.rows.size(); ++i) {
      const int row = island.rows[i];
      own.lambda_0[i] = from.lambda_0[row];
      own.lambda_1[i] = from.lambda_1[row];
      own.c[i] = from.c[row];
      if (!own.centre.empty()) own.centre[i] = from.centre[row];
    }
    if (std::all_of(own.centre.begin(), own.centre.end(), [](double x) { return x == 0; })) own.centre.clear();
    for (std::size_t b = 0; b < island.blocks.size(); ++b)
      own.margin[b] = from.margin[island.blocks[b]];
  }
  scatter_labels(from);
}

/// What their storage holds, in use or not.
std::size_t Islands::bytes() const {
  std::size_t sum =
      bytes_of(pool) + bytes_of(order, tree_island, tree_index, block_island, block_index) + bytes_of(parent_);
  for (const Island& island : pool) {
    // The island, its problem, its solution and its warm start.
    const ConstraintProblem& p = island.problem;
    const SolverResult& s = island.solution;
    sum += bytes_of(island.trees, island.tree_start, island.blocks, island.rows);
    sum += bytes_of(p.G, p.g, p.R, p.W, p.blocks, p.tree_size, p.segments, p.Y);
    sum += bytes_of(s.lambda, s.c, s.lambda_0, s.lambda_1, s.centre, s.modes, s.facets, s.margin);
    const WarmStart& warm = island.warm_start;
    sum += bytes_of(warm.lambda, warm.lambda_0, warm.lambda_1, warm.known, warm.mode);
  }
  return sum;
}

/// One dense matrix counts dofs from the model's first, those of islands from the tree's.
RowMatrix::Place RowMatrix::at(const Model& model, int block, int row, int tree) const {
  if (!islands) return {dense + std::size_t(row) * ld, ld, 0};

  // In the layout of the island's Y a block has one segment for each of its trees.
  const int island = islands->of_block(block);
  const int index = islands->tree_index[tree];
  const ConstraintProblem& problem = islands->pool[island].problem;
  const auto& segments = problem.segments[islands->block_index[block]];
  const RowSegment& segment = segments[0].tree == index ? segments[0] : segments[1];
  return {of_island[island] + segment.start, padded(problem.tree_size[index]), model.tree_first_dof[tree]};
}

PathTarget DofMatrix::at(const Model& model, int tree_of_rows, int tree_of_columns) const {
  if (!islands) {
    const int row = model.tree_first_dof[tree_of_rows];
    const int column = model.tree_first_dof[tree_of_columns];
    return {dense + std::size_t(row) * ld + column, ld, ld - column};
  }

  // Dofs count from the island's first.
  const int index = islands->of_tree(tree_of_rows);
  const Island& island = islands->pool[index];
  const int width = padded(island.num_dofs());
  const int row = island.tree_start[islands->tree_index[tree_of_rows]];
  const int column = island.tree_start[islands->tree_index[tree_of_columns]];
  return {of_island[index] + std::size_t(row) * width + column, width, width - column};
}

}  // namespace coulomb

#include "coulomb/solvers/single_methods/block_lemke.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr int largest = 1000;      // variables: a walk of about as many pivots of size^2 operations
constexpr int cone_sides = 8;      // of the polygon that stands for a cone
constexpr double normals = 0.1;    // entry of d in the rows of normals: walks are shortest
constexpr double rounding = 1e-8;  // z0 of a ray that only rounding makes: redundant constraints that agree to 1e-11
constexpr double close = 1e-6;     // residual of a walk that rounding has not led astray
constexpr double never = 1e-6;     // z0 of a ray that constraints make which contradict each other

// A cone as the polygon that stands for it.
Block polygonal(const Block& block) {
  Block b = block;
  if (b.type == BlockType::cone) {
    b.facets = cone_sides;
    b.inscribed = false;
  }
  return b;
}

}  // namespace

void BlockLemke::add(Kind kind, int block, int row, double x, double y) {
  if (size_ == static_cast<int>(variables_.size())) {
    variables_.resize(2 * variables_.size() + 64);
  }
  variables_[size_++] = {kind, block, row, x, y};
}

/// Variables >= 0 of every block: impulses along vertices of its polygon, the slip that goes with them, ends of a box.
void BlockLemke::list(const ScaledProblem& p) {
  size_ = 0;
  approximate_ = false;
  for (int b = 0; b < p.num_blocks; ++b) {
    const Block block = polygonal(p.blocks[b]);
    approximate_ = approximate_ || block.type == BlockType::cone;
    const int r = block.row;

    if (block.type == BlockType::limit) {
      add(Kind::plus, b, r, 1, 0);
    }
    if (block.type == BlockType::box) {
      add(Kind::box, b, r, 1, 0);
      add(Kind::box_slack, b, r, 0, 0);
    }
    for (int i = r; block.type == BlockType::equality && i < r + block.size; ++i) {
      add(Kind::plus, b, i, 1, 0);
      add(Kind::minus, b, i, -1, 0);
    }

    // A contact: its normal, and friction as a sum over vertices.
    if (!block.is_contact()) continue;
    add(Kind::plus, b, r + 2, 1, 0);
    if (!(block.mu > 0)) continue;

    const FrictionPolygon& polygon = friction_polygon(block);
    const int first_vertex = polygon.is_side(0) ? 1 : 0;
    for (int f = first_vertex; f < 2 * polygon.sides; f += 2) {
      const double* at = polygon.point[f];
      add(Kind::vertex, b, r, at[0], at[1]);
    }
    add(Kind::slip, b, r, 0, 0);

    // Further tangents: both ends of their intervals.
    for (int k = 2; k < block.tangents(); ++k) {
      const int i = block.tangent(k);
      add(Kind::vertex, b, i, 1, 0);
      add(Kind::vertex, b, i, -1, 0);
      add(Kind::slip, b, i, 0, 0);
    }
  }
}

/// The entries of M that no impulse makes.
double BlockLemke::couples(const ScaledProblem& p, const Variable& a, const Variable& b) const {
  if (a.block != b.block) return 0;
  if (a.kind == Kind::vertex && b.kind == Kind::slip) return a.row == b.row ? 1 : 0;
  if (a.kind == Kind::slip && b.kind == Kind::vertex) return a.row == b.row ? -1 : 0;
  if (a.kind == Kind::slip && b.kind == Kind::plus) return p.blocks[a.block].mu;
  if (a.kind == Kind::box && b.kind == Kind::box_slack) return 1;
  if (a.kind == Kind::box_slack && b.kind == Kind::box) return -1;
  return 0;
}

/// M and q: G on the directions of the variables, boxes from their lower ends.
void BlockLemke::assemble(const ScaledProblem& p) {
  if (static_cast<int>(g_.size()) < p.ld) {
    g_.resize(static_cast<std::size_t>(p.ld));
  }

  // Velocities with every box at its lower end.
  std::copy_n(p.g.begin(), p.n, g_.begin());
  for (int b = 0; b < p.num_blocks; ++b) {
    if (p.blocks[b].type != BlockType::box) continue;
    const int r = p.blocks[b].row;
    for (int i = 0; i < p.n; ++i)
      g_[i] -= p.G[static_cast<std::size_t>(i) * p.ld + r] * p.bound[b];
  }

  // A row for every variable.
  lemke_.resize(size_);
  for (int i = 0; i < size_; ++i) {
    const Variable& a = variables_[i];
    const double* G = p.G.data() + static_cast<std::size_t>(a.row) * p.ld;
    double* M = lemke_.M.data() + static_cast<std::size_t>(i) * lemke_.ld;
    for (int j = 0; j < size_; ++j) {
      const Variable& v = variables_[j];
      double sum = a.x * v.x * G[v.row];
      if (v.y != 0) {
        sum += a.x * v.y * G[v.row + 1];
      }
      if (a.y != 0) {
        const double* G_next = G + p.ld;
        const double of_y = v.y != 0 ? a.y * v.y * G_next[v.row + 1] : 0.0;
        sum += a.y * v.x * G_next[v.row] + of_y;
      }
      M[j] = sum + couples(p, a, v);
    }

    // Between its ends a box has twice its bound.
    if (a.kind == Kind::box_slack) {
      lemke_.q[i] = 2 * p.bound[a.block];
    } else {
      const double of_y = a.y != 0 ? a.y * g_[a.row + 1] : 0.0;
      lemke_.q[i] = a.x * g_[a.row] + of_y;
    }
  }
}

/// One walk; other: with another d.
BlockLemke::End BlockLemke::walk(const ScaledProblem& p, bool other, Iterate& iterate, int& iterations) {
  // Another d differs in all entries, by the golden section.
  for (int i = 0; i < size_; ++i) {
    lemke_.d[i] = variables_[i].kind == Kind::plus ? normals : 1.0;
    if (!other) continue;
    const double share = std::fmod(0.6180339887 * i, 1.0);
    lemke_.d[i] *= 1 + 0.5 * share;
  }

  const bool solved = lemke_.solve(10 * size_ + 100);
  iterations += lemke_.pivots;

  // Impulses of the variables.
  std::fill_n(iterate.lambda.begin(), p.ld, 0.0);
  for (int i = 0; i < size_; ++i) {
    const Variable& v = variables_[i];
    if (v.kind == Kind::box) {
      iterate.lambda[v.row] -= p.bound[v.block];
    }
    iterate.lambda[v.row] += v.x * lemke_.z[i];
    if (v.y != 0) {
      iterate.lambda[v.row + 1] += v.y * lemke_.z[i];
    }
  }

  // What the walk has found.
  iterate.evaluate(p);
  const bool near = approximate_ ? std::isfinite(iterate.residual) : iterate.residual <= close;
  if (solved || lemke_.z0 < rounding) return near ? End::solved : End::lost;
  return lemke_.ray && lemke_.z0 > never ? End::ray : End::lost;
}

BlockLemke::End BlockLemke::solve(const ScaledProblem& p, Iterate& iterate, int& iterations) {
  list(p);
  if (size_ > largest) return End::lost;
  assemble(p);
  const End end = walk(p, false, iterate, iterations);
  if (end == End::solved) return end;

  // Rounding depends on d, contradictions do not.
  return walk(p, true, iterate, iterations);
}

}  // namespace coulomb

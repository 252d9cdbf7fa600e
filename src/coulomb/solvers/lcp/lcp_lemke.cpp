#include "coulomb/solvers/lcp/lcp_lemke.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coulomb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int largest = 2000;      // variables
constexpr double normals = 0.1;    // entry of d in rows that carry friction: walks are shorter
constexpr double rounding = 1e-8;  // z0 of a ray that only rounding makes

}  // namespace

/// Variables >= 0: rows from the end that they begin at, those with two ends with a slack.
void LcpLemke::list(const BoxedLcp& p) {
  variables_.clear();
  start_.assign(p.n, 0.0);

  for (int i = 0; i < p.n; ++i) {
    const bool below = p.lo[i] > -infinity;
    const bool above = p.hi[i] < infinity;
    const bool friction = p.is_friction(i);
    if (friction || (below && above)) {
      if (!friction) {
        start_[i] = p.lo[i];
      }

      // Without width between its ends the row is fixed.
      const bool fixed = friction ? p.hi[i] == 0 : p.lo[i] == p.hi[i];
      if (fixed) continue;
      variables_.push_back({i, 1, false, true});
      variables_.push_back({i, 1, true, true});
    } else {
      if (below || above) {
        start_[i] = below ? p.lo[i] : p.hi[i];
      }
      if (!above) {
        variables_.push_back({i, 1, false, false});
      }
      if (!below) {
        variables_.push_back({i, -1, false, false});
      }
    }
  }

  // Friction begins at its lower end, whatever its normal does.
  for (int i = 0; i < p.n; ++i)
    if (p.is_friction(i)) {
      start_[i] = -p.hi[i] * start_[p.normal[i]];
    }
}

/// x += what variable k = z does: its row, and friction that follows it.
void LcpLemke::expand(const BoxedLcp& p, int k, double z, double* x) const {
  const Variable& v = variables_[k];
  if (v.slack) return;
  x[v.row] += v.sign * z;
  if (p.is_friction(v.row)) return;
  for (int f = 0; f < p.n; ++f)
    if (p.normal[f] == v.row) {
      x[f] -= p.hi[f] * v.sign * z;
    }
}

/// In the units of the scale, in which the pivots' tolerances mean something: x_k in ref_k / root_k, w_i in ref_i root_i.
void LcpLemke::assemble(const BoxedLcp& p, const LcpScale& scale) {
  const int size = static_cast<int>(variables_.size());
  lemke_.resize(size);
  image_.assign(p.n, 0.0);
  column_.assign(p.n, 0.0);

  // M, column by column.
  for (int k = 0; k < size; ++k) {
    const Variable& v = variables_[k];
    std::fill(column_.begin(), column_.end(), 0.0);
    expand(p, k, scale.ref[v.row] / scale.root[v.row], column_.data());

    // A times the column, which has few entries.
    std::fill(image_.begin(), image_.end(), 0.0);
    for (int j = 0; j < p.n; ++j) {
      const double x = column_[j];
      if (x == 0) continue;
      for (int i = 0; i < p.n; ++i)
        image_[i] += p.A[static_cast<std::size_t>(i) * p.ld + j] * x;
    }

    // Rows of A, and slacks beside their own variables.
    for (int i = 0; i < size; ++i) {
      const Variable& u = variables_[i];
      double& entry = lemke_.M[static_cast<std::size_t>(i) * lemke_.ld + k];
      if (!u.slack) {
        entry = u.sign * image_[u.row] / (scale.root[u.row] * scale.ref[u.row]);
      }
      const bool same_row = u.row == v.row;
      if (!u.slack && v.slack && same_row) {
        entry = 1;
      }
      if (u.slack && !v.slack && same_row) {
        entry = -1;
      }
      const bool of_normal = p.normal[u.row] == v.row;
      if (u.slack && !v.slack && of_normal) {  // 2 hi x_j - y >= 0
        const double unit_of_normal = scale.ref[v.row] / scale.root[v.row];
        entry = 2 * p.hi[u.row] * v.sign * unit_of_normal * scale.root[u.row] / scale.ref[u.row];
      }
    }
  }

  // q at the start, and d: normals enter late.
  p.multiply(start_.data(), image_.data());
  for (int i = 0; i < size; ++i) {
    const Variable& u = variables_[i];
    const bool friction = p.is_friction(u.row);
    const double root = scale.root[u.row];
    if (u.slack) {
      const double width = friction ? 2 * p.hi[u.row] * start_[p.normal[u.row]] : p.hi[u.row] - p.lo[u.row];
      lemke_.q[i] = width * root / scale.ref[u.row];
    } else {
      lemke_.q[i] = u.sign * image_[u.row] / (root * scale.ref[u.row]);
    }
    const bool carries = std::find(p.normal.begin(), p.normal.end(), u.row) != p.normal.end();
    lemke_.d[i] = carries && !u.slack ? normals : 1.0;
  }
}

bool LcpLemke::solve(const BoxedLcp& p, const LcpScale& scale, std::vector<double>& x) {
  list(p);
  pivots = 0;
  ray = false;
  const int size = static_cast<int>(variables_.size());
  if (size > largest) return false;

  assemble(p, scale);
  const bool solved = lemke_.solve(10 * size + 100);
  pivots = lemke_.pivots;

  // In the units of the problem.
  x = start_;
  for (int k = 0; k < size; ++k) {
    const int row = variables_[k].row;
    expand(p, k, lemke_.z[k] * scale.ref[row] / scale.root[row], x.data());
  }

  // A ray leads where no solution is: the direction in rows that have one end.
  if (solved || lemke_.z0 < rounding) return true;

  ray = lemke_.ray;
  direction.assign(p.n, 0.0);
  for (int k = 0; ray && k < size; ++k) {
    const Variable& v = variables_[k];
    if (v.two_sided) continue;
    direction[v.row] += v.sign * lemke_.direction[k] * scale.ref[v.row] / scale.root[v.row];
  }
  return false;
}

}  // namespace coulomb

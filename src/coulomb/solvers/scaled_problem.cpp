// Scaling, residual, modes and margins of the constraint problem (definitions in the header).
#include "coulomb/solvers/scaled_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "coulomb/base/simd.hpp"
#include "coulomb/linalg/dense.hpp"
#include "coulomb/solvers/delassus.hpp"
#include "coulomb/solvers/friction_pyramid.hpp"

namespace coulomb {
namespace {

constexpr double tie = 1e-8;

/// Without overflow: of numbers whose squares are not finite too.
double safe_norm(const double* x, int n) {
  double largest = 0;
  for (int i = 0; i < n; ++i)
    largest = std::max(largest, std::abs(x[i]));

  // Where squares stay finite, plainly ...
  double sum = 0;
  if (largest < 1e150) {
    for (int i = 0; i < n; ++i)
      sum += x[i] * x[i];
    return std::sqrt(sum);
  }

  // ... and else in units of the largest.
  for (int i = 0; i < n; ++i)
    sum += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(sum);
}

// S^(1/2) G S^(1/2), block factors in d.
COULOMB_SIMD void scale_matrix(const double* G, const double* d, int n, int ld, double* __restrict out) {
  for (int i = 0; i < n; ++i) {
    const double di = d[i];
    for (int j = 0; j < ld; ++j)
      out[static_cast<long>(i) * ld + j] = G[static_cast<long>(i) * ld + j] * di * d[j];
  }
}

template <class Vector>
void grow(Vector& v, int size) {
  if (v.size() < static_cast<std::size_t>(size)) {
    v.resize(size);
  }
}

}  // namespace

void project_cone(const Block& block, double* p) {
  const double mu = block.mu;
  const double t = tangential_norm(block, p);
  if (p[2] >= 0 && t <= mu * p[2]) return;  // without friction, 0 <= 0 holds below the tip too

  // Below the polar cone the tip is nearest.
  const double along = p[2] + mu * t;
  if (along <= 0) {
    std::fill_n(p, block.size, 0.0);
    return;
  }
  // Else a point of the mantle is.
  const double normal = along / (1 + mu * mu);
  const double tangent = t > 0 ? mu * normal / t : 0.0;
  for (int i = 0; i < block.size; ++i)
    p[i] *= tangent;
  p[2] = normal;
}

/// ||l - P_K(l - v - [0, 0, mu ||v_T||])||. Differences first: without an impulse the speed of a slip, however large, cancels exactly.
/// size: that of the block, which the compiler knows where it is three.
template <class Size>
double cone_residual(const Block& block, Size size, const double* l, const double* v) {
  const bool no_force = l[0] == 0 && l[1] == 0 && l[2] == 0;
  if (no_force && v[2] >= 0 && std::all_of(l + 3, l + size, [](double x) { return x == 0; })) return 0;  // open
  const double mu = block.mu;
  const double speed = tangential_norm(size, v);
  double p[1 + max_tangents] = {};
  for (int i = 0; i < size; ++i)
    p[i] = l[i] - v[i];
  const double zn = p[2];
  const double t = tangential_norm(size, p);

  // The projection of z, De Saxce's term taken from its normal part.
  p[2] = zn - mu * speed;
  if (p[2] < 0 || t > mu * p[2]) {
    const double normal = std::max(0.0, (zn + mu * (t - speed)) / (1 + mu * mu));
    const double tangent = t > 0 ? mu * normal / t : 0.0;
    for (int i = 0; i < size; ++i)
      p[i] *= tangent;
    p[2] = normal;
  }

  // How far it lies from the impulse.
  double sum = 0;
  for (int i = 0; i < size; ++i)
    sum += (l[i] - p[i]) * (l[i] - p[i]);
  return std::sqrt(sum);
}

double cone_residual(const Block& block, const double* l, const double* v) {
  if (block.size == 3) return cone_residual(block, std::integral_constant<int, 3>(), l, v);
  return cone_residual(block, block.size, l, v);
}

// Of the compliance beside the diagonal: joints that move nothing in the neutral pose have any.
constexpr double most_weight = 1e3;
constexpr double rounding = 1e-14;   // of the diagonal
constexpr double immovable = 1e-20;  // scaled diagonal of a row of zeros, up to rounding

/// Scaled variables: one factor a block, one reference velocity (docs/theory/contact.md, section 3).
void ScaledProblem::assign(const ConstraintProblem& problem) {
  n = problem.n;
  ld = problem.ld;
  blocks = problem.blocks.data();
  num_blocks = static_cast<int>(problem.blocks.size());
  rho = 1;
  factored = !problem.has_G;
  has_pyramids = false;
  for (int b = 0; b < num_blocks; ++b)
    has_pyramids = has_pyramids || blocks[b].type == BlockType::pyramid;

  for (auto* values : {&given_g_, &g, &inverse_root, &diagonal_, &rigid, &E, &weight_})
    grow(*values, ld);
  grow(bound, num_blocks);

  find_scaling(problem);
  scale_velocities(problem);
  scale_matrices(problem);
  for (int b = 0; b < num_blocks; ++b)
    bound[b] = blocks[b].bound / (inverse_root[blocks[b].row] * ref);
}

/// One scalar a block, the root of the mean of its diagonal, and the size of the velocities that have to be reached.
void ScaledProblem::find_scaling(const ConstraintProblem& problem) {
  // The diagonal of G + R.
  for (int b = 0; b < num_blocks; ++b) {
    for (int k = 0; k < blocks[b].size; ++k) {
      const int i = blocks[b].row + k;
      const double own = factored ? delassus_diagonal(problem, b, k) : problem.G[static_cast<long>(i) * ld + i];
      diagonal_[i] = own + problem.R[i];
    }
  }

  // The size of each block: the mean of its diagonal.
  double largest = 0;
  std::vector<double>& size = bound;  // borrowed until the scale is known
  for (int b = 0; b < num_blocks; ++b) {
    double trace = 0;
    for (int i = blocks[b].row; i < blocks[b].row + blocks[b].size; ++i)
      trace += diagonal_[i];
    size[b] = std::min(trace, std::numeric_limits<double>::max()) / blocks[b].size;
    largest = std::max(largest, size[b]);
  }
  if (!(largest > 0)) largest = 1;

  // Blocks that nothing moves take the largest scale: those whose diagonal is rounding beside the others, and beside what moves them in
  // another pose, since a body may well be 1e16 times as heavy as others. Gaps that stay open do not count in the velocities.
  ref = 0;
  for (int b = 0; b < num_blocks; ++b) {
    const Block& block = blocks[b];
    const double elsewhere = problem.W.empty() ? largest : std::min(largest, problem.W[block.row]);
    const double d = 1.0 / std::sqrt(size[b] > rounding * elsewhere ? size[b] : largest);
    for (int i = block.row; i < block.row + block.size; ++i)
      inverse_root[i] = d;
    const bool open = block.speculative && problem.g[block.normal()] >= 0;
    if (!open) {
      const double asked = safe_norm(problem.g.data() + block.row, block.size);
      ref = std::max(ref, std::max(asked, problem.least_velocity) * d);
    }
  }
  if (!(ref > 0)) ref = 1;
  for (int i = n; i < ld; ++i)
    inverse_root[i] = 0;
}

/// g of level 0; no compliance as yet.
void ScaledProblem::scale_velocities(const ConstraintProblem& problem) {
  for (int i = 0; i < ld; ++i) {
    given_g_[i] = i < n ? problem.g[i] * inverse_root[i] / ref : 0.0;
    E[i] = 0;
  }
  std::copy_n(given_g_.begin(), ld, g.begin());
}

/// G or Y, its diagonal, R and the weights of the compliance.
void ScaledProblem::scale_matrices(const ConstraintProblem& problem) {
  const bool weighted = !problem.W.empty();
  for (int i = 0; i < n; ++i) {
    const double d = inverse_root[i];
    rigid[i] = problem.R[i] * d * d;
    diagonal_[i] *= d * d;
    weight_[i] = weighted ? std::clamp(problem.W[i] * d * d, 1 / most_weight, most_weight) : 1.0;
  }

  // A tangential direction that nothing can move (planar robots) gets unit compliance: its impulse is then zero, c = 0 there as
  // before, and G stays regular.
  for (int b = 0; b < num_blocks; ++b) {
    if (!blocks[b].is_contact()) continue;
    for (int k = 0; k < blocks[b].tangents(); ++k) {
      const int i = blocks[b].tangent(k);
      if (diagonal_[i] >= immovable || problem.g[i] != 0) continue;
      diagonal_[i] = 1;
      rigid[i] = 1;
    }
  }

  // The matrix itself, sparse by trees or dense.
  if (factored) {
    Y.assign(problem, inverse_root.data());
    grow(w_, Y.columns());
  } else {
    grow(G, ld * n);
    scale_matrix(problem.G.data(), inverse_root.data(), n, ld, G.data());
    for (int i = 0; i < n; ++i)
      G[static_cast<long>(i) * ld + i] = diagonal_[i];
  }
}

void ScaledProblem::assign_scaling(const ConstraintProblem& problem, const double* root, double reference) {
  n = problem.n;
  ld = problem.ld;
  blocks = problem.blocks.data();
  num_blocks = static_cast<int>(problem.blocks.size());
  grow(inverse_root, ld);
  std::copy(root, root + ld, inverse_root.begin());
  ref = reference;
}

/// E = epsilon W, docs/theory.md (C5); a dense matrix carries it on its diagonal.
void ScaledProblem::set_compliance(double epsilon) {
  for (int i = 0; i < n; ++i)
    E[i] = epsilon * weight_[i];
  if (!factored)
    for (int i = 0; i < n; ++i)
      G[static_cast<long>(i) * ld + i] = diagonal_[i] + E[i];
  set_level(nullptr);
}

/// c = (G + E) x_k + g - E x_(k-1), docs/theory.md (C6).
void ScaledProblem::set_level(const double* previous) {
  std::copy_n(given_g_.begin(), ld, g.begin());
  if (!previous) return;
  for (int i = 0; i < n; ++i)
    g[i] -= E[i] * previous[i];
}

/// Dense, or Y (Y^T lambda) by trees.
void ScaledProblem::add_product(const double* lambda, double* c) const {
  if (!factored) return dense::add_weighted_rows(G.data(), n, ld, lambda, c);
  Y.times_transposed(lambda, w_.data());
  Y.add_times(w_.data(), c);
  for (int i = 0; i < n; ++i)
    c[i] += (rigid[i] + E[i]) * lambda[i];
}

void ScaledProblem::velocity(const double* lambda, double* c) const {
  std::copy(g.begin(), g.begin() + ld, c);
  add_product(lambda, c);
}

/// The level's velocity without what the compliance adds.
void ScaledProblem::exact_velocity(const double* lambda, double* c) const {
  std::copy(given_g_.begin(), given_g_.begin() + ld, c);
  add_product(lambda, c);
  for (int i = 0; i < n; ++i)
    c[i] -= E[i] * lambda[i];
}

/// How far lambda is from the projection of z = lambda - rho c, docs/theory.md (C8).
double ScaledProblem::block_residual(int b, const double* lambda, const double* c) const {
  const Block& block = blocks[b];
  const double* l = lambda + block.row;
  double v[6];
  for (int i = 0; i < block.size; ++i)
    v[i] = rho * c[block.row + i];
  switch (block.type) {
    case BlockType::cone: return cone_residual(block, l, v);
    case BlockType::pyramid: return pyramid_residual(block, l, v);
    case BlockType::limit: return std::abs(l[0] - std::max(0.0, l[0] - v[0]));
    case BlockType::box: return std::abs(l[0] - std::clamp(l[0] - v[0], -bound[b], bound[b]));
    default: {
      double sum = 0;
      for (int i = 0; i < block.size; ++i)
        sum += v[i] * v[i];
      return std::sqrt(sum);
    }
  }
}

double ScaledProblem::residual(const double* lambda, const double* c) const {
  double worst = 0;
  for (int b = 0; b < num_blocks; ++b) {
    const double r = block_residual(b, lambda, c);
    if (!(r <= worst)) worst = r;  // lets NaN through
    if (worst != worst) break;
  }
  return worst;
}

void ScaledProblem::project(double* lambda) const {
  for (int b = 0; b < num_blocks; ++b) {
    double* l = lambda + blocks[b].row;
    if (blocks[b].type == BlockType::cone) {
      project_cone(blocks[b], l);
    }
    if (blocks[b].type == BlockType::pyramid) {
      project_pyramid(blocks[b], l);
    }
    if (blocks[b].type == BlockType::limit) {
      l[0] = std::max(0.0, l[0]);
    }
    if (blocks[b].type == BlockType::box) {
      l[0] = std::clamp(l[0], -bound[b], bound[b]);
    }
  }
}

void ScaledProblem::to_scaled(const double* lambda, double* scaled) const {
  for (int i = 0; i < n; ++i)
    scaled[i] = lambda[i] / (inverse_root[i] * ref);
  for (int i = n; i < ld; ++i)
    scaled[i] = 0;
}

void ScaledProblem::from_scaled(const double* scaled, const double* scaled_c, double* lambda, double* c) const {
  for (int i = 0; i < n; ++i) {
    lambda[i] = scaled[i] * inverse_root[i] * ref;
    c[i] = scaled_c[i] * ref / inverse_root[i];
  }
}

/// The mode that z = lambda - rho c projects to.
BlockMode ScaledProblem::mode(int b, const double* lambda, const double* c) const {
  const Block& block = blocks[b];
  const double* l = lambda + block.row;
  double v[6];
  for (int i = 0; i < block.size; ++i)
    v[i] = rho * c[block.row + i];

  BlockMode m;
  switch (block.type) {
    case BlockType::equality: m.mode = Mode::active; break;
    case BlockType::limit: m.mode = l[0] - v[0] > 0 ? Mode::active : Mode::separating; break;
    case BlockType::box: {
      const double z = l[0] - v[0];
      m.mode = z > bound[b] ? Mode::upper : z < -bound[b] ? Mode::lower : Mode::sticking;
      if (bound[b] <= 0) m.mode = z > 0 ? Mode::upper : Mode::lower;  // no friction: never c = 0
      break;
    }
    case BlockType::pyramid: {
      const PyramidMode p = pyramid_mode(block, l, v);
      m.mode = p.mode;
      if (p.facet >= 0) {
        set_facet(b, p.facet, m);
      }
      break;
    }
    case BlockType::cone: return cone_mode(block, l, v);
  }
  return m;
}

/// Of a cone, v = rho c; a sliding one also with its direction and k.
BlockMode ScaledProblem::cone_mode(const Block& block, const double* l, const double* v) const {
  BlockMode m;
  const double mu = block.mu;
  double z[1 + max_tangents];
  const double zn = l[2] - v[2];
  if (!(zn > 0)) return m;
  z[0] = l[0] - v[0];
  z[1] = l[1] - v[1];
  for (int i = 3; i < block.size; ++i)
    z[i] = l[i] - v[i];

  // Inside the disc of its normal impulse it sticks.
  const double t = tangential_norm(block, z);
  const double r = mu * zn;
  if (mu > 0 && t <= r) {
    m.mode = Mode::sticking;
    return m;
  }

  // Outside it slides against the direction of z.
  m.mode = Mode::sliding;
  if (t > 0) {
    tangential_direction(block, z, t, m.n);
    m.k = rho * r / (t + (rho - 1) * r);  // alpha = ||c_T|| / (mu lambda_N) whatever rho is
  }
  return m;
}

void ScaledProblem::set_facet(int b, int facet, BlockMode& m) const {
  m.facet = facet;
  pyramid_point(blocks[b], facet, m.n.data());
  m.k = 1;
}

double ScaledProblem::margin(int b, const double* lambda, const double* c, Mode& label, int* facet) const {
  const Block& block = blocks[b];
  const double* l = lambda + block.row;
  double v[6];
  for (int i = 0; i < block.size; ++i)
    v[i] = rho * c[block.row + i];

  // Polygons know their own borders; equalities have none.
  if (facet) *facet = -1;
  if (block.type == BlockType::pyramid) {
    PyramidMode p;
    const double margin = pyramid_margin(block, tie, l, v, p);
    label = p.mode;
    if (facet) *facet = p.facet;
    return margin;
  }
  if (block.type == BlockType::equality) {
    label = Mode::active;
    return std::numeric_limits<double>::infinity();
  }

  // One border at zero, or two at the bounds.
  const int normal = block.normal() - block.row;
  const double z = l[normal] - v[normal];
  if (block.type == BlockType::limit) {
    label = z > tie ? Mode::active : Mode::separating;
    return std::abs(z);
  }
  if (block.type == BlockType::box) {
    const double outside = std::abs(z) - bound[b];
    label = outside <= tie && bound[b] > 0 ? Mode::sticking : z > 0 ? Mode::upper : Mode::lower;
    return bound[b] > 0 ? std::abs(outside) : std::numeric_limits<double>::infinity();
  }

  // A cone has the border at the tip and the mantle.
  double difference[1 + max_tangents] = {};
  for (int i = 0; i < block.size; ++i)
    difference[i] = l[i] - v[i];
  const double t = tangential_norm(block, difference);
  const double outside = (t - block.mu * z) / std::sqrt(1 + block.mu * block.mu);
  if (z <= tie) {
    label = Mode::separating;
    return std::abs(z);
  }
  if (block.mu == 0) {
    label = Mode::sliding;
    return z;
  }
  label = outside <= tie ? Mode::sticking : Mode::sliding;
  return std::min(std::abs(outside), z);
}

}  // namespace coulomb

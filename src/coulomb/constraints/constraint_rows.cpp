#include "coulomb/constraints/constraint_rows.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "coulomb/base/small_math.hpp"
#include "coulomb/collision/contact.hpp"
#include "coulomb/dynamics/dynamics.hpp"
#include "coulomb/model.hpp"

namespace coulomb {

void ConstraintRows::clear() {
  body_rows.clear();
  dof_rows.clear();
  keys.clear();
  blocks.clear();
  bias.clear();
  compliance.clear();
  weight.clear();
  bias_slopes.clear();
  turning.clear();
  soft_blocks.clear();
  num_rows = num_blocks = 0;
}

void ConstraintRows::keep(const std::vector<unsigned char>& blocks_kept) {
  // Blocks, and what there is per row.
  int row = 0;
  int block = 0;
  std::size_t compliant = 0;  // rows without an entry come last
  for (int b = 0; b < num_blocks; ++b) {
    if (!blocks_kept[b]) continue;
    const Block from = blocks[b];
    for (int i = 0; i < from.size; ++i) {
      bias[row + i] = bias[from.row + i];
      weight[row + i] = weight[from.row + i];
      if (std::size_t(from.row) + i < compliance.size()) {
        compliance[compliant++] = compliance[from.row + i];
      }
    }
    keys[block] = keys[b];
    blocks[block] = from;
    blocks[block].row = row;
    row += from.size;
    ++block;
  }
  num_rows = row;
  num_blocks = block;
  keys.resize(block);
  blocks.resize(block);
  bias.resize(row);
  weight.resize(row);
  compliance.resize(compliant);

  // Their geometry, each kind in the order of the blocks.
  const auto gone = [&](const auto& rows) { return !blocks_kept[rows.block]; };
  std::erase_if(body_rows, gone);
  std::erase_if(dof_rows, gone);
  auto of_bodies = body_rows.begin();
  auto of_dofs = dof_rows.begin();
  const auto number = [&](auto& rows, int b) {
    rows->block = b;
    rows->row = blocks[b].row;
    ++rows;
  };
  for (int b = 0; b < num_blocks; ++b) {
    const bool of_body =
        of_bodies != body_rows.end() && (of_dofs == dof_rows.end() || of_bodies->block < of_dofs->block);
    if (of_body)
      number(of_bodies, b);
    else
      number(of_dofs, b);
  }
}

namespace {

constexpr double rounding_speed = 1e-10;  // m/s, rad/s

/// Is a distance from a change of slope nothing but rounding?
bool at_zero(double distance) { return std::abs(distance) <= corner_width; }

}  // namespace

Bias one_sided_bias(const ConstraintOptions& options, double phi) {
  // An instant closes no gap.
  const double h = options.timestep;
  if (options.gaps == GapRule::impact) return {rounding_speed, 0};
  const double correction = options.baumgarte / h;
  const bool joined = options.baumgarte > 0 || options.gaps == GapRule::held;

  // Where the slope changes: between small gaps and others, at the distance zero or the slop, and at the largest speed.
  const double violation = phi + options.slop;
  const double excess = violation + options.max_correction_speed / correction;
  const bool ends_at_zero = at_zero(phi) && (options.slop > 0 || (!joined && options.baumgarte < 1));
  const bool ends_at_slop = at_zero(violation) && options.slop > 0;
  const bool small_gap_ends = joined && (at_zero(phi - smooth_gap) || at_zero(phi - open_gap));
  Bias bias;
  bias.corner = ends_at_zero || small_gap_ends || (correction > 0 && (ends_at_slop || at_zero(excess)));

  // The slope of what is violated; none beyond the largest speed.
  const double violated_slope = violation <= corner_width && excess > corner_width ? correction : 0.0;

  // Violated: a share of the violation.
  if (phi < 0) {
    bias.value = std::clamp(correction * violation, -options.max_correction_speed, 0.0);
    bias.slope = violated_slope;
    return bias;
  }

  // Open: it may close, a small one by the same share.
  if (!joined || phi > open_gap + corner_width) {
    bias.value = phi / h;
    bias.slope = 1 / h;
  } else if (phi > smooth_gap + corner_width) {
    bias.slope = (open_gap / h - correction * smooth_gap) / (open_gap - smooth_gap);
    bias.value = correction * smooth_gap + bias.slope * (phi - smooth_gap);
  } else {
    bias.value = correction * phi;
    bias.slope = correction;
  }
  if (ends_at_zero) bias.slope = violated_slope;
  return bias;
}

// --- rows applied to velocities and to impulses -------------------------------------------------------------------------------

void link_twists(const Model& model, const DynamicsWorkspace& dynamics, const double* x, double* link_twist) {
  const double* J = dynamics.columns.data();
  for (int d = 0; d < model.nv; ++d) {
    double* out = link_twist + 8 * d;
    const int parent = model.dof_parent[d];
    for (int i = 0; i < 6; ++i)
      out[i] = (parent >= 0 ? link_twist[8 * parent + i] : 0.0) + J[8 * d + i] * x[d];
  }
}

const double* body_link_twist(const Model& model, const double* link_twist, int body) {
  static constexpr double zero[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const int d = model.body_last_dof[body];
  return d >= 0 ? link_twist + 8 * d : zero;
}

void relative_point(const Model& model, const DynamicsWorkspace& dynamics, int body, const double* p, double* r) {
  const int tree = model.body_tree[body];
  if (tree < 0)
    copy3(p, r);
  else
    sub3(p, dynamics.reference.data() + 3 * tree, r);
}

namespace {

/// Velocity of the material point p of a body under its twist (about the tree's reference).
void point_velocity(const Model& model, const DynamicsWorkspace& dynamics, int body, const double* twist,
                    const double* p, double* out) {
  double r[3];
  relative_point(model, dynamics, body, p, r);
  copy3(twist, out);
  add_cross3(twist + 3, r, out);
}

/// A force and a torque at a point.
struct PointWrench {
  double force[3] = {0, 0, 0};
  double torque[3] = {0, 0, 0};
};

/// wrench (nv x 8, about the trees' references) += sign times this, at the body's last dof.
void add_wrench(const Model& model, const DynamicsWorkspace& dynamics, int body, const double* p,
                const PointWrench& at_point, double sign, double* wrench) {
  const int d = model.body_last_dof[body];
  if (d < 0) return;

  double r[3];
  double moment[3];
  relative_point(model, dynamics, body, p, r);
  cross3(r, at_point.force, moment);
  for (int i = 0; i < 3; ++i) {
    wrench[8 * d + i] += sign * at_point.force[i];
    wrench[8 * d + 3 + i] += sign * (moment[i] + at_point.torque[i]);
  }
}

}  // namespace

void contact_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const Contact& c,
                      double* velocity) {
  double va[3];
  double vb[3];
  point_velocity(model, dynamics, c.body_a, body_link_twist(model, link_twist, c.body_a), c.point, va);
  point_velocity(model, dynamics, c.body_b, body_link_twist(model, link_twist, c.body_b), c.point, vb);
  sub3(va, vb, velocity);
}

double normal_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist,
                       const Contact& c) {
  double velocity[3];
  contact_velocity(model, dynamics, link_twist, c, velocity);
  return dot3(c.normal, velocity);
}

double row_velocity(const Model& model, const DynamicsWorkspace& dynamics, const double* link_twist, const BodyRows& b,
                    int i) {
  double sum = 0;
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    double r[3];
    double e[6];
    relative_point(model, dynamics, body, sign > 0 ? b.point_a : b.point_b, r);
    b.covector(i, r, e);
    sum += sign * dot6(body_link_twist(model, link_twist, body), e);
  }
  return sum;
}

void add_body_row(const Model& model, const DynamicsWorkspace& dynamics, const BodyRows& b, int i, double* J) {
  for (const double sign : {1.0, -1.0}) {
    const int body = sign > 0 ? b.body_a : b.body_b;
    const int last = model.body_last_dof[body];
    if (last < 0) continue;
    double r[3];
    double e[6];
    relative_point(model, dynamics, body, sign > 0 ? b.point_a : b.point_b, r);

    // The row as a covector on the twist, along the body's root path.
    b.covector(i, r, e);
    const int* path = model.dof_path.data() + model.dof_row[last];
    for (int k = 0; k <= model.dof_depth[last]; ++k)
      J[path[k]] += sign * dot6(dynamics.columns.data() + 8 * path[k], e);
  }
}

void apply_rows(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows, const double* x,
                const double* link_twist, double* out) {
  // Rows on two bodies see the difference of the velocities at their points, and of the angular velocities.
  for (const BodyRows& b : rows.body_rows) {
    const double* twist_a = body_link_twist(model, link_twist, b.body_a);
    const double* twist_b = body_link_twist(model, link_twist, b.body_b);
    double va[3];
    double vb[3];
    double u[3];
    point_velocity(model, dynamics, b.body_a, twist_a, b.point_a, va);
    point_velocity(model, dynamics, b.body_b, twist_b, b.point_b, vb);
    sub3(va, vb, u);
    for (int i = 0; i < 3; ++i)
      out[b.row + i] = dot3(b.axes[i], u);
    if (b.size == 3) continue;
    double spin[3];
    sub3(twist_a + 3, twist_b + 3, spin);
    for (int i = 3; i < b.size; ++i)
      out[b.row + i] =
          b.contact < 0 ? b.torque_scale * spin[i - 3] : b.turning_weight(i) * dot3(b.axes[b.turning_axis(i)], spin);
  }

  // Rows on joints see these.
  for (const DofRow& d : rows.dof_rows) {
    out[d.row] = 0;
    for (int i = 0; i < d.num; ++i)
      out[d.row] += d.coefficient[i] * x[d.dof[i]];
  }
}

void apply_rows_transposed(const Model& model, const DynamicsWorkspace& dynamics, const ConstraintRows& rows,
                           const double* lambda, double* wrench, double* out) {
  // Impulses become wrenches on the two bodies, at their last dofs.
  std::fill_n(wrench, 8 * model.nv, 0.0);
  for (const BodyRows& b : rows.body_rows) {
    PointWrench w;
    for (int i = 0; i < 3; ++i)
      axpy3(lambda[b.row + i], b.axes[i], w.force);
    if (b.size > 3) block_torque(b, lambda + b.row, w.torque);
    add_wrench(model, dynamics, b.body_a, b.point_a, w, 1, wrench);
    add_wrench(model, dynamics, b.body_b, b.point_b, w, -1, wrench);
  }

  // From the leaves to the roots: a dof feels what its subtree has collected.
  for (int d = model.nv - 1; d >= 0; --d) {
    out[d] += dot6(dynamics.columns.data() + 8 * d, wrench + 8 * d);
    const int parent = model.dof_parent[d];
    if (parent < 0) continue;
    for (int i = 0; i < 6; ++i)
      wrench[8 * parent + i] += wrench[8 * d + i];
  }

  // Rows on joints act on these.
  for (const DofRow& d : rows.dof_rows) {
    for (int i = 0; i < d.num; ++i)
      out[d.dof[i]] += d.coefficient[i] * lambda[d.row];
  }
}

}  // namespace coulomb

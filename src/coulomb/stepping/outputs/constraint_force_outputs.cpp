// Forces of constraints as outputs: contacts, touch sensors, limits, dry friction, equalities. Hard ones are impulses over the step; springs
// are functions of the next state, docs/theory.md (B13).
#include "coulomb/stepping/outputs/force_outputs.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/dynamics/site_zone.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

/// by_a, by_b: scale times the derivative of the i-th number of half the axial vector of E, where E turns as [dphi_a] E - E [dphi_b].
void turn_of_axial(const double* E, int i, double scale, double* by_a, double* by_b) {
  // The number is half of E_kj - E_jk.
  const int j = (i + 1) % 3;
  const int k = (i + 2) % 3;
  for (int m = 0; m < 3; ++m) {
    // [e_m]
    double turn[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    turn[3 * ((m + 2) % 3) + (m + 1) % 3] = 1;
    turn[3 * ((m + 1) % 3) + (m + 2) % 3] = -1;
    double left[9];
    double right[9];
    multiply3(turn, E, left);
    multiply3(E, turn, right);
    by_a[m] = 0.5 * scale * (left[3 * k + j] - left[3 * j + k]);
    by_b[m] = -0.5 * scale * (right[3 * k + j] - right[3 * j + k]);
  }
}

}  // namespace

/// Contacts on the site's own body whose force, followed away from the body, meets the zone.
void ForceOutputs::add_touch(const Site& site, Scalar& out) {
  const StepRecord& r = *record_;
  const FrameState frame = frame_state(*model_, where_found(), site.frame);
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0 || !(r.solution.lambda[b.row + 2] > 0)) continue;
    const Contact& c = r.collision.contacts[b.contact];
    if (c.body_a != site.frame.body && c.body_b != site.frame.body) continue;

    // The ray from the contact away from the body, in the frame of the site.
    double arm[3];
    double p[3];
    double d[3];
    double outward[3];
    for (int i = 0; i < 3; ++i)
      outward[i] = c.body_a == site.frame.body ? -c.normal[i] : c.normal[i];
    sub3(c.point, frame.position, arm);
    rotate_transposed(frame.rotation, arm, p);
    rotate_transposed(frame.rotation, outward, d);
    if (ray_meets_zone(site, p, d)) {
      out.impulses.push_back({b.row + 2, 1});
    }
  }
}

/// Force on A: frame^T lambda.
void ForceOutputs::add_contact_force(const Sensor& sensor) {
  const StepRecord& r = *record_;
  const Frame& frame = sensor.frame;
  const auto counts = [&](int body, int geometry) {
    if (!sensor.geometries) return frame.geometry >= 0 ? geometry == frame.geometry : body == frame.body;
    const std::vector<int>& those = *sensor.geometries;
    return std::find(those.begin(), those.end(), geometry) != those.end();
  };
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0) continue;
    const Contact& c = r.collision.contacts[b.contact];
    const bool on_a = counts(c.body_a, c.geometry_a);
    const bool on_b = counts(c.body_b, c.geometry_b);
    if (on_a == on_b) continue;

    // Each component follows the impulses, and the frame, which turns with the normal.
    const double sign = on_a ? 1 : -1;
    for (int i = 0; i < 3; ++i) {
      Scalar& out = scalars_[i];
      Scalar::Turn turn{b.contact, {0, 0, 0}};
      for (int k = 0; k < 3; ++k)
        out.impulses.push_back({b.row + k, sign * b.axes[k][i]});
      double c[3] = {0, 0, 0};
      c[i] = 1;
      turn_by_normal(b, c, sign, turn.by_normal);
      out.turns.push_back(turn);
    }
  }
}

/// Of a joint, or of a tendon (joint = -1).
void ForceOutputs::add_limit(int joint, int tendon, Scalar& out) {
  const StepRecord& r = *record_;
  const auto is_its = [&](const ConstraintRows& rows, const DofRow& row) {
    if (rows.blocks[row.block].type != BlockType::limit || row.spring >= 0 || row.tendon != tendon) return false;
    return tendon >= 0 || model_->dof_joint[row.dof[0]] == joint;
  };

  // Hard: the impulse of the row.
  if (!found_at_end()) {
    for (const DofRow& row : r.rows.dof_rows)
      if (is_its(r.rows, row)) {
        out.impulses.push_back({row.row, 1});
      }
    return;
  }

  // A spring, force(phi, coefficient . v), with derivatives by the next state and by the limits.
  const double* v = r.v_next.data();
  springs();
  out.at_end = true;
  out.limit_joint = joint;
  out.limit_tendon = tendon;
  for (const DofRow& row : springs_.rows.dof_rows) {
    if (!is_its(springs_.rows, row)) continue;
    out.value += springs_.force[row.row];
    const double by_phi = springs_.dforce_dphi[row.row];
    const double by_rate = springs_.dforce_drate[row.row];
    for (int k = 0; k < row.num; ++k) {
      const double drate = springs_.rows.drate_dq(row, k, v);
      out.dq.push_back({row.dof[k], by_phi * row.coefficient[k] + by_rate * drate});
      out.dv.push_back({row.dof[k], by_rate * row.coefficient[k]});
    }

    // phi = upper - q, or range - angle; else q - lower.
    const bool upper = is_upper_limit(springs_.rows.keys[row.block]);
    (upper ? out.dupper : out.dlower) += upper ? by_phi : -by_phi;
  }
}

/// Limits, equalities and dry friction as springs, at the end of the step.
const SpringForces& ForceOutputs::springs() {
  std::vector<double> Q(model_->nv, 0.0);
  spring_forces(*model_, where_found(), options_->implicit, record_->q_next.data(), record_->v_next.data(), springs_,
                Q.data());
  return springs_;
}

/// One number for each dof of the joint.
void ForceOutputs::add_dry_friction(int joint) {
  const StepRecord& r = *record_;
  const int first = model_->joint_v[joint];

  // A smooth function of the next velocity ...
  if (found_at_end()) {
    springs();
    for (std::size_t i = 0; i < scalars_.size(); ++i) {
      const int dof = first + int(i);
      Scalar& out = scalars_[i];
      out.at_end = true;
      out.value = model_->dof_dry_friction[dof] * springs_.dry_direction[dof];
      out.dv.push_back({dof, springs_.dry_slope[dof]});
      out.dry_frictions.push_back({dof, springs_.dry_direction[dof]});
    }
    return;
  }

  // ... or an impulse; one at its bound is +-h f whatever else changes.
  const double h = options_->constraints.timestep;
  for (const DofRow& row : r.rows.dof_rows) {
    const int i = row.dof[0] - first;
    if (r.rows.blocks[row.block].type != BlockType::box || row.spring >= 0) continue;
    if (i < 0 || i >= int(scalars_.size())) continue;
    Scalar& out = scalars_[i];
    const Mode mode = r.solution.modes[row.block];
    const double bound = r.rows.blocks[row.block].bound;

    // Modes are those of level 0: inside the bound they do not tell.
    const bool inside = std::abs(r.solution.lambda[row.row]) < (1 - 1e-9) * bound;
    if ((mode != Mode::lower && mode != Mode::upper) || inside) {
      out.impulses.push_back({row.row, 1});
      continue;
    }
    out.value = r.solution.lambda[row.row] / h;
    out.dry_frictions.push_back({row.dof[0], mode == Mode::upper ? 1.0 : -1.0});
  }
}

/// The forces of its rows, on body a or along joint a. Angular rows are weighted: their torque is the weight times the force.
void ForceOutputs::add_equality(int index) {
  const Equality& equality = model_->equalities[index];
  if (found_at_end()) return add_equality_spring(equality, index);
  const ConstraintRows& rows = record_->rows;
  const std::uint64_t key = constraint_key(ConstraintKind::equality, std::uint64_t(index));

  // Hard: the impulses of its rows.
  for (const BodyRows& b : rows.body_rows)
    for (int i = 0; rows.keys[b.block] == key && i < b.size; ++i)
      scalars_[i].impulses.push_back({b.row + i, i < 3 ? 1.0 : b.torque_scale});
  for (const DofRow& row : rows.dof_rows)
    if (rows.keys[row.block] == key) {
      scalars_[0].impulses.push_back({row.row, 1});
    }
}

/// f = -k phi - d phi' of the next state. Bodies: phi = p_a - p_b and half the axial vector of E = R_a R_b^T, which turns by
/// dE = [dphi_a] E - E [dphi_b].
void ForceOutputs::add_equality_spring(const Equality& equality, int index) {
  const std::uint64_t key = constraint_key(ConstraintKind::equality, std::uint64_t(index));
  const SpringForces& f = springs();
  const double* v = record_->v_next.data();

  // On joints: the row, whose coefficients turn with them.
  for (const DofRow& row : f.rows.dof_rows) {
    if (f.rows.keys[row.block] != key) continue;
    Scalar& out = scalars_[0];
    out.at_end = true;
    out.value = f.force[row.row];
    for (int k = 0; k < row.num; ++k) {
      const double drate = f.rows.drate_dq(row, k, v);
      const double by_phi = f.dforce_dphi[row.row];
      const double by_rate = f.dforce_drate[row.row];
      out.dq.push_back({row.dof[k], by_phi * row.coefficient[k] + by_rate * drate});
      out.dv.push_back({row.dof[k], by_rate * row.coefficient[k]});
    }
  }

  // On bodies: two frames, as covectors on their motion.
  for (const BodyRows& b : f.rows.body_rows) {
    if (f.rows.keys[b.block] != key) continue;
    Frame a_frame;
    Frame b_frame;
    a_frame.body = b.body_a;
    a_frame.pos = equality.pos_a;
    a_frame.quat = equality.quat_a;
    b_frame.body = b.body_b;
    b_frame.pos = equality.pos_b;
    b_frame.quat = equality.quat_b;
    const FrameState at_a = frame_state(*model_, where_found(), a_frame);
    const FrameState at_b = frame_state(*model_, where_found(), b_frame);
    for (int i = 0; i < b.size; ++i) {
      // Along the axes, or about them.
      const double weight = i < 3 ? 1.0 : b.torque_scale;
      const double by_phi = weight * weight * f.dforce_dphi[b.row + i];
      const double by_rate = weight * weight * f.dforce_drate[b.row + i];
      FrameCovector on_a;
      FrameCovector on_b;
      if (i < 3) {
        on_a.p[i] = by_phi;
        on_a.v[i] = by_rate;
      } else {
        turn_of_axial(b.rotation_error, i - 3, by_phi, on_a.phi, on_b.phi);
        on_a.w[i - 3] = by_rate;
      }
      for (int k = 0; k < 3; ++k) {
        on_b.p[k] = -on_a.p[k];
        on_b.v[k] = -on_a.v[k];
        on_b.w[k] = -on_a.w[k];
      }
      Scalar& out = scalars_[i];
      out.at_end = true;
      out.value = weight * f.force[b.row + i];
      add_frame_term(*model_, where_found(), a_frame, at_a, on_a, out.of_frames);
      add_frame_term(*model_, where_found(), b_frame, at_b, on_b, out.of_frames);
    }
  }
}

}  // namespace coulomb

// Accelerometers, force and torque sensors as outputs: what accelerates a subtree balances what acts on it from outside, and the rest is
// what its parent feels (motion_sensors.hpp).
#include "coulomb/stepping/outputs/force_outputs.hpp"

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/semi_implicit/semi_implicit.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "coulomb/stepping/stepper.hpp"

namespace coulomb {

/// What contacts, equalities and the user put on bodies in the step.
void ForceOutputs::collect_outside_forces() {
  const StepRecord& r = *record_;
  const double h = options_->constraints.timestep;
  outside_.clear();

  // Impulses over the step, at the points of the rows.
  for (const BodyRows& b : r.rows.body_rows)
    for (const double sign : {1.0, -1.0}) {
      OutsideForce out{sign > 0 ? b.body_a : b.body_b, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, b.contact < 0};
      copy3(sign > 0 ? b.point_a : b.point_b, out.point);
      for (int k = 0; k < 3; ++k) {
        axpy3(sign / h * r.solution.lambda[b.row + k], b.axes[k], out.f);
        if (b.contact < 0 && b.size == 6) {
          out.n[k] = sign / h * b.torque_scale * r.solution.lambda[b.row + 3 + k];
        }
      }
      if (b.contact >= 0 && b.size > 3) {
        block_torque(b, r.solution.lambda.data() + b.row, out.n);
        for (double& x : out.n)
          x *= sign / h;
      }
      outside_.push_back(out);
    }
  // The user's wrenches, at the centres of mass.
  for (int b = 1; !r.fext.empty() && b < model_->num_bodies; ++b) {
    OutsideForce out{b, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}, true};
    Frame centre;
    centre.body = b;
    centre.at_com = true;
    copy3(frame_state(*model_, motion_.dynamics(), centre).position, out.point);
    copy3(r.fext.data() + 6 * b, out.f);
    copy3(r.fext.data() + 6 * b + 3, out.n);
    outside_.push_back(out);
  }
}

/// Less what comes from outside: impulses of rows, wrenches of the user.
void ForceOutputs::add_outside_forces(Scalar& out) {
  const StepRecord& r = *record_;
  double by_f[3];
  double by_n[3];
  double turned[3];
  for (const BodyRows& b : r.rows.body_rows)
    for (const double sign : {1.0, -1.0}) {
      if (!motion_.feels(out.motion, sign > 0 ? b.body_a : b.body_b)) continue;

      // What one unit along each row changes of the reading.
      motion_.screw_at(out.motion, sign > 0 ? b.point_a : b.point_b, by_f, by_n);
      for (int k = 0; k < b.size; ++k) {
        double row[3];
        if (k >= 3) b.angular_row(k, row);
        const double along = k < 3 ? dot3(by_f, b.axes[k]) : b.contact < 0 ? row[k - 3] * by_n[k - 3] : dot3(by_n, row);
        out.impulses.push_back({b.row + k, -sign * along});
      }
      if (b.contact < 0) continue;

      // f . by_f of a contact: its axes turn with the normal, its point moves the screw past it.
      const double* lambda = r.solution.lambda.data() + b.row;
      double f[3] = {0, 0, 0};
      for (int k = 0; k < 3; ++k)
        axpy3(lambda[k], b.axes[k], f);
      Scalar::Turn turn{b.contact, {0, 0, 0}, {0, 0, 0}};
      turn_by_normal(b, by_f, -sign, turn.by_normal);
      turn_torque_by_normal(b, by_n, -sign, turn.by_normal);
      cross3(f, by_n, turned);
      for (int j = 0; j < 3; ++j)
        turn.by_point[j] = -sign * turned[j];
      out.turns.push_back(turn);
    }

  // The user's are constants.
  if (r.fext.empty()) return;
  for (const OutsideForce& o : outside_) {
    const bool of_user = &o >= &outside_.back() - (model_->num_bodies - 2);
    if (!of_user || !motion_.feels(out.motion, o.body)) continue;
    motion_.screw_at(out.motion, o.point, by_f, by_n);
    out.value -= dot3(by_f, o.f) + dot3(by_n, o.n);
  }
}

/// What the user puts on the subtree, zero wrenches too, the parent need not.
void ForceOutputs::add_wrenches(const Scalar& s, double weight, ForceGradient& to) {
  to.fext.resize(std::size_t(6) * model_->num_bodies, 0.0);
  for (int b = 1; b < model_->num_bodies; ++b) {
    if (!motion_.feels(s.motion, b)) continue;
    Frame centre;
    centre.body = b;
    centre.at_com = true;
    double by_f[3];
    double by_n[3];
    motion_.screw_at(s.motion, frame_state(*model_, motion_.dynamics(), centre).position, by_f, by_n);
    for (int i = 0; i < 3; ++i) {
      to.fext[6 * b + i] -= weight * by_f[i];
      to.fext[6 * b + 3 + i] -= weight * by_n[i];
    }
  }
}

/// Forces balance what they accelerate: without what torque-free spin adds to the velocity.
void ForceOutputs::shift_by_spin(const Sensor& sensor) {
  const StepRecord& r = *record_;
  if (is_acceleration(sensor.type) || found_at_end() || !options_->torque_free_spin) return;
  const double h = options_->constraints.timestep;
  where_found();
  mass_matrix(*model_, at_);
  spin_shift(*model_, at_, r.v.data(), h, spin_, {r.flying()});

  // Delta / h is no acceleration that a force has made.
  if (!spin_.any) return;
  for (int d = 0; d < model_->nv; ++d)
    acceleration_[d] -= spin_.velocity[d] / h;
  spin_derivatives(*model_, at_, r.v.data(), h, true, spins_, {r.flying()});
}

/// Of a change of a joint's Delta (6).
double ForceOutputs::by_shift(const Scalar& s, const SpinDerivative& spin, const double* change) const {
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    if (spin.linear >= 0) {
      sum -= s.da[spin.linear + i] * change[i];
    }
    sum -= s.da[spin.dof + i] * change[3 + i];
  }
  return sum / options_->constraints.timestep;
}

/// Where the step has its dynamics, with its mean acceleration.
void ForceOutputs::add_motion(const Sensor& sensor) {
  const StepRecord& r = *record_;
  const int nv = model_->nv;
  const bool at_end = options_->stepper->dynamics_at() == StepPoint::end;
  acceleration_.resize(nv);
  for (int d = 0; d < nv; ++d)
    acceleration_[d] = (r.v_next[d] - r.v[d]) / options_->constraints.timestep;

  // Of which torque-free spin is no part.
  shift_by_spin(sensor);
  motion_.move_to(at_end ? r.q_next.data() : r.q.data(), at_end ? r.v_next.data() : r.v.data(), acceleration_.data());
  outside_.clear();
  if (!is_acceleration(sensor.type)) collect_outside_forces();

  std::vector<double> by_q;
  std::vector<double> by_v;
  for (int k = 0; k < 3; ++k) {
    // Each component, with its gradient by (q, v, a).
    Scalar& out = scalars_[k];
    out.at_end = at_end;
    out.motion = motion_.row(sensor, k);
    out.value = out.motion.value;
    by_q.assign(nv, 0.0);
    by_v.assign(nv, 0.0);
    out.da.assign(nv, 0.0);
    motion_.add_columns(out.motion, outside_, by_q.data(), by_v.data(), out.da.data());

    // Delta moves with the state, too.
    for (const SpinDerivative& spin : spins_)
      visit_spin_columns(
          *model_, at_, spin, [&](int d, const double* change) { by_v[d] += by_shift(out, spin, change); },
          [&](int d, const double* change) { by_q[d] += by_shift(out, spin, change); });
    for (int d = 0; d < nv; ++d) {
      out.dq.push_back({d, by_q[d]});
      out.dv.push_back({d, by_v[d]});
    }
    if (out.motion.of_forces) add_outside_forces(out);
  }
}

}  // namespace coulomb

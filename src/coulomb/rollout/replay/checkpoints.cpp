#include "coulomb/rollout/replay/checkpoints.hpp"

#include <algorithm>
#include <cmath>

#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

constexpr std::size_t allocation_overhead = 16;

/// What the arrays hold on the heap.
template <typename... T>
std::size_t array_bytes(const std::vector<T>&... arrays) {
  return (... + (arrays.capacity() * sizeof(T)));
}

}  // namespace

/// With what the heap needs for its four arrays.
std::size_t Checkpoints::Checkpoint::bytes() const {
  return sizeof *this + array_bytes(collision.pair_indices, collision.pairs, impulses, values) +
         4 * allocation_overhead;
}

Checkpoints::Checkpoint Checkpoints::pack(const StepMemory& memory) {
  Checkpoint out;
  out.collision = memory.collision;
  out.had_states = !memory.last_q.empty();

  // Impulses have room for the longest block; only the numbers in use are kept, one block behind the other.
  std::size_t numbers = 0;
  for (const StepMemory::Impulse& impulse : memory.impulses)
    numbers += 3 * std::size_t(impulse.size);
  out.impulses.reserve(memory.impulses.size());
  out.values.reserve(numbers + memory.forgotten.size());
  for (const StepMemory::Impulse& impulse : memory.impulses) {
    out.impulses.push_back({impulse.key, impulse.mode, impulse.size, impulse.compliance});
    for (const double* level : {impulse.value, impulse.value_0, impulse.value_1})
      out.values.insert(out.values.end(), level, level + impulse.size);
  }
  out.values.insert(out.values.end(), memory.forgotten.begin(), memory.forgotten.end());
  return out;
}

void Checkpoints::store(int t, const StepMemory& memory, std::size_t record_bytes) {
  record_bytes_ = std::max(record_bytes_, record_bytes);
  if (t % every_ != 0) return;

  checkpoints_.push_back(pack(memory));
  const std::size_t bytes = checkpoints_.back().bytes();
  bytes_ += bytes;
  largest_ = std::max(largest_, bytes);

  // Twice as far apart: half the checkpoints, twice the records; not when that makes it worse, and not the only one.
  while (adaptive_ && checkpoints_.size() > 1 && bytes_ + every_ * record_bytes_ > budget_ &&
         bytes_ / 2 > every_ * record_bytes_)
    thin();
}

void Checkpoints::thin() {
  // Every other checkpoint goes.
  std::size_t kept = 0;
  bytes_ = 0;
  for (std::size_t i = 0; i < checkpoints_.size(); i += 2) {
    if (i != kept) {
      checkpoints_[kept] = std::move(checkpoints_[i]);
    }
    bytes_ += checkpoints_[kept++].bytes();
  }
  checkpoints_.resize(kept);
  every_ *= 2;
}

void Checkpoints::restore(int t, StepMemory& memory) const {
  const Checkpoint& from = checkpoints_[t / every_];
  memory.collision = from.collision;

  // The inverse of pack.
  memory.impulses.assign(from.impulses.size(), {});
  const double* values = from.values.data();
  for (std::size_t i = 0; i < from.impulses.size(); ++i) {
    StepMemory::Impulse& impulse = memory.impulses[i];
    impulse.key = from.impulses[i].key;
    impulse.mode = from.impulses[i].mode;
    impulse.size = from.impulses[i].size;
    impulse.compliance = from.impulses[i].compliance;
    for (double* level : {impulse.value, impulse.value_0, impulse.value_1}) {
      std::copy_n(values, impulse.size, level);
      values += impulse.size;
    }
  }
  memory.forgotten.assign(values, from.values.data() + from.values.size());
}

std::size_t Checkpoints::sweep_bytes(int steps) const {
  const int records = std::min(every_, std::max(steps, 1));
  return records * record_bytes_;
}

std::size_t Checkpoints::least_bytes(int steps) const {
  // T / every checkpoints and `every` records, at the best power of two.
  const double all = double(largest_) * steps;
  double least = all + double(record_bytes_);
  for (double every = 2; every <= steps; every *= 2)
    least = std::min(least, all / every + every * double(record_bytes_));
  return std::size_t(least);
}

std::size_t record_bytes(const StepRecord& r) {
  const DynamicsWorkspace& d = r.dynamics;
  const CollisionWorkspace& c = r.collision;
  const FilterTables& f = c.filter;
  std::size_t bytes = sizeof r;

  // Inputs, results and the dynamics at the state of the step.
  bytes += array_bytes(r.q, r.v, r.u, r.tau, r.fext, r.q_next, r.v_next, r.acceleration, r.v_free,
                       r.gains.damping.diagonal, r.gains.stiffness.diagonal, r.gains.inertia.diagonal, r.twist,
                       r.twist_next, r.scratch, r.spin.velocity);
  bytes +=
      array_bytes(d.reference, d.body_rotation, d.body_position, d.columns, d.body_twist, d.column_rate, d.column_chi,
                  d.mass, d.factor_l, d.factor_d, d.u_rows, d.u_hat, d.bias, d.id_dq_T, d.id_dv_T, d.body_quaternion,
                  d.inertia, d.composite, d.velocity, d.body_acceleration, d.column_acceleration, d.ancestors,
                  d.factor_work, d.streams, d.scratch, d.link, d.vectors, d.trees);

  // Contacts, of which many more are reserved but never touched, and how they were found.
  bytes += c.contacts.size() * sizeof(Contact);
  bytes +=
      array_bytes(c.pose, c.filter_center, c.filter_radius, c.candidates, c.hits, c.box_first, c.box_second, c.box_pair,
                  c.touch, c.box_margin, c.merged, c.next_cache, c.staging, c.shift, c.turn, c.reach, c.plane_margin);
  bytes += c.sweep.bytes();

  // Tables of the filter, which every record has.
  bytes += array_bytes(f.lookup.start, f.rows, f.allowed, f.pair_of, f.planes, f.local, f.box_half, f.radius, f.reach,
                       f.size, f.core, f.fixed.geometries, f.fixed.bodies, f.fixed.others, c.fixed.poses);

  // The constraint problem and its solution.
  bytes += array_bytes(r.joint_forces.tau, r.joint_forces.dtau_dq, r.joint_forces.dtau_dv, r.joint_forces.dtau_du,
                       r.joint_forces.coupled_slopes, r.joint_forces.tau_at_end);
  bytes += array_bytes(r.rows.body_rows, r.rows.dof_rows, r.rows.keys, r.rows.blocks, r.rows.bias, r.rows.compliance,
                       r.rows.weight, r.rows.turning, r.rows.bias_slopes, r.rows.soft_blocks);
  const AssemblyWorkspace& a = r.assembly;
  bytes += array_bytes(a.body_rows, a.body_done, a.twist_free, a.g, a.Y_of, a.delassus.Yt, a.delassus.Y, a.delassus.G,
                       a.delassus.block, a.delassus.first, a.delassus.product.coefficients, a.delassus.product.offsets);
  bytes += r.islands.bytes() + r.corrections.bytes();
  bytes += array_bytes(r.solution.lambda, r.solution.lambda_0, r.solution.lambda_1, r.solution.centre, r.solution.c,
                       r.solution.modes, r.solution.facets, r.solution.margin);
  if (r.extra.value) {
    bytes += r.extra.value->bytes();
  }
  return bytes;
}

}  // namespace coulomb

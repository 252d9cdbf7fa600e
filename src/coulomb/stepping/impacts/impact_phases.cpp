#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {

ImpactPhases::ImpactPhases(const Model& m) : model(&m), search(m), q(m.nq), v(m.nv), displacement(m.nv) {
  spinning.reserve(m.num_trees);
}

/// A copy has phases of its own, and a search of its own.
ImpactPhases::ImpactPhases(const ImpactPhases& other)
    : StepExtra(other), count(other.count), smooth(other.smooth), impact(other.impact), model(other.model),
      search(*other.model), q(other.q), v(other.v), displacement(other.displacement) {
  spinning.reserve(model->num_trees);
  for (int i = 0; i < count; ++i) {
    // All but the record is copied; a record only where the phase has one.
    const ImpactPhase& from = *other.pool[i];
    ImpactPhase& to = *pool.emplace_back(std::make_unique<ImpactPhase>());
    to.q = from.q;
    to.v = from.v;
    to.start = from.start;
    to.duration = from.duration;
    to.planned = from.planned;
    to.share = from.share;
    to.rules = from.rules;
    to.path = from.path;
    to.midpoint = from.midpoint;
    to.length = from.length;
    to.problem = from.problem;
    to.midpoint_velocity = from.midpoint_velocity;
    to.end = from.end;

    // Phases that were solved by themselves.
    to.owns_record = from.owns_record;
    if (from.owns_record) {
      to.storage = std::make_unique<StepRecord>(*from.storage);
    }

    // How the phase ended.
    to.grazing = from.grazing;
    to.fixed_time = from.fixed_time;
    to.gap = from.gap;
    to.others = from.others;
    to.ties = from.ties;
    to.event_of_dof = from.event_of_dof;
    to.from_start = from.from_start;
    to.sank_from = from.sank_from;
  }
}

/// The large arrays; the rest is proportional to nv.
std::size_t ImpactPhases::bytes() const {
  std::size_t sum = sizeof *this;
  for (const auto& phase : pool) {
    sum += sizeof *phase;
    if (!phase->storage) continue;
    const StepRecord& r = *phase->storage;
    const std::size_t doubles = 3 * r.dynamics.u_hat.capacity() + r.dynamics.factor_work.capacity() +
                                r.collision.pose.capacity() + 64 * std::size_t(model->nv + 2 * model->num_bodies);
    sum += sizeof r + r.islands.bytes() + sizeof(double) * doubles + sizeof(Contact) * r.collision.contacts.capacity();
  }
  return sum;
}

/// Storage of phases stays from step to step.
ImpactPhase& ImpactPhases::add() {
  if (count == int(pool.size())) {
    pool.push_back(std::make_unique<ImpactPhase>());
  }
  ImpactPhase& phase = *pool[count++];

  // What it may hold of the last step.
  phase.owns_record = phase.midpoint = phase.midpoint_velocity = false;
  phase.end = PhaseEnd::whole;
  phase.duration = phase.share = 0;
  phase.length = 1;
  phase.others.clear();
  phase.ties.clear();
  phase.event_of_dof.clear();
  return phase;
}

const ImpactPhases& phases_of(const StepRecord& record) {
  return static_cast<const ImpactPhases&>(*record.extra.value);
}

}  // namespace coulomb

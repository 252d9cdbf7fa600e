#include "coulomb/stepping/impacts/impact_report.hpp"

#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/stepping/impacts/impact_phases.hpp"

namespace coulomb {
namespace {

/// Phases of the step whose record this is: those of impacts have records of their own.
void report_impact(const Model& m, const ImpactPhases& phases, int phase, std::vector<ImpactReport>& out) {
  const StepRecord& r = *phases[phase].storage;

  // Velocities of the rows before the impact.
  std::vector<double> twist(8 * m.nv);
  std::vector<double> velocity(r.rows.num_rows);
  link_twists(m, r.dynamics, r.v.data(), twist.data());
  apply_rows(m, r.dynamics, r.rows, r.v.data(), twist.data(), velocity.data());

  // When, and what the phase before has ended with.
  ImpactReport base;
  base.time = std::max(phases[phase].start, 0.0);
  const ImpactPhase* before = phase > 0 ? &phases[phase - 1] : nullptr;
  for (const BodyRows& b : r.rows.body_rows) {
    if (b.contact < 0 || r.solution.modes[b.block] == Mode::separating) continue;

    // Contacts that took an impulse.
    const Contact& c = r.collision.contacts[b.contact];
    ImpactReport report = base;
    report.geometry_a = m.geometry_names[c.geometry_a];
    report.geometry_b = m.geometry_names[c.geometry_b];
    report.body_a = m.body_names[c.body_a];
    report.body_b = m.body_names[c.body_b];
    copy3(c.point, report.point);
    copy3(c.normal, report.normal);
    report.approach = -velocity[b.row + 2];
    for (int i = 0; i < 3; ++i)
      axpy3(r.solution.lambda[b.row + i], b.axes[i], report.impulse);
    report.grazing = before && before->end == PhaseEnd::pair && before->gap.contact.pair == c.pair && before->grazing;
    out.push_back(std::move(report));
  }

  // Limits of joints that did.
  for (const DofRow& d : r.rows.dof_rows) {
    if (r.rows.blocks[d.block].type != BlockType::limit || r.solution.modes[d.block] == Mode::separating) continue;
    ImpactReport report = base;
    const int joint = m.dof_joint[d.dof[0]];
    report.joint = m.joint_names[joint];
    report.approach = -velocity[d.row];
    report.impulse[0] = r.solution.lambda[d.row];
    report.grazing = before && before->end == PhaseEnd::limit && before->gap.joint == joint && before->grazing;
    out.push_back(std::move(report));
  }
}

}  // namespace

std::vector<ImpactReport> impact_reports(const Model& model, const StepRecord& record) {
  std::vector<ImpactReport> out;

  // Steps that are not split have none.
  const auto* phases = dynamic_cast<const ImpactPhases*>(record.extra.value.get());
  if (!record.valid || phases == nullptr) return out;
  for (int i = 0; i < phases->count; ++i)
    if ((*phases)[i].end == PhaseEnd::instant) {
      report_impact(model, *phases, i, out);
    }
  return out;
}

}  // namespace coulomb

#include "coulomb/stepping/semi_implicit/kept_step.hpp"

#include "coulomb/stepping/kept_bytes.hpp"
#include "coulomb/stepping/step_record.hpp"

namespace coulomb {
namespace {

using kept::whole;

/// By the rows of all islands.
template <class Pass, class Result>
void solution(Pass& pass, Result& s) {
  whole(pass, s.lambda);
  whole(pass, s.lambda_0);
  whole(pass, s.lambda_1);
  whole(pass, s.centre);
  whole(pass, s.c);
  whole(pass, s.modes);
  whole(pass, s.facets);
  whole(pass, s.margin);
  whole(pass, s.contradictory);
  whole(pass, s.jammed);
  whole(pass, s.unsolved);
  whole(pass, s.badly_scaled);
}

/// How one was found.
template <class Pass, class Result>
void outcome(Pass& pass, Result& s) {
  pass.value(s.compliance);
  pass.value(s.relaxation);
  pass.value(s.scale_ratio);
  pass.value(s.residual);
  pass.value(s.exact_residual);
  pass.value(s.levels);
  pass.value(s.sharper_levels);
  pass.value(s.sharpening);
  pass.value(s.iterations);
  pass.value(s.classes_hit);
  pass.value(s.interior_point);
  pass.value(s.status);
}

/// Everything that is kept, in the one order in which it is measured, written and read.
template <class Pass, class Record>
void visit(Pass& pass, Record& r) {
  whole(pass, r.v_free);
  whole(pass, r.joint_forces.clamps.actuators);
  whole(pass, r.joint_forces.clamps.joints);
  pass.value(r.joint_forces.clamps.unsettled);
  whole(pass, r.collision.contacts);
  pass.value(r.just_touches);
  solution(pass, r.solution);
  outcome(pass, r.solution);
  whole(pass, r.islands.order);
  for (int index : r.islands.order)
    outcome(pass, r.islands.pool[index].solution);
}

}  // namespace

std::size_t kept_step_bytes(const StepRecord& record) {
  kept::Measuring pass;
  visit(pass, record);
  return pass.bytes;
}

void keep_step(const StepRecord& record, std::byte* to) {
  kept::Writing pass(to);
  visit(pass, record);
}

/// What is not kept is evaluated again (recall_semi_implicit_step).
void restore_step(const std::byte* from, StepRecord& record) {
  kept::Reading pass(from);
  visit(pass, record);
}

}  // namespace coulomb

// joint_limits/<joint>: (lower, upper) of a limited hinge or slide, (largest angle) of a limited ball; s = slope of the bias,
// docs/theory.md (P7).
#include <cmath>

#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/frame_motion.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

class JointLimitsKind : public ParameterKind {
  const char* name() const override { return "joint_limits"; }
  const char* unit() const override { return "m or rad"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int j = 0; j < model.num_joints; ++j) {
      if (!model.joint_limited[j] || model.joint_type[j] == JointType::free) continue;
      const bool ball = model.joint_type[j] == JointType::ball;

      // A side without limit has no number that could change.
      if (!ball && !(std::isfinite(model.joint_lower[j]) && std::isfinite(model.joint_upper[j]))) continue;
      out.push_back({model.joint_names[j], j, ball ? 1 : 2});
    }
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    if (e.size == 2) {
      values[0] = model.joint_lower[e.index];
    }
    values[e.size - 1] = model.joint_upper[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // The interval may be a point, not empty.
    if (e.size == 1)
      checks::positive(what, values[0]);
    else if (!(values[0] <= values[1]))
      checks::fail(what, "lower limit " + checks::text(values[0]) + " exceeds upper limit " + checks::text(values[1]));

    if (e.size == 2) {
      model.joint_lower[e.index] = values[0];
    }
    model.joint_upper[e.index] = values[e.size - 1];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;
    for (const DofRow& row : context.rows.dof_rows) {
      if (context.rows.blocks[row.block].type != BlockType::limit || row.tendon >= 0) continue;
      if (m.dof_joint[row.dof[0]] != e.index || context.inactive[row.block]) continue;

      // The gap is phi = q - lower, or upper - q.
      const bool upper = e.size == 1 || row.coefficient[0] < 0;
      out[upper ? e.size - 1 : 0].rows.push_back({row.row, upper ? row.dbias_dphi : -row.dbias_dphi});
    }
  }
  void frame_motions(const Model&, const DynamicsWorkspace&, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    for (int k = 0; k < e.size; ++k) {
      FrameMotion motion;
      motion.joint = e.index;
      (k == e.size - 1 ? motion.dupper : motion.dlower) = 1;
      out.push_back(motion);
    }
  }
};

/// tendon_limits/<tendon>: (lower, upper).
class TendonLimitsKind : public ParameterKind {
  const char* name() const override { return "tendon_limits"; }
  const char* unit() const override { return "m or rad"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int t = 0; t < int(model.tendons.size()); ++t) {
      const Tendon& tendon = model.tendons[t];
      if (tendon.limited && std::isfinite(tendon.lower) && std::isfinite(tendon.upper))
        out.push_back({tendon.name, t, 2});
    }
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.tendons[e.index].lower;
    values[1] = model.tendons[e.index].upper;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    if (!(values[0] <= values[1]))
      checks::fail(what, "lower limit " + checks::text(values[0]) + " exceeds upper limit " + checks::text(values[1]));
    model.tendons[e.index].lower = values[0];
    model.tendons[e.index].upper = values[1];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (const DofRow& row : context.rows.dof_rows) {
      if (row.tendon != e.index || context.inactive[row.block]) continue;
      const bool upper = is_upper_limit(context.rows.keys[row.block]);
      out[upper].rows.push_back({row.row, upper ? row.dbias_dphi : -row.dbias_dphi});
    }
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_tendon_limits() { return std::make_unique<TendonLimitsKind>(); }
std::unique_ptr<ParameterKind> make_joint_limits() { return std::make_unique<JointLimitsKind>(); }

}  // namespace coulomb

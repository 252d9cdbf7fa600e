// joint_limits/<joint>: (lower, upper) of a limited hinge or slide, (largest angle) of a limited ball; s = slope of the bias,
// docs/theory.md (P7).
#include <cmath>

#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/constraints/joint_limits.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
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
      if (context.rows.blocks[row.block].type != BlockType::limit || row.tendon >= 0 || row.spring >= 0) continue;
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

/// joint_limit_stiffness/<joint> and joint_limit_dashpot/<joint>, of joints whose limits have a stiffness: s of a soft row (S9).
class LimitSpringKind : public ParameterKind {
 public:
  LimitSpringKind(const char* name, const char* unit, std::vector<double> Model::*values, double SpringChange::*change)
      : name_(name), unit_(unit), values_(values), change_(change) {}

 private:
  const char* name() const override { return name_; }
  const char* unit() const override { return unit_; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int j = 0; j < model.num_joints; ++j)
      if (limit_spring(model, j, 0)) out.push_back({model.joint_names[j], j, 1});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = (model.*values_)[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // Without a stiffness it would be another law.
    if (values_ == &Model::joint_limit_stiffness)
      checks::positive(what, values[0]);
    else
      checks::not_negative(what, values[0]);
    (model.*values_)[e.index] = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Model& m = context.model;
    const bool of_stiffness = values_ == &Model::joint_limit_stiffness;
    for (const DofRow& row : context.rows.dof_rows) {
      const bool of_joint = kind_of(context.rows.keys[row.block]) == ConstraintKind::limit && row.tendon < 0;
      if (!of_joint || m.dof_joint[row.dof[0]] != e.index || context.inactive[row.block]) continue;
      const auto spring = limit_spring(m, e.index, row.phi);

      // The parameter is the number at full depth.
      const SpringShape shape = spring_shape(m.joint_limit_curve[e.index], row.phi);
      SpringChange unit;
      unit.*change_ = of_stiffness ? shape.stiffness : shape.others;

      // As a row of the constraint problem, or as a force -k phi - d phi', whose change by k is that of a motion of phi / k.
      if (context.rows_are_forces) {
        const double motion = unit.stiffness * row.phi + unit.dashpot * rate_of(row, context.v);
        out[0].rows.push_back({row.row, motion / spring->stiffness});
      } else {
        const double s =
            spring_side(*spring, {context.options.timestep, row.phi, row.approach, context.lambda[row.row]}, unit);
        out[0].rows.push_back({row.row, s});
      }
    }
  }

  const char* name_;
  const char* unit_;
  std::vector<double> Model::*values_;
  double SpringChange::*change_;
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
  void frame_motions(const Model&, const DynamicsWorkspace&, const ParameterElement& e,
                     std::vector<FrameMotion>& out) const override {
    out.resize(2);
    for (FrameMotion& motion : out)
      motion.tendon = e.index;
    out[0].dlower = 1;
    out[1].dupper = 1;
  }
};

/// tendon_stiffness/<tendon>, tendon_damping/<tendon>, tendon_friction/<tendon>, tendon_armature/<tendon>, of tendons that have one.
class TendonSpringKind : public ParameterKind {
 public:
  enum class Of { stiffness, damping, friction, armature };
  TendonSpringKind(const char* name, const char* unit, double Tendon::*value, Of of)
      : name_(name), unit_(unit), value_(value), of_(of) {}

 private:
  const char* name() const override { return name_; }
  const char* unit() const override { return unit_; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out;
    for (int t = 0; t < int(model.tendons.size()); ++t)
      if (model.tendons[t].*value_ > 0) out.push_back({model.tendons[t].name, t, 1});
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.tendons[e.index].*value_;
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::positive(what, values[0]);
    model.tendons[e.index].*value_ = values[0];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const Tendon& tendon = context.model.tendons[e.index];
    for (const DofRow& row : context.rows.dof_rows) {
      if (row.spring != e.index) continue;
      const BlockType type = context.rows.blocks[row.block].type;
      if (context.rows_are_forces && !context.inactive[row.block])
        add_motion(context, tendon, row, type, out[0]);
      else if (context.rows_are_forces)
        continue;
      else if (type == BlockType::box)
        add_bound(context, row, out[0]);
      else if (!context.inactive[row.block])
        add_side(context, tendon, row, type == BlockType::equality, out[0]);
    }
  }

  void add_side(const ParameterContext& context, const Tendon& tendon, const DofRow& row, bool both_signs,
                RightHandSide& out) const {
    const OneSidedSpring spring = tendon_spring(tendon, both_signs);
    SpringChange unit;
    if (of_ == Of::stiffness && spring.stiffness > 0) unit.stiffness = 1;
    if (of_ == Of::damping && spring.dashpot > 0) unit.dashpot = 1;
    if (of_ == Of::armature && spring.inertia > 0) unit.inertia = 1;
    if (unit.stiffness == 0 && unit.dashpot == 0 && unit.inertia == 0) return;
    const SpringState state{context.options.timestep, row.phi, rate_of(row, context.v), context.lambda[row.row],
                            row.bend};
    out.rows.push_back({row.row, spring_side(spring, state, unit, both_signs)});
  }

  /// Dry friction at its bound, +-h f.
  void add_bound(const ParameterContext& context, const DofRow& row, RightHandSide& out) const {
    const Mode mode = context.modes[row.block];
    if (of_ != Of::friction || (mode != Mode::upper && mode != Mode::lower)) return;
    const double h = context.options.timestep;
    for (int i = 0; i < row.num; ++i)
      out.dofs.push_back({row.dof[i], (mode == Mode::upper ? h : -h) * row.coefficient[i]});
  }

  /// Of forces -k phi - d phi' and f times a direction: the motion of phi that changes them as the number does.
  void add_motion(const ParameterContext& context, const Tendon& tendon, const DofRow& row, BlockType type,
                  RightHandSide& out) const {
    const double slope = tendon_slope(tendon, type);
    if (of_ == Of::friction && type == BlockType::box)
      out.rows.push_back({row.row, -context.lambda[row.row] / tendon.dry_friction / slope});
    if (type == BlockType::box) return;
    const OneSidedSpring spring = tendon_spring(tendon, type == BlockType::equality);
    if (of_ == Of::stiffness && spring.stiffness > 0) out.rows.push_back({row.row, row.phi / slope});
    if (of_ == Of::damping && spring.dashpot > 0) out.rows.push_back({row.row, rate_of(row, context.v) / slope});
  }

  const char* name_;
  const char* unit_;
  double Tendon::*value_;
  Of of_;
};

}  // namespace

std::unique_ptr<ParameterKind> make_tendon_stiffness() {
  return std::make_unique<TendonSpringKind>("tendon_stiffness", "N/m or N m/rad", &Tendon::stiffness,
                                            TendonSpringKind::Of::stiffness);
}
std::unique_ptr<ParameterKind> make_tendon_damping() {
  return std::make_unique<TendonSpringKind>("tendon_damping", "N s/m or N m s/rad", &Tendon::damping,
                                            TendonSpringKind::Of::damping);
}
std::unique_ptr<ParameterKind> make_tendon_friction() {
  return std::make_unique<TendonSpringKind>("tendon_friction", "N or N m", &Tendon::dry_friction,
                                            TendonSpringKind::Of::friction);
}
std::unique_ptr<ParameterKind> make_tendon_armature() {
  return std::make_unique<TendonSpringKind>("tendon_armature", "kg or kg m^2", &Tendon::armature,
                                            TendonSpringKind::Of::armature);
}
std::unique_ptr<ParameterKind> make_tendon_limits() { return std::make_unique<TendonLimitsKind>(); }
std::unique_ptr<ParameterKind> make_joint_limit_stiffness() {
  return std::make_unique<LimitSpringKind>("joint_limit_stiffness", "N/m or N m/rad", &Model::joint_limit_stiffness,
                                           &SpringChange::stiffness);
}
std::unique_ptr<ParameterKind> make_joint_limit_dashpot() {
  return std::make_unique<LimitSpringKind>("joint_limit_dashpot", "N s/m or N m s/rad", &Model::joint_limit_dashpot,
                                           &SpringChange::dashpot);
}
std::unique_ptr<ParameterKind> make_joint_limits() { return std::make_unique<JointLimitsKind>(); }

}  // namespace coulomb

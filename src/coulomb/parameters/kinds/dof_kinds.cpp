// Kinds with one value per dof or per joint, all of them direct entries of r (docs/theory.md (P7)) at fixed v+:
//   joint_damping   (M + h D)(v+ - v) = h (... - D v): r = -h v+          armature        r = -h a + M dDelta
//   joint_friction  |lambda| <= h f: at a bound, r = +-h                  joint_stiffness r = h (force of a unit spring), of one
//   that is implicit less h^2 v+
#include "coulomb/constraints/constraint_rows.hpp"
#include "coulomb/dynamics/implicit_gains.hpp"
#include "coulomb/dynamics/spin.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// A non-negative value per dof.
class DofKind : public ParameterKind {
 public:
  std::vector<ParameterElement> elements(const Model& model) const override { return all_joints(model); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    for (int i = 0; i < e.size; ++i)
      values[i] = array(const_cast<Model&>(model))[model.joint_v[e.index] + i];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // All values are checked before any changes.
    for (int i = 0; i < e.size; ++i)
      checks::not_negative(what + (e.size > 1 ? "[" + std::to_string(i) + "]" : ""), values[i]);
    for (int i = 0; i < e.size; ++i)
      array(model)[model.joint_v[e.index] + i] = values[i];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (int i = 0; i < e.size; ++i)
      entry(context, context.model.joint_v[e.index] + i, out[i]);
  }

 protected:
  virtual std::vector<double>& array(Model& model) const = 0;
  virtual void entry(const ParameterContext& context, int dof, RightHandSide& out) const = 0;
};

/// -h v+, since dampers act at the end of the step.
class DampingKind : public DofKind {
  const char* name() const override { return "joint_damping"; }
  const char* unit() const override { return "N s/m or N m s/rad"; }
  std::vector<double>& array(Model& model) const override { return model.dof_damping; }
  void entry(const ParameterContext& context, int dof, RightHandSide& out) const override {
    out.dofs.push_back({dof, -context.options.timestep * context.v_plus[dof]});
  }
};

/// -h a, and what the armature changes of the joint's spin.
class ArmatureKind : public DofKind {
  const char* name() const override { return "armature"; }
  const char* unit() const override { return "kg or kg m^2"; }
  std::vector<double>& array(Model& model) const override { return model.dof_armature; }
  void entry(const ParameterContext& context, int dof, RightHandSide& out) const override {
    out.dofs.push_back({dof, -context.options.timestep * context.acceleration[dof]});

    if (!context.spins) return;
    for (const SpinDerivative& spin : *context.spins)
      if (dof >= spin.dof && dof < spin.dof + 3)
        add_spin_column(context, spin, SpinDerivative::armature + dof - spin.dof, out);
  }
};

/// Dry friction moves with its bound, where it is at one.
class JointFrictionKind : public DofKind {
  const char* name() const override { return "joint_friction"; }
  const char* unit() const override { return "N or N m"; }
  std::vector<double>& array(Model& model) const override { return model.dof_dry_friction; }
  void entry(const ParameterContext& context, int dof, RightHandSide& out) const override {
    for (const DofRow& row : context.rows.dof_rows) {
      // The box of this dof.
      if (row.dof[0] != dof || row.spring >= 0 || context.rows.blocks[row.block].type != BlockType::box) continue;
      const Mode mode = context.modes[row.block];
      if (mode == Mode::upper) {
        out.dofs.push_back({dof, context.options.timestep});
      }
      if (mode == Mode::lower) {
        out.dofs.push_back({dof, -context.options.timestep});
      }
    }
  }
};

/// A spring's force is proportional to its stiffness.
class StiffnessKind : public ParameterKind {
  const char* name() const override { return "joint_stiffness"; }
  const char* unit() const override { return "N/m or N m/rad"; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    std::vector<ParameterElement> out = all_joints(model);
    for (ParameterElement& e : out)
      e.size = 1;
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    values[0] = model.joint_stiffness[e.index];
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    checks::not_negative(what, values[0]);
    model.joint_stiffness[e.index] = values[0];
    model.has_joint_springs = model.has_joint_springs || values[0] != 0;
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    JointForces unit(context.model);
    add_unit_spring(context.model, e.index, context.q, unit);

    // A spring at the end of the step goes on by h v+.
    const bool at_end = context.gains && context.gains->rule == ForcesAtEnd::positions;
    const double later = at_end ? context.gain_time : 0.0;
    const int first = context.model.joint_v[e.index];
    for (int d = first; d < first + joint_num_dofs(context.model.joint_type[e.index]); ++d)
      out[0].dofs.push_back({d, context.options.timestep * (unit.tau[d] - later * context.v_plus[d])});
  }
};

}  // namespace

std::unique_ptr<ParameterKind> make_joint_damping() { return std::make_unique<DampingKind>(); }
std::unique_ptr<ParameterKind> make_armature() { return std::make_unique<ArmatureKind>(); }
std::unique_ptr<ParameterKind> make_joint_friction() { return std::make_unique<JointFrictionKind>(); }
std::unique_ptr<ParameterKind> make_joint_stiffness() { return std::make_unique<StiffnessKind>(); }

}  // namespace coulomb

// The laws of soft rows that are no contacts and no joint limits (MJCF's solref and solimp): equality_<number>/<equality>,
// tendon_limit_<number>/<tendon>, tendon_friction_<number>/<tendon>, joint_friction_<number>/<joint>, of those that have one; the number
// is the stiffness, the dashpot or the inertia at full depth. s of a soft row, docs/theory.md (P9).
#include <cmath>

#include "coulomb/constraints/constraint_keys.hpp"
#include "coulomb/constraints/one_sided_spring.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

/// One number of a law, of a unit of translation or of rotation.
enum class Number { stiffness, dashpot, inertia };

double& number_of(RowSpring& law, Number number) {
  switch (number) {
    case Number::stiffness: return law.stiffness;
    case Number::dashpot: return law.dashpot;
    case Number::inertia: break;
  }
  return law.curve.inertia;
}

const char* unit_of(Number number) {
  switch (number) {
    case Number::stiffness: return "N/m or N m/rad";
    case Number::dashpot: return "N s/m or N m s/rad";
    case Number::inertia: break;
  }
  return "kg or kg m^2";
}

/// How a row's numbers change with the one of full depth.
SpringChange change_at(const SpringCurve& curve, double gap, Number number) {
  const SpringShape shape = spring_shape(curve, gap);
  SpringChange out;
  if (number == Number::stiffness) out.stiffness = shape.stiffness;
  if (number == Number::dashpot) out.dashpot = shape.others;
  if (number == Number::inertia) out.inertia = shape.others;
  return out;
}

class RowSpringKind : public ParameterKind {
 public:
  /// Of which rows: their law in a model, and the elements that have one.
  struct Rows {
    ConstraintKind kind;
    RowSpring& (*law)(Model&, int index);
    std::vector<ParameterElement> (*elements)(const Model&);
    int (*index)(const Model&, const ConstraintRows&, const DofRow&);  ///< what `law` takes, of a row
    int (*first)(const Model&, const ParameterElement&);  ///< the same of an element's first value; others follow it
  };
  RowSpringKind(const char* name, const Rows& rows, Number number) : name_(name), rows_(rows), number_(number) {}

 private:
  const char* name() const override { return name_; }
  const char* unit() const override { return unit_of(number_); }
  std::vector<ParameterElement> elements(const Model& model) const override { return rows_.elements(model); }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    const int first = rows_.first(model, e);
    for (int i = 0; i < e.size; ++i)
      values[i] = number_of(rows_.law(const_cast<Model&>(model), first + i), number_);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // Without an inertia it would be no law, without a dashpot it still is one.
    for (int i = 0; i < e.size; ++i) {
      if (number_ == Number::dashpot)
        checks::not_negative(what, values[i]);
      else
        checks::positive(what, values[i]);
    }
    const int first = rows_.first(model, e);
    for (int i = 0; i < e.size; ++i)
      number_of(rows_.law(model, first + i), number_) = values[i];
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    const int first = rows_.first(context.model, e);
    for (const DofRow& row : context.rows.dof_rows) {
      if (kind_of(context.rows.keys[row.block]) != rows_.kind || context.inactive[row.block]) continue;
      const int i = rows_.index(context.model, context.rows, row) - first;
      if (i < 0 || i >= e.size) continue;
      if (const auto law = row_law(context.model, context.rows, row); law && law->curve)
        out[i].rows.push_back({row.row, side(context, row, *law)});
    }
    if (rows_.kind != ConstraintKind::equality) return;
    for (const BodyRows& b : context.rows.body_rows)
      if (b.soft >= 0 && int(index_of(context.rows.keys[b.block])) == first) add_block(context, b, out[0]);
  }

  double side(const ParameterContext& context, const DofRow& row, const RowLaw& law) const {
    const double gap = law.both_signs ? -std::abs(row.phi) : row.phi;
    const SpringState state{context.options.timestep, row.phi, row.approach, context.lambda[row.row]};
    return spring_side(law.spring, state, change_at(*law.curve, gap, number_), law.both_signs);
  }

  /// Of an equality of bodies, whose rows of rotation have a share of the number.
  void add_block(const ParameterContext& context, const BodyRows& b, RightHandSide& out) const {
    const int equality = int(index_of(context.rows.keys[b.block]));
    const auto springs = equality_springs(context.model, context.rows, b);
    const double error = context.rows.soft_blocks[b.soft].error;
    for (int i = 0; i < b.size; ++i) {
      SpringChange change = change_at(*springs->curve, -error, number_);
      const double share = i < 3 ? 1 : context.model.equalities[equality].angular_share;
      for (double* value : {&change.stiffness, &change.dashpot, &change.inertia})
        *value *= share;
      const SpringState state = soft_row_state(context, b, i);
      out.rows.push_back({b.row + i, spring_side(springs->of_row(i), state, change, true)});
    }
  }

  const char* name_;
  Rows rows_;
  Number number_;
};

int of_key(const Model&, const ConstraintRows& rows, const DofRow& row) { return int(index_of(rows.keys[row.block])); }
int of_limit(const Model&, const ConstraintRows&, const DofRow& row) { return row.tendon; }
int of_friction(const Model&, const ConstraintRows&, const DofRow& row) { return row.spring; }
int own_index(const Model&, const ParameterElement& e) { return e.index; }
int first_dof(const Model& model, const ParameterElement& e) { return model.joint_v[e.index]; }

std::vector<ParameterElement> soft_equalities(const Model& model) {
  std::vector<ParameterElement> out;
  for (int i = 0; i < int(model.equalities.size()); ++i)
    if (model.equalities[i].spring.acts()) out.push_back({model.equalities[i].name, i, 1});
  return out;
}

template <RowSpring Tendon::*law>
std::vector<ParameterElement> soft_tendons(const Model& model) {
  std::vector<ParameterElement> out;
  for (int t = 0; t < int(model.tendons.size()); ++t)
    if ((model.tendons[t].*law).acts()) out.push_back({model.tendons[t].name, t, 1});
  return out;
}

std::vector<ParameterElement> creeping_joints(const Model& model) {
  std::vector<ParameterElement> out;
  for (const ParameterElement& e : all_joints(model)) {
    bool all = e.size > 0;
    for (int i = 0; i < e.size; ++i)
      all = all && model.dof_friction_spring[model.joint_v[e.index] + i].acts();
    if (all) out.push_back(e);
  }
  return out;
}

const RowSpringKind::Rows equality_rows{ConstraintKind::equality,
                                        [](Model& m, int i) -> RowSpring& { return m.equalities[i].spring; },
                                        soft_equalities, of_key, own_index};
const RowSpringKind::Rows tendon_limit_rows{ConstraintKind::limit,
                                            [](Model& m, int i) -> RowSpring& { return m.tendons[i].limit_spring; },
                                            soft_tendons<&Tendon::limit_spring>, of_limit, own_index};
const RowSpringKind::Rows tendon_friction_rows{
    ConstraintKind::tendon_friction, [](Model& m, int i) -> RowSpring& { return m.tendons[i].friction_spring; },
    soft_tendons<&Tendon::friction_spring>, of_friction, own_index};
const RowSpringKind::Rows joint_friction_rows{ConstraintKind::dry_friction,
                                              [](Model& m, int i) -> RowSpring& { return m.dof_friction_spring[i]; },
                                              creeping_joints, of_key, first_dof};

}  // namespace

std::unique_ptr<ParameterKind> make_equality_stiffness() {
  return std::make_unique<RowSpringKind>("equality_stiffness", equality_rows, Number::stiffness);
}
std::unique_ptr<ParameterKind> make_equality_dashpot() {
  return std::make_unique<RowSpringKind>("equality_dashpot", equality_rows, Number::dashpot);
}
std::unique_ptr<ParameterKind> make_equality_inertia() {
  return std::make_unique<RowSpringKind>("equality_inertia", equality_rows, Number::inertia);
}
std::unique_ptr<ParameterKind> make_tendon_limit_stiffness() {
  return std::make_unique<RowSpringKind>("tendon_limit_stiffness", tendon_limit_rows, Number::stiffness);
}
std::unique_ptr<ParameterKind> make_tendon_limit_dashpot() {
  return std::make_unique<RowSpringKind>("tendon_limit_dashpot", tendon_limit_rows, Number::dashpot);
}
std::unique_ptr<ParameterKind> make_tendon_limit_inertia() {
  return std::make_unique<RowSpringKind>("tendon_limit_inertia", tendon_limit_rows, Number::inertia);
}
std::unique_ptr<ParameterKind> make_tendon_friction_dashpot() {
  return std::make_unique<RowSpringKind>("tendon_friction_dashpot", tendon_friction_rows, Number::dashpot);
}
std::unique_ptr<ParameterKind> make_tendon_friction_inertia() {
  return std::make_unique<RowSpringKind>("tendon_friction_inertia", tendon_friction_rows, Number::inertia);
}
std::unique_ptr<ParameterKind> make_joint_friction_dashpot() {
  return std::make_unique<RowSpringKind>("joint_friction_dashpot", joint_friction_rows, Number::dashpot);
}
std::unique_ptr<ParameterKind> make_joint_friction_inertia() {
  return std::make_unique<RowSpringKind>("joint_friction_inertia", joint_friction_rows, Number::inertia);
}

}  // namespace coulomb

// What penalty contact asks of geometries (model/scene/materials.hpp says how two combine):
//
//   contact_stiffness/<geometry>           k_n, N/m; where it is set. In series with the partner's: dk = (k / k_own)^2 dk_own
//   contact_damping/<geometry>             k_d, N s/m^2; where it is set. The larger of two counts
//   contact_friction_stiffness/<geometry>  k_t, N s/m; likewise
//   contact_stiffness, contact_damping, contact_friction_stiffness: of the pairs of which neither geometry sets it
//   contact_scale/<geometry>               s; the product of two
//
// s = df_N at fixed motion on the normal row; what acts on friction directly is a force. Other contact laws do not feel them.
#include <algorithm>

#include "coulomb/base/small_math.hpp"
#include "coulomb/constraints/penalty/penalty_contact.hpp"
#include "coulomb/model/checks.hpp"
#include "coulomb/parameters/parameter_kind.hpp"
#include "coulomb/parameters/right_hand_side.hpp"

namespace coulomb {
namespace {

using Numbers = PenaltyMaterial;

/// A contact that the geometry takes part in (any, for an element that is no geometry), and its pair.
struct Touch {
  const BodyRows& b;
  const PairPenalty& pair;
  int contact;
  bool of_a;
  double scale;  ///< of the pair, times the contact's share

  double distance;  ///< d of (B10)
  double speed;     ///< c_N of (B10)
};

/// One visit per contact of the geometry that carries a force.
template <class Visit>
void each_contact(const ParameterContext& context, int geometry, Visit visit) {
  if (context.penalty == nullptr) return;
  for (const BodyRows& b : context.rows.body_rows) {
    if (b.contact < 0 || context.inactive[b.block]) continue;
    const Contact& contact = context.contacts[b.contact];
    if (geometry >= 0 && contact.geometry_a != geometry && contact.geometry_b != geometry) continue;
    const PairPenalty& pair = context.model.pair_penalty[contact.pair];
    visit(Touch{b, pair, b.contact, contact.geometry_a == geometry,
                pair.scale * context.penalty->shares[b.contact].value, contact.distance,
                context.penalty->velocity[b.row + 2]});
  }
}

/// Viscous friction by its factor s k_t: a force of that times `per`.
void add_viscous(const ParameterContext& context, const Touch& t, double per, RightHandSide& out) {
  if (context.penalty->modes[t.contact] != Mode::sticking) return;
  const double h = context.options.timestep;
  double f[3] = {0, 0, 0};

  // p = -h per c_T
  for (int i = 0; i < 2; ++i) {
    const double p = -h * per * context.penalty->velocity[t.b.row + i];
    axpy3(p, t.b.axes[i], f);
    out.impulses.push_back({t.b.row + i, p});
  }

  add_contact_force(context, t.b, f, out);
}

/// It is the element's number that counts in the pair.
bool owns(Owner owner, const ParameterElement& e, const Touch& t) {
  return owner == (e.index < 0 ? Owner::none : t.of_a ? Owner::a : Owner::b);
}

/// s = -scale distance dk.
void stiffness_right_hand_side(const ParameterContext& context, const ParameterElement& e, RightHandSide& out) {
  const bool shared = e.index < 0;
  // A geometry has this parameter where its own stiffness is set.
  const double own = shared ? 1 : context.model.geometry_materials[e.index].penalty.stiffness.value_or(1);
  each_contact(context, e.index, [&](const Touch& t) {
    if (shared && t.pair.stiffness) return;

    // In series dk = (k / k_own)^2 dk_own.
    const double share = shared ? 1 : *t.pair.stiffness / own;
    out.rows.push_back({t.b.row + 2, -t.scale * t.distance * share * share});
  });
}

/// s = scale distance c_N.
void damping_right_hand_side(const ParameterContext& context, const ParameterElement& e, RightHandSide& out) {
  each_contact(context, e.index, [&](const Touch& t) {
    if (owns(t.pair.damping_owner, e, t)) {
      out.rows.push_back({t.b.row + 2, t.scale * t.distance * t.speed});
    }
  });
}

/// Viscous friction is proportional to k_t.
void friction_right_hand_side(const ParameterContext& context, const ParameterElement& e, RightHandSide& out) {
  each_contact(context, e.index, [&](const Touch& t) {
    if (owns(t.pair.friction_stiffness_owner, e, t)) {
      add_viscous(context, t, t.scale, out);
    }
  });
}

/// f_N and the viscous force are proportional to the product of the two scales.
void scale_right_hand_side(const ParameterContext& context, const ParameterElement& e, RightHandSide& out) {
  const Model& m = context.model;
  const PenaltyDefaults& defaults = m.penalty;
  each_contact(context, e.index, [&](const Touch& t) {
    // What the scale of this geometry multiplies.
    const Contact& c = context.contacts[t.contact];
    const double other = m.geometry_materials[t.of_a ? c.geometry_b : c.geometry_a].penalty.scale *
                         context.penalty->shares[t.contact].value;

    const double kn = t.pair.stiffness.value_or(defaults.stiffness);
    const double kd = t.pair.damping.value_or(defaults.damping);

    out.rows.push_back({t.b.row + 2, other * t.distance * (kd * t.speed - kn)});
    add_viscous(context, t, other * t.pair.friction_stiffness.value_or(defaults.friction_stiffness), out);
  });
}

/// One number of PenaltyMaterial.
struct Number {
  const char* name;
  const char* unit;
  std::optional<double> Numbers::*value;  ///< null: the scale, which every geometry has
  double PenaltyDefaults::*shared;        ///< of pairs that set none
  std::optional<double> PairPenalty::*of_pair;
  bool positive;
  void (*right_hand_side)(const ParameterContext&, const ParameterElement&, RightHandSide&);
};

class PenaltyKind : public ParameterKind {
 public:
  explicit PenaltyKind(const Number& number) : number_(number) {}
  const char* name() const override { return number_.name; }
  const char* unit() const override { return number_.unit; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    // The shared number, where it counts in some pair; then geometries that set their own.
    std::vector<ParameterElement> out;
    const auto unset = [&](const PairPenalty& pair) { return !(pair.*number_.of_pair); };
    if (number_.value != nullptr && std::any_of(model.pair_penalty.begin(), model.pair_penalty.end(), unset))
      out.push_back({"", -1, 1});

    for (const ParameterElement& e : all_geometries(model, 1))
      if (number_.value == nullptr || model.geometry_materials[e.index].penalty.*number_.value) {
        out.push_back(e);
      }
    return out;
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    // Of all pairs that set none, or of one geometry.
    if (e.index < 0) {
      values[0] = model.penalty.*number_.shared;
      return;
    }

    const Numbers& own = model.geometry_materials[e.index].penalty;
    values[0] = number_.value == nullptr ? own.scale : (own.*number_.value).value_or(0);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    // Signs that the law allows.
    if (number_.positive)
      checks::positive(what, values[0]);
    else
      checks::not_negative(what, values[0]);

    if (e.index < 0) {
      model.penalty.*number_.shared = values[0];
      return;
    }

    Numbers& own = model.geometry_materials[e.index].penalty;
    if (number_.value == nullptr)
      own.scale = values[0];
    else
      own.*number_.value = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    if (context.penalty != nullptr) number_.right_hand_side(context, e, out[0]);
  }

 private:
  Number number_;
};
}  // namespace

std::unique_ptr<ParameterKind> make_contact_stiffness() {
  return std::make_unique<PenaltyKind>(Number{"contact_stiffness", "N/m", &Numbers::stiffness,
                                              &PenaltyDefaults::stiffness, &PairPenalty::stiffness, true,
                                              stiffness_right_hand_side});
}
std::unique_ptr<ParameterKind> make_contact_damping() {
  return std::make_unique<PenaltyKind>(Number{"contact_damping", "N s/m^2", &Numbers::damping,
                                              &PenaltyDefaults::damping, &PairPenalty::damping, false,
                                              damping_right_hand_side});
}
std::unique_ptr<ParameterKind> make_contact_friction_stiffness() {
  return std::make_unique<PenaltyKind>(Number{"contact_friction_stiffness", "N s/m", &Numbers::friction_stiffness,
                                              &PenaltyDefaults::friction_stiffness, &PairPenalty::friction_stiffness,
                                              false, friction_right_hand_side});
}
std::unique_ptr<ParameterKind> make_contact_scale() {
  return std::make_unique<PenaltyKind>(
      Number{"contact_scale", "1", nullptr, nullptr, nullptr, false, scale_right_hand_side});
}
}  // namespace coulomb

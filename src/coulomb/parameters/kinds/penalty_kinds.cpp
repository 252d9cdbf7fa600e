// How geometries give way in contact (model/scene/materials.hpp says how two combine):
//
//   contact_stiffness/<geometry>           k_n, N/m; where it is set. In series with the partner's: dk = (k / k_own)^2 dk_own
//   contact_dashpot/<geometry>             d, N s/m; likewise
//   contact_damping/<geometry>             k_d, N s/m^2; where it is set. The larger of two counts
//   contact_friction_stiffness/<geometry>  k_t, N s/m; likewise
//   contact_stiffness, contact_damping, contact_friction_stiffness: of the pairs of which neither geometry sets it
//   contact_scale/<geometry>               s; the product of two
//
// With penalty contact s = df_N at fixed motion on the normal row; what acts on friction directly is a force. Rows of the constraint problem
// feel stiffness, dashpot and scale, by s = d(R lambda_N + beta), docs/theory.md (S9), (P9), and nothing else.
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

/// Of springs in series, d(whole) / d(one).
double share_in_series(double whole, double one) {
  const double share = one > 0 ? whole / one : 0;
  return share * share;
}

/// A contact of the geometry that is a spring in the constraint problem; that spring without its scale.
struct SoftTouch {
  const PairPenalty& pair;
  const PenaltyMaterial& own;
  const PenaltyMaterial& other;
  OneSidedSpring unscaled;
};

SpringChange spring_by_stiffness(const SoftTouch& t) {
  return {.stiffness = t.pair.scale * share_in_series(*t.pair.stiffness, t.own.stiffness.value_or(0))};
}

SpringChange spring_by_dashpot(const SoftTouch& t) {
  const double own = t.own.dashpot.value_or(0);
  const double other = t.other.dashpot.value_or(0);
  if (!t.other.stiffness) return {.dashpot = t.pair.scale};

  // d d'/(d + d') by d.
  const double share = other > 0 ? other / (own + other) : 0;
  return {.dashpot = t.pair.scale * share * share};
}

SpringChange spring_by_scale(const SoftTouch& t) {
  return {.stiffness = t.other.scale * t.unscaled.stiffness,
          .dashpot = t.other.scale * t.unscaled.dashpot,
          .inertia = t.other.scale * t.unscaled.inertia};
}

/// One number of PenaltyMaterial.
struct Number {
  const char* name;
  const char* unit;
  std::optional<double> Numbers::*value;  ///< null: the scale, which every geometry has
  double PenaltyDefaults::*shared;        ///< of pairs that set none; null: these have none either
  std::optional<double> PairPenalty::*of_pair;
  bool positive;

  /// With penalty contact, and of the rows of soft contacts; null: they do not feel it.
  void (*right_hand_side)(const ParameterContext&, const ParameterElement&, RightHandSide&);
  SpringChange (*of_spring)(const SoftTouch&);
};

/// pair_stiffness, pair_dashpot and pair_inertia of "a:b": the spring of a pair by itself, at full depth. Rows feel them by the spring's shape.
class PairSpringKind : public ParameterKind {
 public:
  PairSpringKind(const char* name, const char* unit, double& (*value)(PairSpring&), double SpringChange::*change)
      : name_(name), unit_(unit), value_(value), change_(change) {}

 private:
  const char* name() const override { return name_; }
  const char* unit() const override { return unit_; }
  std::vector<ParameterElement> elements(const Model& model) const override {
    return pairs_with(model, [](const PairOverride& own) { return own.spring.has_value(); });
  }
  void read(const Model& model, const ParameterElement& e, double* values) const override {
    PairSpring spring = *model.pair_overrides[e.index].spring;
    values[0] = value_(spring);
  }
  void write(Model& model, const ParameterElement& e, const double* values, const std::string& what) const override {
    if (change_ == &SpringChange::stiffness)
      checks::positive(what, values[0]);
    else
      checks::not_negative(what, values[0]);
    value_(*model.pair_overrides[e.index].spring) = values[0];
    refresh_pairs(model);
  }
  void right_hand_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide* out) const override {
    for (const BodyRows& b : context.rows.body_rows) {
      const auto spring = spring_of(context, b);
      if (!spring || context.inactive[b.block] || context.contacts[b.contact].pair != e.index) continue;
      const PairPenalty& pair = context.model.pair_penalty[e.index];
      const SpringShape shape = spring_shape(pair.curve, b.phi[2]);
      SpringChange change;
      change.*change_ = pair.scale * (change_ == &SpringChange::stiffness ? shape.stiffness : shape.others);
      const int normal = b.row + 2;
      const SpringState state{context.options.timestep, b.phi[2], b.approach, context.lambda[normal]};
      out[0].rows.push_back({normal, spring_side(*spring, state, change)});
    }
  }

  const char* name_;
  const char* unit_;
  double& (*value_)(PairSpring&);
  double SpringChange::*change_;
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
    if (number_.shared != nullptr && std::any_of(model.pair_penalty.begin(), model.pair_penalty.end(), unset))
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
    if (context.penalty != nullptr && number_.right_hand_side != nullptr) {
      number_.right_hand_side(context, e, out[0]);
    }
    if (e.index >= 0 && number_.of_spring != nullptr) {
      add_spring_sides(context, e, out[0]);
    }
  }

 private:
  /// Of the constraint problem's soft contacts that the geometry takes part in.
  void add_spring_sides(const ParameterContext& context, const ParameterElement& e, RightHandSide& out) const {
    const Model& m = context.model;
    for (const BodyRows& b : context.rows.body_rows) {
      const auto spring = spring_of(context, b);
      if (!spring || context.inactive[b.block]) continue;

      // Its material, and the partner's.
      const int pair = context.contacts[b.contact].pair;
      if (m.pair_a[pair] != e.index && m.pair_b[pair] != e.index) continue;
      const int partner = m.pair_a[pair] == e.index ? m.pair_b[pair] : m.pair_a[pair];
      PairPenalty unscaled = m.pair_penalty[pair];
      unscaled.scale = 1;
      const SoftTouch touch{m.pair_penalty[pair], m.geometry_materials[e.index].penalty,
                            m.geometry_materials[partner].penalty, *contact_spring(unscaled, b.phi[2])};

      const SpringChange change = number_.of_spring(touch);
      const double h = context.options.timestep;
      const int normal = b.row + 2;
      out.rows.push_back({normal, spring_side(*spring, {h, b.phi[2], b.approach, context.lambda[normal]}, change)});
    }
  }

  Number number_;
};
}  // namespace

std::unique_ptr<ParameterKind> make_contact_stiffness() {
  return std::make_unique<PenaltyKind>(Number{"contact_stiffness", "N/m", &Numbers::stiffness,
                                              &PenaltyDefaults::stiffness, &PairPenalty::stiffness, true,
                                              stiffness_right_hand_side, spring_by_stiffness});
}
std::unique_ptr<ParameterKind> make_contact_damping() {
  return std::make_unique<PenaltyKind>(Number{"contact_damping", "N s/m^2", &Numbers::damping,
                                              &PenaltyDefaults::damping, &PairPenalty::damping, false,
                                              damping_right_hand_side, nullptr});
}
std::unique_ptr<ParameterKind> make_contact_friction_stiffness() {
  return std::make_unique<PenaltyKind>(Number{"contact_friction_stiffness", "N s/m", &Numbers::friction_stiffness,
                                              &PenaltyDefaults::friction_stiffness, &PairPenalty::friction_stiffness,
                                              false, friction_right_hand_side, nullptr});
}
std::unique_ptr<ParameterKind> make_contact_scale() {
  return std::make_unique<PenaltyKind>(
      Number{"contact_scale", "1", nullptr, nullptr, nullptr, false, scale_right_hand_side, spring_by_scale});
}
std::unique_ptr<ParameterKind> make_pair_stiffness() {
  return std::make_unique<PairSpringKind>(
      "pair_stiffness", "N/m", [](PairSpring& s) -> double& { return s.stiffness; }, &SpringChange::stiffness);
}
std::unique_ptr<ParameterKind> make_pair_dashpot() {
  return std::make_unique<PairSpringKind>(
      "pair_dashpot", "N s/m", [](PairSpring& s) -> double& { return s.dashpot; }, &SpringChange::dashpot);
}
std::unique_ptr<ParameterKind> make_pair_inertia() {
  return std::make_unique<PairSpringKind>(
      "pair_inertia", "kg", [](PairSpring& s) -> double& { return s.curve.inertia; }, &SpringChange::inertia);
}
std::unique_ptr<ParameterKind> make_contact_dashpot() {
  return std::make_unique<PenaltyKind>(
      Number{"contact_dashpot", "N s/m", &Numbers::dashpot, nullptr, nullptr, false, nullptr, spring_by_dashpot});
}
}  // namespace coulomb

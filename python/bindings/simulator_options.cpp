#include "simulator_options.hpp"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <variant>

#include "module.hpp"

namespace coulomb::python {

namespace nb = nanobind;
namespace {

using Options = SimulatorOptions;
using Member = std::variant<double Options::*, int Options::*, bool Options::*, std::string Options::*,
                            std::uint64_t Options::*, std::optional<double> Options::*>;

struct Option {
  const char* name;
  Member member;
  const char* range;  ///< with its unit
  const char* words;
};
struct Group {
  const char* title;
  std::vector<Option> options;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"Of every step",
       {{"timestep", &Options::timestep, "s, [1e-9, 1]", "None: the model's"},
        {"contact", &Options::contact, "'auto', 'ncp', 'lcp', 'penalty'",
         "the exact Coulomb cone; pyramids; springs and dampers. 'auto': 'ncp', with an implicit stepper 'penalty'"},
        {"stepper", &Options::stepper, "'semi_implicit', 'bdf1', 'bdf2'", "docs/implicit.md"},
        {"patches", &Options::patches, "", "keep manifold points from step to step"},
        {"warm_start", &Options::warm_start, "", "start the solver from the step before"},
        {"exclude_neutral_overlaps", &Options::exclude_neutral_overlaps, "",
         "leave out pairs of one robot's own geometries that its joints cannot part"},
        {"gyroscopic", &Options::gyroscopic, "'implicit', 'explicit'",
         "what free and ball joints carry turns torque-free through the step and keeps its energy; or feels the torque "
         "at the start of the step (MuJoCo's Euler; gains energy)"},
        {"joint_forces", &Options::joint_forces, "'implicit_velocity', 'implicit', 'explicit'",
         "velocity gains of actuators act at the end of the step, stable for any gain (MuJoCo's implicitfast); so do "
         "position gains and joint springs; or actuators as at its start (MuJoCo's Euler). Joint damping is implicit "
         "always"}}},
      {"Of hard contact, 'ncp' and 'lcp'",
       {{"solver", &Options::solver, "'auto', 'ac_lm', 'admm', 'pgs', 'dantzig'",
         "'auto': the problem with a small compliance (docs/theory.md), by Newton's method or an interior point. The "
         "others: one method on the problem as it is; 'dantzig' with 'lcp' and 2 directions"},
        {"tolerance", &Options::tolerance, "(0, 0.01]", "scaled residual"},
        {"max_iterations", &Options::max_iterations, "at least 1", "budget of one method by itself"},
        {"baumgarte", &Options::baumgarte, "[0, 1]", "share of a position error that a step removes"},
        {"slop", &Options::slop, "m, rad, [0, 1]", "position error that is left alone"},
        {"max_correction_speed", &Options::max_correction_speed, "m/s, rad/s, (0, 1e6]",
         "no faster is a position error removed"},
        {"restitution_threshold", &Options::restitution_threshold, "m/s, [0, 1e6]", "slower approaches do not bounce"},
        {"friction_directions", &Options::friction_directions, "2 to 16",
         "of 'lcp': half the sides of the friction polygon; 2 is the boxed LCP (docs/lcp.md)"},
        {"friction_polygon", &Options::friction_polygon, "'circumscribed', 'inscribed'",
         "of 'lcp': around the disc of the cone, or in it"},
        {"continuous_collision", &Options::continuous_collision, "",
         "split steps at impacts, so that nothing passes through anything (docs/impacts.md)"},
        {"max_impacts", &Options::max_impacts, "at least 1", "of one split step; more lose their restitution"},
        {"penetration_tolerance", &Options::penetration_tolerance, "m, (0, 1]",
         "how deep touching bodies may sink in a split step"}}},
      {"Of contact 'penalty' and implicit steppers",
       {{"contact_stiffness", &Options::contact_stiffness, "N/m, > 0",
         "of geometries that say nothing; None: the model's (docs/penalty.md)"},
        {"contact_damping", &Options::contact_damping, "N s/m^2, >= 0", "likewise"},
        {"contact_friction_stiffness", &Options::contact_friction_stiffness, "N s/m, >= 0", "likewise"},
        {"limit_stiffness", &Options::limit_stiffness, "N/m or N m/rad, (0, 1e15]", "of joint limits"},
        {"limit_damping", &Options::limit_damping, "N s/m^2 or N m s/rad^2, [0, 1e15]", "of joint limits"},
        {"equality_stiffness", &Options::equality_stiffness, "N/m or N m/rad, (0, 1e15]", "of equalities"},
        {"equality_damping", &Options::equality_damping, "N s/m or N m s/rad, [0, 1e15]", "of equalities"},
        {"dry_friction_velocity", &Options::dry_friction_velocity, "m/s, rad/s, (0, 1000]",
         "from where on dry friction of joints has its full force, about"},
        {"newton_iterations", &Options::newton_iterations, "at least 1", "of one solve"},
        {"newton_halvings", &Options::newton_halvings, "0 to 16", "how often a step may be halved"}}},
      {"Of derivatives",
       {{"gradient", &Options::gradient,
         "'exact', 'complementarity_aware', 'approximate_bounce', 'smoothed_collision', 'smoothed_step', "
         "'from_distance'",
         "docs/conventions.md: of the step as it is; in a vjp, at ties, the side with the larger gradient; of "
         "positions "
         "through elastic impacts; contacts move as on average over perturbed poses; Jacobian averaged over perturbed "
         "states; gaps act in part"},
        {"tie_margin", &Options::tie_margin, "[0, 1e6]",
         "of 'complementarity_aware': Contact.margin below which one is a tie"},
        {"gradient_samples", &Options::gradient_samples, "at least 1", "of the smoothed ones"},
        {"gradient_scale", &Options::gradient_scale, "m, rad, m/s, rad/s, (0, 1]",
         "of the smoothed ones: standard deviation; of 'from_distance': the gap (m) that acts to 1/e"},
        {"gradient_seed", &Options::gradient_seed, "0 to 2^64 - 1", "of the smoothed ones"}}}};
  return all;
}

const Option* find(const std::string& name) {
  for (const Group& group : groups())
    for (const Option& option : group.options)
      if (name == option.name) return &option;
  return nullptr;
}

/// None stands for what the model says.
bool may_be_none(const Option& option) {
  return std::holds_alternative<std::optional<double> Options::*>(option.member) ||
         std::string(option.name) == "timestep";
}

std::string type_of(const Option& option) {
  const std::string none = may_be_none(option) ? " | None" : "";
  if (std::holds_alternative<bool Options::*>(option.member)) return "bool";
  if (std::holds_alternative<std::string Options::*>(option.member)) return "str";
  const bool real = std::holds_alternative<double Options::*>(option.member) ||
                    std::holds_alternative<std::optional<double> Options::*>(option.member);
  return (real ? "float" : "int") + none;
}

/// Whether the value is of the member's type, and stored then. Booleans are no numbers.
bool store(const Option& option, nb::handle value, Options& options) {
  if (value.is_none()) return may_be_none(option);
  const bool wants_bool = std::holds_alternative<bool Options::*>(option.member);
  if (nb::isinstance<nb::bool_>(value) != wants_bool) return false;
  return std::visit(
      [&](auto member) {
        using Value = std::decay_t<decltype(options.*member)>;
        if constexpr (std::is_same_v<Value, std::optional<double>>) {
          double number = 0;
          if (!nb::try_cast(value, number)) return false;
          options.*member = number;
          return true;
        } else {
          return nb::try_cast(value, options.*member);
        }
      },
      option.member);
}

nb::object value_of(const Option& option, const Options& options) {
  return std::visit(
      [&](auto member) -> nb::object {
        using Value = std::decay_t<decltype(options.*member)>;
        if constexpr (std::is_same_v<Value, std::optional<double>>)
          return options.*member ? nb::cast(*(options.*member)) : nb::none();
        else return nb::cast(options.*member);
      },
      option.member);
}

/// What the core calls otherwise, and Python by a shorter name.
constexpr const char* core_automatic = "automatic";
constexpr const char* automatic = "auto";

[[noreturn]] void refuse(const nb::object& told) {
  throw nb::type_error((std::string("Simulator(): ") + nb::cast<const char*>(told)).c_str());
}

}  // namespace

Options options_of(const nb::kwargs& keywords) {
  Options out;
  const nb::object calls = nb::module_::import_("coulomb._calls");
  for (const auto& [key, value] : keywords) {
    const std::string name = nb::cast<std::string>(key);
    const Option* option = find(name);
    if (!option) refuse(calls.attr("unknown_name")(name, nb::list(keywords_of(Options{}).keys())));
    if (!store(*option, value, out)) refuse(calls.attr("wrong_value")(name, value, type_of(*option)));
    if (name == "timestep" && !value.is_none() && out.timestep == 0)
      throw std::invalid_argument("timestep: got 0, expected a positive number of seconds");
  }
  if (out.solver == automatic) out.solver = core_automatic;
  return out;
}

nb::dict keywords_of(const Options& options) {
  nb::dict out;
  for (const Group& group : groups())
    for (const Option& option : group.options) out[option.name] = value_of(option, options);
  if (options.timestep == 0) out["timestep"] = nb::none();
  if (options.solver == core_automatic) out["solver"] = automatic;
  return out;
}

std::string signature_of_options() {
  const nb::dict defaults = keywords_of(Options{});
  std::string out = "def __init__(self, model: Model, timestep: float | None = None, *";
  for (const Group& group : groups())
    for (const Option& option : group.options)
      if (std::string(option.name) != "timestep")
        out += std::string(", ") + option.name + ": " + type_of(option) + " = " +
               nb::repr(nb::object(defaults[option.name])).c_str();
  return out + ") -> None";
}

std::string words_on_options() {
  std::string out =
      "Options, by what they belong to (docs/options.md). One that has no influence on the simulator that is asked for "
      "is refused by name, unless it is as it is by default; `options` of a simulator are all of them.";
  for (const Group& group : groups()) {
    out += std::string("\n\n") + group.title + ":\n";
    for (const Option& option : group.options) {
      const std::string range = option.range;
      out += std::string("\n- ") + option.name + (range.empty() ? "" : " (" + range + ")") + ": " + option.words + ".";
    }
  }
  return out +
         "\n\nValueError names the option and its value, TypeError an option that is unknown or of the wrong type.";
}

void bind_simulator_options(nb::module_& module) {
  module.def("_simulator_options", [] {
    const nb::dict defaults = keywords_of(Options{});
    nb::list out;
    for (const Group& group : groups())
      for (const Option& option : group.options)
        out.append(nb::make_tuple(group.title, option.name, type_of(option), nb::object(defaults[option.name]),
                                  option.range, option.words));
    return out;
  });
}

}  // namespace coulomb::python

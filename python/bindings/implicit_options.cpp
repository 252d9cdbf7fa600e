#include "implicit_options.hpp"

#include <optional>
#include <string>

#include "module.hpp"

namespace coulomb::python {

namespace nb = nanobind;
namespace {

struct RealOption {
  const char* name;
  double SimulatorOptions::*member;
};
struct CountOption {
  const char* name;
  int SimulatorOptions::*member;
};

struct ModelOption {  // None: the model's
  const char* name;
  std::optional<double> SimulatorOptions::*member;
};

constexpr ModelOption of_model[] = {{"contact_stiffness", &SimulatorOptions::contact_stiffness},
                                    {"contact_damping", &SimulatorOptions::contact_damping},
                                    {"contact_friction_stiffness", &SimulatorOptions::contact_friction_stiffness}};
constexpr RealOption reals[] = {{"limit_stiffness", &SimulatorOptions::limit_stiffness},
                                {"limit_damping", &SimulatorOptions::limit_damping},
                                {"equality_stiffness", &SimulatorOptions::equality_stiffness},
                                {"equality_damping", &SimulatorOptions::equality_damping},
                                {"dry_friction_velocity", &SimulatorOptions::dry_friction_velocity},
                                {"tie_margin", &SimulatorOptions::tie_margin}};
constexpr CountOption counts[] = {{"newton_iterations", &SimulatorOptions::newton_iterations},
                                  {"newton_halvings", &SimulatorOptions::newton_halvings}};

template <class Value>
Value number(const std::string& name, nb::handle value, const char* expected) {
  Value out{};
  if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, out))
    throw nb::type_error(
        (name + ": expected " + expected + ", got " + nb::str(value.type().attr("__name__")).c_str()).c_str());
  return out;
}

}  // namespace

void set_implicit_options(const nb::kwargs& keywords, SimulatorOptions& options) {
  for (const auto& [key, value] : keywords) {
    const std::string name = nb::cast<const char*>(key);
    bool known = false;
    for (const ModelOption& o : of_model)
      if (name == o.name) {
        if (!value.is_none()) options.*o.member = number<double>(name, value, "a number");
        known = true;
      }
    for (const RealOption& o : reals)
      if (name == o.name) options.*o.member = number<double>(name, value, "a number"), known = true;
    for (const CountOption& o : counts)
      if (name == o.name) options.*o.member = number<int>(name, value, "an integer"), known = true;
    if (!known) {
      nb::dict all = keywords_of(SimulatorOptions{});
      const nb::object calls = nb::module_::import_("coulomb._calls");
      const nb::object told = calls.attr("unknown_name")(name.c_str(), nb::list(all.attr("keys")()));
      throw nb::type_error((std::string("Simulator(): ") + nb::cast<const char*>(told)).c_str());
    }
  }
}

void store_implicit_options(const SimulatorOptions& options, nb::dict& keywords) {
  for (const ModelOption& o : of_model)
    keywords[o.name] = options.*o.member ? nb::cast(*(options.*o.member)) : nb::none();
  for (const RealOption& o : reals) keywords[o.name] = options.*o.member;
  for (const CountOption& o : counts) keywords[o.name] = options.*o.member;
}

}  // namespace coulomb::python

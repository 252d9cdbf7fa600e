// Named parameters of a Model: list and change. Their derivatives are in stepping.cpp.
#include "coulomb/parameters.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "module.hpp"

namespace coulomb::python {

void bind_parameters(nb::class_<Model>& cls) {
  nb::module_ module = nb::module_::import_("types");
  cls.def(
         "parameters",
         [module](const Model& model) {
           nb::dict out;
           for (const ParameterInfo& p : parameters(model)) {
             nb::object entry = module.attr("SimpleNamespace")();
             nb::setattr(entry, "value", to_numpy(p.value));
             nb::setattr(entry, "size", nb::int_(p.value.size()));
             nb::setattr(entry, "unit", nb::str(p.unit.c_str()));
             out[p.name.c_str()] = entry;
           }
           return out;
         },
         nb::sig("def parameters(self) -> dict[str, types.SimpleNamespace]"),
         "Every named parameter, 'kind/element', with its .value (size,), .size and .unit. Kinds: mass, com, inertia "
         "(m, m c, I about the "
         "frame's origin: Pinocchio's ten), friction, restitution, compliance, pair_friction, "
         "pair_restitution, joint_placement, geometry_placement (x, "
         "y, z, rotation "
         "vector), size, vertices, joint_stiffness, joint_damping, armature, joint_friction, joint_limits, "
         "tendon_limits, gravity, "
         "timestep, "
         "joint_limit_stiffness, joint_limit_dashpot, gravity_compensation, "
         "actuator_gain, actuator_kp, actuator_kd (of servos), contact_stiffness, contact_dashpot, contact_damping, "
         "contact_friction_stiffness, contact_scale, pair_stiffness, pair_dashpot, pair_inertia (softness='file'), "
         "contact_points.")
      .def(
          "with_parameters",
          [](const Model& model, nb::dict values) {
            ParameterValues list;
            for (auto [key, value] : values) {
              if (!nb::isinstance<nb::str>(key)) throw nb::type_error("values: names of parameters are strings");
              const std::string name = nb::cast<std::string>(key), what = "parameter '" + name + "'";
              const nb::object row = nb::module_::import_("numpy").attr("atleast_1d")(value);
              list.emplace_back(name, ArrayIn(row.attr("ravel")(), what.c_str(), {-1}).vector());
            }
            return std::const_pointer_cast<Model>(with_parameters(model, list));
          },
          nb::arg("values"), nb::sig("def with_parameters(self, values: dict[str, numpy.typing.ArrayLike]) -> Model"),
          "A new Model with these values; what did not change is shared.\n\nValueError: names the parameter, element "
          "and value: unknown "
          "names, wrong sizes, NaN, values that break physics.");
}

}  // namespace coulomb::python

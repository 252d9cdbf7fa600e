// Model.to_pinocchio and its kin.
#include "coulomb/model/loaders/pin_coordinates.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>

#include "arrays.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/model/name_hints.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

using Robot = std::optional<std::string>;

const PinocchioMap& find_map(const Model& model, const Robot& robot) {
  std::string listed;
  std::vector<std::string> names;
  for (const PinocchioMap& map : model.pinocchio_maps) {
    if (robot ? map.name == *robot : model.pinocchio_maps.size() == 1) return map;
    listed += (listed.empty() ? "'" : ", '") + map.name + "'";
    names.push_back(map.name);
  }
  const std::vector<std::string> guess = robot ? similar_names(*robot, names) : std::vector<std::string>{};
  throw nb::value_error(("robot: got " + (robot ? "'" + *robot + "'" : std::string("None")) +
                         (guess.empty() ? "" : ", did you mean '" + guess[0] + "'?") + ", expected one of " + listed)
                            .c_str());
}

void check_finite(const ArrayIn& array, const char* name) {
  for (std::size_t i = 0; i < array.size(); ++i)
    if (!std::isfinite(array.data()[i]))
      throw nb::value_error((std::string(name) + "[" + std::to_string(i) + "] is not finite").c_str());
}

nb::object to_pin(const Model& model, nb::handle q, nb::handle v, const Robot& robot) {
  const PinocchioMap& map = find_map(model, robot);
  const ArrayIn q_in(q, "q", {model.nq}), v_in(v, "v", {model.nv});
  check_configuration(model, q_in.data(), "q");
  check_finite(v_in, "v");
  ArrayOut q_out = new_array(map.nq), v_out = new_array(map.nv);
  to_pinocchio(map, q_in.data(), v_in.data(), q_out.data, v_out.data);
  return nb::make_tuple(q_out.array, v_out.array);
}

nb::object from_pin(const Model& model, nb::handle q, nb::handle v, const Robot& robot) {
  const PinocchioMap& map = find_map(model, robot);
  const ArrayIn q_in(q, "q", {map.nq}), v_in(v, "v", {map.nv});
  check_finite(q_in, "q");
  check_finite(v_in, "v");
  ArrayOut q_out = new_array(model.nq), v_out = new_array(model.nv);
  neutral(model, q_out.data);
  std::fill_n(v_out.data, model.nv, 0.0);
  from_pinocchio(map, q_in.data(), v_in.data(), q_out.data, v_out.data);
  check_configuration(model, q_out.data, "q");
  return nb::make_tuple(q_out.array, v_out.array);
}

}  // namespace

void bind_pin_coordinates(nb::class_<Model>& cls) {
  cls.def("to_pinocchio", &to_pin, nb::arg("q"), nb::arg("v"), nb::arg("robot") = nb::none(),
          nb::sig("def to_pinocchio(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, robot: str | None = "
                  "None) -> tuple[numpy.ndarray, numpy.ndarray]"),
          "q (nq,), v (nv,) in the coordinates of the `pin` model of one robot (needed only if there are several): "
          "quaternions x y z w, a "
          "free joint's linear velocity in body axes, continuous joints as (cos, sin).");
  cls.def("from_pinocchio", &from_pin, nb::arg("q"), nb::arg("v"), nb::arg("robot") = nb::none(),
          nb::sig("def from_pinocchio(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, robot: str | None = "
                  "None) -> tuple[numpy.ndarray, numpy.ndarray]"),
          "The inverse of to_pinocchio; what is not part of the robot is neutral and at rest. Angles of continuous "
          "joints in (-pi, pi].");
  cls.def(
      "pinocchio_tangent",
      [](const Model& model, nb::handle q, const Robot& robot) {
        const PinocchioMap& map = find_map(model, robot);
        const ArrayIn q_in(q, "q", {model.nq});
        check_configuration(model, q_in.data(), "q");
        ArrayOut out = new_array(map.nv, model.nv);
        pinocchio_tangent(model, map, q_in.data(), out.data);
        return out.array;
      },
      nb::arg("q"), nb::arg("robot") = nb::none(),
      nb::sig("def pinocchio_tangent(self, q: numpy.typing.ArrayLike, robot: str | None = None) -> numpy.ndarray"),
      "T (nv of pin, nv): v_pin = T v, dq_pin = T dq; a Jacobian of pin becomes ours by J_pin T.");
}

}  // namespace coulomb::python

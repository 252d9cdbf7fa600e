// Outputs: readings of frames, joints and sensors, at a state, after a step, along a rollout; and their derivatives.
#include "outputs.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "coulomb/dynamics.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "module.hpp"

namespace coulomb::python {

std::vector<std::string> output_names_of(nb::handle names) {
  if (nb::isinstance<nb::str>(names)) return {nb::cast<std::string>(names)};
  if (!PySequence_Check(names.ptr())) throw nb::type_error("name: expected the name of an output, or a list of names");
  std::vector<std::string> out;
  for (nb::handle item : names) {
    if (!nb::isinstance<nb::str>(item)) throw nb::type_error("name: names of outputs are strings");
    out.push_back(nb::cast<std::string>(item));
  }
  return out;
}

namespace {

bool take(std::vector<std::string>& wrt, const char* name) {
  const auto found = std::find(wrt.begin(), wrt.end(), name);
  if (found == wrt.end()) return false;
  wrt.erase(found);
  return true;
}

}  // namespace

bool take_fext(std::vector<std::string>& wrt) { return take(wrt, "fext"); }
bool take_mocap(std::vector<std::string>& wrt) { return take(wrt, "mocap"); }

OutputWeights::OutputWeights(const Model& model, nb::handle outputs, Py_ssize_t rows, Py_ssize_t outer) {
  if (outputs.is_none()) return;
  if (!nb::isinstance<nb::dict>(outputs)) throw nb::type_error("outputs: expected a dict of names and cotangents");
  const nb::dict given = nb::borrow<nb::dict>(outputs);
  std::vector<std::string> names;
  for (auto [key, value] : given) {
    if (!nb::isinstance<nb::str>(key)) throw nb::type_error("outputs: names of outputs are strings");
    names.push_back(nb::cast<std::string>(key));
  }
  set = OutputSet(model, names);
  const Py_ssize_t count = (rows > 0 ? rows : 1) * (outer > 0 ? outer : 1), width = set.tangent_size();
  values.resize(static_cast<std::size_t>(count * width));
  for (const OutputSet::Item& item : set.items()) {
    const std::string what = "outputs['" + item.sensor.name + "']";
    nb::object value = nb::borrow(given[item.sensor.name.c_str()]);
    if (rows == 0) value = nb::module_::import_("numpy").attr("atleast_1d")(value);
    const auto read = [&](const ArrayIn& array) {
      array.finite(what.c_str());
      for (Py_ssize_t t = 0; t < count; ++t)
        std::copy_n(array.data() + t * item.tangent_size, item.tangent_size,
                    values.data() + t * width + item.first_tangent);
    };
    if (outer > 0) read(ArrayIn(value, what.c_str(), {outer, rows, item.tangent_size}));
    else if (rows > 0) read(ArrayIn(value, what.c_str(), {rows, item.tangent_size}));
    else read(ArrayIn(value, what.c_str(), {item.tangent_size}));
  }
}

namespace {

nb::object matrix(const std::vector<double>& values, Py_ssize_t rows, int columns) {
  static const double nothing = 0;
  return to_numpy(values.empty() ? &nothing : values.data(), rows, columns, columns);
}

void bind_contact_derivative(nb::class_<StepDerivatives>& cls, const char* name, ContactQuantity quantity,
                             const char* doc) {
  cls.def(
      name,
      [name, quantity](const StepDerivatives& d, const std::string& wrt) {
        Origin origin(d, name);
        Simulator& sim = origin.simulator();
        int columns = 0;
        const std::vector<double> values = contact_derivatives(sim, quantity, wrt, columns);
        Py_ssize_t rows = 0;
        for (const BodyRows& b : sim.record().rows.body_rows)
          rows += b.contact >= 0 ? (quantity == ContactQuantity::depth ? 1 : 3) : 0;
        return matrix(values, rows, columns);
      },
      nb::arg("wrt"), nb::sig((std::string("def ") + name + "(self, wrt: str) -> numpy.ndarray").c_str()), doc);
}

}  // namespace

void bind_model_outputs(nb::class_<Model>& cls) {
  nb::class_<Site>(cls, "Site", "A named frame on a body, with the volume that a touch sensor on it covers.")
      .def_ro("name", &Site::name, "Name in the robot's file, made unique.")
      .def("__repr__", [](const Site& s) { return "<Site " + s.name + ">"; })
      .def_prop_ro(
          "body", [](const Site& s) { return s.frame.body; }, "Index of the body that carries it.")
      .def_prop_ro(
          "position", [](const Site& s) { return to_numpy(s.frame.pos); }, "(3,) m, in the body's frame.")
      .def_prop_ro(
          "quaternion", [](const Site& s) { return to_numpy(s.frame.quat); }, "(4,) wxyz, in the body's frame.");
  cls.def_ro(
         "sites", &Model::sites,
         "Frames that ride on bodies: sites of MJCF files, links that a fixed joint of a URDF welds to a body, frames "
         "of a pin.Model.")
      .def_prop_ro(
          "sensor_names",
          [](const Model& model) {
            std::vector<std::string> names;
            for (const Sensor& s : model.sensors) names.push_back(s.name);
            return names;
          },
          "Names of the sensors of MJCF files that are supported; outputs 'sensor/<name>'.");
  const nb::module_ types = nb::module_::import_("types");
  const auto described = [types](const Model& model, const std::vector<std::string>& names) {
    nb::dict out;
    for (const std::string& name : names) {
      const Sensor sensor = find_output(model, name);
      nb::object entry = types.attr("SimpleNamespace")();
      nb::setattr(entry, "size", nb::int_(sensor_size(model, sensor)));
      nb::setattr(entry, "tangent_size", nb::int_(sensor_tangent_size(model, sensor)));
      nb::setattr(entry, "unit", nb::str(sensor_unit(model, sensor)));
      out[name.c_str()] = entry;
    }
    return out;
  };
  cls.def(
      "force_outputs", [described](const Model& model) { return described(model, force_output_names(model)); },
      nb::sig("def force_outputs(self) -> dict[str, types.SimpleNamespace]"),
      "The forces of a step that can be read (Simulator.output), as outputs() describes them: contact_force/<body, "
      "link "
      "or geometry> (3,), joint_limit_force/<joint> (1,), joint_friction_force/<joint> (its dofs), "
      "equality_force/<equality> (connect 3, weld 6, joint 1), actuator_force/<actuator> (1,), "
      "tendon_actuator_force/<tendon> and tendon_limit_force/<tendon> (1,).");
  cls.def(
      "outputs", [described](const Model& model) { return described(model, output_names(model)); },
      nb::sig("def outputs(self) -> dict[str, types.SimpleNamespace]"),
      "Every output, 'kind/element', with its .size, .tangent_size (orientations: 4 and 3) and .unit. Kinds: position, "
      "orientation, velocity, angular_velocity (of a body, site or geometry, world axes), joint_position, "
      "joint_velocity, subtree_com, subtree_velocity, sensor (of MJCF files). Forces of a step: force_outputs(). "
      "docs/outputs.md");
  cls.def("_is_force",
          [](const Model& model, const std::string& name) { return is_force(find_output(model, name).type); });
  cls.def("_output_sizes", [](const Model& model, const std::vector<std::string>& names) {
    nb::list sizes;
    const OutputSet set(model, names);
    for (const OutputSet::Item& item : set.items()) sizes.append(nb::make_tuple(item.size, item.tangent_size));
    return sizes;
  });
  cls.def(
      "output",
      [](const Model& model, nb::handle name, nb::handle q, nb::handle v) {
        return to_numpy(output_readings(model, ArrayIn(q, "q", {model.nq}).vector(),
                                        v.is_none() ? std::vector<double>(static_cast<std::size_t>(model.nv))
                                                    : ArrayIn(v, "v", {model.nv}).vector(),
                                        output_names_of(name)));
      },
      nb::arg("name"), nb::arg("q"), nb::arg("v") = nb::none(),
      nb::sig("def output(self, name: str | list[str], q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike | None = "
              "None) -> numpy.ndarray"),
      "(size,) reading at (q, v); of a list of names: one after the other. v None: zero.\n\nValueError: unknown name, "
      "bad argument, a force of a step.");
  cls.def(
      "output_jacobian",
      [](const Model& model, nb::handle name, nb::handle q, nb::handle v, const std::string& wrt) {
        int columns = 0;
        const std::vector<std::string> names = output_names_of(name);
        const auto values = output_jacobian(model, ArrayIn(q, "q", {model.nq}).vector(),
                                            v.is_none() ? std::vector<double>(static_cast<std::size_t>(model.nv))
                                                        : ArrayIn(v, "v", {model.nv}).vector(),
                                            names, wrt, columns);
        return matrix(values, OutputSet(model, names).tangent_size(), columns);
      },
      nb::arg("name"), nb::arg("q"), nb::arg("v") = nb::none(), nb::arg("wrt") = "q",
      nb::sig("def output_jacobian(self, name: str | list[str], q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike | "
              "None = None, wrt: str = 'q') -> numpy.ndarray"),
      "(tangent_size, k) derivative of the reading by 'q' (tangent space), 'v' or a parameter, the others held; "
      "orientations in the frame's own axes. Errors as output.");
  cls.def(
      "ray",
      [](const Model& model, nb::handle q, nb::handle point, nb::handle direction, int exclude) {
        const auto three = [](nb::handle given, const char* what) {
          const std::vector<double> values = ArrayIn(given, what, {3}).vector();
          return std::array<double, 3>{values[0], values[1], values[2]};
        };
        const RayHit hit = ray(model, ArrayIn(q, "q", {model.nq}).vector(), three(point, "point"),
                               three(direction, "direction"), exclude);
        const nb::object geometry = hit.geometry < 0 ? nb::none() : nb::object(nb::int_(hit.geometry));
        return nb::make_tuple(hit.distance, geometry, to_numpy(hit.normal));
      },
      nb::arg("q"), nb::arg("point"), nb::arg("direction"), nb::arg("exclude") = -1,
      nb::sig("def ray(self, q: numpy.typing.ArrayLike, point: numpy.typing.ArrayLike, direction: "
              "numpy.typing.ArrayLike, exclude: int = -1) -> tuple[float, int | None, numpy.ndarray]"),
      "What a ray from `point` along `direction` ((3,) each, world axes, any length but zero) meets first at q: the "
      "distance in metres, the index of the geometry, and its outward unit normal (3,); (-1.0, None, zeros) if "
      "nothing. "
      "exclude: a body whose geometries do not count.\n\nValueError: bad argument. With derivatives: the output "
      "'rangefinder/<site>'.");
  cls.def(
      "point_jacobian",
      [](const Model& model, nb::handle q, int body, nb::handle point) {
        const auto J =
            point_jacobian(model, ArrayIn(q, "q", {model.nq}).vector(), body, ArrayIn(point, "point", {3}).vector());
        return to_numpy(J.data(), 6, model.nv, model.nv);
      },
      nb::arg("q"), nb::arg("body"), nb::arg("point"),
      nb::sig("def point_jacobian(self, q: numpy.typing.ArrayLike, body: int, point: numpy.typing.ArrayLike) -> "
              "numpy.ndarray"),
      "(6, nv): velocity of a point (3,) given in the body's frame, then angular velocity of the body, world axes, per "
      "v.\n\nIndexError: no such body. ValueError: bad argument.");
  cls.def(
      "body_velocities",
      [](const Model& model, nb::handle q, nb::handle v) {
        const auto twists =
            body_velocities(model, ArrayIn(q, "q", {model.nq}).vector(), ArrayIn(v, "v", {model.nv}).vector());
        return to_numpy(twists.data(), model.num_bodies, 6, 6);
      },
      nb::arg("q"), nb::arg("v"),
      nb::sig("def body_velocities(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "(num_bodies, 6): velocity of the frame's origin (m/s), angular velocity (rad/s), world axes.");
}

void bind_batch_outputs(nb::class_<Batch>& cls) {
  cls.def(
      "output",
      [](Batch& b, nb::handle name) {
        const Idle idle(b);
        const OutputSet set(b.model(), output_names_of(name));
        ArrayOut out = new_array(b.n(), set.size());
        b.simulator.read_outputs(set, out.data);
        return out.array;
      },
      nb::arg("name"), nb::sig("def output(self, name: str | list[str]) -> numpy.ndarray"),
      "(n, size) Simulator.output of every environment; of one that was reset, at the state that reset was given, "
      "forces "
      "zero. Rows of environments that have neither stepped nor been given a state are nan.\n\nRuntimeError: that is "
      "so "
      "of all; ValueError: unknown output.");
}

void bind_step_outputs(nb::class_<StepDerivatives>& derivatives, nb::class_<SimulatorObject>& simulator) {
  bind_contact_derivative(
      derivatives, "dpoint", ContactQuantity::point,
      "(3 n, k) derivative of the points of the n contacts of Simulator.contacts, separating ones "
      "too, world axes, by 'q', 'v', 'u', 'tau' (zero but for q where contacts are found before the step "
      "moves anything; found at its end with implicit steppers and penalty contact) or a parameter.\n\nErrors as "
      "dlambda.");
  bind_contact_derivative(derivatives, "dnormal", ContactQuantity::normal, "(3 n, k) the same of the normals.");
  bind_contact_derivative(derivatives, "ddepth", ContactQuantity::depth, "(n, k) the same of the depths.");
  derivatives.def(
      "output",
      [](const StepDerivatives& d, nb::handle name, const std::string& wrt) {
        Origin origin(d, "output");
        Simulator& sim = origin.simulator();
        const OutputSet set(sim.model(), output_names_of(name));
        int columns = 0;
        const std::vector<double> values = output_derivatives(sim, set, wrt, columns);
        return matrix(values, set.tangent_size(), columns);
      },
      nb::arg("name"), nb::arg("wrt"), nb::sig("def output(self, name: str | list[str], wrt: str) -> numpy.ndarray"),
      "(tangent_size, k) derivative of Simulator.output(name) by 'q', 'v', 'u', 'tau' or a parameter.\n\nErrors as "
      "dlambda; ValueError: unknown output.");
  simulator.def(
      "output", exclusive(+[](Simulator& sim, nb::handle name) {
        return to_numpy(read_outputs(sim, OutputSet(sim.model(), output_names_of(name))));
      }),
      nb::arg("name"), nb::sig("def output(self, name: str | list[str]) -> numpy.ndarray"),
      "(size,) reading after the last step: at the next state; of forces (touch, actuatorfrc, ...), in the step. A "
      "list of names: one after the other.\n\nRuntimeError before the first step; ValueError: unknown output.");
}

}  // namespace coulomb::python

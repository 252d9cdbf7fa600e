// Simulator: its options, steps and products with their derivatives.
#include "coulomb/simulator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "arrays.hpp"
#include "coulomb/contact_problem.hpp"
#include "coulomb/model/name_hints.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/step_options.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "module.hpp"
#include "one_call.hpp"
#include "outputs.hpp"
#include "simulator_options.hpp"

namespace coulomb::python {

namespace {

/// (n, 7): positions and quaternions of the mocap bodies.
ArrayOut poses_of(const Model& model) {
  const std::vector<double> poses = mocap_poses(model);
  ArrayOut out = new_array(static_cast<Py_ssize_t>(model.mocap_bodies.size()), 7);
  std::copy(poses.begin(), poses.end(), out.data);
  return out;
}

void move_body(Simulator& sim, const std::string& name, nb::handle position, nb::handle quaternion) {
  const std::vector<std::string>& names = sim.model().body_names;
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw std::invalid_argument(no_such("body", name, names));
  sim.move_body(static_cast<int>(at - names.begin()), ArrayIn(position, "position", {3}).data(),
                ArrayIn(quaternion, "quaternion", {4}).data());
}

nb::object step(Simulator& sim, nb::handle q, nb::handle v, nb::handle u, nb::handle tau, nb::handle fext,
                nb::handle mocap) {
  const Model& model = sim.model();
  const ArrayIn q_in(q, "q", {model.nq}), v_in(v, "v", {model.nv});
  const OptionalArray u_in(u, "u", {model.nu}), tau_in(tau, "tau", {model.nv}),
      fext_in(fext, "fext", {model.num_bodies, 6});
  ArrayOut q_out = new_array(model.nq), v_out = new_array(model.nv);
  const auto take_step = [&] {
    sim.step(q_in.data(), v_in.data(), u_in.data(), tau_in.data(), fext_in.data(), q_out.data, v_out.data);
  };
  if (mocap.is_none()) {
    take_step();
  } else {
    // An error leaves the bodies where they were.
    const ArrayIn poses(mocap, "mocap", {static_cast<Py_ssize_t>(model.mocap_bodies.size()), 7});
    const std::vector<double> before = mocap_poses(model);
    sim.move_mocap_bodies(poses.data());
    try {
      take_step();
    } catch (...) {
      sim.move_mocap_bodies(before.data());
      throw;
    }
  }
  return nb::make_tuple(std::move(q_out.array), std::move(v_out.array));
}

nb::object jvp(Simulator& sim, nb::handle dq, nb::handle dv, nb::handle du, nb::handle dtau) {
  const Model& model = sim.model();
  const OptionalArray dq_in(dq, "dq", {model.nv}), dv_in(dv, "dv", {model.nv}), du_in(du, "du", {model.nu}),
      dtau_in(dtau, "dtau", {model.nv});
  ArrayOut dq_out = new_array(model.nv), dv_out = new_array(model.nv);
  sim.jvp(dq_in.data(), dv_in.data(), du_in.data(), dtau_in.data(), dq_out.data, dv_out.data);
  return nb::make_tuple(std::move(dq_out.array), std::move(dv_out.array));
}

StepCotangent vjp(Simulator& sim, nb::handle dq1, nb::handle dv1, std::vector<std::string> wrt, nb::handle outputs,
                  nb::handle dlambda) {
  const bool wants_fext = take_fext(wrt);
  const Py_ssize_t nv = sim.model().nv;
  if (outputs.is_none() && dlambda.is_none()) {
    for (const auto& [name, cotangent] : {std::pair("dq1", dq1), std::pair("dv1", dv1)})
      if (cotangent.is_none())
        throw nb::type_error((std::string(name) + ": got None, expected an array (" + std::to_string(nv) +
                              ",); only outputs= or dlambda= can go without")
                                 .c_str());
    const ArrayIn dq_in(dq1, "dq1", {nv}), dv_in(dv1, "dv1", {nv});
    return sim.vjp(dq_in.data(), dv_in.data(), wrt, wants_fext);
  }
  const OptionalArray dq_in(dq1, "dq1", {nv}), dv_in(dv1, "dv1", {nv});
  if (dq_in.data()) dq_in.finite("dq1");
  if (dv_in.data()) dv_in.finite("dv1");
  const OutputWeights weights(sim.model(), outputs);
  Py_ssize_t rows = 0;
  for (const BodyRows& b : sim.record().rows.body_rows) rows += b.contact >= 0 ? 3 : 0;
  const OptionalArray dlambda_in(dlambda, "dlambda", {rows});
  if (dlambda_in.data()) dlambda_in.finite("dlambda");
  return coulomb::vjp(sim, dq_in.data(), dv_in.data(),
                      {outputs.is_none() ? nullptr : &weights.set, weights.values.data(), dlambda_in.data()}, wrt,
                      wants_fext);
}

nb::class_<SimulatorObject> bind_simulator(nb::module_& module) {
  nb::class_<StepMemory>(module, "StepMemory",
                         "What steps carry on: contact features and impulses. Opaque; see Simulator.memory. Can be "
                         "pickled.")
      .def("__repr__",
           [](const StepMemory& m) { return "<StepMemory: " + counted(m.impulses.size(), "impulse") + ">"; })
      .def(
          "__reduce__", [](nb::handle self) { return reduced("memory", self); },
          nb::sig("def __reduce__(self) -> tuple"));
  nb::class_<SimulatorObject> cls(
      module, "Simulator",
      "Steps one model. Holds the memory of the last step (warm start, contact features). One call at a "
      "time: while a rollout runs, others from another thread or from its progress= are a RuntimeError.");
  cls.def(
      "__init__",
      [](SimulatorObject* self, std::shared_ptr<Model> model, nb::handle timestep, nb::kwargs options) {
        options["timestep"] = timestep;
        new (self) SimulatorObject(std::move(model), options_of(options));
      },
      nb::arg("model"), nb::arg("timestep") = nb::none(), nb::arg("options"), nb::sig(signature_of_options().c_str()),
      words_on_options().c_str());
  cls.def(
      "step", exclusive(&step), nb::arg("q"), nb::arg("v"), nb::arg("u") = nb::none(), nb::arg("tau") = nb::none(),
      nb::arg("fext") = nb::none(), nb::kw_only(), nb::arg("mocap") = nb::none(),
      nb::sig("def step(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, u: numpy.typing.ArrayLike | "
              "None = None, tau: numpy.typing.ArrayLike | None = None, fext: numpy.typing.ArrayLike | None = None, "
              "*, mocap: numpy.typing.ArrayLike | None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "One step: q (nq,), v (nv,) to (q1, v1). u: (nu,) controls. tau: (nv,) extra joint forces. fext: "
      "(num_bodies, 6) world force "
      "(N) and torque (N m) at each body's centre of mass. None: zero. mocap: (n, 7) positions (m) and quaternions (w "
      "x y z) of "
      "Model.mocap_bodies, for this and later steps; None: where they are.\n\nValueError: names argument, element and "
      "value; the "
      "simulator is then as it was. Numerical trouble is in status, never an exception; the results are finite (if "
      "numbers overflow: the state given).");
  cls.def("move_body", exclusive(&move_body), nb::arg("body"), nb::arg("position"), nb::arg("quaternion"),
          nb::sig("def move_body(self, body: str, position: numpy.typing.ArrayLike, quaternion: "
                  "numpy.typing.ArrayLike) -> None"),
          "Places a body that is fixed to the world, such as scenery or a mocap body, for the steps to come: position "
          "(3,) m, quaternion (4,) w x y z. It stands still within a step: what lies on it is not carried along. The "
          "simulator then has a model of its own (Simulator.model), and the last step no derivative. Parameter "
          "'body_placement/<body>'.\n\nValueError: names the body, or the argument and its value.");
  cls.def_prop_ro("mocap", exclusive(+[](Simulator& sim) { return poses_of(sim.model()).array; }),
                  nb::sig("def mocap(self) -> numpy.ndarray"),
                  "(n, 7) positions (m) and quaternions (w x y z) of Model.mocap_bodies.");
  bind_rollout(module, cls);
  cls.def_prop_ro("status", exclusive(+[](Simulator& sim) { return sim.status(); }), "StepStatus of the last step.");
  cls.def_prop_ro("contacts", exclusive(+[](Simulator& sim) { return sim.contacts(); }),
                  "List of Contact of the last step.");
  cls.def_prop_ro("impacts", exclusive(+[](Simulator& sim) { return sim.impacts(); }),
                  "With continuous_collision: list of Impact of the last step, in the order of time.");
  cls.def(
      "derivatives", exclusive(+[](Simulator& sim, const std::vector<std::string>& wrt) {
        return std::const_pointer_cast<StepDerivatives>(wrt.empty() ? sim.shared_derivatives() : sim.derivatives(wrt));
      }),
      nb::arg("wrt") = std::vector<std::string>{},
      "StepDerivatives of the last step; stay valid afterwards. wrt: names of parameters (Model.parameters) whose "
      "columns d[name] are "
      "wanted too.\n\nRuntimeError before the first step and after one that overflowed; ValueError: unknown "
      "parameter.");
  cls.def(
      "derivatives", exclusive(+[](Simulator& sim, const std::vector<std::string>& wrt, bool sparse) -> nb::object {
        if (sparse) return nb::cast(std::const_pointer_cast<SparseStepDerivatives>(sim.sparse_derivatives(wrt)));
        return nb::cast(
            std::const_pointer_cast<StepDerivatives>(wrt.empty() ? sim.shared_derivatives() : sim.derivatives(wrt)));
      }),
      nb::arg("wrt") = std::vector<std::string>{}, nb::kw_only(), nb::arg("sparse"),
      nb::sig("def derivatives(self, wrt: collections.abc.Sequence[str] = [], *, sparse: bool) -> StepDerivatives | "
              "SparseStepDerivatives"),
      "sparse=True: SparseStepDerivatives, the same numbers as SciPy matrices, without a dense one of (nv, nv): for "
      "scenes of many bodies.");
  cls.def("vjp", exclusive(&vjp), nb::arg("dq1") = nb::none(), nb::arg("dv1") = nb::none(),
          nb::arg("wrt") = std::vector<std::string>{}, nb::kw_only(), nb::arg("outputs") = nb::none(),
          nb::arg("dlambda") = nb::none(),
          nb::sig("def vjp(self, dq1: numpy.typing.ArrayLike | None = None, dv1: numpy.typing.ArrayLike | None = None, "
                  "wrt: list[str] = [], *, outputs: dict[str, numpy.typing.ArrayLike] | None = None, dlambda: "
                  "numpy.typing.ArrayLike | None = None) -> StepCotangent"),
          "Reverse mode: cotangents (nv,) of q1 and v1 to the StepCotangent of q, v, u and tau, and of the "
          "parameters named in wrt (g[name]), without forming a matrix; \"fext\" in wrt asks for the gradient by "
          "wrenches on bodies. outputs: cotangents (tangent_size,) of outputs "
          "by name (Simulator.output). dlambda: of the contact impulses, (3 n,) as the rows of "
          "StepDerivatives.dlambda. These two add to dq1 and dv1, which may then be None; forces and impulses cost a "
          "Jacobian.\n\nRuntimeError before the first step; ValueError: NaN in a cotangent, unknown name.");
  cls.def("jvp", exclusive(&jvp), nb::arg("dq") = nb::none(), nb::arg("dv") = nb::none(), nb::arg("du") = nb::none(),
          nb::arg("dtau") = nb::none(),
          nb::sig("def jvp(self, dq: numpy.typing.ArrayLike | None = None, dv: numpy.typing.ArrayLike | None = None, "
                  "du: numpy.typing.ArrayLike | None = None, dtau: numpy.typing.ArrayLike | None = None) -> "
                  "tuple[numpy.ndarray, numpy.ndarray]"),
          "Forward mode: tangents dq, dv, dtau (nv,) and du (nu,) of the inputs (None: zero) to those (nv,) of q1 and "
          "v1.\n\nRuntimeError "
          "before the first step.");
  cls.def("reset", exclusive(+[](Simulator& sim) { sim.reset(); }), "Forgets the last step: the next one starts cold.");
  cls.def_prop_rw(
      "memory", exclusive(+[](Simulator& sim) { return StepMemory(sim.memory()); }),
      exclusive(+[](Simulator& sim, const StepMemory& memory) { sim.set_memory(memory); }),
      "A copy of what steps carry on; assign it to replay a step exactly. ValueError: it belongs to a model of another "
      "structure.");
  cls.def("freeze_memory", exclusive(+[](Simulator& sim, bool frozen) { sim.freeze_memory(frozen); }),
          nb::arg("frozen"), "While frozen, steps read the memory and do not write it.");
  cls.def(
      "__reduce__", [](nb::handle self) { return reduced("simulator", self); },
      nb::sig("def __reduce__(self) -> tuple"));
  cls.def_prop_ro("_memory_frozen",
                  [](const SimulatorObject& sim) { return sim.resolved_options().collision.frozen_cache; });
  cls.def("__repr__", [](const SimulatorObject& sim) {
    char timestep[32];
    std::snprintf(timestep, sizeof timestep, "%g", sim.timestep());
    return "<Simulator: contact " + sim.options().contact + ", stepper " + sim.options().stepper + ", timestep " +
           timestep + " s, of " + in_words(sim.model()) + ">";
  });
  cls.def_prop_ro(
      "model", [](const SimulatorObject& sim) { return std::const_pointer_cast<Model>(sim.shared_model()); },
      "The Model that is simulated: the one given, without the pairs that overlap in the neutral pose (see its "
      "`ignored`).");
  cls.def_prop_ro("timestep", [](const SimulatorObject& sim) { return sim.timestep(); }, "s");
  cls.def_prop_ro(
      "options", [](const SimulatorObject& sim) { return keywords_of(sim.options()); },
      nb::sig("def options(self) -> dict"),
      "The keyword arguments that make such a simulator: Simulator(model, **sim.options).");
  return cls;
}

}  // namespace

void bind_stepping(nb::module_& module) {
  nb::class_<StepDerivatives> derivatives = bind_derivatives(module);
  bind_reports(module);
  bind_simulator_options(module);
  nb::class_<SimulatorObject> simulator = bind_simulator(module);
  bind_step_outputs(derivatives, simulator);
}

}  // namespace coulomb::python

// BatchSimulator: many environments on threads, with the GIL released. Arrays are made by numpy and filled in place.
#include "coulomb/batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "batch.hpp"
#include "batch_results.hpp"
#include "coulomb/stepping/stepper.hpp"
#include "outputs.hpp"
#include "simulator_options.hpp"

namespace coulomb::python {

namespace {

/// Rows [0, nv) or [nv, 2 nv) of a (n, 2 nv, k) array and, if wanted, the same of its columns.
nb::object block(const nb::object& array, int nv, bool lower, std::optional<bool> right = {}) {
  const auto half = [nv](bool second) {
    return nb::slice(nb::int_(second ? nv : 0), nb::int_(second ? 2 * nv : nv), nb::int_(1));
  };
  const nb::object all = nb::slice(nb::none(), nb::none(), nb::none());
  return array[nb::make_tuple(nb::ellipsis(), half(lower), right ? nb::object(half(*right)) : all)];
}

struct MemoryOut {
  std::vector<StepMemory> environments;
};

void construct(Batch* self, std::shared_ptr<Model> model, int num_envs, int num_threads, std::optional<double> timestep,
               std::optional<nb::dict> parameters, nb::kwargs options) {
  // Whatever a Simulator takes, and refuses, is taken and refused here.
  nb::dict known = keywords_of(SimulatorOptions{});
  for (auto [name, value] : options) {
    if (known.contains(name)) continue;
    for (const char* own : {"num_threads", "num_envs", "parameters"}) known[own] = nb::none();
    const nb::object told = nb::module_::import_("coulomb._calls").attr("unknown_name")(name, nb::list(known.keys()));
    throw nb::type_error((std::string("BatchSimulator(): ") + nb::cast<const char*>(told)).c_str());
  }
  if (timestep) options["timestep"] = *timestep;
  const nb::object simulator = nb::type<SimulatorObject>()(model, **options);
  const Simulator& one = nb::cast<const SimulatorObject&>(simulator);
  SimulatorOptions settings = one.options();
  if (settings.contact == "penalty") {  // the model took these options over
    const PenaltyDefaults& penalty = one.model().penalty;
    settings.contact_stiffness = penalty.stiffness, settings.contact_damping = penalty.damping;
    settings.contact_friction_stiffness = penalty.friction_stiffness;
  }
  if (!timestep) settings.timestep = 0;  // each model's own
  const BatchParameters values = parameters ? batch_parameters(*parameters, num_envs) : BatchParameters{};
  nb::gil_scoped_release release;
  new (self) Batch{BatchSimulator(std::move(model), num_envs, num_threads, settings, values), num_threads};
}

nb::object step(Batch& batch, nb::handle Q, nb::handle V, nb::handle U, nb::handle tau, nb::handle fext,
                nb::handle mask, nb::handle mocap) {
  const Model& model = batch.model();
  const Py_ssize_t n = batch.n();
  const ArrayIn q_in(Q, "Q", {n, model.nq}), v_in(V, "V", {n, model.nv});
  const OptionalArray u_in(U, "U", {n, model.nu}), tau_in(tau, "tau", {n, model.nv}),
      fext_in(fext, "fext", {n, model.num_bodies, 6}),
      mocap_in(poses_of_all(mocap, 3, n), "mocap", {n, num_mocap(model), 7});
  const Mask mask_in(mask, n);
  const ArrayOut q_out = new_array(n, model.nq), v_out = new_array(n, model.nv);
  {
    const Working working(batch);
    batch.simulator.step(
        {q_in.data(), v_in.data(), u_in.data(), tau_in.data(), fext_in.data(), mask_in.data(), mocap_in.data()},
        q_out.data, v_out.data);
  }
  return nb::make_tuple(q_out.array, v_out.array);
}

StatusOut status(Batch& batch) {
  const Idle idle(batch);
  std::vector<StepStatus> all;
  for (int i = 0; i < batch.n(); ++i) all.push_back(batch.simulator.environment(i).status());
  return StatusOut(std::move(all));
}

/// Steps may depend on the state before.
bool reaches_back(const Batch& batch) {
  return batch.simulator.environment(0).resolved_options().stepper->num_states() > 1;
}

DerivativesOut derivatives(Batch& batch, const std::vector<std::string>& wrt) {
  const Py_ssize_t n = batch.n(), nv = batch.model().nv, nu = batch.model().nu;
  DerivativesOut out;
  BatchJacobian to;
  {
    const Idle idle(batch);
    out.set = batch.simulator.parameter_set(wrt);
  }
  out.nv = batch.model().nv;
  to.A = new_array<double>({n, 2 * nv, 2 * nv}, "float64", out.A);
  to.B = new_array<double>({n, 2 * nv, nu}, "float64", out.B);
  to.B_tau = new_array<double>({n, 2 * nv, nv}, "float64", out.B_tau);
  to.parameters = new_array<double>({n, 2 * nv, out.set.size()}, "float64", out.columns);
  to.valid = new_array<bool>({n}, "bool", out.valid);
  if (reaches_back(batch)) to.A_previous = new_array<double>({n, 2 * nv, 2 * nv}, "float64", out.A_previous);
  const Working working(batch);
  batch.simulator.derivatives(wrt, to);
  return out;
}

CotangentOut vjp(Batch& batch, nb::handle dQ1, nb::handle dV1, std::vector<std::string> wrt, nb::handle outputs) {
  const bool wants_fext = take_fext(wrt);
  const Py_ssize_t n = batch.n(), nv = batch.model().nv, nu = batch.model().nu;
  if (outputs.is_none()) ArrayIn(dQ1, "dQ1", {n, nv}), ArrayIn(dV1, "dV1", {n, nv});  // needed then
  const OptionalArray dq_in(dQ1, "dQ1", {n, nv}), dv_in(dV1, "dV1", {n, nv});
  CotangentOut out;
  {
    const Idle idle(batch);
    out.set = batch.simulator.parameter_set(wrt);
  }
  BatchCotangent to;
  to.q = new_array<double>({n, nv}, "float64", out.q);
  to.v = new_array<double>({n, nv}, "float64", out.v);
  to.u = new_array<double>({n, nu}, "float64", out.u);
  to.tau = new_array<double>({n, nv}, "float64", out.tau);
  to.parameters = new_array<double>({n, out.set.size()}, "float64", out.columns);
  to.valid = new_array<bool>({n}, "bool", out.valid);
  if (wants_fext) to.fext = new_array<double>({n, batch.model().num_bodies, 6}, "float64", out.fext);
  if (reaches_back(batch)) {
    to.previous_q = new_array<double>({n, nv}, "float64", out.previous_q);
    to.previous_v = new_array<double>({n, nv}, "float64", out.previous_v);
  }
  const OutputWeights weights(batch.model(), outputs, n);
  const Working working(batch);
  batch.simulator.vjp(dq_in.data(), dv_in.data(), wrt, to, outputs.is_none() ? nullptr : &weights.set,
                      weights.values.data());
  return out;
}

nb::object jvp(Batch& batch, nb::handle dQ, nb::handle dV, nb::handle dU, nb::handle dtau) {
  const Py_ssize_t n = batch.n(), nv = batch.model().nv;
  const OptionalArray dq_in(dQ, "dQ", {n, nv}), dv_in(dV, "dV", {n, nv}), du_in(dU, "dU", {n, batch.model().nu}),
      dtau_in(dtau, "dtau", {n, nv});
  const ArrayOut dq_out = new_array(n, nv), dv_out = new_array(n, nv);
  {
    const Working working(batch);
    batch.simulator.jvp(dq_in.data(), dv_in.data(), du_in.data(), dtau_in.data(), dq_out.data, dv_out.data);
  }
  return nb::make_tuple(dq_out.array, dv_out.array);
}

void set_parameters(Batch& batch, nb::dict values, nb::handle mask) {
  const BatchParameters list = batch_parameters(values, static_cast<int>(batch.n()));
  const Mask mask_in(mask, batch.n());
  const Working working(batch);
  batch.simulator.set_parameters(list, mask_in.data());
}

/// What the models have now.
nb::object parameter_values(Batch& batch, const std::vector<std::string>& names) {
  const Idle idle(batch);
  const ParameterSet set = batch.simulator.parameter_set(names);
  const ArrayOut out = new_array(batch.n(), set.size());
  double* row = out.data;
  for (const auto& model : batch.simulator.models()) {
    set.read(*model, row);
    row += set.size();
  }
  return out.array;
}

int environment(const Batch& batch, int i) {
  if (i < 0 || i >= batch.n())
    throw nb::index_error(
        ("environment: got " + std::to_string(i) + ", expected 0 to " + std::to_string(batch.n() - 1)).c_str());
  return i;
}

void bind_results(nb::module_& module) {
  nb::class_<DerivativesOut> derivatives(
      module, "BatchDerivatives",
      "Jacobians of one batched step in tangent space; the first axis is the environment. The identity "
      "for environments that the mask left out.");
  derivatives.def("__repr__", [](const DerivativesOut& d) {
    const std::string shape = nb::str(nb::object(d.A.attr("shape"))).c_str();
    return "<BatchDerivatives: A " + shape + by_names(parameter_names(d.set)) + ">";
  });
  derivatives.def_ro("A", &DerivativesOut::A, "(n, 2 nv, 2 nv) d(q1, v1)/d(q, v)")
      .def_ro(
          "A_previous", &DerivativesOut::A_previous,
          nb::for_getter(nb::sig("def A_previous(self) -> numpy.ndarray | None")),
          "(n, 2 nv, 2 nv) d(q1, v1)/d(the state before) with stepper bdf2, zeros for a step without one; else None.")
      .def_ro("B", &DerivativesOut::B, "(n, 2 nv, nu) d(q1, v1)/du")
      .def_ro("B_tau", &DerivativesOut::B_tau, "(n, 2 nv, nv) d(q1, v1)/dtau")
      .def_ro("valid", &DerivativesOut::valid,
              "(n,) bool: False, and zeros, where the numbers of the step overflowed or an environment took no step "
              "since it was made or reset.")
      .def(
          "__getitem__",
          [](const DerivativesOut& d, const std::string& name) { return parameter_part(d.columns, d.set, name); },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(n, 2 nv, size) d(q1, v1)/d(parameter), for a name of `wrt`. KeyError otherwise.")
      .def_prop_ro("parameters", [](const DerivativesOut& d) { return parameter_names(d.set); }, "Names of `wrt`.");
  const auto state_block = [&](const char* name, bool lower, bool right) {
    derivatives.def_prop_ro(
        name, [lower, right](const DerivativesOut& d) { return block(d.A, d.nv, lower, right); },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), "(n, nv, nv) block of A");
  };
  state_block("dq_dq", false, false), state_block("dq_dv", false, true);
  state_block("dv_dq", true, false), state_block("dv_dv", true, true);
  const auto input_block = [&](const char* name, Array DerivativesOut::*array, bool lower, const char* doc) {
    derivatives.def_prop_ro(
        name, [array, lower](const DerivativesOut& d) { return block(d.*array, d.nv, lower); },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
  };
  input_block("dq_du", &DerivativesOut::B, false, "(n, nv, nu) block of B");
  input_block("dv_du", &DerivativesOut::B, true, "(n, nv, nu) block of B");
  input_block("dq_dtau", &DerivativesOut::B_tau, false, "(n, nv, nv) block of B_tau");
  input_block("dv_dtau", &DerivativesOut::B_tau, true, "(n, nv, nv) block of B_tau");

  nb::class_<CotangentOut>(module, "BatchCotangent",
                           "Gradient of a function of the batch's (q1, v1); the first axis is the environment.")
      .def("__repr__",
           [](const CotangentOut& g) {
             const std::string shape = nb::str(nb::object(g.v.attr("shape"))).c_str();
             return "<BatchCotangent: q, v " + shape + by_names(parameter_names(g.set)) + ">";
           })
      .def_ro("q", &CotangentOut::q, "(n, nv) tangent space of q")
      .def_ro("v", &CotangentOut::v, "(n, nv) with respect to v")
      .def_ro("u", &CotangentOut::u, "(n, nu) with respect to the controls")
      .def_ro("tau", &CotangentOut::tau, "(n, nv) with respect to the joint forces")
      .def_ro(
          "fext", &CotangentOut::fext, nb::for_getter(nb::sig("def fext(self) -> numpy.ndarray | None")),
          "(n, num_bodies, 6) with respect to the world forces and torques on bodies, if wrt had \"fext\"; else None.")
      .def_ro("mocap", &CotangentOut::mocap, nb::for_getter(nb::sig("def mocap(self) -> numpy.ndarray | None")),
              "(n, m, 6) of BatchControlStep.vjp with respect to the poses of mocap bodies, if wrt had \"mocap\"; else "
              "None.")
      .def_ro(
          "previous_q", &CotangentOut::previous_q,
          nb::for_getter(nb::sig("def previous_q(self) -> numpy.ndarray | None")),
          "(n, nv) tangent space of q of the state before with stepper bdf2, zeros for a step without one; else None.")
      .def_ro("previous_v", &CotangentOut::previous_v,
              nb::for_getter(nb::sig("def previous_v(self) -> numpy.ndarray | None")),
              "(n, nv) with respect to v of the state before; or None.")
      .def_ro("valid", &CotangentOut::valid,
              "(n,) bool: False, and zeros, where the numbers of the step overflowed or an environment took no step "
              "since it was made or reset.")
      .def(
          "__getitem__",
          [](const CotangentOut& g, const std::string& name) {
            if (name == "mocap" && !g.mocap.is_none()) return g.mocap;
            return name == "fext" && !g.fext.is_none() ? g.fext : parameter_part(g.columns, g.set, name);
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(n, size) gradient of a parameter of `wrt`, per environment. KeyError otherwise.")
      .def_prop_ro("parameters", [](const CotangentOut& g) { return parameter_names(g.set); }, "Names of `wrt`.");

  nb::class_<StatusOut>(module, "BatchStatus", "How the last step of every environment went.")
      .def_ro("converged", &StatusOut::converged,
              "(n,) bool: the constraint problem was solved as posed, to the tolerance.")
      .def_ro("iterations", &StatusOut::iterations, "(n,) int: of all the algorithms that were tried.")
      .def_ro("residual", &StatusOut::residual,
              "(n,) scaled residual of the constraint problem with its small compliance.")
      .def_ro("exact_residual", &StatusOut::exact_residual, "(n,) scaled residual of the problem without compliance.")
      .def_ro(
          "relaxation", &StatusOut::relaxation,
          "(n,) larger compliance, relative to the weight of each row, of constraints that gave way; 0 if none did.")
      .def_ro("reason", &StatusOut::reason, "List of n strings: 'solved', or why not.")
      .def_ro("contradictions", &StatusOut::contradictions,
              "List of n lists of names: the constraints that contradict one another (StepStatus.contradictions).")
      .def_ro("unsolved", &StatusOut::unsolved,
              "List of n lists of names: the constraints for which no solution was found (StepStatus.unsolved).")
      .def_ro("badly_scaled", &StatusOut::badly_scaled,
              "List of n lists of names: the constraints that are too badly scaled (StepStatus.badly_scaled).")
      .def("__bool__", [](const StatusOut& s) { return nb::cast<bool>(s.converged.attr("all")().attr("item")()); })
      .def("__repr__", [](const StatusOut& s) {
        const int good = nb::cast<int>(s.converged.attr("sum")().attr("item")());
        return "<BatchStatus " + std::to_string(good) + " of " + std::to_string(s.reason.size()) + " converged>";
      });

  nb::class_<MemoryOut>(module, "BatchMemory",
                        "What the steps of a batch carry on. Opaque; see BatchSimulator.memory. Can be pickled.")
      .def(
          "__init__",
          [](MemoryOut* self, std::vector<StepMemory> environments) { new (self) MemoryOut{std::move(environments)}; },
          nb::arg("environments"), "environments: a StepMemory each.")
      .def("__repr__",
           [](const MemoryOut& m) { return "<BatchMemory: " + counted(m.environments.size(), "environment") + ">"; })
      .def_ro("environments", &MemoryOut::environments, "List of StepMemory, one per environment.")
      .def(
          "__reduce__", [](nb::handle self) { return reduced("batch_memory", self); },
          nb::sig("def __reduce__(self) -> tuple"));
}

void bind_products(nb::class_<Batch>& cls) {
  cls.def("derivatives", &derivatives, nb::arg("wrt") = std::vector<std::string>{},
          "BatchDerivatives of the last call of step. wrt: names of parameters (Model.parameters) whose columns "
          "d[name] are wanted "
          "too.\n\nRuntimeError: no environment took a step yet; ValueError: unknown parameter.");
  cls.def(
      "vjp", &vjp, nb::arg("dQ1") = nb::none(), nb::arg("dV1") = nb::none(),
      nb::arg("wrt") = std::vector<std::string>{}, nb::kw_only(), nb::arg("outputs") = nb::none(),
      nb::sig("def vjp(self, dQ1: numpy.typing.ArrayLike | None = None, dV1: numpy.typing.ArrayLike | None = None, "
              "wrt: list[str] = [], *, outputs: dict[str, numpy.typing.ArrayLike] | None = None) -> BatchCotangent"),
      "Reverse mode: cotangents (n, nv) of q1 and v1 to the BatchCotangent of q, v, u and tau, and of the "
      "parameters named in wrt "
      "(g[name], per environment); of fext where wrt has \"fext\". outputs: cotangents (n, tangent_size) of outputs by "
      "name, forces too, which add to "
      "dQ1 and dV1; these may then be None.\n\nRuntimeError: no environment took a step yet, or forces that the steps "
      "do not tell; ValueError: NaN in a cotangent, unknown name.");
  cls.def(
      "jvp", &jvp, nb::arg("dQ") = nb::none(), nb::arg("dV") = nb::none(), nb::arg("dU") = nb::none(),
      nb::arg("dtau") = nb::none(),
      nb::sig("def jvp(self, dQ: numpy.typing.ArrayLike | None = None, dV: numpy.typing.ArrayLike | None = None, dU: "
              "numpy.typing.ArrayLike | None = None, dtau: numpy.typing.ArrayLike | None = None) -> "
              "tuple[numpy.ndarray, numpy.ndarray]"),
      "Forward mode: tangents dQ, dV, dtau (n, nv) and dU (n, nu) of the inputs (None: zero) to those (n, nv) of "
      "q1 and "
      "v1; zeros where a step has no derivative (`valid` of derivatives and vjp).\n\nRuntimeError: no environment took "
      "a step yet.");
}

/// What coulomb._saved and coulomb.torch ask of a batch.
void bind_private(nb::class_<Batch>& cls) {
  cls.def(
      "__reduce__", [](nb::handle self) { return reduced("batch", self); }, nb::sig("def __reduce__(self) -> tuple"));
  cls.def("_parameter_values", &parameter_values, nb::arg("names"));
  cls.def("_move_mocap_bodies", [](Batch& b, nb::handle poses) {
    const ArrayIn rows(poses, "mocap", {b.n(), num_mocap(b.model()), 7});
    const Idle idle(b);
    b.simulator.move_mocap_bodies(rows.data());
  });
  cls.def_ro("_requested_threads", &Batch::requested_threads);
  cls.def_prop_ro("_options", [](Batch& b) { return keywords_of(b.simulator.options()); });
  cls.def_prop_rw(
      "_models",
      [](Batch& b) {
        const Idle idle(b);
        std::vector<std::shared_ptr<Model>> out;
        for (const auto& model : b.simulator.models()) out.push_back(std::const_pointer_cast<Model>(model));
        return out;
      },
      [](Batch& b, const std::vector<std::shared_ptr<Model>>& models) {
        const Idle idle(b);
        b.simulator.set_models({models.begin(), models.end()});
      });
}

void bind_state(nb::class_<Batch>& cls) {
  bind_batch_outputs(cls);
  cls.def_prop_ro("status", &status, "BatchStatus of the last step of every environment.");
  cls.def(
      "contacts",
      [](Batch& b, int i) {
        const Idle idle(b);
        return b.simulator.environment(environment(b, i)).contacts();
      },
      nb::arg("environment"), "List of Contact of that environment's last step.");
  cls.def("set_parameters", &set_parameters, nb::arg("values"), nb::arg("mask") = nb::none(),
          nb::sig("def set_parameters(self, values: dict[str, numpy.typing.ArrayLike], mask: numpy.typing.ArrayLike | "
                  "None = None) -> None"),
          "Values (n, size) of parameters for every environment (of the mask). Those environments forget their last "
          "step.\n\nValueError: "
          "names environment, parameter and value; nothing is changed then.");
  cls.def(
      "reset",
      [](Batch& b, nb::handle mask, nb::handle Q, nb::handle V) {
        const OptionalArray q_in(Q, "Q", {b.n(), b.model().nq}), v_in(V, "V", {b.n(), b.model().nv});
        const Mask mask_in(mask, b.n());
        const Idle idle(b);
        b.simulator.reset(mask_in.data(), q_in.data(), v_in.data());
      },
      nb::arg("mask") = nb::none(), nb::arg("Q") = nb::none(), nb::arg("V") = nb::none(),
      nb::sig("def reset(self, mask: numpy.typing.ArrayLike | None = None, Q: numpy.typing.ArrayLike | None = None, V: "
              "numpy.typing.ArrayLike | None = None) -> None"),
      "Environments (of the mask) forget their last step: the next one starts cold. Q (n, nq), V (n, nv): the states "
      "they start from; their rows are checked, and outputs are read there until the next step.\n\nValueError: names "
      "argument, element and value; nothing is reset then.");
  cls.def_prop_ro(
      "mocap",
      [](Batch& b) {
        const Idle idle(b);
        const std::vector<double> poses = b.simulator.mocap();
        nb::object out;
        std::copy(poses.begin(), poses.end(), new_array<double>({b.n(), num_mocap(b.model()), 7}, "float64", out));
        return nb::borrow<Array>(out);
      },
      "(n, m, 7) positions (m) and quaternions (w x y z) of the mocap bodies of every environment.");
  cls.def_prop_rw(
      "memory",
      [](Batch& b) {
        const Idle idle(b);
        return MemoryOut{b.simulator.memory()};
      },
      [](Batch& b, const MemoryOut& memory) {
        const Idle idle(b);
        b.simulator.set_memory(memory.environments);
      },
      "A copy of what the steps carry on (BatchMemory); assign it to replay steps exactly.");
  cls.def(
      "environment_model",
      [](Batch& b, int i) {
        return std::const_pointer_cast<Model>(b.simulator.environment(environment(b, i)).shared_model());
      },
      nb::arg("environment"), "The Model that this environment simulates.");
  cls.def_prop_ro(
      "model", [](const Batch& b) { return std::const_pointer_cast<Model>(b.simulator.environment(0).shared_model()); },
      "The Model that is simulated; with parameters per environment, that of environment 0.");
  cls.def("__repr__", [](const Batch& b) {
    return "<BatchSimulator: " + counted(static_cast<std::size_t>(b.n()), "environment") + " on " +
           counted(static_cast<std::size_t>(b.simulator.num_threads()), "thread") + ", of " + in_words(b.model()) + ">";
  });
  cls.def_prop_ro("num_envs", &Batch::n, "n");
  cls.def_prop_ro(
      "num_threads", [](const Batch& b) { return b.simulator.num_threads(); }, "Threads, the caller's included.");
  cls.def_prop_ro(
      "timestep", [](const Batch& b) { return b.simulator.environment(0).timestep(); }, "s; of environment 0");
}

}  // namespace

StatusOut::StatusOut(std::vector<StepStatus> all) {
  const auto n = static_cast<Py_ssize_t>(all.size());
  bool* converged_data = new_array<bool>({n}, "bool", converged);
  int* iterations_data = new_array<int>({n}, "int32", iterations);
  double* residual_data = new_array<double>({n}, "float64", residual);
  double* exact_residual_data = new_array<double>({n}, "float64", exact_residual);
  double* relaxation_data = new_array<double>({n}, "float64", relaxation);
  for (StepStatus& s : all) {
    *converged_data++ = s.converged;
    *iterations_data++ = s.iterations;
    *residual_data++ = s.residual;
    *exact_residual_data++ = s.exact_residual;
    *relaxation_data++ = s.relaxation;
    reason.push_back(std::move(s.reason));
    contradictions.push_back(std::move(s.contradictions));
    unsolved.push_back(std::move(s.unsolved));
    badly_scaled.push_back(std::move(s.badly_scaled));
  }
}

void bind_batch(nb::module_& module) {
  bind_results(module);
  nb::class_<Batch> cls(
      module, "BatchSimulator", nb::is_weak_referenceable(),
      "Steps n environments of one model on threads, without the GIL. The same bits for any number of threads, and as "
      "Simulator gives for each environment by itself. One call at a time.");
  cls.def("__init__", &construct, nb::arg("model"), nb::arg("num_envs"), nb::arg("num_threads") = 0,
          nb::arg("timestep") = nb::none(), nb::arg("parameters") = nb::none(), nb::arg("options"),
          "num_envs: n. num_threads: the caller's included; 0: all cores that this process may use (its CPU affinity). "
          "parameters: {name: (n, size)} values that "
          "differ between "
          "environments. timestep and options: as Simulator takes.\n\nValueError: names the option, or environment and "
          "parameter, and the "
          "value.");
  cls.def(
      "step", &step, nb::arg("Q"), nb::arg("V"), nb::arg("U") = nb::none(), nb::arg("tau") = nb::none(),
      nb::arg("fext") = nb::none(), nb::arg("mask") = nb::none(), nb::kw_only(), nb::arg("mocap") = nb::none(),
      nb::sig("def step(self, Q: numpy.typing.ArrayLike, V: numpy.typing.ArrayLike, U: numpy.typing.ArrayLike | None = "
              "None, tau: numpy.typing.ArrayLike | None = None, fext: numpy.typing.ArrayLike | None = None, mask: "
              "numpy.typing.ArrayLike | None = None, *, mocap: numpy.typing.ArrayLike | None = None) -> "
              "tuple[numpy.ndarray, "
              "numpy.ndarray]"),
      "One step of every environment: Q (n, nq), V (n, nv) to (Q1, V1). U: (n, nu) controls. tau: (n, nv) extra joint "
      "forces. fext: (n, "
      "num_bodies, 6) world force (N) and torque (N m) at each body's centre of mass. None: zero. mask: (n,) bool, "
      "environments to "
      "step; the others' rows are copied unchecked. mocap: (n, m, 7), or (m, 7) for all, poses of the mocap bodies as "
      "in "
      "Simulator.step; their derivative is that of body_placement/<body>. Where numbers overflow, an environment stays "
      "where it was; "
      "`status` says "
      "so, and the others go on.\n\nValueError: names argument, element and value; no environment has stepped then.");
  bind_products(cls);
  bind_batch_rollout(module, cls);
  bind_control_step(module, cls);
  bind_state(cls);
  bind_private(cls);
}

}  // namespace coulomb::python

// Rollouts of a batch and their derivatives. Long loops run without the GIL and look for signals every 50 ms.
#include "coulomb/batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>

#include "batch.hpp"
#include "coulomb/parameters/state_outputs.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/stepper.hpp"
#include "linearization.hpp"
#include "outputs.hpp"
#include "substeps.hpp"

namespace coulomb::python {

namespace {

using Names = std::vector<std::string>;

struct RolloutOut {
  nb::object batch;
  Array q, v, converged, iterations, residual;
  BatchRollout rollout;       ///< every step
  std::vector<double> poses;  ///< n x T x mocap bodies x 7, where the rollout itself keeps nothing
  int substeps = 1;
  double timestep = 0;                                   ///< s, of a step of environment 0
  int rows() const { return rollout.steps / substeps; }  ///< T
  Batch& owner() const { return nb::cast<Batch&>(batch); }
};

struct RolloutCotangentOut {
  Array q0, v0, u, tau, columns, valid;
  nb::object fext = nb::none(), mocap = nb::none();
  ParameterSet set;
};

int number_of_steps(std::optional<int> steps, nb::handle U, nb::handle tau, nb::handle fext, nb::handle mocap) {
  for (const auto& [name, array] :
       {std::pair("U", U), std::pair("tau", tau), std::pair("fext", fext), std::pair("mocap", mocap)}) {
    if (array.is_none()) continue;
    const bool of_bodies = array.is(fext) || array.is(mocap);
    const int rows = static_cast<int>(of_bodies ? ArrayIn(array, name, {-1, -1, -1, -1}).shape(1)
                                                : ArrayIn(array, name, {-1, -1, -1}).shape(1));
    if (steps && *steps != rows)
      throw nb::value_error(
          ("steps: got " + std::to_string(*steps) + ", but " + name + " has " + std::to_string(rows)).c_str());
    steps = rows;
  }
  if (!steps) throw nb::value_error("steps: needed when U and tau are None (and fext and mocap)");
  if (*steps < 0) throw nb::value_error(("steps: got " + std::to_string(*steps) + ", expected at least 0").c_str());
  return *steps;
}

/// Of what the rollout says of every step, what it says of the rows: states where inputs change, and the status of the worst step of a row
/// with the iterations of all of them.
void keep_rows(const BatchTrajectories& every, RolloutOut& out) {
  const nb::object at_rows = of_substeps("at_rows");
  out.q = nb::borrow<Array>(at_rows(out.q, out.substeps));
  out.v = nb::borrow<Array>(at_rows(out.v, out.substeps));

  // The arrays of all steps, which `every` points into, live until the rows have been read.
  const nb::object owners = nb::make_tuple(out.converged, out.iterations, out.residual);
  const Py_ssize_t n = out.owner().n(), T = out.rows();
  bool* converged = new_array<bool>({n, T}, "bool", out.converged);
  int* iterations = new_array<int>({n, T}, "int32", out.iterations);
  double* residual = new_array<double>({n, T}, "float64", out.residual);
  const auto outcome = [&](std::size_t step) { return Outcome{every.converged[step], every.residual[step]}; };
  for (std::size_t row = 0; row < static_cast<std::size_t>(n * T); ++row) {
    const std::size_t first = row * static_cast<std::size_t>(out.substeps);
    const std::size_t step = worst(first, out.substeps, outcome);
    converged[row] = every.converged[step];
    residual[row] = every.residual[step];
    iterations[row] = std::accumulate(every.iterations + first, every.iterations + first + out.substeps, 0);
  }
}

RolloutOut run(nb::handle_t<Batch> self, nb::handle Q0, nb::handle V0, nb::handle U, std::optional<int> steps,
               nb::handle tau, nb::handle fext, nb::handle mocap, nb::handle substeps, bool derivatives,
               std::optional<int> checkpoint_every, std::optional<double> memory_budget, bool keep_factors) {
  Batch& batch = nb::cast<Batch&>(self);
  const Model& model = batch.model();
  const nb::object poses = poses_of_all(mocap, 4, batch.n());
  const Py_ssize_t n = batch.n(), T = number_of_steps(steps, U, tau, fext, poses);
  const int count = substeps_of(substeps, T);
  const ArrayIn q_in(Q0, "Q0", {n, model.nq}), v_in(V0, "V0", {n, model.nv});
  const OptionalArray u_in(U, "U", {n, T, model.nu}), tau_in(tau, "tau", {n, T, model.nv}),
      fext_in(fext, "fext", {n, T, model.num_bodies, 6}), mocap_in(poses, "mocap", {n, T, num_mocap(model), 7});
  if (checkpoint_every && *checkpoint_every < 1)
    throw nb::value_error(
        ("checkpoint_every: got " + std::to_string(*checkpoint_every) + ", expected at least 1").c_str());
  if (memory_budget && !(*memory_budget >= 1 && *memory_budget < 1e18))
    throw nb::value_error(
        ("memory_budget: got " + std::to_string(*memory_budget) + ", expected a number of bytes, at least 1").c_str());
  const BatchRolloutOptions options{derivatives, checkpoint_every.value_or(0),
                                    static_cast<std::size_t>(memory_budget.value_or(0)), keep_factors};

  // Inputs are checked before they are held, so that an error names a row that was given.
  const auto rows = [&](const OptionalArray& given, const char* name, int width) {
    if (count > 1 && given.data()) given.finite(name);
    return held(given.data(), static_cast<std::size_t>(n), static_cast<std::size_t>(T), static_cast<std::size_t>(width),
                count);
  };
  const Rows u_held = rows(u_in, "U", model.nu), tau_held = rows(tau_in, "tau", model.nv),
             fext_held = rows(fext_in, "fext", 6 * model.num_bodies);
  for (Py_ssize_t i = 0; count > 1 && mocap_in.data() && i < n; ++i)
    check_mocap_rows(model, mocap_in.data() + i * T * 7 * num_mocap(model), static_cast<int>(T),
                     std::to_string(i) + ", ");
  const Rows mocap_held =
      held(mocap_in.data(), static_cast<std::size_t>(n), static_cast<std::size_t>(T), mocap_size(model), count);

  RolloutOut out;
  out.batch = nb::borrow(self);
  out.substeps = count;
  if (!derivatives && mocap_in.data())
    out.poses.assign(mocap_in.data(), mocap_in.data() + n * T * 7 * num_mocap(model));
  out.timestep = batch.simulator.environment(0).timestep();
  BatchTrajectories to;
  const Py_ssize_t all = T * count;
  to.q = new_array<double>({n, all + 1, model.nq}, "float64", out.q);
  to.v = new_array<double>({n, all + 1, model.nv}, "float64", out.v);
  to.converged = new_array<bool>({n, all}, "bool", out.converged);
  to.iterations = new_array<int>({n, all}, "int32", out.iterations);
  to.residual = new_array<double>({n, all}, "float64", out.residual);
  BatchRolloutInput input{q_in.data(), v_in.data(), u_held.data, tau_held.data, static_cast<int>(all), fext_held.data};
  input.mocap = mocap_held.data;
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return rollout(batch.simulator, input, options, to, out.rollout, interrupted);
  });
  if (count == 1) return out;

  keep_rows(to, out);
  return out;
}

/// The model of the trajectories: that of environment 0, which names the parameters.
const Model& model_of(const RolloutOut& r) {
  return r.rollout.environments.empty() ? r.owner().model() : *r.rollout.environments.front().model;
}

// Without derivatives only states were kept.
void read_states(const RolloutOut& r, const OutputSet& set, double* to) {
  refuse_forces(set, "a rollout made with derivatives=False");
  Batch& batch = r.owner();
  const Py_ssize_t n = batch.n(), states = r.rows() + 1;
  const int nq = batch.model().nq, nv = batch.model().nv;
  const ArrayIn q(r.q, "q", {n, states, nq}), v(r.v, "v", {n, states, nv});
  for (Py_ssize_t i = 0; i < n; ++i) {
    // Mocap bodies are where the step that ends in a state had them.
    const std::shared_ptr<const Model> model = batch.simulator.environment(static_cast<int>(i)).shared_model();
    const auto width = static_cast<Py_ssize_t>(mocap_size(*model));
    const auto poses = [&](Py_ssize_t row) {
      return r.poses.empty() ? nullptr : r.poses.data() + (i * (states - 1) + std::max<Py_ssize_t>(row - 1, 0)) * width;
    };
    MocapModel moved;
    StateOutputs at(moved.at(model, poses(0)));
    for (Py_ssize_t row = 0; row < states; ++row) {
      const Py_ssize_t t = i * states + row;
      moved.at(model, poses(row));
      at.move_to(q.data() + t * nq, v.data() + t * nv);
      at.read(set, to + t * set.size());
    }
  }
}

nb::object readings(const RolloutOut& r, nb::handle name) {
  const OutputSet set(model_of(r), output_names_of(name));
  nb::object out;
  if (r.rollout.environments.empty()) {
    read_states(r, set, new_array<double>({r.owner().n(), r.rows() + 1, set.size()}, "float64", out));
    return out;
  }
  double* to = new_array<double>({r.owner().n(), r.rollout.steps + 1, set.size()}, "float64", out);
  {
    const Working working(r.owner());
    read_outputs(r.owner().simulator, r.rollout, set, to);
  }
  return r.substeps == 1 ? out : of_substeps("at_rows")(out, r.substeps);
}

RolloutCotangentOut reverse(const RolloutOut& r, nb::handle dQ, nb::handle dV, Names wrt, nb::handle outputs) {
  const bool wants_fext = take_fext(wrt), wants_mocap = take_mocap(wrt);
  Batch& batch = r.owner();
  const Model& model = model_of(r);
  const Py_ssize_t n = batch.n(), T = r.rows(), all = r.rollout.steps;
  const OptionalArray q_in(dQ, "dQ", {n, T + 1, model.nv}), v_in(dV, "dV", {n, T + 1, model.nv});
  RolloutCotangentOut out;
  out.set = ParameterSet(model, wrt);
  BatchRolloutCotangent to;
  to.q0 = new_array<double>({n, model.nv}, "float64", out.q0);
  to.v0 = new_array<double>({n, model.nv}, "float64", out.v0);
  to.u = new_array<double>({n, all, model.nu}, "float64", out.u);
  to.tau = new_array<double>({n, all, model.nv}, "float64", out.tau);
  to.parameters = new_array<double>({n, out.set.size()}, "float64", out.columns);
  to.valid = new_array<bool>({n}, "bool", out.valid);
  if (wants_fext) to.fext = new_array<double>({n, all, model.num_bodies, 6}, "float64", out.fext);
  if (wants_mocap) to.mocap = new_array<double>({n, all, num_mocap(model), 6}, "float64", out.mocap);
  const OutputWeights weights(model, outputs, T + 1, n);
  if (r.substeps > 1 && q_in.data()) q_in.finite("dQ");
  if (r.substeps > 1 && v_in.data()) v_in.finite("dV");
  const auto spread_rows = [&](const double* x, int width) {
    return spread(x, static_cast<std::size_t>(n), static_cast<std::size_t>(T + 1), static_cast<std::size_t>(width),
                  r.substeps);
  };
  const Rows dq = spread_rows(q_in.data(), model.nv), dv = spread_rows(v_in.data(), model.nv),
             dy = spread_rows(weights.values.data(), weights.set.tangent_size());
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    const TrajectoryCotangent from{dq.data, dv.data, &weights.set, dy.data};
    return vjp(batch.simulator, r.rollout, from, wrt, to, interrupted);
  });
  if (r.substeps == 1) return out;

  // A row of inputs was held: its gradient is the sum of those of its steps.
  const auto folded = [&](const double* steps, std::initializer_list<Py_ssize_t> shape, nb::object& array) {
    const nb::object every = array;  // which `steps` are of
    const Py_ssize_t width = std::accumulate(shape.begin() + 2, shape.end(), Py_ssize_t{1}, std::multiplies<>());
    fold(steps, static_cast<std::size_t>(n * T), static_cast<std::size_t>(width), r.substeps,
         new_array<double>(shape, "float64", array));
  };
  folded(to.u, {n, T, model.nu}, out.u);
  folded(to.tau, {n, T, model.nv}, out.tau);
  if (wants_fext) folded(to.fext, {n, T, model.num_bodies, 6}, out.fext);
  if (wants_mocap) folded(to.mocap, {n, T, num_mocap(model), 6}, out.mocap);
  return out;
}

nb::object forward(const RolloutOut& r, nb::handle dQ0, nb::handle dV0, nb::handle dU, nb::handle dtau,
                   std::optional<nb::dict> dparameters, nb::handle dmocap) {
  Batch& batch = r.owner();
  const Model& model = model_of(r);
  const Py_ssize_t n = batch.n(), T = r.rows(), all = r.rollout.steps;
  const OptionalArray q_in(dQ0, "dQ0", {n, model.nv}), v_in(dV0, "dV0", {n, model.nv}),
      u_in(dU, "dU", {n, T, model.nu}), tau_in(dtau, "dtau", {n, T, model.nv}),
      mocap_in(dmocap, "dmocap", {n, T, num_mocap(model), 6});
  const auto held_rows = [&](const OptionalArray& given, const char* name, int width) {
    if (r.substeps > 1 && given.data()) given.finite(name);
    return held(given.data(), static_cast<std::size_t>(n), static_cast<std::size_t>(T), static_cast<std::size_t>(width),
                r.substeps);
  };
  const Rows du = held_rows(u_in, "dU", model.nu), dt = held_rows(tau_in, "dtau", model.nv),
             dm = held_rows(mocap_in, "dmocap", static_cast<int>(mocap_tangent_size(model)));
  BatchRolloutTangent tangent{q_in.data(), v_in.data(), du.data, dt.data, {}, nullptr};
  const BatchParameters values = dparameters ? batch_parameters(*dparameters, static_cast<int>(n)) : BatchParameters{};
  for (const auto& [name, value] : values) {
    const auto size = static_cast<std::size_t>(ParameterSet(model, {name}).size()),
               got = value.size() / static_cast<std::size_t>(n);
    if (got != size)
      throw nb::value_error(
          ("parameter '" + name + "': got " + std::to_string(got) + " values, expected " + std::to_string(size))
              .c_str());
    tangent.parameters.push_back(name);
  }
  std::vector<double> rows;  // one per environment, the parameters side by side
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    for (const auto& [name, value] : values) {
      const auto size = static_cast<std::ptrdiff_t>(value.size()) / n;
      rows.insert(rows.end(), value.begin() + static_cast<std::ptrdiff_t>(i) * size,
                  value.begin() + static_cast<std::ptrdiff_t>(i + 1) * size);
    }
  tangent.dparameters = rows.data();
  tangent.dmocap = dm.data;
  nb::object dq, dv, valid;
  double* dq_out = new_array<double>({n, all + 1, model.nv}, "float64", dq);
  double* dv_out = new_array<double>({n, all + 1, model.nv}, "float64", dv);
  bool* valid_out = new_array<bool>({n}, "bool", valid);
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return jvp(batch.simulator, r.rollout, tangent, dq_out, dv_out, valid_out, interrupted);
  });
  if (r.substeps == 1) return nb::make_tuple(dq, dv, valid);
  const nb::object at_rows = of_substeps("at_rows");
  return nb::make_tuple(at_rows(dq, r.substeps), at_rows(dv, r.substeps), valid);
}

LinearizationOut matrices(const RolloutOut& r, const Names& wrt) {
  Batch& batch = r.owner();
  const bool two_states = batch.simulator.environment(0).resolved_options().stepper->num_states() > 1;
  LinearizationOut out(ParameterSet(model_of(r), wrt), model_of(r), two_states, r.rollout.steps, batch.n());
  out.refuse_substeps(r.substeps);
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return linearize(batch.simulator, r.rollout, wrt, out.matrices, out.valid_data, interrupted);
  });
  out.compose(r.substeps);
  return out;
}

void bind_results(nb::module_& module) {
  nb::class_<RolloutOut>(module, "BatchRollout",
                         "Trajectories of T steps of all environments, with what their derivatives need.")
      .def("__repr__",
           [](const RolloutOut& r) {
             const int good = nb::cast<int>(r.converged.attr("all")(1).attr("sum")().attr("item")());
             return "<BatchRollout: " + counted(static_cast<std::size_t>(r.rows()), "step") +
                    (r.substeps == 1 ? "" : " of " + std::to_string(r.substeps) + " substeps") + " of " +
                    counted(static_cast<std::size_t>(r.owner().n()), "environment") + ", " + std::to_string(good) +
                    " of them converged>";
           })
      .def_prop_ro(
          "steps", [](const RolloutOut& r) { return r.rows(); }, "T")
      .def_ro("substeps", &RolloutOut::substeps, "Steps for which each row of inputs was held.")
      .def_ro("timestep", &RolloutOut::timestep, "s, of a step of environment 0: rows are timestep * substeps apart.")
      .def_ro("q", &RolloutOut::q, "(n, T + 1, nq): Q0 first.")
      .def_ro("v", &RolloutOut::v, "(n, T + 1, nv): V0 first.")
      .def_prop_ro(
          "memory", [](const RolloutOut& r) { return r.rollout.bytes(); },
          "Bytes of what derivatives need: a copy of states and inputs, checkpoints, and what is kept of steps.")
      .def_ro("converged", &RolloutOut::converged,
              "(n, T) bool: the constraint problem of that step was solved as posed. Where numbers overflow, the state "
              "stays as it was.")
      .def_ro("iterations", &RolloutOut::iterations, "(n, T) int, of all substeps.")
      .def_ro("residual", &RolloutOut::residual,
              "(n, T) scaled residual of the constraint problem; of the worst substep, as Rollout.status.")
      .def("output", &readings, nb::arg("name"), nb::sig("def output(self, name: str | list[str]) -> numpy.ndarray"),
           "(n, T + 1, size) readings at every state, as Rollout.output; without derivatives, of states only.")
      .def("vjp", &reverse, nb::arg("dQ") = nb::none(), nb::arg("dV") = nb::none(), nb::arg("wrt") = Names{},
           nb::kw_only(), nb::arg("outputs") = nb::none(),
           nb::sig(
               "def vjp(self, dQ: numpy.typing.ArrayLike | None = None, dV: numpy.typing.ArrayLike | None = None, wrt: "
               "list[str] = [], *, outputs: dict[str, numpy.typing.ArrayLike] | None = None) -> BatchRolloutCotangent"),
           "Reverse mode: cotangents (n, T + 1, nv) of q (tangent space) and v (None: zero) to the "
           "BatchRolloutCotangent; of fext and poses where wrt has \"fext\" and \"mocap\". outputs: cotangents (n, T + "
           "1, tangent_size) of outputs by name, which add to them. "
           "Steps of which "
           "there was no room to keep what it takes are run once more.\n\nValueError: NaN in a cotangent, wrong shape, "
           "unknown parameter. KeyboardInterrupt: it can "
           "be stopped.")
      .def(
          "linearize", &matrices, nb::arg("wrt") = Names{},
          "The Jacobian of every step, as Rollout.linearize: A (n, T, 2 nv, 2 nv), B (n, T, 2 nv, nu); zeros, and "
          "valid "
          "False, for environments whose numbers overflowed.\n\nValueError: unknown parameter. RuntimeError: made with "
          "derivatives=False. KeyboardInterrupt: it can be stopped.")
      .def(
          "jvp", &forward, nb::arg("dQ0") = nb::none(), nb::arg("dV0") = nb::none(), nb::arg("dU") = nb::none(),
          nb::arg("dtau") = nb::none(), nb::arg("dparameters") = nb::none(), nb::kw_only(),
          nb::arg("dmocap") = nb::none(),
          nb::sig(
              "def jvp(self, dQ0: numpy.typing.ArrayLike | None = None, dV0: numpy.typing.ArrayLike | None = None, dU: "
              "numpy.typing.ArrayLike | None = None, dtau: numpy.typing.ArrayLike | None = None, dparameters: "
              "dict[str, numpy.typing.ArrayLike] | None = None, *, dmocap: numpy.typing.ArrayLike | None = None) -> "
              "tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]"),
          "Forward mode: tangents dQ0, dV0 (n, nv), dU (n, T, nu), dtau (n, T, nv), {name: (n, size)} of parameters "
          "and "
          "dmocap (n, T, m, 6) "
          "(None: zero) to "
          "those (n, T + 1, nv) of q and v, and (n,) bool: False, and zeros, where numbers overflowed on the way.");
  nb::class_<RolloutCotangentOut>(
      module, "BatchRolloutCotangent",
      "Gradient of a function of a batch's trajectories; the first axis is the environment.")
      .def("__repr__",
           [](const RolloutCotangentOut& g) {
             const std::string shape = nb::str(nb::object(g.v0.attr("shape"))).c_str();
             return "<BatchRolloutCotangent: q0, v0 " + shape + by_names(parameter_names(g.set)) + ">";
           })
      .def_ro("q0", &RolloutCotangentOut::q0, "(n, nv) tangent space of q0")
      .def_ro("v0", &RolloutCotangentOut::v0, "(n, nv)")
      .def_ro("u", &RolloutCotangentOut::u, "(n, T, nu) with respect to the controls")
      .def_ro("tau", &RolloutCotangentOut::tau, "(n, T, nv) with respect to the extra joint forces")
      .def_ro("fext", &RolloutCotangentOut::fext, nb::for_getter(nb::sig("def fext(self) -> numpy.ndarray | None")),
              "(n, T, num_bodies, 6) with respect to the world forces and torques on bodies, if wrt had \"fext\"; else "
              "None.")
      .def_ro(
          "mocap", &RolloutCotangentOut::mocap, nb::for_getter(nb::sig("def mocap(self) -> numpy.ndarray | None")),
          "(n, T, m, 6) with respect to the poses of mocap bodies, as RolloutCotangent.mocap, if wrt had \"mocap\"; "
          "else None.")
      .def_ro("valid", &RolloutCotangentOut::valid, "(n,) bool: False, and zeros, where numbers overflowed on the way.")
      .def(
          "__getitem__",
          [](const RolloutCotangentOut& g, const std::string& name) {
            if (name == "mocap" && !g.mocap.is_none()) return g.mocap;
            return name == "fext" && !g.fext.is_none() ? g.fext : parameter_part(g.columns, g.set, name);
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(n, size) gradient of a parameter of `wrt`, per environment, summed over the steps. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const RolloutCotangentOut& g) { return parameter_names(g.set); }, "Names of `wrt`.");
}

}  // namespace

std::function<bool()> signals_raised() {
  using Clock = std::chrono::steady_clock;
  return [last = Clock::now()]() mutable {
    if (Clock::now() - last < std::chrono::milliseconds(50)) return false;
    const nb::gil_scoped_acquire acquire;
    const bool raised = PyErr_CheckSignals() != 0;  // the error stays set on this thread
    last = Clock::now();
    return raised;
  };
}

void run_interruptible(Batch& batch, const std::function<bool(const Interrupted&)>& loop) {
  const Interrupted interrupted = signals_raised();
  bool finished = false;
  {
    const Working working(batch);
    finished = loop(interrupted);
  }
  if (!finished) throw nb::python_error();
}

void bind_batch_rollout(nb::module_& module, nb::class_<Batch>& batch) {
  bind_results(module);
  batch.def(
      "rollout", &run, nb::arg("Q0"), nb::arg("V0"), nb::arg("U") = nb::none(), nb::kw_only(),
      nb::arg("steps") = nb::none(), nb::arg("tau") = nb::none(), nb::arg("fext") = nb::none(),
      nb::arg("mocap") = nb::none(), nb::arg("substeps").none() = 1, nb::arg("derivatives") = true,
      nb::arg("checkpoint_every") = nb::none(), nb::arg("memory_budget") = nb::none(), nb::arg("keep_factors") = true,
      nb::sig("def rollout(self, Q0: numpy.typing.ArrayLike, V0: numpy.typing.ArrayLike, U: numpy.typing.ArrayLike | "
              "None = None, *, steps: int | None = None, tau: numpy.typing.ArrayLike | None = None, fext: "
              "numpy.typing.ArrayLike | None = None, mocap: numpy.typing.ArrayLike | None = None, substeps: int = 1, "
              "derivatives: bool = True, checkpoint_every: int | None = None, "
              "memory_budget: float | None = None, keep_factors: bool = "
              "True) -> BatchRollout"),
      "T steps of every environment from (Q0, V0) under U (n, T, nu), tau (n, T, nv), fext (n, T, num_bodies, 6) and "
      "poses of mocap bodies mocap (n, T, m, 7), or (T, m, 7) for all, or "
      "`steps` steps "
      "without. Starts from "
      "reset(). Returns a BatchRollout. substeps: each row of inputs is held for so many steps, as in "
      "Simulator.rollout. derivatives=False keeps nothing for them. "
      "checkpoint_every: steps "
      "between checkpoints "
      "(default: the square root of T). memory_budget: bytes for what is kept of steps, of all environments together, "
      "so "
      "that a vjp need not run them again (default: 1 GiB); what does not fit is run again. keep_factors=False keeps "
      "nothing of them. It can be stopped by KeyboardInterrupt; all environments are then "
      "reset.\n\nValueError: "
      "names argument, element and value; no environment has moved then.");
}

}  // namespace coulomb::python

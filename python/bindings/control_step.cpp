// batch.control_step: some steps of every environment under held controls, as one function (Q, V, U) -> (Q1, V1) with a derivative. What the
// environments remember goes on from call to call; the record of a call stays good when the batch has gone on.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "batch.hpp"
#include "batch_results.hpp"
#include "coulomb/batch.hpp"
#include "coulomb/rollout/batch/batch_parts.hpp"
#include "coulomb/rollout/checks.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/stepper.hpp"
#include "linearization.hpp"
#include "outputs.hpp"
#include "substeps.hpp"

namespace coulomb::python {

namespace {

using Names = std::vector<std::string>;

struct ControlStep {
  nb::object batch;
  int substeps = 1;
  BatchRollout rollout;
  std::vector<double> q, v;  ///< n x (substeps + 1) x nq or nv
  std::vector<StepStatus> status;
  Array converged;
  Batch& owner() const { return nb::cast<Batch&>(batch); }
};

/// The model that names parameters and outputs.
const Model& model_of(const ControlStep& step) {
  if (step.rollout.environments.empty())
    throw std::logic_error("control_step: made with derivatives=False, nothing was kept for them");
  return *step.rollout.environments.front().model;
}

/// The last row of every environment's `rows`, of n x rows x width.
ArrayOut last_rows(const std::vector<double>& all, Py_ssize_t n, Py_ssize_t rows, Py_ssize_t width) {
  const ArrayOut out = new_array(n, width);
  for (Py_ssize_t i = 0; i < n; ++i)
    std::copy_n(all.data() + ((i + 1) * rows - 1) * width, width, out.data + i * width);
  return out;
}

/// n x rows x width, zeros but for the last row of each. Null: null.
Rows as_last_rows(const double* x, Py_ssize_t n, Py_ssize_t rows, Py_ssize_t width) {
  if (!x) return Rows(x);
  std::vector<double> out(static_cast<std::size_t>(n * rows * width));
  for (Py_ssize_t i = 0; i < n; ++i) std::copy_n(x + i * width, width, out.data() + ((i + 1) * rows - 1) * width);
  return Rows(std::move(out));
}

nb::object control_step(nb::handle_t<Batch> self, nb::handle Q, nb::handle V, nb::handle U, nb::handle tau,
                        nb::handle fext, nb::handle mocap, nb::handle substeps, nb::handle mask, bool derivatives,
                        std::optional<double> memory_budget) {
  Batch& batch = nb::cast<Batch&>(self);
  const Model& model = batch.model();
  const Py_ssize_t n = batch.n();
  const int count = substeps_of(substeps, n);
  const ArrayIn q_in(Q, "Q", {n, model.nq}), v_in(V, "V", {n, model.nv});
  const OptionalArray u_in(U, "U", {n, model.nu}), tau_in(tau, "tau", {n, model.nv}),
      fext_in(fext, "fext", {n, model.num_bodies, 6}),
      mocap_in(poses_of_all(mocap, 3, n), "mocap", {n, num_mocap(model), 7});
  const Mask mask_in(mask, n);
  if (memory_budget && !(*memory_budget >= 1 && *memory_budget < 1e18))
    throw nb::value_error(
        ("memory_budget: got " + std::to_string(*memory_budget) + ", expected a number of bytes, at least 1").c_str());

  // Inputs are checked before they are held, so that an error names a row that was given.
  const auto rows = [&](const OptionalArray& given, const char* name, int depth, int width) {
    check_finite_batch(name, given.data(), static_cast<std::size_t>(n), static_cast<std::size_t>(width), mask_in.data(),
                       static_cast<std::size_t>(depth));
    const int row = std::max(depth, 1) * width;
    return held(given.data(), static_cast<std::size_t>(n), 1, static_cast<std::size_t>(row), count);
  };
  const Rows u_held = rows(u_in, "U", 0, model.nu), tau_held = rows(tau_in, "tau", 0, model.nv),
             fext_held = rows(fext_in, "fext", model.num_bodies, 6);
  for (Py_ssize_t i = 0; mocap_in.data() && i < n; ++i)
    if (!mask_in.data() || mask_in.data()[i])
      check_mocap_poses(model, mocap_in.data() + i * 7 * num_mocap(model), "mocap[" + std::to_string(i) + ", ");
  const Rows mocap_held = held(mocap_in.data(), static_cast<std::size_t>(n), 1, mocap_size(model), count);
  const std::vector<double> q0 = q_in.vector(), v0 = v_in.vector();
  batch.simulator.parts().check_states(q0.data(), v0.data(), mask_in.data(), "Q", "V");

  // Where the trajectories go.
  ControlStep out;
  out.batch = nb::borrow(self);
  out.substeps = count;
  out.q.resize(static_cast<std::size_t>(n * (count + 1) * model.nq));
  out.v.resize(static_cast<std::size_t>(n * (count + 1) * model.nv));
  out.status.resize(static_cast<std::size_t>(n));
  const auto steps = static_cast<std::size_t>(n * count);
  const std::unique_ptr<bool[]> converged(new bool[steps]);
  std::vector<int> iterations(steps);
  std::vector<double> residual(steps);
  const BatchTrajectories to{out.q.data(),      out.v.data(),    converged.get(),
                             iterations.data(), residual.data(), out.status.data()};

  BatchRolloutInput input{q0.data(), v0.data(), u_held.data, tau_held.data, count, fext_held.data};
  input.mask = mask_in.data();
  input.mocap = mocap_held.data;
  BatchRolloutOptions options;
  options.derivatives = derivatives;
  options.memory_budget = static_cast<std::size_t>(memory_budget.value_or(0));
  options.carry_memory = true;
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return rollout(batch.simulator, input, options, to, out.rollout, interrupted);
  });

  // The numbers of all substeps are told with the status of the worst.
  bool* all_converged = new_array<bool>({n}, "bool", out.converged);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const auto first = iterations.begin() + static_cast<std::ptrdiff_t>(i) * count;
    out.status[i].iterations = std::accumulate(first, first + count, 0);
    all_converged[i] = out.status[i].converged;
  }
  const ArrayOut q1 = last_rows(out.q, n, count + 1, model.nq), v1 = last_rows(out.v, n, count + 1, model.nv);
  return nb::make_tuple(q1.array, v1.array, nb::cast(std::move(out)));
}

CotangentOut vjp(const ControlStep& step, nb::handle dQ1, nb::handle dV1, Names wrt, nb::handle outputs) {
  const bool wants_fext = take_fext(wrt), wants_mocap = take_mocap(wrt);
  const Model& model = model_of(step);
  Batch& batch = step.owner();
  const Py_ssize_t n = batch.n(), nv = model.nv, nu = model.nu, states = step.substeps + 1;
  if (outputs.is_none()) ArrayIn(dQ1, "dQ1", {n, nv}), ArrayIn(dV1, "dV1", {n, nv});  // needed then
  const OptionalArray dq_in(dQ1, "dQ1", {n, nv}), dv_in(dV1, "dV1", {n, nv});
  if (dq_in.data()) dq_in.finite("dQ1");
  if (dv_in.data()) dv_in.finite("dV1");
  const OutputWeights weights(model, outputs, n);

  // Cotangents of the last state alone.
  const Rows dq = as_last_rows(dq_in.data(), n, states, nv), dv = as_last_rows(dv_in.data(), n, states, nv),
             dy = as_last_rows(weights.values.data(), n, states, weights.set.tangent_size());
  const TrajectoryCotangent from{dq.data, dv.data, &weights.set, dy.data};

  CotangentOut out;
  out.set = ParameterSet(model, wrt);
  const auto all = static_cast<std::size_t>(n * step.substeps);
  std::vector<double> u(all * static_cast<std::size_t>(nu)), tau(all * static_cast<std::size_t>(nv)),
      wrenches(wants_fext ? all * 6 * static_cast<std::size_t>(model.num_bodies) : 0),
      poses(wants_mocap ? all * mocap_tangent_size(model) : 0);
  BatchRolloutCotangent to;
  to.q0 = new_array<double>({n, nv}, "float64", out.q);
  to.v0 = new_array<double>({n, nv}, "float64", out.v);
  to.parameters = new_array<double>({n, out.set.size()}, "float64", out.columns);
  to.valid = new_array<bool>({n}, "bool", out.valid);
  to.u = u.data();
  to.tau = tau.data();
  to.fext = wants_fext ? wrenches.data() : nullptr;
  to.mocap = wants_mocap ? poses.data() : nullptr;
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return vjp(batch.simulator, step.rollout, from, wrt, to, interrupted);
  });

  // An input that was held has the sum of its steps.
  const auto folded = [&](const std::vector<double>& steps, std::size_t width, double* sum) {
    fold(steps.data(), static_cast<std::size_t>(n), width, step.substeps, sum);
  };
  folded(u, static_cast<std::size_t>(nu), new_array<double>({n, nu}, "float64", out.u));
  folded(tau, static_cast<std::size_t>(nv), new_array<double>({n, nv}, "float64", out.tau));
  if (wants_fext)
    folded(wrenches, 6 * static_cast<std::size_t>(model.num_bodies),
           new_array<double>({n, model.num_bodies, 6}, "float64", out.fext));
  if (wants_mocap)
    folded(poses, mocap_tangent_size(model), new_array<double>({n, num_mocap(model), 6}, "float64", out.mocap));
  return out;
}

nb::object jvp(const ControlStep& step, nb::handle dQ, nb::handle dV, nb::handle dU, nb::handle dtau,
               nb::handle dmocap) {
  const Model& model = model_of(step);
  Batch& batch = step.owner();
  const Py_ssize_t n = batch.n(), nv = model.nv, states = step.substeps + 1;
  const OptionalArray dq_in(dQ, "dQ", {n, nv}), dv_in(dV, "dV", {n, nv}), du_in(dU, "dU", {n, model.nu}),
      dtau_in(dtau, "dtau", {n, nv}), dmocap_in(dmocap, "dmocap", {n, num_mocap(model), 6});
  const auto held_rows = [&](const OptionalArray& given, const char* name, int width) {
    if (given.data()) given.finite(name);
    return held(given.data(), static_cast<std::size_t>(n), 1, static_cast<std::size_t>(width), step.substeps);
  };
  const Rows du = held_rows(du_in, "dU", model.nu), dt = held_rows(dtau_in, "dtau", model.nv),
             dm = held_rows(dmocap_in, "dmocap", static_cast<int>(mocap_tangent_size(model)));
  const BatchRolloutTangent tangent{dq_in.data(), dv_in.data(), du.data, dt.data, {}, nullptr, dm.data};
  std::vector<double> dq(static_cast<std::size_t>(n * states * nv)), dv(dq.size());
  const std::unique_ptr<bool[]> valid(new bool[static_cast<std::size_t>(n)]);
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return jvp(batch.simulator, step.rollout, tangent, dq.data(), dv.data(), valid.get(), interrupted);
  });
  return nb::make_tuple(last_rows(dq, n, states, nv).array, last_rows(dv, n, states, nv).array);
}

/// (n, 1, ...) of one row to (n, ...).
Array without_rows(const nb::object& array) {
  return nb::borrow<Array>(array[nb::make_tuple(nb::slice(nb::none(), nb::none(), nb::none()), 0)]);
}

DerivativesOut jacobian(const ControlStep& step, const Names& wrt) {
  const Model& model = model_of(step);
  Batch& batch = step.owner();
  const bool two_states = batch.simulator.environment(0).resolved_options().stepper->num_states() > 1;
  LinearizationOut matrices(ParameterSet(model, wrt), model, two_states, step.substeps, batch.n());
  matrices.refuse_substeps(step.substeps);
  run_interruptible(batch, [&](const Interrupted& interrupted) {
    return linearize(batch.simulator, step.rollout, wrt, matrices.matrices, matrices.valid_data, interrupted);
  });
  matrices.compose(step.substeps);

  DerivativesOut out;
  out.A = without_rows(matrices.A);
  out.B = without_rows(matrices.B);
  out.B_tau = without_rows(matrices.B_tau);
  out.columns = without_rows(matrices.columns);
  out.valid = nb::borrow<Array>(matrices.valid);
  out.set = matrices.set;
  out.nv = model.nv;
  return out;
}

nb::object readings(const ControlStep& step, nb::handle name) {
  const OutputSet set(model_of(step), output_names_of(name));
  Batch& batch = step.owner();
  const Py_ssize_t n = batch.n(), states = step.substeps + 1;
  std::vector<double> all(static_cast<std::size_t>(n * states * set.size()));
  {
    const Working working(batch);
    read_outputs(batch.simulator, step.rollout, set, all.data());
  }
  return last_rows(all, n, states, set.size()).array;
}

}  // namespace

void bind_control_step(nb::module_& module, nb::class_<Batch>& batch) {
  nb::class_<ControlStep>(
      module, "BatchControlStep",
      "What a control step of a batch leaves for its derivative. It stays good when the batch goes on.")
      .def("__repr__",
           [](const ControlStep& s) {
             const auto good =
                 std::count_if(s.status.begin(), s.status.end(), [](const auto& x) { return x.converged; });
             return "<BatchControlStep: " + counted(static_cast<std::size_t>(s.substeps), "substep") + " of " +
                    counted(s.status.size(), "environment") + ", " + std::to_string(good) + " of them converged>";
           })
      .def_ro("substeps", &ControlStep::substeps, "Steps for which the inputs were held.")
      .def_ro("converged", &ControlStep::converged,
              "(n,) bool: every substep was solved as posed; True where the mask left an environment out.")
      .def_prop_ro(
          "status", [](const ControlStep& s) { return StatusOut(s.status); },
          "BatchStatus: of a substep whose numbers overflowed, else the first that did not converge, else the last; "
          "iterations of all of them.")
      .def_prop_ro(
          "memory", [](const ControlStep& s) { return s.rollout.bytes(); }, "Bytes of what derivatives need.")
      .def("output", &readings, nb::arg("name"), nb::sig("def output(self, name: str | list[str]) -> numpy.ndarray"),
           "(n, size) readings at (Q1, V1), as Rollout.output; forces are those of the last substep.")
      .def("vjp", &vjp, nb::arg("dQ1") = nb::none(), nb::arg("dV1") = nb::none(), nb::arg("wrt") = Names{},
           nb::kw_only(), nb::arg("outputs") = nb::none(),
           nb::sig(
               "def vjp(self, dQ1: numpy.typing.ArrayLike | None = None, dV1: numpy.typing.ArrayLike | None = None, "
               "wrt: list[str] = [], *, outputs: dict[str, numpy.typing.ArrayLike] | None = None) -> BatchCotangent"),
           "Reverse mode, as BatchSimulator.vjp, through all substeps: by the inputs, the sum over the steps for which "
           "they were held; by the poses of mocap bodies where wrt has \"mocap\". No step is run again, as long as "
           "what it takes fitted into memory_budget.\n\nRuntimeError: "
           "made with derivatives=False, or forces that the steps do not tell; ValueError: NaN in a cotangent, unknown "
           "name.")
      .def("jvp", &jvp, nb::arg("dQ") = nb::none(), nb::arg("dV") = nb::none(), nb::arg("dU") = nb::none(),
           nb::arg("dtau") = nb::none(), nb::kw_only(), nb::arg("dmocap") = nb::none(),
           nb::sig("def jvp(self, dQ: numpy.typing.ArrayLike | None = None, dV: numpy.typing.ArrayLike | None = None, "
                   "dU: numpy.typing.ArrayLike | None = None, dtau: numpy.typing.ArrayLike | None = None, *, dmocap: "
                   "numpy.typing.ArrayLike | None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
           "Forward mode, as BatchSimulator.jvp, through all substeps. dmocap: (n, m, 6), of the held poses.")
      .def("jacobian", &jacobian, nb::arg("wrt") = Names{},
           "BatchDerivatives of (Q1, V1) by (Q, V), the held inputs and the parameters of wrt: the product over the "
           "substeps, for models of few dofs.\n\nRuntimeError: made with derivatives=False, or several substeps of "
           "bdf2, "
           "which depend on two states each; ValueError: unknown parameter.");

  batch.def(
      "control_step", &control_step, nb::arg("Q"), nb::arg("V"), nb::arg("U") = nb::none(), nb::kw_only(),
      nb::arg("tau") = nb::none(), nb::arg("fext") = nb::none(), nb::arg("mocap") = nb::none(),
      nb::arg("substeps").none() = 1, nb::arg("mask") = nb::none(), nb::arg("derivatives") = true,
      nb::arg("memory_budget") = nb::none(),
      nb::sig(
          "def control_step(self, Q: numpy.typing.ArrayLike, V: numpy.typing.ArrayLike, U: numpy.typing.ArrayLike | "
          "None = None, *, tau: numpy.typing.ArrayLike | None = None, fext: numpy.typing.ArrayLike | None = None, "
          "mocap: "
          "numpy.typing.ArrayLike | None = None, "
          "substeps: int = 1, mask: numpy.typing.ArrayLike | None = None, derivatives: bool = True, memory_budget: "
          "float | None = None) -> tuple[numpy.ndarray, numpy.ndarray, BatchControlStep]"),
      "(Q1, V1, record): `substeps` steps of every environment (of the mask) with U (n, nu), tau (n, nv) and fext (n, "
      "num_bodies, 6) held, and mocap bodies at mocap (n, m, 7), or (m, 7) for all, from what each one remembers of "
      "its last call (as step; reset makes it start cold). "
      "record: "
      "a BatchControlStep, for vjp, jvp, jacobian, outputs and status, any time later. Rows that the mask leaves out "
      "are "
      "copied, whatever they hold, and their derivative is the identity. With stepper bdf2 every call starts anew, "
      "with "
      "a step of SDIRK2. derivatives=False keeps nothing for them; memory_budget: as in rollout, of one call.\n\n"
      "ValueError: names argument, element and value; no environment has moved then.");
}

}  // namespace coulomb::python

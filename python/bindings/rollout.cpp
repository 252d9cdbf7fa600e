// Rollouts and their derivatives. Long loops run without the GIL; every 50 ms they look for signals and report
// progress.
#include "coulomb/rollout.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <stdexcept>

#include "arrays.hpp"
#include "batch.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/stepper.hpp"
#include "linearization.hpp"
#include "module.hpp"
#include "one_call.hpp"
#include "outputs.hpp"
#include "substeps.hpp"

#include "coulomb/rollout/checks.hpp"
#include "coulomb/rollout/rollout_parts.hpp"

namespace coulomb::python {

namespace {

using Names = std::vector<std::string>;

/// What Python gets as a Rollout: its rows are the states at which inputs change.
struct Trajectory {
  Rollout all;  ///< every step
  int substeps = 1;
  double timestep = 0;                               ///< s, of a step
  int rows() const { return all.steps / substeps; }  ///< T
};

/// What a loop without the GIL calls after each step: now and then takes the GIL, lets KeyboardInterrupt through,
/// reports progress.
class Watch {
 public:
  /// progress: None, True (a bar) or a callable(done, total).
  explicit Watch(nb::handle progress) : last_(Clock::now()) {
    if (progress.is_none() || progress.is(Py_False)) return;
    if (progress.is(Py_True)) report_ = nb::module_::import_("coulomb.progress").attr("Bar")();
    else if (PyCallable_Check(progress.ptr())) report_ = nb::borrow(progress);
    else throw nb::type_error("progress: expected None, True or a callable(done, total)");
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// Runs work(progress) without the GIL.
  template <typename Work>
  auto run(Work&& work) {
    const Progress progress = [this](int done, int total) { look(done, total); };
    const Close close{*this};
    nb::gil_scoped_release release;
    return work(progress);
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Close {  // runs with the GIL, whatever happened
    Watch& watch;
    ~Close() {
      if (!watch.report_.is_valid() || !nb::hasattr(watch.report_, "close")) return;
      const nb::error_scope error;
      nb::object result = nb::steal(PyObject_CallMethod(watch.report_.ptr(), "close", nullptr));
      if (!result.is_valid()) PyErr_WriteUnraisable(watch.report_.ptr());
    }
  };

  void look(int done, int total) {
    const auto now = Clock::now();
    if (now - last_ < std::chrono::milliseconds(50) && !(done == total && report_.is_valid())) return;
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (report_.is_valid() && done != reported_) report_(done, total);
    reported_ = done;
    last_ = Clock::now();
  }

  nb::object report_;
  Clock::time_point last_;
  int reported_ = -1;
};

int positive(const char* name, const std::optional<std::int64_t>& value) {
  if (!value) return 0;
  if (*value < 1 || *value > 2147483647)
    throw nb::value_error((std::string(name) + ": got " + std::to_string(*value) + ", expected at least 1").c_str());
  return static_cast<int>(*value);
}

int number_of_steps(std::optional<int> steps, const OptionalArray& u, const OptionalArray& tau,
                    const OptionalArray& fext, const OptionalArray& mocap) {
  const auto agree = [&](const char* name, const OptionalArray& rows) {
    if (!rows.data()) return;
    const int count = static_cast<int>(rows.rows());
    if (steps && *steps != count)
      throw nb::value_error(
          ("steps: got " + std::to_string(*steps) + ", but " + name + " has " + std::to_string(count) + " rows")
              .c_str());
    steps = count;
  };
  agree("U", u);
  agree("tau", tau);
  agree("fext", fext);
  agree("mocap", mocap);
  if (!steps) throw nb::value_error("steps: needed when U and tau are None (and fext and mocap)");
  return *steps;
}

Trajectory run(Simulator& sim, nb::handle q0, nb::handle v0, nb::handle U, std::optional<int> steps, nb::handle tau,
               nb::handle fext, nb::handle mocap, nb::handle substeps, std::optional<std::int64_t> checkpoint_every,
               std::optional<double> memory_budget, bool keep_factors, nb::handle progress) {
  const Model& model = sim.model();
  const ArrayIn q_in(q0, "q0", {model.nq}), v_in(v0, "v0", {model.nv});
  const OptionalArray u_in(U, "U", {-1, model.nu}), tau_in(tau, "tau", {-1, model.nv}),
      fext_in(fext, "fext", {-1, model.num_bodies, 6}), mocap_in(mocap, "mocap", {-1, num_mocap(model), 7});
  const int T = number_of_steps(steps, u_in, tau_in, fext_in, mocap_in), count = substeps_of(substeps, T);

  // Inputs are checked before they are held, so that an error names a row that was given.
  check_finite_rows("U", u_in.data(), T, model.nu);
  check_finite_rows("tau", tau_in.data(), T, model.nv);
  if (fext_in.data()) check_finite_wrenches(fext_in.data(), T, model.num_bodies);
  check_mocap_rows(model, mocap_in.data(), T);
  const auto size = [](int number) { return static_cast<std::size_t>(number); };
  const auto bodies = size(model.num_bodies);
  const Rows u_held = held(u_in.data(), 1, size(T), size(model.nu), count);
  const Rows tau_held = held(tau_in.data(), 1, size(T), size(model.nv), count);
  const Rows fext_held = held(fext_in.data(), 1, size(T), 6 * bodies, count);
  const Rows mocap_held = held(mocap_in.data(), 1, size(T), mocap_size(model), count);

  RolloutInput input{q_in.data(), v_in.data(), u_held.data, tau_held.data};
  input.steps = T * count;
  input.fext = fext_held.data;
  input.mocap = mocap_held.data;
  RolloutOptions options;
  options.checkpoint_every = positive("checkpoint_every", checkpoint_every);
  if (memory_budget) {
    if (!(*memory_budget >= 1 && *memory_budget < 1e18))
      throw nb::value_error(
          ("memory_budget: got " + std::to_string(*memory_budget) + ", expected a number of bytes, at least 1")
              .c_str());
    options.memory_budget = static_cast<std::size_t>(*memory_budget);
  }
  options.keep_factors = keep_factors;
  try {
    return {Watch(progress).run([&](const Progress& watch) { return rollout(sim, input, options, watch); }), count,
            sim.timestep()};
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, ("steps: the states of " + std::to_string(input.steps) +
                                        " steps do not fit into memory; call rollout in parts, or step")
                                           .c_str());
    throw nb::python_error();
  }
}

/// Parameters of wrt: the inputs, whose gradients come anyway, taken out.
Names parameters_of(const Names& wrt) {
  Names out;
  for (const std::string& name : wrt)
    if (name != "q0" && name != "v0" && name != "u" && name != "tau") out.push_back(name);
  return out;
}

RolloutCotangent reverse(const Trajectory& t, nb::handle dQ, nb::handle dV, const Names& wrt, nb::handle outputs,
                         nb::handle progress) {
  const Model& model = *t.all.model;
  const int T = t.rows();
  const OptionalArray dq_in(dQ, "dQ", {T + 1, model.nv}), dv_in(dV, "dV", {T + 1, model.nv});
  check_finite_rows("dQ", dq_in.data(), T + 1, model.nv);
  check_finite_rows("dV", dv_in.data(), T + 1, model.nv);
  Names parameters = parameters_of(wrt);
  const bool wants_fext = take_fext(parameters);
  const WantedCotangents wanted{wants_fext, take_mocap(parameters)};
  const OutputWeights weights(model, outputs, T + 1);

  const auto states = static_cast<std::size_t>(T + 1), nv = static_cast<std::size_t>(model.nv);
  const Rows q = spread(dq_in.data(), 1, states, nv, t.substeps), v = spread(dv_in.data(), 1, states, nv, t.substeps);
  const bool any = !weights.values.empty();
  const Rows w = spread(any ? weights.values.data() : nullptr, 1, states,
                        static_cast<std::size_t>(weights.set.tangent_size()), t.substeps);
  RolloutCotangent g = Watch(progress).run([&](const Progress& watch) {
    return any ? vjp(t.all, {q.data, v.data, &weights.set, w.data}, parameters, watch, wanted)
               : vjp(t.all, q.data, v.data, parameters, watch, nullptr, wanted);
  });

  const auto rows = static_cast<std::size_t>(T);
  fold(g.u, rows, static_cast<std::size_t>(g.nu), t.substeps);
  fold(g.tau, rows, static_cast<std::size_t>(g.nv), t.substeps);
  if (g.wants_fext) fold(g.fext, rows, 6 * static_cast<std::size_t>(g.num_bodies), t.substeps);
  if (g.wants_mocap) fold(g.mocap, rows, mocap_tangent_size(model), t.substeps);
  g.steps = T;
  return g;
}

nb::object forward(const Trajectory& trajectory, nb::handle dq0, nb::handle dv0, nb::handle dU, nb::handle dtau,
                   nb::handle dparameters, nb::handle dmocap, nb::handle progress) {
  const Rollout& r = trajectory.all;
  const Model& model = *r.model;
  const int T = trajectory.rows(), substeps = trajectory.substeps;
  const OptionalArray q(dq0, "dq0", {model.nv}), v(dv0, "dv0", {model.nv}), u_in(dU, "dU", {T, model.nu}),
      tau_in(dtau, "dtau", {T, model.nv}), mocap_in(dmocap, "dmocap", {T, num_mocap(model), 6});
  check_finite_rows("dU", u_in.data(), T, model.nu);
  check_finite_rows("dtau", tau_in.data(), T, model.nv);
  const auto size = [](int number) { return static_cast<std::size_t>(number); };
  const Rows u = held(u_in.data(), 1, size(T), size(model.nu), substeps);
  const Rows tau = held(tau_in.data(), 1, size(T), size(model.nv), substeps);
  if (mocap_in.data()) mocap_in.finite("dmocap");
  const Rows mocap = held(mocap_in.data(), 1, size(T), mocap_tangent_size(model), substeps);
  RolloutTangent tangent{q.data(), v.data(), u.data, tau.data, {}, {}, mocap.data};
  if (!dparameters.is_none()) {
    if (!nb::isinstance<nb::dict>(dparameters))
      throw nb::type_error("dparameters: expected a dict of names and values");
    for (auto [key, value] : nb::borrow<nb::dict>(dparameters)) {
      if (!nb::isinstance<nb::str>(key)) throw nb::type_error("dparameters: names of parameters are strings");
      const std::string name = nb::cast<std::string>(key), what = "dparameters['" + name + "']";
      const ParameterSet set(model, {name});
      const nb::object row = nb::module_::import_("numpy").attr("atleast_1d")(value);
      const ArrayIn numbers(row, what.c_str(), {set.size()});
      numbers.finite(what.c_str());
      tangent.parameters.push_back(name);
      tangent.dparameters.insert(tangent.dparameters.end(), numbers.data(), numbers.data() + numbers.size());
    }
  }
  ArrayOut q_out = new_array(r.steps + 1, model.nv), v_out = new_array(r.steps + 1, model.nv);
  Watch(progress).run([&](const Progress& watch) { jvp(r, tangent, q_out.data, v_out.data, watch); });
  if (substeps == 1) return nb::make_tuple(std::move(q_out.array), std::move(v_out.array));
  const auto at_rows = [&](const ArrayOut& x) { return to_numpy(x.data, T + 1, model.nv, substeps * model.nv); };
  return nb::make_tuple(at_rows(q_out), at_rows(v_out));
}

/// The Jacobian of the states at which inputs change, by the rows of the inputs.
void keep_rows(RolloutJacobian& J, const Trajectory& t) {
  const auto steps = static_cast<std::size_t>(t.all.steps), ld = static_cast<std::size_t>(J.ld);
  for (auto& block : J.blocks) {
    const std::size_t width = static_cast<std::size_t>(block.columns) * ld;
    const bool of_steps = (block.name == "u" || block.name == "tau" || block.name == "mocap") && width > 0;
    std::vector<double> kept;
    for (int state = 0; state < J.states; state += t.substeps) {
      const double* first = block.columns_T.data() + static_cast<std::size_t>(state) * width;
      std::vector<double> columns(first, first + width);
      if (of_steps) fold(columns, static_cast<std::size_t>(t.rows()), width / steps, t.substeps);
      kept.insert(kept.end(), columns.begin(), columns.end());
    }
    if (of_steps) block.columns /= t.substeps;
    block.columns_T = std::move(kept);
  }
  J.states = (J.states - 1) / t.substeps + 1;
}

nb::object dense(const Trajectory& t, const Names& wrt, bool all_states, nb::handle progress) {
  auto* J = new RolloutJacobian;
  const nb::capsule owner(J, [](void* p) noexcept { delete static_cast<RolloutJacobian*>(p); });
  try {
    *J = Watch(progress).run([&](const Progress& watch) { return jacobian(t.all, wrt, all_states, watch); });
    if (t.substeps > 1) keep_rows(*J, t);
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError,
                    "jacobian: its arrays do not fit into memory; all_states=False asks for the last state only");
    throw nb::python_error();
  }
  static const double nothing = 0;
  nb::dict out;
  for (const auto& block : J->blocks) {
    const auto rows = static_cast<std::size_t>(J->rows), columns = static_cast<std::size_t>(block.columns);
    const std::size_t shape[3] = {static_cast<std::size_t>(J->states), rows, columns};
    const std::int64_t strides[3] = {block.columns * static_cast<std::int64_t>(J->ld), 1, J->ld};
    const double* data = block.columns_T.empty() ? &nothing : block.columns_T.data();
    const int skip = all_states ? 0 : 1;
    out[block.name.c_str()] =
        nb::cast(nb::ndarray<nb::numpy, const double>(data, 3 - skip, shape + skip, owner, strides + skip));
  }
  return out;
}

nb::object fext_of(const RolloutCotangent& g) {
  nb::object out;
  double* to = new_array<double>({g.steps, g.num_bodies, 6}, "float64", out);
  std::copy(g.fext.begin(), g.fext.end(), to);
  return out;
}

nb::object mocap_of(const RolloutCotangent& g) {
  nb::object out;
  double* to = new_array<double>({g.steps, g.num_mocap, 6}, "float64", out);
  std::copy(g.mocap.begin(), g.mocap.end(), to);
  return out;
}

nb::object item(const RolloutCotangent& g, const std::string& name) {
  if (name == "fext" && g.wants_fext) return fext_of(g);
  if (name == "mocap" && g.wants_mocap) return mocap_of(g);
  if (name == "q0") return to_numpy(g.q0);
  if (name == "v0") return to_numpy(g.v0);
  if (name == "u") return to_numpy(g.u.data(), g.steps, g.nu, g.nu);
  if (name == "tau") return to_numpy(g.tau.data(), g.steps, g.nv, g.nv);
  std::string known;
  for (const auto& item : g.parameter_set->items()) {
    if (item.name == name) return to_numpy(g.parameters.data() + item.first, item.element.size);
    known += (known.empty() ? "" : ", ") + item.name;
  }
  throw nb::key_error((name + ": not among the parameters of wrt (" + (known.empty() ? "none" : known) + ")").c_str());
}

void bind_cotangent(nb::module_& module) {
  nb::class_<RolloutCotangent> cls(module, "RolloutCotangent",
                                   "Gradient of a function of a trajectory with respect to what it was made from.");
  cls.def("__repr__", [](const RolloutCotangent& g) {
    return "<RolloutCotangent: " + counted(static_cast<std::size_t>(g.steps), "step") + ", nv " + std::to_string(g.nv) +
           ", nu " + std::to_string(g.nu) + by_names(parameter_names(*g.parameter_set)) + ">";
  });
  const auto property = [&](const char* name, const char* doc) {
    cls.def_prop_ro(
        name, [name](const RolloutCotangent& g) { return item(g, name); },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
  };
  property("q0", "(nv,) tangent space of q0");
  property("v0", "(nv,)");
  property("u", "(T, nu) with respect to the controls");
  property("tau", "(T, nv) with respect to the extra joint forces");
  cls.def_prop_ro(
      "fext", [](const RolloutCotangent& g) { return g.wants_fext ? fext_of(g) : nb::object(nb::none()); },
      nb::sig("def fext(self) -> numpy.ndarray | None"),
      "(T, num_bodies, 6) with respect to the world forces and torques on bodies, if wrt had \"fext\"; else None.");
  cls.def_prop_ro(
      "mocap", [](const RolloutCotangent& g) { return g.wants_mocap ? mocap_of(g) : nb::object(nb::none()); },
      nb::sig("def mocap(self) -> numpy.ndarray | None"),
      "(T, m, 6) with respect to position and rotation vector of each mocap body in each step, as the parameter "
      "body_placement/<body>, if wrt had \"mocap\"; else None.");
  cls.def("__getitem__", &item, nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(size,) gradient of a parameter of `wrt`, summed over the steps; 'q0', 'v0', 'u', 'tau' too. KeyError "
          "otherwise.")
      .def_prop_ro(
          "parameters",
          [](const RolloutCotangent& g) {
            Names names;
            for (const auto& entry : g.parameter_set->items()) names.push_back(entry.name);
            return names;
          },
          "Names of the parameters of `wrt`.")
      .def_ro("converged", &RolloutCotangent::converged,
              "Every step of the trajectory did; where one did not, the gradient is that of the iterate it used.")
      .def_ro("status", &RolloutCotangent::status,
              "StepStatus of the first step that did not converge, or of the last step; of a substep where there are.")
      .def_ro("ambiguous", &RolloutCotangent::ambiguous,
              "Number of steps, each substep counted, whose derivative was ambiguous (StepDerivatives.ambiguous).");
}

/// One StepStatus per row: of the worst of its steps, with the iterations of them all.
std::vector<StepStatus> status_of_rows(const Trajectory& t) {
  if (t.substeps == 1) return t.all.status;
  const std::vector<StepStatus>& every = t.all.status;
  const auto outcome = [&](std::size_t step) { return Outcome{every[step].converged, every[step].residual}; };
  std::vector<StepStatus> out;
  for (auto first = every.begin(); first != every.end(); first += t.substeps) {
    out.push_back(every[worst(static_cast<std::size_t>(first - every.begin()), t.substeps, outcome)]);
    out.back().iterations = std::accumulate(first, first + t.substeps, 0,
                                            [](int sum, const StepStatus& status) { return sum + status.iterations; });
  }
  return out;
}

nb::class_<Trajectory> bind_trajectory(nb::module_& module) {
  const auto rows = [](std::vector<double> Rollout::*member) {
    return [member](nb::handle self) {
      const auto& t = nb::cast<const Trajectory&>(self);
      const std::vector<double>& x = t.all.*member;
      const std::size_t width = x.size() / (static_cast<std::size_t>(t.all.steps) + 1);
      const std::size_t shape[2] = {static_cast<std::size_t>(t.rows()) + 1, width};
      const std::int64_t strides[2] = {static_cast<std::int64_t>(width) * t.substeps, 1};
      return nb::cast(nb::ndarray<nb::numpy, const double>(x.data(), 2, shape, self, strides));
    };
  };
  nb::class_<Trajectory> cls(module, "Rollout",
                             "A trajectory of T steps, or of T rows of inputs held for `substeps` steps each, with "
                             "what its derivatives need.");
  cls.def("__repr__", [](const Trajectory& t) {
    const std::vector<StepStatus> status = status_of_rows(t);
    const auto wrong = [](const StepStatus& s) { return !s.converged; };
    const auto first = std::find_if(status.begin(), status.end(), wrong);
    const auto count = std::count_if(status.begin(), status.end(), wrong);
    return "<Rollout: " + counted(static_cast<std::size_t>(t.rows()), "step") +
           (t.substeps == 1 ? "" : " of " + std::to_string(t.substeps) + " substeps") +
           (count == 0 ? ", converged"
                       : ", " + std::to_string(count) + " not converged, the first is step " +
                             std::to_string(first - status.begin())) +
           ", of " + in_words(*t.all.model) + ">";
  });
  cls.def_prop_ro("steps", &Trajectory::rows, "T")
      .def_ro("substeps", &Trajectory::substeps, "Steps for which each row of inputs was held.")
      .def_ro("timestep", &Trajectory::timestep, "s, of a step: rows are timestep * substeps apart.")
      .def_prop_ro("q", rows(&Rollout::q), nb::sig("def q(self) -> numpy.ndarray"), "(T + 1, nq): q0 first.")
      .def_prop_ro("v", rows(&Rollout::v), nb::sig("def v(self) -> numpy.ndarray"), "(T + 1, nv): v0 first.")
      .def_prop_ro("status", &status_of_rows,
                   "T times a StepStatus: of the worst substep (one that did not converge, then the largest residual), "
                   "with the iterations of all of them.")
      .def_prop_ro(
          "converged", [](const Trajectory& t) { return t.all.converged; }, "Every step converged.")
      .def_prop_ro(
          "model", [](const Trajectory& t) { return std::const_pointer_cast<Model>(t.all.model); },
          "The Model that was simulated.")
      .def_prop_ro(
          "checkpoint_every", [](const Trajectory& t) { return t.all.parts->checkpoints.every(); },
          "Steps between two checkpoints, each substep counted.")
      .def_prop_ro(
          "memory", [](const Trajectory& t) { return t.all.bytes(); },
          "Bytes of the states, inputs, checkpoints and what is kept of steps, and of the records of a vjp.");
  return cls;
}

void bind_products(nb::class_<Trajectory>& cls) {
  cls.def(
      "output",
      [](const Trajectory& t, nb::handle name) {
        const OutputSet set(*t.all.model, output_names_of(name));
        const std::vector<double> values = read_outputs(t.all, set);
        return to_numpy(values.data(), t.rows() + 1, set.size(), t.substeps * set.size());
      },
      nb::arg("name"), nb::sig("def output(self, name: str | list[str]) -> numpy.ndarray"),
      "(T + 1, size) readings at every state; of a list of names: side by side. Row t of a force is of the step "
      "that ends in state t, row 0 zero.\n\nValueError: unknown name. RuntimeError: forces "
      "that these steps do not tell.");
  cls.def(
      "vjp", &reverse, nb::arg("dQ") = nb::none(), nb::arg("dV") = nb::none(), nb::arg("wrt") = Names{}, nb::kw_only(),
      nb::arg("outputs") = nb::none(), nb::arg("progress") = nb::none(),
      nb::sig("def vjp(self, dQ: numpy.typing.ArrayLike | None = None, dV: numpy.typing.ArrayLike | None = None, wrt: "
              "list[str] = [], *, outputs: dict[str, numpy.typing.ArrayLike] | None = None, progress: bool | "
              "collections.abc.Callable[[int, int], object] | None = None) -> RolloutCotangent"),
      "Reverse mode: cotangents (T + 1, nv) of q (tangent space) and v (None: zero) to the RolloutCotangent of q0, "
      "v0, u, tau and "
      "of the parameters named in wrt; of fext and of the poses of mocap bodies where wrt has \"fext\" and "
      "\"mocap\". outputs: cotangents (T + 1, tangent_size) "
      "of outputs by name (Rollout.output), "
      "which add to them. Steps that were not kept are run once more, with the same bits.\n\nValueError: NaN in a "
      "cotangent, wrong "
      "shape, unknown parameter. OverflowError: the gradient grew beyond the range of float64. KeyboardInterrupt: "
      "it can be "
      "stopped.");
  cls.def(
      "jvp", &forward, nb::arg("dq0") = nb::none(), nb::arg("dv0") = nb::none(), nb::arg("dU") = nb::none(),
      nb::arg("dtau") = nb::none(), nb::arg("dparameters") = nb::none(), nb::kw_only(), nb::arg("dmocap") = nb::none(),
      nb::arg("progress") = nb::none(),
      nb::sig(
          "def jvp(self, dq0: numpy.typing.ArrayLike | None = None, dv0: numpy.typing.ArrayLike | None = None, dU: "
          "numpy.typing.ArrayLike | None = None, dtau: numpy.typing.ArrayLike | None = None, dparameters: "
          "dict[str, numpy.typing.ArrayLike] | None = None, *, dmocap: numpy.typing.ArrayLike | None = None, progress: "
          "bool | collections.abc.Callable[[int, int], object] | None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "Forward mode: tangents dq0, dv0 (nv,), dU (T, nu), dtau (T, nv), of parameters by name and dmocap (T, m, 6), as "
      "RolloutCotangent.mocap (None: zero), to those "
      "(T + 1, nv) "
      "of q and v. Errors as vjp.");
  cls.def(
      "jacobian", &dense, nb::arg("wrt") = Names{"q0", "v0"}, nb::arg("all_states") = true, nb::kw_only(),
      nb::arg("progress") = nb::none(),
      nb::sig("def jacobian(self, wrt: list[str] = ['q0', 'v0'], all_states: bool = True, *, progress: bool | "
              "collections.abc.Callable[[int, int], object] | None = None) -> dict[str, numpy.ndarray]"),
      "Forward mode: {name: (T + 1, 2 nv, k)} d(q_t, v_t)/d(name) in tangent space, for 'q0', 'v0', 'u', 'tau', "
      "'mocap' and "
      "names of parameters; all_states=False: (2 nv, k) of the last state. k: nv for q0 and v0, T nu for u and T nv "
      "for tau and 6 T m for mocap (the step first: [..., t * nu + i]; 'u' of all states takes 16 T^2 nu nv bytes, and "
      "with substeps 16 (T "
      "substeps)^2 nu nv: those of a row are added up at the end), a parameter's size. Read-only. Errors as vjp.");
}

LinearizationOut matrices(const Trajectory& t, const Names& wrt, nb::handle progress) {
  const Rollout& r = t.all;
  const bool two_states = r.parts->step_options.stepper->num_states() > 1;
  LinearizationOut out(ParameterSet(*r.model, wrt), *r.model, two_states, r.steps);
  out.refuse_substeps(t.substeps);
  Watch(progress).run([&](const Progress& watch) { linearize(r, wrt, out.matrices, watch); });
  out.compose(t.substeps);
  return out;
}

void bind_matrices(nb::class_<Trajectory>& cls) {
  cls.def(
      "linearize", &matrices, nb::arg("wrt") = Names{}, nb::kw_only(), nb::arg("progress") = nb::none(),
      nb::sig("def linearize(self, wrt: list[str] = [], *, progress: bool | collections.abc.Callable[[int, int], "
              "object] | None = None) -> RolloutLinearization"),
      "The Jacobian of every step, as Simulator.derivatives gave it there: A, B = r.linearize() are (T, 2 nv, 2 nv) "
      "and (T, 2 nv, nu), for LQR and its kin. wrt: names of parameters, whose columns l[name] (T, 2 nv, size) are "
      "wanted too; 'body_placement/<body>' for the poses of mocap bodies. Steps that were not kept are run once "
      "more.\n\nValueError: unknown parameter. RuntimeError names a "
      "step whose numbers overflowed. KeyboardInterrupt: it can be stopped.");
}

}  // namespace

void bind_rollout(nb::module_& module, nb::class_<SimulatorObject>& simulator) {
  bind_cotangent(module);
  nb::class_<Trajectory> trajectory = bind_trajectory(module);
  bind_products(trajectory);
  bind_linearization(module);
  bind_matrices(trajectory);
  simulator.def(
      "rollout", exclusive(&run), nb::arg("q0"), nb::arg("v0"), nb::arg("U") = nb::none(), nb::kw_only(),
      nb::arg("steps") = nb::none(), nb::arg("tau") = nb::none(), nb::arg("fext") = nb::none(),
      nb::arg("mocap") = nb::none(), nb::arg("substeps").none() = 1, nb::arg("checkpoint_every") = nb::none(),
      nb::arg("memory_budget") = nb::none(), nb::arg("keep_factors") = true, nb::arg("progress") = nb::none(),
      nb::sig("def rollout(self, q0: numpy.typing.ArrayLike, v0: numpy.typing.ArrayLike, U: numpy.typing.ArrayLike | "
              "None = None, *, steps: int | None = None, tau: numpy.typing.ArrayLike | None = None, fext: "
              "numpy.typing.ArrayLike | None = None, mocap: numpy.typing.ArrayLike | None = None, substeps: int = 1, "
              "checkpoint_every: int | None = None, memory_budget: float | None "
              "= None, keep_factors: bool = True, progress: bool | "
              "collections.abc.Callable[[int, int], object] | None = None) -> Rollout"),
      "T steps from (q0, v0) under U (T, nu), extra joint forces tau (T, nv) and wrenches fext (T, num_bodies, 6) as "
      "Simulator.step, or `steps` steps without. mocap: (T, m, 7), where the m mocap bodies are in each step, as "
      "Simulator.step; they stay at the last pose. "
      "Starts from reset(); afterwards status, contacts, output and derivatives are those of its last step. Returns a "
      "Rollout, which leaves the simulator alone.\n\n"
      "substeps: each row of U, tau, fext and mocap is held for so many steps of the time step, and everything that "
      "the "
      "Rollout says is of the T + 1 states at which they change: a controller at 50 Hz on steps of 1 ms has "
      "substeps=20. "
      "What checkpoint_every, progress and a cotangent's `ambiguous` count, and errors name, are substeps. "
      "checkpoint_every: steps between checkpoints of the memory that derivatives start from; a vjp keeps "
      "the records of as many steps. memory_budget: instead, bytes for the whole Rollout and its vjp "
      "(default: the states and 64 MB); contacts that come later may pass a tight one, Rollout.memory tells. "
      "keep_factors: keep contacts, impulses and factors of steps for the vjp, in what that budget leaves, so "
      "that it need not run them again; False: a faster rollout and a slower vjp, of the same bits. "
      "progress: True for a bar, or a callable(done, total). It can be stopped by KeyboardInterrupt.\n\n"
      "ValueError: names argument, element and value; the simulator is then as it was.");
}

}  // namespace coulomb::python

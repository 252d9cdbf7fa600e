// Trajectories that are best by a cost: what coulomb.control is made of. Arrays come broadcast from there.
#include "coulomb/control.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>

#include "arrays.hpp"
#include "batch.hpp"
#include "module.hpp"
#include "one_call.hpp"
#include "simulator_options.hpp"

namespace coulomb::python {

namespace {

struct Solver {
  static constexpr const char* busy_text = "control.Solver: another call is running; use one solver per thread";
  TrajectorySolver solver;
  std::atomic<bool> busy{false};

  Py_ssize_t N() const { return solver.options().horizon; }
  Py_ssize_t nq() const { return solver.model().nq; }
  Py_ssize_t nv() const { return solver.model().nv; }
  Py_ssize_t nu() const { return solver.num_controls(); }
};

void construct(Solver* self, std::shared_ptr<Model> model, int horizon, int substeps, int num_threads,
               const std::string& inputs, nb::kwargs simulator) {
  ControlOptions options;
  options.horizon = horizon;
  options.substeps = substeps;
  options.num_threads = num_threads;
  options.inputs = inputs;
  options.simulator = options_of(simulator);
  new (self) Solver{TrajectorySolver(std::move(model), std::move(options))};
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

CostTerm::Of what_of(const std::string& name) {
  if (name == "outputs") return CostTerm::Of::outputs;
  if (name == "state") return CostTerm::Of::state;
  return name == "control" ? CostTerm::Of::control : CostTerm::Of::control_rate;
}

CostTerm::Shape shape_of(const std::string& name) {
  if (name == "square") return CostTerm::Shape::square;
  if (name == "below") return CostTerm::Shape::below;
  if (name == "above") return CostTerm::Shape::above;
  throw nb::value_error(("shape: got '" + name + "', expected 'square', 'below' or 'above'").c_str());
}

int add(Solver& self, const std::string& of, const std::string& shape, std::vector<std::string> outputs,
        nb::handle weight, nb::handle reference, const std::string& gate, int gate_row, double gate_threshold,
        double gate_width) {
  const Idle idle(self);
  CostTerm term;
  term.of = what_of(of);
  term.shape = shape_of(shape);
  term.outputs = std::move(outputs);
  term.gate = gate;
  term.gate_row = gate_row;
  term.gate_threshold = gate_threshold;
  term.gate_width = gate_width;
  term.weight = ArrayIn(weight, "weight", {self.N() + 1, -1}).vector();
  if (!reference.is_none()) term.reference = ArrayIn(reference, "reference", {self.N() + 1, -1}).vector();
  return self.solver.add(std::move(term));
}

/// What would change nothing if it were written to.
nb::object read_only(nb::object array) {
  array.attr("setflags")(nb::arg("write") = false);
  return array;
}

/// Rows of a term as they are now.
nb::object rows(const Solver& self, const std::vector<double>& values) {
  const Py_ssize_t width = static_cast<Py_ssize_t>(values.size()) / (self.N() + 1);
  return read_only(nb::cast(to_numpy(values.data(), self.N() + 1, width, width)));
}

ControlBudget budget_of(int iterations, double tolerance, double gap_tolerance, double regularization,
                        double max_regularization, int step_lengths, double armijo) {
  ControlBudget budget;
  budget.iterations = iterations;
  budget.tolerance = tolerance;
  budget.gap_tolerance = gap_tolerance;
  budget.regularization = regularization;
  budget.max_regularization = max_regularization;
  budget.step_lengths = step_lengths;
  budget.armijo = armijo;
  return budget;
}

void solve(Solver& self, nb::handle q0, nb::handle v0, nb::handle U, nb::handle Q, nb::handle V, nb::handle u_before,
           bool from_last, bool shift, bool roll, int iterations, double tolerance, double gap_tolerance,
           double regularization, double max_regularization, int step_lengths, double armijo, bool processor_time,
           bool gains_of_result, nb::handle progress) {
  const ArrayIn q0_in(q0, "q0", {self.nq()}), v0_in(v0, "v0", {self.nv()});
  const OptionalArray U_in(U, "U", {self.N(), self.nu()}), Q_in(Q, "Q", {self.N() + 1, self.nq()}),
      V_in(V, "V", {self.N() + 1, self.nv()}), before_in(u_before, "u_before", {self.nu()});
  ControlStart start;
  start.q0 = q0_in.data();
  start.v0 = v0_in.data();
  start.u = U_in.data();
  start.q = Q_in.data();
  start.v = V_in.data();
  start.u_before = before_in.data();
  start.from_last = from_last;
  start.shift = shift;
  start.roll = roll;

  ControlBudget budget =
      budget_of(iterations, tolerance, gap_tolerance, regularization, max_regularization, step_lengths, armijo);
  budget.gains_of_result = gains_of_result;
  budget.clock = processor_time ? processor_seconds : wall_seconds;
  budget.interrupted = signals_raised();
  if (!progress.is_none())
    budget.progress = [&](int done, int total) {
      const nb::gil_scoped_acquire acquire;
      progress(done, total);
    };

  bool finished = false;
  {
    const Idle idle(self);
    const nb::gil_scoped_release release;
    finished = self.solver.solve(start, budget);
  }
  if (!finished) throw nb::python_error();
}

/// Without the GIL, until it is done or a signal handler has raised: what that raised is then raised here.
template <class Call>
std::optional<double> released(Solver& self, Call&& call) {
  const std::function<bool()> interrupted = signals_raised();
  std::optional<double> answer;
  {
    const Idle idle(self);
    const nb::gil_scoped_release release;
    answer = call(interrupted);
  }
  if (!answer) throw nb::python_error();
  return answer;
}

nb::object cube(const std::vector<double>& values, Py_ssize_t a, Py_ssize_t b, Py_ssize_t c) {
  nb::object out;
  std::copy(values.begin(), values.end(), new_array<double>({a, b, c}, "float64", out));
  return out;
}

nb::object gradient(Solver& self, nb::handle q0, nb::handle v0, nb::handle U, nb::handle u_before) {
  const ArrayIn q0_in(q0, "q0", {self.nq()}), v0_in(v0, "v0", {self.nv()}), U_in(U, "U", {self.N(), self.nu()});
  const OptionalArray before_in(u_before, "u_before", {self.nu()});
  const ArrayOut dU = new_array(self.N(), self.nu());
  const std::optional<double> cost = released(self, [&](const std::function<bool()>& interrupted) {
    return self.solver.gradient(q0_in.data(), v0_in.data(), U_in.data(), before_in.data(), dU.data, interrupted);
  });
  return nb::make_tuple(*cost, dU.array);
}

/// All of the last result, by name.
nb::dict result(Solver& self) {
  const Idle idle(self);
  const ControlResult& r = self.solver.result();
  nb::dict timings;
  timings["linearize"] = r.timings.linearize;
  timings["riccati"] = r.timings.riccati;
  timings["rollouts"] = r.timings.rollouts;

  nb::dict out;
  out["status"] = control_status_name(r.status);
  out["reason"] = r.reason;
  out["iterations"] = r.iterations;
  out["cost"] = r.cost;
  out["costs"] = to_numpy(r.costs);
  out["gaps"] = to_numpy(r.gaps);
  out["steps"] = to_numpy(r.steps);
  out["regularization"] = r.regularization;
  out["gain_regularization"] = r.gain_regularization;
  out["promised"] = r.promised;
  out["unconverged"] = r.unconverged;
  out["Q"] = to_numpy(r.q.data(), self.N() + 1, self.nq(), self.nq());
  out["V"] = to_numpy(r.v.data(), self.N() + 1, self.nv(), self.nv());
  out["U"] = to_numpy(r.u.data(), self.N(), self.nu(), self.nu());
  out["K"] = cube(r.gain, self.N(), self.nu(), 2 * self.nv());
  out["timings"] = timings;
  return out;
}

nb::object cost(Solver& self, nb::handle Q, nb::handle V, nb::handle U, nb::handle u_before) {
  const ArrayIn Q_in(Q, "Q", {self.N() + 1, self.nq()}), V_in(V, "V", {self.N() + 1, self.nv()}),
      U_in(U, "U", {self.N(), self.nu()});
  const OptionalArray before_in(u_before, "u_before", {self.nu()});
  const ArrayOut by_term = new_array(self.solver.num_terms());
  const std::optional<double> sum = released(self, [&](const std::function<bool()>& interrupted) {
    return self.solver.cost(Q_in.data(), V_in.data(), U_in.data(), before_in.data(), by_term.data, interrupted);
  });
  return nb::make_tuple(*sum, by_term.array);
}

}  // namespace

void bind_control(nb::module_& module) {
  nb::class_<Solver>(module, "_TrajectorySolver", "What coulomb.control.Solver is made of.")
      .def("__init__", &construct, nb::arg("model"), nb::arg("horizon"), nb::arg("substeps"), nb::arg("num_threads"),
           nb::arg("inputs"), nb::arg("options"))
      .def("add", &add, nb::arg("of"), nb::arg("shape"), nb::arg("outputs"), nb::arg("weight"),
           nb::arg("reference").none(), nb::arg("gate"), nb::arg("gate_row"), nb::arg("gate_threshold"),
           nb::arg("gate_width"))
      .def("weight", [](const Solver& self, int i) { return rows(self, self.solver.term(i).weight); })
      .def("reference", [](const Solver& self, int i) { return rows(self, self.solver.term(i).reference); })
      .def("set_weight",
           [](Solver& self, int i, nb::handle weight) {
             const Idle idle(self);
             const auto size = static_cast<Py_ssize_t>(self.solver.term(i).weight.size());
             self.solver.set_weight(i, ArrayIn(weight, "weight", {self.N() + 1, size / (self.N() + 1)}).data());
           })
      .def("set_reference",
           [](Solver& self, int i, nb::handle reference) {
             const Idle idle(self);
             const auto size = static_cast<Py_ssize_t>(self.solver.term(i).reference.size());
             self.solver.set_reference(i,
                                       ArrayIn(reference, "reference", {self.N() + 1, size / (self.N() + 1)}).data());
           })
      .def("set_limits",
           [](Solver& self, nb::handle lower, nb::handle upper) {
             const Idle idle(self);
             self.solver.set_limits(ArrayIn(lower, "lower", {self.nu()}).data(),
                                    ArrayIn(upper, "upper", {self.nu()}).data());
           })
      .def("solve", &solve, nb::arg("q0"), nb::arg("v0"), nb::arg("U").none(), nb::arg("Q").none(), nb::arg("V").none(),
           nb::arg("u_before").none(), nb::arg("from_last"), nb::arg("shift"), nb::arg("roll"), nb::arg("iterations"),
           nb::arg("tolerance"), nb::arg("gap_tolerance"), nb::arg("regularization"), nb::arg("max_regularization"),
           nb::arg("step_lengths"), nb::arg("armijo"), nb::arg("processor_time"), nb::arg("gains_of_result"),
           nb::arg("progress").none())
      .def("result", &result)
      .def("first_control",
           [](Solver& self) {
             const Idle idle(self);
             const ControlResult& r = self.solver.result();
             return nb::make_tuple(to_numpy(r.u.data(), self.nu()),
                                   to_numpy(r.gain.data(), self.nu(), 2 * self.nv(), 2 * self.nv()));
           })
      .def("status",
           [](Solver& self) {
             const Idle idle(self);
             const ControlResult& r = self.solver.result();
             return nb::make_tuple(control_status_name(r.status), r.reason);
           })
      .def_static(
          "check_budget",
          [](int iterations, double tolerance, double gap_tolerance, double regularization, double max_regularization,
             int step_lengths, double armijo) {
            check_budget(budget_of(iterations, tolerance, gap_tolerance, regularization, max_regularization,
                                   step_lengths, armijo));
          },
          nb::arg("iterations"), nb::arg("tolerance"), nb::arg("gap_tolerance"), nb::arg("regularization"),
          nb::arg("max_regularization"), nb::arg("step_lengths"), nb::arg("armijo"))
      .def("forget",
           [](Solver& self) {
             const Idle idle(self);
             self.solver.forget();
           })
      .def("gradient", &gradient, nb::arg("q0"), nb::arg("v0"), nb::arg("U"), nb::arg("u_before").none())
      .def("cost", &cost, nb::arg("Q"), nb::arg("V"), nb::arg("U"), nb::arg("u_before").none())
      .def_prop_ro("has_last", [](const Solver& self) { return self.solver.has_last(); })
      .def_prop_ro("num_threads", [](const Solver& self) { return self.solver.num_threads(); })
      .def_prop_ro("nu", [](const Solver& self) { return self.nu(); })
      .def_prop_ro("timestep", [](const Solver& self) { return self.solver.timestep(); })
      .def_prop_ro("lower", [](const Solver& self) { return read_only(nb::cast(to_numpy(self.solver.lower()))); })
      .def_prop_ro("upper", [](const Solver& self) { return read_only(nb::cast(to_numpy(self.solver.upper()))); });
}

}  // namespace coulomb::python

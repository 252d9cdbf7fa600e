// What a step found and its derivatives: StepStatus, Contact, Impact, StepDerivatives, SparseStepDerivatives, StepCotangent.
#include "coulomb/simulator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "arrays.hpp"
#include "coulomb/contact_problem.hpp"
#include "coulomb/stepping/outputs/step_outputs.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "module.hpp"
#include "one_call.hpp"

namespace coulomb::python {

namespace {

/// A block of a Jacobian that is stored transposed: rows [first_row, +rows) and columns [first_column, +columns) of the matrix whose
/// transpose has `leading` entries per row. A view: no copy.
nb::object transposed_block(const std::vector<double>& transposed, int leading, int first_row, int rows,
                            int first_column, int columns, nb::handle owner) {
  const std::size_t shape[2] = {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)};
  const std::int64_t strides[2] = {1, leading};
  static const double nothing = 0;
  const double* first =
      transposed.empty() ? &nothing : transposed.data() + static_cast<std::size_t>(first_column) * leading + first_row;
  return nb::cast(nb::ndarray<nb::numpy, const double>(first, 2, shape, owner, strides));
}

/// Which part of (q1, v1) or of (q, v) a block belongs to.
enum class Part { all, q, v };

using Derivatives = nb::class_<StepDerivatives>;

void state_block(Derivatives& cls, const char* name, Part of, Part by, const char* doc) {
  cls.def_prop_ro(
      name,
      [of, by](nb::handle self) {
        const auto& d = nb::cast<const StepDerivatives&>(self);
        const int row = of == Part::v ? d.nv : 0, column = by == Part::v ? d.nv : 0;
        return transposed_block(d.A_T, 2 * d.nv, row, of == Part::all ? 2 * d.nv : d.nv, column,
                                by == Part::all ? 2 * d.nv : d.nv, self);
      },
      nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
}

void input_block(Derivatives& cls, const char* name, Part of, bool by_u, const char* doc) {
  cls.def_prop_ro(
      name,
      [of, by_u](nb::handle self) {
        const auto& d = nb::cast<const StepDerivatives&>(self);
        return transposed_block(by_u ? d.B_T : d.B_tau_T, 2 * d.nv, of == Part::v ? d.nv : 0,
                                of == Part::all ? 2 * d.nv : d.nv, 0, by_u ? d.nu : d.nv, self);
      },
      nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
}

/// The item of that name; KeyError lists what was asked for.
const ParameterSet::Item& find_item(const ParameterSet* set, const std::string& name) {
  std::string known;
  if (set)
    for (const auto& item : set->items()) {
      if (item.name == name) return item;
      known += (known.empty() ? "" : ", ") + item.name;
    }
  throw nb::key_error((name + ": not among the parameters of wrt (" + (known.empty() ? "none" : known) + ")").c_str());
}

std::vector<std::string> names_of(const ParameterSet* set) {
  std::vector<std::string> names;
  if (set)
    for (const auto& item : set->items()) names.push_back(item.name);
  return names;
}

/// scipy.sparse.csr_array of a matrix.
nb::object to_scipy(SparseMatrix matrix) {
  nb::object csr;
  try {
    csr = nb::module_::import_("scipy.sparse").attr("csr_array");
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_ImportError)) throw;
    throw nb::import_error(
        "derivatives(sparse=True): its matrices are SciPy's, and SciPy is missing; pip install scipy");
  }
  auto* kept = new SparseMatrix(std::move(matrix));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<SparseMatrix*>(p); });
  const auto array = [&](auto& values) {
    using T = std::decay_t<decltype(values[0])>;
    return nb::cast(nb::ndarray<nb::numpy, T>(values.data(), {values.size()}, owner));
  };
  return csr(nb::make_tuple(array(kept->value), array(kept->column), array(kept->row_start)),
             nb::arg("shape") = nb::make_tuple(kept->rows, kept->columns));
}

void bind_sparse_derivatives(nb::module_& module) {
  nb::class_<SparseStepDerivatives> cls(
      module, "SparseStepDerivatives",
      "Jacobian of one step by islands, bodies that touch directly or through others: the blocks of StepDerivatives as "
      "scipy.sparse.csr_array, made anew by every access. What couples two islands is zero and not stored; within an "
      "island every entry is, zero or not. Not of the semi-implicit stepper: one island.\n\nImportError: SciPy is "
      "missing.");
  cls.def("__repr__", [](const SparseStepDerivatives& d) {
    return "<SparseStepDerivatives: nv " + std::to_string(d.nv) + ", nu " + std::to_string(d.nu) + ", " +
           counted(d.islands.size(), "island") + by_names(names_of(d.parameters.get())) + ">";
  });
  cls.def_ro("nv", &SparseStepDerivatives::nv, "Size of tangent vectors.")
      .def_ro("nu", &SparseStepDerivatives::nu, "Number of controls.")
      .def_ro("ambiguous", &SparseStepDerivatives::ambiguous, "As StepDerivatives.ambiguous.");
  cls.def_prop_ro(
      "islands",
      [](const SparseStepDerivatives& d) {
        std::vector<std::vector<int>> out;
        for (const auto& island : d.islands) out.push_back(island.dofs);
        return out;
      },
      "List of islands, each the list of its dofs (indices into v).");
  const auto block = [&](const char* name, StepResult of, StepArgument by, const char* doc) {
    cls.def_prop_ro(
        name, [of, by](const SparseStepDerivatives& d) { return to_scipy(d.block(of, by)); },
        nb::sig((std::string("def ") + name + "(self) -> typing.Any").c_str()), doc);
  };
  using R = StepResult;
  using By = StepArgument;
  block("A", R::x, By::x, "(2 nv, 2 nv) d(q1, v1)/d(q, v)");
  block("dq_dq", R::q, By::q, "(nv, nv) dq1/dq");
  block("dq_dv", R::q, By::v, "(nv, nv) dq1/dv, s");
  block("dv_dq", R::v, By::q, "(nv, nv) dv1/dq, 1/s");
  block("dv_dv", R::v, By::v, "(nv, nv) dv1/dv");
  block("B", R::x, By::u, "(2 nv, nu) d(q1, v1)/du");
  block("dq_du", R::q, By::u, "(nv, nu) dq1/du");
  block("dv_du", R::v, By::u, "(nv, nu) dv1/du");
  block("B_tau", R::x, By::tau, "(2 nv, nv) d(q1, v1)/dtau");
  block("dq_dtau", R::q, By::tau, "(nv, nv) dq1/dtau, m/N or rad/(N m)");
  block("dv_dtau", R::v, By::tau, "(nv, nv) dv1/dtau, s/kg or 1/(N m s)");
  cls.def(
         "__getitem__",
         [](nb::handle self, const std::string& name) {
           const auto& d = nb::cast<const SparseStepDerivatives&>(self);
           const auto& item = find_item(d.parameters.get(), name);
           return transposed_block(d.parameters_T, 2 * d.nv, 0, 2 * d.nv, item.first, item.element.size, self);
         },
         nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
         "(2 nv, size) d(q1, v1)/d(parameter), dense, for a name of `wrt`. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const SparseStepDerivatives& d) { return names_of(d.parameters.get()); }, "Names of `wrt`.");
}

}  // namespace

Derivatives bind_derivatives(nb::module_& module) {
  bind_sparse_derivatives(module);
  Derivatives cls(module, "StepDerivatives",
                  "Jacobian of one step in tangent space: dq as in Model.integrate, dv as in v. By the implicit "
                  "function theorem on "
                  "the modes of the contacts (docs/theory.md (L3); docs/conventions.md: which side at ties). Arrays "
                  "are read-only views.");
  cls.def("__repr__", [](const StepDerivatives& d) {
    return "<StepDerivatives: nv " + std::to_string(d.nv) + ", nu " + std::to_string(d.nu) +
           (d.ambiguous ? ", ambiguous" : "") + by_names(names_of(d.parameters.get())) + ">";
  });
  cls.def_ro("nv", &StepDerivatives::nv, "Size of tangent vectors.")
      .def_ro("nu", &StepDerivatives::nu, "Number of controls.");
  state_block(cls, "A", Part::all, Part::all, "(2 nv, 2 nv) d(q1, v1)/d(q, v)");
  state_block(cls, "dq_dq", Part::q, Part::q, "(nv, nv) dq1/dq");
  state_block(cls, "dq_dv", Part::q, Part::v, "(nv, nv) dq1/dv, s");
  state_block(cls, "dv_dq", Part::v, Part::q, "(nv, nv) dv1/dq, 1/s");
  state_block(cls, "dv_dv", Part::v, Part::v, "(nv, nv) dv1/dv");
  cls.def_prop_ro(
      "A_previous",
      [](nb::handle self) -> nb::object {
        const auto& d = nb::cast<const StepDerivatives&>(self);
        if (d.A_previous_T.empty()) return nb::none();
        return transposed_block(d.A_previous_T, 2 * d.nv, 0, 2 * d.nv, 0, 2 * d.nv, self);
      },
      nb::sig("def A_previous(self) -> numpy.ndarray | None"),
      "(2 nv, 2 nv) d(q1, v1)/d(the state before), of a bdf2 step that has one; else None.");
  input_block(cls, "B", Part::all, true, "(2 nv, nu) d(q1, v1)/du");
  input_block(cls, "dq_du", Part::q, true, "(nv, nu) dq1/du");
  input_block(cls, "dv_du", Part::v, true, "(nv, nu) dv1/du");
  input_block(cls, "B_tau", Part::all, false, "(2 nv, nv) d(q1, v1)/dtau");
  input_block(cls, "dq_dtau", Part::q, false, "(nv, nv) dq1/dtau, m/N or rad/(N m)");
  input_block(cls, "dv_dtau", Part::v, false, "(nv, nv) dv1/dtau, s/kg or 1/(N m s)");

  cls.def(
         "__getitem__",
         [](nb::handle self, const std::string& name) {
           const auto& d = nb::cast<const StepDerivatives&>(self);
           const auto& item = find_item(d.parameters.get(), name);
           return transposed_block(d.parameters_T, 2 * d.nv, 0, 2 * d.nv, item.first, item.element.size, self);
         },
         nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
         "(2 nv, size) d(q1, v1)/d(parameter), for a name of `wrt`. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const StepDerivatives& d) { return names_of(d.parameters.get()); }, "Names of `wrt`.")
      .def(
          "dlambda",
          [](const StepDerivatives& d, const std::string& wrt) {
            Origin origin(d, "dlambda");
            Simulator& sim = origin.simulator();
            int columns = 0;
            const std::vector<double> values = sim.impulse_derivatives(wrt, columns);
            Py_ssize_t rows = 0;
            for (const BodyRows& b : sim.record().rows.body_rows) rows += b.contact >= 0 ? 3 : 0;
            return to_numpy(values.data(), rows, columns, columns);
          },
          nb::arg("wrt"), nb::sig("def dlambda(self, wrt: str) -> numpy.ndarray"),
          "(3 n, k) derivative of the impulses of the n contacts of Simulator.contacts by 'q', 'v', 'u', 'tau' or a "
          "parameter: along the "
          "rows of Contact.frame (two tangents, normal), which move with the contact and do not spin about the normal; "
          "N s per unit. Where "
          "impulses are not unique: docs/conventions.md.\n\nRuntimeError when the simulator has stepped since; "
          "ValueError: unknown "
          "parameter.")
      .def_ro("ambiguous", &StepDerivatives::ambiguous,
              "No Jacobian is right here: one-sided derivatives differ (a tie that the motion feels, distance exactly "
              "zero, "
              "dry friction that yields elsewhere for another direction), or the step jumps, or the geometry has no "
              "derivative. What is returned is one side (docs/conventions.md). Of the state and of the parameters "
              "asked for.");

  const auto vector_property = [](auto& c, const char* name, std::vector<double> StepCotangent::*member,
                                  const char* doc) {
    c.def_prop_ro(
        name, [member](const StepCotangent& g) { return to_numpy(g.*member); },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
  };
  nb::class_<StepCotangent> cotangent(module, "StepCotangent",
                                      "Gradient of a function of (q1, v1) with respect to the inputs of the step.");
  cotangent.def_ro("ambiguous", &StepCotangent::ambiguous, "As StepDerivatives.ambiguous.");
  cotangent.def("__repr__", [](const StepCotangent& g) {
    return "<StepCotangent: nv " + std::to_string(g.v.size()) + ", nu " + std::to_string(g.u.size()) +
           by_names(names_of(g.parameter_set.get())) + ">";
  });
  vector_property(cotangent, "q", &StepCotangent::q, "(nv,) tangent space of q");
  vector_property(cotangent, "v", &StepCotangent::v, "(nv,) with respect to v");
  vector_property(cotangent, "u", &StepCotangent::u, "(nu,) with respect to the controls");
  vector_property(cotangent, "tau", &StepCotangent::tau, "(nv,) with respect to the joint forces");
  const auto optional_property = [&](const char* name, std::vector<double> StepCotangent::*member, const char* doc) {
    cotangent.def_prop_ro(
        name,
        [member](const StepCotangent& g) {
          return (g.*member).empty() ? nb::object(nb::none()) : nb::object(to_numpy(g.*member));
        },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray | None").c_str()), doc);
  };
  optional_property("previous_q", &StepCotangent::previous_q,
                    "(nv,) tangent space of q of the state before, of a bdf2 step that has one; else None.");
  optional_property("previous_v", &StepCotangent::previous_v, "(nv,) with respect to v of the state before; or None.");
  cotangent.def_prop_ro(
      "fext",
      [](const StepCotangent& g) {
        return g.wants_fext ? to_numpy(g.fext.data(), static_cast<Py_ssize_t>(g.fext.size() / 6), 6, 6)
                            : nb::object(nb::none());
      },
      nb::sig("def fext(self) -> numpy.ndarray | None"),
      "(num_bodies, 6) with respect to the world forces and torques on bodies, if wrt had \"fext\"; else None.");
  cotangent
      .def(
          "__getitem__",
          [](const StepCotangent& g, const std::string& name) {
            if (name == "fext" && g.wants_fext)
              return to_numpy(g.fext.data(), static_cast<Py_ssize_t>(g.fext.size() / 6), 6, 6);
            const auto& item = find_item(g.parameter_set.get(), name);
            return to_numpy(g.parameters.data() + item.first, item.element.size);
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(size,) gradient of a parameter of `wrt`. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const StepCotangent& g) { return names_of(g.parameter_set.get()); }, "Names of `wrt`.");
  return cls;
}

namespace {

void bind_impacts(nb::module_& module) {
  const auto triple = [](const double(ImpactReport::*member)[3]) {
    return [member](const ImpactReport& i) { return to_numpy(i.*member, 3); };
  };
  nb::class_<ImpactReport>(module, "Impact",
                           "One point of an impact of the last step, or a joint that came to its limit (no geometries "
                           "then). World axes; the impulse acts on A, its opposite on B.")
      .def_ro("time", &ImpactReport::time, "s, since the start of the step")
      .def_ro("geometry_a", &ImpactReport::geometry_a, "Name of the geometry A.")
      .def_ro("geometry_b", &ImpactReport::geometry_b, "Name of the geometry B.")
      .def_ro("body_a", &ImpactReport::body_a, "Name of the body that carries A.")
      .def_ro("body_b", &ImpactReport::body_b, "Name of the body that carries B.")
      .def_ro("joint", &ImpactReport::joint, "Name of the joint at its limit; '': two geometries.")
      .def_prop_ro("point", triple(&ImpactReport::point), nb::sig("def point(self) -> numpy.ndarray"), "(3,) m")
      .def_prop_ro("normal", triple(&ImpactReport::normal), nb::sig("def normal(self) -> numpy.ndarray"),
                   "(3,) unit, from B to A")
      .def_ro("approach", &ImpactReport::approach, "m/s (limits: of the joint), just before; positive: closing")
      .def_prop_ro("impulse", triple(&ImpactReport::impulse), nb::sig("def impulse(self) -> numpy.ndarray"),
                   "(3,) N s; of a limit: its impulse first")
      .def_ro("grazing", &ImpactReport::grazing,
              "Met almost along the surface: derivatives hold the time of this impact fixed.")
      .def("__repr__", [](const ImpactReport& i) {
        char text[96];
        std::snprintf(text, sizeof text, " at %.6g s, approach %.4g>", i.time, i.approach);
        return (i.joint.empty() ? "<Impact " + i.geometry_a + " on " + i.geometry_b : "<Impact limit of " + i.joint) +
               text;
      });
}

}  // namespace

void bind_reports(nb::module_& module) {
  nb::class_<StepStatus>(module, "StepStatus", "How the last step went.")
      .def_ro("converged", &StepStatus::converged, "The constraint problem was solved as posed, to the tolerance.")
      .def_ro("iterations", &StepStatus::iterations, "Iterations of all the algorithms that were tried.")
      .def_ro("residual", &StepStatus::residual,
              "Scaled residual of the constraint problem with its small compliance (docs/theory.md).")
      .def_ro("exact_residual", &StepStatus::exact_residual, "Scaled residual of the problem without compliance.")
      .def_ro("relaxation", &StepStatus::relaxation,
              "The larger compliance, relative to the weight of each row, of constraints that gave way: contradictory "
              "or badly scaled ones, or those whose errors stay; 0 if none did.")
      .def_ro("classes_hit", &StepStatus::classes_hit,
              "The contact modes of the last step held in this one: one linear solve found the impulses.")
      .def_ro("reason", &StepStatus::reason,
              "'solved', or why not; begins with 'relaxed', 'max_iterations' or 'failed'. Names at most five "
              "constraints.")
      .def_ro("contradictions", &StepStatus::contradictions,
              "List of names, mostly empty: the constraints that no velocity satisfies together, that friction jams, "
              "or whose "
              "errors no moderate motion removes, such as 'ball on wall', 'joint knee at its lower limit', 'weld "
              "hook'. They "
              "give way (docs/conventions.md).")
      .def_ro("unsolved", &StepStatus::unsolved,
              "List of names, mostly empty: the constraints that lacked most where no solution was found, for no "
              "reason that is known. They give way, too.")
      .def_ro(
          "badly_scaled", &StepStatus::badly_scaled,
          "List of names, mostly empty: the constraints of which rounding hides whether they contradict one another, "
          "as masses or inertias are too far apart. They give way, too.")
      .def_ro("scale_ratio", &StepStatus::scale_ratio,
              "How far apart, where constraints are badly_scaled: about the ratio of the masses; else 0.")
      .def("__bool__", [](const StepStatus& s) { return s.converged; })
      .def("__repr__", [](const StepStatus& s) {
        char text[96];
        std::snprintf(text, sizeof text,
                      "<StepStatus %s, %d iterations, residual %.2g: ", s.converged ? "converged" : "not converged",
                      s.iterations, s.residual);
        return text + s.reason + ">";
      });
  const auto triple = [](const double(ContactReport::*member)[3]) {
    return [member](const ContactReport& c) { return to_numpy(c.*member, 3); };
  };
  nb::class_<ContactReport>(module, "Contact",
                            "One contact of the last step, world axes. The impulse acts on A, its opposite on B.")
      .def_ro("geometry_a", &ContactReport::geometry_a, "Name of the geometry A.")
      .def_ro("geometry_b", &ContactReport::geometry_b, "Name of the geometry B.")
      .def_ro("body_a", &ContactReport::body_a, "Name of the body that carries A.")
      .def_ro("body_b", &ContactReport::body_b, "Name of the body that carries B.")
      .def_prop_ro("point", triple(&ContactReport::point), nb::sig("def point(self) -> numpy.ndarray"), "(3,) m")
      .def_prop_ro("normal", triple(&ContactReport::normal), nb::sig("def normal(self) -> numpy.ndarray"),
                   "(3,) unit, from B to A")
      .def_prop_ro(
          "frame", [](const ContactReport& c) { return to_numpy(c.frame, 3, 3, 3); },
          nb::sig("def frame(self) -> numpy.ndarray"), "(3, 3) rows: two tangents and the normal, world axes")
      .def_ro("depth", &ContactReport::depth, "m; positive: penetrating")
      .def_prop_ro("impulse", triple(&ContactReport::impulse), nb::sig("def impulse(self) -> numpy.ndarray"),
                   "(3,) N s")
      .def_prop_ro(
          "torque", triple(&ContactReport::torque), nb::sig("def torque(self) -> numpy.ndarray"),
          "(3,) N m: of torsional and rolling friction on A, mean of the step; zero where the contact has none")
      .def_prop_ro("velocity", triple(&ContactReport::velocity), nb::sig("def velocity(self) -> numpy.ndarray"),
                   "(3,) m/s: of A relative to B at the point, after the step")
      .def_ro("friction", &ContactReport::friction, "Coefficient of the pair.")
      .def_prop_ro(
          "mode", [](const ContactReport& c) { return std::string(name_of(c.mode)); },
          "'separating', 'sticking' or 'sliding'")
      .def_ro("facet", &ContactReport::facet,
              "contact='lcp', sliding: the side (even; odd if inscribed) or vertex of the friction polygon, at the "
              "angle pi "
              "facet / sides from the first tangent; else -1.")
      .def_prop_ro(
          "turning", [](const ContactReport& c) { return nb::make_tuple(c.turning[0], c.turning[1], c.turning[2]); },
          nb::sig("def turning(self) -> tuple[int, int, int]"),
          "contact='lcp', torsional and rolling friction, about the normal and the two tangents: 1 or -1 where the "
          "moment is at its bound, 0 where it holds, or is none.")
      .def_ro("tie", &ContactReport::tie,
              "On the border of two modes: the gradient is that of the side reported in mode.")
      .def_ro("margin", &ContactReport::margin, "Distance to the border of the mode, relative to the problem's scale.")
      .def_ro("frozen", &ContactReport::frozen,
              "The geometry has no local derivative here; point and normal are carried by body A.")
      .def("__repr__", [](const ContactReport& c) {
        const auto vector = [](const double* x) {
          char text[160];
          std::snprintf(text, sizeof text, " (%.4g, %.4g, %.4g)", x[0], x[1], x[2]);
          return std::string(text);
        };
        char depth[64];
        std::snprintf(depth, sizeof depth, ", %s, depth %.3g", name_of(c.mode), c.depth + 0.0);  // no "-0"
        std::string out = "<Contact of " + c.geometry_a + " and " + c.geometry_b + depth;
        out += ", impulse on " + c.geometry_a + vector(c.impulse);
        if (c.torque[0] != 0 || c.torque[1] != 0 || c.torque[2] != 0) out += ", torque" + vector(c.torque);
        return out + ">";
      });
  bind_impacts(module);
}

}  // namespace coulomb::python

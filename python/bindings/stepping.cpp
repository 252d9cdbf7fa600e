// Simulator: steps, what they found, their derivatives.
#include "coulomb/stepping/simulator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "arrays.hpp"
#include "coulomb/solvers/contact_problem.hpp"
#include "coulomb/stepping/step_outputs.hpp"
#include "implicit_options.hpp"
#include "module.hpp"
#include "outputs.hpp"

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

Derivatives bind_derivatives(nb::module_& module) {
  Derivatives cls(module, "StepDerivatives",
                  "Jacobian of one step in tangent space: dq as in Model.integrate, dv as in v. By the implicit "
                  "function theorem on "
                  "the modes of the contacts (Simple, section III; docs/conventions.md: which side at ties). Arrays "
                  "are read-only views.");
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
            Simulator* sim = d.origin ? d.origin->simulator : nullptr;
            if (sim == nullptr) throw std::logic_error("dlambda: the simulator of these derivatives is gone");
            if (sim->step_count() != d.step)
              throw std::logic_error("dlambda: the simulator has stepped since these derivatives were taken");
            int columns = 0;
            const std::vector<double> values = sim->impulse_derivatives(wrt, columns);
            Py_ssize_t rows = 0;
            for (const BodyRows& b : sim->record().rows.body_rows) rows += b.contact >= 0 ? 3 : 0;
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
              "Impulses are not unique, the next velocity depends on the choice, and the choice has no derivative "
              "here: that of least norm.");

  const auto vector_property = [](auto& c, const char* name, std::vector<double> StepCotangent::*member,
                                  const char* doc) {
    c.def_prop_ro(
        name, [member](const StepCotangent& g) { return to_numpy(g.*member); },
        nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
  };
  nb::class_<StepCotangent> cotangent(module, "StepCotangent",
                                      "Gradient of a function of (q1, v1) with respect to the inputs of the step.");
  vector_property(cotangent, "q", &StepCotangent::q, "(nv,) tangent space of q");
  vector_property(cotangent, "v", &StepCotangent::v, "(nv,) with respect to v");
  vector_property(cotangent, "u", &StepCotangent::u, "(nu,) with respect to the controls");
  vector_property(cotangent, "tau", &StepCotangent::tau, "(nv,) with respect to the joint forces");
  cotangent
      .def(
          "__getitem__",
          [](const StepCotangent& g, const std::string& name) {
            const auto& item = find_item(g.parameter_set.get(), name);
            return to_numpy(g.parameters.data() + item.first, item.element.size);
          },
          nb::arg("name"), nb::sig("def __getitem__(self, name: str) -> numpy.ndarray"),
          "(size,) gradient of a parameter of `wrt`. KeyError otherwise.")
      .def_prop_ro(
          "parameters", [](const StepCotangent& g) { return names_of(g.parameter_set.get()); }, "Names of `wrt`.");
  return cls;
}

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

void bind_reports(nb::module_& module) {
  nb::class_<StepStatus>(module, "StepStatus", "How the last step went.")
      .def_ro("converged", &StepStatus::converged, "The constraint problem was solved as posed, to the tolerance.")
      .def_ro("iterations", &StepStatus::iterations, "Iterations of all the algorithms that were tried.")
      .def_ro("residual", &StepStatus::residual, "Scaled residual of the constraint problem.")
      .def_ro("relaxation", &StepStatus::relaxation, "Compliance that had to be added to the diagonal of G; 0 if none.")
      .def_ro("classes_hit", &StepStatus::classes_hit,
              "The contact modes of the last step held in this one: one linear solve found the impulses.")
      .def_ro("reason", &StepStatus::reason, "'solved', or why not.")
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
      .def_ro("tie", &ContactReport::tie,
              "On the border of two modes: the gradient is that of the side reported in mode.")
      .def_ro("margin", &ContactReport::margin, "Distance to the border of the mode, relative to the problem's scale.")
      .def_ro("frozen", &ContactReport::frozen,
              "The geometry has no local derivative here; point and normal are carried by body A.")
      .def("__repr__", [](const ContactReport& c) {
        char text[160];
        std::snprintf(text, sizeof text, ", %s, depth %.3g, impulse (%.4g, %.4g, %.4g)>", name_of(c.mode), c.depth,
                      c.impulse[0], c.impulse[1], c.impulse[2]);
        return "<Contact " + c.geometry_a + " on " + c.geometry_b + text;
      });
  bind_impacts(module);
}

nb::object step(Simulator& sim, nb::handle q, nb::handle v, nb::handle u, nb::handle tau, nb::handle fext) {
  const Model& model = sim.model();
  const ArrayIn q_in(q, "q", {model.nq}), v_in(v, "v", {model.nv});
  const OptionalArray u_in(u, "u", {model.nu}), tau_in(tau, "tau", {model.nv}),
      fext_in(fext, "fext", {model.num_bodies, 6});
  ArrayOut q_out = new_array(model.nq), v_out = new_array(model.nv);
  sim.step(q_in.data(), v_in.data(), u_in.data(), tau_in.data(), fext_in.data(), q_out.data, v_out.data);
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

StepCotangent vjp(Simulator& sim, nb::handle dq1, nb::handle dv1, const std::vector<std::string>& wrt,
                  nb::handle outputs, nb::handle dlambda) {
  const Py_ssize_t nv = sim.model().nv;
  if (outputs.is_none() && dlambda.is_none()) {
    const ArrayIn dq_in(dq1, "dq1", {nv}), dv_in(dv1, "dv1", {nv});
    return sim.vjp(dq_in.data(), dv_in.data(), wrt);
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
                      {outputs.is_none() ? nullptr : &weights.set, weights.values.data(), dlambda_in.data()}, wrt);
}

SimulatorOptions options(std::optional<double> timestep, const std::string& contact, int friction_directions,
                         const std::string& friction_polygon, const std::string& stepper, const std::string& solver,
                         double tolerance, int max_iterations, double baumgarte, double slop,
                         double max_correction_speed, double restitution_threshold, bool continuous_collision,
                         int max_impacts, double penetration_tolerance, bool patches, bool warm_start,
                         bool canonical_impulses, bool exclude_neutral_overlaps, const std::string& gradient,
                         int gradient_samples, double gradient_scale, std::uint64_t gradient_seed) {
  SimulatorOptions out;
  if (timestep) {
    if (*timestep == 0) throw std::invalid_argument("timestep: got 0, expected a positive number of seconds");
    out.timestep = *timestep;
  }
  out.contact = contact;
  out.friction_directions = friction_directions, out.friction_polygon = friction_polygon;
  out.stepper = stepper;
  out.solver = solver == "auto" ? "automatic" : solver;
  out.tolerance = tolerance;
  out.max_iterations = max_iterations;
  out.baumgarte = baumgarte;
  out.slop = slop;
  out.max_correction_speed = max_correction_speed;
  out.restitution_threshold = restitution_threshold;
  out.continuous_collision = continuous_collision, out.max_impacts = max_impacts;
  out.penetration_tolerance = penetration_tolerance;
  out.patches = patches;
  out.warm_start = warm_start;
  out.canonical_impulses = canonical_impulses;
  out.exclude_neutral_overlaps = exclude_neutral_overlaps;
  out.gradient = gradient, out.gradient_samples = gradient_samples;
  out.gradient_scale = gradient_scale, out.gradient_seed = gradient_seed;
  return out;
}

/// The keyword arguments that options() makes these options from.
nb::dict keywords(const SimulatorOptions& options) {
  nb::dict out;
  out["timestep"] = options.timestep > 0 ? nb::cast(options.timestep) : nb::none();
  out["contact"] = options.contact;
  out["friction_directions"] = options.friction_directions;
  out["friction_polygon"] = options.friction_polygon;
  out["stepper"] = options.stepper;
  out["solver"] = options.solver == "automatic" ? std::string("auto") : options.solver;
  out["tolerance"] = options.tolerance;
  out["max_iterations"] = options.max_iterations;
  out["baumgarte"] = options.baumgarte;
  out["slop"] = options.slop;
  out["max_correction_speed"] = options.max_correction_speed;
  out["restitution_threshold"] = options.restitution_threshold;
  out["continuous_collision"] = options.continuous_collision;
  out["max_impacts"] = options.max_impacts;
  out["penetration_tolerance"] = options.penetration_tolerance;
  out["patches"] = options.patches;
  out["warm_start"] = options.warm_start;
  out["canonical_impulses"] = options.canonical_impulses;
  out["exclude_neutral_overlaps"] = options.exclude_neutral_overlaps;
  out["gradient"] = options.gradient;
  out["gradient_samples"] = options.gradient_samples;
  out["gradient_scale"] = options.gradient_scale;
  out["gradient_seed"] = options.gradient_seed;
  store_implicit_options(options, out);
  return out;
}

nb::class_<Simulator> bind_simulator(nb::module_& module) {
  const SimulatorOptions defaults;
  nb::class_<StepMemory>(module, "StepMemory",
                         "What steps carry on: contact features and impulses. Opaque; see Simulator.memory.");
  nb::class_<Simulator> cls(module, "Simulator",
                            "Steps one model. Holds the memory of the last step (warm start, contact features): not to "
                            "be shared between threads.");
  cls.def(
      "__init__",
      [](Simulator* self, std::shared_ptr<Model> model, std::optional<double> timestep, const std::string& contact,
         int friction_directions, const std::string& friction_polygon, const std::string& stepper,
         const std::string& solver, double tolerance, int max_iterations, double baumgarte, double slop,
         double max_correction_speed, double restitution_threshold, bool continuous_collision, int max_impacts,
         double penetration_tolerance, bool patches, bool warm_start, bool canonical_impulses,
         bool exclude_neutral_overlaps, const std::string& gradient, int gradient_samples, double gradient_scale,
         std::uint64_t gradient_seed, const nb::kwargs& more) {
        SimulatorOptions all =
            options(timestep, contact, friction_directions, friction_polygon, stepper, solver, tolerance,
                    max_iterations, baumgarte, slop, max_correction_speed, restitution_threshold, continuous_collision,
                    max_impacts, penetration_tolerance, patches, warm_start, canonical_impulses,
                    exclude_neutral_overlaps, gradient, gradient_samples, gradient_scale, gradient_seed);
        set_implicit_options(more, all);
        new (self) Simulator(std::move(model), std::move(all));
      },
      nb::arg("model"), nb::arg("timestep") = nb::none(), nb::kw_only(), nb::arg("contact") = defaults.contact,
      nb::arg("friction_directions") = defaults.friction_directions,
      nb::arg("friction_polygon") = defaults.friction_polygon, nb::arg("stepper") = defaults.stepper,
      nb::arg("solver") = "auto", nb::arg("tolerance") = defaults.tolerance,
      nb::arg("max_iterations") = defaults.max_iterations, nb::arg("baumgarte") = defaults.baumgarte,
      nb::arg("slop") = defaults.slop, nb::arg("max_correction_speed") = defaults.max_correction_speed,
      nb::arg("restitution_threshold") = defaults.restitution_threshold,
      nb::arg("continuous_collision") = defaults.continuous_collision, nb::arg("max_impacts") = defaults.max_impacts,
      nb::arg("penetration_tolerance") = defaults.penetration_tolerance, nb::arg("patches") = defaults.patches,
      nb::arg("warm_start") = defaults.warm_start, nb::arg("canonical_impulses") = defaults.canonical_impulses,
      nb::arg("exclude_neutral_overlaps") = defaults.exclude_neutral_overlaps, nb::arg("gradient") = defaults.gradient,
      nb::arg("gradient_samples") = defaults.gradient_samples, nb::arg("gradient_scale") = defaults.gradient_scale,
      nb::arg("gradient_seed") = defaults.gradient_seed, nb::arg("implicit"),
      "timestep: s, in (0, 1] (default: the model's). contact: 'ncp', the exact Coulomb cone, 'lcp', a pyramid whose "
      "polygon has 2 friction_directions sides (2 .. 16) and is 'circumscribed' (2 directions: the boxed LCP) or "
      "'inscribed' (docs/lcp.md), or 'penalty'. stepper: "
      "'semi_implicit', 'bdf1' or 'bdf2' (docs/implicit.md). solver: 'auto', "
      "'ac_lm', 'admm', 'pgs' or, with 'lcp' and 2 directions, 'dantzig'. tolerance: scaled residual. baumgarte: share "
      "of a position error removed per step, "
      "[0, 1]. slop: m, "
      "rad that it leaves alone. max_correction_speed: m/s, rad/s. restitution_threshold: m/s, slower approaches do "
      "not bounce. "
      "continuous_collision: split steps at impacts, so that nothing passes through anything (docs/impacts.md); "
      "max_impacts: of one step, more lose their restitution; penetration_tolerance: m, how deep touching bodies may "
      "sink then. "
      "patches: keep manifold points from step to step. canonical_impulses: choose where impulses are not unique. "
      "exclude_neutral_overlaps: leave out pairs of one robot's own geometries that overlap in its neutral "
      "pose. gradient: 'exact', 'complementarity_aware' (vjp: at ties the side with the larger gradient), "
      "'approximate_bounce' (positions through elastic impacts, Nimble), 'smoothed_collision' "
      "(contacts move as on average over perturbed poses) or 'smoothed_step' (Jacobian averaged over perturbed "
      "states); "
      "gradient_samples, gradient_scale (standard deviation: m, rad, m/s, rad/s) and gradient_seed are those of the "
      "smoothed ones "
      "(docs/conventions.md). Further keywords, of penalty contact, implicit steppers and constraints as springs "
      "(docs/implicit.md): contact_stiffness, contact_damping, contact_friction_stiffness, limit_stiffness, "
      "limit_damping, equality_stiffness, equality_damping, dry_friction_velocity, newton_iterations, "
      "newton_halvings. tie_margin: what 'complementarity_aware' takes for a tie "
      "(Contact.margin).\n\nValueError: names "
      "the option and its value.");
  cls.def("step", &step, nb::arg("q"), nb::arg("v"), nb::arg("u") = nb::none(), nb::arg("tau") = nb::none(),
          nb::arg("fext") = nb::none(),
          nb::sig("def step(self, q: numpy.ndarray, v: numpy.ndarray, u: numpy.ndarray | None = None, tau: "
                  "numpy.ndarray | None = None, "
                  "fext: numpy.ndarray | None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
          "One step: q (nq,), v (nv,) to (q1, v1). u: (nu,) controls. tau: (nv,) extra joint forces. fext: "
          "(num_bodies, 6) world force "
          "(N) and torque (N m) at each body's centre of mass. None: zero.\n\nValueError: names argument, element and "
          "value; the "
          "simulator is then as it was. Numerical trouble is in status, never an exception; the results are finite (if "
          "numbers overflow: the state given).");
  bind_rollout(module, cls);
  cls.def_prop_ro("status", &Simulator::status, "StepStatus of the last step.");
  cls.def_prop_ro("contacts", &Simulator::contacts, "List of Contact of the last step.");
  cls.def_prop_ro("impacts", &Simulator::impacts,
                  "With continuous_collision: list of Impact of the last step, in the order of time.");
  cls.def(
      "derivatives",
      [](Simulator& sim, const std::vector<std::string>& wrt) {
        return std::const_pointer_cast<StepDerivatives>(wrt.empty() ? sim.shared_derivatives() : sim.derivatives(wrt));
      },
      nb::arg("wrt") = std::vector<std::string>{},
      "StepDerivatives of the last step; stay valid afterwards. wrt: names of parameters (Model.parameters) whose "
      "columns d[name] are "
      "wanted too.\n\nRuntimeError before the first step and after one that overflowed; ValueError: unknown "
      "parameter.");
  cls.def("vjp", &vjp, nb::arg("dq1") = nb::none(), nb::arg("dv1") = nb::none(),
          nb::arg("wrt") = std::vector<std::string>{}, nb::kw_only(), nb::arg("outputs") = nb::none(),
          nb::arg("dlambda") = nb::none(),
          nb::sig("def vjp(self, dq1: numpy.ndarray | None = None, dv1: numpy.ndarray | None = None, wrt: list[str] = "
                  "[], *, outputs: dict[str, numpy.ndarray] | None = None, dlambda: numpy.ndarray | None = None) -> "
                  "StepCotangent"),
          "Reverse mode: cotangents (nv,) of q1 and v1 to the StepCotangent of q, v, u and tau, and of the "
          "parameters named in wrt (g[name]), without forming a matrix. outputs: cotangents (tangent_size,) of outputs "
          "by name (Simulator.output). dlambda: of the contact impulses, (3 n,) as the rows of "
          "StepDerivatives.dlambda. These two add to dq1 and dv1, which may then be None; forces and impulses cost a "
          "Jacobian.\n\nRuntimeError before the first step; ValueError: NaN in a cotangent, unknown name.");
  cls.def("jvp", &jvp, nb::arg("dq") = nb::none(), nb::arg("dv") = nb::none(), nb::arg("du") = nb::none(),
          nb::arg("dtau") = nb::none(),
          nb::sig("def jvp(self, dq: numpy.ndarray | None = None, dv: numpy.ndarray | None = None, du: numpy.ndarray | "
                  "None = None, "
                  "dtau: numpy.ndarray | None = None) -> tuple[numpy.ndarray, numpy.ndarray]"),
          "Forward mode: tangents dq, dv, dtau (nv,) and du (nu,) of the inputs (None: zero) to those (nv,) of q1 and "
          "v1.\n\nRuntimeError "
          "before the first step.");
  cls.def("reset", &Simulator::reset, "Forgets the last step: the next one starts cold.");
  cls.def_prop_rw(
      "memory", [](const Simulator& sim) { return StepMemory(sim.memory()); },
      [](Simulator& sim, const StepMemory& memory) { sim.set_memory(memory); },
      "A copy of what steps carry on; assign it to replay a step exactly. ValueError: it belongs to a model of another "
      "structure.");
  cls.def("freeze_memory", &Simulator::freeze_memory, nb::arg("frozen"),
          "While frozen, steps read the memory and do not write it.");
  cls.def_prop_ro(
      "model", [](const Simulator& sim) { return std::const_pointer_cast<Model>(sim.shared_model()); },
      "The Model that is simulated: the one given, without the pairs that overlap in the neutral pose (see its "
      "`ignored`).");
  cls.def_prop_ro("timestep", &Simulator::timestep, "s");
  cls.def_prop_ro(
      "options", [](const Simulator& sim) { return keywords(sim.options()); }, nb::sig("def options(self) -> dict"),
      "The keyword arguments that make such a simulator: Simulator(model, **sim.options).");
  return cls;
}

}  // namespace

void bind_stepping(nb::module_& module) {
  Derivatives derivatives = bind_derivatives(module);
  bind_reports(module);
  nb::class_<Simulator> simulator = bind_simulator(module);
  bind_step_outputs(derivatives, simulator);
}

}  // namespace coulomb::python

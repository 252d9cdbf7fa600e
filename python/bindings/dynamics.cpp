// Model.mass_matrix and its kin: the rigid-body quantities of one state.
#include "coulomb/dynamics.hpp"

#include "arrays.hpp"
#include "coulomb/dynamics/joint_forces.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

using Class = nb::class_<Model>;

std::vector<double> vector_of(nb::handle object, const char* name, int size) {
  return ArrayIn(object, name, {size}).vector();
}
std::vector<double> q_of(const Model& model, nb::handle q) { return vector_of(q, "q", model.nq); }
std::vector<double> v_of(const Model& model, nb::handle v) { return vector_of(v, "v", model.nv); }

nb::object square(const std::vector<double>& matrix, int n) { return to_numpy(matrix.data(), n, n, n); }

nb::object placements(const Placements& from) {
  const Py_ssize_t n = static_cast<Py_ssize_t>(from.positions.size() / 3);
  return nb::make_tuple(to_numpy(from.positions.data(), n, 3, 3),
                        to_numpy(from.rotations.data(), n, 9, 9).attr("reshape")(nb::make_tuple(n, 3, 3)));
}

void bind_equation_of_motion(Class& cls) {
  cls.def(
      "mass_matrix",
      [](const Model& model, nb::handle q) { return square(mass_matrix(model, q_of(model, q)), model.nv); },
      nb::arg("q").none(), nb::sig("def mass_matrix(self, q: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "M(q) (nv, nv), kg, kg m, kg m^2; armature included.");
  cls.def(
      "bias",
      [](const Model& model, nb::handle q, nb::handle v) {
        return to_numpy(bias(model, q_of(model, q), v_of(model, v)));
      },
      nb::arg("q").none(), nb::arg("v").none(),
      nb::sig("def bias(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "b(q, v) (nv,), N or N m: Coriolis, centrifugal and gravity forces; M a + b = all other forces.");
  cls.def(
      "inverse_dynamics",
      [](const Model& model, nb::handle q, nb::handle v, nb::handle a) {
        return to_numpy(inverse_dynamics(model, q_of(model, q), v_of(model, v), vector_of(a, "a", model.nv)));
      },
      nb::arg("q").none(), nb::arg("v").none(), nb::arg("a").none(),
      nb::sig("def inverse_dynamics(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, a: "
              "numpy.typing.ArrayLike) -> numpy.ndarray"),
      "tau = M(q) a + b(q, v) (nv,), N or N m: what actuators, springs, dampers and contacts together must give.");
  cls.def(
      "inverse_dynamics_derivatives",
      [](const Model& model, nb::handle q, nb::handle v, nb::handle a) {
        const auto d = inverse_dynamics_derivatives(model, q_of(model, q), v_of(model, v), vector_of(a, "a", model.nv));
        return nb::make_tuple(square(d.dtau_dq, model.nv), square(d.dtau_dv, model.nv), square(d.dtau_da, model.nv));
      },
      nb::arg("q").none(), nb::arg("v").none(), nb::arg("a").none(),
      nb::sig("def inverse_dynamics_derivatives(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, a: "
              "numpy.typing.ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]"),
      "dtau_dq, dtau_dv, dtau_da of inverse_dynamics, (nv, nv) each; dq in the tangent space of integrate; dtau_da is "
      "the mass matrix.");
}

void bind_joint_forces(Class& cls) {
  cls.def(
      "passive_forces",
      [](const Model& model, nb::handle q, nb::handle v) {
        return to_numpy(passive_forces(model, q_of(model, q), v_of(model, v)));
      },
      nb::arg("q").none(), nb::arg("v").none(),
      nb::sig("def passive_forces(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "(nv,) N or N m: joint springs and dampers.");
  cls.def(
      "actuator_forces",
      [](const Model& model, nb::handle q, nb::handle v, nb::handle u) {
        return to_numpy(actuator_forces(model, q_of(model, q), v_of(model, v), vector_of(u, "u", model.nu)));
      },
      nb::arg("q").none(), nb::arg("v").none(), nb::arg("u").none(),
      nb::sig("def actuator_forces(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike, u: "
              "numpy.typing.ArrayLike) -> numpy.ndarray"),
      "(nv,) N or N m: what the actuators give at u (nu,), after every clamp.");
}

void bind_placements(Class& cls) {
  cls.def(
      "body_placements",
      [](const Model& model, nb::handle q) { return placements(body_placements(model, q_of(model, q))); },
      nb::arg("q").none(),
      nb::sig("def body_placements(self, q: numpy.typing.ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "Positions (num_bodies, 3) m and rotations (num_bodies, 3, 3) of the body frames in the world.");
  cls.def(
      "geometry_placements",
      [](const Model& model, nb::handle q) { return placements(geometry_placements(model, q_of(model, q))); },
      nb::arg("q").none(),
      nb::sig("def geometry_placements(self, q: numpy.typing.ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "Positions (num_geometries, 3) m and rotations (num_geometries, 3, 3) of the geometries in the world.");
  cls.def(
      "energy",
      [](const Model& model, nb::handle q, nb::handle v) {
        const Energy e = energy(model, q_of(model, q), v_of(model, v));
        return nb::make_tuple(e.kinetic, e.potential);
      },
      nb::arg("q").none(), nb::arg("v").none(),
      nb::sig("def energy(self, q: numpy.typing.ArrayLike, v: numpy.typing.ArrayLike) -> tuple[float, float]"),
      "(kinetic, potential) in J. Kinetic: v^T M v / 2, armature included. Potential: gravity, zero at the world's "
      "origin, and joint springs.");
}

}  // namespace

void bind_dynamics(nb::class_<Model>& cls) {
  bind_equation_of_motion(cls);
  bind_joint_forces(cls);
  bind_placements(cls);
}

}  // namespace coulomb::python

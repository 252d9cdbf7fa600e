// Model: the immutable arrays of a scene, as read-only numpy views.
#include "coulomb/model.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>

#include "arrays.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/simulator.hpp"
#include "coulomb/stepping/blocked_shifts.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

using Class = nb::class_<Model>;

/// A property that shows one of Model's arrays as a read-only view of `width` columns.
template <typename T>
void array_property(Class& cls, const char* name, std::vector<T> Model::*member, std::size_t width, const char* doc) {
  cls.def_prop_ro(
      name, [member, width](nb::handle self) { return view(nb::cast<const Model&>(self).*member, self, width); },
      nb::sig((std::string("def ") + name + "(self) -> numpy.ndarray").c_str()), doc);
}

const char* joint_type_name(JointType type) {
  static const char* names[] = {"free", "ball", "slide", "hinge"};
  return names[static_cast<int>(type)];
}

const char* shape_type_name(ShapeType type) {
  static const char* names[] = {"half_space", "sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh", "surface"};
  return names[static_cast<int>(type)];
}

void bind_bodies(Class& cls) {
  cls.def_ro("body_names", &Model::body_names, "Names of the bodies; [0] is the world.");
  array_property(cls, "body_parent", &Model::body_parent, 1, "(num_bodies,) parent body; -1 for the world.");
  cls.def_ro("mocap_bodies", &Model::mocap_bodies,
             "Indices of the bodies that the caller moves (MJCF mocap='true'): Simulator.step(mocap=), "
             "Simulator.move_body.");
  array_property(cls, "body_pos", &Model::body_pos, 3,
                 "(num_bodies, 3) m: frame in the parent's frame at zero joint motion.");
  array_property(cls, "body_quat", &Model::body_quat, 4,
                 "(num_bodies, 4) wxyz: frame in the parent's frame at zero joint motion.");
  array_property(cls, "body_mass", &Model::body_mass, 1, "(num_bodies,) kg.");
  array_property(cls, "body_gravity_compensation", &Model::body_gravity_compensation, 1,
                 "(num_bodies,) share of its weight that a force at the centre of mass takes away (MuJoCo's gravcomp): "
                 "0 weighs, 1 floats.");
  array_property(cls, "body_com", &Model::body_com, 3, "(num_bodies, 3) m: centre of mass in the body frame.");
  array_property(cls, "body_inertia", &Model::body_inertia, 6,
                 "(num_bodies, 6) kg m^2: Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass, body axes.");
}

void bind_joints(Class& cls) {
  cls.def_ro("joint_names", &Model::joint_names, "Names of the joints.");
  cls.def_prop_ro(
      "joint_types",
      [](const Model& model) {
        std::vector<std::string> names;
        for (JointType type : model.joint_type) names.emplace_back(joint_type_name(type));
        return names;
      },
      "Type of each joint: 'free', 'ball', 'slide' or 'hinge'.");
  array_property(cls, "joint_body", &Model::joint_body, 1, "(num_joints,) the body that the joint moves.");
  array_property(cls, "joint_q", &Model::joint_q, 1, "(num_joints,) first index in q.");
  array_property(cls, "joint_v", &Model::joint_v, 1, "(num_joints,) first index in v.");
  array_property(cls, "joint_pos", &Model::joint_pos, 3, "(num_joints, 3) m: anchor in the body frame.");
  array_property(cls, "joint_axis", &Model::joint_axis, 3, "(num_joints, 3) unit axis in the body frame.");
  array_property(cls, "joint_limited", &Model::joint_limited, 1, "(num_joints,) 1 where the joint has limits.");
  array_property(cls, "joint_lower", &Model::joint_lower, 1, "(num_joints,) m or rad.");
  array_property(cls, "joint_upper", &Model::joint_upper, 1, "(num_joints,) m or rad.");
  array_property(cls, "joint_limit_stiffness", &Model::joint_limit_stiffness, 1,
                 "(num_joints,) N/m or N m/rad: of the limits; 0: they are rigid.");
  array_property(cls, "joint_limit_dashpot", &Model::joint_limit_dashpot, 1,
                 "(num_joints,) N s/m or N m s/rad: while a limit is reached.");
  array_property(cls, "joint_stiffness", &Model::joint_stiffness, 1, "(num_joints,) N/m or N m/rad: passive spring.");
  array_property(cls, "q_neutral", &Model::q_neutral, 1, "(nq,) the configuration in which the model was described.");
  array_property(cls, "q_spring", &Model::q_spring, 1, "(nq,) rest configuration of the springs.");
  array_property(cls, "dof_body", &Model::dof_body, 1, "(nv,) the body that the degree of freedom moves.");
  array_property(cls, "dof_joint", &Model::dof_joint, 1, "(nv,) the joint of the degree of freedom.");
  array_property(cls, "dof_damping", &Model::dof_damping, 1, "(nv,) N s/m or N m s/rad.");
  array_property(cls, "dof_armature", &Model::dof_armature, 1, "(nv,) kg or kg m^2.");
  array_property(cls, "dof_dry_friction", &Model::dof_dry_friction, 1, "(nv,) N or N m.");
}

const TriangleSurface& surface_at(const Model& model, int surface) {
  const int count = static_cast<int>(model.surfaces.size());
  if (surface < 0 || surface >= count)
    throw nb::index_error(
        ("surface: " + std::to_string(surface) + " is not one of the " + std::to_string(count) + " surfaces").c_str());
  return *model.surfaces[static_cast<std::size_t>(surface)];
}

void bind_geometries(Class& cls) {
  cls.def_ro("geometry_names", &Model::geometry_names, "Names of the geometries.");
  cls.def_prop_ro(
      "geometry_types",
      [](const Model& model) {
        std::vector<std::string> names;
        for (ShapeType type : model.geometry_type) names.emplace_back(shape_type_name(type));
        return names;
      },
      "Shape of each geometry: 'half_space', 'sphere', 'capsule', 'cylinder', 'box', 'ellipsoid', 'mesh' or 'surface' "
      "(height field, triangle mesh).");
  array_property(cls, "geometry_body", &Model::geometry_body, 1,
                 "(num_geometries,) the body that carries the geometry.");
  array_property(cls, "geometry_mesh", &Model::geometry_mesh, 1,
                 "(num_geometries,) index for mesh_vertices, of a surface for surface_vertices; else -1.");
  array_property(cls, "geometry_pos", &Model::geometry_pos, 3, "(num_geometries, 3) m, in the body frame.");
  array_property(cls, "geometry_quat", &Model::geometry_quat, 4, "(num_geometries, 4) wxyz, in the body frame.");
  array_property(cls, "geometry_size", &Model::geometry_size, 3,
                 "(num_geometries, 3) m: radius and half-length, half-sides or semi-axes.");
  array_property(cls, "geometry_friction", &Model::geometry_friction, 1,
                 "(num_geometries,) Coulomb friction coefficient.");
  array_property(cls, "geometry_restitution", &Model::geometry_restitution, 1,
                 "(num_geometries,) coefficient of restitution.");
  array_property(cls, "geometry_compliance", &Model::geometry_compliance, 1, "(num_geometries,) m/(N s).");
  array_property(cls, "geometry_torsional_friction", &Model::geometry_torsional_friction, 1,
                 "(num_geometries,) m: torque about the normal over the normal force, in contacts with such friction.");
  array_property(cls, "geometry_rolling_friction", &Model::geometry_rolling_friction, 1,
                 "(num_geometries,) m: the same of rolling.");
  array_property(cls, "pair_a", &Model::pair_a, 1, "(num_pairs,) first geometry of each pair that may touch.");
  array_property(cls, "pair_b", &Model::pair_b, 1, "(num_pairs,) second geometry of each pair that may touch.");
  array_property(cls, "pair_friction", &Model::pair_friction, 1, "(num_pairs,) combined friction coefficient.");
  array_property(cls, "pair_torsional_friction", &Model::pair_torsional_friction, 1,
                 "(num_pairs,) m: combined torsional friction; 0: none.");
  array_property(cls, "pair_rolling_friction", &Model::pair_rolling_friction, 1,
                 "(num_pairs,) m: combined rolling friction; 0: none.");
  array_property(cls, "pair_restitution", &Model::pair_restitution, 1, "(num_pairs,) combined restitution.");
  cls.def(
      "mesh_vertices",
      [](nb::handle self, int mesh) {
        const Model& model = nb::cast<const Model&>(self);
        if (mesh < 0 || mesh >= static_cast<int>(model.meshes.size()))
          throw nb::index_error(("mesh: " + std::to_string(mesh) + " is not one of the " +
                                 std::to_string(model.meshes.size()) + " meshes")
                                    .c_str());
        return view(model.meshes[static_cast<std::size_t>(mesh)]->vertices, self, 3);
      },
      nb::arg("mesh"), nb::sig("def mesh_vertices(self, mesh: int) -> numpy.ndarray"),
      "(n, 3) m: vertices of a convex mesh, in its geometry's frame. IndexError if there is no such mesh.");
  cls.def(
      "surface_vertices",
      [](nb::handle self, int surface) {
        return view(surface_at(nb::cast<const Model&>(self), surface).vertices, self, 3);
      },
      nb::arg("surface"), nb::sig("def surface_vertices(self, surface: int) -> numpy.ndarray"),
      "(n, 3) m: vertices of a height field or triangle mesh, in its geometry's frame. Of a field, the rows x columns "
      "vertices of the grid come first, row by row, then those of its floor. IndexError if there is no such surface.");
  cls.def(
      "surface_triangles",
      [](nb::handle self, int surface) {
        return view(surface_at(nb::cast<const Model&>(self), surface).triangles, self, 3);
      },
      nb::arg("surface"), nb::sig("def surface_triangles(self, surface: int) -> numpy.ndarray"),
      "(m, 3) indices of its vertices, counter-clockwise seen from outside. IndexError if there is no such surface.");
  cls.def(
      "heightfield_shape",
      [](const Model& model, int surface) {
        const TriangleSurface& s = surface_at(model, surface);
        return nb::make_tuple(s.rows, s.columns);
      },
      nb::arg("surface"), nb::sig("def heightfield_shape(self, surface: int) -> tuple[int, int]"),
      "(rows, columns) of a height field; (0, 0) of a triangle mesh. IndexError if there is no such surface.");
  cls.def(
      "mesh_faces",
      [](const Model& model, int mesh) {
        if (mesh < 0 || mesh >= static_cast<int>(model.meshes.size()))
          throw nb::index_error(("mesh: " + std::to_string(mesh) + " is not one of the " +
                                 std::to_string(model.meshes.size()) + " meshes")
                                    .c_str());
        const ConvexMesh& m = *model.meshes[static_cast<std::size_t>(mesh)];
        std::vector<std::vector<int>> faces;
        for (int f = 0; f < m.num_faces(); ++f)
          faces.emplace_back(m.face_vertices.begin() + m.face_start[f], m.face_vertices.begin() + m.face_start[f + 1]);
        return faces;
      },
      nb::arg("mesh"), nb::sig("def mesh_faces(self, mesh: int) -> list[list[int]]"),
      "Its flat faces as loops of vertices, counter-clockwise seen from outside. IndexError if there is no such mesh.");
}

/// Scales the quaternions of q. ValueError names one that has no direction.
void normalize_row(const Model& model, double* q, const std::string& name) {
  for (int j = 0; j < model.num_joints; ++j) {
    const JointType type = model.joint_type[j];
    if (type != JointType::free && type != JointType::ball) continue;
    const int first = model.joint_q[j] + (type == JointType::free ? 3 : 0);
    const double largest = std::abs(
        *std::max_element(q + first, q + first + 4, [](double a, double b) { return std::abs(a) < std::abs(b); }));
    if (largest < 1e-150 || largest > 1e150)
      throw nb::value_error((name + "[" + std::to_string(first) + ":" + std::to_string(first + 4) +
                             "]: a quaternion of length 0, or beyond the range of numbers, has no direction")
                                .c_str());
  }
  normalize_configuration(model, q);
}

void bind_configurations(Class& cls) {
  cls.def(
      "neutral",
      [](const Model& model) {
        ArrayOut q = new_array(model.nq), v = new_array(model.nv);
        neutral(model, q.data);
        std::memset(v.data, 0, static_cast<std::size_t>(model.nv) * sizeof(double));
        return nb::make_tuple(q.array, v.array);
      },
      nb::sig("def neutral(self) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "q (nq,) as the model was described, with hinges and slides within their limits and joints that are coupled to "
      "one "
      "that this moves where they follow; and v (nv,) zero.");
  cls.def(
      "integrate",
      [](const Model& model, nb::handle q, nb::handle dq) {
        const ArrayIn q_in(q, "q", {model.nq}), dq_in(dq, "dq", {model.nv});
        check_configuration(model, q_in.data(), "q");
        dq_in.finite("dq");
        ArrayOut out = new_array(model.nq);
        integrate(model, q_in.data(), dq_in.data(), out.data);
        for (int i = 0; i < model.nq; ++i)
          if (!std::isfinite(out.data[i])) throw nb::value_error("dq: too large, q (+) dq overflows");
        return out.array;
      },
      nb::arg("q").none(), nb::arg("dq").none(),
      nb::sig("def integrate(self, q: numpy.typing.ArrayLike, dq: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "q (+) dq: q (nq,), dq (nv,) in the tangent space (m, rad; rotations: body axes). Returns (nq,).\n\n"
      "ValueError: names argument, element and value.");
  cls.def(
      "normalize",
      [](const Model& model, nb::handle q) {
        const bool rows = nb::hasattr(q, "ndim") && nb::cast<int>(q.attr("ndim")) == 2;
        const ArrayIn in = rows ? ArrayIn(q, "q", {-1, model.nq}) : ArrayIn(q, "q", {model.nq});
        in.finite("q");
        const Py_ssize_t n = rows ? in.shape(0) : 1;
        ArrayOut out = rows ? new_array(n, model.nq) : new_array(model.nq);
        std::copy_n(in.data(), n * model.nq, out.data);
        for (Py_ssize_t i = 0; i < n; ++i)
          normalize_row(model, out.data + i * model.nq, rows ? "q[" + std::to_string(i) + "]" : "q");
        return out.array;
      },
      nb::arg("q"), nb::sig("def normalize(self, q: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "q (nq,), or an array (n, nq), with its quaternions scaled to unit length; for states from text files, "
      "say.\n\nValueError: "
      "names argument, element and value: not finite, a quaternion of length 0.");
  cls.def(
      "difference",
      [](const Model& model, nb::handle q0, nb::handle q1) {
        const ArrayIn q0_in(q0, "q0", {model.nq}), q1_in(q1, "q1", {model.nq});
        check_configuration(model, q0_in.data(), "q0");
        check_configuration(model, q1_in.data(), "q1");
        ArrayOut out = new_array(model.nv);
        difference(model, q0_in.data(), q1_in.data(), out.data);
        return out.array;
      },
      nb::arg("q0").none(), nb::arg("q1").none(),
      nb::sig("def difference(self, q0: numpy.typing.ArrayLike, q1: numpy.typing.ArrayLike) -> numpy.ndarray"),
      "The dq (nv,) with integrate(q0, dq) = q1, rotations the short way round.\n\nValueError: names argument, element "
      "and value.");
}

void bind_extras(Class& cls) {
  nb::class_<TendonPoint>(cls, "TendonPoint", "An element of a spatial tendon's path.")
      .def_prop_ro(
          "kind",
          [](const TendonPoint& p) {
            static const char* kinds[] = {"site", "sphere", "cylinder", "pulley", "slider"};
            return kinds[static_cast<int>(p.kind)];
          },
          "'site', 'sphere', 'cylinder', 'pulley' or 'slider' (of a slider-crank).")
      .def_ro("body", &TendonPoint::body, "Index of the body that carries it.")
      .def_prop_ro(
          "pos", [](const TendonPoint& p) { return to_numpy(p.pos); }, "(3,) m, in the body's frame.")
      .def_prop_ro(
          "quat", [](const TendonPoint& p) { return to_numpy(p.quat); },
          "(4,) w x y z, in the body's frame: a cylinder's axis is its z.")
      .def_ro("radius", &TendonPoint::radius,
              "m: of the sphere or cylinder that the tendon wraps around; of a slider the length of its rod.")
      .def_ro("side_body", &TendonPoint::side_body,
              "Of a sphere or cylinder: the body of the point on whose side the tendon passes; -1: the shorter way.")
      .def_prop_ro(
          "side_pos", [](const TendonPoint& p) { return to_numpy(p.side_pos); }, "(3,) m, in side_body's frame.")
      .def_ro("divisor", &TendonPoint::divisor, "Of a pulley: lengths of its branch count 1 / divisor.");
  nb::class_<Tendon>(cls, "Tendon",
                     "A tendon. Fixed: its length is the sum of coefficients times coordinates of joints. Spatial: "
                     "the length of its path over points of bodies and around spheres and cylinders.")
      .def("__repr__", [](const Tendon& t) { return "<Tendon " + t.name + ">"; })
      .def_ro("name", &Tendon::name, "Name in the robot's file.")
      .def_prop_ro(
          "joints", [](const Tendon& t) { return t.joints; }, "Indices of its joints, hinges and slides.")
      .def_prop_ro(
          "coefficients", [](const Tendon& t) { return to_numpy(t.coefficients); }, "(n,) one for each joint.")
      .def_prop_ro(
          "path", [](const Tendon& t) { return t.path; },
          "TendonPoints of a spatial tendon, along it; empty: a fixed one.")
      .def_prop_ro(
          "dofs", [](const Tendon& t) { return t.dofs; },
          "Indices of the degrees of freedom that its length depends on.")
      .def_ro("limited", &Tendon::limited, "Its length stays within lower and upper.")
      .def_ro("lower", &Tendon::lower, "m or rad.")
      .def_ro("upper", &Tendon::upper, "m or rad.")
      .def_ro("stiffness", &Tendon::stiffness, "N/m or N m/rad: of its spring, beyond the spring's lengths.")
      .def_ro("spring_lower", &Tendon::spring_lower, "m or rad: shorter, the spring pushes.")
      .def_ro("spring_upper", &Tendon::spring_upper, "m or rad: longer, it pulls.")
      .def_ro("damping", &Tendon::damping, "N s/m or N m s/rad.")
      .def_ro("dry_friction", &Tendon::dry_friction, "N or N m.")
      .def_ro("armature", &Tendon::armature, "kg or kg m^2: inertia that moves with its length, of a fixed tendon.")
      .def_ro("force_limited", &Tendon::force_limited,
              "The sum of the forces of its actuators stays within force_range: beyond, all of them shrink alike.")
      .def_prop_ro(
          "force_range", [](const Tendon& t) { return to_numpy(t.force_range); }, "(2,) lower and upper, N or N m.");
  cls.def_ro("tendons", &Model::tendons, "The tendons, fixed (sums of joints) and spatial (paths).");
  nb::class_<MediumEllipsoid>(cls, "MediumEllipsoid", "An ellipsoid that the medium sees in place of a geometry.")
      .def("__repr__", [](const MediumEllipsoid&) { return "<MediumEllipsoid>"; })
      .def_prop_ro(
          "pos", [](const MediumEllipsoid& e) { return to_numpy(e.pos); }, "(3,) m: its middle in the body.")
      .def_prop_ro(
          "quat", [](const MediumEllipsoid& e) { return to_numpy(e.quat); }, "(4,) w x y z: its axes in the body.")
      .def_prop_ro(
          "semiaxes", [](const MediumEllipsoid& e) { return to_numpy(e.semiaxes); }, "(3,) m.")
      .def_prop_ro(
          "coefficients", [](const MediumEllipsoid& e) { return to_numpy(e.coefficients); },
          "(5,) of blunt drag, slender drag, angular drag, Kutta lift, Magnus lift.")
      .def_prop_ro(
          "virtual_mass", [](const MediumEllipsoid& e) { return to_numpy(e.virtual_mass); },
          "(3,) m^3, by axis: volume of the medium that moves along.")
      .def_prop_ro(
          "virtual_inertia", [](const MediumEllipsoid& e) { return to_numpy(e.virtual_inertia); }, "(3,) m^5.")
      .def_ro("scale", &MediumEllipsoid::scale, "Of the whole force; 1 in MJCF files.");
  cls.def(
      "body_ellipsoids",
      [](const Model& model, int body) {
        if (body < 0 || body >= model.num_bodies)
          throw std::invalid_argument("body: " + std::to_string(body) + " is not the index of a body, 0 to " +
                                      std::to_string(model.num_bodies - 1));
        if (model.body_first_ellipsoid.empty()) return std::vector<MediumEllipsoid>{};
        const auto all = model.medium_ellipsoids.begin();
        return std::vector<MediumEllipsoid>(all + model.body_first_ellipsoid[static_cast<std::size_t>(body)],
                                            all + model.body_first_ellipsoid[static_cast<std::size_t>(body) + 1]);
      },
      nb::arg("body"),
      "The ellipsoids that the medium sees in place of that body, by its index; without any it sees a box. "
      "ValueError: there is no such body.");
  nb::class_<Muscle>(cls, "Muscle",
                     "A muscle: force = -peak_force (FL(L) FV(V) u + FP(L)), with its length and velocity L and V in "
                     "units of that at which it is strongest.")
      .def("__repr__", [](const Muscle& m) { return m.pulls || m.resists ? "<Muscle>" : "<Muscle: none>"; })
      .def_ro("pulls", &Muscle::pulls, "FL FV u is the gain of the actuator.")
      .def_ro("resists", &Muscle::resists, "FP is its bias.")
      .def_ro("peak_force", &Muscle::peak_force, "N.")
      .def_prop_ro(
          "length_range", [](const Muscle& m) { return to_numpy(m.length_range); },
          "(2,) m: lengths of the actuator at which L = range.")
      .def_prop_ro(
          "range", [](const Muscle& m) { return to_numpy(m.range); }, "(2,) L at length_range.")
      .def_ro("shortest", &Muscle::shortest, "L at which FL begins.")
      .def_ro("longest", &Muscle::longest, "L at which FL ends.")
      .def_ro("fastest", &Muscle::fastest, "dL/dt of V = 1, 1/s: at V = -1 it does not pull.")
      .def_ro("passive", &Muscle::passive, "Twice FP halfway from 1 to longest.")
      .def_ro("stretched", &Muscle::stretched, "FV of a muscle that is stretched fast.")
      .def_ro("activation_time", &Muscle::activation_time, "s.")
      .def_ro("deactivation_time", &Muscle::deactivation_time, "s.")
      .def_ro("smoothing", &Muscle::smoothing,
              "Width of the switch between the two times, in units of activation; 0: at once.");
  nb::class_<Actuator>(cls, "Actuator",
                       "A motor on one joint, tendon or site: force = gear * clamp(gain * clamp(u) + bias).")
      .def("__repr__", [](const Actuator& a) { return "<Actuator " + a.name + ">"; })
      .def_ro("name", &Actuator::name, "Name in the robot's file.")
      .def_ro("joint", &Actuator::joint, "Index of the joint that it drives, or -1.")
      .def_ro("tendon", &Actuator::tendon, "Index of the tendon that it pulls, or -1.")
      .def_ro("body", &Actuator::body, "Index of the body that it pushes at a site, or -1.")
      .def_prop_ro(
          "site_pos", [](const Actuator& a) { return to_numpy(a.site_pos); }, "(3,) m: of that site in the body.")
      .def_prop_ro(
          "site_quat", [](const Actuator& a) { return to_numpy(a.site_quat); },
          "(4,) w x y z: of that site in the body.")
      .def_ro("reference_body", &Actuator::reference_body,
              "Index of the body that it pushes off, against which its length is measured, or -1.")
      .def_prop_ro(
          "reference_pos", [](const Actuator& a) { return to_numpy(a.reference_pos); },
          "(3,) m: of the reference's frame in that body.")
      .def_prop_ro(
          "reference_quat", [](const Actuator& a) { return to_numpy(a.reference_quat); },
          "(4,) w x y z: of the reference's frame in that body.")
      .def_prop_ro(
          "gear", [](const Actuator& a) { return to_numpy(a.gear); },
          "(6,) force on each degree of freedom of the joint per unit of the actuator's force; hinge and slide: [0]; "
          "site: force and torque along its axes.")
      .def_prop_ro(
          "gain", [](const Actuator& a) { return to_numpy(a.gain); },
          "gain = gain[0] + gain[1] length + gain[2] velocity")
      .def_prop_ro(
          "bias", [](const Actuator& a) { return to_numpy(a.bias); },
          "bias = bias[0] + bias[1] length + bias[2] velocity")
      .def_ro("control_limited", &Actuator::control_limited, "u is clamped to control_range.")
      .def_ro("force_limited", &Actuator::force_limited, "The force before the gear is clamped to force_range.")
      .def_prop_ro(
          "control_range", [](const Actuator& a) { return to_numpy(a.control_range); },
          "(2,) lower and upper, in units of u.")
      .def_prop_ro(
          "force_range", [](const Actuator& a) { return to_numpy(a.force_range); }, "(2,) lower and upper, N or N m.")
      .def_prop_ro(
          "activation",
          [](const Actuator& a) {
            static const char* names[] = {"none", "integrator", "filter", "filter_exact", "muscle"};
            return names[static_cast<int>(a.activation)];
          },
          "'none', 'integrator', 'filter', 'filter_exact' or 'muscle': the state that follows the control; u of a step "
          "is that "
          "state (coulomb.Activations).")
      .def_ro("time_constant", &Actuator::time_constant, "s, of a filter.")
      .def_ro("acts_early", &Actuator::acts_early, "A step feels the activation at its end.")
      .def_ro("activation_limited", &Actuator::activation_limited, "The activation stays within activation_range.")
      .def_prop_ro(
          "activation_range", [](const Actuator& a) { return to_numpy(a.activation_range); }, "(2,) lower and upper.")
      .def_ro("muscle", &Actuator::muscle, "Its curves, if it is a muscle.");
  nb::class_<Keyframe>(cls, "Keyframe", "A stored state: q, v and u.")
      .def("__repr__", [](const Keyframe& k) { return "<Keyframe " + k.name + ">"; })
      .def_ro("name", &Keyframe::name, "Name in the robot's file.")
      .def_prop_ro(
          "q", [](const Keyframe& k) { return to_numpy(k.q); }, "(nq,)")
      .def_prop_ro(
          "v", [](const Keyframe& k) { return to_numpy(k.v); }, "(nv,)")
      .def_prop_ro("u", [](const Keyframe& k) { return to_numpy(k.u); }, "(nu,)");
  cls.def_ro("actuators", &Model::actuators, "The actuators, in the order of u.");
  nb::class_<Equality>(cls, "Equality",
                       "A constraint that always holds. connect: pos_a of body a stays at pos_b of body b. weld: so "
                       "does the frame (pos, "
                       "quat). joint: q[joint_a] - ref_a = poly(q[joint_b] - ref_b). tendon: the same of lengths.")
      .def("__repr__",
           [](const Equality& e) {
             static const char* types[] = {"connect", "weld", "joint", "tendon"};
             return "<Equality " + e.name + ", " + types[static_cast<int>(e.type)] + (e.active ? ">" : ", inactive>");
           })
      .def_ro("name", &Equality::name, "Name in the robot's file.")
      .def_prop_ro(
          "type",
          [](const Equality& e) {
            static const char* names[] = {"connect", "weld", "joint", "tendon"};
            return std::string(names[static_cast<int>(e.type)]);
          },
          "'connect', 'weld', 'joint' or 'tendon'.")
      .def_ro("active", &Equality::active, "False: switched off, the simulator leaves it out.")
      .def_ro("body_a", &Equality::body_a, "Index of the first body; of no meaning for joints.")
      .def_ro("body_b", &Equality::body_b, "Index of the second body; of no meaning for joints.")
      .def_ro("joint_a", &Equality::joint_a, "Index of the joint that follows, or -1.")
      .def_ro("tendon_a", &Equality::tendon_a, "Index of the tendon that follows, or -1.")
      .def_ro("tendon_b", &Equality::tendon_b, "Index of the tendon that leads, or -1: tendon_a stays at poly[0].")
      .def_ro("joint_b", &Equality::joint_b, "Index of the joint that leads, or -1: joint_a stays at poly[0].")
      .def_prop_ro(
          "pos_a", [](const Equality& e) { return to_numpy(e.pos_a); }, "(3,) m, in the frame of body a.")
      .def_prop_ro(
          "pos_b", [](const Equality& e) { return to_numpy(e.pos_b); }, "(3,) m, in the frame of body b.")
      .def_prop_ro(
          "quat_a", [](const Equality& e) { return to_numpy(e.quat_a); }, "(4,) wxyz, in the frame of body a.")
      .def_prop_ro(
          "quat_b", [](const Equality& e) { return to_numpy(e.quat_b); }, "(4,) wxyz, in the frame of body b.")
      .def_prop_ro(
          "poly", [](const Equality& e) { return to_numpy(e.poly); }, "(5,) coefficients, the constant first.")
      .def_ro("ref_a", &Equality::ref_a, "m or rad: where joint_a's coordinate counts as zero.")
      .def_ro("ref_b", &Equality::ref_b, "m or rad: where joint_b's coordinate counts as zero.");
  cls.def_ro("equalities", &Model::equalities, "Connections, welds and coupled joints (mimic).");
  cls.def_ro("keyframes", &Model::keyframes, "States that came with the model.");
  // With what simulators leave out, which is told before there is one.
  cls.def_prop_ro(
      "ignored", &ignored_lines,
      "What the loaders left out or replaced, one line each; most of it the motion does not feel (deviations).");
  cls.def_prop_ro(
      "deviations", &deviation_lines,
      "The lines of `ignored` that the motion may feel: soft-contact parameters (constraints here are exact), "
      "margins, velocity limits, a file's integrator, pairs that overlap from the start. What "
      "would make it another motion altogether (activations, deformable bodies, ...) is refused with a "
      "ValueError.");
}

}  // namespace

std::string counted(std::size_t count, const char* noun) {
  std::string word = noun;
  if (count == 1) return "1 " + word;
  if (word.ends_with("y")) word.replace(word.size() - 1, 1, "ie");  // bodies, geometries
  return std::to_string(count) + " " + word + "s";
}

std::string by_names(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 4; ++i) out += (i ? ", " : ", by ") + names[i];
  return out + (names.size() > 4 ? ", ..." : "");
}

std::string in_words(const Model& m) {
  return "<Model: " + counted(static_cast<std::size_t>(m.num_bodies - 1), "body") + " and the world, nq " +
         std::to_string(m.nq) + ", nv " + std::to_string(m.nv) + ", nu " + std::to_string(m.nu) + ", " +
         counted(static_cast<std::size_t>(m.num_geometries), "geometry") + ">";
}

void bind_model(nb::module_& module) {
  Class cls(module, "Model", nb::is_weak_referenceable(),
            "An immutable scene. Shareable between simulators and threads. Arrays are read-only views.");
  cls.def_ro("nq", &Model::nq, "Size of q.")
      .def_ro("nv", &Model::nv, "Size of v and of tangent vectors.")
      .def_ro("nu", &Model::nu, "Size of u: one entry per actuator.")
      .def_ro("num_bodies", &Model::num_bodies, "Number of bodies, the world included.")
      .def_ro("num_joints", &Model::num_joints, "Number of joints.")
      .def_ro("num_geometries", &Model::num_geometries, "Number of geometries.")
      .def_prop_ro(
          "num_pairs", [](const Model& model) { return model.pair_a.size(); },
          "Number of pairs of geometries that may touch.")
      .def_ro("timestep", &Model::timestep, "s: the scene's own time step.")
      .def_prop_ro(
          "gravity", [](const Model& model) { return to_numpy(model.gravity); }, "(3,) m/s^2.")
      .def_prop_ro(
          "density", [](const Model& model) { return model.medium.density; }, "kg/m^3: of what bodies move in.")
      .def_prop_ro(
          "viscosity", [](const Model& model) { return model.medium.viscosity; }, "Pa s: of what bodies move in.")
      .def_prop_ro(
          "wind", [](const Model& model) { return to_numpy(model.medium.wind); }, "(3,) m/s: its velocity, world.");
  cls.def("__repr__", &in_words);
  cls.def_prop_ro(
      "visuals", [](nb::handle self) { return nb::module_::import_("coulomb.view.visuals").attr("visuals_of")(self); },
      nb::sig("def visuals(self) -> list"),
      "What the model looks like: a list of coulomb.view.Visual, read from the robots' files when it is first asked "
      "for "
      "(docs/viewer.md). FileNotFoundError, ValueError: which mesh of which link is missing or broken.");
  cls.def(
      "_blocked_shifts",
      [](const Model& model, nb::handle q, nb::handle direction) {
        const ArrayIn q_in(q, "q", {model.nq}), direction_in(direction, "direction", {3});
        const std::vector<BlockedShift> shifts = blocked_shifts(model, q_in.vector(), direction_in.data());
        const ArrayOut out = new_array(static_cast<Py_ssize_t>(shifts.size()), 3);
        double* to = out.data;
        for (const BlockedShift& shift : shifts) {
          *to++ = shift.pair;
          *to++ = shift.low;
          *to++ = shift.high;
        }
        return out.array;
      },
      nb::arg("q"), nb::arg("direction"));
  cls.def(
      "rest_pose",
      [](nb::handle self, nb::handle q, nb::handle clearance) {
        return nb::module_::import_("coulomb.kinematics").attr("rest_pose")(self, q, clearance);
      },
      nb::arg("q") = nb::none(), nb::arg("clearance") = 0.0,
      nb::sig("def rest_pose(self, q: numpy.typing.ArrayLike | None = None, clearance: float = 0.0) -> numpy.ndarray"),
      "q (nq,), or (n, nq) where rows are given, with every floating robot and free body moved up or down until it "
      "rests "
      "on the ground or on what else is fixed to the world: height fields, triangle meshes, tables; joints and "
      "orientations stay. One that overlaps nothing goes down onto what is beneath it, one that overlaps up to the "
      "first "
      "place where it does not; one with nothing beneath stays. Up is the normal of the half-space whose plane is the "
      "most level, without one against gravity; only geometries that may touch count. q: the pose, the default is that "
      "of neutral(). clearance (m): what stays between, negative presses in. ValueError: nothing is fixed to the "
      "world.");
  // Immutable: a copy is the same object.
  cls.def(
         "__copy__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __copy__(self) -> Model"))
      .def(
          "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo"),
          nb::sig("def __deepcopy__(self, memo: object) -> Model"))
      .def(
          "__reduce__", [](nb::handle self) { return reduced("model", self); },
          nb::sig("def __reduce__(self) -> tuple"))
      .def(
          "save",
          [](nb::handle self, nb::handle path) { nb::module_::import_("coulomb._saved").attr("save")(self, path); },
          nb::arg("path"), nb::sig("def save(self, path: str | os.PathLike) -> None"),
          "Writes the model to a file, which coulomb.load reads: the same bits, without the robot's own files. The "
          "file has a "
          "version; it is for this version of Coulomb and those that read its format, and is refused by "
          "others.\n\nOSError: "
          "the file cannot be written.");
  bind_configurations(cls);
  bind_dynamics(cls);
  bind_model_outputs(cls);
  bind_parameters(cls);
  bind_pin_coordinates(cls);
  bind_bodies(cls);
  bind_joints(cls);
  bind_geometries(cls);
  bind_extras(cls);
  bind_names(cls);
}

}  // namespace coulomb::python

// Scene: the verbs that build a Model. The Python class coulomb.Scene adds what needs Python packages (add_mjcf, add_pinocchio).
#include "coulomb/scene.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "coulomb/model/loaders/mesh_files.hpp"
#include "coulomb/model/loaders/mujoco_arrays.hpp"
#include "coulomb/model/shapes/hull_distance.hpp"
#include "coulomb/robot_description.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

using Number = std::optional<double>;

template <std::size_t N>
std::array<double, N> read(nb::handle object, const char* name) {
  return ArrayIn(object, name, {static_cast<Py_ssize_t>(N)}).array<N>();
}

std::optional<std::array<double, 2>> read_range(nb::handle object, const char* name) {
  if (object.is_none()) return std::nullopt;
  return read<2>(object, name);
}

/// Fields by name, each a one-dimensional array of its type, which is copied as it is, or a list of numbers.
template <class T>
std::map<std::string, std::vector<T>> read_fields(const nb::dict& fields) {
  std::map<std::string, std::vector<T>> out;
  for (auto [key, value] : fields) {
    nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
    std::vector<T>& field = out[nb::cast<std::string>(key)];
    if (nb::try_cast(value, array, false)) field.assign(array.data(), array.data() + array.size());
    else field = nb::cast<std::vector<T>>(value);
  }
  return out;
}

/// None, a number for all joints, or a dict of numbers by joint.
JointGains read_gains(nb::handle object, const char* name) {
  JointGains out;
  if (object.is_none()) return out;
  if (!nb::isinstance<nb::dict>(object)) {
    out.all = *ArrayIn(object, name, {}).data();
    return out;
  }
  for (auto [joint, value] : nb::borrow<nb::dict>(object)) {
    if (!nb::isinstance<nb::str>(joint))
      throw nb::type_error((std::string(name) + ": names of joints are strings").c_str());
    const std::string what = std::string(name) + " of '" + nb::cast<std::string>(joint) + "'";
    out.of_joint[nb::cast<std::string>(joint)] = *ArrayIn(value, what.c_str(), {}).data();
  }
  if (out.of_joint.empty()) throw nb::value_error((std::string(name) + ": the dict is empty").c_str());
  return out;
}

LimitSprings read_limits(nb::handle stiffness, nb::handle dashpot) {
  return {read_gains(stiffness, "limit_stiffness"), read_gains(dashpot, "limit_dashpot")};
}

/// True, False or the kind of the motors; gains alone say what kind is meant. Whether there are to be any.
bool read_motors(nb::handle actuators, nb::handle kp, nb::handle kd, MotorOptions& motors) {
  motors.kp = read_gains(kp, "kp"), motors.kd = read_gains(kd, "kd");
  if (nb::isinstance<nb::str>(actuators)) {
    motors.kind = nb::cast<std::string>(actuators);
    return true;
  }
  if (!PyBool_Check(actuators.ptr()))
    throw nb::type_error("actuators: expected True, False, 'motor', 'position' or 'velocity'");

  if (motors.kp.given()) motors.kind = "position";
  else if (motors.kd.given()) motors.kind = "velocity";
  const bool wanted = nb::cast<bool>(actuators);
  if (!wanted && motors.kind != "motor")
    throw nb::value_error("kp, kd: given, but actuators=False leaves nothing to give them to");
  return wanted;
}

PenaltyMaterial penalty_material(Number stiffness, Number damping, Number friction_stiffness, double scale,
                                 Number dashpot) {
  return {stiffness, damping, friction_stiffness, scale, dashpot};
}

/// Of ground, surfaces and shapes alike.
template <class Options>
void set_further_friction(Number torsional, Number rolling, Options& options) {
  options.torsional_friction = torsional;
  options.rolling_friction = rolling;
}

ShapeOptions shape_options(Number mass, Number density, nb::handle position, nb::handle quaternion, Number friction,
                           Number restitution, double compliance, nb::handle inertia, bool fixed,
                           const std::string& name) {
  ShapeOptions options;
  options.mass = mass;
  options.density = density;
  options.position = read<3>(position, "position");
  options.quaternion = read<4>(quaternion, "quaternion");
  options.friction = friction;
  options.restitution = restitution;
  options.compliance = compliance;
  if (!inertia.is_none()) options.inertia = read<6>(inertia, "inertia");
  options.fixed = fixed;
  options.name = name;
  return options;
}

/// Binds one shape verb: its own leading arguments, then those that all shapes share. `make(scene, leading..., options)`.
template <typename... Leading, typename Make, typename... Names>
void shape_verb(nb::class_<Scene>& cls, const char* verb, const char* doc, Make make, Names... names) {
  cls.def(
      verb,
      [make](Scene& scene, Leading... leading, Number mass, Number density, ArrayLike position, ArrayLike quaternion,
             Number friction, Number restitution, double compliance, ArrayLike inertia, bool fixed,
             const std::string& name, Number stiffness, Number dashpot, Number damping, Number friction_stiffness,
             double scale, ArrayLike contact_points, Number torsional_friction, Number rolling_friction) {
        ShapeOptions options =
            shape_options(mass, density, position, quaternion, friction, restitution, compliance, inertia, fixed, name);
        set_further_friction(torsional_friction, rolling_friction, options);
        options.penalty = penalty_material(stiffness, damping, friction_stiffness, scale, dashpot);
        if (!contact_points.is_none())
          options.contact_points = ArrayIn(contact_points, "contact_points", {-1, 3}).vector();
        return make(scene, leading..., options);
      },
      names..., nb::kw_only(), nb::arg("mass") = nb::none(), nb::arg("density") = nb::none(),
      nb::arg("position").none() = nb::make_tuple(0.0, 0.0, 0.0),
      nb::arg("quaternion").none() = nb::make_tuple(1.0, 0.0, 0.0, 0.0), nb::arg("friction") = nb::none(),
      nb::arg("restitution") = nb::none(), nb::arg("compliance") = 0.0, nb::arg("inertia") = nb::none(),
      nb::arg("fixed") = false, nb::arg("name") = "", nb::arg("contact_stiffness") = nb::none(),
      nb::arg("contact_dashpot") = nb::none(), nb::arg("contact_damping") = nb::none(),
      nb::arg("contact_friction_stiffness") = nb::none(), nb::arg("contact_scale") = 1.0,
      nb::arg("contact_points") = nb::none(), nb::arg("torsional_friction") = nb::none(),
      nb::arg("rolling_friction") = nb::none(), doc);
}

#define COULOMB_SHAPE_DOC                                                                                              \
  "\n\nmass: kg, or density: kg/m^3 (default 1000). position: (3,) m, world. quaternion: (4,) w x y z, unit. "         \
  "friction, restitution: "                                                                                            \
  "unset means the partner's; of two that are set the larger counts. compliance: m/(N s). inertia: (6,) Ixx Ixy Iyy "  \
  "Ixz Iyz Izz "                                                                                                       \
  "about the centre of mass, kg m^2 (default: from shape and mass). fixed: scenery. name: of body and geometry. "      \
  "contact_stiffness: N/m, in series with the partner's (default: rigid; with contact=\"penalty\" the simulator's), "  \
  "contact_dashpot: N s/m, beside it, not with \"penalty\" (docs/conventions.md), contact_scale: factor of both. For " \
  "contact=\"penalty\" only: contact_damping: N s/m^2, contact_friction_stiffness: N s/m, "                            \
  "contact_points: (n, 3) m, body frame, where contact is looked for "                                                 \
  "instead of on the whole surface (docs/penalty.md). torsional_friction, rolling_friction: m, resistance to "         \
  "spinning and to rolling, of two that are set the larger; contact=\"ncp\" alone.\n\nValueError: "                    \
  "names the argument and its value; the scene is then as it was."

void bind_shapes(nb::class_<Scene>& cls) {
  shape_verb<ArrayLike>(
      cls, "add_box", "A box. size: (3,) m, full side lengths." COULOMB_SHAPE_DOC,
      [](Scene& scene, nb::handle size, const ShapeOptions& options) {
        return scene.add_box(read<3>(size, "size"), options);
      },
      nb::arg("size").none());
  shape_verb<double>(
      cls, "add_sphere", "A sphere. radius: m." COULOMB_SHAPE_DOC,
      [](Scene& scene, double radius, const ShapeOptions& options) { return scene.add_sphere(radius, options); },
      nb::arg("radius"));
  shape_verb<double, double>(
      cls, "add_capsule", "A capsule along z. radius: m. length: m, between the centres of the caps." COULOMB_SHAPE_DOC,
      [](Scene& scene, double radius, double length, const ShapeOptions& options) {
        return scene.add_capsule(radius, length, options);
      },
      nb::arg("radius"), nb::arg("length"));
  shape_verb<double, double>(
      cls, "add_cylinder", "A cylinder along z. radius, length: m." COULOMB_SHAPE_DOC,
      [](Scene& scene, double radius, double length, const ShapeOptions& options) {
        return scene.add_cylinder(radius, length, options);
      },
      nb::arg("radius"), nb::arg("length"));
  shape_verb<ArrayLike>(
      cls, "add_ellipsoid", "An ellipsoid. semi_axes: (3,) m." COULOMB_SHAPE_DOC,
      [](Scene& scene, nb::handle axes, const ShapeOptions& options) {
        return scene.add_ellipsoid(read<3>(axes, "semi_axes"), options);
      },
      nb::arg("semi_axes").none());
  shape_verb<ArrayLike>(
      cls, "add_mesh", "The convex hull of points. vertices: (n, 3) m, in the body's frame." COULOMB_SHAPE_DOC,
      [](Scene& scene, nb::handle vertices, const ShapeOptions& options) {
        return scene.add_mesh(ArrayIn(vertices, "vertices", {-1, 3}).vector(), options);
      },
      nb::arg("vertices").none());
}

SurfaceOptions surface_options(nb::handle position, nb::handle quaternion, Number friction, Number restitution,
                               double compliance, Number stiffness, Number dashpot, double scale,
                               const std::string& name, Number torsional_friction, Number rolling_friction) {
  SurfaceOptions options;
  set_further_friction(torsional_friction, rolling_friction, options);
  options.position = read<3>(position, "position");
  options.quaternion = read<4>(quaternion, "quaternion");
  options.friction = friction;
  options.restitution = restitution;
  options.compliance = compliance;
  options.penalty = penalty_material(stiffness, {}, {}, scale, dashpot);
  options.name = name;
  return options;
}

/// Whole numbers, as indices.
std::vector<int> read_indices(nb::handle object, const char* name) {
  const std::vector<double> numbers = ArrayIn(object, name, {-1, 3}).vector();
  std::vector<int> out;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!(numbers[i] >= 0 && numbers[i] < 2147483647.0 && numbers[i] == static_cast<int>(numbers[i])))
      throw nb::value_error((std::string(name) + "[" + std::to_string(i / 3) + ", " + std::to_string(i % 3) +
                             "]: not the index of a vertex")
                                .c_str());
    out.push_back(static_cast<int>(numbers[i]));
  }
  return out;
}

#define COULOMB_SURFACE_DOC                                                                                            \
  "\n\nposition: (3,) m, quaternion: (4,) w x y z: of its frame, world. friction, restitution: unset means the "       \
  "partner's; of two that are set the larger counts. compliance: m/(N s). contact_stiffness: N/m, contact_dashpot: "   \
  "N s/m, contact_scale: of its springs (docs/conventions.md). torsional_friction, rolling_friction: m, as of "        \
  "shapes. name: of the geometry. Bodies touch its faces and, "                                                        \
  "where it is convex, its edges and corners; nothing catches at inner edges of what is flat. Steps cannot be split "  \
  "at impacts on it (continuous_collision).\n\nValueError: names the argument and its value; the scene is then as it " \
  "was."

void bind_surfaces(nb::class_<Scene>& cls) {
  cls.def(
      "add_heightfield",
      [](Scene& scene, ArrayLike heights, ArrayLike spacing, ArrayLike position, ArrayLike quaternion, Number friction,
         Number restitution, double compliance, Number stiffness, Number dashpot, double scale, double base,
         const std::string& name, Number torsional_friction, Number rolling_friction) {
        const ArrayIn grid(heights, "heights", {-1, -1});
        HeightField field{grid.vector(), static_cast<int>(grid.shape(0)), static_cast<int>(grid.shape(1)), {}, base};
        const bool is_number = PyNumber_Check(spacing.ptr()) && !PySequence_Check(spacing.ptr());
        if (is_number) field.spacing.fill(*ArrayIn(spacing, "spacing", {}).data());
        else field.spacing = read<2>(spacing, "spacing");
        return scene.add_heightfield(
            field, surface_options(position, quaternion, friction, restitution, compliance, stiffness, dashpot, scale,
                                   name, torsional_friction, rolling_friction));
      },
      nb::arg("heights").none(), nb::arg("spacing").none(), nb::kw_only(),
      nb::arg("position").none() = nb::make_tuple(0.0, 0.0, 0.0),
      nb::arg("quaternion").none() = nb::make_tuple(1.0, 0.0, 0.0, 0.0), nb::arg("friction") = nb::none(),
      nb::arg("restitution") = nb::none(), nb::arg("compliance") = 0.0, nb::arg("contact_stiffness") = nb::none(),
      nb::arg("contact_dashpot") = nb::none(), nb::arg("contact_scale") = 1.0, nb::arg("base") = 1.0,
      nb::arg("name") = "", nb::arg("torsional_friction") = nb::none(), nb::arg("rolling_friction") = nb::none(),
      "Ground by its heights, fixed to the world. heights: (rows, columns) m, at least 2 x 2. spacing: m between "
      "neighbours, a number or (along x, along y). The field is centred on the z axis of its frame, columns along x, "
      "rows along y; a cell is two triangles, cut from (row, column) to (row + 1, column + 1). base: m from "
      "the lowest height down to the floor of the solid, which has walls below its border. Parameter "
      "'heights/<name>'." COULOMB_SURFACE_DOC);
  cls.def(
      "add_triangle_mesh",
      [](Scene& scene, ArrayLike vertices, ArrayLike triangles, ArrayLike position, ArrayLike quaternion,
         Number friction, Number restitution, double compliance, Number stiffness, Number dashpot, double scale,
         const std::string& name, Number torsional_friction, Number rolling_friction) {
        return scene.add_triangle_mesh(
            ArrayIn(vertices, "vertices", {-1, 3}).vector(), read_indices(triangles, "triangles"),
            surface_options(position, quaternion, friction, restitution, compliance, stiffness, dashpot, scale, name,
                            torsional_friction, rolling_friction));
      },
      nb::arg("vertices").none(), nb::arg("triangles").none(), nb::kw_only(),
      nb::arg("position").none() = nb::make_tuple(0.0, 0.0, 0.0),
      nb::arg("quaternion").none() = nb::make_tuple(1.0, 0.0, 0.0, 0.0), nb::arg("friction") = nb::none(),
      nb::arg("restitution") = nb::none(), nb::arg("compliance") = 0.0, nb::arg("contact_stiffness") = nb::none(),
      nb::arg("contact_dashpot") = nb::none(), nb::arg("contact_scale") = 1.0, nb::arg("name") = "",
      nb::arg("torsional_friction") = nb::none(), nb::arg("rolling_friction") = nb::none(),
      "Scenery of triangles, which need not be convex, fixed to the world. vertices: (n, 3) m. triangles: (m, 3) "
      "indices, counter-clockwise seen from outside; an edge has two triangles at most. Solid behind the triangles. "
      "Parameter 'vertices/<name>'." COULOMB_SURFACE_DOC);
}

void bind_loaders(nb::class_<Scene>& cls) {
  cls.def(
      "add_urdf",
      [](Scene& scene, const std::string& path, bool floating_base, nb::object position, nb::object quaternion,
         const std::vector<std::string>& package_dirs, Number friction, Number restitution, double compliance,
         bool self_collision, nb::object actuators, nb::object kp, nb::object kd, nb::object limit_stiffness,
         nb::object limit_dashpot, bool balance_inertia, Number link_density, bool ignore_mimic,
         const std::string& name, nb::object read_mesh, nb::object read_pieces) {
        UrdfOptions options;
        options.floating_base = floating_base;
        options.position = read<3>(position, "position");
        options.quaternion = read<4>(quaternion, "quaternion");
        options.package_dirs = package_dirs;
        options.friction = friction;
        options.restitution = restitution;
        options.compliance = compliance;
        options.self_collision = self_collision;
        options.actuators = read_motors(actuators, kp, kd, options.motors);
        options.limits = read_limits(limit_stiffness, limit_dashpot);
        options.balance_inertia = balance_inertia;
        options.link_density = link_density;
        options.ignore_mimic = ignore_mimic;
        options.name = name;
        if (!read_mesh.is_none())
          options.read_mesh = [&](const std::string& file, const std::string& what) {
            return ArrayIn(read_mesh(file, what), "points of a mesh", {-1, 3}).vector();
          };
        if (!read_pieces.is_none())
          options.read_pieces = [&](const std::string& file, const std::array<double, 3>& scale,
                                    const std::string& what) {
            std::vector<std::vector<double>> pieces;
            const nb::object found = read_pieces(file, nb::make_tuple(scale[0], scale[1], scale[2]), what);
            for (nb::handle piece : found) pieces.push_back(ArrayIn(piece, "points of a mesh", {-1, 3}).vector());
            return pieces;
          };
        return scene.add_urdf(path, options);
      },
      nb::arg("path"), nb::kw_only(), nb::arg("floating_base") = false,
      nb::arg("position").none() = nb::make_tuple(0.0, 0.0, 0.0),
      nb::arg("quaternion").none() = nb::make_tuple(1.0, 0.0, 0.0, 0.0),
      nb::arg("package_dirs") = std::vector<std::string>{}, nb::arg("friction") = nb::none(),
      nb::arg("restitution") = nb::none(), nb::arg("compliance") = 0.0, nb::arg("self_collision") = true,
      nb::arg("actuators").none() = true, nb::arg("kp") = nb::none(), nb::arg("kd") = nb::none(),
      nb::arg("limit_stiffness") = nb::none(), nb::arg("limit_dashpot") = nb::none(),
      nb::arg("balance_inertia") = false, nb::arg("link_density") = nb::none(), nb::arg("ignore_mimic") = false,
      nb::arg("name") = "", nb::arg("read_mesh") = nb::none(), nb::arg("read_pieces") = nb::none(),
      "A robot from a URDF file or string. position, quaternion: of the base, world. package_dirs: where package:// is "
      "looked up. "
      "Meshes become convex. actuators: one motor per joint degree of freedom (none for mimic joints), limited to the "
      "effort limit; 'position' or 'velocity': servos with the gains kp and kd (a number, or a dict by joint). Links "
      "behind fixed joints are Model.sites. What the "
      "loader ignores "
      "is listed in Model.ignored.\n\nValueError: names the element that cannot be read or is not supported.");
  cls.def(
      "_add_mujoco_arrays",
      [](Scene& scene, const std::string& file_name, const nb::dict& reals, const nb::dict& integers,
         const std::map<std::string, std::vector<std::string>>& names, bool use_options, const std::string& name,
         nb::object limit_stiffness, nb::object limit_dashpot, bool file_softness) {
        return scene.add_mujoco_arrays({file_name, read_fields<double>(reals), read_fields<int>(integers), names},
                                       {use_options, name, read_limits(limit_stiffness, limit_dashpot), file_softness});
      },
      nb::arg("file_name"), nb::arg("reals"), nb::arg("integers"), nb::arg("names"), nb::arg("use_options"),
      nb::arg("name"), nb::arg("limit_stiffness").none(), nb::arg("limit_dashpot").none(),
      nb::arg("file_softness") = false);
  cls.def("_add_deviation", &Scene::add_deviation, nb::arg("line"));
  cls.def(
      "_add_robot",
      [](Scene& scene, const RobotDescription& robot, nb::object position, nb::object quaternion, Number friction,
         Number restitution, double compliance, nb::object actuators, nb::object kp, nb::object kd,
         bool balance_inertia, const std::string& name) {
        RobotOptions options;
        options.balance_inertia = balance_inertia;
        options.position = read<3>(position, "position");
        options.quaternion = read<4>(quaternion, "quaternion");
        options.friction = friction;
        options.restitution = restitution;
        options.compliance = compliance;
        options.actuators = read_motors(actuators, kp, kd, options.motors);
        options.name = name;
        return scene.add_robot(robot, options);
      },
      nb::arg("robot"), nb::arg("position"), nb::arg("quaternion"), nb::arg("friction").none(),
      nb::arg("restitution").none(), nb::arg("compliance"), nb::arg("actuators").none(), nb::arg("kp").none(),
      nb::arg("kd").none(), nb::arg("balance_inertia"), nb::arg("name"));
}

/// Counts, and the first bodies that stand by themselves: "<Scene: 13 bodies and the world, ...: trunk, box>".
/// What only geometries have.
void refuse_of_pairs(const std::vector<std::pair<const char*, bool>>& given) {
  for (const auto& [name, is_given] : given)
    if (is_given)
      throw std::invalid_argument(std::string("set_contact ") + name +
                                  ": belongs to one geometry, a pair has friction and restitution only; leave other= "
                                  "out, and call again for the pair");
}

std::string scene_in_words(const Scene& scene) {
  const SceneParts& parts = scene.parts();
  std::string names;
  int alone = 0;
  for (const BodyPart& body : parts.bodies) {
    if (body.parent != 0) continue;
    ++alone;
    if (alone <= 4) names += (alone == 1 ? ": " : ", ") + body.name;
  }
  return "<Scene: " + counted(parts.bodies.size() - 1, "body") + " and the world, " +
         counted(parts.joints.size(), "joint") + ", " + counted(parts.actuators.size(), "actuator") + ", " +
         counted(parts.geometries.size(), "geometry") + names + (alone > 4 ? ", ..." : "") + ">";
}

}  // namespace

void bind_scene(nb::module_& module) {
  module.def("_package_folders", &package_folders, nb::arg("path"), nb::arg("folders"));
  module.def(
      "_hull_distance",
      [](nb::handle vertices, nb::handle faces, nb::handle hull, double negligible) {
        const auto indices = [](nb::handle list, const char* what) {
          const std::vector<double> numbers = ArrayIn(list, what, {-1, 3}).vector();
          return std::vector<int>(numbers.begin(), numbers.end());
        };
        const std::vector<double> points = ArrayIn(vertices, "vertices", {-1, 3}).vector();
        const std::vector<int> of_hull = hull.is_none() ? std::vector<int>{} : indices(hull, "hull");
        const std::vector<int> of_mesh = indices(faces, "faces");
        const nb::gil_scoped_release others_run;
        return hull_distance(points, of_mesh, of_hull, negligible);
      },
      nb::arg("vertices"), nb::arg("faces"), nb::arg("hull") = nb::none(), nb::arg("negligible") = 0.0);
  module.def(
      "_find_mesh",
      [](const std::string& name, const std::vector<std::string>& folders, const std::string& what) {
        return find_mesh(name, folders, what);
      },
      nb::arg("name"), nb::arg("folders"), nb::arg("what"));

  nb::class_<SceneElement>(module, "SceneElement",
                           "What a verb of Scene added: names and indices into the Model that build() returns.")
      .def_ro("name", &SceneElement::name, "As given, or made unique: box, box_2, ...")
      .def_ro("first_body", &SceneElement::first_body, "Index into Model.body_names.")
      .def_ro("num_bodies", &SceneElement::num_bodies, "Bodies added.")
      .def_ro("first_joint", &SceneElement::first_joint, "Index into Model.joint_names.")
      .def_ro("num_joints", &SceneElement::num_joints, "Joints added.")
      .def_ro("first_geometry", &SceneElement::first_geometry, "Index into Model.geometry_names.")
      .def_ro("num_geometries", &SceneElement::num_geometries, "Geometries added.")
      .def("__repr__", [](const SceneElement& element) {
        const auto count = [](int number, const char* noun) { return counted(static_cast<std::size_t>(number), noun); };
        return "<SceneElement " + element.name + ": " + count(element.num_bodies, "body") + ", " +
               count(element.num_joints, "joint") + ", " + count(element.num_geometries, "geometry") + ">";
      });

  nb::class_<Scene> cls(module, "Scene");
  cls.def(
      "__init__",
      [](Scene* self, ArrayLike gravity, Number timestep, double contact_margin) {
        SceneOptions options;
        if (!gravity.is_none()) options.gravity = read<3>(gravity, "gravity");
        options.timestep = timestep;
        options.contact_margin = contact_margin;
        new (self) Scene(options);
      },
      nb::arg("gravity") = nb::none(), nb::arg("timestep") = nb::none(),
      nb::arg("contact_margin") = default_contact_margin);
  cls.def(
      "add_ground",
      [](Scene& scene, Number friction, Number restitution, double compliance, double height, nb::object normal,
         const std::string& name, Number stiffness, Number dashpot, Number damping, Number friction_stiffness,
         double scale, Number torsional_friction, Number rolling_friction) {
        GroundOptions options;
        set_further_friction(torsional_friction, rolling_friction, options);
        options.penalty = penalty_material(stiffness, damping, friction_stiffness, scale, dashpot);
        options.friction = friction;
        options.restitution = restitution;
        options.compliance = compliance;
        options.height = height;
        options.normal = read<3>(normal, "normal");
        options.name = name;
        return scene.add_ground(options);
      },
      nb::arg("friction") = nb::none(), nb::arg("restitution") = nb::none(), nb::kw_only(), nb::arg("compliance") = 0.0,
      nb::arg("height") = 0.0, nb::arg("normal").none() = nb::make_tuple(0.0, 0.0, 1.0), nb::arg("name") = "ground",
      nb::arg("contact_stiffness") = nb::none(), nb::arg("contact_dashpot") = nb::none(),
      nb::arg("contact_damping") = nb::none(), nb::arg("contact_friction_stiffness") = nb::none(),
      nb::arg("contact_scale") = 1.0, nb::arg("torsional_friction") = nb::none(),
      nb::arg("rolling_friction") = nb::none(),
      "The half-space below the plane through height * normal. height: m. normal: (3,), any length > 0. friction, "
      "restitution: unset "
      "means the partner's (both unset: 1 and 0). compliance: m/(N s), velocity per impulse. name: of the geometry. "
      "contact_stiffness: N/m, contact_dashpot: N s/m, contact_scale: of its springs (docs/conventions.md). "
      "contact_damping, contact_friction_stiffness: for contact=\"penalty\" (docs/penalty.md). torsional_friction, "
      "rolling_friction: m, resistance to spinning and to rolling (docs/conventions.md).\n\nValueError: names "
      "the argument and its value; the scene is then as it was.");
  bind_shapes(cls);
  bind_surfaces(cls);
  bind_loaders(cls);
  cls.def(
      "add_actuator",
      [](Scene& scene, const std::string& joint, const std::string& kind, Number kp, Number kd, nb::object gear,
         nb::object control_range, nb::object force_range, const std::string& name) {
        ActuatorOptions options;
        options.kind = kind;
        options.kp = kp, options.kd = kd;
        if (!gear.is_none())
          options.gear = ArrayIn(nb::module_::import_("numpy").attr("atleast_1d")(gear), "gear", {-1}).vector();
        options.control_range = read_range(control_range, "control_range");
        options.force_range = read_range(force_range, "force_range");
        options.name = name;
        return scene.add_actuator(joint, options);
      },
      nb::arg("joint"), nb::kw_only(), nb::arg("kind") = "motor", nb::arg("kp") = nb::none(),
      nb::arg("kd") = nb::none(), nb::arg("gear") = nb::none(), nb::arg("control_range") = nb::none(),
      nb::arg("force_range") = nb::none(), nb::arg("name") = "",
      nb::sig("def add_actuator(self, joint: str, *, kind: str = 'motor', kp: float | None = None, kd: float | None = "
              "None, gear: numpy.typing.ArrayLike | None = None, control_range: tuple[float, float] | None = None, "
              "force_range: tuple[float, float] | None = None, name: str = '') -> str"),
      "Drives a joint added before, a loaded robot's too (that of a free shape is '<shape>_joint'), with the next "
      "entry "
      "of u. kind: 'motor', force = u; 'position', force = kp (u - length) - kd speed; 'velocity', force = kd (u - "
      "speed). kp: N/m or N m/rad. kd: N s/m or N m s/rad. gear: force on each degree of freedom of the joint per unit "
      "of "
      "force, and length per coordinate: 1 by default; ball and free joints need 3 and 6 numbers. control_range, "
      "force_range: (lower, upper) to which u and the force are clamped. The force is explicit in a semi-implicit "
      "step: kd "
      "times the time step must stay well below the inertia. Returns the actuator's name (default: the joint's, made "
      "unique).\n\nValueError: names the joint or the argument and its value; the scene is then as it was.");
  cls.def(
      "set_joint_limits",
      [](Scene& scene, const std::string& joint, Number lower, Number upper, Number stiffness, Number dashpot) {
        scene.set_joint_limits(joint, {lower, upper, stiffness, dashpot});
      },
      nb::arg("joint"), nb::kw_only(), nb::arg("lower") = nb::none(), nb::arg("upper") = nb::none(),
      nb::arg("stiffness") = nb::none(), nb::arg("dashpot") = nb::none(),
      "Limits of a hinge, slide or ball added before, a loaded robot's too; None leaves as it was. lower, upper: m or "
      "rad, infinite: none on that side; of a ball upper is the largest angle. stiffness: N/m or N m/rad, infinity: "
      "rigid. dashpot: N s/m or N m s/rad, while the limit is reached (docs/conventions.md). Parameters "
      "'joint_limit_stiffness/<joint>' and 'joint_limit_dashpot/<joint>'.\n\nValueError: names the joint or the "
      "argument and its value; nothing is changed then.");
  cls.def(
      "set_contact",
      [](Scene& scene, const std::string& geometry, const std::optional<std::string>& other, Number friction,
         Number restitution, Number stiffness, Number dashpot, Number damping, Number friction_stiffness, Number scale,
         nb::object points, Number torsional_friction, Number rolling_friction) {
        if (other) {
          refuse_of_pairs({{"contact_stiffness", stiffness.has_value()},
                           {"contact_dashpot", dashpot.has_value()},
                           {"contact_damping", damping.has_value()},
                           {"contact_friction_stiffness", friction_stiffness.has_value()},
                           {"contact_scale", scale.has_value()},
                           {"contact_points", !points.is_none()}});
          scene.set_contact(geometry, *other, PairOptions{friction, restitution, torsional_friction, rolling_friction});
          return;
        }
        ContactOptions options{stiffness, damping,     friction_stiffness, scale,           dashpot, {},
                               friction,  restitution, torsional_friction, rolling_friction};
        if (!points.is_none()) options.points = ArrayIn(points, "contact_points", {-1, 3}).vector();
        scene.set_contact(geometry, options);
      },
      nb::arg("geometry"), nb::arg("other") = nb::none(), nb::kw_only(), nb::arg("friction") = nb::none(),
      nb::arg("restitution") = nb::none(), nb::arg("contact_stiffness") = nb::none(),
      nb::arg("contact_dashpot") = nb::none(), nb::arg("contact_damping") = nb::none(),
      nb::arg("contact_friction_stiffness") = nb::none(), nb::arg("contact_scale") = nb::none(),
      nb::arg("contact_points") = nb::none(), nb::arg("torsional_friction") = nb::none(),
      nb::arg("rolling_friction") = nb::none(),
      "Surface of a geometry added before, a loaded robot's too, and how it gives way: the arguments of the shapes, "
      "None leaves as it was. contact_points: (n, 3) m, in the geometry's frame.\n\nother: a geometry of another body: "
      "the two have these coefficients of friction and restitution together, whatever their own say, and touch "
      "whatever their masks say; parameters 'pair_friction/a:b', 'pair_restitution/a:b', 'pair_torsional_friction/a:b' "
      "and 'pair_rolling_friction/a:b' (docs/parameters.md). The other arguments are of "
      "geometries.\n\nValueError: names the geometry or the argument; nothing is changed then.");
  cls.def("__repr__", &scene_in_words);
  cls.def(
      "__reduce__", [](nb::handle self) { return reduced("scene", self); }, nb::sig("def __reduce__(self) -> tuple"));
  cls.def(
      "build", [](const Scene& scene) { return std::const_pointer_cast<Model>(scene.build()); },
      "Checks everything and returns the immutable Model.\n\nValueError: names what is wrong.");
}

}  // namespace coulomb::python

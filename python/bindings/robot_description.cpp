// RobotDescription: filled by Python from objects of other packages (python/coulomb/_pinocchio.py), read by Scene.
#include "coulomb/robot_description.hpp"

#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "coulomb/model/placement.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

/// (3,) and a rotation matrix (3, 3).
Placement read_placement(nb::handle position, nb::handle rotation) {
  const ArrayIn R(rotation, "rotation", {3, 3});
  return {ArrayIn(position, "position", {3}).array<3>(), quaternion_from_matrix(R.data())};
}

/// mass, com (3,) and inertia (3, 3) about it.
RobotInertia read_inertia(double mass, nb::handle com, nb::handle inertia) {
  const ArrayIn I(inertia, "inertia", {3, 3});
  const double* at = I.data();
  return {mass, ArrayIn(com, "com", {3}).array<3>(), {at[0], at[1], at[4], at[2], at[5], at[8]}};
}

RobotJointType read_joint_type(const std::string& name) {
  constexpr std::pair<const char*, RobotJointType> types[] = {
      {"hinge", RobotJointType::hinge},       {"continuous", RobotJointType::continuous},
      {"slide", RobotJointType::slide},       {"ball", RobotJointType::ball},
      {"ball_zyx", RobotJointType::ball_zyx}, {"translation", RobotJointType::translation},
      {"planar", RobotJointType::planar},     {"free", RobotJointType::free}};
  for (const auto& [known, type] : types)
    if (name == known) return type;
  throw nb::value_error(("type: '" + name + "' is not a joint type").c_str());
}

ShapeType read_shape_type(const std::string& name) {
  constexpr std::pair<const char*, ShapeType> types[] = {
      {"sphere", ShapeType::sphere},        {"box", ShapeType::box},   {"capsule", ShapeType::capsule},
      {"cylinder", ShapeType::cylinder},    {"mesh", ShapeType::mesh}, {"ellipsoid", ShapeType::ellipsoid},
      {"half_space", ShapeType::half_space}};
  for (const auto& [known, type] : types)
    if (name == known) return type;
  throw nb::value_error(("type: '" + name + "' is not a shape").c_str());
}

/// What was added last, which the next verb is about.
template <class Part>
Part& last(std::vector<Part>& parts, const char* noun) {
  if (parts.empty()) throw nb::value_error((std::string("there is no ") + noun + " yet").c_str());
  return parts.back();
}

}  // namespace

void bind_robot_description(nb::module_& module) {
  nb::class_<RobotDescription>(module, "_RobotDescription")
      .def(
          "__init__",
          [](RobotDescription* self, const std::string& name, const std::string& source, int nq, int nv) {
            new (self) RobotDescription();
            self->name = name;
            self->source = source;
            self->nq = nq;
            self->nv = nv;
          },
          nb::arg("name"), nb::arg("source"), nb::arg("nq"), nb::arg("nv"))
      .def(
          "set_base",
          [](RobotDescription& self, double mass, nb::handle com, nb::handle inertia) {
            self.base = read_inertia(mass, com, inertia);
          },
          nb::arg("mass"), nb::arg("com"), nb::arg("inertia"))
      .def(
          "add_joint",
          [](RobotDescription& self, const std::string& name, const std::string& type, int parent, nb::handle position,
             nb::handle rotation, nb::handle axis, double mass, nb::handle com, nb::handle inertia, int q, int v) {
            RobotJoint joint;
            joint.name = name;
            joint.type = read_joint_type(type);
            joint.parent = parent;
            joint.placement = read_placement(position, rotation);
            joint.axis = ArrayIn(axis, "axis", {3}).array<3>();
            joint.inertia = read_inertia(mass, com, inertia);
            joint.q = q;
            joint.v = v;
            self.joints.push_back(joint);
          },
          nb::arg("name"), nb::arg("type"), nb::arg("parent"), nb::arg("position"), nb::arg("rotation"),
          nb::arg("axis"), nb::arg("mass"), nb::arg("com"), nb::arg("inertia"), nb::arg("q"), nb::arg("v"))
      .def(
          "set_limits",
          [](RobotDescription& self, nb::handle lower, nb::handle upper) {
            RobotJoint& joint = last(self.joints, "joint");
            joint.lower = ArrayIn(lower, "lower", {-1}).vector();
            joint.upper = ArrayIn(upper, "upper", {-1}).vector();
          },
          nb::arg("lower"), nb::arg("upper"), "Of the joint that was added last.")
      .def(
          "set_losses",
          [](RobotDescription& self, nb::handle damping, nb::handle armature, nb::handle dry_friction,
             nb::handle effort) {
            RobotJoint& joint = last(self.joints, "joint");
            joint.damping = ArrayIn(damping, "damping", {-1}).vector();
            joint.armature = ArrayIn(armature, "armature", {-1}).vector();
            joint.dry_friction = ArrayIn(dry_friction, "dry_friction", {-1}).vector();
            joint.effort = ArrayIn(effort, "effort", {-1}).vector();
          },
          nb::arg("damping"), nb::arg("armature"), nb::arg("dry_friction"), nb::arg("effort"),
          "Of the joint that was added last.")
      .def(
          "add_frame",
          [](RobotDescription& self, const std::string& name, int joint, nb::handle position, nb::handle rotation,
             bool is_link) { self.frames.push_back({name, joint, read_placement(position, rotation), is_link}); },
          nb::arg("name"), nb::arg("joint"), nb::arg("position"), nb::arg("rotation"), nb::arg("is_link"))
      .def(
          "add_shape",
          [](RobotDescription& self, const std::string& name, int joint, int frame, nb::handle position,
             nb::handle rotation, const std::string& type, nb::handle size, nb::handle points, bool collides) {
            RobotShape shape;
            shape.name = name;
            shape.joint = joint;
            shape.frame = frame;
            shape.placement = read_placement(position, rotation);
            shape.type = read_shape_type(type);
            shape.size = ArrayIn(size, "size", {3}).array<3>();
            shape.points = ArrayIn(points, "points", {-1, 3}).vector();
            shape.collides = collides;
            self.shapes.push_back(std::move(shape));
          },
          nb::arg("name"), nb::arg("joint"), nb::arg("frame"), nb::arg("position"), nb::arg("rotation"),
          nb::arg("type"), nb::arg("size"), nb::arg("points"), nb::arg("collides"))
      .def(
          "turn_last_shape",
          [](RobotDescription& self, nb::handle normal, double offset) {
            const Vec3 n = ArrayIn(normal, "normal", {3}).array<3>();
            Placement& placement = last(self.shapes, "shape").placement;
            placement = compose(placement, {{offset * n[0], offset * n[1], offset * n[2]}, quaternion_z_to(n)});
          },
          nb::arg("normal"), nb::arg("offset"), "A half-space by its normal, in the frame given, and its distance.")
      .def(
          "add_pair", [](RobotDescription& self, int a, int b) { self.pairs.emplace_back(a, b); }, nb::arg("a"),
          nb::arg("b"));
}

}  // namespace coulomb::python

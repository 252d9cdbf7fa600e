// Joints and states by name: Model.joint, Model.state.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "arrays.hpp"
#include "coulomb/configuration.hpp"
#include "coulomb/model.hpp"
#include "coulomb/model/name_hints.hpp"
#include "module.hpp"

namespace coulomb::python {

namespace {

int num_positions(JointType type) { return type == JointType::free ? 7 : type == JointType::ball ? 4 : 1; }
int num_velocities(JointType type) { return type == JointType::free ? 6 : type == JointType::ball ? 3 : 1; }

/// A joint of a model, as Python sees it.
struct JointView {
  std::string name, type, body;
  int index = 0, q = 0, v = 0, nq = 0, nv = 0;
  nb::object limits;
};

int joint_of(const Model& model, const std::string& name) {
  for (int j = 0; j < model.num_joints; ++j)
    if (model.joint_names[static_cast<std::size_t>(j)] == name) return j;
  throw std::invalid_argument("joint '" + name + "': " + no_such("joint", name, model.joint_names));
}

JointView view_of(const Model& model, const std::string& name) {
  static const char* types[] = {"free", "ball", "slide", "hinge"};
  const int j = joint_of(model, name);
  const auto at = static_cast<std::size_t>(j);
  const JointType type = model.joint_type[at];
  JointView out;
  out.name = name, out.type = types[static_cast<int>(type)];
  out.body = model.body_names[static_cast<std::size_t>(model.joint_body[at])];
  out.index = j, out.q = model.joint_q[at], out.v = model.joint_v[at];
  out.nq = num_positions(type), out.nv = num_velocities(type);
  out.limits = nb::none();
  if (model.joint_limited[at]) out.limits = nb::make_tuple(model.joint_lower[at], model.joint_upper[at]);
  return out;
}

nb::slice slice_of(int first, int size) { return nb::slice(first, first + size, 1); }

const Keyframe& keyframe_of(const Model& model, nb::handle keyframe) {
  if (nb::isinstance<nb::str>(keyframe)) {
    const std::string name = nb::cast<std::string>(keyframe);
    std::vector<std::string> names;
    for (const Keyframe& k : model.keyframes) {
      if (k.name == name) return k;
      names.push_back(k.name);
    }
    throw std::invalid_argument("keyframe '" + name + "': " + no_such("keyframe", name, names));
  }
  if (!PyLong_Check(keyframe.ptr())) throw nb::type_error("keyframe: expected a name or a number");
  const auto index = nb::cast<long long>(keyframe);
  if (index < 0 || index >= static_cast<long long>(model.keyframes.size()))
    throw std::invalid_argument("keyframe: got " + std::to_string(index) + ", the model has " +
                                std::to_string(model.keyframes.size()));
  return model.keyframes[static_cast<std::size_t>(index)];
}

/// One joint's part of q or of v.
void set_joint(const Model& model, const std::string& name, nb::handle value, bool velocity, double* x) {
  const auto j = static_cast<std::size_t>(joint_of(model, name));
  const JointType type = model.joint_type[j];
  const int size = velocity ? num_velocities(type) : num_positions(type);
  const std::string what = std::string(velocity ? "v" : "q") + " of joint '" + name + "'";
  const nb::object row = nb::module_::import_("numpy").attr("atleast_1d")(value);
  const ArrayIn numbers(row, what.c_str(), {size});
  numbers.finite(what.c_str());
  std::copy_n(numbers.data(), size, x + (velocity ? model.joint_v[j] : model.joint_q[j]));
}

/// A whole vector, a dict of joints, or None.
void set_part(const Model& model, nb::handle given, bool velocity, std::vector<double>& x) {
  if (given.is_none()) return;
  if (nb::isinstance<nb::dict>(given)) {
    for (auto [name, value] : nb::borrow<nb::dict>(given)) {
      if (!nb::isinstance<nb::str>(name)) throw nb::type_error("state: names of joints are strings");
      set_joint(model, nb::cast<std::string>(name), value, velocity, x.data());
    }
    return;
  }
  const char* what = velocity ? "v" : "q";
  const ArrayIn whole(given, what, {static_cast<Py_ssize_t>(x.size())});
  whole.finite(what);
  x = whole.vector();
}

/// normalize_configuration, but not of what has no direction.
void scale_quaternions(const Model& model, std::vector<double>& q) {
  for (std::size_t j = 0; j < model.joint_type.size(); ++j) {
    const JointType type = model.joint_type[j];
    if (type != JointType::free && type != JointType::ball) continue;
    const double* x = q.data() + model.joint_q[j] + (type == JointType::free ? 3 : 0);
    const double norm = std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
    if (!(norm > 1e-6) || !std::isfinite(norm))
      throw std::invalid_argument("q of joint '" + model.joint_names[j] + "': a quaternion of norm " +
                                  std::to_string(norm) + " is not a rotation");
  }
  normalize_configuration(model, q.data());
}

nb::object state(const Model& model, nb::handle q, nb::handle v, nb::handle keyframe, const nb::kwargs& joints) {
  std::vector<double> q_out(static_cast<std::size_t>(model.nq)), v_out(static_cast<std::size_t>(model.nv));
  neutral(model, q_out.data());
  if (!keyframe.is_none()) {
    const Keyframe& from = keyframe_of(model, keyframe);
    q_out = from.q, v_out = from.v;
  }
  set_part(model, q, false, q_out);
  set_part(model, v, true, v_out);
  for (auto [name, value] : joints) set_joint(model, nb::cast<std::string>(name), value, false, q_out.data());
  scale_quaternions(model, q_out);
  return nb::make_tuple(to_numpy(q_out), to_numpy(v_out));
}

}  // namespace

void bind_names(nb::class_<Model>& cls) {
  nb::class_<JointView>(cls, "Joint", "A joint of a model: where its coordinates are in q and in v.")
      .def_ro("name", &JointView::name, "Its name.")
      .def_ro("index", &JointView::index, "Index into Model.joint_names and its kin.")
      .def_ro("type", &JointView::type, "'free', 'ball', 'slide' or 'hinge'.")
      .def_ro("body", &JointView::body, "Name of the body that it moves.")
      .def_prop_ro(
          "q", [](const JointView& j) { return slice_of(j.q, j.nq); }, nb::sig("def q(self) -> slice"),
          "Its part of q: q[joint.q].")
      .def_prop_ro(
          "v", [](const JointView& j) { return slice_of(j.v, j.nv); }, nb::sig("def v(self) -> slice"),
          "Its part of v and of tangent vectors: v[joint.v].")
      .def_ro("limits", &JointView::limits, "(lower, upper) in m or rad (ball: 0 and the largest angle), or None.")
      .def("__repr__", [](const JointView& j) { return "<Joint " + j.name + ", " + j.type + ">"; });

  cls.def(
      "joint", &view_of, nb::arg("name"),
      "The Joint of that name: q[model.joint('knee').q], v[model.joint('knee').v].\n\nValueError: unknown name, with "
      "those that resemble it.");
  cls.def(
      "state", &state, nb::arg("q") = nb::none(), nb::arg("v") = nb::none(), nb::kw_only(),
      nb::arg("keyframe") = nb::none(), nb::arg("joints"),
      nb::sig("def state(self, q: dict[str, numpy.typing.ArrayLike] | numpy.ndarray | None = None, v: dict[str, "
              "numpy.typing.ArrayLike] | numpy.ndarray | None = None, *, keyframe: str | int | None = None, **joints: "
              "numpy.typing.ArrayLike) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "q (nq,) and v (nv,) by the names of joints: model.state(knee=0.9), model.state({'knee': 0.9}, v={'knee': "
      "-1}). q, v: a dict of joints (as many numbers as the joint has coordinates), or the whole vector. Joints that "
      "are not named are neutral and at rest, or as in that keyframe (name or number). Quaternions are scaled to unit "
      "length.\n\nValueError: unknown name, with those that resemble it; wrong size, NaN, a quaternion of length "
      "zero.");
}

}  // namespace coulomb::python

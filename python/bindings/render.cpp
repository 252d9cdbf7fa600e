// Rasteriser: pictures of surfaces. What a model looks like is put together in coulomb.view.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "arrays.hpp"
#include "coulomb/render/rasteriser.hpp"
#include "module.hpp"
#include "one_call.hpp"

namespace coulomb::python {

namespace {

struct RasteriserObject : render::Rasteriser {
  using Rasteriser::Rasteriser;
  static constexpr const char* busy_text = "Renderer: another call is running; use one renderer per thread";
  std::atomic<bool> busy{false};
  render::Frame frame;
};

/// Corners of triangles come as numbers of any kind; what is no int becomes one that no surface has.
std::vector<int> corners_of(const ArrayIn& in) {
  std::vector<int> out(in.size());
  std::transform(in.data(), in.data() + in.size(), out.begin(), [](double x) {
    const bool fits = x >= 0 && x <= std::numeric_limits<int>::max();
    return fits ? static_cast<int>(x) : -1;
  });
  return out;
}

int add_surface(RasteriserObject& self, nb::handle positions, nb::handle normals, nb::handle triangles, bool closed,
                nb::handle shadow_triangles) {
  const Idle idle(self);
  const ArrayIn p(positions, "positions", {-1, 3});
  const ArrayIn n(normals, "normals", {p.shape(0), 3});
  const ArrayIn t(triangles, "triangles", {-1, 3});
  const ArrayIn s(shadow_triangles, "shadow_triangles", {-1, 3});
  const std::vector<int> corners = corners_of(t);
  const std::vector<int> shadow = corners_of(s);
  render::SurfaceArrays arrays;
  arrays.positions = p.data();
  arrays.normals = n.data();
  arrays.vertices = static_cast<int>(p.shape(0));
  arrays.triangles = corners.data();
  arrays.count = static_cast<int>(t.shape(0));
  arrays.closed = closed;
  arrays.shadow_triangles = shadow.data();
  arrays.shadow_count = static_cast<int>(s.shape(0));
  return self.add_surface(arrays);
}

template <class To>
void take(const double*& from, To* to, int count) {
  for (int i = 0; i < count; ++i) to[i] = static_cast<To>(*from++);
}

/// camera: position, axes, focal, nearest.
void look(render::Camera& camera, const ArrayIn& in) {
  const double* from = in.data();
  take(from, camera.position, 3);
  take(from, camera.axes, 9);
  take(from, &camera.focal, 1);
  take(from, &camera.nearest, 1);
}

/// Each row: origin, axes, length of a square, two colours.
void lay(std::vector<render::Floor>& floors, const ArrayIn& in) {
  floors.resize(in.shape(0));
  const double* from = in.data();
  for (render::Floor& floor : floors) {
    take(from, floor.origin, 3);
    take(from, floor.axes, 9);
    take(from, &floor.square, 1);
    take(from, &floor.colours[0][0], 6);
  }
}

/// Each row: surface, linear part, origin, rgba, whether it casts a shadow, whether it is in front of all that is not.
void place(std::vector<render::Instance>& instances, const ArrayIn& in) {
  instances.resize(in.shape(0));
  const double* from = in.data();
  for (render::Instance& instance : instances) {
    const double surface = *from++;
    instance.surface = surface >= 0 && surface <= std::numeric_limits<int>::max() ? static_cast<int>(surface) : -1;
    take(from, instance.linear, 9);
    take(from, instance.origin, 3);
    take(from, instance.rgba, 4);
    instance.casts_shadow = *from++ != 0;
    instance.in_front = *from++ != 0;
  }
}

/// A new array, and where its elements are.
nb::object empty(nb::tuple shape, const char* type, void** data) {
  nb::object array = nb::module_::import_("numpy").attr("empty")(shape, type);
  *data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(array.attr("ctypes").attr("data")));
  return array;
}

nb::object draw(RasteriserObject& self, nb::handle camera, nb::handle light, nb::handle sky, double fade,
                nb::handle floors, nb::handle instances, bool with_depth) {
  const Idle idle(self);
  look(self.frame.camera, ArrayIn(camera, "camera", {14}));
  const ArrayIn towards(light, "light", {3});
  std::copy_n(towards.data(), 3, self.frame.light);
  const ArrayIn colours(sky, "sky", {2, 3});
  const double* from = colours.data();
  take(from, &self.frame.sky[0][0], 6);
  self.frame.fade = fade;
  lay(self.frame.floors, ArrayIn(floors, "floors", {-1, 19}));
  place(self.frame.instances, ArrayIn(instances, "instances", {-1, 19}));

  void* rgb = nullptr;
  void* depth = nullptr;
  nb::object picture = empty(nb::make_tuple(self.height(), self.width(), 3), "uint8", &rgb);
  nb::object depths = nb::none();
  if (with_depth) depths = empty(nb::make_tuple(self.height(), self.width()), "float32", &depth);
  {
    const nb::gil_scoped_release release;
    self.render(self.frame, static_cast<std::uint8_t*>(rgb), static_cast<float*>(depth));
  }
  return nb::make_tuple(picture, depths);
}

}  // namespace

void bind_render(nb::module_& module) {
  nb::class_<RasteriserObject>(module, "Rasteriser", "What coulomb.Renderer draws with: surfaces, floors and a light.")
      .def(nb::init<int, int, int>(), nb::arg("width"), nb::arg("height"), nb::arg("num_threads") = 1)
      .def(
          "add_surface", &add_surface, nb::arg("positions"), nb::arg("normals"), nb::arg("triangles"),
          nb::arg("closed"), nb::arg("shadow_triangles"),
          "The number of a surface: vertices (n, 3) m with normals (n, 3), triangles (m, 3) that are counter-clockwise "
          "seen from outside; closed: its inside is never seen; those (k, 3) that cast its shadow.")
      .def("render", &draw, nb::arg("camera"), nb::arg("light"), nb::arg("sky"), nb::arg("fade"), nb::arg("floors"),
           nb::arg("instances"), nb::arg("with_depth"),
           "(rgb (height, width, 3) uint8, depth (height, width) float32 or None). camera (14): position, rows right, "
           "up, "
           "forward, focal length in pixels, nearest. floors (k, 19): origin, axes, square, two colours. instances "
           "(n, 19): surface, linear part, origin, rgba, whether it casts a shadow, whether it is in front of all that "
           "is not.");
}

}  // namespace coulomb::python

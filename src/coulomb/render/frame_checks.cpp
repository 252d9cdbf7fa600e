#include "coulomb/render/frame_checks.hpp"

#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "coulomb/base/small_math.hpp"
#include "coulomb/render/background.hpp"

namespace coulomb::render {

namespace {

constexpr double largest = 1e9;  // of any coordinate: products of them stay far from the limits of single precision

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

/// Of an argument, or of a member of an element of a list. Text only where it is needed: a frame like the one before allocates nothing.
struct Name {
  const char* list;
  int index = -1;
  const char* member = "";

  Name(const char* argument) : list(argument) {}
  Name(const char* of_list, int element, const char* of_element = "")
      : list(of_list), index(element), member(of_element) {}
  std::string text() const {
    std::string out = list;
    if (index >= 0) {
      out.append("[").append(std::to_string(index)).append("]").append(member);
    }
    return out;
  }
  std::string entry(int i) const { return text() + "[" + std::to_string(i) + "]"; }
};

[[noreturn]] void refuse(const std::string& name, double value, const std::string& expected) {
  throw std::invalid_argument(name + ": got " + number(value) + ", expected " + expected);
}

void check_finite(const Name& name, const double* values, int count) {
  for (int i = 0; i < count; ++i)
    if (!(std::abs(values[i]) <= largest)) {
      refuse(name.entry(i), values[i], "a finite number of at most 1e9");
    }
}

void check_positive(const Name& name, double value) {
  if (!(value > 0 && value <= largest)) {
    refuse(name.text(), value, "a finite number > 0");
  }
}

/// Rows of unit length, square to one another.
void check_axes(const Name& name, const double* axes) {
  check_finite(name, axes, 9);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j) {
      const double product = dot3(axes + 3 * i, axes + 3 * j);
      if (!(std::abs(product - (i == j ? 1 : 0)) < 1e-6))
        throw std::invalid_argument(name.text() + ": rows " + std::to_string(j) + " and " + std::to_string(i) +
                                    " have the product " + number(product) + ", expected an orthonormal matrix");
    }
}

void check_direction(const Name& name, const double* direction) {
  check_finite(name, direction, 3);
  if (!(norm3(direction) > 1e-12)) {
    throw std::invalid_argument(name.text() + ": has no length, so no direction");
  }
}

void check_colour(const Name& name, const float* values, int count) {
  for (int i = 0; i < count; ++i)
    if (!(values[i] >= 0 && values[i] <= 1)) {
      refuse(name.entry(i), values[i], "0 to 1");
    }
}

void check_corners(const char* name, const int* corners, int count, int vertices) {
  for (int i = 0; i < 3 * count; ++i)
    if (corners[i] < 0 || corners[i] >= vertices)
      refuse(Name(name).entry(i / 3), corners[i], "a vertex, 0 to " + std::to_string(vertices - 1));
}

}  // namespace

void check_size(const char* name, int value) {
  if (value < 1 || value > largest_size) {
    refuse(name, value, "1 to " + std::to_string(largest_size) + " pixels");
  }
}

void check(const SurfaceArrays& surface) {
  if (surface.vertices < 1) {
    refuse("vertices", surface.vertices, "at least one");
  }
  check_finite("positions", surface.positions, 3 * surface.vertices);
  for (int i = 0; i < surface.vertices; ++i)
    check_direction({"normals", i}, surface.normals + 3 * i);
  check_corners("triangles", surface.triangles, surface.count, surface.vertices);
  if (surface.shadow_triangles != nullptr)
    check_corners("shadow_triangles", surface.shadow_triangles, surface.shadow_count, surface.vertices);
}

void check(const Frame& frame, int num_surfaces) {
  check_finite("camera.position", frame.camera.position, 3);
  check_axes("camera.axes", frame.camera.axes);
  check_positive("camera.focal", frame.camera.focal);
  check_positive("camera.nearest", frame.camera.nearest);
  check_direction("light", frame.light);
  check_colour("sky", &frame.sky[0][0], 6);
  check_positive("fade", frame.fade);

  if (static_cast<int>(frame.floors.size()) > Background::most_floors)
    refuse("floors", static_cast<double>(frame.floors.size()), "at most " + std::to_string(Background::most_floors));
  for (int k = 0; k < static_cast<int>(frame.floors.size()); ++k) {
    const Floor& floor = frame.floors[k];
    check_finite({"floors", k, ".origin"}, floor.origin, 3);
    check_axes({"floors", k, ".axes"}, floor.axes);
    check_positive({"floors", k, ".square"}, floor.square);
    check_colour({"floors", k, ".colours"}, &floor.colours[0][0], 6);
  }
  for (int k = 0; k < static_cast<int>(frame.instances.size()); ++k) {
    const Instance& instance = frame.instances[k];
    if (instance.surface < 0 || instance.surface >= num_surfaces)
      refuse(Name("instances", k, ".surface").text(), instance.surface,
             "one of the " + std::to_string(num_surfaces) + " that were added");
    check_finite({"instances", k, ".linear"}, instance.linear, 9);
    check_finite({"instances", k, ".origin"}, instance.origin, 3);
    check_colour({"instances", k, ".rgba"}, instance.rgba, 4);
  }
}

}  // namespace coulomb::render

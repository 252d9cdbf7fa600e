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
    if (index < 0) return out;

    // An element, or its member.
    out.append("[").append(std::to_string(index)).append("]");
    out.append(member);
    return out;
  }
  std::string entry(int i) const { return text() + "[" + std::to_string(i) + "]"; }
};

[[noreturn]] void refuse(const std::string& name, double value, const std::string& expected) {
  throw std::invalid_argument(name + ": got " + number(value) + ", expected " + expected);
}

/// No entry is infinite or too large to be computed with.
void check_finite(const Name& name, const double* values, int count) {
  for (int i = 0; i < count; ++i) {
    const bool small = std::abs(values[i]) <= largest;
    if (small) continue;
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
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j <= i; ++j) {
      const double product = dot3(axes + 3 * i, axes + 3 * j);
      const double wanted = i == j ? 1 : 0;
      if (std::abs(product - wanted) < 1e-6) continue;
      const std::string rows = "rows " + std::to_string(j) + " and " + std::to_string(i);
      throw std::invalid_argument(name.text() + ": " + rows + " have the product " + number(product) +
                                  ", expected an orthonormal matrix");
    }
  }
}

/// A vector with a direction.
void check_direction(const Name& name, const double* direction) {
  check_finite(name, direction, 3);
  if (!(norm3(direction) > 1e-12)) {
    throw std::invalid_argument(name.text() + ": has no length, so no direction");
  }
}

/// Channels, 0 to 1.
void check_colour(const Name& name, const float* values, int count) {
  for (int i = 0; i < count; ++i)
    if (!(values[i] >= 0 && values[i] <= 1)) {
      refuse(name.entry(i), values[i], "0 to 1");
    }
}

/// Triangles of vertices that there are.
void check_corners(const char* name, const int* corners, int count, int vertices) {
  for (int i = 0; i < 3 * count; ++i) {
    const int corner = corners[i];
    if (corner >= 0 && corner < vertices) continue;
    const std::string expected = "a vertex, 0 to " + std::to_string(vertices - 1);
    refuse(Name(name).entry(i / 3), corner, expected);
  }
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
  // Camera and light.
  check_finite("camera.position", frame.camera.position, 3);
  check_axes("camera.axes", frame.camera.axes);
  check_positive("camera.focal", frame.camera.focal);
  check_positive("camera.nearest", frame.camera.nearest);
  check_direction("light", frame.light);
  check_colour("sky", &frame.sky[0][0], 6);
  check_positive("fade", frame.fade);

  // Floors.
  const int num_floors = static_cast<int>(frame.floors.size());
  if (num_floors > Background::most_floors) {
    refuse("floors", num_floors, "at most " + std::to_string(Background::most_floors));
  }
  for (int k = 0; k < num_floors; ++k) {
    const Floor& floor = frame.floors[k];
    check_finite({"floors", k, ".origin"}, floor.origin, 3);
    check_axes({"floors", k, ".axes"}, floor.axes);
    check_positive({"floors", k, ".square"}, floor.square);
    check_colour({"floors", k, ".colours"}, &floor.colours[0][0], 6);
  }

  // Instances.
  const int num_instances = static_cast<int>(frame.instances.size());
  for (int k = 0; k < num_instances; ++k) {
    const Instance& instance = frame.instances[k];
    if (instance.surface < 0 || instance.surface >= num_surfaces) {
      const std::string name = Name("instances", k, ".surface").text();
      refuse(name, instance.surface, "one of the " + std::to_string(num_surfaces) + " that were added");
    }
    check_finite({"instances", k, ".linear"}, instance.linear, 9);
    check_finite({"instances", k, ".origin"}, instance.origin, 3);
    check_colour({"instances", k, ".rgba"}, instance.rgba, 4);
  }
}

}  // namespace coulomb::render

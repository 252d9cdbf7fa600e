// What is left of a triangle in front of the camera and within the guard band: a convex polygon of at most eight corners.
#pragma once

namespace coulomb::render {

struct Corner {
  float X, Y, w;      // as projected
  float front, back;  // brightness of the two sides
};

struct Polygon {
  static constexpr int most = 8;  // each of the five planes adds one
  Corner corners[most];
  int count = 0;

  void add(const Corner& corner) {
    if (count < most) corners[count++] = corner;
  }
};

/// Clips `polygon` in place; fewer than three corners: nothing is left.
void clip(float nearest, Polygon& polygon);

}  // namespace coulomb::render

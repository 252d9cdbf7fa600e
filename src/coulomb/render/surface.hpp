// A surface as it is drawn: coordinates of vertices one after the other, in single precision, and a ball around them.
#pragma once

#include <vector>

namespace coulomb::render {

struct Surface {
  std::vector<float> x, y, z;     // m
  std::vector<float> nx, ny, nz;  // unit normals
  std::vector<int> triangles;     // three vertices each
  std::vector<int> shadow_triangles;
  bool closed = false;
  double centre[3] = {0, 0, 0};
  double radius = 0;

  int vertices() const { return static_cast<int>(x.size()); }
};

}  // namespace coulomb::render

// The vertices of a surface on the screen, in whole 1/32 of a pixel, and how bright each is.
#pragma once

#include <vector>

#include "coulomb/render/surface.hpp"

namespace coulomb::render {

constexpr int subpixels = 32;
// Pixels from the centre: farther out, triangles are clipped, so that the edge functions of a tile fit into 32 bits.
constexpr float guard = 8000;

/// p -> (X, Y, w): screen = centre + (X, Y) / w, w forward, all linear in p.
struct Projection {
  float linear[9];
  float origin[3];
};

/// How light falls on a surface: normals by `normals` into the world, then ambient light, light from the sky and light from the sun.
struct Lighting {
  float normals[9];
  float sun[3];  // towards it, unit
};

/// Of the surface at hand, one entry for each vertex.
struct ScreenVertices {
  std::vector<float> X, Y, w;      // as projected, for clipping
  std::vector<int> outside;        // not 0: behind the camera, or beyond the guard band
  std::vector<int> x, y;           // 1/32 pixel from the upper left corner of the picture; of those inside
  std::vector<float> inverse;      // 1 / w
  std::vector<float> front, back;  // brightness of the two sides, 1 as the colour itself

  void make_room(int count);
};

struct Screen {
  float centre_x, centre_y;  // pixels
  float nearest;             // m
  float forward = 1;         // times 1 / w: above 1 for what is in front of all else
};

void project(const Surface& surface, const Projection& projection, const Screen& screen, ScreenVertices& out);
void shade(const Surface& surface, const Lighting& lighting, ScreenVertices& out);

/// Pixels from the upper left corner to whole 1/32 of them.
inline int to_subpixels(float pixels) {
  // A positive number loses its fraction the same way everywhere.
  constexpr int bias = 1 << 19;
  return static_cast<int>(pixels * subpixels + (bias + 0.5f)) - bias;
}

}  // namespace coulomb::render

// Sky and floors behind everything: the depth of a floor at a sample, its colour at a pixel.
#pragma once

#include "coulomb/render/rasteriser.hpp"
#include "coulomb/render/triangles.hpp"

namespace coulomb::render {

/// A floor as the camera sees it, all linear in pixels (x, y) from the upper left corner: values[0] x + values[1] y + values[2].
struct SeenFloor {
  float inverse[3];   // 1 / w of the plane
  float along[2][3];  // per w, along its squares: in squares
  float start[2];     // of the point below the camera, in squares
  float colours[2][3];
};

struct Background {
  static constexpr int most_floors = 16;
  SeenFloor floors[most_floors];
  int count = 0;
  int first = -1;      // which floor of the frame floors[0] is; -1: none is seen
  float up[3];         // vertical component of the ray through a pixel, forward component 1
  float across, down;  // centre of the picture, pixels
  float inverse_focal;
  float sky[2][3];
  float fade;
};

/// Floors that the camera is above of, as it sees them.
void prepare(const Frame& frame, PictureSize size, Background& out);

/// Which part of a row is drawn, and what its pixels are seen through.
struct Row {
  int x, y, count;  // first pixel; at most tile_size
};

/// Mean colours of the pixels in a row, red in the lowest byte, alpha 255: lit, and in the shade of what stands on floor 0.
void colour(const Background& background, Row row, unsigned* lit, unsigned* shaded);

}  // namespace coulomb::render

// The triangles of a frame on the screen, and which of them each tile has to draw.
#pragma once

#include <cstdint>
#include <vector>

#include "coulomb/render/projection.hpp"
#include "coulomb/render/surface.hpp"

namespace coulomb::render {

constexpr int tile_size = 32;  // pixels
constexpr int samples = 4;     // of each pixel, in a turned square
// In 1/32 of a pixel: no two in one row or column, so that edges of any slope are soft.
constexpr int sample_x[samples] = {4, 12, 20, 28};
constexpr int sample_y[samples] = {12, 28, 4, 20};
constexpr int sample_spacing = 8;  // of the columns, and of the rows, in which samples lie
constexpr int first_sample = 4;

/// Clockwise on the screen, y down.
struct Triangle {
  int x[3], y[3];                         // 1/32 pixel
  float inverse[3];                       // 1 / w
  float light[3];                         // brightness of the side that is seen
  std::int16_t left, right, top, bottom;  // pixels, both ends included, within the picture
  bool small;                             // no larger than a tile: products of its sides fit into 32 bits
  int instance;
};

struct PictureSize {
  int width, height;
  int columns() const { return (width + tile_size - 1) / tile_size; }
  int rows() const { return (height + tile_size - 1) / tile_size; }
  int tiles() const { return columns() * rows(); }
};

/// Triangles in the order in which they came, and lists of them for each tile. Memory is kept from frame to frame.
class TriangleList {
 public:
  void clear() { triangles_.clear(); }

  enum class Sides { both, front };
  /// Those of a surface whose vertices are on the screen; `which`: three vertices each.
  void add(const std::vector<int>& which, const ScreenVertices& vertices, const Screen& screen, PictureSize size,
           Sides sides, int instance);

  /// To be called when all are there.
  void sort_into_tiles(PictureSize size);

  /// Indices of the triangles of a tile, in their order.
  const std::uint32_t* begin(int tile) const { return items_.data() + starts_[tile]; }
  const std::uint32_t* end(int tile) const { return items_.data() + starts_[tile + 1]; }
  bool touches(int tile) const { return starts_[tile] != starts_[tile + 1]; }
  const Triangle& operator[](std::uint32_t index) const { return triangles_[index]; }
  int size() const { return static_cast<int>(triangles_.size()); }

 private:
  struct Seen {
    int x, y;
    float inverse, front, back;
  };
  void add_one(Seen a, Seen b, Seen c, PictureSize size, Sides sides, int instance);
  void add_clipped(const int* corners, const ScreenVertices& vertices, const Screen& screen, PictureSize size,
                   Sides sides, int instance);

  std::vector<Triangle> triangles_;
  std::vector<std::uint32_t> starts_;  // tiles + 1
  std::vector<std::uint32_t> items_;
};

}  // namespace coulomb::render

#include "coulomb/render/triangles.hpp"

#include <algorithm>
#include <utility>

#include "coulomb/render/clipping.hpp"

namespace coulomb::render {

namespace {

/// Whether a row or column of samples lies between two coordinates. Most of the smallest triangles miss them all.
bool meets_samples(int low, int high) {
  const int first = (low - first_sample + sample_spacing - 1) >> 3;
  const int last = (high - first_sample) >> 3;
  return first <= last;
}

}  // namespace

void TriangleList::add(const std::vector<int>& which, const ScreenVertices& vertices, const Screen& screen,
                       PictureSize size, Sides sides, int instance) {
  // Triangles with a corner outside are cut first.
  for (std::size_t k = 0; k + 2 < which.size(); k += 3) {
    const int* corners = which.data() + k;
    const auto of = [&](int i) {
      const int v = corners[i];
      return Seen{vertices.x[v], vertices.y[v], vertices.inverse[v], vertices.front[v], vertices.back[v]};
    };
    if (vertices.outside[corners[0]] | vertices.outside[corners[1]] | vertices.outside[corners[2]])
      add_clipped(corners, vertices, screen, size, sides, instance);
    else
      add_one(of(0), of(1), of(2), size, sides, instance);
  }
}

void TriangleList::add_clipped(const int* corners, const ScreenVertices& vertices, const Screen& screen,
                               PictureSize size, Sides sides, int instance) {
  // As projected, before the division.
  Polygon polygon;
  for (int i = 0; i < 3; ++i) {
    const int v = corners[i];
    polygon.add({vertices.X[v], vertices.Y[v], vertices.w[v], vertices.front[v], vertices.back[v]});
  }
  clip(screen.nearest, polygon);

  // A fan; rounding may leave corners a hair outside.
  Seen seen[Polygon::most];
  for (int i = 0; i < polygon.count; ++i) {
    const Corner& c = polygon.corners[i];
    const float inverse = 1.0f / std::max(c.w, screen.nearest);
    const float across = std::min(std::max(c.X * inverse, -guard), guard);
    const float down = std::min(std::max(c.Y * inverse, -guard), guard);
    seen[i] = {to_subpixels(screen.centre_x + across), to_subpixels(screen.centre_y + down), screen.forward * inverse,
               c.front, c.back};
  }
  for (int i = 2; i < polygon.count; ++i)
    add_one(seen[0], seen[i - 1], seen[i], size, sides, instance);
}

void TriangleList::add_one(Seen a, Seen b, Seen c, PictureSize size, Sides sides, int instance) {
  // Outward faces are counter-clockwise for who looks at them, y up: their area is negative here. All are turned clockwise.
  const auto ux = static_cast<std::int64_t>(b.x - a.x);
  const auto uy = static_cast<std::int64_t>(b.y - a.y);
  const auto vx = static_cast<std::int64_t>(c.x - a.x);
  const auto vy = static_cast<std::int64_t>(c.y - a.y);
  const std::int64_t area = ux * vy - uy * vx;
  const bool is_front = area < 0;
  if (area == 0 || (sides == Sides::front && !is_front)) return;
  if (is_front) std::swap(b, c);

  // Pixels that it may cover.
  const int low_x = std::min({a.x, b.x, c.x});
  const int high_x = std::max({a.x, b.x, c.x});
  const int low_y = std::min({a.y, b.y, c.y});
  const int high_y = std::max({a.y, b.y, c.y});
  if (!meets_samples(low_x, high_x) || !meets_samples(low_y, high_y)) return;
  const int left = std::max(low_x >> 5, 0);
  const int right = std::min(high_x >> 5, size.width - 1);
  const int top = std::max(low_y >> 5, 0);
  const int bottom = std::min(high_y >> 5, size.height - 1);
  if (left > right || top > bottom) return;

  // What tiles need of it.
  Triangle t;
  const Seen* corners[3] = {&a, &b, &c};
  for (int i = 0; i < 3; ++i) {
    t.x[i] = corners[i]->x;
    t.y[i] = corners[i]->y;
    t.inverse[i] = corners[i]->inverse;
    t.light[i] = is_front ? corners[i]->front : corners[i]->back;
  }
  t.left = static_cast<std::int16_t>(left);
  t.right = static_cast<std::int16_t>(right);
  t.top = static_cast<std::int16_t>(top);
  t.bottom = static_cast<std::int16_t>(bottom);
  t.small = high_x - low_x < tile_size * subpixels && high_y - low_y < tile_size * subpixels;
  t.instance = instance;
  triangles_.push_back(t);
}

void TriangleList::sort_into_tiles(PictureSize size) {
  const int columns = size.columns();
  const auto for_each_tile = [columns](const Triangle& t, auto&& visit) {
    for (int row = t.top / tile_size; row <= t.bottom / tile_size; ++row)
      for (int column = t.left / tile_size; column <= t.right / tile_size; ++column)
        visit(row * columns + column);
  };

  // How many there are in each tile; from that, where the list of each begins.
  starts_.assign(static_cast<std::size_t>(size.tiles()) + 1, 0);
  for (const Triangle& t : triangles_)
    for_each_tile(t, [this](int tile) { ++starts_[tile + 1]; });
  for (int tile = 0; tile < size.tiles(); ++tile)
    starts_[tile + 1] += starts_[tile];
  items_.resize(starts_[size.tiles()]);

  // starts_[tile] moves to the end of its list while it is filled, which is where the next one begins.
  for (std::uint32_t index = 0; index < triangles_.size(); ++index)
    for_each_tile(triangles_[index], [&](int tile) { items_[starts_[tile]++] = index; });
  for (int tile = size.tiles(); tile > 0; --tile)
    starts_[tile] = starts_[tile - 1];
  starts_[0] = 0;
}

}  // namespace coulomb::render

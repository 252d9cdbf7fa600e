#include "coulomb/render/clipping.hpp"

#include "coulomb/render/projection.hpp"

namespace coulomb::render {

namespace {

/// >= 0: the corner is inside of plane 0 (the nearest) to 4.
float inside_of(int plane, const Corner& c, float nearest) {
  switch (plane) {
    case 0: return c.w - nearest;
    case 1: return guard * c.w - c.X;
    case 2: return guard * c.w + c.X;
    case 3: return guard * c.w - c.Y;
    default: return guard * c.w + c.Y;
  }
}

/// Always from the inside out: triangles that share the edge get the same corner.
Corner crossing(const Corner& inside, float d_inside, const Corner& outside, float d_outside) {
  const float t = d_inside / (d_inside - d_outside);
  Corner c;
  c.X = inside.X + t * (outside.X - inside.X);
  c.Y = inside.Y + t * (outside.Y - inside.Y);
  c.w = inside.w + t * (outside.w - inside.w);
  c.front = inside.front + t * (outside.front - inside.front);
  c.back = inside.back + t * (outside.back - inside.back);
  return c;
}

}  // namespace

void clip(float nearest, Polygon& polygon) {
  for (int plane = 0; plane < 5 && polygon.count >= 3; ++plane) {
    const Polygon before = polygon;
    polygon.count = 0;
    for (int i = 0; i < before.count; ++i) {
      const Corner& a = before.corners[i];
      const Corner& b = before.corners[(i + 1) % before.count];
      const float da = inside_of(plane, a, nearest);
      const float db = inside_of(plane, b, nearest);
      if (da >= 0) polygon.add(a);
      if (da >= 0 && db < 0) {
        polygon.add(crossing(a, da, b, db));
      }
      if (da < 0 && db >= 0) {
        polygon.add(crossing(b, db, a, da));
      }
    }
  }
}

}  // namespace coulomb::render

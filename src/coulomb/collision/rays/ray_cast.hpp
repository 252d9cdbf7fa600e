// Rays against shapes: x(t) = o + t d, t >= 0. A ray meets a surface from outside, or from within where it begins inside; a half-space from
// outside only. Where the surface at the hit moves by u (world) and the ray by do, dd,
//
//   dt = n . (u - do - t dd) / (n . d)
//
// n is the surface's outward normal there. Edges, and places that the ray grazes, are kinks: t jumps, or its derivative does.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "coulomb/collision/shape.hpp"

namespace coulomb {

struct Ray {
  double origin[3];     ///< world
  double direction[3];  ///< unit
};

struct SurfaceHit {
  int geometry = -1;             ///< -1: nothing
  double t = -1;                 ///< m
  double normal[3] = {0, 0, 0};  ///< world, unit, outward
  int part =
      0;  ///< of the surface. Capsule and cylinder: 0 the side, +-1 an end; box: axis; mesh: face; surface: triangle
};

/// The first hit of one shape before `reach`; out.geometry is left as it is. False: there is none.
bool ray_meets(const Shape& shape, const Ray& ray, double reach, SurfaceHit& out);

/// How fast the surface at a hit moves along its normal, per metre of each of Model::geometry_size; and per metre of the vertices that carry
/// it, in the frame of the geometry.
void hit_by_size(const Shape& shape, const Ray& ray, const SurfaceHit& hit, double by_size[3]);
void hit_by_vertices(const Shape& shape, const Ray& ray, const SurfaceHit& hit,
                     std::vector<std::pair<int, std::array<double, 3>>>& by_vertex);

}  // namespace coulomb

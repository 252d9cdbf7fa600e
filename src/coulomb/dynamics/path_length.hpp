// Lengths of shortest paths between two points, straight or around a sphere or a cylinder, with their first two derivatives. Spatial tendons
// are made of them (MuJoCo's rules of wrapping).
#pragma once

namespace coulomb {

/// The length of a path from a to b, as a function of (a, b) in the obstacle's frame.
struct PathLength {
  double length = 0;
  double gradient[6] = {0};
  double hessian[6][6] = {{0}};
  bool at_kink = false;  ///< the wrap is about to begin or to end: the Hessian jumps there
};

enum class WrapShape { sphere, cylinder };

/// |b - a|. Of points that coincide gradient and Hessian are zero, a kink.
PathLength straight_path(const double* a, const double* b);

/// The slider of a crank (MuJoCo's slidercrank): from a, the end of the crank, a rod leads to a slider on the z axis; the length is the slider's
/// coordinate, z_a - sqrt(rod^2 - x_a^2 - y_a^2). Where the rod is too short it is z_a, a kink at the border.
PathLength slider_path(double rod, const double* a);

/// The path around a sphere at the origin, or a cylinder without ends along z. side: a point; outside the obstacle it says on which side the
/// path passes, inside it (within `radius` of the origin) that the path touches the obstacle from within. Null: the shorter way round.
/// False: the path does not touch the obstacle and is straight; out.at_kink then says whether it is about to.
bool wrapped_path(WrapShape shape, double radius, const double* a, const double* b, const double* side,
                  PathLength& out);

}  // namespace coulomb

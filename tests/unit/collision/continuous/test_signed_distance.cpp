// The signed distance of every pair of shapes proves itself: its normal separates by it, its witnesses lie on both shapes, and no
// other direction separates more; where the shapes touch, the contact points agree.
#include "check.hpp"
#include "collision/all_pairs.hpp"
#include "coulomb/collision/continuous/signed_distance.hpp"

namespace coulomb::test {
namespace {

int checked = 0, apart = 0, shallow = 0, rough = 0, proven = 0;

void check_pair(const PairState& state, Random& random) {
  const Shape a = state.shape_a(), b = state.shape_b();
  SignedDistance d, flipped;
  signed_distance(a, b, d);
  signed_distance(b, a, flipped);
  const double tiny = 1e-12 * state.total + 1e-14 * norm3(b.position);
  ++checked, apart += d.distance > 0, shallow += d.distance <= 0 && d.distance > -0.2 * state.size;
  CHECK_NEAR(norm3(d.normal), 1, 1e-12);
  CHECK_NEAR(d.distance, flipped.distance, 1e-9 * state.total);
  for (int i = 0; i < 3; ++i) CHECK_NEAR(d.point_a[i] - d.point_b[i], d.distance * d.normal[i], 1e-8 * state.total);
  const bool plane = a.type == ShapeType::half_space || b.type == ShapeType::half_space;
  if (!plane) {
    CHECK(d.distance <= support_gap(a, b, d.normal) + tiny);
    // Overlapping shapes have several locally best directions; a cylinder's may be a little worse than the best.
    const double slack = d.distance > 0 ? 1e-6 * d.distance : -0.5 * d.distance;
    if (d.distance > -0.2 * state.size)
      CHECK(d.distance >= best_gap(a, b, d.normal, random) - 1e-11 * state.total - slack);
  }
  if (!plane) {
    CHECK(!is_farther(a, b, d.distance + 1e-9 * state.total));
    if (is_farther(a, b, d.distance - 0.3 * state.total)) ++proven;
  }
  if (outside(a, d.point_a) > 1e-9 * state.total || outside(b, d.point_b) > 1e-9 * state.total) ++rough;
  if (std::abs(d.distance) > 1e-5 * state.size) return;
  CollisionCache cache;
  CollisionWorkspace workspace(state.scene.model);
  const auto contacts = contacts_of(state.scene, {.stateless = true, .frozen_cache = true}, cache, workspace);
  const auto is = [&](ShapeType x, ShapeType y) { return a.type == x && b.type == y; };
  const bool leaning =
      b.type == ShapeType::cylinder || a.type == ShapeType::cylinder || is(ShapeType::capsule, ShapeType::capsule);
  const double above = (leaning ? 6e-3 : 1e-8) * state.total;  // merged faces of meshes are flat to 1e-6
  CHECK(!contacts.empty() && deepest(contacts).distance >= d.distance - 1e-9 * state.total);
  CHECK(!contacts.empty() && deepest(contacts).distance <= d.distance + above);
}

/// The second body at a chosen distance along the normal of the first guess.
void bring_to(PairState& state, double distance) {
  SignedDistance d;
  for (int i = 0; i < 8; ++i) {
    signed_distance(state.shape_a(), state.shape_b(), d);
    for (int k = 0; k < 3; ++k) state.scene.body_position(2)[k] += (d.distance - distance) * d.normal[k];
  }
}

}  // namespace
}  // namespace coulomb::test

int main() {
  using namespace coulomb;
  using namespace coulomb::test;
  Random random;
  for (int a = 0; a < 7; ++a)
    for (int b = std::max(a, 1); b < 7; ++b)
      for (int k = 0; k < 24; ++k) {
        const Geometry ga = random_geometry(ShapeType(a), random.uniform(0.05, 1), k % 2 ? 10 : 2, random);
        const Geometry gb = random_geometry(ShapeType(b), random.uniform(0.05, 1), k % 2 ? 10 : 2, random);
        PairState state(ga, gb, k % 3 == 0 ? 0.01 : -1, k % 4 == 0, random);
        check_pair(state, random);
        for (const double share : {1.0, 1e-3, 1e-6, 1e-9, 0.0, -1e-6, -1e-3, -0.1}) {
          bring_to(state, share * state.size);
          check_pair(state, random);
        }
      }
  Geometry plane{ShapeType::half_space, {0, 0, 0}, nullptr};
  PairState planes(plane, plane, -1, true, random);
  SignedDistance d;
  signed_distance(planes.shape_a(), planes.shape_b(), d);
  CHECK(d.distance == 1e30);
  CHECK(apart > checked / 3 && shallow > checked / 5);
  CHECK(proven > checked / 8);
  CHECK(rough <= checked / 200);
  std::printf("%d poses, %d apart, %d shallow, %d with approximate witnesses\n", checked, apart, shallow, rough);
  return report();
}

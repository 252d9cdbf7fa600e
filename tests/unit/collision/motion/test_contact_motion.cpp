// contact_motion against central differences of detect_contacts on random poses of two moving bodies, for every pair of
// shapes. A sample is skipped when the perturbed detections do not return the same features (a kink) or when the
// fall-back is declared.
#include <algorithm>
#include <cstring>
#include <string>

#include "check.hpp"
#include "collision/scene.hpp"

using namespace coulomb;
using namespace coulomb::test;

namespace {

struct Named {
  const char* name;
  ShapeType type;
  double size[3];
  std::shared_ptr<const ConvexMesh> mesh;
};

std::vector<Named> shapes() {
  return {{"half-space", ShapeType::half_space, {0, 0, 0}, nullptr},
          {"sphere", ShapeType::sphere, {0.11, 0, 0}, nullptr},
          {"capsule", ShapeType::capsule, {0.07, 0.15, 0}, nullptr},
          {"cylinder", ShapeType::cylinder, {0.09, 0.12, 0}, nullptr},
          {"box", ShapeType::box, {0.1, 0.13, 0.08}, nullptr},
          {"ellipsoid", ShapeType::ellipsoid, {0.08, 0.11, 0.14}, nullptr},
          {"mesh", ShapeType::mesh, {0, 0, 0}, faceted_ellipsoid(0.1, 0.12, 0.09, 3, 6)}};
}

const Contact* find(const std::vector<Contact>& contacts, const Contact& like) {
  for (const Contact& c : contacts)
    if (c.feature == like.feature && c.rule == like.rule && c.reference_on_a == like.reference_on_a &&
        c.a.num_flat == like.a.num_flat && c.b.num_flat == like.b.num_flat)
      return &c;
  return nullptr;
}

struct Tally {
  int compared = 0, kinks = 0, frozen = 0;
  double worst = 0;
};

/// One contact, twelve columns, fourth-order central differences.
void compare(Scene& scene, const CollisionOptions& options, const CollisionCache& cache, CollisionWorkspace& w,
             const Contact& contact, Tally& tally) {
  ContactMotion motion;
  contact_motion(contact, motion);
  if (motion.frozen) {
    ++tally.frozen;
    return;
  }
  const double h = 1e-5;
  double error = 0, scale = 1;
  for (int column = 0; column < 12; ++column) {
    const double steps[4] = {h, -h, 2 * h, -2 * h}, weight[4] = {8, -8, -1, 1};
    double dn[3] = {0, 0, 0}, dp[3] = {0, 0, 0}, dphi = 0, bend = 0;
    for (int k = 0; k < 4; ++k) {
      Scene moved = scene;
      double v[3] = {0, 0, 0}, r[3] = {0, 0, 0};
      (column % 6 < 3 ? v[column % 3] : r[column % 3]) = steps[k];
      move_body(moved, column < 6 ? contact.body_a : contact.body_b, contact.point, v, r);
      CollisionCache copy = cache;
      detect_contacts(moved.model, moved.position.data(), moved.rotation.data(), options, copy, w);
      const Contact* c = find(w.contacts, contact);
      if (c == nullptr) {
        ++tally.kinks;
        return;
      }
      for (int i = 0; i < 3; ++i) {
        dn[i] += weight[k] * c->normal[i] / (12 * h);
        dp[i] += weight[k] * c->point[i] / (12 * h);
      }
      dphi += weight[k] * c->distance / (12 * h);
      for (int i = 0; i < 3; ++i) {  // second differences: a jump to another vertex or face shows
        const double away = k % 2 == 0 ? 1 : -1;
        bend = std::max(
            bend, std::abs(c->normal[i] - contact.normal[i] - away * (k / 2 + 1) * h * motion.dnormal[i][column]));
        bend = std::max(bend,
                        std::abs(c->point[i] - contact.point[i] - away * (k / 2 + 1) * h * motion.dpoint[i][column]));
      }
    }
    double slope = 1;
    for (int i = 0; i < 3; ++i) slope = std::max({slope, std::abs(dn[i]), std::abs(dp[i])});
    if (bend > 1e-4 && slope < 100) {  // an honest error of order one moves the point by h = 1e-5 only
      ++tally.kinks;
      return;
    }
    for (int i = 0; i < 3; ++i) {
      error =
          std::max({error, std::abs(dn[i] - motion.dnormal[i][column]), std::abs(dp[i] - motion.dpoint[i][column])});
      scale = std::max({scale, std::abs(dn[i]), std::abs(dp[i])});
    }
    error = std::max(error, std::abs(dphi - motion.ddistance[column]));
  }
  if (scale > 100) return;  // higher derivatives drown the difference quotient
  ++tally.compared;
  tally.worst = std::max(tally.worst, error / (scale * scale * scale));
}

/// Random relative poses at which the two shapes are within reach, some with aligned axes.
void sample_pair(const Named& a, const Named& b, Random& random, bool aligned, Tally& tally) {
  Scene scene;
  scene.add(a.type, a.size[0], a.size[1], a.size[2], a.mesh);
  scene.add(b.type, b.size[0], b.size[1], b.size[2], b.mesh);
  scene.connect_all(0.05);
  CollisionWorkspace w(scene.model);
  CollisionOptions options;
  options.frozen_cache = true;
  for (int sample = 0; sample < 150; ++sample) {
    double direction[3];
    random.direction(direction);
    random.rotation(scene.body_rotation(1));
    random.rotation(scene.body_rotation(2));
    if (aligned) {
      std::memcpy(scene.body_rotation(2), scene.body_rotation(1), sizeof(double) * 9);
      const double none[3] = {0, 0, 0},
                   tilt[3] = {random.uniform(-.01, .01), random.uniform(-.01, .01), random.uniform(-1, 1)};
      double world[3];
      rotate(scene.body_rotation(1), tilt, world);
      move_body(scene, 2, none, none, world);
      double local[3] = {random.uniform(-.3, .3), random.uniform(-.3, .3), 1};
      rotate(scene.body_rotation(1), local, direction);
      const double length = norm3(direction);
      for (double& x : direction) x /= length;
    }
    const double reach = random.uniform(0.12, 0.3);
    for (int i = 0; i < 3; ++i) scene.body_position(2)[i] = reach * direction[i], scene.body_position(1)[i] = 0;
    CollisionCache cache;
    CollisionOptions warm;
    detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), warm, cache, w);
    detect_contacts(scene.model, scene.position.data(), scene.rotation.data(), options, cache, w);
    const std::vector<Contact> contacts = w.contacts;
    for (const Contact& c : contacts) {
      double gap[3];
      sub3(c.point_a, c.point_b, gap);
      for (int i = 0; i < 3; ++i) CHECK_NEAR(gap[i], c.distance * c.normal[i], 1e-9);
      if (c.distance > -0.03) compare(scene, options, cache, w, c, tally);
    }
  }
}

void frame_spin() {
  Random random;
  for (int sample = 0; sample < 100; ++sample) {
    double n[3], d[3], t1[3], t2[3], up1[3], up2[3], low1[3], low2[3], cross[3];
    random.direction(n);
    random.direction(d);
    if (std::abs(n[2] + 0.5) < 1e-2) continue;  // where the frame jumps
    axpy3(-dot3(d, n), n, d);
    const double h = 1e-6, length = std::sqrt(1 + h * h * dot3(d, d));
    double up[3], low[3];
    for (int i = 0; i < 3; ++i) up[i] = (n[i] + h * d[i]) / length, low[i] = (n[i] - h * d[i]) / length;
    contact_frame(n, t1, t2);
    contact_frame(up, up1, up2);
    contact_frame(low, low1, low2);
    cross3(t1, t2, cross);
    const double psi = contact_frame_spin(n, d);
    for (int i = 0; i < 3; ++i) {
      CHECK_NEAR(cross[i], n[i], 1e-14);
      CHECK_NEAR((up1[i] - low1[i]) / (2 * h), -dot3(t1, d) * n[i] + psi * t2[i], 1e-8);
      CHECK_NEAR((up2[i] - low2[i]) / (2 * h), -dot3(t2, d) * n[i] - psi * t1[i], 1e-8);
    }
  }
}

}  // namespace

int main(int argc, char**) {
  const bool verbose = argc > 1;
  frame_spin();
  Random random;
  const std::vector<Named> all = shapes();
  for (std::size_t a = 0; a < all.size(); ++a)
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (all[a].type == ShapeType::half_space && all[b].type == ShapeType::half_space) continue;
      for (const bool aligned : {false, true}) {
        Tally tally;
        sample_pair(all[a], all[b], random, aligned, tally);
        if (verbose)
          std::printf("%-11s %-11s %s compared %4d kinks %3d frozen %3d worst %.1e\n", all[a].name, all[b].name,
                      aligned ? "aligned" : "random ", tally.compared, tally.kinks, tally.frozen, tally.worst);
        CHECK(aligned || tally.compared > 10);
        CHECK_NEAR(tally.worst, 0, 1e-7);
      }
    }
  return report();
}

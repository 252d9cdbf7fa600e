// Poses of mocap bodies: a rollout is its steps, moving them allocates nothing once warm, and gradients are products with the columns of steps.
#include <cmath>
#include <vector>

#include "check.hpp"
#include "coulomb/batch.hpp"
#include "coulomb/rollout.hpp"
#include "coulomb/scene.hpp"
#include "coulomb/stepping/mocap.hpp"
#include "coulomb/stepping/step_record.hpp"
#include "count_allocations.hpp"
#include "refuses.hpp"

using namespace coulomb;

namespace {

using Array = std::vector<double>;
constexpr int steps = 40;

/// A mocap paddle that a ball on the ground lies against.
std::shared_ptr<const Model> paddle_and_ball() {
  SceneParts parts;
  BodyPart paddle;
  paddle.name = "paddle";
  paddle.mocap = true;
  paddle.placement.pos = {0, 0, 0.1};
  parts.bodies.push_back(paddle);
  GeometryPart board;
  board.name = "board";
  board.type = ShapeType::box;
  board.body = 1;
  board.size = {0.02, 0.2, 0.2};
  parts.geometries.push_back(board);

  Scene scene;
  scene.append(parts, "");
  scene.add_ground({.friction = 0.5});
  ShapeOptions ball;
  ball.mass = 0.4;
  ball.position = {0.0699, 0, 0.0499};
  ball.name = "ball";
  scene.add_sphere(0.05, ball);
  return scene.build();
}

/// The paddle's pose in step t.
void pose_at(int t, double* pose) {
  const double half = 1e-3 * t;
  const double values[7] = {2e-4 * t, 1e-4 * t, 0.1, std::cos(half), 0, 0, std::sin(half)};
  std::copy(values, values + 7, pose);
}

Array poses() {
  Array out(7 * steps);
  for (int t = 0; t < steps; ++t) pose_at(t, &out[7 * t]);
  return out;
}

State start(const Model& model) {
  State x;
  x.q = model.q_neutral;
  x.v.assign(model.nv, 0.0);
  return x;
}

void a_rollout_is_its_steps() {
  const auto model = paddle_and_ball();
  const State x0 = start(*model);
  const Array mocap = poses();
  Simulator sim(model);
  RolloutInput input{x0.q.data(), x0.v.data()};
  input.steps = steps;
  input.mocap = mocap.data();
  const Rollout r = rollout(sim, input);

  Simulator single(model);
  State x = x0;
  for (int t = 0; t < steps; ++t) {
    single.move_mocap_bodies(&mocap[7 * t]);
    single.step(x);
    CHECK(std::equal(x.q.begin(), x.q.end(), &r.q[(t + 1) * model->nq]));
    CHECK(std::equal(x.v.begin(), x.v.end(), &r.v[(t + 1) * model->nv]));
  }
  CHECK(x.q[0] > 0.075);  // it was pushed

  // The model that was given is the one that is kept, however often bodies move.
  CHECK(r.model == model && rollout(sim, input).model == model);
}

void moving_allocates_nothing_once_warm() {
  const auto model = paddle_and_ball();
  Simulator sim(model);
  State x = start(*model);
  double pose[7];
  long before = 0;
  for (int t = 0; t < 300; ++t) {
    if (t == 100) before = allocations;
    pose_at(t, pose);
    sim.move_mocap_bodies(pose);
    sim.step(x.q.data(), x.v.data(), nullptr, nullptr, nullptr, x.q.data(), x.v.data());
  }
  CHECK_NEAR(static_cast<double>(allocations - before), 0.0, 0.0);
  CHECK(!sim.record().collision.contacts.empty());  // not vacuous

  // Nor where they are already, and then nothing else happens.
  before = allocations;
  sim.move_mocap_bodies(pose);
  CHECK(allocations == before && sim.record().valid);
}

void gradients_are_those_of_the_steps() {
  const auto model = paddle_and_ball();
  const State x0 = start(*model);
  const Array mocap = poses();
  Simulator sim(model);
  RolloutInput input{x0.q.data(), x0.v.data()};
  input.steps = steps;
  input.mocap = mocap.data();
  RolloutOptions again;
  again.keep_factors = false;
  again.checkpoint_every = 7;
  const Rollout kept = rollout(sim, input);
  const Rollout run_again = rollout(sim, input, again);

  Array dq((steps + 1) * model->nv, 0.0);
  Array dv(dq.size());
  for (std::size_t i = 0; i < dv.size(); ++i) dv[i] = std::sin(double(i));
  const RolloutCotangent g = vjp(kept, dq.data(), dv.data(), {}, {}, nullptr, {false, true});
  const RolloutCotangent h = vjp(run_again, dq.data(), dv.data(), {}, {}, nullptr, {false, true});
  CHECK(g.mocap.size() == 6 * steps && g.mocap == h.mocap && g.q0 == h.q0);

  // Forward along one direction.
  Array direction(6 * steps);
  for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = std::cos(3.0 * double(i));
  RolloutTangent tangent;
  tangent.dmocap = direction.data();
  Array tq(dq.size());
  Array tv(dq.size());
  jvp(kept, tangent, tq.data(), tv.data());
  double forward = 0;
  double back = 0;
  double size = 0;
  for (std::size_t i = 0; i < dv.size(); ++i) forward += tv[i] * dv[i];
  for (std::size_t i = 0; i < direction.size(); ++i) {
    back += g.mocap[i] * direction[i];
    size += std::abs(g.mocap[i]);
  }
  CHECK(size > 0);
  CHECK_NEAR(forward, back, 1e-10 * size);
}

void bad_poses_change_nothing() {
  const auto model = paddle_and_ball();
  Simulator sim(model);
  const Array home = mocap_poses(sim.model());
  double pose[7];
  pose_at(1, pose);
  pose[2] = std::nan("");
  CHECK(test::refuses([&] { sim.move_mocap_bodies(pose); }, "mocap[0, 2] is nan"));
  pose_at(1, pose);
  pose[3] = 3;
  CHECK(test::refuses([&] { sim.move_mocap_bodies(pose); }, "mocap[0]: body 'paddle' quaternion"));
  CHECK(mocap_poses(sim.model()) == home);
}

}  // namespace

int main() {
  a_rollout_is_its_steps();
  moving_allocates_nothing_once_warm();
  gradients_are_those_of_the_steps();
  bad_poses_change_nothing();
  return test::report();
}

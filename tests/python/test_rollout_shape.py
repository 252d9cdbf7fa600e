"""Rollout.q is documented (T + 1, nq); for nq = 1 it is (T + 1,)."""

import coulomb


def test_rollout_shapes_with_one_coordinate():
    model = coulomb.load("<mujoco><worldbody><body><joint/><geom size='.1'/></body></worldbody></mujoco>")
    trajectory = coulomb.Simulator(model).rollout([0.0], [0.0], steps=3)
    assert trajectory.q.shape == (4, 1) and trajectory.v.shape == (4, 1)

"""Hopper-v5 and Walker2d-v5: hop or walk forward in a plane, upright."""

from __future__ import annotations

from ..arrays import clip, concatenate
from .mujoco_task import MujocoTask


class UprightTask(MujocoTask):
    """Observations with velocities within 10; health as ranges of height and pitch.

    Reward: forward_reward_weight dx/dt + healthy_reward while healthy - ctrl_cost_weight |a|^2.
    """

    camera = {"trackbodyid": 2, "distance": 3.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0}

    def __init__(
        self,
        xml_file,
        frame_skip,
        forward_reward_weight,
        ctrl_cost_weight,
        healthy_reward,
        terminate_when_unhealthy,
        healthy_z_range,
        healthy_angle_range,
        reset_noise_scale,
        exclude_current_positions_from_observation,
    ):
        super().__init__(
            xml_file,
            frame_skip,
            forward_reward_weight,
            ctrl_cost_weight,
            reset_noise_scale,
            exclude_current_positions_from_observation,
            hidden_positions=1,
        )
        self._healthy_reward = healthy_reward
        self._terminate_when_unhealthy = terminate_when_unhealthy
        self._healthy_z_range = healthy_z_range
        self._healthy_angle_range = healthy_angle_range
        self._start_height = self.model.neutral()[0][1]

    def healthy(self, state):
        z, angle = state.q[:, 1], state.q[:, 2]
        low, high = self._healthy_z_range
        least, most = self._healthy_angle_range
        return (low < z) & (z < high) & (least < angle) & (angle < most)

    def observe(self, state):
        return concatenate([state.q[:, self._hidden :], clip(state.v, -10, 10)])

    def reward(self, before, after):
        forward = self._forward_reward_weight * self.x_velocity(before, after)
        survive = self.healthy(after) * self._healthy_reward
        cost = self.control_cost(after.action)
        terms = {"reward_forward": forward, "reward_ctrl": -cost, "reward_survive": survive}
        return forward + survive - cost, terms

    def terminated(self, state):
        return ~self.healthy(state) if self._terminate_when_unhealthy else super().terminated(state)

    def info(self, state):
        return {**super().info(state), "z_distance_from_origin": state.q[:, 1] - self._start_height}


class Hopper(UprightTask):
    """Healthy as long as all but x is within healthy_state_range, too."""

    def __init__(
        self,
        xml_file="hopper.xml",
        frame_skip=4,
        forward_reward_weight=1.0,
        ctrl_cost_weight=1e-3,
        healthy_reward=1.0,
        terminate_when_unhealthy=True,
        healthy_state_range=(-100.0, 100.0),
        healthy_z_range=(0.7, float("inf")),
        healthy_angle_range=(-0.2, 0.2),
        reset_noise_scale=5e-3,
        exclude_current_positions_from_observation=True,
    ):
        super().__init__(
            xml_file,
            frame_skip,
            forward_reward_weight,
            ctrl_cost_weight,
            healthy_reward,
            terminate_when_unhealthy,
            healthy_z_range,
            healthy_angle_range,
            reset_noise_scale,
            exclude_current_positions_from_observation,
        )
        self._healthy_state_range = healthy_state_range

    def healthy(self, state):
        low, high = self._healthy_state_range
        numbers = concatenate([state.q[:, 2:], state.v])
        return super().healthy(state) & ((low < numbers) & (numbers < high)).all(-1)


class Walker2d(UprightTask):
    """Two legs of the hopper's kind."""

    def __init__(
        self,
        xml_file="walker2d_v5.xml",
        frame_skip=4,
        forward_reward_weight=1.0,
        ctrl_cost_weight=1e-3,
        healthy_reward=1.0,
        terminate_when_unhealthy=True,
        healthy_z_range=(0.8, 2.0),
        healthy_angle_range=(-1.0, 1.0),
        reset_noise_scale=5e-3,
        exclude_current_positions_from_observation=True,
    ):
        super().__init__(
            xml_file,
            frame_skip,
            forward_reward_weight,
            ctrl_cost_weight,
            healthy_reward,
            terminate_when_unhealthy,
            healthy_z_range,
            healthy_angle_range,
            reset_noise_scale,
            exclude_current_positions_from_observation,
        )

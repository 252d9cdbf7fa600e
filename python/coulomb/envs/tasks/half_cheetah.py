"""HalfCheetah-v5: run forward, in a plane."""

from __future__ import annotations

from .mujoco_task import MujocoTask


class HalfCheetah(MujocoTask):
    """Reward: forward_reward_weight dx/dt - ctrl_cost_weight |a|^2. Never ends."""

    normal_velocities = True
    camera = {"distance": 4.0}

    def __init__(
        self,
        xml_file="half_cheetah.xml",
        frame_skip=5,
        forward_reward_weight=1.0,
        ctrl_cost_weight=0.1,
        reset_noise_scale=0.1,
        exclude_current_positions_from_observation=True,
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

    def reward(self, before, after):
        forward = self._forward_reward_weight * self.x_velocity(before, after)
        cost = self.control_cost(after.action)
        return forward - cost, {"reward_forward": forward, "reward_ctrl": -cost}

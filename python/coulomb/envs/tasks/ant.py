"""Ant-v5: four legs run along x."""

from __future__ import annotations

from ..arrays import clip, concatenate, finite_rows, square_sum
from .body_quantities import ContactForces
from .mujoco_task import MujocoTask


class Ant(MujocoTask):
    """Reward: forward_reward_weight dx/dt of main_body + healthy_reward - ctrl_cost_weight |a|^2 - contact_cost_weight |f|^2.

    f are the contact forces and torques on all bodies within contact_force_range, observed too.
    """

    normal_velocities = True
    camera = {"distance": 4.0}

    # Episodes begin with straight ankles, half a radian beyond their limits. MuJoCo's soft limits bend them within a tenth of a second; at
    # the usual 1 rad/s the torso would come down first.
    options = {"max_correction_speed": 10.0}

    def __init__(
        self,
        xml_file="ant.xml",
        frame_skip=5,
        forward_reward_weight=1,
        ctrl_cost_weight=0.5,
        contact_cost_weight=5e-4,
        healthy_reward=1.0,
        main_body=1,
        terminate_when_unhealthy=True,
        healthy_z_range=(0.2, 1.0),
        contact_force_range=(-1.0, 1.0),
        reset_noise_scale=0.1,
        exclude_current_positions_from_observation=True,
        include_cfrc_ext_in_observation=True,
    ):
        super().__init__(
            xml_file,
            frame_skip,
            forward_reward_weight,
            ctrl_cost_weight,
            reset_noise_scale,
            exclude_current_positions_from_observation,
            hidden_positions=2,
        )
        self._contact_cost_weight = contact_cost_weight
        self._healthy_reward = healthy_reward
        self._terminate_when_unhealthy = terminate_when_unhealthy
        self._healthy_z_range = healthy_z_range
        self._contact_force_range = contact_force_range
        self._observes_forces = include_cfrc_ext_in_observation

        body = main_body if isinstance(main_body, str) else self.model.body_names[main_body]
        self.contact_wrenches = bool(include_cfrc_ext_in_observation or contact_cost_weight)
        self._forces = ContactForces(self.model, self.timestep)
        self.readings = {"main_body": [f"position/{body}"], **(self._forces.readings if self.contact_wrenches else {})}

    def contact_forces(self, state):
        """(n, 6 bodies): torque and force of each, within the range."""
        forces = clip(self._forces(state), *self._contact_force_range)
        return forces.reshape(len(forces), -1)

    def healthy(self, state):
        low, high = self._healthy_z_range
        z = state.q[:, 2]
        return finite_rows(state.q) & finite_rows(state.v) & (low <= z) & (z <= high)

    def observe(self, state):
        parts = [state.q[:, self._hidden :], state.v]
        return concatenate([*parts, self.contact_forces(state)] if self._observes_forces else parts)

    def reward(self, before, after):
        forward = self._velocity(before, after)[:, 0] * self._forward_reward_weight
        survive = self.healthy(after) * self._healthy_reward
        control = self.control_cost(after.action)
        contact = 0 * control
        if self.contact_wrenches:
            contact = self._contact_cost_weight * square_sum(self.contact_forces(after))
        terms = {
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_contact": -contact,
            "reward_survive": survive,
        }
        return forward + survive - (control + contact), terms

    def terminated(self, state):
        return ~self.healthy(state) if self._terminate_when_unhealthy else super().terminated(state)

    def info(self, state):
        x, y = state.q[:, 0], state.q[:, 1]
        return {"x_position": x, "y_position": y, "distance_from_origin": (x * x + y * y) ** 0.5}

    def step_info(self, before, after):
        velocity = self._velocity(before, after)
        return {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}

    def _velocity(self, before, after):
        moved = after.readings["main_body"] - before.readings["main_body"]
        return moved[:, :2] / self.control_timestep

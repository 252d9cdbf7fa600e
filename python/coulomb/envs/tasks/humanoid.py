"""Humanoid-v5: two legs run along x."""

from __future__ import annotations

import numpy as np

from ..arrays import clip, concatenate, square_sum, stack
from .body_quantities import ActuatorForces, BodyQuantities, ContactForces
from .mujoco_task import MujocoTask, fixed_tendons


class Humanoid(MujocoTask):
    """Reward: forward_reward_weight dx/dt of the centre of mass + healthy_reward while healthy - ctrl_cost_weight |a|^2 - contact
    cost, contact_cost_weight |f|^2 within contact_cost_range, f the contact forces and torques on all bodies.

    Observed after q and v, as the keywords say: inertias and velocities of bodies, torques of motors, contact forces.
    """

    camera = {"trackbodyid": 1, "distance": 4.0, "lookat": (0.0, 0.0, 2.0), "elevation": -20.0}

    def __init__(
        self,
        xml_file="humanoid.xml",
        frame_skip=5,
        forward_reward_weight=1.25,
        ctrl_cost_weight=0.1,
        contact_cost_weight=5e-7,
        contact_cost_range=(-np.inf, 10.0),
        healthy_reward=5.0,
        terminate_when_unhealthy=True,
        healthy_z_range=(1.0, 2.0),
        reset_noise_scale=1e-2,
        exclude_current_positions_from_observation=True,
        include_cinert_in_observation=True,
        include_cvel_in_observation=True,
        include_qfrc_actuator_in_observation=True,
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
        self._contact_cost_range = contact_cost_range
        self._healthy_reward = healthy_reward
        self._terminate_when_unhealthy = terminate_when_unhealthy
        self._healthy_z_range = healthy_z_range

        self._tendons = fixed_tendons(self._xml_file, self.model)

        # What is observed beside q and v, and the readings that all of it needs.
        self._bodies = BodyQuantities(self.model)
        self._forces = ContactForces(self.model, self.timestep)
        self.contact_wrenches = bool(include_cfrc_ext_in_observation or contact_cost_weight)
        self._extras = []
        if include_cinert_in_observation:
            self._extras.append(self._bodies.inertias)
        if include_cvel_in_observation:
            self._extras.append(self._bodies.velocities)
        if include_qfrc_actuator_in_observation:
            self._extras.append(ActuatorForces(self.model, first=6))
        if include_cfrc_ext_in_observation:
            self._extras.append(self.contact_forces)

        needed = {"com": self._bodies.readings["com"]}
        if include_cinert_in_observation or include_cvel_in_observation:
            needed |= self._bodies.readings
        self.readings = {**needed, **(self._forces.readings if self.contact_wrenches else {})}

    def contact_forces(self, state):
        """(n, 6 bodies): torque and force of each."""
        forces = self._forces(state)
        return forces.reshape(len(forces), -1)

    def healthy(self, state):
        low, high = self._healthy_z_range
        return (low < state.q[:, 2]) & (state.q[:, 2] < high)

    def observe(self, state):
        return concatenate([state.q[:, self._hidden :], state.v, *(extra(state) for extra in self._extras)])

    def reward(self, before, after):
        forward = self._forward_reward_weight * self._velocity(before, after)[:, 0]
        survive = self.healthy(after) * self._healthy_reward
        control = self.control_cost(after.action)
        contact = 0 * control
        if self.contact_wrenches:
            contact = self._contact_cost_weight * square_sum(self.contact_forces(after))
        contact = clip(contact, *self._contact_cost_range)
        terms = {
            "reward_survive": survive,
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_contact": -contact,
        }
        return forward + survive - (control + contact), terms

    def terminated(self, state):
        return ~self.healthy(state) if self._terminate_when_unhealthy else super().terminated(state)

    def info(self, state):
        x, y = state.q[:, 0], state.q[:, 1]
        return {
            "x_position": x,
            "y_position": y,
            "tendon_length": stack([sum(c * state.q[:, k] for k, _, c in tendon) for tendon in self._tendons]),
            "tendon_velocity": stack([sum(c * state.v[:, k] for _, k, c in tendon) for tendon in self._tendons]),
            "distance_from_origin": (x * x + y * y) ** 0.5,
        }

    def step_info(self, before, after):
        velocity = self._velocity(before, after)
        return {"x_velocity": velocity[:, 0], "y_velocity": velocity[:, 1]}

    def _velocity(self, before, after):
        return (after.readings["com"] - before.readings["com"])[:, :2] / self.control_timestep

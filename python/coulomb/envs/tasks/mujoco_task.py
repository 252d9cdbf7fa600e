"""Common parts of Gymnasium's MuJoCo environments, version 5: their MJCF files, which come with Gymnasium, and their keywords.

The same definitions of observations, rewards, ends and starts, on Coulomb's steps: contact is rigid and not a spring, steps are
semi-implicit where theirs are of Runge and Kutta, and what they read a physics step late is of the state that is returned.
"""

from __future__ import annotations

from pathlib import Path

import gymnasium
import numpy as np

import coulomb
from coulomb.mjcf import compile_mjcf

from ..arrays import concatenate, square_sum
from ..task import Task


def path_of(xml_file):
    """The file: of Gymnasium's assets if it is a bare name, as MuJoCo's environments read it."""
    text = str(xml_file)
    if text.startswith(("/", ".")):
        return Path(text)
    if text.startswith("~"):
        return Path(text).expanduser()
    return Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / text


def fixed_tendons(path, model):
    """The tendons of a file that are sums of joints: lists of (index in q, index in v, coefficient)."""
    import mujoco

    compiled = compile_mjcf(path)
    tendons = []
    for start, count in zip(compiled.tendon_adr, compiled.tendon_num):
        wraps = range(start, start + count)
        if any(compiled.wrap_type[k] != mujoco.mjtWrap.mjWRAP_JOINT for k in wraps):
            raise ValueError(f"{path}: only fixed tendons are supported")
        joints = [int(compiled.wrap_objid[k]) for k in wraps]
        indices = [(int(model.joint_q[j]), int(model.joint_v[j])) for j in joints]
        tendons.append([(q, v, float(compiled.wrap_prm[k])) for (q, v), k in zip(indices, wraps)])
    return tendons


class MujocoTask(Task):
    """Reads the file; counts positions that are not observed; draws starts around the file's pose."""

    episode_length = 1000
    normal_velocities = False  # of starts: normal with the deviation reset_noise_scale, else uniform as positions are

    def __init__(
        self,
        xml_file,
        frame_skip,
        forward_reward_weight,
        ctrl_cost_weight,
        reset_noise_scale,
        exclude_current_positions_from_observation,
        hidden_positions,
    ):
        self._xml_file = path_of(xml_file)
        model = coulomb.load(self._xml_file)
        super().__init__(model, model.timestep, frame_skip)
        self._forward_reward_weight = forward_reward_weight
        self._ctrl_cost_weight = ctrl_cost_weight
        self._reset_noise_scale = reset_noise_scale
        self._hidden = hidden_positions if exclude_current_positions_from_observation else 0

    def draw(self, random):
        # MuJoCo's qpos0: as the file has it, beyond the limits of some joints.
        q, v = self.model.q_neutral, np.zeros(self.model.nv)
        scale = self._reset_noise_scale
        q = q + random.uniform(low=-scale, high=scale, size=self.model.nq)
        if self.normal_velocities:
            return q, v + scale * random.standard_normal(self.model.nv), np.zeros(0)
        return q, v + random.uniform(low=-scale, high=scale, size=self.model.nv), np.zeros(0)

    def observe(self, state):
        return concatenate([state.q[:, self._hidden :], state.v])

    def control_cost(self, action):
        return self._ctrl_cost_weight * square_sum(action)

    def x_velocity(self, before, after):
        """m/s, mean of the control step: of q[0]."""
        return (after.q[:, 0] - before.q[:, 0]) / self.control_timestep

    def info(self, state):
        return {"x_position": state.q[:, 0]}

    def step_info(self, before, after):
        return {"x_velocity": self.x_velocity(before, after)}

    def mjcf(self):
        return self._xml_file.read_text()

"""Worlds: n environments of a task whose states are PyTorch tensors, so that what is observed and rewarded can be differentiated by actions.

    worlds = Worlds(task, 64, seed=0)
    observation = worlds.observe()
    for _ in range(32):
        step = worlds.step(policy(observation))    # rewards with a gradient, through physics
        observation = worlds.observe()
    worlds.detach()

The task, with its observation, reward and end, is that of coulomb.envs: what is learned here is scored there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from coulomb.envs.simulation import OVERFLOW, Simulation
from coulomb.envs.task import State
from coulomb.torch import control_step

RANDOMIZED = ("friction", "contact_stiffness", "contact_dashpot", "joint_limit_stiffness", "joint_limit_dashpot")
JUDGED_SEED = 10_000  # of the worlds that policies are judged in: the same starts for all


class Step(NamedTuple):
    """Result of a control step, one environment per row."""

    reward: torch.Tensor  # (n,), differentiable
    observation: torch.Tensor  # (n, size), of the state that the step ended in: before a reset
    terminated: torch.Tensor  # (n,) bool: the episode is over by itself
    overflowed: (
        torch.Tensor
    )  # (n,) bool: or because numbers overflowed: reward 0, and the observation is that of the next start
    ended: torch.Tensor  # (n,) bool: or by its length; one of the three


class Worlds:
    """n environments of a Task; row i has the random numbers of (seed, i), whatever n is.

    An episode that ends starts again at once, and no gradient crosses that. first: number of the first row, where others
    have the rows before. num_threads, options: of the BatchSimulator. ValueError: names a bad option; actions that are
    not finite, before anything has moved.
    """

    def __init__(self, task, n, seed, num_threads=0, options=None, first=0):
        self.task = task
        self.n = n
        self.simulation = Simulation(task, n, num_threads, options)
        self.randoms = [np.random.default_rng([seed, first + row]) for row in range(n)]
        self.elapsed = np.zeros(n, int)
        self.unsolved = 0  # control steps that did not converge, so far
        if task.contact_wrenches:
            raise ValueError(
                f"{type(task).__name__} observes contact_wrenches, which have no derivative: turn them off"
            )
        self._restart(np.ones(n, bool))

    @property
    def batch(self):
        return self.simulation.batch

    def observe(self):
        """(n, size): what is observed, with the gradient of the steps since detach()."""
        return self.task.observe(self.state)

    def step(self, action):
        """One control step by actions (n, k) in the task's units: a Step. Episodes that end have then begun anew."""
        before, task = self.state, self.task
        action = action.double()
        names = self.simulation.reading_names
        q, v, activation, good, readings = self._moved(before, task.control(action), names)
        after = State(q, v, action, before.goal, self._split(*readings), activation)
        reward, _ = task.reward(before, after)
        observation = task.observe(after)
        terminated = task.terminated(after).detach()

        # Where numbers overflowed the state stayed, and the episode is given up.
        self.elapsed += 1
        good = good.numpy()
        failed = np.zeros(self.n, bool)
        if not good.all():
            self.unsolved += int((~good).sum())
            reasons = self.batch.status.reason
            failed[[row for row in np.flatnonzero(~good) if OVERFLOW in reasons[row]]] = True
        over = failed if task.episode_length is None else failed | (self.elapsed >= task.episode_length)
        lost = torch.from_numpy(failed)
        terminated = terminated & ~lost
        ended = terminated | torch.from_numpy(over)

        self.state = after
        if ended.any():
            self._restart(ended.numpy())
        if failed.any():
            # What was computed there is no number to learn from: nothing was earned, nothing follows, and the new start is seen.
            reward = torch.where(lost, torch.zeros_like(reward), reward)
            observation = torch.where(lost[:, None], self.observe().detach(), observation)
        return Step(reward, observation, terminated, lost, ended)

    def _moved(self, before, controls, names):
        """A control step: q, v, activation, whether it converged, and the readings as a list of one or none."""
        q, v, a, skip = before.q, before.v, before.activation, self.task.frame_skip
        more = {"return_status": True}
        if a is None:
            q, v, *readings, good = control_step(
                self.batch, q, v, controls, substeps=skip, outputs=names or None, **more
            )
            return q, v, None, good, readings

        # The activation moves on in every step.
        activations, good = self.simulation.activated.activations, torch.ones(self.n, dtype=torch.bool)
        for k in range(skip):
            acting, a = activations.step(a, controls)
            outputs = (names or None) if k + 1 == skip else None
            q, v, *readings, fine = control_step(self.batch, q, v, acting, outputs=outputs, **more)
            good = good & fine
        return q, v, a, good, readings

    def detach(self):
        """Cuts the gradient: a new horizon begins."""
        activation = self.state.activation
        self.state = State(
            *(x.detach() for x in self.state[:4]),
            {k: x.detach() for k, x in self.state.readings.items()},
            None if activation is None else activation.detach(),
        )

    def saved(self):
        """The state that a continued run needs, as an object that pickles."""
        return {
            "state": [x.detach().numpy() for x in self.state[:4]],
            "activation": None if self.state.activation is None else self.state.activation.detach().numpy(),
            "elapsed": self.elapsed,
            "random": [random.bit_generator.state for random in self.randoms],
            "memory": self.batch.memory,
            "unsolved": self.unsolved,
        }

    def restore(self, saved):
        """Goes on with the same bits as the one that was saved."""
        q, v, action, goal = (np.array(x) for x in saved["state"])
        everyone = np.ones(self.n, bool)
        self.simulation.start(everyone, q, v, goal)
        activation = saved.get("activation")
        self.state = State(
            *map(torch.from_numpy, (q, v, action, goal)),
            self._tensors(self.simulation.state.readings),
            None if activation is None else torch.from_numpy(np.array(activation)),
        )
        self.elapsed = np.array(saved["elapsed"])
        self.unsolved = saved["unsolved"]
        for random, state in zip(self.randoms, saved["random"]):
            random.bit_generator.state = state
        self.batch.memory = saved["memory"]

    def _restart(self, rows):
        """New episodes in the rows of a mask; the others keep their tensors, and with them their gradient."""
        starts = [self.task.draw(self.randoms[row]) for row in np.flatnonzero(rows)]
        self.simulation.start(rows, *(np.array(column) for column in zip(*starts)))
        self.elapsed[rows] = 0
        fresh = self.simulation.state
        activation = None if fresh.activation is None else torch.from_numpy(np.array(fresh.activation))
        fresh = State(*(torch.from_numpy(np.array(x)) for x in fresh[:4]), self._tensors(fresh.readings), activation)
        if rows.all():
            self.state = fresh
            return

        mask = torch.from_numpy(rows)[:, None]
        rows_of = [torch.where(mask, new, old) for new, old in zip(fresh[:4], self.state[:4])]
        readings = {key: torch.where(mask, fresh.readings[key], old) for key, old in self.state.readings.items()}
        if activation is not None:
            activation = torch.where(mask, activation, self.state.activation)
        self.state = State(*rows_of, readings, activation)

    def _split(self, readings=None):
        """Readings by the task's names."""
        if readings is None:
            return {}
        return {key: readings[:, torch.from_numpy(columns)] for key, columns in self.simulation.reading_columns.items()}

    @staticmethod
    def _tensors(readings):
        return {key: torch.from_numpy(np.array(value)) for key, value in readings.items()}


def randomized(model, seed, rows, spread):
    """Parameters of a batch whose environments differ, by name (len(rows), size): every kind of RANDOMIZED times exp(spread x), with one x
    from a normal distribution for each environment and kind. Row i has the random numbers of (seed, i)."""
    x = [np.random.default_rng([seed, row, 1]).normal(size=len(RANDOMIZED)) for row in rows]
    factors = dict(zip(RANDOMIZED, np.exp(spread * np.transpose(x))))
    values = {name: np.array(parameter.value) for name, parameter in model.parameters().items() if "/" in name}
    return {
        name: factors[kind][:, None] * value
        for name, value in values.items()
        if (kind := name.split("/")[0]) in factors
    }


@torch.no_grad()
def returns_of(policy, worlds):
    """Returns (n,) of one whole episode of every environment; policy: observations (n, size) to actions (n, k)."""
    total, running = np.zeros(worlds.n), np.ones(worlds.n, bool)
    for _ in range(worlds.task.episode_length or 1000):
        step = worlds.step(policy(worlds.observe()))
        total[running] += step.reward.numpy()[running]
        running &= ~step.ended.numpy()
        if not running.any():
            break
    return total

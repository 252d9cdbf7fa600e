"""Simulation: the states of n environments of a task, moved by a BatchSimulator. Vector environments and single ones are made of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coulomb import ActivatedSimulator, BatchSimulator

from .task import State

OVERFLOW = "overflow"  # of StepStatus.reason


class Outcome(NamedTuple):
    """Result of a control step, one environment per row; rows of environments that did not move have no meaning."""

    observation: np.ndarray  # (n, size)
    reward: np.ndarray  # (n,)
    terminated: np.ndarray  # (n,) bool
    failure: dict[int, str]  # environments whose numbers overflowed, and what was said
    info: dict[str, Any]  # of every state
    step_info: dict[str, Any]  # of steps


class Simulation:
    """n environments of `task`: start them, advance them; `state` is where they are.

    num_threads, options: of the BatchSimulator. ValueError: names a bad option.
    """

    def __init__(self, task, num_envs, num_threads=0, options=None):
        self.task = task
        self.num_envs = num_envs
        options = {**task.options, **(options or {})}
        self.batch = BatchSimulator(task.model, num_envs, num_threads, timestep=task.timestep, **options)

        # Activations of actuators are a part of the state, and move on in every step.
        activated = ActivatedSimulator(self.batch)
        self.activated = activated if activated.activations.size else None

        # All readings are one call, in which a name comes once; the columns of each reading in its result.
        self.reading_names = list(dict.fromkeys(name for names in task.readings.values() for name in names))
        known = {**task.model.outputs(), **task.model.force_outputs()} if self.reading_names else {}
        ends = np.cumsum([_size(known, name) for name in self.reading_names], dtype=int)
        columns = dict(zip(self.reading_names, np.split(np.arange(ends[-1] if len(ends) else 0), ends[:-1])))
        self.reading_columns = {
            key: np.concatenate([columns[name] for name in names]) for key, names in task.readings.items()
        }

        # Bodies by name, for contact wrenches.
        self._body = {name: index for index, name in enumerate(task.model.body_names)}
        self.state = self._neutral()

    def _neutral(self):
        model, n = self.task.model, self.num_envs
        q, v = model.neutral()
        action = np.zeros((n, len(self.task.action_low)))
        goal, activation = np.zeros((n, self.task.goal_size)), None
        if self.activated:
            activation = self.activated.initial[2]
        return State(np.tile(q, (n, 1)), np.tile(v, (n, 1)), action, goal, {}, activation)

    def start(self, rows, q, v, goal):
        """The environments `rows` (bool (n,)) begin at q, v and goal, of which there are as many as rows."""
        sizes = {"q": self.task.model.nq, "v": self.task.model.nv, "goal": self.task.goal_size}
        for (part, size), given in zip(sizes.items(), (q, v, goal), strict=True):
            if np.shape(given)[1:] != (size,):
                hint = "; set goal_size of the task to that number" if part == "goal" else ""
                raise ValueError(
                    f"{type(self.task).__name__}.draw: {part} has shape {np.shape(given)[1:]}, expected ({size},){hint}"
                )
        old = self.state
        Q, V, action, goals = old.q.copy(), old.v.copy(), old.action.copy(), old.goal.copy()
        Q[rows] = self.task.model.normalize(q)
        V[rows] = v
        action[rows] = 0
        goals[rows] = goal

        self.batch.reset(rows, Q, V)
        activation = None if old.activation is None else np.where(rows[:, None], 0.0, old.activation)
        self.state = State(Q, V, action, goals, self._readings(), activation)
        if self.task.contact_wrenches:
            wrenches = old.readings.get("contact_wrenches")
            wrenches = np.zeros((self.num_envs, len(self._body), 6)) if wrenches is None else wrenches.copy()
            wrenches[rows] = 0
            self.state.readings["contact_wrenches"] = wrenches

    def advance(self, actions, rows):
        """One control step of the environments `rows` by actions (n, k): their Outcome; `state` is then the next one."""
        task, before = self.task, self.state
        mask = None if rows.all() else rows
        held = {"substeps": task.frame_skip, "mask": mask, "derivatives": False}
        if self.activated:
            *state, record = self.activated.control_step(
                before.q, before.v, before.activation, task.control(actions), **held
            )
            Q, V, activation = state
            reasons = record.reason
        else:
            Q, V, record = self.batch.control_step(before.q, before.v, task.control(actions), **held)
            activation, reasons = None, record.status.reason
        failure = _overflows(record, reasons)

        action = actions if mask is None else np.where(rows[:, None], actions, before.action)
        after = State(Q, V, action, before.goal, self._readings(), activation)
        if task.contact_wrenches:
            after.readings["contact_wrenches"] = self._contact_wrenches(rows, before)
        self.state = after
        return self._outcome(before, after, rows, failure)

    def observe(self, rows):
        """(number of rows, size): what is observed in the environments `rows`."""
        return self.task.observe(self.rows_of_state(rows))

    def info(self, rows):
        """The task's infos of the environments `rows`, (number of rows, ...) each."""
        return self.task.info(self.rows_of_state(rows))

    def rows_of_state(self, rows):
        s = self.state
        readings = {name: value[rows] for name, value in s.readings.items()}
        activation = None if s.activation is None else s.activation[rows]
        return State(s.q[rows], s.v[rows], s.action[rows], s.goal[rows], readings, activation)

    def _outcome(self, before, after, rows, failure):
        task = self.task
        with np.errstate(over="ignore", invalid="ignore"):
            observation = task.observe(after)
            reward, terms = task.reward(before, after)
            terminated = task.terminated(after)
            step_info = {**task.step_info(before, after), **terms}
            info = task.info(after)

        # Numbers that overflow in the task's own functions end the episode as those of a step do.
        broken = rows & ~(np.isfinite(observation).all(-1) & np.isfinite(reward))
        for row in np.flatnonzero(broken):
            failure.setdefault(int(row), f"{OVERFLOW}: an observation or a reward is not finite")
        for row in failure:
            observation[row] = np.nan_to_num(observation[row])
            reward[row] = 0
            terminated[row] = False
        return Outcome(observation, reward, terminated, failure, info, step_info)

    def _readings(self):
        if not self.reading_names:
            return {}
        values = self.batch.output(self.reading_names)
        return {key: values.take(columns, axis=1) for key, columns in self.reading_columns.items()}

    def _contact_wrenches(self, rows, before):
        """(n, num_bodies, 6), as Task.contact_wrenches says. The world's own row is zero."""
        found = []
        for row in np.flatnonzero(rows):
            for contact in self.batch.contacts(int(row)):
                found.append((row, self._body[contact.body_a], contact.point, contact.impulse, contact.torque))
                found.append((row, self._body[contact.body_b], contact.point, -contact.impulse, -contact.torque))

        wrenches = np.where(rows[:, None, None], 0.0, before.readings["contact_wrenches"])
        if found:
            row, body, points, impulses, torques = (np.array(column) for column in zip(*found))
            forces = impulses / self.task.timestep
            np.add.at(wrenches, (row, body), np.concatenate([np.cross(points, forces) + torques, forces], axis=1))
            wrenches[:, 0] = 0
        return wrenches


def _overflows(record, reasons):
    """Environments whose numbers overflowed in a control step, and what was said: the core has left them as they were."""
    return {int(row): reasons[row] for row in np.flatnonzero(~record.converged) if OVERFLOW in reasons[row]}


def _size(known, name):
    if name not in known:
        raise ValueError(f"readings: the model has no output {name!r}; Model.outputs() lists them")
    return known[name].size

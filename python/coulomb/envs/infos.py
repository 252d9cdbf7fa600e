"""The infos of vector environments: every key has an array of all environments and, as `_key`, the mask of those that said something."""

from __future__ import annotations

import numpy as np


def add(infos, values, rows):
    """Adds values, of which there are as many as environments in `rows` (bool (n,)), to infos."""
    if not rows.any():
        return
    for key, value in values.items():
        value = np.asarray(value)
        if key not in infos:
            infos[key] = np.zeros((len(rows), *value.shape[1:]), value.dtype)
            infos["_" + key] = np.zeros(len(rows), bool)
        infos[key][rows] = value
        infos["_" + key] |= rows


def add_objects(infos, key, values, num_envs):
    """Adds objects, a dict by environment: strings, observations of different episodes."""
    infos[key] = np.full(num_envs, None, object)
    infos["_" + key] = np.zeros(num_envs, bool)
    for row, value in values.items():
        infos[key][row] = value
        infos["_" + key][row] = True


def of_step(outcome, rows):
    """The infos of environments `rows` after a control step."""
    infos = {}
    add(infos, {name: value[rows] for name, value in outcome.info.items()}, rows)
    add(infos, {name: value[rows] for name, value in outcome.step_info.items()}, rows)
    failure = {row: reason for row, reason in outcome.failure.items() if rows[row]}
    if failure:
        add_objects(infos, "failure", failure, len(rows))
    return infos


def first_row(values):
    """The infos of a single environment from arrays of one row; flags are Python's, of which Gymnasium makes arrays of bool."""
    first = {name: np.asarray(value)[0] for name, value in values.items()}
    return {name: bool(value) if isinstance(value, np.bool_) else value for name, value in first.items()}


def of_one(outcome):
    """The infos of a single environment after a control step."""
    infos = first_row({**outcome.info, **outcome.step_info})
    return {**infos, "failure": outcome.failure[0]} if outcome.failure else infos

"""Measurements: a Window, and the samples and segments that it is simulated in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .checks import are_positive, by_element, count, mapping, numbers
from .tangent import turn, units

_FIRST_SAMPLES = 9  # that a parabola goes through, for velocities that were not measured


@dataclass
class Window:
    """A measured piece of motion: samples 0 ... T of q, of v, of outputs by name, or of some of them.

    q (T + 1, nq), v (T + 1, nv): states, or None. outputs: {name: (T + 1, size)} (docs/outputs.md). u (rows, nu), tau (rows, nv): what
    acted, each row for `substeps` time steps; None: nothing. every: samples are that many rows apart, the first at the start. times
    (T + 1,): instead, their seconds since the start, on the grid of rows, for samples that are missing or irregular.

    deviation: standard deviation of q, a number or (nv,), in tangent space (m, rad); v_deviation of v; output_deviation {name: number or
    (tangent size,)}. None: not known; the fit estimates it from what remains, one number for each reading and unit (m, rad, ...) of all
    windows together.

    start (q, v): first guess of the state at time 0; None: from the first samples. start_deviation: how well it is known, a number or
    (2 nv,): inf, all that the samples do not say is unknown; 0, exact: that coordinate is no unknown. None: inf.
    """

    q: ArrayLike | None = None
    v: ArrayLike | None = None
    u: ArrayLike | None = None
    tau: ArrayLike | None = None
    outputs: dict = field(default_factory=dict)
    substeps: int = 1
    every: int = 1
    times: ArrayLike | None = None
    deviation: ArrayLike | None = None
    v_deviation: ArrayLike | None = None
    output_deviation: dict = field(default_factory=dict)
    start: tuple | None = None
    start_deviation: ArrayLike | None = None


@dataclass
class Reading:
    """One measured quantity: values at the samples, and the standard deviations (tangent size,) of their errors.

    Where these are not known (given is False), problem.py puts in what it takes them for.
    """

    name: str  # "q", "v" or an output
    values: np.ndarray
    deviation: np.ndarray
    given: bool
    units: list  # (tangent size,)
    force: bool = False  # of a step, and not of a state


class BoundWindow:
    """A Window that fits its model: checked arrays, the rows of the samples, segments (first row, number of rows)."""

    def __init__(self, where, window, model, timestep, segment):
        if not isinstance(window, Window):
            raise TypeError(f"{where}: got {type(window).__name__}, expected a coulomb.identify.Window")
        self.where, self.model, self.timestep = where, model, timestep
        self.substeps = count(f"{where}.substeps", window.substeps)
        self._read(window)
        self._place(window)
        self._start(window)

        # Segments of equal length; what is left over makes a shorter last one.
        length = self.rows if segment is None else min(segment, self.rows)
        self.segments = [(first, min(length, self.rows - first)) for first in range(0, self.rows, length)]
        self._guess_states()

    def _array(self, name, value, columns, rows=None):
        """(rows, columns) of finite numbers."""
        name = f"{self.where}.{name}"
        expected = f"({'samples' if rows is None else rows}, {columns})"
        array = numbers(name, value, f"an array {expected} of numbers")
        if array.ndim != 2 or array.shape[1] != columns or (rows is not None and len(array) != rows):
            raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = ", ".join(map(str, bad[0]))
            advice = "; leave samples that are missing out, by times=" if name.endswith((".q", ".v")) else ""
            raise ValueError(f"{name}[{at}] is {array[tuple(bad[0])]}, expected a finite number{advice}")
        return array

    def _vector(self, name, value, size):
        """(size,) of finite numbers."""
        return by_element(f"{self.where}.{name}", np.atleast_1d(value), size, np.isfinite, "finite numbers")

    def _reading(self, name, values, deviation, argument, units, force=False):
        size, given = len(units), deviation is not None
        if given:
            deviation = by_element(f"{self.where}.{argument}", deviation, size, are_positive, "positive")
        return Reading(name, values, deviation if given else np.ones(size), given, units, force)

    def _read(self, window):
        """Signals measured at the same samples."""
        model, samples = self.model, None
        self.readings = []
        if window.q is not None:
            values = model.normalize(self._array("q", window.q, model.nq))
            self.readings.append(self._reading("q", values, window.deviation, "deviation", units(model, "m", "rad")))
            samples = len(values)
        if window.v is not None:
            values = self._array("v", window.v, model.nv, samples)
            of_v = units(model, "m/s", "rad/s")
            self.readings.append(self._reading("v", values, window.v_deviation, "v_deviation", of_v))
            samples = len(values)
        known = {**model.outputs(), **model.force_outputs()}
        given = mapping(f"{self.where}.output_deviation", window.output_deviation)
        for name, value in mapping(f"{self.where}.outputs", window.outputs).items():
            if name not in known:
                model.output(name, model.neutral()[0])  # which names the ones that resemble it
                size = tangent = len(model.output(name, model.neutral()[0]))
            else:
                size, tangent = known[name].size, known[name].tangent_size
            values = self._array(f"outputs['{name}']", value, size, samples)
            if (size, tangent) == (4, 3):
                values = values / np.linalg.norm(values, axis=1, keepdims=True)
            elif size != tangent:
                raise ValueError(
                    f"{self.where}.outputs['{name}']: has no plain difference; measure q, or a position and an orientation"
                )
            unit = known[name].unit if name in known else ""
            argument, force = f"output_deviation['{name}']", name in model.force_outputs()
            self.readings.append(self._reading(name, values, given.get(name), argument, [unit] * tangent, force))
            samples = len(values)
        for name in given:
            if name not in window.outputs:
                raise ValueError(
                    f"{self.where}.output_deviation: '{name}' is none of its outputs: {list(window.outputs)}"
                )
        if samples is None:
            raise ValueError(f"{self.where}: has no data: give q, v or outputs")
        self.num_samples = samples

    def _place(self, window):
        """Rows of inputs, and the row at which each sample was taken."""
        model = self.model
        inputs = {"u": (window.u, model.nu), "tau": (window.tau, model.nv)}
        given = {name: self._array(name, x, size) for name, (x, size) in inputs.items() if x is not None}
        lengths = {name: len(x) for name, x in given.items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{self.where}: u has {lengths['u']} rows and tau {lengths['tau']}")

        # Samples on the grid of rows.
        if window.times is None:
            self.sample_rows = count(f"{self.where}.every", window.every) * np.arange(self.num_samples)
        else:
            times = numbers(f"{self.where}.times", window.times, f"({self.num_samples},) seconds")
            if times.shape != (self.num_samples,):
                raise ValueError(f"{self.where}.times: expected shape ({self.num_samples},), got {times.shape}")
            rows = times / (self.timestep * self.substeps)
            off = np.abs(rows - np.round(rows)) > 1e-3
            bad = np.flatnonzero(~np.isfinite(rows) | off | (rows < 0) | (np.diff(rows, prepend=-1) <= 0.5))
            if len(bad):
                row = self.timestep * self.substeps
                raise ValueError(
                    f"{self.where}.times[{bad[0]}] is {times[bad[0]]}, expected growing multiples of {row:g} s from 0 on"
                )
            self.sample_rows = np.round(rows).astype(int)

        # As many rows as the inputs have, or as the samples need.
        self.rows = next(iter(lengths.values()), int(self.sample_rows[-1]))
        if self.sample_rows[-1] > self.rows:
            raise ValueError(
                f"{self.where}: {self.num_samples} samples reach to row {self.sample_rows[-1]}, but "
                f"{' and '.join(lengths)} {'has' if len(lengths) == 1 else 'have'} {self.rows}; T rows make T + 1 states"
            )
        if self.sample_rows[-1] < 1:
            raise ValueError(f"{self.where}: needs a sample after its start")
        self.rows = int(self.sample_rows[-1])  # what comes after the last sample says nothing
        self.u = given.get("u", np.zeros((self.rows, model.nu)))[: self.rows]
        self.tau = given["tau"][: self.rows] if "tau" in given else None

    def _start(self, window):
        """The first guess of the state at the start, and which coordinates of it are unknown."""
        model = self.model
        measured = {r.name: r.values for r in self.readings}
        if window.start is not None:
            if not isinstance(window.start, (tuple, list)) or len(window.start) != 2:
                raise ValueError(f"{self.where}.start: got {window.start!r}, expected a pair (q, v)")
            q, v = (
                self._vector(f"start[{k}]", x, size) for k, x, size in zip((0, 1), window.start, (model.nq, model.nv))
            )
            self.start = model.normalize(q), v
        elif "q" not in measured or self.sample_rows[0] > 0:
            raise ValueError(f"{self.where}.start: is needed where q was not measured at the start: a guess (q, v)")
        else:
            self.start = None

        deviation = np.inf if window.start_deviation is None else window.start_deviation
        self.start_deviation = by_element(
            f"{self.where}.start_deviation", deviation, 2 * model.nv, lambda x: x >= 0, "0 or more"
        )

    def _guess_states(self):
        """The states that segments start from: start, then measured ones; None where only a simulation can tell."""
        self.guesses = []
        for first, _ in self.segments:
            guess = self.start if first == 0 and self.start is not None else self._measured_state(first)
            self.guesses.append(guess)

    def _measured_state(self, row):
        """(q, v) at a row where q was measured, velocities by the parabola through samples around it where they were not."""
        measured = {r.name: r.values for r in self.readings}
        at = np.flatnonzero(self.sample_rows == row)
        if "q" not in measured or not len(at):
            return None
        k = int(at[0])
        q = measured["q"][k]
        if "v" in measured:
            return q, measured["v"][k]
        first = max(0, min(k - _FIRST_SAMPLES // 2, self.num_samples - _FIRST_SAMPLES))
        near = np.arange(first, min(first + _FIRST_SAMPLES, self.num_samples))
        times = (self.sample_rows[near] - row) * self.timestep * self.substeps
        moved = np.array([self.model.difference(q, measured["q"][j]) for j in near])
        return q, np.polyfit(times, moved, min(2, len(near) - 1))[-2]

    def extent(self, reading):
        """(samples, tangent size): how far a reading is from its first sample."""
        first, values = reading.values[0], reading.values
        if reading.name == "q":
            return np.array([self.model.difference(first, x) for x in values])
        if values.shape[1] != len(reading.units):
            return np.array([turn(first, x) for x in values])
        return values - first

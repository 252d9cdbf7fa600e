"""What was measured: a Window, and the samples and segments that it is simulated in."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

_FIRST_SAMPLES = 9  # that a parabola goes through, for velocities that were not measured


@dataclass
class Window:
    """A measured piece of motion: samples 0 ... T of q, of v, of outputs by name, or of some of them.

    q (T + 1, nq), v (T + 1, nv): states, or None. outputs: {name: (T + 1, size)} (docs/outputs.md). u (rows, nu), tau (rows, nv): what
    acted, each row for `substeps` time steps; None: nothing. every: samples are that many rows apart, the first at the start. times
    (T + 1,): instead, their seconds since the start, on the grid of rows, for samples that are missing or irregular.

    deviation: standard deviation of q, a number or (nv,), in tangent space (m, rad); v_deviation of v; output_deviation {name: number or
    (tangent size,)}. None: not known; residuals are then weighted by 1 and the fit estimates the noise from what remains.

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
    """One measured quantity: values at the samples, and the standard deviations (tangent size,) of their errors."""

    name: str  # "q", "v" or an output
    values: np.ndarray
    deviation: np.ndarray
    force: bool = False  # of a step, and not of a state


class BoundWindow:
    """A Window that fits its model: checked arrays, the rows of the samples, segments (first row, number of rows)."""

    def __init__(self, where, window, model, timestep, segment):
        if not isinstance(window, Window):
            raise TypeError(f"{where}: got {type(window).__name__}, expected a coulomb.identify.Window")
        self.where, self.model, self.timestep = where, model, timestep
        self.substeps = _count(f"{where}.substeps", window.substeps)
        self.noise_known = True
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
        try:
            array = np.asarray(value, float)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: not an array of numbers: {error}") from None
        expected = f"({'samples' if rows is None else rows}, {columns})"
        if array.ndim != 2 or array.shape[1] != columns or (rows is not None and len(array) != rows):
            raise ValueError(f"{name}: expected shape {expected}, got {array.shape}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            at = ", ".join(map(str, bad[0]))
            advice = "; leave samples that are missing out, by times=" if name.endswith((".q", ".v")) else ""
            raise ValueError(f"{name}[{at}] is {array[tuple(bad[0])]}, expected a finite number{advice}")
        return array

    def _deviation(self, name, value, size):
        if value is None:
            self.noise_known = False
            return np.ones(size)
        value = np.asarray(value, float)
        if value.shape not in ((), (size,)) or not np.all(np.isfinite(value) & (value > 0)):
            raise ValueError(f"{self.where}.{name}: got {value}, expected positive: a number or ({size},)")
        return np.broadcast_to(value, (size,)).astype(float)

    def _read(self, window):
        """What was measured, all at the same samples."""
        model, samples = self.model, None
        self.readings = []
        if window.q is not None:
            values = model.normalize(self._array("q", window.q, model.nq))
            self.readings.append(Reading("q", values, self._deviation("deviation", window.deviation, model.nv)))
            samples = len(values)
        if window.v is not None:
            values = self._array("v", window.v, model.nv, samples)
            self.readings.append(Reading("v", values, self._deviation("v_deviation", window.v_deviation, model.nv)))
            samples = len(values)
        known = {**model.outputs(), **model.force_outputs()}
        for name, value in window.outputs.items():
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
            deviation = self._deviation("output_deviation", window.output_deviation.get(name), tangent)
            self.readings.append(Reading(name, values, deviation, name in model.force_outputs()))
            samples = len(values)
        for name in window.output_deviation:
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
            self.sample_rows = _count(f"{self.where}.every", window.every) * np.arange(self.num_samples)
        else:
            times = np.asarray(window.times, float)
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
            q, v = window.start
            self.start = self._array("start", [q], model.nq)[0], self._array("start", [v], model.nv)[0]
            self.start = model.normalize(self.start[0]), self.start[1]
        elif "q" not in measured or self.sample_rows[0] > 0:
            raise ValueError(f"{self.where}.start: is needed where q was not measured at the start: a guess (q, v)")
        else:
            self.start = None

        deviation = np.asarray(np.inf if window.start_deviation is None else window.start_deviation, float)
        if deviation.shape not in ((), (2 * model.nv,)) or not np.all(deviation >= 0):
            raise ValueError(
                f"{self.where}.start_deviation: got {deviation}, expected 0 or more: a number or ({2 * model.nv},)"
            )
        self.start_deviation = np.broadcast_to(deviation, (2 * model.nv,)).astype(float)

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


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name}: got {value!r}, expected a positive integer")
    return int(value)

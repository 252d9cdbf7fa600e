"""The least-squares problem: residuals in standard deviations, and their Jacobian.

x: the unknowns theta (p,), then what is free of the states that segments start from, as a tangent vector from their first guess. Rows of
a window: its measurements, the continuity of its segments, what is known of its start; after all windows the prior of theta.
"""

from __future__ import annotations

import numpy as np

from .._core import Simulator
from .tangent import by_beginning, by_end, by_summand, rotations, turn

_FIRST_NOISE = 1e-3  # of how far a reading goes: the first guess of its noise, so little that no prior outweighs data
_EXACT = 1e-12  # of the largest value: noise is no less, data without any have that of rounding
_FEW = 20  # samples: columns that have fewer take the noise of all of the same unit
_QUIETEST = 0.05  # of the loudest column of a unit: silence may be a sensor that stands still
_STATE_SCALE = 0.01, 0.1  # m, rad and m/s, rad/s: how far a state may be from its first guess without being told


def _size_of(rest):
    """Standard deviation from the median, so that outliers do not count; from squares if half of the values are zero."""
    return 1.4826 * np.median(rest) or np.sqrt(np.mean(rest**2))


class Problem:
    def __init__(self, unknowns, windows, trajectories, continuity, initial_states):
        self.unknowns, self.windows, self.trajectories, self.continuity = unknowns, windows, trajectories, continuity
        self.model, self.nv, self.p = unknowns.model, unknowns.model.nv, unknowns.size
        self.rotations = rotations(self.model)
        self.evaluations, self.refused, self._x, self._residual = 0, 0, None, None
        self._simulate_guesses()

        # Which coordinates of x belong to which segment.
        self.places, self.free, size = {}, {}, self.p
        for w, window in enumerate(windows):
            for s in range(len(window.segments)):
                unknown = window.start_deviation > 0 if s == 0 else np.full(2 * self.nv, True)
                self.free[w, s] = np.flatnonzero(unknown & (initial_states or s > 0))
                self.places[w, s] = slice(size, size + len(self.free[w, s]))
                size += len(self.free[w, s])
        self.size = size
        self._scale()
        self._rows()
        self._guess_noise()

    def _simulate_guesses(self):
        """Segments that start where no state was measured start where the first guess of the parameters leads."""
        model = self.unknowns.at(self.unknowns.start)
        options = {k: v for k, v in self.trajectories.options.items() if k != "num_threads"}
        for window in self.windows:
            if all(guess is not None for guess in window.guesses):
                continue
            r = Simulator(model, **options).rollout(
                *window.guesses[0], window.u, tau=window.tau, substeps=window.substeps
            )
            for s, (first, _) in enumerate(window.segments):
                if window.guesses[s] is None:
                    window.guesses[s] = r.q[first], r.v[first]

    def _scale(self):
        u = self.unknowns
        self.start, self.scale = np.zeros(self.size), np.ones(self.size)
        self.lower, self.upper = np.full(self.size, -np.inf), np.full(self.size, np.inf)
        self.start[: self.p], self.scale[: self.p] = u.start, u.scale
        self.lower[: self.p], self.upper[: self.p] = u.lower, u.upper
        sizes = np.repeat(_STATE_SCALE, self.nv)
        for (w, s), place in self.places.items():
            known = self.windows[w].start_deviation if s == 0 else np.inf
            self.scale[place] = np.where(np.isfinite(known) & (known > 0), known, sizes)[self.free[w, s]]

    def _rows(self):
        """Where samples lie in segments, and which rows of the residual belong to what."""
        self.samples, self.parts, kinds = [], [], []
        for w, window in enumerate(self.windows):
            first = np.array([a for a, _ in window.segments])
            of_reading = []
            for reading in window.readings:
                # A sample between two segments belongs to the later one, where its step is of the earlier one for a force.
                side = "left" if reading.force else "right"
                segment = np.clip(np.searchsorted(first, window.sample_rows, side) - 1, 0, len(first) - 1)
                known = np.flatnonzero(window.sample_rows > 0) if reading.force else np.arange(window.num_samples)
                of_reading.append([(k, segment[k], window.sample_rows[k] - first[segment[k]]) for k in known])
            self.samples.append(of_reading)
            measured = sum(len(s) * len(r.deviation) for s, r in zip(of_reading, window.readings))
            tied = 2 * self.nv * (len(first) - 1)
            free = self.free[w, 0]
            self.parts.append((measured, tied, free[np.isfinite(window.start_deviation[free])]))
            kinds += [np.full(measured, True), np.full(tied + len(self.parts[-1][2]), False)]
        self.ends = np.cumsum([0, *(m + t + len(k) for m, t, k in self.parts)])
        self.prior = np.flatnonzero(np.isfinite(self.unknowns.deviation))
        self.measured = np.concatenate([*kinds, np.full(len(self.prior), False)])
        self.num_rows = len(self.measured)

        # Rows whose noise is not known, by reading and unit over all windows; -1: it is known, or these are no measurements.
        groups, self.noise_of = {}, np.full(self.num_rows, -1)
        for w, r, rows in self.rows_of_readings():
            reading = self.windows[w].readings[r]
            if not reading.given:
                of_one = [groups.setdefault((reading.name, unit), len(groups)) for unit in reading.units]
                self.noise_of[rows] = np.tile(of_one, (rows.stop - rows.start) // len(of_one))
        self.groups = list(groups)
        self.one_column = all(len(reading.deviation) == 1 for window in self.windows for reading in window.readings)

        # States whose Jacobian is needed: those at samples, and the ends that are tied to what follows. And forces.
        self.wanted = {member: set() for member in self.places}
        self.wanted_forces = {}
        for w, window in enumerate(self.windows):
            for reading, samples in zip(window.readings, self.samples[w]):
                wanted = self.wanted
                if reading.force:
                    wanted = self.wanted_forces.setdefault(reading.name, {member: set() for member in self.places})
                for _, s, row in samples:
                    wanted[w, s].add(int(row))
            for s in range(len(window.segments) - 1):
                self.wanted[w, s].add(window.segments[s][1])

    def rows_of_readings(self):
        """(window, reading, rows of the residual) in their order."""
        for w, window in enumerate(self.windows):
            at = self.ends[w]
            for r, (reading, samples) in enumerate(zip(window.readings, self.samples[w])):
                rows = slice(int(at), int(at) + len(samples) * len(reading.deviation))
                yield w, r, rows
                at = rows.stop

    def _of_group(self, group):
        """(window, reading, its columns) of what has this noise."""
        name, unit = self.groups[group]
        for window in self.windows:
            for reading in window.readings:
                if not reading.given and reading.name == name:
                    yield window, reading, np.array([u == unit for u in reading.units])

    def _guess_noise(self):
        """A share of how far each reading goes."""
        for group in range(len(self.groups)):
            ways = [window.extent(reading)[:, columns] for window, reading, columns in self._of_group(group)]
            spread = np.sqrt(np.mean(np.concatenate([way.std(axis=0) for way in ways]) ** 2))
            for _, reading, columns in self._of_group(group):
                reading.deviation[columns] = _FIRST_NOISE * (spread or 1.0)

    def estimate_noise(self, residual):
        """Takes the noise for what remains, column by column."""
        for group in range(len(self.groups)):
            members = list(self._of_group(group))
            rest = self._rest_of(group, residual)
            if not rest:
                continue
            all_columns = np.concatenate(list(rest.values()))
            found = {column: _size_of(x if len(x) >= _FEW else all_columns) for column, x in rest.items()}

            # None is believed to be much quieter than the loudest one.
            loudest = max(found.values())
            least = _EXACT * (max(np.abs(reading.values).max() for _, reading, _ in members) or 1.0)
            for _, reading, _ in members:
                for column, size in found.items():
                    reading.deviation[column] = max(size, _QUIETEST * loudest, least)

        # What was evaluated is no longer in these units; it is made anew, and the start is known to be possible.
        self._residual = self._jacobian = None

    def _rest_of(self, group, residual):
        """{column: what remains of it in all windows, in its unit} of a noise that is estimated."""
        rest = {}
        for w, k, rows in self.rows_of_readings():
            reading = self.windows[w].readings[k]
            table = (
                residual[rows].reshape(-1, len(reading.deviation)),
                self.noise_of[rows].reshape(-1, len(reading.deviation)),
            )
            for column in range(len(reading.deviation)):
                mine = table[0][table[1][:, column] == group, column]
                if len(mine):
                    rest.setdefault(column, []).append(np.abs(mine) * reading.deviation[column])
        return {column: np.concatenate(parts) for column, parts in rest.items()}

    def states(self, x):
        """{(window, segment): (q, v)}, and the tangent vectors from the first guesses."""
        starts, moves = {}, {}
        for (w, s), place in self.places.items():
            move = np.zeros(2 * self.nv)
            move[self.free[w, s]] = x[place]
            q, v = self.windows[w].guesses[s]
            starts[w, s] = self.model.integrate(q, move[: self.nv]), v + move[self.nv :]
            moves[w, s] = move
        return starts, moves

    def residual(self, x):
        """(rows,); infinite where the model refuses the values: least_squares then tries a shorter step."""
        if self._residual is not None and np.array_equal(self._x, x):
            return self._residual
        self.evaluations += 1
        theta = x[: self.p]
        try:
            model = self.unknowns.at(theta)
        except ValueError:
            if self._x is None:
                raise  # the start itself
            self.refused += 1
            return np.full(self.num_rows, np.inf)
        starts, self.moves = self.states(x)
        self.trajectories.run(model, starts)

        # Window by window, then the prior.
        rows = [part for w in range(len(self.windows)) for part in self._window_residual(w)]
        u = self.unknowns
        rows.append(((theta - u.mean) / u.deviation)[self.prior])
        self._x, self._residual, self._jacobian = x.copy(), np.concatenate(rows), None
        return self._residual

    def _window_residual(self, w):
        window, runs = self.windows[w], self.trajectories
        for reading, samples in zip(window.readings, self.samples[w]):
            force = (
                {s: runs.output(reading.name, (w, s)) for s in {s for _, s, _ in samples}} if reading.force else None
            )
            for k, s, row in samples:
                got = force[s][row] if force else self._reading(reading, runs.q[w, s][row], runs.v[w, s][row])
                yield self._error(reading, k, got) / reading.deviation
        for s in range(len(window.segments) - 1):
            yield self._gap(w, s) / self.continuity
        known = self.parts[w][2]
        yield self.moves[w, 0][known] / window.start_deviation[known]

    def _reading(self, reading, q, v):
        if reading.name in ("q", "v"):
            return q if reading.name == "q" else v
        return self.trajectories.model.output(reading.name, q, v)

    def _error(self, reading, k, got):
        """Simulated less measured, in tangent space."""
        if reading.name == "q":
            return self.model.difference(reading.values[k], got)
        if len(got) != len(reading.deviation):
            return turn(reading.values[k], got)
        return got - reading.values[k]

    def _gap(self, w, s):
        """From the end of a segment to the start of the next."""
        runs = self.trajectories
        jump = runs.v[w, s + 1][0] - runs.v[w, s][-1]
        return np.concatenate([self.model.difference(runs.q[w, s][-1], runs.q[w, s + 1][0]), jump])

    def jacobian(self, x):
        """List of (rows of a window, p + its start states), each with its first row and the columns of those states; last, the prior's."""
        self.residual(x)
        if self._jacobian is None:
            D = self.unknowns.jacobian(x[: self.p])
            self._tangents = self.trajectories.jacobians(D, self.wanted)
            self._forces = {name: self.trajectories.forces(name, D, rows) for name, rows in self.wanted_forces.items()}
            self._jacobian = [self._window_jacobian(w, D) for w in range(len(self.windows))]
        return self._jacobian

    def state_columns(self, w):
        """The part of x that belongs to the states of a window."""
        last = len(self.windows[w].segments) - 1
        return slice(self.places[w, 0].start, self.places[w, last].stop)

    def _window_jacobian(self, w, D):
        window, p, nv = self.windows[w], self.p, self.nv
        columns = self.state_columns(w)
        J = np.zeros((self.ends[w + 1] - self.ends[w], p + columns.stop - columns.start))
        at = 0

        # By the state that a segment starts from, and by what is free of it.
        into = {}
        for s in range(len(window.segments)):
            start = np.eye(2 * nv)
            start[:nv, :nv] = by_summand(self.rotations, self.moves[w, s][:nv])
            place = self.places[w, s]
            into[s] = start[:, self.free[w, s]], slice(p + place.start - columns.start, p + place.stop - columns.start)

        def put(rows, s, by_x):
            free, place = into[s]
            J[rows, :p] += by_x[:, :p]
            J[rows, place] += by_x[:, p:] @ free

        for reading, samples in zip(window.readings, self.samples[w]):
            for k, s, row in samples:
                if reading.force:
                    by_x = self._forces[reading.name][w, s][row]
                else:
                    by_x = self._reading_jacobian(w, reading, k, s, row, D)
                rows = slice(at, at + len(reading.deviation))
                put(rows, s, by_x / reading.deviation[:, None])
                at = rows.stop
        for s in range(len(window.segments) - 1):
            rows = slice(at, at + 2 * nv)
            gap = self._gap(w, s)
            end, start = -np.eye(2 * nv), np.zeros((2 * nv, p + 2 * nv))
            end[:nv, :nv] = by_beginning(self.rotations, gap[:nv])
            start[:, p:] = np.eye(2 * nv)
            start[:nv, p : p + nv] = by_end(self.rotations, gap[:nv])
            put(rows, s, end @ self._tangents[w, s][window.segments[s][1]] / self.continuity[:, None])
            put(rows, s + 1, start / self.continuity[:, None])
            at = rows.stop
        known = self.parts[w][2]
        for k in known:
            J[at, p + int(np.flatnonzero(self.free[w, 0] == k)[0])] = 1 / window.start_deviation[k]
            at += 1
        return J

    def _reading_jacobian(self, w, reading, k, s, row, D):
        """(tangent size, p + 2 nv) of the error of one sample."""
        runs, X = self.trajectories, self._tangents[w, s][row]
        q, v = runs.q[w, s][row], runs.v[w, s][row]
        if reading.name == "q":
            return by_end(self.rotations, self.model.difference(reading.values[k], q)) @ X[: self.nv]
        if reading.name == "v":
            return X[self.nv :]
        by_q, by_v = (runs.model.output_jacobian(reading.name, q, v, wrt) for wrt in ("q", "v"))
        by_x = by_q @ X[: self.nv] + by_v @ X[self.nv :]
        for name, by_unknowns in D.items():
            by_x[:, : self.p] += runs.model.output_jacobian(reading.name, q, v, name) @ by_unknowns
        if len(reading.deviation) != reading.values.shape[1]:
            error = self._error(reading, k, self._reading(reading, q, v))
            by_x = by_end([0], error) @ by_x
        return by_x

"""How far estimates scatter: the covariance of an M-estimator, with the noise of each channel as it remains.

Measurements r (in stated deviations) of loss rho(r) are fitted where sum psi(r) dr/dx = 0, psi = rho'. With a = E[psi'] and b = E[psi^2] of
each channel, a column of a reading, and a = b = 1 of ties and priors, the estimate scatters by

  C = A^-1 B A^-1,   A = sum a j j^T,   B = sum b j j^T,   j the row of the Jacobian.

The states are eliminated window by window: in weights a, each row of theta's Jacobian less what the states explain. E[psi^2] is a sum
over what is free: rows that the fit passes through anyway, by their leverage, tell nothing of the noise.
"""

from __future__ import annotations

import numpy as np

from .report import basis_of_states, beside, is_unseen

_FEW = 20  # rows: channels of a window that are shorter are judged together with those of other windows
_FREE = 0.5  # of a row must be left by a fit for its residual to tell its noise
_TRUSTED = 1e-3  # least E[psi']: where all rows are outliers nothing would hold the unknowns
_QUIETEST = 1e-4  # of the largest b: for what the data say, no channel counts as quieter


class Scatter:
    """Covariance of a fit at its end. jacobian: by window; psi, psi_slope: (rows,); robust: known noise is estimated anew, too."""

    def __init__(self, problem, jacobian, psi, psi_slope, robust):
        self.problem, self.jacobian, self.p = problem, jacobian, problem.p
        self.scale = problem.unknowns.scale
        self.prior = self.scale**2 / problem.unknowns.deviation**2
        judged = problem.measured & ((problem.noise_of >= 0) | robust)
        self.channels = _channels(problem, judged)

        # E[psi'], then E[psi^2] of what is free in the fit by these weights.
        self.a, self.b = np.ones(problem.num_rows), np.ones(problem.num_rows)
        for rows in self.channels:
            self.a[rows] = max(np.mean(psi_slope[rows]), _TRUSTED)
        self._eliminate()
        free = 1 - self._leverage()
        for rows in self.channels:
            left = free[rows].sum()
            if left > _FREE:
                self.b[rows] = np.sum(psi[rows] ** 2) / left
            elif problem.noise_of[rows[0]] >= 0:
                self.b[rows] = np.mean(psi[rows] ** 2)  # passed through: no noise is seen

    def _eliminate(self):
        """For each window: the basis Q of the states' columns and the part of theta's columns outside it, weighted by a and scaled."""
        self.parts, at = [], 0
        for J in self.jacobian:
            weighted = J * np.sqrt(self.a[at : at + len(J), None])
            at += len(J)
            Q = basis_of_states(weighted[:, self.p :])
            self.parts.append((Q, beside(weighted[:, : self.p] * self.scale, Q)))

    def _inverse(self, free):
        """V / sizes of the seen directions of A, (free, k); and those that are not seen, (rows, free)."""
        beside_states = [np.linalg.qr(S[:, free], mode="r") for _, S in self.parts]
        A = np.vstack([*beside_states, np.diag(np.sqrt(self.prior))[:, free]])
        _, sizes, V = np.linalg.svd(A, full_matrices=False)
        seen = ~is_unseen(sizes)
        return V[seen].T / sizes[seen], V[~seen]

    def _leverage(self):
        """(rows,): by how much of its own error each measurement moves the fit to itself."""
        inverse, _ = self._inverse(np.arange(self.p))
        out = [np.sum(Q**2, axis=1) + np.sum((S @ inverse) ** 2, axis=1) for Q, S in self.parts]
        return np.concatenate([*out, np.zeros(self.problem.num_rows - sum(map(len, out)))])

    def covariance(self, held):
        """(p, p); inf on the diagonal where nothing is known, nan where held (p,)."""
        free = np.flatnonzero(~held)
        C = np.full((self.p, self.p), np.nan)
        if not len(free):
            return C
        inverse, unseen = self._inverse(free)

        # What the errors of each row do to the unknowns.
        moves, at = [np.diag(np.sqrt(self.prior))[:, free] @ inverse], 0
        for _, S in self.parts:
            rows = slice(at, at + len(S))
            at += len(S)
            moves.append(S[:, free] * np.sqrt(self.b[rows] / self.a[rows])[:, None] @ inverse)
        moves = np.vstack(moves) @ inverse.T
        part = moves.T @ moves
        part[np.diag_indices(len(free))] += np.where((unseen**2).sum(0) > 1e-10, np.inf, 0.0)
        C[np.ix_(free, free)] = part * np.outer(self.scale[free], self.scale[free])
        return C

    def noise(self):
        """(rows,): the deviation that remains, in stated ones."""
        return np.sqrt(self.b) / self.a

    def telling(self):
        """(rows,): how much a measurement tells, for what the data do and do not determine."""
        b = self.b.copy()
        for rows in self.channels:
            b[rows] = max(self.b[rows[0]], _QUIETEST * max(self.b[others[0]] for others in self.channels), 1e-300)
        return self.a**2 / b


def _channels(problem, judged):
    """List of row numbers: of each column of each reading by window, or of all windows where those are short."""
    alone, short = [], {}
    for w, k, rows in problem.rows_of_readings():
        reading = problem.windows[w].readings[k]
        numbers = np.arange(rows.start, rows.stop).reshape(-1, len(reading.deviation))
        for column in range(numbers.shape[1]):
            mine = numbers[judged[numbers[:, column]], column]
            if len(mine) >= _FEW:
                alone.append(mine)
            elif len(mine):
                short.setdefault((reading.name, column), []).append(mine)
    return alone + [np.concatenate(rows) for rows in short.values()]

"""Results of a fit: values with standard errors, and which unknowns or combinations of them the data do not determine.

With the Jacobian J = [Theta, X] of the measurements and ties by unknowns and by states, in standard deviations, the states are
eliminated window by window: S = (1 - Q Q^T) Theta, Q an orthonormal basis of the columns of X. The singular values of S times the scales
of the unknowns are how many standard deviations the data move when the unknowns move by their scales in that direction: below 1 they say
less than the scale did, and at 0 nothing. Rows are weighed by the noise that remains (scatter.py, which has the covariance, too).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_UNSEEN = 1e-8  # singular values below this share of the largest are rounding
_NOTHING = 1e-6  # and so are movements of the data of so few standard deviations
_EXPLAINED = "unknown starts aside"
_NAMED = 0.1  # unknowns with smaller components are not named in a direction


@dataclass
class Direction:
    """A combination of unknowns that the data determine less well than its scale.

    components: {unknown: share}, in units of its scale. singular_value: by how many standard deviations the data move when the unknowns
    move by it and unknown starts make up for what they can; 0: not at all. What a fit says along it is then no measurement.
    """

    components: dict
    singular_value: float

    def __str__(self):
        told = {
            label: x
            for label, x in self.components.items()
            if abs(x) >= _NAMED * max(map(abs, self.components.values()))
        }
        if len(told) == 1:
            what = next(iter(told))
        else:
            what = " ".join(f"{x:+.2g} {label}" for label, x in told.items())
            what = f"{what} (each in units of its scale)"
        if self.singular_value == 0:
            if len(told) == 1:
                return f"not determined: {what}: nothing that was measured depends on it, {_EXPLAINED}"
            return (
                f"not determined: {what}: moved together like this, they change nothing that was measured, {_EXPLAINED}"
            )
        return f"hardly determined: {what}: moved by its scale, the data move by {self.singular_value:.1g} standard deviations"


@dataclass(repr=False)
class Fit:
    """Result of fit(); print(fit) shows a table.

    model: the Model with the values found. values, errors: {parameter: value}, {unknown: standard error} of what `print` shows. labels,
    x, covariance, correlation: of the p unknowns as they are fitted (logarithms where log=True): names, (p,), (p, p), (p, p); of a robust loss
    and of noise that was estimated with what remains in each column of each reading.
    held: unknowns that ended at a bound, {label: "lower" or "upper"}; they have no standard error (nan), and those that nothing determines have inf.
    singular_values (p,), undetermined: list of Direction. sensitivity (rows, p): what they are of, S above: what the data know of x is S^T S.

    residuals: per window {reading: (samples, size)} in standard deviations. rms: of all of them. noise: per window {reading: (size,)} the
    standard deviations that remain, in the units of the measurements. estimated: (reading, unit) whose noise was not known. cost: 0.5 sum
    of the losses; history: the cost at every accepted point. evaluations; refused: points at which the model was refused.
    status: why it ended. converged: at an optimum. unsolved: rows of simulated trajectories with a step that was not solved as posed;
    ambiguous: rows whose derivative was ambiguous (docs/conventions.md). starts: per window (q, v), the states at time 0.
    """

    model: object
    values: dict
    labels: list
    x: np.ndarray
    shown: np.ndarray
    first: np.ndarray
    errors: dict
    covariance: np.ndarray
    correlation: np.ndarray
    held: dict
    singular_values: np.ndarray
    sensitivity: np.ndarray
    undetermined: list
    residuals: list
    rms: float
    noise: list
    estimated: list
    cost: float
    history: list
    evaluations: int
    refused: int
    status: str
    converged: bool
    unsolved: int
    ambiguous: int
    starts: list

    def __repr__(self):
        return f"<Fit: {len(self.labels)} unknowns, rms {self.rms:.3g}, {self.status}>"

    def __str__(self):
        # One line per unknown.
        width = max(len("unknown"), *map(len, self.labels))
        lines = [f"{'unknown':<{width}}  {'value':>12}  {'std. error':>10}  {'start':>12}"]
        for label, value, first in zip(self.labels, self.shown, self.first):
            error = self.errors[label]
            note = f"  at its {self.held[label]} bound" if label in self.held else ""
            note = "  not determined" if np.isinf(error) else note
            told = "-" if np.isnan(error) else f"{error:.2g}"
            lines.append(f"{label:<{width}}  {value:>12.6g}  {told:>10}  {first:>12.6g}{note}")

        # Then how it went, and what to know about it.
        remains = "in estimated deviations" if self.estimated else "1 expected"
        count = sum(r.size for window in self.residuals for r in window.values())
        lines.append(f"{self.status}; {self.evaluations} evaluations, cost {self.history[0]:.4g} to {self.cost:.4g}")
        lines.append(f"rms of {count} residuals: {self.rms:.3g} ({remains})")
        for name in dict.fromkeys(name for name, _ in self.estimated):
            found = sorted(float(x) for window in self.noise for x in window.get(name, ()))
            told = list(dict.fromkeys(f"{x:.2g}" for x in found))
            told = [f"{told[0]} to {told[-1]}"] if len(told) > 4 else told
            lines.append(f"noise of {name}, estimated: {', '.join(told)}")
        lines += [str(direction) for direction in self.undetermined]
        pairs = [(abs(self.correlation[i, j]), i, j) for i in range(len(self.x)) for j in range(i)]
        for _, i, j in sorted((p for p in pairs if p[0] > 0.95), reverse=True)[:5]:
            lines.append(f"correlation {self.correlation[i, j]:+.3f}: {self.labels[j]}, {self.labels[i]}")
        for number, what in (
            (self.unsolved, "rows have a step that was not solved as posed (docs/trouble.md)"),
            (self.ambiguous, "rows have an ambiguous derivative (docs/conventions.md)"),
            (self.refused, "evaluations were refused by the model"),
        ):
            if number:
                lines.append(f"{number} {what}")
        return "\n".join(lines)


def basis_of_states(states):
    """An orthonormal basis of their columns (rows, k)."""
    if not states.shape[1]:
        return states
    U, sizes, _ = np.linalg.svd(states, full_matrices=False)
    return U[:, sizes > 1e-12 * max(sizes[0], 1e-300)]


def beside(theta, Q):
    """theta less its part in Q; twice, to rounding."""
    theta = theta - Q @ (Q.T @ theta)
    return theta - Q @ (Q.T @ theta)


def reduced(jacobian, weights, p):
    """(rows, p): the part of Theta that no change of the states explains, window by window; weights (rows,) of all windows."""
    parts, at = [], 0
    for J in jacobian:
        J = J * weights[at : at + len(J), None]
        at += len(J)
        parts.append(np.linalg.qr(beside(J[:, :p], basis_of_states(J[:, p:])), mode="r"))
    return np.concatenate(parts)


def without_unseen(jacobian, scale, noise):
    """The Jacobian with exact zeros where directions() finds nothing but rounding, so that no step is taken for that.

    noise: standard deviation of the residuals; 0: not known.
    """
    p = len(scale)
    S = reduced(jacobian, np.ones(sum(map(len, jacobian))), p)
    _, sizes, V = np.linalg.svd(np.vstack([S * scale, np.zeros((p, p))]), full_matrices=False)
    V = V[is_unseen(sizes, noise)]
    if not len(V):
        return jacobian
    out = []
    for J in jacobian:
        rounding = beside(J[:, :p] * scale @ V.T, basis_of_states(J[:, p:]))
        out.append(np.hstack([J[:, :p] - rounding @ V / scale, J[:, p:]]))
    return out


def is_unseen(sizes, noise=1.0):
    return sizes <= max(_UNSEEN * sizes[0], _NOTHING * noise)


def directions(S, scale, labels):
    """(singular values (p,), list of Direction) of what S (rows, p) says less of than the scales."""
    p = len(scale)
    _, sizes, V = np.linalg.svd(np.vstack([S * scale, np.zeros((p, p))]), full_matrices=False)
    unseen = is_unseen(sizes)
    found = [Direction(_components(row, labels), 0.0) for row in _few(V[unseen])]
    weak = np.flatnonzero(~unseen & (sizes < 1))
    return np.where(unseen, 0.0, sizes), found + [Direction(_components(V[k], labels), float(sizes[k])) for k in weak]


def _components(row, labels):
    row = row * np.sign(row[np.argmax(np.abs(row))])
    return {label: float(x) for label, x in zip(labels, row) if abs(x) > 1e-6}


def _few(basis):
    """A basis of the same space with few entries per row: reduced to echelon form, pivots the largest entries; rows of length 1."""
    rows = basis.copy()
    for k in range(len(rows)):
        i, j = np.unravel_index(np.argmax(np.abs(rows[k:])), rows[k:].shape)
        rows[[k, k + i]] = rows[[k + i, k]]
        rows[k] /= rows[k, j]
        others = np.arange(len(rows)) != k
        rows[others] -= np.outer(rows[others, j], rows[k])
    rows[np.abs(rows) < 1e-7] = 0.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)

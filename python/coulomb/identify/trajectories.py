"""Rollouts of all segments side by side, and their Jacobians by the unknowns and by the states that they start from.

Within a segment, with x_t = (q_t, v_t) in tangent space and the derivatives A, F of one step by state and parameters (docs/trajectories.md):
X_0 = [0, I], X_(t+1) = A_t X_t + [F_t D, 0], D the derivative of the parameters by the unknowns. A step of bdf2 depends on two states:
there A' X_(t-1) is added, and substeps are rows.
"""

from __future__ import annotations

import numpy as np

from .._core import BatchSimulator

_LARGEST = 2**28  # bytes of the Jacobians of steps that are held at a time


class _Group:
    """Segments of the same length, which one BatchSimulator runs."""

    def __init__(self, members, rows, substeps, split):
        self.members, self.rows = members, rows
        self.split = substeps if split else 1  # rows of the rollout per row of inputs
        self.substeps = 1 if split else substeps

    def inputs(self, windows, name):
        """(n, rows of the rollout, size), or None."""
        values = []
        for w, s in self.members:
            first, rows = windows[w].segments[s]
            x = getattr(windows[w], name)
            if x is None:
                return None
            values.append(np.repeat(x[first : first + rows], self.split, axis=0))
        return np.ascontiguousarray(values)


class Trajectories:
    """Runs the segments of all windows from given states with a given model."""

    def __init__(self, windows, model, names, options):
        # Segments that can run side by side, in portions whose Jacobians fit into memory.
        self.windows, self.names, self.options = windows, names, options
        split = options.get("stepper") == "bdf2"
        numbers = sum(model.parameters()[name].size for name in names)
        alike = {}
        for w, window in enumerate(windows):
            for s, (_, rows) in enumerate(window.segments):
                alike.setdefault((rows, window.substeps, window.tau is None), []).append((w, s))
        self.groups = []
        for (rows, substeps, _), members in alike.items():
            each = 8 * rows * substeps * 2 * model.nv * (4 * model.nv + model.nu + numbers)
            at_once = max(1, int(_LARGEST // each))
            for k in range(0, len(members), at_once):
                self.groups.append(_Group(members[k : k + at_once], rows, substeps, split))

    def run(self, model, starts):
        """Runs all segments from starts {(window, segment): (q, v)}. Fills q and v {(window, segment): (rows + 1, size)}."""
        self.model, self.rollouts, self.q, self.v = model, [], {}, {}
        for group in self.groups:
            batch = BatchSimulator(model, num_envs=len(group.members), **self.options)
            Q0, V0 = (np.array([starts[member][k] for member in group.members]) for k in (0, 1))
            U, tau = group.inputs(self.windows, "u"), group.inputs(self.windows, "tau")
            rollout = batch.rollout(Q0, V0, U, tau=tau, substeps=group.substeps)
            self.rollouts.append(rollout)
            for k, member in enumerate(group.members):
                self.q[member], self.v[member] = rollout.q[k, :: group.split], rollout.v[k, :: group.split]

    def unsolved(self, w):
        """Rows of window w in which a step was not solved as posed."""
        found = 0
        for group, rollout in zip(self.groups, self.rollouts):
            of_window = [k for k, member in enumerate(group.members) if member[0] == w]
            found += int(np.sum(~rollout.converged[of_window]))
        return found

    def jacobians(self, D, wanted):
        """{(window, segment): {row: (2 nv, p + 2 nv)}} at the rows wanted {(window, segment): rows}. D: {parameter: (size, p)}."""
        p = next(iter(D.values())).shape[1]
        out, self.ambiguous = {}, 0
        for group, rollout in zip(self.groups, self.rollouts):
            steps = rollout.linearize(self.names)
            for k in np.flatnonzero(~steps.valid):
                where = self.windows[group.members[k][0]].where
                raise OverflowError(f"{where}: its simulation overflows at these values, and has no derivative")
            self.ambiguous += int(steps.ambiguous.sum())
            by_unknowns = sum(steps[name] @ D[name] for name in self.names)
            for member in group.members:
                out[member] = {}

            # Forward, for all segments at once; what samples and the end of a segment need is kept.
            X = np.zeros((len(group.members), steps.A.shape[-1], p + steps.A.shape[-1]))
            X[:, :, p:] = np.eye(steps.A.shape[-1])
            before = np.zeros_like(X)
            for t in range(steps.A.shape[1] + 1):
                row, rest = divmod(t, group.split)
                for k, member in enumerate(group.members):
                    if rest == 0 and row in wanted[member]:
                        out[member][row] = X[k]
                if t < steps.A.shape[1]:
                    after = steps.A[:, t] @ X
                    if steps.A_previous is not None:
                        after += steps.A_previous[:, t] @ before
                    after[:, :, :p] += by_unknowns[:, t]
                    before, X = X, after
        return out

    def forces(self, name, D, wanted):
        """As above, for an output that is a force of a step, (tangent size, p + 2 nv): a reverse sweep for each of its numbers."""
        out = {}
        for group, rollout in zip(self.groups, self.rollouts):
            shape = rollout.output(name).shape
            for member in group.members:
                out[member] = {row: [] for row in wanted[member]}
            for row in sorted({row for member in group.members for row in wanted[member]}):
                for i in range(shape[-1]):
                    W = np.zeros(shape)
                    W[:, row * group.split, i] = 1.0
                    g = rollout.vjp(outputs={name: W}, wrt=self.names)
                    by_unknowns = sum(g[parameter] @ D[parameter] for parameter in self.names)
                    rows = np.hstack([by_unknowns, g.q0, g.v0])
                    for k, member in enumerate(group.members):
                        if row in out[member]:
                            out[member][row].append(rows[k])
        return {member: {row: np.array(rows) for row, rows in found.items()} for member, found in out.items()}

    def output(self, name, member):
        """(rows + 1, size) readings of a force along a segment."""
        for group, rollout in zip(self.groups, self.rollouts):
            if member in group.members:
                return rollout.output(name)[group.members.index(member), :: group.split]
        raise KeyError(member)

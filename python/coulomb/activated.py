"""ActivatedSimulator: steps, rollouts and control steps whose state has the activations of actuators, x = (q, v, a).

The activation's law (Activations) gives what acts in a step and the activation after it, e = f(a, u) and a1 = g(a, u), actuator by actuator.
The step of the simulator is (q1, v1) = s(q, v, e) with derivatives A and B. By the chain rule

    A' = [A  B f_a]     B' = [B f_u]
         [0  g_a  ]          [g_u  ]

and products forward and backward go through both one after the other.
"""

from __future__ import annotations

import numpy as np

from ._core import BatchSimulator, Simulator, _substeps_of
from ._substeps import composed, grouped
from .activations import Activations


class ActivatedSimulator:
    """A Simulator or BatchSimulator with the activations of its actuators as a part of the state.

    ::

        sim = coulomb.ActivatedSimulator(coulomb.Simulator(model))
        q, v, a = sim.initial
        for ...:
            q, v, a = sim.step(q, v, a, u)         # u: the controls, as MuJoCo's ctrl
        A, B = sim.derivatives()                   # (2 nv + nu, 2 nv + nu), (2 nv + nu, nu)
        r = sim.rollout(q0, v0, a0, U)             # r.q, r.v, r.activation (T + 1, .)
        g = r.vjp(dQ, dV, dA)                      # g.q, g.v, g.activation (nu,), g.u (T, nu)

    a (nu,) are the activations as Activations has them: of an actuator without one it is the last control, and does nothing. Arrays of a batch
    have the environment as their first axis. Everything else is that of the simulator, which is `sim.simulator`: one call at a time,
    reset(), status, output().

    simulator: a Simulator or a BatchSimulator, whose time step must stay as it is. TypeError: something else; ValueError: environments of a
    batch with different time steps.
    """

    def __init__(self, simulator):
        if not isinstance(simulator, (Simulator, BatchSimulator)):
            raise TypeError(
                f"simulator: expected a coulomb.Simulator or a coulomb.BatchSimulator, got {type(simulator).__name__}"
            )
        self.simulator = simulator
        self.activations = Activations(simulator.model, simulator.timestep)
        self._lead = (simulator.num_envs,) if isinstance(simulator, BatchSimulator) else ()
        self._last = None
        if self._lead and not simulator._options["timestep"]:
            steps = sorted({model.timestep for model in simulator._models})
            if len(steps) > 1:
                raise ValueError(
                    f"simulator: its environments have time steps from {steps[0]} to {steps[-1]} s, expected one"
                )

    def __repr__(self):
        return f"<ActivatedSimulator: {self.activations.size} activations, of {self.simulator!r}>"

    @property
    def model(self):
        return self.simulator.model

    @property
    def initial(self):
        """(q, v, a): the neutral configuration at rest, activations zero; of a batch a row per environment."""
        state = (*self.model.neutral(), self.activations.initial)
        return tuple(np.tile(x, (*self._lead, 1)) if self._lead else x.copy() for x in state)

    def reset(self):
        """The simulator forgets its last step."""
        self._last = None
        self.simulator.reset()

    def step(self, q, v, a, u=None, tau=None, fext=None, **more):
        """(q1, v1, a1). a: the activations, u: the controls (None: zero), (nu,) each. more: mocap, and of a batch mask, as in its step; where
        the mask leaves environments out, a stays. ValueError names the argument; the simulator has not stepped then."""
        a, u = self._array("a", a), self._controls(u)
        acting, after = self.activations.step(a, u)
        stays = self._stays(more.get("mask"))
        q1, v1 = self.simulator.step(q, v, np.ascontiguousarray(acting), tau, fext, **more)
        self._last = a, u, stays
        return q1, v1, after if stays is None else np.where(stays, a, after)

    def derivatives(self, wrt=()):
        """ActivatedDerivatives of the last step. wrt: names of parameters. RuntimeError: no step was taken yet."""
        a, u, stays = self._of_last_step()
        return ActivatedDerivatives(self.simulator.derivatives(list(wrt)), self._slopes(a, u, stays))

    def vjp(self, dq1=None, dv1=None, da1=None, wrt=()):
        """Reverse mode: cotangents (nv), (nv), (nu) of q1, v1 and a1 (None: zero) to the ActivatedCotangent of q, v, a, u, tau and of the
        parameters of wrt. RuntimeError: no step was taken yet."""
        a, u, stays = self._of_last_step()
        dq1, dv1 = (np.zeros((*self._lead, self.model.nv)) if w is None else w for w in (dq1, dv1))
        da1 = self._zero(da1, "da1")
        g = self.simulator.vjp(dq1, dv1, list(wrt))
        return self._pulled_back(g, g.q, g.v, self._slopes(a, u, stays), da1)

    def jvp(self, dq=None, dv=None, da=None, du=None, dtau=None):
        """Forward mode: tangents of q, v, a, u and tau (None: zero) to those of q1, v1 and a1."""
        a, u, stays = self._of_last_step()
        slopes = self._slopes(a, u, stays)
        da, du = self._zero(da, "da"), self._zero(du, "du")
        dq1, dv1 = self.simulator.jvp(dq, dv, slopes.acting(da, du), dtau)
        return dq1, dv1, slopes.after(da, du)

    def rollout(self, q0, v0, a0, U=None, *, steps=None, tau=None, fext=None, mocap=None, substeps=1, **options):
        """ActivatedRollout: T steps under the controls U (T, nu), or `steps` steps without. substeps: each row of inputs is held for so many
        steps, and the activation moves on in each of them. options: those of the simulator's rollout. ValueError names the argument."""
        a0 = self._array("a0", a0)
        if U is None:
            if steps is None:
                raise ValueError("steps: needed when U is None")
            U = np.zeros((*self._lead, steps, self.model.nu))
        U = self.activations._array("U", np.asarray(U, dtype=float))
        expected = (*self._lead, U.shape[-2] if U.ndim > 1 else 0, self.model.nu)
        if U.shape != expected:
            raise ValueError(f"U: got shape {U.shape}, expected {(*self._lead, 'T', self.model.nu)}".replace("'", ""))
        if steps is not None and steps != U.shape[-2]:
            raise ValueError(f"steps: got {steps}, but U has {U.shape[-2]} rows")
        substeps = _substeps_of(substeps, U.shape[-2])

        # What acts in every step; the simulator's rollout knows no activation.
        held = np.repeat(U, substeps, axis=-2)
        acting, states = np.empty(held.shape), np.empty((*self._lead, held.shape[-2] + 1, held.shape[-1]))
        states[..., 0, :] = a0
        for t in range(held.shape[-2]):
            acting[..., t, :], states[..., t + 1, :] = self.activations.step(states[..., t, :], held[..., t, :])
        axis = len(self._lead)
        inputs = {"tau": tau, "fext": fext, "mocap": mocap}
        inputs = {name: _held(x, axis, substeps, name) for name, x in inputs.items() if x is not None}
        rollout = self.simulator.rollout(q0, v0, np.ascontiguousarray(acting), **inputs, **options)
        return ActivatedRollout(self, rollout, states, held, acting, substeps)

    def control_step(
        self, Q, V, A, U=None, *, tau=None, fext=None, mocap=None, substeps=1, mask=None, derivatives=True
    ):
        """(Q1, V1, A1, record) of a batch: as BatchSimulator.control_step, `substeps` steps with the inputs held, in each of which the
        activation moves on. The ActivatedControlStep stays good when the batch goes on. TypeError: not of a single simulator."""
        if not self._lead:
            raise TypeError("control_step: this is a single Simulator; take step or rollout, or a BatchSimulator")
        A, U = self._array("A", A), self._controls(U, "U")
        substeps, stays = _substeps_of(substeps, len(A)), self._stays(mask)
        more = {"tau": tau, "fext": fext, "mask": mask, "derivatives": derivatives}
        records, slopes = [], []
        for k in range(substeps):
            acting, after = self.activations.step(A, U)
            Q, V, record = self.simulator.control_step(
                Q, V, np.ascontiguousarray(acting), mocap=mocap if k == 0 else None, **more
            )
            records.append(record)
            if derivatives:
                slopes.append(self._slopes(A, U, stays))
            A = after if stays is None else np.where(stays, A, after)
        return Q, V, A, ActivatedControlStep(self, records, slopes)

    def _array(self, name, value):
        array = self.activations._array(name, np.asarray(value, dtype=float))
        if array.shape != (*self._lead, self.model.nu):
            raise ValueError(f"{name}: got shape {array.shape}, expected {(*self._lead, self.model.nu)}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            place = ", ".join(map(str, bad[0]))
            raise ValueError(f"{name}[{place}] is {array[tuple(bad[0])]}, expected a finite number")
        return array.copy()

    def _controls(self, u, name="u"):
        return np.zeros((*self._lead, self.model.nu)) if u is None else self._array(name, u)

    def _zero(self, value, name):
        return np.zeros((*self._lead, self.model.nu)) if value is None else self._array(name, value)

    def _stays(self, mask):
        """(n, 1) bool: environments that do not step; None: all do."""
        return None if mask is None else ~np.asarray(mask, dtype=bool)[:, None]

    def _of_last_step(self):
        if self._last is None:
            raise RuntimeError("derivatives: no step was taken yet by this ActivatedSimulator")
        return self._last

    def _slopes(self, a, u, stays=None):
        return _Slopes(self.activations, a, u, stays)

    def _pulled_back(self, g, q, v, slopes, da1):
        parts = {"q": q, "v": v, "tau": g.tau}
        parts["activation"], parts["u"] = slopes.pulled_back(g.u, da1)
        return ActivatedCotangent(parts, g)


class _Slopes:
    """The derivatives of what acts and of the activation after, by the activation and the control: (..., nu) each."""

    def __init__(self, activations, a, u, stays=None):
        one, zero = np.ones(np.broadcast_shapes(np.shape(a), np.shape(u))), 0.0
        zero = zero * one
        self.f_a, self.f_u = activations.vjp(a, u, one, zero)
        self.g_a, self.g_u = activations.vjp(a, u, zero, one)
        if stays is not None:
            self.f_a, self.f_u, self.g_u = (np.where(stays, 0.0, x) for x in (self.f_a, self.f_u, self.g_u))
            self.g_a = np.where(stays, 1.0, self.g_a)

    def acting(self, da, du):
        return self.f_a * da + self.f_u * du

    def after(self, da, du):
        return self.g_a * da + self.g_u * du

    def pulled_back(self, acting, after):
        """Cotangents of (a, u)."""
        return self.f_a * acting + self.g_a * after, self.f_u * acting + self.g_u * after

    def matrices(self, A, B):
        """A' and B' of matrices (..., 2 nv, .)."""
        n, nu = A.shape[-1], B.shape[-1]
        big_A, big_B = np.zeros((*A.shape[:-2], n + nu, n + nu)), np.zeros((*A.shape[:-2], n + nu, nu))
        big_A[..., :n, :n], big_A[..., :n, n:] = A, B * self.f_a[..., None, :]
        big_B[..., :n, :] = B * self.f_u[..., None, :]
        k = np.arange(nu)
        big_A[..., n + k, n + k], big_B[..., n + k, k] = self.g_a, self.g_u
        return big_A, big_B


def _with_rows(columns, nu):
    """Columns (..., 2 nv, k) with rows of activations, which do not move."""
    return np.concatenate([columns, np.zeros((*columns.shape[:-2], nu, columns.shape[-1]))], axis=-2)


class ActivatedDerivatives:
    """Jacobians of one step of (q, v, a) in tangent space. A, B = d unpacks the first two.

    A (2 nv + nu, 2 nv + nu) by (q, v, a), B (2 nv + nu, nu) by the controls, B_tau (2 nv + nu, nv), d[name] of a parameter. step: those of
    the simulator's step. Of a batch with the environment as the first axis.
    """

    def __init__(self, step, slopes):
        self.step = step
        self.A, self.B = slopes.matrices(np.asarray(step.A), np.asarray(step.B))
        self._nu = self.B.shape[-1]
        self.B_tau = _with_rows(np.asarray(step.B_tau), self._nu)

    def __iter__(self):
        return iter((self.A, self.B))

    def __getitem__(self, name):
        return _with_rows(np.asarray(self.step[name]), self._nu)


class ActivatedCotangent:
    """Gradient of a function of the next state, or of a trajectory: q, v (nv), activation (nu), u, tau, and g[name] of a parameter of wrt. Of a
    rollout q, v and activation are those of the initial state, and u and tau have a row for each row of inputs."""

    def __init__(self, parts, found):
        self._found = found
        for name, value in parts.items():
            setattr(self, name, value)
        self._names = tuple(parts)

    def __getitem__(self, name):
        return getattr(self, name) if name in self._names else self._found[name]


class ActivatedRollout:
    """A trajectory of (q, v, a), with what its derivatives need.

    q (T + 1, nq), v (T + 1, nv), activation (T + 1, nu): the initial state first. acting (T, nu): what acted, in the first of the steps of each row.
    rollout: that of the simulator, of all steps. Of a batch with the environment as the first axis.
    """

    def __init__(self, owner, rollout, states, controls, acting, substeps):
        self._owner, self._states, self._controls = owner, states, controls
        self.rollout, self.substeps = rollout, substeps
        self.q, self.v = (np.asarray(x)[..., ::substeps, :] for x in (rollout.q, rollout.v))
        self.activation = states[..., ::substeps, :]
        self.acting = acting[..., ::substeps, :]
        self.steps = self.activation.shape[-2] - 1

    def __repr__(self):
        held = "" if self.substeps == 1 else f" of {self.substeps} substeps"
        return f"<ActivatedRollout: {self.steps} steps{held}, {self._owner!r}>"

    @property
    def converged(self):
        """As the simulator's rollout has it, of all steps."""
        return self.rollout.converged

    def output(self, name):
        """(T + 1, size) readings at every state, as Rollout.output."""
        return self.rollout.output(name)[..., :: self.substeps, :]

    def vjp(self, dQ=None, dV=None, dA=None, wrt=(), *, outputs=None):
        """Reverse mode: cotangents (T + 1, .) of q, v and activation (None: zero) to the ActivatedCotangent of the initial state, of the
        inputs and of the parameters of wrt. outputs: as in Rollout.vjp."""
        owner, k = self._owner, self.substeps
        spread = {name: self._spread(w, name) for name, w in (("dQ", dQ), ("dV", dV), ("dA", dA))}
        if outputs is not None:
            outputs = {name: self._spread(w, f"outputs['{name}']") for name, w in outputs.items()}
        g = self.rollout.vjp(spread["dQ"], spread["dV"], list(wrt), outputs=outputs)

        # Back through the law of the activations.
        slopes = owner._slopes(self._states[..., :-1, :], self._controls)
        dA = np.zeros(self._states.shape) if spread["dA"] is None else spread["dA"]
        expected = self._states.shape
        if dA.shape != expected:
            raise ValueError(f"dA: got shape {np.shape(dA)}, expected {self.activation.shape}")
        a, by_u = dA[..., -1, :], np.empty(self._controls.shape)
        for t in reversed(range(self._controls.shape[-2])):
            f_a, f_u, g_a, g_u = (x[..., t, :] for x in (slopes.f_a, slopes.f_u, slopes.g_a, slopes.g_u))
            acting = g.u[..., t, :]
            by_u[..., t, :] = f_u * acting + g_u * a
            a = f_a * acting + g_a * a + dA[..., t, :]
        folded = [grouped(x, -2, k).sum(axis=-2) for x in (by_u, np.asarray(g.tau))]
        return ActivatedCotangent({"q": g.q0, "v": g.v0, "activation": a, "u": folded[0], "tau": folded[1]}, g)

    def jvp(self, dq0=None, dv0=None, da0=None, dU=None, dtau=None):
        """Forward mode: tangents of the initial state and of the inputs (None: zero) to those (T + 1, .) of q, v and activation."""
        owner, k = self._owner, self.substeps
        axis = len(owner._lead)
        slopes = owner._slopes(self._states[..., :-1, :], self._controls)
        dU = np.zeros(self._controls.shape) if dU is None else _held(dU, axis, k, "dU")
        if dU.shape != self._controls.shape:
            raise ValueError(f"dU: got shape {np.shape(dU)}, expected {(*owner._lead, self.steps, owner.model.nu)}")
        dA, acting = np.empty(self._states.shape), np.empty(self._controls.shape)
        dA[..., 0, :] = owner._zero(da0, "da0")
        for t in range(self._controls.shape[-2]):
            f_a, f_u, g_a, g_u = (x[..., t, :] for x in (slopes.f_a, slopes.f_u, slopes.g_a, slopes.g_u))
            acting[..., t, :] = f_a * dA[..., t, :] + f_u * dU[..., t, :]
            dA[..., t + 1, :] = g_a * dA[..., t, :] + g_u * dU[..., t, :]
        dtau = None if dtau is None else _held(dtau, axis, k, "dtau")
        dq, dv = self.rollout.jvp(dq0, dv0, acting, dtau)[:2]
        return tuple(x[..., ::k, :] for x in (dq, dv, dA))

    def linearize(self):
        """(A, B) of every row: (T, 2 nv + nu, 2 nv + nu) and (T, 2 nv + nu, nu), for LQR and its kin. RuntimeError: steps of bdf2 depend on two
        states."""
        steps = self.rollout.linearize()
        A, B = steps
        slopes = self._owner._slopes(self._states[..., :-1, :], self._controls)
        A, B = slopes.matrices(np.asarray(A), np.asarray(B))
        return (A, B) if self.substeps == 1 else composed(A, [B], np.asarray(steps.ambiguous), self.substeps)[:2]

    def _spread(self, w, name):
        """Cotangents (..., T + 1, k) of the rows' states as those of all states."""
        if w is None:
            return None
        w = np.asarray(w, dtype=float)
        axis = len(self._owner._lead)
        if w.ndim != axis + 2 or w.shape[axis] != self.steps + 1:
            raise ValueError(
                f"{name}: got shape {w.shape}, expected {(*self._owner._lead, self.steps + 1)} and the size"
            )
        out = np.zeros((*w.shape[:axis], self.steps * self.substeps + 1, w.shape[-1]))
        out[..., :: self.substeps, :] = w
        return out


class ActivatedControlStep:
    """What ActivatedSimulator.control_step leaves for its derivative."""

    def __init__(self, owner, records, slopes):
        self._owner, self.records, self._slopes = owner, records, slopes

    @property
    def substeps(self):
        return len(self.records)

    @property
    def converged(self):
        """(n,) bool: every substep was solved as posed."""
        return np.all([record.converged for record in self.records], axis=0)

    @property
    def reason(self):
        """List of n strings: of a substep whose numbers overflowed, else of the first that did not converge, else of the last."""
        out = list(self.records[-1].status.reason)
        for record in reversed(self.records):
            reasons = record.status.reason
            for i in np.flatnonzero(~record.converged):
                overflowed = [text.startswith("failed: overflow") for text in (reasons[i], out[i])]
                if overflowed[0] or not overflowed[1]:
                    out[i] = reasons[i]
        return out

    def output(self, name):
        """(n, size) readings at (Q1, V1), as BatchControlStep.output."""
        return self.records[-1].output(name)

    def vjp(self, dQ1=None, dV1=None, dA1=None, wrt=()):
        """Reverse mode, as ActivatedSimulator.vjp, through all substeps: by the inputs, the sum over them."""
        owner = self._owner
        if not self._slopes:
            raise RuntimeError("control_step: made with derivatives=False, nothing was kept for them")
        q, v = (np.zeros((*owner._lead, owner.model.nv)) if w is None else w for w in (dQ1, dV1))
        a = owner._zero(dA1, "dA1")
        sums = {}
        for record, slopes in zip(reversed(self.records), reversed(self._slopes)):
            g = record.vjp(q, v, list(wrt))
            q, v = g.q, g.v
            a, by_u = slopes.pulled_back(g.u, a)
            for name, x in (("u", by_u), ("tau", g.tau), *((name, g[name]) for name in wrt)):
                sums[name] = x if name not in sums else sums[name] + x
        return ActivatedCotangent({"q": q, "v": v, "activation": a, **sums}, {})

    def jvp(self, dQ=None, dV=None, dA=None, dU=None, dtau=None):
        """Forward mode, as ActivatedSimulator.jvp, through all substeps."""
        owner = self._owner
        if not self._slopes:
            raise RuntimeError("control_step: made with derivatives=False, nothing was kept for them")
        a, du = owner._zero(dA, "dA"), owner._zero(dU, "dU")
        for record, slopes in zip(self.records, self._slopes):
            dQ, dV = record.jvp(dQ, dV, slopes.acting(a, du), dtau)
            a = slopes.after(a, du)
        return dQ, dV, a


def _held(x, axis, substeps, name):
    """Rows of inputs for every step."""
    x = np.asarray(x, dtype=float)
    if x.ndim <= axis:
        raise ValueError(f"{name}: got shape {x.shape}, expected an axis for the steps")
    return x if substeps == 1 else np.repeat(x, substeps, axis=axis)

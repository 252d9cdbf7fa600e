"""Activations: the states of actuators that follow their control with a lag (filters, muscles) or add it up (integrators)."""

from __future__ import annotations

import numpy as np

from ._core import Model


def acting_range(actuator):
    """(lower, upper) of what acts of an actuator: its control, or its activation; infinite where it has no bounds."""
    if actuator.activation != "none" and actuator.activation_limited:
        return tuple(actuator.activation_range)
    if actuator.activation == "muscle":  # as its control, which is clamped to this
        return 0.0, 1.0
    if (
        actuator.control_limited and actuator.activation != "integrator"
    ):  # a filter stays within the range of its control
        return tuple(actuator.control_range)
    return -np.inf, np.inf


class Activations:
    """What acts of a model's actuators, step by step: of those with an activation that, of all others the control.

    ``u`` of ``Simulator.step`` is what acts. With a the activations before a step and u the controls of a policy or plan:

    ::

        activations = coulomb.Activations(model, sim.timestep)
        a = activations.initial
        for ...:
            acting, a = activations.step(a, u)
            q, v = sim.step(q, v, acting)

    The activation follows MuJoCo's laws: integrator a + h u, filter a + h (u - a) / T, exact filter a + (1 - exp(-h / T)) (u - a), with the control
    clamped to control_range and the new activation to activation_range; muscle a + h (u - a) / T(u, a) with the control clamped to 0 .. 1, where T goes
    from deactivation_time / (0.5 + 1.5 a) to activation_time (0.5 + 1.5 a) as u - a changes its sign. A step feels the activation at its start; of actuators that act early, that
    at its end. Of actuators without an activation a is the last control, and does nothing.

    Arrays (..., nu) of NumPy, torch or JAX; the last two differentiate them by themselves.

    model: a Model. timestep: s; unset: the model's. TypeError, ValueError: what else was given.
    """

    def __init__(self, model: Model, timestep: float | None = None):
        if not isinstance(model, Model):
            raise TypeError(f"model: expected a coulomb.Model, got {type(model).__name__}")
        h = model.timestep if timestep is None else float(timestep)
        if not (np.isfinite(h) and h > 0):
            raise ValueError(f"timestep: got {timestep}, expected a positive number")
        actuators = model.actuators
        self.timestep = h
        self.initial = np.zeros(len(actuators))  # (nu,) as in MuJoCo
        self.size = sum(a.activation != "none" for a in actuators)  # how many have one

        # a+ = keep a + gain clip(u), clipped. Without an activation: u itself, which the step clamps.
        self._keep, self._gain = np.zeros(len(actuators)), np.ones(len(actuators))
        self._late = np.zeros(len(actuators))  # 1: the step feels a, 0: a+
        self._control = np.tile([[-np.inf], [np.inf]], len(actuators))
        self._range = self._control.copy()
        for k, actuator in enumerate(actuators):
            if actuator.activation == "none":
                continue
            self._late[k] = not actuator.acts_early
            if actuator.control_limited:
                self._control[:, k] = actuator.control_range
            if actuator.activation_limited:
                self._range[:, k] = actuator.activation_range
            if actuator.activation == "muscle":
                self._control[:, k] = np.clip(self._control[:, k], 0, 1)
                continue
            share = h / actuator.time_constant if actuator.activation != "integrator" else 0.0
            if actuator.activation == "filter_exact":
                share = -np.expm1(-share)
            self._keep[k] = 1 - share
            self._gain[k] = h if actuator.activation == "integrator" else share

        self._muscle = np.array([float(a.activation == "muscle") for a in actuators])
        times = [
            (a.muscle.activation_time, a.muscle.deactivation_time, max(a.muscle.smoothing, 1e-15)) for a in actuators
        ]
        self._times = np.array(times).reshape(-1, 3).T.copy()

    def __repr__(self):
        return f"<Activations: {self.size} of {len(self.initial)} actuators have one>"

    def step(self, activation, u):
        """(what acts in this step, activation after it), (..., nu) each. activation, u: (..., nu)."""
        u, activation = self._array("u", u), self._array("activation", activation)
        u, activation = _like(activation, u), _like(u, activation)
        own = lambda constant: _like(u, constant)  # noqa: E731
        after = self._unbounded(activation, u).clip(*map(own, self._range))
        late = own(self._late)
        return late * activation + (1 - late) * after, after

    def _unbounded(self, activation, u):
        """The activation after a step before it is clamped."""
        own = lambda constant: _like(u, constant)  # noqa: E731
        u = u.clip(*map(own, self._control))
        linear = own(self._keep) * activation + own(self._gain) * u
        if not self._muscle.any():
            return linear
        muscle = activation + self.timestep * (u - activation) / self._lag(activation, u)[0]
        return linear + own(self._muscle) * (muscle - linear)

    def _lag(self, activation, u):
        """T of muscles, and what it is made of: the two times at this activation and where the switch between them is, 0 .. 1. u: clamped."""
        rise, fall, width = (_like(u, constant) for constant in self._times)
        stretch = 0.5 + 1.5 * activation.clip(0.0, 1.0)
        x = ((u - activation) / width + 0.5).clip(0.0, 1.0)
        switch = x * x * x * (10 - 15 * x + 6 * x * x)
        return fall / stretch + (rise * stretch - fall / stretch) * switch, stretch, x, switch

    def _slopes(self, activation, u):
        """d (activation after a step, unbounded) by the activation and by the control within its range. NumPy."""
        if not self._muscle.any():
            return self._keep, self._gain
        u = np.clip(u, *self._control)
        rise, fall, width = self._times
        lag, stretch, x, switch = self._lag(activation, u)
        by_gap = (rise * stretch - fall / stretch) * 30 * (x * (1 - x)) ** 2 / width
        by_activation = 1.5 * (rise * switch - fall / stretch**2 * (1 - switch)) * ((activation > 0) & (activation < 1))
        gap = (u - activation) / lag
        gain = self.timestep / lag * (1 - gap * by_gap)
        keep = 1 - gain - self.timestep / lag * gap * by_activation
        is_muscle = self._muscle > 0
        return np.where(is_muscle, keep, self._keep), np.where(is_muscle, gain, self._gain)

    def vjp(self, activation, u, acting, after):
        """Pulls cotangents of both results back: (activation, u), (..., nu) each. NumPy."""
        given = {"activation": activation, "u": u, "acting": acting, "after": after}
        activation, u, acting, after = (self._array(name, np.asarray(x, dtype=float)) for name, x in given.items())
        before = self._unbounded(activation, u)
        keep, gain = self._slopes(activation, u)
        total = after + (1 - self._late) * acting
        total = np.where((before > self._range[0]) & (before < self._range[1]), total, 0.0)
        by_u = np.where((u > self._control[0]) & (u < self._control[1]), gain * total, 0.0)
        return self._late * acting + keep * total, by_u

    def run(self, activation, U):
        """What acts in each step of a plan, (T, nu), and the activations before each and at the end, (T + 1, nu). U: (T, nu). For ``Simulator.rollout``."""
        nu = len(self.initial)
        U = self._plan("U", U)
        if np.shape(activation) != (nu,):
            raise ValueError(f"activation: got shape {np.shape(activation)}, expected ({nu},)")
        acting, states = [], [np.array(activation, dtype=float)]
        for u in U:
            now, after = self.step(states[-1], u)
            acting.append(now)
            states.append(after)
        return np.array(acting).reshape(-1, nu), np.array(states)

    def run_vjp(self, states, U, acting, last=None):
        """Pulls cotangents of ``run`` back: (activation at the start (nu,), U (T, nu)). states: those of ``run``; acting: (T, nu) of what acts; last: (nu,)
        of the activation at the end."""
        a = np.zeros(len(self.initial)) if last is None else np.array(last, dtype=float)
        U, acting = self._plan("U", U), self._plan("acting", acting)
        if len(acting) != len(U) or np.shape(states) != (len(U) + 1, len(self.initial)):
            raise ValueError(
                f"states, acting: got {np.shape(states)} and {acting.shape}, expected those of run for U of {U.shape}"
            )
        by_u = np.zeros(U.shape)
        for t in reversed(range(len(U))):
            a, by_u[t] = self.vjp(states[t], U[t], acting[t], a)
        return a, by_u

    def _plan(self, name, value):
        plan = np.asarray(value, dtype=float)
        if plan.ndim != 2 or plan.shape[1] != len(self.initial):
            raise ValueError(f"{name}: got shape {plan.shape}, expected (T, {len(self.initial)})")
        return plan

    def _array(self, name, value):
        """NumPy's float64 where it is no tensor of floats. ValueError: another last size; TypeError: tensors of integers."""
        is_tensor = _library(value) != "numpy"
        array = value if is_tensor else np.asarray(value, dtype=float)
        if is_tensor and "float" not in str(array.dtype):
            raise TypeError(f"{name}: expected floats, got {array.dtype}")
        if array.ndim == 0 or array.shape[-1] != len(self.initial):
            raise ValueError(f"{name}: got shape {tuple(array.shape)}, expected (..., {len(self.initial)})")
        return array


def _library(array):
    name = type(array).__module__.split(".")[0]
    return name if name in ("torch", "jax", "jaxlib") else "numpy"


def _like(array, constant):
    """A NumPy array as one of the same library; others stay what they are."""
    library = _library(array)
    if not isinstance(constant, np.ndarray):
        return constant
    if library == "torch":
        return array.new_tensor(constant)
    if library in ("jax", "jaxlib"):
        import jax.numpy as jnp

        return jnp.asarray(constant, dtype=array.dtype)
    return constant

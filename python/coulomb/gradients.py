"""check_gradients: the Jacobian of a step against central differences of the same step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass
class GradientCheck:
    """Result of check_gradients. Errors are relative, in the Frobenius norm; those that rounding explains are relative to 1 at least."""

    errors: dict[str, float] = field(default_factory=dict)  #: "dv_dq" etc. to |analytic - differences| / |differences|
    analytic: dict[str, np.ndarray] = field(default_factory=dict)
    differences: dict[str, np.ndarray] = field(default_factory=dict)
    smooth: bool = True  #: no contact changed its mode within the differences; otherwise they mean little

    @property
    def max_error(self) -> float:
        return max(self.errors.values(), default=0.0)

    def __repr__(self):
        lines = [f"  {k}: {e:.2e}" for k, e in self.errors.items()]
        note = "" if self.smooth else " (a contact changes its mode within the step size: the differences mean little)"
        return f"<GradientCheck, relative errors{note}:\n" + "\n".join(lines) + ">"


def check_gradients(sim, q, v, u=None, tau=None, *, wrt=("q", "v", "u", "tau"), step=1e-5):
    """Compares the Jacobian of the step from (q, v, u, tau) with Richardson-extrapolated central differences.

    wrt: any of "q", "v", "u", "tau". step: size of the differences in tangent space (rad, m, m/s, N ...); two are taken, step and
    step / 2. The memory of the simulator is held fixed during the differences and is as before afterwards.
    Returns a GradientCheck. ValueError: unknown name in wrt, or bad input as in Simulator.step.
    """
    model = sim.model
    q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    inputs = {"u": np.zeros(model.nu) if u is None else np.asarray(u, dtype=float)}
    inputs["tau"] = np.zeros(model.nv) if tau is None else np.asarray(tau, dtype=float)
    for name in wrt:
        if name not in ("q", "v", "u", "tau"):
            raise ValueError(f"wrt: {name!r} is not one of 'q', 'v', 'u', 'tau'")
    if not step > 0:
        raise ValueError(f"step: got {step}, expected a positive number")
    memory = sim.memory

    def run(**changed):
        sim.memory = memory
        now = {"q": q, "v": v, **inputs, **changed}
        return *sim.step(now["q"], now["v"], now["u"], now["tau"]), [(c.geometry_a, c.geometry_b, c.mode) for c in sim.contacts]

    def moved(name, k, h):
        delta = np.zeros(model.nv if name != "u" else model.nu)
        delta[k] = h
        if name == "q":
            return run(q=model.integrate(q, delta))
        return run(**{name: (v if name == "v" else inputs[name]) + delta})

    result = GradientCheck()
    try:
        q1, v1, modes = run()
        derivatives = sim.derivatives()

        def central(name, k, h):
            (qa, va, ma), (qb, vb, mb) = moved(name, k, h), moved(name, k, -h)
            if ma != modes or mb != modes:
                result.smooth = False
            # Tangent vectors at q1, so that dq is measured where the derivative lives.
            return (model.difference(q1, qa) - model.difference(q1, qb)) / (2 * h), (va - vb) / (2 * h)

        for name in wrt:
            size = model.nu if name == "u" else model.nv
            columns = {"q": np.zeros((model.nv, size)), "v": np.zeros((model.nv, size))}
            for k in range(size):
                coarse, fine = central(name, k, step), central(name, k, step / 2)
                for part, c, f in zip("qv", coarse, fine, strict=True):
                    columns[part][:, k] = (4 * f - c) / 3
            for part in "qv":
                key = f"d{part}_d{name}"
                result.analytic[key] = np.array(getattr(derivatives, key))
                result.differences[key] = columns[part]
                error = np.linalg.norm(result.analytic[key] - columns[part])
                norm = np.linalg.norm(columns[part])
                rounding = 1e-15 / step * (1 + np.abs(q1).max(initial=0) + np.abs(v1).max(initial=0)) * np.sqrt(1 + size * model.nv)
                if error <= rounding:  # all that differences can tell: a block that is zero must not look wrong
                    norm = max(norm, 1.0)
                result.errors[key] = float(error / norm)
    finally:
        sim.memory = memory
    return result

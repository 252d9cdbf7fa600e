"""The derivative of a trajectory's end by differences that know how far they can be trusted (coulomb._differences).

Contacts that come, go or change their mode make kinks, so the end is a smooth function of a change only up to the size at which some
step has other contacts, modes or ties than without it. The noise of the end is the scatter of its even part at a tiny size.
"""

import numpy as np

import coulomb
from coulomb._differences import sizes, slope

LENGTHS = {"size", "vertices", "geometry_placement", "joint_placement", "com", "contact_points"}
SIZES = sizes(8e-7, 4e-3)
RESOLVED = 1e-6  # relative: differences with a larger error are no reference
ENOUGH = 3e-8  # relative: nobody asks for better ones


def signature(simulator):
    return [(c.geometry_a, c.geometry_b, c.mode, c.facet, c.tie) for c in simulator.contacts]


class Trajectory:
    """T steps with controls U (T, nu) from (q, v): the change of its end by anything, against vjp."""

    def __init__(self, model, q, v, U, **options):
        self.model, self.q, self.v, self.U, self.options = model, q, v, U, options
        self.masks = {}  # by name: 0 for entries that no direction has
        self.rollout = coulomb.Simulator(model, **options).rollout(q, v, U)
        assert self.rollout.converged, self.rollout.status
        self.contacts = [signature(simulator) for simulator, _, _ in self.steps(model, q, v, U)]
        directions = np.random.default_rng(0).normal(size=(8, model.nv, 1)) * np.array([1e-9, -1e-9])
        ends = [[self.end({"dv": dv}) for dv in pair.T] for pair in directions]
        self.even = np.array([sum(pair) for pair in ends if not any(x is None for x in pair)])
        assert len(self.even) > 4

    def steps(self, model, q, v, U):
        simulator = coulomb.Simulator(model, **self.options)
        for u in U:
            q, v = simulator.step(q, v, u)
            yield simulator, q, v

    def end(self, change):
        """The end (q, v) less that without the change; None where a step has other contacts, modes or ties, or was relaxed."""
        change = dict(change)
        q = self.model.integrate(self.q, change.pop("dq", np.zeros(self.model.nv)))
        v, U = self.v + change.pop("dv", 0), self.U + change.pop("dU", 0)
        model = self.model.with_parameters(change) if change else self.model
        for step, contacts in zip(self.steps(model, q, v, U), self.contacts):
            simulator, q1, v1 = step
            if not simulator.status.converged or simulator.status.relaxation > 0 or signature(simulator) != contacts:
                return None
        return np.r_[self.model.difference(self.rollout.q[-1], q1), v1 - self.rollout.v[-1]]

    def gradient(self, w, names=()):
        """Of w . end."""
        weights = np.zeros((2, len(self.U) + 1, self.model.nv))
        weights[:, -1] = np.split(w, 2)
        return self.rollout.vjp(*weights, wrt=list(names))

    def direction(self, name, random):
        """Of the size of contacts (m), slow motion (m/s) or the values."""
        known = {"dq": 0.01 * np.ones_like(self.v), "dv": 0.1 * np.ones_like(self.v), "dU": np.abs(self.U)}
        if name in known:
            return np.zeros_like(known[name]), known[name] * random.normal(size=known[name].shape)
        at, kind = self.model.parameters()[name].value, name.split("/")[0]
        if kind == "inertia":  # small beside what makes it that of a body: the least moment about the centre of mass
            least = min((at[i] - (at[1:4] @ at[1:4] - at[k] ** 2) / at[0]) for k, i in ((1, 4), (2, 6), (3, 9)))
            return at, random.normal(size=10) * np.r_[at[0], np.full(3, 0.01 * at[0]), np.full(6, 0.3 * least)]
        return at, random.normal(size=at.size) * (0.02 if kind in LENGTHS else np.maximum(np.abs(at), 0.02))

    def compare(self, name, random):
        """The derivative of a random w . end along a random direction. Its relative error; None if the differences cannot tell."""
        w = random.normal(size=2 * self.model.nv)
        at, d = self.direction(name, random)
        d = d * self.masks.get(name, 1.0)
        item = {"dq": "q0", "dv": "v0", "dU": "u"}.get(name, name)
        expected = np.sum(self.gradient(w, [name] if item == name else [])[item] * d)

        def f(h):
            end = self.end({name: at + h * d})
            return None if end is None else w @ end

        found, error, _ = slope(f, np.std(self.even @ w) / np.sqrt(2), SIZES, ENOUGH)
        bound = RESOLVED * abs(expected)
        assert abs(found - expected) <= max(bound, error), (name, found, expected, error)
        return abs(found - expected) / abs(expected) if error <= bound and expected else None

    def compare_one(self, names, random, tries=6):
        """Of one of these names, with other w and directions while differences cannot tell."""
        for name in (list(names) * tries)[:tries]:
            error = self.compare(name, random)
            if error is not None:
                return error
        return None

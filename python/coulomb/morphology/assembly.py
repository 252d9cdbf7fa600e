"""Morphology: from the handles of cages to the named parameters of a model, and the derivative of all of them.

    x  --design-->  handles  --cages-->  points  --parts, links-->  parameters  --Model.with_parameters-->  model
    dp/dx = dp/d(points) . weights . d(handles)/dx

The gradient of anything a simulation returns by the parameters ("wrt="), times dp/dx, is its gradient by x.
"""

from __future__ import annotations

import numpy as np

from .._core import Model
from .checks import finite, known
from .designs import Handles
from .parts import Carried, Link, LinkFollower, Marker, Part, PartFollower, check_cage


class Morphology:
    """The parameters of a model that follow cages.

    model: with the cages at rest. parts: of Part. links: of Link. markers: of Marker. design: what x means (designs.py); by
    default x is all coordinates of all handles, cage after cage in the order of their first use. keep: bodies that consist
    of more than their parts: the difference between the model's inertia and that of the parts at rest stays.

    ValueError or TypeError: names argument, element and value.
    """

    def __init__(self, model, parts, links=(), *, markers=(), design=None, keep=()):
        if not isinstance(model, Model):
            raise TypeError(f"model: expected a coulomb.Model, got {type(model).__name__}")
        self.model, known_values = model, model.parameters()
        parts, links, markers = list(parts), list(links), list(markers)
        for name, things, kind in (("parts", parts, Part), ("links", links, Link), ("markers", markers, Marker)):
            for i, thing in enumerate(things):
                if not isinstance(thing, kind):
                    raise TypeError(f"{name}[{i}]: expected a {kind.__name__}, got {type(thing).__name__}")
                check_cage(f"{name}[{i}]", thing.cage)
        self.parts = [PartFollower(model, known_values, part, f"parts[{i}]") for i, part in enumerate(parts)]
        self.links = [LinkFollower(model, known_values, link, f"links[{i}]") for i, link in enumerate(links)]
        self.markers = {marker.name: Carried(marker.cage, marker.point[None]) for marker in markers}
        self._check_elements(parts, links)
        self.cages = list({id(f.cage): f.cage for f in (*self.parts, *self.links, *self.markers.values())}.values())
        starts = np.cumsum([0, *(len(cage.handles) for cage in self.cages)])
        self._slices = {id(cage): slice(a, b) for cage, a, b in zip(self.cages, starts, starts[1:])}
        self.design = Handles(self.cages) if design is None else design
        self._check_design(starts[-1])
        self._last = None
        self._find_bodies(known_values, keep)

    def _check_elements(self, parts, links):
        for what, names in (("parts", [p.geometry for p in parts]), ("links", [link.joint for link in links])):
            for i, name in enumerate(names):
                if name in names[:i]:
                    raise ValueError(f"{what}[{i}]: '{name}' appears twice")
        owner = {}
        for follower in (*self.parts, *self.links):
            body = owner.setdefault(id(follower.cage), follower.body)
            if body != follower.body:
                names = [self.model.body_names[b] for b in (body, follower.body)]
                raise ValueError(
                    f"cage '{follower.cage.name}': carries points of '{names[0]}' and '{names[1]}'; a cage has one body"
                )

    def _check_design(self, count):
        for name in ("size", "start", "names", "handles", "jacobian"):
            if not hasattr(self.design, name):
                raise TypeError(f"design: {type(self.design).__name__} has no '{name}'")
        self.start = finite("design.start", self.design.start, (self.design.size,))
        finite("design.handles(start)", self.design.handles(self.start), (int(count), 3))
        finite("design.jacobian(start)", self.design.jacobian(self.start), (int(count), 3, self.design.size))

    def _find_bodies(self, known_values, keep):
        """Bodies that have parts with density, and what they consist of beside those."""
        names = self.model.body_names
        self._rest_of = {}
        for part in self.parts:
            name = f"inertia/{names[part.body]}"
            if part.part.density is not None and name in known_values:
                self._rest_of[part.body] = np.zeros(10)
        kept = [known(f"keep[{i}]", name, names) for i, name in enumerate(keep)]
        for body in kept:
            if body not in self._rest_of:
                raise ValueError(f"keep: body '{names[body]}' has no part with a density, or does not move")
        _, solids, _ = self._evaluate(self.start)
        for body in kept:
            built = known_values[f"inertia/{names[body]}"].value
            self._rest_of[body] = built - sum(
                p.part.density * s.ten for p, s in zip(self.parts, solids) if p.body == body and p.part.density
            )
        self._last = None

    @property
    def names(self):
        """Names of the parameters that follow x: for `wrt`."""
        return list(self.parameters(self.start))

    def _handles_of(self, follower, handles):
        return handles[self._slices[id(follower.cage)]]

    def _evaluate(self, x):
        """Handles, solids and values at x; those of the last x are kept."""
        x = finite("x", x, (self.design.size,))
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1:]
        handles, values = np.asarray(self.design.handles(x), dtype=float), {}
        handles = finite("design.handles(x)", handles, handles.shape)
        for cage in self.cages:
            cage.check(handles[self._slices[id(cage)]])
        for follower in (*self.links, *self.parts):
            follower.values(self._handles_of(follower, handles), values)
        moved = self.model.with_parameters({k: v for k, v in values.items() if k.startswith("vertices/")})
        solids = []
        for part in self.parts:
            needed = part.part.density is not None or part.scale is not None or part.kind in ("box", "mesh")
            solids.append(part.solid(self._handles_of(part, handles), moved) if needed else None)
            if solids[-1] is not None:
                part.scale_value(solids[-1], values)
        for body, rest in self._rest_of.items():
            values[f"inertia/{self.model.body_names[body]}"] = rest + sum(
                p.part.density * s.ten for p, s in zip(self.parts, solids) if p.body == body and p.part.density
            )
        self._last = (x, handles, solids, values)
        return self._last[1:]

    def parameters(self, x):
        """Values by name, each (size,), for Model.with_parameters.

        ValueError: x has the wrong shape, or makes a cage, a box or a volume that cannot be.
        """
        return {name: value.copy() for name, value in self._evaluate(x)[2].items()}

    def model_of(self, x):
        """The Model of x."""
        return self.model.with_parameters(self.parameters(x))

    def jacobian(self, x):
        """Name to (size, len(x)): derivatives of parameters(x), by the same numbers (docs/parameters.md)."""
        handles, solids, _ = self._evaluate(x)
        dhandles = np.asarray(self.design.jacobian(finite("x", x, (self.design.size,))), dtype=float)
        out = {}
        for link in self.links:
            link.slopes(self._handles_of(link, handles), self._handles_of(link, dhandles), out)
        inertia = {body: np.zeros((10, self.design.size)) for body in self._rest_of}
        for part, solid in zip(self.parts, solids):
            part.slopes(self._handles_of(part, dhandles), out)
            if solid is None:
                continue
            slope = part.corner_slope(self._handles_of(part, dhandles))
            part.scale_slope(solid, slope, out)
            if part.body in inertia and part.part.density:
                inertia[part.body] += part.part.density * np.tensordot(solid.d_ten, slope, axes=2)
        return out | {f"inertia/{self.model.body_names[body]}": slope for body, slope in inertia.items()}

    def vjp(self, x, gradient):
        """(len(x),): the gradient by x of what has these gradients by parameters.

        gradient: name to (size,) for some of `names`, or the StepCotangent or RolloutCotangent of a vjp, which may have
        more. ValueError: a name of a dict that does not follow x.
        """
        slopes = self.jacobian(x)
        if isinstance(gradient, dict):
            for name in gradient:
                if name not in slopes:
                    raise ValueError(f"gradient: '{name}' does not follow x")
            there = gradient
        else:
            there = getattr(gradient, "names", slopes)
        total = np.zeros(self.design.size)
        for name, slope in slopes.items():
            if name in there:
                total += finite(f"gradient['{name}']", gradient[name], (len(slope),)) @ slope
        return total

    def points(self, x):
        """Name to (3,) of the markers, in their body's frame."""
        handles = self._evaluate(x)[0]
        return {name: m.at(self._handles_of(m, handles))[0] for name, m in self.markers.items()}

    def points_jacobian(self, x):
        """Name to (3, len(x)) of the markers."""
        dhandles = np.asarray(self.design.jacobian(finite("x", x, (self.design.size,))), dtype=float)
        return {name: m.slope(self._handles_of(m, dhandles))[0] for name, m in self.markers.items()}

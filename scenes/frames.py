"""The same scene said in different ways: turned as a whole, its bodies in another order, by Scene verbs or as an MJCF string.

Physics cannot tell these apart, so a test that holds for one must hold for all.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np

import coulomb

CUBE = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))


def multiply(a, b):
    """Product of two quaternions (w, x, y, z)."""
    w, x = a[0], np.asarray(a[1:])
    s, y = b[0], np.asarray(b[1:])
    return np.array([w * s - x @ y, *(w * y + s * x + np.cross(x, y))])


def turn(quaternion, vector):
    """A vector rotated by a unit quaternion."""
    w, x = quaternion[0], np.asarray(quaternion[1:])
    t = 2 * np.cross(x, vector)
    return np.asarray(vector) + w * t + np.cross(x, t)


def _text(values):
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


@dataclass
class World:
    """Planes and single bodies, described once. frame: a unit quaternion that turns the whole scene; reverse: bodies in reverse order;
    by: "verbs" or "mjcf"."""

    frame: tuple = (1.0, 0.0, 0.0, 0.0)
    reverse: bool = False
    by: str = "verbs"
    gravity: tuple = (0.0, 0.0, -9.81)
    planes: list = field(default_factory=list)
    bodies: dict = field(default_factory=dict)

    def plane(self, friction, normal=(0.0, 0.0, 1.0), point=(0.0, 0.0, 0.0), restitution=None, name=None):
        self.planes.append(
            (
                friction,
                np.asarray(normal, dtype=float),
                np.asarray(point, dtype=float),
                restitution,
                name or f"plane{len(self.planes)}",
            )
        )

    def body(
        self,
        name,
        kind,
        size,
        mass=1.0,
        position=(0.0, 0.0, 0.0),
        quaternion=(1.0, 0.0, 0.0, 0.0),
        velocity=(0.0,) * 6,
        **options,
    ):
        """size: as the verbs take it; of a "mesh", the sides of a box made of vertices. velocity: linear in the world's axes before it
        is turned, angular in the body's."""
        self.bodies[name] = (
            kind,
            np.atleast_1d(size),
            mass,
            np.asarray(position, dtype=float),
            np.asarray(quaternion, dtype=float),
            np.asarray(velocity, dtype=float),
            options,
        )

    def turned(self, vector):
        """A vector of the description, in the axes of the built scene."""
        return turn(self.frame, vector)

    def back(self, vector):
        """The inverse of turned."""
        return turn(np.asarray(self.frame) * np.array([1, -1, -1, -1]), vector)

    def _names(self):
        return list(self.bodies)[::-1] if self.reverse else list(self.bodies)

    def _by_verbs(self):
        scene = coulomb.Scene(gravity=self.turned(self.gravity))
        for friction, normal, point, restitution, name in self.planes:
            n = normal / np.linalg.norm(normal)
            scene.add_ground(
                friction=friction, restitution=restitution, normal=self.turned(n), height=float(n @ point), name=name
            )
        for name in self._names():
            kind, size, mass, position, quaternion, _, options = self.bodies[name]
            place = {
                "mass": mass,
                "position": self.turned(position),
                "quaternion": multiply(self.frame, quaternion),
                "name": name,
                **options,
            }
            if kind == "mesh":
                scene.add_mesh(CUBE * size, **place)
            elif kind in ("box", "ellipsoid"):
                getattr(scene, f"add_{kind}")(size, **place)
            else:
                getattr(scene, f"add_{kind}")(*size, **place)
        return scene.build()

    def _by_mjcf(self):
        meshes, world = [], []
        for friction, normal, point, restitution, name in self.planes:
            assert restitution is None, "MJCF has no coefficient of restitution"
            world.append(
                f'<geom name="{name}" type="plane" size="1 1 1" pos="{_text(self.turned(point))}" zaxis="{_text(self.turned(normal))}" '
                f'friction="{friction!r} 0 0"/>'
            )
        for name in self._names():
            kind, size, mass, position, quaternion, _, options = self.bodies[name]
            assert set(options) <= {"friction", "inertia"}, options
            half = {"box": size / 2, "mesh": size, "sphere": size, "ellipsoid": size}.get(kind)
            half = np.array([size[0], size[1] / 2]) if half is None else half
            shape = f'size="{_text(half)}"'
            if kind == "mesh":
                meshes.append(f'<mesh name="{name}" vertex="{_text((CUBE * size).ravel())}"/>')
                shape = f'mesh="{name}"'
            inertia = options.get("inertia")
            own = (
                ""
                if inertia is None
                else (
                    f'<inertial pos="0 0 0" mass="{mass!r}" '
                    f'fullinertia="{_text([inertia[i] for i in (0, 2, 5, 1, 3, 4)])}"/>'
                )
            )
            world.append(
                f'<body name="{name}" pos="{_text(self.turned(position))}" quat="{_text(multiply(self.frame, quaternion))}"><freejoint/>{own}'
                f'<geom type="{kind}" {shape} mass="{mass!r}" friction="{options.get("friction", 0)!r} 0 0"/></body>'
            )
        return coulomb.load(
            f'<mujoco><compiler angle="radian" boundmass="0" balanceinertia="false"/><option gravity="{_text(self.turned(self.gravity))}"/><asset>{"".join(meshes)}</asset>'
            f"<worldbody>{''.join(world)}</worldbody></mujoco>"
        )

    def build(self):
        """(model, q, v): the neutral configuration and the velocities described."""
        model = self._by_mjcf() if self.by == "mjcf" else self._by_verbs()
        q, v = model.neutral()
        for name in self.bodies:
            velocity = self.bodies[name][5]
            v[self.dofs(name)] = [*self.turned(velocity[:3]), *velocity[3:]]
        return model, q, v

    def dofs(self, name):
        first = 6 * self._names().index(name)
        return slice(first, first + 6)

    def place(self, q, name):
        """Position of a body, in the axes of the description."""
        first = 7 * self._names().index(name)
        return (
            self.back(np.asarray(q)[..., first : first + 3])
            if np.ndim(q) == 1
            else np.array([self.back(x[first : first + 3]) for x in q])
        )

    def attitude(self, q, name):
        """Quaternion of a body relative to the axes of the description."""
        first = 7 * self._names().index(name)
        return multiply(np.asarray(self.frame) * np.array([1, -1, -1, -1]), q[first + 3 : first + 7])

    def velocity(self, v, name):
        """(6,): linear in the axes of the description, angular in the body's."""
        own = np.asarray(v)[self.dofs(name)]
        return np.array([*self.back(own[:3]), *own[3:]])

    def wrench(self, model, name, force, torque=(0, 0, 0)):
        """fext with one force and torque, given in the axes of the description."""
        out = np.zeros((model.num_bodies, 6))
        out[model.body_names.index(name)] = [*self.turned(force), *self.turned(torque)]
        return out

    def force(self, sim, on, by=None):
        """Sum of the contact forces (N) on a body in the last step, in the axes of the description."""
        total = np.zeros(3)
        for c in sim.contacts:
            for body, other, sign in ((c.body_a, c.body_b, 1), (c.body_b, c.body_a, -1)):
                if body == on and by in (None, other):
                    total += sign * c.impulse
        return self.back(total) / sim.timestep


def run(model, q, v, steps, timestep=1e-3, fext=None):
    """Steps that must all converge; returns (simulator, q, v)."""
    sim = coulomb.Simulator(model, timestep)
    for _ in range(steps):
        q, v = sim.step(q, v, fext=fext)
        assert sim.status.converged, sim.status
    return sim, q, v


_ANY = np.array([0.3, -0.7, 0.5, 0.4]) / math.sqrt(0.99)
_OTHER = np.array([-0.1, 0.2, 0.6, -0.8]) / math.sqrt(1.05)

#: Empty worlds, in which the same scenes must have the same answers.
VARIANTS = {
    "mjcf": lambda: World(by="mjcf"),
    "turned": lambda: World(frame=tuple(_ANY)),
    "turned-reverse-mjcf": lambda: World(frame=tuple(_OTHER), reverse=True, by="mjcf"),
}

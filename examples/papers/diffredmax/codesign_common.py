"""What the co-design examples share: a finger of boxes in cages, controls in blocks, an objective with its gradient by controls
and design, L-BFGS-B with control alone and with control and design, pictures.

The controls of a block of steps are u = tanh(a), -1 <= a <= 1; the motors have the torque limits. A cost is a function
cost(book, u): it reads states and points of a rollout from a Book, which takes their gradients in return. What points of
bodies owe to the design directly (where is the tip, where are the joints) and through the motion (the gradient of the
rollout by its parameters) is put together here:

    d cost/dx = sum_t d cost/d point . d point/dx  +  rollout.vjp(d cost/dQ, wrt=names) . d parameters/dx
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import coulomb
from coulomb.morphology import BodyPoints, ChainCage, Morphology, finger_pieces, scales_of
from coulomb.morphology.cage import BOX_CORNERS, BOX_FACES
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# Programs take these from here.
from plot_common import arguments, finish  # noqa: E402, F401

CM = 0.01  # m
DENSITY = 1000.0  # kg/m^3


def penalty(stiffness, friction, damping):
    """Options of Simulator, from contact numbers in g/s^2, g/s and g/(cm s): what a ball of the finger feels."""
    numbers = {"contact_stiffness": 1e-3 * stiffness, "contact_friction_stiffness": 1e-3 * friction}
    return {"stepper": "bdf2", "contact": "penalty", "contact_damping": 0.1 * damping, **numbers}


BALLS = {"tip": 0.002, "phalanx2": 0.002}  # m


def finger(prefix="", damping=0.01, *, scale_prefix="", palm_scale=None, balls=None, **pieces):
    """A ChainCage: knuckle that turns about z, three joints that bend about y. scale_prefix: of its scales' names.
    palm_scale: name of a scale for the palm's length, in place of the one for the height of the neck.
    """
    hinge = {"damping": damping, "armature": 1e-6}
    joints = {"knuckle": {"axis": "0 0 1", **hinge}} | {body: {"axis": "0 1 0", **hinge} for body in ("p0", "p1", "p2")}
    row = [named(piece, scale_prefix, palm_scale) for piece in finger_pieces(**pieces)]
    if palm_scale:
        row[0] = replace(row[0], length_scale=palm_scale)
    return ChainCage(row, joints, prefix=prefix, balls=balls)


def named(piece, prefix, palm_scale):
    def one(name):
        return None if name is None or (palm_scale and name == "neck height") else prefix + name

    return replace(
        piece,
        length_scale=one(piece.length_scale),
        start_scales=tuple(map(one, piece.start_scales)),
        end_scales=tuple(map(one, piece.end_scales)),
    )


def build(chains, torque, others="", *, gravity, timestep, positions=None, eulers=None):
    """The Model of fingers with a motor per joint, u = 1 at `torque` (N m), and `others`: MJCF of what they handle, which they
    touch if its contype is 2: fingers do not touch each other.
    """
    assets, bodies, motors = "", "", ""
    for i, chain in enumerate(chains):
        options = {"position": positions[i] if positions else (0, 0, 0), "euler": eulers[i] if eulers else (0, 0, 0)}
        new = chain.mjcf(DENSITY, touch='contype="1" conaffinity="2"', **options)
        assets, bodies = assets + new[0], bodies + new[1]
        motors += "".join(f'<motor joint="{joint}" gear="{torque}"/>' for joint in chain.joints)
    return coulomb.load(
        f'<mujoco><compiler angle="radian"/><option timestep="{timestep}" gravity="0 0 {-gravity}"/><asset>{assets}</asset>'
        f"<worldbody>{bodies}{others}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def morphology(model, chains, markers=True):
    return Morphology(
        model,
        [part for chain in chains for part in chain.parts(DENSITY)],
        [link for chain in chains for link in chain.links()],
        markers=[chain.tip(chain.bodies[-1]) for chain in chains] if markers else [],
        design=scales_of(chains),
    )


def with_hinge(chain, torque, hinged, start, **options):
    """(model, (q, v), row): a finger bent to `start` before a body on a hinge, and the row of q with the hinge's angle. hinged: MJCF;
    its hinge is its first joint.
    """
    model = build([chain], torque, hinged, **options)
    q, v = model.neutral()
    q[: len(start)] = start
    return model, (q, v), len(start)


class Book:
    """States and points of a rollout, and the gradient of a cost by them. Times are row numbers of r.q."""

    def __init__(self, task, r, x):
        self.q, self.v, self.model = r.q, r.v, r.model
        self.dQ, self.dV = np.zeros((r.steps + 1, r.model.nv)), np.zeros((r.steps + 1, r.model.nv))
        self._morphology, self._x = task.morphology, x
        self.markers = task.morphology.points(x)
        self.by_marker = {name: np.zeros(3) for name in self.markers}
        self.by_placement = {}
        self._kinematics = {}

    def _at(self, t):
        if t not in self._kinematics:
            self._kinematics[t] = BodyPoints(self.model, self.q[t])
        return self._kinematics[t]

    def point(self, t, body, point=None):
        """World position (3,) of a point of a body, by default of its marker."""
        return self._at(t).position(body, self.markers[body] if point is None else point)

    def pull(self, t, body, gradient, point=None):
        """The cost's gradient by that position."""
        local = self.markers[body] if point is None else point
        by_q, by_point, placements = self._at(t).vjp(body, local, gradient)
        self.dQ[t] += by_q
        if point is None:
            self.by_marker[body] += by_point
        for name, g in placements.items():
            self.by_placement[name] = self.by_placement.get(name, 0) + g

    def by_design(self):
        """The gradient by the design that does not go through the motion."""
        names = set(self._morphology.names)
        total = self._morphology.vjp(self._x, {name: g for name, g in self.by_placement.items() if name in names})
        slopes = self._morphology.points_jacobian(self._x)
        return total + sum(g @ slopes[name] for name, g in self.by_marker.items())


class Task:
    """morphology: of the model at scales 1. cost(book, u) -> number and d/du (blocks, nu). start: (q, v). anew: iterations after which
    L-BFGS-B forgets what it has seen. options: of Simulator.
    """

    def __init__(self, morphology, cost, start, *, steps, block, bounds, anew=None, **options):
        self.anew = anew
        self.morphology, self.cost, self.start = morphology, cost, start
        self.steps, self.block, self.blocks = steps, block, steps // block
        self.options, self.nu = options, morphology.model.nu
        self.bounds = [bounds.get(name, bounds[None]) for name in morphology.design.names]

    def simulate(self, a, x):
        sim = coulomb.Simulator(self.morphology.model_of(x), **self.options)
        u = np.tanh(a)
        return u, sim.rollout(*self.start, np.repeat(u, self.block, axis=0))

    def evaluate(self, a, x, by_design=True):
        """The cost, and its gradients by a (blocks, nu) and x."""
        u, r = self.simulate(a, x)
        book = Book(self, r, x)
        value, du = self.cost(book, u)
        g = r.vjp(book.dQ, book.dV, wrt=self.morphology.names if by_design else [])
        du = du + g.u.reshape(self.blocks, self.block, self.nu).sum(axis=1)
        dx = self.morphology.vjp(x, g) + book.by_design() if by_design else np.zeros(len(x))
        return value, du * (1 - u**2), dx

    def check_gradient(self, a, x, step=1e-6):
        """Relative difference of the slope along one random direction from central differences."""
        random = np.random.default_rng(0)
        da, dx = random.normal(size=a.shape), random.normal(size=len(x))
        _, by_a, by_x = self.evaluate(a, x)
        slope = np.sum(by_a * da) + by_x @ dx
        ends = [self.evaluate(a + s * da, x + s * dx)[0] for s in (step, -step)]
        return abs(slope - (ends[0] - ends[1]) / (2 * step)) / abs(slope)

    def optimise(self, a, x, iterations, design):
        """L-BFGS-B on a, and on x if `design`. Returns a, x and the cost after every iteration, the start first."""
        count, free = a.size, len(x) if design else 0
        costs, self.path = [self.evaluate(a, x, False)[0]], [a]
        scale = 1 / abs(costs[0])

        def split(y):
            return y[:count].reshape(a.shape), y[count:] if design else x

        best = [np.inf, None]

        def function(y):
            value, by_a, by_x = self.evaluate(*split(y), by_design=design)
            if value < best[0]:
                best[:] = value, y.copy()
            return scale * value, scale * np.concatenate([by_a.ravel(), by_x[:free]])

        def note(y, value):
            costs.append(value)
            self.path.append(split(y)[0].copy())

        y, limits = np.concatenate([a.ravel(), x[:free]]), [(-1, 1)] * count + self.bounds[:free]
        while (
            len(costs) <= iterations
        ):  # a line search fails at kinks, where contacts change: begin anew from its best point
            before = costs[-1]
            minimize(
                function,
                y,
                jac=True,
                method="L-BFGS-B",
                bounds=limits,
                callback=lambda intermediate_result: note(intermediate_result.x, intermediate_result.fun / scale),
                options={
                    "maxiter": min(iterations + 1 - len(costs), self.anew or iterations),
                    "ftol": 1e-7,
                    "maxcor": 20,
                },
            )
            y = best[1]
            if best[0] < costs[-1]:
                note(y, best[0])
            if costs[-1] > (1 - 1e-6) * before:
                break
        return *split(y), np.array(costs)


def compare(task, iterations, a=None):
    """Control alone, then control and design from the same start, and, where that ends in a worse minimum, from controls that control
    alone has come through: half-way and at its end. {label: (a, x, costs)}; every iteration must be better.
    """
    a = np.zeros((task.blocks, task.nu)) if a is None else a
    control = run(task, "control", a, iterations, False)
    path = task.path
    both = run(task, "control and design", a, iterations, True)
    for k in (len(path) // 2, len(path) - 1):
        if both[2][-1] > control[2][-1]:
            both = run(task, f"... from control {k}", path[k], iterations, True)
    x = both[1]
    print("scales: " + ", ".join(f"{name} {value:.2f}" for name, value in zip(task.morphology.design.names, x)))
    return {"control": control, "control and design": both}


def run(task, label, a, iterations, design):
    began = time.perf_counter()
    found = task.optimise(a, task.morphology.start.copy(), iterations, design)
    costs = found[2]
    spent = time.perf_counter() - began
    print(f"{label:<19} cost {costs[0]:.4g} -> {costs[-1]:.4g} in {len(costs) - 1} iterations, {spent:.1f} s")
    assert np.all(np.diff(costs) <= 1e-12 * costs[0]), "a cost went up"
    return found


def study(name, task, options, *, at, iterations, describe, frames, a=None, tolerance=1e-6, **drawing):
    """What every example does: gradient against differences, control alone against control and design, a picture.

    at: controls, scales (numbers for all) and step of the differences. iterations: (quick, full). describe(a, x): words.
    frames: row numbers, or from the results. Returns the results of compare(); asserts that co-design ends no worse.
    """
    count = task.morphology.design.size
    error = task.check_gradient(at[0] * np.ones((task.blocks, task.nu)), at[1] * np.ones(count), *at[2:])
    print(f"gradient by {task.blocks * task.nu} controls and {count} scales against differences: {error:.0e}")
    results = compare(task, iterations[0 if options.quick else 1], a)
    for label, (a, x, _) in results.items():
        print(f"{label:<19} {describe(a, x)}")
    path, title = options.output / f"codesign_{name.lower().replace(' ', '_')}.png", name
    picture(path, title, task, results, frames(results) if callable(frames) else frames, **drawing)
    control, both = (results[label][2] for label in results)
    assert both[-1] <= control[-1] < control[0] and error < tolerance, error
    return results


def draw(axes, model, q, *, alpha=0.9, light=()):
    """The geometries at q in an Axes3D; those whose name is in `light` in another colour."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    places, turns = model.geometry_placements(q)
    for g, name in enumerate(model.geometry_names):
        kind = model.geometry_types[g]
        if kind == "box":
            corners, loops = (2 * BOX_CORNERS - 1) * model.geometry_size[g], BOX_FACES
        elif kind == "mesh":
            mesh = int(model.geometry_mesh[g])
            corners, loops = model.mesh_vertices(mesh), model.mesh_faces(mesh)
        else:
            continue
        corners = corners @ turns[g].T + places[g]
        polygons, colour = [corners[list(loop)] for loop in loops], COLOURS[1] if name in light else COLOURS[0]
        shades = [0.55 + 0.45 * abs(_normal(p) @ (0.35, -0.6, 0.72)) for p in polygons]
        faces = [(*(np.array(_rgb(colour)) * s + (1 - s) * 0.1), alpha) for s in shades]
        axes.add_collection3d(
            Poly3DCollection(polygons, facecolors=faces, edgecolors=(0.1, 0.1, 0.15, 0.6 * alpha), linewidths=0.4)
        )


def _normal(p):
    n = np.cross(p[2] - p[0], p[1] - p[-1])
    return n / max(np.linalg.norm(n), 1e-30)


def _rgb(colour):
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def picture(path, title, task, results, frames, *, light=(), limits, view=(18, -65), extra=None):
    """Costs, and rows of pictures at the row numbers `frames`: control alone above, control and design below.

    frames: or {label: row numbers}. limits: ((x0, x1), (y0, y1), (z0, z1)) m. extra(axes, label): draws more into each picture.
    """
    import matplotlib

    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        columns = frames if isinstance(frames, dict) else dict.fromkeys(results, frames)
        count = len(columns["control"])
        figure = plt.figure(figsize=(4.2 + 3.1 * count, 6.4), layout="constrained")
        grid = figure.add_gridspec(2, 1 + count, width_ratios=(1.35, *(1 for _ in range(count))))
        axes = figure.add_subplot(grid[:, 0])
        for k, (label, (_, _, costs)) in enumerate(results.items()):
            start = int(np.argmin(abs(results["control"][2] - costs[0]))) if k else 0  # it may go on from there
            axes.semilogy(np.arange(start, start + len(costs)), costs, color=COLOURS[k], label=label)
        axes.set(xlabel="iteration of L-BFGS-B", ylabel="cost", title=title)
        axes.legend()
        for row, (label, (a, x, _)) in enumerate(results.items()):
            _, r = task.simulate(a, x)
            for column, t in enumerate(columns[label]):
                box = figure.add_subplot(grid[row, 1 + column], projection="3d", computed_zorder=False)
                draw(box, r.model, r.q[t], light=light)
                if extra:
                    extra(box, r.model, t)
                box.set(xlim=limits[0], ylim=limits[1], zlim=limits[2])
                box.set_box_aspect([b - a for a, b in limits], zoom=1.35)
                box.view_init(*view)
                box.set_axis_off()
                box.set_title(f"{label}, {t * r.model.timestep:.2f} s", fontsize=9.5, y=0.98)
        finish(figure, path)

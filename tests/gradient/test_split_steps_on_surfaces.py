"""Derivatives of steps that are split at impacts on height fields and triangle meshes: by state, forces, sizes, placements, heights and
vertices, against differences and in reverse."""

import numpy as np
import pytest
from all_columns import assert_reverse

import coulomb

SHAPES = {
    "sphere": lambda scene, **where: scene.add_sphere(0.05, **where),
    "box": lambda scene, **where: scene.add_box((0.1, 0.07, 0.05), **where),
    "capsule": lambda scene, **where: scene.add_capsule(0.05, 0.1, **where),
    "cylinder": lambda scene, **where: scene.add_cylinder(0.05, 0.1, **where),
    "ellipsoid": lambda scene, **where: scene.add_ellipsoid((0.1, 0.07, 0.05), **where),
}
KINDS = ("heights", "vertices", "size", "geometry_placement", "mass", "timestep", "gravity")


def scene(kind, shape, seed, restitution):
    random = np.random.default_rng(seed)
    side, spacing = 7, 0.15
    heights = random.uniform(0, 0.08, (side, side))
    out = coulomb.Scene(timestep=0.01)
    material = {"friction": 0.4, "restitution": restitution}
    if kind == "field":
        out.add_heightfield(heights, spacing, **material)
    else:
        places = (np.arange(side) - side // 2) * spacing
        x, y = np.meshgrid(places, places)
        first = (np.arange(side - 1)[:, None] * side + np.arange(side - 1)).ravel()
        triangles = np.concatenate([first[:, None] + [0, 1, side + 1], first[:, None] + [0, side + 1, side]])
        out.add_triangle_mesh(np.stack([x, y, heights], -1).reshape(-1, 3), triangles, **material)
    SHAPES[shape](out, mass=1.0, position=(*random.uniform(-0.2, 0.2, 2), 0.3), **material)
    model = out.build()
    q, v = model.neutral()
    v[:] = np.r_[random.normal(size=2), -2, 3 * random.normal(size=3)]
    return model, q, v


@pytest.mark.parametrize("restitution", [0.0, 0.6])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["field", "mesh"])
def test_impacts(kind, shape, restitution):
    found = 0
    for seed in range(8):
        if found == 2:
            break
        model, q, v = scene(kind, shape, seed, restitution)
        names = [name for name in model.parameters() if name.split("/")[0] in KINDS]
        assert {"heights" if kind == "field" else "vertices", "size"} <= {name.split("/")[0] for name in names}
        sim = coulomb.Simulator(model, continuous_collision=True)
        for _ in range(40):
            q_next, v_next = sim.step(q, v)
            assert sim.status.converged, sim.status
            if len(sim.impacts) > 0:
                break
            q, v = q_next, v_next
        assert 0 < len(sim.impacts)
        if len(sim.impacts) > 3:
            continue
        ground = names[[name.split("/")[0] in ("heights", "vertices") for name in names].index(True)]
        assert np.abs(sim.derivatives(wrt=[ground])[ground]).max() > 0
        check = coulomb.check_gradients(
            coulomb.Simulator(model, continuous_collision=True), q, v, wrt=["q", "v", "tau", *names]
        )
        assert check.passed and check.compared > 0.8 * check.columns, str(check)
        assert_reverse(coulomb.Simulator(model, continuous_collision=True), q, v, None, names)
        found += 1
    assert found == 2


@pytest.mark.parametrize("kind", ["field", "mesh"])
def test_taylor_remainders_of_a_bounce(kind):
    """Along a rollout that bounces off a slope, by the start and by the ground."""
    model, q0, v0 = scene(kind, "sphere", 1, 0.6)
    ground = next(name for name in model.parameters() if name.split("/")[0] in ("heights", "vertices"))
    value = model.parameters()[ground].value
    random = np.random.default_rng(0)
    dv, dground = random.normal(size=model.nv), random.normal(size=value.shape)
    steps = 14

    def rollout(epsilon):
        moved = model.with_parameters({ground: value + epsilon * dground})
        return coulomb.Simulator(moved, continuous_collision=True).rollout(q0, v0 + epsilon * dv, steps=steps)

    base = rollout(0.0)
    assert base.v[-1, 2] > 0 > base.v[0, 2]
    W = np.zeros((2, steps + 1, model.nv))
    W[:, -1] = random.normal(size=(2, model.nv))
    g = base.vjp(W[0], W[1], wrt=[ground])
    slope = g.v0 @ dv + g[ground] @ dground.ravel()
    sizes = np.array([4e-5, 2e-5, 1e-5])

    def loss(r):
        return W[0][-1] @ model.difference(base.q[-1], r.q[-1]) + W[1][-1] @ (r.v[-1] - base.v[-1])

    rest = np.array([abs(loss(rollout(e)) - e * slope) for e in sizes])
    orders = np.log2(rest[:-1] / rest[1:])
    assert (orders > 1.7).all() and (orders < 2.4).all(), (rest, orders)

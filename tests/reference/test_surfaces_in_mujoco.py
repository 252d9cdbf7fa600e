"""Height fields of MJCF against MuJoCo: the triangles are the same, a ball touches where MuJoCo's does, and what is written is read again."""

import numpy as np
import pytest

import coulomb
from coulomb.mjcf_export import to_mjcf
from coulomb.view.visuals import visuals_of

mujoco = pytest.importorskip("mujoco")

ROWS, COLUMNS = 5, 7
HEIGHTS = np.random.default_rng(0).uniform(size=(ROWS, COLUMNS))
HEIGHTS[0, 0], HEIGHTS[1, 1] = 0, 1  # MuJoCo scales a field from 0 to 1
DOCUMENT = f"""<mujoco><option timestep="0.002"/><asset>
<hfield name="hills" nrow="{ROWS}" ncol="{COLUMNS}" size="1.2 .8 .3 .1" elevation="{" ".join(map(str, HEIGHTS.ravel()))}"/></asset>
<worldbody><geom name="ground" type="hfield" hfield="hills" pos=".1 -.2 .05" euler="0 0 20" friction=".6"/>
<body pos="0 0 1"><freejoint/><geom name="ball" size=".07" mass="1"/></body></worldbody></mujoco>"""


def heights_of(model, points):
    """Of the surface's triangles below each (x, y), in the geometry's frame; walls and floor come after the cells."""
    surface = model.geometry_mesh[0]
    vertices = np.asarray(model.surface_vertices(surface))
    rows, columns = model.heightfield_shape(surface)
    triangles = np.asarray(model.surface_triangles(surface))[: 2 * (rows - 1) * (columns - 1)]
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    found = []
    for x, y in points:
        area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
        s = ((x - a[:, 0]) * (c[:, 1] - a[:, 1]) - (c[:, 0] - a[:, 0]) * (y - a[:, 1])) / area
        t = ((b[:, 0] - a[:, 0]) * (y - a[:, 1]) - (x - a[:, 0]) * (b[:, 1] - a[:, 1])) / area
        k = np.argmax(np.minimum(np.minimum(s, t), 1 - s - t))
        found.append(a[k, 2] + s[k] * (b[k, 2] - a[k, 2]) + t[k] * (c[k, 2] - a[k, 2]))
    return np.array(found)


def test_triangles_are_mujocos():
    model, compiled = coulomb.load(DOCUMENT), mujoco.MjModel.from_xml_string(DOCUMENT)
    assert model.geometry_types[0] == "surface" and model.heightfield_shape(0) == (ROWS, COLUMNS)
    assert not any("hfield" in line or "height" in line for line in model.ignored)
    data = mujoco.MjData(compiled)
    data.qpos[:3] = 0, 0, 50
    mujoco.mj_forward(compiled, data)
    random = np.random.default_rng(1)
    points = random.uniform([-1.19, -0.79], [1.19, 0.79], size=(300, 2))
    R, p = data.geom_xmat[0].reshape(3, 3), data.geom_xpos[0]
    rays = []
    for x, y in points:
        start = p + R @ [x, y, 10.0]
        rays.append(10.0 - mujoco.mj_ray(compiled, data, start, -R[:, 2], None, 1, -1, np.zeros(1, np.int32)))
    assert heights_of(model, points) == pytest.approx(np.array(rays), abs=1e-6)


def test_a_ball_touches_as_in_mujoco():
    """Contacts of a ball a little in the ground: the deepest one has MuJoCo's depth and normal, to what its iterations leave."""
    model, compiled = coulomb.load(DOCUMENT), mujoco.MjModel.from_xml_string(DOCUMENT)
    data, sim = mujoco.MjData(compiled), coulomb.Simulator(model)
    random, compared = np.random.default_rng(2), 0
    for _ in range(60):
        q = np.r_[random.uniform([-0.7, -0.6], [0.8, 0.3]), 0.6, 1, 0, 0, 0]
        # Down onto the ground.
        v = np.zeros(6)
        for _ in range(200):
            q, v = sim.step(q, v)
            if any(c.depth > -1e-6 for c in sim.contacts):
                break
        q[2] -= 1e-3
        data.qpos[:] = q
        mujoco.mj_forward(compiled, data)
        sim.step(q, np.zeros(6))
        deepest = max(sim.contacts, key=lambda c: c.depth, default=None)
        if deepest is None or data.ncon == 0:
            continue
        theirs = min(range(data.ncon), key=lambda k: data.contact[k].dist)
        assert -data.contact[theirs].dist == pytest.approx(deepest.depth, abs=2e-5)
        assert abs(data.contact[theirs].frame[:3] @ deepest.normal) > 0.999
        compared += 1
    assert compared > 30


def test_what_is_written_is_read_again():
    model = coulomb.load(DOCUMENT)
    again = coulomb.load(to_mjcf(model))
    g = list(again.geometry_types).index("surface")
    frames = [m.geometry_placements(m.q_neutral) for m in (model, again)]
    there = [
        np.asarray(m.surface_vertices(m.geometry_mesh[k])) @ turns[k].T + positions[k]
        for m, k, (positions, turns) in zip((model, again), (0, g), frames, strict=True)
    ]
    assert there[0] == pytest.approx(there[1], abs=1e-6)


def test_a_triangle_mesh_is_not_written():
    scene = coulomb.Scene()
    scene.add_triangle_mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], name="wedge")
    with pytest.raises(ValueError, match="'wedge' is a triangle mesh"):
        to_mjcf(scene.build())


def test_it_is_seen():
    for model in (coulomb.load(DOCUMENT), _scene()):
        visual = visuals_of(model)[0]
        walls = 6 * (ROWS + COLUMNS - 2)  # and the floor: three triangles for every edge of the border
        assert visual.kind == "mesh" and len(visual.faces) == 2 * (ROWS - 1) * (COLUMNS - 1) + walls
        assert visual.vertices == pytest.approx(np.asarray(model.surface_vertices(0)), abs=1e-6)
    image = coulomb.view.Renderer(coulomb.load(DOCUMENT), width=64, height=48).render(
        coulomb.load(DOCUMENT).neutral()[0]
    )
    assert np.asarray(image).std() > 0


def _scene():
    scene = coulomb.Scene()
    scene.add_heightfield(0.3 * HEIGHTS, (0.4, 0.4))
    return scene.build()

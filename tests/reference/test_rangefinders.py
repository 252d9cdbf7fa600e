"""Rangefinders against MuJoCo's, on all shapes, from outside and from within; and Model.ray."""

import mujoco
import numpy as np
import pytest

import coulomb

SHAPES = {
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .3"',
    "cylinder": 'type="cylinder" size=".2 .3"',
    "ellipsoid": 'type="ellipsoid" size=".2 .3 .4"',
    "box": 'type="box" size=".2 .3 .4"',
    "mesh": 'type="mesh" mesh="tetra"',
    "hfield": 'type="hfield" hfield="hills"',
}
ASSETS = """<asset><mesh name="tetra" vertex="-.3 -.3 -.2  .4 -.1 -.2  0 .4 -.1  0 0 .45"/>
  <hfield name="hills" nrow="4" ncol="5" size=".5 .4 .3 .2"
    elevation="0 .2 .1 .6 .3  .5 1 .2 .1 .4  .1 .3 .9 .8 .2  .3 .2 .1 .5 0"/></asset>"""


def scene_with_eye(text, count, seed, nearest=0.02):
    """A scene with that many rangefinders on a body, whose rays go to the middle of the scene or past it."""
    random = np.random.default_rng(seed)
    sites = ""
    for i in range(count):
        pos = random.normal(size=3)
        pos *= random.uniform(nearest, 1.5) / np.linalg.norm(pos)
        z = random.normal(size=3) * 0.25 - pos
        sites += f'<site name="s{i}" pos="{pos[0]} {pos[1]} {pos[2]}" zaxis="{z[0]} {z[1]} {z[2]}"/>'
    sensors = "".join(f'<rangefinder name="r{i}" site="s{i}"/>' for i in range(count))
    return f"""<mujoco>{ASSETS}<worldbody>{text}
      <body name="eye"><freejoint/><geom size=".01" mass="1" contype="0" conaffinity="0"/>{sites}</body></worldbody>
      <sensor>{sensors}</sensor></mujoco>"""


@pytest.mark.parametrize("shape", SHAPES)
def test_one_shape(shape):
    static = shape == "hfield"
    body = f'<geom name="g" {SHAPES[shape]}/>'
    if not static:
        body = f'<body name="b"><freejoint/>{body}</body>'
    text = scene_with_eye(body, 200, sum(map(ord, shape)), 0.8 if static else 0.02)
    theirs = mujoco.MjModel.from_xml_string(text)
    data, model = mujoco.MjData(theirs), coulomb.load(text)
    random = np.random.default_rng(7)
    names = [f"sensor/{name}" for name in model.sensor_names]
    assert len(names) == 200
    for spread in (0, 0.1, 0.2):
        q = model.integrate(model.neutral()[0], spread * random.normal(size=model.nv))
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        ours = model.output(names, q)
        assert (ours < 0).sum() > 5 and (ours > 0).sum() > 10
        assert np.array_equal(ours < 0, data.sensordata < 0)
        assert np.abs(ours - data.sensordata).max() <= 1e-10


def test_many_shapes_and_a_plane():
    random = np.random.default_rng(3)
    bodies = '<geom name="floor" type="plane" size="0 0 1" pos="0 0 -.8" euler="4 7 0"/>'
    for shape in SHAPES:
        if shape == "hfield":
            continue
        x = random.uniform(-1, 1, 3)
        bodies += f'<body pos="{x[0]} {x[1]} {x[2]}"><freejoint/><geom name="{shape}" {SHAPES[shape]}/></body>'
    text = scene_with_eye(bodies, 100, 5)
    theirs = mujoco.MjModel.from_xml_string(text)
    data, model = mujoco.MjData(theirs), coulomb.load(text)
    names = [f"sensor/{name}" for name in model.sensor_names]
    for _ in range(5):
        q = model.integrate(model.neutral()[0], 0.5 * random.normal(size=model.nv))
        data.qpos[:] = q
        mujoco.mj_forward(theirs, data)
        ours = model.output(names, q)
        assert (ours > 0).mean() > 0.5
        assert np.abs(ours - data.sensordata).max() <= 1e-10

        # Rays by themselves say the same, and whose surface it is.
        body = model.body_names.index("eye")
        for i in range(0, 100, 7):
            direction = data.site_xmat[i].reshape(3, 3)[:, 2]
            distance, geometry, normal = model.ray(q, data.site_xpos[i], 3 * direction, exclude=body)
            geomid = np.zeros(1, dtype=np.int32)
            expected = mujoco.mj_ray(theirs, data, data.site_xpos[i], direction, None, 1, body, geomid)
            assert distance == pytest.approx(expected, abs=1e-10)
            name = None if geometry is None else model.geometry_names[geometry]
            assert name == (None if geomid[0] < 0 else theirs.geom(geomid[0]).name)
            assert np.linalg.norm(normal) == pytest.approx(0 if geometry is None else 1)


def test_a_rangefinder_does_not_see_its_own_body_and_is_cut_off():
    text = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body pos="0 0 1"><freejoint/><geom size=".1"/><site name="down" euler="180 0 0"/><site name="up"/></body></worldbody>
      <sensor><rangefinder name="far" site="down"/><rangefinder name="near" site="down" cutoff=".3"/>
        <rangefinder name="none" site="up" cutoff=".3"/></sensor></mujoco>"""
    model = coulomb.load(text)
    q, _ = model.neutral()
    names = ["sensor/far", "sensor/near", "sensor/none", "rangefinder/down"]
    assert model.output(names, q) == pytest.approx([1, 0.3, -1, 1])
    J = model.output_jacobian(names, q)
    assert J[0] == pytest.approx([0, 0, 1, 0, 0, 0]) and not J[1:3].any()

    # An infinite plane, seen from its front alone.
    q[2] = -1
    assert model.output(names, q) == pytest.approx([-1, -1, -1, -1])
    assert model.outputs()["sensor/far"].unit == "m"


def test_ray_refuses_bad_input():
    model = coulomb.load('<mujoco><worldbody><geom name="g" size="1"/></worldbody></mujoco>')
    assert model.ray([], [0, 0, 3], [0, 0, -2])[:2] == (2.0, 0)
    assert model.ray([], [0, 0, 0], [0, 1, 0])[0] == pytest.approx(1)
    assert model.ray([], [0, 0, 3], [0, 0, 1])[:2] == (-1.0, None)
    assert model.ray([], [0, 0, 3], [0, 0, -2], exclude=0)[1] is None
    for scale in (1e-200, 1e200):
        assert model.ray([], [0, 0, 3], [0, 0, -2 * scale])[:2] == (2.0, 0)
    with pytest.raises(ValueError, match="direction"):
        model.ray([], [0, 0, 3], [0, 0, 0])
    with pytest.raises(ValueError, match="point"):
        model.ray([], [0, np.nan, 3], [0, 0, 1])
    with pytest.raises(ValueError, match="excluded_body"):
        model.ray([], [0, 0, 3], [0, 0, 1], exclude=5)


def test_visual_primitives_are_met():
    text = """<mujoco><worldbody><geom name="picture" size="1" contype="0" conaffinity="0"/>
      <body pos="0 0 3"><joint/><geom size=".1"/><site name="s" euler="180 0 0"/></body></worldbody></mujoco>"""
    assert coulomb.load(text).output("rangefinder/s", [0])[0] == pytest.approx(2)


def test_visual_meshes_are_not_met_and_meshes_are_met_at_their_hulls():
    """MuJoCo's rays meet the triangles of all meshes; there are none here."""
    dent = '<mesh name="m" vertex="-1 -1 0  1 -1 0  1 1 0  -1 1 0  0 0 .2  0 0 -1" face="0 1 4  1 2 4  2 3 4  3 0 4  1 0 5  2 1 5  3 2 5  0 3 5"/>'
    for visual in (False, True):
        flags = 'contype="0" conaffinity="0"' if visual else ""
        text = f"""<mujoco><asset>{dent.replace("0 0 .2", "0 0 -.5")}</asset><worldbody><geom type="mesh" mesh="m" {flags}/>
          <body pos="0 0 3"><joint/><geom size=".1"/><site name="s" euler="180 0 0"/></body></worldbody></mujoco>"""
        theirs = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(theirs)
        mujoco.mj_forward(theirs, data)
        geomid = np.zeros(1, dtype=np.int32)
        down = np.array([0, 0, -1.0])
        seen = mujoco.mj_ray(theirs, data, np.array([0, 0, 3.0]), down, None, 1, 1, geomid)
        model = coulomb.load(text)
        ours = model.output("rangefinder/s", [0])[0]
        top = model.ray([0], [0.9, 0.9, 3], [0, 0, -1], exclude=1)[0]
        if visual:
            assert ours == -1 and top == -1
        else:
            assert seen == pytest.approx(top + 0.5, abs=0.1) and ours == pytest.approx(top, abs=1e-9)

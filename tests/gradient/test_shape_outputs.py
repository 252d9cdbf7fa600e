"""Readings of surfaces (rangefinders, distances), of tendon limits and of fields: derivatives by q, v and parameters against differences, of a
state, of a step, along rollouts and in PyTorch."""

import numpy as np
import pytest
from test_state_outputs import assert_close, richardson

import coulomb

SHAPES = {
    "sphere": 'type="sphere" size=".3"',
    "capsule": 'type="capsule" size=".15 .3"',
    "cylinder": 'type="cylinder" size=".2 .3"',
    "ellipsoid": 'type="ellipsoid" size=".2 .3 .4"',
    "box": 'type="box" size=".2 .3 .4"',
    "mesh": 'type="mesh" mesh="tetra"',
    "plane": 'type="plane" size="0 0 1" pos="0 0 -.5" euler="10 20 0"',
    "hfield": 'type="hfield" hfield="hills"',
}
ASSETS = """<asset><mesh name="tetra" vertex="-.3 -.3 -.2  .4 -.1 -.2  0 .4 -.1  0 0 .45  .3 .3 .2"/>
  <hfield name="hills" nrow="4" ncol="5" size=".5 .4 .3 .2"
    elevation="0 .2 .1 .6 .3  .5 1 .2 .1 .4  .1 .3 .9 .8 .2  .3 .2 .1 .5 0"/></asset>"""
MOVING = {"joint_placement", "geometry_placement", "body_placement", "size", "vertices", "heights", "tendon_limits"}
CONVEX = ("sphere", "capsule", "cylinder", "ellipsoid", "box", "mesh")


def rays(random, count, static):
    sites = ""
    for i in range(count):
        pos = random.normal(size=3)
        pos *= random.uniform(0.9 if static else 0.02, 1.5) / np.linalg.norm(pos)
        if static:
            pos[2] = abs(pos[2]) + 0.3
        z = random.normal(size=3) * 0.15 - pos
        sites += f'<site name="s{i}" pos="{pos[0]} {pos[1]} {pos[2]}" zaxis="{z[0]} {z[1]} {z[2]}"/>'
    return sites


def difference(model, names, q, v, base, moved, h):
    """Differences of two sizes: they agree unless a kink lies between."""
    big, small = (richardson(moved, base, s) for s in (h, h / 4))
    return big, np.abs(big - small) <= 1e-5 * np.maximum(1, np.abs(small))


def check(model, names, q, v, least=0.8, without=()):
    """By q, v and all parameters, but for the readings near a kink."""
    base = model.output(names, q, v)
    e = np.eye(model.nv)
    share = []

    def compare(J, columns, what):
        for k, (column, smooth) in enumerate(columns):
            share.append(smooth.mean())
            assert_close(J[smooth, k : k + 1], [column[smooth]], (what, k), 2e-6)

    def turned(k):
        return lambda h: model.output(names, model.integrate(q, h * e[k]), v) - base

    def sped(k):
        return lambda h: model.output(names, q, v + h * e[k]) - base

    by_q = [difference(model, names, q, v, base, turned(k), 1e-5) for k in range(model.nv)]
    by_v = [difference(model, names, q, v, base, sped(k), 1e-3) for k in range(model.nv)]
    compare(model.output_jacobian(names, q, v, "q"), by_q, "q")
    compare(model.output_jacobian(names, q, v, "v"), by_v, "v")
    felt = set()
    for parameter, info in model.parameters().items():
        if parameter.split("/")[0] in without:
            continue
        J = model.output_jacobian(names, q, v, parameter)
        value = np.array(info.value)
        columns = []
        for k in range(info.size):

            def changed(h, k=k, parameter=parameter, value=value):
                moved = value.copy()
                moved[k] += h
                return model.with_parameters({parameter: moved}).output(names, q, v) - base

            if parameter.split("/")[0] not in MOVING:
                assert not J.any(), parameter
                break
            columns.append(difference(model, names, q, v, base, changed, 1e-5))
        compare(J[:, : len(columns)], columns, parameter)
        felt |= {parameter.split("/")[0]} if J.any() else set()
    assert np.mean(share) >= least
    return felt


@pytest.mark.parametrize("shape", SHAPES)
def test_rangefinders(shape):
    random = np.random.default_rng(len(shape))
    static = shape in ("plane", "hfield")
    body = f'<geom name="g" {SHAPES[shape]}/>'
    if not static:
        body = f'<body name="b"><joint name="b" type="ball"/>{body}</body>'
    sensors = "".join(f'<rangefinder site="s{i}"/>' for i in range(30))
    model = coulomb.load(f"""<mujoco>{ASSETS}<worldbody>{body}<body name="eye"><freejoint/>
      <geom size=".01" mass="1" contype="0" conaffinity="0"/>{rays(random, 30, static)}</body></worldbody>
      <sensor>{sensors}</sensor></mujoco>""")
    q = model.integrate(model.neutral()[0], 0.05 * random.normal(size=model.nv))
    names = [f"sensor/{name}" for name in model.sensor_names]
    assert (model.output(names, q) > 0).sum() > 8
    felt = check(model, names, q, np.zeros(model.nv))
    kinds = {"mesh": {"vertices"}, "hfield": {"heights"}, "plane": set()}.get(shape, {"size"})
    assert felt >= kinds | {"geometry_placement"}


@pytest.mark.parametrize("first", CONVEX)
@pytest.mark.parametrize("second", ("plane", *CONVEX))
def test_distances(first, second):
    random = np.random.default_rng(len(first) + 10 * len(second))
    other = f'<geom name="h" {SHAPES[second]}/>'
    if second != "plane":
        other = f'<body pos=".9 .1 .2" euler="20 30 40">{other}</body>'
    model = coulomb.load(f"""<mujoco>{ASSETS}<worldbody>{other}
      <body name="b" pos="0 0 .4"><freejoint/><geom name="g" {SHAPES[first]}/></body></worldbody>
      <sensor><distance geom1="g" geom2="h" cutoff="9"/><distance body1="b" geom2="h" cutoff="9"/>
      <distance geom1="h" geom2="g" cutoff=".01"/></sensor></mujoco>""")
    q = model.integrate(model.neutral()[0], 0.1 * random.normal(size=6))
    names = [f"sensor/{name}" for name in model.sensor_names]
    distance = model.output(names, q)
    assert 0.01 < distance[0] == distance[1] and distance[2] == 0.01
    felt = check(model, names, q, np.zeros(6), 0.6 if "mesh" in (first, second) else 0.9)
    assert felt >= {"vertices" if first == "mesh" else "size", "geometry_placement"}


def test_depths_are_cut_off_too():
    model = coulomb.load("""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body pos="0 0 -.2"><freejoint/><geom name="ball" size=".1"/></body></worldbody><sensor>
      <distance name="cut" geom1="ball" geom2="floor" cutoff=".25"/><distance name="open" geom1="ball" geom2="floor"/></sensor></mujoco>""")
    q, _ = model.neutral()
    assert model.output(["sensor/cut", "sensor/open"], q) == pytest.approx([-0.25, -0.3])
    J = model.output_jacobian(["sensor/cut", "sensor/open"], q, wrt="size/ball")
    assert J.ravel() == pytest.approx([0, -1])
    assert not model.output_jacobian("sensor/cut", q).any()


@pytest.mark.parametrize("first", CONVEX)
@pytest.mark.parametrize("second", ("plane", *CONVEX))
def test_normals_and_segments(first, second):
    random = np.random.default_rng(len(first) + 10 * len(second))
    other = f'<geom name="h" {SHAPES[second]}/>'
    if second != "plane":
        other = f'<body pos=".9 .1 .2" euler="20 30 40">{other}</body>'
    model = coulomb.load(f"""<mujoco>{ASSETS}<worldbody>{other}
      <body name="b" pos="0 0 .4"><freejoint/><geom name="g" {SHAPES[first]}/></body></worldbody>
      <sensor><normal geom1="g" geom2="h" cutoff="9"/><fromto body1="b" geom2="h" cutoff="9"/>
      <fromto geom1="h" geom2="g" cutoff="9"/><normal geom1="h" geom2="g" cutoff=".01"/></sensor></mujoco>""")
    names, felt = [f"sensor/{name}" for name in model.sensor_names], set()
    for _ in range(3):
        q = model.integrate(model.neutral()[0], 0.1 * random.normal(size=6))
        normal, ahead, back, none = np.split(model.output(names, q), [3, 9, 15])
        assert ahead == pytest.approx(np.r_[back[3:], back[:3]], abs=1e-7) and not none.any()
        gap = ahead[3:] - ahead[:3]
        assert np.linalg.norm(gap) > 0.01 and gap / np.linalg.norm(gap) == pytest.approx(normal, abs=1e-9)
        felt |= check(model, names, q, np.zeros(6), 0.6 if "mesh" in (first, second) else 0.9)
    assert felt >= {"vertices" if first == "mesh" else "size", "geometry_placement"}


ARM = f"""<mujoco><option magnetic="1 2 3" timestep="0.005"/>{ASSETS}<worldbody><geom name="floor" type="plane" size="5 5 1" pos="0 0 -1.5" euler="3 2 0"/>
  <body name="ball" pos=".2 .1 -.8"><freejoint/><geom name="ball" size=".25" mass=".3"/></body>
  <body name="a" pos="0 0 .5"><joint name="j0" type="ball"/><geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".5"/><site name="p" pos=".1 0 .1"/>
    <site name="eye" pos=".2 .05 0" zaxis=".1 .1 -1"/><site name="eye2" pos=".1 .05 0" zaxis=".1 .4 -1"/>
    <body name="b" pos=".3 0 0"><joint name="j1" axis="0 1 .2"/><geom name="tip" type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass=".3"/><site name="r" pos=".1 0 .1"/></body></body>
  <site name="post" pos="1 .3 1"/></worldbody>
  <tendon><spatial name="low" limited="true" range="0 .1"><site site="p"/><site site="r"/></spatial>
    <spatial name="high" limited="true" range="2 3"><site site="post"/><site site="r"/></spatial>
    <spatial name="slack" limited="true" range="0 9"><site site="post"/><site site="r"/></spatial></tendon>
  <actuator><motor joint="j1"/></actuator>
  <sensor><magnetometer name="m" site="r"/><rangefinder name="e" site="eye"/><rangefinder name="f" site="eye2"/>
    <distance name="d" body1="b" geom2="ball" cutoff="9"/><insidesite name="i" site="post" objtype="site" objname="r"/>
    {"".join(f'<tendonlimitpos name="{t}p" tendon="{t}"/><tendonlimitvel name="{t}v" tendon="{t}"/>' for t in ("low", "high", "slack"))}</sensor></mujoco>"""


def test_fields_and_limits_of_tendons():
    model = coulomb.load(ARM)
    random = np.random.default_rng(0)
    names = [f"sensor/{name}" for name in model.sensor_names]
    q, v = model.integrate(model.neutral()[0], 0.2 * random.normal(size=model.nv)), random.normal(size=model.nv)
    readings = dict(
        zip(names, np.split(model.output(names, q, v), np.cumsum([model.outputs()[n].size for n in names])[:-1]))
    )
    assert readings["sensor/lowp"] < 0 and readings["sensor/highp"] < 0 and readings["sensor/slackp"] == 0
    assert readings["sensor/lowv"] != 0 and readings["sensor/slackv"] == 0 and readings["sensor/e"] > 0

    # Placements that change the paths of tendons have no derivatives.
    felt = check(model, names, q, v, 0.95, without=("joint_placement", "body_placement"))
    assert felt >= {"tendon_limits", "geometry_placement", "size"}


def test_of_a_step_and_along_a_rollout():
    """A step's derivative is that of the next state; a rollout's the sum over its states; PyTorch goes the same way."""
    torch = pytest.importorskip("torch")
    from coulomb.torch import rollout

    model = coulomb.load(ARM)
    names = ["sensor/m", "sensor/e", "sensor/f", "sensor/d", "sensor/lowv", "rangefinder/eye"]
    parameters = ["size/ball", "mass/b", "geometry_placement/floor"]
    q, v = model.neutral()
    v = 0.3 * np.random.default_rng(1).normal(size=model.nv)
    sim = coulomb.Simulator(model)
    q1, v1 = sim.step(q, v, [0.2])
    d = sim.derivatives(wrt=parameters)
    by_q, by_v = (model.output_jacobian(names, q1, v1, wrt) for wrt in "qv")
    for wrt, columns in (("q", d.A[:, : model.nv]), ("u", d.B)):
        assert d.output(names, wrt) == pytest.approx(np.hstack([by_q, by_v]) @ columns, rel=1e-9, abs=1e-9)
    w = np.random.default_rng(2).normal(size=by_q.shape[0])
    g = sim.vjp(outputs=dict(zip(names, np.split(w, [3, 4, 5, 6, 7]))), wrt=parameters)
    for name in parameters:
        assert g[name] == pytest.approx(w @ d.output(names, name), rel=1e-9, abs=1e-12)

    # Along a rollout, by the controls and by a parameter, against differences.
    U = np.full((8, 1), 0.2)
    r = sim.rollout(q, v, U)
    assert r.output("sensor/e")[0] == pytest.approx(model.output("sensor/e", q, v))
    W = {name: np.random.default_rng(3).normal(size=r.output(name).shape) for name in names}
    g = r.vjp(outputs=W, wrt=parameters)

    def value(h, at=model):
        y = coulomb.Simulator(at).rollout(q, v, U + h)
        return sum(np.sum(W[name] * y.output(name)) for name in names)

    assert np.sum(g.u) == pytest.approx((value(1e-4) - value(-1e-4)) / 2e-4, rel=1e-6)
    radius = np.array([0.25])
    sides = [value(0, model.with_parameters({"size/ball": radius + h})) for h in (1e-6, -1e-6)]
    assert float(g["size/ball"][0]) == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-5)

    controls = torch.tensor(U, requires_grad=True)
    *_, y = rollout(sim, torch.tensor(q), torch.tensor(v), controls, outputs=names)
    (torch.tensor(np.hstack([W[name] for name in names])) * y).sum().backward()
    assert controls.grad.numpy() == pytest.approx(np.asarray(g.u), rel=1e-12)

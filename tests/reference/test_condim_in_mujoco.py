"""Torsional and rolling friction of MJCF files: the coefficients of every contact as MuJoCo combines them, and balls that spin and roll."""

import numpy as np
import pytest

import coulomb

mujoco = pytest.importorskip("mujoco")
LEAST = 1e-5  # MuJoCo's contacts have no less friction


def load(text):
    scene = coulomb.Scene()
    scene.add_mjcf(text)
    return scene.build()


def of_pair(model, a, b):
    """(friction, torsional, rolling) of the pair, None if it never touches."""
    names = model.geometry_names
    for k, (x, y) in enumerate(zip(model.pair_a, model.pair_b)):
        if {names[x], names[y]} == {a, b}:
            return model.pair_friction[k], model.pair_torsional_friction[k], model.pair_rolling_friction[k]
    return None


def compare_contacts(text):
    """How many contacts were compared, by their dim."""
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    mujoco.mj_forward(reference, data)
    model = load(text)
    seen = []
    for contact in data.contact:
        a, b = (reference.geom(int(g)).name for g in contact.geom)
        mine = of_pair(model, a, b)
        friction = contact.friction * (contact.friction > LEAST)
        expected = (
            friction[0] if contact.dim > 1 else 0.0,
            friction[2] if contact.dim > 3 else 0.0,
            friction[3] if contact.dim > 4 else 0.0,
        )
        assert mine == pytest.approx(expected), (a, b, contact.dim)
        seen.append(int(contact.dim))
    return seen


@pytest.mark.parametrize("seed", range(12))
def test_contacts_have_the_friction_that_mujoco_gives_them(seed):
    """Balls on one another and on a floor; condim, friction, priority, and pairs of their own at random."""
    random = np.random.default_rng(seed)
    condims = [1, 3, 4, 6]

    def material():
        friction = f"{random.uniform(0.2, 1):.3g} {random.uniform(1e-3, 0.05):.3g} {random.uniform(1e-4, 0.02):.3g}"
        words = f'condim="{random.choice(condims)}" friction="{friction}"'
        return words if random.random() < 0.3 else words + f' priority="{random.integers(0, 2)}"'

    balls = "".join(
        f'<body pos="{0.19 * k} 0 .099"><freejoint/><geom name="b{k}" type="sphere" size=".1" mass="1" {material()}/></body>'
        for k in range(8)
    )
    pairs = ""
    for k in range(0, 7, 3):
        slide, spin, roll = random.uniform(1e-3, 1, size=3)
        pairs += (
            f'<pair geom1="b{k}" geom2="b{k + 1}" condim="{random.choice(condims)}" '
            f'friction="{slide:.3g} {slide:.3g} {spin:.3g} {roll:.3g} {roll:.3g}"/>'
        )
    seen = compare_contacts(
        f'<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1" {material()}/>{balls}</worldbody>'
        f"<contact>{pairs}</contact></mujoco>"
    )
    assert len(seen) == 15 and len(set(seen)) > 1


@pytest.mark.parametrize("condim", [1, 3, 4, 6])
def test_defaults_of_files(condim):
    """MuJoCo's own coefficients, 1 .005 .0001, by a default class."""
    seen = compare_contacts(
        f'<mujoco><default><geom condim="{condim}"/></default><worldbody><geom name="floor" type="plane" size="5 5 .1"/>'
        '<body pos="0 0 .099"><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>'
    )
    assert seen == [condim]


def test_anisotropic_rolling_is_refused():
    text = (
        '<mujoco><worldbody><geom name="a" size=".1"/><body><freejoint/><geom name="b" size=".1"/></body></worldbody>'
        '<contact><pair geom1="a" geom2="b" condim="{}" friction="1 1 .01 .01 .02"/></contact></mujoco>'
    )
    with pytest.raises(ValueError, match="anisotropic rolling friction"):
        load(text.format(6))
    assert of_pair(load(text.format(4)), "a", "b") == pytest.approx((1, 0.01, 0))


def test_a_ground_of_the_scene_and_a_file():
    """The larger condim counts: a ground with torsional friction brings out that of a file's geometry of condim 3."""
    text = '<mujoco><worldbody><body pos="0 0 .1"><freejoint/><geom name="ball" size=".1" friction=".5 .03 .02"/></body></worldbody></mujoco>'
    for arguments, expected in (
        ({}, (0.5, 0, 0)),
        (dict(torsional_friction=0.01), (0.5, 0.03, 0)),
        (dict(torsional_friction=0.05), (0.5, 0.05, 0)),
        (dict(rolling_friction=0.05), (0.5, 0.03, 0.05)),
    ):
        scene = coulomb.Scene()
        scene.add_ground(friction=0.2, **arguments)
        scene.add_mjcf(text)
        assert of_pair(scene.build(), "ground", "ball") == pytest.approx(expected)


BALL = """<mujoco><option timestep="{timestep}" cone="elliptic" impratio="{impratio}" tolerance="1e-14" iterations="500" integrator="Euler"/>
  <default><geom condim="6" friction=".8 .02 .005" solref=".002 1" solimp=".99 .99 .001"/></default><worldbody>
  <geom name="floor" type="plane" size="5 5 .1"/><body pos="0 0 .1"><freejoint/><geom name="ball" size=".1" mass="1"/></body>
  </worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("v", "seconds"),
    [([0, 0, 0, 0, 0, 10.0], 0.1), ([0.4, 0, 0, 0, 4.0, 0], 0.3), ([0.6, -0.2, 0, 3.0, 2.0, 8.0], 0.2)],
    ids=["spins", "rolls", "slides"],
)
def test_balls_move_as_in_mujoco(v, seconds):
    """Of its contacts, which creep and sink, as hard as it solves them."""
    timestep = 2e-4
    text = BALL.format(timestep=timestep, impratio=100)
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    for _ in range(2000):
        mujoco.mj_step(reference, data)  # it sinks in
    data.qpos[:2] = 0
    data.qpos[3:] = 1, 0, 0, 0
    data.qvel[:] = v
    steps = round(seconds / timestep)
    for _ in range(steps):
        mujoco.mj_step(reference, data)

    model = load(text)
    sim = coulomb.Simulator(model)
    q, _ = model.neutral()
    r = sim.rollout(q, np.array(v, float), steps=steps)

    # Spin in the world: a sphere's own frame turns.
    def world(q, v):
        w, *u = q[3:7]
        return np.r_[v[:3], v[3:] + 2 * np.cross(u, np.cross(u, v[3:]) + w * v[3:])]

    lost = world(q, np.array(v, float)) - world(r.q[-1], r.v[-1])
    of_reference = world(q, np.array(v, float)) - world(data.qpos, data.qvel)
    scale = np.repeat([1, 0.1], 3)  # by what the surface does
    assert np.linalg.norm(scale * lost) > 0.02
    np.testing.assert_allclose(scale * lost, scale * of_reference, atol=0.02 * np.linalg.norm(scale * lost))

"""Files that are damaged: every one is read or refused with a ValueError, and a model that is read steps; no crash, no hang."""

import pathlib
import random
import re
import time

import numpy as np
import pytest

import coulomb

MJCF = (pathlib.Path(__file__).parents[1] / "data/many_kinds.xml").read_text()

LINK = (
    '<link name="{}"><inertial><origin xyz="0 0 .1"/><mass value="1.5"/><inertia ixx=".02" ixy="0" ixz="0" iyy=".02" iyz="0" '
    'izz=".01"/></inertial><collision><origin xyz="0 0 .1" rpy="0 .1 0"/><geometry>{}</geometry></collision></link>'
)
URDF = (
    '<robot name="r">'
    + LINK.format("a", '<box size=".1 .2 .3"/>')
    + LINK.format("b", '<cylinder radius=".05" length=".3"/>')
    + LINK.format("c", '<sphere radius=".08"/>')
    + '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 .4"/><axis xyz="0 1 0"/>'
    '<limit lower="-1" upper="1" effort="10" velocity="5"/><dynamics damping=".1" friction=".2"/></joint>'
    '<joint name="k" type="prismatic"><parent link="b"/><child link="c"/><origin xyz=".3 0 .1" rpy="0 0 .3"/><axis xyz="1 0 0"/>'
    '<limit lower="-.1" upper=".1" effort="10" velocity="5"/></joint></robot>'
)

NUMBERS = ["1e308", "-1e308", "nan", "inf", "-inf", "1e-308", "0", "-1", "", "abc", "1e400", "99999999999999999999"]


def damage(text, rng):
    """Cut off, bits flipped, a piece left out, a piece repeated, or a number replaced."""
    kind = rng.choice(["cut", "flip", "leave out", "repeat", "number", "number", "number"])
    at = rng.randrange(len(text))
    if kind == "cut":
        return text[:at]
    if kind == "flip":
        flipped = list(text)
        for _ in range(rng.randrange(1, 4)):
            i = rng.randrange(len(text))
            flipped[i] = chr(ord(flipped[i]) ^ (1 << rng.randrange(7)))
        return "".join(flipped)
    if kind == "leave out":
        return text[:at] + text[at + rng.randrange(60) :]
    if kind == "repeat":
        to = rng.randrange(len(text))
        return text[:to] + text[at : at + rng.randrange(200)] + text[to:]
    number = rng.choice(list(re.finditer(r"-?\d*\.?\d+(e-?\d+)?", text)))
    return text[: number.start()] + rng.choice(NUMBERS) + text[number.end() :]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["mjcf", "urdf"])
def test_damaged_text(kind, seed):
    rng = random.Random(seed)
    if kind == "mjcf":
        pytest.importorskip("mujoco")
    read = 0
    for _ in range(40):
        text = damage(MJCF if kind == "mjcf" else URDF, rng)
        scene = coulomb.Scene()
        try:
            scene.add_mjcf(text) if kind == "mjcf" else scene.add_urdf(text, floating_base=True)
            model = scene.build()
        except (ValueError, FileNotFoundError) as error:
            assert str(error)
            continue
        read += 1
        sim = coulomb.Simulator(model, timestep=1e-3)
        q, v = sim.step(*model.neutral())
        # A number of 1e308 that the file may hold overflows: then the step must not claim to be solved.
        assert (np.isfinite(q).all() and np.isfinite(v).all()) or not sim.status.converged
    assert 0 < read < 40


def test_the_undamaged_texts_are_read():
    for model in (coulomb.load(MJCF), coulomb.load(URDF, floating_base=True, ground=True)):
        assert model.nv >= 8
        sim = coulomb.Simulator(model)
        sim.step(*model.neutral())
        assert sim.status.converged


ENTITIES = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a0 "lol">' + "".join(
    f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10)
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("urdf", ENTITIES + ']><robot name="&a9;">' + LINK.format("a", "") + "</robot>"),
        ("mjcf", ENTITIES + ']><mujoco model="&a9;"><worldbody/></mujoco>'),
        ("urdf", "<robot name='r'>" + "<a>" * 100000 + "</a>" * 100000 + "</robot>"),
        ("mjcf", "<mujoco><worldbody>" + "<body>" * 100000 + "</body>" * 100000 + "</worldbody></mujoco>"),
        ("mjcf", "<mujoco>\0</mujoco>"),
        ("urdf", "<robot>\0</robot>"),
        ("mjcf", "no XML, and too long for the name of a file. " * 1000),
        ("urdf", "no XML, and too long for the name of a file. " * 1000),
    ],
    ids=[
        "entities-urdf",
        "entities-mjcf",
        "deep-urdf",
        "deep-mjcf",
        "zero-mjcf",
        "zero-urdf",
        "long-mjcf",
        "long-urdf",
    ],
)
def test_hostile_text(kind, text):
    start = time.monotonic()
    try:
        getattr(coulomb.Scene(), f"add_{kind}")(text)
    except (ValueError, FileNotFoundError) as error:
        assert 0 < len(str(error)) < 10_000
    assert time.monotonic() - start < 20


def test_a_file_that_includes_itself(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "snake.xml"
    path.write_text("<mujoco><include file='snake.xml'/></mujoco>")
    with pytest.raises(ValueError, match="snake.xml"):
        coulomb.load(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.stl", b""),
        ("cut.stl", b"\0" * 80 + b"\xff\xff\xff\x7f"),
        ("none.stl", b"\0" * 84),
        ("text.obj", b"hello"),
        ("flat.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"),
        ("nan.obj", b"v 0 0 0\nv nan 0 0\nv 0 1 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\n"),
        ("index.obj", b"v 0 0 0\nf 1 2 999999999\n"),
        ("cut.dae", b"<COLLADA>"),
    ],
)
def test_damaged_meshes(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError):
        coulomb.Scene().add_urdf(f"<robot name='r'>{LINK.format('a', f'<mesh filename={str(path)!r}/>')}</robot>")


@pytest.mark.parametrize("verb", ["add_urdf", "add_mjcf"])
@pytest.mark.parametrize("value", [None, 3, [], b"\xff"])
def test_what_is_no_path(verb, value):
    with pytest.raises((TypeError, ValueError, FileNotFoundError)):
        getattr(coulomb.Scene(), verb)(value)

"""Bad input: a ValueError (or another named error) that says which argument, and nothing has changed afterwards."""

import numpy as np
import pytest

import coulomb

BAD = [np.nan, np.inf, -np.inf]


def model_with_arm():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), name="box")
    scene.add_mjcf(
        "<mujoco><worldbody><body pos='1 0 1'><joint name='j'/><geom size='.1'/></body></worldbody>"
        "<actuator><motor joint='j'/></actuator></mujoco>"
    )
    return scene.build()


@pytest.fixture(scope="module")
def model():
    return model_with_arm()


def refuses_and_keeps(sim, arguments, name):
    """A step with bad arguments raises, naming the argument; contacts, derivatives and the next step are as if it had not been called."""
    q, v = sim.model.neutral()
    sim.reset()
    sim.step(q, v)
    A, contacts = sim.derivatives().A.copy(), [c.impulse for c in sim.contacts]
    with pytest.raises((ValueError, TypeError)) as raised:
        sim.step(**{"q": q, "v": v, **arguments})
    assert name in str(raised.value)
    assert np.array_equal(sim.derivatives().A, A)
    assert np.array_equal([c.impulse for c in sim.contacts], contacts)
    after = sim.step(q, v)
    sim.reset()
    sim.step(q, v)
    assert all(np.array_equal(a, b) for a, b in zip(after, sim.step(q, v)))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", ["q", "v", "u", "tau", "fext"])
def test_non_finite_numbers(model, name, bad):
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    good = {
        "q": q,
        "v": v,
        "u": np.zeros(model.nu),
        "tau": np.zeros(model.nv),
        "fext": np.zeros((model.num_bodies, 6)),
    }[name]
    for index in {0, good.size // 2, good.size - 1}:
        value = good.copy()
        value.flat[index] = bad
        refuses_and_keeps(sim, {name: value}, name)


@pytest.mark.parametrize("name", ["q", "v", "u", "tau", "fext"])
@pytest.mark.parametrize("shape", [(0,), (3,), (100,), (2, 2), ()])
def test_wrong_sizes(model, name, shape):
    refuses_and_keeps(coulomb.Simulator(model), {name: np.zeros(shape)}, name)


@pytest.mark.parametrize(
    "quaternion", [(0, 0, 0, 0), (2, 0, 0, 0), (1, 0.1, 0, 0), (1e-200, 0, 0, 0), (1e200, 0, 0, 0)]
)
def test_quaternions_that_are_not_unit(model, quaternion):
    q, _ = model.neutral()
    q[3:7] = quaternion
    refuses_and_keeps(coulomb.Simulator(model), {"q": q}, "q")
    with pytest.raises(ValueError):
        model.integrate(q, np.zeros(model.nv))


@pytest.mark.parametrize("value", ["text", None, [[1], [1, 2]], 1j])
def test_things_that_are_not_numbers(model, value):
    with pytest.raises((ValueError, TypeError)):
        coulomb.Simulator(model).step(value, np.zeros(model.nv))


@pytest.mark.parametrize(
    ("option", "value"),
    [("timestep", x) for x in (0, -1, 1e3, *BAD)]
    + [("baumgarte", x) for x in (-0.1, 1.1, *BAD)]
    + [("tolerance", x) for x in (-1, 0, *BAD)]
    + [(name, x) for name in ("slop", "max_correction_speed", "restitution_threshold") for x in (-1, np.nan)]
    + [("max_iterations", -1), ("solver", "magic"), ("contact", "magic"), ("stepper", "magic")],
)
def test_options_of_the_simulator(model, option, value):
    with pytest.raises(ValueError, match=option):
        coulomb.Simulator(model, **{option: value})


def test_a_tiny_time_step_is_refused_or_works(model):
    try:
        sim = coulomb.Simulator(model, timestep=1e-12)
    except ValueError as error:
        assert "timestep" in str(error)
        return
    q1, v1 = sim.step(*model.neutral())
    assert np.isfinite(q1).all() and np.isfinite(v1).all()


def test_a_body_without_inertia():
    scene = coulomb.Scene()
    scene.add_sphere(0.1, mass=1.0, inertia=(0, 0, 0, 0, 0, 0), name="ball")
    with pytest.raises(ValueError, match="ball.*inertia"):
        scene.build()


SHAPES = {
    "add_box": ("size", (0.1, 0.1, 0.1)),
    "add_sphere": ("radius", 0.1),
    "add_ellipsoid": ("semi_axes", (0.1, 0.1, 0.1)),
}


def same_model(a, b):
    return a.nq == b.nq and a.body_names == b.body_names and np.array_equal(a.body_mass, b.body_mass)


@pytest.mark.parametrize(
    ("option", "value"),
    [("mass", x) for x in (0, -1, *BAD)]
    + [("density", x) for x in (0, -1, *BAD)]
    + [("friction", x) for x in (-0.1, *BAD)]
    + [("restitution", x) for x in (-0.1, 1.1, *BAD)]
    + [("compliance", x) for x in (-1, *BAD)]
    + [("position", (0, x, 0)) for x in BAD]
    + [("position", (0, 0)), ("quaternion", (0, 0, 0, 0)), ("quaternion", (2, 0, 0, 0)), ("quaternion", (1, 0, 0))]
    + [("inertia", x) for x in ((1, 0, 1, 0, 0, 3), (-1, 0, 1, 0, 0, 1), (1, 5, 1, 0, 0, 1), (1,) * 5)]
    + [("inertia", (1, 0, 1, 0, 0, np.nan)), ("name", "taken")],
)
@pytest.mark.parametrize("verb", SHAPES)
def test_options_of_shapes(verb, option, value):
    scene = coulomb.Scene()
    scene.add_sphere(0.1, name="taken")
    before = scene.build()
    with pytest.raises((ValueError, TypeError), match=option if option != "name" else "taken"):
        getattr(scene, verb)(SHAPES[verb][1], **{option: value})
    assert same_model(scene.build(), before)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [("add_box", [(0, 0.1, 0.1)]), ("add_box", [(-1, 0.1, 0.1)]), ("add_box", [(np.nan, 0.1, 0.1)]), ("add_box", [(0.1, 0.1)]),
     ("add_sphere", [0.0]), ("add_sphere", [-1.0]), ("add_sphere", [np.inf]), ("add_capsule", [0.0, 1.0]),
     ("add_capsule", [0.1, -1.0]), ("add_cylinder", [0.1, 0.0]), ("add_cylinder", [np.nan, 1.0]),
     ("add_ellipsoid", [(0.1, 0.0, 0.1)]), ("add_mesh", [[(0, 0, 0)]]), ("add_mesh", [np.zeros((0, 3))]),
     ("add_mesh", [[(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]]), ("add_mesh", [[(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, np.nan)]]),
     ("add_mesh", [np.ones((8, 3))])],
)  # fmt: skip
def test_sizes_of_shapes(verb, arguments):
    scene = coulomb.Scene()
    before = scene.build()
    with pytest.raises(ValueError):
        getattr(scene, verb)(*arguments)
    assert same_model(scene.build(), before)


@pytest.mark.parametrize(
    "options",
    [{"friction": -1}, {"friction": np.nan}, {"restitution": 2}, {"restitution": -0.1}, {"normal": (0, 0, 0)},
     {"normal": (0, np.nan, 1)}, {"height": np.inf}, {"compliance": -1}],
)  # fmt: skip
def test_options_of_the_ground(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        coulomb.Scene().add_ground(**options)


@pytest.mark.parametrize(
    "options",
    [{"gravity": (0, 0, np.nan)}, {"gravity": (0, 0)}, {"timestep": -1}, {"timestep": np.nan}, {"contact_margin": -1}],
)
def test_options_of_a_scene(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        coulomb.Scene(**options).build()


BODY = "<body><joint/><geom size='.1'/></body>"
MJCF = {
    "not XML": "<mujoco",
    "another root": "<html/>",
    "cut off": "<mujoco><worldbody><body>",
    "no mass": "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
    "duplicate names": f"<mujoco><worldbody>{BODY.replace('<body', '<body name=`a`').replace('`', chr(34)) * 2}</worldbody></mujoco>",
    "huge number": f"<mujoco><worldbody>{BODY.replace('.1', '1e400')}</worldbody></mujoco>",
    "NaN": f"<mujoco><worldbody>{BODY.replace('.1', 'nan')}</worldbody></mujoco>",
    "missing mesh": "<mujoco><asset><mesh name='m' file='no_such.stl'/></asset></mujoco>",
    "tendon": "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody>"
    "<tendon><fixed limited='true' range='0 1' stiffness='1 2 3'><joint joint='j' coef='1'/></fixed></tendon></mujoco>",
}


@pytest.mark.parametrize("text", MJCF.values(), ids=MJCF.keys())
def test_mjcf_that_cannot_be_read(text):
    pytest.importorskip("mujoco")
    scene = coulomb.Scene()
    scene.add_sphere(0.1)
    before = scene.build()
    with pytest.raises(ValueError):
        scene.add_mjcf(text)
    assert same_model(scene.build(), before)


LINK = "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
URDF = {
    "not XML": "<robot",
    "no link": "<robot name='r'/>",
    "cycle": f"<robot name='r'><link name='a'>{LINK}</link><link name='b'>{LINK}</link>"
    + "".join(
        f"<joint name='{p}{c}' type='fixed'><parent link='{p}'/><child link='{c}'/></joint>" for p, c in ("ab", "ba")
    )
    + "</robot>",
    "unknown parent": f"<robot name='r'><link name='a'>{LINK}</link><joint name='j' type='fixed'><parent link='x'/>"
    "<child link='a'/></joint></robot>",
    "missing mesh": f"<robot name='r'><link name='a'>{LINK}<collision><geometry><mesh filename='no_such.stl'/></geometry></collision>"
    "</link></robot>",
    "no mass": "<robot name='r'><link name='a'/><link name='b'/><joint name='j' type='continuous'><parent link='a'/><child link='b'/>"
    "<axis xyz='0 0 1'/></joint></robot>",
    "negative mass": f"<robot name='r'><link name='a'>{LINK.replace('1', '-1', 1)}</link></robot>",
}


@pytest.mark.parametrize("text", URDF.values(), ids=URDF.keys())
def test_urdf_that_cannot_be_read(text):
    scene = coulomb.Scene()
    scene.add_sphere(0.1)
    scene.build()
    with pytest.raises(ValueError):
        scene.add_urdf(text, floating_base=True)
        scene.build()


@pytest.mark.parametrize("path", ["no_such.urdf", "no_such.xml", "", "/"])
def test_files_that_are_not_there(path):
    with pytest.raises((FileNotFoundError, ValueError)):
        coulomb.load(path)


@pytest.mark.parametrize(
    "call", [lambda s: s.derivatives(), lambda s: s.vjp(np.zeros(6), np.zeros(6)), lambda s: s.jvp()]
)
def test_derivatives_before_the_first_step(call):
    scene = coulomb.Scene()
    scene.add_sphere(0.1)
    with pytest.raises(RuntimeError, match="step"):
        call(coulomb.Simulator(scene.build()))


class Thing:
    """No array, and always of the same words: they are in the ids of tests."""

    def __repr__(self):
        return "thing"


ARRAYS = [np.nan, None, "text", b"text", 1j, [], {}, (1, 2), Thing(), [[1], [1, 2]], np.zeros(100), np.zeros((7, 1))]


@pytest.mark.parametrize(
    "value", [*ARRAYS, np.full(7, np.nan), np.full(7, np.inf), np.zeros(7, dtype=object)], ids=repr
)
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("dq", lambda s, x: s.model.integrate(s.model.neutral()[0], x)),
        ("q", lambda s, x: s.model.integrate(x, np.zeros(7))),
        ("q1", lambda s, x: s.model.difference(s.model.neutral()[0], x)),
        ("q", lambda s, x: s.model.to_pinocchio(x, np.zeros(7))),
        ("dq1", lambda s, x: s.vjp(x, np.zeros(7))),
        ("dv1", lambda s, x: s.vjp(np.zeros(7), x)),
        ("v", lambda s, x: s.step(s.model.neutral()[0], x)),
        ("v", lambda s, x: coulomb.check_gradients(s, s.model.neutral()[0], x)),
    ],
)
def test_every_array_argument(model, name, call, value):
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    sim.step(q, v)
    A = sim.derivatives().A.copy()
    with pytest.raises((ValueError, TypeError), match=name):
        call(sim, value)
    assert np.array_equal(sim.derivatives().A, A)


@pytest.mark.parametrize("value", [*ARRAYS, np.full(7, np.nan)], ids=str)
@pytest.mark.parametrize("name", ["q0", "v0", "U"])
def test_arguments_of_a_rollout(model, name, value):
    q, v = model.neutral()
    if name == "U" and (value is None or getattr(value, "shape", None) == (7, 1)):
        pytest.skip("seven steps of control, or none")
    arguments = {"q0": q, "v0": v, name: value}
    with pytest.raises((ValueError, TypeError), match=rf"{name}|{name[0]}\["):
        coulomb.Simulator(model).rollout(**arguments, steps=None if name == "U" else 2)


def test_a_step_of_a_configuration_that_overflows(model):
    dq = np.zeros(7)
    dq[3] = 1e308
    with pytest.raises(ValueError, match="dq"):
        model.integrate(model.neutral()[0], dq)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wrt": ["w"]}, "wrt"),
        ({"wrt": []}, "wrt"),
        ({"step": 0}, "step"),
        ({"step": np.nan}, "step"),
        ({"tolerance": -1}, "tolerance"),
        ({"u": np.zeros(3)}, "u"),
        ({"tau": np.full(7, np.nan)}, "tau"),
    ],
)
def test_options_of_check_gradients(model, options, words):
    with pytest.raises(ValueError, match=words):
        coulomb.check_gradients(coulomb.Simulator(model), *model.neutral(), **options)


@pytest.mark.parametrize("value", [None, 1, "memory", {}])
def test_a_memory_that_is_none(model, value):
    with pytest.raises(TypeError):
        coulomb.Simulator(model).memory = value


@pytest.mark.parametrize("value", [None, 1, "model", coulomb.Scene()])
def test_a_model_that_is_none(value):
    with pytest.raises(TypeError):
        coulomb.Simulator(value)


def test_meshes_that_are_not_there(model):
    for mesh in (-1, 0, 2**31 - 1):
        with pytest.raises(IndexError, match="mesh"):
            model.mesh_vertices(mesh)

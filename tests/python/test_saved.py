"""Models, memories, simulators and batches through pickle, copy and files: the same bits afterwards, and named refusals of bytes that are old,
damaged or of something else."""

import copy
import multiprocessing
import pathlib
import pickle
import struct

import numpy as np
import pytest

import coulomb
from scenes import contacts

SCENES = [contacts.stack, contacts.arm_pushes_box, contacts.bounce, contacts.meshes, contacts.equalities]
OPTIONS = [
    {},
    {"contact": "lcp", "friction_directions": 4},
    {"contact": "penalty"},
    {"stepper": "bdf1"},
    {"stepper": "bdf2"},
    {"continuous_collision": True},
    {"gradient": "smoothed_step", "gradient_samples": 3},
    {"solver": "pgs", "tolerance": 1e-8, "timestep": 2e-3},
    {"patches": False, "warm_start": False, "baumgarte": 0.3},
]


def again(thing):
    return pickle.loads(pickle.dumps(thing))


def built(build):
    return build(np.random.default_rng(0))


def plain(value):
    """An array or number as a list; an object of the model, as a muscle, by its members."""
    if type(value).__module__.startswith("coulomb"):
        return {k: plain(getattr(value, k)) for k in dir(value) if not k.startswith("_")}
    return np.asarray(value).tolist()


def members(model):
    """Everything public of a model, as plain data."""
    out = {}
    for name in dir(model):
        value = getattr(model, name)
        if name.startswith("_") or callable(value):
            continue
        if name in ("actuators", "equalities", "keyframes", "sites", "visuals"):
            value = [plain(x) for x in value]
        out[name] = value.tolist() if isinstance(value, np.ndarray) else value
    return out


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b))


def go_on(sim, q, v, steps=10):
    out = []
    for _ in range(steps):
        q, v = sim.step(q, v)
        d = sim.derivatives()
        out += [q, v, d.A, d.B, [sim.status.residual], *(c.impulse for c in sim.contacts)]
    return out


@pytest.mark.parametrize("build", SCENES, ids=lambda f: f.__name__)
def test_a_model_is_the_same(build):
    model, q, v = built(build)
    other = again(model)
    assert other is not model and members(other) == members(model)
    assert pickle.dumps(other) == pickle.dumps(model)
    mine, theirs = model.parameters(), other.parameters()
    assert list(mine) == list(theirs) and all(np.array_equal(mine[k].value, theirs[k].value) for k in mine)
    assert same(go_on(coulomb.Simulator(model), q, v), go_on(coulomb.Simulator(other), q, v))
    name = next(name for name in mine if name.startswith("mass/"))
    changed = {name: 1.1 * mine[name].value}
    assert members(other.with_parameters(changed)) == members(model.with_parameters(changed))
    coulomb.Simulator(other).memory = coulomb.Simulator(model).memory  # of one structure


def full_scene():
    """One of everything that a scene can hold."""
    scene = coulomb.Scene(timestep=2e-3, contact_margin=1e-5)
    scene.add_ground(friction=0.5, contact_stiffness=1e5)
    scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.15), contact_points=[[0.1, 0.1, -0.1]])
    scene.add_mesh(np.random.default_rng(0).normal(size=(9, 3)), mass=1.0, position=(3, 0, 4))
    scene.add_mjcf(
        "<mujoco model='arm'><option gravity='0 0 -5'/><worldbody><body pos='-2 0 1'><joint name='a'/><geom size='.1' mass='1'/>"
        "<site name='tip'/><body pos='.5 0 0'><joint name='b' damping='.1'/><geom size='.1' pos='.2 0 0'/></body></body></worldbody>"
        "<equality><joint joint1='a' joint2='b'/></equality><actuator><motor joint='a'/></actuator>"
        "<sensor><gyro site='tip'/></sensor><keyframe><key name='up' qpos='.1 .2'/></keyframe></mujoco>"
    )
    return scene


def test_a_scene_builds_the_same_model_and_goes_on():
    scene = full_scene()
    others = [again(scene), copy.copy(scene), copy.deepcopy(scene), again(again(scene))]
    assert all(pickle.dumps(other) == pickle.dumps(scene) and repr(other) == repr(scene) for other in others)
    assert all(pickle.dumps(other.build()) == pickle.dumps(scene.build()) for other in others)

    # The names that are taken are known: the same names for what is added next, and the same refusals.
    for one in (scene, *others):
        assert one.add_box((1, 1, 1), position=(9, 0, 9)).name == "box_2"
        assert one.add_box((1, 1, 1), position=(9, 9, 9)).name == "box_3"
        with pytest.raises(ValueError, match="name"):
            one.add_sphere(1.0, name="box_2")
        one.add_actuator("b", kind="position", kp=3.0)
    assert all(pickle.dumps(other.build()) == pickle.dumps(scene.build()) for other in others)

    # Copies are independent.
    others[0].add_sphere(0.1)
    assert others[0].build().num_bodies == 1 + others[1].build().num_bodies


class MyScene(coulomb.Scene):
    """A user's scene, with something of its own."""


def test_a_scene_of_ones_own():
    scene = MyScene()
    scene.note = "hello"
    other = again(scene)
    assert type(other) is MyScene and other.note == "hello"


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_simulator_goes_on_with_the_same_bits(options):
    model, q, v = built(contacts.arm_pushes_box)
    sim = coulomb.Simulator(model, **options)
    for _ in range(7):
        q, v = sim.step(q, v)
    copies = [again(sim), copy.copy(sim), copy.deepcopy(sim), again(again(sim))]
    assert all(other.options == sim.options and other.model.nv == sim.model.nv for other in copies)
    expected = go_on(sim, q, v)
    for other in copies:
        with pytest.raises(RuntimeError, match="no step was taken yet"):  # what the last step found stays behind
            other.derivatives()
        assert same(go_on(other, q, v), expected)
    cold = go_on(coulomb.Simulator(model, **options), q, v)
    if options.get("stepper") == "bdf2":
        assert not same(cold, expected)  # the memory mattered


def test_copies_are_independent():
    model, q, v = built(contacts.stack)
    sim = coulomb.Simulator(model)
    q, v = sim.step(q, v)
    other = copy.copy(sim)
    expected = go_on(again(sim), q, v)
    go_on(other, *model.neutral())
    assert other.model is sim.model and same(go_on(sim, q, v), expected)


def test_a_frozen_memory_stays_frozen():
    model, q, v = built(contacts.stack)
    sim = coulomb.Simulator(model, stepper="bdf2", contact="penalty")
    q, v = sim.step(q, v)
    sim.freeze_memory(True)
    other = again(sim)
    assert same(go_on(other, q, v, 3), go_on(sim, q, v, 3))


def test_a_memory_goes_to_disk(tmp_path):
    model, q, v = built(contacts.arm_pushes_box)
    sim = coulomb.Simulator(model, stepper="bdf2")
    for _ in range(5):
        q, v = sim.step(q, v)
    (tmp_path / "memory").write_bytes(pickle.dumps(sim.memory))
    expected = go_on(sim, q, v)
    other = coulomb.Simulator(model, stepper="bdf2")
    other.memory = pickle.loads((tmp_path / "memory").read_bytes())
    assert same(go_on(other, q, v), expected)
    another = coulomb.Simulator(built(contacts.stack)[0])
    with pytest.raises(ValueError, match="memory: belongs to a model of another structure"):
        another.memory = again(sim.memory)


@pytest.mark.parametrize("of_their_own", [False, True])
def test_a_batch_goes_on_with_the_same_bits(of_their_own):
    model, q, v = built(contacts.meshes)
    n = 5
    batch = coulomb.BatchSimulator(model, n, 2, tolerance=1e-9)
    if of_their_own:
        name = next(name for name in model.parameters() if name.startswith("mass/"))
        batch.set_parameters({name: np.linspace(1, 2, n)[:, None]}, np.arange(n) % 2 == 0)
    Q, V = np.tile(q, (n, 1)), np.tile(v, (n, 1)) + 0.1 * np.random.default_rng(1).normal(size=(n, model.nv))
    for _ in range(5):
        Q, V = batch.step(Q, V)
    copies = [again(batch), copy.copy(batch), copy.deepcopy(batch)]
    memory = again(batch.memory)

    def run(b, steps=6):
        x, w = Q, V
        for _ in range(steps):
            x, w = b.step(x, w)
        return x, w, b.derivatives().A

    expected = run(batch)
    for other in copies:
        assert other.num_envs == n and other.num_threads == 2
        with pytest.raises(RuntimeError, match="no step was taken yet"):
            other.derivatives()
        assert same(run(other), expected)
    batch.memory = memory
    assert same(run(batch), expected)
    shared = again(batch)
    assert (shared.environment_model(0) is shared.environment_model(2)) != of_their_own


def test_a_model_shares_its_meshes_with_what_is_made_of_it():
    model, _, _ = built(contacts.meshes)
    batch = coulomb.BatchSimulator(model, 50, parameters={"gravity": np.random.default_rng(0).normal(size=(50, 3))})
    meshes = sum(model.mesh_vertices(i).nbytes for i in range(1 + model.geometry_mesh.max()))
    one, many = len(pickle.dumps(model)), len(pickle.dumps(batch))
    assert meshes > 0 and many < 50 * (one - meshes)


class Mine(coulomb.Simulator):
    """A user's simulator, with something of its own."""

    def __init__(self, model, note):
        super().__init__(model)
        self.note = note


def test_a_class_of_ones_own():
    other = again(Mine(built(contacts.stack)[0], "hello"))
    assert type(other) is Mine and other.note == "hello"


def test_a_simulator_at_work_is_not_saved():
    model, q, v = built(contacts.stack)
    sim, found = coulomb.Simulator(model), []

    def progress(done, total):
        with pytest.raises(RuntimeError, match="another call is running"):
            pickle.dumps(sim)
        found.append(done)

    sim.rollout(q, v, steps=3, progress=progress)
    assert found


def test_files(tmp_path):
    model, q, v = built(contacts.meshes)
    path = tmp_path / "robot.coulomb"
    model.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["robot.coulomb"]
    other = coulomb.load(path)
    assert members(other) == members(model)
    assert members(coulomb.load(str(path))) == members(model)
    assert same(go_on(coulomb.Simulator(model), q, v), go_on(coulomb.Simulator(other), q, v))
    for options in ({"ground": True}, {"floating_base": True}, {"friction": 0.3}, {"gravity": (0, 0, 0)}):
        with pytest.raises(
            ValueError, match="was written by Model.save: it is loaded as it was built and takes no options"
        ):
            coulomb.load(path, **options)
    with pytest.raises(OSError, match="no_such_folder"):
        model.save(tmp_path / "no_such_folder" / "x")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="robot.coulomb.*model: cut off"):
        coulomb.load(path)


# --- bytes that are refused -------------------------------------------------------------------------------------------


def archive(thing):
    """The archive inside of a pickle."""
    return thing.__reduce__()[1][0]


def test_bytes_of_other_formats_are_refused_by_name():
    from coulomb import _core

    good = archive(built(contacts.stack)[0])
    place = len(b"coulomb archive\x1a\n")
    assert struct.unpack_from("=II", good, place) == (0x01020304, _core._archive_format)
    for format in (0, _core._archive_format + 1, 2**32 - 1):
        old = bytearray(good)
        struct.pack_into("=I", old, place + 4, format)
        with pytest.raises(ValueError, match=rf"model: written by Coulomb [\d.]+ in format {format}; this is Coulomb"):
            _core._load_models(bytes(old))
    turned = bytearray(good)
    turned[place : place + 4] = turned[place : place + 4][::-1]
    with pytest.raises(ValueError, match="model: written on a machine of another byte order"):
        _core._load_models(bytes(turned))


def test_a_model_of_format_3_is_read():
    """Written before geometries had a dashpot; otherwise as it would be built today."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.5, contact_stiffness=1e5, contact_damping=3e4)
    scene.add_sphere(0.1, mass=2.0, position=(0, 0, 0.1), contact_scale=0.5, name="ball")
    old = coulomb.load(str(pathlib.Path(__file__).parents[1] / "data" / "format_3.coulomb"))
    assert pickle.dumps(old) == pickle.dumps(scene.build())


def test_a_dashpot_is_saved(tmp_path):
    scene = coulomb.Scene()
    scene.add_ground(contact_stiffness=1e5, contact_dashpot=7.0)
    scene.add_sphere(0.1, position=(0, 0, 0.099), name="ball")
    model = scene.build()
    model.save(tmp_path / "soft.coulomb")
    q, v = model.neutral()
    for other in (again(model), again(scene).build(), coulomb.load(tmp_path / "soft.coulomb")):
        assert other.parameters()["contact_dashpot/ground"].value == [7.0]
        assert same(go_on(coulomb.Simulator(model), q, v), go_on(coulomb.Simulator(other), q, v))


def test_bytes_of_something_else_are_refused_by_name():
    from coulomb import _core

    model = built(contacts.stack)[0]
    memory = coulomb.Simulator(model).memory
    with pytest.raises(ValueError, match="model: these bytes hold a memory"):
        _core._load_models(archive(memory))
    with pytest.raises(ValueError, match="memory: these bytes hold a model"):
        _core._load_memories(archive(model))
    with pytest.raises(ValueError, match="scene: these bytes hold a model"):
        _core._load_scene(coulomb.Scene(), archive(model))
    for other in (b"", b"coulomb", b"<mujoco/>", b"\0" * 1000):
        with pytest.raises(ValueError, match="model: these bytes were not written by Coulomb"):
            _core._load_models(other)
        with pytest.raises(ValueError, match="scene: these bytes were not written by Coulomb"):
            _core._load_scene(coulomb.Scene(), other)


def test_scenes_of_other_formats_and_damaged_ones_are_refused_by_name():
    from coulomb import _core

    scene = full_scene()
    (_, good), place = scene.__reduce__()[1], len(b"coulomb archive\x1a\n")
    before = pickle.dumps(scene)
    old = bytearray(good)
    struct.pack_into("=I", old, place + 4, 99)
    with pytest.raises(ValueError, match=r"scene: written by Coulomb [\d.]+ in format 99; this is Coulomb"):
        _core._load_scene(scene, bytes(old))
    with pytest.raises(ValueError, match="scene: cut off"):
        _core._load_scene(scene, good[:-1])
    with pytest.raises(ValueError, match="scene: damaged"):
        _core._load_scene(scene, good[:-1] + bytes([good[-1] ^ 1]))
    assert pickle.dumps(scene) == before


def test_damaged_bytes_are_refused():
    from coulomb import _core

    good = archive(built(contacts.meshes)[0])
    random = np.random.default_rng(0)
    head = len(b"coulomb archive\x1a\n")
    for size in [*range(head, head + 80), *random.integers(head, len(good), 50)]:
        with pytest.raises(ValueError, match="cut off"):
            _core._load_models(good[:size])
    with pytest.raises(ValueError, match="cut off"):
        _core._load_models(good + b"x")
    for place in random.integers(head + 4, len(good), 300):
        bad = bytearray(good)
        bad[place] ^= 1 << random.integers(8)
        with pytest.raises(ValueError, match="damaged|cut off|in format|these bytes hold"):
            _core._load_models(bytes(bad))


@pytest.mark.parametrize("kind", ["Simulator", "BatchSimulator"])
def test_pickles_of_other_formats_are_refused_by_name(kind):
    model = built(contacts.stack)[0]
    thing = coulomb.Simulator(model) if kind == "Simulator" else coulomb.BatchSimulator(model, 2)
    make, (cls, state), _ = thing.__reduce__()
    with pytest.raises(ValueError, match=f"{kind}: written by Coulomb 9.8.7 in format 99; this is Coulomb"):
        make(cls, {**state, "format": 99, "version": "9.8.7"})


# --- processes --------------------------------------------------------------------------------------------------------


def work(sim, q, v):
    return sim.rollout(q, v, steps=20).q[-1], go_on(sim, q, v, 3)[-2]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_simulators_go_to_other_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    model, q, v = built(contacts.arm_pushes_box)
    sim = coulomb.Simulator(model, tolerance=1e-9)
    with multiprocessing.get_context(method).Pool(1) as pool:
        found = pool.starmap(work, [(sim, q, v), (sim, q, v + 0.1)])
    assert same(found[0], work(sim, q, v)) and same(found[1], work(sim, q, v + 0.1))

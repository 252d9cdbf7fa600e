"""Types and reprs: what an editor completes and mypy checks, and what print shows."""

import subprocess
import sys

import numpy as np
import pytest

import coulomb

GOOD = """
import numpy as np
import coulomb

model = coulomb.load("robot.urdf", ground=True, package_dirs=["meshes"])
reveal_type(model)
sim = coulomb.Simulator(model, timestep=1e-3)
q, v = model.neutral()
q1, v1 = sim.step([0.0, 1.0], v, u=(1.0, 2.0))  # lists and tuples are numbers, too
d = sim.derivatives(wrt=["mass/box"])
g = sim.vjp(v, v, wrt=["mass/box"])
r = sim.rollout(q, v, steps=10)
l = r.linearize()
batch = coulomb.BatchSimulator(model, 4)
Q, V = batch.step(np.stack([q] * 4), np.stack([v] * 4))
D, G, R = batch.derivatives(), batch.vjp(V, V), batch.rollout(Q, V, steps=3)
arrays: list[np.ndarray] = [
    q1, v1, d.A, d["mass/box"], g.q, r.q, l.A, D.A, D.valid, G.q, G.valid, R.q, R.converged, R.vjp().q0, R.output("x"),
    batch.status.converged, batch.output("position/box"), model.gravity, model.body_mass, sim.contacts[0].point,
]
D.A[0], R.q[..., -1]
scene = coulomb.Scene(gravity=(0, 0, -9.81))
element = scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=[0, 0, 1])
name: str = element.name + scene.add_mjcf("<mujoco/>").name
passed: bool = coulomb.check_gradients(sim, q, v, wrt=["q", "mass/box"]).passed
"""
BAD = {
    "a model is no number": ("n: int = coulomb.load('robot.urdf')", "Incompatible types in assignment"),
    "a misspelt option": ("coulomb.load('robot.urdf').neutral(1)", "Too many arguments"),
    "a misspelt method": ("coulomb.load('robot.urdf').nutral()", 'has no attribute "nutral"'),
    "steps is an integer": ("sim.rollout(q, v, steps=2.5)", 'Argument "steps"'),
    "wrt is a list": ("batch.derivatives(wrt=1)", "Argument"),
    "arrays of batches are arrays": ("batch.derivatives().A.nothing", 'has no attribute "nothing"'),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """What mypy says of GOOD with the lines of BAD behind it."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("types")
    (folder / "use.py").write_text(GOOD + "\n".join(line for line, _ in BAD.values()) + "\n")
    command = [sys.executable, "-m", "mypy", "--python-executable", sys.executable, "--no-error-summary", "use.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith("use.py")]


def test_good_code_has_no_errors(checked):
    good = GOOD.count("\n")
    wrong = [line for line in checked if int(line.split(":")[1]) <= good and ": error:" in line]
    assert not wrong, "\n".join(wrong)
    assert any('Revealed type is "coulomb._core.Model"' in line for line in checked)


@pytest.mark.parametrize("what", BAD)
def test_bad_code_is_seen(checked, what):
    line = GOOD.count("\n") + 1 + list(BAD).index(what)
    told = [text for text in checked if text.startswith(f"use.py:{line}:") and ": error:" in text]
    assert told and BAD[what][1] in told[0], checked


def test_everything_says_what_it_is():
    scene = coulomb.Scene()
    scene.add_ground(friction=0.5)
    element = scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), name="box")
    model = scene.build()
    sim, batch = coulomb.Simulator(model), coulomb.BatchSimulator(model, 2, 1)
    q, v = model.neutral()
    Q, V = np.stack([q, q]), np.stack([v, v])
    sim.step(q, v)
    batch.step(Q, V)
    r, R = sim.rollout(q, v, steps=3), coulomb.BatchSimulator(model, 2, 1).rollout(Q, V, steps=3)
    problem, lcp = coulomb.ContactProblem(np.eye(3), np.zeros(3), [1.0]), coulomb.solve_lcp(np.eye(1), [1.0])
    told = {
        model: "<Model: 1 body and the world, nq 7, nv 6, nu 0, 2 geometries>",
        sim: "<Simulator: contact ncp, stepper semi_implicit, timestep 0.001 s, of <Model: 1 body",
        sim.memory: "<StepMemory: 4 impulses>",
        sim.status: "<StepStatus converged",
        sim.derivatives(["mass/box"]): "<StepDerivatives: nv 6, nu 0, by mass/box>",
        sim.derivatives(sparse=True): "<SparseStepDerivatives: nv 6, nu 0, 1 island>",
        sim.vjp(v, v, ["mass/box"]): "<StepCotangent: nv 6, nu 0, by mass/box>",
        r: "<Rollout: 3 steps, converged, of <Model",
        r.vjp(wrt=["gravity", "mass/box"]): "<RolloutCotangent: 3 steps, nv 6, nu 0, by gravity, mass/box>",
        r.linearize(): "<RolloutLinearization: A (3, 12, 12)>",
        batch: "<BatchSimulator: 2 environments on 1 thread, of <Model",
        batch.memory: "<BatchMemory: 2 environments>",
        batch.status: "<BatchStatus 2 of 2 converged>",
        batch.derivatives(["mass/box"]): "<BatchDerivatives: A (2, 12, 12), by mass/box>",
        batch.vjp(V, V): "<BatchCotangent: q, v (2, 6)>",
        R: "<BatchRollout: 3 steps of 2 environments, 2 of them converged>",
        R.vjp(): "<BatchRolloutCotangent: q0, v0 (2, 6)>",
        problem: "<ContactProblem: 1 contact>",
        problem.solve(): "<ContactSolution: 1 contact, solved",
        problem.derivatives(): "<ContactDerivatives: 1 contact",
        lcp: "<LcpResult: 1 row, solved>",
        lcp.derivatives(): "<LcpDerivatives: 1 row>",
        element: "<SceneElement box: 1 body, 1 joint, 1 geometry>",
        scene: "<Scene: 1 body and the world, 1 joint, 0 actuators, 2 geometries: box>",
    }
    for thing, words in told.items():
        assert repr(thing).startswith(words), repr(thing)
    assert repr(coulomb.check_gradients(sim, q, v, wrt=["v"])).startswith("<GradientCheck: ")
    (contact, *_) = [c for c in sim.contacts]
    assert f"impulse on {contact.geometry_a} (" in repr(contact)
    names = [getattr(coulomb, name) for name in coulomb.__all__ if isinstance(getattr(coulomb, name), type)]
    assert not {c.__name__ for c in names if c.__repr__ is object.__repr__}


def test_a_rollout_tells_where_it_went_wrong():
    scene = coulomb.Scene()
    for side, name in ((-1, "left"), (1, "right")):
        scene.add_box((1, 1, 1), fixed=True, position=(side * 0.59, 0, 0), name=name)
    scene.add_sphere(0.1, mass=1.0, name="ball")
    sim = coulomb.Simulator(scene.build())
    assert "2 not converged, the first is step 0" in repr(sim.rollout(*sim.model.neutral(), steps=2))

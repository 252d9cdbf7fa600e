"""Wrong calls, hundreds of them (tests/data/wrong_calls.txt): each is a named error that says which argument and what to do, and changes nothing."""

import pathlib
import re

import numpy as np
import pytest

import coulomb

mujoco = pytest.importorskip("mujoco")
TABLE = pathlib.Path(__file__).parents[1] / "data" / "wrong_calls.txt"
LONGEST = 700  # characters of a message
ARM = (
    "<mujoco><worldbody><body name='arm' pos='1 0 1'><joint name='j'/><geom size='.1'/></body></worldbody>"
    "<actuator><motor joint='j'/></actuator></mujoco>"
)


def calls():
    """(the call, the error's type, the beginning of its message)."""
    lines = [line.rstrip() for line in TABLE.read_text().splitlines() if line.strip() and not line.startswith("#")]
    for call, told in zip(lines[::2], lines[1::2]):
        assert not call.startswith(" ") and told.startswith("    "), call
        kind, message = told.strip().split(": ", 1)
        yield call, kind, message


def with_value(value):
    def changed(x, place=0):
        out = np.array(x, dtype=float)
        out.flat[place] = value
        return out

    return changed


class World:
    """What the calls are made on, and whether it is as it was."""

    def __init__(self):
        scene = coulomb.Scene()
        scene.add_ground(friction=0.5)
        scene.add_box((0.2, 0.2, 0.2), mass=1.0, position=(0, 0, 0.0999), name="box")
        scene.add_mjcf(ARM)
        model = scene.build()
        other = coulomb.Scene()
        other.add_sphere(0.1)
        q, v = model.neutral()
        Q, V = np.stack([q, q]), np.stack([v, v])
        sim, batch = coulomb.Simulator(model), coulomb.BatchSimulator(model, 2, 1)
        sim.step(q, v)
        old = sim.derivatives()
        sim.step(q, v)
        batch.step(Q, V)

        def rolled(derivatives):
            return coulomb.BatchSimulator(model, 2, 1).rollout(Q, V, steps=2, derivatives=derivatives)

        self.names = dict(
            coulomb=coulomb, np=np, pathlib=pathlib, nan=with_value(np.nan), inf=with_value(np.inf),
            scene=scene, model=model, sim=sim, q=q, v=v, u=np.zeros(1), old=old, d=sim.derivatives(),
            other=coulomb.Simulator(other.build()), fresh=coulomb.Simulator(model),
            r=coulomb.Simulator(model).rollout(q, v, np.zeros((3, 1))),
            R=rolled(True), states=rolled(False),
            batch=batch, idle=coulomb.BatchSimulator(model, 2, 1), Q=Q, V=V,
            mjmodel=mujoco.MjModel.from_xml_string("<mujoco/>"),
        )  # fmt: skip
        self.before = self.seen()

    def seen(self):
        """The state of everything that has one."""
        names = self.names
        sim, d, batch, built = names["sim"], names["d"], names["batch"], names["scene"].build()
        return [
            np.concatenate([c.impulse for c in sim.contacts]),
            d.output("position/box", "q"),  # refuses once the simulator has stepped
            sim.vjp(names["v"] + 1, names["v"]).q,
            batch.output("velocity/box"),
            batch.derivatives().A,
            np.array([built.nq, built.num_geometries, built.num_pairs]),
            built.body_mass,
            names["r"].q,
            names["q"],
        ]


@pytest.fixture(scope="module")
def world():
    return World()


def test_there_are_enough():
    assert len(list(calls())) >= 350
    assert len({call for call, _, _ in calls()}) == len(list(calls()))


@pytest.mark.parametrize(("call", "kind", "message"), list(calls()), ids=[call for call, _, _ in calls()])
def test_a_wrong_call_is_told_what_is_wrong(world, call, kind, message):
    names = dict(world.names)
    if "torch" in call:
        names["torch"] = pytest.importorskip("torch")
        import coulomb.torch  # noqa: F401

        names["tq"], names["tv"] = (names["torch"].tensor(names[x]) for x in "qv")
    with pytest.raises(Exception) as raised:  # noqa: B017 - the table has the type
        exec(call, names)
    told = str(raised.value)
    assert type(raised.value).__name__ == kind
    assert (told.strip("'") if kind == "KeyError" else told).startswith(message), told
    assert len(told) < LONGEST and "Traceback" not in told and "incompatible function arguments" not in told
    assert not re.search(r"<class '|object at 0x|std::|nanobind", told), told
    assert all(np.array_equal(a, b) for a, b in zip(world.seen(), world.before))

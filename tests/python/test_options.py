"""Options of Simulator: those without influence are refused by name, and sim.options makes such a simulator again."""

import os
import subprocess
import sys

import numpy as np
import pytest

import coulomb
from coulomb import _core
from scenes import contacts

# option -> a value that is not the default, and what it belongs to
OF_THE_PYRAMID = {"friction_directions": 4, "friction_polygon": "inscribed"}
OF_PENALTY = {"contact_stiffness": 1e4, "contact_damping": 1e3, "contact_friction_stiffness": 1e3}
OF_SPRINGS = {"limit_stiffness": 2e4, "limit_damping": 2e3, "equality_stiffness": 2e6, "equality_damping": 2e3,
              "dry_friction_velocity": 2e-3, "newton_iterations": 40, "newton_halvings": 7}  # fmt: skip
OF_HARD_CONTACT = {"baumgarte": 0.2, "slop": 1e-4, "max_correction_speed": 2.0, "restitution_threshold": 2e-2}
OF_IMPACTS = {"max_impacts": 16, "penetration_tolerance": 1e-4}
OF_AVERAGES = {"gradient_samples": 8, "gradient_scale": 2e-3, "gradient_seed": 3}
OF_TIES = {"tie_margin": 1e-3}
OF_ONE_METHOD = {"max_iterations": 100}
ALL = {**OF_THE_PYRAMID, **OF_PENALTY, **OF_SPRINGS, **OF_HARD_CONTACT, **OF_IMPACTS, **OF_AVERAGES, **OF_TIES,
       **OF_ONE_METHOD}  # fmt: skip
CHOICES = [
    ({}, {**OF_HARD_CONTACT}),
    ({"contact": "ncp", "solver": "pgs"}, {**OF_HARD_CONTACT, **OF_ONE_METHOD}),
    ({"contact": "lcp"}, {**OF_HARD_CONTACT, **OF_THE_PYRAMID}),
    ({"contact": "penalty"}, {**OF_PENALTY, **OF_SPRINGS}),
    ({"stepper": "bdf1"}, {**OF_PENALTY, **OF_SPRINGS}),
    ({"stepper": "bdf2", "contact": "penalty"}, {**OF_PENALTY, **OF_SPRINGS}),
    ({"continuous_collision": True}, {**OF_HARD_CONTACT, **OF_IMPACTS}),
    ({"gradient": "smoothed_collision"}, {**OF_HARD_CONTACT, **OF_AVERAGES}),
    ({"gradient": "smoothed_step"}, {**OF_HARD_CONTACT, **OF_AVERAGES}),
    ({"gradient": "complementarity_aware"}, {**OF_HARD_CONTACT, **OF_TIES}),
]


# option -> its range as the table of options writes it, and what it belongs to
PENALTY, LCP, SPLIT, ONE_METHOD = (
    {"contact": "penalty"},
    {"contact": "lcp"},
    {"continuous_collision": True},
    {"solver": "pgs"},
)
SMOOTHED, TIES = {"gradient": "smoothed_step"}, {"gradient": "complementarity_aware"}
RANGES = {
    "timestep": ("[1e-9, 1]", {}), "tolerance": ("(0, 0.01]", {}), "max_iterations": ("at least 1", ONE_METHOD),
    "baumgarte": ("[0, 1]", {}), "slop": ("[0, 1]", {}), "max_correction_speed": ("(0, 1e6]", {}),
    "restitution_threshold": ("[0, 1e6]", {}), "friction_directions": ("2 to 16", LCP), "max_impacts": ("at least 1", SPLIT),
    "penetration_tolerance": ("(0, 1]", SPLIT), "contact_stiffness": ("> 0", PENALTY), "contact_damping": (">= 0", PENALTY),
    "contact_friction_stiffness": (">= 0", PENALTY), "limit_stiffness": ("(0, 1e15]", PENALTY),
    "limit_damping": ("[0, 1e15]", PENALTY), "equality_stiffness": ("(0, 1e15]", PENALTY),
    "equality_damping": ("[0, 1e15]", PENALTY), "dry_friction_velocity": ("(0, 1000]", PENALTY),
    "newton_iterations": ("at least 1", PENALTY), "newton_halvings": ("0 to 16", PENALTY), "tie_margin": ("[0, 1e6]", TIES),
    "gradient_samples": ("at least 1", SMOOTHED), "gradient_scale": ("(0, 1]", SMOOTHED),
    "gradient_seed": ("0 to 2^64 - 1", SMOOTHED),
}  # fmt: skip


def ends_of(bounds):
    """(the values at the ends of a range, those just beyond)."""
    beyond = np.nextafter
    if bounds == "at least 1":
        return (1, 2**31 - 1), (0, 2**31)
    if " to " in bounds:
        low, high = (eval(end.replace("^", "**")) for end in bounds.split(" to "))
        return (low, high), (low - 1, high + 1)
    if bounds.startswith(">"):
        closed = bounds == ">= 0"
        return (0.0 if closed else beyond(0, 1), sys.float_info.max), (beyond(0, -1) if closed else 0.0, np.inf)
    low, high = (float(end) for end in bounds[1:-1].split(", "))
    inside, outside = (low, beyond(low, -np.inf)) if bounds[0] == "[" else (beyond(low, np.inf), low)
    return (inside, high), (outside, beyond(high, np.inf))


@pytest.fixture(scope="module")
def model():
    return contacts.arm_pushes_box(np.random.default_rng(0))[0]


@pytest.mark.parametrize(("choice", "used"), CHOICES, ids=lambda x: str(x) if len(x) < 3 else "")
def test_options_without_influence_are_refused_by_name(model, choice, used):
    default = coulomb.Simulator(model, **choice).options
    for option, value in ALL.items():
        make = lambda: coulomb.Simulator(model, **choice, **{option: value})  # noqa: B023, E731
        if option in used:
            made = make().options
            assert made[option] == value or option in OF_PENALTY  # these are the model's then
        else:
            with pytest.raises(ValueError, match=f"{option}: has no influence here, it belongs to"):
                make()
            with pytest.raises(ValueError, match=f"{option}: has no influence here, it belongs to"):
                coulomb.BatchSimulator(model, 2, **choice, **{option: value})
            coulomb.Simulator(model, **choice, **{option: default[option]})  # as it is by default: fine


def test_the_range_of_every_number_is_tested():
    told = {
        name: bounds
        for _, name, kind, _, bounds, _ in _core._simulator_options()
        if kind.split()[0] in ("int", "float")
    }
    assert told.keys() == RANGES.keys()
    for name, (bounds, _) in RANGES.items():
        assert told[name] == bounds or told[name].endswith(", " + bounds), (name, told[name])


@pytest.mark.parametrize("option", RANGES)
def test_a_range_is_the_one_that_is_promised(model, option):
    bounds, choice = RANGES[option]
    inside, outside = ends_of(bounds)
    for value in inside:
        made = coulomb.Simulator(model, **choice, **{option: value})
        assert made.options[option] == value or option in OF_PENALTY  # these are the model's then
    for value in (*outside, np.nan) if isinstance(outside[0], float) else outside:
        with pytest.raises((ValueError, TypeError), match=f"{option}: "):
            coulomb.Simulator(model, **choice, **{option: value})


@pytest.mark.parametrize(("choice", "used"), CHOICES, ids=lambda x: str(x) if len(x) < 3 else "")
def test_options_make_such_a_simulator_again(model, choice, used):
    used = {k: v for k, v in used.items() if k not in OF_PENALTY}
    sim = coulomb.Simulator(model, timestep=2e-3, **choice, **used)
    again = coulomb.Simulator(sim.model, **sim.options)
    assert again.options == sim.options
    q, v = model.neutral()
    for _ in range(3):
        (q, v), other = sim.step(q, v), again.step(q, v)
        assert np.array_equal(q, other[0]) and np.array_equal(v, other[1])
    batch = coulomb.BatchSimulator(sim.model, 2, **sim.options)
    assert np.array_equal(
        batch.step(np.stack([q, q]), np.stack([v, v]))[0][1], coulomb.Simulator(sim.model, **sim.options).step(q, v)[0]
    )


def test_penalty_numbers_reach_the_batch(model):
    options = dict(contact="penalty", contact_stiffness=3e3, contact_damping=30.0)
    sim = coulomb.Simulator(model, **options)
    batch = coulomb.BatchSimulator(model, 2, **options)
    q, v = model.neutral()
    for _ in range(5):
        q1, v1 = sim.step(q, v)
        Q1, V1 = batch.step(np.stack([q, q]), np.stack([v, v]))
        assert np.array_equal(Q1[1], q1) and np.array_equal(V1[1], v1)
        q, v = q1, v1
    soft = coulomb.Simulator(model, contact="penalty").step(*model.neutral())[1]
    assert not np.array_equal(soft, coulomb.Simulator(model, **options).step(*model.neutral())[1])


def test_auto_means_automatic(model):
    for name in ("auto", "automatic"):
        assert coulomb.Simulator(model, contact=name, solver=name).options["contact"] == "ncp"
        assert coulomb.Simulator(model, contact=name, stepper="bdf1").options["contact"] == "penalty"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
@pytest.mark.parametrize("cores", [1, 2])
def test_all_cores_are_those_that_this_process_may_use(cores):
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < cores:
        pytest.skip("fewer cores")
    program = f"""if 1:
        import os
        os.sched_setaffinity(0, {allowed[:cores]})
        import coulomb
        scene = coulomb.Scene()
        scene.add_sphere(0.1)
        print(coulomb.BatchSimulator(scene.build(), 4).num_threads, coulomb.BatchSimulator(scene.build(), 4, 3).num_threads)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == [str(cores), "3"], done.stderr

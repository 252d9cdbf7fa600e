"""Forces and torques between bodies that spin: they balance whatever the step makes of the spin, and their derivatives are those of
differences.
"""

import numpy as np
import pytest

import coulomb

# A base with its centre of mass off its frame, an arm on a hinge, a hand on a ball joint.
TUMBLER = """<mujoco><option timestep="0.005"/><worldbody><body name="base" pos="0 0 1"><freejoint/>
  <geom type="box" size=".15 .1 .025" pos=".1 .2 .05" mass="1"/>
  <body name="arm" pos=".2 0 0"><joint name="hinge" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 .1 .2" size=".02" mass=".5"/>
    <body name="hand" pos=".3 .1 .2"><joint name="ball" type="ball" armature=".002"/><geom type="box" size=".1 .05 .02" pos=".1 0 0" mass=".3"/>
    </body></body></body></worldbody><actuator><motor joint="hinge"/></actuator></mujoco>"""
NAMES = ["force/arm", "torque/arm", "force/hand", "torque/hand", "force/base", "torque/base"]


def tumbler():
    model = coulomb.load(TUMBLER)
    random = np.random.default_rng(0)
    q = model.integrate(model.neutral()[0], 0.3 * random.normal(size=model.nv))
    return model, q, 8 * random.normal(size=model.nv), np.array([0.7])


@pytest.mark.parametrize("gyroscopic", ["implicit", "explicit"])
def test_nothing_holds_the_base_and_joints_only_what_drives_them(gyroscopic):
    model, q, v, u = tumbler()
    sim = coulomb.Simulator(model, gyroscopic=gyroscopic)
    sim.step(q, v, u)
    assert np.abs(sim.output("force/hand")).max() > 1
    assert np.abs(np.r_[sim.output("force/base"), sim.output("torque/base")]).max() < 1e-11

    # Along the hinge's axis there is the motor alone, in the ball joint its armature.
    assert sim.output("torque/arm")[1] == pytest.approx(u[0], abs=1e-11)
    bare = model.with_parameters({"armature/ball": np.zeros(3)})
    sim = coulomb.Simulator(bare, gyroscopic=gyroscopic)
    sim.step(q, v, u)
    assert np.abs(sim.output("torque/hand")).max() < 1e-11


def test_a_contact_is_all_that_holds_a_box_that_spins():
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_ground(friction=0.3)
    scene.add_box((0.3, 0.2, 0.05), mass=1.0, position=(0, 0, 0.0249), name="box")
    model = scene.build()
    sim = coulomb.Simulator(model)
    q, v = model.neutral()
    v[3:] = 4.0, -3.0, 20.0
    sim.step(q, v)
    assert np.abs(sim.output("contact_force/box")).max() > 1
    assert np.abs(np.r_[sim.output("force/box"), sim.output("torque/box")]).max() < 1e-9


def differences(f, size, h):
    """(columns, what they do not know)."""
    columns, errors = [], []
    for e in np.eye(size):
        fine, coarse = ((f(s * e) - f(-s * e)) / (2 * s) for s in (h, 2 * h))
        columns.append((4 * fine - coarse) / 3)
        errors.append(np.abs(fine - coarse).max())
    return np.array(columns).T, max(errors)


@pytest.mark.parametrize("wrt", ["q", "v", "u", "tau"])
def test_derivatives_by_inputs(wrt):
    model, q, v, u = tumbler()
    sim = coulomb.Simulator(model)
    tau = np.zeros(model.nv)
    sim.step(q, v, u, tau)
    analytic = sim.derivatives().output(NAMES, wrt)

    def readings(e):
        moved = {"q": q, "v": v, "u": u, "tau": tau}
        moved[wrt] = model.integrate(q, e) if wrt == "q" else moved[wrt] + e
        sim.step(*moved.values())
        return sim.output(NAMES)

    numeric, unknown = differences(readings, analytic.shape[1], {"q": 1e-4, "v": 1e-3}.get(wrt, 1e-2))
    scale = np.abs(numeric).max()
    assert scale > 0.1 and unknown < 1e-3 * scale
    assert np.abs(analytic - numeric).max() < 1e-7 * scale

    w = np.random.default_rng(1).normal(size=analytic.shape[0])
    sim.step(q, v, u, tau)
    reverse = sim.vjp(outputs=dict(zip(NAMES, np.split(w, len(NAMES)))))
    assert np.abs(getattr(reverse, wrt) - w @ analytic).max() < 1e-11 * np.abs(w @ analytic).max()


SIZES = {
    "mass/base": 1e-3, "mass/hand": 1e-3, "com/base": 1e-4, "com/hand": 1e-4, "inertia/base": 1e-5, "inertia/hand": 1e-6,
    "armature/ball": 1e-5, "joint_placement/ball": 1e-4, "joint_placement/hinge": 1e-4, "gravity": 1e-1, "timestep": 1e-5,
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_derivatives_by_parameters(name):
    model, q, v, u = tumbler()
    sim = coulomb.Simulator(model)
    sim.step(q, v, u)
    analytic = sim.derivatives(wrt=[name]).output(NAMES, name)
    value = np.asarray(model.parameters()[name].value, dtype=float)

    def readings(e):
        changed = coulomb.Simulator(model.with_parameters({name: value + e}))
        changed.step(q, v, u)
        return changed.output(NAMES)

    numeric, unknown = differences(readings, value.size, SIZES[name])
    scale = np.abs(numeric).max() + 1e-3
    felt = name not in ("gravity", "timestep")  # all of it falls, and nothing is stopped
    assert felt == (scale > 0.05)
    assert unknown < 1e-2 * scale
    assert np.abs(analytic - numeric).max() < (1e-5 * scale if felt else 1e-6)

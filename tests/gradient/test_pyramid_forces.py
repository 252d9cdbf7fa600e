"""Contact forces of friction pyramids whose frame turns with the bodies: the sides of a pyramid turn about the normal as the frame does."""

import numpy as np
import pytest

import coulomb

LAWS = {
    "cone": {},
    "boxed": dict(contact="lcp"),
    "hexagon": dict(contact="lcp", friction_directions=3, friction_polygon="inscribed"),
    "octagon": dict(contact="lcp", friction_directions=4),
}


def ball_on_a_ball():
    """Off to a side, so that the normal is none of the axes, and turning about it."""
    scene = coulomb.Scene(timestep=2e-3)
    scene.add_sphere(0.2, mass=3.0, friction=0.4, name="below")
    n = np.array([0.3, -0.5, 0.8])
    n /= np.linalg.norm(n)
    scene.add_sphere(0.1, mass=1.0, friction=0.4, position=0.2999 * n, name="above")
    model = scene.build()
    v = np.random.default_rng(0).normal(size=12)
    v[6:9] = v[:3] - 0.5 * n + np.cross(n, [1.0, 0.4, 0.2])
    return model, model.neutral()[0], v


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("wrt", ["q", "v", "tau"])
def test_derivatives(law, wrt):
    model, q, v = ball_on_a_ball()
    sim = coulomb.Simulator(model, tolerance=1e-13, **LAWS[law])
    tau = np.zeros(model.nv)
    sim.step(q, v, tau=tau)
    (contact,) = sim.contacts
    assert contact.mode == "sliding" and np.abs(contact.normal).max() < 0.9
    names = ["contact_force/above", "contact_force/below"]
    told = sim.derivatives().output(names, wrt)
    assert np.allclose(told[:3], -told[3:], rtol=1e-12, atol=1e-9)

    numeric = np.empty_like(told)
    h = {"q": 1e-6, "v": 1e-5, "tau": 1e-2}[wrt]
    for k, e in enumerate(np.eye(model.nv)):
        ends = []
        for s in (h, -h):
            moved = {"q": q, "v": v, "tau": tau}
            moved[wrt] = model.integrate(q, s * e) if wrt == "q" else moved[wrt] + s * e
            sim.step(moved["q"], moved["v"], tau=moved["tau"])
            assert sim.contacts[0].facet == contact.facet
            ends.append(sim.output(names))
        numeric[:, k] = (ends[0] - ends[1]) / (2 * h)
    scale = np.abs(numeric).max()
    assert scale > 0.1
    assert np.abs(told - numeric).max() < 3e-7 * scale

    w = np.random.default_rng(1).normal(size=3)
    sim.step(q, v, tau=tau)
    sim.derivatives()
    reverse = getattr(sim.vjp(outputs={"contact_force/above": w}), wrt)
    assert np.abs(reverse - w @ told[:3]).max() < 1e-9 * scale

"""A box on the ground that is pushed harder and harder: it sticks, then it slides, and the derivative of a step says which."""

import numpy as np

import coulomb

scene = coulomb.Scene(timestep=1e-3)
scene.add_ground(friction=0.5)
scene.add_box((0.2, 0.2, 0.04), mass=1.0, position=(0, 0, 0.02), name="box")
sim = coulomb.Simulator(scene.build())
q, v = sim.model.neutral()

# Friction holds up to 0.5 m g = 4.9 N.
for push in (2.0, 4.0, 6.0, 10.0):
    q1, v1 = sim.step(q, v, tau=[push, 0, 0, 0, 0, 0])
    modes = {contact.mode for contact in sim.contacts}
    dv_dtau = sim.derivatives().dv_dtau[0, 0]
    print(f"{push:4} N: {modes}, speed {v1[0]:.5f} m/s, d(speed)/d(push) {dv_dtau:.5f} (m/s)/N")

    # What sticks does not feel a little more push; what slides has its mass to move: h / m.
    sticks = push < 0.5 * 9.81
    assert modes == ({"sticking"} if sticks else {"sliding"})
    assert abs(dv_dtau - (0.0 if sticks else 1e-3)) < 1e-6

# The forces at its corners: the four normal ones carry the weight.
for contact in sim.contacts:
    print(contact, f"margin {contact.margin:.2f}")
force = sim.output("contact_force/box")
print("force on the box:", force.round(3), "N")
assert np.allclose(force, [-0.5 * 9.81, 0, 9.81], atol=0.02)

# margin says how far a contact is from its next mode. On the border itself derivatives from the two sides differ, and the step says so.
print("ambiguous:", sim.derivatives().ambiguous)

"""A robot's file becomes a model: what moves, what touches, and states and places by name."""

import numpy as np

import coulomb
from coulomb.demo import robot_path

# Unitree's Go1 from the package example-robot-data, 45 cm above the ground. coulomb.load(path, ground=True) does it in one line.
path, packages = robot_path("go1_description/urdf/go1.urdf")
scene = coulomb.Scene(timestep=2e-3)
scene.add_ground(friction=0.8)
scene.add_urdf(path, floating_base=True, position=(0, 0, 0.45), package_dirs=[packages])
model = scene.build()
print(model)

# The base is free: 7 numbers of position and quaternion in q, 6 of velocity in v. Then come the joints of the legs.
for name in model.joint_names[:4]:
    joint = model.joint(name)
    print(f"{name:16} {joint.type:6} q from {joint.q}, v from {joint.v}")
assert model.nq == 7 + 12 and model.nv == 6 + 12

# A state by the names of joints; all others are neutral.
q, v = model.state(FL_thigh_joint=0.8, FL_calf_joint=-1.6)

# Where a link is, and how it moves when coordinates do: outputs have names and exact Jacobians.
foot = model.output("position/FL_foot", q)
J = model.output_jacobian("position/FL_foot", q, v, "q")
print("foot at", foot.round(3), "m; its Jacobian is", J.shape)

# The Jacobian is right: turn the knee a little and look.
knee = model.joint("FL_calf_joint").v
step = np.zeros(model.nv)
step[knee] = 1e-6
moved = model.output("position/FL_foot", model.integrate(q, step))
assert np.allclose((moved - foot) / 1e-6, J[:, knee].reshape(3), atol=1e-5)

# What the file asks for and the motion may miss is said, not hidden.
print("not taken over:", model.deviations[:1] or "nothing")

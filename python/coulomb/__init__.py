"""Coulomb: a differentiable rigid-body simulator for robotics.

    scene = coulomb.Scene()
    scene.add_ground(friction=0.8)
    scene.add_urdf("robot.urdf", floating_base=True, position=(0, 0, 0.5))
    model = scene.build()                      # or coulomb.load("robot.urdf", ground=True)
    sim = coulomb.Simulator(model, timestep=1e-3)
    q, v = model.neutral()
    q1, v1 = sim.step(q, v)
    d = sim.derivatives()                      # d.A = d(q1, v1)/d(q, v), d.B = d(q1, v1)/du

Conventions: SI units; quaternions (w, x, y, z); a free joint has q = (x, y, z, qw, qx, qy, qz) and v = (velocity of the frame's
origin in world axes, angular velocity in body axes), as in MuJoCo. Derivatives are in the tangent space of Model.integrate. Arrays
are numpy float64. Invalid input raises ValueError or TypeError that names the argument; numerical trouble is a status.
"""

from ._core import (
    BatchCotangent,
    BatchDerivatives,
    BatchMemory,
    BatchRollout,
    BatchRolloutCotangent,
    BatchSimulator,
    BatchStatus,
    Contact,
    ContactDerivatives,
    ContactProblem,
    ContactSolution,
    Impact,
    LcpDerivatives,
    LcpResult,
    LcpStatus,
    Model,
    Rollout,
    RolloutCotangent,
    RolloutLinearization,
    SceneElement,
    Simulator,
    SparseStepDerivatives,
    StepCotangent,
    StepDerivatives,
    StepMemory,
    StepStatus,
    __version__,
    instruction_set,
    solve_lcp,
)
from ._installed import cmake_prefix
from .activated import ActivatedSimulator
from .activations import Activations
from .gradients import GradientCheck, check_gradients
from .scene import Scene, load
from .view import Renderer, Viewer, save_video

instruction_set()  # raises ValueError where COULOMB_SIMD cannot be obeyed

__all__ = [
    "ActivatedSimulator",
    "Activations",
    "BatchCotangent",
    "BatchDerivatives",
    "BatchMemory",
    "BatchRollout",
    "BatchRolloutCotangent",
    "BatchSimulator",
    "BatchStatus",
    "Contact",
    "ContactDerivatives",
    "ContactProblem",
    "ContactSolution",
    "GradientCheck",
    "Impact",
    "LcpDerivatives",
    "LcpResult",
    "LcpStatus",
    "Model",
    "Renderer",
    "Rollout",
    "RolloutCotangent",
    "RolloutLinearization",
    "Scene",
    "SceneElement",
    "Simulator",
    "SparseStepDerivatives",
    "StepCotangent",
    "StepDerivatives",
    "StepMemory",
    "StepStatus",
    "Viewer",
    "__version__",
    "check_gradients",
    "cmake_prefix",
    "instruction_set",
    "load",
    "save_video",
    "solve_lcp",
]

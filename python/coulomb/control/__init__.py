"""Trajectories that are best by a cost, and receding horizons, through contact (docs/control.md).

    solver = coulomb.control.Solver(model, horizon=50, substeps=2, timestep=0.01)
    solver.add_state(weight=1.0, reference=(q_goal, v_goal), terminal=100.0)
    solver.add_control(weight=0.01)
    result = solver.solve(q0, v0)

- Solver: iLQR with multiple shooting [Mastalli2020] and limits of the controls [Tassa2014], in C++ on threads.
- Mpc: the same, one or more iterations a tick, on the trajectory of the tick before.
- Gate: a factor of a weight that opens as an output falls, such as the height of a foot.
"""

from .mpc import Mpc
from .solver import Gate, Result, Solver, Term

__all__ = ["Gate", "Mpc", "Result", "Solver", "Term"]

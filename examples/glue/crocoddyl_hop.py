"""A leg hops forward: Crocoddyl's BoxFDDP on steps of the simulator, beside coulomb.control on the same problem.

A planar leg of two links with motors in hip and knee stands on the floor. It is to be 0.15 m ahead and a little higher after 0.3 s, and 0.3 m
ahead, standing again, after 0.6 s. Nobody says when the foot leaves the floor and where it lands: no contact schedule, no phases.

    python examples/glue/crocoddyl_hop.py [--quick] [--output FOLDER]
"""

import sys
import time
from pathlib import Path

import crocoddyl
import numpy as np

import coulomb
from coulomb.control import Solver
from coulomb.glue.crocoddyl import ActionModel, ResidualModelOutputs, ResidualModelState, State
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from plot_common import arguments, finish, strobe  # noqa: E402

KNOTS, SUBSTEPS, BEND, LENGTH, FOOT = 60, 2, 0.7, 0.3, 0.03
LEG = """<mujoco><option timestep="0.005"/><worldbody>
  <geom name="floor" type="box" size="2 .5 .02" pos="0 0 -.02" friction=".9"/>
  <body name="torso" pos="0 0 .6"><joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>
    <geom name="torso" type="box" size=".06 .06 .08" mass="3" contype="0" conaffinity="0"/>
    <body name="thigh"><joint name="hip" axis="0 1 0" armature=".01"/>
      <geom name="thigh" type="capsule" size=".02" fromto="0 0 0 0 0 -.3" mass=".4" contype="0" conaffinity="0"/>
      <body name="shank" pos="0 0 -.3"><joint name="knee" axis="0 1 0" armature=".01"/>
        <geom name="shank" type="capsule" size=".015" fromto="0 0 0 0 0 -.3" mass=".2" contype="0" conaffinity="0"/>
        <geom name="foot" type="sphere" size=".03" pos="0 0 -.3" mass=".1" friction=".9"/></body></body></body>
</worldbody><actuator>
  <motor joint="hip" ctrllimited="true" ctrlrange="-40 40"/><motor joint="knee" ctrllimited="true" ctrlrange="-40 40"/>
</actuator></mujoco>"""
RUNNING = np.array([0, 0, 0.1, 0.1, 0, 0, 0.01, 0.01])
TERMINAL = np.array([500, 500, 50, 50, 5, 5, 1, 1.0])
APEX, APEX_WEIGHT, EFFORT = np.array([0.15, 0, 0.75]), np.array([0, 0, 500.0]), 1e-3


def standing(model):
    """q0, v0, and motor torques (knots, 2) of a servo that holds them, which is where both solvers begin."""
    q0 = np.array([0, 2 * LENGTH * np.cos(BEND) + FOOT - 0.6 - 1e-4, -BEND, 2 * BEND])
    simulator = coulomb.Simulator(model)
    q, v, U = q0, np.zeros(4), np.zeros((KNOTS, 2))
    for t in range(KNOTS):
        U[t] = np.clip(200 * (q0[2:] - q[2:]) - 4 * v[2:] + [0, -15], -40, 40)
        for _ in range(SUBSTEPS):
            q, v = simulator.step(q, v, U[t])
    return q0, np.zeros(4), U


def by_control(model, q0, v0, goal, guess):
    solver = Solver(model, KNOTS, SUBSTEPS)
    solver.add_state(RUNNING, (goal, v0), terminal=TERMINAL)
    solver.add_control(EFFORT)
    weight = np.zeros((KNOTS + 1, 3))
    weight[KNOTS // 2] = APEX_WEIGHT
    solver.add_outputs("position/torso", weight, APEX)
    began = time.perf_counter()
    result = solver.solve(q0, v0, guess, iterations=200)
    return result, time.perf_counter() - began


def by_crocoddyl(model, q0, v0, goal, guess):
    state = State(model)

    def action(weights, apex=False, effort=EFFORT):
        """Costs as in any program with Crocoddyl; the residuals know the model's state and outputs."""
        costs = crocoddyl.CostModelSum(state, model.nu)
        activation = crocoddyl.ActivationModelWeightedQuad(weights)
        residual = ResidualModelState(state, state.point(goal, v0))
        costs.addCost("state", crocoddyl.CostModelResidual(state, activation, residual), 1.0)
        residual = crocoddyl.ResidualModelControl(state, model.nu)
        costs.addCost("effort", crocoddyl.CostModelResidual(state, residual), effort)
        if apex:
            activation = crocoddyl.ActivationModelWeightedQuad(APEX_WEIGHT)
            residual = ResidualModelOutputs(state, "position/torso", APEX)
            costs.addCost("apex", crocoddyl.CostModelResidual(state, activation, residual), 1.0)
        return ActionModel(state, costs, SUBSTEPS)

    running, apex, terminal = action(RUNNING), action(RUNNING, apex=True), action(TERMINAL)
    actions = [apex if t == KNOTS // 2 else running for t in range(KNOTS)]
    problem = crocoddyl.ShootingProblem(state.point(q0, v0), actions, terminal)
    solver = crocoddyl.SolverBoxFDDP(problem)
    solver.th_stop = 1e-7
    began = time.perf_counter()
    done = solver.solve(problem.rollout(list(guess)), list(guess), 200)
    return done, solver, time.perf_counter() - began


def picture(model, Q, U, path):
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (leg, foot, torque) = plt.subplots(
            3, 1, figsize=(7, 7.4), layout="constrained", height_ratios=[2.2, 1, 1]
        )
        colours = {"torso": COLOURS[0], "thigh": COLOURS[0], "shank": COLOURS[0], "foot": COLOURS[1]}
        strobe(leg, model, Q[[0, 20, 30, 40, -1]], colours=colours, limits=(-0.3, 0.6, -0.04, 0.75), along=(0, 2))
        leg.set_title("A hop without a contact schedule: BoxFDDP of Crocoddyl")
        t = np.arange(KNOTS + 1) * 0.01
        heights = [model.output("position/foot", q)[2] - FOOT for q in Q]
        foot.plot(t, np.array(heights) * 1e3, color=COLOURS[1])
        foot.set(ylabel="foot above\nthe floor [mm]")
        for k, name in enumerate(("hip", "knee")):
            torque.step(t[:-1], U[:, k], where="post", color=COLOURS[2 + k], label=name)
        torque.set(xlabel="time [s]", ylabel="torque [N m]")
        torque.legend()
        finish(figure, path)


def main():
    options = arguments(__doc__, "does nothing here: it takes seconds")
    model = coulomb.load(LEG)
    q0, v0, guess = standing(model)
    goal = q0 + [0.3, 0, 0, 0]

    expected, its_seconds = by_control(model, q0, v0, goal, guess)
    done, solver, seconds = by_crocoddyl(model, q0, v0, goal, guess)
    print(f"coulomb.control: cost {expected.cost:.6f} after {expected.iterations} iterations, {its_seconds:.2f} s")
    print(f"Crocoddyl's BoxFDDP: cost {solver.cost:.6f} after {solver.iter} iterations, {seconds:.2f} s")
    assert done and expected.converged and abs(solver.cost / expected.cost - 1) < 1e-6

    U = np.array(solver.us)
    r = coulomb.Simulator(model).rollout(q0, v0, U, substeps=SUBSTEPS)
    heights = np.array([model.output("position/foot", q)[2] for q in r.q]) - FOOT
    print(f"the foot is up to {1e3 * heights.max():.0f} mm above the floor and lands {r.q[-1, 0] - q0[0]:.2f} m ahead")
    assert np.abs(np.hstack([r.q, r.v]) - np.array(solver.xs)).max() < 1e-6, "the nodes are one trajectory"
    assert heights.max() > 0.01 and abs(heights[-1]) < 1e-3 and r.q[-1, 0] > 0.2
    picture(model, r.q, U, options.output / "crocoddyl_hop.png")


if __name__ == "__main__":
    main()

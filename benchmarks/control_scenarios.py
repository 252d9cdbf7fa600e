"""What benchmarks/control.py times: Go1 that walks, a hopper that hops, a pole on a cart that swings up, each by coulomb.control.Mpc, one iteration a tick."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "applications"))

import mpc_go1
import numpy as np
from mpc_go1 import STANDING

import coulomb
from coulomb.control import Mpc, Solver

CARTPOLE = """<mujoco><option timestep="0.02"/><worldbody><body><joint name="cart" type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><body><joint name="pole" axis="0 1 0"/>
  <inertial pos="0 0 -.5" mass=".2" diaginertia=".001 .001 .001"/></body></body></worldbody>
  <actuator><motor joint="cart" ctrllimited="true" ctrlrange="-8 8"/></actuator></mujoco>"""

# Sizes, masses, stiffness and damping of the joints, and knots as in [Kurtz2025]; toe and heel are its only contacts.
HOPPER = """<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="9 9 1" friction="1"/>
  <body name="torso"><joint name="z" type="slide" axis="0 0 1"/><joint name="x" type="slide" axis="1 0 0"/><joint name="pitch" axis="0 -1 0"/>
    <inertial pos="0 0 0" mass="1" diaginertia=".013 .013 .013"/>
    <body name="leg" pos="0 0 -.2"><joint name="knee" axis="0 -1 0" damping="5"/>
      <inertial pos="0 0 -.2" mass=".2" diaginertia=".01 .01 .01"/>
      <body name="foot" pos="0 0 -.4"><joint name="ankle" axis="0 -1 0" damping="5"/>
        <inertial pos=".05 0 0" mass=".1" diaginertia=".005 .005 .005"/>
        <geom name="toe" size=".03" pos=".15 0 0" friction="1"/><geom name="heel" size=".03" pos="-.05 0 0" friction="1"/></body></body></body></worldbody>
  <actuator><position joint="knee" kp="100" ctrllimited="true" ctrlrange="-2 1"/>
    <position joint="ankle" kp="100" ctrllimited="true" ctrlrange="-1.2 1.6"/></actuator></mujoco>"""
CROUCHED = np.array([0.613, 0, 0.3, -0.5, 0.2])  # m, m, rad
HOP = 0.5  # m


@dataclass
class Scenario:
    """The plan's steps, timestep x substeps a knot; the plant's are as long as the model's."""

    name: str
    model: coulomb.Model
    timestep: float
    substeps: int
    mpc: Mpc
    start: tuple
    ticks: int
    arrived: Callable  # of q
    pushes: dict = field(default_factory=dict)  # tick: dv
    quick_ticks: int | None = None  # default: all
    step_lengths: int = 11  # of the search of mpc


def go1(timestep):
    model = mpc_go1.go1()
    solver, _ = mpc_go1.planner(model, timestep)
    mpc = Mpc(solver, start_iterations=5, roll=False, step_lengths=6, clock="processor")
    mpc.reset(np.tile(STANDING, (solver.horizon, 1)))
    push = {50: np.r_[0, 0.8, np.zeros(model.nv - 2)]}
    start = mpc_go1.standing(model)
    return Scenario(
        "Go1", model, timestep, solver.substeps, mpc, start, 300, lambda q: q[2] > 0.25 and q[0] > 0, push, 60, 6
    )


def hopper():
    """Half a metre to the right and stand. Controls are targets of servos. With the costs of [Kurtz2025] it leans forward by 8 cm and stands."""
    model = coulomb.load(HOPPER)
    solver = Solver(model, horizon=40, substeps=10, timestep=0.005, patches=False)
    there, dt = CROUCHED + [0, HOP, 0, 0, 0], solver.timestep
    place, speed = np.array([1, 20, 1, 1, 1]), np.full(5, 0.1)
    terminal = [10, 100, 10, 10, 10, 1, 1, 1, 1, 1]
    solver.add_state(np.r_[place, speed] * dt, (there, np.zeros(5)), terminal=terminal)
    solver.add_control(0.01 * dt, CROUCHED[3:])
    mpc = Mpc(solver, start_iterations=50, roll=False, clock="processor")
    mpc.reset(np.tile(CROUCHED[3:], (40, 1)))

    def arrived(q):
        return abs(q[1] - HOP) < 0.1 and q[0] > 0.55

    return Scenario("hopper", model, 0.005, 10, mpc, (CROUCHED, np.zeros(5)), 80, arrived)


def cartpole():
    """From hanging; up, it is pushed."""
    model = coulomb.load(CARTPOLE)
    solver = Solver(model, horizon=100)
    solver.add_state([0.1, 0.1, 0.01, 0.01], (np.array([0, np.pi]), np.zeros(2)), terminal=[200, 500, 20, 20])
    solver.add_control(0.01)
    mpc = Mpc(solver, start_iterations=50, roll=False, clock="processor")

    def arrived(q):
        return np.allclose(q, [0, np.pi], atol=0.1)

    start = np.zeros(2), np.zeros(2)
    return Scenario("cartpole", model, 0.02, 1, mpc, start, 400, arrived, {200: np.array([0.5, 1.0])})


def run(scenario, every):
    """Of a run on Coulomb: plans (Q, V, U) every `every` ticks, seconds of the parts of ticks, rollouts of ticks."""
    robot = coulomb.Simulator(scenario.model)
    solver, mpc = scenario.mpc.solver, scenario.mpc
    q, v = scenario.start
    plans, seconds, rollouts = [], [], []
    for tick in range(scenario.ticks):
        if tick in scenario.pushes:
            v = v + scenario.pushes[tick]

        # A tick of the planner, and what it took.
        u, _ = mpc.step(q, v)
        result = mpc.result
        if tick > 0 and len(result.steps):
            seconds.append(list(result.timings.values()))
            length = result.steps[-1]
            rollouts.append(scenario.step_lengths if length == 0 else 1 - np.log2(length))
        if tick > 0 and tick % every == 0:
            plans.append((result.Q, result.V, result.U))

        for _ in range(round(solver.timestep / robot.timestep)):
            q, v = robot.step(q, v, u)
    assert scenario.arrived(q), f"{scenario.name} failed: {q}"
    return plans, np.array(seconds), np.array(rollouts)

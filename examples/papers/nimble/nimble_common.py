"""What the examples of Nimble's experiments share: its scenes, multiple shooting with IPOPT, and pictures.

Nimble [Werling2021], key in docs/references.md. Sizes, limits, starts
and losses are those of the paper's public examples. Two facts of the engine they were made for matter: a body whose inertia is not given
has 1 kg and 1 kg m^2 about every axis, and friction is 1 unless given. y points up. `benchmarks/nimble_table.py` times the same scenes.
"""

import sys
import time
from pathlib import Path

import numpy as np

import coulomb
from coulomb.pictures import COLOURS, STYLE

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

# Programs take these from here.
from plot_common import arguments, finish, outlines, strobe  # noqa: E402, F401

UNIT = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
LINK = 'type="box" size=".025 .125 .025" contype="2" conaffinity="1"'  # half sizes; collides with floor and projectile only
CUBE = 'type="box" size=".05 .05 .05" contype="1" conaffinity="3"'


def _mjcf(timestep, bodies, actuated, force):
    motors = "".join(
        f'<motor joint="{joint}" ctrllimited="true" ctrlrange="{-force} {force}"/>' for joint in actuated.split()
    )
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{timestep}" gravity="0 -9.81 0"/>'
        f"<worldbody>{bodies}</worldbody><actuator>{motors}</actuator></mujoco>"
    )


def _poles(count):
    """Poles of 1 m standing on a cart and on each other, hinged about z, upright at 0."""
    text = ""
    for k in reversed(range(count)):
        text = (
            f'<body name="pole{k}" pos="0 {float(k > 0)} 0"><joint name="hinge{k}" type="hinge" axis="0 0 1"/>'
            f'<inertial pos="0 .5 0" mass="1" diaginertia="1 1 1"/>'
            f'<geom name="pole{k}" type="box" size=".025 .5 .025" pos="0 .5 0" contype="0" conaffinity="0"/>{text}</body>'
        )
    return text


def cartpole(poles=1, force=10.0, timestep=1e-2):
    """A cart that a force moves along x between -10 and 10 m, and a pole on it (a second one on top of the first)."""
    cart = (
        '<body name="cart"><joint name="rail" type="slide" axis="1 0 0" limited="true" range="-10 10"/>'
        f'{UNIT}<geom name="cart" type="box" size=".12 .05 .05" contype="0" conaffinity="0"/>{_poles(poles)}</body>'
    )
    return coulomb.load(_mjcf(timestep, cart, "rail", force))


def _links(where):
    """Three links of 0.25 m in a row, hinged about z between 0 and 180 degrees; the first at `where` in its parent."""
    text = ""
    for k in reversed(range(3)):
        text = (
            f'<body name="link{k}" pos="{where if k == 0 else "0 .25 0"}">'
            f'<joint name="hinge{k}" type="hinge" axis="0 0 1" limited="true" range="0 3.1415"/>'
            f'<inertial pos="0 .125 0" mass="1" diaginertia="1 1 1"/><geom name="link{k}" pos="0 .125 0" {LINK}/>{text}</body>'
        )
    return text


def _translating_cube(name, inside=""):
    return (
        f'<body name="{name}"><joint name="{name}_x" type="slide" axis="1 0 0"/>'
        f'<joint name="{name}_y" type="slide" axis="0 1 0"/>{UNIT}<geom name="{name}" {CUBE}/>{inside}</body>'
    )


def _floor(x, length):
    return f'<geom name="floor" type="box" size="{length / 2} .125 .25" pos="{x} -.7 0" contype="1" conaffinity="3"/>'


def catapult(timestep=1e-3):
    """An arm of three links (±1000 N m) and a cube that translates in the plane. Returns the model and the start (q, v)."""
    text = _floor(1.2, 3.5) + _translating_cube("cube") + _links(".5 -.45 0")
    model = coulomb.load(_mjcf(timestep, text, "hinge0 hinge1 hinge2", 1000))
    return model, np.r_[0, 0.1, np.radians([45, 0, 45])], np.zeros(5)


def jumpworm(timestep=1e-3):
    """Three links (±100 N m) that hang from a cube, which translates in the plane. Returns the model and the start (q, v)."""
    text = _floor(0, 2.5) + _translating_cube("cube", _links("0 0 0"))
    model = coulomb.load(_mjcf(timestep, text, "hinge0 hinge1 hinge2", 100))
    return model, np.r_[0, 0, np.radians([90, 90, 45])], np.zeros(5)


def drone(timestep=1e-3):
    """A ball of 0.1 kg on a vertical rail, lifted by ±10 N, that lies on a floor without friction."""
    body = (
        '<body name="drone"><joint name="rail" type="slide" axis="0 1 0"/><inertial pos="0 0 0" mass=".1" diaginertia="1 1 1"/>'
        '<geom name="drone" type="sphere" size=".3" friction="0 0 0"/></body>'
        '<geom name="floor" type="box" size="2.5 .5 2.5" friction="0 0 0"/>'
    )
    return coulomb.load(_mjcf(timestep, body, "rail", 10)), np.r_[0.8 - 1e-4], np.r_[-1e-4]


def pushed_box(timestep=1e-3):
    """A box of 1 kg that rests on the floor, friction 0.5, pushed along x by ±10 N. The configuration is (y, x)."""
    bodies = (
        '<body name="box"><joint name="up" type="slide" axis="0 1 0"/><joint name="push" type="slide" axis="1 0 0"/>'
        '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/><geom name="box" type="box" size=".1 .1 .1" friction=".5"/></body>'
        '<geom name="floor" type="box" size="2.5 .5 2.5" friction=".5"/>'
    )
    return coulomb.load(_mjcf(timestep, bodies, "push", 10)), np.r_[0.6 - 1e-4, 0], np.zeros(2)


# --- multiple shooting ------------------------------------------------------------------------------------------------------------


def shooting(
    sim, q0, v0, steps, shot, loss, bound, *, at_end=None, guess=None, effort=0.0, tolerance=1e-6, iterations=500
):
    """Controls (steps, nu) within ±bound that make loss(x_T) + effort * mean (u / bound)^2 small: the trajectory is cut into shots of `shot` steps, the state x = (q, v)
    at every cut is unknown too, and IPOPT (quasi-Newton) closes the gaps between the shots.

    loss, and at_end, which has to vanish at x_T: of a CasADi vector, as CasADi expressions. For models without quaternions. Returns the
    controls and IPOPT's statistics with the wall-clock time.
    """
    import casadi

    nx, nu, nq = len(q0) + len(v0), sim.model.nu, len(q0)

    class Shot(casadi.Callback):
        """x at the end of a shot from x at its start and its controls."""

        def __init__(self, length):
            casadi.Callback.__init__(self)
            self.length = length
            self.construct(f"shot{length}", {})

        def get_n_in(self):
            return 2

        def get_n_out(self):
            return 1

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense(nx if i == 0 else nu * self.length)

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(nx)

        def rollout(self, start_and_controls):
            x, u = (np.array(part).ravel() for part in start_and_controls[:2])
            return sim.rollout(x[:nq], x[nq:], bound * u.reshape(self.length, nu))

        def eval(self, start_and_controls):
            r = self.rollout(start_and_controls)
            return [np.r_[r.q[-1], r.v[-1]]]

        def has_jacobian(self):
            return True

        def get_jacobian(self, name, inputs, outputs, options):
            self.slope = Slope(self, name, options)  # CasADi keeps no reference
            return self.slope

    class Slope(casadi.Callback):
        """Its Jacobian by both, from one sweep through the rollout."""

        def __init__(self, shot, name, options):
            casadi.Callback.__init__(self)
            self.shot = shot
            self.construct(name, options)

        def get_n_in(self):
            return 3

        def get_n_out(self):
            return 2

        def get_sparsity_in(self, i):
            return casadi.Sparsity.dense((nx, nu * self.shot.length, nx)[i])

        def get_sparsity_out(self, i):
            return casadi.Sparsity.dense(nx, (nx, nu * self.shot.length)[i])

        def eval(self, start_and_controls):
            J = self.shot.rollout(start_and_controls).jacobian(wrt=["q0", "v0", "u"], all_states=False)
            return [np.hstack([J["q0"], J["v0"]]), bound * J["u"]]

    lengths = [shot] * (steps // shot) + ([steps % shot] if steps % shot else [])
    maps = {length: Shot(length) for length in set(lengths)}
    guess = np.zeros((steps, nu)) if guess is None else guess
    free = sim.rollout(q0, v0, guess)
    x, unknowns, start, lower, upper, gaps, cost, first = casadi.DM(np.r_[q0, v0]), [], [], [], [], [], 0, 0
    for k, length in enumerate(lengths):
        U = casadi.MX.sym(f"U{k}", nu * length)
        unknowns.append(U)
        start.append(guess[first : first + length].ravel() / bound)
        lower.append(np.full(nu * length, -1.0))
        upper.append(np.full(nu * length, 1.0))
        cost += effort * casadi.sumsqr(U) / (steps * nu)
        end, first = maps[length](x, U), first + length
        if first == steps:
            break
        x = casadi.MX.sym(f"x{k + 1}", nx)
        unknowns.append(x)
        start.append(np.r_[free.q[first], free.v[first]])
        lower.append(np.full(nx, -np.inf))
        upper.append(np.full(nx, np.inf))
        gaps.append(end - x)
    if at_end:
        gaps.append(at_end(end))
    options = {
        "ipopt.hessian_approximation": "limited-memory",
        "ipopt.limited_memory_max_history": 20,
        "ipopt.tol": tolerance,
        "ipopt.constr_viol_tol": 1e-9,  # gaps: what is left of them grows along the trajectory
        "ipopt.max_iter": iterations,
        "ipopt.print_level": 0,
        "ipopt.sb": "yes",
        "print_time": False,
    }
    problem = {"x": casadi.vertcat(*unknowns), "f": loss(end) + cost, "g": casadi.vertcat(*gaps)}
    solver = casadi.nlpsol("shooting", "ipopt", problem, options)
    began = time.perf_counter()
    answer = solver(x0=np.concatenate(start), lbx=np.concatenate(lower), ubx=np.concatenate(upper), lbg=0, ubg=0)
    statistics = {**solver.stats(), "seconds": time.perf_counter() - began}
    values = np.split(np.array(answer["x"]).ravel(), np.cumsum([len(s) for s in start])[:-1])
    controls = bound * np.concatenate(values[0::2]).reshape(steps, nu)
    return controls, statistics


def polish(sim, q0, v0, controls, loss, bound, iterations=50):
    """Controls that make loss(q_T, v_T) -> (value, its gradients by q_T and v_T) of one rollout smaller: L-BFGS-B."""
    from scipy.optimize import minimize

    steps = len(controls)

    def value(x):
        r = sim.rollout(q0, v0, bound * x.reshape(controls.shape))
        dQ, dV = np.zeros((2, steps + 1, sim.model.nv))
        out, dQ[-1], dV[-1] = loss(r.q[-1], r.v[-1])
        return out, bound * r.vjp(dQ, dV).u.ravel()

    start = np.clip(controls / bound, -1, 1).ravel()
    limits = [(-1, 1)] * controls.size
    answer = minimize(value, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": iterations})
    return bound * answer.x.reshape(controls.shape)


# --- pictures ---------------------------------------------------------------------------------------------------


def swing_picture(model, r, controls, cuts, path, title):
    """A cart with poles: stroboscopic, and positions and force over time with the cuts between the shots."""
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, middle, right) = plt.subplots(
            1, 3, figsize=(14, 4.2), layout="constrained", width_ratios=(1.3, 1, 1)
        )
        times, height = model.timestep * np.arange(len(r.q)), model.nv - 1 + 0.15
        names = ["cart [m]", *(f"pole {k} [rad]" for k in range(1, model.nv))]
        colours = dict(zip(model.geometry_names, COLOURS))
        low, high = r.q[:, 0].min() - 1.2, r.q[:, 0].max() + 1.2
        strobe(left, model, r.q[:: max(1, len(r.q) // 40)], colours=colours, limits=(low, high, -height, height))
        left.axhline(0, color="#999999", linewidth=0.8, zorder=1)
        left.set_title(title + "; later is darker")
        for name, q, colour in zip(names, r.q.T, COLOURS):
            middle.plot(times, q, color=colour, label=name)
        middle.set(xlabel="time [s]", title="Positions; dots: cuts between the shots")
        for q, colour in zip(r.q.T, COLOURS):
            middle.plot(times[cuts], q[cuts], "o", color=colour, markersize=4)
        middle.legend()
        right.step(times[:-1], controls[:, 0], where="post", color=COLOURS[0])
        right.set(xlabel="time [s]", ylabel="force [N]", title="Force on the cart")
        finish(figure, path)


def throw_picture(model, r, controls, path, title, limits, target=None, shift=0.0):
    """Stroboscopic (or, with a shift, one beside the other), with the way of the cube; its height and the torques over time."""
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained", width_ratios=(1.2, 1))
        colours = {"cube": COLOURS[1], "link0": COLOURS[0], "link1": COLOURS[0], "link2": COLOURS[0]}
        picked = np.linspace(0, len(r.q) - 1, 7 if shift else 12).astype(int)
        strobe(left, model, r.q[picked], colours=colours, limits=limits, shift=shift)
        if shift:
            floor = next(polygon for name, polygon in outlines(model, r.q[0]) if name == "floor")
            left.axhspan(floor[:, 1].min(), floor[:, 1].max(), color="#dddddd", zorder=0)
            for k, step in enumerate(picked):
                left.annotate(f"{1e3 * step * model.timestep:.0f} ms", (k * shift, limits[2] + 0.05), ha="center")
            left.set(xticks=[], xlabel="", title=title)
        else:
            left.plot(*r.q[:, :2].T, color=COLOURS[1], linewidth=1.0, label="way of the cube's centre", zorder=50)
            left.set_title(title + "; later is darker")
        if target is not None:
            left.plot(*target, "x", color="black", markersize=11, markeredgewidth=2, label="target", zorder=51)
            left.legend(loc="upper left")
        times = model.timestep * np.arange(len(controls))
        for k, torque in enumerate(controls.T):
            right.plot(
                times, torque, linewidth=1.0, color=(COLOURS[0], COLOURS[2], COLOURS[3])[k], label=f"joint {k + 1}"
            )
        right.set(xlabel="time [s]", ylabel="torque [N m]", title="Torques found, and height of the cube (orange)")
        right.legend(loc="upper right")
        height = right.twinx()
        height.plot(model.timestep * np.arange(len(r.q)), r.q[:, 1], "--", color=COLOURS[1])
        height.grid(False)
        height.spines["right"].set_visible(True)
        height.set_ylabel("height [m]", color=COLOURS[1])
        finish(figure, path)

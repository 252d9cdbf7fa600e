"""iLQR in NumPy on the dynamics of any engine: what coulomb.control is judged by where the models come from elsewhere.

One shooting: every plan is a rollout. Costs are those of a coulomb.control.Solver, told to `Costs` by the same verbs, which every
iteration asserts. The Hessian of the costs is that of Gauss and Newton, limits are kept by projected Newton steps.
"""

from __future__ import annotations

import mujoco
import numpy as np
from timing import FD_STEP

import coulomb
from coulomb.mjcf_export import to_mjcf

STEP_LENGTHS = 0.5 ** np.arange(6)
ARMIJO = 1e-4


class Costs:
    """add_state, add_control and add_outputs as coulomb.control.Solver has them, of constant weights and references.

    solver: one that has the same costs already; it adds up those of rollouts.
    """

    def __init__(self, solver):
        self.solver, self.model, self.horizon = solver, solver.model, solver.horizon
        self.terms = []

    def add_state(self, weight, reference):
        q, v = reference
        weight = np.broadcast_to(np.asarray(weight, float), 2 * self.model.nv)
        self.terms.append((lambda *knot: self._state(*knot, q, v), weight, True))

    def add_control(self, weight, reference):
        nv, nu = self.model.nv, self.model.nu
        by_x, by_u = np.zeros((nu, 2 * nv)), np.eye(nu)
        weight = np.broadcast_to(np.asarray(weight, float), nu)
        self.terms.append((lambda q, v, u: (u - reference, by_x, by_u), weight, False))

    def add_outputs(self, name, weight, reference=None, *, gate=None):
        wanted = np.zeros(len(weight)) if reference is None else np.asarray(reference, float)
        self.terms.append((lambda *knot: self._outputs(*knot, name, wanted, gate), np.asarray(weight, float), True))

    def _state(self, q, v, u, q_wanted, v_wanted):
        """The difference in the tangent space; of the base's rotation, Jr^-1 of the rotation vector."""
        difference = self.model.difference(q_wanted, q)
        by_x = np.eye(2 * self.model.nv)
        by_x[3:6, 3:6] = _inverse_right_jacobian(difference[3:6])
        return np.r_[difference, v - v_wanted], by_x, None

    def _outputs(self, q, v, u, name, wanted, gate):
        """sqrt(s) r and its Jacobian, where s is the gate."""
        r = self.model.output(name, q, v) - wanted
        J = self._jacobian(name, q, v)
        if gate is not None:
            y = self.model.output(gate.output, q, v)[gate.row]
            s = 1 / (1 + np.exp((y - gate.threshold) / gate.width))
            slope = (1 - s) / (2 * gate.width)
            J = np.sqrt(s) * (J - slope * np.outer(r, self._jacobian(gate.output, q, v)[gate.row]))
            r = np.sqrt(s) * r
        return r, J, None

    def _jacobian(self, name, q, v):
        return np.hstack([self.model.output_jacobian(name, q, v, wrt) for wrt in ("q", "v")])

    def total(self, Q, V, U):
        return self.solver.cost(Q, V, U)[0]

    def quadratic(self, q, v, u):
        """Value, gradients and Hessians by x and u of a knot; u None: of the last state. No term mixes x with u."""
        nx, nu = 2 * self.model.nv, self.model.nu
        lx, lxx, lu, luu = np.zeros(nx), np.zeros((nx, nx)), np.zeros(nu), np.zeros((nu, nu))
        value = 0.0
        for residual, weight, of_state in self.terms:
            if u is None and not of_state:
                continue
            r, by_x, by_u = residual(q, v, u)
            value += 0.5 * weight @ r**2
            if of_state:
                lx += by_x.T @ (weight * r)
                lxx += by_x.T @ (weight[:, None] * by_x)
            else:
                lu += by_u.T @ (weight * r)
                luu += by_u.T @ (weight[:, None] * by_u)
        return value, lx, lxx, lu, luu


def _inverse_right_jacobian(w):
    """Of SO(3), at the rotation vector w."""
    angle = np.linalg.norm(w)
    cross = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    if angle < 1e-6:
        return np.eye(3) + 0.5 * cross
    factor = 1 / angle**2 - (1 + np.cos(angle)) / (2 * angle * np.sin(angle))
    return np.eye(3) + 0.5 * cross + factor * cross @ cross


class MujocoDynamics:
    """mj_step, and mjd_transitionFD for its derivatives; `substeps` steps from knot to knot."""

    def __init__(self, model, timestep, substeps):
        self.mj = mujoco.MjModel.from_xml_string(to_mjcf(model, timestep=timestep))
        self.data = mujoco.MjData(self.mj)
        self.substeps = substeps

    def begin(self, q, v):
        mujoco.mj_resetData(self.mj, self.data)
        self.data.qpos[:], self.data.qvel[:] = q, v

    def push(self, dv):
        self.data.qvel[: len(dv)] += dv

    def knot(self, u):
        self.data.ctrl[:] = u
        for _ in range(self.substeps):
            mujoco.mj_step(self.mj, self.data)
        return self.data.qpos.copy(), self.data.qvel.copy()

    def knot_derivatives(self, u):
        """A, B of the knot, which is taken."""
        nx = 2 * self.mj.nv
        A, B = np.eye(nx), np.zeros((nx, self.mj.nu))
        A_step, B_step = np.zeros_like(A), np.zeros_like(B)
        self.data.ctrl[:] = u
        for _ in range(self.substeps):
            mujoco.mjd_transitionFD(self.mj, self.data, FD_STEP, False, A_step, B_step, None, None)
            A, B = A_step @ A, A_step @ B + B_step
            mujoco.mj_step(self.mj, self.data)
        return A, B


class CoulombDynamics:
    """Simulator.step, and its exact derivatives."""

    def __init__(self, model, timestep, substeps, **options):
        self.robot = coulomb.Simulator(model, timestep=timestep, **options)
        self.substeps = substeps

    def begin(self, q, v):
        self.robot.reset()
        self.q, self.v = q, v

    def push(self, dv):
        self.v = self.v + np.r_[dv, np.zeros(len(self.v) - len(dv))]

    def knot(self, u):
        for _ in range(self.substeps):
            self.q, self.v = self.robot.step(self.q, self.v, u)
        return self.q, self.v

    def knot_derivatives(self, u):
        nx = 2 * self.robot.model.nv
        A, B = np.eye(nx), np.zeros((nx, self.robot.model.nu))
        for _ in range(self.substeps):
            self.q, self.v = self.robot.step(self.q, self.v, u)
            d = self.robot.derivatives()
            A, B = d.A @ A, d.A @ B + d.B
        return A, B


class PythonMpc:
    """As coulomb.control.Mpc with roll=True: the plan moves one knot on, is rolled out under its feedback, and improved.

    What no step length improved is tried again at once with more regularisation, up to three times; so much is left for the next tick.
    """

    def __init__(self, model, dynamics, costs, limits, start, start_iterations):
        self.model, self.dynamics, self.costs = model, dynamics, costs
        self.lower, self.upper = limits
        self.start, self.start_iterations = start, start_iterations
        self.plan = None
        self.regularization = 1e-6

    def step(self, q, v):
        nu, nx = self.model.nu, 2 * self.model.nv
        N = self.costs.horizon
        if self.plan is None:
            U, K = self.start, np.zeros((N, nu, nx))
            Q = V = None
            iterations = self.start_iterations
        else:
            Q, V, U, K = (np.concatenate([x[1:], x[-1:]]) for x in self.plan)
            iterations = 1

        # From the state that was measured, then iterations of iLQR.
        Q, V, U, cost = self._rollout(q, v, Q, V, U, np.zeros((N, nu)), K)
        for _ in range(iterations):
            Q, V, U, K, cost = self._iterate(Q, V, U, K, cost)
        self.plan = Q, V, U, K
        self.cost = cost
        return U[0], K[0]

    def _rollout(self, q, v, Q_old, V_old, U_old, change, K):
        """(Q, V, U, cost) under u = U_old + change + K dx, kept in the limits."""
        Q, V, U = [q], [v], []
        self.dynamics.begin(q, v)
        for t in range(len(U_old)):
            u = U_old[t] + change[t]
            if Q_old is not None:
                u = u + K[t] @ np.r_[self.model.difference(Q_old[t], Q[t]), V[t] - V_old[t]]
            U.append(np.clip(u, self.lower, self.upper))
            q, v = self.dynamics.knot(U[t])
            if not (np.isfinite(q).all() and np.isfinite(v).all()):
                return None, None, None, np.inf
            Q.append(q)
            V.append(v)
        return np.array(Q), np.array(V), np.array(U), self.costs.total(Q, V, U)

    def _iterate(self, Q, V, U, K, cost):
        # The models along the plan.
        self.dynamics.begin(Q[0], V[0])
        AB = [self.dynamics.knot_derivatives(u) for u in U]
        quadratics = [self.costs.quadratic(q, v, u) for q, v, u in zip(Q, V, [*U, None])]
        assert np.isclose(sum(terms[0] for terms in quadratics), cost, rtol=1e-9), "other costs than the solver's"

        for _ in range(4):
            k, K_new, slope = self._riccati(AB, quadratics, U)
            for length in STEP_LENGTHS:
                trial = self._rollout(Q[0], V[0], Q, V, U, length * k, K_new)
                if trial[3] <= cost + ARMIJO * length * slope:
                    self.regularization = max(self.regularization / 10, 1e-6)
                    return *trial[:3], K_new, trial[3]
            self.regularization = min(10 * self.regularization, 1e3)
        return Q, V, U, K, cost

    def _riccati(self, AB, quadratics, U):
        """k, K, and the slope of the cost along k."""
        nu = self.model.nu
        k, K, slope = [], [], 0.0
        Vx, Vxx = quadratics[-1][1:3]
        for (A, B), (_, lx, lxx, lu, luu), u in zip(AB[::-1], quadratics[-2::-1], U[::-1]):
            Qx, Qu = lx + A.T @ Vx, lu + B.T @ Vx
            Qxx, Qux, Quu = lxx + A.T @ Vxx @ A, B.T @ Vxx @ A, luu + B.T @ Vxx @ B
            H = Quu + self.regularization * np.trace(Quu) / nu * np.eye(nu)
            k_t, free = boxed_newton(H, Qu, self.lower - u, self.upper - u)
            K_t = np.zeros_like(Qux)
            K_t[free] = -np.linalg.solve(H[np.ix_(free, free)], Qux[free])
            slope += k_t @ Qu
            Vx = Qx + K_t.T @ Quu @ k_t + K_t.T @ Qu + Qux.T @ k_t
            Vxx = Qxx + K_t.T @ Quu @ K_t + K_t.T @ Qux + Qux.T @ K_t
            Vxx = 0.5 * (Vxx + Vxx.T)
            k.append(k_t)
            K.append(K_t)
        return np.array(k[::-1]), np.array(K[::-1]), slope


def boxed_newton(H, g, lower, upper):
    """The minimum of 1/2 x H x + g x on the box, and which entries are free there [Tassa2014]."""
    x = np.clip(-np.linalg.solve(H, g), lower, upper)
    value = 0.5 * x @ H @ x + g @ x
    free = np.ones(len(g), bool)
    for _ in range(20):
        slope = H @ x + g
        free = ~(((x <= lower) & (slope > 0)) | ((x >= upper) & (slope < 0)))
        if not free.any() or np.linalg.norm(slope[free]) < 1e-10 * (1 + np.linalg.norm(g)):
            break
        direction = np.zeros_like(x)
        direction[free] = -np.linalg.solve(H[np.ix_(free, free)], slope[free])
        for length in 0.5 ** np.arange(12):
            trial = np.clip(x + length * direction, lower, upper)
            new = 0.5 * trial @ H @ trial + g @ trial
            if new < value:
                break
        else:
            break
        x, value = trial, new
    return x, free

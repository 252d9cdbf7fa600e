"""Proof that constraints contradict one another: no velocity satisfies them, with what friction can hold shut counted in."""

import numpy as np

DIRECTIONS = np.linspace(0, 2 * np.pi, 64, endpoint=False)  # of friction: tangents of the cone, which lies inside
FASTEST = 1e3  # 1/s: what any state of the scenes moves per unit length


def contradiction(sim, q):
    """How much the constraints of the step from q lack at least, 0 where they may be satisfied, as a speed (m/s, rad/s).

    Existence of impulses is known where a velocity leaves every cone's dual, normal velocity >= friction * slip + what the
    position correction asks, and satisfies limits and equalities (Acary, Brogliato and others: Klarbring and Pang's
    condition). Where none does, impulses inside the cones exist that cancel each other: friction can hold such a
    contact shut whatever is asked of it. A linear program with fewer demands than the step's (tangents instead of cones;
    every limit, contact and equality that the step knew, asked for half of the correction) is infeasible only if the step's is.
    """
    from scipy.optimize import linprog

    model = sim.model
    rows, least = zip(*contact_rows(sim, q), *limit_rows(sim, q))
    rows = np.array(rows)
    least = np.array(least)

    # Least slack s with rows @ v >= least - s.
    num_rows, nv = rows.shape
    cost = np.append(np.zeros(nv), 1.0)
    bounds = [(-FASTEST, FASTEST)] * nv + [(0, None)]
    demands = np.hstack([-rows, -np.ones((num_rows, 1))])
    solution = linprog(cost, A_ub=demands, b_ub=-least, bounds=bounds, method="highs")
    assert solution.status == 0, f"{model.nv} dofs: {solution.message}"
    return solution.fun


def asked(sim, gap):
    """Half of the speed that the position correction asks of a constraint; what closes a positive gap."""
    options = sim.options
    if gap >= 0:
        return -gap / sim.timestep
    depth = max(-gap - options["slop"], 0.0)
    return 0.5 * min(options["baumgarte"] * depth / sim.timestep, options["max_correction_speed"])


def contact_rows(sim, q):
    """(row, least): normal velocity less friction times slip in every direction."""
    model = sim.model
    positions, rotations = model.body_placements(q)
    bodies = list(model.body_names)

    def point_jacobian(name, point):
        body = bodies.index(name)
        return model.point_jacobian(q, body, rotations[body].T @ (point - positions[body]))[:3]

    for contact in sim.contacts:
        J = point_jacobian(contact.body_b, contact.point) - point_jacobian(contact.body_a, contact.point)
        normal = contact.normal
        tangent = np.linalg.svd(normal[None])[2][1:]
        for angle in DIRECTIONS:
            slip = np.array([np.cos(angle), np.sin(angle)]) @ tangent
            yield (normal - contact.friction * slip) @ J, asked(sim, -contact.depth)


def limit_rows(sim, q):
    """(row, least) of every joint limit, near or far."""
    model = sim.model
    for joint in np.flatnonzero(model.joint_limited):
        place = q[model.joint_q[joint]]
        row = np.zeros(model.nv)
        row[model.joint_v[joint]] = 1
        yield row, asked(sim, place - model.joint_lower[joint])
        yield -row, asked(sim, model.joint_upper[joint] - place)

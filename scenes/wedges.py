"""Proof that constraints contradict one another: no velocity satisfies them, with what friction can hold shut counted in."""

import numpy as np

ANGLES = np.linspace(0, 2 * np.pi, 64, endpoint=False)
DIRECTIONS = np.column_stack([np.cos(ANGLES), np.sin(ANGLES)])  # of friction: tangents of the cone, which lies inside
FASTEST = 1e3  # 1/s: what any state of the scenes moves per unit length


PROVED = 1e-5  # m/s that velocities lack at least: a proof, far above the rounding of a linear program


def solved_or_proved(sim, q):
    """The last step, from q, was solved as posed; or it is relaxed, names what contradicts, and that is proved."""
    if sim.status.converged:
        return True
    return bool(sim.status.contradictions) and contradiction(sim, q) > PROVED


def contradiction(sim, q):
    """How much the constraints of the step from q lack at least, 0 where they may be satisfied, as a speed (m/s, rad/s).

    Existence of impulses is known where a velocity leaves every cone's dual, normal velocity >= friction * slip + what the
    position correction asks, and satisfies limits and equalities (Klarbring and Pang; [Acary2011]). Where none does, impulses inside the cones exist that cancel each other: friction can hold such a
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


def polygon(sim):
    """Corners of the friction polygon of contact="lcp", in multiples of mu lambda_N, in the plane of the two tangents."""
    options = sim.options
    sides, inscribed = 2 * options["friction_directions"], options["friction_polygon"] == "inscribed"
    angles = 2 * np.pi * (np.arange(sides) + (0 if inscribed else 0.5)) / sides
    radius = 1 if inscribed else 1 / np.cos(np.pi / sides)
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def contact_rows(sim, q):
    """(row, least): normal velocity less friction times slip in every direction."""
    model = sim.model
    positions, rotations = model.body_placements(q)
    bodies = list(model.body_names)

    def point_jacobian(name, point):
        body = bodies.index(name)
        return model.point_jacobian(q, body, rotations[body].T @ (point - positions[body]))[:3]

    corners = polygon(sim) if sim.options["contact"] == "lcp" else DIRECTIONS
    for contact in sim.contacts:
        J = point_jacobian(contact.body_a, contact.point) - point_jacobian(contact.body_b, contact.point)
        tangents = np.array(contact.frame)[:2]
        for corner in corners:
            yield (contact.normal - contact.friction * corner @ tangents) @ J, asked(sim, -contact.depth)


def limit_rows(sim, q):
    """(row, least) of every joint limit, near or far."""
    model = sim.model
    for joint in np.flatnonzero(model.joint_limited):
        place = q[model.joint_q[joint]]
        row = np.zeros(model.nv)
        row[model.joint_v[joint]] = 1
        yield row, asked(sim, place - model.joint_lower[joint])
        yield -row, asked(sim, model.joint_upper[joint] - place)

"""Pictures with matplotlib: a scene with its contact forces, and the error of finite differences over their step size."""

from __future__ import annotations

import numpy as np

MODE_COLOURS = {"sticking": "#1b7837", "sliding": "#d95f02", "separating": "#999999"}


def _pyplot():
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("pictures need the 'matplotlib' package: pip install 'coulomb[demo]'") from error
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    return pyplot


def _revolve(radii_and_heights, sides=14):
    """Quads of a body of revolution around z."""
    angles = np.linspace(0, 2 * np.pi, sides + 1)
    rings = [
        np.stack([r * np.cos(angles), r * np.sin(angles), np.full(sides + 1, z)], axis=1) for r, z in radii_and_heights
    ]
    return [np.array([a[i], a[i + 1], b[i + 1], b[i]]) for a, b in zip(rings, rings[1:]) for i in range(sides)]


def _hull(points):
    """Triangles of the convex hull; a box of the points' extent where SciPy is missing."""
    try:
        from scipy.spatial import ConvexHull
    except ImportError:
        centre, half = (points.max(0) + points.min(0)) / 2, np.ptp(points, axis=0) / 2
        return [face + centre for face in _box(half)]
    return [points[simplex] for simplex in ConvexHull(points).simplices]


def _box(half):
    faces = []
    for axis in range(3):
        for sign in (-1, 1):
            corners = np.zeros((4, 3))
            corners[:, axis] = sign
            corners[:, (axis + 1) % 3] = [-1, 1, 1, -1]
            corners[:, (axis + 2) % 3] = [-1, -1, 1, 1]
            faces.append(corners * half)
    return faces


def _faces(model, geometry):
    """Polygons of a geometry in its own frame; none for a half-space."""
    kind, size = model.geometry_types[geometry], model.geometry_size[geometry]
    arc = np.linspace(-np.pi / 2, np.pi / 2, 9)
    if kind == "box":
        return _box(size)
    if kind == "sphere":
        return _revolve([(size[0] * np.cos(a), size[0] * np.sin(a)) for a in arc])
    if kind == "ellipsoid":
        return [face * size for face in _revolve([(np.cos(a), np.sin(a)) for a in arc])]
    if kind == "cylinder":
        return _revolve([(0, -size[1]), (size[0], -size[1]), (size[0], size[1]), (0, size[1])])
    if kind == "capsule":
        return _revolve([(size[0] * np.cos(a), size[0] * np.sin(a) + np.sign(a) * size[1]) for a in arc if a != 0])
    if kind == "mesh":
        return _hull(model.mesh_vertices(model.geometry_mesh[geometry]))
    return []


def scene_picture(model, q, contacts, timestep, path, title="", view=(14, -60)):
    """Draws the geometries at q and the contact forces (impulse / timestep) as arrows, coloured by mode. Returns path."""
    plt = _pyplot()
    from matplotlib.lines import Line2D
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = plt.figure(figsize=(8, 6.4))
    axes = figure.add_subplot(projection="3d", computed_zorder=False)
    positions, turns = model.geometry_placements(q)
    polygons, shades, light = [], [], np.array([0.35, -0.6, 0.72])
    for geometry, body in enumerate(model.geometry_body):
        if not model.body_mass[body] > 0 and model.geometry_types[geometry] == "half_space":
            continue
        for face in _faces(model, geometry):
            polygon = face @ turns[geometry].T + positions[geometry]
            normal = np.cross(polygon[2] - polygon[0], polygon[1] - polygon[-1])
            length = np.linalg.norm(normal)
            brightness = 0.62 + 0.38 * abs(normal @ light) / length if length > 0 else 0.8
            polygons.append(polygon)
            shades.append((0.52 * brightness, 0.66 * brightness, 0.86 * brightness, 0.62))
    cloud = np.concatenate(polygons) if polygons else np.zeros((1, 3))
    forces = [(c, _force_on_upper(c) / timestep) for c in contacts]
    centre, reach = (cloud.max(0) + cloud.min(0)) / 2, max(0.55 * np.ptp(cloud, axis=0).max(), 0.05)
    largest = max((np.linalg.norm(f) for _, f in forces), default=0.0)
    low, ground = cloud[:, 2].min(), "half_space" in model.geometry_types
    if ground:
        x, y = np.meshgrid(*[np.linspace(centre[i] - reach, centre[i] + reach, 9) for i in (0, 1)])
        axes.plot_wireframe(x, y, np.full_like(x, min(low, 0.0)), color="#bbbbbb", linewidth=0.5, zorder=0)
    axes.add_collection3d(
        Poly3DCollection(polygons, facecolors=shades, edgecolors=(0.15, 0.2, 0.3, 0.35), linewidths=0.35, zorder=1)
    )
    for contact, force in forces:
        colour = MODE_COLOURS.get(contact.mode, "#7570b3")
        axes.scatter(*contact.point, color=colour, s=18, zorder=3, depthshade=False)
        if largest > 0:
            axes.quiver(
                *contact.point,
                *(force * 0.75 * reach / largest),
                color=colour,
                linewidth=2.2,
                arrow_length_ratio=0.12,
                zorder=4,
            )
    modes = sorted({c.mode for c, _ in forces})
    handles = [Line2D([], [], color=MODE_COLOURS.get(m, "#7570b3"), lw=2.2, label=f"contact force, {m}") for m in modes]
    if handles:
        axes.legend(handles=handles, loc="upper right", frameon=False)
    scale = f"longest arrow {largest:.3g} N" if largest > 0 else "no contact force"
    axes.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", title=f"{title}\n{scale}".strip())
    axes.set_xlim(centre[0] - reach, centre[0] + reach)
    axes.set_ylim(centre[1] - reach, centre[1] + reach)
    axes.set_zlim(low, low + 1.5 * reach)
    axes.set_box_aspect((1, 1, 0.75))
    axes.view_init(*view)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(plt.MaxNLocator(4))
        axis.set_pane_color((1, 1, 1, 0))
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    return path


def _force_on_upper(contact):
    """The impulse on the partner above, so that arrows of support point up."""
    impulse = np.asarray(contact.impulse)
    return impulse if contact.normal[2] >= 0 else -impulse


def error_picture(curves, path, title, ylabel="relative error", note=None):
    """curves: label -> (step sizes, errors), drawn log-log. Returns path."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.6))
    for (label, (sizes, errors)), marker in zip(curves.items(), "osd^v*"):
        axes.loglog(sizes, errors, marker=marker, markersize=4.5, label=label)
    axes.set(xlabel="finite-difference step size [m, rad, m/s, rad/s]", ylabel=ylabel, title=title)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    if note:
        figure.text(0.5, -0.03, note, ha="center", fontsize=8.5, color="#555555")
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    return path


def convergence_picture(curves, path, title, ylabel, xlabel="iteration", claims=()):
    """curves: label -> values per iteration, log y. claims: (label, level, iteration or None) drawn as dashed lines. Returns path."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7, 4.6))
    for (label, values), marker in zip(curves.items(), "osd^v*Px"):
        values = np.maximum(np.asarray(values, dtype=float), 1e-17)
        axes.semilogy(
            range(len(values)), values, marker=marker if len(values) < 60 else None, markersize=4, label=label
        )
    for label, level, iteration in claims:
        axes.axhline(level, color="#555555", linestyle="--", linewidth=1)
        if iteration is not None:
            axes.axvline(iteration, color="#555555", linestyle=":", linewidth=1)
        axes.annotate(
            label,
            (0.99, level),
            xycoords=("axes fraction", "data"),
            ha="right",
            va="bottom",
            fontsize=8.5,
            color="#555555",
        )
    axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
    return path

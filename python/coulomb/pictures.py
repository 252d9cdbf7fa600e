"""Pictures with matplotlib: a scene with its contact forces, and the error of finite differences over their step size."""

from __future__ import annotations

import numpy as np

from ._shapes import surface

MODE_COLOURS = {"sticking": "#1b7837", "sliding": "#d95f02", "separating": "#999999"}
SIDES = 16  # of what is round: enough for a shaded picture, and few enough for matplotlib


def _pyplot():
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError("pictures need the 'matplotlib' package: pip install 'coulomb[demo]'") from error
    matplotlib.use("Agg", force=False)
    from matplotlib import pyplot

    return pyplot


STYLE = {
    "font.size": 10.5,
    "axes.titlesize": 11.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
COLOURS = ("#1f5a99", "#d95f02", "#1b7837", "#7b3294", "#8c6d1f", "#b2182b", "#444444")


def _hull(points):
    """Triangles of the convex hull; a box of the points' extent where SciPy is missing."""
    try:
        from scipy.spatial import ConvexHull
    except ImportError:
        centre, half = (points.max(0) + points.min(0)) / 2, np.ptp(points, axis=0) / 2
        vertices, loops, _ = surface("box", half, SIDES)
        return list((vertices * half + centre)[loops])
    return [points[simplex] for simplex in ConvexHull(points).simplices]


def _faces(model, geometry):
    """Polygons of a geometry in its own frame; none for a half-space."""
    kind, size = model.geometry_types[geometry], model.geometry_size[geometry]
    if kind == "half_space":
        return []
    if kind == "mesh":
        return _hull(model.mesh_vertices(model.geometry_mesh[geometry]))
    if kind == "surface":
        number = model.geometry_mesh[geometry]
        return list(np.asarray(model.surface_vertices(number))[np.asarray(model.surface_triangles(number))])
    vertices, loops, scale = surface(kind, size, SIDES)
    return list((vertices * scale)[loops])


def _polygons(model, q):
    """World polygons, face colours and edge colours of all geometries but half-spaces."""
    positions, turns = model.geometry_placements(q)
    polygons, faces, edges, light = [], [], [], np.array([0.35, -0.6, 0.72])
    for geometry in range(model.num_geometries):
        flat = model.geometry_types[geometry] == "box"
        for face in _faces(model, geometry):
            polygon = face @ turns[geometry].T + positions[geometry]
            normal = np.cross(polygon[2] - polygon[0], polygon[1] - polygon[-1])
            length = np.linalg.norm(normal)
            shade = 0.62 + 0.38 * abs(normal @ light) / length if length > 0 else 0.8
            colour = (0.55 * shade, 0.69 * shade, 0.88 * shade, 0.8)
            polygons.append(polygon)
            faces.append(colour)
            edges.append((0.15, 0.2, 0.3, 0.5) if flat else colour)
    return polygons, faces, edges


def _ground(axes, centre, reach):
    """Lines at round distances on z = 0; returns their distance (m)."""
    spacing = 10 ** np.floor(np.log10(reach))
    spacing = spacing / 2 if reach / spacing < 2 else spacing
    low = np.ceil((centre[:2] - reach) / spacing) * spacing
    high = np.floor((centre[:2] + reach) / spacing) * spacing
    for x in np.arange(low[0], high[0] + spacing / 2, spacing):
        axes.plot([x, x], [low[1], high[1]], [0, 0], color="#c4c4c4", linewidth=0.7, zorder=0)
    for y in np.arange(low[1], high[1] + spacing / 2, spacing):
        axes.plot([low[0], high[0]], [y, y], [0, 0], color="#c4c4c4", linewidth=0.7, zorder=0)
    return spacing


def _fill(figure, axes, points, most=1.5):
    """Zooms in as far as all points stay inside the axes, with a little room, and at most by `most`."""
    from mpl_toolkits.mplot3d import proj3d

    zoom = most
    for _ in range(4):  # the perspective is not linear in the zoom
        axes.set_box_aspect((1, 1, 1), zoom=zoom)
        figure.canvas.draw()
        x, y, _ = proj3d.proj_transform(*points.T, axes.get_proj())
        at = axes.transAxes.inverted().transform(axes.transData.transform(np.stack([x, y], axis=1)))
        beyond = 2 * np.abs(at - 0.5).max() / 0.96
        if beyond <= 1:
            return
        zoom /= beyond


def scene_picture(model, q, contacts, timestep, path, title="", view=(14, -60)):
    """Draws the geometries at q and the contact forces (impulse / timestep) as arrows, coloured by mode. Returns path.

    q: (nq,). contacts: Simulator.contacts. timestep: s. path: of the image. title: above it. view: elevation and azimuth, degrees.
    ImportError if matplotlib is missing.
    """
    plt = _pyplot()
    from matplotlib.lines import Line2D
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = plt.figure(figsize=(6.4, 5.2))
    axes = figure.add_axes((0, 0, 1, 0.94), projection="3d", computed_zorder=False)
    polygons, faces, edges = _polygons(model, q)
    cloud = np.concatenate(polygons) if polygons else np.zeros((1, 3))
    forces = [(c, _force_on_upper(c) / timestep) for c in contacts]
    centre, reach = (cloud.max(0) + cloud.min(0)) / 2, max(0.5 * np.ptp(cloud, axis=0).max(), 0.05)
    largest = max((np.linalg.norm(f) for _, f in forces), default=0.0)
    notes = []
    if "half_space" in model.geometry_types:
        notes.append(f"grid {_ground(axes, centre, 1.15 * reach):.3g} m")
    axes.add_collection3d(Poly3DCollection(polygons, facecolors=faces, edgecolors=edges, linewidths=0.3, zorder=1))
    tips = [np.zeros((0, 3))]
    for contact, force in forces:
        colour = MODE_COLOURS.get(contact.mode, "#7570b3")
        axes.scatter(*contact.point, color=colour, s=16, zorder=3, depthshade=False)
        if np.linalg.norm(force) > 1e-3 * largest:
            arrow = force * 0.7 * reach / largest
            axes.quiver(*contact.point, *arrow, color=colour, linewidth=2.2, arrow_length_ratio=0.14, zorder=4)
            tips.append(np.stack([contact.point, contact.point + arrow]))
    modes = sorted({c.mode for c, _ in forces})
    handles = [
        Line2D([], [], color=MODE_COLOURS.get(m, "#7570b3"), lw=2.2, marker="o", ms=4, label=f"contact force, {m}")
        for m in modes
    ]
    if handles:
        figure.legend(handles=handles, loc="upper right", bbox_to_anchor=(0.99, 0.93), frameon=False, fontsize=9.5)
    notes.append(f"longest arrow {largest:.3g} N" if largest > 0 else "no contact force")
    figure.text(0.5, 0.985, title, ha="center", va="top", fontsize=13)
    figure.text(0.02, 0.02, ", ".join(notes), fontsize=9.5, color="#555555")
    for axis, middle in (("x", centre[0]), ("y", centre[1]), ("z", centre[2])):
        getattr(axes, f"set_{axis}lim")(middle - reach, middle + reach)
    axes.view_init(*view)
    axes.set_axis_off()
    _fill(figure, axes, np.concatenate([cloud, *tips]))
    figure.savefig(path, dpi=160)
    plt.close(figure)
    return path


def _force_on_upper(contact):
    """The impulse on the partner above, so that arrows of support point up."""
    impulse = np.asarray(contact.impulse)
    return impulse if contact.normal[2] >= 0 else -impulse


def _draw_curves(axes, draw, curves):
    """One colour per label; the curves of finite differences are dashed, with open marks, in the colour of their partner."""
    colours = {}
    for label, (x, y) in curves.items():
        dashed = label.endswith("differences")
        colour = colours.setdefault(
            label.removesuffix("differences").removesuffix("analytic").rstrip(", "), len(colours)
        )
        marks = {} if len(x) > 60 else {"marker": "osD^vP*"[colour % 7], "markersize": 7 if dashed else 4}
        marks["markerfacecolor"] = "none" if dashed else COLOURS[colour % 7]
        draw(x, y, "--" if dashed else "-", color=COLOURS[colour % 7], label=label, **marks)
    axes.legend()


def error_picture(curves, path, title, ylabel="relative error", note=None):
    """Errors over the step size of finite differences. curves: label -> (step sizes, errors), drawn log-log. Returns path."""
    plt = _pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.6, 4.3))
        _draw_curves(axes, axes.loglog, curves)
        axes.set(xlabel="step size of the differences [m, rad, m/s, rad/s]", ylabel=ylabel, title=title)
        if note:
            figure.text(0.5, -0.02, note, ha="center", va="top", fontsize=9, color="#555555")
        figure.savefig(path, dpi=160, bbox_inches="tight")
        plt.close(figure)
    return path


def convergence_picture(curves, path, title, ylabel, xlabel="iteration", claims=()):
    """curves: label -> values per iteration, log y. claims: (label, level, iteration or None), dashed lines. Returns path."""
    plt = _pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.6, 4.3))
        lines = {k: (np.arange(len(v)), np.maximum(np.asarray(v, dtype=float), 1e-17)) for k, v in curves.items()}
        _draw_curves(axes, axes.semilogy, lines)
        for label, level, iteration in claims:
            axes.axhline(level, color="#555555", linestyle=":", linewidth=1.2)
            if iteration is not None:
                axes.plot([iteration], [level], marker="x", color="black", markersize=9, markeredgewidth=2)
            place = {"xy": (0.99, level), "xycoords": ("axes fraction", "data"), "ha": "right", "va": "bottom"}
            axes.annotate(label, fontsize=9, color="#444444", **place)
        axes.set(xlabel=xlabel, ylabel=ylabel, title=title)
        axes.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
        figure.savefig(path, dpi=160, bbox_inches="tight")
        plt.close(figure)
    return path

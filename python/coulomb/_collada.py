"""Triangles and colours of COLLADA files (.dae), which ROS packages bring: numbers by numpy, so that 30 MB take a second.

As the loader of collision meshes does: transforms of nodes count, the file's unit and up axis do not. Textures, lines and animations
are left out.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np

from ._shapes import triangulate


def read_collada(path):
    """[(vertices (n, 3) m, faces (m, 3), rgba or None)], one for each group of triangles in the scene. ValueError, ParseError."""
    root = ElementTree.parse(path).getroot()
    for element in root.iter():  # names without the namespace
        element.tag = element.tag.rpartition("}")[2]
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}

    geometries: dict = {}
    found: list = []

    def walk(node, place):
        place = place @ _transform(node)
        for child in node:
            if child.tag == "node":
                walk(child, place)
            elif child.tag == "instance_node":
                walk(_target(by_id, child, "url"), place)
            elif child.tag == "instance_geometry":
                key = child.get("url")
                if key not in geometries:
                    geometries[key] = _triangles(_target(by_id, child, "url"), by_id)
                symbols = {m.get("symbol"): m for m in child.iter("instance_material")}
                for vertices, faces, symbol in geometries[key]:
                    material = _target(by_id, symbols[symbol], "target") if symbol in symbols else by_id.get(symbol)
                    found.append((vertices @ place[:3, :3].T + place[:3, 3], faces, _colour(material, by_id)))

    instance = root.find("scene/instance_visual_scene")
    scenes = root.findall("library_visual_scenes/visual_scene")
    scene = _target(by_id, instance, "url") if instance is not None else scenes[0] if scenes else root
    for node in scene.findall("node"):
        walk(node, np.eye(4))
    return found


def _target(by_id, element, attribute):
    name = (element.get(attribute) or "").removeprefix("#")
    if name not in by_id:
        raise ValueError(f"<{element.tag}> points to {name!r}, which is not there")
    return by_id[name]


def _numbers(element, kind=float):
    return np.array((element.text or "").split(), dtype=kind)


def _transform(node):
    """(4, 4): the node's own transforms, in their order."""
    place = np.eye(4)
    for child in node:
        step = np.eye(4)
        if child.tag == "matrix":
            step = _numbers(child).reshape(4, 4)
        elif child.tag == "translate":
            step[:3, 3] = _numbers(child)
        elif child.tag == "scale":
            step[:3, :3] = np.diag(_numbers(child))
        elif child.tag == "rotate":
            *axis, degrees = _numbers(child)
            x, y, z = np.array(axis) / np.linalg.norm(axis)
            K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            step[:3, :3] += np.sin(np.radians(degrees)) * K + (1 - np.cos(np.radians(degrees))) * K @ K
        place = place @ step
    return place


def _triangles(geometry, by_id):
    """[(vertices, faces, material symbol)] of <triangles>, <polylist> and <polygons>."""
    found = []
    for group in geometry.findall("mesh/*"):
        if group.tag not in ("triangles", "polylist", "polygons"):
            continue

        # Which of the numbers of a corner is its position.
        inputs = group.findall("input")
        width = 1 + max(int(i.get("offset", 0)) for i in inputs)
        vertex = next(i for i in inputs if i.get("semantic") == "VERTEX")
        offset = int(vertex.get("offset", 0))
        positions = next(i for i in _target(by_id, vertex, "source") if i.get("semantic") == "POSITION")
        source = _target(by_id, positions, "source")
        accessor = source.find("technique_common/accessor")
        stride = int(accessor.get("stride", 3)) if accessor is not None else 3
        vertices = _numbers(source.find("float_array")).reshape(-1, stride)[:, :3]

        # Polygons as fans.
        corners = [_numbers(p, int)[offset::width] for p in group.findall("p")]
        if group.tag == "triangles":
            faces = np.concatenate([np.zeros(0, int), *corners]).reshape(-1, 3)
        else:
            corners = (
                corners
                if group.tag == "polygons"
                else np.split(corners[0], np.cumsum(_numbers(group.find("vcount"), int))[:-1])
            )
            faces = triangulate(corners)
        if len(faces):
            found.append((vertices, faces, group.get("material")))
    return found


def _colour(material, by_id):
    """The diffuse colour of a material's effect; None where it has none, or a texture."""
    if material is None or material.find("instance_effect") is None:
        return None
    effect = _target(by_id, material.find("instance_effect"), "url")
    colour = next((d.find("color") for d in effect.iter("diffuse")), None)
    return None if colour is None else tuple(float(c) for c in [*_numbers(colour)[:3], 1.0])

"""The <visual> elements of a URDF, placed on the bodies of a Model."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np

from .. import _core
from .meshes import read_mesh
from .poses import from_rpy, quaternions
from .visuals import Visual

GREY = (0.7, 0.7, 0.72, 1.0)


@dataclass(frozen=True)
class UrdfVisuals:
    """Where a robot was read from: a path or the XML itself, and where package:// is looked up."""

    path_or_xml: str
    package_dirs: tuple[str, ...] = ()

    @classmethod
    def of(cls, path_or_xml, package_dirs=()):
        """Found again from another working folder."""
        if path_or_xml.lstrip().startswith("<"):
            return cls(path_or_xml, tuple(package_dirs))
        return cls(os.path.abspath(path_or_xml), tuple(os.path.abspath(folder) for folder in package_dirs))

    def read(self, model, part):
        """The robot's Visuals. FileNotFoundError, ValueError: which mesh of which link, and what is wrong with it."""
        is_xml = self.path_or_xml.lstrip().startswith("<")
        source = "URDF string" if is_xml else f"URDF {self.path_or_xml!r}"
        try:
            root = ElementTree.fromstring(self.path_or_xml) if is_xml else ElementTree.parse(self.path_or_xml).getroot()
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{source}: the file that the model was read from no longer exists, so its visuals cannot be read"
            ) from None
        except ElementTree.ParseError as error:
            raise ValueError(f"{source}: {error}") from error
        bodies, places = _carriers(root, model, part, source)
        colours = {m.get("name"): _rgba(m) for m in root.iter("material") if m.find("color") is not None}

        meshes, found = {}, []
        for link in root.findall("link"):
            turn, position = places[link.get("name")]
            for number, visual in enumerate(link.findall("visual")):
                what = f"{source}: visual {number} of link {link.get('name')!r}"
                local_turn, local_position = _origin(visual)
                place = {
                    "name": visual.get("name") or f"{link.get('name')}_{number}",
                    "body": bodies[link.get("name")],
                    "position": position + turn @ local_position,
                    "quaternion": quaternions(turn @ local_turn),
                }
                found += self._shapes(visual, place, colours, meshes, what)
        return found

    def _shapes(self, visual, place, colours, meshes, what):
        """The Visuals of one element: several where a mesh has several colours."""
        material = visual.find("material")
        rgba = None
        if material is not None:
            rgba = _rgba(material) if material.find("color") is not None else colours.get(material.get("name"))
        geometry = visual.find("geometry")
        shape = geometry[0] if geometry is not None and len(geometry) else None
        if shape is None:
            raise ValueError(f"{what}: has no geometry")

        if shape.tag == "mesh":
            file = shape.get("filename") or ""
            scale = _numbers(shape, "scale", 3, (1.0, 1.0, 1.0), what)
            key = (file, tuple(scale))
            if key not in meshes:
                meshes[key] = read_mesh(self._found(file, what), scale, what)
            return [
                Visual(kind="mesh", vertices=vertices, faces=faces, rgba=rgba or own or GREY, **place)
                for vertices, faces, own in meshes[key]
            ]
        if shape.tag == "box":
            size = _numbers(shape, "size", 3, None, what) / 2
        elif shape.tag == "sphere":
            size = np.array([*_numbers(shape, "radius", 1, None, what), 0, 0])
        elif shape.tag in ("cylinder", "capsule"):
            length = _numbers(shape, "length", 1, None, what)[0]
            size = np.array([*_numbers(shape, "radius", 1, None, what), length / 2, 0])
        else:
            raise ValueError(f"{what}: <{shape.tag}> is not a shape; expected box, sphere, cylinder, capsule or mesh")
        return [Visual(kind=shape.tag, size=size, rgba=rgba or GREY, **place)]

    def _found(self, file, what):
        """The path of a mesh, looked for where collision meshes are."""
        is_xml = self.path_or_xml.lstrip().startswith("<")
        folders = _core._package_folders("" if is_xml else self.path_or_xml, self.package_dirs)
        try:
            return _core._find_mesh(file, folders, what)
        except ValueError as error:
            raise FileNotFoundError(
                f"{error}, or show the collision shapes: visuals='collision' (coulomb view --collision)"
            ) from None


def _numbers(element, name, count, default, what):
    text = element.get(name)
    if text is None and default is not None:
        return np.array(default)
    try:
        values = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"{what}: <{element.tag}> {name}: got {text!r}, expected {count} finite numbers")
    return values


def _origin(element):
    """(3, 3) and (3,) of an <origin>."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(3), np.zeros(3)
    what = f"<origin> of a <{element.tag}>"
    return from_rpy(_numbers(origin, "rpy", 3, (0, 0, 0), what)), _numbers(origin, "xyz", 3, (0, 0, 0), what)


def _rgba(material):
    return tuple(_numbers(material.find("color"), "rgba", 4, None, f"<material> {material.get('name')!r}"))


def _carriers(root, model, part, source):
    """link -> index of the body that carries it, and link -> (3, 3), (3,) of the link in that body's frame.

    ValueError: names links that have visuals and no body.
    """
    joints = {j.find("child").get("link"): j for j in root.findall("joint")}
    names = [link.get("name") for link in root.findall("link")]

    # A link behind a fixed joint rides on the link before it.
    carrier, places = {}, {}

    def place(link):
        if link in places:
            return
        joint = joints.get(link)
        carrier[link], places[link] = link, (np.eye(3), np.zeros(3))
        if joint is None or joint.get("type") != "fixed":
            return
        parent = joint.find("parent").get("link")
        place(parent)
        (turn, position), (local_turn, local_position) = places[parent], _origin(joint)
        carrier[link], places[link] = carrier[parent], (turn @ local_turn, position + turn @ local_position)

    for name in names:
        place(name)

    # The body of a link has its name, or name_2, ... where that was taken; its parent tells the two apart.
    moving = {carrier[name] for name in names}
    link_of: dict = {}
    for body in range(part.first_body, part.first_body + part.num_bodies):
        name = model.body_names[body]
        stem = name.rpartition("_")[0] if name.rpartition("_")[2].isdigit() else name
        above = link_of.get(int(model.body_parent[body]))
        for link in (name, stem):
            joint = joints.get(link)
            on_the_world = joint is None or joint.get("type") == "floating"
            parent = None if on_the_world else carrier[joint.find("parent").get("link")]
            if link in moving and parent == above and link not in link_of.values():
                link_of[body] = link
                break
    body_of = {link: body for body, link in link_of.items()}
    lost = sorted(link.get("name") for link in root.findall("link") if link.find("visual") is not None)
    lost = [name for name in lost if carrier[name] not in body_of]
    if lost:
        raise ValueError(f"{source}: links {lost}: the model has no bodies for them; was the file changed since?")
    return {name: body_of[carrier[name]] for name in names if carrier[name] in body_of}, places

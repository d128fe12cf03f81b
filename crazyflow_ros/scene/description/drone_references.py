"""What a world refers to of drones by name, such as the site "CoM:cf0" in a tendon."""

from __future__ import annotations

import re
from typing import NamedTuple

import mujoco

from crazyflow_ros.scene.description.elements import parsed

_SECTIONS = ("tendon", "equality", "contact", "actuator", "sensor")
_ATTRIBUTES = re.compile(r"(site|body|joint)[12]?")
_NAME = re.compile(r"\w+:(\w+)", re.ASCII)


class DroneReference(NamedTuple):
    """A reference to a part of a drone."""

    kind: str
    """What the part is: site, body or joint."""
    name: str
    """Name of the part, such as "CoM:cf0"."""
    drone: str
    """Name of the drone, such as "cf0"."""


def references(text: str) -> list[DroneReference]:
    """Return what an MJCF text refers to of drones, each part once."""
    if ":" not in text:
        return []
    root = parsed(text)
    own = {element.get("name") for element in root.iter()}
    found = [
        DroneReference(kind[1], value, drone[1])
        for section in root.children
        if section.tag in _SECTIONS
        for element in section.iter()
        for attribute, value in element.attributes.items()
        if (kind := _ATTRIBUTES.fullmatch(attribute)) and (drone := _NAME.fullmatch(value))
        if value not in own
    ]
    return list(dict.fromkeys(found))


def stand_in(spec: mujoco.MjSpec, text: str) -> None:
    """Add something for what a text refers to of drones, so that the world compiles without."""
    for kind, name, drone in references(text):
        body = spec.body(f"drone:{drone}")
        if body is None:
            body = spec.worldbody.add_body(name=f"drone:{drone}", mass=1.0, inertia=[1.0] * 3)
            body.explicitinertial = True
            body.add_freejoint(name=f"free:{drone}")
        if kind == "site" and spec.site(name) is None:
            body.add_site(name=name)
        elif kind == "joint" and spec.joint(name) is None:
            rotor = body.add_body(mass=1.0, inertia=[1.0] * 3)
            rotor.explicitinertial = True
            rotor.add_joint(name=name)

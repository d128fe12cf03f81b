"""One drone as MJCF: the drawing in its folder with its figures filled in."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.checks.limits import shown, unknown
from crazyflow_ros.drones import drawing_of, load_drone
from crazyflow_ros.drones.rotors import Rotors
from crazyflow_ros.scene.description import read
from crazyflow_ros.scene.groups import UNUSED_GROUP

LED = "led_"
"""Prefix of the materials that each drone has of its own, so that their colours can differ, and of
the geoms with these materials."""
HULL_COLOR = "0.16 0.17 0.18 1"
"""Colour of drones that are drawn as one box."""
TRACK_CAMERA = {
    "name": "track_cam",
    "mode": "trackcom",
    "pos": "-1 0 0.5",
    "xyaxes": "0 -1 0 1 0 2",
}
"""A camera that follows the drone at a distance, without turning."""
ROTOR_TIME_CONSTANT = 0.05
"""Time constant of the actuators [s] in MuJoCo's own simulation; `dynamics` does not use it."""

_MIDDLE = 1e-6  # m
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NEEDED = (
    *(f"worldbody/body/site[@name='{name}']" for name in ("imu", "CoM", "range")),
    "worldbody/body/camera[@name='fpv_cam']",
    "sensor/gyro[@name='gyro']",
    "sensor/accelerometer[@name='accelerometer']",
    "sensor/framequat[@name='orientation']",
)
"""Parts that a drawing has to have, besides the drone's body, its rotors with their joints, and its
two collision shapes."""


class DroneMjcf(NamedTuple):
    """The MJCF of one drone."""

    mjcf: ET.Element
    """Element `mujoco` with the body "drone" in its worldbody."""
    assets: Mapping[str, bytes]
    """Content of the files that the MJCF names."""


def load_drawing(drone_model: str, *, mocap: bool = False, fused: bool = False) -> DroneMjcf:
    """Return the MJCF of one drone with inertias, limits and collision shape.

    Args:
        drone_model: Name of the drone model, as in `crazyflow_ros.drones.Drone`, or path of a
            drone's folder.
        mocap: Leave out joints, actuators and sensors; add LEDs and a camera that follows the
            drone; collide as a sphere. Otherwise there are a free joint "free" and a box.
        fused: Draw the drone as one box, without rotors and LEDs; only with `mocap`.

    Raises:
        ValueError: There is no such drone model, or its drawing cannot be used.
    """
    figures = load_drone(drone_model)
    file, names = drawing_of(drone_model)
    try:
        mjcf, assets = _read(file, names, figures["rotors"])
        drone = _child(mjcf, "worldbody/body[@name='drone']")
        rotors = [_child(drone, f"body[@name='rotor{i}']") for i in range(len(figures["rotors"]))]
        _set_inertials(drone, rotors, figures)
        _choose_box(drone, mocap)
        _set_collision(drone, "col_sphere" if mocap else "col_box")
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from None
    if mocap:
        drone.set("mocap", "true")
        if drone.find("camera[@name='track_cam']") is None:
            ET.SubElement(drone, "camera", TRACK_CAMERA)
        for rotor in rotors:
            rotor.remove(_child(rotor, "joint"))
        if fused:
            _fuse(drone)
            _remove_leds(mjcf, drone)
        mjcf.remove(_child(mjcf, "sensor"))
    else:
        _remove_leds(mjcf, drone)
        drone.insert(0, ET.Element("freejoint", name="free"))
        actuators = ET.SubElement(mjcf, "actuator")
        speed_limit = f"0 {numbers(max_rotor_speed(figures))}"
        for i, inertia in enumerate(figures["rotors"].prop_inertia):
            name, gain = f"rotor{i}", numbers(inertia / ROTOR_TIME_CONSTANT)  # N m/(rad/s)
            ET.SubElement(
                actuators, "velocity", name=name, joint=name, kv=gain, ctrlrange=speed_limit
            )
    return DroneMjcf(mjcf, assets)


def _read(file: Path, figures: Mapping[str, Any], rotors: Rotors) -> DroneMjcf:
    """Return the drawing in a file, with its placeholders filled in.

    `{name}` in an attribute is a figure. An element with `{i}` in its name is drawn for each rotor,
    with its place `{x}`, `{y}` and `{z}` [m], the attitude `{tilt}` (wxyz) that turns z to its
    axis, `{end}` (front or rear), and the signs `{spin}` and `{counter}`, empty or -, of its sense
    of rotation and of the other one.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no MJCF of a drone, or has a placeholder without a figure.
    """
    description = read(file)
    mjcf = ET.fromstring(description.text)
    values = {name: numbers(value) for name, value in figures.items()}
    each = [values | _placed(i, rotors) for i in range(len(rotors))]
    if "bounds" not in figures:  # folders of drones that have the Crazyflie's drawing may lack it
        for body in mjcf.iterfind("worldbody/body"):
            for box in body.findall("geom[@size='{bounds}']"):
                body.remove(box)
    _fill(mjcf, values, each)
    joints = (
        f"worldbody/body/body[@name='rotor{i}']/joint[@name='rotor{i}']" for i in range(len(each))
    )
    for path in (*_NEEDED, *joints):
        _child(mjcf, path)
    return DroneMjcf(mjcf, description.assets)


def _placed(i: int, rotors: Rotors) -> dict[str, str]:
    """Return the placeholders of a rotor."""
    (x, y, z), axis = rotors.position[i].tolist(), rotors.axis[i]
    half = np.array([1 + axis[2], -axis[1], axis[0], 0.0])  # of the shortest rotation; -z has none
    tilt = half / np.linalg.norm(half) if axis[2] > -1 else np.array([0.0, 1.0, 0.0, 0.0])
    spin = "" if rotors.spin[i] > 0 else "-"
    return {
        **{name: str(value) for name, value in zip("xyz", (x, y, z))},
        "i": str(i),
        "tilt": numbers(tilt),
        "end": "front" if x > _MIDDLE else "rear",
        "spin": spin,
        "counter": "" if spin else "-",
    }


def _fill(element: ET.Element, values: dict[str, str], rotors: list[dict[str, str]]) -> None:
    """Replace the placeholders in an element; `rotors` is empty in one that belongs to a rotor."""
    for key, text in element.items():
        element.set(key, _filled(f"{key}={text!r}", text, values))
    children = list(element)
    del element[:]
    for child in children:
        is_repeated = bool(rotors) and "{i}" in child.get("name", "")
        for own in rotors if is_repeated else [values]:
            drawn = deepcopy(child) if is_repeated else child
            _fill(drawn, own, [] if is_repeated else rotors)
            element.append(drawn)


def _filled(name: str, text: str, values: Mapping[str, str]) -> str:
    try:
        filled = _PLACEHOLDER.sub(lambda match: values[match[1]], text)
    except KeyError as error:
        missing = unknown("figure", error.args[0], values)
        raise ValueError(f"{shown(name)}: {missing}") from None
    if not {"{", "}"}.isdisjoint(filled):
        raise ValueError(f"{shown(name)}: expected the name of a figure in braces")
    return filled


def max_rotor_speed(figures: dict[str, Any]) -> float:
    """Return the rotor speed [rad/s] of maximum thrust; `figures` comes from `load_drone`."""
    return float(figures["rotors"].vel_limits[1]) * math.tau / 60


def _set_inertials(drone: ET.Element, rotors: list[ET.Element], figures: dict[str, Any]) -> None:
    """Distribute the drone's mass and inertia among rotors and base.

    A rotor is a thin disc. The base gets the remaining mass, inertia and first moment, so that the
    whole drone, with rotors at rest, has the parameters of the dynamics and its centre of mass at
    the origin.
    """
    own: Rotors = figures["rotors"]
    mass, moment, inertia = figures["mass"], np.zeros(3), np.array(figures["J"])
    for rotor, spin_inertia, axis in zip(rotors, own.prop_inertia, own.axis):
        rotor_mass = 2 * spin_inertia / figures["geometry"]["rotor_radius"] ** 2
        disc = np.diag([spin_inertia / 2, spin_inertia / 2, spin_inertia])
        _set_inertial(rotor, rotor_mass, np.zeros(3), disc)
        rotor_inertia = spin_inertia / 2 * (np.eye(3) + np.outer(axis, axis))
        position = np.array([float(v) for v in rotor.get("pos", "0 0 0").split()])
        mass -= rotor_mass
        moment -= rotor_mass * position
        inertia -= rotor_inertia + _point_inertia(rotor_mass, position)
    centre = moment / mass if mass > 0 else moment
    inertia -= _point_inertia(mass, centre)
    if mass <= 0 or np.linalg.eigvalsh(inertia)[0] <= 0:
        raise ValueError(
            f"prop_inertia {own.prop_inertia.max():g} and rotor_radius leave no mass or inertia to "
            "the body"
        )
    _set_inertial(drone, mass, centre, inertia)


def _point_inertia(mass: float, position: np.ndarray) -> np.ndarray:
    """Return the inertia (3, 3) about the origin of a point mass."""
    return mass * (position @ position * np.eye(3) - np.outer(position, position))


def _set_inertial(body: ET.Element, mass: float, centre: np.ndarray, inertia: np.ndarray) -> None:
    """Set mass and inertia; `inertia` (3, 3) is about the centre, in the axes of the body."""
    for other in body.findall("inertial"):
        body.remove(other)
    principal = np.diag(inertia)
    element = ET.Element("inertial", mass=numbers(mass), pos=numbers(centre))
    if np.array_equal(inertia, np.diag(principal)):
        element.set("diaginertia", numbers(principal))
    else:
        element.set("fullinertia", numbers(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]))
    body.insert(0, element)


def _fuse(drone: ET.Element) -> None:
    """Replace the whole drawing by one box, a copy of the collision shape."""
    hull = deepcopy(_child(drone, "geom[@name='col_box']"))
    for part in list(drone):
        is_drawn = part.tag == "geom" and not part.get("name", "").startswith("col_")
        if part.tag == "body" or is_drawn:
            drone.remove(part)
    hull.attrib.pop("class", None)
    hull.attrib.update(name="hull", group="2", contype="0", conaffinity="0", rgba=HULL_COLOR)
    drone.append(hull)


def _remove_leds(mjcf: ET.Element, drone: ET.Element) -> None:
    """Remove the LEDs, which only `sim.visualize` can switch on."""
    for parent in (*mjcf.findall("asset"), drone):
        for element in list(parent):
            if element.get("name", "").startswith(LED):
                parent.remove(element)


def _choose_box(drone: ET.Element, mocap: bool) -> None:
    """Keep one box: that of the hull, or for `mocap` the one around the rotors if there is one."""
    bounds = drone.find("geom[@name='col_bounds']")
    if bounds is not None:
        drone.remove(_child(drone, "geom[@name='col_box']") if mocap else bounds)
        bounds.set("name", "col_box")


def _set_collision(drone: ET.Element, active: str) -> None:
    for name in ("col_sphere", "col_box"):
        mask = "1" if name == active else "0"
        geom = _child(drone, f"geom[@name='{name}']")
        geom.set("contype", mask)
        geom.set("conaffinity", mask)
        if name != active:
            geom.set("group", str(UNUSED_GROUP))


def numbers(values: ArrayLike) -> str:
    """Format one or more values as an XML attribute, without loss of precision."""
    return " ".join(str(value) for value in np.atleast_1d(values))


def _child(element: ET.Element, path: str) -> ET.Element:
    found = element.find(path)
    if found is None:
        raise ValueError(f"the drawing of a drone must have the element {path}")
    return found

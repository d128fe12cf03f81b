"""One drone as MJCF: the drawing in `urdf_mjcf/` with the parameters of the dynamics."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.resources import resource

N_ROTORS = 4
UNUSED_GROUP = 5
"""Geom group of the collision shape that is not used; viewers hide it."""
ROTOR_TIME_CONSTANT = 0.05
"""Time constant of the rotor actuators in MuJoCo's own simulation [s]; our dynamics have others."""


def load_drawing(drone_model: str, *, mocap: bool = False) -> ET.Element:
    """Return the MJCF of one drone with inertias, limits and collision shape.

    Args:
        drone_model: Name of the drone model, as in `crazyflow_ros.dynamics.Drone`.
        mocap: Use the sphere as collision shape, and omit joints, actuators and sensors. Otherwise
            there is a free joint "free", and the collision shape is the box.

    Returns:
        Element `mujoco` with the body "drone" in its worldbody.

    Raises:
        ValueError: The drone model is unknown.
    """
    figures = load_drone(drone_model)
    mjcf = ET.parse(resource("urdf_mjcf", f"{drone_model}.xml")).getroot()
    drone = _child(mjcf, "worldbody/body[@name='drone']")
    rotors = [_child(drone, f"body[@name='rotor{i}']") for i in range(N_ROTORS)]
    _set_inertials(drone, rotors, figures)
    _set_collision(drone, "col_sphere" if mocap else "col_box")
    if mocap:
        drone.set("mocap", "true")
        for rotor in rotors:
            rotor.remove(_child(rotor, "joint"))
        mjcf.remove(_child(mjcf, "sensor"))
    else:
        drone.insert(0, ET.Element("freejoint", name="free"))
        actuators = ET.SubElement(mjcf, "actuator")
        speed_limit = f"0 {numbers(max_rotor_speed(figures))}"
        gain = numbers(figures["prop_inertia"] / ROTOR_TIME_CONSTANT)  # N m/(rad/s)
        for i in range(N_ROTORS):
            name = f"rotor{i}"
            ET.SubElement(
                actuators, "velocity", name=name, joint=name, kv=gain, ctrlrange=speed_limit
            )
    return mjcf


def max_rotor_speed(figures: dict[str, Any]) -> float:
    """Return the rotor speed [rad/s] of maximum thrust; `figures` comes from `load_drone`."""
    k0, k1, k2 = figures["rpm2thrust"]
    rpm = (-k1 + math.sqrt(k1**2 - 4 * k2 * (k0 - figures["thrust_max"]))) / (2 * k2)
    return rpm * math.tau / 60


def _set_inertials(drone: ET.Element, rotors: list[ET.Element], figures: dict[str, Any]) -> None:
    """Distribute the drone's mass and inertia among rotors and base.

    A rotor is a thin disc. The base gets the remaining mass, inertia and first moment, so that the
    whole drone, with rotors at rest, has the parameters of the dynamics and its centre of mass at
    the origin.
    """
    spin_inertia = figures["prop_inertia"]
    rotor_mass = 2 * spin_inertia / figures["geometry"]["rotor_radius"] ** 2
    rotor_inertia = np.diag([spin_inertia / 2, spin_inertia / 2, spin_inertia])
    mass, moment, inertia = figures["mass"], np.zeros(3), np.array(figures["J"])
    for rotor in rotors:
        _set_inertial(rotor, rotor_mass, np.zeros(3), rotor_inertia)
        position = np.array([float(v) for v in rotor.get("pos", "0 0 0").split()])
        mass -= rotor_mass
        moment -= rotor_mass * position
        inertia -= rotor_inertia + _point_inertia(rotor_mass, position)
    centre = moment / mass
    _set_inertial(drone, mass, centre, inertia - _point_inertia(mass, centre))


def _point_inertia(mass: float, position: np.ndarray) -> np.ndarray:
    """Return the inertia (3, 3) about the origin of a point mass."""
    return mass * (position @ position * np.eye(3) - np.outer(position, position))


def _set_inertial(body: ET.Element, mass: float, centre: np.ndarray, inertia: np.ndarray) -> None:
    """Set mass and inertia; `inertia` (3, 3) is about the centre, in the axes of the body."""
    principal = np.diag(inertia)
    element = ET.Element("inertial", mass=numbers(mass), pos=numbers(centre))
    if np.array_equal(inertia, np.diag(principal)):
        element.set("diaginertia", numbers(principal))
    else:
        element.set("fullinertia", numbers(inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]))
    body.insert(0, element)


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
        raise ValueError(f"the drone's drawing has no {path}")
    return found

"""Data that a page shows: the drones at one time, and how a drone looks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from crazyflow_ros.drones import rotors_of
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.frames import wxyz_to_xyzw
from crazyflow_ros.scene.moving_frames import Poses
from crazyflow_ros.scene.shapes import VisibleShape, body_shapes

_DRONE = "drone"  # name of the drone in the model that its looks are made from


@dataclass(frozen=True, eq=False)
class Frame:
    """The drones at one time, and what else moves then."""

    time_ns: int
    names: tuple[str, ...]
    position: np.ndarray
    """[m] in the world, shape (M, 3)."""
    attitude: np.ndarray
    """Quaternions xyzw, shape (M, 4)."""
    velocity: np.ndarray
    """[m/s] in the axes of the body, shape (M, 3)."""
    rotor_speed: np.ndarray
    """[rad/s], shape (M, n)."""
    bodies: Poses | None = None
    """Where bodies of the world are; None if none of them moves."""
    cables: np.ndarray | None = None
    """Cables as segments [m], shape (S, 2, 3); None if there are none."""


@dataclass(frozen=True, eq=False)
class Rotor:
    """A rotor of a drone that points along x."""

    shapes: list[VisibleShape]
    position: np.ndarray
    """[m] in the drone's frame, shape (3,)."""
    attitude: np.ndarray
    """Quaternion xyzw in the drone's frame, shape (4,)."""
    spin: float
    """1 if it turns counter-clockwise seen from above at positive speed, else -1."""


@dataclass(frozen=True, eq=False)
class Looks:
    """How drones of one model look."""

    body: list[VisibleShape]
    rotors: list[Rotor] = field(default_factory=list)


@cache
def looks_of(drone_model: str) -> Looks:
    """Return how a drone looks.

    Args:
        drone_model: Name of the model, or path of a drone's folder.

    Raises:
        ValueError: There is no such model.
    """
    model = build_spec(drone_model, [_DRONE]).compile()
    rotors = []
    for number in range(len(rotors_of(drone_model))):
        name = f"rotor{number}:{_DRONE}"
        body = model.body(name)
        pose = body.pos.copy(), wxyz_to_xyzw(body.quat)
        rotors.append(Rotor(body_shapes(model, name), *pose, float(model.joint(name).axis[2])))
    return Looks(body_shapes(model, f"drone:{_DRONE}"), rotors)

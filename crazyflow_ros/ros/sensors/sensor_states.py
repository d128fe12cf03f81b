"""What controllers of ros2_control read of the sensors: names of stock broadcasters, SI units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from crazyflow_ros.description.urdf import FixedFrame
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene.frames import multiply, world_to_body


class Sensed(NamedTuple):
    """What a sensor sees."""

    data: Any
    """Its data; None for one that is not sampled."""
    now: Snapshot
    """State of the M drones that carry it."""
    place: FixedFrame | None
    """Where it is on the drone; None for the default place."""


class StateQuantity(NamedTuple):
    """A reading."""

    size: int
    """Its numbers: one, or the axes x, y, z and w of a vector or a quaternion."""
    read: Callable[[Sensed], np.ndarray]
    """Returns (M,) or (M, size)."""


States = Mapping[str, StateQuantity]
"""Readings by the name of their state interfaces, without the axis."""


def _of(field: str, size: int = 1) -> StateQuantity:
    get = attrgetter(field)
    return StateQuantity(size, lambda seen: get(seen.data))


def _constant(value: float) -> StateQuantity:
    return StateQuantity(1, lambda seen: np.full(len(seen.now.pos), value))


def _attitude(seen: Sensed) -> np.ndarray:
    """Return the attitude of the sensor as the drone knows its own."""
    quat, place = seen.now.known.quat, seen.place
    return quat if place is None else multiply(quat, np.broadcast_to(place.quat, quat.shape))


def _contact(part: slice) -> StateQuantity:
    """Force or torque of all contacts on the centre of mass, in the axes of the drone."""
    return StateQuantity(3, lambda seen: world_to_body(seen.now.quat, seen.now.contact[:, part]))


IMU = {
    "orientation": StateQuantity(4, _attitude),
    "angular_velocity": _of("angular_velocity", 3),
    "linear_acceleration": _of("linear_acceleration", 3),
}
MAGNETOMETER = {"magnetic_field": _of("magnetic_field", 3)}
BAROMETER = {"pressure": _of("pressure")}
GNSS = {
    "status": _constant(0.0),
    "service": _constant(1.0),
    **{name: _of(name) for name in ("latitude", "longitude", "altitude")},
}
MOTION_CAPTURE = {"position": _of("pos", 3), "orientation": _of("quat", 4)}
BATTERY = {
    "battery_voltage": _of("voltage"),
    "battery_current": StateQuantity(1, lambda seen: -seen.data.current),
    "battery_charge": _of("charge"),
    "battery_percentage": StateQuantity(1, lambda seen: 100 * seen.data.percentage),
}
CONTACT = {"force": _contact(slice(3)), "torque": _contact(slice(3, 6))}


def _believed(column: slice, field: str = "variances") -> StateQuantity:
    size = column.stop - column.start
    return StateQuantity(size, lambda seen: getattr(seen.now.known, field)[:, column])


ESTIMATE = {
    "position": _believed(slice(0, 3), "pos"),
    "orientation": _believed(slice(0, 4), "quat"),
    "linear_velocity": _believed(slice(0, 3), "vel"),
    "position_variance": _believed(slice(0, 3)),
    "linear_velocity_variance": _believed(slice(3, 6)),
    "orientation_variance": _believed(slice(6, 9)),
}
"""Of the estimator: pose and velocity in `map`, and variances, of which those of velocity and
attitude are in body axes."""

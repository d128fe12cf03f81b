"""The joints, sensors and GPIOs of a drone in ros2_control, and their interfaces.

SI units; `map` is the world, body axes are x forward, y left, z up, quaternions are xyzw. The
commands of a drone form levels, one of which is in force at a time: rotor speeds, attitude (thrust,
roll, pitch, yaw), body rates (thrust, three rates), acceleration (of x, y and z, and the yaw), or a
goal (position, and the yaw).
"""

from __future__ import annotations

from dataclasses import dataclass

_XYZ = ("x", "y", "z")
_XYZW = (*_XYZ, "w")
_ANGLES = ("roll", "pitch", "yaw")
_BODY = ("thrust", *_ANGLES, *(f"{angle}_rate" for angle in _ANGLES))


def _of(quantity: str, axes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{quantity}.{axis}" for axis in axes)


@dataclass(frozen=True)
class Component:
    """One joint, sensor or GPIO of a drone."""

    kind: str
    """Element of the URDF: joint, sensor or gpio."""
    suffix: str
    """Suffix of the name: the component of drone cf0 is called `cf0_<suffix>`."""
    states: tuple[str, ...]
    """Names of the state interfaces."""
    commands: tuple[str, ...] = ()
    """Names of the command interfaces."""

    def name(self, drone: str) -> str:
        """Return the name of a drone's component in ROS."""
        return f"{drone}_{self.suffix}"


def rotors(n_rotors: int) -> tuple[Component, ...]:
    """Return the rotors of a drone.

    Their states are angle [rad], speed [rad/s] (positive in flight) and drag torque [N m].
    """
    states = ("position", "velocity", "effort")
    return tuple(Component("joint", f"rotor{i}", states, ("velocity",)) for i in range(n_rotors))


SENSORS = (
    Component(
        "sensor",
        "imu",
        _of("orientation", _XYZW)
        + _of("angular_velocity", _XYZ)
        + _of("linear_acceleration", _XYZ),
    ),
    Component("sensor", "pose", _of("position", _XYZ) + _of("orientation", _XYZW)),
    Component("sensor", "twist", _of("linear", _XYZ) + _of("angular", _XYZ)),
    Component("sensor", "range", ("range",)),
)
"""IMU in its own axes, pose in `map`, twist in body axes, distance to the surface below [m]."""

AXES = (
    *(Component("gpio", axis, ("position", "velocity"), ("acceleration",)) for axis in _XYZ),
    Component("gpio", "yaw", ("position", "velocity"), ("position",)),
)
"""Position and velocity in `map` along one axis each, as needed by a `pid_controller`. For yaw they
are the heading and the angular velocity about the vertical."""

BODY = Component("gpio", "body", (*_BODY, "level"), _BODY)
"""Collective thrust [N], attitude [rad], body rates [rad/s], and the level in force: 0 held, 1
rotor speeds, 2 attitude, 3 body rates, 4 acceleration, 13 a goal."""

GOAL = Component("gpio", "goal", (), (*_of("position", _XYZ), "yaw"))
"""Where the commander flies the drone in `map`: it takes off, goes there, lands on the floor."""

"""What a drone does about a setpoint, from the tick on at which it takes effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import cos, inf, sin
from typing import NamedTuple

import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.forces.floor import rest_height
from crazyflow_ros.flight.course import Course, Reference
from crazyflow_ros.flight.envelope import Envelope


class FlightState(StrEnum):
    """What a drone is at."""

    idle = "idle"
    """Nobody has told it anything since it was reset; rotors stand still."""
    taking_off = "taking off"
    flying = "flying"
    landing = "landing"
    landed = "landed"
    """On the floor, rotors stopped; it takes off again when it is told to."""
    crashed = "crashed"
    """It lies where it fell, rotors stopped, until it is reset."""
    locked = "locked"
    """After an emergency stop, until it is reset."""

    @property
    def stands(self) -> bool:
        """Rotors stopped, ready to take off."""
        return self in (FlightState.idle, FlightState.landed)

    @property
    def is_out(self) -> bool:
        """Only a reset helps."""
        return self in (FlightState.crashed, FlightState.locked)


@dataclass(frozen=True)
class FlightConfig:
    """How drones are flown. A bound of 0 comes from the drone's figures, see `Envelope.of`."""

    speed: float = 0.0
    """Horizontal, m/s."""
    climb: float = 0.0
    """Vertical speed, m/s."""
    acceleration: float = 0.0
    """Horizontal, m/s^2."""
    jerk: float = 0.0
    """m/s^3."""
    yaw_rate: float = 0.0
    """rad/s."""
    velocity_timeout: float = 0.5
    """A velocity that is not repeated for so long [s] ends in hovering."""
    takeoff_height: float = 0.5
    """To which a velocity lifts a drone that stands on the floor [m]."""
    auto_arm: bool = True
    """Commands arm the drone; otherwise it has to be armed first."""


@dataclass(frozen=True)
class Rules:
    """What a commander knows about its drone, and how it is to fly it."""

    envelope: Envelope
    rest_height: float
    """Of the centre of mass above the floor z = 0, where the drone stands [m]."""
    weight: float
    """Which a collective thrust of as much carries [N]."""
    drag: np.ndarray
    """(3,) deceleration by drag [1/s], for feed-forward."""
    velocity_timeout: float
    """See `FlightConfig`, as the two below."""
    takeoff_height: float
    auto_arm: bool

    @classmethod
    def of(cls, drone: str, config: FlightConfig) -> Rules:
        """Of a drone, from its figures.

        Raises:
            ValueError: There is no such drone.
        """
        figures = load_drone(drone)
        given = {name: getattr(config, name) for name in _BOUNDS if getattr(config, name)}
        return cls(
            replace(Envelope.of(drone), **given),
            rest_height(drone),
            -float(figures["mass"] * figures["gravity_vec"][2]),
            np.abs(np.diag(figures["drag_matrix"])) / float(figures["mass"]),
            config.velocity_timeout,
            config.takeoff_height,
            config.auto_arm,
        )


_BOUNDS = ("speed", "climb", "acceleration", "jerk", "yaw_rate")


@dataclass(frozen=True)
class Start:
    """What a drone is at when a setpoint takes effect."""

    time_ns: int
    """Simulation time."""
    reference: Reference
    """What it was to do; or how it moves, if it was told nothing or cannot keep up."""
    state: FlightState = FlightState.flying


class Attitude(NamedTuple):
    """Roll and pitch that are held, and a heading that turns; for the attitude controller."""

    roll: float
    """rad."""
    pitch: float
    """rad."""
    yaw: float
    """At the begin, rad."""
    yaw_rate: float
    """rad/s."""
    thrust: float
    """Collective, N."""

    def heading(self, seconds: float) -> float:
        """The yaw [rad] after a time."""
        return self.yaw + self.yaw_rate * seconds

    def command(self, seconds: float) -> np.ndarray:
        """(7,) roll, pitch, yaw [rad], thrust [N] and the body rates [rad/s] that turn it."""
        upright = cos(self.pitch)
        rates = (-sin(self.pitch), sin(self.roll) * upright, cos(self.roll) * upright)
        angles = (self.roll, self.pitch, self.heading(seconds))
        return np.array([*angles, self.thrust, *(self.yaw_rate * rate for rate in rates)])


@dataclass(frozen=True)
class Plan:
    """What a drone does: a course, a command of the control mode as it is, or an attitude."""

    course: Course | None = None
    bare: np.ndarray | None = None
    attitude: Attitude | None = None
    during: FlightState = FlightState.flying
    after: FlightState = FlightState.flying
    """From the end of the course on. Rotors stop in states that stand."""
    begin_ns: int | None = None
    """When the course begins, if not when the setpoint takes effect."""
    lapses: float = inf
    """After which time without another setpoint `Setpoint.lapsed` takes effect [s]."""
    led: bool = True
    """The course is bounded by the envelope; it begins anew where a drone is that lost it."""
    note: str = ""
    """What whoever gave the setpoint might wonder about."""

"""From the outputs of autopilots to the speeds of our rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM

Order: TypeAlias = tuple[int, ...]
"""Output for each of our rotors, counted from 0."""
QUAD_X: Order = (0, 3, 1, 2)
"""PX4's and ArduPilot's quadrotor X: front right, rear left, front left, rear right."""
BETAFLIGHT_X: Order = (1, 0, 2, 3)
"""Betaflight's: rear right, front right, rear left, front left."""


class Airframe(NamedTuple):
    """The motors of an ArduPilot frame of type X, in the order of the outputs.

    Source: `AP_MotorsMatrix.cpp` of ArduPilot. PX4's hexarotor X has the same order.
    """

    number: int
    """FRAME_CLASS."""
    motors: tuple[tuple[float, int], ...]
    """Direction from the front [degrees, clockwise] and spin, 1 counter-clockwise, of each. Of two
    with the same direction, the upper one is first."""


FRAMES = (
    Airframe(1, ((45, 1), (-135, 1), (-45, -1), (135, -1))),
    Airframe(2, ((90, -1), (-90, 1), (-30, -1), (150, 1), (30, 1), (-150, -1))),
    Airframe(
        4, ((45, 1), (-45, -1), (-135, 1), (135, -1), (-45, 1), (45, -1), (135, 1), (-135, -1))
    ),
)
"""Quadrotor, hexarotor, and coaxial octorotor with four arms."""
_NEAR = 10.0  # degrees between the direction of a rotor and that of a motor


def frame_of(drone_model: str) -> tuple[Airframe, Order] | None:
    """Return the frame of a drone, and the output for each of its rotors; None if it has none."""
    rotors = rotors_of(drone_model)
    x, y, z = rotors.position.T
    places = list(zip(np.rad2deg(np.arctan2(-y, x)), rotors.spin, -z))
    for frame in FRAMES:
        free, order = list(np.argsort(-z, kind="stable")), dict[int, int]()
        for output, (angle, spin) in enumerate(frame.motors):
            for rotor in free:
                off = (places[rotor][0] - angle + 180) % 360 - 180
                if abs(off) < _NEAR and places[rotor][1] == spin:
                    order[int(rotor)] = output
                    free.remove(rotor)
                    break
        if len(order) == len(rotors) == len(frame.motors) and rotors.tilt() is None:
            return frame, tuple(order[i] for i in range(len(rotors)))
    return None


def order_of(drone_model: str) -> Order:
    """Return the output for each rotor of a drone: that of its frame, or else our own order."""
    found = frame_of(drone_model)
    return tuple(range(len(rotors_of(drone_model)))) if found is None else found[1]


_ROUNDING = 1e-3
_GREATEST = 65535  # output of the Crazyflie's firmware for a motor


class Motors:
    """Speed controllers and motors of a drone: speed is proportional to the output.

    An output of 1 gives the speed of the greatest thrust, as in the motor models of PX4's drones in
    Gazebo; thrust grows roughly with the square of the output.

    Args:
        drone_model: Model of the drone.
        order: Order of the autopilot's outputs; by default see `order_of`.

    Attributes:
        fastest: Speed of an output of 1 [rad/s].
    """

    def __init__(self, drone_model: str, order: Order | None = None) -> None:
        self._order = order_of(drone_model) if order is None else order
        self.fastest = float(rotors_of(drone_model).vel_limits[1] * RPM)

    def __len__(self) -> int:
        return len(self._order)

    def speeds(self, outputs: Sequence[float]) -> np.ndarray:
        """Return the speeds of our rotors [rad/s], shape (n,).

        Args:
            outputs: The autopilot's outputs; only as many are used as there are rotors.

        Raises:
            ValueError: An output is outside 0 to 1.
        """
        speeds, shown = [], list(outputs[: len(self._order)])
        for i in self._order:
            if not -_ROUNDING <= outputs[i] <= 1 + _ROUNDING:
                raise ValueError(f"outputs of motors must be from 0 to 1, got {shown}")
            speeds.append(min(max(outputs[i], 0.0), 1.0) * self.fastest)
        return np.array(speeds)


class CompensatedRotors:
    """Rotors of the Crazyflie, whose firmware compensates for the voltage of the battery.

    An output is the desired thrust in units of 1/65535 of the greatest. A build for a computer
    sends it before `motorsCompensateBatteryVoltage` (`src/drivers/src/motors.c`) turns it into a
    duty cycle by a curve from motor voltage to thrust. That duty cycle yields the desired thrust at
    any voltage until it reaches 100 %. So the thrust is that of the output, zero below the least
    thrust of the curve, and the physics limits it when the battery is empty.

    Args:
        drone_model: Model of the drone.
    """

    def __init__(self, drone_model: str) -> None:
        figures = load_drone(drone_model)
        self._least, self._most = figures["thrust_min"], figures["thrust_max"]
        self._offset, self._linear, self._square = figures["rpm2thrust"].tolist()

    def speeds(self, outputs: Sequence[int]) -> np.ndarray:
        """Return the speeds of the rotors [rad/s], shape (4,).

        Args:
            outputs: Outputs of the four motors, 0 to 65535.
        """
        thrust = np.array(outputs) * (self._most / _GREATEST)
        root = np.sqrt(self._linear**2 + 4 * self._square * np.maximum(thrust - self._offset, 0.0))
        speeds = (root - self._linear) / (2 * self._square) * RPM
        return np.where(thrust < self._least, 0.0, speeds)

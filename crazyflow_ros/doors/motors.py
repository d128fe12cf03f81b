"""From the outputs of autopilots to the speeds of our rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.dynamics.first_principles import Params

Order: TypeAlias = tuple[int, int, int, int]
"""Outputs for our rotors front right, rear right, rear left, front left, counted from 0."""
QUAD_X: Order = (0, 3, 1, 2)
"""PX4's and ArduPilot's quadrotor X: front right, rear left, front left, rear right."""
BETAFLIGHT_X: Order = (1, 0, 2, 3)
"""Betaflight's: rear right, front right, rear left, front left."""
_ROUNDING = 1e-3
_GREATEST = 65535  # output of the Crazyflie's firmware for a motor


class Motors:
    """Speed controllers and motors of a drone: speed is proportional to the output.

    An output of 1 gives the speed of the greatest thrust, as in the motor models of PX4's drones in
    Gazebo; thrust grows roughly with the square of the output.

    Args:
        drone_model: Model of the drone.
        order: Order of the autopilot's outputs.

    Attributes:
        fastest: Speed of an output of 1 [rad/s].
    """

    def __init__(self, drone_model: str, order: Order) -> None:
        self._order = order
        self.fastest = float(Params.figures(drone_model)["rotor_vel_limits"][1] * RPM)

    def speeds(self, outputs: Sequence[float]) -> np.ndarray:
        """Return the speeds of our rotors [rad/s], shape (4,).

        Args:
            outputs: The autopilot's outputs; only the first four are used.

        Raises:
            ValueError: An output is outside 0 to 1.
        """
        speeds = []
        for i in self._order:
            if not -_ROUNDING <= outputs[i] <= 1 + _ROUNDING:
                raise ValueError(f"outputs of motors must be from 0 to 1, got {list(outputs[:4])}")
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

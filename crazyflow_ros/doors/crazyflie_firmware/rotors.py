"""From the outputs of the Crazyflie's firmware to the speeds of rotors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM

MOST = 65535
"""Greatest output of a motor."""


class CompensatedRotors:
    """Rotors whose firmware compensates for the voltage of the battery.

    An output is the thrust that the firmware wants, in 1/65535 of the greatest: a build for a
    computer sends it before `motorsCompensateBatteryVoltage` (`src/drivers/src/motors.c`) makes a
    duty cycle of it, by a curve from the voltage of a motor to thrust. With this curve the duty
    cycle gives the wanted thrust at any voltage, until it is 100 %. So the thrust is the output's,
    none below the least of the curve, and an empty battery limits it in the physics.

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
            outputs: Those of the four motors, 0 to 65535.
        """
        thrust = np.array(outputs) * (self._most / MOST)
        root = np.sqrt(self._linear**2 + 4 * self._square * np.maximum(thrust - self._offset, 0.0))
        speeds = (root - self._linear) / (2 * self._square) * RPM
        return np.where(thrust < self._least, 0.0, speeds)

"""What the rotors of drones can do now, beside carrying them."""

from __future__ import annotations

import numpy as np

from crazyflow_ros.drones import has_battery, load_drone
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.sim.actuation import Battery

_GUSTS = 2.0  # standard deviations of the horizontal gusts, which are twice as strong as others


class Authority:
    """Computes the share of the spare thrust that drones have, with batteries, motors and wind.

    Args:
        drone: Model of the drones.
    """

    def __init__(self, drone: str) -> None:
        figures = load_drone(drone)
        self._most = 4 * float(figures["thrust_max"])
        self._weight = -float(figures["mass"] * figures["gravity_vec"][2])
        self._drag = np.abs(np.diag(figures["drag_matrix"]))
        self._battery = Battery.of(drone) if has_battery(drone) else None

    def of(self, snapshot: Snapshot, motor_loss: np.ndarray, wind: Wind) -> np.ndarray:
        """Return the thrust that exceeds what hovering takes, over that of an intact drone.

        Args:
            snapshot: State of the drones.
            motor_loss: (M, 4) share of the speed that each rotor loses.
            wind: The present wind.

        Returns:
            (M,) from 0 to 1: 1 for intact drones with full batteries in calm air.
        """
        most = self._most * (1 - motor_loss.max(axis=1)) ** 2  # of four rotors like the weakest
        if snapshot.battery is not None and self._battery is not None:
            speed = snapshot.battery[:, 0] / self._battery.fastest_from
            most = most * np.minimum(speed, 1.0) ** 2
        air = np.abs(wind.mean) + _GUSTS * wind.gust_intensity * np.array([2.0, 2.0, 1.0])
        holding = np.linalg.norm(self._drag * air + (0.0, 0.0, self._weight))
        share: np.ndarray = (most - holding) / (self._most - self._weight)
        return np.clip(share, 0.0, 1.0)

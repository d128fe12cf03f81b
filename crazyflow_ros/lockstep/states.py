"""Values of the state interfaces, in the order of `interfaces`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import Mirror, frames


def of_rotor_velocity(coefficients: Sequence[float]) -> np.ndarray:
    """Convert coefficients of a polynomial in RPM to one in rad/s, lowest power first."""
    return np.asarray(coefficients) / RPM ** np.arange(len(coefficients))


class StateInterfaces:
    """State interfaces of the drones for ros2_control's stock plugins; our plugin computes its own.

    Args:
        drone_model: Name of the drone model, which determines thrust and torque of the rotors.
    """

    def __init__(self, drone_model: str) -> None:
        figures = load_drone(drone_model)
        self._thrust = np.polynomial.Polynomial(of_rotor_velocity(figures["rpm2thrust"]))
        self._torque = np.polynomial.Polynomial(of_rotor_velocity(figures["rpm2torque"]))

    def rotors(self, snapshot: Snapshot) -> tuple[np.ndarray, ...]:
        """Return position, velocity and effort of `ROTORS`, each of shape (M, 4)."""
        return snapshot.rotor_angle, snapshot.rotor_vel, self._torque(snapshot.rotor_vel)

    def others(self, snapshot: Snapshot, mirror: Mirror, level: np.ndarray) -> np.ndarray:
        """Return the states of `SENSORS`, `AXES` and `BODY`, shape (M, K).

        Args:
            snapshot: State of the drones.
            mirror: Mirror with this state.
            level: Active levels, shape (M,).
        """
        angles, rates = frames.rpy(snapshot.quat), snapshot.ang_vel
        axes = np.stack((snapshot.pos, snapshot.vel), axis=2).reshape(len(rates), -1)
        thrust = self._thrust(snapshot.rotor_vel).sum(axis=1, keepdims=True)
        imu = (snapshot.quat, rates, snapshot.specific_force)  # at the centre of mass
        pose, twist = (snapshot.pos, snapshot.quat), (snapshot.body_vel, rates)
        sensors = (*imu, *pose, *twist, mirror.range(snapshot.names)[:, None])
        heading = (angles[:, 2:], rates[:, 2:])
        body = (thrust, angles, rates, level[:, None])
        return np.concatenate((*sensors, axes, *heading, *body), axis=1)

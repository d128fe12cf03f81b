"""Values of the state interfaces, in the order of `interfaces`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.description.interfaces import Component
from crazyflow_ros.drones import rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.lockstep.layout import Entry
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.scene import Mirror, frames


def of_rotor_velocity(coefficients: ArrayLike) -> np.ndarray:
    """Convert coefficients (..., k) of polynomials in RPM to rad/s, lowest power first."""
    given = np.asarray(coefficients)
    converted: np.ndarray = given / RPM ** np.arange(given.shape[-1])
    return converted


def _values(curves: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Return the values of polynomials (n, 3) at speeds (M, n)."""
    values: np.ndarray = curves[:, 0] + speeds * (curves[:, 1] + speeds * curves[:, 2])
    return values


def describe_drones(header: np.ndarray, drone_model: str, levels: Iterable[int]) -> None:
    """Write into a `layout.HEADER` which levels drones follow, and what their rotors give."""
    header["levels"] = sum(1 << level for level in levels)
    rotors = rotors_of(drone_model)
    header["n_rotors"] = n = len(rotors)
    header["rotor_torque"][:n] = of_rotor_velocity(rotors.rpm2torque)
    header["rotor_thrust"][:n] = rotors.axis[:, 2:] * of_rotor_velocity(rotors.rpm2thrust)


class CarriedReadings(Protocol):
    """What sensors that drones carry read, for the shared memory.

    Attributes:
        entries: What they read.
    """

    entries: Sequence[Entry]

    def components(self, drone: str) -> Sequence[Component]:
        """Return the sensors of a drone, for its description."""

    def read(self, now: Snapshot, model: mujoco.MjModel) -> np.ndarray:
        """Return the numbers of all entries at a control tick, in their order, (k,).

        Args:
            now: State of the drones of the memory.
            model: Model of the world.
        """

    def forget(self, drones: np.ndarray) -> None:
        """Start anew for drones that were reset, by index."""


class StateInterfaces:
    """State interfaces of the drones for ros2_control's stock plugins; our plugin computes its own.

    Args:
        drone_model: Name of the drone model, which determines thrust and torque of the rotors.
    """

    def __init__(self, drone_model: str) -> None:
        rotors = rotors_of(drone_model)
        self._thrust, self._torque = map(of_rotor_velocity, (rotors.rpm2thrust, rotors.rpm2torque))
        self._up = rotors.axis[:, 2]

    def rotors(self, snapshot: Snapshot) -> tuple[np.ndarray, ...]:
        """Return position, velocity and effort of the n rotors, each of shape (M, n)."""
        return snapshot.rotor_angle, snapshot.rotor_vel, _values(self._torque, snapshot.rotor_vel)

    def others(self, snapshot: Snapshot, mirror: Mirror, level: np.ndarray) -> np.ndarray:
        """Return the states of `SENSORS`, `AXES` and `BODY`, shape (M, K).

        Args:
            snapshot: State of the drones.
            mirror: Mirror with this state.
            level: Active levels, shape (M,).
        """
        angles, rates = frames.rpy(snapshot.quat), snapshot.ang_vel
        axes = np.stack((snapshot.pos, snapshot.vel), axis=2).reshape(len(rates), -1)
        thrusts = _values(self._thrust, snapshot.rotor_vel) * self._up
        thrust = thrusts.sum(axis=1, keepdims=True)
        imu = (snapshot.quat, rates, snapshot.specific_force)  # at the centre of mass
        pose, twist = (snapshot.pos, snapshot.quat), (snapshot.body_vel, rates)
        sensors = (*imu, *pose, *twist, mirror.range(snapshot.names)[:, None])
        heading = (angles[:, 2:], rates[:, 2:])
        body = (thrust, angles, rates, level[:, None])
        return np.concatenate((*sensors, axes, *heading, *body), axis=1)

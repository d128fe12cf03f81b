"""The state of a drone from which the firmware's log variables are computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from crazyflow_ros.drones import has_battery, load_battery
from crazyflow_ros.estimation import Positioning
from crazyflow_ros.flight import FirmwareSetpoint, FlightState
from crazyflow_ros.flight.commander import FlightStatus
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.scene.frames import rpy

_TUMBLED = 0.5  # cosine of the tilt of a drone on its side
EXACT = np.full(9, 1e-6)
"""Variances of an estimate that is the true state."""


@dataclass
class External:
    """The latest external pose, for example from motion capture."""

    pos: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """(3,) m."""
    quat: np.ndarray = field(default_factory=lambda: np.zeros(4))
    """(4,) xyzw."""
    time_ms: int = 0
    """Simulated time at which the pose arrived."""


class Cell(NamedTuple):
    """Voltages of a battery [V]; by default those of a Crazyflie's."""

    full: float = 4.2
    empty: float = 3.0

    @classmethod
    def of(cls, drone: str) -> Cell:
        """Return the voltages of a drone's battery, or the defaults if unknown."""
        if not has_battery(drone):
            return cls()
        figures = load_battery(drone)
        return cls(figures["full"], figures["empty"])


@dataclass(frozen=True)
class Telemetry:
    """The data from which the log variables of one drone are computed."""

    time_ns: int
    pos: np.ndarray
    """(3,) m, world frame, as velocity and acceleration; estimated, as attitude and velocity."""
    quat: np.ndarray
    """(4,) xyzw."""
    vel: np.ndarray
    acc: np.ndarray
    ang_vel: np.ndarray
    """(3,) rad/s, body frame."""
    specific_force: np.ndarray
    """(3,) m/s^2, body frame."""
    thrusts: np.ndarray
    """(4,) of the rotors, as shares of full thrust."""
    rpm: np.ndarray
    """(4,) revolutions of the rotors per minute."""
    battery: np.ndarray | None
    """(3,) voltage [V], current [A], charge drawn [A h]; None without a battery model."""
    cell: Cell
    """Voltages of the battery."""
    flight: FlightStatus
    external: External
    desired: np.ndarray
    """(14,) the controllers' intermediate setpoints, see `Snapshot.desired`."""
    units: np.ndarray
    """(4,) collective thrust [N] and torque [N m] of one PWM step in the firmware's mixer."""
    variances: np.ndarray
    """(9,) variances of the estimate: position [m], velocity [m/s] and attitude [rad]."""
    decks: np.ndarray | None = None
    """(9,) readings of the optical decks, see `deck_readings.read`; None if not requested."""
    flow_std: float | None = None
    """Fixed error of the flow in the filter [counts]; None if it follows the shutter."""
    heard: np.ndarray | None = None
    """(k,) what the filter heard of beacons, see `Snapshot.heard`."""
    sources: Positioning = field(default_factory=Positioning)
    """What the filter measures."""
    stations_valid: tuple[int, int] = (0, 0)
    """Bits of the base stations whose geometry, and whose calibration the firmware knows."""
    test_value: int = 0
    """Value of the parameter system.testLogParam."""
    write_errors: int = 0
    """Number of wrong bytes written to the memory for tests."""
    received: int = 0
    """Number of packets received from clients."""
    info: int = 0
    """Bits of the supervisor."""
    rssi: float = 0.0
    """Power received by radio [-dBm]; 0 without a radio."""

    @property
    def reference(self) -> Reference | None:
        """The desired motion, or None without an order."""
        order = self.flight.order
        return None if order is None else order.reference(self.time_ns)

    @property
    def setpoint(self) -> FirmwareSetpoint | None:
        """The setpoint that is passed on unchanged, or None if there is a planned one."""
        setpoint = None if self.flight.order is None else self.flight.order.setpoint
        return setpoint if isinstance(setpoint, FirmwareSetpoint) else None

    @property
    def voltage(self) -> float:
        """Battery voltage [V]."""
        return self.cell.full if self.battery is None else float(self.battery[0])

    @property
    def rpy(self) -> np.ndarray:
        """Roll, pitch, yaw [rad]."""
        return rpy(self.quat)


def supervisor_info(flight: FlightStatus, quat: np.ndarray, time_ns: int) -> int:
    """Return the supervisor's bits, from "can be armed" to "the planned flight is over".

    Args:
        flight: Flight state and order.
        quat: (4,) attitude xyzw.
        time_ns: Simulated time.
    """
    state, order = flight.state, flight.order
    course = None if order is None or order.is_streamed else order.plan.course
    over = order is None or (course is not None and order.seconds(time_ns) >= course.end)
    upright = 1 - 2 * (quat[0] ** 2 + quat[1] ** 2)  # cosine of the tilt
    bits = (
        state.stands and not flight.armed,
        flight.armed and not state.needs_reset,
        flight.auto_arm,
        flight.armed and not state.needs_reset,
        not state.stands and not state.needs_reset,
        upright < _TUMBLED,
        state in (FlightState.locked, FlightState.lost),
        state is FlightState.crashed,
        course is not None,
        over,
    )
    return sum(bool(bit) << i for i, bit in enumerate(bits))

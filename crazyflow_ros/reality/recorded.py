"""What a recorded flight gives to the simulation that repeats it: samples, and stages of `Sim`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.checks.limits import Limit, number
from crazyflow_ros.dynamics.components import (
    rotation_matrix,
    split,
    stack,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.flight_logs import FlightLog
from crazyflow_ros.flight_logs.motion import motion_of
from crazyflow_ros.sim import Battery, SimData

RATE = 100
"""Rate at which setpoints, voltages and errors of estimates are handed over [Hz]."""
LONGEST = 3600.0
"""Longest flight [s]."""
RISEN = 0.2
"""Height over the floor from which on a drone counts as flying [m]."""
NO_ERROR = np.array([0, 0, 0, 0, 0, 0, 1, 0, 0, 0.0])
"""The error of an exact estimate, see `Recorded.error`."""
ERROR, VOLTAGE = "estimate_error", "voltage"
"""Plugins that take the recorded values: (N, M, 10), see `Recorded.error`, and (N, M, 1) V."""

_SHORTEST = 1.0  # s
_LATENESS = Limit(1, "s")
_ROUNDING = 1e-6  # s, of times
_HIGHEST_REST = 0.15  # m, greatest height of the markers of a drone on the floor z = 0
_FAR = 1.0  # m below the lowest pose, where a floor has no effect
_STILL, _STILL_TIME = 0.005, 0.3  # m and s: a drone that stands does not move further


class Recorded(NamedTuple):
    """A recorded flight, sampled at `RATE` from its first setpoint to its end.

    Heights are over the floor plus `floor`: there a drone stands with its centre of mass at the
    origin.
    """

    log: FlightLog
    time: np.ndarray
    """(n,) s, clock of the log."""
    floor: float
    """Recorded height of a drone that stands [m]: the lowest, if that is near 0."""
    stands: bool
    """Whether the flight begins on the floor."""
    pos: np.ndarray
    """(n, 3) m, heights as in the log."""
    quat: np.ndarray
    """(n, 4)"""
    vel: np.ndarray
    """(n, 3) m/s."""
    setpoint: np.ndarray
    """(n, 16), see `FlightLog.setpoint`."""
    voltage: np.ndarray
    """(n, 1) V; infinite if it was not logged."""
    error: np.ndarray
    """(n, 10) of the drone's estimate: position [m] and velocity [m/s] in the world, and between
    them the quaternion from the true to the estimated body."""

    @property
    def flying(self) -> slice:
        """Samples between take-off and touch-down.

        Raises:
            ValueError: The drone has not risen by `RISEN`.
        """
        above = np.flatnonzero(self.pos[:, 2] > self.floor + RISEN)
        if not len(above):
            risen = self.pos[:, 2].max() - self.floor
            raise ValueError(
                f"{self.log.name}: the drone must rise by {RISEN:g} m to count as flying, got "
                f"{risen:.2g} m"
            )
        return slice(int(above[0]), int(above[-1]) + 1)


def recorded(log: FlightLog, lateness: float = 0.0) -> Recorded:
    """Sample a flight.

    Args:
        log: The flight.
        lateness: By how much the setpoints in the log are later than the poses [s].

    Raises:
        ValueError: It has no setpoints, is too short or too long, or the lateness is beyond 1 s.
    """
    number("lateness", lateness, _LATENESS)
    if log.setpoint is None:
        raise ValueError(f"{log.name}: without recorded setpoints it cannot be flown again")
    start, end = max(log.pose.time[0], log.setpoint.time[0] - lateness), _end(log)
    if not _SHORTEST < end - start <= LONGEST:
        raise ValueError(
            f"{log.name}: from the first setpoint on, a flight must have poses for "
            f"{_SHORTEST:g} to {LONGEST:g} s, got {max(end - start, 0):.3g} s"
        )
    motion = motion_of(log, RATE)
    used = slice(*np.searchsorted(motion.time, (start, end)))
    time, pos, quat, vel = (
        array[used] for array in (motion.time, motion.pos, motion.quat, motion.vel)
    )
    floor, stands = _floor(log, start)
    volts = np.full((len(time), 1), np.inf) if log.voltage is None else log.voltage.held_at(time)
    error = _error_of_estimate(log, time, pos, quat, vel)
    setpoint = log.setpoint.held_at(time + lateness + _ROUNDING)
    return Recorded(log, time, floor, stands, pos, quat, vel, setpoint, volts, error)


def _end(log: FlightLog) -> float:
    """Return the end of the poses, or that of what the drone logged if its radio fell silent."""
    poses, *onboard = (
        part.time[-1]
        for part in (log.pose, log.setpoint, log.estimate, log.gyro, log.pwm, log.rotor_vel)
        if part is not None
    )
    return float(min(poses, max(onboard)))


def _floor(log: FlightLog, start: float) -> tuple[float, bool]:
    """Return the height of a drone that stands, and whether it stands at the start."""
    time, pos = log.pose.time, log.pose.values[:, :3]
    lowest = float(pos[:, 2].min())
    if lowest > _HIGHEST_REST:  # it never stands: the floor is out of its reach
        return lowest - _FAR, False
    first = pos[(time >= start) & (time <= start + _STILL_TIME)]
    height = float(np.median(first[:, 2]))
    is_still = np.ptp(first, axis=0).max() < _STILL
    if is_still and height < lowest + 4 * _STILL and pos[:, 2].max() > height + RISEN:
        return height, True
    return lowest, False


def _error_of_estimate(
    log: FlightLog, time: np.ndarray, pos: np.ndarray, quat: np.ndarray, vel: np.ndarray
) -> np.ndarray:
    """Return `Recorded.error`.

    Of the attitude without its mean: that is the angle at which the markers are mounted.
    """
    errors = np.tile(NO_ERROR, (len(time), 1))
    if log.estimate is None:
        return errors
    estimate = log.estimate.at(time)
    errors[:, :3] = estimate[:, :3] - pos
    turned = (Rotation.from_quat(quat).inv() * Rotation.from_quat(estimate[:, 3:7])).as_rotvec()
    errors[:, 3:7] = Rotation.from_rotvec(turned - np.median(turned, axis=0)).as_quat()
    errors[:, 7:] = estimate[:, 7:] - vel
    return errors


class RecordedEstimate:
    """Takes the place of the estimator: the true state plus the recorded error of the estimate."""

    def begin(self, data: SimData) -> SimData:
        """Return the data without errors."""
        none = jnp.asarray(NO_ERROR, data.states.pos.dtype)
        errors = jnp.broadcast_to(none, (*data.states.pos.shape[:2], 10))
        return data.replace(plugins=data.plugins | {ERROR: errors})

    def __call__(self, data: SimData) -> SimData:
        """Write the estimate."""
        assert data.estimate is not None
        state, error = data.states, data.plugins[ERROR]
        (x, y, z, w), (i, j, k, r) = split(state.quat), split(error[..., 3:7])
        quat = (  # their product
            w * i + x * r + y * k - z * j,
            w * j - x * k + y * r + z * i,
            w * k + x * j - y * i + z * r,
            w * r - x * i - y * j - z * k,
        )
        velocity = vector(state.vel + error[..., 7:])
        estimate = data.estimate.replace(
            pos=state.pos + error[..., :3],
            quat=stack(quat),
            body_vel=stack(transform(transpose(rotation_matrix(quat)), velocity)),
        )
        return data.replace(estimate=estimate)


@dataclass(frozen=True)
class RecordedVoltage:
    """Takes the place of the battery: rotors are as fast as they get with the recorded voltage."""

    battery: Battery

    def begin(self, data: SimData) -> SimData:
        """Return the data with a full battery."""
        volts = jnp.full((*data.states.pos.shape[:2], 1), self.battery.full, data.states.pos.dtype)
        data = data.replace(plugins=data.plugins | {VOLTAGE: volts})
        return self.battery.limited(data, volts[..., 0])

    def __call__(self, data: SimData) -> SimData:
        """Limit the rotors."""
        return self.battery.limited(data, data.plugins[VOLTAGE][..., 0])

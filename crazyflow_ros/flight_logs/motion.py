"""The motion of a flight: positions, velocities, attitudes and rates at even times.

Poses are smoothed by polynomials that are fitted to their neighbours on both sides (A. Savitzky,
M. Golay, "Smoothing and differentiation of data by simplified least squares procedures", Analytical
Chemistry 36, 1964), so nothing lags. Estimates of a drone's filter do lag: in NanoBench by some
30 ms, which is 3 cm at 1 m/s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

from crazyflow_ros.flight_logs.flight_log import FlightLog, TimedValues

_CLEAR = 0.15  # m above the lowest place of a flight
_TURNING = 0.5  # of the usual mean speed of the rotors, or of their duty cycles
_LAPSE = 0.5  # s, for which rotors may turn slower in the air
_TRANSIENT = 1.0  # s, after take-off and before landing
_POSITION = 0.12  # s, length of the polynomials of positions and velocities
_ATTITUDE = 0.08  # s, of attitudes and rates from poses alone
_DRIFT = 0.4  # s, of the difference between integrated rates and poses
_RATES = 0.03  # s, of rates from a gyroscope
_LATEST = 0.06  # s, by which poses may be late
_SHIFT = 0.01  # s, between delays that are tried
_FAST = 200.0  # Hz; slower logs of a gyroscope alias the vibration of the motors


@dataclass(frozen=True)
class FlightMotion:
    """Smoothed motion, sampled evenly."""

    time: np.ndarray
    """(n,) s, clock of the log."""
    pos: np.ndarray
    """(n, 3) m, world frame."""
    vel: np.ndarray
    """(n, 3) m/s, world frame."""
    quat: np.ndarray
    """(n, 4) xyzw, body to world."""
    ang_vel: np.ndarray
    """(n, 3) rad/s, body frame."""


def motion_of(log: FlightLog, rate: float = 200.0) -> FlightMotion:
    """Return the motion of a flight.

    Attitudes and rates are those of a gyroscope, whose drift the poses correct, if it was logged at
    200 Hz or more; else those of the poses alone.

    Args:
        log: The flight.
        rate: Samples per second.

    Raises:
        ValueError: The flight lasts less than half a second.
    """
    poses, dt = log.pose, 1 / rate
    if (seconds := poses.time[-1] - poses.time[0]) < 0.5:
        raise ValueError(f"{log.name}: a flight must last 0.5 s, got {seconds:g} s")
    time = poses.time[0] + np.arange(int(seconds * rate) + 1) * dt
    attitudes = _attitudes(poses, time)
    if log.gyro is not None:
        late = _lateness(attitudes, time, log.gyro)
        poses = TimedValues(poses.time - late, poses.values)
        attitudes = _attitudes(poses, time)
    if log.gyro is not None and _rate(log.gyro.time) >= _FAST:
        ang_vel = _smooth(log.gyro.at(time), _RATES, dt)
        quat = _corrected(_integrated(ang_vel, dt), attitudes, dt)
    else:
        quat, ang_vel = _smooth_attitudes(attitudes, dt)
    pos = poses.at(time)[:, :3]
    return FlightMotion(
        time,
        _smooth(pos, _POSITION, dt),
        _smooth(pos, _POSITION, dt, derivative=1),
        quat.as_quat(),
        ang_vel,
    )


def _lateness(attitudes: Rotation, time: np.ndarray, gyro: TimedValues) -> float:
    """Return how much later attitudes show rotations than a gyroscope does [s].

    With that shift, the slow rates of both, less their means, are nearest to each other: it is the
    vertex of a parabola through the errors.
    """
    dt = float(time[1] - time[0])
    _, seen = _smooth_attitudes(attitudes, dt)
    shifts = np.arange(-_LATEST, _LATEST + _SHIFT / 2, _SHIFT)
    kept = slice(round(0.5 / dt), -round(0.5 / dt))
    errors = []
    for shift in shifts:
        difference = _smooth(gyro.at(time - shift), _ATTITUDE, dt) - seen
        errors.append(float(np.var(difference[kept], axis=0).sum()))
    best = int(np.clip(np.argmin(errors), 1, len(shifts) - 2))
    before, least, after = errors[best - 1 : best + 2]
    if (bend := before - 2 * least + after) <= 0:
        return 0.0
    return float(shifts[best] + _SHIFT / 2 * (before - after) / bend)


def _rate(time: np.ndarray) -> float:
    return 1 / float(np.median(np.diff(time))) if len(time) > 1 else 0.0


def _smooth(values: np.ndarray, seconds: float, dt: float, derivative: int = 0) -> np.ndarray:
    samples = max(2, round(seconds / dt / 2)) * 2 + 1
    return savgol_filter(values, samples, 3, derivative, dt, axis=0)


def _attitudes(poses: TimedValues, time: np.ndarray) -> Rotation:
    """Return the attitudes of the poses, interpolated along the shortest rotations."""
    recorded, given = Rotation.from_quat(poses.values[:, 3:]), poses.time
    index = np.clip(np.searchsorted(given, time, side="right") - 1, 0, len(given) - 2)
    share = np.clip((time - given[index]) / (given[index + 1] - given[index]), 0.0, 1.0)
    turns = (recorded[:-1].inv() * recorded[1:]).as_rotvec()
    return recorded[index] * Rotation.from_rotvec(share[:, None] * turns[index])


def _smooth_attitudes(quat: Rotation, dt: float) -> tuple[Rotation, np.ndarray]:
    """Return smoothed attitudes, and their rates in the body frame, (n, 3).

    Attitudes are rotation vectors relative to a rough smoothing, of which nothing is large.
    """
    steps = np.vstack([(quat[:-1].inv() * quat[1:]).as_rotvec(), np.zeros(3)])
    ang_vel = _smooth(steps / dt, _ATTITUDE, dt)
    ang_vel = np.vstack([ang_vel[:1], (ang_vel[1:] + ang_vel[:-1]) / 2])  # steps lie between
    return _corrected(_integrated(ang_vel, dt), quat, dt), ang_vel


def _integrated(ang_vel: np.ndarray, dt: float) -> Rotation:
    """Return the attitudes to which rates lead, from no rotation."""
    between = (ang_vel[:-1] + ang_vel[1:]) / 2
    turns = Rotation.from_rotvec(between * dt).as_quat()
    attitudes = np.empty((len(ang_vel), 4))
    attitudes[0] = 0, 0, 0, 1
    for i, (x, y, z, w) in enumerate(turns):
        a, b, c, d = attitudes[i]
        attitudes[i + 1] = (
            d * x + a * w + b * z - c * y,
            d * y - a * z + b * w + c * x,
            d * z + a * y - b * x + c * w,
            d * w - a * x - b * y - c * z,
        )
    return Rotation.from_quat(attitudes)


def _corrected(integrated: Rotation, measured: Rotation, dt: float) -> Rotation:
    """Return integrated attitudes whose slow difference from the measured ones is removed."""
    drift = (integrated.inv() * measured).as_quat()
    signs = np.cumprod(np.where((drift[1:] * drift[:-1]).sum(axis=1) < 0, -1.0, 1.0))
    drift[1:] *= signs[:, None]  # along the nearer of the two quaternions
    return integrated * Rotation.from_quat(_smooth(drift, _DRIFT, dt))


def in_the_air(log: FlightLog) -> FlightLog:
    """Return the longest part of a flight in the air, without take-off and landing.

    That is where the rotors turn or, if this was not logged, where the drone is not at its lowest.

    Raises:
        ValueError: The drone is not in the air for long enough.
    """
    rotors = log.rotor_vel or log.pwm
    if rotors is not None:
        mean = rotors.values.mean(axis=1)
        turning = mean[mean > 0]
        least = _TURNING * float(np.median(turning)) if len(turning) else np.inf
        is_up, time = mean > least, rotors.time
    else:
        height = log.pose.values[:, 2]
        is_up, time = height > height.min() + _CLEAR, log.pose.time
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_up, [0]]))).reshape(-1, 2)
    starts, ends = time[edges[:, 0]], time[edges[:, 1] - 1]
    is_landing = starts[1:] - ends[:-1] > _LAPSE
    starts, ends = (
        starts[np.append(True, is_landing)[: len(starts)]],
        ends[np.append(is_landing, True)[: len(ends)]],
    )
    longest, start, end = max(zip(ends - starts, starts, ends), default=(0.0, 0.0, 0.0))
    if longest < (needed := 2 * _TRANSIENT + 1):
        raise ValueError(
            f"{log.name}: a flight must be {needed:g} s in the air, got {max(longest, 0.0):.1f} s"
        )
    first = log.pose.time[0]
    return log.between(start + _TRANSIENT - first, end - _TRANSIENT - first)

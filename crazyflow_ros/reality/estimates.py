"""The Kalman filter, run on the sensors and poses of real flights beside the firmware's.

The same readings and poses should give the same estimate. This needs the poses that arrived at the
drone, which its SD card logs. Those that a motion capture recorded are others: the radio loses some
of them, and delays others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import degrees
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.spatial.transform import Rotation

from crazyflow_ros.dynamics.components import (
    Vec4,
    rotation_matrix,
    split,
    stack,
    transform,
    transpose,
    vector,
)
from crazyflow_ros.estimation import kalman
from crazyflow_ros.estimation.external_poses import POS_STD, QUAT_STD
from crazyflow_ros.estimation.kalman import Belief
from crazyflow_ros.flight_logs import FlightLog, TimedValues
from crazyflow_ros.identification.fit import rms
from crazyflow_ros.reality.duty_cycles import for_each_row, in_flight, needed


class Trust(NamedTuple):
    """Errors that the firmware expects of poses: its parameters of `locSrv`."""

    pos_std: float
    """m."""
    quat_std: float
    """rad; `IGNORED` if positions arrived alone."""


IGNORED = 1e3
"""An error [rad] so large that attitudes have no effect."""
TRUSTS = {
    "firmware": Trust(POS_STD, QUAT_STD),
    "firmware, positions alone": Trust(POS_STD, IGNORED),
    "crazyswarm2": Trust(1e-3, 5e-2),
    "crazyswarm2, positions alone": Trust(1e-3, IGNORED),
}
"""The usual ones, by their origin; logs do not say which were set."""
_DT = 1 / kalman.PREDICTION_RATE
_QUEUED = 0.002  # s until the filter's task takes what has arrived, and the log shows it
_AT_ONCE = 4  # poses that a prediction can be followed by
_SETTLING = 1.5  # s that are not judged
_DELAYS = np.arange(-0.01, 0.061, 0.002)  # s, of the logged estimate behind ours
_LEAST = 100  # samples
_SAME = (0.005, np.radians(0.5))  # m and rad that weigh the same where one of `TRUSTS` is chosen


@dataclass(frozen=True)
class EstimateErrors:
    """RMS differences between estimates of a flight, in m and degrees."""

    flight: str
    trust: str
    """The one of `TRUSTS` that explains the logged estimate best."""
    delay: float
    """Delay of the logged estimate, s; ours is shifted by it."""
    position: float
    """Our estimate minus the logged one."""
    tilt: float
    yaw: float
    onboard_position: float
    """The logged estimate minus the poses, for comparison."""
    onboard_tilt: float
    onboard_yaw: float


def estimate_errors(log: FlightLog) -> EstimateErrors:
    """Compare our filter's estimate with the logged one.

    Args:
        log: A flight with poses, estimate, gyroscope, accelerometer and motor commands.

    Raises:
        ValueError: The log lacks one of these, or is too short.
    """
    logged = needed(log, "estimate")
    if log.pose_is_estimate:
        raise ValueError(f"{log.name}: poses were not logged")
    found = {}
    for name, trust in TRUSTS.items():
        ours = replayed_estimate(log, trust)
        judged = ours.between(ours.time[0] + _SETTLING, ours.time[-1] - _DELAYS[-1])
        if judged is None or len(judged.time) < _LEAST:
            raise ValueError(
                f"{log.name}: expected {_SETTLING + _LEAST * _DT:g} s of flight or more"
            )
        delay = min(_DELAYS, key=lambda d: _differences(judged, logged, d)[0])
        found[name] = float(delay), _differences(judged, logged, delay)
    best = min(found, key=lambda name: sum(np.divide(found[name][1][:2], _SAME)))
    delay, (position, tilt, yaw) = found[best]
    flown = log.pose.between(*in_flight(log))
    onboard = _differences(log.pose if flown is None else flown, logged, 0.0)
    return EstimateErrors(
        log.name,
        best,
        delay,
        position,
        degrees(tilt),
        degrees(yaw),
        onboard[0],
        degrees(onboard[1]),
        degrees(onboard[2]),
    )


def replayed_estimate(log: FlightLog, trust: Trust) -> TimedValues:
    """Return our filter's estimates (n, 10), as `FlightLog.estimate`, from that at the start on.

    Args:
        log: See `estimate_errors`.
        trust: Errors that the filter expects of the poses.
    """
    estimate, gyro, acc = (needed(log, name) for name in ("estimate", "gyro", "accelerometer"))
    start, end = in_flight(log)
    common = [gyro.time, acc.time, log.pose.time]
    first, last = max(time[0] for time in common), min(end, *(time[-1] for time in common))
    logged = estimate.between(first, last)
    rows = None if logged is None else _predictions(logged)
    if rows is None or len(rows.time) <= _LEAST:
        raise ValueError(f"{log.name}: expected {_LEAST * _DT:g} s of flight or more")
    before, times = rows.time[:-1], rows.time[1:]
    poses, arrived = _arrivals(log.pose, before, times)
    sensed = [_mean(samples, before, times) for samples in (gyro, acc)]
    inputs = [*sensed, times - before, times > start, arrived, poses.reshape(len(times), -1)]
    begun = jnp.asarray(rows.values[0], jnp.float32)
    run = partial(_run, begun=begun, trust=jnp.array(trust, jnp.float32))
    return TimedValues(times, for_each_row(run, np.column_stack(inputs)))


def _predictions(logged: TimedValues) -> TimedValues:
    """Return the logged estimates right after predictions, of those that were logged.

    The firmware predicts a hundred times a second. Its SD card logs more often, so that one of
    several samples is the first with the motion of a period: which one changes slowly, because
    predictions and samples have different clocks.
    """
    gaps = np.diff(logged.time)
    period = float(np.median(gaps))
    every = max(1, round(_DT / period))
    phases = np.append(0, np.cumsum(np.round(gaps / period))).astype(int) % every  # over gaps, too
    moved = np.append(0, np.linalg.norm(np.diff(logged.values[:, :3], axis=0), axis=1))
    chosen = np.zeros(len(phases), bool)
    for part in np.array_split(np.arange(len(phases)), max(1, round(len(phases) * period))):
        chosen[part] = phases[part] == np.argmax(np.bincount(phases[part], moved[part]))
    return TimedValues(logged.time[chosen], logged.values[chosen])


@jax.jit
def _run(inputs: Array, begun: Array, trust: Array) -> Array:
    """Return the estimates (n, 10) after each prediction.

    Args:
        inputs: (n, 8 + 8 k) angular velocity, specific force, time step, whether the drone flies;
            of up to k poses before it, which there are, and the poses.
        begun: (10,) the estimate before.
        trust: (2,) `Trust`.
    """
    pos, quat, vel = vector(begun[:3]), _quat(begun[3:7]), vector(begun[7:])
    body_vel = transform(transpose(rotation_matrix(quat)), vel)

    def step(belief: Belief, row: Array) -> tuple[Belief, Array]:
        valid, found = row[8 : 8 + _AT_ONCE], row[8 + _AT_ONCE :].reshape(_AT_ONCE, 7)

        def told(belief: Belief, pose: tuple[Array, Array]) -> tuple[Belief, None]:
            values, valid = pose
            for axis in range(3):
                measured = kalman.coordinate(belief, axis, values[axis], trust[0])
                belief = kalman.updated(belief, measured._replace(valid=valid > 0))
            for measured in kalman.attitude(belief, _quat(values[3:]), trust[1]):
                belief = kalman.updated(belief, measured._replace(valid=valid > 0))
            return kalman.settled(belief), None

        belief = jax.lax.scan(told, belief, (found, valid))[0]
        gyro, acc, rot = vector(row[:3]), vector(row[3:6]), rotation_matrix(belief.quat)
        dt: Any = row[6]
        belief = kalman.predicted(belief, rot, gyro, acc, dt, row[7] > 0, quat)
        belief = kalman.settled(kalman.diffused(belief, dt))
        world_vel = transform(rotation_matrix(belief.quat), belief.vel)
        return belief, stack((*belief.pos, *belief.quat, *world_vel))

    return jax.lax.scan(step, kalman.certain(pos, quat, body_vel), inputs)[1]


def _quat(values: Array) -> Vec4:
    x, y, z, w = split(values)
    return (x, y, z, w)


def _arrivals(
    poses: TimedValues, before: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return poses (n, k, 7) that arrived between times (n,), and which there are (n, k)."""
    found, arrived = np.zeros((len(times), _AT_ONCE, 7)), np.zeros((len(times), _AT_ONCE))
    found[..., 6] = 1.0
    steps = np.searchsorted(times, poses.time + _QUEUED)
    count = np.arange(len(steps)) - np.searchsorted(steps, steps)  # in the same step before
    used = (poses.time + _QUEUED > before[0]) & (steps < len(times)) & (count < _AT_ONCE)
    found[steps[used], count[used]] = poses.values[used]
    arrived[steps[used], count[used]] = 1.0
    return found, arrived


def _mean(samples: TimedValues, before: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return means of the samples between times (n,), or else the value amid them."""
    sums = np.cumsum(np.vstack([np.zeros(samples.values.shape[1]), samples.values]), axis=0)
    first, last = (np.searchsorted(samples.time, t, side="right") for t in (before, times))
    count = (last - first)[:, None]
    means = (sums[last] - sums[first]) / np.maximum(count, 1)
    return np.where(count > 0, means, samples.at((before + times) / 2))


def _differences(
    ours: TimedValues, logged: TimedValues, delay: float
) -> tuple[float, float, float]:
    """Return RMS differences of position [m], tilt and yaw [rad]."""
    other = logged.at(ours.time + delay)
    off = np.linalg.norm(ours.values[:, :3] - other[:, :3], axis=1)
    turn = Rotation.from_quat(ours.values[:, 3:7]).inv() * Rotation.from_quat(other[:, 3:7])
    x, y, z = turn.as_rotvec().T
    return rms(off), rms(np.hypot(x, y)), rms(z)

"""Camera measurements for PX4: optical flow of the floor and visual odometry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crazyflow_ros.doors.px4.mavlink import HilOpticalFlow, Message, Odometry
from crazyflow_ros.drones.instruments import (
    PMW3901,
    PMW3901_MIN_RANGE,
    PMW3901_PERIOD,
    NoiseCfg,
    flow_rates,
)
from crazyflow_ros.runtime import Snapshot
from crazyflow_ros.runtime.door_settings import DoorContext
from crazyflow_ros.scene import Mirror
from crazyflow_ros.scene.frames import (
    enu_to_ned,
    flu_to_frd,
    frd_in_ned,
    multiply,
    quat_from_rpy,
    xyzw_to_wxyz,
)
from crazyflow_ros.sensors.noise import Noise

# The PMW3901 reads a hundred times a second; over a longer time its noise averages out.
_FLOW = NoiseCfg(
    density=np.multiply(PMW3901.std, math.sqrt(PMW3901_PERIOD)).item(),
    saturation=PMW3901.saturation,
)  # rad/s
# Assumed: a good visual-inertial odometry, which wanders by 4 cm and half a degree in a minute.
_PLACE = NoiseCfg(std=0.005, random_walk=0.005)  # m
_TURN = NoiseCfg(std=0.003, random_walk=(0.0, 0.0, 0.001))  # rad
_VELOCITY = NoiseCfg(std=0.02)  # m/s

_BEST, _PERCENT = 255, 100  # qualities
_UNKNOWN = -1.0  # m; the range finder is a sensor of its own
_LOCAL_NED, _BODY_FRD, _VISUAL_INERTIAL = 1, 12, 3
_DIAGONAL = (0, 6, 11, 15, 18, 20)  # of a symmetric matrix, whose upper half is sent


class Vision:
    """Flow sensors that look down, and visual odometry, of all drones.

    Args:
        rate: Rate of both [Hz].
        flow: Whether the drones have flow sensors.
        odometry: Whether they have visual odometry.
        context: The simulation.
    """

    def __init__(self, rate: int, *, flow: bool, odometry: bool, context: DoorContext) -> None:
        self._has_flow, self._has_odometry, self._dt = flow, odometry, 1 / rate
        n, seed = len(context.drones), context.seed
        keys = [tuple(drone.encode()) for drone in context.drones]

        def noise(cfg: NoiseCfg, axes: int, name: bytes) -> Noise:
            return Noise(cfg, n, axes, (seed, *name), keys)

        self._flow = noise(_FLOW, 2, b"optical flow")
        self._place = noise(_PLACE, 3, b"visual place")
        self._turn = noise(_TURN, 3, b"visual attitude")
        self._velocity = noise(_VELOCITY, 3, b"visual velocity")
        variances = [*self._place.variance(self._dt), *self._turn.variance(self._dt)]
        self._pose_covariance = _covariance(variances)
        self._velocity_covariance = _covariance([*self._velocity.variance(self._dt), 0, 0, 0])

    def take(
        self, snapshot: Snapshot, mirror: Mirror, rates: np.ndarray, time_usec: int
    ) -> list[Sequence[Message]]:
        """Return the messages of all drones, one list for each kind of sensor that they have.

        Args:
            snapshot: The state.
            mirror: The MuJoCo side.
            rates: (M, 3) readings of the gyroscopes, FLU [rad/s].
            time_usec: PX4's time.
        """
        found: list[Sequence[Message]] = []
        if self._has_flow:
            found.append(self._flows(snapshot, mirror, rates, time_usec))
        if self._has_odometry:
            found.append(self._odometries(snapshot, time_usec))
        return found

    def forget(self, drones: np.ndarray) -> None:
        """Give drones that were reset, by index, sensors with other errors."""
        for noise in (self._flow, self._place, self._turn, self._velocity):
            noise.reset(drones)

    def _flows(
        self, snapshot: Snapshot, mirror: Mirror, rates: np.ndarray, time_usec: int
    ) -> list[HilOpticalFlow]:
        below = mirror.range(snapshot.names)
        is_sharp = np.isfinite(below) & (below >= PMW3901_MIN_RANGE)
        distance = np.where(is_sharp, below, np.inf)
        # About the axes forward and right; what turns the sensor to the right, or moves it to the
        # left, is positive about the first, what moves it forward about the second.
        forward, left = flow_rates(snapshot.body_vel.T, snapshot.ang_vel.T, distance)
        rates_about = np.stack([left, forward], axis=-1)
        flow = self._flow.apply(rates_about, self._dt) * self._dt * is_sharp[:, None]
        turned = flu_to_frd(rates) * self._dt
        rows = zip(flow.tolist(), turned.tolist(), is_sharp.tolist())
        period = round(1e6 * self._dt)
        return [
            HilOpticalFlow(
                time_usec, period, x, y, (p, q, r), 0, _UNKNOWN, 0, 0, _BEST if sharp else 0
            )
            for (x, y), (p, q, r), sharp in rows
        ]

    def _odometries(self, snapshot: Snapshot, time_usec: int) -> list[Odometry]:
        error = self._turn.apply(np.zeros_like(snapshot.pos), self._dt)
        quat = multiply(quat_from_rpy(error), snapshot.quat)  # about the axes of the world
        place = enu_to_ned(self._place.apply(snapshot.pos, self._dt))
        velocity = flu_to_frd(self._velocity.apply(snapshot.body_vel, self._dt))
        rows: Any = zip(
            place.tolist(),
            xyzw_to_wxyz(frd_in_ned(quat)).tolist(),
            velocity.tolist(),
            flu_to_frd(snapshot.ang_vel).tolist(),
        )
        covariances = self._pose_covariance, self._velocity_covariance
        rest = (_LOCAL_NED, _BODY_FRD, 0, _VISUAL_INERTIAL, _PERCENT)
        return [
            Odometry(time_usec, (*p,), (*q,), (*v,), (*w,), *covariances, *rest)
            for p, q, v, w in rows
        ]


def _covariance(variances: Sequence[float]) -> tuple[float, ...]:
    """Return the upper half of a 6 by 6 matrix with these on its diagonal, row by row."""
    found = [0.0] * 21
    for place, variance in zip(_DIAGONAL, variances):
        found[place] = float(variance)
    return tuple(found)

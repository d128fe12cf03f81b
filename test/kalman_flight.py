"""A random sequence of measurements, and our filter's belief after each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

from crazyflow_ros.dynamics.components import rotation_matrix
from crazyflow_ros.estimation import kalman

DT = 0.01
G = 9.81


@dataclass
class Step:
    """What the sensors measure in one step, and the truth."""

    acc: np.ndarray
    gyro: np.ndarray
    flies: bool
    kind: str
    values: np.ndarray
    pos: np.ndarray
    vel: np.ndarray  # world
    quat: np.ndarray


KINDS = ("position", "pose", "distance", "height", "flow")
ANCHORS = np.array([[-3.0, -3, 0], [3, -3, 2.5], [3, 3, 0], [-3, 3, 2.5]])
DISTANCE_STD, POS_STD, QUAT_STD = 0.25, 0.01, 4.5e-3


def flight(seed: int, n: int, kinds: tuple[str, ...] = KINDS) -> Iterator[Step]:
    """A drone that wobbles and turns about a point, measured with the errors the filter expects."""
    rng = np.random.default_rng(seed)
    pos, vel, rot = np.array([0.0, 0, 1]), np.zeros(3), Rotation.identity()
    phase = rng.uniform(0, 2 * np.pi, 3)
    noise = 1 / np.sqrt(1000 * DT)  # the filter adds noise a thousand times a second
    for k in range(n):
        wave = np.sin(2 * np.pi * np.array([0.5, 0.4, 0.2]) * k * DT + phase)
        gyro = np.array([0.6, 0.6, 0.5]) * wave
        lift = (G - 0.5 * (pos[2] - 1) - 0.8 * vel[2]) / max(rot.as_matrix()[2, 2], 0.5)
        force = np.array([*rng.normal(0, 0.5 * noise, 2), lift])
        acc = rot.apply(force) - [0, 0, G]
        start = pos, rot
        pos, vel = pos + vel * DT + acc * DT**2 / 2, vel + acc * DT
        rot = rot * Rotation.from_rotvec(gyro * DT)
        kind = kinds[k % len(kinds)]
        values = _measured(rng, k, kind, start, (pos, rot), gyro)
        read = gyro + rng.normal(0, 0.1 * noise, 3)
        felt = force + rng.normal(0, noise, 3)
        yield Step(felt, read, True, kind, values, pos, vel, rot.as_quat())


def _measured(rng, k, kind, before, now, gyro) -> np.ndarray:
    (old, was), (pos, rot) = before, now
    if kind == "position":
        return pos + rng.normal(0, POS_STD, 3)
    if kind == "pose":
        turned = rot * Rotation.from_rotvec(rng.normal(0, QUAT_STD, 3))
        return np.hstack([pos + rng.normal(0, POS_STD, 3), turned.as_quat()])
    if kind == "distance":
        anchor = ANCHORS[rng.integers(len(ANCHORS))]
        return np.array([*anchor, np.linalg.norm(pos - anchor) + rng.normal(0, DISTANCE_STD)])
    upright = was.as_matrix()[2, 2]
    if kind == "height":
        tilt = max(np.arccos(min(upright, 1.0)) - np.pi / 24, 0)
        return np.array([pos[2] / np.cos(tilt) + rng.normal(0, 0.0026)])
    body = was.inv().apply((pos - old) / DT)
    rate = body[:2] * upright / pos[2] + gyro[[1, 0]] * [-1, 1]
    return rate * DT * 35 / 0.71674 + rng.normal(0, 0.2, 2)


@partial(jax.jit, static_argnames="kind")
def after(belief, acc, gyro, flies, values, kind):
    """Our filter after a step; components have the shape (flights,)."""
    rot = rotation_matrix(belief.quat)
    belief = kalman.predicted(belief, rot, tuple(gyro), tuple(acc), DT, flies, level(flies.size))
    belief = kalman.diffused(belief, DT)
    measurements = []
    if kind in ("position", "pose"):
        for axis in range(3):
            measured = kalman.coordinate(belief, axis, values[axis], POS_STD)
            belief = kalman.updated(belief, measured)
    if kind == "pose":
        measurements = kalman.attitude(belief, tuple(values[3:]), QUAT_STD)
    elif kind == "distance":
        anchor = tuple(values[:3])
        measurements = [kalman.distance(belief, anchor, values[3], DISTANCE_STD)]
    elif kind == "height":
        measurements = [kalman.height(belief, rot, values[0])]
    elif kind == "flow":
        measurements = kalman.flow(belief, rot, tuple(gyro), tuple(values), DT)
    for measurement in measurements:
        belief = kalman.updated(belief, measurement)
    return kalman.settled(belief)


def level(n: int) -> tuple[jax.Array, ...]:
    """Attitudes of n drones, xyzw."""
    return (*(jnp.zeros(n),) * 3, jnp.ones(n))


def beliefs(flights: list[list[Step]]) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Our mean (F, 6), attitude (F, 4) xyzw and covariance (F, 9, 9) after each step."""
    n = len(flights)
    belief = kalman.begun((jnp.zeros(n), jnp.zeros(n), jnp.ones(n)), level(n))
    for steps in zip(*flights):
        names = ("acc", "gyro", "flies", "values")
        arrays = [np.array([getattr(s, name) for s in steps]).T for name in names]
        belief = after(belief, *map(jnp.asarray, arrays), kind=steps[0].kind)
        yield np.array(belief.mean[:6]).T, np.array(belief.quat).T, np.array(belief.cov).T

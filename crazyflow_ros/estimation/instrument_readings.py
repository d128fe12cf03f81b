"""Readings of a Crazyflie's instruments for its estimator, with their errors.

The errors are those of `drones.instruments`, as they remain after the firmware's calibration at
rest. Components are arrays of one shape, one number for each drone. The readings are means over a
step, because the compiled physics takes them in the middle of its tick. Readings in `sensors` are
of an instant, at any place on a drone and over any ground.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones.deck_optics import (
    LEAST_TEXTURE,
    ORDINARY_SQUAL,
    ORDINARY_STD,
    STD_OF_FEATURES,
)
from crazyflow_ros.drones.instruments import (
    BMI088_ACCELEROMETER,
    BMI088_GYRO,
    PMW3901,
    PMW3901_MIN_RANGE,
    PMW3901_PERIOD,
    VL53L1X,
    VL53L1X_MAX_RANGE,
    NoiseCfg,
    flow_rates,
)
from crazyflow_ros.dynamics.components import (
    Vec3,
    Vec4,
    add,
    dot,
    rotation_matrix,
    scale,
    sin_cos,
    subtract,
    transform,
    transpose,
)
from crazyflow_ros.estimation.below import FAR, Below
from crazyflow_ros.estimation.kalman import GRAVITY, PIXELS_PER_RADIAN, range_std

_CALIBRATION = 0.512  # s over which the firmware averages the gyroscope at rest
FLOW_COUNT = 0.1  # pixels, resolution of the flow sensor
NOTHING = 8.19
"""What the range sensor reads where it sees nothing [m]: an error number below 8192 mm, one of the
readings above 8 m that the firmware drops (`zranger2.c`)."""


class Random:
    """Random numbers, a stream for each drone: SplitMix (Steele, Lea, Flood, OOPSLA 2014), 32 bits.

    JAX's own random numbers would depend on the block in which a world is computed.

    Args:
        state: State of each stream, uint32.
        step: Odd numbers that distinguish the streams, uint32.

    Attributes:
        state: The present state.
    """

    def __init__(self, state: Array, step: Array) -> None:
        self.state, self._step = state, step

    @staticmethod
    def seeds(seed: int, n_worlds: int, n_drones: int) -> np.ndarray:
        """Return state and step of each drone, (n_worlds, n_drones, 2)."""
        rng = np.random.default_rng(seed)
        numbers = rng.integers(2**32, size=(n_worlds, n_drones, 2), dtype=np.uint32)
        return numbers | np.array([0, 1], np.uint32)

    def jump(self, distance: Array) -> None:
        """Jump to another place in the streams, which depends on a whole number."""
        self.state = self.state ^ _mixed(distance.astype(jnp.uint32))

    def normal(self, count: int, dtype: np.dtype) -> list[Array]:
        """Return standard normal numbers by the method of Box and Muller."""
        found: list[Array] = []
        while len(found) < count:
            sine, cosine = sin_cos(2 * pi * self.uniform(dtype))
            size = jnp.sqrt(-2 * jnp.log(self.uniform(dtype)))
            found += [size * sine, size * cosine]
        return found[:count]

    def vector(self, dtype: np.dtype) -> Vec3:
        """Return vectors of three standard normal numbers."""
        x, y, z = self.normal(3, dtype)
        return (x, y, z)

    def uniform(self, dtype: np.dtype) -> Array:
        """Return numbers strictly between 0 and 1."""
        self.state = self.state + self._step
        return ((_mixed(self.state) >> 8).astype(dtype) + 0.5) * 2.0**-24


def _mixed(x: Array) -> Array:
    x = (x ^ (x >> 16)) * jnp.uint32(0x21F0AAAD)
    x = (x ^ (x >> 15)) * jnp.uint32(0x735A2D97)
    return x ^ (x >> 15)


class Errors(NamedTuple):
    """Constant errors of the instruments of each drone."""

    gyro: Vec3
    """rad/s."""
    gyro_scale: Vec3
    acc: Vec3
    """m/s^2."""
    range: Array
    """m."""

    @classmethod
    def drawn(cls, random: Random, dtype: np.dtype) -> Errors:
        """Return random errors."""
        # The calibration at rest removes the bias of the gyroscope except for the noise in its
        # mean.
        left = float(np.max(BMI088_GYRO.density)) / sqrt(_CALIBRATION)
        return cls(
            scale(random.vector(dtype), left),
            scale(random.vector(dtype), float(np.max(BMI088_GYRO.scale))),
            scale(random.vector(dtype), float(np.max(BMI088_ACCELEROMETER.bias))),
            random.normal(1, dtype)[0] * float(np.max(VL53L1X.bias)),
        )

    @classmethod
    def of(cls, numbers: tuple[Array, ...]) -> Errors:
        """Return the errors of ten component arrays, the inverse of `numbers`."""
        gyro, gyro_scale, acc = (numbers[i : i + 3] for i in (0, 3, 6))
        return cls(gyro, gyro_scale, acc, numbers[9])  # type: ignore[arg-type]

    @property
    def numbers(self) -> tuple[Array, ...]:
        """All errors, in ten component arrays."""
        return (*self.gyro, *self.gyro_scale, *self.acc, self.range)


class PoseReading(NamedTuple):
    """Position, attitude (xyzw) and velocity at an instant; world frame, SI."""

    pos: Vec3
    quat: Vec4
    vel: Vec3

    @property
    def numbers(self) -> tuple[Array, ...]:
        """All of it, in ten component arrays."""
        return (*self.pos, *self.quat, *self.vel)


class MeanMotion(NamedTuple):
    """The mean motion between two instants, body frame."""

    turn: Vec3
    """Angular velocity, rad/s."""
    force: Vec3
    """Specific force, m/s^2."""
    vel: Vec3
    """Velocity, m/s."""

    @classmethod
    def between(
        cls,
        before: PoseReading,
        now: PoseReading,
        dt: float,
        gravity: float = GRAVITY,
    ) -> MeanMotion:
        """Return the motion between two instants `dt` [s] apart.

        Args:
            before: The first instant.
            now: The second instant.
            dt: s.
            gravity: m/s^2, downwards.
        """
        x, y, z, w = before.quat
        a, b, c, d = now.quat
        real = w * d + x * a + y * b + z * c
        sign = jnp.where(real < 0, -1.0, 1.0)  # either sign of a quaternion is the same attitude
        part = (
            sign * (w * a - x * d - y * c + z * b),
            sign * (w * b - y * d - z * a + x * c),
            sign * (w * c - z * d - x * b + y * a),
        )
        half = [p + sign * q for p, q in zip(before.quat, now.quat)]
        size = jnp.sqrt(half[0] ** 2 + half[1] ** 2 + half[2] ** 2 + half[3] ** 2)
        rot = rotation_matrix((half[0] / size, half[1] / size, half[2] / size, half[3] / size))
        to_body = transpose(rot)
        ax, ay, az = scale(subtract(now.vel, before.vel), 1 / dt)
        return cls(
            turn=scale(part, (2 + dot(part, part) / 3) / dt),  # the angle, to third order
            force=transform(to_body, (ax, ay, az + gravity)),
            vel=transform(to_body, scale(subtract(now.pos, before.pos), 1 / dt)),
        )


def imu(
    motion: MeanMotion, errors: Errors, random: Random, dt: float, gravity: float = GRAVITY
) -> tuple[Vec3, Vec3]:
    """Return mean angular velocity [rad/s] and specific force [m/s^2] over a time `dt` [s]."""
    dtype = motion.turn[0].dtype
    noise = scale(random.vector(dtype), white(BMI088_GYRO, dt))
    x, y, z = (w * s for w, s in zip(motion.turn, errors.gyro_scale))
    turn = add(add(motion.turn, (x, y, z)), add(errors.gyro, noise))
    noise = scale(random.vector(dtype), white(BMI088_ACCELEROMETER, dt))
    # The firmware scales the readings so that they are 1 g at rest.
    x, y, z = errors.acc
    at_rest = jnp.sqrt(x * x + y * y + (z + gravity) * (z + gravity))
    force = scale(add(add(motion.force, errors.acc), noise), gravity / at_rest)
    return _within(turn, BMI088_GYRO.saturation), _within(force, BMI088_ACCELEROMETER.saturation)


class FlowReading(NamedTuple):
    """A reading of the flow deck."""

    pixels: tuple[Array, Array]
    """How far the ground moved along the axes of the body; 0 where the picture shows no motion."""
    squal: Array
    """Count of features, the register SQUAL."""
    std: Array
    """Noise, pixels."""
    valid: Array
    """Whether the sensor finds enough features."""


def flow(motion: MeanMotion, below: Below, random: Random, dt: float) -> FlowReading:
    """Return by how many pixels the ground moves in the flow deck's picture in `dt` [s]."""
    is_sharp = (below.middle > PMW3901_MIN_RANGE) & (below.middle < FAR)
    safe = jnp.where(is_sharp, below.middle, 1.0)
    rates = flow_rates(motion.vel, motion.turn, safe)
    noise = random.normal(2, safe.dtype)
    squal = jnp.where(is_sharp, below.texture, 0.0) * ORDINARY_SQUAL
    least, slope = STD_OF_FEATURES
    counts = least + slope * jnp.where(is_sharp, squal, ORDINARY_SQUAL)
    std = counts / ORDINARY_STD * float(np.max(PMW3901.std)) * PMW3901_PERIOD / dt
    is_clear = is_sharp & (below.texture >= LEAST_TEXTURE)
    pixels = []
    for rate, number in zip(rates, noise):
        read = rate + number * std  # of a reading, whatever its time
        read = jnp.clip(read, -PMW3901.saturation, PMW3901.saturation)
        # A blurred picture shows no motion.
        pixels.append(_counted(jnp.where(is_clear, read, 0.0) * dt * PIXELS_PER_RADIAN))
    return FlowReading((pixels[0], pixels[1]), squal, counts * FLOW_COUNT, is_clear | ~is_sharp)


def height(below: Below, offset: Array, random: Random) -> tuple[Array, Array]:
    """Return the reading of the range sensor [m], and whether it sees something."""
    is_seen = below.nearest < VL53L1X_MAX_RANGE
    distance = jnp.where(is_seen, below.nearest, 0.0)
    noise = random.normal(1, distance.dtype)[0] * range_std(distance)
    read = jnp.maximum(distance + offset + noise, 0.0)
    return jnp.where(is_seen, read, NOTHING), is_seen


def on_deck(
    range_: tuple[Array, Array, Array] | None,
    flow: FlowReading | None,
    before: tuple[Array, ...],
) -> tuple[Array, ...]:
    """Return `Estimate.deck`.

    Args:
        range_: Reading of the range sensor, whether it sees something, and whether it is new.
        flow: Reading of the flow deck.
        before: The previous result.
    """
    distance, *counts = before
    if range_ is not None:
        distance = jnp.where(range_[2], range_[0], distance)
    if flow is not None:
        counts = [*(pixels / FLOW_COUNT for pixels in flow.pixels), flow.squal]
    return (distance, *counts)


def white(noise: NoiseCfg, dt: float) -> float:
    """Return the standard deviation of the mean of white noise over a time [s]."""
    return float(np.sqrt(noise.variance(dt, 1)[0]))


def _counted(pixels: Array) -> Array:
    """Round pixels to whole counts, but keep the derivative of the pixels."""
    return pixels + jax.lax.stop_gradient(jnp.round(pixels / FLOW_COUNT) * FLOW_COUNT - pixels)


def _within(v: Vec3, most: float) -> Vec3:
    x, y, z = (jnp.clip(a, -most, most) for a in v)
    return (x, y, z)

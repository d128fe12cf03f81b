"""Lighthouse: what a deck reads of the planes of light of base stations, and how a filter uses it.

A base station of version 2 turns 50 times a second and sweeps the room with two planes of light.
The deck has four sensors; when all have met both planes, the firmware knows two angles of each. It
gives them to the filter one by one (`mm_sweep_angles.c`), or intersects the beams of two stations
(`lighthouse_position_est.c`), and corrects the yaw by the shadow of the sensors on the plane of
the deck. Arrays have the shape of the drones, preceded by an axis for sensors or angles if there
are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import radians, sin, tan
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.dynamics.components import (
    Matrix3,
    Vec3,
    add,
    combined,
    cross,
    dot,
    rotation_matrix,
    scale,
    subtract,
    transform,
    transpose,
)
from crazyflow_ros.estimation import kalman
from crazyflow_ros.estimation.base_stations import BaseStation
from crazyflow_ros.estimation.instrument_readings import PoseReading, Random
from crazyflow_ros.estimation.kalman import Belief, Measurement
from crazyflow_ros.estimation.light_planes import SLOPE, TILT, angle, beam, without_errors

RATE = 50
"""Turns of a base station per second."""
KNOWN = 27
"""Numbers that the firmware knows of a station: origin [m], rows of its rotation, the calibration
of both planes (7 each), and whether all of that is valid."""
HEARD = 10
"""Numbers that it keeps of what it heard of a station: first and second angle of each sensor [rad],
for how long it still counts as received [s], and whether these angles wait for those of another."""
POSITION = 4
"""Numbers that it keeps of the latest intersection of beams: x, y, z, distance of the beams [m]."""
GATE = 2
"""Numbers of the memory of the outlier filter: time until it opens, how long it stays shut [ms]."""
RECEIVED = 0.2
"""Time for which a station counts as received [s] (`SYSTEM_STATUS_UPDATE_INTERVAL`)."""

STD = 1e-4
"""White noise of an angle [rad]: the deck's clock of 6 MHz resolves 52 urad, and a beam is wide."""
ERROR_STD = 3e-3
"""Constant error of each plane of a station [rad]: the geometry that clients estimate, and what a
calibration leaves. It is chosen for the 2 to 4 cm by which positions are wrong in the flights of
Taffanel et al. 2021 (arXiv 2104.11523)."""
RANGE = 7.0
"""Distance [m] at which sensors still see a station: four stations are for 10 m x 10 m."""
_ACROSS, _UPWARDS = radians(75), radians(55)  # half of the view of a station: 150 x 110 degrees
_GRAZING = sin(radians(5))  # of a beam over the deck, whose sensors look upwards

_BETWEEN = 1 / (3 * RATE)  # s between the two planes
_LENGTH, _WIDTH = 0.015, 0.0075  # m, half of the rectangle of sensors
_SENSORS = ((-_LENGTH, _WIDTH), (-_LENGTH, -_WIDTH), (_LENGTH, _WIDTH), (_LENGTH, -_WIDTH))
_N = 8  # angles: sensors 0 to 3, each with planes 0 and 1
_YAW_STD, _CROSSING_STD = 0.01, 0.01  # rad, m; the firmware's
_FLAT = 1e-4  # square of what is left of a beam beside the axis of the rotor
_FRAME = 8.0  # ms, of the outlier filter; whole numbers compare as in the firmware
_SHORTEST, _LONGEST, _BAD, _GOOD = -2 * _FRAME, 5 * _FRAME, -_FRAME, _FRAME / 2
_MOST_ERROR = 0.05  # m
_PAIR = 0.025  # s within which the angles of two stations belong together


class LighthouseSettings(NamedTuple):
    """Parameters of the firmware, in the group `lighthouse`."""

    method: Array | float = 1.0
    """0: beams that cross; 1: sweep angles."""
    sweepStd2: Array | float = 1e-3
    """Standard deviation of an angle, rad."""
    fwdToEstimator: Array | float = 1.0
    """Whether the filter gets what is measured."""
    lh2maxRate: Array | float = 50.0
    """Pairs of sweeps of all stations for the filter per second."""


class _Station(NamedTuple):
    """Where a station is, and its calibration, arrays of any shape."""

    origin: Vec3
    rot: Matrix3
    sweeps: tuple[tuple[Any, ...], tuple[Any, ...]]
    valid: Any

    @classmethod
    def of(cls, numbers: Sequence[Any]) -> _Station:
        rows = tuple((numbers[i], numbers[i + 1], numbers[i + 2]) for i in (3, 6, 9))
        x, y, z = numbers[:3]
        sweeps = tuple(numbers[12:19]), tuple(numbers[19:26])
        return cls((x, y, z), rows, sweeps, numbers[26])  # type: ignore[arg-type]


def fused(
    belief: Belief,
    heard: Sequence[Array],
    gate: tuple[Array, ...],
    settings: LighthouseSettings,
    known: Sequence[Array],
    errors: Sequence[Array],
    matter: Sequence[Array],
    stations: Sequence[BaseStation],
    now: PoseReading,
    rot: Matrix3,
    count: Array,
    random: Random,
    dt: float,
) -> tuple[Belief, tuple[Array, ...], tuple[Array, ...]]:
    """Return belief, what was heard, and gate after a step in which one station may be heard.

    Args:
        belief: The belief before.
        heard: What was heard, `HEARD` numbers of each station, then `POSITION`.
        gate: Memory of the outlier filter, `GATE` numbers.
        settings: The firmware's parameters.
        known: What the firmware knows, `KNOWN` numbers of each station.
        errors: Errors of the planes, two of each station, rad.
        matter: How much stands between the drone and each station, m.
        stations: Where they are.
        now: The true motion.
        rot: Attitude of the belief before the prediction.
        count: Number of the step.
        random: Random numbers.
        dt: Time step, s.
    """
    n = len(stations)
    dtype = now.pos[0].dtype
    turn = count % n

    def of_turn(numbers: Sequence[Any], size: int) -> list[Array]:
        """Return the numbers of the station whose turn it is."""
        chosen = [numbers[i * size : (i + 1) * size] for i in range(n)]
        return [_chosen(turn, [own[k] for own in chosen], dtype) for k in range(size)]

    true = [number for station in stations for number in station.numbers]
    true_rot = rotation_matrix(now.quat)
    seen = [
        _is_seen(_Station.of(true[i * KNOWN : (i + 1) * KNOWN]), now.pos, true_rot)
        & (matter[i] <= 0)
        for i in range(n)
    ]
    n_seen = sum(is_seen.astype(dtype) for is_seen in seen)
    # The firmware discards pairs of sweeps at random where there are more than `lh2maxRate`. One
    # station has its turn in each step, so `n` of them have as many turns as they should.
    passes = jnp.minimum(1.0, settings.lh2maxRate / (RATE * jnp.maximum(n_seen, 1.0)))
    arrives = random.uniform(dtype) < RATE * n * dt * passes
    comes = _chosen(turn, [is_seen.astype(dtype) for is_seen in seen], dtype) > 0
    station = _Station.of(of_turn(true, KNOWN))
    angles = _measured(station, of_turn(errors, 2), now, true_rot, random)
    own = _Station.of(of_turn(known, KNOWN))
    new = comes & arrives
    usable = new & (own.valid > 0)

    fresh = [jnp.maximum(heard[i * HEARD + 8] - dt, 0.0) for i in range(n)]
    waiting = [heard[i * HEARD + 9] for i in range(n)]
    mine = _in_pairs([angles[k] for k in range(_N)])
    other, paired, waits = _other(turn, waiting, fresh, heard, known, dtype)
    place, delta, crossed = _crossing(own, mine, *other)
    crosses = jnp.asarray(settings.method < 1)
    crossed &= usable & crosses & paired
    old = heard[n * HEARD :]
    position = [jnp.where(crossed, a, b) for a, b in zip((*place, delta), old)]
    kept: list[Array] = []
    for i in range(n):
        is_it = new & (turn == i)
        parts = heard[i * HEARD : i * HEARD + _N]
        kept += [jnp.where(is_it, angles[k], parts[k]) for k in range(_N)]
        kept.append(jnp.where(comes & (turn == i), RECEIVED, fresh[i]))
        waited = jnp.where(crossed & waits[i], 0.0, waiting[i])
        kept.append(jnp.where(is_it, jnp.where(crossed, 0.0, 1.0), waited))

    forwards = settings.fwdToEstimator > 0
    yaw, has_yaw = _yaw(belief, rot, own, mine)
    given = angles, own, rot, place, crosses, settings.sweepStd2
    told = forwards & jnp.where(crosses, crossed, usable)
    belief, gate = _updated(belief, gate, given, told, dt)
    measured = Measurement({8: 1.0}, belief.mean[8] + yaw, _YAW_STD, told & has_yaw)
    return kalman.updated(belief, measured), (*kept, *position), gate


def _in_pairs(angles: Sequence[Array]) -> tuple[Array, Array]:
    """Return the first and second angles of all sensors, of the eight angles of a station."""
    return jnp.stack(angles[0::2]), jnp.stack(angles[1::2])


def _chosen(turn: Array, values: Sequence[Any], dtype: np.dtype) -> Array:
    """Return for each drone the value whose number is `turn`."""
    found = jnp.zeros(turn.shape, dtype)
    for i, value in enumerate(values):
        found = jnp.where(turn == i, jnp.asarray(value, dtype), found)
    return found


def _is_seen(station: _Station, pos: Vec3, rot: Matrix3) -> Array:
    """Return whether deck and station see one another, if nothing is between them."""
    way = subtract(pos, station.origin)
    x, y, z = transform(transpose(station.rot), way)
    distance = jnp.sqrt(dot(way, way))
    up = (rot[0][2], rot[1][2], rot[2][2])
    return (
        (x > 0)
        & (jnp.abs(y) < tan(_ACROSS) * x)
        & (jnp.abs(z) < tan(_UPWARDS) * x)
        & (distance < RANGE)
        & (-dot(way, up) > _GRAZING * distance)
    )


def _measured(
    station: _Station, errors: Sequence[Array], now: PoseReading, rot: Matrix3, random: Random
) -> Array:
    """Return the eight angles that the deck measures, (8, ...)."""
    dtype = now.pos[0].dtype
    early = scale(now.vel, -_BETWEEN)  # the first plane has passed before the second
    found = []
    for x, y in _SENSORS:
        arm = add(now.pos, add(scale(_column(rot, 0), x), scale(_column(rot, 1), y)))
        for plane, (then, tilt) in enumerate(((add(arm, early), -TILT), (arm, TILT))):
            point = transform(transpose(station.rot), subtract(then, station.origin))
            found.append(angle(point, tilt, station.sweeps[plane]) + errors[plane])
    noise = random.normal(_N, dtype)
    return jnp.stack([value + STD * number for value, number in zip(found, noise)])


def _column(matrix: Matrix3, i: int) -> Vec3:
    return (matrix[0][i], matrix[1][i], matrix[2][i])


def _rays(station: _Station, angles: tuple[Array, Array]) -> Vec3:
    """Return the directions in which a station sees the sensors, world axes, (4, ...)."""
    y, z = beam(*without_errors(angles, station.sweeps))
    return transform(station.rot, (jnp.ones_like(y), y, z))


def _other(
    turn: Array,
    waiting: Sequence[Array],
    fresh: Sequence[Array],
    heard: Sequence[Array],
    known: Sequence[Array],
    dtype: np.dtype,
) -> tuple[tuple[_Station, tuple[Array, Array]], Array, list[Array]]:
    """Return a station with angles to combine with the present ones, if there is one.

    Returns:
        The station and its angles, whether there is one, and for each station whether it is it.
    """
    n = len(waiting)
    found = jnp.zeros(turn.shape, bool)
    is_it = []
    for i in range(n):
        fits = (turn != i) & (waiting[i] > 0) & (fresh[i] > RECEIVED - _PAIR) & ~found
        is_it.append(fits & (known[i * KNOWN + 26] > 0))
        found |= is_it[-1]
    which = sum((jnp.where(fits, i, 0) for i, fits in enumerate(is_it)), jnp.zeros_like(turn))
    numbers = [
        _chosen(which, [known[i * KNOWN + k] for i in range(n)], dtype) for k in range(KNOWN)
    ]
    angles = [_chosen(which, [heard[i * HEARD + k] for i in range(n)], dtype) for k in range(_N)]
    return (_Station.of(numbers), _in_pairs(angles)), found, is_it


def _crossing(
    station: _Station, angles: tuple[Array, Array], other: _Station, others: tuple[Array, Array]
) -> tuple[Vec3, Array, Array]:
    """Return where the beams of two stations meet, the mean of all sensors.

    Returns:
        The place, the distance of the beams [m], and whether they meet.
    """
    one, two = _rays(station, angles), _rays(other, others)
    between = subtract(station.origin, other.origin)
    a, b, c = dot(one, one), dot(one, two), dot(two, two)
    d, e = dot(one, between), dot(two, between)
    square = a * c - b * b
    meet = square > 1e-5 * a * c
    safe = jnp.where(meet, square, 1.0)
    near = add(scale(one, (b * e - c * d) / safe), station.origin)
    far = add(scale(two, (a * e - b * d) / safe), other.origin)
    gap = subtract(near, far)
    x, y, z = (_mean(part) for part in scale(add(near, far), 0.5))
    return (x, y, z), _mean(jnp.sqrt(dot(gap, gap))), combined(jnp.logical_and, meet, 0)


def _mean(array: Array) -> Array:
    return combined(jnp.add, array, 0) / array.shape[0]


def _yaw(
    belief: Belief, rot: Matrix3, station: _Station, angles: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return by how much the drone is turned about its z axis beyond what it believes [rad].

    The beams meet the plane of the deck in points whose diagonals are those of the sensors.
    """
    up = _column(rot, 2)
    rays = _rays(station, angles)
    down = dot(rays, up)
    meets = jnp.abs(down) > 1e-3 * jnp.sqrt(dot(rays, rays))
    length = dot(subtract(belief.pos, station.origin), up) / jnp.where(meets, down, 1.0)
    x, y, z = scale(rays, length)
    turns = []
    for back, front in ((0, 3), (1, 2)):
        shadow = (x[front] - x[back], y[front] - y[back], z[front] - z[back])
        (x0, y0), (x1, y1) = _SENSORS[back], _SENSORS[front]
        arm = add(scale(_column(rot, 0), x1 - x0), scale(_column(rot, 1), y1 - y0))
        turns.append(jnp.arctan2(dot(up, cross(arm, shadow)), dot(arm, shadow)))
    return (turns[0] + turns[1]) / 2, combined(jnp.logical_and, meets, 0)


def _updated(
    belief: Belief,
    gate: tuple[Array, ...],
    given: tuple[Array, _Station, Matrix3, Vec3, Array, Array | float],
    valid: Array,
    dt: float,
) -> tuple[Belief, tuple[Array, ...]]:
    """Return belief and gate after eight angles, or instead of the first three a position."""
    angles, station, rot, place, crosses, std = given
    dtype = angles.dtype
    arms = jnp.asarray(np.repeat(np.array(_SENSORS), 2, axis=0), dtype)
    places = jnp.stack([*place, *[place[0]] * (_N - 3)])

    def one(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        mean, cov, shut, window = carry
        at = belief._replace(mean=mean, cov=cov)
        arm = add(scale(_column(rot, 0), arms[i, 0]), scale(_column(rot, 1), arms[i, 1]))
        to_station = transpose(station.rot)
        point = transform(to_station, subtract(add(at.pos, arm), station.origin))
        second = i % 2 == 1
        sweep = [jnp.where(second, b, a) for a, b in zip(*station.sweeps)]
        tilt = jnp.where(second, TILT, -TILT).astype(dtype)
        error = angles[i] - angle(point, tilt, sweep)
        square = point[0] ** 2 + point[1] ** 2
        distance = jnp.sqrt(square)
        good = jnp.abs(distance * error) < _MOST_ERROR
        passes = good | (shut <= 0)
        swept = valid & ~crosses
        longer = jnp.clip(window + jnp.where(good, _GOOD, _BAD), 0.0, _LONGEST - _SHORTEST)
        window = jnp.where(swept, longer, window)
        shut = jnp.where(swept, window + _SHORTEST, shut)
        slope = jnp.where(second, SLOPE, -SLOPE).astype(dtype)
        height = point[2] * slope
        rest = square - height * height
        steep = slope / jnp.sqrt(jnp.maximum(rest, _FLAT))
        x, y, z = point
        row = transform(
            station.rot,
            ((-y - x * z * steep) / square, (x - y * z * steep) / square, steep),
        )
        # In the other method the first three are the coordinates of a position.
        unit = [jnp.where(i == k, 1.0, 0.0).astype(dtype) for k in range(3)]
        off = places[i] - jnp.where(i == 0, mean[0], jnp.where(i == 1, mean[1], mean[2]))
        measured = Measurement(
            {k: jnp.where(crosses, unit[k], row[k]) for k in range(3)},
            jnp.where(crosses, off, error),
            jnp.where(crosses, _CROSSING_STD, std).astype(dtype),
            jnp.where(crosses, valid & (i < 3), swept & passes & (rest > _FLAT)),
        )
        new = kalman.updated(at, measured)
        return new.mean, new.cov, shut, window

    def every(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        found: tuple[Any, ...] = jax.lax.fori_loop(0, _N, one, carry)
        return found

    shut, window = gate
    carry = belief.mean, belief.cov, jnp.maximum(shut - 1000 * dt, 0.0), window
    mean, cov, *memory = jax.lax.cond(jnp.any(valid), every, lambda carry: carry, carry)
    return belief._replace(mean=mean, cov=cov), tuple(memory)

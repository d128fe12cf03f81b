"""Radio anchors: what a Loco deck measures of them, and what a filter does with it.

The deck measures its distance from one anchor after the other (TWR, `lpsTwrTag.c`), or only
listens to them, and measures differences of distances from two of them (TDoA2 and TDoA3,
`lpsTdoa2Tag.c`, `lpsTdoa3Tag.c`). What stands between lets a radio wave arrive later, hides some,
and lets others arrive by a detour. Numbers are arrays of the shape of the drones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.drones.instruments import DWM1000
from crazyflow_ros.dynamics.components import Vec3, dot, subtract
from crazyflow_ros.estimation import kalman
from crazyflow_ros.estimation.instrument_readings import Random
from crazyflow_ros.estimation.kalman import Belief, Measurement
from crazyflow_ros.estimation.positioning import Ranging

HEARD = 4
"""Numbers that a deck keeps of an anchor: the latest distance, or its difference from that of the
anchor before [m]; mean [m] and variance of distances; for how long it counts as received [s]."""
GATE = 2
"""Numbers of the memory of TDoA's outlier filter: its integrator [ms], whether it is shut."""
RECEIVED = 0.2
"""Time for which an anchor counts as received, s."""

STD = float(np.max(DWM1000.std))
"""White noise of a distance, or of a difference of two, m."""
ERROR_STD = 0.07
"""Constant error of each anchor [m]: antennas, their delay, where somebody measured it to be. It is
chosen for the errors of some 10 cm that Bitcraze gives for the system."""
PACKETS = 400
"""Packets of all anchors per second in TDoA (`SYSTEM_TX_FREQ`)."""
SLOWER = 0.9
"""By how much the refractive index of walls exceeds 1: brick, of relative permittivity 3.75 (ITU-R
P.2040)."""
DETOUR = 0.3
"""Standard deviation of the detour by reflections where something stands between, m."""
LOST = 0.3
"""Share of packets that nobody hears where something stands between."""

_TWR_STD, _MOST_STDS, _SHARE = 0.25, 4.0, 1 / 16  # as the firmware's mean of 32 distances
_SIZE, _OPENS, _SHUTS = 300.0, 30.0, 270.0  # ms, of the integrator
_TRIGGER, _ACCEPTED = 2.0, 2.5  # standard deviations


class LocoSettings(NamedTuple):
    """Parameters of the firmware."""

    mode: Array | float = 0.0
    """`loco.mode`: 0 finds how the anchors measure; others are right or hear nothing."""
    fwdToEstimator: Array | float = 1.0
    """`loco.fwdToEstimator`: whether the filter gets what is measured."""
    stddev: Array | float = 0.15
    """`tdoa2.stddev` or `tdoa3.stddev`: standard deviation of a difference, m."""


class _Differences(NamedTuple):
    """Differences of distances, each array (n, ...)."""

    first: Vec3
    """Place of the anchor heard before, m."""
    second: Vec3
    value: Array
    valid: Array


def fused(
    belief: Belief,
    heard: Sequence[Array],
    gate: tuple[Array, ...],
    settings: LocoSettings,
    errors: Sequence[Array],
    matter: Sequence[Array],
    anchors: Sequence[tuple[float, float, float]],
    ranging: Ranging,
    pos: Vec3,
    count: Array,
    random: Random,
    dt: float,
) -> tuple[Belief, tuple[Array, ...], tuple[Array, ...]]:
    """Return belief, what was heard, and gate after a step.

    Args:
        belief: The belief before.
        heard: What was heard, `HEARD` numbers of each anchor.
        gate: Memory of the outlier filter, `GATE` numbers.
        settings: The firmware's parameters.
        errors: Constant error of each anchor, m.
        matter: How much stands between the drone and each anchor, m.
        anchors: Where they are, m.
        ranging: How they measure.
        pos: True position, m.
        count: Number of the step.
        random: Random numbers.
        dt: Time step, s.
    """
    dtype, n = pos[0].dtype, len(anchors)
    listens = (settings.mode == 0) | (settings.mode == ranging.number)
    fresh = [jnp.maximum(heard[i * HEARD + 3] - dt, 0.0) for i in range(n)]

    def arrivals(which: Array) -> tuple[Vec3, Array, Array]:
        """Return an anchor's place, the distance as its wave travels, and whether it arrives."""
        x, y, z = (_chosen(which, [anchor[k] for anchor in anchors], dtype) for k in range(3))
        between = _chosen(which, matter, dtype)
        way = subtract(pos, (x, y, z))
        detour = jnp.abs(random.normal(1, dtype)[0]) * DETOUR
        delay = jnp.where(between > 0, between * SLOWER + detour, 0.0)
        arrives = (between <= 0) | (random.uniform(dtype) > LOST)
        length = jnp.sqrt(dot(way, way)) + _chosen(which, errors, dtype) + delay
        return (x, y, z), length, arrives & listens

    kept = [list(heard[i * HEARD : i * HEARD + 3]) for i in range(n)]
    if ranging is Ranging.twr:
        which = count % n
        place, length, arrives = arrivals(which)
        value = length + random.normal(1, dtype)[0] * STD
        mean, variance = (_chosen(which, [own[k] for own in kept], dtype) for k in (1, 2))
        off = value - mean
        usual = off * off < _MOST_STDS**2 * variance
        news = (value, mean + _SHARE * off, variance + _SHARE * (off * off - variance))
        valid = arrives & usual & (settings.fwdToEstimator > 0)
        measured = kalman.distance(belief, place, value, _TWR_STD)
        belief = kalman.updated(belief, measured._replace(valid=valid))
        for i in range(n):
            is_it = arrives & (which == i)
            kept[i] = [jnp.where(is_it, new, old) for new, old in zip(news, kept[i])]
            fresh[i] = jnp.where(is_it, RECEIVED, fresh[i])
    else:
        found = []
        n_packets = max(1, round(PACKETS * dt))
        for k in range(n_packets):
            if ranging is Ranging.tdoa2:
                which = (count * n_packets + k) % n
                before = (which + n - 1) % n
            else:
                which = (random.uniform(dtype) * n).astype(count.dtype)
                others = 1 + (random.uniform(dtype) * (n - 1)).astype(count.dtype)
                before = (which + others) % n
            first, near, hears = arrivals(before)
            second, far, arrives = arrivals(which)
            value, arrives = far - near + random.normal(1, dtype)[0] * STD, arrives & hears
            found.append((*first, *second, value, arrives))
            for i in range(n):
                is_it = arrives & (which == i)
                is_next = is_it & (before == (i + n - 1) % n)
                kept[i][0] = jnp.where(is_next, value, kept[i][0])
                fresh[i] = jnp.where(is_it, RECEIVED, fresh[i])
        x0, y0, z0, x1, y1, z1, values, valid = (jnp.stack(parts) for parts in zip(*found))
        differences = _Differences((x0, y0, z0), (x1, y1, z1), values, valid)
        belief, gate = _updated(belief, gate, differences, settings, dt / n_packets)
    numbers = [number for own, time in zip(kept, fresh) for number in (*own, time)]
    return belief, tuple(numbers), gate


def difference(
    belief: Belief, first: Vec3, second: Vec3, value: Array, std: Array | float
) -> Measurement:
    """Return the measurement of the distance from one point less that from another [m]."""
    to, off = (kalman.distance(belief, point, value, std) for point in (second, first))
    row: kalman.Row = {k: to.row[k] - off.row[k] for k in range(3)}
    return Measurement(row, to.error - off.error + value, std)


def _chosen(which: Array, values: Sequence[Any], dtype: np.dtype) -> Array:
    """Return for each drone the value whose number is `which`."""
    found = jnp.zeros(which.shape, dtype)
    for i, value in enumerate(values):
        found = jnp.where(which == i, jnp.asarray(value, dtype), found)
    return found


def _updated(
    belief: Belief,
    gate: tuple[Array, ...],
    given: _Differences,
    settings: LocoSettings,
    dt: float,
) -> tuple[Belief, tuple[Array, ...]]:
    """Return belief and gate after differences `dt` [s] apart (`outlierFilterTdoa.c`)."""
    std, forwards = settings.stddev, settings.fwdToEstimator

    def one(i: Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
        mean, cov, sum_, shut = carry
        at = belief._replace(mean=mean, cov=cov)
        first, second, value, valid = jax.tree.map(lambda x: x[i], given)
        base = subtract(first, second)
        valid = valid & (forwards > 0) & (value * value < dot(base, base))
        measured = difference(at, first, second, value, std)
        off = jnp.abs(measured.error)
        step = jnp.where(off < _TRIGGER * std, 1000 * dt, -1000 * dt)
        sum_ = jnp.where(valid, jnp.clip(sum_ + step, 0.0, _SIZE), sum_)
        passes = valid & ((shut <= 0) | (off < _ACCEPTED * std))
        now = jnp.where(shut > 0, jnp.where(sum_ < _OPENS, 0.0, 1.0), sum_ > _SHUTS)
        shut = jnp.where(valid, now, shut).astype(sum_.dtype)
        new = kalman.updated(at, measured._replace(valid=passes))
        return new.mean, new.cov, sum_, shut

    carry = belief.mean, belief.cov, *gate
    mean, cov, *memory = jax.lax.fori_loop(0, len(given.value), one, carry)
    return belief._replace(mean=mean, cov=cov), tuple(memory)

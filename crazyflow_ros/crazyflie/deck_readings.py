"""Readings of the optical decks for log variables: ranges with their noise, and flow."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from crazyflow_ros.drones.deck_optics import ORDINARY_SQUAL
from crazyflow_ros.drones.instruments import (
    PMW3901,
    PMW3901_MIN_RANGE,
    PMW3901_PERIOD,
    VL53L1X,
    flow_rates,
)
from crazyflow_ros.estimation.instrument_readings import FLOW_COUNT
from crazyflow_ros.estimation.kalman import PIXELS_PER_RADIAN
from crazyflow_ros.runtime import PhysicsThread, Snapshot

N_RANGES = 6
"""Range sensors: front, back, left, right, up, down."""
_COUNTS_PER_RADIAN = PIXELS_PER_RADIAN / FLOW_COUNT


def read(physics: PhysicsThread, snapshot: Snapshot) -> np.ndarray:
    """Return the readings of all drones, (M, 9). Physics thread only.

    They are six distances [m], infinite where nothing is seen, and the flow along the axes of the
    body [counts in 10 ms] with its number of features (SQUAL). What a drone's filter measures is
    what it logs. Other readings depend on the seed, the drone, the tick and nothing else.
    """
    believed, positioning = snapshot.believed, physics.config.positioning
    ranges, seed = physics.mirror.ranges(), physics.config.seed
    keys = [(seed, *name.encode()) for name in snapshot.names]
    white = np.array(
        [_generator(*key, snapshot.tick).standard_normal(N_RANGES + 2) for key in keys]
    )
    flow = _flow(snapshot, ranges[:, -1], white[:, N_RANGES:])
    spread = float(np.max(VL53L1X.std)) * VL53L1X.spread(np.where(np.isfinite(ranges), ranges, 0.0))
    offsets = np.array([_offsets(*key) for key in keys])
    ranges = np.maximum(ranges + offsets + spread * white[:, :N_RANGES], 0.0)
    if believed is not None and positioning.range:
        ranges[:, -1] = believed.deck[:, 0]
    if believed is not None and positioning.flow:
        flow = believed.deck[:, 1:]
    return np.hstack((ranges, flow))


def _flow(snapshot: Snapshot, below: np.ndarray, white: np.ndarray) -> np.ndarray:
    """Return readings (M, 3) over ordinary ground at a distance (M,) [m]."""
    is_sharp = np.isfinite(below) & (below > PMW3901_MIN_RANGE)
    safe = np.where(is_sharp, below, 1.0)
    rates = np.stack(flow_rates(snapshot.body_vel.T, snapshot.ang_vel.T, safe), axis=1)
    rates += float(np.max(PMW3901.std)) * white
    rates = np.clip(rates, -PMW3901.saturation, PMW3901.saturation) * PMW3901_PERIOD
    counts = np.round(rates * _COUNTS_PER_RADIAN)
    squal = np.full(len(counts), ORDINARY_SQUAL)
    return np.where(is_sharp[:, None], np.column_stack((counts, squal)), 0.0)


def _generator(*key: int) -> np.random.Generator:
    return np.random.default_rng(key)


@lru_cache(maxsize=4096)
def _offsets(*key: int) -> np.ndarray:
    """Return the constant errors of a drone's range sensors [m], (6,)."""
    return float(np.max(VL53L1X.bias)) * _generator(*key).standard_normal(N_RANGES)

"""Plan of the flight through the room: take-off and one round between the obstacles."""

from __future__ import annotations

import numpy as np

SIZE = np.array([1.9, 1.4, 0.3])  # m, half extents of the round
ALTITUDE = 1.1  # m
RISE, ROUND, REST = 3.0, 20.0, 2.0  # s: take-off, round, and time to stop
RATE = 10  # points per second


def plan() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times (K,) [s], positions (K, 3) [m] and headings along the path (K,) [rad]."""
    times = np.arange(0.0, RISE + ROUND + REST, 1 / RATE)
    height, part = (np.clip(u, 0, 1) for u in (times / RISE, (times - RISE) / ROUND))
    phase = 2 * np.pi * part**2 * (3 - 2 * part)
    sine, cosine = np.sin(phase), np.cos(phase)
    pos = SIZE * np.stack([cosine, sine, np.sin(2 * phase)], axis=-1)
    pos[:, 2] += ALTITUDE * height**2 * (3 - 2 * height)
    return times, pos, np.arctan2(SIZE[1] * cosine, -SIZE[0] * sine)

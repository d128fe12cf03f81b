"""The state of the drones at one tick, to be read by any thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crazyflow_ros.scene import MirrorState


@dataclass(frozen=True)
class Snapshot(MirrorState):
    """State of all drones at one tick."""

    names: tuple[str, ...]
    """Of the M drones, in the order of the rows."""
    body_vel: np.ndarray
    """Velocity in body axes [m/s], shape (M, 3)."""
    tick: int
    """Physics ticks, from 1 at the start. Goes on through a reset."""
    epoch: int
    """Resets so far."""

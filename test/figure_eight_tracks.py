"""Flights of figure-eights as a client has heard them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crazyflow_ros.client.figure_eight import Track, plan_flight

PAD = np.array([0.5, -0.5, 0.014])


def flown(offset: float = 0.0, end: float = 30.0, name: str = "cf0") -> Track:
    """A drone that flies `offset` above its path and lands."""
    flight = plan_flight(PAD, 30.0)
    times = np.arange(0, end, 0.02)
    pos = flight(times).pos + np.array([0, 0, offset])
    pos[:, 2] = np.maximum(pos[:, 2], PAD[2])
    return Track(name, flight, times, pos)


def without(track: Track, lost: Sequence[int]) -> Track:
    """The same flight, of which some poses did not arrive."""
    return replace(
        track, times=np.delete(track.times, lost), pos=np.delete(track.pos, lost, axis=0)
    )

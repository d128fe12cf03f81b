"""How a simulation is doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from crazyflow_ros.runtime.health import Failure


@dataclass(frozen=True)
class Statistics:
    """Of one moment."""

    requested_factor: float
    achieved_factor: float
    overruns: int
    stalls: int
    tick: int
    epoch: int
    paused: bool
    faults: Mapping[str, str]
    """Drones that are out of service until they are reset, and why."""
    failures: Mapping[str, Failure]
    """Callbacks that have failed."""
    stalled: str
    """What the thread hangs in, or nothing."""

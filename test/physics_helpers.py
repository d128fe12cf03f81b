"""What tests of the physics thread have in common."""

from __future__ import annotations

import time
from collections.abc import Callable

from crazyflow_ros.runtime import PhysicsThread, Pose


def until(condition: Callable[[], object], what: str, timeout: float = 20.0) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
        time.sleep(0.002)


def hover(physics: PhysicsThread, z: float = 1.0) -> None:
    """Send all drones to a height, above where they are."""
    for name, pos in zip(physics.names, physics.snapshot.pos):
        physics.command(name, Pose((pos[0], pos[1], z), 0.0))

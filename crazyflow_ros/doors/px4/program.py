"""The program `px4`: drones for PX4 without ROS, and PX4 itself where there is a build of it."""

from __future__ import annotations

from collections.abc import Sequence

from crazyflow_ros.doors.autopilot_program import run
from crazyflow_ros.doors.px4.px4_build import PX4
from crazyflow_ros.doors.px4.px4_door import Px4


def main(words: Sequence[str] | None = None, program: str = "px4") -> int:
    """Simulate drones that PX4 flies, and start PX4, without ROS.

    It runs until a signal arrives, see `autopilot_program.run`.
    """
    return run(Px4, PX4, words, program)

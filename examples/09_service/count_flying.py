"""A service of your own: `~/count_flying` answers how many drones fly.

It belongs into crazyflow_ros/ros/services/, and its name, services.count_flying, into `_FEATURES`
of crazyflow_ros/ros/node.py. docs/extend.md explains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

if TYPE_CHECKING:
    from crazyflow_ros.ros import SimulatorNode

AIRBORNE = 0.05  # m


class CountFlying:
    """The service."""

    def __init__(self, simulator: SimulatorNode) -> None:
        self._physics = simulator.physics
        simulator.create_service(Trigger, "~/count_flying", self._count)

    def _count(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        """The text of the answer; a ValueError would refuse the request with its text."""
        snapshot = self._physics.snapshot  # of the latest tick, never changed afterwards
        flying = [name for name, pos in zip(snapshot.names, snapshot.pos) if pos[2] > AIRBORNE]
        return f"{len(flying)} of {len(snapshot.names)} drones fly, at tick {snapshot.tick}"


def declare(simulator: SimulatorNode) -> None:
    """Add the service."""
    CountFlying(simulator)

"""A service of your own: `~/count_flying` answers how many drones fly.

The file pyproject.toml makes it part of every simulator where it is installed.
docs/guides/extend.md explains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from std_srvs.srv import Trigger

if TYPE_CHECKING:
    from crazyflow_ros.ros import Host

AIRBORNE = 0.05  # m


class CountFlying:
    """The service."""

    def __init__(self, host: Host) -> None:
        self._physics = host.physics
        host.create_service(Trigger, "~/count_flying", self._count)

    def _count(self, _request: Trigger.Request, _response: Trigger.Response) -> str:
        """The text of the answer; a ValueError would refuse the request with its text."""
        snapshot = self._physics.snapshot  # of the latest tick, never changed afterwards
        flying = [name for name, pos in zip(snapshot.names, snapshot.pos) if pos[2] > AIRBORNE]
        return f"{len(flying)} of {len(snapshot.names)} drones fly, at tick {snapshot.tick}"


def declare(host: Host) -> None:
    """Add the service."""
    CountFlying(host)

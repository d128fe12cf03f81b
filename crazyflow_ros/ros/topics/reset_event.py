"""~/reset_event: a message after each reset, with its scope and time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.runtime import ResetEvent

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host


class ResetEventTopic:
    """Publishes resets in the physics thread, before any message of a later state."""

    def __init__(self, simulator: Host) -> None:
        self._name = f"{simulator.get_fully_qualified_name()}: reset"
        self._publisher = simulator.create_publisher(DiagnosticArray, "~/reset_event", 10)
        simulator.physics.news.on_reset(self._publish)

    def _publish(self, event: ResetEvent) -> None:
        scopes = ", ".join(scope.name or "" for scope in event.scope)
        values = {
            "scope": scopes,
            "drones": ", ".join(event.drones),
            "epoch": str(event.snapshot.epoch),
            "tick": str(event.snapshot.tick),
        }
        status = DiagnosticStatus(
            level=DiagnosticStatus.OK,
            name=self._name,
            message=f"{scopes} reset",
            hardware_id="crazyflow_ros",
            values=[KeyValue(key=key, value=value) for key, value in values.items()],
        )
        message = DiagnosticArray(status=[status])
        message.header.stamp = time_of(event.snapshot.time_ns)
        self._publisher.publish(message)


def declare(simulator: Host) -> None:
    """Add the topic."""
    ResetEventTopic(simulator)

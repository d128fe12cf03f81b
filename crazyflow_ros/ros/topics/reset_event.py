"""~/reset_event: what was reset, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from crazyflow_ros.runtime import ResetEvent

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode


class ResetEventTopic:
    """One message after each reset, sent by the physics thread before anything that follows it."""

    def __init__(self, simulator: SimulatorNode) -> None:
        self._name = f"{simulator.get_fully_qualified_name()}: reset"
        self._publisher = simulator.create_publisher(DiagnosticArray, "~/reset_event", 10)
        simulator.physics.on_reset(self._publish)

    def _publish(self, event: ResetEvent) -> None:
        seconds, nanoseconds = divmod(event.snapshot.time_ns, 1_000_000_000)
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
        message.header.stamp = Time(sec=seconds, nanosec=nanoseconds)
        self._publisher.publish(message)


def declare(simulator: SimulatorNode) -> None:
    """Add the topic."""
    ResetEventTopic(simulator)

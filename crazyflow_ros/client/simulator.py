"""A running simulator, as seen by scripts."""

from __future__ import annotations

from typing import Any

import yaml
from std_srvs.srv import Trigger

from crazyflow_ros.client.connection import LATEST, SLICE, Connection, SimulationError, checked
from crazyflow_ros.client.drone import DroneClient
from crazyflow_ros.ros.recording.message_definitions import type_of


class SimulatorClient(Connection):
    """A running simulator: its drones, and all that `Connection` offers."""

    def drone(self, name: str) -> DroneClient:
        """Return a drone.

        Raises:
            SimulationError: There is no drone of this name.
        """
        if name not in (drones := self.drones):
            raise SimulationError(f"there is no drone {name!r}, have {', '.join(drones)}")
        return DroneClient(self, name)

    def reset(self) -> None:
        """Reset all drones to their initial states."""
        checked(self.call(Trigger, f"{self.name}/reset"))
        self.look_at_time()

    def echo(self, topic: str, *, once: bool = False) -> None:
        """Print the messages of a topic.

        Args:
            topic: Name of the topic.
            once: Whether to stop after one message; otherwise it never returns.

        Raises:
            SimulationError: The topic does not exist.
        """
        full, found = self.node.resolve_topic_name(topic), dict[str, list[str]]()

        def is_there() -> bool:
            found.update(self.node.get_topic_names_and_types())
            return full in found

        self.wait(is_there, f"there is no topic {full}")
        kind = type_of(found[full][0])
        received: list[Any] = []
        self.node.create_subscription(kind, full, received.append, LATEST)
        while not (once and received):
            self._executor.spin_once(SLICE)
            if received:
                print(
                    yaml.safe_dump(_plain(received[-1]), sort_keys=False), end="---\n", flush=True
                )
                del received[: -1 if once else None]


def _plain(value: Any) -> Any:
    """Convert a message or a field to YAML values."""
    if hasattr(value, "get_fields_and_field_types"):
        return {name: _plain(getattr(value, name)) for name in value.get_fields_and_field_types()}
    if isinstance(value, float):
        return float(value)  # the numbers of an array are NumPy's
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, bytes):
        return list(value)
    return [_plain(element) for element in value]

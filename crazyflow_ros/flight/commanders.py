"""The commanders of all drones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from crazyflow_ros.flight.commander import Commander, FlightStatus
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.setpoint_values import from_commander


class Commanders(defaultdict[str, Commander]):
    """Commanders by the names of their drones; one that is missing is made.

    Args:
        rules: Limits and figures of all drones.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__(partial(Commander, rules))
        self._idle = Commander(rules).flight

    def use(self, rules: Rules) -> None:
        """Fly by other rules from the next setpoint on."""
        self.default_factory = partial(Commander, rules)
        for commander in self.values():
            commander.rules = rules

    def flights(self, names: Sequence[str]) -> list[FlightStatus]:
        """Return how drones fly now."""
        found = map(self.get, names)
        return [self._idle if commander is None else commander.flight for commander in found]

    def capture(self, moving: Collection[str]) -> dict[str, Any]:
        """Return the setpoints in force as JSON values.

        Args:
            moving: Drones whose command changes with time.

        Raises:
            ValueError: A setpoint is of a class that cannot be stored.
        """
        return {
            name: from_commander(commander, moving=name in moving)
            for name, commander in self.items()
        }

"""Drones that are out of service until they are reset, and why."""

from __future__ import annotations

from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.interventions import policy_failed, withdraw
from crazyflow_ros.runtime.drone_commands import DroneCommands
from crazyflow_ros.runtime.health import Health

_NO_DRONE = "its state was no longer that of a drone"
_NO_ACTION = "the output of its policy was not a number"


class LostDrones:
    """Takes drones out of service, and reports those that are.

    Args:
        engine: Holds the drones that are lost.
        commands: Commands of the drones; those of lost drones are dropped.
        health: Logs the reasons.
    """

    def __init__(self, engine: Engine, commands: DroneCommands, health: Health) -> None:
        self._engine, self._commands, self._health = engine, commands, health
        self._why: dict[str, str] = {}

    def withdraw(self, name: str, why: str, tick: int) -> None:
        """Take a drone out of service at a tick."""
        self._why[name] = why
        withdraw(self._engine, name, tick)

    def report(self) -> None:
        """Report the drones that are lost, also those whose state or policy has failed."""
        lost, freq = self._engine.lost, self._engine.freq
        self._why = {name: why for name, why in self._why.items() if name in lost}
        for name in lost.keys() - self._why.keys():
            self._why[name] = _NO_ACTION if policy_failed(self._engine, name) else _NO_DRONE
        self._commands.lose(self._why)
        self._health.note_faults(
            {
                name: f"lost by {tick / freq:.3f} s: {self._why[name]}. "
                "It is held where it was before, rotors stopped, until it is reset"
                for name, tick in lost.items()
            }
        )

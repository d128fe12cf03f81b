"""Gains of individual drones, which replace those of their controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import Tuned
from crazyflow_ros.engine.compiled_world import CompiledWorld


class _Drones(Protocol):
    """What gains need of an `Engine`."""

    world: CompiledWorld
    names: tuple[str, ...]
    slots: dict[str, int]


class TunedGains:
    """Gains of drones, by the controller that uses them.

    Args:
        engine: The drones.
    """

    def __init__(self, engine: _Drones) -> None:
        self._engine = engine
        self._gains: dict[str, dict[Controller, dict[str, np.ndarray]]] = {}

    def tune(self, name: str, controller: Controller, gains: Mapping[str, np.ndarray]) -> None:
        """Change gains of a drone until its next reset, at once if it flies with their controller.

        Args:
            name: Name of the drone.
            controller: Controller that the gains belong to.
            gains: New values by name, see `control.gains`; the other gains stay.

        Raises:
            ValueError: A gain has no effect.
        """
        engine, tuned = self._engine, self._gains.get(name, {})
        new = tuned | {controller: tuned.get(controller, {}) | dict(gains)}
        if controller is engine.world.controller:
            engine.world.tune(engine.slots[name], new[controller])
        self._gains[name] = new

    def captured(self) -> dict[str, Tuned]:
        """Return the gains of drones by name, without the drones that have none."""
        return {
            name: {
                controller.value: {gain: values.tolist() for gain, values in gains.items()}
                for controller, gains in self._gains[name].items()
            }
            for name in self._engine.names
            if name in self._gains
        }

    def restore(self, captured: Mapping[str, Tuned]) -> None:
        """Replace the gains of drones by those that were captured."""
        self._gains = {
            name: {
                Controller(controller): {gain: np.array(values) for gain, values in gains.items()}
                for controller, gains in tuned.items()
            }
            for name, tuned in captured.items()
        }
        self.give(self._engine.world)

    def forget(self, name: str) -> None:
        """Give a drone the controllers' own gains."""
        if self._gains.pop(name, None) is not None:
            self._engine.world.tune(self._engine.slots[name], {})

    def give(self, world: CompiledWorld) -> None:
        """Give the controller of a new world the gains that the drones have."""
        for name, slot in self._engine.slots.items():
            tuned = self._gains.get(name, {}).get(world.controller, {})
            world.tune(slot, {gain: tuned[gain] for gain in tuned.keys() & world.gains})

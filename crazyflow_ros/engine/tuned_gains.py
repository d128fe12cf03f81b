"""Gains of individual drones, which replace those of their controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import Tuned
from crazyflow_ros.engine.compiled_world import CompiledWorld


class TunedGains:
    """Gains of drones, by the controller that uses them."""

    def __init__(self) -> None:
        self._gains: dict[str, dict[Controller, dict[str, np.ndarray]]] = {}

    def tune(
        self,
        world: CompiledWorld,
        name: str,
        slot: int,
        controller: Controller,
        gains: Mapping[str, np.ndarray],
    ) -> None:
        """Change gains of a drone in a slot of the world; see `Engine.tune`."""
        tuned = self._gains.get(name, {})
        new = tuned | {controller: tuned.get(controller, {}) | dict(gains)}
        if controller is world.controller:
            world.tune(slot, new[controller])
        self._gains[name] = new

    def captured(self, names: Iterable[str]) -> dict[str, Tuned]:
        """Return the gains of drones by name, without the drones that have none."""
        return {
            name: {
                controller.value: {gain: values.tolist() for gain, values in gains.items()}
                for controller, gains in self._gains[name].items()
            }
            for name in names
            if name in self._gains
        }

    def restore(
        self, world: CompiledWorld, slots: Mapping[str, int], captured: Mapping[str, Tuned]
    ) -> None:
        """Replace the gains of drones by those that were captured."""
        self._gains = {
            name: {
                Controller(controller): {gain: np.array(values) for gain, values in gains.items()}
                for controller, gains in tuned.items()
            }
            for name, tuned in captured.items()
        }
        self.give(world, slots)

    def forget(self, world: CompiledWorld, name: str, slot: int) -> None:
        """Give a drone in a slot the controllers' own gains."""
        if self._gains.pop(name, None) is not None:
            world.tune(slot, {})

    def give(self, world: CompiledWorld, slots: Mapping[str, int]) -> None:
        """Give the controller of a new world the gains that the drones in these slots have."""
        for name, slot in slots.items():
            tuned = self._gains.get(name, {}).get(world.controller, {})
            world.tune(slot, {gain: tuned[gain] for gain in tuned.keys() & world.gains})

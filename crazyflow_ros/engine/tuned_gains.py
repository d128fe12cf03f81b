"""Gains and parameters of individual drones, which replace the common ones."""

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
    """Gains of drones, by the controller that uses them, and parameters that the drones draw.

    Args:
        engine: The drones.
    """

    def __init__(self, engine: _Drones) -> None:
        self._engine = engine
        self._gains: dict[str, dict[Controller, dict[str, np.ndarray]]] = {}
        self._draws: dict[str, int] = {}
        """How often drones have drawn."""

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
            self._set(engine.world, name, new[controller])
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

    @property
    def draws(self) -> dict[str, int]:
        """How often the drones have drawn parameters, by name; empty if they do not."""
        names = self._engine.names if self._engine.world.figures is not None else ()
        return {name: self._draws.get(name, 0) for name in names}

    def restore(self, captured: Mapping[str, Tuned], draws: Mapping[str, int]) -> None:
        """Replace the gains and parameters of drones by those that were captured."""
        self._draws |= draws
        self._gains = {
            name: {
                Controller(controller): {gain: np.array(values) for gain, values in gains.items()}
                for controller, gains in tuned.items()
            }
            for name, tuned in captured.items()
        }
        self.give(self._engine.world)

    def forget(self, name: str) -> None:
        """Give a drone the controllers' own gains, and parameters that it draws anew."""
        world = self._engine.world
        self._draws[name] = self._draws.get(name, 0) + 1
        if self._gains.pop(name, None) is not None or world.figures is not None:
            self._set(world, name, {})

    def _set(self, world: CompiledWorld, name: str, gains: Mapping[str, np.ndarray]) -> None:
        figures, count = world.figures, self._draws.get(name, 0)
        drawn = {} if figures is None else figures.draw(name, count)
        world.tune(self._engine.slots[name], drawn | dict(gains))

    def give(self, world: CompiledWorld) -> None:
        """Give the controller of a new world the gains that the drones have."""
        for name in self._engine.slots:
            tuned = self._gains.get(name, {}).get(world.controller, {})
            self._set(world, name, {gain: tuned[gain] for gain in tuned.keys() & world.gains})

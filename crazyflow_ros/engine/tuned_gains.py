"""Gains of individual drones, in place of those of their controllers, as inputs of their world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from jax import Array

from crazyflow_ros.control import Controller
from crazyflow_ros.control.gains import Tuned
from crazyflow_ros.engine.compiled_world import CompiledWorld
from crazyflow_ros.engine.form import gain_columns

if TYPE_CHECKING:
    from crazyflow_ros.sim.data import SimControls

Controls = TypeVar("Controls", bound="SimControls")


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


def found_gains(controls: SimControls) -> dict[str, np.ndarray]:
    """Return the gains of the position and attitude controller by name, see `Cascade`."""
    found = {}
    levels = {"state": controls.state, "attitude": controls.attitude}
    for stage, level in levels.items():
        if level is not None:
            for name in level.controller.cascade.GAINS:
                of, _, gain = name.partition(".")
                if of == stage:
                    found[name] = np.asarray(level.params[gain])
    return found


def with_gains(controls: Controls, names: Mapping[str, np.ndarray], gains: Array) -> Controls:
    """Return controls with other gains.

    Args:
        controls: Controls of one world.
        names: The result of `found_gains`.
        gains: (M, k) gains of each drone, side by side in the order of `names`.
    """
    params: dict[str, dict[str, Array]] = {}
    for name, column in gain_columns(names).items():
        stage, _, gain = name.partition(".")
        values = gains[None, :, column]
        params.setdefault(stage, {})[gain] = values if names[name].ndim else values[..., 0]
    return _with_params(controls, params)


def with_params_of(controls: Controls, others: SimControls) -> Controls:
    """Return controls with the parameters of other controls."""
    levels = {stage: getattr(others, stage) for stage in ("state", "attitude")}
    return _with_params(controls, {s: level.params for s, level in levels.items() if level})


def _with_params(controls: Controls, params: Mapping[str, Mapping[str, Array]]) -> Controls:
    changed = {}
    for stage, new in params.items():
        level = getattr(controls, stage)
        changed[stage] = level.replace(params={**level.params, **new})
    return controls.replace(**changed)

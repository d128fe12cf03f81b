"""Parameters of the dynamics that each drone of a running simulation draws for itself."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import fields
from functools import cached_property
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.gain_inputs import DRAWN
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.sim import Sim, SimData, randomizers
from crazyflow_ros.sim.identified import IdentifiedDrone
from crazyflow_ros.sim.pipeline import name_of
from crazyflow_ros.sim.randomize import RandomParameter

Stage: TypeAlias = RandomParameter | IdentifiedDrone
_OF_WORLD = ("wind", "gravity_vec")
"""Parameters that the running simulation sets for all drones."""


def nominal(config: SimulationConfig, conditions: Conditions) -> dict[str, np.ndarray]:
    """Return `DrawnFigures.nominal`, which is empty if drones draw nothing."""
    return DrawnFigures(config, conditions).nominal if config.randomize else {}


def stages_of(declaration: str) -> tuple[Stage, ...]:
    """Return the stages of the file that `SimulationOptions.randomize` names.

    Raises:
        ValueError: It cannot be read, or names what is not a parameter of each drone.
    """
    found = list[Stage]()
    for stage in randomizers(declaration):
        name = getattr(stage, "name", name_of(stage))
        if not isinstance(stage, Stage) or name in _OF_WORLD:
            raise ValueError(
                f"{declaration}: a running simulation draws parameters of each drone, got {name}"
            )
        found.append(stage)
    return tuple(found)


class DrawnFigures:
    """What the drones of a world draw.

    Attributes:
        nominal: What a drone without differences has, by name among gains, with the axes of what
            is drawn.
    """

    def __init__(self, config: SimulationConfig, conditions: Conditions) -> None:
        """Take what `config.randomize` declares.

        Raises:
            ValueError: See `stages_of`; or the dynamics have no such parameter, or it cannot be
                drawn in that way.
        """
        self._seed, self._stages = config.seed, stages_of(config.randomize)
        self.nominal: dict[str, np.ndarray] = {}
        drone, dynamics = config.drone_model, config.dynamics
        sim = Sim(1, drone=drone, dynamics=dynamics, conditions=conditions)
        sim.reset_pipeline = self._stages
        self._data = sim.default_data
        for name, like in jax.eval_shape(self._draw, jax.random.key(0)).items():
            own = getattr(self._data.params, name.removeprefix(DRAWN))
            self.nominal[name] = np.broadcast_to(own, like.shape)

    def draw(self, drone: str, count: int) -> dict[str, np.ndarray]:
        """Return the parameters of a drone, by name among gains.

        Args:
            drone: Its name.
            count: How often it has drawn before. The result depends on nothing but the
                configuration and these.
        """
        key = jax.random.key(self._seed)
        for number in (zlib.crc32(drone.encode()), count):
            key = jax.random.fold_in(key, number)
        return {name: np.asarray(value) for name, value in self._compiled(key).items()}

    @cached_property
    def _compiled(self) -> Any:
        return jax.jit(self._draw)

    def _draw(self, key: jax.Array) -> Mapping[str, jax.Array]:
        data: SimData = self._data.replace(core=self._data.core.replace(rng_key=key))
        for stage in self._stages:
            data = stage(data, self._data, jnp.ones(1, bool))
        drawn, own = data.params, self._data.params
        names = [f.name for f in fields(own) if getattr(drawn, f.name) is not getattr(own, f.name)]
        return {f"{DRAWN}{name}": getattr(drawn, name)[0, 0] for name in names}

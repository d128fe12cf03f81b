"""Plans of other rosters: drones, and the scene around them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np

from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.attachments import Attachment
from crazyflow_ros.engine.compiled_world import CompiledWorld, WorldProgram
from crazyflow_ros.engine.moving_bodies import MovingBodies
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.scene import read_scene
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.scene.description import Description
from crazyflow_ros.scene.mirrored_model import MirroredModel

SceneEdit = Callable[[mujoco.MjSpec], None]


def _no_edit(spec: mujoco.MjSpec) -> None:
    """Leave the scene as it is."""


@dataclass(frozen=True, eq=False)
class SceneSource:
    """Source of the scene around the drones."""

    scene: str | Path | Description
    """As for `build_spec`."""
    edit: SceneEdit = _no_edit
    """Changes the MjSpec before it is compiled; may refuse with ValueError."""

    @cached_property
    def description(self) -> Description:
        """The scene, which is read once."""
        return read_scene(self.scene)

    @property
    def conditions(self) -> Conditions:
        """Gravity, air and floor of the scene, see `conditions_of`."""
        return self.description.conditions[0]


@dataclass(frozen=True)
class RosterPlan:
    """A wanted roster, and the version of the roster that it is to replace."""

    version: int
    """Version of the present roster."""
    poses: Mapping[str, np.ndarray]
    """Initial poses (7,) of the drones, by name."""
    scene: SceneSource
    obstacles: Obstacles | None = None
    """Obstacles that replace those of the scene, if `heeds_scene` is False."""
    heeds_scene: bool = True
    gusts: bool = False
    """Whether the wind has gusts, or had."""
    controller: Controller = Controller.default
    """Position and attitude controller of all drones."""
    held: Mapping[str, Attachment] = field(default_factory=dict)
    """What drones hold, by their names."""

    def without(self, names: Collection[str]) -> RosterPlan:
        """Return this plan without what some drones hold, and what holds them."""
        bodies = {f"drone:{name}" for name in names}
        rest = {k: x for k, x in self.held.items() if k not in names and x.body not in bodies}
        return replace(self, held=rest)

    def is_like(self, other: RosterPlan) -> bool:
        """Whether a roster prepared for one plan fits the other."""
        return (
            self.version == other.version
            and self.scene is other.scene
            and self.obstacles is other.obstacles
            and (self.heeds_scene, self.gusts) == (other.heeds_scene, other.gusts)
            and self.controller is other.controller
            and self.held == other.held
            and tuple(self.poses) == tuple(other.poses)
            and all(np.array_equal(pose, other.poses[name]) for name, pose in self.poses.items())
        )


@dataclass(frozen=True)
class PreparedRoster:
    """A roster, ready to replace the present one."""

    plan: RosterPlan
    world: CompiledWorld
    """The present world, or one with more slots for drones."""
    obstacles: Obstacles | None
    doubts: tuple[str, ...]
    """Which objects drones feel otherwise than they look, and why."""
    surroundings: Surroundings
    """The obstacles by name."""
    program: WorldProgram | None = None
    """Compiled program of the world, for the obstacles; None to keep the present one."""
    model: MirroredModel | None = None
    """Model of the mirror; None to keep the present one."""
    bodies: MovingBodies | None = None
    """The moving bodies of `model`, if there are any."""

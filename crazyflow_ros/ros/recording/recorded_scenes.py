"""The world around the drones in a recording: loaded worlds, objects that come, go and move.

A recording has each description once, complete with its files, by its digest. A replay builds the
same scenes from them.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.plain_values import convert, plain
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.ros.simulation_interfaces.scenery import Pose
from crazyflow_ros.ros.simulation_interfaces.scenery_changes import SceneryChanges, SpawnedObject
from crazyflow_ros.runtime import PhysicsThread, TimedWrench
from crazyflow_ros.runtime.roster_plan import SceneSource
from crazyflow_ros.scene.description import FORMATS, Description, Sandbox

_PUSH = "replayed push"  # beginning of keys


@dataclass(frozen=True)
class _KeptDescription:
    """A `Description`; files are in base64."""

    text: str
    assets: dict[str, str]
    parts: dict[str, str]
    format: str

    def read(self) -> Description:
        if self.format not in FORMATS:
            raise ValueError(limits.unknown("format", self.format, FORMATS))
        assets, parts = (
            {name: b64decode(content, validate=True) for name, content in files.items()}
            for files in (self.assets, self.parts)
        )
        return Description(self.text, assets, parts, self.format)


@dataclass(frozen=True)
class _KeptScene:
    """A scene; worlds and objects are digests of descriptions."""

    world: str = ""
    """Empty for the world of the start."""
    spawned: dict[str, str] = field(default_factory=dict)
    poses: dict[str, tuple[float, ...]] = field(default_factory=dict)
    start: dict[str, tuple[float, ...]] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    descriptions: dict[str, _KeptDescription] = field(default_factory=dict)
    """Those that no earlier scene of the file has, by digest."""


class RecordedScenes:
    """Converts scenes for a recording.

    Args:
        start: The scene at the start.
    """

    def __init__(self, start: SceneSource) -> None:
        self._start, self._last = start.description, start
        self._known: set[str] = set()

    def change(self, scene: SceneSource) -> dict[str, Any] | None:
        """Return a scene as JSON values, or None if it is that of the last call."""
        if scene is self._last:
            return None
        self._last, new = scene, dict[str, Any]()

        def known(description: Description) -> str:
            digest = description.digest.hex()
            if digest not in self._known:
                self._known.add(digest)
                new[digest] = {
                    "text": description.text,
                    "assets": _in_text(description.assets),
                    "parts": _in_text(description.parts),
                    "format": description.format,
                }
            return digest

        changes = scene.edit if isinstance(scene.edit, SceneryChanges) else SceneryChanges()
        is_start = scene.description is self._start
        return {
            "world": "" if is_start else known(scene.description),
            "spawned": {name: known(one.description) for name, one in changes.spawned.items()},
            "poses": _as_numbers(changes.poses),
            "start": _as_numbers(changes.start),
            "deleted": sorted(changes.deleted),
            "descriptions": new,
        }


class ReplayedWorld:
    """Repeats what happened to the world around the drones.

    Descriptions are tried out in a process first.

    Args:
        physics: The simulation, in the scene of the start.
        timeout: Wall time of a change [s].
    """

    def __init__(self, physics: PhysicsThread, timeout: float) -> None:
        self._physics, self._timeout = physics, timeout
        self._worlds: dict[str, Description] = {"": physics.world.scene.description}
        self._objects: dict[str, SpawnedObject] = {}
        self._sandbox = Sandbox()

    def change(self, change: Mapping[str, Any]) -> None:
        """Continue in the scene of a recorded change, with the obstacles of the change.

        Raises:
            ValueError: The scene is none, or MuJoCo refuses it.
        """
        if "scene" in change:
            self._put(convert(change["scene"], _KeptScene, "scene"))
        if "obstacles" in change:
            self._put_obstacles(change["obstacles"])

    def push(self, wrenches: Mapping[str, Any]) -> None:
        """Let forces and torques (6,) act on bodies by their names, and no others."""
        pushes: dict[Hashable, tuple[str, TimedWrench | None]] = {
            (_PUSH, name): (name, TimedWrench(wrench[:3], wrench[3:], math.inf))
            for name, wrench in wrenches.items()
        }
        self._physics.simulation.wrenches.replace(pushes, [(_PUSH,)])

    def _put(self, kept: _KeptScene) -> None:
        for digest, one in kept.descriptions.items():
            description = one.read()
            self._sandbox.check(description)
            self._worlds[digest] = description
        changes = SceneryChanges(deleted=frozenset(kept.deleted))
        for name, digest in kept.spawned.items():
            if digest not in self._objects:
                self._objects[digest] = SpawnedObject.of(self._known(digest, name))
            start = _as_pose(name, kept.start.get(name, ()))
            changes = changes.with_spawned(name, self._objects[digest], start)
        for name, pose in kept.poses.items():
            changes = changes.with_pose(name, _as_pose(name, pose))
        world = self._known(kept.world, "the world")
        present = self._physics.world.scene.description
        scene = None if world is present else world
        self._physics.world.set_scene(scene, changes).result(self._timeout)

    def _put_obstacles(self, given: dict[str, Any] | None) -> None:
        """Let drones collide with recorded obstacles, unless those of the scene are the same."""
        here = self._physics.world.obstacles
        if given == (None if here is None else plain(vars(here))):
            return
        obstacles = None
        if given is not None:
            arrays: dict[str, Any] = {
                name: None if v is None else jnp.asarray(v) for name, v in given.items()
            }
            obstacles = Obstacles(**arrays)
        self._physics.world.set_obstacles(obstacles).result(self._timeout)

    def close(self) -> None:
        """End the process in which descriptions are tried out."""
        self._sandbox.close()

    def _known(self, digest: str, name: str) -> Description:
        if digest not in self._worlds:
            raise ValueError(f"the description of {limits.shown(name)} is missing")
        return self._worlds[digest]


def _in_text(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(content).decode() for name, content in files.items()}


def _as_numbers(poses: Mapping[str, Pose]) -> dict[str, list[float]]:
    return {name: [*pos.tolist(), *quat.tolist()] for name, (pos, quat) in poses.items()}


def _as_pose(name: str, numbers: tuple[float, ...]) -> Pose:
    pose = limits.vector(f"pose of {limits.shown(name)}", numbers, (7,), limits.POSITION)
    return pose[:3], pose[3:]

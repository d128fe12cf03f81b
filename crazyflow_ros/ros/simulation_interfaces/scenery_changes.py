"""Objects added to the world, moved in it or deleted from it at run time."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.simulation_interfaces.scenery import Pose
from crazyflow_ros.scene.description import Description, elements_of
from crazyflow_ros.scene.frames import xyzw_to_wxyz

_CONTROLLED = "<ros2_control"
_NO_CONTROL = (
    "has <ros2_control> tags, which have no effect: ros2_control has the robots of the world with "
    "which the simulator starts; spawned MJCF with actuators obeys ~/world/joint_commands"
)
_WATER = 1000.0  # kg/m^3


@dataclass(frozen=True, eq=False)
class SpawnedObject:
    """An object as it is added to a world."""

    description: Description
    spec: mujoco.MjSpec
    elements: int
    """Number of bodies, joints, geoms and the like."""
    notes: tuple[str, ...]
    """What was assumed, to be said."""

    @staticmethod
    def of(description: Description, spec: mujoco.MjSpec | None = None) -> SpawnedObject:
        """Return the object that a description describes.

        The root of a URDF moves freely, as in other simulators; in MJCF it is as its author wrote
        it.

        Args:
            description: Read before, and checked if it is a stranger's.
            spec: Its specification, if it is there already.

        Raises:
            ValueError: Only a part of the object moves freely, or MuJoCo refuses it.
        """
        spec = description.spec() if spec is None else spec
        notes = description.notes()
        if description.format == "urdf":
            spec, assumed = with_free_root(spec, description.text)
            notes += assumed
            if _CONTROLLED in description.text:
                notes.append(_NO_CONTROL)
        free_body(spec)
        return SpawnedObject(description, spec, elements_of(spec.copy().compile()), tuple(notes))


@dataclass(frozen=True)
class SceneryChanges:
    """Changes of the world since it was loaded."""

    spawned: Mapping[str, SpawnedObject] = field(default_factory=dict)
    """Spawned objects by name."""
    poses: Mapping[str, Pose] = field(default_factory=dict)
    """Present poses of spawned or moved objects by name."""
    start: Mapping[str, Pose] = field(default_factory=dict)
    """Initial poses of spawned objects by name."""
    deleted: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Return whether there are any changes."""
        return bool(self.spawned or self.poses or self.deleted)

    def with_spawned(self, name: str, added: SpawnedObject, pose: Pose) -> SceneryChanges:
        """Add an object.

        Raises:
            ValueError: There are too many objects, or their total size is too large.
        """
        if len(self.spawned) >= limits.OBJECTS:
            raise ValueError(f"there are already {limits.OBJECTS} objects, the maximum")
        spawned = {**self.spawned, name: added}
        every = sum(one.elements for one in spawned.values())
        if every > limits.SCENE_ELEMENTS:
            most = f"at most {limits.SCENE_ELEMENTS} elements in all"
            raise ValueError(f"objects may have {most}, got {every}")
        return replace(
            self,
            spawned=spawned,
            poses={**self.poses, name: pose},
            start={**self.start, name: pose},
        )

    def with_pose(self, name: str, pose: Pose) -> SceneryChanges:
        """Move an object."""
        return replace(self, poses={**self.poses, name: pose})

    def without(self, name: str) -> SceneryChanges:
        """Delete an object."""
        gone = frozenset() if name in self.spawned else frozenset({name})
        return SceneryChanges(
            _without(self.spawned, name),
            _without(self.poses, name),
            _without(self.start, name),
            self.deleted | gone,
        )

    def reset(self, *, state: bool, spawned: bool) -> SceneryChanges:
        """Reset the poses of objects, the set of objects, or both."""
        if state and spawned:
            return SceneryChanges()
        if state:
            return replace(self, poses=self.start)
        poses = {name: pose for name, pose in self.poses.items() if name not in self.spawned}
        return SceneryChanges(poses=poses) if spawned else self

    def __call__(self, spec: mujoco.MjSpec) -> None:
        """Apply the changes to a world, as a `SceneEdit`.

        Raises:
            ValueError: The world lacks a body that was deleted or moved.
        """
        for name in self.deleted:
            spec.delete(_body(spec, name))
        for name, added in self.spawned.items():
            _add(spec, added.spec, name)
        for name, (pos, quat) in self.poses.items():
            body = _body(spec, name)
            body.pos, body.quat = pos, xyzw_to_wxyz(quat)


def free_body(spec: mujoco.MjSpec) -> mujoco.MjsBody | None:
    """Return the body of an object that moves freely, with everything in it; None if it stands.

    Raises:
        ValueError: Only a part of the object moves freely.
    """
    free = [body for body in spec.worldbody.bodies if _is_free(body)]
    if not free:
        return None
    others = spec.worldbody.geoms, spec.worldbody.sites, spec.worldbody.bodies[1:]
    if any(others):
        names = ", ".join(body.name or "a body without a name" for body in free)
        raise ValueError(
            f"an object must be one body if it moves freely, with all else inside it, got {names}"
        )
    return free[0]


def with_free_root(spec: mujoco.MjSpec, text: str) -> tuple[mujoco.MjSpec, list[str]]:
    """Return a copy of a URDF that moves as in other simulators, and what was assumed for that.

    Its root moves freely, unless it is the link `world`, or nothing in it has an inertia or a shape
    that collides: then it marks a place. Links without an inertia get that of their visible shapes
    if they have no others, with the density of water.

    Args:
        spec: The URDF as MuJoCo reads it, without the link `world`.
        text: The URDF.
    """
    spec, notes = spec.copy(), list[str]()
    is_solid = any(geom.contype or geom.conaffinity for geom in spec.geoms)
    is_mark = not is_solid and not any(body.explicitinertial for body in spec.bodies[1:])
    if is_mark:
        return spec, notes
    is_fixed = any(link.get("name") == "world" for link in ET.fromstring(text).iter("link"))
    for body in () if is_fixed else spec.worldbody.bodies:
        if not body.joints:
            body.add_freejoint()
    if not is_fixed and not is_solid:
        notes.append("has no collision shapes, so it falls through everything")
    for body in spec.bodies[1:]:
        shapes = list(body.geoms)
        if not body.explicitinertial and shapes and not any(geom.contype for geom in shapes):
            notes.append(f"has no inertia for {body.name}: its visible shapes are taken for water")
            for geom in shapes:
                geom.mass, geom.density = np.nan, _WATER
    return spec, notes


def _add(spec: mujoco.MjSpec, child: mujoco.MjSpec, name: str) -> None:
    """Add an object to a world as a body of this name; names of its parts get it as a prefix."""
    child = child.copy()
    for key in list(child.keys):  # which are for the object alone
        child.delete(key)
    free = free_body(child)
    if free is None:
        frame = spec.worldbody.add_body(name=name).add_frame()
        spec.attach(child, prefix=f"{name}/", frame=frame)
        return
    if not free.name:
        free.name = "body"
    root = f"{name}/{free.name}"
    spec.attach(child, prefix=f"{name}/", frame=spec.worldbody.add_frame())
    _body(spec, root).name = name


def _is_free(body: mujoco.MjsBody) -> bool:
    return any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in body.joints)


def _body(spec: mujoco.MjSpec, name: str) -> mujoco.MjsBody:
    body = spec.body(name)
    if body is None:
        raise ValueError(f"the world has no body {name!r}")
    return body


def _without(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key != name}

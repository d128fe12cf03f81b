"""~/get_named_poses and ~/get_named_pose_bounds: poses named in a file or in the world's MJCF.

The YAML file of the parameter `named_poses` maps names to a position [m] and optionally yaw [rad]
or orientation (xyzw), description, tags, and the radius [m] of the free space. In MJCF, the named
poses are the sites; their shapes are the free space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np
from simulation_interfaces.msg import Bounds, NamedPose, Result
from simulation_interfaces.srv import GetNamedPoseBounds, GetNamedPoses

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.limits import shown, text
from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.checks.yaml_files import load_yaml
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages import geometry
from crazyflow_ros.ros.simulation_interfaces.scenery import Site
from crazyflow_ros.ros.simulation_interfaces.server import Server, same_tags
from crazyflow_ros.ros.simulation_interfaces.volumes import box_message, sphere_message

_KEYS = {"position", "yaw", "orientation", "description", "tags", "radius"}


@dataclass(frozen=True)
class Place:
    """A named pose and the free space around it."""

    pose: NamedPose
    bounds: Bounds


class NamedPoses:
    """Named poses of the file and of the loaded world."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._of_file = read_file(server.simulator.parameters.named_poses)
        server.serve(GetNamedPoses, self._get, "NAMED_POSES")
        server.serve(GetNamedPoseBounds, self._get_bounds, "POSE_BOUNDS")

    def _places(self) -> dict[str, Place]:
        scenery = self._server.scenery
        places = {
            site.name: Place(
                NamedPose(
                    name=site.name,
                    description=scenery.text("description", site.name),
                    tags=scenery.text("tags", site.name).split(),
                    pose=geometry.pose(site.pos, site.quat),
                ),
                room(site),
            )
            for site in scenery.sites()
        }
        return {**places, **self._of_file}

    def _get(self, request: GetNamedPoses.Request, response: GetNamedPoses.Response) -> None:
        poses = [place.pose for place in self._places().values()]
        response.poses = [pose for pose in poses if same_tags(request.tags, pose.tags)]

    def _get_bounds(
        self, request: GetNamedPoseBounds.Request, response: GetNamedPoseBounds.Response
    ) -> None:
        places = self._places()
        if request.name not in places:
            text = limits.unknown("pose", request.name, places)
            raise Refusal(Result.RESULT_NOT_FOUND, text)
        response.bounds = places[request.name].bounds


def room(site: Site) -> Bounds:
    """Return the shape of a site, in its own axes."""
    if site.shape == mujoco.mjtGeom.mjGEOM_SPHERE:
        return sphere_message(np.zeros(3), site.size[0])
    half = site.size.copy()
    if site.shape in (mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_CYLINDER):
        radius, length, _ = site.size
        caps = radius if site.shape == mujoco.mjtGeom.mjGEOM_CAPSULE else 0.0
        half = np.array([radius, radius, length + caps])
    return box_message((-half, half))


def read_file(path: str) -> dict[str, Place]:
    """Read the named poses of a file; an empty path means none.

    Raises:
        ParameterError: The file cannot be read or has invalid content.
    """
    if not path:
        return {}
    try:
        content = load_yaml(path)
        if content is None:
            return {}
        if not isinstance(content, dict):
            raise ValueError(f"{path} has no poses by name, but {shown(content)}")
        return {_name(name): _place(_name(name), entry) for name, entry in content.items()}
    except ValueError as error:
        raise ParameterError("named_poses", str(error)) from None


def _name(name: object) -> str:
    return text("name of a pose", str(name), limits.NAME_LENGTH)


def _place(name: str, entry: object) -> Place:
    if not isinstance(entry, dict):
        keys = ", ".join(sorted(_KEYS))
        raise ValueError(f"{name} must have some of {keys}, got {shown(entry)}")
    for key in sorted(map(str, entry.keys() - _KEYS)):
        raise ValueError(f"{name}: {limits.unknown('key', key, sorted(_KEYS))}")
    position = limits.vector(
        f"position of {name}", entry.get("position", ()), (3,), limits.POSITION
    )
    yaw = limits.number(f"yaw of {name}", _real(name, "yaw", entry.get("yaw", 0.0)), limits.ANGLE)
    level = [0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2)]
    orientation = limits.unit_quaternion(f"orientation of {name}", entry.get("orientation", level))
    bounds = Bounds(type=Bounds.TYPE_EMPTY)
    if entry.get("radius") is not None:
        radius = _real(name, "radius", entry["radius"])
        if limits.number(f"radius of {name}", radius, limits.POSITION) < 0:
            raise ValueError(f"radius of {name} must be 0 m or more, got {radius:g}")
        bounds = sphere_message(np.zeros(3), radius)
    tags = entry.get("tags", [])
    if not isinstance(tags, list):
        raise ValueError(f"tags of {name} must be a list, got {shown(tags)}")
    pose = NamedPose(
        name=name,
        description=text(f"description of {name}", str(entry.get("description", ""))),
        tags=[text(f"tag of {name}", str(tag), limits.NAME_LENGTH) for tag in tags],
        pose=geometry.pose(position, orientation),
    )
    return Place(pose, bounds)


def _real(name: str, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} of {name} must be a number, got {shown(value)}")
    return value

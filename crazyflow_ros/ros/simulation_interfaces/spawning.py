"""~/get_spawnables, ~/spawn_entity, ~/spawn_entities and ~/delete_entity."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.exceptions import InvalidNamespaceException
from rclpy.validate_namespace import validate_namespace
from simulation_interfaces.msg import Resource, Result, Spawnable, SpawnResult
from simulation_interfaces.srv import DeleteEntity, GetSpawnables, SpawnEntities, SpawnEntity

from crazyflow_ros.resources import resource
from crazyflow_ros.ros.simulation_interfaces.entities import named
from crazyflow_ros.ros.simulation_interfaces.frames import frame
from crazyflow_ros.ros.simulation_interfaces.motion import motions
from crazyflow_ros.ros.simulation_interfaces.objects import standing
from crazyflow_ros.ros.simulation_interfaces.resources import FORMATS, read, resource_of
from crazyflow_ros.ros.simulation_interfaces.scenery import box_of
from crazyflow_ros.ros.simulation_interfaces.server import LOADING_TIMEOUT, Refusal, Server
from crazyflow_ros.ros.simulation_interfaces.volumes import box_message

_FORMATS = tuple(FORMATS.values())
_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)
_DRONE_NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?", re.ASCII)
_SUFFIXES = (".xml", ".urdf")


class Spawning:
    """Puts objects and drones into the world, and takes them out of it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        server.spawn_formats += _FORMATS
        server.serve(GetSpawnables, self._get_spawnables, "SPAWNABLES")
        server.serve(SpawnEntity, self._spawn_one, "SPAWNING", "SPAWNING_RESOURCE_STRING")
        server.serve(SpawnEntities, self._spawn_several, "SPAWNING_ENTITIES")
        server.serve(DeleteEntity, self._delete, "DELETING")

    def _get_spawnables(
        self, request: GetSpawnables.Request, response: GetSpawnables.Response
    ) -> None:
        paths, unknown = list(_files(resource("urdf_mjcf", "objects"))), []
        for source in request.sources:
            path = Path(source.removeprefix("file://")).expanduser()
            if not path.exists():
                unknown.append(source)
            paths += _files(path)
        for path in paths:
            try:
                response.spawnables.append(_spawnable(path))
            except Refusal:
                unknown.append(str(path))
        if unknown:
            response.result.error_message = f"not recognised: {', '.join(unknown)}"

    async def _spawn_one(self, request: Any, response: Any) -> None:
        response.entity_name = await self._spawn(request)

    async def _spawn_several(
        self, request: SpawnEntities.Request, response: SpawnEntities.Response
    ) -> None:
        failed = []
        for wish in request.spawn_requests:
            result = SpawnResult(result=Result(result=Result.RESULT_OK))
            try:
                result.entity_name = await self._spawn(wish)
            except Exception as error:
                result.result = self._server.result_of(error)
                failed.append(f"{wish.name!r}: {error}")
            response.results.append(result)
        if failed:
            raise Refusal(response.ENTITIES_SPAWN_FAILED, "; ".join(failed))

    async def _spawn(self, wish: Any) -> str:
        """Carry out one request, of whatever service; returns the name."""
        async with self._server.alone():
            self._server.need_world()
            namespace = _namespace(wish.entity_namespace)
            wanted = resource_of(wish, "entity_resource")
            if wanted.uri == self._server.simulator.parameters.drone_model:
                return await self._spawn_drone(wish)
            description = read(wanted, SpawnResult, _FORMATS)
            wanted = wish.name or description.name
            name = self._free_name(namespace, wanted, wish.allow_renaming)
            origin = frame(self._server, wish.initial_pose)
            pose = origin.pose(wish.initial_pose.pose, SpawnResult.INVALID_POSE)
            changes = self._server.changes.with_spawned(name, standing(description.spec), pose)
            try:
                await self._server.change_world(changes)
            except ValueError as error:
                raise Refusal(SpawnResult.RESOURCE_PARSE_ERROR, str(error)) from None
            return name

    async def _spawn_drone(self, wish: Any) -> str:
        """Add a drone of the model of all others, with topics and services of its own."""
        if wish.entity_namespace:
            text = f"a drone's name is its namespace, got {wish.entity_namespace!r}"
            raise Refusal(SpawnResult.NAMESPACE_INVALID, text)
        name = self._free_name("", wish.name or "drone", wish.allow_renaming)
        if not _DRONE_NAME.fullmatch(name):
            rule = "letters, digits and single underscores, the first one a letter"
            raise Refusal(SpawnResult.NAME_INVALID, f"a drone's name has {rule}, got {name!r}")
        origin = frame(self._server, wish.initial_pose)
        pose = origin.pose(wish.initial_pose.pose, SpawnResult.INVALID_POSE)
        spawned = self._server.physics.spawn(name, np.concatenate(pose))
        await self._server.wait(spawned, LOADING_TIMEOUT)
        self._server.simulator.follow_drones()
        return name

    async def _delete(self, request: DeleteEntity.Request, response: DeleteEntity.Response) -> None:
        async with self._server.alone():
            self._server.need_world()
            motion = named(self._server, request.entity)
            if motion.is_drone:
                await self._server.wait(self._server.physics.despawn(motion.name))
                self._server.simulator.follow_drones()
            else:
                await self._server.change_world(self._server.changes.without(motion.name))
            self._server.info.pop(motion.name, None)

    def _free_name(self, namespace: str, wanted: str, renaming: bool) -> str:
        """The full name of a new entity: the wanted one, or if need be and allowed another."""
        taken = {motion.name for motion in motions(self._server)} | self._server.scenery.bodies()
        if not _NAME.fullmatch(wanted) and not renaming:
            rule = "letters, digits, '_', '-' and '.', the first one a letter"
            raise Refusal(SpawnResult.NAME_INVALID, f"a name has {rule}, got {wanted!r}")
        base = namespace + (wanted if _NAME.fullmatch(wanted) else "object")
        if base not in taken:
            return base
        if not renaming:
            text = f"there is a {base!r} already, and allow_renaming is false"
            raise Refusal(SpawnResult.NAME_NOT_UNIQUE, text)
        names = (f"{base}_{i}" for i in itertools.count(1))
        return next(name for name in names if name not in taken)


def _namespace(text: str) -> str:
    """What comes before a name in a namespace.

    Raises:
        Refusal: It is no namespace.
    """
    if not text:
        return ""
    try:
        validate_namespace(f"/{text.strip('/')}")
    except InvalidNamespaceException as error:
        raise Refusal(SpawnResult.NAMESPACE_INVALID, " ".join(str(error).split())) from None
    return f"{text.strip('/')}/"


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)
    elif path.is_file():
        yield path


def _spawnable(path: Path) -> Spawnable:
    description = read(Resource(uri=str(path)), SpawnResult, _FORMATS)
    bounds = box_message(box_of(description.spec.copy().compile(), 0))
    spawnable = Spawnable(description=description.text("description"), spawn_bounds=bounds)
    if hasattr(spawnable, "entity_resource"):
        spawnable.entity_resource = description.resource
    else:  # before version 2
        spawnable.uri = description.resource.uri
    return spawnable


def declare(server: Server) -> None:
    """Add the services."""
    Spawning(server)

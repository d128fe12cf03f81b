"""~/get_spawnables, ~/spawn_entity, ~/spawn_entities and ~/delete_entity."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.exceptions import InvalidNamespaceException
from rclpy.validate_namespace import validate_namespace
from simulation_interfaces.msg import Resource, Result, Spawnable, SpawnResult
from simulation_interfaces.srv import DeleteEntity, GetSpawnables, SpawnEntities, SpawnEntity

from crazyflow_ros.checks import limits
from crazyflow_ros.drones import Drone, model_name
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.service_answers import LOADING_TIMEOUT
from crazyflow_ros.ros.simulation_interfaces.entities import named
from crazyflow_ros.ros.simulation_interfaces.entity_motion import frame, motions
from crazyflow_ros.ros.simulation_interfaces.resource_reader import (
    SUFFIXES,
    Reader,
    check_files,
    check_sources,
    listed,
    objects,
    resource_of,
)
from crazyflow_ros.ros.simulation_interfaces.scenery import box_of
from crazyflow_ros.ros.simulation_interfaces.scenery_changes import SpawnedObject
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.ros.simulation_interfaces.volumes import box_message
from crazyflow_ros.scene.description import FORMATS

_NAME = re.compile(r"[A-Za-z][\w.-]*", re.ASCII)


class Spawning:
    """Services that add objects and drones to the world and delete them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        server.spawn_formats += (*FORMATS, "sdf")
        server.serve(GetSpawnables, self._get_spawnables, "SPAWNABLES")
        server.serve(SpawnEntity, self._spawn_one, "SPAWNING", "SPAWNING_RESOURCE_STRING")
        server.serve(SpawnEntities, self._spawn_several, "SPAWNING_ENTITIES")
        server.serve(DeleteEntity, self._delete, "DELETING")

    async def _get_spawnables(
        self, request: GetSpawnables.Request, response: GetSpawnables.Response
    ) -> None:
        reader = self._server.resources
        found, unknown = await self._server.work(lambda: _spawnables(reader, request.sources))
        response.spawnables = found
        if unknown:
            text = ", ".join(limits.shown(source) for source in unknown[: limits.REQUESTED])
            response.result.error_message = f"not recognised: {text}"

    async def _spawn_one(self, request: Any, response: Any) -> None:
        response.entity_name = await self._spawn(request)

    async def _spawn_several(
        self, request: SpawnEntities.Request, response: SpawnEntities.Response
    ) -> None:
        if len(request.spawn_requests) > limits.REQUESTED:
            most = f"at most {limits.REQUESTED} requests"
            raise ValueError(f"expected {most}, got {len(request.spawn_requests)}")
        failed, deadline = [], time.monotonic() + LOADING_TIMEOUT
        for wish in request.spawn_requests:
            result = SpawnResult(result=Result(result=Result.RESULT_OK))
            try:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"not started within {LOADING_TIMEOUT:g} s and cancelled")
                result.entity_name = await self._spawn(wish)
            except Exception as error:
                result.result = self._server.result_of(error)
                failed.append(f"{wish.name!r}: {error}")
            response.results.append(result)
        if failed:
            raise Refusal(response.ENTITIES_SPAWN_FAILED, "; ".join(failed))

    async def _spawn(self, wish: Any) -> str:
        async with self._server.alone():
            self._server.need_world()
            namespace = _namespace(wish.entity_namespace)
            wanted = resource_of(wish, "entity_resource")
            drone_model = self._server.simulator.parameters.drone_model
            own = model_name(drone_model)
            if wanted.uri in (drone_model, own):
                return await self._spawn_drone(wish)
            if wanted.uri in set(Drone):
                every = f"all drones of this simulation are {own}"
                raise ValueError(f"{every}, not {wanted.uri}: see drone_model")
            resources = self._server.resources
            wanted = resources.by_name(wanted, "object", objects(), also=own)
            own_name, spawned = await self._server.work(lambda: _read(resources, wanted))
            self._server.need_world()  # the world may have been unloaded meanwhile
            name = self._free_name(namespace, wish.name or own_name, wish.allow_renaming)
            origin = frame(self._server, wish.initial_pose)
            pose = origin.pose(wish.initial_pose.pose, SpawnResult.INVALID_POSE)
            try:
                changes = self._server.changes.with_spawned(name, spawned, pose)
                await self._server.change_world(changes)
            except ValueError as error:
                raise Refusal(SpawnResult.RESOURCE_PARSE_ERROR, str(error)) from None
            for note in spawned.notes:
                self._server.simulator.log.warning(f"{name} {note}")
            return name

    async def _spawn_drone(self, wish: Any) -> str:
        """Add a drone of the common drone model, with its own topics and services."""
        if wish.entity_namespace:
            text = f"entity_namespace must be empty for a drone, got {wish.entity_namespace!r}"
            raise Refusal(SpawnResult.NAMESPACE_INVALID, text)
        name = self._free_name("", wish.name or "drone", wish.allow_renaming)
        try:
            limits.drone_name(name, ("all", self._server.simulator.node.get_name()))
        except ValueError as error:
            raise Refusal(SpawnResult.NAME_INVALID, f"name of a drone: {error}") from None
        origin = frame(self._server, wish.initial_pose)
        pose = origin.pose(wish.initial_pose.pose, SpawnResult.INVALID_POSE)
        spawned = self._server.physics.world.spawn(name, np.concatenate(pose))
        await self._server.wait(spawned, LOADING_TIMEOUT)
        self._server.simulator.follow_drones()
        return name

    async def _delete(
        self, request: DeleteEntity.Request, _response: DeleteEntity.Response
    ) -> None:
        async with self._server.alone():
            self._server.need_world()
            motion = named(self._server, request.entity)
            if motion.is_drone:
                gone = self._server.physics.world.despawn(motion.name)
                await self._server.wait(gone, LOADING_TIMEOUT)
                self._server.simulator.follow_drones()
            else:
                await self._server.change_world(self._server.changes.without(motion.name))
                self._server.info.pop(motion.name, None)

    def _free_name(self, namespace: str, wanted: str, renaming: bool) -> str:
        """Return the full name of a new entity, with a suffix if needed and allowed."""
        for what, text in (("name", wanted), ("name with its namespace", namespace + wanted)):
            if len(text) > limits.NAME_LENGTH:
                most = f"a {what} may have at most {limits.NAME_LENGTH} characters"
                raise Refusal(SpawnResult.NAME_INVALID, f"{most}, got {limits.shown(text)!r}")
        taken = {motion.name for motion in motions(self._server)} | self._server.scenery.bodies()
        if not _NAME.fullmatch(wanted) and not renaming:
            rule = "letters, digits, '_', '-' and '.', the first one a letter"
            got = limits.shown(wanted)
            raise Refusal(SpawnResult.NAME_INVALID, f"a name must have {rule}, got {got!r}")
        base = namespace + (wanted if _NAME.fullmatch(wanted) else "object")
        if base not in taken:
            return base
        if not renaming:
            text = f"{base!r} already exists, and allow_renaming is false"
            raise Refusal(SpawnResult.NAME_NOT_UNIQUE, text)
        names = (f"{base}_{i}" for i in itertools.count(1))
        return next(name for name in names if name not in taken)


def _namespace(text: str) -> str:
    """Return the prefix of names in a namespace.

    Raises:
        Refusal: The namespace is invalid.
    """
    if not text:
        return ""
    if len(text) > limits.NAME_LENGTH:
        most = f"a namespace may have at most {limits.NAME_LENGTH} characters"
        raise Refusal(SpawnResult.NAMESPACE_INVALID, f"{most}, got {limits.shown(text)!r}")
    try:
        validate_namespace(f"/{text.strip('/')}")
    except InvalidNamespaceException as error:
        raise Refusal(SpawnResult.NAMESPACE_INVALID, " ".join(str(error).split())) from None
    return f"{text.strip('/')}/"


def _read(reader: Reader, wanted: Resource) -> tuple[str, SpawnedObject]:
    """Read an object and its name. Runs in the worker."""
    model = reader.read(wanted, SpawnResult, FORMATS)
    try:
        return model.name, SpawnedObject.of(model.description, model.spec)
    except ValueError as error:
        raise Refusal(SpawnResult.RESOURCE_PARSE_ERROR, " ".join(str(error).split())) from None


def _spawnables(reader: Reader, sources: Sequence[str]) -> tuple[list[Spawnable], list[str]]:
    """Return the spawnables of package and sources, and unusable files. Runs in the worker.

    Raises:
        ValueError: There are too many files.
    """
    check_sources(sources)
    found, unknown, paths = [], [], list(objects().values())
    for source in sources:
        try:
            path = reader.path_of(source, SpawnResult)
        except Refusal:
            unknown.append(source)
            continue
        if not (path.is_dir() or path.is_file()):
            unknown.append(source)
        paths += _files(path)
    check_files(paths)
    for path in paths:
        try:
            found.append(_spawnable(reader, path))
        except Refusal:
            unknown.append(str(path))
    return found, unknown


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from listed(path, SUFFIXES)
    elif path.is_file():
        yield path


def _spawnable(reader: Reader, path: Path) -> Spawnable:
    model = reader.read(Resource(uri=str(path)), SpawnResult, FORMATS)
    bounds = box_message(box_of(model.spec.copy().compile()))
    spawnable = Spawnable(description=model.text("description"), spawn_bounds=bounds)
    if hasattr(spawnable, "entity_resource"):
        spawnable.entity_resource = model.resource
    else:  # before version 2
        spawnable.uri = model.resource.uri
    return spawnable

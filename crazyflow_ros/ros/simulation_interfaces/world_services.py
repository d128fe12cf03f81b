"""~/get_available_worlds, ~/get_current_world, ~/load_world and ~/unload_world."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from simulation_interfaces.msg import Resource, Result, WorldResource
from simulation_interfaces.srv import GetAvailableWorlds, GetCurrentWorld, LoadWorld, UnloadWorld

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.resource_reader import (
    Model,
    Reader,
    check_files,
    check_sources,
    listed,
    resource_of,
)
from crazyflow_ros.ros.simulation_interfaces.scenery_changes import SceneryChanges
from crazyflow_ros.ros.simulation_interfaces.server import Server, same_tags
from crazyflow_ros.scene import scene_path, scenes
from crazyflow_ros.scene.description import Description, read_text
from crazyflow_ros.scene.groups import COLLISION_GROUP

FORMATS = ("mjcf",)
# With the floor of most worlds, hidden: then unloading and loading worlds compiles nothing.
_EMPTY = (
    '<mujoco model="empty"><worldbody>'
    f'<geom type="plane" size="0 0 1" group="{COLLISION_GROUP}"/></worldbody></mujoco>'
)
_CODES = LoadWorld.Response


class WorldServices:
    """Services that list available worlds and return the loaded one."""

    def __init__(self, server: Server) -> None:
        self._server = server
        path = scene_path(server.simulator.parameters.scene)
        server.world = read_world(server.resources, path)
        server.serve(GetAvailableWorlds, self._get_available, "AVAILABLE_WORLDS", "WORLD_TAGS")
        server.serve(GetCurrentWorld, self._get_current, "WORLD_INFO_GETTING")

    async def _get_available(
        self, request: GetAvailableWorlds.Request, response: GetAvailableWorlds.Response
    ) -> None:
        same_tags(request.filter, [])  # refuses an invalid filter
        reader, sources = self._server.resources, request.additional_sources
        skip_bad = request.continue_on_error
        worlds = await self._server.work(lambda: _available(reader, sources, skip_bad=skip_bad))
        response.worlds = [world for world in worlds if same_tags(request.filter, world.tags)]

    def _get_current(
        self, _request: GetCurrentWorld.Request, response: GetCurrentWorld.Response
    ) -> None:
        if self._server.world is None:
            raise Refusal(response.NO_WORLD_LOADED, "no world is loaded")
        response.world = self._server.world


class WorldLoading:
    """Services that replace the scene around the drones."""

    def __init__(self, server: Server) -> None:
        self._server, self._physics = server, server.physics
        server.serve(LoadWorld, self._load, "WORLD_LOADING", "WORLD_RESOURCE_STRING")
        server.serve(UnloadWorld, self._unload, "WORLD_UNLOADING")

    async def _load(self, request: LoadWorld.Request, response: LoadWorld.Response) -> None:
        async with self._server.alone():
            resources = self._server.resources
            wanted = resources.by_name(resource_of(request, "world_resource"), "world", scenes())
            world = await self._server.work(lambda: resources.read(wanted, _CODES, FORMATS))
            if request.fail_on_unsupported_element and (world.spec.flexes or world.spec.skins):
                text = "the world has flexes or skins, which the page and RViz do not show"
                raise Refusal(_CODES.UNSUPPORTED_ELEMENTS, text)
            self._server.loading = True
            try:
                await self._exchange(world_message(world), world.description)
            finally:
                self._server.loading = False
            response.world = world_message(world)

    async def _unload(self, _request: UnloadWorld.Request, response: UnloadWorld.Response) -> None:
        async with self._server.alone():
            if self._server.world is None:
                raise Refusal(response.NO_WORLD_LOADED, "no world is loaded")
            await self._exchange(None, read_text(_EMPTY))

    async def _exchange(self, world: WorldResource | None, scene: Description) -> None:
        """Hold time, replace the scene and reset everything; on failure change nothing."""
        server, physics = self._server, self._physics
        runs = not physics.paused
        await server.wait(physics.hold("a world is being loaded"))
        try:
            await server.change_world(SceneryChanges(), scene)
            server.world, runs = world, False
        except ValueError as error:
            raise Refusal(_CODES.RESOURCE_PARSE_ERROR, str(error)) from None
        finally:
            if server.world is None:
                await server.wait(physics.hold("no world is loaded"))
            else:
                await server.wait(physics.release())
                if runs:
                    await server.wait(physics.resume())
        await server.stop()


def read_world(reader: Reader, path: Path) -> WorldResource:
    """Read the description of a world.

    Raises:
        Refusal: The description is invalid, see `Reader.read`.
    """
    return world_message(reader.read(Resource(uri=str(path)), _CODES, FORMATS))


def world_message(world: Model) -> WorldResource:
    """Convert a description to a message."""
    return WorldResource(
        name=world.name,
        world_resource=world.resource,
        description=world.text("description"),
        tags=world.text("tags").split(),
    )


def _available(reader: Reader, sources: Sequence[str], *, skip_bad: bool) -> list[WorldResource]:
    """Return the worlds of the package and of the sources. Runs in the worker.

    Raises:
        ValueError: A file is not a world and `skip_bad` is false, or there are too many files.
    """
    check_sources(sources)
    paths, worlds = [*scenes().values(), *_files(reader, sources, skip_bad=skip_bad)], []
    check_files(paths)
    for path in paths:
        try:
            worlds.append(read_world(reader, path))
        except Refusal as error:
            if not skip_bad:
                raise ValueError(str(error)) from None
    return worlds


def _files(reader: Reader, sources: Iterable[str], *, skip_bad: bool) -> Iterator[Path]:
    for source in sources:
        try:
            path = reader.path_of(source, _CODES)
        except Refusal:
            if skip_bad:
                continue
            raise
        if path.is_dir():
            yield from listed(path, (".xml", ".sdf", ".world"))
        elif path.is_file():
            yield path
        elif not skip_bad:
            text = f"there is no file or folder {limits.shown(source)!r}"
            raise Refusal(Result.RESULT_NOT_FOUND, text)

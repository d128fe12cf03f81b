"""~/load_world and ~/unload_world."""

from __future__ import annotations

from simulation_interfaces.msg import WorldResource
from simulation_interfaces.srv import LoadWorld, UnloadWorld

from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.simulation_interfaces.objects import WorldChanges
from crazyflow_ros.ros.simulation_interfaces.resources import resource_of
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.ros.simulation_interfaces.worlds import FORMATS, world_message
from crazyflow_ros.scene import scenes
from crazyflow_ros.scene.description import Description, read_text

_EMPTY = '<mujoco model="empty"/>'
_CODES = LoadWorld.Response


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
            if request.fail_on_unsupported_element and (world.spec.joints or world.spec.actuators):
                text = "only drones can move, but the world has joints or actuators"
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
            await server.change_world(WorldChanges(), scene)
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


def declare(server: Server) -> None:
    """Create the services."""
    WorldLoading(server)

"""Common parts of all services: names, results and error handling."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from simulation_interfaces.msg import EntityInfo, Result, SimulatorFeatures, WorldResource

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.service_answers import LOADING_TIMEOUT, READING_TIMEOUT
from crazyflow_ros.ros.simulation_interfaces.resource_reader import Reader, objects
from crazyflow_ros.ros.simulation_interfaces.scenery import Scenery
from crazyflow_ros.ros.simulation_interfaces.scenery_changes import SceneryChanges
from crazyflow_ros.runtime import ResetScope, Snapshot
from crazyflow_ros.scene import scene_path, scenes
from crazyflow_ros.scene.description import Description

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

T = TypeVar("T")


class Server:
    """The services of one simulator and their shared state.

    Attributes:
        simulator: The node.
        physics: The running simulation.
        wait: Waits for the physics without blocking other services, see `Waiting.result`.
        features: Supported features, constants of `SimulatorFeatures`.
        spawn_formats: Formats of spawnable descriptions.
        resources: Reads the resources of requests.
        scenery: Bodies of the world other than drones.
        world: The loaded world; None if there is none.
        loading: Whether a world is being loaded.
        changes: Changes of the world since it was loaded.
        stopped_at: Tick and epoch at which the simulation was stopped.
        info: Entity info set by clients, by name.
        resets_time: Whether the clock may jump back; with a controller manager it must not, because
            the manager would stop.
    """

    def __init__(self, simulator: Host) -> None:
        self.simulator, self.physics = simulator, simulator.physics
        self.wait = simulator.waiting.result
        self.features: list[int] = []
        self.spawn_formats: list[str] = []
        self.scenery = Scenery(simulator.physics.mirror)
        self.world: WorldResource | None = None
        self.loading = False
        self.changes = SceneryChanges()
        self.stopped_at = self.now()
        self.info: dict[str, EntityInfo] = {}
        self.resets_time: bool = not simulator.parameters.flown_by
        own = [*scenes().values(), *objects().values(), scene_path(simulator.parameters.scene)]
        self.resources = Reader(own, simulator.parameters.world_folders)
        simulator.on_close(self.resources.close)
        self._turns: list[Future[None]] = []
        self._drones: set[str] = set()
        simulator.for_all_drones(self._forget_gone)
        self._name_hidden()

    def get_features(self, _request: Any, response: Any) -> None:
        """Answer ~/get_simulator_features."""
        response.features.features = sorted(self.features)
        response.features.spawn_formats = self.spawn_formats
        response.features.custom_info = "crazyflow_ros, docs/guides/simulation_interfaces.md"

    def supports(self, *features: str) -> None:
        """Add supported features by their names in `SimulatorFeatures`."""
        self.features += [getattr(SimulatorFeatures, feature) for feature in features]

    def serve(self, kind: Any, handler: Callable[[Any, Any], Any], *features: str) -> None:
        """Create a service.

        Args:
            kind: Type of the service.
            handler: Receives request and response; fills in the response or raises. May be a
                coroutine.
            features: Features that it implements, by their names in `SimulatorFeatures`.
        """

        def callback(request: Any, response: Any) -> Any:
            if hasattr(response, "result"):
                response.result.result = Result.RESULT_OK
            return handler(request, response)

        self.supports(*features)
        self.simulator.create_service(kind, service_name(kind), callback)

    async def work(self, work: Callable[[], T], timeout: float = READING_TIMEOUT) -> T:
        """Run a slow function in the worker without blocking other services.

        Raises:
            TimeoutError: The function did not finish in time; a later result is discarded.
        """
        return await self.wait(self.simulator.worker.ask(work), timeout)

    def now(self) -> tuple[int, int]:
        """Return tick and epoch."""
        return self.physics.snapshot.tick, self.physics.snapshot.epoch

    def need_world(self) -> None:
        """Refuse a request that needs a world if none is loaded."""
        if self.loading or self.world is None:
            text = "a world is being loaded" if self.loading else "no world is loaded"
            raise Refusal(Result.RESULT_INCORRECT_STATE, text)

    async def reset(self, scope: ResetScope) -> Snapshot:
        """Reset the simulation including its objects."""
        reset = self.physics.state.reset(scope)
        if self.changes:
            async with self.alone():
                state, spawned = ResetScope.state in scope, ResetScope.spawned in scope
                for name in self.changes.spawned if spawned else ():
                    self.info.pop(name, None)
                await self.change_world(self.changes.reset(state=state, spawned=spawned))
        snapshot = await self.wait(reset, LOADING_TIMEOUT)  # may compile a model
        self.simulator.follow_drones()
        return snapshot

    async def reset_all(self) -> Snapshot:
        """Reset everything to the start, except for time if it must not jump back."""
        self.info.clear()
        every = ResetScope.all
        return await self.reset(every if self.resets_time else every & ~ResetScope.time)

    async def stop(self) -> None:
        """Pause and reset everything, without a tick in between."""
        paused = self.physics.pause()
        snapshot = await self.reset_all()
        await self.wait(paused)
        self.stopped_at = (snapshot.tick, snapshot.epoch)

    async def change_world(self, changes: SceneryChanges, scene: Description | None = None) -> None:
        """Set the changes of a new scene, or of the present one.

        Raises:
            ValueError: The scene cannot be compiled; nothing has changed.
        """
        await self.wait(self.physics.world.set_scene(scene, changes), LOADING_TIMEOUT)
        self.changes = changes
        if scene is not None:
            self._name_hidden()

    async def put_keyframe(self, name: str) -> list[str]:
        """Reset the bodies of the world, and then move them to their poses in a keyframe.

        Args:
            name: Name of a keyframe of the world; empty for none.

        Returns:
            Names of joints and bodies that the keyframe moves, but that have to stay.

        Raises:
            ValueError: A position in the keyframe is out of range.
        """
        async with self.alone():
            changes, before = self.changes.reset(state=True, spawned=False), self.changes.poses
            if any(changes.poses.get(body) is not pose for body, pose in before.items()):
                await self.change_world(changes)
            moves = self.physics.snapshot.bodies is not None  # then the state has them
            poses, stay = self.scenery.keyframe(name) if name and not moves else ({}, [])
            for body, pose in poses.items():
                changes = changes.with_pose(body, pose)
            if poses:
                await self.change_world(changes)
            return stay

    def _forget_gone(self) -> None:
        """Forget the info of drones that have gone: others may get their names."""
        before, self._drones = self._drones, set(self.simulator.drones)
        for name in before - self._drones:
            self.info.pop(name, None)

    def _name_hidden(self) -> None:
        """Warn about bodies of the world that are no entities because a drone has their name."""
        for name in sorted(self.scenery.poses().keys() & set(self.physics.snapshot.names)):
            self.simulator.log.warning(
                f"the body {name!r} of the world is no entity, because a drone has its name: "
                "rename one of them"
            )

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Serialise requests that change the content of the world.

        Raises:
            TimeoutError: Earlier requests took too long.
        """
        turn: Future[None] = Future()
        self._turns.append(turn)
        self._next_turn()
        try:
            await self.wait(turn, LOADING_TIMEOUT)
            yield
        finally:
            self._turns.remove(turn)
            self._next_turn()

    def _next_turn(self) -> None:
        if self._turns and not self._turns[0].done():
            self._turns[0].set_result(None)

    def result_of(self, error: Exception) -> Result:
        """Convert an error to a `Result`."""
        code = getattr(error, "code", Result.RESULT_OPERATION_FAILED)
        return Result(result=code, error_message=self.simulator.guard.explain(error, "a request"))


def service_name(kind: Any) -> str:
    """Return the name of a service: its type in snake case, below the node."""
    return "~/" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def same_tags(wanted: Any, tags: list[str]) -> bool:
    """Return whether tags pass a `TagsFilter`.

    Raises:
        ValueError: The filter has an unknown mode or too many tags.
    """
    if len(wanted.tags) > limits.TAGS:
        raise ValueError(f"a filter may have at most {limits.TAGS} tags, got {len(wanted.tags)}")
    if wanted.filter_mode not in (wanted.FILTER_MODE_ANY, wanted.FILTER_MODE_ALL):
        raise ValueError(f"filter_mode must be 0 (any) or 1 (all), got {wanted.filter_mode}")
    found = [tag in tags for tag in wanted.tags]
    every = wanted.filter_mode == wanted.FILTER_MODE_ALL
    return not found or (all(found) if every else any(found))

"""What all services have in common: names, results, and what to do about errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simulation_interfaces.msg import EntityInfo, Result, SimulatorFeatures, WorldResource

from crazyflow_ros import limits
from crazyflow_ros.ros.door import Refusal
from crazyflow_ros.ros.services.waiting import LOADING_TIMEOUT, READING_TIMEOUT, TIMEOUT
from crazyflow_ros.ros.simulation_interfaces.objects import WorldChanges
from crazyflow_ros.ros.simulation_interfaces.scenery import Scenery
from crazyflow_ros.runtime import ResetScope, Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.node import SimulatorNode

T = TypeVar("T")


class Server:
    """The services of one simulator, and what they share.

    Attributes:
        simulator: The node.
        physics: The running simulation.
        features: What is supported, constants of `SimulatorFeatures`, told by those that do it.
        spawn_formats: What entities can be made from.
        scenery: The bodies of the world that are no drones.
        world: What is loaded; None if nothing is.
        loading: A world is being loaded.
        changes: Of that world, since it was loaded.
        stopped_at: Tick and epoch at which the simulation was stopped.
        info: What was set about entities, by name.
        resets_time: Whether the clock may jump back. A controller manager would stand still.
    """

    def __init__(self, simulator: SimulatorNode) -> None:
        self.simulator, self.physics = simulator, simulator.physics
        self.features: list[int] = []
        self.spawn_formats: list[str] = []
        self.scenery = Scenery(simulator.physics.mirror)
        self.world: WorldResource | None = None
        self.loading = False
        self.changes = WorldChanges()
        self.stopped_at = self.now()
        self.info: dict[str, EntityInfo] = {}
        self.resets_time: bool = simulator.parameters.ros2_control.mode == "off"
        self._turns: list[Future[None]] = []

    def supports(self, *features: str) -> None:
        """Note what is supported, by the names in `SimulatorFeatures`."""
        self.features += [getattr(SimulatorFeatures, feature) for feature in features]

    def serve(self, kind: Any, handler: Callable[[Any, Any], Any], *features: str) -> None:
        """Add a service.

        Args:
            kind: Type of the service.
            handler: Fills in a response, or raises. Called with request and response; may be a
                coroutine.
            features: That come with it, by their names in `SimulatorFeatures`.
        """

        async def callback(request: Any, response: Any) -> None:
            if hasattr(response, "result"):
                response.result.result = Result.RESULT_OK
            waits = handler(request, response)
            if inspect.isawaitable(waits):
                await waits

        self.supports(*features)
        self.simulator.create_service(kind, service_name(kind), callback)

    async def wait(self, future: Future[T], timeout: float = TIMEOUT) -> T:
        """Wait for the physics, while other services go on; see `Waiting.result`."""
        return await self.simulator.waiting.result(future, timeout)

    async def work(self, work: Callable[[], T], timeout: float = READING_TIMEOUT) -> T:
        """Have something done that takes long, in one other thread, while other services go on.

        Raises:
            TimeoutError: It was not done in time. What is done of it later is dropped.
        """
        return await self.wait(self.simulator.worker.ask(work), timeout)

    def now(self) -> tuple[int, int]:
        """Tick and epoch."""
        return self.physics.snapshot.tick, self.physics.snapshot.epoch

    def need_world(self) -> None:
        """Refuse what cannot be done without a world."""
        if self.loading or self.world is None:
            text = "a world is being loaded" if self.loading else "no world is loaded"
            raise Refusal(Result.RESULT_INCORRECT_STATE, text)

    async def reset(self, scope: ResetScope) -> Snapshot:
        """Go back to the start; the objects, too."""
        reset = self.physics.reset(scope)
        if self.changes:
            async with self.alone():
                state, spawned = ResetScope.state in scope, ResetScope.spawned in scope
                for name in self.changes.spawned if spawned else ():
                    self.info.pop(name, None)
                await self.change_world(self.changes.reset(state=state, spawned=spawned))
        snapshot = await self.wait(reset, LOADING_TIMEOUT)  # there may be a model to compile
        self.simulator.follow_drones()
        return snapshot

    async def reset_all(self) -> Snapshot:
        """Make everything as it was at the start, but time if it must not jump back."""
        self.info.clear()
        every = ResetScope.all
        return await self.reset(every if self.resets_time else every & ~ResetScope.time)

    async def stop(self) -> None:
        """Pause and reset everything, with nothing in between."""
        paused = self.physics.pause()
        snapshot = await self.reset_all()
        await self.wait(paused)
        self.stopped_at = (snapshot.tick, snapshot.epoch)

    async def change_world(self, changes: WorldChanges, scene: Path | None = None) -> None:
        """Make these the changes of a scene, or of the present one.

        Raises:
            ValueError: It cannot be compiled, and nothing has changed.
        """
        await self.wait(self.physics.set_scene(scene, changes.apply), LOADING_TIMEOUT)
        self.changes = changes

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """For those that change what is in the world: one after the other.

        Raises:
            TimeoutError: Those before have taken too long.
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
        """What an error is in the terms of the interface."""
        code = getattr(error, "code", Result.RESULT_OPERATION_FAILED)
        return Result(result=code, error_message=self.simulator.door.explain(error, "a request"))


def service_name(kind: Any) -> str:
    """Of a type: the same in snake case, below the node."""
    return "~/" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def same_tags(wanted: Any, tags: list[str]) -> bool:
    """Whether tags pass a `TagsFilter`.

    Raises:
        Refusal: It has a mode that does not exist, or too many tags.
    """
    if len(wanted.tags) > limits.TAGS:
        text = f"a filter has {limits.TAGS} tags at most, got {len(wanted.tags)}"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)
    if wanted.filter_mode not in (wanted.FILTER_MODE_ANY, wanted.FILTER_MODE_ALL):
        text = f"filter_mode is 0 (any) or 1 (all), got {wanted.filter_mode}"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)
    found = [tag in tags for tag in wanted.tags]
    every = wanted.filter_mode == wanted.FILTER_MODE_ALL
    return not found or (all(found) if every else any(found))

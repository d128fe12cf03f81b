"""What all services have in common: names, results, and what to do about errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncIterator, Callable
from concurrent.futures import CancelledError, Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from simulation_interfaces.msg import EntityInfo, Result, SimulatorFeatures, WorldResource

from crazyflow_ros.ros.simulation_interfaces.objects import Changes
from crazyflow_ros.ros.simulation_interfaces.scenery import Scenery
from crazyflow_ros.runtime import InvalidState, ResetScope, Snapshot

if TYPE_CHECKING:
    from crazyflow_ros.ros.simulator import Simulator

T = TypeVar("T")

TIMEOUT = 10.0  # s of wall time; requests are carried out within one period of the topics
LOADING_TIMEOUT = 120.0  # s of wall time
SLOWEST_TICK = 0.01  # s of wall time


class Refusal(Exception):
    """A request that is not carried out.

    Attributes:
        code: One of `Result`, or of the service.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


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

    def __init__(self, simulator: Simulator) -> None:
        self.simulator, self.physics = simulator, simulator.physics
        self.features: list[int] = []
        self.spawn_formats: list[str] = []
        self.scenery = Scenery(simulator.physics.mirror)
        self.world: WorldResource | None = None
        self.loading = False
        self.changes = Changes()
        self.stopped_at = self.now()
        self.info: dict[str, EntityInfo] = {}
        self.resets_time: bool = simulator.parameters.ros2_control.mode == "off"
        self._last_turn: Future[None] = Future()
        self._last_turn.set_result(None)

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

        async def callback(request: Any, response: Any) -> Any:
            if hasattr(response, "result"):
                response.result.result = Result.RESULT_OK
                await self._carry_out(handler, request, response)
            else:
                handler(request, response)
            return response

        self.supports(*features)
        self.simulator.create_service(
            kind, service_name(kind), callback, callback_group=self.simulator.waiting.group
        )

    async def wait(self, future: Future[T], timeout: float = TIMEOUT) -> T:
        """Wait for the physics, while other services go on.

        Raises:
            TimeoutError: It was not done in time, and will not be done later.
        """
        try:
            return await self.simulator.waiting.result(future, timeout)
        except TimeoutError:
            future.cancel()
            raise TimeoutError(f"not done within {timeout:.0f} s") from None

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
        return await self.wait(reset)

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

    async def change_world(self, changes: Changes, scene: Path | None = None) -> None:
        """Make these the changes of a scene, or of the present one.

        Raises:
            ValueError: It cannot be compiled, and nothing has changed.
        """
        await self.wait(self.physics.set_scene(scene, changes.apply), LOADING_TIMEOUT)
        self.changes = changes

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """For those that change what is in the world: one after the other."""
        before, self._last_turn = self._last_turn, Future()
        mine = self._last_turn
        try:
            await self.simulator.waiting.result(before, LOADING_TIMEOUT)
            yield
        finally:
            mine.set_result(None)

    async def _carry_out(
        self, handler: Callable[[Any, Any], Any], request: Any, response: Any
    ) -> None:
        try:
            waits = handler(request, response)
            if inspect.isawaitable(waits):
                await waits
        except Exception as error:
            response.result = self.result_of(error)

    def result_of(self, error: Exception) -> Result:
        """What an error is in the terms of the interface."""
        if isinstance(error, Refusal):
            return Result(result=error.code, error_message=str(error))
        if not isinstance(error, InvalidState | ValueError | TimeoutError | CancelledError):
            self.simulator.get_logger().error(f"a service failed: {error!r}")
        text = str(error) or repr(error)
        return Result(result=Result.RESULT_OPERATION_FAILED, error_message=text)


def service_name(kind: Any) -> str:
    """Of a type: the same in snake case, below the node."""
    return "~/" + re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def same_tags(wanted: Any, tags: list[str]) -> bool:
    """Whether tags pass a `TagsFilter`.

    Raises:
        Refusal: It has a mode that does not exist.
    """
    if wanted.filter_mode not in (wanted.FILTER_MODE_ANY, wanted.FILTER_MODE_ALL):
        text = f"filter_mode is 0 (any) or 1 (all), got {wanted.filter_mode}"
        raise Refusal(Result.RESULT_OPERATION_FAILED, text)
    found = [tag in tags for tag in wanted.tags]
    every = wanted.filter_mode == wanted.FILTER_MODE_ALL
    return not found or (all(found) if every else any(found))

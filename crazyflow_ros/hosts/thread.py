"""The physics thread of a simulator that shares its time with others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from functools import partial, wraps
from inspect import signature
from itertools import count
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.hosts.calls import call
from crazyflow_ros.hosts.configuration import configuration
from crazyflow_ros.hosts.members import Members
from crazyflow_ros.hosts.requests import SharedRequests
from crazyflow_ros.hosts.rounds import Rounds
from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.hosts.transport import Transport, ZenohTransport
from crazyflow_ros.runtime import Checkpoint, InvalidState, PhysicsThread, ResetScope, Steps
from crazyflow_ros.runtime.changes import StateEdit
from crazyflow_ros.runtime.steps import Progress
from crazyflow_ros.runtime.wrenches import TimedWrench
from crazyflow_ros.scene import Controls, MirrorState
from crazyflow_ros.throttled_logger import Logger

P = ParamSpec("P")
T = TypeVar("T")

_MOST_UNREAD = 100  # messages of one simulator; it cannot be further ahead than a few


def _agreed(
    method: Callable[Concatenate[Any, P], Future[T]],
) -> Callable[Concatenate[SharedThread, P], Future[T]]:
    """Return a method that lets all simulators carry out one of `PhysicsThread`."""
    parameters = signature(method)

    @wraps(method)
    def agreed(self: SharedThread, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        given = parameters.bind(self, *args, **kwargs)
        return self.agree(method.__name__, *given.args[1:], **given.kwargs)

    return agreed


def _alone(
    method: Callable[Concatenate[Any, P], Future[T]], what: str
) -> Callable[Concatenate[SharedThread, P], Future[T]]:
    """Return a method that refuses what other simulators could not be sent."""

    @wraps(method)
    def refused(_: SharedThread, /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        del args, kwargs
        future: Future[T] = Future()
        future.set_exception(InvalidState(f"{what} is not possible with several hosts"))
        return future

    return refused


class SharedThread(PhysicsThread):
    """A physics thread that shares world and time with those of other simulators.

    It commands the drones that it owns. What changes the state, or lets time run, is carried out by
    all; impossible values are refused through the future.

    Args:
        config: The simulation, the same for all but for speed and pause at the start.
        names: Names of all drones, in the same order for all.
        hosts: The other simulators, and the drones of this one.
        logger: Logs failures; by default Python's.
        transport: How the others are reached; by default over Zenoh.

    Raises:
        ValueError: A setting, the configuration or a name is not usable; the message says which.
        ModuleNotFoundError: Zenoh is not installed.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        hosts: Hosts,
        logger: Logger | None = None,
        transport: Transport | None = None,
    ) -> None:
        hosts.check(names)
        self._transport = transport or ZenohTransport(hosts)
        try:
            super().__init__(config, names, logger=logger)
        except BaseException:
            self._transport.close()
            raise
        self.hosts = hosts
        self._members = Members(
            *(hosts, self.names, configuration(config, names), self._transport, self._health.warn)
        )
        self._shared = SharedRequests(self, hosts)
        self._rounds = Rounds(
            *(self._members, self._transport, self._simulation, self._engine, self._loop),
            *(self._health, self._shared.carry_out),
        )
        self._shared.connect(self._rounds, self._simulation, self._loop, self._health)
        self._numbers = count()
        self._unread: Counter[str] = Counter()
        self._lock = threading.Lock()  # guards `_unread`
        self._rounds.before_inputs = self._inputs.take
        self.on_reset(lambda event: self._inputs.forget(event.drones))
        self._simulation.until = self.snapshot.tick
        self._simulation.lose = self._withdraw
        self._loop.turns = self._rounds
        self._transport.open(self._noticed, self._heard)

    @property
    def own_drones(self) -> tuple[str, ...]:
        """See `PhysicsThread`: those that this simulator owns."""
        return tuple(name for name in self.names if not self._master(name))

    def agree(self, name: str, *arguments: Any, **by_name: Any) -> Future[Any]:
        """Let all simulators carry out a request by its name."""
        future: Future[Any] = Future()
        try:
            request = call(name, arguments, by_name)
        except ValueError as error:
            future.set_exception(error)
            return future
        asked = self._loop.ask(partial(self._rounds.ask, request, future))
        asked.add_done_callback(partial(_fail_with, future))
        return future

    # Requests that all carry out.

    pause = _agreed(PhysicsThread.pause)
    resume = _agreed(PhysicsThread.resume)
    switch = _agreed(PhysicsThread.switch)
    set_real_time_factor = _agreed(PhysicsThread.set_real_time_factor)
    reset = _agreed(PhysicsThread.reset)
    set_drone_states = _agreed(PhysicsThread.set_drone_states)
    capture_initial_state = _agreed(PhysicsThread.capture_initial_state)
    notify_reset = _agreed(PhysicsThread.notify_reset)
    restart = _agreed(PhysicsThread.restart)
    set_upright = _agreed(PhysicsThread.set_upright)
    tune = _agreed(PhysicsThread.tune)
    untune = _agreed(PhysicsThread.untune)
    restart_estimate = _agreed(PhysicsThread.restart_estimate)
    tell_pose = _agreed(PhysicsThread.tell_pose)
    spawn = _agreed(PhysicsThread.spawn)
    despawn = _agreed(PhysicsThread.despawn)
    disturb = _agreed(PhysicsThread.disturb)
    set_controller = _agreed(PhysicsThread.set_controller)
    restore = _agreed(PhysicsThread.restore)

    set_scene = _alone(PhysicsThread.set_scene, "another scene")
    set_obstacles = _alone(PhysicsThread.set_obstacles, "a change of the obstacles")
    hold = _alone(PhysicsThread.hold, "loading of a world")
    release = _alone(PhysicsThread.release, "loading of a world")

    def step(self, n_ticks: int, progress: Progress | None = None) -> Steps:
        """See `PhysicsThread`; all simulators step."""
        number = next(self._numbers)
        steps = Steps(n_ticks, progress, lambda _: self.agree("drop_steps", number))
        self._shared.own_steps[number] = steps
        self.agree("step", number, n_ticks).add_done_callback(partial(_fail_with, steps))
        return steps

    def checkpoint(self) -> Future[Checkpoint]:
        """See `PhysicsThread`; it has the commands of all simulators."""
        number, future = next(self._numbers), Future[Checkpoint]()
        self._shared.checkpoints[number] = future
        self.agree("checkpoint", number).add_done_callback(partial(_fail_with, future))
        return future

    def edit_state(
        self, plan: Callable[[], StateEdit], *, reset: bool = False, to_keyframe: bool = False
    ) -> Future[Snapshot]:
        """See `PhysicsThread`; the plan is called here, and the others get its result.

        The reset is done when a keyframe follows, so the mirror's callback is told nothing of it.
        """
        del to_keyframe
        result: Future[Snapshot] = Future()

        def changed(edit: StateEdit, before: Snapshot) -> None:
            self._pass_on(result, "set_drone_states", _changes(before, edit(before)))

        def planned(_: Future[Any]) -> None:
            # In the physics thread, so the next requests are carried out at the same tick.
            edit = plan()
            if not reset:
                changed(edit, self.snapshot)
                return
            again = self._shared.ask("reset", ResetScope.state)
            again.add_done_callback(_or_fail(result, lambda _: changed(edit, self.snapshot)))

        def begin() -> None:
            self._shared.ask("nothing").add_done_callback(_or_fail(result, planned))

        self._loop.ask(begin).add_done_callback(partial(_fail_with, result))
        return result

    def _pass_on(self, result: Future[Any], name: str, *arguments: Any) -> None:
        asked = self._shared.ask(name, *arguments)
        asked.add_done_callback(_or_fail(result, lambda done: result.set_result(done.result())))

    # What concerns own drones alone.

    def apply_wrench(self, name: str, wrench: TimedWrench, key: Hashable = None) -> Future[None]:
        """See `PhysicsThread`; it begins with the next round.

        Raises:
            ValueError: There is no such drone, or another simulator owns it.
        """
        self._simulation.known([name])
        self._check_own(name)
        return super().apply_wrench(name, wrench, key)

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """See `PhysicsThread`; those of other drones must be zero.

        Raises:
            ValueError: There is a force on a drone that another simulator owns.
        """
        for load in controls.loads:
            self._check_own(load.drone)
        own = [row for row, name in enumerate(names) if not self._master(name)]
        kept = Controls(controls.rotor_speed[own], controls.loads)
        super().apply_controls([names[row] for row in own], kept)

    def _master(self, name: str) -> str:
        owner = self._rounds.owners.get(name, "")
        if owner == self.hosts.name or (not owner and name in self.hosts.drones):
            return ""
        return f"the simulator {owner}" if owner else "another simulator"

    def _check_own(self, name: str) -> None:
        if master := self._master(name):
            raise ValueError(f"{name} obeys {master} alone")

    def _take_rotors(self) -> None:
        """They wait for the next round."""

    def _withdraw(self, name: str, why: str) -> None:
        self._shared.ask("withdraw", name, why)

    # From threads of the transport.

    def _noticed(self, name: str, life: str, here: bool) -> None:
        self._loop.ask(lambda: self._members.noticed(name, life, here=here))

    def _heard(self, name: str, life: str, message: bytes) -> None:
        with self._lock:
            self._unread[name] += 1
            if self._unread[name] > _MOST_UNREAD or len(self._unread) > 2 * _MOST_UNREAD:
                self._unread[name] -= 1
                self._health.warn(f"the simulator {name} sends too many messages: ignored")
                return

        def read() -> None:
            with self._lock:
                self._unread[name] -= 1
            self._rounds.heard(name, life, message)

        self._loop.ask(read)


def _changes(before: Snapshot, after: MirrorState) -> dict[str, DroneState]:
    """Return the fields that differ, of the drones where any does."""
    changes = {}
    for row, name in enumerate(before.names):
        pairs = {key: (getattr(before, key)[row], getattr(after, key)[row]) for key in SIZES}
        new = {key: y for key, (x, y) in pairs.items() if not np.array_equal(x, y)}
        if new:
            changes[name] = DroneState(**new)
    return changes


def _fail_with(future: Future[Any], other: Future[Any]) -> None:
    """Fail as another future did."""
    if other.cancelled():
        future.cancel()
    elif (error := other.exception()) and not future.done():
        future.set_exception(error)


def _or_fail(
    result: Future[Any], then: Callable[[Future[Any]], object]
) -> Callable[[Future[Any]], None]:
    """Return a callback that goes on after a success, and fails `result` otherwise."""

    def goes_on(done: Future[Any]) -> None:
        _fail_with(result, done)
        if result.done():
            return
        try:
            then(done)
        except Exception as error:
            result.set_exception(error)

    return goes_on

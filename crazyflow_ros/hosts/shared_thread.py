"""The physics thread of a simulator that shares its time with others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import count
from typing import Any, cast

import numpy as np

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.hosts.calls import call
from crazyflow_ros.hosts.members import Members, Owners, configuration
from crazyflow_ros.hosts.rounds import Rounds
from crazyflow_ros.hosts.settings import Hosts
from crazyflow_ros.hosts.shared_requests import AGREED, SharedRequests
from crazyflow_ros.hosts.transport import Transport, ZenohTransport
from crazyflow_ros.runtime import (
    Checkpoint,
    InvalidState,
    PhysicsThread,
    ResetEvent,
    ResetScope,
    Steps,
)
from crazyflow_ros.runtime.mirror_inputs import MirrorInputs
from crazyflow_ros.runtime.state_changes import StateChanges, StateEdit
from crazyflow_ros.runtime.steps import Progress
from crazyflow_ros.runtime.wrenches import TimedWrench
from crazyflow_ros.scene import Controls, MirrorState

_MOST_UNREAD = 100  # messages of one simulator; it cannot be further ahead than a few
_IMPOSSIBLE = "{} is not possible with several hosts"
_ALONE = {
    "": {"hold": "loading of a world", "release": "loading of a world"},
    "world": {
        "set_scene": "another scene",
        "set_obstacles": "a change of the obstacles",
        "attach": "what a drone holds",
        "detach": "what a drone holds",
    },
}
"""Methods whose arguments cannot be sent, by part as `AGREED`, and what they would be."""


class OwnInputs(MirrorInputs):
    """The `MirrorInputs` of a simulator that shares its time: they wait for the next round.

    Args:
        physics: The physics thread.
        state: Changes the state in all simulators.
    """

    def __init__(self, physics: PhysicsThread, state: StateChanges) -> None:
        super().__init__(physics.simulation, state, physics.loop.requests)
        self._physics = physics
        physics.news.on_reset(self._forget)

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """See `MirrorInputs`; those of drones of other simulators must be zero.

        Raises:
            ValueError: There is a force on a drone that another simulator owns.
        """
        self._physics.check_own(load.drone for load in controls.loads)
        own = [row for row, name in enumerate(names) if name not in self._physics.masters]
        kept = Controls(controls.rotor_speed[own], controls.loads)
        self.post([names[row] for row in own], kept)

    def _forget(self, event: ResetEvent) -> None:
        """Drop rotor speeds that were meant for the flight so far."""
        with self._lock:
            self._rotors = {k: x for k, x in self._rotors.items() if k not in event.drones}


class SharedPart:
    """A physics thread, or a part of it, some of whose methods are replaced.

    Args:
        part: The physics thread or part.
        instead: What replaces methods, by name.
    """

    def __init__(self, part: object, instead: Mapping[str, Callable[..., Any]]) -> None:
        self._part, self._instead = part, instead

    def __getattr__(self, name: str) -> Any:
        return self._instead[name] if name in self._instead else getattr(self._part, name)


class SharedThread(SharedPart):
    """A physics thread that shares world and time with those of other simulators.

    It has everything that a `PhysicsThread` has, and commands the drones that it owns. All
    simulators carry out what changes the state or lets time run; impossible values are refused
    through the future.

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
        transport = transport or ZenohTransport(hosts)
        try:
            self._physics = physics = PhysicsThread(config, names, logger=logger)
        except BaseException:
            transport.close()
            raise
        super().__init__(physics, self._instead_in(""))
        self.world = SharedPart(physics.world, self._instead_in("world"))
        self.firmware = SharedPart(physics.firmware, self._instead_in("firmware"))
        self.robots = SharedPart(physics.robots, self._instead_in("robots"))
        special: dict[str, Any] = {"checkpoint": self._checkpoint, "edit_state": self._edit_state}
        self.state = SharedPart(physics.state, self._instead_in("state") | special)
        self._members = Members(
            hosts, tuple(names), configuration(config, names), transport, physics.health.warn
        )
        owners = Owners(self._members, hosts.drones, physics)
        self._requests = SharedRequests(physics, self._members, owners)
        inputs = OwnInputs(physics, cast(StateChanges, self.state))
        physics.mirror.requests = inputs
        self._rounds = Rounds(physics, self._requests, transport, before=inputs.take)
        physics.loop.driver = self._rounds
        self._numbers = count()
        self._unread: Counter[str] = Counter()
        self._lock = threading.Lock()  # guards `_unread`
        transport.open(self._noticed, self._heard)

    def owns(self, name: str) -> bool:
        """Whether users of this simulator command a drone."""
        return name not in self._physics.masters

    def agree(self, name: str, *arguments: Any, **by_name: Any) -> Future[Any]:
        """Let all simulators carry out a request by its name."""
        future: Future[Any] = Future()
        try:
            request = call(name, arguments, by_name)
        except ValueError as error:
            future.set_exception(error)
            return future
        self._ask(future, partial(self._requests.put, request, future))
        return future

    def step(self, n_ticks: int, progress: Progress | None = None) -> Steps:
        """See `PhysicsThread`; all simulators step."""
        number = next(self._numbers)
        steps = Steps(n_ticks, progress, lambda _: self.agree("drop_steps", number))
        self._requests.own_steps[number] = steps
        self.agree("step", number, n_ticks).add_done_callback(partial(_fail_with, steps))
        return steps

    def apply_wrench(self, name: str, wrench: TimedWrench, key: Hashable = None) -> Future[None]:
        """See `PhysicsThread`; it begins with the next round.

        Raises:
            ValueError: There is no such drone, or another simulator owns it.
            InvalidState: It is a body, which no simulator owns.
        """
        bodies = self._physics.simulation.engine.bodies
        if bodies is not None and bodies.has(name):
            raise InvalidState(_IMPOSSIBLE.format("a force on a body"))
        self._physics.simulation.known([name])
        self._physics.check_own([name])
        return self._physics.apply_wrench(name, wrench, key)

    def _instead_in(self, part: str) -> dict[str, Callable[..., Future[Any]]]:
        """Return the replacements for methods of a part: requests to all, and refusals."""
        shared = {name: partial(self.agree, name) for name in AGREED.get(part, ())}
        return shared | {name: _refusal(what) for name, what in _ALONE.get(part, {}).items()}

    def _checkpoint(self) -> Future[Checkpoint]:
        """See `StateChanges`; it has the commands of all simulators."""
        number, future = next(self._numbers), Future[Checkpoint]()
        self._requests.checkpoints[number] = future
        self.agree("checkpoint", number).add_done_callback(partial(_fail_with, future))
        return future

    def _edit_state(
        self, plan: Callable[[], StateEdit], *, reset: bool = False, to_keyframe: bool = False
    ) -> Future[Snapshot]:
        """See `StateChanges`; the plan is called here, and the others get its result.

        The reset is done when a keyframe follows, so the mirror's callback is told nothing of it.
        """
        del to_keyframe
        result: Future[Snapshot] = Future()
        ask = self._requests.ask

        def change(edit: StateEdit) -> None:
            before = self._physics.snapshot
            changed = ask("set_drone_states", _changes(before, edit(before)))
            changed.add_done_callback(_or_fail(result, lambda x: result.set_result(x.result())))

        def planned(_: Future[Any]) -> None:
            # In the physics thread, so the next requests are carried out at the same tick.
            edit = plan()
            if reset:
                again = ask("reset", ResetScope.state)
                again.add_done_callback(_or_fail(result, lambda _: change(edit)))
            else:
                change(edit)

        self._ask(result, lambda: ask("nothing").add_done_callback(_or_fail(result, planned)))
        return result

    def _ask(self, future: Future[Any], action: Callable[[], object]) -> None:
        """Carry out `action` in the physics thread, which completes the future."""
        asked = self._physics.loop.requests.ask(action)
        asked.add_done_callback(partial(_fail_with, future))

    # From threads of the transport.

    def _noticed(self, name: str, life: str, here: bool) -> None:
        self._physics.loop.requests.ask(lambda: self._members.noticed(name, life, here=here))

    def _heard(self, name: str, life: str, message: bytes) -> None:
        with self._lock:
            self._unread[name] += 1
            if self._unread[name] > _MOST_UNREAD or len(self._unread) > 2 * _MOST_UNREAD:
                self._unread[name] -= 1
                warning = f"the simulator {name} sends too many messages: ignored"
                self._physics.health.warn(warning)
                return

        def read() -> None:
            with self._lock:
                self._unread[name] -= 1
            self._rounds.heard(name, life, message)

        self._physics.loop.requests.ask(read)


def _refusal(what: str) -> Callable[..., Future[Any]]:
    """Return a method that refuses what other simulators could not be sent."""

    def refuse(*_arguments: object, **_by_name: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(InvalidState(_IMPOSSIBLE.format(what)))
        return future

    return refuse


def _changes(before: Snapshot, after: MirrorState) -> dict[str, DroneState]:
    """Return the fields that differ, of the drones where any does.

    Raises:
        InvalidState: The state of other bodies differs.
    """
    old, new_bodies = before.bodies, after.bodies
    if old and new_bodies and not np.array_equal(old.state, new_bodies.state):
        raise InvalidState(_IMPOSSIBLE.format("a keyframe of bodies"))
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

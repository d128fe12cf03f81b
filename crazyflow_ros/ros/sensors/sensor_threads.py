"""<drone>/<sensor>: the sensors in the file of the parameter `sensors`, in separate threads.

While a topic has subscribers, the physics thread queues its snapshots. Cameras with the same rate
share a thread, and all other sensors share another one.

No readings are skipped, except pictures while time runs freely. If sensing is too slow, the physics
waits for it, and time passes more slowly. It waits for cameras in steps only; otherwise, they draw
the latest snapshot. While time stands still, a new subscriber of a camera gets the present picture.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import mujoco

from crazyflow_ros.checks.plain_values import ParameterError
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.ros.sensors.device_topics import DeviceTopics, Scene
from crazyflow_ros.ros.sensors.devices import SensorFile
from crazyflow_ros.runtime import Life, Snapshot
from crazyflow_ros.scene import RenderingUnavailable
from crazyflow_ros.sensors.rendering import Room
from crazyflow_ros.xla.start_up import telling

if TYPE_CHECKING:
    from crazyflow_ros.ros.host import Host

_BACKLOG = 64  # snapshots in the queue; if it is full, the physics waits
_PICTURES = 256  # snapshots in that of cameras, whose first picture may take long to prepare
_PATIENCE = 5.0  # s of wall time for which the physics waits, less than callers of steps do
_LAST_READINGS = 0.5  # s of wall time for all sensors at the end


class _View(NamedTuple):
    """A snapshot at which sensors are due."""

    rate: int
    """Rate of these sensors [Hz]."""
    snapshot: Snapshot
    model: mujoco.MjModel
    lives: Mapping[str, Life]
    is_needed: bool
    """Whether it must not be left out in favour of a later one."""


class SensorThread:
    """Senses and publishes.

    Args:
        simulator: The node.
        name: Name of the thread.
        is_awaited: Whether the physics always waits for it; otherwise it does so in steps only, and
            else senses only the latest snapshot.
    """

    def __init__(self, simulator: Host, name: str, *, is_awaited: bool) -> None:
        self._physics, self._logger = simulator.physics, simulator.log
        self._begun: Mapping[str, Life] | None = None
        self._is_awaited, self._is_stuck = is_awaited, False
        self._topics: dict[int, list[DeviceTopics]] = {}
        self._failed: set[DeviceTopics] = set()  # in this scene, also those below
        self._ready: set[DeviceTopics] = set()  # that have sensed: nothing is compiled any more
        self._wanted: frozenset[int] = frozenset()  # rates of topics with subscribers
        self._unseen: set[int] = set()  # rates of those with a new one, until a snapshot is queued
        self._scene: Scene | None = None
        self._room = Room()
        self._views: deque[_View] = deque(maxlen=_BACKLOG if is_awaited else _PICTURES)
        self._left_out = self._passed_over = 0  # by the physics, and here
        self._told = self._excused = 0
        self._due, self._taken = threading.Event(), threading.Event()
        self._ending = self._is_over = False
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        self._thread.start()

    def add(self, topics: DeviceTopics, rate: int) -> None:
        """Add topics at a rate [Hz], before the physics starts."""
        if rate not in self._topics:
            physics = self._physics
            period = ticks_per_period(physics.freq, rate, f"sensors: the rate {rate}")
            physics.every(rate, partial(self._take, rate, period), "sensors", observes=True)
        self._topics.setdefault(rate, []).append(topics)

    def end(self, timeout: float) -> None:
        """Sense at the snapshots in the queue, then end, once the physics has ended.

        What takes longer than the timeout [s] is left out.
        """
        self._ending = True
        self._due.set()
        self._thread.join(timeout)
        self._is_over = True
        self._views.clear()

    def look(self, drones: tuple[str, ...], new: set[str]) -> None:
        """Update which topics have subscribers. Called in the executor's thread.

        Args:
            drones: The drones that have topics of their own.
            new: Topics that got a new subscription.
        """
        for topics in chain(*self._topics.values()):
            topics.look(drones)
        self._wanted = frozenset(
            rate for rate, kept in self._topics.items() if any(topics.listeners for topics in kept)
        )
        if self._is_awaited:
            return
        self._unseen |= {
            rate
            for rate in self._wanted
            if any(not new.isdisjoint(topics.names(drones)) for topics in self._topics[rate])
        }
        if self._physics.paused and self._unseen:
            rates, self._unseen = self._unseen, set()
            self._physics.show_to(partial(self._show, rates))

    def _show(self, rates: Iterable[int], snapshot: Snapshot) -> None:
        """Queue the snapshot of a pause. Called in the physics thread."""
        for rate in rates:
            if not (self._physics.loop.stepping and snapshot.tick % (self._physics.freq // rate)):
                self._views.append(self._view(rate, snapshot))
                self._due.set()

    def _view(self, rate: int, snapshot: Snapshot) -> _View:
        needed, physics = self._is_awaited or self._physics.loop.stepping, self._physics
        return _View(rate, snapshot, physics.mirror.model, physics.lives.current, needed)

    def _take(self, rate: int, period: int, snapshot: Snapshot) -> None:
        """Queue a snapshot. Called in the physics thread."""
        # Also called between two periods, after a step and after manual changes.
        if rate in self._wanted and snapshot.tick % period == 0:
            view = self._view(rate, snapshot)
            is_full = len(self._views) == self._views.maxlen
            if is_full and not (view.is_needed and self._await_room()):
                self._left_out += 1
            self._views.append(view)
            self._unseen.discard(rate)
            self._due.set()

    def _await_room(self) -> bool:
        if self._is_stuck:
            return False
        self._taken.clear()
        has_room = len(self._views) != self._views.maxlen or self._taken.wait(_PATIENCE)
        self._is_stuck = not has_room  # then the physics does not wait again
        return has_room

    def _main(self) -> None:
        while self._views or not self._ending:
            self._due.wait()
            self._due.clear()
            while self._views:
                row = self._take_row()
                if self._scene is None or self._scene.mirrored is not row[0].model:
                    self._ready.clear()
                due = {topics for view in row for topics in self._topics[view.rate]}
                heard = {topics for topics in due - self._failed if topics.listeners}
                is_new, self._ready = not heard <= self._ready, self._ready | heard
                preparing = telling("preparing sensors", self._logger.info) if is_new else None
                try:
                    with preparing or nullcontext():
                        self._sense(row)
                except Exception as error:  # the simulation continues
                    self._complain(f"sensors: {error!r}")
                self._pass_over()
                if self._left_out + self._passed_over > self._told:
                    self._tell_left_out(is_new=is_new)

    def _tell_left_out(self, *, is_new: bool) -> None:
        left_out = self._left_out + self._passed_over
        lately, self._told = left_out - self._told, left_out
        if is_new:
            self._excused += lately
            self._logger.info(f"sensors: {lately} readings were left out while they were prepared")
            return
        self._logger.warning(
            f"sensors: readings were left out {left_out - self._excused} times so far: they "
            "take longer than the period of the sensor"
        )

    def _take_row(self) -> list[_View]:
        """Take all snapshots from the queue up to the next change of scene or reset.

        Of those for cameras, which draw one by one, take only the next.
        """
        self._pass_over()
        waiting = len(self._views)
        row = [first := self._views.popleft()]
        while self._is_awaited and len(row) < waiting:
            view = self._views[0]
            if view.lives is not first.lives or view.model is not first.model:
                break
            if view.snapshot.names != first.snapshot.names:
                break
            row.append(self._views.popleft())
        self._taken.set()
        self._is_stuck = False
        return row

    def _pass_over(self) -> None:
        """Leave out what need not be sensed, if there is something later."""
        while len(self._views) > 1 and not self._views[0].is_needed:
            self._views.popleft()
            self._passed_over += 1

    def _sense(self, row: list[_View]) -> None:
        first, names, scene = row[0], row[0].snapshot.names, self._scene
        if is_other := scene is None or scene.mirrored is not first.model or scene.names != names:
            if self._scene is not None:
                self._scene.context.close()
            self._scene = scene = Scene(first.model, names, self._room)
            self._failed.clear()
        assert scene is not None
        if is_other or self._begun is not first.lives:
            self._begun = first.lives
            for topics in chain(*self._topics.values()):
                if is_other:
                    self._let(topics, topics.initialize, scene)
                self._let(topics, topics.reset, first.lives)
        for rate, kept in self._topics.items():
            due = [view.snapshot for view in row if view.rate == rate]
            for topics in kept:
                if due and topics.listeners and not topics.needs_scene:
                    self._let(topics, topics.sense, due, scene)
        for view in row:
            for topics in self._topics[view.rate]:
                if topics.listeners and topics.needs_scene:
                    scene.show(view.snapshot)
                    self._let(topics, topics.sense, [view.snapshot], scene)

    def _let(self, topics: DeviceTopics, do: Callable[..., None], *args: Any) -> None:
        """Call a method of topics; those that fail are left out until the scene changes."""
        if topics in self._failed:
            return
        try:
            do(*args)
        except RenderingUnavailable as error:
            self._failed.add(topics)
            self._logger.warning(f"sensors: no pictures of {topics}: {error}")
        except Exception as error:
            self._failed.add(topics)
            self._complain(f"sensors: {topics} left out: {error!r}")

    def _complain(self, text: str) -> None:
        if not self._is_over:  # else the publishers are being destroyed
            self._logger.error(text)


def declare(simulator: Host, file: SensorFile) -> None:
    """Add the topics of the sensors in the file of the parameter `sensors`."""
    threads: dict[int, SensorThread] = {}
    taken = {publisher.topic_name for publisher in simulator.node.publishers}
    for device in file.devices:
        needed = device.kind.parameter
        if needed and not getattr(simulator.parameters, needed):
            raise ParameterError(needed, f"the sensor {device.name} needs true, got False")
        topics: DeviceTopics = device.kind.topics(simulator, file, device)
        for topic in topics.names(simulator.drones):
            if simulator.resolve_topic_name(topic) in taken:
                raise ParameterError("sensors", f"there is a topic {topic!r} already")
        # One thread for all awaited sensors: they run in Python, which more threads only slow down.
        key = 0 if topics.is_awaited else device.rate
        if key not in threads:
            name = f"sensors {key}" if key else "sensors"
            threads[key] = SensorThread(simulator, name, is_awaited=topics.is_awaited)
        threads[key].add(topics, topics.rate)
        simulator.for_each_drone(topics.add)

    def look() -> None:
        for thread in threads.values():
            thread.look(simulator.interfaces.drones, simulator.listeners.newly_heard)

    if threads:
        simulator.listeners.follow(look)
        simulator.on_destroy(lambda: _end(threads.values()))


def _end(threads: Iterable[SensorThread]) -> None:
    deadline = time.monotonic() + _LAST_READINGS
    for thread in threads:
        thread.end(max(0.0, deadline - time.monotonic()))

"""Changes of the roster that take long to prepare, in a worker, while the simulation flies on.

The physics thread tries a change. If it is not ready, the worker prepares it, and the physics
thread tries again; a preparation that has become outdated is repeated. Changes are prepared one
after the other, each for the state that the previous one has left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.requests import InvalidState, Requests
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.roster_plan import PreparedRoster, RosterPlan
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.worker import Worker


@dataclass(eq=False)
class _Change:
    """A change under way."""

    wanted: Callable[[], RosterPlan]
    then: Callable[[PreparedRoster], object]
    future: Future[Snapshot] = field(default_factory=Future)
    prepared: PreparedRoster | None = None
    """The wanted roster, perhaps for another state than the present one."""


class Preparation:
    """Prepares changes of a roster, and lets the physics thread carry them out.

    Args:
        roster: The roster.
        simulation: The simulation that changes with it.
        requests: The queue of requests.
    """

    def __init__(self, roster: Roster, simulation: Simulation, requests: Requests) -> None:
        self._roster, self._simulation, self._requests = roster, simulation, requests
        self._worker = Worker("preparation")
        self._lock = threading.Lock()  # guards the two below
        self._open: set[Future[Snapshot]] = set()
        self._closed = ""

    def put(
        self, wanted: Callable[[], RosterPlan], then: Callable[[PreparedRoster], object]
    ) -> Future[Snapshot]:
        """Make a change. From any thread.

        Args:
            wanted: Returns the wanted roster, given the present one. May refuse; any thread.
            then: Changes to the prepared roster, quickly. May refuse; physics thread.

        Returns:
            A future of the state after it; cancelling it before the change is carried out drops the
            change.
        """
        change = _Change(wanted, then)
        with self._lock:
            if self._closed:
                change.future.set_exception(InvalidState(self._closed))
                return change.future
            self._open.add(change.future)

        def prepare_if_need_be(tried: Future[bool]) -> None:
            if error := tried.exception():
                self._fail(change.future, error)
            elif not tried.result():
                self._worker.ask(lambda: self._prepare(change))

        tried = self._requests.ask(lambda: self._try(change, at_once=True))
        tried.add_done_callback(prepare_if_need_be)
        return change.future

    @property
    def under_way(self) -> bool:
        """Whether changes are not made yet. From any thread."""
        with self._lock:
            return bool(self._open)

    def close(self, reason: str) -> None:
        """Refuse open changes, and all later ones."""
        with self._lock:
            self._closed, refused = reason, tuple(self._open)
        for future in refused:
            self._fail(future, InvalidState(reason))

    def _prepare(self, change: _Change) -> None:
        """Prepare a change until it is carried out or refused. In the worker."""
        try:
            while not change.future.done():
                change.prepared = self._roster.prepare(change.wanted(), change.prepared)
                if self._requests.ask(lambda: self._try(change)).result():
                    break
        except Exception as error:
            self._fail(change.future, error)
        finally:
            # Here, because it may take long to free them.
            change.prepared = None
            self._roster.retired.clear()
            with self._lock:
                self._open.discard(change.future)  # if it was cancelled before its turn

    def _try(self, change: _Change, *, at_once: bool = False) -> bool:
        """Carry out a change if it is ready; return False if it has to be prepared. Physics thread.

        Args:
            change: The change.
            at_once: The change may overtake others. If it is refused now, it may be possible after
                them, so it is tried again.
        """
        future = change.future
        try:
            if future.cancelled():
                return not self._take(future)
            if (ready := self._ready(change)) is None:
                return False
            if self._take(future):
                change.then(ready)
                future.set_result(self._simulation.snapshot)
        except (InvalidState, ValueError) as refusal:
            if at_once and not future.running() and len(self._open) > 1:
                return False
            self._fail(future, refusal)
        except Exception as error:
            self._fail(future, error)
            raise
        return True

    def _ready(self, change: _Change) -> PreparedRoster | None:
        """Return the roster wanted now, if it is prepared or can be at once."""
        plan = change.wanted()
        if change.prepared is not None and change.prepared.plan.is_like(plan):
            return change.prepared
        if at_once := self._roster.at_once(plan):
            change.prepared = at_once
        return at_once

    def _take(self, future: Future[Snapshot]) -> bool:
        """Whether the caller is the one to complete a future."""
        with self._lock:
            mine = future in self._open
            self._open.discard(future)
        return mine and future.set_running_or_notify_cancel()

    def _fail(self, future: Future[Snapshot], error: BaseException) -> None:
        if self._take(future) or future.running():
            future.set_exception(error)

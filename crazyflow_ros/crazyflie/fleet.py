"""The Crazyflies of a simulation, each with its firmware, shared by all servers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from crazyflow_ros.checks.throttled_logger import Logger, ThrottledLogger
from crazyflow_ros.control import Controller
from crazyflow_ros.crazyflie.app import load_app
from crazyflow_ros.crazyflie.crazyflie import Crazyflie
from crazyflow_ros.crazyflie.overseer import Overseer
from crazyflow_ros.crazyflie.pilot import Pilot
from crazyflow_ros.crazyflie.storage import Storage
from crazyflow_ros.crazyflie.supervisor_states import RATE
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.runtime import Checkpoint, PhysicsThread, ResetEvent, ResetScope, Snapshot

_CONTROLLER = "stabilizer.controller"

Changed = Callable[[str, str, bool], None]
"""Takes a drone, the name of a changed parameter, and whether someone set it (False if it follows
from something else). From any thread."""
Report = Callable[[str, str], None]
"""Takes a drone and a text."""


class Fleet:
    """The Crazyflies of a simulation by name, without those of removed drones. Thread-safe.

    Args:
        physics: The simulation.
        model: Drone model.
        decks: Names of the decks of each drone, see `estimation.decks.DECKS`.
        logger: Logs refusals.
        storage: Keeps stored parameters across restarts.
        app: Name of the app of each drone, see `app.load_app`.

    Attributes:
        on_change: Called after a parameter has changed.
        on_report: Called with each refusal, even those that the log omits. From any thread.
        on_console: Called with each line that the firmware's supervisor writes to the console.
        rate: How often it looks at the drones, in Hz.

    Raises:
        ValueError: The app cannot be used.
    """

    rate = RATE

    def __init__(
        self,
        physics: PhysicsThread,
        model: str,
        decks: Sequence[str],
        logger: Logger,
        storage: Storage,
        app: str = "",
    ) -> None:
        self._storage, self._app = storage, load_app(app)
        self._physics, self._model, self._decks = physics, model, decks
        self._logger = ThrottledLogger.of(logger)
        self._lock = threading.Lock()  # guards the Crazyflies
        self._crazyflies: dict[str, Crazyflie] = {}
        self.on_change: list[Changed] = []
        self.on_report: list[Report] = []
        self.on_console: list[Report] = []
        self._overseers: dict[str, Overseer] | None = None  # None: the commander is gentle
        if physics.config.setpoint_modes:
            self._overseers = {}
            physics.loop.change(lambda: physics.simulation.hand_over(self))
        physics.news.on_change(self._forget)
        physics.news.on_reset(self._restart)
        physics.news.on_restore(self._take_gains)

    def get(self, name: str, number: int) -> Crazyflie:
        """Return the Crazyflie of a drone.

        Args:
            name: Name of the drone.
            number: Last byte of its radio address, used in the first call for this drone.

        Raises:
            ValueError: There is no such drone.
        """
        with self._lock:
            found = self._crazyflies.get(name)
        if found is None:
            if name not in self._physics.snapshot.names:
                raise ValueError(f"there is no drone {name!r}")
            new = self._switched_on(name, number)  # takes too long to hold the lock
            with self._lock:
                found = self._crazyflies.setdefault(name, new)
        return found

    def _switched_on(self, name: str, number: int) -> Crazyflie:
        crazyflie = Crazyflie(
            number,
            self._model,
            self._decks,
            Controller(self._physics.config.controller),
            Pilot(self._physics, name, partial(self._set_controller, name)),
            partial(self.report, name),
            partial(self._changed, name),
            partial(self._storage.save, name),
            self._overseer(name),
            self._app,
        )
        try:
            crazyflie.parameters.restore(self._storage.load(name))
        except ValueError as error:
            self.report(name, str(error))
        return crazyflie

    def _overseer(self, name: str) -> Overseer | None:
        """Return the firmware's supervisor of a drone; None if the commander is gentle."""
        overseers = self._overseers
        if overseers is None:
            return None
        with self._lock:
            if (found := overseers.get(name)) is None:
                say = partial(self._say, name)
                found = overseers[name] = Overseer(self._physics, name, say)
        return found

    def check(self, now: Snapshot) -> None:
        """See `Overseers`."""
        for row, name in enumerate(now.names):
            if name in self._physics.masters:
                continue
            overseer = self._overseer(name)
            assert overseer is not None
            overseer.check(now, row)

    def note(self, name: str, setpoint: Setpoint) -> None:
        """See `Overseers`."""
        overseer = self._overseer(name)
        assert overseer is not None
        overseer.note(setpoint)

    def _say(self, name: str, text: str) -> None:
        self._logger.info(f"{name}: {text}")
        for show in self.on_console:
            show(name, text)

    def _forget(self, snapshot: Snapshot) -> None:
        with self._lock:
            if self._overseers is not None:
                for name in self._overseers.keys() - set(snapshot.names):
                    del self._overseers[name]
            for name in self._crazyflies.keys() - set(snapshot.names):
                del self._crazyflies[name]

    def _restart(self, event: ResetEvent) -> None:
        """Let the firmware of drones that were reset begin anew."""
        if ResetScope.state not in event.scope:
            return
        with self._lock:
            overseers = self._overseers or {}
            for overseer in filter(None, map(overseers.get, event.drones)):
                overseer.boot()
            found = [self._crazyflies.get(name) for name in event.drones]
        for crazyflie in filter(None, found):
            crazyflie.restarted()

    def _take_gains(self, checkpoint: Checkpoint) -> None:
        """Update the parameters with the gains of a restored checkpoint."""
        tuned = checkpoint.about.get("gains", {})
        with self._lock:
            crazyflies = dict(self._crazyflies)
            for overseer in (self._overseers or {}).values():
                overseer.resume()
        for name, crazyflie in crazyflies.items():
            crazyflie.take_gains(tuned.get(name, {}))

    def report(self, name: str, text: str) -> None:
        """Report a refusal."""
        self._logger.warning(text if text.startswith(f"{name}: ") else f"{name}: {text}")
        for show in self.on_report:
            show(name, text)

    def _changed(self, name: str, parameter: str, was_set: bool) -> None:
        for tell in self.on_change:
            tell(name, parameter, was_set)

    def _set_controller(self, name: str, controller: Controller) -> None:
        """Switch all drones to a controller."""

        def finish(future: Future[Snapshot]) -> None:
            error = future.exception()
            text = f"all drones fly with the controller {controller} now"
            self.report(name, text if error is None else str(error))

        self._physics.world.set_controller(controller).add_done_callback(finish)
        with self._lock:
            others = {k: v for k, v in self._crazyflies.items() if k != name}
        for crazyflie in others.values():
            crazyflie.parameters.note(_CONTROLLER, controller.number)

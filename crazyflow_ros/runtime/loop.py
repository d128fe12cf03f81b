"""The loop of the physics thread: ticks in step with wall time, and requests between them."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightState
from crazyflow_ros.runtime.changes import (
    Changes,
    DisturbanceCallback,
    ResetCallback,
    RestoreCallback,
)
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.drone_commands import CommandCallback, EventCallback
from crazyflow_ros.runtime.events import SnapshotCallback
from crazyflow_ros.runtime.health import Health, Logger
from crazyflow_ros.runtime.lives import Life
from crazyflow_ros.runtime.pacing import Pacer
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState, Requests
from crazyflow_ros.runtime.roster import Assembly
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.steps import StepQueue, Steps
from crazyflow_ros.runtime.wrenches import WrenchCallback
from crazyflow_ros.scene import Mirror

T = TypeVar("T")

_IDLE_CHECK = 0.5  # s, how often a waiting thread looks around without having been woken


class Loop:
    """Runs the simulation in a thread of its own.

    Between two due events all ticks are one compiled call. Callbacks run in the thread, must be
    added before the start and must not wait for a request.

    Attributes:
        paused: Time stands still.
        failed: What ended the thread, if it ended by itself.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        source: CommandSource | None = None,
        logger: Logger | None = None,
    ) -> None:
        """Build and compile the simulation; nothing runs yet.

        Args:
            config: What is simulated.
            names: Of the drones.
            source: Brings the commands, instead of `command`.
            logger: Is told what goes wrong; by default Python's.

        Raises:
            ValueError: The configuration or a name is not usable; the message says which.
        """
        self.config, self.freq = config, config.freq
        self._pacer = Pacer(config.freq, check_real_time_factor(config.real_time_factor))
        self._source = source
        logger = logging.getLogger("crazyflow_ros") if logger is None else logger
        self._health = health = Health(logger, config.watchdog_timeout)
        n_slots = 0 if source else config.max_drones
        engine = Engine(config, names, n_slots=n_slots, levels=source is not None)
        assembly = Assembly(config, names, engine, health)
        self._simulation = Simulation(config, engine, assembly.mirror, source, health)
        self._changes = Changes(config, self._simulation, engine, assembly, source, health)
        self.control: Control = self._simulation.control
        self.control_period = self._simulation.control_period
        self.paused = config.start_paused
        self._held = ""  # why time must not run
        self.failed: BaseException | None = None
        self._failure_callbacks: list[Callable[[BaseException], None]] = []
        self._steps = StepQueue()
        self._requests = Requests(health.note_failure)
        self._preparation = Preparation(self._ask)
        self._thread = threading.Thread(target=self._main, name="physics", daemon=True)

    @property
    def mirror(self) -> Mirror:
        """The MuJoCo side, written before each event."""
        return self._simulation.mirror

    @property
    def snapshot(self) -> Snapshot:
        """The latest state."""
        return self._simulation.snapshot

    @property
    def names(self) -> tuple[str, ...]:
        """Of the drones."""
        return self._simulation.snapshot.names

    @property
    def lives(self) -> Mapping[str, Life]:
        """How often each drone was put back, and when; another mapping after each change."""
        return self._simulation.lives.current

    @property
    def obstacles(self) -> Obstacles | None:
        """What the drones collide with, but for the floor z = 0 and one another."""
        return self._simulation.obstacles

    @property
    def epoch(self) -> int:
        """Resets so far."""
        return self._simulation.epoch

    def every(
        self, rate_hz: int, callback: SnapshotCallback, name: str, *, observes: bool = False
    ) -> None:
        """Call `callback` `rate_hz` times per simulated second.

        It is called on exact multiples of the tick, after the mirror has been written, and besides
        at the start, after a step and after a reset.

        Args:
            rate_hz: Simulated.
            callback: Is given the state.
            name: Of the callback, for messages.
            observes: It only looks. What others do may count from the next tick on; what an
                observer does may count some ticks later, where time runs as fast as it can.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        if self._thread.ident is not None:
            raise InvalidState(f"{name} has to be added before the simulation starts")
        self._simulation.events.add(rate_hz, callback, name, observes=observes)

    def on_reset(self, callback: ResetCallback) -> None:
        """Call `callback` after each reset, before anybody sees the state after it."""
        self._changes.reset_callbacks.append(callback)

    def on_change(self, callback: SnapshotCallback) -> None:
        """Call `callback` after each change by hand: at the start, and whatever a request did."""
        self._changes.change_callbacks.append(callback)

    def on_restore(self, callback: RestoreCallback) -> None:
        """Call `callback` before the state, and the time, are those of a checkpoint."""
        self._changes.restore_callbacks.append(callback)

    @property
    def flight_states(self) -> Mapping[str, FlightState]:
        """Of drones that were told something; the others are idle."""
        return self._simulation.orders.states

    def on_flight_event(self, callback: EventCallback) -> None:
        """Call `callback` in the physics thread when a drone falls, hits something or the like."""
        self._simulation.orders.event_callbacks.append(callback)

    def on_command(self, callback: CommandCallback) -> None:
        """Call `callback` when a setpoint takes effect."""
        self._simulation.orders.callbacks.append(callback)

    def on_wrench(self, callback: WrenchCallback) -> None:
        """Call `callback` when what acts on the drones from outside changes."""
        self._simulation.wrenches.callbacks.append(callback)

    def on_disturbance(self, callback: DisturbanceCallback) -> None:
        """Call `callback` when something begins to disturb the drones; `on_change` follows."""
        self._changes.disturbance_callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` when an exception ends the thread."""
        self._failure_callbacks.append(callback)

    def start(self) -> None:
        """Start the thread, once all is compiled."""
        self._simulation.add_supervisor()
        self._health.start()
        self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread. Open requests fail.

        Raises:
            TimeoutError: It did not end in time.
        """
        self._requests.stop()
        self._interrupt_source()
        if self._thread.ident is None:
            self._preparation.close("the simulation has ended")
            if self._source is not None:
                self._source.close()
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the physics thread did not end within {timeout} s")

    def _ask(self, action: Callable[[], T]) -> Future[T]:
        """Have `action` carried out between two ticks; the future has its result."""
        future = self._requests.ask(action)
        self._interrupt_source()
        return future

    def _interrupt_source(self) -> None:
        if self._source is not None:
            self._source.interrupt()

    # In the physics thread.

    def _main(self) -> None:
        try:
            self._changes.show()
            self._anchor()
            if self._source is not None:
                self._source.set_paused(self.paused)
            health = self._health
            while not self._requests.stopping:
                health.doing, health.beats = "a request", health.beats + 1
                self._requests.serve()
                if steps := self._steps.current():
                    self._advance_steps(steps)
                elif self.paused:
                    health.doing = ""
                    self._requests.sleep(_IDLE_CHECK)
                else:
                    self._advance()
        except BaseException as error:
            self.failed = error
            for callback in self._failure_callbacks:
                callback(error)
        finally:
            self._steps.abort("the simulation has ended")
            self._requests.close("the simulation has ended")
            self._preparation.close("the simulation has ended")
            self._health.stop()
            if self._source is not None:
                self._source.close()

    def _advance(self) -> None:
        simulation = self._simulation
        wait = self._pacer.wait(simulation.next_event())
        if wait > 0:
            self._health.doing = ""
            # At a small factor the next event may be hours away, longer than a thread can wait.
            if not self._requests.sleep(min(wait, _IDLE_CHECK)) or wait > _IDLE_CHECK:
                return
        if simulation.collect(self._requests.pending):
            n_ticks = simulation.advance(self._pacer.due())
            self._pacer.done(simulation.snapshot.tick, n_ticks)

    def _advance_steps(self, steps: Steps) -> None:
        if not self._simulation.collect(self._requests.pending):
            return
        n_ticks = self._simulation.advance(math.inf, steps.left)
        steps.ticks_done += n_ticks
        if steps.progress is not None:
            self._health.call("progress of a step", steps.progress, steps.ticks_done)
        self._steps.settle(self.snapshot)

    def _pause(self) -> None:
        self._steps.abort("the simulation was paused")
        self._set_paused(True)
        self._pacer.pause()

    def _resume(self) -> None:
        if self._held:
            raise InvalidState(self._held)
        self._steps.abort("the simulation was resumed")
        self._set_paused(False)
        self._anchor()

    def _hold(self, reason: str) -> None:
        if reason:
            self._steps.abort(reason)
            self._pause()
        self._held = reason

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
        if self._source is not None:
            self._source.set_paused(paused)

    def _enqueue(self, steps: Steps) -> None:
        if self._held:
            steps.set_exception(InvalidState(self._held))
        elif not self.paused:
            steps.set_exception(InvalidState("the simulation is not paused"))
        else:
            self._steps.add(steps)

    def _anchor(self) -> None:
        self._pacer.anchor(self.snapshot.tick)

"""The physics thread: owns the drones' state, advances it and hands out snapshots."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from numpy.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.runtime.events import SnapshotCallback
from crazyflow_ros.runtime.health import Failure, Health, Logger
from crazyflow_ros.runtime.mirror_requests import MirrorRequests
from crazyflow_ros.runtime.orders import CommandCallback
from crazyflow_ros.runtime.pacing import Pacer
from crazyflow_ros.runtime.requests import InvalidState, Requests
from crazyflow_ros.runtime.reset import ResetScope
from crazyflow_ros.runtime.setpoints import Setpoint
from crazyflow_ros.runtime.simulation import ResetCallback, RestoreCallback, SceneEdit, Simulation
from crazyflow_ros.runtime.snapshot import DroneState, Snapshot
from crazyflow_ros.runtime.steps import Progress, StepQueue, Steps
from crazyflow_ros.runtime.wrenches import Wrench, WrenchCallback
from crazyflow_ros.scene import Mirror, MirrorState

T = TypeVar("T")

_IDLE_CHECK = 0.5  # s, how often a waiting thread looks around without having been woken


@dataclass(frozen=True)
class Statistics:
    """How the simulation is doing."""

    requested_factor: float
    achieved_factor: float
    overruns: int
    stalls: int
    tick: int
    epoch: int
    paused: bool
    faults: Mapping[str, str]
    """Drones that are out of service until they are reset, and why."""
    failures: Mapping[str, Failure]
    """Callbacks that have failed."""
    stalled: str
    """What the thread hangs in, or nothing."""


class PhysicsThread:
    """Runs the simulation in a thread of its own.

    Others post commands, queue requests, which the thread carries out between two ticks, and read
    snapshots. Between two due events all ticks are one compiled call. Callbacks run in the thread,
    must be added before the start and must not wait for a request.

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
        self._health = Health(logger, config.watchdog_timeout)
        self._simulation = Simulation(config, names, source, self._health)
        self.mirror.requests = MirrorRequests(self)
        self.control: Control = self._simulation.control
        self.control_period = self._simulation.control_period
        self.paused = config.start_paused
        self._held = ""  # why time must not run
        self.failed: BaseException | None = None
        self._failure_callbacks: list[Callable[[BaseException], None]] = []
        self._steps = StepQueue()
        self._requests = Requests()
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
    def epoch(self) -> int:
        """Resets so far."""
        return self._simulation.epoch

    # Before the start.

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
        """Call `callback` after each reset."""
        self._simulation.reset_callbacks.append(callback)

    def on_change(self, callback: SnapshotCallback) -> None:
        """Call `callback` after each change by hand: at the start, and whatever a request did."""
        self._simulation.change_callbacks.append(callback)

    def on_restore(self, callback: RestoreCallback) -> None:
        """Call `callback` before the state, and the time, are those of a checkpoint."""
        self._simulation.restore_callbacks.append(callback)

    def on_drones_changed(self, callback: SnapshotCallback) -> None:
        """Call `callback` when drones have come or gone, before all others see them."""
        self._simulation.roster_callbacks.append(callback)

    def on_command(self, callback: CommandCallback) -> None:
        """Call `callback` when a setpoint takes effect."""
        self._simulation.orders.callbacks.append(callback)

    def on_wrench(self, callback: WrenchCallback) -> None:
        """Call `callback` when what acts on the drones from outside changes."""
        self._simulation.wrenches.callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` when an exception ends the thread."""
        self._failure_callbacks.append(callback)

    def start(self) -> None:
        """Start the thread."""
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
            if self._source is not None:
                self._source.close()
            return
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the physics thread did not end within {timeout} s")

    # From any thread.

    def command(self, name: str, setpoint: Setpoint) -> None:
        """Tell a drone what to do from the next tick on. The latest setpoint wins.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        self._simulation.known([name])
        if self._source is not None:
            raise ValueError("the drones obey ros2_control alone, see parameter ros2_control.mode")
        setpoint.check(self.control)
        self._simulation.orders.post(name, setpoint)

    def apply_wrench(self, name: str, wrench: Wrench, key: Hashable = None) -> Future[None]:
        """Let an external force and torque act on a drone from the next tick on.

        Args:
            name: Of the drone.
            wrench: What acts.
            key: Of several with the same key the latest acts; None is different from all others.

        Returns:
            Done when it has ended. Fails with `InvalidState` if a reset ends it.

        Raises:
            ValueError: There is no such drone.
        """
        self._simulation.known([name])
        return self._simulation.wrenches.post(name, wrench, object() if key is None else key)

    def end_wrench(self, key: Hashable) -> None:
        """End the wrench of a key, see `apply_wrench`, before the next tick."""
        self._simulation.wrenches.end(key)

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future."""
        return self._request(self._pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self._request(self._resume)

    def step(self, n_ticks: int, progress: Progress | None = None) -> Steps:
        """Advance by exactly `n_ticks`, at full speed. Only while paused.

        Args:
            n_ticks: How many.
            progress: Is told in the physics thread how many are done, after each stretch.

        Returns:
            A future that can be cancelled half-way. It fails with `StepAborted` if time is let run
            or the drones are reset meanwhile.

        Raises:
            ValueError: There is nothing to do.
        """

        def cancel(steps: Steps) -> None:
            self._request(lambda: self._steps.drop(steps))

        steps = Steps(n_ticks, progress, cancel)
        self._requests.put(lambda: self._enqueue(steps), steps)
        self._interrupt_source()
        return steps

    def reset(
        self,
        scope: ResetScope = ResetScope.state,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
    ) -> Future[Snapshot]:
        """Put things back between two ticks; the epoch rises, and steps under way are aborted.

        Args:
            scope: What; without `time`, time goes on.
            drones: Only these, whose state it is then. The others do not notice.
            states: What drones are put into afterwards.

        The future raises ValueError if a drone, or a state, is not one.
        """
        return self._request(lambda: self._reset(scope, drones, states))

    def set_drone_states(self, states: Mapping[str, DroneState]) -> Future[Snapshot]:
        """Put drones into states, all at once.

        The future raises ValueError if a drone, or a state, is not one.
        """
        return self._request(lambda: self._simulation.set_states(states))

    def set_state(self, state: MirrorState) -> Future[Snapshot]:
        """Put all drones into a state."""
        return self._request(lambda: self._simulation.set_state(state))

    def edit_state(
        self, plan: Callable[[], Callable[[Snapshot], MirrorState]], *, reset: bool = False
    ) -> Future[Snapshot]:
        """Put all drones into a state that depends on the present one, or on that after a reset.

        Args:
            plan: Gives what makes of the state between two ticks the one to go on from. Is called
                between the same two, before anything is changed, and may refuse with ValueError.
            reset: Reset before, as `reset` does.
        """

        def carry_out() -> None:
            edit = plan()
            if reset:
                self._reset(ResetScope.state, None, None)
            self._simulation.set_state(edit(self.snapshot))

        return self._request(carry_out)

    def spawn(self, name: str, pose: ArrayLike | None = None) -> Future[Snapshot]:
        """Add a drone between two ticks; the others do not notice.

        Beyond `SimulationConfig.max_drones` time stands still while it is compiled for more.

        Args:
            name: Letters, digits, underscores.
            pose: (7,) position and attitude (xyzw), also after a reset; None: on the floor, where
                there is room.

        The future raises ValueError if the name or the pose is not usable, and InvalidState if the
        drones are commanded from outside.
        """
        return self._request(lambda: self._simulation.spawn(name, pose))

    def despawn(self, name: str) -> Future[Snapshot]:
        """Remove a drone between two ticks.

        The future raises ValueError if there is none, and InvalidState if it is the last one or the
        drones are commanded from outside.
        """
        return self._request(lambda: self._simulation.despawn(name))

    def set_scene(
        self, scene: str | Path | None = None, edit: SceneEdit | None = None
    ) -> Future[Snapshot]:
        """Put the drones, as they are, into another scene of the mirror. See `Simulation`."""
        return self._request(lambda: self._simulation.set_scene(scene, edit))

    def checkpoint(self) -> Future[Checkpoint]:
        """All that the future of the simulation depends on, but for what is commanded from outside.

        The future raises ValueError if a drone follows a setpoint that cannot be kept.
        """
        return self._ask(self._simulation.capture)

    def capture(self) -> Checkpoint:
        """The same at once, in a callback. Physics thread only."""
        return self._simulation.capture()

    def restore(self, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Go on from a checkpoint bit for bit; time, and the epoch, jump to what they were then.

        Steps under way are aborted. What else is in the scene stays as it is.

        The future raises ValueError if it is one of other drones or of another configuration.
        """
        return self._request(lambda: self._restore(checkpoint))

    def hold(self, reason: str) -> Future[Snapshot]:
        """Pause, and refuse to resume and to step, with a reason, until `release`."""
        return self._request(lambda: self._hold(reason))

    def release(self) -> Future[Snapshot]:
        """Allow what `hold` has refused; time still stands."""
        return self._request(lambda: self._hold(""))

    def show_to(self, callback: SnapshotCallback) -> Future[Snapshot]:
        """Call `callback` between two ticks, with the state that the mirror has, too."""

        def show() -> None:
            self._health.call("callback that is shown the state", callback, self.snapshot)

        return self._request(show)

    def capture_initial_state(self) -> Future[Snapshot]:
        """Make the present state the initial one."""
        return self._request(self._simulation.capture_initial_state)

    def set_real_time_factor(self, factor: float) -> Future[Snapshot]:
        """Change the speed; 0 runs as fast as possible.

        Raises:
            ValueError: Negative, NaN or infinite.
        """
        factor = check_real_time_factor(factor)
        return self._request(lambda: self._set_factor(factor))

    def statistics(self) -> Statistics:
        """How the simulation is doing."""
        pacer = self._pacer
        return Statistics(
            requested_factor=pacer.factor,
            achieved_factor=0.0 if self.paused else pacer.achieved_factor(),
            overruns=pacer.overruns,
            stalls=pacer.stalls,
            tick=self.snapshot.tick,
            epoch=self.epoch,
            paused=self.paused,
            faults=self._health.faults,
            failures=self._health.failures,
            stalled=self._health.stalled,
        )

    def _request(self, action: Callable[[], None]) -> Future[Snapshot]:
        """Have `action` carried out between two ticks; the future has the state after it."""

        def carry_out() -> Snapshot:
            action()
            return self.snapshot

        return self._ask(carry_out)

    def _ask(self, action: Callable[[], T]) -> Future[T]:
        future = self._requests.ask(action)
        self._interrupt_source()
        return future

    def _interrupt_source(self) -> None:
        if self._source is not None:
            self._source.interrupt()

    # In the physics thread.

    def _main(self) -> None:
        try:
            self._simulation.show()
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
            self._health.stop()
            if self._source is not None:
                self._source.close()

    def _advance(self) -> None:
        simulation = self._simulation
        wait = self._pacer.wait(simulation.next_event())
        if wait > 0:
            self._health.doing = ""
            if not self._requests.sleep(wait):
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

    def _reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None,
        states: Mapping[str, DroneState] | None,
    ) -> None:
        self._simulation.reset(scope, drones, states)
        if drones is None:
            self._steps.abort("the simulation was reset")
            self._pacer.restart(self.snapshot.tick)

    def _restore(self, checkpoint: Checkpoint) -> None:
        self._simulation.restore(checkpoint)
        self._steps.abort("the simulation was restored")
        self._pacer.restart(self.snapshot.tick)

    def _set_factor(self, factor: float) -> None:
        self._pacer.factor = factor
        self._anchor()

    def _anchor(self) -> None:
        self._pacer.anchor(self.snapshot.tick)


__all__ = ["PhysicsThread", "Statistics"]

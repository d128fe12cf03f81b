"""The physics thread: owns the drones' state, advances it and hands out snapshots."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from crazyflow_ros.control import Control
from crazyflow_ros.control.rates import ticks_per_period
from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.runtime.engine import Engine
from crazyflow_ros.runtime.levels import resolve
from crazyflow_ros.runtime.pacing import Pacer
from crazyflow_ros.runtime.setpoints import Setpoint, Start
from crazyflow_ros.runtime.snapshot import Snapshot
from crazyflow_ros.scene import Mirror, MirrorState, build_spec
from crazyflow_ros.scene.frames import yaw

SnapshotCallback = Callable[[Snapshot], None]

_FIRST_TICK = 1  # ROS takes a clock of zero for one that has not started
_IDLE_CHECK = 0.5  # s, how often a waiting thread looks around without having been woken
_REQUEST_TIMEOUT = 10.0  # s


class InvalidState(RuntimeError):
    """A request that the simulation cannot carry out in its present state."""


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


class _Order:
    """A setpoint in force, with what the drone was told before it."""

    def __init__(self, setpoint: Setpoint, start: Start) -> None:
        self.setpoint, self.start = setpoint, start


class PhysicsThread:
    """Runs the simulation in a thread of its own.

    Others post commands, queue requests, which the thread carries out between two ticks, and read
    snapshots. Between two due events all ticks are one compiled call.

    Attributes:
        mirror: The MuJoCo side, written before each event.
        snapshot: The latest state.
        failed: What ended the thread, if it ended by itself.
    """

    def __init__(
        self, config: SimulationConfig, names: Sequence[str], source: CommandSource | None = None
    ) -> None:
        """Build and compile the simulation; nothing runs yet.

        Args:
            config: What is simulated.
            names: Of the drones.
            source: Brings the commands, instead of `command`.

        Raises:
            ValueError: The configuration or a name is not usable; the message says which.
        """
        self.config, self.names, self.freq = config, tuple(names), config.freq
        factor = check_real_time_factor(config.real_time_factor)
        self._source, self._mass = source, load_drone(config.drone_model)["mass"]
        self._engine = Engine(config, len(self.names), levels=source is not None)
        self.control: Control = self._engine.control
        self.control_period = source.period if source else self._engine.control_period
        spec = build_spec(
            config.drone_model, self.names, scene=config.scene, poses=self._engine.initial_poses
        )
        self.mirror = Mirror(spec.compile(), self.names)
        self.mirror.requests = _MirrorRequests(self)
        self._pacer = Pacer(config.freq, factor)
        self._indices = {name: i for i, name in enumerate(self.names)}

        self.epoch = 0
        self.paused = config.start_paused
        self.failed: BaseException | None = None
        self.snapshot = self._engine.advance(_FIRST_TICK, 0, self.epoch)

        self._events: list[tuple[int, SnapshotCallback, str]] = []
        self._reset_callbacks: list[SnapshotCallback] = []
        self._failure_callbacks: list[Callable[[BaseException], None]] = []
        self._orders: list[_Order | None] = [None] * len(self.names)
        self._moving: set[int] = set()
        self._steps: deque[tuple[int, Future[Snapshot]]] = deque()

        self._wake = threading.Condition()  # guards the three below
        self._posted: dict[int, tuple[int, Setpoint]] = {}
        self._requests: deque[tuple[Callable[[], None], Future[Snapshot]]] = deque()
        self._stopping = False
        self._thread = threading.Thread(target=self._main, name="physics", daemon=True)

    # Before the start.

    def every(self, rate_hz: int, callback: SnapshotCallback, name: str) -> None:
        """Call `callback` in the physics thread `rate_hz` times per simulated second.

        It is called on exact multiples of the tick, after the mirror has been written, and besides
        at the start, after a step and after a reset.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        if self._thread.ident is not None:
            raise InvalidState(f"{name} has to be added before the simulation starts")
        self._events.append((ticks_per_period(self.freq, rate_hz, name), callback, name))

    def on_reset(self, callback: SnapshotCallback) -> None:
        """Call `callback` in the physics thread after each reset."""
        self._reset_callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` in the physics thread when an exception ends it."""
        self._failure_callbacks.append(callback)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread. Open requests fail.

        Raises:
            TimeoutError: It did not end in time.
        """
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
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
        if name not in self._indices:
            raise ValueError(f"unknown drone {name!r}, have {', '.join(self.names)}")
        if self._source is not None:
            raise ValueError("the drones obey ros2_control alone, see parameter ros2_control.mode")
        setpoint.check(self.control)
        with self._wake:
            self._posted[self._indices[name]] = (self.epoch, setpoint)

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future."""
        return self._request(self._pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self._request(self._resume)

    def step(self, n_ticks: int) -> Future[Snapshot]:
        """Advance by exactly `n_ticks`, at full speed. Only while paused."""
        if n_ticks < 1:
            raise ValueError(f"the number of ticks must be at least 1, got {n_ticks}")
        future: Future[Snapshot] = Future()
        self._request(lambda: self._enqueue_step(n_ticks, future), future, answer=False)
        return future

    def reset(self) -> Future[Snapshot]:
        """Put all drones back to their initial state; time goes on, the epoch rises."""
        return self._request(self._reset)

    def set_state(self, state: MirrorState) -> Future[Snapshot]:
        """Put all drones into a state."""
        return self._request(lambda: self._set_state(state))

    def capture_initial_state(self) -> Future[Snapshot]:
        """Make the present state the initial one."""
        return self._request(lambda: self._engine.capture_initial_state(self.snapshot))

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
        )

    def _request(
        self,
        action: Callable[[], None],
        future: Future[Snapshot] | None = None,
        *,
        answer: bool = True,
    ) -> Future[Snapshot]:
        """Have `action` carried out between two ticks."""
        future = Future() if future is None else future

        def carry_out() -> None:
            action()
            if answer:
                future.set_result(self.snapshot)

        with self._wake:
            if self._stopping or self.failed is not None:
                future.set_exception(InvalidState("the simulation has ended"))
            else:
                self._requests.append((carry_out, future))
                self._wake.notify_all()
        self._interrupt_source()
        return future

    def _interrupt_source(self) -> None:
        if self._source is not None:
            self._source.interrupt()

    # In the physics thread.

    def _main(self) -> None:
        try:
            self.mirror.write(self.snapshot)
            self._hand_out(every=True)
            self._pacer.anchor(self.snapshot.tick)
            if self._source is not None:
                self._source.set_paused(self.paused)
            while not self._stopping:
                self._serve_requests()
                if self._steps:
                    self._run_steps()
                elif self.paused:
                    self._sleep(_IDLE_CHECK)
                else:
                    self._run()
        except BaseException as error:
            self.failed = error
            for callback in self._failure_callbacks:
                callback(error)
        finally:
            self._abandon("the simulation has ended")
            if self._source is not None:
                self._source.close()

    def _serve_requests(self) -> None:
        while self._requests:
            with self._wake:
                action, future = self._requests.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                action()
            except (InvalidState, ValueError) as error:
                future.set_exception(error)

    def _sleep(self, timeout: float) -> bool:
        """Wait, but not past a request; True if the time is over."""
        with self._wake:
            return not self._wake.wait_for(self._interrupted, timeout)

    def _interrupted(self) -> bool:
        return bool(self._requests) or self._stopping

    def _run(self) -> None:
        n_ticks = self._next_event() - self.snapshot.tick
        wait = self._pacer.wait(self.snapshot.tick + n_ticks)
        if wait > 0 and not self._sleep(wait):
            return
        if not self._collect():
            return
        self._advance(n_ticks)
        self._pacer.done(self.snapshot.tick, n_ticks)

    def _run_steps(self) -> None:
        if not self._collect():
            return
        n_ticks, future = self._steps[0]
        advance = min(n_ticks, self._next_event() - self.snapshot.tick)
        if advance == n_ticks:
            self._steps.popleft()
            self._advance(advance, every=True)
            future.set_result(self.snapshot)
        else:
            self._steps[0] = (n_ticks - advance, future)
            self._advance(advance)

    def _next_event(self) -> int:
        periods = {period for period, _, _ in self._events}
        if self._moving or self._source is not None or not periods:
            periods.add(self.control_period)
        return min((self.snapshot.tick // period + 1) * period for period in periods)

    def _advance(self, n_ticks: int, *, every: bool = False) -> None:
        self._take_commands()
        self.snapshot = self._engine.advance(self.snapshot.tick, n_ticks, self.epoch)
        self.mirror.write(self.snapshot)
        self._hand_out(every=every)

    def _collect(self) -> bool:
        """Have the source's commands, if they are due; False if there is something else to do."""
        source, engine = self._source, self._engine
        if source is None or self.snapshot.tick % source.period:
            return True
        if not source.collect(self.snapshot, engine.command, engine.armed, self._interrupted):
            return False
        resolve(engine.command, engine.armed, self.snapshot.quat, self._mass)
        return True

    def _hand_out(self, *, every: bool = False) -> None:
        """Give the state to the source, then to all others, the clock first among them."""
        if self._source is not None and (every or self.snapshot.tick % self._source.period == 0):
            self._source.show(self.snapshot, self.mirror)
        self._fire(every=every)

    def _fire(self, *, every: bool = False) -> None:
        snapshot = self.snapshot
        for period, callback, _ in self._events:
            if every or snapshot.tick % period == 0:
                callback(snapshot)

    def _take_commands(self) -> None:
        now = self.snapshot
        with self._wake:
            posted, self._posted = self._posted, {}
        for i, (epoch, setpoint) in posted.items():
            if epoch != self.epoch:
                continue  # it was meant for the flight before the reset
            start = self._told(i)
            self._orders[i] = _Order(setpoint, start)
            self._engine.armed[i] = True
            self._engine.command[i] = setpoint.command(start, now.time_ns)
            (self._moving.add if setpoint.moves else self._moving.discard)(i)
        for i in self._moving - posted.keys():
            order = self._orders[i]
            assert order is not None
            self._engine.command[i] = order.setpoint.command(order.start, now.time_ns)
        controls = self.mirror.staged_controls()
        if controls is not None:
            self._engine.wrench[:] = controls.wrench
            if self.control is Control.rotor_vel and self._source is None:
                self._engine.command[:] = controls.rotor_speed / RPM
                self._engine.armed[:] = True

    def _told(self, i: int) -> Start:
        """Where drone `i` was told to be, or is, if it was not told."""
        now, order = self.snapshot, self._orders[i]
        if order is not None and self.control is Control.state:
            command = order.setpoint.command(order.start, now.time_ns)
            return Start(now.time_ns, command[:3].copy(), float(yaw(command[9:13])))
        return Start(now.time_ns, now.pos[i], float(yaw(now.quat[i])))

    def _pause(self) -> None:
        self._set_paused(True)
        self._pacer.pause()

    def _resume(self) -> None:
        self._fail_steps("the simulation was resumed")
        self._set_paused(False)
        self._pacer.anchor(self.snapshot.tick)

    def _set_paused(self, paused: bool) -> None:
        self.paused = paused
        if self._source is not None:
            self._source.set_paused(paused)

    def _enqueue_step(self, n_ticks: int, future: Future[Snapshot]) -> None:
        if not self.paused:
            raise InvalidState("the simulation is not paused")
        self._steps.append((n_ticks, future))

    def _reset(self) -> None:
        with self._wake:
            self.epoch += 1
            self._posted.clear()
        self._fail_steps("the simulation was reset")
        self._orders = [None] * len(self.names)
        self._moving.clear()
        self._engine.reset()
        self._show()
        self.mirror.notify_reset(True)
        for callback in self._reset_callbacks:
            callback(self.snapshot)
        self._pacer.anchor(self.snapshot.tick)

    def _set_state(self, state: MirrorState) -> None:
        self._engine.set_state(state)
        self._show()

    def _show(self) -> None:
        """Hand out the state of the present tick anew, after it was changed by hand."""
        self.snapshot = self._engine.advance(self.snapshot.tick, 0, self.epoch)
        self.mirror.write(self.snapshot)
        self._hand_out(every=True)

    def _set_factor(self, factor: float) -> None:
        self._pacer.factor = factor
        self._pacer.anchor(self.snapshot.tick)

    def _fail_steps(self, reason: str) -> None:
        while self._steps:
            _, future = self._steps.popleft()
            future.set_exception(InvalidState(f"step aborted: {reason}"))

    def _abandon(self, reason: str) -> None:
        """Fail what is still open."""
        self._fail_steps(reason)
        with self._wake:
            self._stopping = True
            while self._requests:
                _, future = self._requests.popleft()
                if future.set_running_or_notify_cancel():
                    future.set_exception(InvalidState(reason))


class _MirrorRequests:
    """What the mirror asks of the physics thread; each call returns when it is done."""

    def __init__(self, physics: PhysicsThread) -> None:
        self._physics = physics

    def set_state(self, state: MirrorState) -> None:
        """Go on from a state."""
        self._physics.set_state(state).result(_REQUEST_TIMEOUT)

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._physics.capture_initial_state().result(_REQUEST_TIMEOUT)

    def reset(self) -> None:
        """Reset all drones."""
        self._physics.reset().result(_REQUEST_TIMEOUT)


__all__ = ["InvalidState", "PhysicsThread", "Statistics"]

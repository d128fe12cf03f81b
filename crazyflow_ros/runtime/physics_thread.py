"""The physics thread: what other threads may ask of the one that owns the drones' state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.control import Control, Controller
from crazyflow_ros.control.gains import check_gain
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import DroneState, Snapshot
from crazyflow_ros.flight import Flight, FlightState, Setpoint
from crazyflow_ros.flight.streamed import AttitudeSetpoint, AttitudeThrust
from crazyflow_ros.members import member
from crazyflow_ros.runtime.changes import (
    Changes,
    DisturbanceCallback,
    ResetCallback,
    RestoreCallback,
    StateEdit,
)
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.drone_commands import CommandCallback, EventCallback, Response
from crazyflow_ros.runtime.health import Health, Logger, Statistics
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.resets import Life, ResetScope
from crazyflow_ros.runtime.roster import PreparedRoster, Roster, SceneEdit
from crazyflow_ros.runtime.schedule import Pacer, SnapshotCallback
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.steps import Progress, Steps
from crazyflow_ros.runtime.wrenches import Wrench, WrenchCallback
from crazyflow_ros.scene import Mirror, MirrorState

T = TypeVar("T")

_LEAST_STD, _MOST_STD = 1e-5, 1e3  # m or rad, of poses from outside


class PhysicsThread:
    """The running simulation, for all other threads.

    They post commands, queue requests, which the thread carries out between two ticks, and read
    snapshots. Callbacks run in the physics thread, must be added before the start and must not wait
    for a request.

    Args:
        config: The simulation.
        names: Names of the drones.
        source: Brings the commands from outside, instead of `command`.
        logger: Logs failures; by default Python's.

    Attributes:
        config: As given.
        freq: Ticks per simulated second.
        control: The control mode of all drones.
        control_period: Ticks between two runs of the outermost controller.

    Raises:
        ValueError: The configuration or a name is not usable; the message says which.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        source: CommandSource | None = None,
        logger: Logger | None = None,
    ) -> None:
        self.config, self.freq, self._source = config, config.freq, source
        pacer = Pacer(config.freq, check_real_time_factor(config.real_time_factor))
        logger = logging.getLogger("crazyflow_ros") if logger is None else logger
        self._health = health = Health(logger, config.watchdog_timeout)
        n_slots = 0 if source else config.max_drones
        engine = Engine(config, names, n_slots=n_slots, levels=source is not None)
        roster = Roster(config, names, engine, health)
        self._simulation = simulation = Simulation(config, engine, roster.mirror, source, health)
        self._changes = Changes(config, simulation, engine, roster, source, health)
        self._loop = Loop(
            simulation, self._changes.show, pacer, source, health, paused=config.start_paused
        )
        self.control: Control = simulation.control
        self.control_period = simulation.control_period
        self.mirror.requests = self

    # The thread.

    def start(self) -> None:
        """Start the thread, after the compilation."""
        self._simulation.add_supervisor()
        self._loop.start()

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread. Open requests fail.

        Raises:
            TimeoutError: The thread did not end within `timeout` [s].
        """
        self._loop.stop(timeout)

    @property
    def failed(self) -> BaseException | None:
        """The exception that ended the thread, if one did."""
        return self._loop.failed

    def statistics(self) -> Statistics:
        """Speed and failures of the simulation, now."""
        pacer, latest = self._loop.pacer, self.snapshot
        return Statistics(
            requested_factor=pacer.factor,
            achieved_factor=0.0 if self.paused else pacer.achieved_factor(),
            overruns=pacer.overruns,
            stalls=pacer.stalls,
            tick=latest.tick,
            time_ns=latest.time_ns,
            epoch=self.epoch,
            paused=self.paused,
            faults=self._health.faults,
            failures=self._health.failures,
            stalled=self._health.stalled,
        )

    # The state.

    @property
    def snapshot(self) -> Snapshot:
        """The latest state."""
        return self._simulation.snapshot

    @property
    def mirror(self) -> Mirror:
        """The MuJoCo side, written before each event."""
        return self._simulation.mirror

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the drones."""
        return self._simulation.snapshot.names

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._loop.paused

    @property
    def epoch(self) -> int:
        """Number of resets so far."""
        return self._simulation.epoch

    @property
    def lives(self) -> Mapping[str, Life]:
        """How often each drone was reset, and when; a new mapping after each change."""
        return self._simulation.lives.current

    @property
    def flight_states(self) -> Mapping[str, FlightState]:
        """States of the drones that were commanded; the others are idle."""
        return self._simulation.commands.states

    def flights(self) -> list[Flight]:
        """Return how the drones of `snapshot` fly.

        In other threads than the physics' a state may be of a tick later than the order beside it.
        """
        return self._simulation.commands.flights(self.snapshot.names)

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles of the drones, besides the floor z = 0 and one another."""
        return self._simulation.obstacles

    @property
    def controller(self) -> Controller:
        """Position and attitude controller of all drones."""
        return self._simulation.controller

    @property
    def wind(self) -> Wind:
        """The present wind."""
        return self._simulation.wind

    # Callbacks.

    def every(
        self, rate_hz: int, callback: SnapshotCallback, name: str, *, observes: bool = False
    ) -> None:
        """Call `callback` `rate_hz` times per simulated second.

        It is called on exact multiples of the tick, after the mirror has been written, and besides
        at the start, after a step and after a reset.

        Args:
            rate_hz: Calls per simulated second.
            callback: Takes the state.
            name: Name of the callback in messages.
            observes: The callback commands nothing. What others command takes effect at the next
                tick; what an observer commands may take effect some ticks later, where time runs
                as fast as it can.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        if self._loop.started:
            raise InvalidState(f"{name} has to be added before the simulation starts")
        self._simulation.events.add(rate_hz, callback, name, observes=observes)

    def on_reset(self, callback: ResetCallback) -> None:
        """Call `callback` after each reset, before anyone sees the new state."""
        self._changes.reset_callbacks.append(callback)

    def on_change(self, callback: SnapshotCallback) -> None:
        """Call `callback` at the start, and after each request that changed the state."""
        self._changes.change_callbacks.append(callback)

    def on_restore(self, callback: RestoreCallback) -> None:
        """Call `callback` before the state and the time become those of a checkpoint."""
        self._changes.restore_callbacks.append(callback)

    def on_flight_event(self, callback: EventCallback) -> None:
        """Call `callback` when a drone falls, hits something, or the like."""
        self._simulation.commands.event_callbacks.append(callback)

    def on_command(self, callback: CommandCallback) -> None:
        """Call `callback` when a setpoint takes effect."""
        self._simulation.commands.callbacks.append(callback)

    def on_wrench(self, callback: WrenchCallback) -> None:
        """Call `callback` when the external forces on the drones change."""
        self._simulation.wrenches.callbacks.append(callback)

    def on_disturbance(self, callback: DisturbanceCallback) -> None:
        """Call `callback` when a disturbance begins; `on_change` follows."""
        self._changes.disturbance_callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` when an exception ends the thread."""
        self._loop.failure_callbacks.append(callback)

    # Commands.

    def command(self, name: str, setpoint: Setpoint) -> None:
        """Command a drone from the next tick on. The latest setpoint wins.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        self._check_commands([name], [setpoint])
        self._simulation.commands.post(name, setpoint)

    def fly(self, setpoints: Mapping[str, Setpoint]) -> Future[Response]:
        """Command several drones between the same two ticks; the result says who refused.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        self._check_commands(setpoints, setpoints.values())
        commands = self._simulation.commands
        return self._loop.ask(lambda: commands.command(setpoints, self.snapshot))

    def apply_wrench(self, name: str, wrench: Wrench, key: Hashable = None) -> Future[None]:
        """Apply an external force and torque to a drone from the next tick on.

        Args:
            name: Name of the drone.
            wrench: Force and torque.
            key: A wrench replaces the one with the same key; None never replaces any.

        Returns:
            Done when the wrench has ended. Fails with `InvalidState` if a reset ends it.

        Raises:
            ValueError: There is no such drone.
        """
        self._simulation.known([name])
        return self._simulation.wrenches.post(name, wrench, object() if key is None else key)

    def end_wrench(self, key: Hashable) -> None:
        """End the wrench with a key, see `apply_wrench`, before the next tick."""
        self._simulation.wrenches.end(key)

    def disturb(self, disturbance: Disturbance) -> Future[Snapshot]:
        """Change the wind, a motor or a battery from the next tick on.

        The first gusts take some seconds to compile, in which the simulation flies on.

        The future raises ValueError if there is no such drone, or the disturbance has no effect.
        """
        return self._loop.preparation.put(self._changes.disturb(disturbance))

    def set_controller(self, controller: str) -> Future[Snapshot]:
        """Let all drones fly with a controller from the next tick on, as in its first run.

        It takes some seconds to compile, in which the simulation flies on.

        Args:
            controller: A `Controller`.

        Raises:
            ValueError: There is no such controller.

        The future raises ValueError if commands do not pass through the controller, and
        `InvalidState` if ros2_control flies the drones.
        """
        change = self._changes.set_controller(member(Controller, controller))
        return self._loop.preparation.put(change)

    def tune(self, name: str, controller: str, gains: Mapping[str, ArrayLike]) -> Future[Snapshot]:
        """Change gains of a drone between two ticks; they last until it is removed.

        Args:
            name: Name of the drone.
            controller: The `Controller` whose gains they are; others do not notice.
            gains: New values by name, see `control.gains.GAINS`.

        Raises:
            ValueError: No such drone, controller or gain, or an impossible value.

        The future raises ValueError if a gain has no effect.
        """
        self._simulation.known([name])
        kind = member(Controller, controller)
        checked = {gain: check_gain(kind, gain, value) for gain, value in gains.items()}
        return self._request(lambda: self._changes.tune(name, kind, checked))

    # Estimates.

    def restart_estimate(self, name: str, initial: ArrayLike) -> Future[Snapshot]:
        """Let the estimator of a drone start again, between two ticks.

        Args:
            name: Name of the drone.
            initial: (4,) where it believes to stand: position [m] and yaw [rad].

        Raises:
            ValueError: No such drone, drones without estimators, or an impossible number.
        """
        start = limits.vector("initial pose", initial, (4,), limits.POSITION)
        self._check_estimates(name)
        return self._request(lambda: self._changes.restart_estimate(name, start))

    def tell_pose(
        self, name: str, pos: ArrayLike, quat: ArrayLike | None, std: tuple[float, float]
    ) -> Future[Snapshot]:
        """Tell a drone where it is, between two ticks, as from motion capture.

        Args:
            name: Name of the drone.
            pos: (3,) position [m].
            quat: (4,) attitude xyzw; None if it is unknown.
            std: Standard deviations of position [m] and attitude [rad].

        Raises:
            ValueError: No such drone, drones without estimators, or an impossible number.
        """
        place = limits.vector("external position", pos, (3,), limits.POSITION)
        turn = np.zeros(4) if quat is None else limits.unit_quaternion("external attitude", quat)
        for error in std:
            if not _LEAST_STD <= error <= _MOST_STD:
                expected = f"from {_LEAST_STD:g} to {_MOST_STD:g}"
                raise ValueError(f"standard deviations must be {expected}, got {error:g}")
        self._check_estimates(name)
        if not self.config.positioning.external:
            raise ValueError("poses from outside need positioning.external=true at start")
        pose = np.concatenate((place, turn))
        return self._request(lambda: self._changes.tell_pose(name, pose, std))

    def _check_estimates(self, name: str) -> None:
        self._simulation.known([name])
        if self.snapshot.believed is None:
            raise ValueError("the drones know their true state: expected estimator=kalman at start")

    # Time.

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future; steps under way are aborted."""
        return self._request(self._loop.pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self._request(self._loop.resume)

    def switch(self, *, paused: bool) -> Future[tuple[bool, Snapshot]]:
        """Pause or resume; the result also says whether that changed anything."""

        def carry_out() -> tuple[bool, Snapshot]:
            changes = self.paused != paused
            if paused:
                self._loop.pause()
            elif changes:
                self._loop.resume()
            return changes, self.snapshot

        return self._loop.ask(carry_out)

    def hold(self, reason: str) -> Future[Snapshot]:
        """Pause, and refuse to resume and to step, with a reason, until `release`."""
        return self._request(lambda: self._loop.hold(reason))

    def release(self) -> Future[Snapshot]:
        """Allow what `hold` refused; time still stands."""
        return self._request(lambda: self._loop.hold(""))

    def step(self, n_ticks: int, progress: Progress | None = None) -> Steps:
        """Advance by exactly `n_ticks`, at full speed. Only while paused.

        Args:
            n_ticks: Number of ticks.
            progress: Called in the physics thread after each stretch, with the ticks done so far.

        Returns:
            A future that can be cancelled half-way. It fails with `StepAborted` if the simulation
            is resumed, paused once more, or reset meanwhile.

        Raises:
            ValueError: `n_ticks` is less than 1.
        """

        def cancel(steps: Steps) -> None:
            self._request(lambda: self._loop.drop(steps))

        steps = Steps(n_ticks, progress, cancel)
        self._loop.enqueue(steps)
        return steps

    def set_real_time_factor(self, factor: float) -> Future[Snapshot]:
        """Change the speed; 0 runs as fast as possible.

        Raises:
            ValueError: Negative, NaN or infinite.
        """
        factor = check_real_time_factor(factor)
        return self._request(lambda: self._loop.set_factor(factor))

    # Resets and states.

    def reset(
        self,
        scope: ResetScope = ResetScope.state,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
    ) -> Future[Snapshot]:
        """Reset between two ticks; the epoch rises, and steps under way are aborted.

        Args:
            scope: Parts to reset; without `time`, time goes on.
            drones: Only these drones; the scope is then `state`. The others do not notice.
            states: States of drones after the reset.

        The future raises ValueError for an unknown drone or an impossible state.
        """
        if ResetScope.spawned not in scope:
            return self._request(lambda: self._reset(scope, drones, states))

        def put_back(prepared: PreparedRoster) -> Snapshot:
            self._reset(scope, drones, states, prepared=prepared)
            return self.snapshot

        return self._loop.preparation.put(self._changes.to_start(put_back))

    def set_drone_states(self, states: Mapping[str, DroneState]) -> Future[Snapshot]:
        """Set the states of some drones, all at once.

        The future raises ValueError for an unknown drone or an impossible state.
        """
        return self._request(lambda: self._changes.set_states(states))

    def set_state(self, state: MirrorState) -> Future[Snapshot]:
        """Set the state of all drones."""
        return self._request(lambda: self._changes.set_state(state))

    def edit_state(self, plan: Callable[[], StateEdit], *, reset: bool = False) -> Future[Snapshot]:
        """Set all drones to a state that depends on the present one, or on that after a reset.

        Args:
            plan: Called between two ticks, before anything changes; returns the function from the
                state between the same two ticks to the new one. It may refuse with ValueError.
            reset: Reset before, as `reset` does.
        """

        def carry_out() -> None:
            edit = plan()
            if reset:
                self._reset(ResetScope.state, edit=edit)
            else:
                self._changes.set_state(edit(self.snapshot))

        return self._request(carry_out)

    def capture_initial_state(self) -> Future[Snapshot]:
        """Make the present state, and the commands in force, the initial ones."""
        return self._request(self._changes.capture_initial_state)

    def notify_reset(self) -> Future[Snapshot]:
        """Drop the mirror's staged controls and run its reset callback; the state stays."""
        notify, name = self.mirror.notify_reset, "reset callback of the mirror"
        return self._request(lambda: self._health.call(name, notify, False))

    def checkpoint(self) -> Future[Checkpoint]:
        """Capture all that the future depends on, but for commands from outside.

        The future raises ValueError if a drone follows a setpoint that cannot be stored.
        """
        return self._loop.ask(self._simulation.capture)

    def capture(self) -> Checkpoint:
        """Capture a checkpoint at once. Physics thread only."""
        return self._simulation.capture()

    def restore(self, checkpoint: Checkpoint) -> Future[Snapshot]:
        """Continue from a checkpoint bit for bit; time and epoch jump to its own.

        Steps under way are aborted. Objects in the scene stay as they are.

        The future raises ValueError for a checkpoint of other drones or of another configuration.
        """

        def restore(prepared: PreparedRoster) -> Snapshot:
            self._changes.restore(checkpoint, prepared)
            self._loop.jump("the simulation was restored")
            return self.snapshot

        gusts = bool(checkpoint.about.get("gusts"))
        return self._loop.preparation.put(self._changes.to_checkpoint(gusts, restore))

    def show_to(self, callback: SnapshotCallback) -> Future[Snapshot]:
        """Call `callback` between two ticks, with the state that the mirror has, too."""

        def show() -> None:
            self._health.call("callback that is shown the state", callback, self.snapshot)

        return self._request(show)

    # Drones and scene.

    def spawn(self, name: str, pose: ArrayLike | None = None) -> Future[Snapshot]:
        """Add a drone between two ticks; the others do not notice.

        The simulation flies on while the drone is prepared. Beyond `SimulationConfig.max_drones`
        that takes some seconds, to compile for more drones.

        Args:
            name: Letters, digits, underscores.
            pose: (7,) position [m] and attitude (xyzw), also after a reset; None: on the floor,
                where there is room.

        The future raises ValueError if the name or the pose is not usable, and InvalidState if the
        drones are commanded from outside.
        """
        return self._loop.preparation.put(self._changes.spawn(name, pose))

    def despawn(self, name: str) -> Future[Snapshot]:
        """Remove a drone between two ticks.

        The future raises ValueError if there is none, and InvalidState if it is the last one or the
        drones are commanded from outside.
        """
        return self._loop.preparation.put(self._changes.despawn(name))

    def set_scene(
        self, scene: str | Path | None = None, edit: SceneEdit | None = None
    ) -> Future[Snapshot]:
        """Move the drones, as they are, into another scene. See `Changes.set_scene`.

        The simulation flies on while the scene is prepared; `edit` is called in another thread.
        More collision shapes than there is room for take some seconds, to compile.
        """
        return self._loop.preparation.put(self._changes.set_scene(scene, edit))

    def set_obstacles(self, obstacles: Obstacles | None) -> Future[Snapshot]:
        """Let the drones collide with these obstacles instead of those in the scene.

        Another number of slots takes some seconds to compile, in which the simulation flies on.
        """
        return self._loop.preparation.put(self._changes.set_obstacles(obstacles))

    def _check_commands(self, names: Iterable[str], setpoints: Iterable[Setpoint]) -> None:
        self._simulation.known(names)
        if self._source is not None:
            raise ValueError("the drones obey ros2_control alone, see parameter ros2_control.mode")
        for setpoint in setpoints:
            setpoint.check(self.control)
            if self.config.policy and isinstance(setpoint, AttitudeSetpoint):
                raise ValueError("a policy flies the drones: they follow positions, not attitudes")
            has_rates = isinstance(setpoint, AttitudeThrust) and setpoint.has_rates
            if has_rates and not Dynamics(self.config.dynamics).has_rotors:
                expected = f"dynamics=first_principles, the drones have {self.config.dynamics}"
                raise ValueError(f"roll and pitch rates need {expected}")

    def _request(self, action: Callable[[], None]) -> Future[Snapshot]:
        """Carry out `action` between two ticks; the future has the state after it."""

        def carry_out() -> Snapshot:
            action()
            return self.snapshot

        return self._loop.ask(carry_out)

    def _reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
        edit: StateEdit | None = None,
        prepared: PreparedRoster | None = None,
    ) -> None:
        """Reset. Physics thread only."""
        self._changes.reset(scope, drones, states, edit, prepared)
        if drones is None:
            self._loop.jump("the simulation was reset")

"""The physics thread: what other threads may ask of the one that owns the drones' state."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from crazyflow_ros.checks.throttled_logger import Logger
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.engine.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.initial_poses import start_poses
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import Setpoint
from crazyflow_ros.flight.attitude_setpoints import AttitudeSetpoint, AttitudeThrust
from crazyflow_ros.flight.raw import check_setpoint
from crazyflow_ros.runtime import former_names
from crazyflow_ros.runtime.door import Door, DoorGuard
from crazyflow_ros.runtime.drone_firmware import DroneFirmware
from crazyflow_ros.runtime.health import Health, Statistics
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.mirror_inputs import MirrorInputs
from crazyflow_ros.runtime.news import News
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState, Requests, Response
from crazyflow_ros.runtime.robot_commands import RobotCommands
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.schedule import Pacer, SnapshotCallback
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.state_changes import StateChanges
from crazyflow_ros.runtime.steps import Progress, Steps
from crazyflow_ros.runtime.world_changes import WorldChanges
from crazyflow_ros.runtime.wrenches import TimedWrench


class PhysicsThread:
    """The running simulation, for all other threads.

    They post commands, queue requests, which the thread carries out between two ticks, and read
    snapshots. Callbacks run in the physics thread, must be added before the start and must not wait
    for a request.

    Args:
        config: The simulation.
        names: Names of the drones.
        door: Door through which others fly drones, instead of `command`.
        logger: Logs failures; by default Python's.
        door_drones: Names of the drones that the door flies, in its order; by default all, and then
            none can be added.

    Attributes:
        config: As given.
        freq: Ticks per simulated second.
        control: The control mode of all drones.
        control_period: Ticks between two runs of the outermost controller.
        mirror: The MuJoCo side, written before each event.
        news: Adds callbacks for all that happens besides ticks; for ticks see `every`.
        state: Sets, resets, stores and restores the state of the drones.
        world: Adds and removes drones; changes scene, obstacles, wind and controller.
        firmware: Restarts drones, and changes what they know: gains and estimates.
        robots: Commands joints of robots in the world.
        commands: How the drones fly.
        lives: How often each drone was reset, and when.
        masters: Who flies a drone in place of the users of this thread, by the drone's name.
        simulation: What the thread owns, for programs that run in it.
        loop: The thread itself.
        health: What has failed, and the log.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        door: Door | None = None,
        logger: Logger | None = None,
        door_drones: Sequence[str] | None = None,
    ) -> None:
        pacer = Pacer(config.freq, check_real_time_factor(config.real_time_factor))
        logger = logger or logging.getLogger("crazyflow_ros")
        self.health = health = Health(logger, config.watchdog_timeout)
        self.news = News(health)
        scene, around, moves = Roster.checked_scene(config, names)
        guard = None
        if door is not None:
            flown = names if door_drones is None else door_drones
            guard = DoorGuard(door, flown, names, health)
        by_door = guard.drones if guard else ()
        n_slots = 0 if guard and guard.flies_all else config.max_drones
        poses, moved = start_poses(config, names, scene.conditions.floor, around)
        for note in moved:
            health.warn(note)
        start = replace(config, initial_poses=poses)
        kind: dict[str, Any] = {"conditions": scene.conditions, "contacts": not moves}
        engine = Engine(start, names, n_slots=n_slots, by_door=by_door, **kind)
        roster = Roster(config, names, engine, health, scene)
        requests = Requests(health.note_failure, guard)
        self.simulation = simulation = Simulation(
            config, engine, roster, guard, self.news, health, requests.pending
        )
        preparation = Preparation(roster, simulation, requests)
        self.loop = Loop(simulation, requests, preparation, pacer)
        self.world = WorldChanges(simulation, roster, preparation)
        self.state = StateChanges(simulation, roster, self.world, self.loop)
        self.firmware = DroneFirmware(simulation, requests, roster)
        self.robots = RobotCommands(simulation, requests)
        self.config, self.freq = config, config.freq
        self.control: Control = simulation.control
        self.control_period = simulation.control_period
        self.commands, self.lives = simulation.commands, simulation.lives
        self.masters: Mapping[str, str] = {}
        if guard is not None:
            self.masters = dict.fromkeys(guard.drones, f"the door {guard.name}")
        self.mirror = simulation.mirror
        self.mirror.requests = MirrorInputs(simulation, self.state, requests)

    # The thread.

    def start(self) -> None:
        """Start the thread, after the compilation."""
        self.loop.start()

    def stop(self, timeout: float = 2.0) -> None:
        """End the thread. Open requests fail.

        Raises:
            TimeoutError: The thread did not end within `timeout` [s].
        """
        self.loop.stop(timeout)

    @property
    def failed(self) -> BaseException | None:
        """The exception that ended the thread, if one did."""
        return self.loop.failed

    def statistics(self) -> Statistics:
        """Speed and failures of the simulation, now."""
        pacer, latest = self.loop.pacer, self.snapshot
        return Statistics(
            requested_factor=pacer.factor,
            achieved_factor=0.0 if self.paused else pacer.achieved_factor(),
            overruns=pacer.overruns,
            stalls=pacer.stalls,
            tick=latest.tick,
            time_ns=latest.time_ns,
            epoch=self.simulation.epoch,
            paused=self.paused,
            faults=self.health.faults,
            failures=self.health.failures,
            stalled=self.health.stalled,
        )

    # The state at each tick.

    @property
    def snapshot(self) -> Snapshot:
        """The latest state."""
        return self.simulation.snapshot

    def every(
        self, rate_hz: int, callback: SnapshotCallback, name: str, *, observes: bool = False
    ) -> None:
        """Call `callback` `rate_hz` times per simulated second.

        It is called on exact multiples of the tick, after the mirror has been written, and also at
        the start, after a step and after a reset.

        Args:
            rate_hz: Calls per simulated second.
            callback: Takes the state.
            name: Name of the callback in messages.
            observes: The callback commands nothing. Other commands take effect at the next tick;
                those of an observer may take effect some ticks later if the simulation runs as fast
                as possible.

        Raises:
            ValueError: The rate does not divide `freq`; the message uses `name`.
        """
        if self.loop.started:
            raise InvalidState(f"{name} has to be added before the simulation starts")
        self.simulation.events.add(rate_hz, callback, name, observes=observes)

    def show_to(self, callback: SnapshotCallback) -> Future[Snapshot]:
        """Call `callback` once between two ticks, with the state that the mirror also has."""

        def carry_out() -> None:
            self.health.call("callback that is shown the state", callback, self.snapshot)

        return self.loop.change(carry_out)

    # Commands.

    def command(self, name: str, setpoint: Setpoint) -> None:
        """Command a drone from the next tick on. The latest setpoint wins.

        Raises:
            ValueError: There is no such drone, its control mode cannot follow the setpoint, or a
                door flies it.
        """
        self.command_all({name: setpoint})

    def command_all(self, setpoints: Mapping[str, Setpoint]) -> None:
        """Command several drones between the same two ticks. The latest setpoint of each wins.

        Raises:
            ValueError: There is no such drone, its control mode cannot follow the setpoint, or a
                door flies it.
        """
        self._check_commands(setpoints, setpoints.values())
        self.check_own(setpoints)
        self.commands.post(setpoints)

    def fly(self, setpoints: Mapping[str, Setpoint]) -> Future[Response]:
        """Command several drones between the same two ticks; the result names those that refused.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        masters = self.masters
        refused = [f"{name} obeys {masters[name]} alone" for name in setpoints if name in masters]
        free = {name: setpoint for name, setpoint in setpoints.items() if name not in masters}
        self._check_commands(setpoints, free.values())

        def carry_out() -> Response:
            response = self.commands.command(free, self.snapshot)
            return Response(refused + response.refused, response.notes)

        return self.loop.requests.ask(carry_out)

    def check_own(self, names: Iterable[str]) -> None:
        """Check that nobody else flies drones, see `masters`.

        Raises:
            ValueError: Somebody else flies one; the message says who.
        """
        masters = self.masters
        for name in names:
            if name in masters:
                raise ValueError(f"{name} obeys {masters[name]} alone")

    def apply_wrench(self, name: str, wrench: TimedWrench, key: Hashable = None) -> Future[None]:
        """Apply an external force and torque to a drone, or a body, from the next tick on.

        Args:
            name: Name of the drone, or of a body of the world that moves.
            wrench: Force and torque.
            key: A wrench replaces the one with the same key; None never replaces any.

        Returns:
            Done when the wrench has ended. Fails with `InvalidState` if a reset ends it.
            Cancelling it ends the wrench.

        Raises:
            ValueError: There is no such drone or body.
        """
        bodies = self.simulation.engine.bodies
        if bodies is None or not bodies.has(name):
            self.simulation.known([name])
        return self.simulation.wrenches.post(name, wrench, object() if key is None else key)

    def end_wrench(self, key: Hashable) -> None:
        """End the wrench with a key, see `apply_wrench`, before the next tick."""
        self.simulation.wrenches.end(key)

    # Time.

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self.loop.paused

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future; steps under way are aborted."""
        return self.loop.change(self.loop.pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self.loop.change(self.loop.resume)

    def switch(self, *, paused: bool) -> Future[tuple[bool, Snapshot]]:
        """Pause or resume; the result also says whether this changed anything."""

        def carry_out() -> tuple[bool, Snapshot]:
            changes = self.paused != paused
            if paused:
                self.loop.pause()
            elif changes:
                self.loop.resume()
            return changes, self.snapshot

        return self.loop.requests.ask(carry_out)

    def hold(self, reason: str) -> Future[Snapshot]:
        """Pause, and refuse to resume and to step, with a reason, until `release`."""
        return self.loop.change(lambda: self.loop.hold(reason))

    def release(self) -> Future[Snapshot]:
        """Allow what `hold` refused; the simulation stays paused."""
        return self.loop.change(lambda: self.loop.hold(""))

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
            self.loop.change(lambda: self.loop.drop(steps))

        steps = Steps(n_ticks, progress, cancel)
        self.loop.enqueue(steps)
        return steps

    def set_real_time_factor(self, factor: float) -> Future[Snapshot]:
        """Change the speed; 0 runs as fast as possible.

        Raises:
            ValueError: Negative, NaN or infinite.
        """
        factor = check_real_time_factor(factor)
        return self.loop.change(lambda: self.loop.set_factor(factor))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            return former_names.found(self, name)

    def _check_commands(self, names: Iterable[str], setpoints: Iterable[Setpoint]) -> None:
        self.simulation.known(names)
        for setpoint in setpoints:
            check_setpoint(setpoint, self.control, self.commands.rules.n_rotors)
            if self.config.policy and isinstance(setpoint, AttitudeSetpoint):
                raise ValueError("a policy flies the drones: they follow positions, not attitudes")
            has_rates = isinstance(setpoint, AttitudeThrust) and setpoint.has_rates
            if has_rates and not Dynamics(self.config.dynamics).has_rotors:
                need = "roll and pitch rates need dynamics first_principles"
                raise ValueError(f"{need}, got {self.config.dynamics}")

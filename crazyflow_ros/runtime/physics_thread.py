"""The physics thread: what other threads may ask of the one that owns the drones' state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future

from crazyflow_ros.control import Control, Controller
from crazyflow_ros.dynamics import Dynamics
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig, check_real_time_factor
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightState, Setpoint
from crazyflow_ros.flight.attitude_setpoints import AttitudeSetpoint, AttitudeThrust
from crazyflow_ros.flight.commander import FlightStatus
from crazyflow_ros.runtime.changes import Changes, StateEdit
from crazyflow_ros.runtime.door import Door, DoorGuard
from crazyflow_ros.runtime.drone_commands import CommandCallback, EventCallback, Response
from crazyflow_ros.runtime.health import Health, Statistics
from crazyflow_ros.runtime.loop import Loop
from crazyflow_ros.runtime.mirror_inputs import MirrorInputs
from crazyflow_ros.runtime.news import News
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.resets import Life
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.schedule import Pacer, SnapshotCallback
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.steps import Progress, Steps
from crazyflow_ros.runtime.wrenches import TimedWrench, WrenchCallback
from crazyflow_ros.scene import Controls, Mirror, MirrorState
from crazyflow_ros.throttled_logger import Logger


class PhysicsThread(Changes):
    """The running simulation, for all other threads.

    They post commands, queue requests, which the thread carries out between two ticks, and read
    snapshots. Callbacks run in the physics thread, must be added before the start and must not wait
    for a request.

    Args:
        config: The simulation.
        names: Names of the drones.
        door: Through which others fly drones, instead of `command`.
        logger: Logs failures; by default Python's.
        door_drones: Names of the drones that the door flies, in its order; by default all, and then
            none can be added.

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
        door: Door | None = None,
        logger: Logger | None = None,
        door_drones: Sequence[str] | None = None,
    ) -> None:
        pacer = Pacer(config.freq, check_real_time_factor(config.real_time_factor))
        health = Health(logger or logging.getLogger("crazyflow_ros"), config.watchdog_timeout)
        scene = Roster.checked_scene(config)
        guard = None
        if door is not None:
            flown = names if door_drones is None else door_drones
            guard = DoorGuard(door, flown, names, health)
        n_slots = 0 if guard and guard.flies_all else config.max_drones
        by_door = guard.drones if guard else ()
        engine = Engine(config, names, n_slots=n_slots, by_door=by_door)
        roster = Roster(config, names, engine, health, scene)
        simulation = Simulation(
            config, engine, roster.mirror, guard, health, lambda: roster.surroundings
        )
        news = News(simulation, health)
        loop = Loop(simulation, news.show, pacer, guard, health, paused=config.start_paused)
        super().__init__(config, simulation, engine, roster, loop, guard, health, news)
        self.freq = config.freq
        self.control: Control = simulation.control
        self.control_period = simulation.control_period
        self._inputs = MirrorInputs(simulation, health)
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
    def own_drones(self) -> tuple[str, ...]:
        """Names of the drones that users see here; other simulators may have others."""
        return self.names

    @property
    def paused(self) -> bool:
        """Whether time stands still."""
        return self._loop.paused

    @property
    def busy(self) -> bool:
        """Whether requests of other threads, or changes for them, are still to be carried out."""
        return self._loop.busy

    @property
    def stepping(self) -> bool:
        """Whether a step is under way. Physics thread only."""
        return self._loop.stepping

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

    def flights(self) -> list[FlightStatus]:
        """Return how the drones of `snapshot` fly.

        In threads other than the physics thread, a state may be of a later tick than its order.
        """
        return self._simulation.commands.flights(self.snapshot.names)

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles of the drones, besides the floor z = 0 and each other."""
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
        if self._loop.started:
            raise InvalidState(f"{name} has to be added before the simulation starts")
        self._simulation.events.add(rate_hz, callback, name, observes=observes)

    def on_flight_event(self, callback: EventCallback) -> None:
        """Call `callback` at each `FlightEvent`, such as a crash or a hit."""
        self._simulation.commands.event_callbacks.append(callback)

    def on_command(self, callback: CommandCallback) -> None:
        """Call `callback` when a setpoint takes effect."""
        self._simulation.commands.callbacks.append(callback)

    def on_wrench(self, callback: WrenchCallback) -> None:
        """Call `callback` when the external forces on the drones change."""
        self._simulation.wrenches.callbacks.append(callback)

    def on_failure(self, callback: Callable[[BaseException], None]) -> None:
        """Call `callback` when an exception ends the thread."""
        self._loop.failure_callbacks.append(callback)

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
        for name in setpoints:
            if master := self._master(name):
                raise ValueError(f"{name} obeys {master} alone")
        self._simulation.commands.post(setpoints)

    def fly(self, setpoints: Mapping[str, Setpoint]) -> Future[Response]:
        """Command several drones between the same two ticks; the result names those that refused.

        Raises:
            ValueError: There is no such drone, or its control mode cannot follow the setpoint.
        """
        masters = {name: master for name in setpoints if (master := self._master(name))}
        free = {name: x for name, x in setpoints.items() if name not in masters}
        self._check_commands(setpoints, free.values())
        refused = [f"{name} obeys {master} alone" for name, master in masters.items()]
        commands = self._simulation.commands

        def carry_out() -> Response:
            response = commands.command(free, self.snapshot)
            return Response(refused + response.refused, response.notes)

        return self._loop.ask(carry_out)

    def apply_wrench(self, name: str, wrench: TimedWrench, key: Hashable = None) -> Future[None]:
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

    def apply_controls(self, names: Sequence[str], controls: Controls) -> None:
        """Apply rotor speeds and wrenches, see `Mirror.apply_control_data`.

        Raises:
            ValueError: A wrench is beyond its limits; the message names the drone.
            InvalidState: Too many wrenches are active already.
        """
        self._inputs.post(names, controls)
        self._take_rotors()

    def controls(self, names: Sequence[str]) -> Controls:
        """Return the inputs of drones, see `Mirror.copy_physics_data`."""
        return self._inputs.latest(names)

    def set_state(self, state: MirrorState, controls: Controls | None = None) -> Future[Snapshot]:
        """Set the state of all drones, and apply control inputs, if there are any."""
        names = self.names

        def plan() -> StateEdit:
            if controls is not None:
                self.apply_controls(names, controls)
            return lambda _: state

        return self.edit_state(plan)

    # Time.

    def pause(self) -> Future[Snapshot]:
        """Stop time. No tick follows the completion of the future; steps under way are aborted."""
        return self._request(self._loop.pause)

    def resume(self) -> Future[Snapshot]:
        """Let time run; steps that are not done yet fail."""
        return self._request(self._loop.resume)

    def switch(self, *, paused: bool) -> Future[tuple[bool, Snapshot]]:
        """Pause or resume; the result also says whether this changed anything."""

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
        """Allow what `hold` refused; the simulation stays paused."""
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

    def _take_rotors(self) -> None:
        """Put rotor speeds that were posted into force before the next tick."""
        if self._simulation.rotors_obey:
            self._loop.ask(self._inputs.take)

    def _master(self, name: str) -> str:
        """Return who commands a drone in place of the users of this thread; empty if nobody."""
        by_door = self._door is not None and name in self._door.drones
        return f"the door {self._door.name}" if self._door and by_door else ""

    def _check_commands(self, names: Iterable[str], setpoints: Iterable[Setpoint]) -> None:
        self._simulation.known(names)
        for setpoint in setpoints:
            setpoint.check(self.control)
            if self.config.policy and isinstance(setpoint, AttitudeSetpoint):
                raise ValueError("a policy flies the drones: they follow positions, not attitudes")
            has_rates = isinstance(setpoint, AttitudeThrust) and setpoint.has_rates
            if has_rates and not Dynamics(self.config.dynamics).has_rotors:
                need = "roll and pitch rates need dynamics first_principles"
                raise ValueError(f"{need}, got {self.config.dynamics}")

"""The simulation that one thread advances, tick by tick. It has no thread of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.control import Control, Controller
from crazyflow_ros.drones import load_drone
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.authority import Authority
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.levels import resolve
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import Raw
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.supervisor import RATE, Ability
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.runtime.checkpoint import Checkpoint, about
from crazyflow_ros.runtime.door import DoorGuard
from crazyflow_ros.runtime.drone_commands import DroneCommands
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.resets import DroneLives
from crazyflow_ros.runtime.schedule import Events
from crazyflow_ros.runtime.wrenches import Wrenches
from crazyflow_ros.scene import Mirror

FIRST_TICK = 1  # ROS takes a time of zero to mean that the clock has not started
_BURST = 4e-3  # s of the thread's processor time between two looks at requests and commands
_NO_DRONE = "its state was no longer that of a drone"
_NO_ACTION = "the output of its policy was not a number"
_SHORTEST = 1e-6  # s that a burst takes at least


class Simulation:
    """The drones with their mirror, commands, external forces and events.

    Args:
        config: The configuration.
        engine: Advances the drones.
        mirror: The MuJoCo side, written before each event.
        door: Through which others fly drones, instead of `commands`; None if there is none.
        health: Logs failures.
        surroundings: Returns the obstacles of the world.

    Attributes:
        mirror: As given.
        snapshot: The latest state.
        epoch: Number of resets so far.
        commands: Commands of the drones.
        wrenches: External forces and torques on them.
        lives: How often each drone was reset, and when.
        events: Callbacks, the clock first among them.
        until: Tick up to which the inputs of all drones are agreed with other simulators, who may
            command some of them; None if there are no others.
        lose: Takes a drone out of service, with a reason.
        control: Control mode of the commands.
        control_period: Ticks between two runs of the outermost controller.
    """

    def __init__(
        self,
        config: SimulationConfig,
        engine: Engine,
        mirror: Mirror,
        door: DoorGuard | None,
        health: Health,
        surroundings: Callable[[], Surroundings],
    ) -> None:
        self._config, self._engine, self._health = config, engine, health
        self._door, self._mass = door, load_drone(config.drone_model)["mass"]
        self.control: Control = engine.control
        alone = door is not None and door.flies_all
        self.control_period = door.period if door and alone else engine.control_period
        self.mirror = mirror
        self.epoch = 0
        (self.snapshot,) = engine.advance(FIRST_TICK, [0], self.epoch)
        self.lives = DroneLives(self.snapshot)
        self._burst = 1  # events in one compiled call
        self._failed: dict[str, str] = {}  # why drones are lost, if not for their state
        self.until: int | None = None
        self.lose: Callable[[str, str], None] = self.withdraw
        rules = Rules.of(config.drone_model, config.flight)
        self._authority = Authority(config)
        self.commands = DroneCommands(
            *(rules, self.control, self.control_period, health),
            *(self._ability, self._neighbour, surroundings),
        )
        self.wrenches = Wrenches(config.freq, health)
        self.events = Events(config.freq, health)

    def _ability(self, now: Snapshot) -> Ability:
        engine = self._engine
        motor_loss = engine.motor_loss[engine.rows]
        return self._authority.of(now, motor_loss, engine.wind, self.controller)

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles of the drones, besides the floor z = 0 and each other."""
        return self._engine.world.obstacles

    @property
    def controller(self) -> Controller:
        """Position and attitude controller of all drones."""
        return self._engine.world.controller

    @property
    def rotors_obey(self) -> bool:
        """Whether `command_rotors` has an effect."""
        return self._engine.rotors_obey

    def command_rotors(self, names: Sequence[str], speeds: np.ndarray) -> None:
        """Command rotor speeds [rad/s], (n, 4): planning a setpoint each time would take longer."""
        now, is_new = self.snapshot, self._engine.command_rotors(names, speeds)
        assert now.rotor_command is not None
        command = now.rotor_command.copy()
        for i in np.flatnonzero(is_new).tolist():
            command[now.names.index(names[i])] = speeds[i]
            self.commands.tell(names[i], Raw(speeds[i] / RPM), now)
        if is_new.any():
            self._accept(replace(now, rotor_command=command))

    @property
    def by_door(self) -> list[str]:
        """Names of the drones that a door flies."""
        return [] if self._door is None else list(self._door.drones)

    @property
    def wind(self) -> Wind:
        """The present wind."""
        return self._engine.wind

    def _neighbour(self, state: Snapshot, row: int) -> str:
        """Name what a drone touches in a state of the present drones."""
        if state.names != self.mirror.names:  # drones have just come or gone
            return "something"
        drones = self._config.drone_collisions
        return self.mirror.neighbour(state, state.names[row], drones=drones) or "something"

    def next_event(self) -> int:
        """Tick of the next event; nothing reads or changes the state before it."""
        return self._event_after(self.snapshot.tick, commanded=self._commands_change)

    @property
    def _commands_change(self) -> bool:
        """Whether commands may change each time the controllers run, besides those of a door."""
        return bool(self.commands.moving or self.wrenches)

    def _event_after(self, tick: int, *, commanded: bool) -> int:
        periods = self.events.periods
        if self._door is not None:
            periods = periods | {self._door.period}
        if commanded or not periods:
            periods = periods | {self.control_period}
        event = min((tick // period + 1) * period for period in periods)
        return int(min(event, self.wrenches.next_end))

    def collect(self, interrupted: Callable[[], bool]) -> bool:
        """Collect the door's commands, if they are due; return False if interrupted."""
        door, engine = self._door, self._engine
        if door is None or self.snapshot.tick % door.period:
            return True
        command, level = engine.door_commands
        if not door.collect(self.snapshot, command, level, interrupted):
            return False
        quat = self.snapshot.quat[door.rows(self.snapshot.names)]
        resolve(command, level, quat, self._mass)
        return True

    def advance(self, due: float, limit: float = math.inf) -> int:
        """Advance to the next event, and call its callbacks.

        Further events that are due follow in the same compiled call, as many as take a few
        milliseconds of processor time.

        Args:
            due: The tick up to which events are due.
            limit: Largest number of ticks; after it, all callbacks are called.

        Returns:
            Number of ticks.
        """
        if self.until is not None:
            return self._advance_agreed(self.until, limit)
        began = time.thread_time()
        self._take_posted()
        start = self.snapshot.tick
        ticks = self._due_events(due, start + limit)
        begins = [start, *ticks[:-1]]
        stretches = [tick - before for before, tick in zip(begins, ticks)]
        changing = self.commands.commands([self._engine.time_ns(tick) for tick in begins])
        snapshots = self._evaluate(start, stretches, *changing)
        self.commands.feel(snapshots[:-1])  # the last one is for the next `take`
        for snapshot in snapshots:
            self._accept(snapshot)
            self._hand_out(every=snapshot.tick == start + limit)
        # The thread's clock may not have advanced: its resolution is not that of the monotonic one.
        took = max(time.thread_time() - began, _SHORTEST)
        self._burst = max(1, int(_BURST * len(ticks) / took))
        return ticks[-1] - start

    def _advance_agreed(self, until: int, limit: float) -> int:
        """Advance to the next event with the inputs that are agreed, up to a tick `until`."""
        start = self.snapshot.tick
        tick = int(min(self.next_event(), start + limit, until))
        (snapshot,) = self._evaluate(start, [tick - start])
        self._accept(snapshot)
        if tick < until:  # otherwise the commands look at it when they are taken
            self.commands.feel([snapshot])
        self._hand_out(every=tick == start + limit)
        return tick - start

    def take_inputs(self, names: Sequence[str]) -> tuple[np.ndarray, int]:
        """Put posted commands and forces into force, for other simulators to agree.

        Args:
            names: The drones that are commanded here.

        Returns:
            Their inputs, see `Engine.inputs`, and the tick up to which these hold.
        """
        self._put_into_force()
        tick, period = self.snapshot.tick, self.control_period
        until = min((tick // period + 1) * period, self.wrenches.next_end)
        return self._engine.inputs(names), int(max(until, tick + 1))

    def add_supervisor(self) -> None:
        """Supervise the flights from now on, once all other events are known."""
        if self._door is None or not self._door.flies_all:
            rate = next(rate for rate in range(RATE, 0, -1) if self._config.freq % rate == 0)
            self.events.add(rate, partial(self._supervise, self._config.freq // rate), "supervisor")

    def _supervise(self, period: int, now: Snapshot) -> None:
        # Events also fire where a user steps to or sets a state, on which no flight may depend.
        if now.tick % period == 0:
            self.commands.supervise(now)

    def _due_events(self, due: float, last: float) -> list[int]:
        """Ticks of the next event and, as long as commands are known, of further due events."""
        commands, acting, commanded = self.commands, self.events.acting, self._commands_change
        is_known = self._door is None and not self.wrenches
        most = min(self._burst, self._engine.world.max_stretches) if is_known else 1
        ticks = [int(min(self._event_after(self.snapshot.tick, commanded=commanded), last))]
        while len(ticks) < most and ticks[-1] < last:
            if any(ticks[-1] % period == 0 for period in acting):
                break
            if commands.moving and self._engine.time_ns(ticks[-1]) >= commands.changes_ns:
                break
            event = int(min(self._event_after(ticks[-1], commanded=commanded), last))
            if event > due:
                break
            ticks.append(event)
        return ticks

    def capture(self) -> Checkpoint:
        """Capture everything that the future depends on, except scene and commands from outside.

        Raises:
            ValueError: A drone follows a setpoint of a class that cannot be stored.
        """
        self.take_commands()
        return Checkpoint(
            self._engine.capture(),
            about(
                self._engine.config,
                self._engine.names,
                tick=self.snapshot.tick,
                epoch=self.epoch,
                orders=self.commands.capture(),
                wrenches=self.wrenches.capture(),
                lives=self.lives.capture(),
                wind=asdict(self._engine.wind),
                gusts=self._engine.world.gusts,
                gains=self._engine.tuned,
                by_door=self.by_door,
            ),
        )

    def take_commands(self) -> None:
        """Put posted commands into force; all of them apply from this tick on."""
        if self.until is None:  # otherwise this waits until the others agree
            self._put_into_force()

    def _put_into_force(self) -> None:
        self._take_posted()
        names, commands = self.commands.commands([self.snapshot.time_ns])
        if names:
            self._engine.set_commands(names, commands[0])

    def _take_posted(self) -> None:
        """Put posted commands into force, except those that change with time."""
        engine = self._engine
        names, commands = self.commands.take(self.snapshot)
        if names:
            engine.set_commands(names, commands)
        for name in self.commands.take_stopped():
            engine.disarm(name)
        for name, why in self.commands.take_failed().items():
            self.lose(name, why)
        wrench = self.wrenches.take(self.snapshot)
        if wrench is not None:
            engine.wrench[engine.rows] = wrench

    def withdraw(self, name: str, why: str) -> None:
        """Take a drone out of service until it is reset."""
        self._failed[name] = why
        self._engine.withdraw(name, self.snapshot.tick)

    def refresh(self, tick: int) -> None:
        """Make the engine's state, at some tick, the one that others see."""
        self._accept(self.evaluate(tick))

    def evaluate(self, tick: int) -> Snapshot:
        """Return the engine's state, at some tick; no one else sees it yet."""
        (snapshot,) = self._evaluate(tick, [0])
        return snapshot

    def hand_out(self) -> None:
        """Publish the state to all."""
        self._hand_out(every=True)

    def note_lost(self) -> None:
        """Report the drones that are lost."""
        lost, freq = self._engine.lost, self._engine.freq
        self._failed = {name: why for name, why in self._failed.items() if name in lost}
        for name in lost.keys() - self._failed.keys():
            self._failed[name] = _NO_ACTION if self._engine.policy_failed(name) else _NO_DRONE
        self.commands.lose(self._failed)
        self._health.note_faults(
            {
                name: f"lost by {tick / freq:.3f} s: {self._failed[name]}. "
                "It is held where it was before, rotors stopped, until it is reset"
                for name, tick in lost.items()
            }
        )

    def known(self, names: Iterable[str], known: Sequence[str] | None = None) -> tuple[str, ...]:
        """Return the names, each once, if they are known; by default those of the present drones.

        Raises:
            ValueError: There is no such drone.
        """
        known = self.snapshot.names if known is None else known
        given, present = tuple(dict.fromkeys(names)), frozenset(known)
        for name in given:
            if name not in present:
                raise ValueError(unknown("drone", name, known))
        return given

    def _evaluate(self, tick: int, stretches: Sequence[int], *changing: Any) -> list[Snapshot]:
        """Advance as `Engine.advance` does, and note lost drones."""
        health, engine = self._health, self._engine
        health.doing = "the compiled step"
        snapshots = engine.advance(tick, stretches, self.epoch, *changing)
        if engine.lost.keys() != health.faults.keys():
            self.note_lost()
        return snapshots

    def _accept(self, snapshot: Snapshot) -> None:
        """Make a snapshot the state that others see."""
        self.snapshot = snapshot
        self._health.doing = "the mirror"
        self.mirror.write(snapshot)

    def _hand_out(self, *, every: bool = False) -> None:
        """Publish the state to the door, then to all others, the clock first among them."""
        if self._door is not None and (every or self.snapshot.tick % self._door.period == 0):
            self._door.show(self.snapshot, self.mirror)
        self.events.fire(self.snapshot, every=every)

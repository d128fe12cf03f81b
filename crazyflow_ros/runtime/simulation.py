"""The simulation that one thread advances, tick by tick. It has no thread of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.control import Control
from crazyflow_ros.engine.authority import Authority
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.flight.supervisor import RATE
from crazyflow_ros.runtime.door import DoorGuard
from crazyflow_ros.runtime.door_levels import DoorLevels
from crazyflow_ros.runtime.drone_commands import DroneCommands
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.lost_drones import LostDrones
from crazyflow_ros.runtime.news import News
from crazyflow_ros.runtime.overseers import Overseers
from crazyflow_ros.runtime.resets import DroneLives, ResetEvent, ResetScope
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.schedule import Events
from crazyflow_ros.runtime.wrenches import Wrenches

FIRST_TICK = 1  # ROS takes a time of zero to mean that the clock has not started
_BURST = 4e-3  # s of the thread's processor time between two looks at requests and commands
_SHORTEST = 1e-6  # s that a burst takes at least


class Simulation:
    """The drones with their mirror, commands, external forces and events.

    Args:
        config: The configuration.
        engine: Advances the drones.
        roster: Holds the mirror and the obstacles.
        door: Door through which others fly drones, instead of `commands`; None without a door.
        news: Tells others what happens.
        health: Logs failures.
        interrupted: Whether the thread has something else to do than to wait for the door.

    Attributes:
        config, engine, door, news, health: As given.
        mirror: The MuJoCo side, written before each event.
        snapshot: The latest state.
        epoch: Number of resets so far.
        commands: Commands of the drones.
        lost: Drones that are out of service.
        wrenches: External forces and torques on them.
        lives: How often each drone was reset, and when.
        events: Callbacks, the clock first among them.
        control: Control mode of the commands.
        control_period: Ticks between two runs of the outermost controller.
    """

    def __init__(
        self,
        config: SimulationConfig,
        engine: Engine,
        roster: Roster,
        door: DoorGuard | None,
        news: News,
        health: Health,
        interrupted: Callable[[], bool],
    ) -> None:
        self.config, self.engine, self.door = config, engine, door
        self.news, self.health, self._interrupted = news, health, interrupted
        self.control: Control = engine.control
        alone = door is not None and door.flies_all
        self.control_period = door.period if door and alone else engine.control_period
        self.mirror, self._roster = roster.mirror, roster
        self.epoch = 0
        (self.snapshot,) = engine.advance(FIRST_TICK, [0], self.epoch)
        self.lives = DroneLives(self.snapshot)
        self._burst = 1  # events in one compiled call
        self.commands = DroneCommands(
            Rules.of(config.drone_model, config.flight, engine.world.conditions),
            self.control,
            self.control_period,
            news,
            health,
            sight=Authority(config, engine).sight,
            neighbour=self._neighbour,
            roster=roster,
        )
        self.lost = LostDrones(engine, self.commands, health)
        self._levels = DoorLevels(config, door, self.commands, health) if door else None
        self.wrenches = Wrenches(config.freq, news.on_wrench, news.on_body_wrench)
        self.events = Events(config.freq, health)
        self._check_period = 0  # ticks between two checks of the flights
        if not alone:
            rate = next(rate for rate in range(RATE, 0, -1) if config.freq % rate == 0)
            self._check_period = config.freq // rate
            self.events.periods.add(self._check_period)
            self.events.acting.add(self._check_period)
        self._oversee_period = 0  # ticks between two checks by the firmware; 0: none

    def hand_over(self, overseers: Overseers) -> None:
        """Let the firmware of the drones decide when rotors stop."""
        rate = math.gcd(self.config.freq, overseers.rate)
        self._oversee_period = period = self.config.freq // rate
        self.commands.overseers = overseers
        self.events.periods.add(period)
        self.events.acting.add(period)

    # The path of ticks, in order.

    def advance(self, due: float, limit: float = math.inf) -> int:
        """See `Driver`. A command takes effect at the tick at which it is found here.

        Events that are due soon follow in the same compiled call, as many as take a few
        milliseconds of processor time.
        """
        if self.door is not None and not self._collect(self.door):
            return 0
        began = time.thread_time()
        self._take_posted(self.withdraw)
        commands, start = self.commands, self.snapshot.tick
        last = start + limit
        ticks = [int(min(self.event_after(start), last))]
        if self._burst > 1 and ticks[0] < min(due, last):
            self._add_due_events(ticks, due, last)
        if commands.moving:
            times_ns = [self.snapshot.time_ns, *map(self.engine.output.time_ns, ticks[:-1])]
            self.run(ticks, last, *commands.commands(times_ns))
        else:
            self.run(ticks, last)
        # The thread's clock may not have advanced: its resolution is not that of the monotonic one.
        took = max(time.thread_time() - began, _SHORTEST)
        self._burst = max(1, int(_BURST * len(ticks) / took))
        return ticks[-1] - start

    def _collect(self, door: DoorGuard) -> bool:
        """Collect the door's commands, if they are due; return False if interrupted."""
        if self.snapshot.tick % door.period:
            return True
        command, level = self.engine.door_commands
        if not door.collect(self.snapshot, command, level, self._interrupted):
            return False
        assert self._levels is not None
        self._levels.resolve(self.snapshot, command, level)
        return True

    def _take_posted(self, lose: Callable[[str, str], object]) -> None:
        """Put posted commands into force, except those that change with time; see `take_up`."""
        engine, commands, wrenches = self.engine, self.commands, self.wrenches
        if commands.posted or commands.moving:
            names, constant = commands.take(self.snapshot)
            if names:
                engine.set_commands(names, constant)
        while commands.stopped:
            engine.disarm(commands.stopped.pop())
        while commands.failed:
            lose(*commands.failed.popitem())
        if wrenches.posted or wrenches.active:
            engine.wrench[engine.rows] = wrenches.take(self.snapshot, engine.bodies)

    def event_after(self, tick: int) -> int:
        """Tick of the next event; nothing reads or changes the state before it."""
        periods, wrenches = self.events.periods, self.wrenches
        if self.door is not None:
            periods = periods | {self.door.period}
        if self.commands.moving or wrenches.active or not periods:  # each time controllers run
            periods = periods | {self.control_period}
        event = min([(tick // period + 1) * period for period in periods])
        return int(min(event, wrenches.next_end)) if wrenches.active else event

    def _add_due_events(self, ticks: list[int], due: float, last: float) -> None:
        """Add the ticks of further due events, for as long as commands are known."""
        commands, acting, wrenches = self.commands, self.events.acting, self.wrenches
        is_known = self.door is None and not wrenches.active
        most = min(self._burst, self.engine.world.max_stretches) if is_known else 1
        while len(ticks) < most and ticks[-1] < last:
            if any(ticks[-1] % period == 0 for period in acting):
                break
            if commands.moving and self.engine.output.time_ns(ticks[-1]) >= commands.changes_ns:
                break
            event = int(min(self.event_after(ticks[-1]), last))
            if event > due:
                break
            ticks.append(event)

    def run(self, ticks: Sequence[int], last: float, *changing: Any) -> None:
        """Compute some ticks in one compiled call, and call the callbacks of each.

        Args:
            ticks: The ticks, in ascending order.
            last: At this tick all callbacks are called, not only those that are due.
            *changing: Drones whose commands change from tick to tick, and these commands, see
                `Engine.advance`.
        """
        start = self.snapshot.tick
        stretches = [tick - before for before, tick in zip([start, *ticks], ticks)]
        snapshots = self._evaluate(start, stretches, *changing)
        if self.commands.moving or self.commands.felt is not None:
            self.commands.feel(snapshots[:-1])  # the last one is for the next `take`
        for snapshot in snapshots:
            self.accept(snapshot)
            self._hand_out(every=snapshot.tick == last)

    def _evaluate(self, tick: int, stretches: Sequence[int], *changing: Any) -> list[Snapshot]:
        """Advance as `Engine.advance` does, and note lost drones."""
        health, engine = self.health, self.engine
        health.doing = "the compiled step"
        snapshots = engine.advance(tick, stretches, self.epoch, *changing)
        if engine.bodies is not None and engine.bodies.failed:
            health.warn(f"the bodies of the world are back at their start: {engine.bodies.failed}")
            engine.bodies.failed = ""
        if engine.lost.keys() != health.faults.keys():
            self.lost.report()
        return snapshots

    def accept(self, snapshot: Snapshot) -> None:
        """Make a snapshot the state that others see."""
        self.snapshot = snapshot
        self.health.doing = "the mirror"
        self.mirror.write(snapshot)

    def _hand_out(self, *, every: bool) -> None:
        """Publish the state to the door, then to all others, the clock first among them.

        Then check how drones fly, but only at multiples of a period: no flight may depend on the
        ticks to which a user steps, or at which he sets a state.
        """
        now = self.snapshot
        if self.door is not None and (every or now.tick % self.door.period == 0):
            self.door.show(now, self.mirror, self.engine.bodies)
        if self.events.callbacks:
            self.events.fire(now, every=every)
        if self._oversee_period and now.tick % self._oversee_period == 0:
            assert self.commands.overseers is not None
            self.health.call("firmware's supervisor", self.commands.overseers.check, now)
        if self._check_period and now.tick % self._check_period == 0:
            self.health.call("supervisor", self.commands.supervise, now)
            for name, why in self._roster.fallen(now):
                self.withdraw(name, why)
                self.lost.report()

    # What else a `Driver` has.

    def take_up(self, lose: Callable[[str, str], object] | None = None) -> None:
        """See `Driver`.

        Args:
            lose: Takes a drone whose setpoint failed out of service, with the reason; by default
                `withdraw`.
        """
        self._take_posted(lose or self.withdraw)
        if self.commands.moving:
            names, commands = self.commands.commands([self.snapshot.time_ns])
            self.engine.set_commands(names, commands[0])

    def idle(self) -> None:
        """See `Driver`; does nothing, so the loop does not call it."""

    def set_paused(self, paused: bool) -> None:
        """Tell the door that time stands still, or runs again."""
        if self.door is not None:
            self.door.set_paused(paused)

    def close(self) -> None:
        """See `Driver`."""
        if self.door is not None:
            self.door.close()

    # Drones that touch something, or are lost.

    def _neighbour(self, state: Snapshot, row: int) -> str:
        """Name what a drone touches in a state of the present drones."""
        if state.names != self.mirror.names:  # drones have just come or gone
            return "something"
        drones, floor = self.config.drone_collisions, self.engine.world.conditions.floor
        found = self.mirror.neighbour(state, state.names[row], drones=drones, floor=floor)
        return found or "something"

    def withdraw(self, name: str, why: str) -> None:
        """Take a drone out of service until it is reset."""
        self.lost.withdraw(name, why, self.snapshot.tick)

    # Other states than that of the next tick.

    def evaluate(self, tick: int) -> Snapshot:
        """Return the engine's state, at some tick; no one else sees it yet."""
        (snapshot,) = self._evaluate(tick, [0])
        return snapshot

    def refresh(self, tick: int) -> None:
        """Make the engine's state, at some tick, the one that others see."""
        self.accept(self.evaluate(tick))

    def show(self, tick: int | None = None) -> None:
        """Publish the engine's state after a change, for the present tick or another."""
        self.refresh(self.snapshot.tick if tick is None else tick)
        self._hand_out(every=True)
        self.news.on_change.tell(self.snapshot)

    def tell_reset(
        self,
        scope: ResetScope,
        drones: tuple[str, ...],
        *,
        charged: bool | None = None,
        fill_initial_state: bool | None = None,
    ) -> None:
        """Publish the state after a reset, see `ResetEvent`.

        The mirror's reset callback gets `fill_initial_state`; with None, it is not called.
        """
        event = ResetEvent(self.snapshot, scope, drones, charged)
        self.lives.note_reset(event)
        self.news.on_reset.tell(event)
        self._hand_out(every=True)
        if fill_initial_state is not None:
            self.notify_mirror(fill_initial_state)
        self.news.on_change.tell(self.snapshot)

    def notify_mirror(self, fill_initial_state: bool) -> None:
        """Run the mirror's reset callback."""
        notify = self.mirror.notify_reset
        self.health.call("reset callback of the mirror", notify, fill_initial_state)

    def drop_commands(self, names: Collection[str]) -> None:
        """Drop the commands of drones, and end the forces on them."""
        self.commands.clear(names)
        self.wrenches.clear(names)
        if self.door is not None:
            self.door.forget(names)

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

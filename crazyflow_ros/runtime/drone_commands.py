"""Commands of each drone, from the tick at which they take effect."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from crazyflow_ros.control import Control
from crazyflow_ros.engine.levels import Level, rows, turning_rows
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight import FlightEvent, FlightState, Setpoint
from crazyflow_ros.flight.commanders import Commanders
from crazyflow_ros.flight.courses import Courses
from crazyflow_ros.flight.doubts import doubts
from crazyflow_ros.flight.fleet_observation import FleetObservation
from crazyflow_ros.flight.plan import Plan, Rules, StartState
from crazyflow_ros.flight.setpoint_values import to_commander
from crazyflow_ros.flight.supervisor import Supervisor
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.news import News, Setting
from crazyflow_ros.runtime.overseers import Overseers
from crazyflow_ros.runtime.requests import Response
from crazyflow_ros.runtime.roster import Roster


class DroneCommands:
    """The latest setpoint of each drone, and its commander. Any thread posts, one thread follows.

    Args:
        rules: Limits and figures of all drones.
        control: Control mode of the commands.
        period: Ticks between runs of the controllers; courses end, and setpoints lapse, only there.
        news: Tells others of setpoints that take effect, and of flight events.
        health: Logs drones that fell, and doubtful setpoints.
        sight: Returns what is seen of the drones, and what they can do.
        neighbour: Takes a state and the row of a drone that touches something, and names it.
        roster: Holds the obstacles of the world.

    Attributes:
        commanders: Decide which setpoints are in force.
        rules, sight: Those of the present world.
        posted: The setpoints for the next `take`.
        moving: Drones whose command changes with time.
        felt: (M,) largest contact of each drone since controllers ran [N]; None if none moves.
        changes_ns: Simulated time until which commands depend on time alone [ns].
        stopped: Drones whose rotors are to stop; the caller stops them and empties the set.
        failed: Drones to take out of service because their setpoint failed, and why; likewise.
        overseers: Decide when rotors stop; None leaves it to the flight supervisor.
        states: States of the drones that were commanded; a new dictionary after each change.
    """

    def __init__(
        self,
        rules: Rules,
        control: Control,
        period: int,
        news: News,
        health: Health,
        sight: Callable[[Snapshot], FleetObservation],
        neighbour: Callable[[Snapshot, int], str],
        roster: Roster,
    ) -> None:
        self.rules, self._period, self._news, self._health = rules, period, news, health
        self.sight, self._neighbour, self._roster = sight, neighbour, roster
        self._supervisor = Supervisor(rules)
        self.commanders = Commanders(rules)
        self._lock = threading.Lock()  # guards what is posted
        self.posted: dict[str, Setpoint] = {}
        self.felt: np.ndarray | None = None
        self._courses = courses = Courses(rules.drag, rules.gravity)
        self._control, self._width = control, control.sizes_for(rules.n_rotors)[0] + 1
        self.moving, self.changes_ns = courses.changes, 0.0
        self.stopped, self.failed = set[str](), dict[str, str]()
        self.states: dict[str, FlightState] = {}
        self.overseers: Overseers | None = None

    def use(self, rules: Rules, sight: Callable[[Snapshot], FleetObservation]) -> None:
        """Fly by the rules of another world from the next setpoint on."""
        self.rules, self.sight, self._supervisor.rules = rules, sight, rules
        self._courses.drag, self._courses.gravity = rules.drag, rules.gravity
        self.commanders.use(rules)

    def post(self, setpoints: Mapping[str, Setpoint]) -> None:
        """Post setpoints, by drone; the latest one wins. From any thread."""
        with self._lock:
            self.posted.update(setpoints)

    # What each tick does, in order; then requests, and changes of the state.

    def take(self, now: Snapshot) -> tuple[list[str], np.ndarray]:
        """Put the posted setpoints into force. Call it if there are any, or `moving` drones.

        Returns:
            The drones with a new command that does not change, and these commands with levels.
        """
        with self._lock:
            posted, self.posted = self.posted, {}
        sight = None
        if posted:
            sight, row_of = self.sight(now), {name: row for row, name in enumerate(now.names)}
            for name, setpoint in posted.items():
                if name in row_of:  # else it was removed meanwhile
                    self._start(name, setpoint, sight.start(row_of[name]), now.tick)
            self._show_states()
        self.feel([now])
        if now.time_ns < self.changes_ns:
            return [], np.zeros((0, 0))
        constant, changes, commanders = {}, self._courses.changes, self.commanders
        if due := [name for name, change in changes.items() if change <= now.time_ns]:
            sight = sight or self.sight(now)
            states = [commanders[name].state for name in due]
            found = [(name, self._look_at(name, now, sight)) for name in due]
            constant = {name: command for name, command in found if command is not None}
            if states != [commanders[name].state for name in due]:
                self._show_states()
        self.changes_ns = min(changes.values(), default=inf)
        return list(constant), np.array(list(constant.values()))

    def _start(self, name: str, setpoint: Setpoint, start: StartState, tick: int) -> None:
        """Put a setpoint into force."""
        try:
            plan = self.commanders[name].command(setpoint, start)
        except ValueError as error:
            self._health.warn(f"{name} ignores {setpoint.title}: {error}")
        except Exception as error:  # of this drone alone
            self._fail(name, error)
        else:
            if plan is not None and plan.note:
                self._health.inform(f"{name} {plan.note}")
            self._note(name, setpoint, plan, tick)

    def _note(self, name: str, setpoint: Setpoint, plan: Plan | None, tick: int) -> None:
        """Report that a setpoint has taken effect, and warn if it is doubtful."""
        if plan is not None:
            self._follow(name)
            self._health.doing = what = "check of a setpoint"
            try:
                commander = self.commanders[name]
                if (order := commander.order) is not None:
                    world = self._roster.surroundings
                    for doubt in doubts(order, self.rules, world, commander.reported):
                        self._health.warn(f"{name}: {doubt}")
            except Exception as error:
                self._health.note_failure(what, error)
        if self.overseers is not None:
            self.overseers.note(name, setpoint)
        if self._news.on_command.callbacks:
            self._news.on_command.tell(name, setpoint, tick)

    def _look_at(self, name: str, now: Snapshot, sight: FleetObservation) -> np.ndarray | None:
        """Look up the present command of a drone; return it with its level if it stays."""
        commander, courses, time_ns = self.commanders[name], self._courses, now.time_ns
        constant = None
        try:
            is_due, row = now.tick % self._period == 0, now.names.index
            if is_due and (text := commander.update(time_ns, lambda: sight.start(row(name)))):
                self.announce(FlightEvent(time_ns, name, "no setpoint", text))
        except Exception as error:  # of this drone alone
            self._fail(name, error)
            return None
        if (order := commander.order) is None:
            self._follow(name)
            return None
        change = min(commander.next_change_ns(), courses.put(name, order, time_ns))
        if order.plan.command is not None:
            level = Level[(order.plan.mode or self._control).name]
            constant = rows(level, order.plan.command)
        elif change == inf and order.plan.held is None:
            constant = rows(Level.state, courses.commands([time_ns], name)[1][0, 0])
        if change == inf and order.plan.held is None:
            courses.rest(name)
        else:
            courses.changes[name] = change
        return constant

    def _follow(self, name: str) -> None:
        """Look at a commander in the next `take`."""
        if self.commanders[name].order is None:
            self._courses.drop(name)
            self.stopped.add(name)
        else:
            self._courses.changes[name] = -inf
            self.stopped.discard(name)
        self.changes_ns = 0

    def commands(self, times_ns: Sequence[int]) -> tuple[list[str], np.ndarray]:
        """Compute the commands of `moving` drones, after `take`, at times (n,) [ns].

        Only the first time may be later than `changes_ns`.

        Returns:
            The names of these drones, and their commands (n, m, k + 1) with levels.
        """
        (names, numbers), held = self._courses.commands(times_ns), self._courses.held
        n_courses, control = len(names), self._control
        found = np.empty((len(times_ns), n_courses + len(held), self._width))
        if names:
            found[:, :n_courses, :-1], found[:, :n_courses, -1] = numbers, Level.state
        for i, order in enumerate(held.values(), n_courses):
            assert order.plan.held is not None
            found[:, i] = turning_rows(order.plan.held, map(order.seconds, times_ns), control)
        return [*names, *held], found

    def feel(self, seen: Sequence[Snapshot]) -> None:
        """Record what drones touch, each time their controllers run."""
        if not self.moving:
            self.felt = None
            return
        for now in seen:
            felt = np.zeros(0) if self.felt is None else self.felt
            same = len(felt) == len(now.names)  # otherwise drones came or went
            self.felt = felt = np.maximum(felt, now.impact) if same else now.impact
            if now.tick % self._period == 0:
                impact = np.maximum(felt, np.abs(now.contact[:, :3]).max(axis=1))
                self._supervisor.note_contacts(
                    impact, now.names, now.pos, self.commanders, partial(self._neighbour, now)
                )
                self.felt = np.zeros(len(now.names))

    def supervise(self, now: Snapshot) -> None:
        """Detect drones that fell, and restart the courses of drones that lost them."""
        commanders, neighbour = self.commanders, partial(self._neighbour, now)
        before = {name: commander.order for name, commander in commanders.items()}
        if not any(before.values()):
            return
        sight = self.sight(now)
        courses = self._courses.references(now.names, map(before.get, now.names), now.time_ns)
        given, tells = (sight, commanders, courses, neighbour), self.overseers is not None
        for event in self._supervisor.check(*given, only_tells=tells):
            self.announce(event)
        changed = [name for name, order in before.items() if commanders[name].order is not order]
        for name in changed:  # not all changes are events
            self._follow(name)
        if changed:
            self._show_states()

    def halt(self, name: str, state: FlightState, why: str = "") -> None:
        """Stop the rotors of a drone.

        Args:
            name: Name of the drone.
            state: Its state from now on; a flying one flies on with the next setpoint.
            why: Why it is in that state.
        """
        commander = self.commanders[name]
        if state.stands:
            commander.reported.clear()
        commander.stop(state, why)
        self._follow(name)
        self._show_states()
        told = {"name": name, "state": state.value, "why": why}
        self._news.on_setting.tell(Setting("halt", told))

    def drop_posted(self, name: str) -> None:
        """Drop a setpoint that has not yet taken effect."""
        with self._lock:
            self.posted.pop(name, None)

    def set_armed(self, name: str, armed: bool) -> None:
        """Note whether a drone may take off."""
        if name in self.commanders or not armed:
            self.commanders[name].armed = armed

    def announce(self, event: FlightEvent) -> None:
        """Log an event, and tell others of it."""
        self._health.warn(f"{event.drone}: {event.text}")
        self._news.on_flight_event.tell(event)

    def command(self, setpoints: Mapping[str, Setpoint], now: Snapshot) -> Response:
        """Put setpoints into force, all at once. A refused setpoint changes nothing."""
        response, sight = Response([], []), self.sight(now)
        for name, setpoint in setpoints.items():
            if name not in now.names:  # it was removed meanwhile
                response.refused.append(f"{name} has gone")
                continue
            try:
                plan = self.commanders[name].command(setpoint, sight.start(now.names.index(name)))
            except ValueError as error:
                response.refused.append(f"{name}: {error}")
                continue
            if plan is not None and plan.note:
                response.notes.append(f"{name} {plan.note}")
            self.drop_posted(name)  # it was posted before
            self._note(name, setpoint, plan, now.tick)
        self._show_states()
        return response

    def clear(self, names: Iterable[str]) -> None:
        """Drop commands of drones, including posted ones: they were meant for the flight so far."""
        with self._lock:
            for name in names:
                self.posted.pop(name, None)
                self.commanders.pop(name, None)
                self._courses.drop(name)
                self.stopped.discard(name)
        self._show_states()

    def rewind(self, time_ns: int) -> None:
        """Move the clock back: setpoints in force continue, posted ones are dropped."""
        with self._lock:
            self.posted.clear()
        for commander in self.commanders.values():
            commander.rewind(time_ns)
        self._courses.look_at(list(self.moving))
        self.changes_ns = 0

    def restore(self, orders: Mapping[str, Any]) -> None:
        """Follow the result of `Commanders.capture`, and nothing else."""
        with self._lock:
            self.posted.clear()
        self.clear(list(self.commanders))
        for name, values in orders.items():
            self.commanders[name] = to_commander(values, self.rules)
        self._courses.look_at(name for name, values in orders.items() if values["moving"])
        self.changes_ns = 0
        self._show_states()

    def lose(self, lost: Mapping[str, str]) -> None:
        """Drop the setpoints of drones that are out of service, each with a reason."""
        for name, why in lost.items():
            if (commander := self.commanders[name]).state is not FlightState.lost:
                commander.stop(FlightState.lost, why)
                self._courses.drop(name)
        self._show_states()

    def moved(self, names: Iterable[str], now: Snapshot) -> None:
        """Restart the courses of drones that were put elsewhere, where they are now."""
        sight = self.sight(now)
        for name in names:
            commander = self.commanders.get(name)
            if commander is not None and commander.restart(sight.start(now.names.index(name))):
                self._follow(name)

    def _fail(self, name: str, error: Exception) -> None:
        self._health.note_failure(f"the setpoint of {name}", error)
        self.commanders[name].stop(FlightState.crashed, "its setpoint failed")
        self._courses.drop(name)
        self.failed[name] = f"its setpoint failed with {type(error).__name__}: {error}"

    def _show_states(self) -> None:
        self.states = {name: commander.state for name, commander in self.commanders.items()}

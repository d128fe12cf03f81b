"""The simulation: all that one thread owns and advances, tick by tick. No thread of its own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import load_drone
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.runtime.checkpoint import Checkpoint, about
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.engine import Engine, checked_pose
from crazyflow_ros.runtime.events import Events, SnapshotCallback
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.levels import resolve
from crazyflow_ros.runtime.orders import Orders
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.reset import ResetEvent, ResetScope
from crazyflow_ros.runtime.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.runtime.wrenches import Wrench, Wrenches
from crazyflow_ros.scene import Mirror, MirrorState, build_spec
from crazyflow_ros.scene.obstacles import obstacles_of

T = TypeVar("T")
ResetCallback = Callable[[ResetEvent], None]
RestoreCallback = Callable[[Checkpoint], None]
SceneEdit = Callable[[mujoco.MjSpec], None]

_BURST = 2e-3  # s of wall time without an eye for requests and commands
_MIN_SLOTS = 32  # shapes, from the first one on
_FIRST_TICK = 1  # ROS takes a clock of zero for one that has not started


def _no_edit(spec: mujoco.MjSpec) -> None:
    """Leave the scene as it is."""


class Simulation:
    """The drones, their mirror, what they are told, and who hears of them.

    Args:
        config: What is simulated.
        names: Of the drones.
        source: Brings the commands, instead of `orders`.
        health: Takes note of what goes wrong.

    Attributes:
        mirror: The MuJoCo side, written before each event.
        snapshot: The latest state.
        epoch: Resets so far.
        orders: What the drones are told.
        wrenches: External forces and torques on them.
        events: Callbacks, the clock first among them.
        reset_callbacks: Are called after each reset.
        change_callbacks: Are called after each change by hand, also after those of a reset.
        restore_callbacks: Are called before the state is that of a checkpoint.
        roster_callbacks: Are called when drones have come or gone, before anybody sees them.
        control: What commands mean.
        control_period: Ticks between two runs of the outermost controller.

    Raises:
        ValueError: The configuration or a name is not usable; the message says which.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        source: CommandSource | None,
        health: Health,
    ) -> None:
        self._health = health
        self._source, self._mass = source, load_drone(config.drone_model)["mass"]
        self._engine = engine = Engine(
            config, names, n_slots=0 if source else config.max_drones, levels=source is not None
        )
        self.control: Control = engine.control
        self.control_period = source.period if source else engine.control_period
        self._config, self._scene = config, config.scene
        self._edit: SceneEdit = _no_edit
        self._ignored: tuple[str, ...] = ()
        self._start = dict(zip(names, engine.initial_poses()))
        self.mirror = Mirror(self._model(self._start), names)
        self._see_obstacles(at_start=True)
        self.epoch = 0
        (self.snapshot,) = engine.advance(_FIRST_TICK, [0], self.epoch)
        self._burst = 1  # events in one compiled call
        self.orders = Orders(self.control, health)
        self.wrenches = Wrenches(config.freq, health)
        self.events = Events(config.freq, health)
        self.reset_callbacks: list[ResetCallback] = []
        self.change_callbacks: list[SnapshotCallback] = []
        self.restore_callbacks: list[RestoreCallback] = []
        self.roster_callbacks: list[SnapshotCallback] = []

    def next_event(self) -> int:
        """The tick up to which nobody wants to know or to change anything."""
        return self._event_after(self.snapshot.tick, commanded=self._commands_change)

    @property
    def _commands_change(self) -> bool:
        """What the drones are told may be something else each time their controllers run."""
        return bool(self.orders.moving or self.wrenches or self._source is not None)

    def _event_after(self, tick: int, *, commanded: bool) -> int:
        periods = self.events.periods
        if commanded or not periods:
            periods = periods | {self.control_period}
        event = min((tick // period + 1) * period for period in periods)
        return int(min(event, self.wrenches.next_end))

    def collect(self, interrupted: Callable[[], bool]) -> bool:
        """Have the source's commands, if they are due; False if there is something else to do."""
        source, engine = self._source, self._engine
        if source is None or self.snapshot.tick % source.period:
            return True
        self._health.doing = "waiting for commands"
        try:
            if not source.collect(self.snapshot, engine.command, engine.armed, interrupted):
                return False
        except Exception as error:  # the last commands hold
            self._health.note_failure("the source of commands", error)
        resolve(engine.command, engine.armed, self.snapshot.quat, self._mass)
        return True

    def advance(self, due: float, limit: float = math.inf) -> int:
        """Advance to the next event, and let know whom it concerns.

        Events that are due as well follow at once, in one compiled call, as many as take a
        millisecond or two.

        Args:
            due: The tick up to which events are due.
            limit: Most ticks to advance; with the last of them, everybody is let know.

        Returns:
            Number of ticks.
        """
        began = time.perf_counter()
        self._take_commands()
        start = self.snapshot.tick
        ticks = self._due_events(due, start + limit)
        for snapshot in self._evaluate(start, np.diff(ticks, prepend=start).tolist()):
            self._accept(snapshot)
            self._hand_out(every=snapshot.tick == start + limit)
        per_event = (time.perf_counter() - began) / len(ticks)
        self._burst = max(1, int(_BURST / per_event))
        return ticks[-1] - start

    def _due_events(self, due: float, last: float) -> list[int]:
        """Ticks of the next event and, as long as commands stay, of others that are due."""
        commanded, acting = self._commands_change, self.events.acting
        most = 1 if commanded else min(self._burst, self._engine.max_stretches)
        ticks = [int(min(self._event_after(self.snapshot.tick, commanded=commanded), last))]
        while len(ticks) < most and ticks[-1] < last:
            if any(ticks[-1] % period == 0 for period in acting):
                break
            event = int(min(self._event_after(ticks[-1], commanded=False), last))
            if event > due:
                break
            ticks.append(event)
        return ticks

    def reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
    ) -> None:
        """Put things back, in one step: nobody sees anything in between.

        Args:
            scope: What.
            drones: Only these, whose state it is then; the epoch stays, as does time.
            states: What drones are put into afterwards.

        Raises:
            ValueError: There is no such drone, or the scope is not one of single drones.
        """
        before = self.snapshot.time_ns
        if drones is not None and scope is not ResetScope.state:
            raise ValueError(f"of single drones only the state can be reset, not {scope}")
        names = self.known(self.snapshot.names if drones is None else drones)
        if ResetScope.spawned in scope:
            names = tuple(self._start)
        fields = self._checked({} if states is None else states, names)
        if ResetScope.spawned in scope:
            self._assemble(self._start)
        tick = _FIRST_TICK if ResetScope.time in scope else self.snapshot.tick
        if drones is None:
            self.epoch += 1
        if ResetScope.state in scope:
            self._forget(names, everything=drones is None)
        else:
            names = ()
        if ResetScope.time in scope:
            self.orders.rewind(before - tick * 1_000_000_000 // self._engine.freq)
            self.wrenches.rewind(self.snapshot.tick - tick)
        for name, values in fields.items():
            self._engine.put([name], values)
        self._accept(*self._evaluate(tick, [0]))
        self._hand_out(every=True)
        if ResetScope.state in scope and drones is None:
            self._health.call("reset callback of the mirror", self.mirror.notify_reset, True)
        self._tell("reset callback", self.reset_callbacks, ResetEvent(self.snapshot, scope, names))
        self._tell("change callback", self.change_callbacks, self.snapshot)

    def set_states(self, states: Mapping[str, DroneState]) -> None:
        """Put drones into states, all at once.

        Raises:
            ValueError: There is no such drone, or a state is not one.
        """
        for name, values in self._checked(states, self.snapshot.names).items():
            self._engine.put([name], values)
        self.show()

    def set_state(self, state: MirrorState) -> None:
        """Put all drones into a state."""
        fields = {name: getattr(state, name) for name in SIZES}
        self._engine.put(self.snapshot.names, fields)
        self.show()

    def spawn(self, name: str, pose: ArrayLike | None) -> None:
        """Add a drone; with no slot free, compile anew.

        Args:
            name: Of no other drone.
            pose: (7,) position and attitude (xyzw), also after a reset; None: on the floor.

        Raises:
            ValueError: The name or the pose is not usable.
            InvalidState: The drones are commanded from outside.
        """
        self._check_roster_is_open()
        if name in self._engine.names:
            raise ValueError(f"there is a drone {name!r} already")
        place = self._engine.free_place() if pose is None else checked_pose("pose", pose)
        self._assemble({**self._roster(), name: place})
        self.show()

    def despawn(self, name: str) -> None:
        """Remove a drone.

        Raises:
            ValueError: There is no such drone.
            InvalidState: It is the last one, or the drones are commanded from outside.
        """
        self._check_roster_is_open()
        self.known([name])
        roster = self._roster()
        if len(roster) == 1:
            raise InvalidState(f"{name} is the last drone, it cannot be removed")
        del roster[name]
        self._assemble(roster)
        self.show()

    def set_scene(self, scene: str | Path | None, edit: SceneEdit | None) -> None:
        """Put the drones, as they are, into another scene.

        Args:
            scene: As in `SimulationConfig`; None is the present one.
            edit: Changes the specification that it is compiled from, now and each time that drones
                come or go; it may refuse with ValueError.

        Raises:
            ValueError: There is no such scene, or it does not compile; then nothing has changed.
        """
        before = self._scene, self._edit
        self._scene = self._scene if scene is None else str(scene)
        self._edit = _no_edit if edit is None else edit
        try:
            self.mirror.use(self._model(self._roster()), self._engine.names)
        except BaseException:
            self._scene, self._edit = before
            raise
        self._see_obstacles()
        self.show()

    def _check_roster_is_open(self) -> None:
        if self._source is not None:
            raise InvalidState("drones that ros2_control flies cannot be added or removed")

    def _roster(self) -> dict[str, np.ndarray]:
        """The drones, with their initial poses."""
        return dict(zip(self._engine.names, self._engine.initial_poses()))

    def _model(self, roster: Mapping[str, np.ndarray]) -> mujoco.MjModel:
        """The scene with some drones.

        Raises:
            ValueError: It does not compile.
        """
        spec = build_spec(
            self._config.drone_model,
            tuple(roster),
            scene=self._scene,
            poses=np.array(list(roster.values())),
        )
        self._edit(spec)
        return spec.compile()

    def _see_obstacles(self, *, at_start: bool = False) -> None:
        """Let the drones collide with what is in the mirror's model."""
        engine, model = self._engine, self.mirror.model
        room = engine.obstacles.n_slots if engine.obstacles is not None else 0
        found, ignored = obstacles_of(model, slots=room)
        for why in ignored:
            if why not in self._ignored:
                self._health.warn(why)
        self._ignored = ignored
        if found.n_slots > room:
            found, _ = obstacles_of(model, slots=max(_MIN_SLOTS, 2 * room))
            if not at_start:
                self._health.warn(
                    f"time stands while collisions with up to {found.n_slots} shapes are compiled"
                )
        engine.obstacles = found if found.n_slots else None

    def _assemble(self, roster: Mapping[str, np.ndarray]) -> None:
        """Make these the drones; those that stay do not notice.

        Raises:
            ValueError: They cannot be put into the scene; then nothing has changed.
        """
        engine, health, names = self._engine, self._health, tuple(roster)
        model = self._model(roster)
        gone = [name for name in engine.names if name not in roster]
        self.orders.clear(gone)
        self.wrenches.clear(gone)
        for name in gone:
            engine.remove(name)
        if len(names) > engine.n_slots:
            n_slots = max(len(names), 2 * engine.n_slots)
            health.warn(
                f"no room for {len(names)} drones: time stands while {n_slots} are compiled"
            )
            health.doing = f"compiling for {n_slots} drones"
            engine.resize(n_slots)
        for name in names:
            if name not in engine.names:
                engine.add(name, roster[name])
        engine.arrange(names)
        self.mirror.use(model, names)
        self._see_obstacles()
        self._accept(*self._evaluate(self.snapshot.tick, [0]))
        self._tell("roster callback", self.roster_callbacks, self.snapshot)

    def capture(self) -> Checkpoint:
        """All that the future depends on, but for the scene and what is commanded from outside.

        Raises:
            ValueError: A drone follows a setpoint of a kind that cannot be kept.
        """
        self._take_commands()  # they count from this tick on in any case
        return Checkpoint(
            self._engine.capture(),
            about(
                self._config,
                self._engine.names,
                tick=self.snapshot.tick,
                epoch=self.epoch,
                orders=self.orders.capture(),
                wrenches=self.wrenches.capture(),
            ),
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint; time and epoch are those of then.

        Raises:
            ValueError: It is not one of these drones; then nothing has changed.
        """
        engine, kept = self._engine, checkpoint.about
        checkpoint.check(self._config, engine.names, engine.capture())
        self._tell("restore callback", self.restore_callbacks, checkpoint)
        engine.restore(checkpoint.arrays)
        self.orders.restore(kept["orders"])
        self.wrenches.restore(kept["wrenches"])
        if self._source is not None:
            self._source.forget(np.arange(len(engine.names)))
        self._health.note_faults({name: self._why_lost(tick) for name, tick in engine.lost.items()})
        self.epoch = kept["epoch"]
        self._show(kept["tick"])

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._engine.capture_initial_state(self.snapshot)

    def show(self) -> None:
        """Hand out the state of the present tick, at the start and after a change by hand."""
        self._show(self.snapshot.tick)

    def _show(self, tick: int) -> None:
        self._accept(*self._evaluate(tick, [0]))
        self._hand_out(every=True)
        self._tell("change callback", self.change_callbacks, self.snapshot)

    def _tell(self, what: str, callbacks: Sequence[Callable[[T], None]], news: T) -> None:
        for callback in callbacks:
            self._health.call(what, callback, news)

    def _evaluate(self, tick: int, stretches: Sequence[int]) -> list[Snapshot]:
        """Advance from a tick by one or more stretches of ticks, and see who got lost."""
        health, engine = self._health, self._engine
        health.doing = "the compiled step"
        snapshots = engine.advance(tick, stretches, self.epoch)
        if len(engine.lost) != len(health.faults):
            health.note_faults({name: self._why_lost(tick) for name, tick in engine.lost.items()})
        return snapshots

    def _why_lost(self, tick: int) -> str:
        return (
            f"lost by {tick / self._engine.freq:.3f} s: its state was no longer that of a drone. "
            "It is held where it was before, rotors stopped, until it is reset"
        )

    def _accept(self, snapshot: Snapshot) -> None:
        """Make it the state that the world sees."""
        self.snapshot = snapshot
        self._health.doing = "the mirror"
        self.mirror.write(snapshot)

    def _forget(self, names: tuple[str, ...], *, everything: bool) -> None:
        """Put drones back to their initial state, and forget what they were told."""
        self.orders.clear(names)
        self.wrenches.clear(names)
        self._engine.reset(None if everything else names)
        if self._source is not None:
            rows = [self.snapshot.names.index(name) for name in names]
            self._source.forget(np.array(rows, int))

    def known(self, names: Iterable[str], known: Sequence[str] | None = None) -> tuple[str, ...]:
        """Drones by name, each once; by default those that there are.

        Raises:
            ValueError: There is no such drone.
        """
        known = self.snapshot.names if known is None else known
        for name in names:
            if name not in known:
                raise ValueError(f"unknown drone {name!r}, have {', '.join(known)}")
        return tuple(dict.fromkeys(names))

    def _checked(
        self, states: Mapping[str, DroneState], known: Sequence[str]
    ) -> dict[str, dict[str, np.ndarray]]:
        self.known(states, known)
        return {name: state.checked(name) for name, state in states.items()}

    def _take_commands(self) -> None:
        engine = self._engine
        for name, command in self.orders.take(self.snapshot).items():
            engine.tell(name, command)
        controls = self.mirror.staged_controls()
        if controls is not None:
            for name, wrench in zip(self.snapshot.names, controls.wrench):
                if wrench.any():
                    lasting = Wrench(wrench[:3], wrench[3:], math.inf)
                    self.wrenches.post(name, lasting, ("mirror", name))
                else:
                    self.wrenches.end(("mirror", name))
            if self.control is Control.rotor_vel and self._source is None:
                engine.command[engine.rows] = controls.rotor_speed / RPM
                engine.armed[engine.rows] = True
        wrench = self.wrenches.take(self.snapshot)
        if wrench is not None:
            engine.wrench[engine.rows] = wrench

    def _hand_out(self, *, every: bool = False) -> None:
        """Give the state to the source, then to all others, the clock first among them."""
        if self._source is not None and (every or self.snapshot.tick % self._source.period == 0):
            self._source.show(self.snapshot, self.mirror)
        self.events.fire(self.snapshot, every=every)

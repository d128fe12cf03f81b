"""Changes by hand: what requests do to a simulation between two ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.runtime.assembly import Assembly, SceneEdit
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.config import SimulationConfig
from crazyflow_ros.runtime.engine import Engine
from crazyflow_ros.runtime.events import SnapshotCallback
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.poses import checked_pose, free_place
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.reset import ResetEvent, ResetScope
from crazyflow_ros.runtime.simulation import FIRST_TICK, Simulation
from crazyflow_ros.runtime.snapshot import SIZES, DroneState
from crazyflow_ros.scene import MirrorState

T = TypeVar("T")
ResetCallback = Callable[[ResetEvent], None]
RestoreCallback = Callable[[Checkpoint], None]


class Changes:
    """Changes the state, the drones or the scene; afterwards everybody is let know.

    Args:
        config: What is simulated.
        simulation: Is changed.
        engine: Its engine.
        assembly: Its drones and scene.
        source: Brings the commands, instead of `simulation.orders`.
        health: Takes note of what goes wrong.

    Attributes:
        reset_callbacks: Are called after each reset, before anybody sees the state after it.
        change_callbacks: Are called after each change, also after those of a reset.
        restore_callbacks: Are called before the state is that of a checkpoint.
    """

    def __init__(
        self,
        config: SimulationConfig,
        simulation: Simulation,
        engine: Engine,
        assembly: Assembly,
        source: CommandSource | None,
        health: Health,
    ) -> None:
        self._config, self._simulation, self._engine = config, simulation, engine
        self._assembly, self._source, self._health = assembly, source, health
        self.reset_callbacks: list[ResetCallback] = []
        self.change_callbacks: list[SnapshotCallback] = []
        self.restore_callbacks: list[RestoreCallback] = []

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
        simulation = self._simulation
        before = simulation.snapshot.time_ns
        if drones is not None and scope is not ResetScope.state:
            raise ValueError(f"of single drones only the state can be reset, not {scope}")
        names = simulation.known(simulation.snapshot.names if drones is None else drones)
        if ResetScope.spawned in scope:
            names = tuple(self._assembly.start)
        fields = self._checked({} if states is None else states, names)
        if ResetScope.spawned in scope:
            self._assemble(self._assembly.start)
        tick = FIRST_TICK if ResetScope.time in scope else simulation.snapshot.tick
        if drones is None:
            simulation.epoch += 1
        if ResetScope.state in scope:
            self._forget(names, everything=drones is None)
        else:
            names = ()
        if ResetScope.time in scope:
            simulation.orders.rewind(before - tick * 1_000_000_000 // self._engine.freq)
            simulation.wrenches.rewind(simulation.snapshot.tick - tick)
        for name, values in fields.items():
            self._engine.put([name], values)
        simulation.refresh(tick)
        event = ResetEvent(simulation.snapshot, scope, names)
        simulation.lives.note_reset(event)
        self._tell("reset callback", self.reset_callbacks, event)
        simulation.hand_out()
        if ResetScope.state in scope and drones is None:
            self._health.call("reset callback of the mirror", simulation.mirror.notify_reset, True)
        self._tell("change callback", self.change_callbacks, simulation.snapshot)

    def set_states(self, states: Mapping[str, DroneState]) -> None:
        """Put drones into states, all at once.

        Raises:
            ValueError: There is no such drone, or a state is not one.
        """
        for name, values in self._checked(states, self._simulation.snapshot.names).items():
            self._engine.put([name], values)
        self.show()

    def set_state(self, state: MirrorState) -> None:
        """Put all drones into a state."""
        fields = {name: getattr(state, name) for name in SIZES}
        self._engine.put(self._simulation.snapshot.names, fields)
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
        if pose is None:
            place = free_place(self._config, self._simulation.snapshot.pos)
        else:
            place = checked_pose("pose", pose)
        self._assemble({**self._assembly.roster(), name: place})
        self.show()

    def despawn(self, name: str) -> None:
        """Remove a drone.

        Raises:
            ValueError: There is no such drone.
            InvalidState: It is the last one, or the drones are commanded from outside.
        """
        self._check_roster_is_open()
        self._simulation.known([name])
        roster = self._assembly.roster()
        if len(roster) == 1:
            raise InvalidState(f"{name} is the last drone, it cannot be removed")
        del roster[name]
        self._assemble(roster)
        self.show()

    def set_scene(self, scene: str | Path | None, edit: SceneEdit | None) -> None:
        """Put the drones, as they are, into another scene; see `Assembly.use_scene`."""
        self._assembly.use_scene(scene, edit)
        self.show()

    def set_obstacles(self, obstacles: Obstacles | None) -> None:
        """Let the drones collide with other things; see `Assembly.use_obstacles`."""
        self._assembly.use_obstacles(obstacles)
        self.show()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint; time and epoch are those of then.

        Raises:
            ValueError: It is not one of these drones; then nothing has changed.
        """
        simulation, engine, kept = self._simulation, self._engine, checkpoint.about
        checkpoint.check(self._config, engine.names, engine.capture())
        self._tell("restore callback", self.restore_callbacks, checkpoint)
        engine.restore(checkpoint.arrays)
        simulation.orders.restore(kept["orders"])
        simulation.wrenches.restore(kept["wrenches"])
        simulation.lives.restore(kept["lives"])
        if self._source is not None:
            self._source.forget(np.arange(len(engine.names)))
        simulation.note_lost()
        simulation.epoch = kept["epoch"]
        self._show(kept["tick"])

    def capture_initial_state(self) -> None:
        """Make the present state the initial one."""
        self._engine.capture_initial_state(self._simulation.snapshot)

    def show(self) -> None:
        """Hand out the state of the present tick, at the start and after a change by hand."""
        self._show(self._simulation.snapshot.tick)

    def _show(self, tick: int) -> None:
        self._simulation.refresh(tick)
        self._simulation.hand_out()
        self._tell("change callback", self.change_callbacks, self._simulation.snapshot)

    def _tell(self, what: str, callbacks: Sequence[Callable[[T], None]], news: T) -> None:
        for callback in callbacks:
            self._health.call(what, callback, news)

    def _check_roster_is_open(self) -> None:
        if self._source is not None:
            raise InvalidState("drones that ros2_control flies cannot be added or removed")

    def _assemble(self, roster: Mapping[str, np.ndarray]) -> None:
        """Make these the drones."""
        simulation = self._simulation
        gone = [name for name in simulation.snapshot.names if name not in roster]
        self._assembly.assemble(roster)
        simulation.orders.clear(gone)
        simulation.wrenches.clear(gone)
        simulation.refresh(simulation.snapshot.tick)
        simulation.lives.note_drones(simulation.snapshot)

    def _forget(self, names: tuple[str, ...], *, everything: bool) -> None:
        """Put drones back to their initial state, and forget what they were told."""
        self._simulation.orders.clear(names)
        self._simulation.wrenches.clear(names)
        self._engine.reset(None if everything else names)
        if self._source is not None:
            rows = [self._simulation.snapshot.names.index(name) for name in names]
            self._source.forget(np.array(rows, int))

    def _checked(
        self, states: Mapping[str, DroneState], known: Sequence[str]
    ) -> dict[str, dict[str, np.ndarray]]:
        self._simulation.known(states, known)
        return {name: state.checked(name) for name, state in states.items()}

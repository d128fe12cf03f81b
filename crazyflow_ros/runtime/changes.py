"""Changes by hand: what requests do to a simulation between two ticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from crazyflow_ros import limits
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.initial_poses import checked_pose, free_place
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.events import SnapshotCallback
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.reset import ResetEvent, ResetScope
from crazyflow_ros.runtime.roster import Assembly, Plan, Prepared, Reassembly, Scene, SceneEdit
from crazyflow_ros.runtime.simulation import FIRST_TICK, Simulation
from crazyflow_ros.scene import MirrorState

T = TypeVar("T")
ResetCallback = Callable[[ResetEvent], None]
RestoreCallback = Callable[[Checkpoint], None]
DisturbanceCallback = Callable[[Disturbance], None]
StateEdit = Callable[[Snapshot], MirrorState]
"""Makes of a state the one to go on from."""


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
        disturbance_callbacks: Are called when something begins to disturb the drones, before
            anybody sees the state.
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
        self.disturbance_callbacks: list[DisturbanceCallback] = []

    def reset(
        self,
        scope: ResetScope,
        drones: Sequence[str] | None = None,
        states: Mapping[str, DroneState] | None = None,
        edit: StateEdit | None = None,
        assembly: Prepared | None = None,
    ) -> None:
        """Put things back, in one step: nobody sees anything in between.

        Args:
            scope: What.
            drones: Only these, whose state it is then; the epoch stays, as does time.
            states: What drones are put into afterwards.
            edit: Makes of the state after that the one of all drones to go on from.
            assembly: Of `to_start`, if the scope has `spawned`.

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
        if assembly is not None:
            self._assemble(assembly)
        tick = FIRST_TICK if ResetScope.time in scope else simulation.snapshot.tick
        if drones is None:
            simulation.epoch += 1
        if ResetScope.state in scope:
            self._forget(names, everything=drones is None)
        else:
            names = ()
        if ResetScope.time in scope:
            simulation.orders.rewind(before - self._engine.time_ns(tick))
            simulation.wrenches.rewind(simulation.snapshot.tick - tick)
        for name, values in fields.items():
            self._engine.put([name], values)
        if edit is not None:
            self._put(edit(simulation.evaluate(tick)))
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
        self._put(state)
        self.show()

    def spawn(self, name: str, pose: ArrayLike | None) -> Reassembly:
        """Add a drone.

        Args:
            name: Of no other drone.
            pose: (7,) position and attitude (xyzw), also after a reset; None: on the floor.

        The change raises ValueError if the name or the pose is not usable, or there are too many
        drones, and InvalidState if they are commanded from outside.
        """

        def wanted() -> Plan:
            self._check_roster_is_open()
            present = self._assembly.plan()
            if name in present.roster:
                raise ValueError(f"there is a drone {name!r} already")
            most = max(limits.DRONES, self._config.max_drones)
            if len(present.roster) >= most:
                raise ValueError(f"there are {most} drones already, no more can be added")
            if pose is None:
                place = free_place(self._config, self._simulation.snapshot.pos)
            else:
                place = checked_pose("pose", pose)
            return replace(present, roster={**present.roster, name: place})

        return Reassembly(self._assembly, wanted, self._assemble_and_show)

    def despawn(self, name: str) -> Reassembly:
        """Remove a drone.

        The change raises ValueError if there is none, and InvalidState if it is the last one or the
        drones are commanded from outside.
        """

        def wanted() -> Plan:
            self._check_roster_is_open()
            present = self._assembly.plan()
            self._simulation.known([name], tuple(present.roster))
            rest = {other: pose for other, pose in present.roster.items() if other != name}
            if not rest:
                raise InvalidState(f"{name} is the last drone, it cannot be removed")
            return replace(present, roster=rest)

        return Reassembly(self._assembly, wanted, self._assemble_and_show)

    def set_scene(self, path: str | Path | None, edit: SceneEdit | None) -> Reassembly:
        """Put the drones, as they are, into another scene.

        Args:
            path: As in `SimulationConfig`; None is the present one.
            edit: Changes the specification that it is compiled from, now and each time that drones
                come or go; it may refuse with ValueError.

        The change raises ValueError if there is no such scene, or it does not compile.
        """
        wanted_path = self._assembly.plan().scene.path if path is None else str(path)
        scene = Scene(wanted_path) if edit is None else Scene(wanted_path, edit)

        def wanted() -> Plan:
            return replace(self._assembly.plan(), scene=scene)

        return Reassembly(self._assembly, wanted, self._assemble_and_show)

    def set_obstacles(self, obstacles: Obstacles | None) -> Reassembly:
        """Let the drones collide with these, instead of what is in the scene, now and later."""
        arrays = jax.tree.map(jnp.asarray, obstacles)

        def wanted() -> Plan:
            return replace(self._assembly.plan(), obstacles=arrays, heeds_scene=False)

        return Reassembly(self._assembly, wanted, self._assemble_and_show)

    def to_start(self, then: Callable[[Prepared], Snapshot]) -> Reassembly:
        """Make the drones those of the start; `then` does so, in a reset."""

        def wanted() -> Plan:
            return replace(self._assembly.plan(), roster=self._assembly.start)

        return Reassembly(self._assembly, wanted, then)

    def disturb(self, disturbance: Disturbance) -> Reassembly:
        """Let something disturb the drones. The first gusts have to be compiled for.

        The change raises ValueError if there is no such drone, or it has no effect.
        """

        def wanted() -> Plan:
            present = self._assembly.plan()
            if not isinstance(disturbance, Wind):
                self._simulation.known([disturbance.drone])
                return present
            self._engine.check_wind(disturbance)
            return replace(present, gusts=present.gusts or disturbance.gust_intensity > 0)

        def then(prepared: Prepared) -> Snapshot:
            self._exchange_world(prepared)
            self._engine.disturb(disturbance)
            self._tell("disturbance callback", self.disturbance_callbacks, disturbance)
            self.show()
            return self._simulation.snapshot

        return Reassembly(self._assembly, wanted, then)

    def to_checkpoint(self, gusts: bool, then: Callable[[Prepared], Snapshot]) -> Reassembly:
        """Make ready for a checkpoint with or without gusts; `then` restores it."""

        def wanted() -> Plan:
            return replace(self._assembly.plan(), gusts=gusts)

        return Reassembly(self._assembly, wanted, then)

    def restore(self, checkpoint: Checkpoint, prepared: Prepared) -> None:
        """Go on from a checkpoint; time and epoch are those of then.

        Args:
            checkpoint: To go on from.
            prepared: Of `to_checkpoint`.

        Raises:
            ValueError: It is not one of these drones, or says what cannot be; then nothing has
                changed.
        """
        simulation, engine, kept = self._simulation, self._engine, checkpoint.about
        checkpoint.check(self._config, simulation.control, engine.names, engine.capture())
        wind = Wind(**kept["wind"])
        engine.check_wind(wind)
        self._tell("restore callback", self.restore_callbacks, checkpoint)
        self._exchange_world(prepared)
        engine.restore(checkpoint.arrays)
        engine.disturb(wind)
        simulation.orders.restore(kept["orders"])
        simulation.wrenches.restore(kept["wrenches"])
        simulation.lives.restore(kept["lives"])
        if self._source is not None:
            self._source.forget(np.arange(len(engine.names)))
        simulation.note_lost()
        simulation.epoch = kept["epoch"]
        self._show(kept["tick"])

    def capture_initial_state(self) -> None:
        """Make the present state, and the commands in force, the initial ones."""
        self._simulation.take_commands()
        self._engine.capture_initial_state(self._simulation.snapshot, commands=self._source is None)

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

    def _assemble(self, prepared: Prepared) -> None:
        """Make these the drones, in their scene."""
        simulation, roster = self._simulation, prepared.plan.roster
        gone = [name for name in simulation.snapshot.names if name not in roster]
        self._assembly.exchange(prepared)
        simulation.orders.clear(gone)
        simulation.wrenches.clear(gone)
        simulation.refresh(simulation.snapshot.tick)
        simulation.lives.note_drones(simulation.snapshot)

    def _exchange_world(self, prepared: Prepared) -> None:
        """Go on in the world that is prepared; nothing else is another."""
        if prepared.world is not self._engine.world:
            self._assembly.exchange(prepared)

    def _assemble_and_show(self, prepared: Prepared) -> Snapshot:
        self._assemble(prepared)
        self.show()
        return self._simulation.snapshot

    def _put(self, state: MirrorState) -> None:
        fields = {name: getattr(state, name) for name in SIZES}
        self._engine.put(self._simulation.snapshot.names, fields)

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

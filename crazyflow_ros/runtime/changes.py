"""Changes that requests make to a simulation between two ticks."""

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
from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.initial_poses import checked_pose, free_place
from crazyflow_ros.engine.snapshot import SIZES, DroneState, Snapshot
from crazyflow_ros.runtime.checkpoint import Checkpoint
from crazyflow_ros.runtime.command_source import CommandSource
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.resets import ResetEvent, ResetScope
from crazyflow_ros.runtime.roster import (
    PreparedRoster,
    Roster,
    RosterChange,
    RosterPlan,
    SceneEdit,
    SceneSource,
)
from crazyflow_ros.runtime.schedule import SnapshotCallback
from crazyflow_ros.runtime.simulation import FIRST_TICK, Simulation
from crazyflow_ros.scene import MirrorState

T = TypeVar("T")
ResetCallback = Callable[[ResetEvent], None]
RestoreCallback = Callable[[Checkpoint], None]
DisturbanceCallback = Callable[[Disturbance], None]
StateEdit = Callable[[Snapshot], MirrorState]
"""Takes the present state, returns the one to continue from."""


class Changes:
    """Changes the state, the drones or the scene, and publishes the new state.

    Args:
        config: The simulation's configuration.
        simulation: The simulation to change.
        engine: Its engine.
        roster: Its drones and scene.
        source: Brings the commands from outside, instead of `simulation.commands`.
        health: Logs failures of callbacks.

    Attributes:
        reset_callbacks: Called after each reset, before anyone sees the new state.
        change_callbacks: Called after each change, also after those of a reset.
        restore_callbacks: Called before the state becomes that of a checkpoint.
        disturbance_callbacks: Called when a disturbance begins, before anyone sees the state.
    """

    def __init__(
        self,
        config: SimulationConfig,
        simulation: Simulation,
        engine: Engine,
        roster: Roster,
        source: CommandSource | None,
        health: Health,
    ) -> None:
        self._config, self._simulation, self._engine = config, simulation, engine
        self._roster, self._source, self._health = roster, source, health
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
        prepared: PreparedRoster | None = None,
    ) -> None:
        """Reset in one step: no one sees a state in between.

        Args:
            scope: Parts to reset.
            drones: Only these drones; the scope is then `state`, and epoch and time stay.
            states: States of drones after the reset.
            edit: Takes the state after that, returns the one of all drones to continue from.
            prepared: The result of `to_start`, if the scope has `spawned`.

        Raises:
            ValueError: There is no such drone, or single drones do not have this scope.
        """
        simulation = self._simulation
        before = simulation.snapshot.time_ns
        if drones is not None and scope is not ResetScope.state:
            raise ValueError(f"of single drones only the state can be reset, not {scope}")
        names = simulation.known(simulation.snapshot.names if drones is None else drones)
        if ResetScope.spawned in scope:
            names = tuple(self._roster.start)
        fields = self._checked({} if states is None else states, names)
        if prepared is not None:
            self._exchange(prepared)
        tick = FIRST_TICK if ResetScope.time in scope else simulation.snapshot.tick
        if drones is None:
            simulation.epoch += 1
        if ResetScope.state in scope:
            self._forget(names, everything=drones is None)
        else:
            names = ()
        if ResetScope.time in scope:
            simulation.commands.rewind(before - self._engine.time_ns(tick))
            simulation.wrenches.rewind(simulation.snapshot.tick - tick)
        for name, values in fields.items():
            self._engine.put([name], values)
        if edit is not None:
            self._put(edit(simulation.evaluate(tick)))
        simulation.refresh(tick)
        event = ResetEvent(simulation.snapshot, scope, names)
        simulation.lives.note_reset(event)
        self._notify("reset callback", self.reset_callbacks, event)
        simulation.hand_out()
        if ResetScope.state in scope and drones is None:
            self._health.call("reset callback of the mirror", simulation.mirror.notify_reset, True)
        self._notify("change callback", self.change_callbacks, simulation.snapshot)

    def set_states(self, states: Mapping[str, DroneState]) -> None:
        """Set the states of some drones, all at once.

        Raises:
            ValueError: There is no such drone, or a state is impossible.
        """
        for name, values in self._checked(states, self._simulation.snapshot.names).items():
            self._engine.put([name], values)
        self.show()

    def set_state(self, state: MirrorState) -> None:
        """Set the state of all drones."""
        self._put(state)
        self.show()

    def spawn(self, name: str, pose: ArrayLike | None) -> RosterChange:
        """Add a drone.

        Args:
            name: Of no other drone.
            pose: (7,) position and attitude (xyzw), also after a reset; None: on the floor.

        The change raises ValueError if the name or the pose is not usable, or there are too many
        drones, and InvalidState if they are commanded from outside.
        """

        def wanted() -> RosterPlan:
            self._check_roster_is_open()
            present = self._roster.plan()
            if name in present.poses:
                raise ValueError(f"there is a drone {name!r} already")
            most = max(limits.DRONES, self._config.max_drones)
            if len(present.poses) >= most:
                raise ValueError(f"there are {most} drones already, no more can be added")
            if pose is None:
                place = free_place(self._config, self._simulation.snapshot.pos)
            else:
                place = checked_pose("pose", pose)
            return replace(present, poses={**present.poses, name: place})

        return RosterChange(self._roster, wanted, self._exchange_and_show)

    def despawn(self, name: str) -> RosterChange:
        """Remove a drone.

        The change raises ValueError if there is none, and InvalidState if it is the last one or the
        drones are commanded from outside.
        """

        def wanted() -> RosterPlan:
            self._check_roster_is_open()
            present = self._roster.plan()
            self._simulation.known([name], tuple(present.poses))
            rest = {other: pose for other, pose in present.poses.items() if other != name}
            if not rest:
                raise InvalidState(f"{name} is the last drone, it cannot be removed")
            return replace(present, poses=rest)

        return RosterChange(self._roster, wanted, self._exchange_and_show)

    def set_scene(self, path: str | Path | None, edit: SceneEdit | None) -> RosterChange:
        """Move the drones, as they are, into another scene.

        Args:
            path: As in `SimulationConfig`; None is the present one.
            edit: Changes the MjSpec before it is compiled, now and each time that drones come or
                go; may refuse with ValueError.

        The change raises ValueError if there is no such scene, or it does not compile.
        """
        wanted_path = self._roster.plan().scene.path if path is None else str(path)
        scene = SceneSource(wanted_path) if edit is None else SceneSource(wanted_path, edit)

        def wanted() -> RosterPlan:
            return replace(self._roster.plan(), scene=scene)

        return RosterChange(self._roster, wanted, self._exchange_and_show)

    def set_obstacles(self, obstacles: Obstacles | None) -> RosterChange:
        """Let the drones collide with these obstacles instead of the scene's, now and later."""
        arrays = jax.tree.map(jnp.asarray, obstacles)

        def wanted() -> RosterPlan:
            return replace(self._roster.plan(), obstacles=arrays, heeds_scene=False)

        return RosterChange(self._roster, wanted, self._exchange_and_show)

    def to_start(self, then: Callable[[PreparedRoster], Snapshot]) -> RosterChange:
        """Return to the drones of the start; `then` does so, in a reset."""

        def wanted() -> RosterPlan:
            return replace(self._roster.plan(), poses=self._roster.start)

        return RosterChange(self._roster, wanted, then)

    def disturb(self, disturbance: Disturbance) -> RosterChange:
        """Change the wind, a motor or a battery. The first gusts need a compilation.

        The change raises ValueError if there is no such drone, or the disturbance has no effect.
        """

        def wanted() -> RosterPlan:
            present = self._roster.plan()
            if not isinstance(disturbance, Wind):
                self._simulation.known([disturbance.drone])
                return present
            self._engine.check_wind(disturbance)
            return replace(present, gusts=present.gusts or disturbance.gust_intensity > 0)

        def then(prepared: PreparedRoster) -> Snapshot:
            self._exchange_world(prepared)
            self._engine.disturb(disturbance)
            self._notify("disturbance callback", self.disturbance_callbacks, disturbance)
            self.show()
            return self._simulation.snapshot

        return RosterChange(self._roster, wanted, then)

    def set_controller(self, controller: Controller) -> RosterChange:
        """Let all drones fly with a controller, which needs a compilation.

        The change raises ValueError if commands do not pass through it, and InvalidState if the
        drones are commanded from outside.
        """

        def wanted() -> RosterPlan:
            if self._source is not None:
                raise InvalidState("drones that ros2_control flies keep their controller")
            self._engine.check_controller(controller)
            return replace(self._roster.plan(), controller=controller)

        def then(prepared: PreparedRoster) -> Snapshot:
            self._exchange_world(prepared)
            self.show()
            return self._simulation.snapshot

        return RosterChange(self._roster, wanted, then)

    def to_checkpoint(
        self, gusts: bool, then: Callable[[PreparedRoster], Snapshot]
    ) -> RosterChange:
        """Prepare for a checkpoint with or without gusts; `then` restores it."""

        def wanted() -> RosterPlan:
            return replace(self._roster.plan(), gusts=gusts)

        return RosterChange(self._roster, wanted, then)

    def restore(self, checkpoint: Checkpoint, prepared: PreparedRoster) -> None:
        """Continue from a checkpoint; time and epoch jump to its own.

        Args:
            checkpoint: The checkpoint.
            prepared: The result of `to_checkpoint`.

        Raises:
            ValueError: It is of other drones, or its content is impossible; nothing has changed.
        """
        simulation, engine, kept = self._simulation, self._engine, checkpoint.about
        checkpoint.check(engine.config, simulation.control, engine.names, engine.capture())
        wind = Wind(**kept["wind"])
        engine.check_wind(wind)
        self._notify("restore callback", self.restore_callbacks, checkpoint)
        self._exchange_world(prepared)
        engine.restore(checkpoint.arrays)
        engine.disturb(wind)
        simulation.commands.restore(kept["orders"])
        simulation.wrenches.restore(kept["wrenches"])
        simulation.lives.restore(kept["lives"])
        if self._source is not None:
            self._source.forget(np.arange(len(engine.names)))
        simulation.note_lost()
        simulation.epoch = kept["epoch"]
        self._show(kept["tick"])

    def restart_estimate(self, name: str, initial: np.ndarray) -> None:
        """Let the estimator of a drone start again; see `Engine.restart_estimate`."""
        self._simulation.known([name])  # it may have been removed meanwhile
        self._engine.restart_estimate(name, initial)
        self.show()

    def tune(self, name: str, controller: Controller, gains: Mapping[str, np.ndarray]) -> None:
        """Change gains of a drone; see `Engine.tune`."""
        self._simulation.known([name])
        self._engine.tune(name, controller, gains)

    def tell_pose(self, name: str, pose: np.ndarray, std: Sequence[float]) -> None:
        """Tell a drone where it is; see `Engine.tell_pose`."""
        self._simulation.known([name])
        self._engine.tell_pose(name, pose, std)

    def capture_initial_state(self) -> None:
        """Make the present state, and the commands in force, the initial ones."""
        self._simulation.take_commands()
        self._engine.capture_initial_state(self._simulation.snapshot, commands=self._source is None)

    def show(self) -> None:
        """Publish the state of the present tick, at the start and after a change."""
        self._show(self._simulation.snapshot.tick)

    def _show(self, tick: int) -> None:
        self._simulation.refresh(tick)
        self._simulation.hand_out()
        self._notify("change callback", self.change_callbacks, self._simulation.snapshot)

    def _notify(self, what: str, callbacks: Sequence[Callable[[T], None]], news: T) -> None:
        for callback in callbacks:
            self._health.call(what, callback, news)

    def _check_roster_is_open(self) -> None:
        if self._source is not None:
            raise InvalidState("drones that ros2_control flies cannot be added or removed")

    def _exchange(self, prepared: PreparedRoster) -> None:
        """Replace the roster."""
        simulation, drones = self._simulation, prepared.plan.poses
        gone = [name for name in simulation.snapshot.names if name not in drones]
        self._roster.exchange(prepared)
        simulation.commands.clear(gone)
        simulation.wrenches.clear(gone)
        simulation.refresh(simulation.snapshot.tick)
        simulation.lives.note_drones(simulation.snapshot)

    def _exchange_world(self, prepared: PreparedRoster) -> None:
        """Continue in the prepared world, if it is another one; nothing else changes."""
        if prepared.world is not self._engine.world:
            self._roster.exchange(prepared)

    def _exchange_and_show(self, prepared: PreparedRoster) -> Snapshot:
        self._exchange(prepared)
        self.show()
        return self._simulation.snapshot

    def _put(self, state: MirrorState) -> None:
        fields = {name: getattr(state, name) for name in SIZES}
        self._engine.put(self._simulation.snapshot.names, fields)

    def _forget(self, names: tuple[str, ...], *, everything: bool) -> None:
        """Reset drones to their initial state, and drop their commands."""
        self._simulation.commands.clear(names)
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

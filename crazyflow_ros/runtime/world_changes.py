"""Requests for other drones, another scene, wind or controller, which need preparation."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.initial_poses import checked_pose, free_place
from crazyflow_ros.engine.interventions import check_controller, disturb
from crazyflow_ros.engine.moving_bodies import BodiesCallback
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.roster import (
    PreparedRoster,
    Roster,
    RosterPlan,
    SceneEdit,
    SceneSource,
)
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.scene.description import Description


class WorldChanges:
    """Requests for other drones, scenes, winds or controllers. Time goes on during preparation.

    Any thread may ask, unless a method says otherwise.

    Args:
        simulation: The simulation to change.
        roster: Its drones and scene.
        preparation: Prepares the changes.
    """

    def __init__(self, simulation: Simulation, roster: Roster, preparation: Preparation) -> None:
        self._simulation, self._roster, self._preparation = simulation, roster, preparation
        self._engine, self._door = simulation.engine, simulation.door
        self._config, self._news = simulation.config, simulation.news

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles of the drones, besides the floor z = 0 and each other."""
        return self._engine.world.obstacles

    @property
    def controller(self) -> Controller:
        """Position and attitude controller of all drones."""
        return self._engine.world.controller

    @property
    def wind(self) -> Wind:
        """The present wind."""
        return self._engine.wind

    def before_tick(self, callback: BodiesCallback, name: str) -> None:
        """Call `callback` before each tick of a world in which bodies move, with MuJoCo's data.

        It runs in the physics thread and must be quick. It may set `ctrl` of actuators,
        `qfrc_applied` and `xfrc_applied` of bodies; what it sets stays until it is set anew. A
        reset ends forces.

        Args:
            callback: Takes the model and the data.
            name: Name of the callback in messages.
        """
        call = self._simulation.health.call
        self._roster.before_tick.append(lambda model, data: call(name, callback, model, data))

    def spawn(self, name: str, pose: ArrayLike | None = None) -> Future[Snapshot]:
        """Add a drone between two ticks, without effect on the others.

        Beyond `SimulationConfig.max_drones`, this takes some seconds, to compile for more drones.

        Args:
            name: Letters, digits and underscores; not the name of another drone.
            pose: (7,) position [m] and attitude (xyzw), also after a reset; None: on the floor,
                where there is room.

        The future raises ValueError if the name or the pose is not usable, or there are too many
        drones, and InvalidState if a door flies them all.
        """

        def wanted() -> RosterPlan:
            if self._door is not None and self._door.flies_all:
                flies = f"the door {self._door.name} flies all drones: none can be added"
                raise InvalidState(f"{flies}, unless the door is given some of them")
            present = self._roster.plan()
            if name in present.poses:
                raise ValueError(f"there is a drone {name!r} already")
            most, n_drones = max(limits.DRONES, self._config.max_drones), len(present.poses)
            if n_drones >= most:
                raise ValueError(f"there are {n_drones} drones already, of at most {most}")
            if pose is None:
                place = free_place(self._config, self._simulation.snapshot.pos)
            else:
                place = checked_pose("pose", pose)
            return replace(present, poses={**present.poses, name: place})

        return self._preparation.put(wanted, self._exchange)

    def despawn(self, *names: str) -> Future[Snapshot]:
        """Remove drones between two ticks.

        The future raises ValueError if there is no such drone, and InvalidState if none would be
        left or a door flies one of them.
        """

        def wanted() -> RosterPlan:
            for name in names:
                if self._door is not None and name in self._door.drones:
                    raise InvalidState(f"the door {self._door.name} flies {name}: it stays")
            present = self._roster.plan()
            self._simulation.known(names, tuple(present.poses))
            gone = set(names)
            rest = {name: pose for name, pose in present.poses.items() if name not in gone}
            if not rest:
                last = f"{names[0]} is the last drone, it" if len(names) == 1 else "all drones"
                raise InvalidState(f"{last} cannot be removed")
            return replace(present, poses=rest)

        return self._preparation.put(wanted, self._exchange)

    def set_scene(
        self, scene: str | Path | Description | None = None, edit: SceneEdit | None = None
    ) -> Future[Snapshot]:
        """Move the drones, as they are, into another scene.

        If there is no room for all collision shapes, this takes some seconds, to compile.

        Args:
            scene: As for `build_spec`; None is the present one.
            edit: Changes the MjSpec before it is compiled, now and each time drones are added or
                removed; called in another thread; may refuse with ValueError.

        The future raises ValueError if there is no such scene, or it does not compile.
        """
        wanted = self._roster.plan().scene.description if scene is None else scene
        source = SceneSource(wanted) if edit is None else SceneSource(wanted, edit)
        return self._preparation.put(
            lambda: replace(self._roster.plan(), scene=source), self._exchange
        )

    def set_obstacles(self, obstacles: Obstacles | None) -> Future[Snapshot]:
        """Let the drones collide with these obstacles instead of the scene's, now and later.

        Another number of slots takes some seconds to compile. The future raises InvalidState in a
        world in which bodies move.
        """
        arrays = jax.tree.map(jnp.asarray, obstacles)

        def wanted() -> RosterPlan:
            if self._engine.bodies is not None:
                text = "the world has bodies that move: drones collide with the world itself"
                raise InvalidState(f"obstacles cannot replace those of the scene: {text}")
            return replace(self._roster.plan(), obstacles=arrays, heeds_scene=False)

        return self._preparation.put(wanted, self._exchange)

    def disturb(self, disturbance: Disturbance) -> Future[Snapshot]:
        """Change the wind, a motor or a battery from the next tick on.

        If gusts begin for the first time, this takes some seconds, to compile.

        The future raises ValueError if there is no such drone, or the disturbance has no effect.
        """

        def wanted() -> RosterPlan:
            present = self._roster.plan()
            if not isinstance(disturbance, Wind):
                self._simulation.known([disturbance.drone])
                return present
            self._engine.world.check_wind(disturbance)
            return replace(present, gusts=present.gusts or disturbance.gust_intensity > 0)

        def then(prepared: PreparedRoster) -> None:
            self.exchange_world(prepared)
            disturb(self._engine, disturbance)
            self._news.on_disturbance.tell(disturbance)
            self._simulation.show()

        return self._preparation.put(wanted, then)

    def set_controller(self, controller: str) -> Future[Snapshot]:
        """Let all drones fly with a controller from the next tick on, as in its first run.

        It takes some seconds to compile.

        Args:
            controller: A `Controller`.

        Raises:
            ValueError: There is no such controller.

        The future raises ValueError if commands do not pass through the controller, and
        `InvalidState` if a door flies all drones.
        """
        chosen = member(Controller, controller)

        def wanted() -> RosterPlan:
            if self._door is not None and self._door.flies_all:
                text = f"drones that the door {self._door.name} flies keep their controller"
                raise InvalidState(text)
            check_controller(self._engine, chosen)
            return replace(self._roster.plan(), controller=chosen)

        def then(prepared: PreparedRoster) -> None:
            self.exchange_world(prepared)
            setting = Setting("set_controller", {"controller": chosen.value})
            self._news.on_setting.tell(setting)
            self._simulation.show()

        return self._preparation.put(wanted, then)

    # In the physics thread.

    def exchange(self, prepared: PreparedRoster) -> None:
        """Replace the roster, without publishing the new state."""
        simulation, drones = self._simulation, prepared.plan.poses
        # Also commands posted for a drone that was removed and added again: its predecessor's.
        other = set(simulation.snapshot.names).symmetric_difference(drones)
        self._roster.exchange(prepared)
        simulation.drop_commands(other)
        simulation.refresh(simulation.snapshot.tick)
        simulation.lives.note_drones(simulation.snapshot)

    def exchange_world(self, prepared: PreparedRoster) -> None:
        """Continue in the prepared world, if it is another one; nothing else changes."""
        if prepared.world is not self._engine.world:
            self._roster.exchange(prepared)

    def _exchange(self, prepared: PreparedRoster) -> None:
        """Replace the roster, and publish the new state."""
        self.exchange(prepared)
        self._simulation.show()

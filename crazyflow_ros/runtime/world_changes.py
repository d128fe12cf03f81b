"""Requests for other drones, another scene, wind or controller, which need preparation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import ArrayLike

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.enum_members import member
from crazyflow_ros.control import Controller
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.attachments import REACH, Attachment, chosen
from crazyflow_ros.engine.authority import Authority
from crazyflow_ros.engine.disturbances import Disturbance, Wind
from crazyflow_ros.engine.initial_poses import (
    check_free,
    checked_pose,
    free_place,
)
from crazyflow_ros.engine.interventions import check_controller, disturb
from crazyflow_ros.engine.moving_bodies import BodiesCallback
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.runtime.news import Setting
from crazyflow_ros.runtime.preparation import Preparation
from crazyflow_ros.runtime.requests import InvalidState
from crazyflow_ros.runtime.roster import Roster
from crazyflow_ros.runtime.roster_plan import PreparedRoster, RosterPlan, SceneEdit, SceneSource
from crazyflow_ros.runtime.simulation import Simulation
from crazyflow_ros.runtime.starts import Starts
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
        self._starts = Starts(simulation, roster)

    @property
    def obstacles(self) -> Obstacles | None:
        """Obstacles of the drones, besides the floor and each other."""
        return self._engine.world.obstacles

    @property
    def scene(self) -> SceneSource:
        """The present scene, with the changes that it has had."""
        return self._roster.scene

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
        reset ends forces, and a wrench by a service those on bodies.

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
            around, floor = self._roster.surroundings, self._roster.conditions.floor
            if pose is None:
                place = free_place(self._config, self._simulation.snapshot.pos, floor, around)
            else:
                place = checked_pose("pose", pose)
                check_free(f"pose of {name}", self._config.drone_model, place, around)
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
            return replace(present.without(names), poses=rest)

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
        keeps = scene is None

        def wanted_plan() -> RosterPlan:
            present = self._roster.plan()
            held = present.held if keeps else {}
            return replace(present, scene=source, held=held)

        return self._preparation.put(wanted_plan, self._exchange)

    def attach(
        self, drone: str, body: str = "", *, reach: float = REACH, **how: Any
    ) -> Future[Snapshot]:
        """Let a drone hold a body of the world, or another drone, until it detaches or is reset.

        In a world in which nothing else moves, this takes some seconds, to compile.

        Args:
            drone: Name of the drone.
            body: Name of the body or drone; empty for the nearest body within reach.
            reach: See `engine.attachments.chosen` [m].
            **how: The other fields of an `Attachment`.

        Raises:
            ValueError: A value is not allowed, there is no such body, or it is out of reach.
            InvalidState: The drone holds something already.
        """
        self._simulation.known([drone])
        name = f"drone:{body}" if body in self._simulation.snapshot.names else body
        held = Attachment(name, **how)
        if not held.pose:
            model, data = self._simulation.mirror.model, self._simulation.mirror.copy_physics_data()
            held = chosen(model, data, drone, held, reach, self._config.freq)

        def wanted() -> RosterPlan:
            present = self._roster.plan()
            if drone in present.held:
                text = f"{drone} holds {present.held[drone].name} already: let it detach first"
                raise InvalidState(text)
            self._simulation.known([drone], tuple(present.poses))
            return replace(present, held={**present.held, drone: held})

        return self._preparation.put(wanted, lambda prepared: self._hold(prepared, drone))

    def detach(self, drone: str) -> Future[Snapshot]:
        """Let a drone let go of what it holds.

        The future raises ValueError if there is no such drone, and InvalidState if it holds
        nothing.
        """

        def wanted() -> RosterPlan:
            present = self._roster.plan()
            self._simulation.known([drone], tuple(present.poses))
            if drone not in present.held:
                raise InvalidState(f"{drone} holds nothing")
            held = {name: held for name, held in present.held.items() if name != drone}
            return replace(present, held=held)

        return self._preparation.put(wanted, lambda prepared: self._hold(prepared, drone))

    @property
    def held(self) -> Mapping[str, Attachment]:
        """What drones hold, by their names."""
        return self._roster.held

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
        before, is_other = self._roster.conditions, self._roster.is_other_world(prepared.plan)
        self._roster.exchange(prepared)
        self._follow_wind(before.wind)
        if is_other:
            self._heed_conditions()
        simulation.drop_commands(other)
        moved = self._starts.resettle(before.floor) if is_other else []
        simulation.refresh(simulation.snapshot.tick)
        simulation.commands.moved(moved, simulation.snapshot)
        simulation.lives.note_drones(simulation.snapshot)

    def _heed_conditions(self) -> None:
        """Fly by the rules of the present world."""
        engine, config = self._engine, self._config
        rules = Rules.of(config.drone_model, config.flight, engine.world.conditions)
        self._simulation.commands.use(rules, Authority(config, engine).sight)

    def _follow_wind(self, before: Sequence[float]) -> None:
        """Let the wind of the present world blow, unless somebody has chosen another.

        Args:
            before: Mean wind of the previous world [m/s].
        """
        engine, mean = self._engine, self._roster.conditions.wind
        is_chosen = any(self._config.wind) or tuple(engine.wind.mean) != tuple(before)
        if mean != before and not is_chosen and engine.world.feels_wind:
            wind = replace(engine.wind, mean=mean)
            engine.blow(wind)
            self._news.on_disturbance.tell(wind)

    def exchange_world(self, prepared: PreparedRoster) -> None:
        """Continue in the prepared world, if it is another one; nothing else changes."""
        if prepared.world is not self._engine.world or prepared.model is not None:
            self._roster.exchange(prepared)

    def _hold(self, prepared: PreparedRoster, drone: str) -> None:
        """Let a drone hold, or let go of, something."""
        self.exchange(prepared)
        if (held := self._roster.held.get(drone)) is None:
            setting = Setting("detach", {"drone": drone})
        else:
            setting = Setting("attach", {"drone": drone, **asdict(held)})
        self._news.on_setting.tell(setting)
        self._simulation.show()

    def _exchange(self, prepared: PreparedRoster) -> None:
        """Replace the roster, and publish the new state."""
        self.exchange(prepared)
        self._simulation.show()

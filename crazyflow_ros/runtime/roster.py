"""The assembly: the drones that there are, in a scene, with what they collide with there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import mujoco
import numpy as np

from crazyflow_ros import limits
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.compiled_world import CompiledWorld, Program
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.runtime.garbage import short_collections
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.scene import Mirror, build_spec, scene_path
from crazyflow_ros.scene.description import check_scene
from crazyflow_ros.scene.mirror import MadeModel, made_model
from crazyflow_ros.scene.obstacles import obstacles_of

SceneEdit = Callable[[mujoco.MjSpec], None]

_MIN_SLOTS = 32  # shapes, from the first one on


def _no_edit(spec: mujoco.MjSpec) -> None:
    """Leave the scene as it is."""


@dataclass(frozen=True, eq=False)
class Scene:
    """What is around the drones. Read anew with each `Scene`, for files change."""

    path: str
    """As in `SimulationConfig`."""
    edit: SceneEdit = _no_edit
    """Changes the specification that it is compiled from; it may refuse with ValueError."""


@dataclass(frozen=True)
class Plan:
    """What an assembly is to be, and the one that it is to follow."""

    version: int
    """Of the assembly that there is."""
    roster: Mapping[str, np.ndarray]
    """The drones, with their initial poses."""
    scene: Scene
    obstacles: Obstacles | None = None
    """What the drones collide with instead of what is in the scene, if `heeds_scene` is False."""
    heeds_scene: bool = True
    gusts: bool = False
    """The wind has some, or had."""

    def is_like(self, other: Plan) -> bool:
        """Whether what was prepared for one is right for the other."""
        return (
            self.version == other.version
            and self.scene is other.scene
            and self.obstacles is other.obstacles
            and (self.heeds_scene, self.gusts) == (other.heeds_scene, other.gusts)
            and tuple(self.roster) == tuple(other.roster)
            and all(np.array_equal(pose, other.roster[name]) for name, pose in self.roster.items())
        )


@dataclass(frozen=True)
class Prepared:
    """An assembly, ready to take the place of the one that there is."""

    plan: Plan
    world: CompiledWorld
    """The present one, or one with more slots for drones."""
    obstacles: Obstacles | None
    ignored: tuple[str, ...]
    """Why drones fly through some of what is in the scene."""
    program: Program | None = None
    """Of the world, for the obstacles; None if the present one is right."""
    model: MadeModel | None = None
    """None if the mirror keeps its own."""


class Assembly:
    """Keeps three things of one mind: slots of the engine, model of the mirror, and obstacles.

    Args:
        config: What is simulated.
        names: Of the drones.
        engine: With these drones.
        health: Takes note of what is left out, and of what is compiled.

    Attributes:
        start: The drones of the start, with their initial poses.
        mirror: The MuJoCo side.
        retired: What is not needed any more, to be freed in another thread than the physics
            thread, for that takes long.
    """

    def __init__(
        self, config: SimulationConfig, names: Sequence[str], engine: Engine, health: Health
    ) -> None:
        self._drone_model, self._engine, self._health = config.drone_model, engine, health
        self.retired: list[object] = []
        self._plan = Plan(0, self.roster(), Scene(config.scene), gusts=engine.world.gusts)
        self.start = self._plan.roster
        model = self._compiled(self._plan)
        self.mirror = Mirror(model, names)
        obstacles, ignored = self._seen(model, at_start=True)
        engine.world.use(obstacles)
        self._ignored: tuple[str, ...] = ()
        self._note_ignored(ignored)

    def roster(self) -> dict[str, np.ndarray]:
        """The drones, with their initial poses."""
        return dict(zip(self._engine.names, self._engine.initial_poses()))

    def plan(self) -> Plan:
        """What there is."""
        return replace(self._plan, roster=self.roster())

    def at_once(self, plan: Plan) -> Prepared | None:
        """What is right for a plan and takes no time to prepare, if that is possible.

        Drones that stay keep their place in the mirror's model.
        """
        now, world = self._plan, self._engine.world
        if tuple(plan.roster) != self._engine.names or plan.scene is not now.scene:
            return None
        if plan.gusts != world.gusts:
            return None
        if plan.heeds_scene:
            stays = now.heeds_scene
            return Prepared(plan, world, world.obstacles, self._ignored) if stays else None
        if world.is_compiled_for(plan.obstacles):
            return Prepared(plan, world, plan.obstacles, self._ignored)
        return None

    def prepare(self, plan: Plan, before: Prepared | None = None) -> Prepared:
        """Do all of a change that takes long; nothing changes yet. In any one thread.

        Args:
            plan: What is wanted.
            before: What was prepared for a similar plan, to go on from.

        Raises:
            ValueError: There is no such scene, or it cannot be compiled with these drones.
        """
        engine, obstacles, model, ignored = self._engine, plan.obstacles, None, self._ignored
        if plan.scene is not self._plan.scene or tuple(plan.roster) != engine.names:
            model = made_model(self._compiled(plan), tuple(plan.roster))
        if plan.heeds_scene:
            shown = self.mirror.model if model is None else model.mirrored.model
            obstacles, ignored = self._seen(shown)
        world = self._world_for(plan, before)
        program = self._program(world, obstacles, before)
        return Prepared(plan, world, obstacles, ignored, program, model)

    def exchange(self, prepared: Prepared) -> None:
        """Make what is prepared the assembly; drones that stay do not notice. Physics thread."""
        engine, roster = self._engine, prepared.plan.roster
        if prepared.world is not engine.world:
            self.retired.append(engine.world)
        if prepared.program not in (None, engine.world.present_program):
            self.retired.append(engine.world.present_program)
        for name in engine.names:
            if name not in roster:
                engine.remove(name)
        if prepared.world is not engine.world:
            engine.move_to(prepared.world)
        for name, pose in roster.items():
            if name not in engine.names:
                engine.add(name, pose)
        engine.arrange(tuple(roster))
        if prepared.model is not None:
            self.retired.append(self.mirror.use(prepared.model))
        engine.world.use(prepared.obstacles, prepared.program)
        self._note_ignored(prepared.ignored)
        self._plan = replace(prepared.plan, version=self._plan.version + 1)

    def _world_for(self, plan: Plan, before: Prepared | None) -> CompiledWorld:
        """One that will do: the present one, that of a preparation before, or a new one."""
        engine, n_drones, n_slots = self._engine, len(plan.roster), self._engine.n_slots
        if n_drones > n_slots:
            n_slots = max(n_drones, 2 * n_slots)
            what = f"no room for {n_drones} drones: compiling for {n_slots}"
        else:
            what = f"compiling for wind with{'' if plan.gusts else 'out'} gusts"
        for world in (engine.world, *([] if before is None else [before.world])):
            if (world.n_drones, world.gusts) == (n_slots, plan.gusts):
                return world
        self._health.warn(f"{what}, time goes on")
        with short_collections():
            return engine.other_world(n_slots, gusts=plan.gusts)

    def _program(
        self, world: CompiledWorld, obstacles: Obstacles | None, before: Prepared | None
    ) -> Program | None:
        """That of a world for obstacles: the present one, that of a preparation before, or new."""
        if world.is_compiled_for(obstacles):
            return world.present_program
        made = before.program if before is not None and before.world is world else None
        if made is not None and made.is_for(obstacles):
            return made
        if obstacles is not None and obstacles.n_slots != self._room:
            n_slots = obstacles.n_slots
            self._health.warn(f"compiling collisions with up to {n_slots} shapes, time goes on")
        with short_collections():
            return world.program(obstacles)

    @property
    def _room(self) -> int:
        """Slots for shapes that drones collide with."""
        present = self._engine.obstacles
        return 0 if present is None else present.n_slots

    def _compiled(self, plan: Plan) -> mujoco.MjModel:
        """The scene with the drones.

        Raises:
            ValueError: It asks for too much, or does not compile.
        """
        # Its file may be another one than the one that was loaded.
        check_scene(scene_path(plan.scene.path))
        poses = np.array(list(plan.roster.values()))
        spec = build_spec(self._drone_model, tuple(plan.roster), scene=plan.scene.path, poses=poses)
        plan.scene.edit(spec)
        return spec.compile()

    def _seen(
        self, model: mujoco.MjModel, *, at_start: bool = False
    ) -> tuple[Obstacles | None, tuple[str, ...]]:
        """What of a model drones collide with, and why they do not with other things.

        Raises:
            ValueError: There is too much of it.
        """
        room = 0 if at_start else self._room

        def slots(shapes: int) -> int:
            if shapes > limits.OBSTACLES:
                most = f"expected at most {limits.OBSTACLES}"
                raise ValueError(f"drones would collide with {shapes} shapes, {most}")
            return room if shapes <= room else max(shapes, _MIN_SLOTS, 2 * room)

        found, ignored = obstacles_of(model, slots=slots)
        return (found if found.n_slots else None), ignored

    def _note_ignored(self, ignored: tuple[str, ...]) -> None:
        for why in ignored:
            if why not in self._ignored:
                self._health.warn(why)
        self._ignored = ignored


@dataclass
class Reassembly:
    """A change of the assembly, as `preparation.Change` wants it.

    Args:
        assembly: Is changed.
        wanted: Gives what it is to be, as things are at the time. It may refuse.
        then: Carries out what is prepared, and gives the state after it.
    """

    assembly: Assembly
    wanted: Callable[[], Plan]
    then: Callable[[Prepared], Snapshot]
    _prepared: Prepared | None = field(default=None, init=False)

    def is_ready(self) -> bool:
        """Whether what is prepared is what is wanted now. Physics thread."""
        plan = self.wanted()
        if self._prepared is None or not self._prepared.plan.is_like(plan):
            at_once = self.assembly.at_once(plan)
            self._prepared = at_once or self._prepared
            return at_once is not None
        return True

    def prepare(self) -> None:
        """Prepare what is wanted now. In the worker."""
        self._prepared = self.assembly.prepare(self.wanted(), self._prepared)

    def carry_out(self) -> Snapshot:
        """Make the change; returns the state after it. Physics thread."""
        assert self._prepared is not None
        return self.then(self._prepared)

    def finish(self) -> None:
        """Free what has been replaced. In the worker."""
        self._prepared = None
        self.assembly.retired.clear()

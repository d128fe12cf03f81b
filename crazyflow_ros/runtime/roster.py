"""The roster: the drones of the simulation, in a scene, with the obstacles there."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import mujoco
import numpy as np

from crazyflow_ros.checks import limits
from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.engine.attachments import Attachment
from crazyflow_ros.engine.compiled_world import CompiledWorld, WorldProgram
from crazyflow_ros.engine.config import SimulationConfig
from crazyflow_ros.engine.engine import Engine
from crazyflow_ros.engine.moving_bodies import BodiesCallback, MovingBodies
from crazyflow_ros.engine.slots import slots_for
from crazyflow_ros.engine.snapshot import Snapshot
from crazyflow_ros.estimation import Estimator
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.runtime.health import Health
from crazyflow_ros.runtime.roster_plan import PreparedRoster, RosterPlan, SceneSource
from crazyflow_ros.scene import Mirror, build_spec, read_scene
from crazyflow_ros.scene.bodies import needs_mujoco
from crazyflow_ros.scene.collision_shapes import obstacles_of
from crazyflow_ros.scene.conditions import Conditions
from crazyflow_ros.scene.kept_model import kept_model
from crazyflow_ros.scene.mirrored_model import MirroredModel
from crazyflow_ros.scene.terrain import Terrain
from crazyflow_ros.xla.start_up import telling

_DEEPEST = 100.0  # m below everything, at which a drone is lost where there is no floor
_NEVER = 1_000_000_000  # collections of the younger generations before one of the oldest
_MIN_SLOTS = 32  # for shapes, as soon as there is one


class Roster:
    """Keeps the slots of the engine, the model of the mirror and the obstacles consistent.

    Args:
        config: The simulation.
        names: Names of the drones.
        engine: Engine with these drones.
        health: Logs objects that are left out, and compilations.
        scene: The scene of the simulation, see `checked_scene`.

    Attributes:
        start: The drones at the start, with their initial poses.
        mirror: The MuJoCo side.
        surroundings: The obstacles by name.
        before_tick: Called before each tick of bodies that move.
        retired: Objects that are no longer needed. Freeing them takes long, so a thread other than
            the physics thread does it.
    """

    def __init__(
        self,
        config: SimulationConfig,
        names: Sequence[str],
        engine: Engine,
        health: Health,
        scene: SceneSource,
    ) -> None:
        self._config, self._engine, self._health = config, engine, health
        self.retired: list[object] = []
        self.before_tick: list[BodiesCallback] = []
        self.start, now = self.poses(), engine.world
        gusts, controller = now.gusts, now.controller
        self._plan = RosterPlan(0, self.start, scene, gusts=gusts, controller=controller)
        poses = np.array(list(self.start.values()))
        model = kept_model(config.drone_model, names, scene.description, poses)
        self.mirror = Mirror(model, names)
        engine.bodies, floor = self._bodies(model, tuple(self.start)), now.conditions.floor
        obstacles, doubts, self.surroundings = self._seen(
            model, floor, moves=engine.bodies is not None, at_start=True
        )
        engine.world.use(obstacles)
        self._doubts: tuple[str, ...] = ()
        self._note_doubts(doubts)
        self._note_conditions()

    @property
    def conditions(self) -> Conditions:
        """Gravity, air and floor of the present world."""
        return self._plan.scene.conditions

    @property
    def scene(self) -> SceneSource:
        """The present scene."""
        return self._plan.scene

    @staticmethod
    def checked_scene(
        config: SimulationConfig, names: Sequence[str]
    ) -> tuple[SceneSource, Surroundings, bool]:
        """Read and check the scene for these drones, before anything is compiled for it.

        Returns:
            The scene, the obstacles there, and whether something moves besides drones.

        Raises:
            ValueError: There is no such scene, or it does not compile.
        """
        scene = SceneSource(read_scene(config.scene))
        few = [name for name in names if name in scene.description.drones] or names[:1]
        model = build_spec(config.drone_model, few, scene=scene.description).compile()
        found = obstacles_of(model, floor=scene.conditions.floor)
        moves = needs_mujoco(model)
        return scene, Surroundings(found.obstacles, found.names, Terrain.of(model)), moves

    def poses(self) -> dict[str, np.ndarray]:
        """Initial poses (7,) of the present drones, by name."""
        engine = self._engine
        return dict(zip(engine.names, engine.initial.poses(engine.slots_of(engine.names))))

    @property
    def held(self) -> Mapping[str, Attachment]:
        """What drones hold, by their names."""
        return self._plan.held

    def plan(self) -> RosterPlan:
        """The present roster as a plan."""
        return replace(self._plan, poses=self.poses())

    def at_once(self, plan: RosterPlan) -> PreparedRoster | None:
        """Prepare a plan if this takes no time; otherwise return None.

        Drones that stay keep their place in the mirror's model.
        """
        now, world = self._plan, self._engine.world
        if not self._has_model_of(plan):
            return None
        if (plan.gusts, plan.controller) != (world.gusts, world.controller):
            return None
        if plan.heeds_scene:
            stays = now.heeds_scene
            present = PreparedRoster(plan, world, world.obstacles, self._doubts, self.surroundings)
            return present if stays else None
        if world.is_compiled_for(plan.obstacles):
            around = Surroundings(plan.obstacles)
            return PreparedRoster(plan, world, plan.obstacles, self._doubts, around)
        return None

    def prepare(self, plan: RosterPlan, before: PreparedRoster | None = None) -> PreparedRoster:
        """Do the slow part of a change; nothing changes yet. In any thread, one call at a time.

        Args:
            plan: The wanted roster.
            before: A roster prepared for a similar plan, to reuse.

        Raises:
            ValueError: There is no such scene, or it cannot be compiled with these drones.
        """
        engine, obstacles, model, doubts = self._engine, plan.obstacles, None, self._doubts
        around, bodies, moves = Surroundings(obstacles), None, not engine.world.contacts
        if not self._has_model_of(plan):
            model = MirroredModel(compiled := self._compiled(plan), tuple(plan.poses))
            bodies = self._bodies(compiled, tuple(plan.poses))
            moves = bodies is not None
        if plan.heeds_scene:
            shown = self.mirror.model if model is None else model.index.model
            obstacles, doubts, around = self._seen(shown, plan.scene.conditions.floor, moves=moves)
        world = self._world_for(plan, before, contacts=not moves)
        program = self._program(world, obstacles, before)
        return PreparedRoster(plan, world, obstacles, doubts, around, program, model, bodies)

    def fallen(self, now: Snapshot) -> Iterator[tuple[str, str]]:
        """Yield drones that have fallen where there is no floor, and what to say of each."""
        if self._engine.world.conditions.floor is not None:
            return
        deepest = self.surroundings.bottom - _DEEPEST
        for i in np.flatnonzero(now.pos[:, 2] < deepest).tolist():
            if now.names[i] not in self._engine.lost:
                yield now.names[i], f"it fell below {deepest:g} m, and this world has no floor"

    def is_other_world(self, plan: RosterPlan) -> bool:
        """Return whether a plan has another world, whatever objects are in it."""
        return plan.scene.description is not self._plan.scene.description

    def exchange(self, prepared: PreparedRoster) -> None:
        """Replace the roster, without effect on the drones that stay. Physics thread."""
        engine, poses = self._engine, prepared.plan.poses
        if prepared.world is not engine.world:
            self.retired.append(engine.world)
        if prepared.program not in (None, engine.world.present_program):
            self.retired.append(engine.world.present_program)
        if gone := [name for name in engine.names if name not in poses]:
            engine.remove(gone)
        if prepared.world is not engine.world:
            engine.move_to(prepared.world)
        for name, pose in poses.items():
            if name not in engine.names:
                engine.add(name, pose)
        engine.arrange(tuple(poses))
        if prepared.model is not None:
            self.retired.append(self.mirror.use(prepared.model))
            same_world = prepared.plan.scene.description is self._plan.scene.description
            if same_world and engine.bodies is not None and prepared.bodies is not None:
                prepared.bodies.continue_from(engine.bodies)
            self.retired.append(engine.bodies)
            engine.bodies = prepared.bodies
        engine.world.use(prepared.obstacles, prepared.program)
        self.surroundings = prepared.surroundings
        self._note_doubts(prepared.doubts)
        held, is_other = prepared.plan.held, self.is_other_world(prepared.plan)
        if engine.bodies is not None and held:
            held = engine.bodies.hold(engine.world, engine.rows, held)
        self._plan = replace(prepared.plan, version=self._plan.version + 1, held=held)
        if is_other:
            self._note_conditions()

    def _has_model_of(self, plan: RosterPlan) -> bool:
        """Return whether the present model of the mirror is that of a plan."""
        now, names = self._plan, self._engine.names
        return plan.scene is now.scene and plan.held == now.held and tuple(plan.poses) == names

    def _bodies(self, model: mujoco.MjModel, names: Sequence[str]) -> MovingBodies | None:
        """Return the bodies of a model that move besides the drones, if there are any."""
        if not needs_mujoco(model):
            return None
        return MovingBodies(model, names, self._engine.config, self.before_tick)

    def _world_for(
        self, plan: RosterPlan, before: PreparedRoster | None, *, contacts: bool
    ) -> CompiledWorld:
        """Return a world that fits: the present one, one prepared before, or a new one."""
        engine, n_drones, n_slots = self._engine, len(plan.poses), self._engine.n_slots
        estimates = self._config.estimator != Estimator.none
        part = plan.scene.conditions.compiled_part(estimates=estimates)
        if n_drones > n_slots:
            n_slots = slots_for(max(n_drones, 2 * n_slots))
            what = f"no room for {n_drones} drones: compiling for {n_slots}"
        elif plan.controller is not engine.world.controller:
            what = f"compiling the controller {plan.controller}"
        elif contacts is not engine.world.contacts:
            what = f"compiling for bodies that {'stand still' if contacts else 'move'}"
        elif part != engine.world.compiled_conditions:
            what = "compiling for gravity, air and floor of the world"
        else:
            what = f"compiling for wind with{'' if plan.gusts else 'out'} gusts"
        wanted = n_slots, plan.gusts, plan.controller, contacts, part
        for world in (engine.world, *([] if before is None else [before.world])):
            own = world.n_drones, world.gusts, world.controller, world.contacts
            if (*own, world.compiled_conditions) == wanted:
                return world
        self._health.warn(f"{what}, time goes on")
        with _short_collections(), telling("compiling", self._health.inform):
            return engine.other_world(
                n_slots,
                gusts=plan.gusts,
                controller=plan.controller,
                contacts=contacts,
                conditions=plan.scene.conditions,
            )

    def _program(
        self, world: CompiledWorld, obstacles: Obstacles | None, before: PreparedRoster | None
    ) -> WorldProgram | None:
        """Return the program of a world for obstacles: present, prepared before, or new."""
        if world.is_compiled_for(obstacles):
            return world.present_program
        made = before.program if before is not None and before.world is world else None
        if made is not None and made.is_for(obstacles):
            return made
        if obstacles is not None and obstacles.n_slots != self._room:
            n_slots = obstacles.n_slots
            self._health.warn(f"compiling collisions with up to {n_slots} shapes, time goes on")
        with _short_collections(), telling("compiling collisions", self._health.inform):
            return world.program(obstacles)

    @property
    def _room(self) -> int:
        """Slots for shapes that drones collide with."""
        present = self._engine.world.obstacles
        return 0 if present is None else present.n_slots

    def _compiled(self, plan: RosterPlan) -> mujoco.MjModel:
        """Compile the scene with the drones.

        Raises:
            ValueError: There is no such scene, or it does not compile with these drones.
        """
        names, poses = tuple(plan.poses), np.array(list(plan.poses.values()))
        scene = plan.scene.description
        spec = build_spec(self._config.drone_model, names, scene=scene, poses=poses)
        plan.scene.edit(spec)
        for drone, held in plan.held.items():
            held.add_to(spec, drone)
        return spec.compile()

    def _seen(
        self, model: mujoco.MjModel, floor: float | None, *, moves: bool, at_start: bool = False
    ) -> tuple[Obstacles | None, tuple[str, ...], Surroundings]:
        """Return the obstacles in a model, what drones feel otherwise, and obstacles by name.

        If bodies move, MuJoCo computes all contacts, and only what stands still has a name.

        Raises:
            ValueError: There are too many obstacles.
        """
        room = 0 if at_start else self._room

        def slots(shapes: int) -> int:
            if shapes > limits.OBSTACLES:
                most = f"at most {limits.OBSTACLES} shapes"
                raise ValueError(f"drones can collide with {most}, got {shapes}")
            return room if shapes <= room else max(shapes, _MIN_SLOTS, 2 * room)

        found, _, names = obstacles_of(model, slots=slots, moving=not moves, floor=floor)
        obstacles = found if found.n_slots else None
        terrain = Terrain.of(model)
        around = Surroundings(obstacles, names, terrain)
        doubts = () if terrain is None else tuple(terrain.doubts())
        return None if moves else obstacles, doubts, around

    def _note_conditions(self) -> None:
        """Say what of the world's conditions cannot be honoured."""
        conditions, odd = self._plan.scene.description.conditions
        world = self._engine.world
        about = conditions.unheeded(
            self._config.drone_model,
            world.controller,
            has_rotors=world.has_rotors,
            feels_wind=world.feels_wind,
        )
        for what in (*odd, *about):
            self._health.warn(what)
        if conditions.floor is None:
            self._health.inform(
                "this world has no floor: drones stand only on what is solid, and are lost "
                f"{_DEEPEST:g} m below everything"
            )
        if any(conditions.wind) and tuple(self._engine.wind.mean) == conditions.wind:
            self._health.inform(f"the wind of the world blows: {list(conditions.wind)} m/s")

    def _note_doubts(self, doubts: tuple[str, ...]) -> None:
        for why in doubts:
            if why not in self._doubts:
                self._health.warn(why)
        self._doubts = doubts


@contextmanager
def _short_collections() -> Iterator[None]:
    """Avoid long collections while many lasting objects are made, for example by tracing.

    The collector stops all threads for as long as it walks through objects. Meanwhile only young
    objects are collected. If the process has frozen its first objects
    (`gc.freeze`), as the node does, the new ones are also frozen at the end. Frozen objects are
    still freed when nothing refers to them.
    """
    before = gc.get_threshold()
    gc.set_threshold(*before[:2], _NEVER)
    try:
        yield
    finally:
        if gc.get_freeze_count():
            gc.collect(1)
            gc.freeze()
        gc.set_threshold(*before)

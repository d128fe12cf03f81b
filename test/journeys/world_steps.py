"""Steps that change the world: drones, objects, worlds, resets, checkpoints."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from crazyflow_ros_interfaces.srv import CommandDrones
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion
from mujoco_ros2_control_msgs.srv import ResetWorld
from simulation_interfaces.msg import EntityState, Resource, SimulationState
from simulation_interfaces.srv import (
    DeleteEntity,
    GetAvailableWorlds,
    GetNamedPoses,
    GetSpawnables,
    LoadWorld,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    SpawnEntity,
    UnloadWorld,
)
from std_srvs.srv import Trigger

from crazyflow_ros.client.service_calls import problem_of
from journeys.lives import MOST_DRONES, OWN_OBJECTS, OWN_WORLDS, world_uri
from journeys.model import BODIES, LANES, LOW, OBJECTS, Drone, Model
from journeys.step import Step, choose
from journeys.time_steps import MUJOCO

if TYPE_CHECKING:
    from journeys.walk import Walk

TIME, STATE = ResetSimulation.Request.SCOPE_TIME, ResetSimulation.Request.SCOPE_STATE
SPAWNED = ResetSimulation.Request.SCOPE_SPAWNED
EVERYTHING = ResetSimulation.Request.SCOPE_ALL


def guest(lane: int) -> str:
    """Name of the drone that may be spawned in a lane."""
    return f"guest{lane}"


def pose_of(x: float, y: float, z: float = 0.0) -> PoseStamped:
    """Of an upright drone in the map [m]."""
    return PoseStamped(pose=Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(w=1.0)))


@dataclass(frozen=True)
class SpawnDrone(Step):
    """A drone comes."""

    lane: int
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self | None:
        lane = choose(rng, model.free_lanes())
        return None if lane is None else cls(lane)

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        has_room = len(model.drones) + len(model.deleted) < MOST_DRONES
        return self.lane in model.free_lanes() and has_room and bool(model.world)

    def take(self, walk: Walk) -> None:
        spawn(walk, self.lane)


def spawn(walk: Walk, lane: int) -> None:
    """Let a drone come."""
    resource = Resource(uri="cf2x_L250")
    walk.ask(
        *(SpawnEntity, "crazyflow/spawn_entity"),
        name=guest(lane),
        entity_resource=resource,
        initial_pose=pose_of(*LANES[lane]),
    )
    walk.model.drones[guest(lane)] = Drone(lane, spawned=True)
    walk.check_log()  # what is of the one before
    walk.model.expected = [p for p in walk.model.expected if guest(lane) not in p.pattern]


@dataclass(frozen=True)
class SpawnObject(Step):
    """An object comes, by its text, its file or its name."""

    kind: str
    place: int
    by: str
    weight: ClassVar[float] = 2.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        kind = rng.choice((*OWN_OBJECTS, "gate"))
        by = "name" if kind == "gate" else rng.choice(("text", "file"))
        return cls(kind, rng.randrange(len(OBJECTS)), by)

    @property
    def name(self) -> str:
        """Of the entity."""
        return f"{self.kind}_at_{self.place}"

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and self.name not in walk.model.objects

    def take(self, walk: Walk) -> None:
        if self.by == "text":
            resource = Resource(resource_string=OWN_OBJECTS[self.kind])
        elif self.by == "file":
            (path,) = walk.folder.glob(f"{self.kind}.*")
            resource = Resource(uri=str(path))
        else:
            resource = Resource(uri=self.kind)
        walk.ask(
            *(SpawnEntity, "crazyflow/spawn_entity"),
            name=self.name,
            entity_resource=resource,
            initial_pose=pose_of(*OBJECTS[self.place], 1.0),
        )
        walk.model.objects.add(self.name)


@dataclass(frozen=True)
class Delete(Step):
    """An entity goes."""

    name: str
    weight: ClassVar[float] = 4.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice([*model.drones, *model.objects]))

    def fits(self, walk: Walk) -> bool:
        model = walk.model
        if self.name in model.drones:
            drone = model.drones[self.name]
            return bool(model.world) and len(model.drones) > 1 and not drone.by_door
        return self.name in model.objects and bool(model.world)

    def take(self, walk: Walk) -> None:
        walk.ask(DeleteEntity, "crazyflow/delete_entity", entity=self.name)
        walk.gone(self.name)


@dataclass(frozen=True)
class DeleteMany(Step):
    """All drones go but for one, between the same two ticks."""

    weight: ClassVar[float] = 0.5

    def fits(self, walk: Walk) -> bool:
        return len(walk.model.pilotable) > 1 and bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        names = walk.model.pilotable[1:]
        walk.ask(CommandDrones, "crazyflow/drones/delete", drones=names)
        for name in names:
            walk.gone(name)


@dataclass(frozen=True)
class Load(Step):
    """Load another world."""

    world: str
    as_text: bool = False
    weight: ClassVar[float] = 2.5

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        # For the many shapes of the race track much has to be compiled.
        world = rng.choice([*3 * [name for name in BODIES if name != "race_track"], "race_track"])
        return cls(world, as_text=world in OWN_WORLDS and rng.random() < 0.3)

    def take(self, walk: Walk) -> None:
        model = walk.model
        walk.rewind()
        if self.as_text:
            resource = Resource(resource_string=OWN_WORLDS[self.world])
        else:
            resource = Resource(uri=world_uri(self.world, walk.folder))
        walk.ask(LoadWorld, "crazyflow/load_world", world_resource=resource)
        walk.forget_usage()
        model.world = self.world
        start_again(walk)


def start_again(walk: Walk) -> None:
    """All is as at the start, and time stands still."""
    walk.all_gone()
    walk.model.reset_state()
    walk.model.playing = False


@dataclass(frozen=True)
class Unload(Step):
    """Remove the world."""

    weight: ClassVar[float] = 0.5

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        walk.rewind()
        walk.ask(UnloadWorld, "crazyflow/unload_world")
        walk.model.world = ""
        start_again(walk)


@dataclass(frozen=True)
class Reset(Step):
    """Put all drones, or one, back to where they started."""

    drone: str = ""
    by: str = "own"
    weight: ClassVar[float] = 6.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        drone = rng.choice(["", *model.drones])
        return cls(drone, rng.choice(("own", "drones", "mujoco")))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and (not self.drone or self.drone in walk.model.drones)

    def take(self, walk: Walk) -> None:
        model = walk.model
        names = [self.drone] if self.drone else list(model.drones)
        if self.by == "drones":
            walk.ask(CommandDrones, "crazyflow/drones/reset", drones=names)
        elif self.by == "own" or self.drone:
            walk.ask(Trigger, f"{self.drone or 'crazyflow'}/reset")
        else:
            walk.ask(ResetWorld, f"{MUJOCO}/reset_world")
        walk.check_log()  # what is of the flight before
        for name in names:
            model.drones[name].reset()


@dataclass(frozen=True)
class ResetScopes(Step):
    """Reset parts of the simulation: its time, its state, what was spawned, or all."""

    scope: int
    weight: ClassVar[float] = 2.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        return cls(rng.choice((TIME, STATE, SPAWNED, TIME | STATE, SPAWNED | STATE, EVERYTHING)))

    def fits(self, walk: Walk) -> bool:
        keeps = self.scope in (STATE, SPAWNED, SPAWNED | STATE, EVERYTHING)
        return bool(walk.model.world) and (keeps or not walk.life.by_door)

    def take(self, walk: Walk) -> None:
        scope, model = self.scope, walk.model
        every = scope == EVERYTHING
        if every or scope & TIME:
            walk.rewind()
        walk.ask(ResetSimulation, "crazyflow/reset_simulation", scope=scope)
        walk.check_log()  # what is of the flight before
        if every or scope & SPAWNED:
            walk.all_gone()
        if every or scope & STATE:
            model.reset_state()
        elif scope & TIME:
            model.rewind()


@dataclass(frozen=True)
class Stop(Step):
    """Stop the simulation: it is as at its start, and time stands still."""

    weight: ClassVar[float] = 0.7

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        walk.rewind()
        state = SimulationState(state=SimulationState.STATE_STOPPED)
        stop = SetSimulationState, "crazyflow/set_simulation_state"
        if not problem_of(walk.ask(*stop, fails=None, state=state)):  # else it has been stopped
            start_again(walk)


@dataclass(frozen=True)
class Move(Step):
    """Put a drone elsewhere within its lane, at rest in the air."""

    drone: str
    place: tuple[float, float]
    height: float
    weight: ClassVar[float] = 1.0

    @classmethod
    def draw(cls, model: Model, rng: random.Random) -> Self:
        place = (round(rng.uniform(-0.2, 0.2), 2), round(rng.uniform(-0.2, 0.2), 2))
        return cls(rng.choice(list(model.drones)), place, round(rng.uniform(LOW, 1.0), 2))

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and self.drone in walk.model.pilotable

    def take(self, walk: Walk) -> None:
        drone = walk.model.drones[self.drone]
        x, y = LANES[drone.lane]
        dx, dy = self.place
        state = EntityState(pose=pose_of(x + dx, y + dy, self.height).pose)
        walk.ask(
            *(SetEntityState, "crazyflow/set_entity_state"),
            entity=self.drone,
            state=state,
            set_pose=True,
            set_twist=True,
        )
        # With rotors at rest it falls, and with a course it flies on.
        drone.wild = True


@dataclass(frozen=True)
class Ask(Step):
    """Ask for what can be loaded and spawned."""

    weight: ClassVar[float] = 0.5

    def take(self, walk: Walk) -> None:
        folder = [str(walk.folder)]
        walk.ask(GetAvailableWorlds, "crazyflow/get_available_worlds", additional_sources=[])
        walk.ask(GetSpawnables, "crazyflow/get_spawnables", fails=None, sources=folder)
        walk.ask(GetNamedPoses, "crazyflow/get_named_poses", fails=None)


@dataclass(frozen=True)
class SaveCheckpoint(Step):
    """Keep the state of the simulation in a file."""

    weight: ClassVar[float] = 1.5

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world)

    def take(self, walk: Walk) -> None:
        walk.ask(Trigger, "crazyflow/save_checkpoint")
        walk.model.save()


@dataclass(frozen=True)
class LoadCheckpoint(Step):
    """Go on from the state in the file; it is refused if it is of other drones."""

    weight: ClassVar[float] = 2.0

    def fits(self, walk: Walk) -> bool:
        return bool(walk.model.world) and walk.model.checkpoint is not None

    def take(self, walk: Walk) -> None:
        model = walk.model
        if not model.loadable:
            walk.ask(Trigger, "crazyflow/load_checkpoint", "the checkpoint is of the drones")
            return
        walk.rewind()
        walk.ask(Trigger, "crazyflow/load_checkpoint")
        walk.check_log()  # what is of the flight before
        model.load()

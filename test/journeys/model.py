"""The model of a walk: what a simulator has to be like after the steps so far."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field

LANES = (
    (1.75, -0.5),
    (-1.75, 0.75),
    (0.25, -1.25),
    (-0.5, 1.25),
    (1.25, 1.25),
    (-1.75, -0.75),
)
"""Places of drones [m]: in every world there is nothing within `FREE` of them, up to 2 m."""
FREE = 0.6
LOW, HIGH = 0.4, 1.4  # m, between which drones are sent
ASTRAY = 0.6  # m beyond that, from which a drone is where nobody sent it
LANDING = 8.0  # s in which a drone is on the floor, also by waypoints
OBJECTS = ((4.0, 4.0), (-4.0, 4.0), (4.0, -4.0), (-4.0, -4.0))
"""Places of objects [m], where no drone comes."""


BODIES = {
    "floor": (),
    "room": (),
    "race_track": tuple(f"gate{i}" for i in range(7)),
    "lawn": (),
    "yard": ("hut", "well"),
    "wood": tuple(f"tree{i}" for i in range(14)),
}
"""All worlds, and their bodies, which can be deleted like what was spawned."""


@dataclass
class Drone:
    """A drone, as far as a walk has to know it."""

    lane: int
    spawned: bool = False
    airborne: bool = False
    landing: bool = False
    """Whether it may still be landing, or may have landed."""
    streamed: bool = False
    """Whether it follows setpoints that nobody has ended."""
    wild: bool = False
    """Whether the walk has done something to it after which it may fall, until it is reset."""
    posted: bool = False
    """Whether a message waits for time to go on."""
    unclear: bool = False
    """Whether it may fly or stand, until it is told what makes it fly in any case."""
    flown: float = 0.0
    """s in the air since its battery was full."""
    by_door: bool = False

    @property
    def hovers(self) -> bool:
        """Whether it surely flies, and obeys."""
        return self.airborne and self._is_sure

    @property
    def stands(self) -> bool:
        """Whether it surely stands on the floor, and obeys."""
        return not self.airborne and self._is_sure

    @property
    def _is_sure(self) -> bool:
        return not (self.landing or self.streamed or self.wild or self.posted or self.unclear)

    @property
    def obeys(self) -> bool:
        """Whether it follows what it is told."""
        return not self.wild

    def fly(self) -> None:
        """It is told to fly, and ends what it did before."""
        self.airborne, self.landing, self.streamed, self.unclear = True, False, False, False

    def follow_velocity(self) -> None:
        """It is told a velocity; one that lands may be so low that it lands all the same."""
        unclear = self.landing or self.unclear
        self.fly()
        self.unclear = unclear

    def pass_time(self, seconds: float) -> None:
        """Messages have arrived, and after a while a landing has ended."""
        self.posted = False
        if self.landing and seconds > LANDING:
            self.airborne = self.landing = False

    def reset(self) -> None:
        """Stand at the start again."""
        self.airborne = self.landing = self.streamed = self.wild = self.posted = False
        self.unclear, self.flown = False, 0.0


@dataclass
class Model:
    """What a simulator has to be like.

    Args:
        drones: Those of the start.
    """

    drones: dict[str, Drone] = field(default_factory=dict)
    deleted: dict[str, Drone] = field(default_factory=dict)
    """Drones of the start that are gone, which a reset of all that was spawned brings back."""
    objects: set[str] = field(default_factory=set)
    world: str = "floor"
    """Name of the world; empty: none is loaded."""
    playing: bool = True
    factor: float = 1.0
    storm: bool = False
    """Whether the wind is stronger than what drones can fly in."""
    checkpoint: dict[str, Drone] | None = None
    """The drones at the time of the checkpoint, if there is one."""
    checkpoint_storm: bool = False
    """Whether there was a storm at that time."""
    uploaded: set[str] = field(default_factory=set)
    """Drones that have a trajectory."""
    expected: list[re.Pattern[str]] = field(default_factory=list)
    """Warnings that the steps so far have caused."""

    def expect(self, pattern: str) -> None:
        """A warning may come from now on."""
        self.expected.append(re.compile(pattern))

    def expects(self, text: str) -> bool:
        """Whether a warning has its place in this walk."""
        return any(p.search(text) for p in self.expected) or self._is_of_a_wild_drone(text)

    def _is_of_a_wild_drone(self, text: str) -> bool:
        name = re.split(r"[:/ ]", text.removeprefix("/"), maxsplit=1)[0]
        drone = self.drones.get(name)
        return drone is not None and (self.storm or drone.wild)

    def may_fall(self, name: str) -> bool:
        """Whether something may happen to a drone."""
        return self.storm or name not in self.drones or self.drones[name].wild

    @property
    def moves(self) -> bool:
        """Whether time goes on."""
        return self.playing and bool(self.world)

    @property
    def pilotable(self) -> list[str]:
        """Drones that topics and services fly."""
        return [name for name, drone in self.drones.items() if not drone.by_door]

    def free_lanes(self) -> list[int]:
        """Lanes without a drone, nor one that a reset brings back."""
        taken = {drone.lane for drone in (*self.drones.values(), *self.deleted.values())}
        return [lane for lane in range(len(LANES)) if lane not in taken]

    def remove(self, name: str) -> None:
        """A drone is deleted."""
        drone = self.drones.pop(name)
        if not drone.spawned:
            drone.reset()
            self.deleted[name] = drone
        self.uploaded.discard(name)

    def pass_time(self, seconds: float) -> None:
        """Time has passed in the simulation."""
        for drone in self.drones.values():
            drone.pass_time(seconds)

    def reset_state(self) -> None:
        """All drones are at their start."""
        for drone in self.drones.values():
            drone.reset()

    def rewind(self) -> None:
        """The clock went back, and messages that waited for time to go on are dropped."""
        for drone in self.drones.values():
            drone.unclear, drone.posted = drone.unclear or drone.posted, False

    def reset_spawned(self) -> None:
        """What was spawned is gone, and what was deleted is there."""
        for name in [name for name, drone in self.drones.items() if drone.spawned]:
            self.remove(name)
        self.drones = dict(sorted({**self.drones, **self.deleted}.items()))  # as at the start
        self.deleted.clear()
        self.objects = set(BODIES.get(self.world, ()))

    def save(self) -> None:
        """A checkpoint is written."""
        self.checkpoint, self.checkpoint_storm = copy.deepcopy(self.drones), self.storm

    @property
    def loadable(self) -> bool:
        """Whether the checkpoint is of the same drones."""
        return self.checkpoint is not None and list(self.checkpoint) == list(self.drones)

    def load(self) -> None:
        """The checkpoint is loaded; the lanes of drones stay those in which they are spawned."""
        assert self.checkpoint is not None
        self.storm = self.checkpoint_storm  # the checkpoint brings its wind
        for name, saved in copy.deepcopy(self.checkpoint).items():
            saved.spawned = self.drones[name].spawned
            self.drones[name] = saved

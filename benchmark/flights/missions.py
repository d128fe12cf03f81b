"""Random missions: what a drone is told, at which times, by users who are not careful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from crazyflow_ros.flight import (
    AltitudeHold,
    FlyTrajectory,
    Goal,
    GoTo,
    Hover,
    Land,
    NotifySetpointsStop,
    PolynomialTrajectory,
    Pose,
    Position,
    Setpoint,
    Stop,
    Takeoff,
    Trajectory,
    Velocity,
    VelocityWorld,
)
from crazyflow_ros.flight.plan import Rules
from crazyflow_ros.runtime import DroneState, TimedWrench

T = TypeVar("T")

Action = Setpoint | TimedWrench | DroneState
"""A setpoint, an external force, or a place to which the drone is put."""

HEIGHT = 2.0
"""Height at which missions begin and end [m]."""
BEGIN = 5.0
"""Time at which missions begin, after the take-off [s]."""
RETURN, DESCENT = 12.0, 7.0
"""Times for the way back to the start, and for the landing [s]."""
_LONGEST = 8.0  # s after which nothing begins any more
_REACH = 5.0  # m from the start
_LOWEST = 0.5  # m, height to which sticks lead


class Task(NamedTuple):
    """A part of a mission."""

    actions: list[tuple[float, Action]]
    """What happens, with times since its begin [s]."""
    duration: float
    """s."""


@dataclass(frozen=True)
class Mission:
    """What one drone is told from the take-off to the landing."""

    kind: str
    actions: list[tuple[float, Action]]
    """In order of the simulated time [s]."""
    home: tuple[float, float]
    """x and y of the start, m."""
    back: float
    """Time at which the drone has to be back at the start [s]."""
    end: float
    """Time at which it has landed [s]."""
    rough: bool
    """Whether it is pushed, put elsewhere or caught in a fall, and so leaves its course."""


class World(NamedTuple):
    """What a task may know: random numbers, the start, and what the drone can do."""

    rng: np.random.Generator
    home: np.ndarray
    rules: Rules
    fastest: float
    """Speed of courses that prescribe one [m/s]."""
    drifts: bool
    """Whether it knows its position from a Flow deck alone, which sees for 4 m."""

    @property
    def ceiling(self) -> float:
        """Height above which the drone is not told to fly [m]."""
        return 3.0 if self.drifts else 6.0

    def place(self, reach: float = _REACH) -> np.ndarray:
        """Return a random place around the start, (3,) m."""
        away = self.rng.uniform(-reach, reach, 2)
        return np.array([*(self.home + away), self.rng.uniform(_LOWEST, 2 / 3 * self.ceiling)])

    def yaw(self) -> float:
        """Return a random heading [rad]."""
        return float(self.rng.uniform(-np.pi, np.pi))

    def times(self, duration: float) -> Iterator[tuple[float, float]]:
        """Yield when a program sends, and when it arrives, with jitter, delay and loss [s]."""
        rng = self.rng
        hertz = float(np.exp(rng.uniform(np.log(5.0), np.log(100.0))))
        jitter = rng.choice([0.0, rng.uniform(0.0, 0.15)])
        delay, loss = rng.choice([0.0, rng.uniform(0.0, 0.2)]), rng.choice([0.0, 0.1, 0.2])
        late = rng.choice([0.0, 0.005])
        time = 0.0
        while time < duration:
            if rng.random() >= loss:
                yield time, time + delay + abs(rng.normal(0.0, late)) if late else time + delay
            time += 1 / hertz + rng.uniform(0.0, jitter)


def poses(world: World) -> Task:
    """Fly to places, some of which replace others on the way."""
    actions: list[tuple[float, Action]] = []
    time = 0.0
    for _ in range(world.rng.integers(1, 5)):
        kind = world.rng.choice(["pose", "goal"])
        place, yaw = world.place(), world.yaw()
        actions.append((time, Pose(place, yaw) if kind == "pose" else Goal(place[:2], yaw)))
        time += float(world.rng.uniform(0.1, 3.0))
    return Task(actions, time + 1.0)


def stream(world: World) -> Task:
    """Follow a moving goal: a circle, a figure-eight, a line, or a wave."""
    rng, env = world.rng, world.rules.envelope
    speed = rng.uniform(0.1, 0.6 * world.fastest)
    # No tighter than the drone can turn at this speed.
    radius = max(rng.uniform(0.3, 2.0), 1.5 * speed**2 / env.acceleration)
    rate = speed / radius * rng.choice([-1.0, 1.0])
    shape = rng.choice(["circle", "eight", "line", "wave"])
    height, climb = rng.uniform(1.0, 2.5), rng.choice([0.0, rng.uniform(0.0, 0.3)])
    heading = rng.choice(["fixed", "along", "spin"])
    kind: Callable[..., Setpoint] = Pose if rng.random() < 0.7 else Position
    spin = rng.uniform(-1.0, 1.0)

    def goal(time: float) -> tuple[tuple[float, float, float], float]:
        phase = rate * time
        x, y = {
            "circle": (np.cos(phase), np.sin(phase)),
            "eight": (np.sin(phase / 2), np.sin(phase) / 2),
            "line": (np.sin(phase), 0.0),
            "wave": (np.clip(phase, -2.0, 2.0) / 2, 0.3 * np.sin(2 * phase)),
        }[shape]
        x, y = world.home + radius * np.array([x, y])
        yaw = {"fixed": 0.3, "along": phase, "spin": spin * time}[heading]
        return (x, y, height + climb * np.sin(phase)), float(np.arctan2(np.sin(yaw), np.cos(yaw)))

    duration = rng.uniform(4.0, _LONGEST)
    first, yaw = goal(0.0)
    actions: list[tuple[float, Action]] = [(0.0, Pose(first, yaw))]
    wait = rng.choice([0.0, 2.5])  # a careful program lets the drone get there first
    actions += [(wait + arrives, kind(*goal(sent))) for sent, arrives in world.times(duration)]
    actions.append((wait + duration + 0.3, NotifySetpointsStop()))
    return Task(_in_order(actions), wait + duration + 0.5)


def steps(world: World) -> Task:
    """Chase poses that jump about several times a second."""
    duration = world.rng.uniform(3.0, 6.0)
    reach = world.rng.uniform(0.3, 3.0)
    actions: list[tuple[float, Action]] = [
        (arrives, Pose(world.place(reach), world.yaw())) for _, arrives in world.times(duration)
    ]
    return Task(_in_order(actions), duration + 0.5)


def sticks(world: World) -> Task:
    """Fly with sticks that are moved at random, often from one end to the other."""
    return _with_sticks(world, "velocity", "hover", "world", "altitude")


def _with_sticks(world: World, *kinds: str) -> Task:
    rng, env = world.rng, world.rules.envelope
    kind = rng.choice(kinds)
    duration, hold = rng.uniform(3.0, _LONGEST), rng.uniform(0.3, 2.0)
    begin = world.ceiling / 2
    pushed: dict[int, np.ndarray] = {}

    def setpoint(time: float) -> Setpoint:
        number = int(time / hold)
        if number not in pushed:
            pushed[number] = rng.choice([-1.0, 1.0], 4) * rng.choice([1.0, rng.random()], 4)
            climbed = hold * 0.5 * env.climb * sum(stick[2] for stick in pushed.values())
            if not _LOWEST < begin + climbed < world.ceiling:
                pushed[number][2] *= -1.0
        x, y, z, turn = pushed[number]
        vel, rate = (x * env.speed, y * env.speed), float(turn * env.yaw_rate)
        if kind == "velocity":
            return Velocity((*vel, z * 0.5 * env.climb), rate)
        if kind == "hover":
            return Hover(vel, rate, 1.5 + z)
        if kind == "world":
            return VelocityWorld((*vel, z * 0.5 * env.climb), rate)
        return AltitudeHold(0.3 * x, 0.3 * y, rate, 1.5 + z)

    actions: list[tuple[float, Action]] = [(0.0, Pose((*world.home, begin), 0.0))]
    actions += [(1.5 + arrives, setpoint(sent)) for sent, arrives in world.times(duration)]
    actions.append((1.8 + duration, NotifySetpointsStop()))
    return Task(_in_order(actions), duration + 2.0)


def _with_heights(world: World) -> Task:
    """Fly with sticks that give the height, which others would lead to the floor after a jump."""
    return _with_sticks(world, "hover", "altitude")


def planner(world: World) -> Task:
    """Use the high-level commander: go_to under way, brisk durations, landings, take-offs."""
    rng = world.rng
    actions: list[tuple[float, Action]] = []
    time, longest = 0.0, rng.uniform(1.0, _LONGEST)
    while time < longest:
        duration = float(rng.choice([0.0, rng.uniform(0.5, 5.0)]))
        if rng.random() < 0.8:
            pos, relative = world.place(), bool(rng.random() < 0.3)
            if relative:
                pos = rng.uniform(-1.5, 1.5, 3) * (1, 1, 0.3)
            linear = bool(rng.random() < 0.1)
            # On the floor, the filter forgets the heading, as the firmware's does.
            yaw = world.yaw() * (not world.drifts)
            actions.append((time, GoTo(pos, yaw, duration, relative, linear=linear)))
            time += float(rng.uniform(0.2, 4.0))
        else:
            actions += [(time, Land(duration=duration)), (time + 6.0, Takeoff(1.5, duration))]
            time += 9.0
    return Task(actions, time + 1.0)


def trajectories(world: World) -> Task:
    """Fly trajectories, one of which may replace another."""
    rng = world.rng
    actions: list[tuple[float, Action]] = []
    time, longest = 0.0, rng.uniform(1.0, _LONGEST)
    while time < longest:
        if rng.random() < 0.5:
            n = int(rng.integers(1, 5))
            points = np.array([world.place(3.0) for _ in range(n)])
            ways = np.linalg.norm(np.diff(points, axis=0, prepend=points[:1]), axis=1)
            times = np.cumsum(1.5 + 2.5 * ways / world.fastest)
            zero = np.zeros((n, 3))
            yaws = np.array([world.yaw() for _ in range(n)]) * 0.3
            ticks = (times * 1e9).astype(int)
            actions.append((time, Trajectory(ticks, points, yaws, zero, zero)))
            length = float(times[-1])
        else:
            actions.append((time, FlyTrajectory(_polynomial(rng), float(rng.uniform(1.0, 2.0)))))
            length = 6.0
        time += float(rng.choice([length, rng.uniform(0.3, length)]))
    return Task(actions, min(time, _LONGEST) + 0.5)


def push(world: World) -> Task:
    """Push a hovering or flying drone."""
    rng = world.rng
    actions, duration = _one_of(rng, poses, stream)(world)
    for _ in range(rng.integers(1, 4)):
        direction = rng.normal(size=3) * (1, 1, 0.3)
        force = direction / np.linalg.norm(direction) * rng.uniform(0.1, 0.5) * world.rules.weight
        wrench = TimedWrench(tuple(force), (0.0, 0.0, 0.0), float(rng.uniform(0.05, 0.3)))
        actions.append((float(rng.uniform(0.5, 6.0)), wrench))
    return Task(_in_order(actions), max(duration, 8.0))


def put(world: World) -> Task:
    """Put a drone elsewhere while it hovers or flies."""
    rng = world.rng
    actions, duration = _one_of(rng, poses, stream, _with_heights)(world)
    for _ in range(rng.integers(1, 3)):
        state = DroneState(pos=world.place(), vel=rng.choice([0.0, 1.0]) * rng.normal(0, 0.5, 3))
        actions.append((float(rng.uniform(0.5, 6.0)), state))
    return Task(_in_order(actions), max(duration, 9.0))


def fall(world: World) -> Task:
    """Stop the rotors high above the floor, and start them again while the drone falls."""
    rng = world.rng
    # What falls for longer needs more height to be caught.
    time = float(rng.uniform(0.1, 0.2 if world.drifts else 0.4))
    high = Pose((*world.home, world.ceiling), world.yaw())
    caught: Setpoint = Velocity((0.5, 0.0, 0.0), 0.3)
    if rng.random() < 0.5:
        caught = Pose(world.place(2.0), world.yaw())
    return Task([(0.0, high), (5.0, Stop()), (5.0 + time, caught)], 8.0)


TASKS: dict[str, Callable[[World], Task]] = {
    "poses": poses,
    "stream": stream,
    "steps": steps,
    "sticks": sticks,
    "planner": planner,
    "trajectories": trajectories,
    "push": push,
    "put elsewhere": put,
    "fall": fall,
}
ROUGH = ("push", "put elsewhere", "fall")
"""Missions whose drones leave their courses."""


def mission(
    rng: np.random.Generator,
    home: np.ndarray,
    rules: Rules,
    fastest: float,
    drifts: bool,
    kind: str = "",
) -> Mission:
    """Draw a mission.

    Args:
        rng: Random numbers.
        home: (2,) the place where the drone stands [m].
        rules: Rules of the drone.
        fastest: Speed of courses that prescribe one [m/s].
        drifts: Whether it knows its position from a Flow deck alone.
        kind: A key of `TASKS`; by default a random one.
    """
    kind = kind or str(rng.choice([*TASKS]))
    world = World(rng, home, rules, fastest, drifts)
    begin = float(BEGIN + rng.uniform(0.0, 0.5))
    before = _turn(world) if rng.random() < 0.3 and kind != "planner" else Task([], 0.0)
    task = TASKS[kind](world)
    start = begin + before.duration
    actions: list[tuple[float, Action]] = [(0.1, Takeoff(HEIGHT, float(rng.uniform(1.0, 3.0))))]
    load = rng.choice([0.0, rng.uniform(0.0, 0.15)])
    if load:
        weight = (0.0, 0.0, -load * rules.weight)
        actions.append((0.05, TimedWrench(weight, (0.0, 0.0, 0.0), np.inf)))
    actions += [(begin + time, action) for time, action in before.actions]
    actions += [(start + time, action) for time, action in task.actions]
    over = start + task.duration
    x, y = home.tolist()
    back = over + RETURN
    actions += [
        (over, NotifySetpointsStop()),
        (over + 0.02, Pose((x, y, HEIGHT), 0.0)),
        (back, Land()),
    ]
    return Mission(kind, _in_order(actions), (x, y), back, back + DESCENT, kind in ROUGH)


def _one_of(rng: np.random.Generator, *options: T) -> T:
    return options[int(rng.integers(len(options)))]


def _turn(world: World) -> Task:
    """Turn and move, so that the next order finds the drone in a curve."""
    env = world.rules.envelope
    sign = world.rng.choice([-1.0, 1.0])
    velocity = Velocity((0.6 * env.speed, 0.0, 0.0), sign * 0.5 * env.yaw_rate)
    return Task([(0.2 * k, velocity) for k in range(6)], 1.2)


def _polynomial(rng: np.random.Generator) -> PolynomialTrajectory:
    """Return a smooth trajectory from rest to rest that begins at the origin."""
    n, duration = int(rng.integers(1, 4)), 2.0
    pieces = np.zeros((n, 4, 8))
    ends = np.vstack((np.zeros(4), np.cumsum(rng.uniform(-0.7, 0.7, (n, 4)) * (1, 1, 0.3, 1), 0)))
    for k in range(n):
        # From rest to rest: 35 u^4 - 84 u^5 + 70 u^6 - 20 u^7.
        pieces[k, :, 0] = ends[k]
        shape = np.array([35.0, -84.0, 70.0, -20.0]) / duration ** np.arange(4, 8)
        pieces[k, :, 4:] = np.outer(ends[k + 1] - ends[k], shape)
    return PolynomialTrajectory([duration] * n, pieces)


def _in_order(actions: list[tuple[float, Action]]) -> list[tuple[float, Action]]:
    return sorted(actions, key=lambda entry: entry[0])

"""Streams of poses, as a drone that keeps its reference exactly would fly them.

The goal's motion is known in closed form here, so speed, place and bounds of the reference are
compared with it and not with the planner's own figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from crazyflow_ros.drones import Drone
from crazyflow_ros.flight import (
    FlightConfig,
    FlightState,
    GoTo,
    Pose,
    Position,
    Setpoint,
    Velocity,
)
from crazyflow_ros.flight.commander import Commander
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.doubts import doubts
from crazyflow_ros.flight.envelope import Envelope
from crazyflow_ros.flight.moving_goal import TimedPose, extended, motion_of
from crazyflow_ros.flight.plan import Rules, StartState
from crazyflow_ros.flight.surroundings import Surroundings

SECOND = 1_000_000_000
TICK = 10_000_000  # ns
DRONE = Drone.cf2x_L250
Goal = Callable[[float], tuple[float, float, float, float]]


def circle(radius: float, rate: float, yaw_rate: float = 0.0) -> Goal:
    """A goal on a circle, at a height of 1 m."""

    def at(time: float) -> tuple[float, float, float, float]:
        yaw = yaw_rate * time
        angle = rate * time
        place = radius * np.cos(angle), radius * np.sin(angle), 1.0
        return (*place, float(np.arctan2(np.sin(yaw), np.cos(yaw))))

    return at


def regular(hertz: float) -> Iterator[float]:
    """Times of a program that keeps its rate."""
    return (k / hertz for k in range(10_000))


def jittered(hertz: float, jitter: float, seed: int) -> Iterator[float]:
    """Times of a program that is late by up to `jitter` [s] at each pose."""
    rng, time = np.random.default_rng(seed), 0.0
    for _ in range(10_000):
        yield time
        time += 1 / hertz + jitter * rng.random()


@dataclass
class Flown:
    """What the reference did."""

    times: list[float] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)

    def after(self, time: float) -> np.ndarray:
        """Return position, velocity, acceleration and jerk after a time, (n, 4, 4)."""
        return np.array(self.rows)[np.array(self.times) >= time]

    def speed(self, time: float) -> np.ndarray:
        """Return the speeds after a time, m/s."""
        found: np.ndarray = np.linalg.norm(self.after(time)[:, 1, :3], axis=1)
        return found


class Streamed:
    """A commander to which poses are streamed, of a drone that is where it is to be."""

    def __init__(self, drone: str = DRONE, first: tuple[float, ...] = (0.0, 0.0, 1.0, 0.0)) -> None:
        self.rules = Rules.of(drone, FlightConfig())
        self.commander = Commander(self.rules)
        self.commander.state = FlightState.flying
        self.ns, self.flown = 0, Flown()
        self.now = Reference.at_rest(np.array(first[:3]), first[3])

    def start(self) -> StartState:
        return StartState(self.ns, self.now)

    def command(self, setpoint: Setpoint) -> None:
        self.commander.command(setpoint, self.start())

    def tick(self) -> None:
        self.commander.update(self.ns, self.start)
        order = self.commander.order
        assert order is not None and order.plan.course is not None
        self.now = order.plan.course.at(order.seconds(self.ns))
        self.flown.times.append(self.ns / SECOND)
        self.flown.rows.append(order.plan.course.along(np.array([order.seconds(self.ns)]))[:, 0])
        self.ns += TICK

    def stream(
        self, goal: Goal, times: Iterator[float], seconds: float, kind: type[Pose | Position] = Pose
    ) -> Flown:
        begin, due = self.ns, next(times)
        while self.ns - begin < seconds * SECOND:
            if (time := (self.ns - begin) / SECOND) >= due - 1e-9:
                place = goal(time)
                self.command(kind(np.array(place[:3]), place[3]))
                due = next(times)
            self.tick()
        return self.flown


@pytest.mark.parametrize(("drone", "kind"), [*((x, Pose) for x in Drone), (DRONE, Position)])
def test_a_regular_stream_is_followed_at_its_speed(
    drone: Drone, kind: type[Pose | Position]
) -> None:
    goal = circle(0.6, 0.9)
    flown = Streamed(drone, goal(0.0)).stream(goal, regular(20), 20.0, kind)
    wanted = 0.6 * 0.9
    assert np.abs(flown.speed(5.0) / wanted - 1).max() < 0.01
    away = [np.linalg.norm(row[0, :3] - goal(t)[:3]) for t, row in zip(flown.times, flown.rows)]
    assert max(away[500:]) < 0.01


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("hertz", [8, 50])
def test_a_stream_with_jitter_keeps_its_speed_within_a_tenth(hertz: float, seed: int) -> None:
    goal = circle(0.9, 0.8)
    flown = Streamed(first=goal(0.0)).stream(goal, jittered(hertz, 0.15, seed), 20.0)
    assert np.abs(flown.speed(5.0) / (0.9 * 0.8) - 1).max() < 0.08


@pytest.mark.parametrize("hertz", [5, 20, 100])
def test_the_reference_is_continuous_and_within_the_bounds(hertz: float) -> None:
    streamed = Streamed(first=(1.5, 0.0, 1.0, 0.0))  # half a metre from the circle, at rest
    goal = circle(1.0, 0.9, yaw_rate=0.5)
    rows = streamed.stream(goal, jittered(hertz, 0.1, 5), 15.0).after(0.0)
    env, dt = streamed.rules.envelope, TICK / SECOND
    (pos, vel, acc), jerk = rows[:, :3].transpose(1, 0, 2), rows[:, 3]
    turned = np.unwrap(pos[:, 3])
    change = np.diff(np.column_stack((pos[:, :3], turned)), axis=0)
    slack = 1e-6 + 0.5 * dt * np.abs(acc[:-1]) + dt**2 * env.jerk
    assert (np.abs(change / dt - vel[:-1]) < slack + dt * env.yaw_acceleration).all()
    assert np.abs(np.diff(vel[:, :3], axis=0)).max() < 1.2 * dt * env.acceleration
    assert np.linalg.norm(np.diff(acc[:, :3], axis=0), axis=1).max() < 1.2 * dt * env.jerk
    assert np.hypot(vel[:, 0], vel[:, 1]).max() < 1.001 * env.speed
    assert np.hypot(acc[:, 0], acc[:, 1]).max() < 1.001 * env.acceleration
    assert np.linalg.norm(jerk[:, :3], axis=1).max() < 1.001 * env.jerk
    late = rows[-200:]
    assert np.abs(np.hypot(late[:, 1, 0], late[:, 1, 1]) - 0.9).max() < 0.09


def test_the_heading_turns_through_the_half_turn() -> None:
    goal = circle(0.5, 0.6, yaw_rate=0.8)
    rows = Streamed(first=goal(0.0)).stream(goal, regular(15), 20.0).after(4.0)
    assert np.abs(rows[:, 1, 3] - 0.8).max() < 0.02


def test_a_stream_that_ends_stops_at_its_last_pose() -> None:
    streamed = Streamed(first=(0.0, 0.0, 1.0, 0.0))
    streamed.stream(lambda t: (0.6 * t, 0.0, 1.0, 0.0), regular(20), 4.0)
    last = 0.6 * 3.95
    assert streamed.flown.rows[-1][1, 0] == pytest.approx(0.6, rel=0.01)
    for _ in range(400):
        streamed.tick()
    assert streamed.now.pos[:3] == pytest.approx([last, 0.0, 1.0], abs=1e-3)
    beyond = max(row[0, 0] for row in streamed.flown.rows) - last
    assert 0 < beyond < 0.7  # it cannot know that no pose follows, and brakes then
    assert max(np.abs(row[1, 0]) for row in streamed.flown.rows) < 1.0
    assert streamed.now.vel == pytest.approx(np.zeros(4), abs=1e-9)


def test_a_jump_begins_another_stream() -> None:
    envelope = Rules.of(DRONE, FlightConfig()).envelope
    stream = extended((), TimedPose(0, (0.0, 0.0, 1.0, 0.0)), envelope)
    for k in range(1, 6):
        stream = extended(stream, TimedPose(k * SECOND // 20, (0.02 * k, 0.0, 1.0, 0.0)), envelope)
    assert len(stream) == 6
    assert motion_of(stream).vel == pytest.approx([0.4, 0, 0, 0], abs=1e-3)
    for pose in ((2.0, 0.0, 1.0, 0.0), (0.12, 0.0, 1.0, 2.0)):
        assert len(extended(stream, TimedPose(6 * SECOND // 20, pose), envelope)) == 1
    late = TimedPose(2 * SECOND, (0.8, 0.0, 1.0, 0.0))
    assert extended(stream, late, envelope) == (late,)


@pytest.mark.parametrize("share", [0.6, 0.68, 0.72, 0.9, 1.0, 1.3])
def test_a_goal_near_the_bound_of_the_speed_is_followed_with_a_lag_never_in_stops(
    share: float,
) -> None:
    """Stops would keep the drone a braking distance behind, and slow it down."""
    flown = Streamed()
    speed = share * flown.rules.envelope.speed
    seconds, radius = 18.0, 3.0
    goal = circle(radius, speed / radius)
    flown.now = Reference.at_rest(np.array(goal(0.0)[:3]), 0.0)
    flown.stream(goal, regular(50), seconds)
    after = flown.flown.after(14.0)
    times = [time for time in flown.flown.times if time >= 14.0]
    wanted = np.array([goal(time)[:3] for time in times])
    behind = np.linalg.norm(after[:, 0, :3] - wanted, axis=1)
    speeds = np.linalg.norm(after[:, 1, :3], axis=1)
    bound = flown.rules.envelope.speed
    if share < 1:
        assert behind.max() < 0.1
        assert speeds.min() > 0.95 * speed
    assert speeds.max() < 1.05 * bound
    assert speeds.min() > 0.8 * min(speed, bound)


def test_a_goal_that_is_too_fast_is_told_once() -> None:
    flown, reported = Streamed(), set[str]()
    told: list[str] = []
    for share in (1.3, 0.5):
        goal = circle(3.0, share * flown.rules.envelope.speed / 3.0)
        for k in range(100):
            flown.command(Pose(np.array(goal(k / 50)[:3]), 0.0))
            order = flown.commander.order
            assert order is not None
            told += doubts(order, flown.rules, Surroundings(), reported)
            flown.tick()
            flown.tick()
    assert len(told) == 1 and "moves faster than the drone may fly (flight.speed 2 m/s" in told[0]


def test_one_pose_again_and_again_is_one_place() -> None:
    """A program that repeats a far goal must not slow the drone down, nor shake it."""
    once, often = Streamed(), Streamed()
    far = Pose((3.0, 1.0, 1.5), 0.4)
    once.command(far)
    for k in range(800):
        if k % 5 == 0:
            often.command(far)
        once.tick(), often.tick()
    assert np.array_equal(once.flown.after(0.0), often.flown.after(0.0))
    assert once.now.pos == pytest.approx([3.0, 1.0, 1.5, 0.4])


def test_poses_that_jump_about_are_flown_to_gently() -> None:
    """Two programs that disagree: the drone stays within a third of the usual jerk."""
    streamed = Streamed()
    for k in range(600):
        if k % 10 == 0:
            streamed.command(Pose((1.0 if k % 20 else -1.0, 0.0, 1.0), 0.0))
        streamed.tick()
    jerk = np.linalg.norm(streamed.flown.after(1.0)[:, 3, :3], axis=1)
    assert jerk.max() < 0.5 * streamed.rules.envelope.jerk


@pytest.mark.parametrize(
    "other",
    [GoTo((0.0, 0.5, 1.2), 0.0, 0.0), Velocity((0.3, 0.0, 0.0), 0.0), Pose((-1.0, 2.0, 1.0), 1.0)],
    ids=lambda setpoint: type(setpoint).__name__,
)
def test_other_setpoints_continue_the_motion_of_a_stream(other: Setpoint) -> None:
    goal = circle(1.0, 0.7)
    streamed = Streamed(first=goal(0.0))
    streamed.stream(goal, regular(20), 6.0)
    before = streamed.now
    streamed.command(other)
    streamed.tick()
    dt = TICK / SECOND
    env = streamed.rules.envelope
    assert streamed.now.vel[:3] == pytest.approx(before.vel[:3], abs=1.5 * dt * env.acceleration)
    assert streamed.now.acc[:3] == pytest.approx(before.acc[:3], abs=2 * dt * env.jerk)


def test_a_weak_drone_leaves_what_it_cannot_fly() -> None:
    """With half of its spare thrust, a drone accelerates half as hard towards the same pose."""
    rules = Rules.of(DRONE, FlightConfig())
    weak = rules.at(StartState(0, Reference.at_rest((0, 0, 1), 0), authority=0.5)).envelope
    whole = rules.envelope
    assert isinstance(weak, Envelope)
    assert weak.acceleration < 0.8 * whole.acceleration
    assert weak.lift < 0.8 * whole.lift
    assert weak.speed <= whole.speed and weak.jerk <= whole.jerk

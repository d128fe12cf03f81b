"""What a pilot probably did not mean: heights, turns, and goals behind things."""

from __future__ import annotations

import re
from math import radians

import mujoco
import numpy as np
import pytest

from crazyflow_ros.dynamics.obstacles import Obstacles
from crazyflow_ros.flight import (
    FlightConfig,
    FlightState,
    FlyTrajectory,
    Goal,
    GoTo,
    Hover,
    Land,
    PolynomialTrajectory,
    Pose,
    Position,
    Setpoint,
    Spiral,
    Takeoff,
    Trajectory,
    Velocity,
    VelocityWorld,
)
from crazyflow_ros.flight.commander import Order
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.doubts import doubts
from crazyflow_ros.flight.plan import Rules, StartState
from crazyflow_ros.flight.surroundings import Surroundings
from crazyflow_ros.scene import build_spec
from crazyflow_ros.scene.collision_shapes import obstacles_of
from crazyflow_ros.scene.frames import rotation_matrix

RULES = Rules.of("cf2x_L250", FlightConfig())
NOTHING = Surroundings()
AT = (0.0, 0.0, 1.0)


def wall(x: float = 1.0, name: str = "wall") -> Surroundings:
    """A wall across the x axis, 10 cm thick and 3 m high."""
    sides, place = [[0.05, 2.0, 1.5]], [[x, 0.0, 1.5]]
    return Surroundings(Obstacles.create(["box"], sides, place, slots=4), [name])


def said(
    setpoint: Setpoint,
    surroundings: Surroundings = NOTHING,
    pos: tuple[float, float, float] = AT,
    state: FlightState = FlightState.flying,
) -> list[str]:
    start = StartState(1_000_000_000, Reference.at_rest(pos, 0.0), state)
    order = Order(setpoint, start, setpoint.plan(start, RULES))
    return list(doubts(order, RULES, surroundings, set()))


def flown(*points: tuple[float, float, float]) -> Trajectory:
    pos, rest = np.array(points), np.zeros((len(points), 3))
    times = np.arange(len(points)) * 1_000_000_000 + 1_000_000_000
    return Trajectory(times, pos, np.zeros(len(points)), rest, rest)


@pytest.mark.parametrize(
    ("setpoint", "expected"),
    [
        (Pose((0.5, 0.0, -1.5), 0.0), "-1.5 m is below the floor"),
        (Position((0.5, 0.0, -0.2), 0.0), "-0.2 m is below the floor"),
        (GoTo((0.5, 0.0, -3.0), 0.0), "-3 m is below the floor"),
        (Hover((0.0, 0.0), 0.0, -0.4), "-0.4 m is below the floor"),
        (Land(-1.0), "-1 m is below the floor"),
        (Pose((0.5, 0.0, 150.0), 0.0), "150 m is unusual: heights are in metres"),
        (GoTo((0.0, 0.0, 1500.0), 0.0), "1500 m is unusual"),
        (Hover((0.0, 0.0), 0.0, 80.0), "80 m is unusual"),
    ],
)
def test_a_height_that_is_none_is_doubted(setpoint: Setpoint, expected: str) -> None:
    (text,) = said(setpoint)
    assert expected in text


def test_a_takeoff_to_a_height_in_millimetres_is_doubted_and_says_how_high_the_world_is() -> None:
    (text,) = said(Takeoff(1200.0), wall(), (0.0, 0.0, 0.01), FlightState.idle)
    assert "1200 m is unusual" in text and "higher than 3.0 m" in text


def test_in_a_high_world_heights_may_be_high() -> None:
    tower = Surroundings(Obstacles.create(["cylinder"], [[1.0, 40.0]], [[20.0, 0.0, 40.0]]), ["t"])
    assert said(Pose((0.0, 0.0, 70.0), 0.0)) and not said(Pose((0.0, 0.0, 70.0), 0.0), tower)


@pytest.mark.parametrize(
    ("setpoint", "degrees"),
    [
        (Velocity((0.2, 0.0, 0.0), 30.0), 30),
        (Velocity((0.2, 0.0, 0.0), -45.0), -45),
        (VelocityWorld((0.2, 0.0, 0.0), 120.0), 120),
        (Hover((0.0, 0.0), 72.0, 1.0), 72),
        (GoTo((0.5, 0.0, 1.0), 90.0), 90),
        (GoTo((0.5, 0.0, 1.0), -270.0), -270),
        (GoTo((0.5, 0.0, 0.0), 45.0, relative=True), 45),
    ],
)
def test_degrees_are_suspected_and_what_is_used_is_said(setpoint: Setpoint, degrees: int) -> None:
    (text,) = said(setpoint)
    assert f"{degrees} looks like degrees" in text and f"{radians(degrees):.2f} rad" in text
    if isinstance(setpoint, GoTo):  # the heading that the drone has in the end, within a turn
        start = StartState(0, Reference.at_rest(AT, 0.0))
        course = setpoint.plan(start, RULES).course
        assert course is not None
        yaw = float(course.at(course.end).pos[3])
        same = float(re.search(r"the same as (-?\d\.\d\d) rad", text)[1])  # type: ignore[index]
        assert np.angle(np.exp(1j * (yaw - same))) == pytest.approx(0.0, abs=0.006)
    else:
        assert f"{RULES.envelope.yaw_rate:g} rad/s at most" in text


@pytest.mark.parametrize(
    "setpoint",
    [
        *(Velocity((1.0, 0.0, 0.0), rate) for rate in (0.0, 1.57, -3.0, 6.0, 9.5)),
        *(GoTo((0.5, 0.0, 1.0), yaw) for yaw in (0.0, 3.14, -6.28, 6.0, 7.85, 31.4, float("nan"))),
        *(Pose((0.5, 0.0, z), 0.0) for z in (-0.01, 0.0, 0.02, 5.0, 29.0)),
        *(Hover((0.1, 0.0), 0.5, z) for z in (0.0, 1.0)),
        *(GoTo((0.0, 0.0, -0.5), 0.0, relative=True), Land(0.0), Land(-0.01)),
        *(GoTo((0.0, 0.0, 40.0), 0.0, relative=True), Spiral(3.0, 0.5, 0.5)),
    ],
)
def test_what_is_usual_is_not_doubted(setpoint: Setpoint) -> None:
    assert said(setpoint, wall(5.0)) == []


SEMICIRCLE = np.zeros((1, 4, 8))
SEMICIRCLE[0, 0, 1] = 1.0  # x at 1 m/s for 2 s


@pytest.mark.parametrize(
    "setpoint",
    [
        Pose((2.0, 0.0, 1.0), 0.0),
        Pose((2.0, 0.5, 0.0), 0.0),
        Goal((2.0, 0.3), 0.0),
        GoTo((2.0, 0.0, 1.5), 0.0),
        GoTo((1.5, 0.5, 0.0), 0.0, relative=True),
        Position((2.0, 0.0, 1.0), 0.0),
        flown((0.5, 0.0, 1.0), (1.9, 0.0, 1.0)),
        FlyTrajectory(PolynomialTrajectory([2.0], SEMICIRCLE)),
    ],
)
def test_what_is_behind_a_wall_is_doubted_by_name_and_place(setpoint: Setpoint) -> None:
    (text,) = said(setpoint, wall(1.0, "garden"))
    assert "leads through garden" in text
    place = [float(x) for x in re.findall(r"first at \[(.*)\] m", text)[0].split(",")]
    assert place[0] == pytest.approx(0.95, abs=0.03)


def test_a_goal_inside_something_is_doubted() -> None:
    (text,) = said(GoTo((1.02, 0.0, 1.0), 0.0), wall(1.0, "garden"))
    assert "[1.02, 0.0, 1.0] m lies inside garden" in text


def test_several_things_on_the_way_are_named_in_order() -> None:
    sides, places = [[0.05, 1.0, 1.0]] * 5, [[x, 0.0, 1.0] for x in (3.0, 1.0, 2.0, 4.0, 5.0)]
    names = ("third", "first", "second", "fourth", "fifth")
    around = Surroundings(Obstacles.create(["box"] * 5, sides, places), names)
    (text,) = said(Pose((6.0, 0.0, 1.0), 0.0), around)
    assert "through first, second, third and others, first at [0.9" in text


@pytest.mark.parametrize(
    ("setpoint", "pos"),
    [
        (Pose((0.8, 0.0, 1.0), 0.0), AT),  # in front of it
        (Pose((2.0, 0.0, 3.5), 0.0), (0.0, 0.0, 3.4)),  # above it
        (Pose((0.0, 2.5, 1.0), 0.0), AT),  # beside it
        (Velocity((2.0, 0.0, 0.0), 0.0), (0.8, 0.0, 1.0)),  # has no goal
        (Land(), (1.0, 0.0, 3.2)),  # on top of it
        (Pose((1.0, 0.0, 4.0), 0.0), (1.0, 0.0, 3.02)),  # from its top
        (Pose((0.0, 0.0, 1.0), 0.0), (0.96, 0.0, 1.0)),  # out of it
    ],
)
def test_what_meets_nothing_is_not_doubted(
    setpoint: Setpoint, pos: tuple[float, float, float]
) -> None:
    assert said(setpoint, wall(), pos) == []


def test_obstacles_that_are_not_named_have_numbers() -> None:
    shapes = Obstacles.create(["none", "sphere"], [[1.0], [0.2]], [[0.0] * 3, [1.0, 0.0, 1.0]])
    (text,) = said(Pose((2.0, 0.0, 1.0), 0.0), Surroundings(shapes))
    assert "leads through obstacle 1" in text


def test_straight_flights_in_the_room_meet_what_rays_of_mujoco_meet() -> None:
    """From rest, the way is a straight line; a ray that grazes an edge may be missed."""
    model = build_spec("cf2x_L250", ["cf0"], scene="room").compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    found = obstacles_of(model, data)
    around = Surroundings(found.obstacles, found.names)
    assert around.top == pytest.approx(2.5)
    kinds = [int(mujoco.mjtGeom(kind)) for kind in np.asarray(found.obstacles.shape)]
    shapes = [np.asarray(a, float) for a in (found.obstacles.size, found.obstacles.pos)]
    matrices = rotation_matrix(np.asarray(found.obstacles.quat, float)).reshape(-1, 9)
    rng, met = np.random.default_rng(3), 0
    while met < 100:
        begin, end = rng.uniform((-3.5, -3.0, 0.2), (3.5, 3.0, 2.4), (2, 3))
        length = float(np.linalg.norm(end - begin))
        inside, passed, grazed = set[str](), dict[str, float](), set[str]()
        for i, name in enumerate(found.names):
            size, pos, axes = shapes[0][i], shapes[1][i], matrices[i]
            to = mujoco.mju_rayGeom(pos, axes, size, begin, (end - begin) / length, kinds[i])
            back = mujoco.mju_rayGeom(pos, axes, size, end, (begin - end) / length, kinds[i])
            if not 0 <= to <= length and not 0 <= back <= length:
                continue
            if not (0 <= to <= length and 0 <= back <= length) or to + back > length:
                inside.add(name)  # it begins or ends there
            elif length - to - back < 0.05:
                grazed.add(name)
            else:
                passed[name] = to
        if inside:
            continue
        texts = said(Pose(end, 0.0), around, tuple(begin.tolist()))
        names = set(re.sub(r".*through (.*), first at.*", r"\1", "".join(texts)).split(", ")) - {""}
        if len(passed) <= 3 and not grazed:
            assert names == set(passed), (begin, end)
            if passed:
                x = float(re.findall(r"first at \[(.*?),", texts[0])[0])
                first = begin + (end - begin) / length * min(passed.values())
                assert x == pytest.approx(first[0], abs=0.04)
                met += 1

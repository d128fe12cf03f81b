"""Setpoints as courses: against closed forms, finite differences and their refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import isabstract

import numpy as np
import pytest
from flight_helpers import DRONE, airborne, course_of, sampled
from scipy.spatial.transform import Rotation

from crazyflow_ros.control import Control
from crazyflow_ros.flight import (
    Arm,
    Emergency,
    FlightConfig,
    FlightState,
    FlyTrajectory,
    GoTo,
    Land,
    PolynomialTrajectory,
    Pose,
    Raw,
    Setpoint,
    Spiral,
    Stop,
    Takeoff,
    Trajectory,
    Velocity,
)
from crazyflow_ros.flight.course import Reference
from crazyflow_ros.flight.courses import state_commands
from crazyflow_ros.flight.envelope import UNBOUNDED
from crazyflow_ros.flight.plan import Rules, StartState
from crazyflow_ros.scene.frames import yaw

RULES = replace(Rules.of(DRONE, FlightConfig(velocity_timeout=8.0)), utmost=UNBOUNDED)
START = airborne((1.0, 2.0, 3.0), 0.5)
REST = RULES.rest_height
NO_DRAG = np.zeros(3)
ZERO = np.zeros((1, 3))
Motion = tuple[np.ndarray, np.ndarray, np.ndarray, float, float]


def at(setpoint: Setpoint, t: float, start: StartState = START) -> Motion:
    """Position, velocity, acceleration, yaw, yaw rate at t seconds after the start."""
    plan = setpoint.plan(start, RULES)
    if plan.course is None:
        assert plan.command is not None
        command = plan.command
    else:
        begin = start.time_ns if plan.begin_ns is None else plan.begin_ns
        times = np.array([t + (start.time_ns - begin) * 1e-9])
        command = state_commands(plan.course.along(times), NO_DRAG)[0]
    assert command.shape == (16,)
    assert np.linalg.norm(command[9:13]) == pytest.approx(1)
    return command[:3], command[3:6], command[6:9], float(yaw(command[9:13])), command[15]


def assert_consistent(setpoint: Setpoint, t: float, h: float = 1e-4) -> None:
    """Velocity and acceleration are the derivatives of position and velocity."""
    before, now, after = (at(setpoint, t + d) for d in (-h, 0, h))
    np.testing.assert_allclose(now[1], (after[0] - before[0]) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(now[2], (after[1] - before[1]) / (2 * h), atol=2e-3)


def test_commands_of_the_state_controller_add_what_drag_takes() -> None:
    references = np.random.default_rng(1).normal(size=(4, 5, 4))
    drag = np.array([0.1, 0.2, 0.3])
    commands = state_commands(references, drag)
    for i, command in enumerate(commands):
        pos, vel, acc, _ = references[:, i]
        np.testing.assert_allclose(command[:6], [*pos[:3], *vel[:3]])
        np.testing.assert_allclose(command[6:9], acc[:3] + drag * vel[:3])
        assert float(yaw(command[9:13])) == pytest.approx(pos[3])


def test_commands_of_the_state_controller_have_the_rates_at_which_the_thrust_turns() -> None:
    """Differences of the attitudes that two commands ask for, one shortly after the other."""
    rng = np.random.default_rng(2)
    h, drag = 1e-5, np.array([0.1, 0.1, 0.2])
    now = rng.normal(size=(4, 20, 4))
    pos, vel, acc, jerk = now
    later = np.array([pos + vel * h, vel + acc * h, acc + jerk * h, jerk])
    turns = [attitudes(state_commands(references, drag)) for references in (now, later)]
    change = (turns[0].inv() * turns[1]).as_rotvec() / h
    rates = state_commands(now, drag)[:, 13:]
    # That about the thrust is the share of the yaw rate, which is what the firmware takes.
    np.testing.assert_allclose(rates[:, :2], change[:, :2], atol=1e-3)
    np.testing.assert_allclose(rates[:, 2], vel[:, 3] * turns[0].as_matrix()[:, 2, 2], atol=1e-9)


def attitudes(commands: np.ndarray) -> Rotation:
    """Of bodies whose thrust gives the accelerations, with the headings of the commands."""
    up = commands[:, 6:9] + (0.0, 0.0, 9.81)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    headings = 2 * np.arctan2(commands[:, 11], commands[:, 12])
    ahead = np.column_stack((np.cos(headings), np.sin(headings), 0 * headings))
    left = np.cross(up, ahead)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    return Rotation.from_matrix(np.stack((np.cross(left, up), left, up), axis=-1))


@pytest.mark.parametrize("goal", [(0.1, -0.2, 0.3), (40.0, 2.0, 3.0), (1.0, 2.0, 3.0)])
def test_pose_is_reached_and_held_with_its_heading(goal: tuple[float, ...]) -> None:
    setpoint = Pose(goal, yaw=-2.0)
    for t in (60.0, 1e6):
        pos, vel, acc, heading, rate = at(setpoint, t)
        np.testing.assert_allclose(pos, goal, atol=1e-9)
        assert not vel.any() and not acc.any() and rate == 0
        assert heading == pytest.approx(-2.0)
    for t in (0.1, 0.7, 1.3, 2.9):
        assert_consistent(setpoint, t)


def test_pose_without_a_heading_keeps_the_one_that_there_is() -> None:
    assert at(Pose((0.0, 0.0, 1.0), float("nan")), 60.0)[3] == pytest.approx(0.5)


def test_pose_turns_the_short_way() -> None:
    start = airborne((0.0, 0.0, 1.0), 3.0)
    setpoint = Pose((0.0, 0.0, 1.0), -3.0)
    headings = np.unwrap([at(setpoint, t, start)[3] for t in np.linspace(0.0, 4.0, 50)])
    assert np.ptp(headings) == pytest.approx(2 * np.pi - 6.0)


def test_pose_on_the_floor_is_a_landing_straight_down() -> None:
    plan = Pose((2.0, 2.0, 0.0), 0.0).plan(START, RULES)
    course = course_of(plan)
    assert (plan.during, plan.after) == (FlightState.flying, FlightState.landed)
    _, (pos, _, _) = sampled(course)
    np.testing.assert_allclose(pos[-1, :3], (2.0, 2.0, REST), atol=1e-9)
    low = pos[:, 2] < REST + 0.149
    assert low.any() and np.abs(pos[low, :2] - 2.0).max() < 1e-9


def test_pose_from_the_floor_rises_before_it_goes_across() -> None:
    start = StartState(0, Reference.at_rest((0.0, 0.0, REST), 0.3), FlightState.idle)
    plan = Pose((2.0, -1.0, 0.1), 1.0).plan(start, RULES)
    assert (plan.during, plan.after) == (FlightState.taking_off, FlightState.flying)
    _, (pos, _, _) = sampled(course_of(plan))
    moving = (np.abs(pos[:, :2]) > 1e-9).any(axis=1)
    there = (np.abs(pos[:, :2] - (2.0, -1.0)) < 1e-9).all(axis=1)
    assert pos[moving & ~there, 2].min() > REST + 0.149
    np.testing.assert_allclose(pos[-1], (2.0, -1.0, 0.1, 1.0), atol=1e-9)


def test_velocity_without_turn_is_a_straight_line_in_the_heading_frame() -> None:
    setpoint = Velocity((1.0, 0.5, -0.1), 0.0)
    c, s = np.cos(0.5), np.sin(0.5)
    expected = np.array([c - 0.5 * s, s + 0.5 * c, -0.1])
    for t in (3.0, 7.0):
        _, vel, acc, heading, _ = at(setpoint, t)
        np.testing.assert_allclose(vel, expected, atol=1e-9)
        assert not acc.any() and heading == pytest.approx(0.5)
    np.testing.assert_allclose(at(setpoint, 7.0)[0] - at(setpoint, 3.0)[0], 4 * expected)
    for t in (0.1, 0.4, 0.9):
        assert_consistent(setpoint, t)


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.7, -1.2])
def test_velocity_with_turn_is_a_circle(rate: float) -> None:
    setpoint = Velocity((0.8, 0.3, 0.1), rate)
    for t in (0.31, 4.01, 6.03):
        assert_consistent(setpoint, t)
    for t in (4.0, 6.0):
        _, vel, _, heading, given = at(setpoint, t)
        assert np.hypot(*vel[:2]) == pytest.approx(np.hypot(0.8, 0.3))
        ahead = np.arctan2(vel[1], vel[0]) - heading
        assert np.cos(ahead - np.arctan2(0.3, 0.8)) == pytest.approx(1)
        assert given == pytest.approx(rate, rel=0.02)  # about the thrust


def test_velocity_turns_left_for_a_positive_rate() -> None:
    setpoint, start = Velocity((0.5, 0.0, 0.0), 1.0), airborne((0.0, 0.0, 1.0), 0.0)
    times = np.linspace(3.0, 3.0 + np.pi, 100)
    track = np.array([at(setpoint, t, start)[0][:2] for t in times])
    heading = at(setpoint, 3.0, start)[3]
    chord = track[-1] - track[0]
    # Half a circle with a radius of 0.5 m, whose far end is to the left.
    np.testing.assert_allclose(chord, (-np.sin(heading), np.cos(heading)), atol=1e-4)


def test_a_fast_drone_turns_slower_than_would_take_too_much_acceleration() -> None:
    _, vel, acc, _, rate = at(Velocity((9.0, 0.0, 0.0), 1.5), 7.0)
    speed, acceleration = RULES.envelope.speed, RULES.envelope.acceleration
    assert np.hypot(*vel[:2]) == pytest.approx(speed, rel=1e-3)
    assert np.hypot(*acc[:2]) == pytest.approx(acceleration / 2, rel=1e-3)
    assert rate == pytest.approx(acceleration / 2 / speed, rel=0.02)


def trajectory(**changes: object) -> Trajectory:
    times = np.array([1.0, 2.0, 3.5])
    values: dict[str, object] = {
        "times_ns": (times * 1e9).astype(int),
        "pos": np.column_stack([times**2, np.sin(times), times]),
        "yaw": np.array([3.0, -3.1, -2.9]),
        "vel": np.column_stack([2 * times, np.cos(times), np.ones(3)]),
        "acc": np.column_stack([np.full(3, 2.0), -np.sin(times), np.zeros(3)]),
    }
    return Trajectory(**(values | changes))  # type: ignore[arg-type]


def test_trajectory_passes_its_points_and_reproduces_a_polynomial() -> None:
    setpoint = trajectory()
    for t, y in ((1.0, np.sin(1)), (2.0, np.sin(2))):
        np.testing.assert_allclose(at(setpoint, t)[0], (t**2, y, t), atol=1e-9)
    for t in (1.3, 1.9, 2.7, 3.4):
        assert_consistent(setpoint, t)
        pos, vel, acc, *_ = at(setpoint, t)
        # x = t^2 and z = t lie in the space of quintics, sin(t) nearly so.
        np.testing.assert_allclose((pos[0], vel[0], acc[0]), (t**2, 2 * t, 2), rtol=1e-8)
        np.testing.assert_allclose(pos[1:], (np.sin(t), t), atol=2e-4)


def test_trajectory_moves_to_its_first_point_from_where_the_drone_was_told_to_be() -> None:
    setpoint = trajectory()
    np.testing.assert_allclose(at(setpoint, 0.0)[0], START.reference.pos[:3])
    np.testing.assert_allclose(at(setpoint, 0.0)[1], 0, atol=1e-12)
    assert_consistent(setpoint, 0.5)
    assert_consistent(setpoint, 1.0 - 2e-4)


def test_a_trajectory_whose_start_is_far_away_begins_later_and_says_so() -> None:
    rules = Rules.of(DRONE, FlightConfig())
    start = airborne((-7.0, 4.0, 2.0), 1.0)
    plan = trajectory().plan(start, rules)
    found = re.search(r"begins the trajectory (.*) s late: it cannot be at its start", plan.note)
    assert found
    course, late = course_of(plan), float(found[1])
    assert late > 1.0
    for t in (1.0, 1.7, 3.2):
        assert course.at(t + late).pos[:3] == pytest.approx([t**2, np.sin(t), t], abs=0.03)
    on_the_way = course.along(np.linspace(0.0, 1.0 + late, 300))
    assert np.hypot(*on_the_way[1, :, :2].T).max() < 1.01 * rules.utmost.speed
    assert np.hypot(*on_the_way[2, :, :2].T).max() < 1.01 * rules.utmost.acceleration
    assert on_the_way[0, 0] == pytest.approx([-7.0, 4.0, 2.0, 1.0], abs=1e-9)
    near = airborne((1.1, 0.9, 1.0), 3.0)
    assert not trajectory(vel=np.zeros((3, 3)), acc=np.zeros((3, 3))).plan(near, rules).note


@pytest.mark.parametrize("early", [0.0, 1.4])
def test_a_trajectory_begins_with_the_motion_that_the_drone_has(early: float) -> None:
    """Also one that began before, which the drone flies onto."""
    start_ns = START.time_ns - round(early * 1e9)
    motion = np.array([[0.4, 1.2, 1.3, 2.0], [0.6, -0.7, 0.2, 0.3], [0.5, 0.2, -0.3, 0.1]])
    moving = StartState(START.time_ns, Reference(*motion))
    plan = trajectory(start_ns=start_ns).plan(moving, RULES)
    assert plan.begin_ns is not None
    now = (moving.time_ns - plan.begin_ns) * 1e-9
    for found, wanted in zip(course_of(plan).at(now), motion):
        np.testing.assert_allclose(found, wanted, atol=1e-9)
    begun = (plan.begin_ns - start_ns) * 1e-9
    later = course_of(plan).at(12.0 - begun).pos[:3]
    np.testing.assert_allclose(later, (3.5**2, np.sin(3.5), 3.5), atol=1e-9)


@pytest.mark.parametrize("seconds", [1.0, 4.0, 15.0])
def test_a_descending_drone_does_not_swing_out_below_the_floor(seconds: float) -> None:
    """A polynomial to a first point that is far, or late, goes on for metres before it turns."""
    rules = Rules.of(DRONE, FlightConfig())
    speed = rules.envelope.climb
    motion = np.array([[0.0, 0.0, 1.2, 0.0], [-1.2, 0.0, -speed, 0.0], np.zeros(4)])
    moving = replace(START, reference=Reference(*motion), fastest=1.0)
    told = Trajectory([round(seconds * 1e9)], [[4.0, 1.0, 1.1]], [0.0], ZERO, ZERO)
    plan = told.plan(moving, rules)
    course = course_of(plan)
    _, (pos, vel, acc) = sampled(course)
    assert pos[:, 2].min() > 0.25  # it stops within 1.2^2 / 2 / 1.2 m, and the jerk takes 0.1 m
    assert pos[:, 0].min() > -0.7
    assert pos[-1] == pytest.approx([4.0, 1.0, 1.1, 0.0], abs=1e-9)
    assert course.end >= seconds and np.abs(vel[:, 2]).max() <= 1.01 * speed
    assert np.hypot(acc[:, 0], acc[:, 1]).max() < 2.1 * rules.envelope.acceleration
    for found, wanted in zip(course.at(0.0), motion):
        assert found == pytest.approx(wanted, abs=1e-9)


def test_a_short_way_to_the_first_point_is_flown_without_a_stop() -> None:
    """Planners replace trajectories many times a second by ones that begin just ahead."""
    motion = np.array([[0.0, 0.0, 1.2, 0.0], [1.5, 0.0, 0.0, 0.0], np.zeros(4)])
    moving = replace(START, reference=Reference(*motion))
    point, vel = [[0.31, 0.02, 1.2]], [[1.6, 0.1, 0.0]]
    plan = Trajectory([200_000_000], point, [0.0], vel, ZERO).plan(
        moving, Rules.of(DRONE, FlightConfig())
    )
    on_the_way = course_of(plan).along(np.linspace(0.0, 0.1999, 50))
    assert not plan.note and on_the_way[1, :, 0].min() > 1.4
    assert on_the_way[0, -1, :3] == pytest.approx(point[0], abs=1e-3)


def test_trajectory_turns_the_short_way_and_holds_its_end() -> None:
    setpoint = trajectory()
    headings = np.unwrap([at(setpoint, t)[3] for t in np.linspace(1.0, 3.5, 200)])
    assert np.ptp(headings) < 0.6  # 3.0 to -3.1 is a turn of 0.18 rad
    pos, vel, acc, heading, rate = at(setpoint, 100.0)
    np.testing.assert_allclose(pos, (3.5**2, np.sin(3.5), 3.5))
    assert not vel.any() and not acc.any() and rate == 0
    assert heading == pytest.approx(-2.9)


def test_trajectory_can_start_at_an_absolute_time() -> None:
    late = trajectory(start_ns=START.time_ns + 5_000_000_000)
    np.testing.assert_allclose(at(late, 7.0)[0], at(trajectory(), 2.0)[0])
    np.testing.assert_allclose(at(late, 0.0)[0], START.reference.pos[:3])
    early = trajectory(start_ns=START.time_ns - 1_500_000_000)
    np.testing.assert_allclose(at(early, 0.0)[0], START.reference.pos[:3], atol=1e-9)
    np.testing.assert_allclose(at(early, 15.0)[0], at(trajectory(), 15.0)[0])  # it has caught up


def test_raw_state_command_of_13_numbers_gives_its_yaw_as_a_quaternion() -> None:
    values = np.arange(13) / 10
    pos, vel, acc, heading, rate = at(Raw(values), 0.0)
    np.testing.assert_allclose(np.concatenate([pos, vel, acc]), values[:9])
    assert heading == pytest.approx(0.9) and rate == pytest.approx(1.2)
    bare = Raw(values).plan(START, RULES).command
    assert bare is not None
    np.testing.assert_allclose(bare[13:], values[10:])


@pytest.mark.parametrize(
    ("setpoint", "expected"),
    [
        (Pose((1.0, 2.0, 3.0), 0.5), 0.0),
        (trajectory(), 3.5),
        (trajectory(start_ns=START.time_ns + 2_000_000_000), 5.5),
        (GoTo((1.5, 2.0, 3.0), 0.5, duration=7.0), 7.0),
        (GoTo((1.5, 2.0, 3.0), 0.5, duration=7.0, linear=True), 7.0),
        (Spiral(1.0, 0.5, 0.2, duration=7.0), 7.0),
        (Land(duration=9.0), 9.0),
    ],
)
def test_commands_change_until_the_course_ends(setpoint: Setpoint, expected: float) -> None:
    plan = setpoint.plan(START, RULES)
    begin = START.time_ns if plan.begin_ns is None else plan.begin_ns
    assert course_of(plan).end + (begin - START.time_ns) * 1e-9 == pytest.approx(expected)
    for one, other in zip(at(setpoint, expected), at(setpoint, expected + 10)):
        np.testing.assert_array_equal(one, other)
    if expected:
        before = at(setpoint, expected - 0.5), at(setpoint, expected - 0.4)
        assert any(not np.array_equal(a, b) for a, b in zip(*before))


def test_raw_commands_have_no_course() -> None:
    plan = Raw(np.zeros(4)).plan(START, RULES)
    assert plan.course is None and not plan.bounded


UPLOADED = PolynomialTrajectory([1.0], np.zeros((1, 4, 8)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pose((0, np.nan, 1), 0.0), "position.*nan"),
        (lambda: Pose((0, 1), 0.0), "position must be 3 finite numbers"),
        (lambda: Pose((0, 0, 1), np.inf), "yaw.*inf"),
        (lambda: Velocity((0, 0, 0), np.nan), "yaw rate.*nan"),
        (lambda: trajectory(times_ns=[2, 1, 3]), r"times must rise.*\[2, 1, 3\]"),
        (lambda: trajectory(times_ns=[]), "times must rise"),
        (lambda: trajectory(vel=np.full((3, 3), np.nan)), "velocities"),
        (lambda: trajectory(pos=np.zeros((2, 3))), "positions"),
        (lambda: trajectory(times_ns=[1, 2, 3]), "by at least 0.1 ms"),
        (lambda: trajectory(pos=[[0, 0, 1e300]] * 3), "positions must be within 10000 m"),
        (
            lambda: trajectory(times_ns=[0, 10**6, 10**7], pos=[[0, 0, 0], [9, 0, 0], [9, 0, 0]]),
            "velocity between two points must be within 1000 m/s",
        ),
        (lambda: Pose((1e12, 0, 1), 0.0), "position must be within 10000 m, got .100000"),
        (lambda: Velocity((0, 1e308, 0), 0.0), "velocity must be within 1000 m/s"),
        (lambda: Velocity((0, 0, 0), 1.7e308), "yaw rate must be within 1000 rad/s"),
        (lambda: Takeoff(0.05), "height must be at least 0.1 m, got 0.05"),
        (lambda: Takeoff(np.inf), "height must be finite, got inf|height.*inf"),
        (lambda: Takeoff(1.0, -1.0), "duration must not be negative, got -1 s"),
        (lambda: Takeoff(1.0, 1.0, group_mask=256), "group_mask must be from 0 to 255, got 256"),
        (lambda: Takeoff(1.0, 1.0, np.inf), "yaw.*inf"),
        (lambda: Land(np.nan), "height.*nan"),
        (lambda: Takeoff(1.0, velocity=-0.5), "velocity must not be negative, got -0.5 m/s"),
        (lambda: Takeoff(1.0, 2.0, velocity=0.5), "a duration or a velocity, got 2 s and 0.5 m/s"),
        (lambda: Spiral(np.nan, 1.0, 1.0), "angle must be finite, got nan"),
        (lambda: Spiral(1.0, 1e5, 1.0), "radius must be within 10000 m, got 100000"),
        (lambda: Spiral(1.0, 1.0, np.inf), "end radius must be finite, got inf"),
        (lambda: Spiral(1.0, 1.0, 1.0, 1e5), "ascent must be within 10000 m, got 100000"),
        (lambda: GoTo((0, 0), 0.0), "position must be 3 finite numbers"),
        (lambda: GoTo((0, 0, 0), 1e9), "yaw must be within 1000 rad"),
        (lambda: Stop(group_mask=999), "group_mask must be from 0 to 255"),
        (lambda: PolynomialTrajectory([], np.zeros((0, 4, 8))), "has 1 to 1361 pieces, got 0"),
        (lambda: PolynomialTrajectory([1.0] * 1362, np.zeros((1362, 4, 8))), "pieces, got 1362"),
        (lambda: PolynomialTrajectory([0.0], np.zeros((1, 4, 8))), "at least 0.001 s"),
        (lambda: PolynomialTrajectory([1.0], np.zeros((1, 4, 7))), "coefficients"),
        (lambda: PolynomialTrajectory([1.0], np.full((1, 4, 8), np.nan)), "coefficients"),
    ],
)
def test_unusable_setpoints_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "setpoint",
    [
        Pose((0, 0, 1), 0.0),
        Velocity((0, 0, 0), 0.0),
        trajectory(),
        Takeoff(1.0),
        Land(),
        GoTo((0, 0, 1), 0.0),
        Spiral(1.0, 1.0, 1.0),
        FlyTrajectory(UPLOADED),
    ],
)
def test_state_setpoints_need_state_control(setpoint: Setpoint) -> None:
    setpoint.check(Control.state)
    with pytest.raises(ValueError, match="needs control=state, the drones have attitude"):
        setpoint.check(Control.attitude)


@pytest.mark.parametrize("setpoint", [Arm(True), Arm(False), Emergency(), Stop()])
def test_what_stops_rotors_is_good_in_all_control_modes(setpoint: Setpoint) -> None:
    for control in Control:
        setpoint.check(control)


def test_what_stops_rotors_in_the_air_says_so() -> None:
    falls, locked = "stops its rotors 1.50 m above the floor", "is locked until you reset it"
    start = airborne((0.0, 0.0, 1.5 + RULES.rest_height), 0.0)
    stands = replace(start, state=FlightState.landed)
    for setpoint in (Arm(False), Stop()):
        assert setpoint.plan(start, RULES).note == falls
        assert setpoint.plan(stands, RULES).note == ""
    assert Emergency().plan(start, RULES).note == f"{falls} and {locked}"
    assert Emergency().plan(stands, RULES).note == locked


@pytest.mark.parametrize("at_edge", [(1e4, 0.0, 1.0), (0.0, -1e4, 1e4)])
def test_what_is_told_at_the_edge_of_the_world_is_finite(at_edge: tuple[float, ...]) -> None:
    start = airborne(at_edge, 1000.0)
    for setpoint in (Velocity((1000.0, 0, 0), 1000.0), Velocity((0, 0, 1000.0), -1000.0)):
        for t in (0.0, 7.0, 1e2, 1e6, 1e9):
            pos, vel, _, heading, _ = at(setpoint, t, start)
            assert np.abs(pos).max() <= 1.1e4 and np.isfinite([*vel, heading]).all()


def test_raw_commands_are_checked_against_the_control_mode() -> None:
    for control, size in ((Control.attitude, 4), (Control.rotor_vel, 4), (Control.state, 13)):
        with pytest.raises(ValueError, match=f"number 2 of a command of control={control} must be"):
            Raw(np.eye(size)[2] * 1e8).check(control)
    Raw(np.zeros(4)).check(Control.rotor_vel)
    with pytest.raises(ValueError, match="13 or 16 numbers, got 4"):
        Raw(np.zeros(4)).check(Control.state)
    with pytest.raises(ValueError, match="zero quaternion"):
        Raw(np.zeros(16)).check(Control.state)
    with pytest.raises(ValueError, match="nan at index"):
        Raw([1, 2, np.nan, 3]).check(Control.attitude)


def kinds(kind: type[Setpoint] = Setpoint) -> Iterator[type[Setpoint]]:
    """All setpoints of this package that drones can follow."""
    for below in kind.__subclasses__():
        if below.__module__.startswith("crazyflow_ros.") and not isabstract(below):
            yield below
        yield from kinds(below)


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=str), ids=lambda kind: kind.__name__)
def test_messages_name_setpoints_as_people_do(kind: type[Setpoint]) -> None:
    article, _, name = kind.title.partition(" ")
    vowel = name[0] in "aeiou"
    assert article in ({"an", "the"} if vowel else {"a", "the"})
    assert kind.title != Setpoint.title
    is_compound = not kind.__name__[1:].islower()  # as AttitudeThrust
    assert not is_compound or kind.__name__.lower() not in name

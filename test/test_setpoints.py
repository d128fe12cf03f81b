"""Setpoints as functions of time: against closed forms, finite differences and their refusals."""

import numpy as np
import pytest

from crazyflow_ros.control import Control
from crazyflow_ros.runtime import Pose, Raw, Trajectory, Velocity
from crazyflow_ros.runtime.setpoints import Start
from crazyflow_ros.scene.frames import yaw

START = Start(time_ns=3_000_000_000, pos=np.array([1.0, 2.0, 3.0]), yaw=0.5)


def at(setpoint, t, start=START):
    """Position, velocity, acceleration, yaw, yaw rate at t seconds after the start."""
    command = setpoint.command(start, start.time_ns + round(t * 1e9))
    assert command.shape == (16,)
    assert np.linalg.norm(command[9:13]) == pytest.approx(1)
    return command[:3], command[3:6], command[6:9], float(yaw(command[9:13])), command[15]


def assert_consistent(setpoint, t, h=1e-4):
    """Velocity and acceleration are the derivatives of position and velocity."""
    before, now, after = (at(setpoint, t + d) for d in (-h, 0, h))
    np.testing.assert_allclose(now[1], (after[0] - before[0]) / (2 * h), atol=1e-5)
    np.testing.assert_allclose(now[2], (after[1] - before[1]) / (2 * h), atol=1e-4)


def test_pose_is_held_with_its_heading():
    pos, vel, acc, heading, rate = at(Pose((0.1, -0.2, 0.3), yaw=-2.0), 7.0)
    np.testing.assert_array_equal(pos, (0.1, -0.2, 0.3))
    assert not vel.any() and not acc.any() and rate == 0
    assert heading == pytest.approx(-2.0)


def test_velocity_without_turn_is_a_straight_line_in_the_heading_frame():
    pos, vel, acc, heading, _ = at(Velocity((1.0, 0.5, -0.1), 0.0), 2.0)
    c, s = np.cos(0.5), np.sin(0.5)
    expected = np.array([c - 0.5 * s, s + 0.5 * c, -0.1])
    np.testing.assert_allclose(vel, expected)
    np.testing.assert_allclose(pos, START.pos + 2.0 * expected)
    assert not acc.any() and heading == pytest.approx(0.5)


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.7, -2.0])
def test_velocity_with_turn_is_a_circle(rate):
    setpoint = Velocity((0.8, 0.3, 0.1), rate)
    for t in (0.1, 1.0, 4.0):
        assert_consistent(setpoint, t)
        _, vel, _, heading, given = at(setpoint, t)
        assert np.hypot(*vel[:2]) == pytest.approx(np.hypot(0.8, 0.3))
        assert np.cos(heading - 0.5 - rate * t) == pytest.approx(1) and given == rate


def test_velocity_turns_left_for_a_positive_rate():
    pos, *_ = at(Velocity((1.0, 0.0, 0.0), np.pi / 2), 1.0, Start(0, np.zeros(3), 0.0))
    np.testing.assert_allclose(pos, (2 / np.pi, 2 / np.pi, 0), atol=1e-12)


def trajectory(**changes):
    times = np.array([1.0, 2.0, 3.5])
    values = {
        "times_ns": (times * 1e9).astype(int),
        "pos": np.column_stack([times**2, np.sin(times), times]),
        "yaw": np.array([3.0, -3.1, -2.9]),
        "vel": np.column_stack([2 * times, np.cos(times), np.ones(3)]),
        "acc": np.column_stack([np.full(3, 2.0), -np.sin(times), np.zeros(3)]),
    }
    return Trajectory(**(values | changes))


def test_trajectory_passes_its_points_and_reproduces_a_polynomial():
    setpoint = trajectory()
    for t, y in ((1.0, np.sin(1)), (2.0, np.sin(2))):
        np.testing.assert_allclose(at(setpoint, t)[0], (t**2, y, t), atol=1e-9)
    for t in (1.3, 1.9, 2.7, 3.4):
        assert_consistent(setpoint, t)
        pos, vel, acc, *_ = at(setpoint, t)
        # x = t^2 and z = t lie in the space of quintics, sin(t) nearly so.
        np.testing.assert_allclose((pos[0], vel[0], acc[0]), (t**2, 2 * t, 2), rtol=1e-8)
        np.testing.assert_allclose(pos[1:], (np.sin(t), t), atol=2e-4)


def test_trajectory_moves_to_its_first_point_from_where_the_drone_was_told_to_be():
    setpoint = trajectory()
    np.testing.assert_allclose(at(setpoint, 0.0)[0], START.pos)
    np.testing.assert_allclose(at(setpoint, 0.0)[1], 0, atol=1e-12)
    assert_consistent(setpoint, 0.5)
    assert_consistent(setpoint, 1.0 - 2e-4)


def test_trajectory_turns_the_short_way_and_holds_its_end():
    setpoint = trajectory()
    headings = np.unwrap([at(setpoint, t)[3] for t in np.linspace(1.0, 3.5, 200)])
    assert np.ptp(headings) < 0.6  # 3.0 to -3.1 is a turn of 0.18 rad
    pos, vel, acc, heading, rate = at(setpoint, 100.0)
    np.testing.assert_allclose(pos, (3.5**2, np.sin(3.5), 3.5))
    assert not vel.any() and not acc.any() and rate == 0
    assert heading == pytest.approx(-2.9)


def test_trajectory_can_start_at_an_absolute_time():
    late = trajectory(start_ns=START.time_ns + 5_000_000_000)
    np.testing.assert_allclose(at(late, 7.0)[0], at(trajectory(), 2.0)[0])
    np.testing.assert_allclose(at(late, 0.0)[0], START.pos)
    early = trajectory(start_ns=START.time_ns - 1_500_000_000)
    np.testing.assert_allclose(at(early, 0.5)[0], at(trajectory(), 2.0)[0])


def test_raw_state_command_of_13_numbers_gives_its_yaw_as_a_quaternion():
    values = np.arange(13) / 10
    pos, vel, acc, heading, rate = at(Raw(values), 0.0)
    np.testing.assert_allclose(np.concatenate([pos, vel, acc]), values[:9])
    assert heading == pytest.approx(0.9) and rate == pytest.approx(1.2)
    np.testing.assert_allclose(Raw(values).command(START, 0)[13:], values[10:])


@pytest.mark.parametrize(
    ("setpoint", "expected"),
    [
        (Pose((0, 0, 1), 0.0), 0.0),
        (Velocity((0, 0, 0), 0.0), 0.0),
        (Velocity((0, 0, 0), 0.1), np.inf),
        (Velocity((0, 0.1, 0), 0.0), np.inf),
        (trajectory(), 3.5),
        (trajectory(start_ns=START.time_ns + 2_000_000_000), 5.5),
        (Raw(np.zeros(4)), 0.0),
    ],
)
def test_commands_change_until_they_settle(setpoint, expected):
    settled = (setpoint.settled(START) - START.time_ns) * 1e-9
    assert settled == expected

    def command(t):
        return setpoint.command(START, START.time_ns + round(t * 1e9))

    if np.isfinite(settled):
        np.testing.assert_array_equal(command(settled), command(settled + 10))
    if settled:
        assert (command(min(settled, 1.0) - 0.02) != command(min(settled, 1.0) - 0.01)).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Pose((0, np.nan, 1), 0.0), "position.*nan"),
        (lambda: Pose((0, 1), 0.0), r"position must be \(3,\)"),
        (lambda: Pose((0, 0, 1), np.inf), "yaw.*inf"),
        (lambda: Velocity((0, 0, np.inf), 0.0), "velocity.*inf"),
        (lambda: Velocity((0, 0, 0), np.nan), "yaw rate.*nan"),
        (lambda: trajectory(times_ns=[2, 1, 3]), r"times must rise.*\[2, 1, 3\]"),
        (lambda: trajectory(times_ns=[-1, 1, 3]), "times must rise"),
        (lambda: trajectory(times_ns=[]), "times must rise"),
        (lambda: trajectory(vel=np.full((3, 3), np.nan)), "velocities"),
        (lambda: trajectory(pos=np.zeros((2, 3))), "positions"),
    ],
)
def test_unusable_setpoints_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("setpoint", [Pose((0, 0, 1), 0.0), Velocity((0, 0, 0), 0.0), trajectory()])
def test_state_setpoints_need_state_control(setpoint):
    setpoint.check(Control.state)
    with pytest.raises(ValueError, match="needs control=state, the drones have attitude"):
        setpoint.check(Control.attitude)


def test_raw_commands_are_checked_against_the_control_mode():
    Raw(np.zeros(4)).check(Control.rotor_vel)
    with pytest.raises(ValueError, match="13 or 16 numbers, got 4"):
        Raw(np.zeros(4)).check(Control.state)
    with pytest.raises(ValueError, match="zero quaternion"):
        Raw(np.zeros(16)).check(Control.state)
    with pytest.raises(ValueError, match="nan at index"):
        Raw([1, 2, np.nan, 3]).check(Control.attitude)

"""Command messages and what becomes of them."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from geometry_msgs.msg import (
    PointStamped,
    PoseStamped,
    Transform,
    Twist,
    TwistStamped,
    WrenchStamped,
)
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from crazyflow_ros.control import Control
from crazyflow_ros.ros.commands import setpoint_messages
from crazyflow_ros.ros.commands.setpoint_messages import WRENCH, Command, commands

HALF = math.sqrt(0.5)
NAN, INF = math.nan, math.inf
COMMANDS = commands(Control.state, "cf2x_L250")
POSE, VELOCITY = COMMANDS["cmd_pose"], COMMANDS["cmd_vel"]
TRAJECTORY, FULL_STATE = COMMANDS["cmd_trajectory"], COMMANDS["cmd_full_state"]


def pose(
    pos: Sequence[float] = (1.0, 2.0, 3.0),
    quat: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    frame_id: str = "",
) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame_id
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = pos
    q.x, q.y, q.z, q.w = quat
    return message


def twist(
    linear: Sequence[float] = (1.0, 2.0, 3.0),
    angular: Sequence[float] = (0.0, 0.0, 0.5),
    frame_id: str = "",
) -> TwistStamped:
    message = TwistStamped()
    message.header.frame_id = frame_id
    v, w = message.twist.linear, message.twist.angular
    v.x, v.y, v.z = linear
    w.x, w.y, w.z = angular
    return message


def point(
    seconds: float,
    pos: Sequence[float] = (0.0, 0.0, 1.0),
    vel: Sequence[float] | None = None,
    acc: Sequence[float] | None = None,
    quat: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
) -> MultiDOFJointTrajectoryPoint:
    transform = Transform()
    t, q = transform.translation, transform.rotation
    t.x, t.y, t.z = pos
    q.x, q.y, q.z, q.w = quat
    message = MultiDOFJointTrajectoryPoint(transforms=[transform])
    for given, twists in ((vel, message.velocities), (acc, message.accelerations)):
        if given is not None:
            derivative = Twist()
            derivative.linear.x, derivative.linear.y, derivative.linear.z = given
            twists.append(derivative)
    message.time_from_start.sec = math.floor(seconds)
    message.time_from_start.nanosec = round((seconds % 1) * 1e9)
    return message


def trajectory(*points: MultiDOFJointTrajectoryPoint, **changes: Any) -> MultiDOFJointTrajectory:
    return MultiDOFJointTrajectory(points=list(points), **changes)


def wrench(frame_id: str = "", y: float = 2.0) -> WrenchStamped:
    message = WrenchStamped()
    message.header.frame_id = frame_id
    message.wrench.force.y, message.wrench.torque.z = y, 3.0
    return message


def full_state(frame_id: str = "/world", w: float = HALF) -> Any:
    """As crazyflie_interfaces has it."""
    axes = SimpleNamespace
    return SimpleNamespace(
        header=SimpleNamespace(frame_id=frame_id),
        pose=SimpleNamespace(
            position=axes(x=1.0, y=2.0, z=3.0), orientation=axes(x=0.0, y=0.0, z=w, w=w)
        ),
        twist=SimpleNamespace(linear=axes(x=4.0, y=5.0, z=6.0), angular=axes(x=0.1, y=0.2, z=0.3)),
        acc=axes(x=7.0, y=8.0, z=9.0),
    )


@pytest.mark.parametrize(("frame_id", "z"), [("", HALF), ("map", 5.0), ("cf0/odom", HALF)])
def test_pose_keeps_position_and_heading_also_of_quaternions_of_another_length(
    frame_id: str, z: float
) -> None:
    setpoint = POSE.convert(pose(quat=(0.0, 0.0, z, z), frame_id=frame_id), "cf0")
    assert np.array_equal(setpoint.pos, [1, 2, 3])
    assert setpoint.yaw == pytest.approx(math.pi / 2)


@pytest.mark.parametrize("frame_id", ["", "cf0/base_link", "base_link", "teleop_twist_joy"])
def test_velocity_is_in_the_heading_frame(frame_id: str) -> None:
    setpoint = VELOCITY.convert(twist(frame_id=frame_id), "cf0")
    assert np.array_equal(setpoint.vel, [1, 2, 3])
    assert setpoint.yaw_rate == 0.5


@pytest.mark.parametrize("joints", [[], ["cf0"], ["base_link"], ["cf0/base_link"]])
def test_trajectory_of_one_drone(joints: list[str]) -> None:
    message = trajectory(
        point(0.5, (1.0, 0.0, 1.0), vel=(0.1, 0.2, 0.3), acc=(1.0, 2.0, 3.0)),
        point(2.25, (2.0, 0.0, 1.0), vel=(0.4, 0.5, 0.6), acc=(4.0, 5.0, 6.0)),
        joint_names=joints,
    )
    setpoint = TRAJECTORY.convert(message, "cf0")
    assert np.array_equal(setpoint.times_ns, [500_000_000, 2_250_000_000])
    assert np.array_equal(setpoint.pos, [[1, 0, 1], [2, 0, 1]])
    assert np.array_equal(setpoint.vel, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    assert np.array_equal(setpoint.acc, [[1, 2, 3], [4, 5, 6]])
    assert setpoint.start_ns is None


def test_one_point_is_a_trajectory_which_starts_at_its_stamp() -> None:
    message = trajectory(point(2.0, (1.0, 2.0, 3.0)))
    message.header.stamp.sec, message.header.stamp.nanosec = 3, 4
    setpoint = TRAJECTORY.convert(message, "cf0")
    assert np.array_equal(setpoint.vel, [[0, 0, 0]])
    assert setpoint.start_ns == 3_000_000_004


def test_missing_derivatives_are_differences_that_rest_at_the_ends() -> None:
    # x = t^2, at times that are not evenly spaced.
    times = np.array([0.0, 0.5, 1.5, 2.0, 3.0])
    points = [point(t, (t * t, 0.0, 1.0)) for t in times]
    setpoint = TRAJECTORY.convert(trajectory(*points), "cf0")
    vel, acc = np.asarray(setpoint.vel), np.asarray(setpoint.acc)
    assert np.allclose(vel[1:-1, 0], 2 * times[1:-1])
    assert np.array_equal(vel[[0, -1]], np.zeros((2, 3)))
    assert np.allclose(acc[2, 0], 2)
    assert np.array_equal(acc[[0, -1]], np.zeros((2, 3)))


def test_raw_takes_numbers_as_they_are_but_rotor_speeds_are_in_rad_per_second() -> None:
    values = [0.1, 0.2, 0.3, 0.4]
    setpoint = setpoint_messages.raw(Float64MultiArray(data=values), Control.attitude, 4)
    assert np.array_equal(setpoint.values, values)
    message = Float64MultiArray(data=[2 * math.pi * 100] * 4)
    assert np.allclose(setpoint_messages.raw(message, Control.rotor_vel, 4).values, 6000)


@pytest.mark.parametrize(
    ("command", "message", "reason"),
    [
        (POSE, pose(frame_id="cf1/odom"), "map, cf0/odom, got 'cf1/odom'"),
        (POSE, pose((1.0, NAN, 3.0)), "nan"),
        (POSE, pose(quat=(0.0, 0.0, 0.0, 0.0)), "orientation is the zero quaternion"),
        (POSE, pose(quat=(0.0, 0.0, NAN, 1.0)), "orientation must be 4 finite numbers, got"),
        (VELOCITY, twist(frame_id="map"), "teleop_twist_joy, got 'map'"),
        (VELOCITY, twist(frame_id="bse_link"), "got 'bse_link'; did you mean 'base_link'?"),
        (VELOCITY, twist((NAN, 0.0, 0.0)), "nan"),
        (VELOCITY, twist(angular=(0.0, 0.0, INF)), "inf"),
        (VELOCITY, twist(angular=(0.1, 0.0, 0.0)), "angular x and y must be 0, got 0.1 and 0"),
        (VELOCITY, twist(angular=(NAN, 0.0, 0.0)), "got nan"),
        (TRAJECTORY, trajectory(), "points is empty"),
        (TRAJECTORY, trajectory(point(1.0), joint_names=["cf1"]), "joint_names must be"),
        (TRAJECTORY, trajectory(point(1.0), point(1.0)), "times must rise"),
        (TRAJECTORY, trajectory(point(-1.0)), "times must rise"),
        (TRAJECTORY, trajectory(point(1.0, (NAN, 0.0, 0.0))), "nan"),
        (TRAJECTORY, trajectory(point(1.0, vel=(NAN, 0.0, 0.0))), "nan"),
        (TRAJECTORY, trajectory(point(1.0, quat=(0.0, 0.0, 0.0, 0.0))), "zero quaternion"),
        (TRAJECTORY, trajectory(point(1.0), point(2.0, vel=(0.0, 0.0, 0.0))), "velocities"),
        (TRAJECTORY, trajectory(MultiDOFJointTrajectoryPoint()), "point 0 has 0 transforms"),
        (WRENCH, wrench("cf1/base_link"), "frame_id must be"),
        (WRENCH, wrench(y=NAN), "force must be 3 finite numbers"),
        (WRENCH, wrench(y=INF), "force must be 3 finite numbers"),
        (FULL_STATE, full_state("cf1/odom"), "frame_id must be"),
        (FULL_STATE, full_state(w=0.0), "attitude"),
        (FULL_STATE, full_state(w=NAN), "attitude"),
    ],
)
def test_what_cannot_be_flown_is_refused(command: Command, message: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        command.convert(message, "cf0")


@pytest.mark.parametrize(
    ("control", "values", "reason"),
    [
        (Control.attitude, [0.0] * 5, "an attitude command must have 4 numbers, got 5"),
        (Control.state, [0.0] * 12, "13 or 16 numbers, got 12"),
        (Control.state, [0.0] * 16, "zero quaternion"),
        (Control.rotor_vel, [0.0, NAN, 0.0, 0.0], "nan"),
        (Control.attitude, [], "got 0"),
    ],
)
def test_raw_command_of_the_wrong_kind_is_refused(
    control: Control, values: list[float], reason: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        setpoint_messages.raw(Float64MultiArray(data=values), control, 4)


@pytest.mark.parametrize(
    ("frame", "in_body"),
    [("", False), ("map", False), ("cf0/odom", False), ("cf0/base_link", True)],
)
def test_wrench_is_in_the_axes_of_its_frame(frame: str, in_body: bool) -> None:
    found = WRENCH.convert(wrench(frame), "cf0")
    assert (np.asarray(found.force).tolist(), found.in_body) == ([0, 2, 0], in_body)
    assert (np.asarray(found.torque).tolist(), found.duration) == ([0, 0, 3], 0.1)


@pytest.mark.parametrize("frame", ["", "map", "cf0/odom", "world"])
def test_goals_of_rviz_are_in_its_fixed_frame(frame: str) -> None:
    goal = COMMANDS["goal_pose"].convert(pose((2.0, 1.0, 0.0), frame_id=frame), "cf0")
    assert np.asarray(goal.place).tolist() == [2.0, 1.0]
    clicked = PointStamped()
    clicked.header.frame_id, clicked.point.y = frame, 3.0
    goal = COMMANDS["clicked_point"].convert(clicked, "cf0")
    assert np.asarray(goal.place).tolist() == [0.0, 3.0]


@pytest.mark.parametrize("frame", ["", "map", "cf0/odom", "world", "/world"])
def test_full_state_is_taken_as_it_is(frame: str) -> None:
    found = FULL_STATE.convert(full_state(frame), "cf0")
    expected = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, HALF, HALF, 0.1, 0.2, 0.3]
    parts = (found.pos, found.vel, found.acc, found.attitude, found.ang_vel)
    np.testing.assert_allclose(np.concatenate(parts), expected)


def test_hover_is_in_the_heading_frame() -> None:
    message = SimpleNamespace(vx=0.1, vy=0.2, yaw_rate=0.3, z_distance=0.4)
    found = COMMANDS["cmd_hover"].convert(message, "cf0")
    assert (np.asarray(found.vel).tolist(), found.yaw_rate, found.height) == ([0.1, 0.2], 0.3, 0.4)
    message.vy = NAN
    with pytest.raises(ValueError, match="velocity must be 2 finite numbers"):
        COMMANDS["cmd_hover"].convert(message, "cf0")


def test_streamed_yaws_are_in_degrees() -> None:
    header = SimpleNamespace(frame_id="/world")
    message = SimpleNamespace(header=header, x=1.0, y=2.0, z=3.0, yaw=90.0)
    found = COMMANDS["cmd_position"].convert(message, "cf0")
    assert (np.asarray(found.pos).tolist(), found.yaw) == ([1, 2, 3], pytest.approx(np.pi / 2))
    vel = SimpleNamespace(x=0.1, y=0.2, z=0.3)
    message = SimpleNamespace(header=header, vel=vel, yaw_rate=-180.0)
    moving = COMMANDS["cmd_velocity_world"].convert(message, "cf0")
    assert (np.asarray(moving.vel).tolist(), moving.yaw_rate) == ([0.1, 0.2, 0.3], -np.pi)
    header.frame_id = "cf1/odom"
    with pytest.raises(ValueError, match="frame_id must be"):
        COMMANDS["cmd_velocity_world"].convert(message, "cf0")


def test_legacy_has_the_units_and_signs_of_the_firmware() -> None:
    found = setpoint_messages.legacy(twist((20.0, 10.0, 65535.0), (0.0, 0.0, 90.0)).twist, 0.6)
    angles = (found.roll, found.pitch, found.yaw_rate)
    assert angles == pytest.approx(np.radians((10.0, 20.0, -90.0)))
    assert found.thrust == 0.6
    assert setpoint_messages.legacy(twist((0.0, 0.0, 0.0)).twist, 0.6).thrust == 0.0


@pytest.mark.parametrize(
    ("linear", "reason"),
    [
        ((0.0, 0.0, 65536.0), "linear.z must be within 65535 of PWM, got 65536"),
        ((0.0, 0.0, -1.0), "linear.z must not be negative, got -1 of PWM"),
        ((0.0, 0.0, NAN), "linear.z must be finite, got nan"),
        ((0.0, INF, 0.0), "roll must be finite, got inf"),
        ((1e6, 0.0, 0.0), "pitch must be within 1000 rad"),
    ],
)
def test_bad_legacy_is_refused(linear: Sequence[float], reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        setpoint_messages.legacy(twist(linear).twist, 0.6)


def test_without_the_messages_of_crazyswarm2_the_other_commands_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = commands(Control.state, "cf2x_L250")
    assert {"cmd_hover", "cmd_full_state", "cmd_vel_legacy", "cmd_vel"} <= found.keys()
    monkeypatch.setitem(sys.modules, "crazyflie_interfaces", None)
    monkeypatch.delitem(sys.modules, "crazyflie_interfaces.msg", raising=False)
    without = commands(Control.state, "cf2x_L250")
    theirs = {"cmd_hover", "cmd_full_state", "cmd_position", "cmd_velocity_world"}
    assert found.keys() - without.keys() == theirs

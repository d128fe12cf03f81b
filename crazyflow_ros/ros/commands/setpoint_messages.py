"""Conversion of command messages to setpoints and wrenches. Invalid messages are refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import (
    PointStamped,
    PoseStamped,
    Quaternion,
    Twist,
    TwistStamped,
    WrenchStamped,
)
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros import flight
from crazyflow_ros.checks import limits
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.flight import (
    Pose,
    Raw,
    Trajectory,
    Velocity,
)
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import xyz, xyzw
from crazyflow_ros.ros.messages.times import nanoseconds
from crazyflow_ros.runtime import TimedWrench
from crazyflow_ros.scene import frames

if TYPE_CHECKING:  # optional at run time
    from crazyflie_interfaces.msg import FullState, Hover, Position, VelocityWorld

_WRENCH_DURATION = 0.1  # s of simulated time
_CRAZYSWARM = ("world", "/world")  # the map frame in crazyswarm2's programs
_BODIES = ("base_link", "base_footprint", "teleop_twist_joy")  # of any drone, by other programs
_PWM = 65535  # full thrust in the firmware


def pose(message: PoseStamped, drone: str) -> Pose:
    """Convert to a position and heading to hold, in the map; roll and pitch are ignored.

    Raises:
        ValueError: Wrong frame, NaN or infinity, or zero quaternion.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone))
    return Pose(xyz(message.pose.position), _yaw(message.pose.orientation))


def velocity(message: TwistStamped, drone: str) -> Velocity:
    """Convert to a velocity and yaw rate; without another message in time the drone hovers.

    The velocity is in the heading frame: x ahead, y left, z up, level even if the drone tilts. TF
    has no such frame, so names are accepted that programs use for the frame of a body.

    Raises:
        ValueError: Another frame, NaN or infinity, or a non-zero roll or pitch rate.
    """
    _check_frame(message, frame_ids.base_link(drone), drone, *_BODIES)
    rates = xyz(message.twist.angular)
    if rates[0] != 0 or rates[1] != 0:
        raise ValueError(f"angular x and y must be 0, got {rates[0]:g} and {rates[1]:g}")
    return Velocity(xyz(message.twist.linear), rates[2])


def goal_pose(message: PoseStamped, drone: str) -> flight.Goal:
    """Convert to a horizontal goal and heading at the present height; RViz sends no height.

    Raises:
        ValueError: A frame other than the map, NaN or infinity, or zero quaternion.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), *_CRAZYSWARM)
    return flight.Goal(xyz(message.pose.position)[:2], _yaw(message.pose.orientation))


def clicked_point(message: PointStamped, drone: str) -> flight.Goal:
    """Convert to a goal above a point at the present height.

    Raises:
        ValueError: A frame other than the map, NaN or infinity.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), *_CRAZYSWARM)
    return flight.Goal(xyz(message.point)[:2], math.nan)


def trajectory(message: MultiDOFJointTrajectory, drone: str) -> Trajectory:
    """Convert to a trajectory through points in the map; the drone holds the last one.

    A message holds about 1,000 points at most. Times count from the stamp, or from the arrival of a
    message without one. Velocities and accelerations are in map axes. If all points lack them, they
    are differences of neighbouring points, and zero at both ends.

    Raises:
        ValueError: Wrong frame or joint, no points, times that do not increase, velocities or
            accelerations in only some points, NaN or infinity, or zero quaternion.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone))
    joints = list(message.joint_names)
    if joints not in ([], [drone], ["base_link"], [frame_ids.base_link(drone)]):
        got = limits.shown(joints)
        raise ValueError(f"joint_names must be empty or ['{drone}'], got {got}")
    points = message.points
    if not points:
        raise ValueError("points is empty")
    for i, point in enumerate(points):
        if len(point.transforms) != 1:
            raise ValueError(f"point {i} has {len(point.transforms)} transforms, must have 1")
    times_ns = np.array([nanoseconds(point.time_from_start) for point in points])
    transforms = [point.transforms[0] for point in points]
    pos = np.array([xyz(transform.translation) for transform in transforms])
    yaw = np.array([_yaw(transform.rotation) for transform in transforms])
    vel = _derivative(points, "velocities")
    acc = _derivative(points, "accelerations")
    if (np.diff(times_ns) > 0).all():  # otherwise the setpoint refuses them
        vel = _differences(pos, times_ns) if vel is None else vel
        acc = _differences(vel, times_ns) if acc is None else acc
    start_ns = nanoseconds(message.header.stamp) or None
    zeros = np.zeros_like(pos)
    return Trajectory(
        times_ns, pos, yaw, zeros if vel is None else vel, zeros if acc is None else acc, start_ns
    )


def full_state(message: FullState, drone: str) -> flight.FullState:
    """Convert to an unplanned full state in the map; angular velocities are body rates [rad/s].

    Raises:
        ValueError: Wrong frame, NaN or infinity, or zero quaternion.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), *_CRAZYSWARM)
    return flight.FullState(
        xyz(message.pose.position),
        xyz(message.twist.linear),
        xyz(message.acc),
        xyzw(message.pose.orientation),
        xyz(message.twist.angular),
    )


def hover(message: Hover, drone: str) -> flight.Hover:
    """Convert to a velocity in the heading frame and a height above the floor.

    As in crazyswarm2, the frame is ignored: its programs leave it empty or set it to the world.

    Raises:
        ValueError: NaN or infinity.
    """
    del drone
    return flight.Hover((message.vx, message.vy), message.yaw_rate, message.z_distance)


def position(message: Position, drone: str) -> flight.Position:
    """Convert to a position in the map and a yaw in degrees.

    crazyswarm2's documentation says radians, but its servers pass the number on to the firmware,
    which takes degrees.

    Raises:
        ValueError: Wrong frame, NaN or infinity.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), *_CRAZYSWARM)
    return flight.Position(xyz(message), math.radians(message.yaw))


def velocity_world(message: VelocityWorld, drone: str) -> flight.VelocityWorld:
    """Convert to a velocity in the map and a yaw rate in degrees per second, counter-clockwise.

    Raises:
        ValueError: Wrong frame, NaN or infinity.
    """
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), *_CRAZYSWARM)
    return flight.VelocityWorld(xyz(message.vel), math.radians(message.yaw_rate))


def legacy(message: Twist, drone: str, most_thrust: float) -> flight.AttitudeThrust:
    """Convert roll, pitch, yaw rate and thrust in the convention of crazyswarm2 and the firmware.

    `linear.y` is the roll and `linear.x` the pitch [degrees], positive to the right and forwards;
    `angular.z` is the yaw rate [degrees/s], clockwise because the firmware inverts it; `linear.z`
    is the thrust as PWM: 65535 is full thrust, and thrust is proportional to PWM.

    Args:
        message: The message.
        drone: Name of the drone.
        most_thrust: Collective thrust at full PWM [N].

    Raises:
        ValueError: NaN or infinity, or a PWM out of range.
    """
    del drone
    pwm = limits.number("linear.z", message.linear.z, limits.Limit(_PWM, "of PWM"))
    if pwm < 0:
        raise ValueError(f"linear.z must not be negative, got {pwm:g} of PWM")
    roll, pitch = math.radians(message.linear.y), math.radians(message.linear.x)
    turn = -math.radians(message.angular.z)
    return flight.AttitudeThrust(roll, pitch, turn, pwm / _PWM * most_thrust)


def raw(message: Float64MultiArray, drone: str, control: Control) -> Raw:
    """Convert a command of the control mode, see `Control`; rotor speeds are in rad/s here.

    Raises:
        ValueError: Wrong number of values, NaN or infinity, or zero quaternion.
    """
    del drone  # all drones have the same control mode
    values = np.array(message.data)
    setpoint = Raw(values / RPM if control is Control.rotor_vel else values)
    setpoint.check(control)
    return setpoint


def wrench(message: WrenchStamped, drone: str) -> TimedWrench:
    """Convert to a wrench at the centre of mass.

    It acts for 0.1 s of simulated time or until the next message, so it ends when its publisher
    stops. The axes are those of the map, or with frame `<drone>/base_link` those of the drone,
    rotating with it.

    Raises:
        ValueError: Wrong frame, NaN or infinity.
    """
    body = frame_ids.base_link(drone)
    _check_frame(message, frame_ids.MAP, frame_ids.odom(drone), body)
    force, torque = xyz(message.wrench.force), xyz(message.wrench.torque)
    return TimedWrench(force, torque, _WRENCH_DURATION, in_body=message.header.frame_id == body)


def _check_frame(message: Any, *accepted: str) -> None:
    """Raise ValueError unless the frame of a message is one of those accepted, or empty."""
    frame = message.header.frame_id
    if frame and frame not in accepted:
        hint = f"; {near}" if (near := limits.suggestion(frame, accepted)) else ""
        names = ", ".join(accepted)
        raise ValueError(
            f"frame_id must be empty or one of {names}, got {limits.shown(frame)!r}{hint}"
        )


def _yaw(orientation: Quaternion) -> float:
    return float(frames.yaw(limits.unit_quaternion("orientation", xyzw(orientation))))


def _derivative(points: list[Any], name: str) -> np.ndarray | None:
    """Return linear velocities or accelerations, shape (K, 3), or None if no point has any."""
    values = [getattr(point, name) for point in points]
    counts = {len(value) for value in values}
    if counts == {0}:
        return None
    if counts != {1}:
        raise ValueError(f"{name} must be in all points once, or in none")
    return np.array([xyz(value[0].linear) for value in values])


def _differences(values: np.ndarray, times_ns: np.ndarray) -> np.ndarray:
    """Differentiate values (K, 3) by central differences, with zeros at both ends."""
    slopes = np.zeros_like(values)
    if len(values) > 2:
        slopes[1:-1] = np.gradient(values, times_ns * 1e-9, axis=0)[1:-1]
    return slopes

"""The messages that command a drone, from <drone>/cmd_pose to <drone>/wrench.

A `Command` says which messages a topic takes, and converts them to setpoints or wrenches. All
conversions raise ValueError for NaN, infinity or a zero quaternion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PointStamped, PoseStamped, Twist, TwistStamped, WrenchStamped
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import MultiDOFJointTrajectory

from crazyflow_ros import flight
from crazyflow_ros.checks import limits
from crazyflow_ros.control import Control
from crazyflow_ros.drones import load_drone, rotors_of
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.flight import Pose, Raw, Trajectory, Velocity
from crazyflow_ros.ros.messages import frame_ids
from crazyflow_ros.ros.messages.geometry import attitude, xyz, xyzw
from crazyflow_ros.ros.messages.times import nanoseconds
from crazyflow_ros.runtime import TimedWrench
from crazyflow_ros.scene import frames

if TYPE_CHECKING:  # optional at run time
    from crazyflie_interfaces.msg import FullState, Hover, Position, VelocityWorld

_WRENCH_DURATION = 0.1  # s of simulated time
_PWM = 65535  # full thrust in the firmware

_DRONE = "<drone>"
_MAP = (frame_ids.MAP, frame_ids.odom(_DRONE))
_WORLD = (*_MAP, "world", "/world")  # the latter two are the map in crazyswarm2's programs
_BODY = frame_ids.base_link(_DRONE)
_BODIES = (_BODY, _DRONE, "base_link", "base_footprint", "teleop_twist_joy")  # in other programs


@dataclass(frozen=True)
class Command:
    """The messages of a topic that commands a drone."""

    topic: str
    """Its name, below that of the drone."""
    type: Any
    """Type of the messages."""
    conversion: Callable[[Any], Any]
    """Converts a message to a setpoint or wrench; raises ValueError if its values are invalid."""
    frames: tuple[str, ...] = ()
    """Frames of the messages; those of the drone contain "<drone>". The frame may also be empty.
    Without any, it is ignored."""
    joints: tuple[str, ...] = ()
    """Names for the drone in `joint_names`, if the messages have it; it may also be empty."""

    def convert(self, message: Any, drone: str) -> Any:
        """Return the setpoint or wrench of a message for a drone.

        Raises:
            ValueError: The frame, the joint or a value is invalid.
        """
        if self.frames and (frame := message.header.frame_id):
            accepted = [name.replace(_DRONE, drone) for name in self.frames]
            if frame not in accepted:
                hint = f"; {near}" if (near := limits.suggestion(frame, accepted)) else ""
                expected = f"frame_id must be empty or one of {', '.join(accepted)}"
                raise ValueError(f"{expected}, got {limits.shown(frame)!r}{hint}")
        if self.joints:
            joints = list(message.joint_names)
            accepted = [name.replace(_DRONE, drone) for name in self.joints]
            if joints and (len(joints) > 1 or joints[0] not in accepted):
                expected = f"joint_names must be empty or ['{drone}']"
                raise ValueError(f"{expected}, got {limits.shown(joints)}")
        return self.conversion(message)


def pose(message: PoseStamped) -> Pose:
    """Convert to a position and heading to hold, in the map; roll and pitch are ignored."""
    yaw = float(frames.yaw(attitude(message.pose.orientation)))
    return Pose(xyz(message.pose.position), yaw)


def velocity(message: TwistStamped) -> Velocity:
    """Convert to a velocity and yaw rate; without another message in time the drone hovers.

    The velocity is in the heading frame: x ahead, y left, z up, level even if the drone tilts. TF
    has no such frame, so names are accepted that programs use for the frame of a body.

    Raises:
        ValueError: A roll or pitch rate is not zero.
    """
    rates = xyz(message.twist.angular)
    if rates[0] != 0 or rates[1] != 0:
        raise ValueError(f"angular x and y must be 0, got {rates[0]:g} and {rates[1]:g}")
    return Velocity(xyz(message.twist.linear), rates[2])


def goal_pose(message: PoseStamped) -> flight.Goal:
    """Convert to a horizontal goal and heading at the present height; RViz sends no height."""
    yaw = float(frames.yaw(attitude(message.pose.orientation)))
    return flight.Goal(xyz(message.pose.position)[:2], yaw)


def clicked_point(message: PointStamped) -> flight.Goal:
    """Convert to a goal above a point at the present height."""
    return flight.Goal(xyz(message.point)[:2], math.nan)


def trajectory(message: MultiDOFJointTrajectory) -> Trajectory:
    """Convert to a trajectory through points in the map; the drone holds the last one.

    A message holds about 1,000 points at most. Times count from the stamp, or from the arrival of a
    message without one. Velocities and accelerations are in map axes. If all points lack them, they
    are differences of neighbouring points, and zero at both ends.

    Raises:
        ValueError: No points, times that do not increase, or velocities or accelerations in only
            some points.
    """
    points = message.points
    if not points:
        raise ValueError("points is empty")
    for i, point in enumerate(points):
        if len(point.transforms) != 1:
            raise ValueError(f"point {i} has {len(point.transforms)} transforms, must have 1")
    times_ns = np.array([nanoseconds(point.time_from_start) for point in points])
    transforms = [point.transforms[0] for point in points]
    pos = np.array([xyz(transform.translation) for transform in transforms])
    yaw = np.array([frames.yaw(attitude(transform.rotation)) for transform in transforms])
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


def full_state(message: FullState) -> flight.FullState:
    """Convert to an unplanned full state in the map; angular velocities are body rates [rad/s]."""
    return flight.FullState(
        xyz(message.pose.position),
        xyz(message.twist.linear),
        xyz(message.acc),
        xyzw(message.pose.orientation),
        xyz(message.twist.angular),
    )


def hover(message: Hover) -> flight.Hover:
    """Convert to a velocity in the heading frame and a height above the floor.

    As in crazyswarm2, the frame is ignored: its programs leave it empty or set it to the world.
    """
    return flight.Hover((message.vx, message.vy), message.yaw_rate, message.z_distance)


def position(message: Position) -> flight.Position:
    """Convert to a position in the map and a yaw in degrees.

    crazyswarm2's documentation says radians, but its servers pass the number on to the firmware,
    which takes degrees.
    """
    return flight.Position(xyz(message), math.radians(message.yaw))


def velocity_world(message: VelocityWorld) -> flight.VelocityWorld:
    """Convert to a velocity in the map and a yaw rate in degrees per second, counter-clockwise."""
    return flight.VelocityWorld(xyz(message.vel), math.radians(message.yaw_rate))


def legacy(message: Twist, most_thrust: float) -> flight.AttitudeThrust:
    """Convert roll, pitch, yaw rate and thrust in the convention of crazyswarm2 and the firmware.

    `linear.y` is the roll and `linear.x` the pitch [degrees], positive to the right and forwards;
    `angular.z` is the yaw rate [degrees/s], clockwise because the firmware inverts it; `linear.z`
    is the thrust as PWM: 65535 is full thrust, and thrust is proportional to PWM.

    Args:
        message: The message.
        most_thrust: Collective thrust at full PWM [N].

    Raises:
        ValueError: The PWM is out of range.
    """
    pwm = limits.number("linear.z", message.linear.z, limits.Limit(_PWM, "of PWM"))
    if pwm < 0:
        raise ValueError(f"linear.z must not be negative, got {pwm:g} of PWM")
    roll, pitch = math.radians(message.linear.y), math.radians(message.linear.x)
    turn = -math.radians(message.angular.z)
    return flight.AttitudeThrust(roll, pitch, turn, pwm / _PWM * most_thrust)


def raw(message: Float64MultiArray, control: Control, n_rotors: int) -> Raw:
    """Convert a command of the control mode, see `Control`; rotor speeds are in rad/s here.

    Raises:
        ValueError: Wrong number of values.
    """
    values = np.array(message.data)
    setpoint = Raw(values / RPM if control is Control.rotor_vel else values)
    setpoint.check_rotors(control, n_rotors)
    return setpoint


def wrench(message: WrenchStamped) -> TimedWrench:
    """Convert to a wrench at the centre of mass.

    It acts for 0.1 s of simulated time or until the next message, so it ends when its publisher
    stops. The axes are those of the map, or with frame `<drone>/base_link` those of the drone,
    rotating with it.
    """
    in_body = message.header.frame_id.endswith("/base_link")
    force, torque = xyz(message.wrench.force), xyz(message.wrench.torque)
    return TimedWrench(force, torque, _WRENCH_DURATION, in_body=in_body)


POSE = Command("cmd_pose", PoseStamped, pose, _MAP)
VELOCITY = Command("cmd_vel", TwistStamped, velocity, _BODIES)
WRENCH = Command("wrench", WrenchStamped, wrench, (*_MAP, _BODY))


def commands(control: Control, drone_model: str) -> dict[str, Command]:
    """Return the commands with a setpoint, by topic; all are recorded and replayed."""
    most_thrust = 4 * float(load_drone(drone_model)["thrust_max"])
    n_rotors = len(rotors_of(drone_model))
    joints = (_DRONE, "base_link", _BODY)
    found = [
        Command("cmd_vel_legacy", Twist, lambda message: legacy(message, most_thrust)),
        *_crazyswarm(),
        POSE,
        VELOCITY,
        Command("goal_pose", PoseStamped, goal_pose, _WORLD),
        Command("clicked_point", PointStamped, clicked_point, _WORLD),
        Command("cmd_trajectory", MultiDOFJointTrajectory, trajectory, _MAP, joints),
        Command("command", Float64MultiArray, lambda message: raw(message, control, n_rotors)),
    ]
    return {command.topic: command for command in found}


def _crazyswarm() -> Iterator[Command]:
    """Yield the streamed setpoints of crazyswarm2, if its message package is installed."""
    with suppress(ModuleNotFoundError):  # the feature `flight_services` warns about it
        from crazyflie_interfaces.msg import FullState, Hover, Position, VelocityWorld

        yield Command("cmd_full_state", FullState, full_state, _WORLD)
        yield Command("cmd_hover", Hover, hover)
        yield Command("cmd_position", Position, position, _WORLD)
        yield Command("cmd_velocity_world", VelocityWorld, velocity_world, _WORLD)


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

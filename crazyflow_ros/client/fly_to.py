"""A position controller in Python, over a forward command controller of ros2_control.

    ros2 launch crazyflow_ros ros2_control.launch.py controller:=attitude
    ros2 run crazyflow_ros fly_to --ros-args -p drone:=cf0 -p position:=[0.5,0.3,1.0]
    ros2 param set /fly_to position [0.0,0.0,1.5]

For each message on `<drone>/pose` it publishes thrust and attitude on `<drone>_attitude/commands`,
with the velocity from `<drone>/odom`. Parameters: `drone`; `drone_model`, which gives the mass;
`position` [m] in `map` and `yaw` [rad], both settable in flight.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import Point, Pose, PoseStamped, Quaternion, Twist, Vector3
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.control.acceleration import attitude_command
from crazyflow_ros.drones import DEFAULT_DRONE, load_drone
from crazyflow_ros.ros import configure_middleware, stay_on_this_machine
from crazyflow_ros.scene.frames import body_to_world

STIFFNESS, DAMPING = 6.0, 4.0  # 1/s^2, 1/s
MOST = 5.0  # m/s^2, largest commanded acceleration along each axis

_SPIN_PERIOD = 0.1  # s, longest time until a signal is noticed


def command(pose: Pose, twist: Twist, goal: np.ndarray, yaw: float, mass: float) -> np.ndarray:
    """Compute the command that brings a drone to its goal.

    Args:
        pose: Pose of the drone in `map`.
        twist: Twist of the drone in body axes.
        goal: Goal [m], shape (3,).
        yaw: Heading at the goal [rad].
        mass: Mass of the drone [kg].

    Returns:
        Thrust [N], roll, pitch and yaw [rad], shape (4,).
    """
    quat = _array(pose.orientation)
    vel = body_to_world(quat, _array(twist.linear))
    acc = STIFFNESS * (goal - _array(pose.position)) - DAMPING * vel
    acc = np.clip(acc, -MOST, MOST)
    return np.array(attitude_command(acc.tolist(), yaw, quat.tolist(), mass))


class FlyTo(Node):
    """A node that flies one drone to the parameter `position`.

    Raises:
        ValueError: A parameter has an invalid value; the message names it.
    """

    def __init__(self) -> None:
        super().__init__("fly_to")
        any_number = ParameterDescriptor(dynamic_typing=True)  # accept 1 as well as 1.0
        drone: str = self.declare_parameter("drone", "cf0").value
        model: str = self.declare_parameter("drone_model", DEFAULT_DRONE).value
        self.declare_parameter("position", [0.0, 0.0, 1.0], any_number)
        self.declare_parameter("yaw", 0.0, any_number)
        self._goal, self._yaw = np.zeros(3), 0.0
        self._mass = float(load_drone(model)["mass"])
        self._read([self.get_parameter("position"), self.get_parameter("yaw")])
        self.add_on_set_parameters_callback(self._set)
        self._commands = self.create_publisher(Float64MultiArray, f"{drone}_attitude/commands", 1)
        self._twist = Twist()
        self.create_subscription(Odometry, f"{drone}/odom", self._look, qos_profile_sensor_data)
        self.create_subscription(
            PoseStamped, f"{drone}/pose", self._answer, qos_profile_sensor_data
        )

    def _look(self, odometry: Odometry) -> None:
        self._twist = odometry.twist.twist

    def _answer(self, pose: PoseStamped) -> None:
        numbers = command(pose.pose, self._twist, self._goal, self._yaw, self._mass)
        self._commands.publish(Float64MultiArray(data=numbers.tolist()))

    def _set(self, parameters: Sequence[Parameter[Any]]) -> SetParametersResult:
        try:
            self._read(parameters)
        except ValueError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _read(self, parameters: Sequence[Parameter[Any]]) -> None:
        given = {parameter.name: parameter.value for parameter in parameters}
        goal = _numbers("position", given["position"], 3) if "position" in given else self._goal
        yaw = _numbers("yaw", [given["yaw"]], 1)[0] if "yaw" in given else self._yaw
        self._goal, self._yaw = goal, float(yaw)


def _numbers(name: str, value: object, count: int) -> np.ndarray:
    try:
        numbers = np.array(value, float)
    except (TypeError, ValueError):
        numbers = np.array(math.nan)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(f"{name}: expected {count} finite numbers, got {value!r}")
    return numbers


def _array(message: Point | Quaternion | Vector3) -> np.ndarray:
    """Convert to an array of x, y, z and, if present, w."""
    names = "xyzw" if isinstance(message, Quaternion) else "xyz"
    return np.array([getattr(message, name) for name in names])


def main() -> None:
    """Fly until a signal arrives."""
    stopped = threading.Event()  # a signal handler's exception would be lost in rclpy's C++ code
    on_end(stopped.set)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    try:
        executor = SingleThreadedExecutor()
        executor.add_node(FlyTo())
        while not stopped.is_set():
            executor.spin_once(_SPIN_PERIOD)
        executor.shutdown()
    except ValueError as error:
        sys.exit(f"fly_to: {error}")
    finally:
        rclpy.shutdown()


if __name__ == "__main__":
    stay_on_this_machine()
    configure_middleware()
    main()

"""Flies a drone of a running simulator with a policy, over topics.

    ros2 run crazyflow_ros simulator --ros-args -p control:=rotor_vel
    ros2 run crazyflow_ros policy --file hover.policy --drone cf0 --position 0 0 1

For each message on `<drone>/odom` at which the policy is to act, it publishes a command on
`<drone>/command`. The simulator's parameter `control` must match the policy's commands. A new goal
arrives on `<drone>/policy_goal`, a `geometry_msgs/msg/PoseStamped` in `map`. When the program ends,
it stops the rotors.

With `--lock-step` the simulator stands still while the policy computes, and advances in exact
steps; without, a command takes effect about a millisecond late.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from math import inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters
from rclpy.duration import Duration
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.checks import limits
from crazyflow_ros.client import ANSWER, SimulationError, SimulatorClient
from crazyflow_ros.client.simulator_arguments import add_simulator_arguments
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics.first_principles import RPM
from crazyflow_ros.end_signals import on_end
from crazyflow_ros.policy.files import load
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.ros.messages.times import NS, nanoseconds
from crazyflow_ros.scene.frames import body_to_world, quat_from_rpy

_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_DELIVERY = Duration(seconds=10)
_SETTINGS = ("control", "drone_model", "publish_rates.odom", "publish_rates.joint_states")


class PolicyPilot:
    """Flies one drone with a policy.

    Args:
        simulation: The simulator; if it is `stepping`, this pilot steps it.
        drone: Name of the drone.
        file: File of the policy.
        position: First goal (3,) [m].
        yaw: Heading at the goal [rad].

    Attributes:
        policy: The policy.

    Raises:
        SimulationError: There is no such drone, or its commands are not those of the policy.
        ValueError: The file cannot be read, or a number is not finite.
    """

    def __init__(
        self,
        simulation: SimulatorClient,
        drone: str,
        file: str,
        position: Sequence[float],
        yaw: float = 0.0,
    ) -> None:
        self._simulation = simulation
        simulation.drone(drone)  # refuses an unknown name
        control, model, *rates = self._settings()
        self.policy: Policy = load(file, model)
        self._check(control, rates)
        self._drone, self._state = drone, self.policy.initial_state()
        self._act = jax.jit(Policy.act_towards)
        self._goal = limits.vector("position", position, (3,), limits.POSITION)
        heading = limits.number("yaw", yaw, limits.ANGLE)
        self._heading = quat_from_rpy(np.array([0.0, 0.0, heading]))
        self._odometry: Odometry | None = None
        self._joints: JointState | None = None
        self._acted_ns = -1
        self._choose(Odometry(), np.zeros(4))  # compiles
        self._state = self.policy.initial_state()
        node = simulation.node
        self._commands = node.create_publisher(Float64MultiArray, f"{drone}/command", _RELIABLE)
        node.create_subscription(PoseStamped, f"{drone}/policy_goal", self._note_goal, _RELIABLE)
        node.create_subscription(JointState, f"{drone}/joint_states", self._note_joints, _RELIABLE)
        node.create_subscription(Odometry, f"{drone}/odom", self._note, _RELIABLE)
        # Messages are dropped until the subscriber has discovered the publisher.
        found = self._commands.get_subscription_count
        simulation.wait(found, f"nobody reads {drone}/command")

    def fly(self, is_over: threading.Event, seconds: float = inf) -> None:
        """Fly until `is_over`, or for a simulated time [s]; then stop the rotors.

        Raises:
            SimulationError: The simulator does not respond, or the policy's output is not a number.
        """
        simulation = self._simulation
        end = simulation.time_ns + seconds * NS
        # Wait for a simulator that stands still, unless this pilot steps it.
        patience = ANSWER if simulation.stepping else inf
        period = simulation.freq // self.policy.freq
        try:
            if simulation.stepping:
                simulation.step(-self._tick(simulation.time_ns) % period or period)
            while not is_over.is_set() and simulation.time_ns < end:
                simulation.wait(
                    lambda: self._is_due() or is_over.is_set(), "there is no odometry", patience
                )
                if is_over.is_set():
                    return
                self._answer()
                if simulation.stepping:
                    simulation.step(period)
        finally:
            self._publish(np.zeros(4))

    def _settings(self) -> list[Any]:
        name = f"{self._simulation.name}/get_parameters"
        values = self._simulation.call(GetParameters, name, names=list(_SETTINGS)).values
        control, model, *rates = values
        return [control.string_value, model.string_value, *(rate.integer_value for rate in rates)]

    def _check(self, control: str, rates: Sequence[int]) -> None:
        own, freq = self.policy.action.control, self.policy.freq
        if control != own:
            raise SimulationError(
                f"the policy needs a simulator with control:={own}, got {control}"
            )
        if self._simulation.freq % freq:
            raise SimulationError(
                f"the policy acts {freq} times a second, which must divide the simulator's freq, "
                f"{self._simulation.freq}"
            )
        for name, rate in zip(_SETTINGS[2:], rates):
            if (rate == 0 or rate % freq) and not self._simulation.stepping:
                raise SimulationError(f"the policy needs {name}:={freq}, or a multiple, got {rate}")

    def _tick(self, time_ns: int) -> int:
        return round(time_ns * self._simulation.freq / NS)

    def _is_due(self) -> bool:
        """Whether the state of a tick at which the policy still has to act has arrived."""
        if self._odometry is None or self._joints is None:
            return False
        now = nanoseconds(self._odometry.header.stamp)
        if nanoseconds(self._joints.header.stamp) < now or now <= self._acted_ns:
            return False
        if self._simulation.stepping:
            return now >= self._simulation.time_ns
        return self._tick(now) % (self._simulation.freq // self.policy.freq) == 0

    def _answer(self) -> None:
        assert self._odometry is not None and self._joints is not None
        self._acted_ns = nanoseconds(self._odometry.header.stamp)
        command = self._choose(self._odometry, np.array(self._joints.velocity) / RPM)
        if not np.isfinite(command).all():
            raise SimulationError(f"the output of the policy is not a number, {self._drone} stops")
        self._publish(command)

    def _choose(self, odometry: Odometry, rotor_vel: np.ndarray) -> np.ndarray:
        """Return the command (4,) for a state, in the units of the control mode."""
        pose, twist = odometry.pose.pose, odometry.twist.twist
        quat = _array(pose.orientation)
        fields = {
            "pos": _array(pose.position),
            "quat": quat,
            "vel": body_to_world(quat, _array(twist.linear)),
            "ang_vel": _array(twist.angular),
            "rotor_vel": rotor_vel,
            "goal": self._goal,
            "goal_vel": np.zeros(3),
            "goal_acc": np.zeros(3),
        }
        single = {name: jnp.asarray(value, jnp.float32) for name, value in fields.items()}
        motion = Motion(**single, action=self._state.action)
        heading = jnp.asarray(self._heading, jnp.float32)
        self._state, command = self._act(self.policy, self._state, motion, heading)
        return np.asarray(command, float)

    def _publish(self, command: np.ndarray) -> None:
        in_ros = command * RPM if self.policy.action.control is Control.rotor_vel else command
        self._commands.publish(Float64MultiArray(data=in_ros.tolist()))
        if self._simulation.stepping:
            self._commands.wait_for_all_acked(_DELIVERY)

    def _note(self, message: Odometry) -> None:
        self._odometry = message
        if self._simulation.stepping:
            return
        if nanoseconds(message.header.stamp) < self._acted_ns:  # the simulator was reset
            self._acted_ns, self._state = -1, self.policy.initial_state()

    def _note_joints(self, message: JointState) -> None:
        if len(message.velocity) == 4:
            self._joints = message

    def _note_goal(self, message: PoseStamped) -> None:
        pose = message.pose
        try:
            goal = limits.vector("goal", _array(pose.position), (3,), limits.POSITION)
            heading = limits.unit_quaternion("orientation", _array(pose.orientation))
        except ValueError as error:
            self._simulation.node.get_logger().warning(f"policy_goal is ignored: {error}")
            return
        self._goal, self._heading = goal, heading


def _array(message: Any) -> np.ndarray:
    return np.array([getattr(message, name) for name in "xyzw" if hasattr(message, name)])


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    program = argparse.ArgumentParser(
        prog="policy", description="Fly a drone of a running simulator with a policy, over topics."
    )
    program.add_argument("--file", required=True, help="file of the policy, see docs/policies.md")
    program.add_argument("--drone", default="cf0", help="name of the drone, default cf0")
    program.add_argument(
        "--position", type=float, nargs=3, default=[0, 0, 1], metavar=("X", "Y", "Z"),
        help="first goal in the map [m], default 0 0 1",
    )  # fmt: skip
    program.add_argument("--yaw", type=float, default=0.0, help="heading at the goal [rad]")
    program.add_argument("--seconds", type=float, default=inf, help="simulated time to fly [s]")
    program.add_argument(
        "--lock-step", action="store_true", help="the simulator waits for each command"
    )
    add_simulator_arguments(program)
    return program


def main(arguments: Sequence[str] | None = None) -> None:
    """Fly until a signal arrives."""
    options = parser().parse_args(arguments)
    is_over = threading.Event()
    on_end(is_over.set)
    from crazyflow_ros.ros.middleware import configure_middleware

    configure_middleware()
    try:
        with SimulatorClient(options.node, options.namespace, stepping=options.lock_step) as found:
            pilot = PolicyPilot(found, options.drone, options.file, options.position, options.yaw)
            found.node.get_logger().info(f"{options.file} flies {options.drone}")
            pilot.fly(is_over, options.seconds)
    except (SimulationError, ValueError, ModuleNotFoundError) as error:
        sys.exit(f"policy: {error}")


if __name__ == "__main__":
    main()

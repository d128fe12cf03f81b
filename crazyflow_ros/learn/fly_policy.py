"""Flies a drone of a running simulator with a policy, over topics.

    ros2 run crazyflow_ros simulator --ros-args -p control:=rotor_vel
    ros2 run crazyflow_ros policy --file hover.policy --drone cf0 --position 0 0 1

For each message on `<drone>/odom` at which the policy is to act, it publishes a command on
`<drone>/command`. The simulator's parameter `control` must match the policy's commands. A new goal
arrives on `<drone>/policy_goal`, a `geometry_msgs/msg/PoseStamped` in `map`. When the program ends,
it stops the rotors.

A policy that sees pictures also reads `<drone>/<eye>/depth/image_raw`, or `image_raw`, of a camera
in the simulator's sensors file, see docs/guides/policies.md.

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
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import Float64MultiArray

from crazyflow_ros.checks import limits
from crazyflow_ros.checks.program_end import on_end
from crazyflow_ros.client import ANSWER, SimulationError, SimulatorClient
from crazyflow_ros.client.simulator_arguments import add_simulator_arguments
from crazyflow_ros.control import Control
from crazyflow_ros.dynamics import RPM
from crazyflow_ros.policy import load
from crazyflow_ros.policy.eye import Eye
from crazyflow_ros.policy.observation import Motion
from crazyflow_ros.policy.policy import Policy
from crazyflow_ros.ros import stay_on_this_machine
from crazyflow_ros.ros.messages import NS, nanoseconds, xyz, xyzw
from crazyflow_ros.scene.frames import body_to_world, quat_from_rpy

_RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
_DELIVERY = Duration(seconds=10)
_SETTINGS = ("control", "drone_model", "publish_rates.odom", "publish_rates.joint_states")


_PICTURES = {"depth": "depth/image_raw", "rgb": "image_raw"}
_FOUND = 10.0  # s of wall time, until the simulator's topics are known
_FOCAL = 0.01  # pixels, by which a focal length may be off


class PolicyPilot:
    """Flies one drone with a policy.

    Args:
        simulation: The simulator; if it is `stepping`, this pilot steps it.
        drone: Name of the drone.
        file: File of the policy.
        position: First goal (3,) [m].
        yaw: Heading at the goal [rad].
        eye: Name of the camera in the sensors file, for a policy that sees pictures.

    Attributes:
        policy: The policy.

    Raises:
        SimulationError: There is no such drone or camera, or its commands are not those of the
            policy.
        ValueError: The file cannot be read, or a number is not finite.
    """

    def __init__(
        self,
        simulation: SimulatorClient,
        drone: str,
        file: str,
        position: Sequence[float],
        yaw: float = 0.0,
        eye: str = "eye",
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
        needed = self.policy.observation.eye
        self._camera = None if needed is None else _Camera(simulation, drone, eye, needed)
        blank = None if needed is None else np.zeros(needed.shape, np.float32)
        self._choose(Odometry(), np.zeros(4), blank)  # compiles
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
        missing = "odometry" if self._camera is None else f"odometry, or no {self._camera.topic}"
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
                    lambda: self._is_due() or is_over.is_set(), f"there is no {missing}", patience
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
        if self._camera is not None and not self._camera.has_seen(
            now if self._simulation.stepping else 0
        ):
            return False
        if self._simulation.stepping:
            return now >= self._simulation.time_ns
        return self._tick(now) % (self._simulation.freq // self.policy.freq) == 0

    def _answer(self) -> None:
        assert self._odometry is not None and self._joints is not None
        self._acted_ns = nanoseconds(self._odometry.header.stamp)
        picture = None if self._camera is None else self._camera.picture()
        command = self._choose(self._odometry, np.array(self._joints.velocity) / RPM, picture)
        if not np.isfinite(command).all():
            raise SimulationError(f"the output of the policy is not a number, {self._drone} stops")
        self._publish(command)

    def _choose(
        self, odometry: Odometry, rotor_vel: np.ndarray, picture: np.ndarray | None
    ) -> np.ndarray:
        """Return the command (4,) for a state, in the units of the control mode."""
        pose, twist = odometry.pose.pose, odometry.twist.twist
        quat = xyzw(pose.orientation)
        fields = {
            "pos": xyz(pose.position),
            "quat": quat,
            "vel": body_to_world(quat, xyz(twist.linear)),
            "ang_vel": xyz(twist.angular),
            "rotor_vel": rotor_vel,
            "goal": self._goal,
            "goal_vel": np.zeros(3),
            "goal_acc": np.zeros(3),
        }
        single = {name: jnp.asarray(value, jnp.float32) for name, value in fields.items()}
        motion = Motion(**single, action=self._state.action)
        heading = jnp.asarray(self._heading, jnp.float32)
        self._state, command = self._act(self.policy, self._state, motion, heading, picture=picture)
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
            goal = limits.vector("goal", xyz(pose.position), (3,), limits.POSITION)
            heading = limits.unit_quaternion("orientation", xyzw(pose.orientation))
        except ValueError as error:
            self._simulation.node.get_logger().warning(f"policy_goal is ignored: {error}")
            return
        self._goal, self._heading = goal, heading


class _Camera:
    """The pictures of a drone's camera, as a policy needs them.

    Args:
        simulation: The simulator.
        drone: Name of the drone.
        name: Name of the camera in the sensors file.
        eye: The camera that the policy needs.

    Attributes:
        topic: Topic of the pictures.

    Raises:
        SimulationError: There is no such camera.
    """

    def __init__(self, simulation: SimulatorClient, drone: str, name: str, eye: Eye) -> None:
        self._eye, self._newest, self._info = eye, Image(), CameraInfo()
        self.topic = f"{drone}/{name}/{_PICTURES[eye.kind]}"
        self._entry = (
            f"{name}: {{type: camera, rate: 50, width: {eye.width}, height: {eye.height}, "
            f"fovy: {eye.fovy:g}, data_types: [{eye.kind}]}}"
        )
        node = simulation.node
        node.create_subscription(Image, self.topic, self._note, _RELIABLE)
        info = f"{drone}/{name}/camera_info"
        node.create_subscription(CameraInfo, info, self._note_info, _RELIABLE)
        simulation.wait(
            lambda: node.count_publishers(self.topic) > 0,
            f"nobody publishes {self.topic}; the simulator's sensors file needs {self._entry}",
            _FOUND,
        )

    def has_seen(self, time_ns: int) -> bool:
        """Whether there is a picture that was taken at a time [ns] or later."""
        is_new = nanoseconds(self._newest.header.stamp) >= time_ns
        return is_new and bool(self._newest.data) and self._info.width > 0

    def picture(self) -> np.ndarray:
        """Return the newest picture, see `Eye.seen`.

        Raises:
            SimulationError: The camera is not the one that the policy needs.
        """
        eye, found = self._eye, self._info
        focal = eye.height / 2 / np.tan(np.radians(eye.fovy) / 2)  # pixels
        size = (found.width, found.height)
        if size != (eye.width, eye.height) or abs(found.k[4] - focal) > _FOCAL:
            fovy = np.degrees(2 * np.arctan(found.height / 2 / found.k[4]))
            its = f"{found.width} x {found.height} pixels and fovy {fovy:.4g}"
            raise SimulationError(f"the policy needs {self._entry}, {self.topic} has {its}")
        kind = np.float32 if eye.kind == "depth" else np.uint8
        return np.frombuffer(self._newest.data, kind).reshape(eye.shape)

    def _note_info(self, message: CameraInfo) -> None:
        self._info = message

    def _note(self, message: Image) -> None:
        self._newest = message


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    program = argparse.ArgumentParser(
        prog="policy", description="Fly a drone of a running simulator with a policy, over topics."
    )
    program.add_argument(
        "--file", required=True, help="file of the policy, see docs/guides/policies.md"
    )
    program.add_argument("--drone", default="cf0", help="name of the drone, default cf0")
    program.add_argument(
        "--position", type=float, nargs=3, default=[0, 0, 1], metavar=("X", "Y", "Z"),
        help="first goal in the map [m], default 0 0 1",
    )  # fmt: skip
    program.add_argument("--yaw", type=float, default=0.0, help="heading at the goal [rad]")
    program.add_argument(
        "--eye", default="eye", help="camera in the sensors file that shows a policy its pictures"
    )
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
    from crazyflow_ros.ros import configure_middleware

    configure_middleware()
    try:
        with SimulatorClient(options.node, options.namespace, stepping=options.lock_step) as found:
            pilot = PolicyPilot(
                found, options.drone, options.file, options.position, options.yaw, options.eye
            )
            found.node.get_logger().info(f"{options.file} flies {options.drone}")
            pilot.fly(is_over, options.seconds)
    except (SimulationError, ValueError, ModuleNotFoundError) as error:
        sys.exit(f"policy: {error}")


if __name__ == "__main__":
    stay_on_this_machine()
    main()

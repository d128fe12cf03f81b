"""The flight through the room and the messages received on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crazyflow_ros.demo.room_plan import REST, RISE, ROUND, plan
from crazyflow_ros.scene.frames import quat_from_rpy

if TYPE_CHECKING:
    from trajectory_msgs.msg import MultiDOFJointTrajectory

    from crazyflow_ros.client import SimulatorClient

DRONE = "cf0"

_LEAD = 500_000_000  # ns of simulated time, from sending the trajectory to its start
_READY_TIMEOUT = 120.0  # s of wall time for the first scan
_SILENCE = 20.0  # s of wall time
_SLICE = 0.05  # s of wall time between two checks


class RoomFlight:
    """A client that flies one round and keeps the messages of the drone's sensors.

    Args:
        simulation: The simulator.

    Attributes:
        poses: Position [m] and attitude xyzw in the map, (7,), by stamp [ns].
        messages: Messages of the sensors by topic and stamp [ns].
        start_ns: Time of the take-off [ns].
    """

    def __init__(self, simulation: SimulatorClient) -> None:
        from geometry_msgs.msg import PoseStamped
        from sensor_msgs.msg import Image, LaserScan, PointCloud2
        from trajectory_msgs.msg import MultiDOFJointTrajectory

        self._simulation, self.start_ns = simulation, 0
        node = simulation.node
        self.poses: dict[int, np.ndarray] = {}
        self.messages: dict[str, dict[int, Any]] = {}
        node.create_subscription(PoseStamped, f"{DRONE}/pose", self._keep_pose, 100)
        for kind, topic in (
            (LaserScan, "scan"),
            (PointCloud2, "cloud"),
            (Image, "camera/image_raw"),
            (Image, "camera/depth/image_raw"),
        ):
            kept = self.messages[topic] = {}
            node.create_subscription(
                kind, f"{DRONE}/{topic}", lambda m, kept=kept: kept.update({_stamp(m): m}), 10
            )
        self._commands = node.create_publisher(
            MultiDOFJointTrajectory, f"{DRONE}/cmd_trajectory", 1
        )

    def fly(self) -> None:
        """Fly one round.

        Raises:
            SimulationError: The simulator does not publish.
        """
        from crazyflow_ros.client import SimulationError

        simulation, found = self._simulation, self._commands.get_subscription_count
        simulation.wait(
            lambda: self.poses and self.messages["scan"] and found(),
            "there is no pose and no scan",
            _READY_TIMEOUT,
        )
        print(f"flying through the room for {RISE + ROUND + REST:g} s", flush=True)
        self.start_ns = max(self.poses) + _LEAD
        self._commands.publish(trajectory(self.start_ns))
        end = self.start_ns + int((RISE + ROUND + REST) * 1e9)
        while max(self.poses) < end:
            simulation.spin_for(_SLICE)
            if simulation.silence > _SILENCE:
                raise SimulationError(f"the simulator has been silent for {_SILENCE:g} s")

    def _keep_pose(self, message: Any) -> None:
        p, q = message.pose.position, message.pose.orientation
        self.poses[_stamp(message)] = np.array([p.x, p.y, p.z, q.x, q.y, q.z, q.w])


def trajectory(start_ns: int) -> MultiDOFJointTrajectory:
    """Convert the flight, starting at a simulated time [ns], to a message."""
    from builtin_interfaces.msg import Duration, Time
    from geometry_msgs.msg import Quaternion, Transform, Vector3
    from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

    message = MultiDOFJointTrajectory(joint_names=[f"{DRONE}/base_link"])
    message.header.frame_id = "map"
    message.header.stamp = Time(sec=start_ns // 10**9, nanosec=start_ns % 10**9)
    for seconds, pos, yaw in zip(*plan()):
        place = Vector3(**dict(zip("xyz", pos.tolist())))
        whole, rest = divmod(round(seconds * 10**9), 10**9)
        turn = quat_from_rpy(np.array([0.0, 0.0, yaw])).tolist()
        message.points.append(
            MultiDOFJointTrajectoryPoint(
                transforms=[
                    Transform(translation=place, rotation=Quaternion(**dict(zip("xyzw", turn))))
                ],
                time_from_start=Duration(sec=whole, nanosec=rest),
            )
        )
    return message


def _stamp(message: Any) -> int:
    return int(message.header.stamp.sec) * 10**9 + int(message.header.stamp.nanosec)

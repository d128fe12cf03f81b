"""The flight through the room and the messages received on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from crazyflow_ros.demo.room_plan import REST, RISE, ROUND, plan
from crazyflow_ros.ros.messages import xyz, xyzw

if TYPE_CHECKING:
    from trajectory_msgs.msg import MultiDOFJointTrajectory

    from crazyflow_ros.client import SimulatorClient

DRONE = "cf0"

_LEAD = 500_000_000  # ns of simulated time, from sending the trajectory to its start
_READY_TIMEOUT = 120.0  # s of wall time for the first readings
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
            lambda: self.poses and all(self.messages.values()) and found(),
            "there is no pose, scan, cloud or picture",
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
        pose = message.pose
        self.poses[_stamp(message)] = np.append(xyz(pose.position), xyzw(pose.orientation))


def trajectory(start_ns: int) -> MultiDOFJointTrajectory:
    """Convert the flight, starting at a simulated time [ns], to a message."""
    from crazyflow_ros.demo.messages import message_of_points, point_message

    return message_of_points(DRONE, start_ns, [point_message(*point) for point in zip(*plan())])


def _stamp(message: Any) -> int:
    from crazyflow_ros.ros.messages import nanoseconds

    return nanoseconds(message.header.stamp)

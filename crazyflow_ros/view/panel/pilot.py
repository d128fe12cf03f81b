"""Sends a drone to the places that users click, and flies it with their keys and sticks."""

from __future__ import annotations

from typing import Any

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.qos import QoSProfile

from crazyflow_ros.ros.messages import STEADY, heading, point
from crazyflow_ros.view.follower import Follower
from crazyflow_ros.view.panel.sticks import Sticks

_PERIOD = 0.05  # s of wall time between two velocities
_COMMAND = QoSProfile(depth=1)


class PanelPilot:
    """Publishes the commands for one drone at a time, in the thread of the node.

    Args:
        follower: The connection to the simulator.
        sticks: Keys and gamepads of the tabs.

    Attributes:
        speed: Horizontal speed at full stick [m/s].
        uses_sticks: Whether keys and gamepads fly the drone.
    """

    def __init__(self, follower: Follower, sticks: Sticks) -> None:
        self._follower, self._sticks = follower, sticks
        self.speed, self.uses_sticks = 1.0, True
        self._drone = ""
        self._velocities: Any = None
        self._poses: Any = None
        follower.in_thread(lambda: follower.node.create_timer(_PERIOD, self._fly, clock=STEADY))

    def select(self, drone: str) -> None:
        """Command this drone from now on; none if the name is empty."""
        self._follower.in_thread(lambda: self._change(drone))

    def go_to(self, x: float, y: float, z: float, yaw: float) -> None:
        """Fly the drone to a place in the map [m] and a heading [rad]; from the floor, too."""
        pose = PoseStamped()
        pose.pose.position, pose.pose.orientation = point((x, y, z)), heading(yaw)
        self._follower.in_thread(lambda: self._poses is not None and self._poses.publish(pose))

    def _change(self, drone: str) -> None:
        node = self._follower.node
        for publisher in (self._velocities, self._poses):
            if publisher is not None:
                node.destroy_publisher(publisher)
        self._drone, self._velocities, self._poses = drone, None, None
        if drone:
            self._velocities = node.create_publisher(TwistStamped, f"{drone}/cmd_vel", _COMMAND)
            self._poses = node.create_publisher(PoseStamped, f"{drone}/cmd_pose", _COMMAND)

    def _fly(self) -> None:
        velocity = self._sticks.velocity(self.speed)
        if velocity is None or not self.uses_sticks or self._velocities is None:
            return
        message = TwistStamped()
        message.twist.linear.x, message.twist.linear.y = velocity.x, velocity.y
        message.twist.linear.z, message.twist.angular.z = velocity.z, velocity.turn
        self._velocities.publish(message)

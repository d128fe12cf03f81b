"""Conversion of poses and twists from the frame of a message to the world."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from simulation_interfaces.msg import Result

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages.frame_ids import MAP, base_link, odom
from crazyflow_ros.ros.messages.geometry import xyz, xyzw
from crazyflow_ros.ros.simulation_interfaces.motion import motions
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.scene.frames import body_to_world, multiply


class MovingFrame(NamedTuple):
    """Pose and motion of a frame in the world."""

    pos: np.ndarray
    """m, (3,)."""
    quat: np.ndarray
    """xyzw, (4,)."""
    vel: np.ndarray
    """m/s, (3,)."""
    ang_vel: np.ndarray
    """rad/s, world axes, (3,)."""

    def pose(self, message: Pose, invalid: int) -> tuple[np.ndarray, np.ndarray]:
        """Convert a pose in this frame to position and attitude xyzw in the world.

        Raises:
            Refusal: The pose is invalid; the code is `invalid`.
        """
        try:
            pos = limits.vector("position", xyz(message.position), (3,), limits.POSITION)
            quat = limits.unit_quaternion("orientation", xyzw(message.orientation))
            moved = self.pos + body_to_world(self.quat, pos)
            moved = limits.vector("position in the world", moved, (3,), limits.POSITION)
        except ValueError as error:
            raise Refusal(invalid, f"pose: {error}") from None
        return moved, multiply(self.quat, quat)

    def twist(
        self, linear: np.ndarray, angular: np.ndarray, pos: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Convert a twist in this frame, of a point at `pos`, to the world."""
        vel = self.vel + np.cross(self.ang_vel, pos - self.pos) + body_to_world(self.quat, linear)
        return vel, self.ang_vel + body_to_world(self.quat, angular)


WORLD = MovingFrame(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3))


def frame(server: Server, stamped: Any) -> MovingFrame:
    """Return the frame of a message: the world, an entity, or a drone's TF frame.

    Raises:
        Refusal: There is no such frame.
    """
    name = stamped.header.frame_id
    every = motions(server)
    drones = [motion.name for motion in every if motion.is_drone]
    if name in ("", MAP, "world", *(odom(drone) for drone in drones)):
        return WORLD
    for motion in every:
        if name == motion.name or (motion.is_drone and name == base_link(motion.name)):
            return MovingFrame(motion.pos, motion.quat, motion.vel, motion.ang_vel)
    expected = f"{MAP} or the name of an entity or of a drone's base_link"
    raise Refusal(
        Result.RESULT_NOT_FOUND, f"frame_id: expected {expected}, got {limits.shown(name)!r}"
    )

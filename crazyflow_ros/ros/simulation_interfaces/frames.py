"""Poses and twists of messages that are given in a frame, in the world."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from simulation_interfaces.msg import Result

from crazyflow_ros import limits
from crazyflow_ros.ros.door import Refusal
from crazyflow_ros.ros.messages.frame_ids import MAP, base_link, odom
from crazyflow_ros.ros.simulation_interfaces.motion import motions
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.scene.frames import body_to_world, multiply


class MovingFrame(NamedTuple):
    """A frame in the world, and how it moves there."""

    pos: np.ndarray
    """m, (3,)."""
    quat: np.ndarray
    """xyzw, (4,)."""
    vel: np.ndarray
    """m/s, (3,)."""
    ang_vel: np.ndarray
    """rad/s, world axes, (3,)."""

    def pose(self, message: Pose, invalid: int) -> tuple[np.ndarray, np.ndarray]:
        """Position and attitude xyzw, in the world, of a pose in this frame.

        Raises:
            Refusal: With the code `invalid`: it is no pose.
        """
        try:
            pos = limits.vector("position", numbers(message.position), (3,), limits.POSITION)
            quat = limits.unit_quaternion("orientation", numbers(message.orientation))
            moved = self.pos + body_to_world(self.quat, pos)
            moved = limits.vector("position in the world", moved, (3,), limits.POSITION)
        except ValueError as error:
            raise Refusal(invalid, f"pose: {error}") from None
        return moved, multiply(self.quat, quat)

    def twist(
        self, linear: np.ndarray, angular: np.ndarray, pos: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Velocity and angular velocity, in the world, of what is seen from this frame at `pos`."""
        vel = self.vel + np.cross(self.ang_vel, pos - self.pos) + body_to_world(self.quat, linear)
        return vel, self.ang_vel + body_to_world(self.quat, angular)


WORLD = MovingFrame(np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3))


def frame(server: Server, stamped: Any) -> MovingFrame:
    """The frame that a message is in: the world, an entity, or a drone's frame of TF.

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


def numbers(message: Any) -> np.ndarray:
    """x, y, z, and w if there is one, of a message."""
    return np.array([getattr(message, name) for name in "xyzw" if hasattr(message, name)])

"""Poses and motions of entities, and of the frames of messages, in the world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Accel, Pose, Twist
from simulation_interfaces.msg import EntityState, Result
from std_msgs.msg import Header

from crazyflow_ros.checks import limits
from crazyflow_ros.ros.callback_guard import Refusal
from crazyflow_ros.ros.messages.frame_ids import MAP, base_link, odom
from crazyflow_ros.ros.messages.geometry import attitude, pose, vector, xyz
from crazyflow_ros.ros.messages.times import time_of
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.scene.frames import body_to_world, multiply


@dataclass(frozen=True)
class EntityMotion:
    """Motion of an entity at one instant, in world axes."""

    name: str
    body: str
    """Name of the body in MuJoCo."""
    is_drone: bool
    time_ns: int
    pos: np.ndarray
    """m, (3,)."""
    quat: np.ndarray
    """xyzw, (4,)."""
    vel: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """m/s, (3,)."""
    ang_vel: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """rad/s, (3,)."""
    acc: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """m/s^2, (3,)."""
    ang_acc: np.ndarray = field(default_factory=lambda: np.zeros(3))
    """rad/s^2, (3,); accelerations are zero of all but drones."""
    is_free: bool = False
    """Whether it moves freely, without being a drone."""


def motions(server: Server) -> list[EntityMotion]:
    """Return all entities at one instant, drones first; without a world there are none."""
    if server.world is None:
        return []
    now = server.physics.snapshot
    drones = [
        EntityMotion(
            name,
            f"drone:{name}",
            True,
            now.time_ns,
            now.pos[i],
            now.quat[i],
            now.vel[i],
            body_to_world(now.quat[i], now.ang_vel[i]),
            now.acc[i],
            # Rotating the body-frame derivative is exact: dw/dt is the same in both frames.
            body_to_world(now.quat[i], now.ang_acc[i]),
        )
        for i, name in enumerate(now.names)
    ]
    return drones + [
        EntityMotion(own.name, own.name, False, now.time_ns, *own[1:5], is_free=own.is_free)
        for own in server.scenery.motions()
        if own.name not in now.names
    ]


def message_of(motion: EntityMotion) -> EntityState:
    """Convert a motion to a message in the frame `MAP`."""
    return EntityState(
        header=Header(stamp=time_of(motion.time_ns), frame_id=MAP),
        pose=pose(motion.pos, motion.quat),
        twist=Twist(linear=vector(motion.vel), angular=vector(motion.ang_vel)),
        acceleration=Accel(linear=vector(motion.acc), angular=vector(motion.ang_acc)),
    )


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
            quat = attitude(message.orientation)
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

"""Poses and motions of entities."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Accel, Twist
from simulation_interfaces.msg import EntityState
from std_msgs.msg import Header

from crazyflow_ros.ros.messages.frame_ids import MAP
from crazyflow_ros.ros.messages.geometry import pose, vector
from crazyflow_ros.ros.simulation_interfaces.server import Server
from crazyflow_ros.scene.frames import body_to_world


def _still() -> np.ndarray:
    return np.zeros(3)


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
    vel: np.ndarray = field(default_factory=_still)
    """m/s, (3,)."""
    ang_vel: np.ndarray = field(default_factory=_still)
    """rad/s, (3,)."""
    acc: np.ndarray = field(default_factory=_still)
    """m/s^2, (3,)."""
    ang_acc: np.ndarray = field(default_factory=_still)
    """rad/s^2, (3,)."""


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
        EntityMotion(name, name, False, now.time_ns, pos, quat)
        for name, (pos, quat) in server.scenery.poses().items()
        if name not in now.names
    ]


def message_of(motion: EntityMotion) -> EntityState:
    """Convert a motion to a message in the frame `MAP`."""
    seconds, nanoseconds = divmod(motion.time_ns, 1_000_000_000)
    stamp = Time(sec=seconds, nanosec=nanoseconds)
    return EntityState(
        header=Header(stamp=stamp, frame_id=MAP),
        pose=pose(motion.pos, motion.quat),
        twist=Twist(linear=vector(motion.vel), angular=vector(motion.ang_vel)),
        acceleration=Accel(linear=vector(motion.acc), angular=vector(motion.ang_acc)),
    )

"""Recovery from any attitude."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sin

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import sin_cos, split
from crazyflow_ros.envs.task import Start
from crazyflow_ros.envs.tasks import Hover, side_by_side


@dataclass(frozen=True)
class Recovery(Hover):
    """Hover after a throw, from any attitude. Rewards as in `Hover`.

    Attributes:
        seconds: Length of an episode.
        point: The point to hover at, m.
        spread: Half the sides of the box around it in which drones start, m.
        tolerance: Distance within which the drone counts as there, m.
        limit: Distance beyond which the drone is lost, which costs 1, m.
        angle: Largest initial angle between the drone's z axis and the vertical, rad. All attitudes
            within it are equally probable; pi includes every attitude.
        speed: Largest initial velocity along each axis, m/s.
        rate: Largest initial body rate about each axis, rad/s.
        rotor_vel: Smallest and largest initial speed of a rotor, RPM.
        scene: Name or path of the MJCF scene in pictures; drones collide only with the floor.
    """

    may_be_zero = ("angle", "speed", "rate", "rotor_vel")

    point: tuple[float, float, float] = (0.0, 0.0, 3.0)
    limit: float = 5.0
    angle: float = pi
    speed: float = 1.0
    rate: float = 2.0
    rotor_vel: tuple[float, float] = (0.0, 0.0)
    scene: str = "floor"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.angle > pi:
            raise ValueError(f"Recovery: angle must be at most pi, got {self.angle}")

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        # A single draw, because each draw is compiled separately.
        draw = jax.random.uniform(key, (n, 16), minval=-1)
        pos, vel, ang_vel, angles, rotors = jnp.split(draw, [3, 6, 9, 12], axis=-1)
        point = jnp.tile(jnp.array(self.point), (n, 1))
        pos = side_by_side(point + pos * jnp.array(self.spread))
        # About a horizontal axis, after a turn about the vertical one. Bands of a sphere have areas
        # proportional to their heights.
        share, direction, yaw = split(angles)
        share = (share + 1) / 2 * sin(self.angle / 2) ** 2
        st, ct = jnp.sqrt(share), jnp.sqrt(1 - share)
        (sy, cy), (sd, cd) = (sin_cos(pi * x) for x in (yaw / 2, direction - yaw / 2))
        quat = jnp.stack([st * cd, st * sd, ct * sy, ct * cy], axis=-1)
        slowest, fastest = self.rotor_vel
        rotor_vel = slowest + (fastest - slowest) * (rotors + 1) / 2
        motion = (quat, vel * self.speed, ang_vel * self.rate, rotor_vel)
        return Start(pos, side_by_side(point), *motion)

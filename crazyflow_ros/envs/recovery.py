"""Recovery from any attitude."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import jax
import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import sin_cos
from crazyflow_ros.envs.tasks import Hover, Start, check, within


@dataclass(frozen=True)
class Recovery(Hover):
    """Hover after a throw, from any attitude. Rewards as in `Hover`.

    Attributes:
        seconds: Length of an episode.
        point: The point to hover at, m.
        spread: Half the sides of the box around it in which drones start, m.
        tolerance: Distance at which the drone counts as there, m.
        limit: Distance at which the drone is lost, m; that costs 1.
        angle: Largest initial angle of the drone from level, rad; at most pi.
        speed: Largest initial velocity along each axis, m/s.
        rate: Largest initial body rate about each axis, rad/s.
    """

    point: tuple[float, float, float] = (0.0, 0.0, 3.0)
    limit: float = 5.0
    angle: float = pi
    speed: float = 1.0
    rate: float = 2.0

    def __post_init__(self) -> None:
        """Check the fields.

        Raises:
            ValueError: A length or time is not positive, a number is not finite, or an angle is
                above pi.
        """
        super().__post_init__()
        check(self, "angle", "speed", "rate", lowest=-1e-9)
        if self.angle > pi:
            raise ValueError(f"Recovery: angle must be at most pi, got {self.angle}")

    def begin(self, key: Array, n: int) -> Start | tuple[Array, Array]:
        """See `Task`."""
        keys = jax.random.split(key, 5)
        pos, origin, *_ = super().begin(keys[0], n)
        vel, ang_vel = (
            within(k, n, (0.0, 0.0, 0.0), (most,) * 3)
            for k, most in zip(keys[1:3], (self.speed, self.rate))
        )
        # About a horizontal axis, after a turn about the vertical one.
        angle, direction, yaw = (
            jax.random.uniform(k, (n,), minval=-most, maxval=most)
            for k, most in zip(jax.random.split(keys[3], 3), (self.angle, pi, pi))
        )
        (st, ct), (sy, cy) = (sin_cos(a / 2) for a in (angle, yaw))
        sd, cd = sin_cos(direction - yaw / 2)
        quat = jnp.stack([st * cd, st * sd, ct * sy, ct * cy], axis=-1)
        return Start(pos, origin, quat, vel, ang_vel)

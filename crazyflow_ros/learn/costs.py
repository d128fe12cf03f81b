"""Costs of a step that have a gradient everywhere, for back-propagation through time.

The rewards of many tasks have none, such as a bonus on arrival or the end of an episode. These
costs depend only on the motion before and after a step and on the goal, so that they suit any task.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.dynamics.components import split, stack
from crazyflow_ros.policy.observation import Motion

Cost = Callable[[Motion, Motion], Array]
"""Maps the motion of N drones before and after a step to their costs, (N,)."""


@dataclass(frozen=True)
class Approach:
    """Approach the goal, then move with it.

    The cost contains the velocity of the approach: without it, a short horizon would not reward
    haste.

    Attributes:
        rate: Speed of the approach divided by the distance, near the goal, 1/s.
        braking: Limits the speed of the approach to `rate` / sqrt(`braking`), 1/m^2.
        distance: Cost of a distance of 1 m.
        slip: Cost of a difference of 1 m/s from the velocity of the approach.
        smooth: Distance [m] below which the cost of distance is quadratic.
        low: Cost of 1 m below `clearance`. The end of an episode on the floor has no gradient, so
            that without this cost, drones that turn quickly towards their goals hit the floor.
        clearance: Height above the floor, m.
    """

    rate: float = 3.7
    braking: float = 1.3
    distance: float = 1.0
    slip: float = 0.4
    smooth: float = 0.02
    low: float = 0.0
    clearance: float = 0.4

    def __call__(self, before: Motion, after: Motion) -> Array:
        error = after.pos - after.goal
        approach = -self.rate * error / jnp.sqrt(1 + square(error) * self.braking)[:, None]
        slip = after.vel - after.goal_vel - approach
        cost = (
            self.distance * smooth_norm(error, self.smooth)
            + self.slip * smooth_norm(slip, 0.1)
            + calm(before, after)
        )
        if self.low:  # what is left out takes no time to compile
            cost += self.low * jnp.maximum(self.clearance - after.pos[:, 2], 0)
        return cost


@dataclass(frozen=True)
class Carriage(Approach):
    """Approach the goal with the load, as `Approach` does with the drone, without swinging it.

    Attributes:
        sway: Cost of a speed of 1 m/s of the load relative to the drone.
    """

    sway: float = 0.1

    def __call__(self, before: Motion, after: Motion) -> Array:
        load, load_vel = after.load, after.load_vel
        assert load is not None and load_vel is not None
        cost = super().__call__(before, after._replace(pos=load, vel=load_vel))
        return cost + self.sway * smooth_norm(load_vel - after.vel, 0.1)


@dataclass(frozen=True)
class Descent:
    """Descend onto the goal: reach the line above it soon, and come down slowly.

    Attributes:
        speed: Velocity downwards on the glide path, m/s.
        sink: Increase of that velocity with the height above the glide path, 1/s.
        glide: Height of the glide path divided by the distance from the vertical line through the
            goal.
        rate: Speed towards that line divided by the distance from it, 1/s.
        aside: Cost of a distance of 1 m from that line.
    """

    speed: float = 0.25
    sink: float = 1.0
    glide: float = 2.0
    rate: float = 3.0
    aside: float = 1.0

    def __call__(self, before: Motion, after: Motion) -> Array:
        error = after.pos - after.goal
        level = jnp.array([1.0, 1.0, 0.0]) * error
        towards = -self.rate * level / jnp.sqrt(1 + square(level))[:, None]
        high = error[:, 2] - self.glide * smooth_norm(level, 0.1)
        down = jnp.array([0.0, 0.0, -1.0]) * (self.speed + self.sink * high)[:, None]
        return (
            smooth_norm(after.vel - after.goal_vel - towards - down, 0.1)
            + self.aside * smooth_norm(level, 0.02)
            + calm(before, after)
        )


@dataclass(frozen=True)
class Passage:
    """Fly through a sequence of goals, each at the velocity of that goal.

    The drone should fly towards a point on the line through the goal along the goal's velocity. The
    point is ahead of the drone by a third of the distance to the goal plus `ahead`. Near the goal,
    the distance from that line is also a cost.

    Attributes:
        ahead: Least distance to the point, along the line, m.
        aside: Cost of a distance of 1 m from the line, at the goal.
        look: Cost of looking across the direction of that flight, so that a camera in the nose sees
            where the drone flies; 0 for a drone that looks east.
    """

    ahead: float = 0.25
    aside: float = 2.0
    look: float = 0.0

    def __call__(self, before: Motion, after: Motion) -> Array:
        error = after.goal - after.pos
        speed = jnp.sqrt(square(after.goal_vel))[:, None]
        along = after.goal_vel / jnp.maximum(speed, 1e-6)
        far = (error * along).sum(axis=-1, keepdims=True)
        aside = error - far * along
        direction = aside + along * (smooth_norm(far, 0.1)[:, None] / 3 + self.ahead)
        direction /= jnp.sqrt(square(direction))[:, None]
        cost = smooth_norm(after.vel - speed * direction, 0.1)
        cost += self.aside * smooth_norm(aside, 0.05) / (1 + square(far))
        if not self.look:
            return cost + calm(before, after)
        x, y, z, w = split(after.quat)
        nose = stack((1 - 2 * (y * y + z * z), 2 * (x * y + z * w)))  # its level components
        level = direction[:, :2] / jnp.sqrt(square(direction[:, :2]) + 1e-6)[:, None]
        return cost + self.look * (1 - (nose * level).sum(axis=-1)) + sudden(before, after)


def calm(before: Motion, after: Motion) -> Array:
    """Return the cost of turning, of a heading that is not east, and of sudden actions, (N,)."""
    y, z = after.quat[:, 1], after.quat[:, 2]
    east = 2 * (y * y + z * z)  # 1 - cosine between the body's x axis and east
    return sudden(before, after) + 0.02 * east


def sudden(before: Motion, after: Motion) -> Array:
    """Return the cost of turning and of sudden actions, (N,)."""
    return 0.001 * square(after.ang_vel) + 0.01 * square(after.action - before.action)


def square(x: Array) -> Array:
    """Return the squared length of vectors, (..., k) to (...)."""
    return (x * x).sum(axis=-1)


def smooth_norm(x: Array, width: float) -> Array:
    """Return the length of vectors, quadratic below `width`."""
    return jnp.sqrt(square(x) + width**2) - width

"""Observations: vectors assembled from named parts of a drone's motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.drones import AnyDrone, resolve
from crazyflow_ros.dynamics.components import rotation_matrix, split, stack, transform, transpose
from crazyflow_ros.dynamics.first_principles import Params
from crazyflow_ros.policy.eye import Eye

LONGEST_HISTORY = 1000
"""Largest `Observation.history`."""


class Motion(NamedTuple):
    """Motion of drones and of their goals. Leading axes are a batch of drones."""

    pos: Array
    """(..., 3) centre of mass, world frame, m."""
    quat: Array
    """(..., 4) body to world, xyzw."""
    vel: Array
    """(..., 3) world frame, m/s."""
    ang_vel: Array
    """(..., 3) body frame, rad/s."""
    rotor_vel: Array
    """(..., 4) RPM."""
    goal: Array
    """(..., 3) position of the goal, world frame, m."""
    goal_vel: Array
    """(..., 3) velocity of the goal, world frame, m/s."""
    goal_acc: Array
    """(..., 3) acceleration of the goal, world frame, m/s^2."""
    action: Array
    """(..., 4) previous action, -1 to 1; zeros at the start."""
    load: Array | None = None
    """(..., 3) position of the load that the drones carry, world frame, m; None without one."""
    load_vel: Array | None = None
    """(..., 3) velocity of the load, world frame, m/s."""


def turned(motion: Motion, cos: Array, sin: Array) -> Motion:
    """Return a motion in level axes turned by a yaw angle, given by its cosine and sine (...)."""

    def vector(v: Array) -> Array:
        x, y, z = split(v)
        return stack((cos * x + sin * y, cos * y - sin * x, z))

    x, y, z, w = split(motion.quat)
    # Cosine and sine of half the yaw, without loss of digits near 0 and half a turn.
    larger = jnp.sqrt((1 + jnp.abs(cos)) / 2)
    smaller = jnp.abs(sin) / (2 * larger)
    ahead, sign = cos >= 0, jnp.where(sin < 0, -1.0, 1.0)
    c, s = jnp.where(ahead, larger, smaller), sign * jnp.where(ahead, smaller, larger)
    quat = stack((c * x + s * y, c * y - s * x, c * z - s * w, c * w + s * z))
    names = ("pos", "vel", "goal", "goal_vel", "goal_acc")
    vectors = {name: vector(getattr(motion, name)) for name in names}
    if motion.load is not None and motion.load_vel is not None:
        vectors |= {"load": vector(motion.load), "load_vel": vector(motion.load_vel)}
    return motion._replace(quat=quat, **vectors)


class Part(NamedTuple):
    """A part of an observation."""

    size: int
    of: Callable[[Motion, tuple[float, float]], Array]
    """Maps a motion and the range of rotor speeds to (..., size)."""


def _rotation(motion: Motion) -> Array:
    rows = rotation_matrix(split(motion.quat))  # type: ignore[arg-type]
    return stack(tuple(x for row in rows for x in row))


def _in_body_axes(quat: Array, vector: Array) -> Array:
    to_body = transpose(rotation_matrix(split(quat)))  # type: ignore[arg-type]
    return stack(transform(to_body, split(vector)))  # type: ignore[arg-type]


def _rotor_speeds(motion: Motion, rotor_range: tuple[float, float]) -> Array:
    slowest, fastest = rotor_range
    return (2 * motion.rotor_vel - (slowest + fastest)) / (fastest - slowest)


def _of_load(motion: Motion, load: Array | None, own: Array) -> Array:
    if load is None:
        raise ValueError("the observation contains the load, but the drone carries none")
    return _in_body_axes(motion.quat, load - own)


PARTS: dict[str, Part] = {
    "position": Part(3, lambda m, _: m.pos),
    "position_error": Part(3, lambda m, _: m.goal - m.pos),
    "body_position_error": Part(3, lambda m, _: _in_body_axes(m.quat, m.goal - m.pos)),
    "velocity": Part(3, lambda m, _: m.vel),
    "body_velocity": Part(3, lambda m, _: _in_body_axes(m.quat, m.vel)),
    "velocity_error": Part(3, lambda m, _: m.goal_vel - m.vel),
    "body_velocity_error": Part(3, lambda m, _: _in_body_axes(m.quat, m.goal_vel - m.vel)),
    "body_goal_velocity": Part(3, lambda m, _: _in_body_axes(m.quat, m.goal_vel)),
    "body_goal_acceleration": Part(3, lambda m, _: _in_body_axes(m.quat, m.goal_acc)),
    "attitude": Part(4, lambda m, _: m.quat),
    "rotation": Part(9, lambda m, _: _rotation(m)),
    "body_rates": Part(3, lambda m, _: m.ang_vel),
    "rotor_speeds": Part(4, _rotor_speeds),
    "previous_action": Part(4, lambda m, _: m.action),
    "body_load_position": Part(3, lambda m, _: _of_load(m, m.load, m.pos)),
    "body_load_velocity": Part(3, lambda m, _: _of_load(m, m.load_vel, m.vel)),
}
"""Parts of observations by name:

- `position` [m] and `velocity` [m/s], world axes; `body_velocity`: in body axes;
- `position_error` and `velocity_error`: of the goal, relative to the drone, world axes;
- `body_position_error` and `body_velocity_error`: the same in body axes;
- `body_goal_velocity` [m/s] and `body_goal_acceleration` [m/s^2]: of the goal, body axes;
- `attitude`: quaternion xyzw; `rotation`: matrix from body to world, row by row;
- `body_rates` [rad/s], body axes;
- `rotor_speeds`: -1 is the slowest, 1 the fastest;
- `previous_action`: -1 to 1;
- `body_load_position` and `body_load_velocity`: of a slung load, relative to the drone, body axes.
"""

DEFAULT_PARTS = ("position_error", "velocity_error", "attitude", "body_rates")
"""Parts of the observations of the environments."""


@dataclass(frozen=True)
class Observation:
    """Composition of an observation: a pure function of the motion and the observation before.

    Raises:
        ValueError: A part is unknown, or a number is out of range.
    """

    parts: tuple[str, ...] = DEFAULT_PARTS
    """Names in `PARTS`, in order."""
    history: int = 1
    """Number of consecutive frames, the newest first; 1 for the current one alone."""
    rotor_range: tuple[float, float] = (0.0, 1.0)
    """Slowest and fastest speed [RPM] for the part `rotor_speeds`, see `of`."""
    largest_errors: tuple[float, float] = (0.0, 0.0)
    """Largest errors of position [m] and velocity [m/s] in an observation, along each axis of the
    world; larger ones are clipped, so that a policy meets no errors beyond those of its training.
    0: no limit."""
    eye: Eye | None = None
    """Camera whose current picture follows all numbers; None for no picture."""
    told: tuple[str, ...] = ()
    """A name for each number that follows the frames and that only an environment knows, see
    `ObservationTerm`."""

    def __post_init__(self) -> None:
        if not self.parts:
            raise ValueError(f"an observation needs at least one part, from {', '.join(PARTS)}")
        for part in self.parts:
            if part not in PARTS:
                raise ValueError(unknown("part", part, PARTS))
        if not 1 <= self.history <= LONGEST_HISTORY:
            raise ValueError(f"history must be from 1 to {LONGEST_HISTORY}, got {self.history}")
        slowest, fastest = self.rotor_range
        if not 0 <= slowest < fastest < float("inf"):
            raise ValueError(f"rotor_range must rise from 0 RPM or more, got {self.rotor_range}")
        if not all(0 <= x < float("inf") for x in self.largest_errors):
            raise ValueError(f"largest_errors must be 0 or more, got {self.largest_errors}")

    @classmethod
    def of(
        cls,
        drone: AnyDrone,
        parts: Sequence[str] = DEFAULT_PARTS,
        history: int = 1,
        eye: Eye | None = None,
    ) -> Observation:
        """Return the observation of a drone, whose rotors turn within its limits.

        Args:
            drone: A `Drone`, or the path of a drone's folder.
            parts: Names in `PARTS`, in order.
            history: Number of frames.
            eye: The camera whose picture follows.

        Raises:
            ValueError: There is no such drone or part, or the history is out of range.
        """
        slowest, fastest = Params.create(resolve(drone)).rotor_vel_limits.tolist()
        return cls(tuple(parts), history, (slowest, fastest), eye=eye)

    @property
    def frame_size(self) -> int:
        """Number of elements of a frame, which contains all parts at one time."""
        return sum(PARTS[part].size for part in self.parts)

    @property
    def motion_size(self) -> int:
        """Number of elements of all frames, without the picture."""
        return self.history * self.frame_size

    @property
    def repeated_size(self) -> int:
        """Number of leading elements that the next observation contains again."""
        return self.motion_size - self.frame_size

    @property
    def numbers(self) -> int:
        """Number of elements of an observation without its picture."""
        return self.motion_size + len(self.told)

    @property
    def size(self) -> int:
        """Number of elements of an observation."""
        return self.numbers + (0 if self.eye is None else self.eye.size)

    def __call__(
        self,
        motion: Motion,
        before: Array | None = None,
        picture: Array | None = None,
        told: Array | None = None,
    ) -> Array:
        """Return the observation of a motion.

        Args:
            motion: The current motion.
            before: (..., size) previous observation, or its first `repeated_size` elements; None or
                zeros at the start.
            picture: (..., height, width, channels) current picture of the `eye`, see `Eye.seen`.
            told: (..., k) current numbers that are `told`.

        Returns:
            (..., size).

        Raises:
            ValueError: There is an eye but no picture, or a picture but no eye; the same for what
                is told.
        """
        frames = self.stacked(self.frame(motion), before)
        if len(self.told) != (0 if told is None else told.shape[-1]):
            names = ", ".join(self.told) or "nothing"
            raise ValueError(f"an environment has to tell the observation {names}")
        if told is not None:
            frames = jnp.concatenate([frames, told.astype(frames.dtype)], axis=-1)
        return self.with_picture(frames, picture)

    def with_picture(self, frames: Array, picture: Array | None) -> Array:
        """Return the observation of its `numbers` and a picture; see `__call__`."""
        if (self.eye is None) != (picture is None):
            rule = "no picture" if self.eye is None else f"a picture of {self.eye.shape}"
            raise ValueError(f"the observation needs {rule}")
        if self.eye is None or picture is None:
            return frames
        return jnp.concatenate([frames, self.eye.seen(picture).astype(frames.dtype)], axis=-1)

    def frame(self, motion: Motion) -> Array:
        """Return the newest frame of an observation, (..., frame_size)."""
        motion = self._clipped(motion)
        parts: list[Any] = [PARTS[part].of(motion, self.rotor_range) for part in self.parts]
        return jnp.concatenate(parts, axis=-1)

    def stacked(self, frame: Array, before: Array | None = None) -> Array:
        """Return all frames, of which the newest may have noise; see `__call__`."""
        if self.history == 1:
            return frame
        n = self.repeated_size
        past = jnp.zeros((*frame.shape[:-1], n), frame.dtype) if before is None else before[..., :n]
        return jnp.concatenate([frame, past], axis=-1)

    def _clipped(self, motion: Motion) -> Motion:
        """Return the motion with a goal no farther away than `largest_errors`."""
        far, fast = self.largest_errors
        if far:
            goal = motion.pos + jnp.clip(motion.goal - motion.pos, -far, far)
            motion = motion._replace(goal=goal)
        if fast:
            goal_vel = motion.vel + jnp.clip(motion.goal_vel - motion.vel, -fast, fast)
            motion = motion._replace(goal_vel=goal_vel)
        return motion

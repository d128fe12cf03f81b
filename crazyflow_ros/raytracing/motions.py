"""Motion of geoms and cameras: where they are while rows are exposed, and how pictures flow."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.optics import Optics
from crazyflow_ros.raytracing.tracer import Frames
from crazyflow_ros.sensors.camera_model import Shutter
from crazyflow_ros.xla.struct import pytree


class Twists(NamedTuple):
    """Velocities of K rigid bodies in N worlds, or of one."""

    centre: Array
    """Point that moves straight on while the body turns about it [m], (N, K, 3) or (N, 3)."""
    vel: Array
    """Velocity of the centre, in the axes of the world [m/s], likewise."""
    ang_vel: Array
    """Angular velocity, in the axes of the world [rad/s], likewise."""

    def after(self, time: Array) -> Twists:
        """Return the motion after a time [s], at the same velocities."""
        return self._replace(centre=self.centre + time * self.vel)

    def moved(self, frames: Frames, time: Array) -> Frames:
        """Return frames that are part of the bodies after a time [s], at the same velocities."""
        turn = _rotation(self.ang_vel * time)
        away = frames.pos - self.centre
        pos = self.centre + time * self.vel + (turn * away[..., None, :]).sum(-1)
        axes = (turn[..., :, :, None] * frames.axes[..., None, :, :]).sum(-2)
        return Frames(pos, axes)


class Motions(NamedTuple):
    """Velocities of all that a picture shows, and of the camera."""

    geoms: Twists
    """Of each geom, (N, ngeom, 3)."""
    cameras: Twists
    """Of the cameras, (N, 3)."""


def times_of(shutter: Shutter, *, mean: bool) -> np.ndarray:
    """Return the moments at which a picture is computed, relative to its own time [s], (S,).

    Args:
        shutter: That of the camera.
        mean: Whether a row is the mean of its exposure; otherwise it shows the middle of it.
    """
    span = _span(shutter, mean)
    if span == 0.0:
        return np.zeros(1)
    return span * ((np.arange(shutter.instants) + 0.5) / shutter.instants - 0.5)


def shares_of(shutter: Shutter, height: int, *, mean: bool) -> np.ndarray:
    """Return the share of each of these moments in each row, (S, height); each row's sum is 1."""
    span, instants = _span(shutter, mean), shutter.instants
    if span == 0.0:
        return np.ones((1, height))
    middle = shutter.readout * ((np.arange(height) + 0.5) / height - 0.5)
    cell = span / instants
    if not mean or shutter.exposure == 0.0:
        number = np.floor((middle + span / 2) / cell).astype(int)
        return np.arange(instants)[:, None] == number.clip(0, instants - 1)
    times, half = times_of(shutter, mean=True)[:, None], shutter.exposure / 2
    begin = np.maximum(times - cell / 2, middle - half)
    end = np.minimum(times + cell / 2, middle + half)
    overlap = np.maximum(end - begin, 0.0)
    return overlap / overlap.sum(axis=0)


def _span(shutter: Shutter, mean: bool) -> float:
    return shutter.readout + shutter.exposure * mean


@pytree("_orthographic")
class Flow:
    """Optical flow: how fast what a pixel shows moves through the picture.

    Args:
        optics: That of the camera.
    """

    def __init__(self, optics: Optics) -> None:
        lens = optics.lens()
        self._orthographic = lens.orthographic
        parts = lens.x, lens.y, -1.0 if lens.z is None else lens.z, optics.slopes(lens)
        self._rays = tuple(jnp.asarray(part, jnp.float32) for part in parts[:3])
        self._slopes = jnp.asarray(parts[3], jnp.float32)

    def __call__(self, depth: Array, geom: Array, cameras: Frames, motions: Motions) -> Array:
        """Return the flow to the right and downwards [pixels/s], (N, height, width, 2) float32.

        Where nothing is seen, it is that of points far away: due to the rotation of the camera, or
        zero if the camera is orthographic.

        Args:
            depth: See `Hits`, (N, height, width).
            geom: Ids of geoms, -1 for none, likewise.
            cameras: Of the cameras.
            motions: Of geoms and cameras.
        """
        shift, turn = (jnp.asarray(x, depth.dtype) for x in _seen_from(cameras, motions))
        a, b = _taken(shift, geom), _taken(turn, geom)
        (x, y, z), seen = self._rays, geom >= 0
        # Velocity of points as seen from the camera, over the lengths of rays in perspective.
        nearness = jnp.where(seen, 1.0 if self._orthographic else 1.0 / depth, 0.0)
        z = -depth if self._orthographic else z
        moving: tuple[Array, ...] = (
            a[0] * nearness + b[1] * z - b[2] * y,
            a[1] * nearness + b[2] * x - b[0] * z,
            a[2] * nearness + b[0] * y - b[1] * x,
        )
        if self._orthographic:
            moving = tuple(jnp.where(seen, part, 0.0) for part in moving)
        slopes = self._slopes
        flow = [sum(slopes[..., i, j] * part for j, part in enumerate(moving)) for i in range(2)]
        return jnp.stack(flow, axis=-1)


def _seen_from(cameras: Frames, motions: Motions) -> tuple[Array, Array]:
    """Return how points e of each geom move in the axes of the camera: shift + turn x e.

    Returns:
        (N, ngeom + 1, 3) m/s and rad/s; the last row is that of what stands still, far away.
    """
    geoms, own = motions
    inverse = jnp.swapaxes(cameras.axes, -1, -2)[:, None]
    moving = own.vel + jnp.cross(own.ang_vel, cameras.pos - own.centre)
    passing = geoms.vel + jnp.cross(geoms.ang_vel, cameras.pos[:, None] - geoms.centre)
    shift = (inverse * (passing - moving[:, None])[..., None, :]).sum(-1)
    turn = (inverse * (geoms.ang_vel - own.ang_vel[:, None])[..., None, :]).sum(-1)
    still = (inverse * -own.ang_vel[:, None, None, :]).sum(-1)
    return (
        jnp.concatenate([shift, jnp.zeros_like(still)], axis=1),
        jnp.concatenate([turn, still], axis=1),
    )


def _taken(rows: Array, geom: Array) -> list[Array]:
    """Return the components of each pixel's row, the last one where there is no geom."""
    number = jnp.where(geom >= 0, geom, rows.shape[1] - 1).reshape(len(geom), -1)
    return [jnp.take_along_axis(rows[..., i], number, axis=1).reshape(geom.shape) for i in range(3)]


def _rotation(angles: Array) -> Array:
    """Return the rotations by rotation vectors (..., 3) [rad], (..., 3, 3)."""
    square = (angles * angles).sum(-1)
    some = square > 0.0
    angle = jnp.sqrt(jnp.where(some, square, 1.0))
    sine = jnp.where(some, jnp.sin(angle) / angle, 1.0)[..., None]
    versine = jnp.where(some, (1.0 - jnp.cos(angle)) / (angle * angle), 0.5)[..., None]
    columns = []
    for axis in jnp.eye(3, dtype=angles.dtype):
        unit = jnp.broadcast_to(axis, angles.shape)
        across = jnp.cross(angles, unit)
        columns.append(unit + sine * across + versine * jnp.cross(angles, across))
    return jnp.stack(columns, axis=-1)

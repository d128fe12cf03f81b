"""Pictures by rays in any number of worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import mujoco
from jax import Array

from crazyflow_ros.raytracing import Appearance, Frames, Lens, Painter, Tracer
from crazyflow_ros.sensors.rendering import DataType

Pictures: TypeAlias = dict[DataType, Array]
"""Of B worlds, as in `CameraSensorData`."""

_LEAST = 16  # pictures of a part; fewer are taken in less time than it takes to wake a thread


class PictureFn:
    """A pure function of the frames of all geoms, and of a camera, in B worlds.

    Args:
        model: The scene.
        lens: That of the camera.
        groups: Geom groups that are seen.
        kinds: Pictures to take.
        textures: Whether surfaces have their textures.
        shadows: Whether lights cast shadows.

    Raises:
        ValueError: The scene has geoms that rays do not see.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        lens: Lens,
        groups: Sequence[int],
        kinds: Sequence[DataType],
        *,
        textures: bool,
        shadows: bool,
    ) -> None:
        self._kinds = kinds
        self._tracer = Tracer(model, lens, groups)
        self.painter = Painter(model, lens, groups, textures=textures, shadows=shadows)

    def __call__(self, geoms: Frames, cameras: Frames, look: Appearance | None = None) -> Pictures:
        """Return the pictures; by default of the look of the scene."""
        tracer = self._tracer
        hits = tracer.hits(geoms, cameras)
        made: dict[DataType, Callable[[], Array]] = {
            "rgb": lambda: _as_bytes(self.painter.paint(geoms, cameras, look)),
            "depth": lambda: hits.depth[..., None],
            "segmentation": lambda: _with_type(tracer.segmentation(hits)),
            "normals": lambda: tracer.normals(hits, geoms, cameras),
        }
        return {kind: made[kind]() for kind in self._kinds}


class Tracers:
    """Compiled functions for pictures by rays of a scene, one for each lens and kinds of pictures.

    Args:
        model: The scene.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._known: dict[tuple[Any, ...], Callable[[Frames, Frames], Pictures]] = {}

    def get(
        self,
        lens: Lens,
        groups: Sequence[int],
        kinds: Sequence[DataType],
        *,
        textures: bool,
        shadows: bool,
    ) -> Callable[[Frames, Frames], Pictures]:
        """Return a function for B worlds, whose arrays may be NumPy's; see `PictureFn`."""
        key = (
            lens.x.tobytes(),
            lens.y.tobytes(),
            lens.orthographic,
            textures,
            shadows,
            *groups,
            *kinds,
        )
        if key not in self._known:
            take = jax.jit(
                PictureFn(self._model, lens, groups, kinds, textures=textures, shadows=shadows)
            )

            def call(*frames: Frames) -> Pictures:
                single = [Frames(*(jnp.asarray(x, jnp.float32) for x in each)) for each in frames]
                return on_all_cores(take, len(single[0].pos), single)

            self._known[key] = call
        return self._known[key]


def on_all_cores(take: Callable[..., Any], n: int, args: Any) -> Any:
    """Return `take(*args)`, of which each core computes a part.

    Args:
        take: A compiled function, whose results have an axis of n worlds first.
        n: Number of worlds.
        args: Pytrees of arrays with this axis, or with one row for all worlds.
    """
    from crazyflow_ros.sim.compile.cores import n_cores, on_each_core

    parts = next(k for k in range(max(1, min(n_cores(), n // _LEAST)), 0, -1) if n % k == 0)
    if parts == 1:
        return take(*args)
    size, results = n // parts, [None] * parts

    def part(number: int) -> None:
        own = slice(number * size, (number + 1) * size)
        results[number] = jax.block_until_ready(
            take(*jax.tree.map(lambda x: x[own] if len(x) == n else x, args))
        )

    on_each_core(part, parts)
    return jax.tree.map(lambda *arrays: jnp.concatenate(arrays), *results)


def where_due(take: Callable[..., Pictures], due: Array, before: Pictures, args: Any) -> Pictures:
    """Return `take(*args)` of the worlds that are due, and the pictures before of the others.

    The worlds that are due come first, in parts of a few; parts without any cast no rays.

    Args:
        take: A function of any number of worlds.
        due: (n,) bool.
        before: Pictures (n, ...).
        args: Pytrees of arrays with an axis of n worlds, or with one row for all.
    """
    n = len(due)
    size = min(n, _LEAST)
    order = jnp.argsort(~due)
    padded = jnp.pad(order, (0, -n % size), "edge").reshape(-1, size)

    def part(numbers: Array) -> Pictures:
        own = jax.tree.map(lambda x: x[numbers] if len(x) == n else x, args)
        nothing = {kind: jnp.zeros((size, *x.shape[1:]), x.dtype) for kind, x in before.items()}
        return jax.lax.cond(due[numbers[0]], lambda own: take(*own), lambda _: nothing, own)

    taken = jax.lax.map(part, padded)
    place = jnp.argsort(order)

    def chosen(new: Array, old: Array) -> Array:
        new = new.reshape(-1, *new.shape[2:])[place]
        return jnp.where(due.reshape(n, *[1] * (old.ndim - 1)), new, old)

    return {kind: chosen(taken[kind], before[kind]) for kind in before}


def _as_bytes(colors: Array) -> Array:
    """Return colors from 0 to 1 as bytes."""
    return jnp.round(255.0 * colors).astype(jnp.uint8)


def _with_type(geoms: Array) -> Array:
    """Return ids and types of objects, as `CameraSensorData.segmentation`."""
    types = jnp.where(geoms >= 0, int(mujoco.mjtObj.mjOBJ_GEOM), -1)
    return jnp.stack([geoms, types], axis=-1).astype(jnp.int32)

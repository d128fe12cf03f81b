"""The renderer that takes the pictures of cameras by rays, in any number of worlds."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.raytracing.look import Appearance, drawn_lights
from crazyflow_ros.raytracing.motions import Flow, Motions, Twists, shares_of, times_of
from crazyflow_ros.raytracing.optics import Optics
from crazyflow_ros.raytracing.painter import Painter, develop
from crazyflow_ros.raytracing.tracer import Frames, Tracer
from crazyflow_ros.raytracing.unit_shapes import UnitShape, UnitShapes
from crazyflow_ros.sensors import MujocoBackend
from crazyflow_ros.sensors.camera_model import Chip, Shutter
from crazyflow_ros.sensors.rendering import DataType, Room
from crazyflow_ros.xla.compiled_files import kept_function
from crazyflow_ros.xla.struct import pytree

if TYPE_CHECKING:
    from crazyflow_ros.sensors import CameraSensor, CameraSensorCfg

Pictures: TypeAlias = dict[DataType, Array]
"""Of B worlds, as in `CameraSensorData`."""

_WORDS = 4  # of shapes of a kind, the unit in which a `Room` grows
_GEOMS = 512  # likewise
_LEAST = 16  # pictures of a part; fewer are taken in less time than it takes to wake a thread


class RayCamera(NamedTuple):
    """What pictures by rays depend on, beside the scene."""

    optics: Optics
    groups: tuple[int, ...]
    """Geom groups that are seen."""
    kinds: tuple[DataType, ...]
    """Pictures to take."""
    textures: bool
    """Whether surfaces have their textures."""
    shadows: bool = False
    """Whether lights cast shadows."""
    shutter: Shutter = Shutter()
    chip: Chip = Chip()

    @classmethod
    def of(cls, cfg: CameraSensorCfg, model: mujoco.MjModel, number: int) -> RayCamera:
        """Return what the configuration of a camera in a model asks for."""
        if cfg.own_intrinsics is not None:
            optics = Optics(cfg.own_intrinsics, distortion=cfg.lens)
        else:
            optics = Optics.of_camera(model, number, cfg.width, cfg.height, cfg.lens)
        return cls(
            optics, cfg.enabled_geom_groups, cfg.data_types, cfg.use_textures, cfg.use_shadows,
            cfg.shutter, cfg.chip,
        )  # fmt: skip

    @property
    def needs_motions(self) -> bool:
        """Whether pictures depend on velocities."""
        return "flow" in self.kinds or not self.shutter.is_instant

    @property
    def needs_keys(self) -> bool:
        """Whether pictures depend on random numbers."""
        return "rgb" in self.kinds and self.chip.is_noisy


@pytree("_kinds", "_shutter", "_chip", "_height")
class PictureFn:
    """A pure function of the frames of all geoms, and of a camera, in B worlds.

    It is a pytree: cameras and scenes that differ in numbers alone have the same compiled code.

    Args:
        model: The scene.
        camera: The camera.

    Raises:
        ValueError: The scene has geoms that rays do not see, or pixels get no rays.
    """

    def __init__(self, model: mujoco.MjModel, camera: RayCamera) -> None:
        lens = camera.optics.lens()
        self._kinds, self._shutter, self._chip = camera.kinds, camera.shutter, camera.chip
        self._height = camera.optics.intrinsics.height
        others = set(camera.kinds) - {"rgb"}
        self._tracer = Tracer(model, lens, camera.groups) if others else None
        self.painter = None
        if "rgb" in camera.kinds:
            self.painter = Painter(
                model, lens, camera.groups, textures=camera.textures, shadows=camera.shadows
            )
        self._flow = Flow(camera.optics) if "flow" in camera.kinds else None

    def __call__(
        self,
        geoms: Frames,
        cameras: Frames,
        look: Appearance | None = None,
        motions: Motions | None = None,
        keys: Array | None = None,
    ) -> Pictures:
        """Return the pictures.

        Args:
            geoms: See `Tracer.hits`.
            cameras: See `Tracer.hits`.
            look: By default that of the scene.
            motions: Velocities, where `RayCamera.needs_motions`.
            keys: Random keys of the worlds, (N,), where `RayCamera.needs_keys`.
        """

        def painted(geoms: Frames, cameras: Frames, _: Motions | None) -> Pictures:
            assert self.painter is not None
            return {"rgb": self.painter.paint(geoms, cameras, look)}

        kinds, taken = self._kinds, Pictures()
        if "rgb" in kinds:
            colors = self._over_time(painted, geoms, cameras, motions, mean=True)["rgb"]
            colors = develop(self._chip, colors, keys)
            taken["rgb"] = jnp.round(255.0 * colors).astype(jnp.uint8)
        if self._tracer is not None:
            taken |= self._over_time(self._measured, geoms, cameras, motions, mean=False)
        return {kind: taken[kind] for kind in kinds}

    def _measured(self, geoms: Frames, cameras: Frames, motions: Motions | None) -> Pictures:
        """Return all pictures at a moment, but "rgb"."""
        tracer = self._tracer
        assert tracer is not None
        hits = tracer.hits(geoms, cameras)

        def flow() -> Array:
            assert self._flow is not None and motions is not None
            return self._flow(hits.depth, tracer.segmentation(hits), cameras, motions)

        made: dict[DataType, Callable[[], Array]] = {
            "depth": lambda: hits.depth[..., None],
            "segmentation": lambda: _with_type(tracer.segmentation(hits)),
            "normals": lambda: tracer.normals(hits, geoms, cameras),
            "flow": flow,
        }
        return {kind: made[kind]() for kind in self._kinds if kind != "rgb"}

    def _over_time(
        self,
        take: Callable[[Frames, Frames, Motions | None], Pictures],
        geoms: Frames,
        cameras: Frames,
        motions: Motions | None,
        *,
        mean: bool,
    ) -> Pictures:
        """Return pictures whose rows are those of their moments, or the means of several."""
        shutter = self._shutter
        times = times_of(shutter, mean=mean)
        if len(times) == 1:
            return take(geoms, cameras, motions)
        assert motions is not None
        shares = shares_of(shutter, self._height, mean=mean)[:, :, None, None].astype(np.float32)
        of_geoms, of_cameras = motions

        def at(time: Array) -> Pictures:
            moved = of_geoms.moved(geoms, time), of_cameras.moved(cameras, time)
            return take(*moved, Motions(of_geoms.after(time), of_cameras.after(time)))

        def add(pictures: Pictures, moment: tuple[Array, Array]) -> tuple[Pictures, None]:
            time, share = moment
            new = at(time)
            return {
                kind: before + share * new[kind] if mean else jnp.where(share, new[kind], before)
                for kind, before in pictures.items()
            }, None

        first = jax.eval_shape(at, jnp.float32(0.0))
        start = {kind: jnp.zeros(part.shape, part.dtype) for kind, part in first.items()}
        moments = jnp.asarray(times, jnp.float32), jnp.asarray(shares)
        return jax.lax.scan(add, start, moments)[0]


class _Compiled(NamedTuple):
    """What takes the pictures of a kind of camera."""

    take: Callable[..., Pictures]
    """A function of the arguments of `PictureFn`."""
    n_geoms: int
    """Of how many geoms."""
    look: Appearance | None
    """The look of the scene, where pictures have colours."""


class RayRenderer:
    """See `CameraRenderer`; it keeps a compiled function for each kind of camera."""

    def __init__(self, model: mujoco.MjModel, room: Room | None = None) -> None:
        self._model, self._room = model, room
        self._known: dict[RayCamera, _Compiled] = {}
        self._lights = drawn_lights(model)
        self._has_moving_lights = bool((model.body_weldid[model.light_bodyid[self._lights]]).any())

    def take(self, sensor: CameraSensor) -> Pictures:
        """See `CameraRenderer`."""
        backend, model, number = sensor.backend, sensor.backend.model, sensor.camera_idx
        camera = RayCamera.of(sensor.cfg, model, number)
        if camera not in self._known:
            self._known[camera] = self._compiled(camera)
        taken, n_geoms, look = self._known[camera]
        geoms, of_camera = Frames(*backend.geoms()), Frames(*backend.frame(sensor.frames[0]))
        motions = None
        if camera.needs_motions:
            own = Twists(*(part[:, 0] for part in backend.motions(model.cam_bodyid[[number]])))
            of_geoms = Twists(*backend.motions(model.geom_bodyid))
            motions = Motions(_with_geoms(of_geoms, n_geoms), own)
        frames = _with_geoms(geoms, n_geoms), of_camera, None, motions
        single = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), frames)
        keys = sensor.next_keys() if camera.needs_keys else None
        if look is not None and self._has_moving_lights and isinstance(backend, MujocoBackend):
            single = *single[:2], self._lit(look, backend), single[3]
        return on_all_cores(taken, len(geoms.pos), (*single, keys))

    def _lit(self, look: Appearance, backend: MujocoBackend) -> Appearance:
        """Return the look with the lights where the bodies are that carry them."""
        pos, along = (
            jnp.asarray(np.stack([of[self._lights] for of in parts]), jnp.float32)
            for parts in (
                [data.light_xpos for data in backend.data],
                [data.light_xdir for data in backend.data],
            )
        )
        return look._replace(lights=look.lights._replace(pos=pos, dir=along))

    def _compiled(self, camera: RayCamera) -> _Compiled:
        take, n_geoms = PictureFn(self._model, camera), self._model.ngeom
        if self._room is not None:
            n_geoms = self._room.size("geoms", n_geoms, _GEOMS)
            take = _with_room(take, self._room, camera, n_geoms)
        look = None if take.painter is None else take.painter.look
        return _Compiled(kept_function(_pictures, take), n_geoms, look)


def _with_room(take: PictureFn, room: Room, camera: RayCamera, n_geoms: int) -> PictureFn:
    """Return a function of the frames and motions of more geoms, and with more shapes."""
    number = itertools.count()

    def padded(part: Any) -> Any:
        if isinstance(part, UnitShapes):
            own, which = dict(part.words), next(number)
            words = {
                kind: room.size((camera, which, kind), own.get(kind, 0), _WORDS)
                for kind in UnitShape
            }
            return jax.tree.map(jnp.asarray, part.with_room(words))
        if isinstance(part, Appearance):
            of_geoms = part._asdict()
            kept = {name: of_geoms.pop(name) for name in ("headlight", "lights")}
            return Appearance(**_with_geoms(of_geoms, n_geoms), **kept)
        return part

    def is_part(part: Any) -> bool:
        return isinstance(part, UnitShapes | Appearance)

    return jax.tree.map(padded, take, is_leaf=is_part)


def _with_geoms(of_geoms: Any, n_geoms: int) -> Any:
    """Return arrays (N, ngeom, ...) as (N, n_geoms, ...), with geoms that nothing shows."""

    def padded(x: Any) -> Any:
        if x.shape[1] == n_geoms:
            return x
        if isinstance(x, np.ndarray):  # at each picture, and `np.pad` takes longer
            roomy = np.zeros((len(x), n_geoms, *x.shape[2:]), x.dtype)
            roomy[:, : x.shape[1]] = x
            return roomy
        return jnp.pad(x, [(0, 0), (0, n_geoms - x.shape[1]), *[(0, 0)] * (x.ndim - 2)])

    return jax.tree.map(padded, of_geoms)


def _pictures(take: PictureFn, *args: Any) -> Pictures:
    """Call `take`; this is compiled once for all scenes and cameras of the same structure."""
    return take(*args)


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


def _with_type(geoms: Array) -> Array:
    """Return ids and types of objects, as `CameraSensorData.segmentation`."""
    types = jnp.where(geoms >= 0, int(mujoco.mjtObj.mjOBJ_GEOM), -1)
    return jnp.stack([geoms, types], axis=-1).astype(jnp.int32)

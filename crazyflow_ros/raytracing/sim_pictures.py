"""Pictures by rays in the worlds of a `Sim`, as a function of its data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.checks.limits import unknown
from crazyflow_ros.raytracing.look import Appearance, look_of
from crazyflow_ros.raytracing.motions import Motions, Twists
from crazyflow_ros.raytracing.renderer import (
    PictureFn,
    Pictures,
    RayCamera,
    on_all_cores,
    where_due,
)
from crazyflow_ros.raytracing.textures import textures_of
from crazyflow_ros.raytracing.tracer import Frames
from crazyflow_ros.scene.frames import rotation_matrix
from crazyflow_ros.sensors.backend import carriers, motions_in_sim
from crazyflow_ros.sensors.camera import CameraSensorCfg, CameraSensorData

if TYPE_CHECKING:
    from crazyflow_ros.sim import Sim
    from crazyflow_ros.sim.data import SimData


class SimPictures:
    """The pictures of a camera in all worlds of a `Sim`, as a function of its data.

    The function is pure: use it in `jax.jit`, `jax.vmap`, `jax.lax.scan` and `jax.grad`. Depths
    have derivatives by the poses of drones. Outside of these, all cores share the worlds. Drones
    see one another; their rotors stand still.

    Args:
        sim: The simulation. Cameras and geoms that have been added to `sim.spec` are seen after
            `sim.build_mjx()`.
        cfg: The camera, which is in the model. If its name is that of a camera of drones, such as
            "fpv_cam", without their number, each drone takes pictures.

    Raises:
        ValueError: There is no such camera, or the scene has geoms that rays do not see.
    """

    geoms: Frames
    """Positions (1, ngeom, 3) and axes (1, ngeom, 3, 3) of geoms: of those of drones in the drone,
    of others in the world. Give other ones to move them, (n_worlds, ngeom, ...)."""
    cameras: Frames
    """Position (1, C, 3) and axes (1, C, 3, 3) of the C cameras on their drones, or in the world.
    Give other ones to mount them differently, (n_worlds, C, ...)."""
    look: Appearance
    """Colors, textures and lights, with one row. Give others with a row for each world."""

    def __init__(self, sim: Sim, cfg: CameraSensorCfg) -> None:
        model = sim.mj_model
        name = cfg.name if cfg.camera_name is None else cfg.camera_name
        self._numbers = _cameras(model, name, sim.n_drones)
        self._each = len(self._numbers) > 1 or model.camera(self._numbers[0]).name != name
        camera = RayCamera.of(cfg, model, self._numbers[0])
        self._take, self._camera = PictureFn(model, camera), camera
        painter = self._take.painter
        self.look = painter.look if painter else look_of(model, textures_of(model)[1])
        self._cfg, self._kinds, self._size = cfg, cfg.data_types, (cfg.height, cfg.width)
        self._rest(model, sim.n_drones)
        self._compiled = partial(jax.jit(self._pictures), self._take)

    def __call__(
        self,
        data: SimData,
        geoms: Frames | None = None,
        cameras: Frames | None = None,
        look: Appearance | None = None,
        *,
        keys: Array | None = None,
        due: Array | None = None,
        before: CameraSensorData | None = None,
    ) -> CameraSensorData:
        """Take pictures.

        Args:
            data: Of the simulation.
            geoms: See `geoms`.
            cameras: See `cameras`.
            look: See `look`.
            keys: Random keys of the noise in each world, (n_worlds,). By default they depend on the
                seed and name of the camera, the world, and the ticks since its reset.
            due: Worlds of which pictures are taken, (n_worlds,) bool; only their rays are cast.
            before: The pictures of the other worlds.

        Returns:
            Arrays of JAX of B = n_worlds, or if each drone has a camera (n_worlds, n_drones, ...).

        Raises:
            ValueError: Only one of `due` and `before` is given, or they do not have these shapes.
        """
        pos, quat = data.states.pos, data.states.quat
        frames = geoms or self.geoms, cameras or self.cameras
        motions, keys = self._motions(data), self._keys(data, keys)
        args: tuple[Any, ...] = ((pos, quat, *frames, look or self.look, *motions, keys),)
        if due is not None or before is not None:
            args = *args, *self._checked(len(pos), due, before)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(args)):
            return CameraSensorData(**self._pictures(self._take, *args))
        return CameraSensorData(**on_all_cores(self._compiled, len(pos), args))

    def _rest(self, model: mujoco.MjModel, n_drones: int) -> None:
        """Find the frames of geoms and cameras, and which drones carry them."""
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        roots = np.array([model.body(f"drone:{i}").id for i in range(n_drones)])
        cameras = np.array(self._numbers)

        def mounted(pos: np.ndarray, axes: np.ndarray, bodies: np.ndarray) -> tuple[Any, Frames]:
            drones = carriers(model, n_drones, bodies)
            base = np.where(drones < 0, 0, roots[drones])  # the world, or a drone
            turn = data.xmat[base].reshape(-1, 3, 3).swapaxes(1, 2)
            local = (turn @ (pos - data.xpos[base])[..., None])[..., 0]
            return drones, Frames(
                jnp.asarray(local[None], jnp.float32),
                jnp.asarray((turn @ axes.reshape(-1, 3, 3))[None], jnp.float32),
            )

        self._geom_carriers, self.geoms = mounted(data.geom_xpos, data.geom_xmat, model.geom_bodyid)
        self._camera_carriers, self.cameras = mounted(
            data.cam_xpos[cameras], data.cam_xmat[cameras], model.cam_bodyid[cameras]
        )

    def _motions(self, data: SimData) -> tuple[Twists | None, Twists | None]:
        if not self._camera.needs_motions:
            return None, None
        geoms, cameras = (
            Twists(*motions_in_sim(data, drones))
            for drones in (self._geom_carriers, self._camera_carriers)
        )
        return geoms, cameras

    def _keys(self, data: SimData, keys: Array | None) -> Array | None:
        if not self._camera.needs_keys or keys is not None:
            return keys
        worlds = self._cfg.keys([(world,) for world in range(len(data.states.pos))])
        return jax.vmap(jax.random.fold_in)(worlds, data.core.steps[:, 0])

    def _checked(
        self, n: int, due: Array | None, before: CameraSensorData | None
    ) -> tuple[Array, Pictures]:
        """Return the worlds that are due, and the pictures before by their kind.

        Raises:
            ValueError: See `__call__`.
        """
        if due is None or before is None:
            missing = "before" if before is None else "due"
            raise ValueError(f"give due and before together, {missing} is missing")
        if jnp.shape(due) != (n,) or jnp.result_type(due) != jnp.bool_:
            what = f"{jnp.shape(due)} {jnp.result_type(due)}"
            raise ValueError(f"due must have a bool for each of {n} worlds, got {what}")
        shape = (n, len(self._numbers), *self._size) if self._each else (n, *self._size)
        kept: Pictures = {}
        for kind in self._kinds:
            picture = getattr(before, kind)
            if picture is None or picture.shape[:-1] != shape:
                got = None if picture is None else picture.shape
                raise ValueError(f"before must have pictures {kind} of {shape}, got {got}")
            kept[kind] = picture
        return jnp.asarray(due), kept

    def _pictures(self, take: PictureFn, scenes: tuple[Any, ...], *kept: Any) -> Pictures:
        of_all = partial(self._of_all, take)
        if not kept:
            return of_all(*scenes)
        due, before = kept
        return where_due(of_all, due, before, scenes)

    def _of_all(
        self,
        take: PictureFn,
        pos: Array,
        quat: Array,
        geoms: Frames,
        cameras: Frames,
        look: Appearance,
        of_geoms: Twists | None,
        of_cameras: Twists | None,
        keys: Array | None,
    ) -> Pictures:
        axes = rotation_matrix(quat)
        geoms = _carried(geoms, pos, axes, self._geom_carriers)
        cameras = _carried(cameras, pos, axes, self._camera_carriers)
        n_worlds, n_cameras = cameras.pos.shape[:2]
        if not self._each:
            cameras, of_cameras = jax.tree.map(lambda x: x[:, 0], (cameras, of_cameras))
            motions = Motions(of_geoms, of_cameras) if of_geoms and of_cameras else None
            return take(geoms, cameras, look, motions, keys)

        def for_each(tree: Any) -> Any:
            repeated = partial(jnp.repeat, repeats=n_cameras, axis=0)
            return jax.tree.map(lambda x: repeated(x) if len(x) == n_worlds else x, tree)

        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (cameras, of_cameras))
        cameras, of_cameras = flat
        motions = Motions(for_each(of_geoms), of_cameras) if of_geoms and of_cameras else None
        if keys is not None:
            keys = jax.vmap(lambda key: jax.random.split(key, n_cameras))(keys).reshape(-1)
        taken = take(for_each(geoms), cameras, for_each(look), motions, keys)
        return jax.tree.map(lambda x: x.reshape(n_worlds, n_cameras, *x.shape[1:]), taken)


def _cameras(model: mujoco.MjModel, name: str, n_drones: int) -> list[int]:
    """Return the ids of a camera, or of those of all drones.

    Raises:
        ValueError: There are none.
    """
    known = [model.camera(i).name for i in range(model.ncam)]
    if name in known:
        return [known.index(name)]
    of_drones = [f"{name}:{i}" for i in range(n_drones)]
    if not set(of_drones) <= set(known):
        raise ValueError(unknown("camera", name, known))
    return [known.index(each) for each in of_drones]


def _carried(frames: Frames, pos: Array, axes: Array, carriers: np.ndarray) -> Frames:
    """Return frames in the world (N, K, ...).

    Args:
        frames: In their carriers, (N or 1, K, ...).
        pos: Of the drones, (N, M, 3).
        axes: Likewise, (N, M, 3, 3).
        carriers: The drones that carry them, (K,); -1 for the world.
    """
    carried, turn = carriers >= 0, axes[:, carriers]
    moved = pos[:, carriers] + (turn * frames.pos[..., None, :]).sum(-1)
    turned = (turn[..., :, :, None] * frames.axes[..., None, :, :]).sum(-2)
    return Frames(
        jnp.where(carried[:, None], moved, frames.pos),
        jnp.where(carried[:, None, None], turned, frames.axes),
    )

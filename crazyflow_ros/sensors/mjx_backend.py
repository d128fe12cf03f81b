"""Sensors in worlds of MJX, within the limits of MJX."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from jax import Array

from crazyflow_ros.drones.deck_optics import reach
from crazyflow_ros.extras import extra
from crazyflow_ros.scene.mirror_state import compute_frames
from crazyflow_ros.sensors.backend import (
    Contacts,
    Limits,
    RayCaster,
    check_not_mocap,
    motions_of,
)
from crazyflow_ros.sensors.objects import ObjRef

with extra("mjx"):
    from mujoco import mjx

    from crazyflow_ros.scene.mjx_internals import contact_forces, contacts
    from crazyflow_ros.scene.mjx_scene import lacks_sensor

_GEOM = mujoco.mjtGeom
_PASSED = (_GEOM.mjGEOM_HFIELD, _GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_SDF)
"""Types of geoms that rays of MJX silently pass through."""
_SMOOTH = (
    _GEOM.mjGEOM_PLANE,
    _GEOM.mjGEOM_SPHERE,
    _GEOM.mjGEOM_CAPSULE,
    _GEOM.mjGEOM_ELLIPSOID,
    _GEOM.mjGEOM_BOX,
)
"""Types of geoms whose surface normals are known; MJX's rays do not return them."""


class MjxBackend:
    """A batch of worlds.

    MJX has no rays for some types of geoms and no surface normals of meshes, and its numbers are
    single precision by default. Built-in sensors that it lacks are refused. Cameras draw with C
    MuJoCo, world by world.

    Args:
        model: The model.
        mjx_model: The same in MJX, shared by all worlds.
        data: Frames and sensordata of all worlds, each array with a leading axis for them; assign
            `data` anew after each step.
    """

    xp = jnp
    contact_forces = True
    keys = None

    def __init__(self, model: mujoco.MjModel, mjx_model: mjx.Model, data: mjx.Data) -> None:
        self.model = model
        self.data = data
        self._mjx_model = mjx_model
        self._drawn = mujoco.MjData(model)
        self._forces = jax.jit(jax.vmap(contact_forces, in_axes=(None, 0)))

    def worlds(self) -> mjx.Data:
        """Return the data that sensors read."""
        return self.data

    @property
    def n_worlds(self) -> int:
        """Number of worlds, B."""
        return len(self.data.qpos)

    def sensordata(self) -> Array:
        """See `Backend`."""
        return self.worlds().sensordata

    def frame(self, ref: ObjRef) -> tuple[Array, Array]:
        """See `Backend`."""
        prefix, number, data = ref.frame_prefix, ref.id(self.model), self.worlds()
        position, axes = getattr(data, f"{prefix}pos"), getattr(data, f"{prefix}mat")
        return position[:, number], axes[:, number].reshape(-1, 3, 3)

    def geoms(self) -> tuple[Array, Array]:
        """See `Backend`."""
        data = self.worlds()
        return data.geom_xpos, data.geom_xmat.reshape(*data.geom_xpos.shape, 3)

    def motions(self, bodies: np.ndarray) -> tuple[Array, Array, Array]:
        """See `Backend`."""
        return motions_of(self.model, self.worlds(), bodies)

    def contacts(self) -> Contacts:
        """Return the contacts of `mjx.collision`, with the forces of the last solution."""
        data = self.worlds()
        force = self._forces(self._mjx_model, data) if self.contact_forces else None
        found = contacts(data)
        here = (found.dist < found.includemargin)[..., None]
        return Contacts(
            jnp.where(here, found.geom, -1),
            found.dist,
            found.pos,
            jnp.swapaxes(found.frame, -1, -2),
            None if force is None else force[..., :3],
            None if force is None else force[..., 3:],
        )

    def check_sensor(self, sensor: int) -> None:
        """Refuse the motion of mocap bodies, and sensors that MJX lacks.

        Raises:
            ValueError: The sensor measures such a motion, or MJX lacks it.
        """
        if lacks_sensor(self.model)[sensor]:
            kind = mujoco.mjtSensor(self.model.sensor_type[sensor]).name
            name = self.model.sensor(sensor).name
            raise ValueError(f"MJX has no sensor like {name!r} ({kind}); use C MuJoCo")
        check_not_mocap(self.model, sensor)

    def poses(self, world: int) -> mujoco.MjData:
        """Return data of C MuJoCo with the frames of a world; the same object for all worlds."""
        drawn, data = self._drawn, self.worlds()
        drawn.qpos[:] = data.qpos[world]
        drawn.mocap_pos[:] = data.mocap_pos[world]
        drawn.mocap_quat[:] = data.mocap_quat[world]
        compute_frames(self.model, drawn)
        return drawn

    def ray_caster(
        self,
        excluded: Sequence[Sequence[int]],
        groups: np.ndarray,
        limits: Limits,
        *,
        one_origin: bool,
    ) -> RayCaster:
        """Cast all rays of all worlds at once with `mjx.ray`, compiled at the first call.

        Raises:
            ValueError: Rays would pass through some of the geoms.
        """
        del one_origin  # which makes no difference to MJX
        meshes: list[str] = []
        for bodies in excluded:
            meshes += self._check_geoms(bodies, groups)
        mjx_model, group_mask = self._mjx_model, tuple(map(int, groups))
        most, reflectance = limits(self.model)
        longest = jnp.broadcast_to(jnp.asarray(most), self.model.ngeom)
        if self.model.nmat == 0:  # then mjx.ray fails for geoms without a material
            mjx_model = mjx_model.replace(mat_rgba=jnp.ones((1, 4)))

        def of_frame(
            bodies: Sequence[int],
        ) -> Callable[[mjx.Data, Array, Array], tuple[Array, Array]]:
            def ray(world: mjx.Data, start: Array, direction: Array) -> tuple[Array, Array]:
                passed = list(bodies) or -1
                distance, geom = mjx.ray(
                    mjx_model, world, start, direction, group_mask, True, passed
                )
                normal = jnp.zeros(3)
                if not meshes:
                    normal = surface_normals(mjx_model, world, geom, start + distance * direction)
                farthest = longest[geom]
                if reflectance is not None:
                    cosine = 1.0 if meshes else jnp.abs(jnp.dot(normal, direction))
                    lit = reach(jnp.asarray(reflectance)[geom], cosine, jnp)
                    farthest = jnp.minimum(farthest, lit)
                hit = (distance >= 0.0) & (distance <= farthest)
                return jnp.where(hit, distance, -1.0), jnp.where(hit, normal, 0.0)

            return jax.vmap(jax.vmap(ray, in_axes=(None, 0, 0)))

        frames = [of_frame(bodies) for bodies in excluded]

        @jax.jit
        def cast(data: mjx.Data, origins: Array, directions: Array) -> tuple[Array, Array | None]:
            origins = jnp.broadcast_to(origins, directions.shape)
            hits = [
                rays(data, origins[:, frame], directions[:, frame])
                for frame, rays in enumerate(frames)
            ]
            distances, normals = (jnp.stack(part, axis=1) for part in zip(*hits))
            return distances, None if meshes else normals

        return RayCaster(
            lambda origins, directions: cast(self.worlds(), origins, directions),
            f"MJX has no surface normals of meshes: {', '.join(meshes)}. Leave them out with "
            "include_geom_groups, or use C MuJoCo"
            if meshes
            else "",
        )

    def _check_geoms(self, excluded: Sequence[int], groups: np.ndarray) -> list[str]:
        """Refuse geoms that rays pass through; return names of those without normals."""
        model = self.model
        meant = (groups[model.geom_group] > 0) & ~np.isin(model.geom_bodyid, list(excluded))

        def names(geoms: np.ndarray) -> list[str]:
            return [model.geom(i).name or f"number {i}" for i in np.flatnonzero(meant & geoms)]

        if passed := names(np.isin(model.geom_type, list(map(int, _PASSED)))):
            raise ValueError(
                f"MJX's rays pass through cylinders, height fields and SDFs: {', '.join(passed)}. "
                "Leave their groups out, or use C MuJoCo"
            )
        return names(~np.isin(model.geom_type, list(map(int, _SMOOTH))))


def surface_normals(model: mjx.Model, data: mjx.Data, geoms: Array, points: Array) -> Array:
    """Return outward unit normals of geoms at points of their surfaces, in one world.

    Args:
        model: The model.
        data: Frames of the world.
        geoms: Ids of geoms of the types `_SMOOTH`, shape (...); the normal of -1 is zero.
        points: Points in the world [m], shape (..., 3).

    Returns:
        Shape (..., 3), world axes.
    """
    axes, size = data.geom_xmat[geoms].reshape(*geoms.shape, 3, 3), model.geom_size[geoms]
    local = jnp.einsum("...ji,...j->...i", axes, points - data.geom_xpos[geoms])
    up = jnp.array([0.0, 0.0, 1.0])
    along = jnp.clip(local[..., 2], -size[..., 1], size[..., 1])
    face = jnp.abs(local) / jnp.where(size > 0.0, size, 1.0)
    vectors = {
        _GEOM.mjGEOM_PLANE: jnp.broadcast_to(up, local.shape),
        _GEOM.mjGEOM_SPHERE: local,
        _GEOM.mjGEOM_CAPSULE: local - along[..., None] * up,
        _GEOM.mjGEOM_ELLIPSOID: local / jnp.where(size > 0.0, size, 1.0) ** 2,
        _GEOM.mjGEOM_BOX: jnp.sign(local) * (face == face.max(axis=-1, keepdims=True)),
    }
    kinds = jnp.asarray(model.geom_type)[geoms][..., None]
    normal = jnp.zeros_like(local)
    for kind in _SMOOTH:
        normal = jnp.where(kinds == int(kind), vectors[kind], normal)
    normal = normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)
    world = jnp.einsum("...ij,...j->...i", axes, normal)
    return jnp.where(geoms[..., None] >= 0, world, 0.0)
